//! What replicas and clients must agree on before they talk, and every bound that keeps memory finite. How many
//! replicas there are and how many must say the same is in [`crate::replicas`].

use crate::digest::{Digest, Domain};
use crate::ids::{InstanceId, Sequence};
use crate::replicas::{Replicas, ReplicasError};
use crate::schedule::{Part, Protocol, Quota, Specification};
use crate::time::Duration;
use alloc::vec::Vec;

/// Places for rulings in a window, at least. The first dispute takes three rulings at most: states are compared, a
/// request is refused, and where what follows is executed again otherwise, a state is right or none is. There is room
/// for a second one, and for two that liars bring about meanwhile.
const RULINGS_MIN: u64 = 8;

/// How clients authenticate their requests to the replicas (issue vocabulary: `--auth`).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum ClientAuth {
    /// A vector of MACs, one per replica, as published. A client whose vector is only partly valid can cost a view
    /// (pbft-F20), after which signatures are asked for until that is a while ago: for benchmarks and for comparison.
    Mac,
    /// MACs and a signature. The primary checks the signature before it orders; a backup accepts its MAC, failing
    /// that the signature, failing that f+1 PREPAREs of others. The default.
    #[default]
    Hybrid,
    /// A signature alone, checked by every replica.
    Signature,
}

/// What RITAS tosses where processes do not agree.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Coin {
    /// Each replica a coin of its own. The default.
    #[default]
    Local,
    /// All the same one ([`crate::auth::CommonCoin`]): with keys that somebody has dealt.
    Common,
}

impl Coin {
    /// All that there are.
    pub const ALL: &'static [Self] = &[Self::Local, Self::Common];

    /// Its name in files and on command lines.
    pub const fn label(self) -> &'static str {
        match self {
            Self::Local => "local",
            Self::Common => "common",
        }
    }
}

/// How RITAS broadcasts VECT.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Vects {
    /// Reliably. The default.
    #[default]
    Reliable,
    /// By echo broadcast, as in the thesis, for measurements: one liar can keep correct processes waiting for ever
    /// (ritas-F5).
    Echo,
}

impl Vects {
    /// All that there are.
    pub const ALL: &'static [Self] = &[Self::Reliable, Self::Echo];

    /// Its name in files.
    pub const fn label(self) -> &'static str {
        match self {
            Self::Reliable => "reliable",
            Self::Echo => "echo",
        }
    }
}

/// The sizes and limits of a cluster. The same at every replica: its digest is part of the handshake and of every
/// MAC key and signature.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Cluster {
    /// A name that the operator chose plus random bytes: two clusters never share it.
    pub id: [u8; 16],
    /// The replicas, and how many of them may be faulty.
    pub replicas: Replicas,
    /// How clients authenticate.
    pub client_auth: ClientAuth,
    /// The composition that runs.
    pub protocol: Protocol,
    /// Whether clients that the cluster file does not name may join ([`crate::members`]).
    pub dynamic_clients: bool,
    /// How many requests a Backup commits before it hands on, where the composition has other instances.
    pub quota: Quota,
    /// What RITAS tosses, where the composition has it.
    pub coin: Coin,
    /// How RITAS broadcasts VECT, where the composition has it.
    pub vects: Vects,
    /// The bounds.
    pub limits: Limits,
    /// The root of the state before the first batch, if that is one that another cluster left.
    pub genesis: Option<Digest>,
}

/// Named bounds and time-outs. Every collection that a peer can make grow is bounded by one of these.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Limits {
    /// Batches between two checkpoints (PBFT's K).
    pub checkpoint_interval: u64,
    /// Requests between two checkpoints of an instance that may abort (CHK). Its log holds at most three times as many.
    pub history_interval: u64,
    /// Most requests in a batch; whoever proposes one counts each operation of a bundle.
    pub batch_requests_max: usize,
    /// Most bytes of operations in a batch (a single request may exceed it alone).
    pub batch_bytes_max: usize,
    /// Batches that the primary keeps in flight, none smaller than the one before, before it lets the next grow
    /// (congestion window).
    pub batches_in_flight_max: u64,
    /// Most bytes of one operation.
    pub operation_bytes_max: usize,
    /// Operations larger than this travel from the client to every replica; only their digest is ordered (pbft-F22).
    pub inline_bytes_max: usize,
    /// Requests waiting to be ordered, over all clients. When there are so many, the identity with the most gives way.
    /// And one more for each other replica, which it has passed on.
    pub pending_requests_max: usize,
    /// Bytes of operations waiting to be ordered, over all clients; as many again of reads that wait.
    pub pending_bytes_max: usize,
    /// Read-only requests waiting for a state without tentative changes.
    pub pending_reads_max: usize,
    /// Sessions of one identity in the replicated client table.
    pub sessions_per_identity_max: usize,
    /// Clients that have joined, with those whose leaving is still remembered.
    pub members_max: usize,
    /// How long, in agreed time, a session must be unused before another client may take its place (prac-F27).
    pub session_stale_after: Duration,
    /// How long, in agreed time, a key keeps its session before it may be replaced by another of the same key
    /// (prac-F28). More than `clock_skew_max`.
    pub takeover_interval: Duration,
    /// How long, in agreed time, the cookies of a client that joins are good for (prac-F23). At least twice
    /// `clock_skew_max`: else a primary whose clock is ahead could let nobody join.
    pub cookie_lifetime: Duration,
    /// How long a backup waits for its oldest pending request before it asks for a new view.
    pub view_timeout: Duration,
    /// The most that `view_timeout` grows to by doubling; it falls back as soon as there is progress.
    pub view_timeout_max: Duration,
    /// How often a replica that makes no progress says what it has and lacks.
    pub status_interval: Duration,
    /// How far the primary's clock may be from a backup's when a fresh batch is proposed (prac-F27).
    pub clock_skew_max: Duration,
    /// The most by which one batch may move the agreed time forward (prac-F27).
    pub agreed_time_step_max: Duration,
    /// Bytes of log after which a snapshot is written and the log cut.
    pub log_bytes_per_snapshot: u64,
    /// How long a client waits for replies before it sends its request to every replica.
    pub client_retry: Duration,
    /// How long a batch may take for its way around the ring, on average, before the ring is called slow. It must take
    /// longer than its hops besides ([`crate::protocols::ring_fast`]).
    pub ring_slow_after: Duration,
    /// From when on a ring that is slow beyond doubt is left for the next instance; zero: never.
    pub ring_stop_after: Duration,
    /// Pages that a recovering replica asks for at once.
    pub transfer_requests_max: usize,
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            checkpoint_interval: 128,
            history_interval: 1_024,
            batch_requests_max: 1024,
            batch_bytes_max: 1 << 20,
            batches_in_flight_max: 2,
            operation_bytes_max: 1 << 20,
            inline_bytes_max: 1 << 10,
            pending_requests_max: 16_384,
            pending_bytes_max: 64 << 20,
            pending_reads_max: 16_384,
            sessions_per_identity_max: 8_192,
            members_max: 4_096,
            session_stale_after: Duration::from_millis(600_000),
            takeover_interval: Duration::from_millis(15_000),
            cookie_lifetime: Duration::from_millis(30_000),
            view_timeout: Duration::from_millis(2_000),
            view_timeout_max: Duration::from_millis(30_000),
            status_interval: Duration::from_millis(200),
            clock_skew_max: Duration::from_millis(10_000),
            agreed_time_step_max: Duration::from_millis(3_600_000),
            log_bytes_per_snapshot: 64 << 20,
            client_retry: Duration::from_millis(500),
            ring_slow_after: Duration::from_millis(100),
            ring_stop_after: Duration(0),
            transfer_requests_max: 16,
        }
    }
}

impl Cluster {
    /// A cluster of `n` replicas that tolerates as many liars as n allows.
    ///
    /// # Errors
    /// As [`Replicas::of`].
    pub fn of(id: [u8; 16], n: usize) -> Result<Self, ReplicasError> {
        Ok(Self::among(Replicas::of(n)?, id, ClientAuth::default(), Limits::default()))
    }

    /// A cluster with everything chosen.
    ///
    /// # Errors
    /// As [`Replicas::new`].
    pub fn new(
        id: [u8; 16],
        n: usize,
        f: usize,
        client_auth: ClientAuth,
        limits: Limits,
    ) -> Result<Self, ReplicasError> {
        Ok(Self::among(Replicas::new(n, f)?, id, client_auth, limits))
    }

    fn among(replicas: Replicas, id: [u8; 16], client_auth: ClientAuth, limits: Limits) -> Self {
        Self {
            id,
            replicas,
            client_auth,
            protocol: Protocol::default(),
            dynamic_clients: false,
            quota: Quota::default(),
            coin: Coin::default(),
            vects: Vects::default(),
            limits,
            genesis: None,
        }
    }

    /// The same cluster, open to clients that the cluster file does not name.
    #[must_use]
    pub const fn with_dynamic_clients(mut self) -> Self {
        self.dynamic_clients = true;
        self
    }

    /// The same cluster with a state to begin with.
    #[must_use]
    pub const fn with_genesis(mut self, root: Option<Digest>) -> Self {
        self.genesis = root;
        self
    }

    /// The same cluster with another composition.
    #[must_use]
    pub const fn with_protocol(mut self, protocol: Protocol) -> Self {
        self.protocol = protocol;
        self
    }

    /// What an instance runs.
    pub fn part(&self, instance: InstanceId) -> Part {
        self.protocol.schedule().part(instance)
    }

    /// What an instance is.
    pub fn specification(&self, number: InstanceId) -> Specification {
        let quota = self.protocol.hands_on().then_some(self.quota);
        Specification::new(&self.protocol.schedule(), quota, self.replicas, number)
    }

    /// Who takes part in an instance.
    pub fn replicas_of(&self, instance: InstanceId) -> Replicas {
        self.specification(instance).replicas
    }

    /// The most entries in a log above its anchor, init history aside.
    pub const fn history_bound(&self) -> u64 {
        3 * self.limits.history_interval
    }

    /// The most entries in a correct replica's abort report. A replica that never learns which checkpoints are certain
    /// keeps its anchor, and inherits one [`Cluster::history_bound`] more with every speculative instance, because the
    /// others go no further beyond a checkpoint that it has confirmed. A Backup ends with an anchor; where there is
    /// none, the replica goes on confirming for so long only that this bound holds ([`crate::switching`]).
    pub fn inherited_bound(&self) -> u64 {
        if !self.protocol.hands_on() {
            return 0;
        }
        self.protocol.schedule().speculative_in_a_row() * self.history_bound()
    }

    /// What the arguments for safety and progress rest on, whatever n and f are.
    pub(crate) fn check_invariants(&self) {
        self.replicas.check_invariants();
        assert!(self.window_of_requests() < self.window(), "each window has places for rulings");
    }

    /// Batches that may be in flight above a stable checkpoint: PBFT's L = 2K, and some more for rulings where K is
    /// small.
    pub fn window(&self) -> u64 {
        self.window_of_requests() + (self.limits.checkpoint_interval / 4).max(RULINGS_MIN)
    }

    /// How far behind a stable checkpoint batches of clients' requests are ordered. What is left of the window is for
    /// rulings ([`crate::dissent`]): they must find a place when no checkpoint becomes stable any more.
    pub fn window_of_requests(&self) -> u64 {
        let interval = self.limits.checkpoint_interval;
        2 * interval - (interval / 4).max(2).min(interval)
    }

    /// Whether a checkpoint is due after this batch.
    pub const fn is_checkpoint(&self, sequence: Sequence) -> bool {
        sequence.0.is_multiple_of(self.limits.checkpoint_interval)
    }

    /// The digest of everything that replicas must agree on before they talk: id, n, f, mode and limits. What matters
    /// only where clients may join is in it only there.
    pub fn digest(&self) -> Digest {
        let mut bytes = Vec::with_capacity(256);
        bytes.extend_from_slice(&self.id);
        for number in [
            self.replicas.n() as u64,
            self.replicas.faults() as u64,
            self.client_auth as u64,
            self.limits.checkpoint_interval,
            self.limits.history_interval,
            self.limits.batch_requests_max as u64,
            self.limits.batch_bytes_max as u64,
            self.limits.operation_bytes_max as u64,
            self.limits.inline_bytes_max as u64,
            self.limits.sessions_per_identity_max as u64,
            self.limits.agreed_time_step_max.0,
        ]
        .into_iter()
        .chain(self.quota.numbers())
        {
            bytes.extend_from_slice(&number.to_le_bytes());
        }
        bytes.extend_from_slice(alloc::format!("{}", self.protocol).as_bytes());
        if self.dynamic_clients {
            let Limits { members_max, session_stale_after, takeover_interval, cookie_lifetime, .. } = self.limits;
            bytes.extend_from_slice(b"dynamic clients");
            for number in [members_max as u64, session_stale_after.0, takeover_interval.0, cookie_lifetime.0] {
                bytes.extend_from_slice(&number.to_le_bytes());
            }
        }
        if self.coin == Coin::Common {
            bytes.extend_from_slice(b"common coin");
        }
        if self.vects == Vects::Echo {
            bytes.extend_from_slice(b"echo vects");
        }
        if let Some(root) = self.genesis {
            bytes.extend_from_slice(b"genesis");
            bytes.extend_from_slice(&root.0);
        }
        Digest::of(Domain::Cluster, &bytes)
    }
}
