//! A Backup that hands on after k requests: how it begins and how it ends (`docs/papers/abstract.md`).
//!
//! # Steps
//! * Backup 9. Every replica that has a proof submits it as INIT. The first valid one in the order decides the init
//!   history; batches delivered before it are held, not ignored (abs-L3). A replica that fetches a state holds none:
//!   the order delivers again what follows that state. Until the INIT the order takes only batches with an INIT: a
//!   primary that orders others could fill the window, which moves with what is executed.
//! * Backup 10. The replica comes to that history as in [`crate::switching::opening`], while the order goes on
//!   (abs-L11), and then executes what was held.
//! * Backup 11. What a replica signs is what was delivered for good, so that it is the same everywhere (abs-S7,
//!   abs-D12). Reads are ordered. What comes after its init history and before its end it executes and answers
//!   tentatively, as in Backup 3: see below.
//! * Backup 12. The k-th request executed is the last, and what the replica answers is only what it has executed. k is
//!   a function of the instance and the ordered INIT (abs-D11), and travels with the state. After the batch with that
//!   request there is a checkpoint; when 2f+1 have signed it, the replica signs the end. Of f+1 that have signed an end
//!   one is correct, so there is one end. The order goes on until then, for the sake of rulings
//!   ([`crate::dissent`]). If somebody is missing when the instance begins, there is no last request yet: it is that of
//!   the batch with the first valid END, or the k-th if that comes later ([`crate::compositions::presence`]).
//!
//! # Why it may answer tentatively
//! abs-S7 is about what replicas *sign*: of f+1 that sign the end, one may have executed something tentatively, which
//! another view orders otherwise. Here nobody signs anything but what is final, and an instance has ended only once its
//! last request is. What is left is the client that takes 2f+1 tentative answers of one view for an acknowledgement.
//! f+1 correct replicas prepared that batch in that view, so every later view has it at its place g (PBFT 9). Those
//! replicas had executed everything before g for good, and the instance had not ended there. Whether it has, and how
//! much of the batch it takes, is a function of what is ordered before g and in it, so it is the same at all. So the
//! instance ends at g or later, the certified end contains what was answered, and the next instance begins with it. A
//! replica that is moved to the next instance while a batch is tentative undoes it, and comes to the end that was
//! certified.

use super::dissent::rulings_of;
use super::message::Speaker;
use super::state::{Backup, Init, Queue};
use crate::auth::{Certificate, Signed};
use crate::batch::Ordered;
use crate::checkpoint::{Checkpoint, Evidence, TransferMessage, Tree};
use crate::clients::Freshness;
use crate::cluster::Cluster;
use crate::ids::{ClientId, IdentityId, Principal, ReplicaId, Sequence};
use crate::message::Request;
use crate::notice::Notice;
use crate::protocols::total_order::TotalOrder;
use crate::rejection::Rejection;
use crate::replicas::ReplicaSet;
use crate::service::Service;
use crate::stop::StopReason;
use crate::switching::{
    AbortHistory, AbortReport, Bodies, Certificates, Certified, CheckedReport, HistoryRecord, Ledger, Opening,
    Returned, Surroundings,
};
use alloc::boxed::Box;
use alloc::sync::Arc;
use alloc::vec::Vec;

impl<O: TotalOrder, S: Service> Backup<O, S> {
    /// What the state holds is the init history.
    pub(super) fn begin(&mut self, low_load: bool, missing: ReplicaSet) {
        assert!(!matches!(self.init, Init::Done), "an instance begins once");
        let quota = self.what.requests(low_load);
        let estate = &mut self.ledger.estate;
        let least = estate.position().saturating_add(quota);
        // Presence 4 of [`crate::compositions::presence`].
        estate.begin_instance(Sequence(0), least, !missing.is_empty());
        self.missing = missing;
        self.init = Init::Done;
    }

    /// Presence 4: who leads no view, until nobody is missing any more. What its own proof says lets the replica leave
    /// the first view, and no other.
    pub(super) fn left_out(&self) -> ReplicaSet {
        let replicas = self.what.replicas;
        let missing = match (&self.init, &self.proof) {
            (Init::Done, _) if self.ledger.estate.stays() => self.missing,
            (Init::Waiting, Some(proof)) if self.order.view() == Some(self.what.view) => proof.silent(replicas),
            _ => ReplicaSet::NOBODY,
        };
        if missing.len() < replicas.blocking() { missing } else { ReplicaSet::NOBODY }
    }

    /// Whether this replica has the instance's state, or will have it soon by executing. That it may not vote does not
    /// matter: who has lost its log may do so in a later instance, and there have to be some.
    pub(crate) fn is_current(&self, cluster: &Cluster) -> bool {
        let near = self.ledger.estate.executed().0.saturating_add(cluster.limits.checkpoint_interval);
        let is_near = |ahead: &Certificate<Checkpoint>| ahead.value().sequence.0 <= near;
        let follows = self.transfer.is_none() && self.wrong.is_none() && self.ahead.as_ref().is_none_or(is_near);
        follows && matches!(self.init, Init::Done)
    }

    /// Presence 5: nobody is missing any more, as these say.
    pub(crate) fn ask_for_end(&mut self, s: &mut Surroundings<'_, impl Speaker<O>>, returned: Vec<Signed<Returned>>) {
        if self.is_limited() && matches!(self.init, Init::Done) && self.ledger.estate.stays() {
            let (number, me, now) = (self.what.number, s.me, s.now);
            let request = self.end.get_or_insert_with(|| Request::end_of_stay(number, me, now, returned)).clone();
            self.drive(s, |order, context| order.submit(context, request, None));
        }
    }

    /// Presence 5. Whether a stay ends with this batch.
    fn ends_stay(&self, s: &Surroundings<'_, impl Speaker<O>>, ordered: &Ordered) -> bool {
        let ends = |request: &Request| request.ends_stay(s.cluster, s.keyring, self.what.number);
        self.ledger.estate.stays() && ordered.requests().any(ends)
    }

    /// Backup 9.
    pub(super) fn submit_init(&mut self, s: &mut Surroundings<'_, impl Speaker<O>>) {
        let Some(proof) = self.proof.clone() else { return };
        s.step("Backup 9");
        let request = Request::init(self.what.number, s.me, &proof.claim());
        self.drive(s, |order, context| order.submit(context, request, None));
    }

    pub(super) fn on_request_limited(
        &mut self,
        s: &mut Surroundings<'_, impl Speaker<O>>,
        from: Principal,
        request: Request,
        direct: bool,
    ) {
        if request.read_only {
            return s.reject(from, Rejection::WrongSender);
        }
        s.step("Backup 1");
        let works = matches!(self.init, Init::Done);
        match self.ledger.estate.freshness(&request) {
            Freshness::Last(entry) if works && !request.is_system() => {
                let entry = entry.clone();
                if direct {
                    self.answer_again(s, request, entry);
                }
            }
            // What made it stale may be undone: as with a read, that is waited for.
            Freshness::Stale if works && direct && !request.is_system() => self.on_read(s, request),
            Freshness::Stale if works && !request.is_system() => s.too_late(from, self.view(), &request),
            Freshness::Gone(refusal) if works && direct => self.refuse(s, &request, refusal),
            // Whoever leads may not have it himself.
            _ if request.is_end_of_stay() && self.ledger.estate.stays() => {
                self.drive(s, |order, context| order.submit(context, request, from.replica()));
            }
            _ if works && request.is_system() => {}
            _ if self.report.is_some() => {
                self.unserved.insert(request.client);
            }
            _ => self.drive(s, |order, context| order.submit(context, request, from.replica())),
        }
    }

    /// Backup 11: whether a batch may be executed, and answered, before it is final.
    pub(super) const fn may_be_tentative(&self) -> bool {
        !self.is_limited() || matches!(self.init, Init::Done) && !self.ledger.estate.is_full()
    }

    /// Backup 9, 11 and 12.
    pub(super) fn on_final_limited(
        &mut self,
        s: &mut Surroundings<'_, impl Speaker<O>>,
        queue: &mut Queue<O>,
        ordered: Ordered,
    ) {
        if matches!(self.init, Init::Done) {
            self.execute_limited(s, queue, ordered);
            return;
        }
        // Ordered is enough: execution has to wait for the init history (abs-L11).
        self.note_ordered(&ordered);
        if self.transfer.is_none() {
            self.held.push_back(ordered);
            self.find_init(s, queue);
        }
    }

    /// Whether the replica went back, as [`Self::follow_ruling`] has it.
    fn execute_limited(
        &mut self,
        s: &mut Surroundings<'_, impl Speaker<O>>,
        queue: &mut Queue<O>,
        ordered: Ordered,
    ) -> bool {
        if self.report.is_some() {
            self.note_ordered(&ordered);
            self.note_unserved(&ordered);
            return false;
        }
        if self.init_base.is_none() && self.proof.is_some() {
            // It has restarted, from a state that includes the init history.
            let history = self.init_among(s, ordered.requests());
            self.init_base = history.and_then(|history| history.base()).map(|base| base.position);
        }
        let (batch, rulings) = (ordered.sequence, rulings_of(&ordered));
        if self.is_done() {
            self.note_ordered(&ordered);
            self.note_unserved(&ordered);
            return self.follow_ruling(s, queue, batch, &rulings);
        }
        s.step("Backup 11");
        let ends_stay = self.ends_stay(s, &ordered);
        let may_be_last = ends_stay || self.ledger.estate.is_full_after(ordered.batch.entries().len());
        // Copied only where it may matter: its bodies are many.
        let last = may_be_last.then(|| ordered.clone());
        self.finalise(s, ordered);
        if ends_stay {
            s.step("Presence 5");
            self.ledger.estate.end_stay(batch);
        }
        if self.follow_ruling(s, queue, batch, &rulings) {
            return true;
        }
        self.answer_waiting_reads(s);
        if self.is_done() {
            self.note_unserved(&last.expect("the last batch may be the last"));
        }
        if self.is_done() || self.is_checkpoint(s.cluster) {
            self.take_checkpoint(s, queue);
        }
        self.end_if_done(s);
        false
    }

    /// What is ordered need not be proposed again.
    pub(super) fn note_ordered(&mut self, ordered: &Ordered) {
        for request in ordered.requests() {
            self.order.executed(request.client, request.timestamp);
        }
    }

    /// Whether its last request is executed for good.
    pub(super) fn is_done(&self) -> bool {
        let estate = &self.ledger.estate;
        let is_over = estate.is_full() && !estate.is_tentative() && estate.executed() > Sequence(0);
        self.is_limited() && matches!(self.init, Init::Done) && is_over
    }

    /// Backup 12: the end, once the checkpoint there is stable. Whoever has said so before a crash says it again.
    pub(super) fn end_if_done(&mut self, s: &mut Surroundings<'_, impl Speaker<O>>) {
        if !self.is_done() || self.report.is_some() {
            return;
        }
        let executed = self.ledger.estate.executed();
        let root = self.version(executed).map(Tree::root);
        if let Some(said) = self.said.take_if(|said| Some(said.value().anchor.root) == root) {
            self.ledger.close(said.value().anchor.root);
            self.report = Some(said);
        } else if self.stable.checkpoint().sequence == executed {
            self.end(s);
        }
    }

    /// Replays a record of its history: that this replica had come to the end. The rest is reached again by executing.
    pub(super) fn replay_history(&mut self, record: HistoryRecord) {
        if let HistoryRecord::Stopped(report) = record {
            self.said = Some(CheckedReport::recalled(Arc::unwrap_or_clone(report)));
        }
    }

    /// Ordered too late: their clients have to ask the next instance, and are told so when it runs.
    fn note_unserved(&mut self, ordered: &Ordered) {
        let estate = &self.ledger.estate;
        let unserved = ordered.requests().filter(|request| !estate.is_over(request));
        self.unserved.extend(unserved.map(|request| request.client));
    }

    /// Backup 9: the first valid INIT.
    fn find_init(&mut self, s: &mut Surroundings<'_, impl Speaker<O>>, queue: &mut Queue<O>) {
        // Only the first of the order counts: whoever lacks a batch before waits for a state.
        let is_whole = self.held.front().is_some_and(|ordered| ordered.sequence == Sequence(1));
        if !matches!(self.init, Init::Waiting) || !is_whole {
            return;
        }
        let Some(history) = self.init_among(s, self.held.iter().flat_map(Ordered::requests)) else { return };
        s.step("Backup 9");
        self.init_base = history.base().map(|base| base.position);
        let mut opening = Opening::new(s, self.what.number, history, &self.ledger);
        opening.ask(s);
        self.init = Init::Opening(Box::new(opening));
        self.call(s, queue, O::opened);
        self.try_begin(s, queue);
    }

    /// What the first valid INIT among these requests says.
    fn init_among<'a>(
        &self,
        s: &Surroundings<'_, impl Speaker<O>>,
        requests: impl Iterator<Item = &'a Request>,
    ) -> Option<AbortHistory> {
        requests.filter(|request| request.is_system()).find_map(|request| {
            // Whoever ordered it may have lied: what counts is what the proof proves, and that is the same everywhere.
            let proof = request.proof(s.cluster, s.keyring, self.what.number)?;
            proof.abort_history(&s.cluster.specification(proof.instance()))
        })
    }

    /// Backup 10.
    fn try_begin(&mut self, s: &mut Surroundings<'_, impl Speaker<O>>, queue: &mut Queue<O>) {
        match core::mem::replace(&mut self.init, Init::Waiting) {
            Init::Opening(opening) if opening.is_done() => {
                s.step("Backup 10");
                let AbortHistory { low_load, silent, .. } = *opening.history();
                let fetched = opening.fetched().is_some();
                if let Some(divergence) = opening.divergence() {
                    s.out.notify(Notice::Repaired(Box::new(divergence)));
                }
                let entries = opening.finish(s, &mut self.ledger);
                // Others may have to fetch them from this replica.
                s.persist_all(self.what.number, HistoryRecord::bodies(entries));
                self.begin(low_load, silent);
                if fetched {
                    // The log cannot recreate it. Where it can it must not begin again here, however long it is: those
                    // who begin later need what is before, and may need it of a replica that has restarted.
                    let root = self.ledger.estate.newest_version().root();
                    self.save_snapshot(s, Evidence::reported(self.what.number, 0, root), fetched);
                }
                let (position, history) = (self.ledger.estate.position(), self.ledger.estate.history());
                s.out.notify(Notice::Begun { instance: self.what.number, position, history });
                let held = core::mem::take(&mut self.held);
                // If a ruling makes it go back, the order delivers all that follows again.
                let _ = held.into_iter().any(|ordered| self.execute_limited(s, queue, ordered));
            }
            unfinished => self.init = unfinished,
        }
    }

    /// Entries of the init history that were missing.
    pub(crate) fn on_bodies(&mut self, s: &mut Surroundings<'_, impl Speaker<O>>, from: ReplicaId, bodies: Bodies) {
        if let Init::Opening(opening) = &mut self.init {
            opening.on_bodies(s, from, bodies);
            let mut queue = Queue::new();
            self.try_begin(s, &mut queue);
            self.drain(s, queue);
        }
    }

    /// A piece of the state with which the init history begins.
    pub(super) fn on_opening_transfer(
        &mut self,
        s: &mut Surroundings<'_, impl Speaker<O>>,
        from: ReplicaId,
        message: TransferMessage,
    ) {
        let Init::Opening(opening) = &mut self.init else { return };
        opening.on_transfer(s, from, message);
        let mut queue = Queue::new();
        self.try_begin(s, &mut queue);
        self.drain(s, queue);
    }

    pub(super) fn on_opening_timeout(&mut self, s: &mut Surroundings<'_, impl Speaker<O>>) {
        if let Init::Opening(opening) = &mut self.init {
            opening.ask(s);
        }
    }

    /// The state was replaced by one that 2f+1 replicas had in this instance: it includes the init history.
    pub(super) fn installed_limited(
        &mut self,
        s: &mut Surroundings<'_, impl Speaker<O>>,
        certificate: &Certificate<Checkpoint>,
    ) {
        if !self.is_limited() {
            return;
        }
        self.init = Init::Done;
        self.ledger.close(certificate.value().root);
        self.end_if_done(s);
    }

    /// The records with which a log of this instance begins. Until the first stable checkpoint others may have to fetch
    /// entries of the init history from this replica, which vouched for them.
    pub(super) fn opening_records(&self, stable: Sequence) -> Vec<HistoryRecord> {
        // Who has said where it ends says it again after a crash, in the same words.
        let report = self.report.as_ref().or(self.said.as_ref());
        let stopped = report.map(|report| HistoryRecord::Stopped(Arc::new(report.claim())));
        let Some(proof) = self.proof.clone() else { return stopped.into_iter().collect() };
        let log = &self.ledger.log;
        let entries = log.after(log.anchor().position).map(|logged| logged.entry.clone());
        let entries = if stable == Sequence(0) { entries.collect() } else { Vec::new() };
        let opened = core::iter::once(HistoryRecord::Opened(proof.claim()));
        opened.chain(HistoryRecord::bodies(entries)).chain(stopped).collect()
    }

    /// The state, from a snapshot, is the one at a checkpoint of this instance: it includes the init history.
    pub(super) fn resume_at(&mut self, evidence: Evidence) {
        self.init = Init::Done;
        if evidence.checkpoint().sequence > Sequence(0) {
            self.order.restored(evidence.clone(), self.ledger.estate.standing());
            self.stable = evidence;
        }
    }

    /// The same at every correct replica, but for whom it has not heard of.
    fn end(&mut self, s: &mut Surroundings<'_, impl Speaker<O>>) {
        s.step("Backup 12");
        assert!(self.is_done(), "a Backup ends with the last request of its quota");
        assert_eq!(self.stable.checkpoint().sequence, self.ledger.estate.executed(), "2f+1 have signed the end");
        let anchor = self.ledger.close(self.stable.checkpoint().root);
        let report = AbortReport {
            instance: self.what.number,
            anchor,
            boundaries: Vec::new(),
            digests: Vec::new(),
            low_load: false,
            silent: s.silent,
            certificates: Certificates::default(),
        };
        let report = CheckedReport::sign(s.keyring, report, Certified::default());
        let record = HistoryRecord::Stopped(Arc::new(report.claim()));
        s.persist(self.what.number, record);
        s.out.notify(Notice::Stopped { instance: self.what.number, reason: StopReason::RequestsDone });
        self.report = Some(report);
    }

    /// Whose requests this instance has not executed.
    pub(super) fn clients_that_wait(&self) -> Vec<ClientId> {
        let mut clients = self.order.waiting_clients();
        clients.extend(self.unserved.iter());
        clients.retain(|client| client.identity != IdentityId::SYSTEM);
        clients
    }

    /// Hands everything on.
    pub(super) fn into_ledger(mut self, cluster: &Cluster) -> Ledger<S> {
        self.ledger.estate.undo(cluster).expect("the service accepts the pages that it saved itself");
        let (is_done, is_closed) = (self.is_done(), self.report.is_some());
        let mut ledger = self.ledger;
        // Whether or not it has come to its end here.
        ledger.estate.forget_rulings();
        if is_done && !is_closed {
            // What others prove is compared with this.
            ledger.close(ledger.estate.newest_version().root());
        }
        if is_done {
            ledger.estate.anchor_at(Sequence(ledger.log.length()));
        }
        ledger
    }
}
