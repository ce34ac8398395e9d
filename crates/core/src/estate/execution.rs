//! Requests against the state: who asks, what comes of it, and what is remembered of that.

use super::runs::ALONE;
use super::{Estate, Meta, Tentative, agreed_time};
use crate::batch::Ordered;
use crate::clients::Entry;
use crate::cluster::Cluster;
use crate::digest::{Digest, Domain};
use crate::history::{LogEntry, Logged};
use crate::ids::ClientId;
use crate::members::{Admission, Room};
use crate::message::bundle::{Results, Single};
use crate::message::{Outcome, Refusal, Request};
use crate::service::{Agreed, Asker, NotReadOnly, Operation, Proposal, Seed, Service, bounded};
use crate::wire::Wire;
use alloc::vec::Vec;
use bytes::Bytes;

/// What comes of the operations of a bundle: of each that there is a result for, and was room for.
fn results(count: usize, of: impl Iterator<Item = Single>) -> Results {
    let mut results = Results::default();
    let mut of = of.take(count);
    for _ in 0..count {
        let single = if results.has_room() { of.next() } else { None };
        results.push(single.unwrap_or(Single::Refused(Refusal::NoRoom)));
    }
    results
}

fn single(result: Result<Bytes, NotReadOnly>) -> Single {
    result.map_or(Single::Refused(Refusal::NotReadOnly), |result| Single::Done(bounded(result)))
}

impl<S: Service> Estate<S> {
    /// Executes the next batch. `answer` gets every request with its outcome; the flag says whether it was executed
    /// now, rather than earlier or never. Returns how many were executed.
    ///
    /// # Panics
    /// If the batch is not the next one, or the last one is still tentative.
    pub fn execute(
        &mut self,
        cluster: &Cluster,
        ordered: Ordered,
        for_good: bool,
        mut answer: impl FnMut(&Request, &Outcome, bool),
    ) -> usize {
        assert!(self.tentative.is_none(), "one tentative batch at a time");
        assert_eq!(ordered.sequence, self.meta.executed.next(), "batches are executed in sequence");
        self.meta.executed = ordered.sequence;
        if ordered.standing.is_some() {
            self.standing.clone_from(&ordered.standing);
        }
        self.ended.clear();
        let Meta { history, position, .. } = self.meta;
        let count = self.execute_requests(cluster, &ordered, &mut answer);
        assert_eq!(self.meta.position, position + count as u64, "each request that is executed has a position");
        if self.follows_ruling_in(ordered.sequence) {
            self.meta.ruled = ordered.sequence;
        }
        if self.stay_ends == Some(ordered.sequence) {
            self.end_stay(ordered.sequence);
        }
        if for_good {
            self.since.push(ordered);
        } else {
            self.tentative = Some(Tentative { ordered, history, position });
        }
        count
    }

    fn execute_requests(
        &mut self,
        cluster: &Cluster,
        ordered: &Ordered,
        answer: &mut impl FnMut(&Request, &Outcome, bool),
    ) -> usize {
        if !ordered.batch.is_null() {
            self.advance_time(cluster, ordered.batch.proposal());
        }
        let requests: Vec<&Request> = ordered.requests().filter(|request| !request.is_system()).collect();
        let (mut rest, mut count) = (&requests[..], 0);
        while let Some((request, after)) = rest.split_first()
            && !self.is_full()
        {
            let run = self.run(cluster, rest);
            let done = if run > 0 { self.execute_run(cluster, ordered, &rest[..run], answer) } else { 0 };
            count += done;
            if done > 0 {
                rest = &rest[done..];
                continue;
            }
            rest = after;
            if let Some(outcome) = self.settled(request) {
                answer(request, &outcome, false);
                continue;
            }
            let history = self.meta.history.chain(request.digest());
            let refused = self.refused_in_batch(request);
            let outcome = self.execute_new(cluster, ordered.batch.proposal(), request, history, refused);
            answer(request, &outcome, true);
            self.note(request, outcome);
            count += 1;
        }
        count
    }

    /// Executes the next entry of a history, which makes a batch of its own. `answer` gets the outcome. Returns whether
    /// it was executed now.
    ///
    /// Whoever logs an entry judges it by the state that it has then, which may be an older one: what comes before in
    /// the history and is not executed yet may evict the request's session. So it is judged here, where all replicas
    /// have the same state. What must not be executed (any more) keeps its position in the history and does nothing.
    pub fn execute_entry(
        &mut self,
        cluster: &Cluster,
        logged: &Logged,
        answer: impl FnOnce(&Request, &Outcome),
    ) -> bool {
        assert!(self.tentative.is_none(), "entries follow what is final");
        let LogEntry { proposal, request } = &logged.entry;
        self.meta.executed = self.meta.executed.next();
        self.advance_time(cluster, proposal);
        if let Some(outcome) = self.settled(request) {
            self.meta.history = logged.history;
            self.meta.position += 1;
            self.remember_effects();
            answer(request, &outcome);
            return false;
        }
        let refused = self.refused();
        let outcome = self.execute_new(cluster, proposal, request, logged.history, refused);
        answer(request, &outcome);
        self.note(request, outcome);
        true
    }

    /// Answers a request that only reads.
    pub(crate) fn query(&self, request: &Request) -> Outcome {
        let asker = self.asker(request);
        if request.is_bundle() {
            let operations = request.operations();
            let answers = operations.iter().map(|operation| single(self.service.query(operation, &asker)));
            return self.done(results(operations.len(), answers).to_bytes().into());
        }
        let answer = self.service.query(&request.operation, &asker);
        answer.map_or(Outcome::Refused(Refusal::NotReadOnly), |result| self.done(bounded(result)))
    }

    /// Who asks, with the key that speaks for it.
    pub(super) fn asker(&self, request: &Request) -> Asker {
        let credential = request.credential();
        let pinned = || self.pinned.get(&request.client.identity).copied().unwrap_or_default();
        Asker {
            client: request.client,
            public_key: credential.map_or_else(pinned, |credential| credential.key),
            joined: credential.is_some(),
        }
    }

    fn advance_time(&mut self, cluster: &Cluster, proposal: &Proposal) {
        let before = self.meta.time;
        self.meta.time = agreed_time(before, proposal.time, cluster.limits.agreed_time_step_max);
        assert!(self.meta.time >= before, "agreed time does not go back (prac-F27)");
    }

    /// Executes a request that is new, unless a ruling refuses it.
    fn execute_new(
        &mut self,
        cluster: &Cluster,
        proposal: &Proposal,
        request: &Request,
        history: Digest,
        refused: Option<Refusal>,
    ) -> Outcome {
        self.meta.history = history;
        self.meta.position += 1;
        if refused.is_some() {
            self.meta.alone = self.meta.position + ALONE;
        }
        if refused == Some(Refusal::Disputed) {
            self.meta.disputed += 1;
            self.meta.disputed_last = self.meta.position;
        }
        let outcome = match refused.or_else(|| self.shut(request)) {
            Some(refusal) if request.client.identity.is_joining() => self.refuse_join(request, refusal),
            // To leave is no matter of the service.
            Some(refusal) if !request.is_leave() => Outcome::Refused(refusal),
            _ => self.carry_out(cluster, proposal, request),
        };
        self.remember_effects();
        outcome
    }

    fn carry_out(&mut self, cluster: &Cluster, proposal: &Proposal, request: &Request) -> Outcome {
        if request.operation.len() > cluster.limits.operation_bytes_max {
            return Outcome::Refused(Refusal::TooLarge);
        }
        let now = self.meta.time;
        let agreed =
            Agreed { time: now, seed: Seed::new(proposal.seed, self.meta.position), asker: self.asker(request) };
        if request.client.identity.is_joining() {
            return self.join(cluster, request, agreed).unwrap_or_else(|refusal| self.refuse_join(request, refusal));
        }
        if request.is_close() {
            return self.close(&agreed.asker);
        }
        if request.is_leave() {
            let outcome = self.done(Bytes::new());
            self.members.leave(request.client.identity, self.entry(request, outcome.clone()), now);
            self.clients.forget(request.client.identity);
            self.ended.extend(request.credential().map(|credential| credential.session));
            return outcome;
        }
        if request.client.identity.is_member() {
            self.members.touch(request.client.identity, &cluster.limits, now);
        }
        if request.is_bundle() {
            let result: Bytes = self.execute_bundle(request, &agreed).to_bytes().into();
            self.note_effects(&result);
            return self.done(result);
        }
        let result = match request.is_ordered_query() {
            false => Ok(self.service.execute(&request.operation, &agreed)),
            true => self.service.ordered_query(&request.operation, &agreed),
        };
        let Ok(result) = result.map(bounded) else { return Outcome::Refused(Refusal::NotReadOnly) };
        self.note_effects(&result);
        self.done(result)
    }

    fn execute_bundle(&mut self, request: &Request, agreed: &Agreed) -> Results {
        let operations = Operation::of_bundle(&request.operations(), agreed);
        if !request.is_ordered_query() {
            let done = self.service.execute_many(&operations).into_iter();
            return results(operations.len(), done.map(|result| Single::Done(bounded(result))));
        }
        let answers =
            operations.iter().map(|Operation { bytes, agreed }| single(self.service.ordered_query(bytes, agreed)));
        results(operations.len(), answers)
    }

    /// One step of the chain: what the service answered, and what it wrote meanwhile.
    pub(super) fn note_effects(&mut self, result: &[u8]) {
        let written = self.service.take_written();
        self.link_effects(written, result);
    }

    pub(super) fn link_effects(&mut self, written: Digest, result: &[u8]) {
        self.meta.effects = Digest::of_parts(Domain::Effects, &[&self.meta.effects.0, &written.0, result]);
    }

    pub(super) const fn done(&self, result: Bytes) -> Outcome {
        Outcome::Done { result, effects: self.meta.effects }
    }

    /// Members 3 of [`crate::members`].
    fn join(&mut self, cluster: &Cluster, request: &Request, agreed: Agreed) -> Result<Outcome, Refusal> {
        let (Some(join), Some(credential)) = (request.join(), request.credential()) else {
            return Err(Refusal::Unauthorized);
        };
        let room @ Room { admission, ends, .. } = self.members.room(cluster, &credential, agreed.time)?;
        let client = ClientId { identity: admission.identity, session: 0 };
        let agreed = Agreed { asker: Asker { client, ..agreed.asker }, ..agreed };
        let may_join = self.service.authorize(&join.identification, &agreed);
        self.note_effects(&[may_join.into()]);
        if !may_join {
            return Err(Refusal::Unauthorized);
        }
        if let Some(Admission { identity, session }) = ends {
            self.clients.forget(identity);
            self.ended.push(session);
        }
        let outcome = self.done(admission.to_bytes().into());
        self.members.admit(room, &credential, self.entry(request, outcome.clone()), join.time(), agreed.time);
        Ok(outcome)
    }

    fn refuse_join(&mut self, request: &Request, refusal: Refusal) -> Outcome {
        let outcome = Outcome::Refused(refusal);
        if let (Some(join), Some(credential)) = (request.join(), request.credential()) {
            self.members.refuse(&credential, self.entry(request, outcome.clone()), join.time());
        }
        outcome
    }

    /// Remembers what came of a request just executed. The members table remembers JOIN and LEAVE itself.
    fn note(&mut self, request: &Request, outcome: Outcome) {
        if !request.client.identity.is_joining() && !request.is_leave() {
            self.clients.record(request.client, self.entry(request, outcome));
        }
    }

    fn entry(&self, request: &Request, outcome: Outcome) -> Entry {
        let Meta { executed: sequence, position, history, .. } = self.meta;
        Entry { timestamp: request.timestamp, sequence, position, history, outcome }
    }
}
