//! Runs: requests that follow one another in a batch and that the service executes together.
//!
//! A service for which a transaction costs more than what is in it asks for them ([`Service::run_max`]). To clients and
//! to the client table nothing changes: each request has its position, its agreed values, its result and its entry.
//!
//! # Steps
//! * Runs 1. *Gather.* A run is as long as it can be: requests for one new operation each, of different clients, that
//!   nothing keeps from being executed. What else there is (bundles, JOIN, LEAVE and CLOSE, ordered queries) is
//!   executed by itself. A run ends before a request that would be too late if those before it were recorded: an
//!   identity without room for all of them evicts sessions on the way. So runs follow from the batch and the state
//!   before it, and execute what would be executed one by one, with the same results.
//! * Runs 2. *Execute.* The service gives results up to the first for which there is no more room. With the next
//!   request a new run begins.
//! * Runs 3. *Effects.* What was written is known of all of them together. The chain of effects has a link for each
//!   result, and the last one is over what was written as well. All replies have the effects after the last one: they
//!   vouch for what was written.
//!
//! # Disputes
//! A request of a run that does something else at each replica shows in its own link by its result, and in the last
//! link by what it wrote: the dispute may name another one than the culprit ([`crate::dissent`]). Therefore:
//! * Runs 4. Where a ruling names a request that is gathered into a run, those before it are executed one by one. It is
//!   refused as [`Undone`](Refusal::Undone) rather than [`Disputed`](Refusal::Disputed): its client asks for it again
//!   by itself.
//! * Runs 5. For [`ALONE`] positions after that, each request is executed by itself. Who is disputed there is named
//!   rightly, and refused.
//!
//! *Nobody loses an answer.* Nobody was told a result of the request that is named. If it was executed with others, nor
//! was anybody told one of theirs, since all replies of a run have the effects after it. If it was not, because there
//! was no room for all results, those before it have the same results one by one.
//! *The culprit is found*, unless more than [`ALONE`] requests are executed until it is asked for again.

use super::{Estate, Meta};
use crate::batch::Ordered;
use crate::clients::Entry;
use crate::cluster::Cluster;
use crate::digest::Digest;
use crate::message::{Outcome, Refusal, Request};
use crate::service::{Agreed, Operation, RESULT_BYTES_MAX, RESULTS_BYTES_MAX, Seed, Service, bounded};
use alloc::vec::Vec;

/// Positions after a request that was refused for the sake of a ruling at which there are no runs. Clients ask again at
/// once. Until their requests are executed, all may be that wait, and those that come while they are on their way.
pub(super) const ALONE: u64 = 1 << 16;

/// The most bytes that the results of a run have.
const REPLY_BYTES_MAX: usize = RESULTS_BYTES_MAX + RESULT_BYTES_MAX;

impl<S: Service> Estate<S> {
    /// Runs 1 and 4: how many of these requests, which follow one another, are to be executed together; none if there
    /// are fewer than two.
    pub(super) fn run(&self, cluster: &Cluster, requests: &[&Request]) -> usize {
        let Meta { position, last, executed, alone, .. } = self.meta;
        let most = (self.service.run_max() as u64).min(last - position);
        if most < 2 || position < alone {
            return 0;
        }
        let mut sessions = 0;
        let fits = |(place, request): &(usize, &&Request)| {
            let (before, client) = (&requests[..*place], request.client);
            sessions += usize::from(self.clients.last(client).is_none());
            is_plain(request)
                && request.operation.len() <= cluster.limits.operation_bytes_max
                && before.iter().all(|before| before.client != client)
                && (before.iter().all(|before| before.client.identity != client.identity)
                    || self.clients.has_room(client.identity, sessions, REPLY_BYTES_MAX))
                && self.settled(request).is_none()
                && self.shut(request).is_none()
        };
        let run = requests.iter().enumerate().take(most as usize).take_while(fits).count();
        let is_ruled = |run: usize| {
            let mut ruled = self.rulings.iter().filter(|ruled| executed <= ruled.until);
            ruled.any(|ruled| ruled.position <= position + run as u64)
        };
        if run < 2 || is_ruled(run) { 0 } else { run }
    }

    /// Runs 2 and 3. Returns how many were executed.
    pub(super) fn execute_run(
        &mut self,
        cluster: &Cluster,
        ordered: &Ordered,
        requests: &[&Request],
        answer: &mut impl FnMut(&Request, &Outcome, bool),
    ) -> usize {
        let (Meta { time, position, .. }, seed) = (self.meta, ordered.batch.proposal().seed);
        let operation = |(position, request): (u64, &&Request)| {
            let agreed = Agreed { time, seed: Seed::new(seed, position), asker: self.asker(request) };
            Operation { bytes: request.operation.clone(), agreed }
        };
        let operations: Vec<Operation> = (position + 1..).zip(requests).map(operation).collect();
        let results = self.service.execute_many(&operations);
        let written = self.service.take_written();
        let mut done = Vec::with_capacity(results.len());
        let last = results.len().min(requests.len()).saturating_sub(1);
        for (place, (request, result)) in requests.iter().zip(results).enumerate() {
            let result = bounded(result);
            self.meta.history = self.meta.history.chain(request.digest());
            self.meta.position += 1;
            self.link_effects(if place == last { written } else { Digest::ZERO }, &result);
            self.remember_effects();
            if request.client.identity.is_member() {
                self.members.touch(request.client.identity, &cluster.limits, time);
            }
            done.push((result, self.meta));
        }
        let count = done.len();
        for (request, (result, then)) in requests.iter().zip(done) {
            let outcome = self.done(result);
            answer(request, &outcome, true);
            let Meta { executed: sequence, position, history, .. } = then;
            self.clients
                .record(request.client, Entry { timestamp: request.timestamp, sequence, position, history, outcome });
        }
        count
    }

    /// Dissent 5 and Runs 4: why the next request of a batch is not executed, if a ruling says so.
    pub(super) fn refused_in_batch(&self, request: &Request) -> Option<Refusal> {
        let may_be_of_a_run = self.service.run_max() > 1 && self.meta.position >= self.meta.alone && is_plain(request);
        self.refused().map(|refusal| if may_be_of_a_run { Refusal::Undone } else { refusal })
    }
}

/// Whether it asks for one operation of the service that may write.
fn is_plain(request: &Request) -> bool {
    let is_other = request.client.identity.is_joining()
        || request.is_close()
        || request.is_leave()
        || request.is_bundle()
        || request.is_ordered_query();
    !is_other
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::auth::PublicKeys;
    use crate::clients::Freshness;
    use crate::cluster::Limits;
    use crate::estate::{Ruled, next_batch};
    use crate::history::{Boundary, Log};
    use crate::ids::{ClientId, IdentityId, Sequence, Timestamp};
    use crate::joining::CONTROL_SESSION;
    use crate::message::bundle::pack;
    use crate::service::{Asker, BadState, NotReadOnly, PageNumber, one_by_one};
    use crate::services::Counter;
    use crate::testing::Random;
    use crate::testing::net::{INSTANCE, cluster};
    use alloc::vec;
    use bytes::Bytes;
    use core::cell::RefCell;

    /// A counter that notes how many operations it is given together, and writes down all that it executes.
    #[derive(Debug, Default)]
    struct Together {
        counter: Counter,
        run_max: usize,
        calls: RefCell<Vec<usize>>,
        written: Digest,
    }

    /// Its result leaves no room for another one.
    const LONG: &[u8] = b"long";

    impl Service for Together {
        fn execute(&mut self, operation: &[u8], agreed: &Agreed) -> Bytes {
            self.written = self.written.chain(agreed.seed.digest());
            match operation {
                LONG => vec![7; RESULTS_BYTES_MAX + 1].into(),
                _ => self.counter.execute(operation, agreed),
            }
        }
        fn execute_many(&mut self, operations: &[Operation]) -> Vec<Bytes> {
            self.calls.borrow_mut().push(operations.len());
            one_by_one(self, operations)
        }
        fn run_max(&self) -> usize {
            self.run_max
        }
        fn take_written(&mut self) -> Digest {
            core::mem::take(&mut self.written)
        }
        fn query(&self, operation: &[u8], asker: &Asker) -> Result<Bytes, NotReadOnly> {
            self.counter.query(operation, asker)
        }
        fn save(&mut self, write: &mut dyn FnMut(PageNumber, Option<Bytes>)) {
            self.counter.save(write);
        }
        fn load(&mut self, pages: &mut dyn Iterator<Item = (PageNumber, Option<Bytes>)>) -> Result<(), BadState> {
            self.counter.load(pages)
        }
    }

    fn open(run_max: usize) -> (Cluster, Estate<Together>) {
        open_with(run_max, Limits::default())
    }

    fn open_with(run_max: usize, limits: Limits) -> (Cluster, Estate<Together>) {
        let cluster = cluster(4, Default::default(), limits);
        let service = Together { run_max, ..Together::default() };
        let estate = Estate::new(&cluster, &PublicKeys::default(), service);
        (cluster, estate)
    }

    fn request(session: u32, timestamp: u64, operation: &[u8]) -> Request {
        request_of(IdentityId(1), session, timestamp, operation)
    }

    fn request_of(identity: IdentityId, session: u32, timestamp: u64, operation: &[u8]) -> Request {
        let client = ClientId { identity, session };
        Request::new(INSTANCE, client, Timestamp(timestamp), false, Bytes::copy_from_slice(operation))
    }

    fn add(session: u32, timestamp: u64) -> Request {
        request(session, timestamp, &Counter::add(1))
    }

    /// Executes requests as the next batch.
    fn execute(cluster: &Cluster, estate: &mut Estate<Together>, requests: &[Request]) -> Vec<Outcome> {
        let ordered = next_batch(estate, requests.iter().cloned());
        let mut outcomes = Vec::new();
        estate.execute(cluster, ordered, true, |_, outcome, _| outcomes.push(outcome.clone()));
        estate.check_invariants(cluster);
        outcomes
    }

    /// How many operations each call was given since this was asked last.
    fn calls(estate: &Estate<Together>) -> Vec<usize> {
        estate.service().calls.take()
    }

    fn parts(outcomes: &[Outcome]) -> (Vec<Bytes>, Vec<Digest>) {
        let part = |outcome: &Outcome| match outcome {
            Outcome::Done { result, effects } => (result.clone(), *effects),
            other => panic!("{other}"),
        };
        outcomes.iter().map(part).unzip()
    }

    /// Each request has the result, the place and the entry that it would have by itself.
    #[test]
    fn a_run_is_what_can_be_executed_together() {
        let bundle = request(2, 1, &pack(&[Counter::add(1).to_vec().into(), Counter::add(1).to_vec().into()]));
        let batch = [
            add(0, 1),
            add(1, 1),
            bundle.as_bundle(),
            request(3, 1, Counter::READ).as_ordered_query(),
            add(4, 1),
            add(4, 2),
            add(5, 1),
            add(6, 1),
            request(CONTROL_SESSION, 1, b""),
            add(7, 1),
            add(8, 1),
        ];
        let [(alone, _), (together, effects)] = [1, 64].map(|run_max| {
            let (cluster, mut estate) = open(run_max);
            let outcomes = execute(&cluster, &mut estate, &batch[..8]);
            let expected = if run_max == 1 { vec![2] } else { vec![2, 2, 3] };
            assert_eq!(calls(&estate), expected, "a second request of the same client begins another run");
            for (position, request) in (1..).zip(&batch[..8]).filter(|(_, request)| request.client.session != 4) {
                let Freshness::Last(entry) = estate.freshness(request) else { panic!("{request:?}") };
                assert_eq!((entry.position, entry.timestamp), (position, request.timestamp));
            }
            let after = execute(&cluster, &mut estate, &batch);
            assert_eq!((&after[..4], &after[5..8]), (&outcomes[..4], &outcomes[5..8]), "answered again");
            assert_eq!(after[9..], [Outcome::Refused(Refusal::Closed), Outcome::Refused(Refusal::Closed)]);
            assert_eq!(calls(&estate), [], "nothing is left to be executed together");
            parts(&outcomes)
        });
        assert_eq!(together, alone);
        assert_eq!(effects[0], effects[1]);
        assert!(effects[5] == effects[7] && effects[5] != effects[4] && effects[1] != effects[2]);
    }

    /// No more than the service wants, nor than there is room for.
    #[test]
    fn a_run_is_no_longer_than_it_may_be() {
        let (cluster, mut estate) = open(3);
        let batch: Vec<Request> = (0..8).map(|session| add(session, 1)).collect();
        execute(&cluster, &mut estate, &batch);
        assert_eq!(calls(&estate), [3, 3, 2]);
        let (cluster, mut estate) = open(64);
        let mut batch = batch;
        batch[2] = request(2, 1, LONG);
        let (results, effects) = parts(&execute(&cluster, &mut estate, &batch));
        assert_eq!((calls(&estate), estate.position()), (vec![8, 5], 8));
        assert_eq!(results[7].as_ref(), 7u64.to_le_bytes());
        assert!(effects[0] == effects[2] && effects[2] != effects[3] && effects[3] == effects[7]);
    }

    /// Whatever the sessions of an identity are that are evicted on the way.
    #[test]
    fn what_is_executed_together_is_what_would_be_executed_one_by_one() {
        let mut runs = 0;
        for seed in 0..300 {
            let limits = Limits { sessions_per_identity_max: 1 + seed as usize % 4, ..Limits::default() };
            let [mut alone, mut together] = [1, 64].map(|run_max| open_with(run_max, limits.clone()));
            let mut random = Random::new(seed);
            for _ in 0..6 {
                let request = |_| {
                    let (identity, session) = (IdentityId(1 + random.below(2) as u32), random.below(6) as u32);
                    request_of(identity, session, 1 + random.below(9) as u64, &Counter::add(1))
                };
                let batch: Vec<Request> = (0..8).map(request).collect();
                let outcomes = [&mut alone, &mut together].map(|(cluster, estate)| {
                    let what = |outcome: &Outcome| match outcome {
                        Outcome::Done { result, .. } => Ok(result.clone()),
                        other => Err(other.clone()),
                    };
                    execute(cluster, estate, &batch).iter().map(what).collect::<Vec<_>>()
                });
                assert_eq!(outcomes[0], outcomes[1], "seed {seed}");
                assert_eq!(alone.1.history(), together.1.history());
                runs += calls(&together.1).len();
            }
        }
        assert!(runs > 500, "{runs} runs");
    }

    #[test]
    fn a_run_ends_with_its_instance() {
        let (cluster, mut estate) = open(64);
        estate.begin_instance(Sequence(0), 3, false);
        let batch: Vec<Request> = (0..8).map(|session| add(session, 1)).collect();
        assert_eq!(execute(&cluster, &mut estate, &batch).len(), 3);
        assert_eq!(calls(&estate), [3]);
    }

    /// What a replica wrote otherwise shows in the reply to each request of the run.
    #[test]
    fn every_reply_vouches_for_all_that_was_written() {
        let batch: Vec<Request> = (0..8).map(|session| add(session, 1)).collect();
        let [one, other] = [false, true].map(|is_amiss| {
            let (cluster, mut estate) = open(64);
            estate.service.written = if is_amiss { Digest([1; 32]) } else { Digest::ZERO };
            parts(&execute(&cluster, &mut estate, &batch))
        });
        assert_eq!(one.0, other.0);
        assert!(one.1.iter().zip(&other.1).all(|(one, other)| one != other));
    }

    #[test]
    fn a_ruling_undoes_who_may_not_be_the_culprit_and_refuses_who_was_alone() {
        let undone = Outcome::Refused(Refusal::Undone);
        let ruled = |position, until| Ruled { position, until: Sequence(until) };
        let log = Log::new(Boundary::default());
        let (cluster, mut estate) = open(64);
        let run = |timestamp: u64| -> Vec<Request> { (0..4).map(|session| add(session, timestamp)).collect() };
        execute(&cluster, &mut estate, &run(1));
        execute(&cluster, &mut estate, &run(2));
        assert_eq!(calls(&estate), [4, 4]);
        assert_eq!(estate.rule(&cluster, ruled(7, 3), Sequence(0), &log), Ok(Sequence(0)));
        assert_eq!(execute(&cluster, &mut estate, &run(1)).len(), 4);
        assert_eq!(calls(&estate), [4], "what comes before the run is executed as before");
        let outcomes = execute(&cluster, &mut estate, &run(2));
        assert_eq!((&outcomes[2..], calls(&estate)), (&[undone.clone(), undone.clone()][..], vec![]));
        assert_eq!(parts(&outcomes[..2]).0.last().unwrap().as_ref(), 6u64.to_le_bytes());
        assert_eq!((execute(&cluster, &mut estate, &run(3)), estate.disputed()), (vec![undone.clone(); 4], (0, 0)));
        // They ask again, and each is executed by itself.
        let (_, effects) = parts(&execute(&cluster, &mut estate, &run(4)));
        assert_eq!(calls(&estate), []);
        assert!(effects.windows(2).all(|pair| pair[0] != pair[1]));
        estate.checkpoint();
        estate.forget_versions_before(Sequence(4));
        execute(&cluster, &mut estate, &run(5));
        assert_eq!(estate.rule(&cluster, ruled(18, 6), Sequence(4), &log), Ok(Sequence(4)));
        let outcomes = execute(&cluster, &mut estate, &run(5));
        assert_eq!(outcomes[1..], [Outcome::Refused(Refusal::Disputed), undone.clone(), undone]);
        assert_eq!(estate.disputed(), (1, 18));
        // There are runs again once all this is long ago.
        execute(&cluster, &mut estate, &run(6));
        for timestamp in 7.. {
            execute(&cluster, &mut estate, &run(timestamp));
            if !calls(&estate).is_empty() {
                break;
            }
        }
        assert_eq!(estate.position(), 24 + ALONE + 4);
    }
}
