//! The state of one replica, and where each input goes.

use super::super::atomic_broadcast::{HEARD, Standing};
use super::super::catching_up::CatchingUp;
use super::super::message::{Said, Value};
use super::super::pace::Pace;
use super::super::path::{Id, Path};
use super::super::scope::{Effect, Scope, Silence};
use super::super::stack::{Outcome, Stack};
use super::super::statements::Statements;
use super::super::variant::Variant;
use super::message::{Lap, RitasMessage};
use super::payload::Payload;
use super::record::{Delivered, RitasRecord, RitasTimer};
use crate::auth::Certificate;
use crate::batch::Batch;
use crate::checkpoint::{Checkpoint, Evidence};
use crate::cluster::{Cluster, Coin};
use crate::digest::Digest;
use crate::ids::{ClientId, InstanceId, ReplicaId, Sequence, Timestamp, View};
use crate::machine::StepsTaken;
use crate::message::Request;
use crate::notice::Report;
use crate::protocols::pool::Pool;
use crate::protocols::total_order::{Context, OrderEffect, TotalOrder};
use crate::rejection::Rejection;
use crate::replicas::{ReplicaSet, Replicas};
use crate::schedule::Specification;
use crate::time::Instant;
use crate::wire::Wire;
use alloc::boxed::Box;
use alloc::collections::{BTreeMap, VecDeque};
use alloc::vec::Vec;
use bytes::Bytes;

pub(super) type Ctx<'a> = Context<'a, Ritas>;

/// Payloads of one replica that are on their way: one in the round that runs, and one for the next.
pub const PAYLOADS_IN_FLIGHT: u64 = 2;

/// A payload that is here.
#[derive(Clone, Debug)]
pub(super) struct Arrived {
    pub(super) payload: Payload,
    /// Whether a correct replica may have sent it: else no other one lists it either.
    pub(super) is_sound: bool,
    /// Whether it is listed.
    pub(super) is_listed: bool,
}

/// What a replica that lost its log waits for.
#[derive(Clone, Debug, Default)]
pub(super) struct Abstention {
    /// When it asked the others.
    pub(super) question: Instant,
    /// The round that each named first.
    pub(super) rounds: BTreeMap<ReplicaId, u64>,
}

/// A rest between two rounds.
#[derive(Clone, Copy, Debug)]
pub(super) struct Rest {
    /// Where it is: beyond the last lap, if it only waits for payloads.
    pub(super) lap: Lap,
    /// Who has answered in this lap.
    pub(super) answered: ReplicaSet,
}

impl Rest {
    pub(super) fn in_lap(lap: Lap) -> Self {
        Self { lap, answered: ReplicaSet::default() }
    }
}

/// RITAS at one replica. See the [module](super).
#[derive(Clone, Debug)]
pub struct Ritas {
    pub(super) replicas: Replicas,
    pub(super) instance: InstanceId,
    pub(super) stack: Stack,
    /// Whether the stack is as it was where the state was restored; and where its atomic broadcast stands there.
    pub(super) is_prepared: bool,
    pub(super) begins_at: Option<Standing>,
    /// What the stack wants done, and has not been carried out.
    pub(super) effects: Vec<Effect>,
    /// What the stack has come to, and has not been looked at.
    pub(super) outcomes: VecDeque<Outcome>,
    pub(super) is_learning: bool,
    /// Whether no round may begin for now.
    pub(super) is_held: bool,
    /// What is to be said at the end of the pass: to all, and to one.
    pub(super) said: Vec<Said>,
    pub(super) told: BTreeMap<ReplicaId, Vec<Said>>,
    pub(super) pool: Pool,
    /// Payloads that were delivered reliably and are not ordered, at most a window for each sender. Those that no
    /// correct replica sends are not among them.
    pub(super) arrived: BTreeMap<Id, Arrived>,
    /// Those that the round which is just being delivered has ordered so far.
    pub(super) ordered: Vec<Payload>,
    /// How many requests this replica put into its last payload.
    pub(super) last_proposed: usize,
    /// Its own last payloads, but for those that were delivered reliably.
    pub(super) chosen: VecDeque<Value>,
    /// The last batch delivered; no gap before it.
    pub(super) delivered: Sequence,
    /// Batches above the last stable checkpoint: a window of them, and what was on its way.
    pub(super) batches: BTreeMap<Sequence, Delivered>,
    /// The last stable checkpoint, with its proof. This replica may still have to fetch its state.
    pub(super) stable: Evidence,
    /// The stable checkpoint that the log names: to be taken up once what it covers is executed again.
    pub(super) logged_stable: Option<Certificate<Checkpoint>>,
    /// Whether no INIT was delivered yet.
    pub(super) awaits_init: bool,
    pub(super) pace: Pace,
    pub(super) silence: Option<Silence>,
    pub(super) abstention: Option<Abstention>,
    /// Whether somebody who lost its log waits for rounds.
    pub(super) owes_round: bool,
    /// Between two rounds.
    pub(super) rest: Option<Rest>,
    pub(super) catching_up: CatchingUp,
    /// Whose requests the last batch had, if they were all one client's.
    pub(super) alone: Option<ClientId>,
}

impl Ritas {
    /// Lets the stack act, with its surroundings.
    pub(super) fn act<T>(
        &mut self,
        me: ReplicaId,
        steps: &mut StepsTaken,
        act: impl FnOnce(&mut Stack, &mut Scope<'_>) -> T,
    ) -> T {
        let (replicas, silence, out) = (self.replicas, self.silence.as_ref(), &mut self.effects);
        act(&mut self.stack, &mut Scope { replicas, me, repeats: false, silence, out, steps })
    }

    /// A batch is never longer than one of PBFT may be, whose bounds are those of a payload.
    pub(super) fn variant(cluster: &Cluster) -> Variant {
        let round_bytes_max = usize::try_from(Batch::bytes_max(cluster)).unwrap_or(usize::MAX);
        Variant { round_bytes_max, rests: true, coin: cluster.coin, vects: cluster.vects, ..Variant::default() }
    }

    /// h: the last stable checkpoint.
    pub(super) fn low_water_mark(&self) -> Sequence {
        self.stable.checkpoint().sequence
    }

    /// Where the atomic broadcast stands.
    pub(super) fn round(&self) -> u64 {
        self.stack.standing(Path::atomic_broadcast()).map_or(0, |standing| standing.round)
    }

    /// Where the state says that it stands.
    pub(super) fn standing_of(&self, state: Option<&Bytes>) -> Option<Standing> {
        let (instance, standing): (InstanceId, Standing) = Wire::from_bytes(state?.clone()).ok()?;
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
            chosen: VecDeque::new(),
            delivered: Sequence(0),
            batches: BTreeMap::new(),
            stable: Evidence::genesis(number, root),
            logged_stable: None,
            // (abs-L3).
            awaits_init: number > InstanceId(1),
            pace: Pace::default(),
            silence: None,
            abstention: None,
            owes_round: false,
            rest: None,
            catching_up: CatchingUp::default(),
            alone: None,
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
        let coin = match context.cluster.coin {
            Coin::Local => None,
            Coin::Common => context.keyring.common_coin(&self.instance.to_bytes()),
        };
        let secret = context.keyring.seed(&[b"coins", &self.instance.to_bytes()[..]].concat());
        self.stack.arm(secret, coin);
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
                    // There is nothing else here, and what another root comes to nobody has asked for.
                    if said.path.of_root() != Path::atomic_broadcast() {
                        context.reject(from, Rejection::Malformed);
                        continue;
                    }
                    self.catching_up.note(from, &said, self.round());
                    let outcomes = self.act(context.me, context.steps, |stack, scope| stack.hear(scope, from, said));
                    self.learn(context, outcomes);
                }
            }
            RitasMessage::Progress(progress) => self.on_progress(context, from, &progress),
            RitasMessage::Stable(certificate) => self.on_stable(context, from, *certificate),
            RitasMessage::Lost(question) => self.on_lost(context, from, question),
            RitasMessage::Round(here) => self.on_round(context, from, here),
            RitasMessage::Ping(lap) => Self::on_ping(context, from, lap),
            RitasMessage::Pong(lap) => self.on_pong(context, from, lap),
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
        self.wake_if_rested(context);
        self.catch_up(context);
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
    fn do_without_missing(&mut self, _context: &mut Ctx<'_>) {}

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
        report.round = Some(self.round());
        report.pending_requests = self.pool.len();
        report.slots = self.stack.len();
    }

    fn check_invariants(&self, cluster: &Cluster, _me: ReplicaId) {
        self.pool.check_invariants(cluster);
        assert!(self.effects.is_empty() && self.outcomes.is_empty(), "what was wanted was done");
        assert!(self.ordered.is_empty(), "a round is delivered as one batch");
        assert!(self.delivered >= self.batches.keys().next_back().copied().unwrap_or_default(), "no batch is hidden");
        let arrived_max = self.replicas.n() * HEARD as usize;
        assert!(self.chosen.len() as u64 <= PAYLOADS_IN_FLIGHT, "no more are on their way");
        assert!(self.arrived.len() <= arrived_max, "what is heard of each sender");
        let rests = self.stack.rests(Path::atomic_broadcast());
        assert_eq!(self.rest.is_some(), rests, "who begins no round waits for answers (Order 11)");
        let needed = self.replicas.reachable().max(2);
        assert!(self.rest.is_none_or(|rest| rest.answered.len() + 1 < needed), "enough answers end a lap");
    }
}
