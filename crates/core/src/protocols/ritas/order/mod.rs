//! RITAS as a total order: what a Backup needs around an atomic broadcast.
//!
//! # What it is for
//! A Backup over PBFT waits for as long as the network is slower than its timers. Over RITAS it goes on: the clock
//! decides when something is said once more, and when a payload is listed that is ahead of its time, and nothing else.
//!
//! # Steps
//! * Order 1. A request that somebody asks for waits in the pool, until it is executed.
//! * Order 2. What waits goes into a *payload*, with this replica's clock and its part of the seed, and that is a
//!   message of the atomic broadcast. So many are on their way at a time ([`PAYLOADS_IN_FLIGHT`]): under load payloads
//!   grow by themselves.
//! * Order 3. A payload that was delivered reliably is listed once this replica vouches for it: each request is its
//!   client's by a signature, which convinces everybody alike; its time is not ahead of this replica's clock by more
//!   than the bound; and it has an INIT, where the instance still waits for one.
//! * Order 4. What a round of the atomic broadcast delivers is one batch: system requests first, then the payloads in
//!   their order, of each client the first request. Its time is the latest of its payloads', its seed is over all of
//!   theirs. It is final at once.
//! * Order 5. No round begins that could deliver a batch beyond the window above the last stable checkpoint.
//! * Order 6. What led to a stable checkpoint is forgotten. Who has not come there is given the proof, and fetches the
//!   state, which says where its atomic broadcast stands ([`crate::batch::Ordered::standing`]).
//! * Order 7. A replica says on a timer what it lacks ([`super::channel`]); now and then also if it lacks nothing, so
//!   that who has missed everything learns of it.
//! * Order 8 to 10. A replica that lost its log: `amnesia.rs`.
//!
//! # Why it is safe
//! Atomic broadcast delivers the same everywhere, and a batch is a function of what it delivers. A payload that was
//! delivered was listed by f + 1 replicas, so that a correct one vouched for its requests, and for its time: no batch
//! is ahead of a correct clock by more than the bound. (Where the time of a payload is *behind*, the estate sees to it
//! that time grows.)
//!
//! # Why it is live
//! A request that reaches a correct replica goes into a payload of it, which all correct replicas come to vouch for:
//! what they check is the same for all, and their clocks go on. Clients ask the replica whose turn it is by the number
//! of the request, and all when they retry. A round begins as soon as the stable checkpoint is not a window away;
//! checkpoints become stable because all correct replicas come to them.
//!
//! # What is on disk before it is said
//! Every statement that binds ([`super::message::Statement::binds`]), each value that this replica vouches for by its
//! name, and every batch before anybody is told of it.
//!
//! # Cost
//! That of atomic broadcast: for a payload a reliable broadcast, for a round four kinds of them. Each replica checks
//! the signature of every request.

mod amnesia;
mod delivery;
mod message;
mod payload;
mod speaking;
#[cfg(test)]
mod tests;

pub use message::{Agreement, Progress, RitasMessage, Statements, Whereabouts};

use super::atomic_broadcast::{Id, Standing};
use super::message::{Said, Value};
use super::path::{Layer, Path};
use super::scope::{Effect, Scope, Silence};
use super::stack::{Outcome, Stack, Variant};
use crate::auth::{Certificate, Claimed};
use crate::batch::Batch;
use crate::checkpoint::{Checkpoint, Evidence};
use crate::cluster::Cluster;
use crate::digest::Digest;
use crate::ids::{ClientId, InstanceId, ReplicaId, Sequence, Timestamp, View};
use crate::message::Request;
use crate::notice::Report;
use crate::protocols::pbft::PrePrepare;
use crate::protocols::pool::Pool;
use crate::protocols::total_order::{Context, OrderEffect, TotalOrder};
use crate::replicas::{ReplicaSet, Replicas};
use crate::schedule::Specification;
use crate::switching::RECORD_ALLOWANCE;
use crate::{wire_enum, wire_struct};
use alloc::boxed::Box;
use alloc::collections::{BTreeMap, VecDeque};
use alloc::sync::Arc;
use alloc::vec::Vec;
use amnesia::Abstention;
use bytes::Bytes;
use payload::Payload;

pub(super) type Ctx<'a> = Context<'a, Ritas>;

/// Payloads of one replica that are on their way: one in the round that runs, and one for the next.
pub const PAYLOADS_IN_FLIGHT: u64 = 2;

/// A batch that a round delivered.
#[derive(Clone, Debug)]
pub struct Delivered {
    /// Its place.
    pub sequence: Sequence,
    /// The batch.
    pub batch: Arc<Batch>,
    /// Where the atomic broadcast stands after it.
    pub standing: Standing,
}
wire_struct!(Delivered { sequence, batch, standing });

/// The decision of an instance that is over.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Over {
    /// The instance.
    pub path: Path,
    /// Its decision.
    pub value: Value,
}
wire_struct!(Over { path, value });

/// What RITAS must have on disk before it speaks (`docs/durability.md`).
#[derive(Clone, Debug)]
pub enum RitasRecord {
    /// Before it is said, or before a value is vouched for by its name.
    Said(Box<Said>),
    /// At the beginning of a log: what else was decided.
    Over(Box<Over>),
    /// Before a REPLY: the batch.
    Delivered(Delivered),
    /// A stable checkpoint that this replica had.
    Stable(Box<Claimed<Certificate<Checkpoint>>>),
    /// This replica lost its log: what it is silent about, if it knows; else about everything.
    Abstain(Option<Silence>),
}
wire_enum!(RitasRecord {
    1 => Said,
    2 => Over,
    3 => Delivered,
    4 => Stable,
    5 => Abstain,
});

impl RitasRecord {
    /// About how many bytes it takes in the log: see [`crate::switching::Recorded::log_bytes`].
    pub fn log_bytes(&self) -> usize {
        match self {
            Self::Said(said) => RECORD_ALLOWANCE + said.statement.value_bytes(),
            Self::Delivered(delivered) => {
                let batch = &delivered.batch;
                RECORD_ALLOWANCE * (1 + batch.entries().len()) + batch.inline_bytes()
            }
            Self::Over(_) | Self::Stable(_) | Self::Abstain(_) => RECORD_ALLOWANCE,
        }
    }
}

/// RITAS' timer.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum RitasTimer {
    /// Time to say what this replica lacks.
    Channel,
}

/// A payload that is here.
#[derive(Clone, Debug)]
struct Arrived {
    payload: Payload,
    /// Whether a correct replica may have sent it: else no other one lists it either.
    is_sound: bool,
    /// Whether it is listed.
    is_listed: bool,
}

/// RITAS at one replica. See the [module](self).
#[derive(Clone, Debug)]
pub struct Ritas {
    replicas: Replicas,
    instance: InstanceId,
    stack: Stack,
    /// Whether the stack is as it was where the state was restored; and where its atomic broadcast stands there.
    is_prepared: bool,
    begins_at: Option<Standing>,
    /// What the stack wants done, and has not been carried out.
    effects: Vec<Effect>,
    /// What the stack has come to, and has not been looked at.
    outcomes: VecDeque<Outcome>,
    is_learning: bool,
    /// Whether no round may begin for now.
    is_held: bool,
    /// What is to be said at the end of the pass: to all, and to one.
    said: Vec<Said>,
    told: BTreeMap<ReplicaId, Vec<Said>>,
    pool: Pool,
    /// Payloads that were delivered reliably and are not ordered, at most a window for each sender. Those that no
    /// correct replica sends are not among them.
    arrived: BTreeMap<Id, Arrived>,
    /// Those that the round which is just being delivered has ordered so far.
    ordered: Vec<Payload>,
    /// How many requests this replica put into its last payload.
    last_proposed: usize,
    /// The last batch delivered; no gap before it.
    delivered: Sequence,
    /// Batches above the last stable checkpoint: a window of them, and what was on its way.
    batches: BTreeMap<Sequence, Delivered>,
    /// The last stable checkpoint, with its proof. This replica may still have to fetch its state.
    stable: Evidence,
    /// The stable checkpoint that the log names: to be taken up once what it covers is executed again.
    logged_stable: Option<Certificate<Checkpoint>>,
    /// Whether no INIT was delivered yet.
    awaits_init: bool,
    /// A round that somebody says it has come to, if this replica has not.
    ahead: u64,
    idle_intervals: u32,
    silence: Option<Silence>,
    abstention: Option<Abstention>,
    /// Whether somebody who lost its log waits for rounds.
    owes_round: bool,
}

/// The atomic broadcast of an instance.
fn root() -> Path {
    Path::root(Layer::Atomic, 0)
}

/// Lets the stack act, with its surroundings.
macro_rules! with_stack {
    ($self:ident, $me:expr, $steps:expr, |$stack:ident, $scope:ident| $act:expr) => {{
        let Ritas { stack: $stack, effects, silence, replicas, .. } = &mut *$self;
        let $scope = &mut Scope {
            replicas: *replicas,
            me: $me,
            repeats: false,
            silence: silence.as_ref(),
            out: effects,
            steps: $steps,
        };
        $act
    }};
}
use with_stack;

impl Ritas {
    /// A batch is never longer than one of PBFT may be, whose bounds are those of a payload.
    fn variant(cluster: &Cluster) -> Variant {
        let round_bytes_max = usize::try_from(PrePrepare::bytes_max(cluster)).unwrap_or(usize::MAX);
        Variant { round_bytes_max, ..Variant::default() }
    }

    /// h: the last stable checkpoint.
    fn low_water_mark(&self) -> Sequence {
        self.stable.checkpoint().sequence
    }

    /// Where the atomic broadcast stands.
    fn round(&self) -> u64 {
        self.stack.standing(root()).map_or(0, |standing| standing.round)
    }

    /// Where the state says that it stands.
    fn standing_of(&self, state: Option<&Bytes>) -> Option<Standing> {
        let (instance, standing): (InstanceId, Standing) = crate::wire::Wire::from_bytes(state?.clone()).ok()?;
        (instance == self.instance).then_some(standing)
    }
}

impl TotalOrder for Ritas {
    type Message = RitasMessage;
    type Timer = RitasTimer;
    type Record = RitasRecord;

    fn open(what: &Specification, root: Digest, lost_log: bool) -> Self {
        let Specification { number, replicas, .. } = *what;
        let mut ritas = Self {
            replicas,
            instance: number,
            stack: Stack::new(Digest::ZERO, Variant::default()),
            is_prepared: false,
            begins_at: None,
            effects: Vec::new(),
            outcomes: VecDeque::new(),
            is_learning: false,
            is_held: false,
            said: Vec::new(),
            told: BTreeMap::new(),
            pool: Pool::default(),
            arrived: BTreeMap::new(),
            ordered: Vec::new(),
            last_proposed: 0,
            delivered: Sequence(0),
            batches: BTreeMap::new(),
            stable: Evidence::genesis(number, root),
            logged_stable: None,
            // (abs-L3).
            awaits_init: number > InstanceId(1),
            ahead: 0,
            idle_intervals: 0,
            silence: None,
            abstention: None,
            owes_round: false,
        };
        if lost_log {
            ritas.abstain(None);
        }
        ritas
    }

    fn restored(&mut self, evidence: Evidence, standing: Option<&Bytes>) {
        self.delivered = evidence.checkpoint().sequence;
        self.stable = evidence;
        self.begins_at = self.standing_of(standing);
    }

    fn lose_log(&mut self) {
        if self.silence.is_none() {
            self.abstain(None);
        }
    }

    fn replay(&mut self, cluster: &Cluster, me: ReplicaId, record: RitasRecord) {
        self.prepare(cluster, me);
        self.replay_record(me, record);
    }

    fn start(&mut self, context: &mut Ctx<'_>) {
        context.push(OrderEffect::SetTimer(RitasTimer::Channel, context.now + context.cluster.limits.status_interval));
        self.prepare(context.cluster, context.me);
        self.stack.arm(context.keyring.seed(b"coins"));
        self.resume(context);
        self.begin_to_ask(context);
    }

    fn submit(&mut self, context: &mut Ctx<'_>, request: Request, from: Option<ReplicaId>) {
        context.step("Order 1");
        if let Err(reason) = self.pool.add(request, from, &context.cluster.limits) {
            context.reject(context.me, reason);
        }
    }

    fn message(&mut self, context: &mut Ctx<'_>, from: ReplicaId, message: RitasMessage) {
        match message {
            RitasMessage::Said(Statements(said)) => {
                for said in said {
                    let outcomes =
                        with_stack!(self, context.me, context.steps, |stack, scope| stack.hear(scope, from, said));
                    self.learn(context, outcomes);
                }
            }
            RitasMessage::Progress(progress) => self.on_progress(context, from, &progress),
            RitasMessage::Stable(certificate) => self.on_stable(context, from, *certificate),
            RitasMessage::Lost(question) => self.on_lost(context, from, question),
            RitasMessage::Round(here) => self.on_round(context, from, here),
        }
    }

    fn timer(&mut self, context: &mut Ctx<'_>, timer: RitasTimer) {
        match timer {
            RitasTimer::Channel => self.on_channel_timeout(context),
        }
    }

    fn pass_end(&mut self, context: &mut Ctx<'_>) {
        self.hold_if_far(context);
        self.propose(context);
        self.speak(context);
    }

    fn executed(&mut self, client: ClientId, timestamp: Timestamp) {
        self.pool.executed(client, timestamp);
    }

    fn stable(&mut self, context: &mut Ctx<'_>, certificate: &Certificate<Checkpoint>) {
        assert!(certificate.value().sequence <= self.delivered, "stable here means executed here");
        context.push(OrderEffect::Persist(RitasRecord::Stable(Box::new(certificate.claim()))));
        self.raise_low_water_mark(certificate);
        self.forget_what_is_stable(context);
    }

    fn installed(&mut self, context: &mut Ctx<'_>, certificate: &Certificate<Checkpoint>, standing: Option<&Bytes>) {
        self.pool.forget(context.is_over);
        let sequence = certificate.value().sequence;
        self.raise_low_water_mark(certificate);
        if sequence > self.delivered {
            self.delivered = sequence;
            self.batches.clear();
            let standing = self.standing_of(standing).expect("what 2f+1 signed says where the order stands");
            self.move_to(context, standing);
        } else {
            self.forget_what_is_stable(context);
            self.deliver_again(context, sequence);
        }
        // That state includes the init history.
        self.opened(context);
    }

    fn went_back(&mut self, context: &mut Ctx<'_>, sequence: Sequence) {
        assert!(sequence <= self.delivered, "goes back to what was delivered for good");
        self.deliver_again(context, sequence);
    }

    fn live_records(&self, me: ReplicaId) -> Vec<RitasRecord> {
        self.records_above_stable(me)
    }

    fn waiting_clients(&self) -> Vec<ClientId> {
        self.pool.clients().collect()
    }

    fn opened(&mut self, context: &mut Ctx<'_>) {
        if core::mem::take(&mut self.awaits_init) {
            self.vouch_for_arrived(context);
        }
    }

    /// Nobody is needed more than others.
    fn do_without(&mut self, _context: &mut Ctx<'_>, _missing: ReplicaSet) {}

    fn may_vote(&self) -> bool {
        self.silence.as_ref().is_none_or(|silence| self.round() >= silence.rounds_from)
    }

    /// All that it has delivered it delivers again after a crash, before it answers anybody; and who lost its log
    /// votes again when it has come to all that it may have delivered.
    fn promised(&self) -> Sequence {
        self.delivered
    }

    fn view(&self) -> Option<View> {
        None
    }

    fn describe(&self, report: &mut Report) {
        report.pending_requests = self.pool.len();
        report.slots = self.stack.len();
    }

    fn check_invariants(&self, cluster: &Cluster, _me: ReplicaId) {
        self.pool.check_invariants(cluster);
        assert!(self.effects.is_empty() && self.outcomes.is_empty(), "what was wanted was done");
        assert!(self.ordered.is_empty(), "a round is delivered as one batch");
        assert!(self.delivered >= self.batches.keys().next_back().copied().unwrap_or_default(), "no batch is hidden");
        let arrived_max = self.replicas.n() * super::atomic_broadcast::WINDOW as usize;
        assert!(self.arrived.len() <= arrived_max, "a window for each sender");
    }
}
