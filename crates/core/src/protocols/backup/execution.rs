//! Requests, reads, deliveries and replies: Backup 1 to 4 of the [module](super).

use super::dissent::rulings_of;
use super::message::Speaker;
use super::state::{Backup, Queue};
use crate::batch::Ordered;
use crate::clients::{Entry, Freshness};
use crate::ids::{Principal, Sequence, View};
use crate::message::{Firmness, Outcome, Refusal, Reply, Request};
use crate::notice::Notice;
use crate::protocols::speculative::abridged;
use crate::protocols::total_order::{Delivery, TotalOrder};
use crate::rejection::Rejection;
use crate::service::{RESULT_BYTES_MAX, Service};
use crate::shares::Bounds;
use crate::switching::Surroundings;

/// Bytes of results of reads in one step; one more result comes on top. What has waited is answered in as many steps as
/// it takes: results may be much longer than what asks for them, and all of a step's are in memory together.
pub const READ_BYTES_AT_ONCE: usize = if cfg!(test) { 64 } else { 4 * RESULT_BYTES_MAX };

impl<O: TotalOrder, S: Service> Backup<O, S> {
    /// Backup 1.
    pub(super) fn on_request(&mut self, s: &mut Surroundings<'_, impl Speaker<O>>, from: Principal, request: Request) {
        if request.instance != self.what.number {
            return s.reject(from, Rejection::WrongInstance);
        }
        let direct = from.is_client();
        if self.is_limited() {
            return self.on_request_limited(s, from, request, direct);
        }
        if request.read_only {
            return if direct { self.on_read(s, request) } else { s.reject(from, Rejection::WrongSender) };
        }
        s.step("Backup 1");
        match self.ledger.estate.freshness(&request) {
            Freshness::New => self.drive(s, |order, context| order.submit(context, request, from.replica())),
            Freshness::Last(_) if !direct => {}
            Freshness::Last(entry) => {
                let entry = entry.clone();
                self.answer_again(s, request, entry);
            }
            Freshness::Gone(refusal) if direct => self.refuse(s, &request, refusal),
            Freshness::Stale if direct => self.on_read(s, request),
            Freshness::Gone(_) | Freshness::Stale => s.reject(from, Rejection::StaleTimestamp),
        }
    }

    /// Backup 1: its client asks for what was executed.
    pub(super) fn answer_again(&mut self, s: &mut Surroundings<'_, impl Speaker<O>>, request: Request, entry: Entry) {
        let is_for_good = self.ledger.estate.is_for_good(&entry);
        let Entry { sequence, position, outcome, .. } = entry;
        if is_for_good {
            self.reply(s, &request, self.view(), sequence, Firmness::Final, outcome);
            return self.doubt_answer(s, position);
        }
        self.reply(s, &request, self.tentative_view, sequence, Firmness::Tentative, outcome);
        // It waits although it was executed: the order must see that it becomes final.
        self.drive(s, |order, context| order.submit(context, request, None));
    }

    /// Tells a client that its session is over. A state that lacks something that this replica helped to acknowledge
    /// may lack the client's JOIN, and a batch that ended the session may be undone: then it says nothing. Any other
    /// tentative batch is no reason for silence: it may stay tentative for as long as nobody asks for anything new.
    pub(super) fn refuse(&self, s: &mut Surroundings<'_, impl Speaker<O>>, request: &Request, refusal: Refusal) {
        let estate = &self.ledger.estate;
        if self.order.may_vote() && estate.executed() >= self.order.promised() && !estate.may_have_session(request) {
            self.reply(s, request, self.view(), Sequence(0), Firmness::Final, Outcome::Refused(refusal));
        }
    }

    /// Backup 1 and 2: what is answered from a state with nothing in it that may be undone.
    pub(super) fn on_read(&mut self, s: &mut Surroundings<'_, impl Speaker<O>>, request: Request) {
        if !self.order.may_vote() {
            // An amnesiac replica may have forgotten a write that it acknowledged.
            return;
        }
        if self.may_answer_reads() {
            self.answer_read(s, &request);
            return;
        }
        let limits = &s.cluster.limits;
        let bounds = Bounds { number: limits.pending_reads_max, bytes: limits.pending_bytes_max };
        let from = request.signer();
        if let Err(reason) = self.reads.push_within(s.now, bounds, request) {
            s.reject(from, reason);
        }
    }

    /// Whether the state holds everything that this replica helped to acknowledge, and nothing that may be undone.
    fn may_answer_reads(&self) -> bool {
        !self.ledger.estate.is_tentative() && self.ledger.estate.executed() >= self.order.promised()
    }

    /// Returns the bytes of the result.
    fn answer_read(&self, s: &mut Surroundings<'_, impl Speaker<O>>, request: &Request) -> usize {
        let estate = &self.ledger.estate;
        if !request.read_only {
            // If what made it stale was undone meanwhile, its client asks again.
            if matches!(estate.freshness(request), Freshness::Stale) {
                s.too_late(request.signer(), self.view(), request);
            }
            return 0;
        }
        if request.credential().is_some()
            && let Freshness::Gone(refusal) = estate.freshness(request)
        {
            self.refuse(s, request, refusal);
            return 0;
        }
        s.step("Backup 2");
        let outcome = estate.query(request);
        let bytes = outcome.result_bytes();
        self.reply(s, request, self.view(), self.ledger.estate.executed(), Firmness::Read, outcome);
        bytes
    }

    /// Those that have waited longest, as many as one step may answer.
    pub(super) fn answer_waiting_reads(&mut self, s: &mut Surroundings<'_, impl Speaker<O>>) {
        let mut bytes = 0;
        while bytes < READ_BYTES_AT_ONCE
            && self.may_answer_reads()
            && let Some(request) = self.reads.take_first()
        {
            bytes += self.answer_read(s, &request);
        }
    }

    pub(super) fn reply(
        &self,
        s: &mut Surroundings<'_, impl Speaker<O>>,
        request: &Request,
        view: View,
        sequence: Sequence,
        firmness: Firmness,
        outcome: Outcome,
    ) {
        let Request { client, timestamp, .. } = *request;
        let reply = Reply { instance: self.what.number, view, sequence, client, timestamp, firmness, outcome };
        s.send(request.asker(), reply);
    }

    /// Backup 3 and 4.
    pub(super) fn on_delivery(
        &mut self,
        s: &mut Surroundings<'_, impl Speaker<O>>,
        queue: &mut Queue<O>,
        delivery: Delivery,
    ) {
        match delivery {
            Delivery::Tentative(_) if !self.may_be_tentative() => {}
            Delivery::Final(ordered) if self.is_limited() => self.on_final_limited(s, queue, ordered),
            Delivery::Tentative(ordered) => {
                s.step("Backup 3");
                self.tentative_view = ordered.view;
                self.execute(s, ordered, Firmness::Tentative);
            }
            Delivery::Final(ordered) => {
                s.step("Backup 4");
                let (batch, rulings) = (ordered.sequence, rulings_of(&ordered));
                self.finalise(s, ordered);
                if self.follow_ruling(s, queue, batch, &rulings) {
                    return;
                }
                self.answer_waiting_reads(s);
                if self.is_checkpoint(s.cluster) {
                    self.take_checkpoint(s, queue);
                }
            }
            Delivery::Undo => {
                s.step("Backup 4");
                if self.ledger.estate.is_tentative() {
                    self.ledger.estate.undo(s.cluster).expect("the service accepts the pages that it saved itself");
                    s.out.notify(Notice::RolledBack { to: self.ledger.estate.executed() });
                }
                self.answer_waiting_reads(s);
            }
            Delivery::Proved(certificate) => self.on_certificate(s, queue, certificate),
        }
    }

    pub(super) fn finalise(&mut self, s: &mut Surroundings<'_, impl Speaker<O>>, ordered: Ordered) {
        let sequence = ordered.sequence;
        let (digest, requests) = (ordered.batch.digest(), ordered.batch.entries().len());
        self.note_ordered(&ordered);
        if self.ledger.estate.is_tentative() {
            assert_eq!(self.ledger.estate.tentative_digest(), Some(digest), "another batch was executed tentatively");
            self.ledger.estate.confirm();
        } else {
            self.execute(s, ordered, Firmness::Final);
        }
        s.out.notify(Notice::Executed {
            instance: self.what.number,
            sequence,
            digest,
            history: self.ledger.estate.history(),
            requests,
        });
    }

    fn execute(&mut self, s: &mut Surroundings<'_, impl Speaker<O>>, ordered: Ordered, firmness: Firmness) {
        let (sequence, view, instance) = (ordered.sequence, ordered.view, self.what.number);
        let (replicas, me, limited) = (self.what.replicas, s.me, self.is_limited());
        let out = &mut *s.out;
        let executed =
            self.ledger.estate.execute(s.cluster, ordered, firmness == Firmness::Final, |request, outcome, now| {
                if !now && !limited {
                    // Answered when it was executed; its client asks again if it needs to.
                    return;
                }
                let Request { client, timestamp, .. } = *request;
                let outcome = abridged(replicas, me, client, timestamp, outcome);
                let reply = Reply { instance, view, sequence, client, timestamp, firmness, outcome };
                out.send(request.asker(), reply.into());
            });
        self.requests_executed += executed as u64;
    }
}
