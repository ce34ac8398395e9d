//! The resilient ring under a sequencer that lies, and without some of its votes (S4, A3, A9).

use crate::auth::Certificate;
use crate::cluster::{Cluster, ReplicaId};
use crate::compositions::tests::run::Run;
use crate::compositions::{Part, Protocol, Quota, Schedule};
use crate::digest::Digest;
use crate::history::{Boundary, LogEntry};
use crate::message::{Message, Request};
use crate::protocols::batch::{Batch, Entry};
use crate::protocols::ring_resilient::{Commit, Order, Resilient, ResilientMessage};
use crate::rejection::Rejection;
use crate::service::Proposal;
use crate::switching::certificate::{Prepared, Stable};
use crate::testing::net::{c, kind, r};
use alloc::boxed::Box;
use alloc::vec;
use alloc::vec::Vec;

const INSTANCE: crate::cluster::InstanceId = crate::cluster::InstanceId(1);

fn alone() -> Protocol {
    Protocol::Schedule(Schedule::new(&[Part::RingResilient]).unwrap())
}

fn ring(clients: u32) -> Run {
    let mut run = Run::new(alone(), 4, clients, 1);
    run.settle();
    run
}

/// The clients ask, and everybody but the sequencer, a liar, hears them. Their requests.
fn ask_all_but_the_sequencer(run: &mut Run, clients: usize) -> Vec<Request> {
    run.liar = Some(0);
    (0..clients).for_each(|session| run.invoke(session));
    let request = |session: usize| {
        let mut frames = run.net.in_flight.iter().filter(|frame| frame.from == c(session as u32));
        let Message::Request(request) = frames.next().unwrap().message.clone() else { panic!("a request") };
        request
    };
    let requests = (0..clients).map(request).collect();
    run.round_of(|frame| frame.to != r(0));
    requests
}

/// The sequencer's ORDER of these after a history, and its COMM.
fn order(run: &Run, before: (u64, Digest), requests: &[&Request]) -> [Message; 2] {
    let proposal = Proposal { time: run.net.now, seed: Digest::ZERO };
    let chain = |history: Digest, request: &&Request| {
        history.chain(LogEntry::new(proposal.clone(), (*request).clone()).digest())
    };
    let (position, history) = (before.0 + requests.len() as u64, requests.iter().fold(before.1, chain));
    let prepare = run.net.keyring(r(0)).sign(Prepared { instance: INSTANCE, position, history });
    let entries = requests.iter().map(|request| Entry::Inline((*request).clone())).collect();
    let order = Order { first: before.0 + 1, batch: Batch::new(proposal, entries), prepare };
    let say = |message| Message::Resilient(Resilient { instance: INSTANCE, message });
    let commit = Commit { position, history };
    [say(ResilientMessage::Order(Box::new(order))), say(ResilientMessage::Commit(commit))]
}

/// S4, A3: the sequencer tells two replicas one order and one another, and says of both that it holds a certificate. In
/// the thesis two clients commit two histories. Here nobody signs twice, and one of them commits.
#[test]
fn s4_an_equivocating_sequencer_commits_one_history() {
    let mut run = ring(2);
    let requests = ask_all_but_the_sequencer(&mut run, 2);
    let (a, b) = (&requests[0], &requests[1]);
    let start = (0, Digest::ZERO);
    for (to, first, second) in [(1, a, b), (2, b, a), (3, a, b)] {
        for message in order(&run, start, &[first]).into_iter().chain(order(&run, start, &[second])) {
            run.net.forge(r(0), r(to), message);
        }
    }
    run.settle();
    assert_eq!(run.commits.len(), 1, "a has 2f+1 with the liar's, b has not");
    let signed_by = |id: u8| {
        let frames = run.net.sent.iter().filter(|frame| frame.from == r(id) && frame.to == r(0));
        frames.filter(|frame| kind(&frame.message) == "PREP").count()
    };
    assert_eq!([1, 2, 3].map(signed_by), [1; 3], "nobody signs twice");
    assert!((1..4).all(|id| run.net.rejected(id, r(0), Rejection::Equivocation) > 0));
    run.finish();
    run.check();
    let first = &run.commits[0].history;
    let agrees = |journal: &Vec<u32>| journal.starts_with(first) || first.starts_with(journal);
    assert!(run.journals().iter().all(agrees), "nobody executes anything else there");
}

/// A request that is logged and not executed is not logged again.
#[test]
fn nothing_is_ordered_twice() {
    let mut run = ring(1);
    let requests = ask_all_but_the_sequencer(&mut run, 1);
    run.net.lose(|frame| kind(&frame.message) == "COMM");
    let [first, _] = order(&run, (0, Digest::ZERO), &[&requests[0]]);
    let Message::Resilient(Resilient { message: ResilientMessage::Order(order_of_first), .. }) = &first else {
        panic!("an order")
    };
    let Prepared { position, history, .. } = order_of_first.prepare.value;
    let [again, _] = order(&run, (position, history), &[&requests[0]]);
    for id in 1..4 {
        run.net.forge(r(0), r(id), first.clone());
        run.net.forge(r(0), r(id), again.clone());
    }
    run.settle();
    assert!((1..4).all(|id| run.net.rejected(id, r(0), Rejection::BadBatch) == 1));
    run.net.heal();
    run.finish();
    run.check();
}

/// A certificate is not enough to answer: somebody must know that others hold it.
#[test]
fn nothing_is_answered_before_2f_1_hold_certificates() {
    let mut run = ring(1);
    run.net.lose(|frame| kind(&frame.message) == "COMM" && frame.to != r(0));
    run.invoke(0);
    run.settle();
    let answers = run.net.sent.iter().filter(|frame| kind(&frame.message) == "RESP");
    assert_eq!(answers.map(|frame| frame.from).collect::<Vec<_>>(), vec![r(0)]);
    assert!(run.commits.is_empty(), "one answer commits nothing");
    run.net.heal();
    run.finish();
    run.check();
}

/// R1: whatever a client says, it does not stop the ring; a sequencer that is down does, after T.
#[test]
fn only_waiting_too_long_stops_it() {
    let mut run = ring(2);
    for id in 0..4 {
        run.net.forge(c(1), r(id), crate::compositions::tests::script::panic(INSTANCE, 1));
    }
    run.invoke(0);
    run.pass(1_000);
    assert!(run.is_idle() && run.instances() == [1; 4] && !run.anybody_said("ABORT"));
    run.net.lose(|frame| frame.from == r(0) || frame.to == r(0));
    run.invoke(0);
    run.pass(1_900);
    assert_eq!(run.instances()[1..], [1; 3]);
    run.finish();
    assert_eq!(run.instances()[1..], [2; 3]);
    run.check();
}

/// With f replicas silent, and none of them the sequencer, the whole quota commits and the ring ends with it.
#[test]
fn with_f_silent_replicas_it_comes_to_its_end() {
    let mut run = ring(1);
    run.net.lose(|frame| frame.from == r(3) || frame.to == r(3));
    for _ in 0..crate::compositions::tests::run::K {
        assert_eq!(run.instances()[..3], [1; 3]);
        run.invoke(0);
        run.settle();
        assert!(run.is_idle(), "without a timer");
    }
    run.settle();
    assert_eq!(run.instances()[..3], [2; 3]);
    run.net.heal();
    run.finish();
    run.check();
}

/// R6: 2f+1 signed a checkpoint and crashed, and have its state no more. Somebody who is behind is shown that one again
/// and again, and goes on from the one that the others are back at.
#[test]
fn a_state_that_nobody_has_is_not_waited_for() {
    let mut run = Run::of(Cluster { quota: Quota::Fixed(100), ..Run::cluster(alone(), 4) }, 1, 1);
    run.settle();
    run.net.lose(|frame| frame.from == r(3) || frame.to == r(3));
    for _ in 0..9 {
        run.invoke(0);
        run.settle();
    }
    let boundary = Boundary { position: 12, history: Digest([1; 32]), root: Digest([2; 32]) };
    let value = Stable { instance: INSTANCE, boundary };
    let signatures = (0..3).map(|id| (ReplicaId(id), run.net.keyring(r(id)).sign(value).signature)).collect();
    let message = ResilientMessage::Stable(Certificate { value, signatures });
    let lost = Message::Resilient(Resilient { instance: INSTANCE, message });
    run.net.heal();
    for _ in 0..40 {
        run.net.forge(r(0), r(3), lost.clone());
        run.net.forge(r(0), r(3), lost.clone());
        run.pass(200);
    }
    let asked = run.net.sent.iter().filter(|frame| frame.from == r(3) && kind(&frame.message) == "FETCH-NODE");
    assert!(asked.count() > 1, "it was looked for");
    assert!(run.begun.iter().any(|(id, ..)| id.0 == 3), "it went on from another one");
    assert_eq!(run.journals()[3], run.journals()[0]);
    run.invoke(0);
    run.finish();
    run.check();
}
