//! The state of one replica, and where each input goes.

use super::begun::Begun;
use super::decision::Sound;
use super::message::{PbftMessage, Position};
use super::slot::Slot;
use super::{PbftRecord, PbftTimer};
use crate::auth::{Certificate, Claimed};
use crate::batch::{Batch, Reference};
use crate::checkpoint::{Checkpoint, Evidence};
use crate::cluster::Cluster;
use crate::digest::Digest;
use crate::ids::{ClientId, InstanceId, ReplicaId, Sequence, Timestamp, View};
use crate::message::Request;
use crate::notice::Report;
use crate::protocols::aardvark::Watch;
use crate::protocols::pool::Pool;
use crate::protocols::total_order::{Context, OrderEffect, TotalOrder};
use crate::replicas::Replicas;
use crate::schedule::{Order, Part, Specification};
use crate::time::Instant;
use alloc::boxed::Box;
use alloc::collections::BTreeMap;
use alloc::sync::Arc;
use alloc::vec::Vec;
use bytes::Bytes;

pub(super) type Ctx<'a> = Context<'a, Pbft>;

/// Whether the replica works in its view or waits for it to begin.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Phase {
    Normal,
    Changing,
}

/// What an amnesiac replica waits for (rule A of `docs/durability.md`).
#[derive(Clone, Debug, Default)]
pub(super) struct Abstention {
    /// When it asked the others.
    pub(super) question: Instant,
    /// What each answered first: view, and the last position that this replica may have voted for by then.
    pub(super) reports: BTreeMap<ReplicaId, (View, Sequence)>,
    /// It votes again in views above the first and when its stable checkpoint has reached the second.
    pub(super) marks: Option<(View, Sequence)>,
}

/// PBFT at one replica. See the [module](super).
#[derive(Clone, Debug)]
pub struct Pbft {
    /// Among whom.
    pub(super) replicas: Replicas,
    pub(super) view: View,
    pub(super) phase: Phase,
    /// The last stable checkpoint, h, with its proof. This replica may still have to fetch its state.
    pub(super) stable: Evidence,
    /// The last batch delivered for good; no gap before it.
    pub(super) committed: Sequence,
    /// The batch after `committed`, if it was delivered tentatively.
    pub(super) tentative: Option<Digest>,
    /// What is known above h: at most 2K entries.
    pub(super) slots: BTreeMap<Sequence, Slot>,
    /// Batches above h by digest, for execution, retransmission and later views.
    pub(super) batches: BTreeMap<Digest, (Sequence, Arc<Batch>)>,
    /// Bodies of big requests that batches above h refer to.
    pub(super) bodies: BTreeMap<Digest, (Sequence, Request)>,
    pub(super) pool: Pool,
    /// The next sequence number that this replica assigns as primary.
    pub(super) next: Sequence,
    /// How many requests it put into the last batch.
    pub(super) last_proposed: usize,
    /// The newest VIEW-CHANGE of each replica, for views that have not begun here.
    pub(super) view_changes: BTreeMap<ReplicaId, Sound>,
    /// How the last view began of which this replica knows that: for those who missed it. In the normal phase it is the
    /// current one.
    pub(super) begun: Begun,
    /// When this replica entered it, or started.
    pub(super) since: Instant,
    /// Whether the view that this replica is about to begin shall fill the window.
    pub(super) fills: bool,
    /// What the view timer watches, if it runs.
    pub(super) view_timer: Option<ViewTimer>,
    /// View changes since the last progress: the time-out doubles with each.
    pub(super) attempts: u32,
    /// Batches to be fetched: for which position at most, and whom was asked last.
    pub(super) wanted_batches: BTreeMap<Digest, (Sequence, ReplicaId)>,
    /// Big requests to be fetched: for which position at most, as long as this, and whom was asked last.
    pub(super) wanted_bodies: BTreeMap<Digest, (Sequence, Reference, ReplicaId)>,
    pub(super) abstention: Option<Abstention>,
    /// The last position that this replica may have helped to acknowledge, whether or not that was undone since.
    pub(super) promised: Sequence,
    pub(super) status: super::progress::StatusState,
    /// The latest agreed time proposed or accepted, so that proposals grow (prac-F27).
    pub(super) last_time: Instant,
    pub(super) view_changes_started: u64,
    /// The stable checkpoint that the log names: to be taken up once what it covers is executed again.
    pub(super) logged_stable: Option<Certificate<Checkpoint>>,
    /// Whether no INIT was delivered yet. Nothing can be executed before, no checkpoint either, so batches without
    /// one could fill the window for ever.
    pub(super) awaits_init: bool,
    /// Until when only signed requests are ordered, whatever the mode: a view has failed (pbft-F20).
    pub(super) careful_until: Instant,
    /// What the primary is expected to be worth, in Aardvark.
    pub(super) watch: Option<Watch>,
}

/// What the view timer watches.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum ViewTimer {
    /// This request must be executed in time.
    Request(ClientId, Timestamp),
    /// The batch at this position must be committed in time: a correct primary's would be.
    Batch(Sequence),
    /// The new view must begin in time.
    NewView,
}

impl Pbft {
    fn new(what: &Specification, root: Digest, lost_log: bool) -> Self {
        let Specification { number, view, replicas, part, .. } = *what;
        Self {
            replicas,
            view,
            phase: Phase::Normal,
            stable: Evidence::genesis(number, root),
            committed: Sequence(0),
            tentative: None,
            slots: BTreeMap::new(),
            batches: BTreeMap::new(),
            bodies: BTreeMap::new(),
            pool: Pool::default(),
            next: Sequence(1),
            last_proposed: 0,
            view_changes: BTreeMap::new(),
            begun: Begun::by_itself(view),
            since: Instant(0),
            fills: false,
            view_timer: None,
            attempts: 0,
            wanted_batches: BTreeMap::new(),
            wanted_bodies: BTreeMap::new(),
            abstention: lost_log.then(Abstention::default),
            promised: Sequence(0),
            status: super::progress::StatusState::default(),
            last_time: Instant(0),
            view_changes_started: 0,
            logged_stable: None,
            // (abs-L3).
            awaits_init: number > InstanceId(1),
            careful_until: Instant(0),
            watch: (part == Part::Backup(Order::Aardvark)).then(|| Watch::new(replicas.n())),
        }
    }

    /// h: the last stable checkpoint.
    pub fn low_water_mark(&self) -> Sequence {
        self.stable.checkpoint().sequence
    }

    /// Somebody proved that this checkpoint is stable.
    pub(super) fn raise_low_water_mark(&mut self, certificate: &Certificate<Checkpoint>) {
        if certificate.value().sequence > self.low_water_mark() {
            self.stable = Evidence::Certified(certificate.clone());
        }
    }

    /// Whether h < n ≤ h + L.
    pub(super) fn in_window(&self, cluster: &Cluster, sequence: Sequence) -> bool {
        let low = self.low_water_mark();
        sequence > low && sequence.0 <= low.0 + cluster.window()
    }

    /// Whether a batch may stand here that rules nothing.
    pub(super) fn in_window_of_requests(&self, cluster: &Cluster, sequence: Sequence) -> bool {
        sequence.0 <= self.low_water_mark().0 + cluster.window_of_requests()
    }

    /// Whether this replica leads the current view and may act as its primary.
    pub(super) fn leads(&self, context: &Ctx<'_>) -> bool {
        self.phase == Phase::Normal && self.replicas.primary(self.view) == context.me && self.may_vote()
    }

    /// The last batch that was delivered at all.
    pub(super) fn delivered(&self) -> Sequence {
        if self.tentative.is_some() { self.committed.next() } else { self.committed }
    }

    /// The last stable checkpoint, with what proves it.
    pub const fn stable_checkpoint(&self) -> &Evidence {
        &self.stable
    }

    /// Keeps a batch for execution and retransmission, until the last position that it was proposed for is stable: a
    /// liar may propose one batch at several. A copy whose proofs hold takes the place of one with spoilt ones.
    pub(super) fn keep(&mut self, sequence: Sequence, batch: &Arc<Batch>) {
        self.wanted_batches.remove(&batch.digest());
        let (last, held) = self.batches.entry(batch.digest()).or_insert_with(|| (sequence, batch.clone()));
        *last = sequence.max(*last);
        if batch.is_vouched() && !held.is_vouched() {
            *held = batch.clone();
        }
        for entry in batch.entries() {
            if let Some((last, _)) = self.bodies.get_mut(&entry.digest()) {
                *last = sequence.max(*last);
            }
        }
    }

    /// Keeps the body of a big request for the batch at this position. A copy whose proof holds takes the place of one
    /// with a spoilt one.
    pub(super) fn keep_body(&mut self, sequence: Sequence, body: Request) {
        let digest = body.digest();
        self.wanted_bodies.remove(&digest);
        let last = self.bodies.get(&digest).map_or(sequence, |(last, _)| sequence.max(*last));
        match self.bodies.get_mut(&digest) {
            Some((known, held)) if body.vouched <= held.vouched => *known = last,
            _ => _ = self.bodies.insert(digest, (last, body)),
        }
    }

    /// The batch with this digest; the null batch is always at hand.
    pub(super) fn batch(&self, digest: Digest) -> Option<Arc<Batch>> {
        if let Some((_, batch)) = self.batches.get(&digest) {
            return Some(batch.clone());
        }
        let null = Batch::null();
        (null.digest() == digest).then(|| Arc::new(null))
    }

    /// Drops what is at or below h, but for the last positions that this replica still has to execute.
    pub(super) fn collect_garbage(&mut self, cluster: &Cluster) {
        let low = self.low_water_mark();
        self.next = self.next.max(low.next());
        let low = low.min(self.committed).max(Sequence(low.0.saturating_sub(cluster.window())));
        self.slots = self.slots.split_off(&low.next());
        self.batches.retain(|_, (sequence, _)| *sequence > low);
        self.bodies.retain(|_, (sequence, _)| *sequence > low);
        self.wanted_batches.retain(|_, (sequence, _)| *sequence > low);
        self.wanted_bodies.retain(|_, (sequence, ..)| *sequence > low);
        assert!(self.next > self.low_water_mark(), "nothing is proposed where all is stable");
        assert!(self.slots.keys().all(|sequence| *sequence > low), "what is stable is forgotten");
    }
}

impl TotalOrder for Pbft {
    type Message = PbftMessage;
    type Timer = PbftTimer;
    type Record = PbftRecord;

    fn open(what: &Specification, root: Digest, lost_log: bool) -> Self {
        Self::new(what, root, lost_log)
    }

    fn restored(&mut self, evidence: Evidence, _standing: Option<&Bytes>) {
        self.resume_after(evidence);
    }

    fn lose_log(&mut self) {
        self.abstain();
    }

    fn replay(&mut self, cluster: &Cluster, me: ReplicaId, record: PbftRecord) {
        self.replay_record(cluster, me, record);
    }

    fn start(&mut self, context: &mut Ctx<'_>) {
        context.push(OrderEffect::SetTimer(PbftTimer::Status, context.now + context.cluster.limits.status_interval));
        self.since = context.now;
        self.start_watch(context);
        self.resume(context);
        self.begin_to_ask(context);
        self.send_status(context);
    }

    fn submit(&mut self, context: &mut Ctx<'_>, request: Request, from: Option<ReplicaId>) {
        self.on_request(context, request, from);
    }

    fn message(&mut self, context: &mut Ctx<'_>, from: ReplicaId, message: PbftMessage) {
        match message {
            PbftMessage::PrePrepare(pre_prepare) => self.on_pre_prepare(context, from, pre_prepare),
            PbftMessage::Prepare(vote) => self.on_prepare(context, from, vote),
            PbftMessage::Commit(vote) => self.on_commit(context, from, vote),
            PbftMessage::ViewChange(view_change) => self.on_view_change(context, from, *view_change),
            PbftMessage::NewView(new_view) => self.on_new_view(context, from, new_view),
            PbftMessage::Status(status) => self.on_status(context, from, status),
            PbftMessage::FetchBatch(position) => self.on_fetch_batch(context, from, position),
            PbftMessage::Batch(batch) => self.on_batch(context, from, batch),
            PbftMessage::FetchRequest(digest) => self.on_fetch_request(context, from, digest),
            PbftMessage::Body(request) => self.on_body(context, from, *request),
            PbftMessage::Decided(position) => self.on_decided(context, from, position),
            PbftMessage::Stable(certificate) => self.on_stable(context, from, *certificate),
            PbftMessage::Lost(question) => self.on_lost(context, from, question),
            PbftMessage::Here(here) => self.on_here(context, from, here),
        }
    }

    fn timer(&mut self, context: &mut Ctx<'_>, timer: PbftTimer) {
        // What can no longer be executed must cost no primary its view, nor keep its place (prac-F26): its session has
        // ended, or others of its identity have evicted it.
        self.pool.forget(context.is_over);
        match timer {
            PbftTimer::View => self.on_view_timeout(context),
            PbftTimer::Status => self.on_status_timeout(context),
            PbftTimer::Watch => self.on_watch_timeout(context),
        }
    }

    fn pass_end(&mut self, context: &mut Ctx<'_>) {
        if self.slots.keys().next_back().is_some_and(|last| !self.in_window_of_requests(context.cluster, *last)) {
            self.accept_waiting(context);
        }
        self.propose(context);
        self.watch_requests(context);
        let waiting = self.pool.len();
        self.watch.iter_mut().for_each(|watch| watch.waiting(context.now, waiting));
    }

    fn executed(&mut self, client: ClientId, timestamp: Timestamp) {
        if self.pool.executed(client, timestamp) {
            self.watch.iter_mut().for_each(|watch| watch.executed(client.identity));
        }
    }

    fn stable(&mut self, context: &mut Ctx<'_>, certificate: &Certificate<Checkpoint>) {
        assert!(certificate.value().sequence <= self.committed, "stable here means executed here");
        context.push(OrderEffect::Persist(PbftRecord::Stable(Box::new(certificate.claim()))));
        self.raise_low_water_mark(certificate);
        self.collect_garbage(context.cluster);
        self.accept_waiting(context);
        self.advance(context);
        self.try_to_vote_again(context);
    }

    fn installed(&mut self, context: &mut Ctx<'_>, certificate: &Certificate<Checkpoint>, _standing: Option<&Bytes>) {
        self.pool.forget(context.is_over);
        self.go_on_after(certificate.value().sequence);
        // That state includes the init history.
        self.awaits_init = false;
        self.raise_low_water_mark(certificate);
        self.collect_garbage(context.cluster);
        self.accept_waiting(context);
        self.advance(context);
        self.try_to_vote_again(context);
        self.send_status(context);
    }

    fn went_back(&mut self, context: &mut Ctx<'_>, sequence: Sequence) {
        assert!(sequence <= self.committed, "goes back to what was delivered for good");
        self.go_on_after(sequence);
        self.advance(context);
    }

    fn live_records(&self, me: ReplicaId) -> Vec<PbftRecord> {
        self.records_above_stable(me)
    }

    fn describe(&self, report: &mut Report) {
        report.view = self.view;
        report.primary = self.replicas.primary(self.view);
        report.changing_view = self.phase == Phase::Changing;
        report.pending_requests = self.pool.len();
        report.slots = self.slots.len();
        report.view_changes = self.view_changes_started;
    }

    fn check_invariants(&self, cluster: &Cluster, me: ReplicaId) {
        self.check_state(cluster, me);
    }

    fn waiting_clients(&self) -> Vec<ClientId> {
        self.pool.clients().collect()
    }

    fn opened(&mut self, context: &mut Ctx<'_>) {
        if core::mem::take(&mut self.awaits_init) {
            self.watch.iter_mut().for_each(|watch| watch.pause(context.now));
            // Whatever waits besides has as long as anywhere.
            if self.phase == Phase::Normal {
                self.view_timer = None;
                self.watch_requests(context);
            }
            self.accept_waiting(context);
            self.advance(context);
        }
    }

    fn do_without_missing(&mut self, context: &mut Ctx<'_>) {
        let next = self.next_view(context);
        if context.missing.contains(self.replicas.primary(self.view)) && self.may_vote_in(next) {
            context.step("Presence 4");
            self.start_view_change(context, next, "the primary is missing");
        }
    }

    fn may_vote(&self) -> bool {
        self.may_vote_in(self.view)
    }

    fn promised(&self) -> Sequence {
        self.promised
    }

    fn view(&self) -> Option<View> {
        Some(self.view)
    }
}

impl Pbft {
    /// What could not be accepted before may be now.
    fn accept_waiting(&mut self, context: &mut Ctx<'_>) {
        let proposed: Vec<Sequence> = self.slots.keys().copied().collect();
        proposed.into_iter().for_each(|sequence| self.try_accept(context, sequence));
    }

    /// The state is now the one after this batch, and no batch is tentative.
    fn go_on_after(&mut self, sequence: Sequence) {
        self.tentative = None;
        // A state that was wrong may be replaced by an older one.
        self.promised = self.promised.max(self.committed);
        assert!(self.promised >= self.committed, "what was said stays said");
        self.committed = sequence;
    }

    /// Somebody has a stable checkpoint that may be ahead of ours.
    fn on_stable(&mut self, context: &mut Ctx<'_>, from: ReplicaId, shown: Claimed<Certificate<Checkpoint>>) {
        context.prove(from, shown, self.low_water_mark(), self.replicas.strong());
    }

    /// Somebody knows this batch to be decided. f+1 who say so include a correct one (pbft-F21): a replica that the
    /// primary left out of every quorum catches up without a view change.
    fn on_decided(&mut self, context: &mut Ctx<'_>, from: ReplicaId, position: Position) {
        let Position { sequence, digest } = position;
        // Neither above the window nor below what is kept of the past: those who fell that far behind fetch the state.
        let (low, window) = (self.low_water_mark().0, context.cluster.window());
        if sequence <= self.committed || sequence.0 > low + window || sequence.0 + window <= low {
            return;
        }
        let slot = self.slots.entry(sequence).or_default();
        slot.decided.insert(from, digest);
        if slot.committed.is_none()
            && slot.decided.values().filter(|said| **said == digest).count() >= self.replicas.weak()
        {
            slot.committed = Some(digest);
            self.advance(context);
        }
    }
}
