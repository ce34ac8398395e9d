//! The resilient ring under a sequencer that lies, and without some of its votes (ring-S4, ring-S6,
//! ring-S12, ring-A3, ring-A9, ring-A15). Resilient 1 to 8 are those of [`crate::protocols::ring_resilient`].

use super::clients::{ask_as, serve, with_a_full_table};
use crate::auth::{Authenticator, Claimed, Signature, TreeSignature};
use crate::batch::{Batch, Entry, Reference};
use crate::checkpoint::{NodeId, TransferMessage};
use crate::cluster::{Cluster, Limits};
use crate::compositions::tests::run::{K, Run};
use crate::compositions::tests::script::panic;
use crate::digest::Digest;
use crate::history::{Boundary, LogEntry};
use crate::ids::{InstanceId, Principal, ReplicaId};
use crate::message::Request;
use crate::notice::Notice;
use crate::protocols::ring_resilient::{Commit, Order, Resilient, ResilientMessage, Status};
use crate::registry::Message;
use crate::rejection::Rejection;
use crate::replicas::ReplicaSet;
use crate::schedule::{Part, Protocol, Quota, Schedule};
use crate::service::Proposal;
use crate::stop::StopReason;
use crate::switching::certificate::{Prepared, Stable};
use crate::switching::{AbortReport, Bodies, Certificates, Switch, SwitchMessage};
use crate::testing::journal::Journal;
use crate::testing::net::{Host, Net, c, kind, r};
use crate::time::Duration;
use alloc::boxed::Box;
use alloc::string::ToString;
use alloc::sync::Arc;
use alloc::vec;
use alloc::vec::Vec;

const INSTANCE: InstanceId = InstanceId(1);

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
    order_in(&run.net, before, requests)
}

fn order_in(net: &Net<Journal>, before: (u64, Digest), requests: &[&Request]) -> [Message; 2] {
    let proposal = Proposal { time: net.now, seed: Digest::ZERO };
    let chain = |history: Digest, request: &&Request| {
        history.chain(LogEntry::new(proposal.clone(), (*request).clone()).digest())
    };
    let (position, history) = (before.0 + requests.len() as u64, requests.iter().fold(before.1, chain));
    let prepare = net.keyring(r(0)).sign(Prepared { instance: INSTANCE, position, history });
    let entries = requests.iter().map(|request| Entry::Inline((*request).clone())).collect();
    let order = Order { first: before.0 + 1, batch: Batch::new(proposal, entries), prepare: prepare.into() };
    let say = |message| Message::Resilient(Resilient { instance: INSTANCE, message });
    let commit = Commit { position, history };
    [say(ResilientMessage::Order(Box::new(order))), say(ResilientMessage::Commit(commit))]
}

/// ring-S4, ring-A3: the sequencer tells two replicas one order and one another, and says of both that it holds a
/// certificate. In the thesis two clients commit two histories. Here nobody signs twice, and one of them is executed.
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
    let executed = run.journals().iter().map(Vec::len).collect::<Vec<_>>();
    assert_eq!(executed, [1, 0, 1], "a has 2f+1 with the liar's, b has not");
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

/// A client asks one replica, or all, again and again for what it was answered: they sign where they are, and are not
/// asked for more than that.
#[test]
fn a_client_that_goes_on_asking_stops_nobody() {
    for receivers in [1, 4] {
        let mut run = ring(1);
        run.invoke(0);
        let request = run.net.in_flight.iter().find_map(|frame| match &frame.message {
            Message::Request(request) => Some(request.clone()),
            _ => None,
        });
        let request = request.expect("it was just sent");
        run.finish();
        let before = run.net.said(r(1), "RING-CHECKPOINT").len();
        for _ in 0..200 {
            run.ask(&request, 0..receivers);
            run.pass(100);
        }
        assert_eq!(run.instances(), [1; 4], "nobody stops");
        let signed = run.net.said(r(1), "RING-CHECKPOINT").len() - before;
        assert!((3..=6).contains(&signed), "once, to all three others: {signed}");
        assert!(!run.net.said(r(0), "CERTAIN").is_empty(), "its answer is certain now");
        run.check();
    }
}

/// What a client made certain by asking again is kept where it restarts: others have dropped what leads there.
#[test]
fn who_restarts_has_the_state_at_its_anchor() {
    let mut run = ring(1);
    run.invoke(0);
    run.finish();
    let request = run.net.sent.iter().rev().find_map(|frame| match &frame.message {
        Message::Request(request) => Some(request.clone()),
        _ => None,
    });
    let request = request.expect("the last one");
    for _ in 0..20 {
        run.ask(&request, 0..4);
        run.pass(100);
    }
    let anchored = run.net.hosts[1].notices.iter().rev().find_map(|(_, notice)| match notice {
        Notice::Anchored { position, root, .. } => Some((*position, *root)),
        _ => None,
    });
    let (position, version) = anchored.expect("it is certain");
    assert!(!position.is_multiple_of(run.net.cluster.limits.history_interval), "out of turn");
    // One more, so that the state has gone on.
    run.invoke(0);
    run.settle();
    assert_eq!((run.instances(), run.journals()[1].len()), (vec![1; 4], 2));
    (0..4).for_each(|id| run.net.restart(id, false));
    let (before, what) = (run.net.said(r(1), "NODE").len(), TransferMessage::FetchNode { version, node: NodeId::ROOT });
    run.net.forge(r(3), r(1), Message::Transfer(what));
    run.settle();
    assert!(run.net.said(r(1), "NODE").len() > before, "the state at {position} is there");
    run.finish();
    run.check();
}

/// Nothing is committed yet where a ring begins: whoever says that it has executed what they inherited learns nothing
/// from a signature. A replica may still begin again with its sequencer's history, and would have signed both.
#[test]
fn nobody_signs_where_it_is_before_something_is_committed() {
    let protocol = Protocol::Schedule(Schedule::new(&[Part::Quorum, Part::RingResilient]).unwrap());
    let mut run = Run::new(protocol, 4, 1, 1);
    run.invoke(0);
    run.settle();
    run.net.lose(|frame| kind(&frame.message) == "RING-ORDER");
    (0..4).for_each(|id| run.net.forge(c(0), r(id), panic(INSTANCE, 0)));
    run.settle();
    assert_eq!(run.instances(), [2; 4]);
    let instance = InstanceId(2);
    let boundary = Boundary { position: 1, ..Boundary::default() };
    let vote = run.net.keyring(r(3)).sign(Stable { instance, init: (1, Digest::ZERO), boundary });
    let message = ResilientMessage::Checkpoint(vote.into());
    run.net.forge(r(3), r(1), Message::Resilient(Resilient { instance, message }));
    run.settle();
    assert!(run.net.said(r(1), "RING-CHECKPOINT").is_empty());
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
    let Prepared { position, history, .. } = *order_of_first.prepare.claims();
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

/// abs-K28: a sequencer that orders only what does nothing serves nobody, and does not stay until its quota is done.
#[test]
fn k28_what_does_nothing_is_no_progress() {
    let mut net = with_a_full_table(alone());
    let stale = ask_as(&mut net, 10, &[0, 1, 2, 3]);
    net.settle();
    serve(&mut net, 0);
    serve(&mut net, 1);
    // From here on r0 is a liar, and what its machine says is lost.
    net.lose(|frame| frame.from == r(0) && frame.message.instance() == Some(INSTANCE));
    let estate = net.hosts[1].replica.estate();
    let (mut before, served) = ((estate.position(), estate.history()), net.completed.len());
    net.submit(0, &7_u32.to_le_bytes(), false);
    for _ in 0..60 {
        let [order, commit] = order_in(&net, before, &[&stale]);
        if let Message::Resilient(Resilient { message: ResilientMessage::Commit(commit), .. }) = &commit {
            before = (commit.position, commit.history);
        }
        for to in 1..4 {
            net.forge(r(0), r(to), order.clone());
            net.forge(r(0), r(to), commit.clone());
        }
        net.settle();
        net.pass(100_000);
    }
    assert!(before.0 > 40, "the quota is not done");
    assert!(net.hosts[1..].iter().all(|host| host.replica.instance().0 > 1), "they have left");
    net.pass(5_000_000);
    assert!(net.completed.len() > served, "the next sequencer serves");
}

/// A certificate is not enough to answer: somebody must know that others hold it.
#[test]
fn nothing_is_answered_before_2f_1_hold_certificates() {
    let mut run = ring(1);
    // r1 and r3 hear of f others' certificates, beside their own.
    run.net.lose(|frame| kind(&frame.message) == "COMM" && frame.to != r(0) && frame.from != r(2));
    run.invoke(0);
    run.settle();
    let answers = run.net.sent.iter().filter(|frame| kind(&frame.message) == "RESP");
    assert_eq!(answers.map(|frame| frame.from).collect::<Vec<_>>(), vec![r(0)]);
    assert!(run.commits.is_empty(), "one answer commits nothing");
    run.net.heal();
    run.finish();
    run.check();
}

/// Resilient 1: whatever a client says, it does not stop the ring; a sequencer that is down does, after T.
#[test]
fn only_waiting_too_long_stops_it() {
    let mut run = ring(2);
    for id in 0..4 {
        run.net.forge(c(1), r(id), panic(INSTANCE, 1));
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
    for _ in 0..K {
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

/// A checkpoint that r0, r1, … have signed, as far as that one knows, of a state that nobody has.
fn unknown_checkpoint(run: &Run, signers: u8, position: u64) -> Message {
    let boundary = Boundary { position, history: Digest([1; 32]), root: Digest([position as u8; 32]) };
    let value = Stable { instance: INSTANCE, init: <(u64, Digest)>::default(), boundary };
    let signatures = (0..signers).map(|id| (ReplicaId(id), run.net.keyring(r(id)).sign(value).signature())).collect();
    let message = ResilientMessage::Stable(Claimed::certified(value, signatures));
    Message::Resilient(Resilient { instance: INSTANCE, message })
}

/// A ring in which r3 has missed so much that it needs the state at a checkpoint. It is shown this one many times.
fn shown_to_who_is_behind(signers: u8) -> Run {
    let mut run = Run::of(Cluster { quota: Quota::Fixed(100), ..Run::cluster(alone(), 4) }, 1, 1);
    run.settle();
    run.net.lose(|frame| frame.from == r(3) || frame.to == r(3));
    for _ in 0..9 {
        run.invoke(0);
        run.settle();
    }
    let lost = unknown_checkpoint(&run, signers, 12);
    run.net.heal();
    for _ in 0..40 {
        run.net.forge(r(0), r(3), lost.clone());
        run.net.forge(r(0), r(3), lost.clone());
        run.pass(200);
    }
    run
}

/// Resilient 6: 2f+1 signed a checkpoint and crashed, and have its state no more. Somebody who is behind is shown that
/// one again and again, and goes on from the one that the others are back at.
#[test]
fn a_state_that_nobody_has_is_not_waited_for() {
    let mut run = shown_to_who_is_behind(3);
    let asked = run.net.said(r(3), "FETCH-NODE").len();
    assert!(asked > 40, "it was looked for: {asked}");
    assert!(run.begun.iter().any(|(id, ..)| id.0 == 3), "it went on from another one");
    assert_eq!(run.journals()[3], run.journals()[0]);
    run.invoke(0);
    run.finish();
    run.check();
}

/// ring-A9: a checkpoint that too few have signed is not even looked for.
#[test]
fn a_checkpoint_that_too_few_signed_is_refused() {
    let mut run = shown_to_who_is_behind(2);
    assert_eq!(run.net.rejected(3, r(0), Rejection::BadCertificate), 80);
    run.invoke(0);
    run.finish();
    run.check();
}

/// Others go on while somebody who is behind looks for a checkpoint's state, and drop that one. What they show next is
/// looked for at once, and what is older is not.
#[test]
fn a_higher_checkpoint_is_looked_for_at_once() {
    let mut run = ring(1);
    for (position, highest) in [(12, 12), (13, 13), (12, 13), (20, 20)] {
        let checkpoint = unknown_checkpoint(&run, 3, position);
        run.net.forge(r(0), r(3), checkpoint.clone());
        run.net.forge(r(0), r(3), checkpoint);
        run.pass(500);
        let asked = run.net.said(r(3), "FETCH-NODE").last().unwrap().message.clone();
        let Message::Transfer(TransferMessage::FetchNode { version, .. }) = asked else { panic!("of a version") };
        assert_eq!(version, Digest([highest; 32]), "{position}");
    }
}

/// Who has signed something beyond a checkpoint of another history does not go on from there: it would sign twice for
/// the same places. Who has not, does.
#[test]
fn nobody_goes_on_from_below_what_it_has_signed() {
    for (checkpoint, is_tried) in [(1, false), (2, true), (3, true)] {
        let mut run = ring(2);
        let requests = ask_all_but_the_sequencer(&mut run, 2);
        let [signed, _] = order(&run, (0, Digest::ZERO), &[&requests[0], &requests[1]]);
        run.net.forge(r(0), r(3), signed);
        run.settle();
        assert_eq!(run.net.said(r(3), "PREP").len(), 3, "for two places, to everybody");
        let other = unknown_checkpoint(&run, 3, checkpoint);
        for _ in 0..4 {
            run.net.forge(r(0), r(3), other.clone());
            run.settle();
        }
        assert_eq!(!run.net.said(r(3), "FETCH-NODE").is_empty(), is_tried, "{checkpoint}");
    }
}

/// Who has signed something else exactly where the others began, and goes on from their checkpoint there, does not sign
/// that place again.
#[test]
fn nobody_signs_twice_where_it_goes_on() {
    let cluster = Run::cluster(alone(), 4);
    let limits = Limits { history_interval: 1, ..cluster.limits };
    let mut run = Run::of(Cluster { quota: Quota::Fixed(100), limits, ..cluster }, 2, 1);
    run.settle();
    let requests = ask_all_but_the_sequencer(&mut run, 2);
    run.net.isolate(&[0]);
    for (to, request) in [(1, &requests[0]), (2, &requests[0]), (3, &requests[1])] {
        for message in order(&run, (0, Digest::ZERO), &[request]) {
            run.net.forge(r(0), r(to), message);
        }
    }
    run.settle();
    let said = run.net.said(r(1), "RING-CHECKPOINT").last().map(|frame| frame.message.clone());
    let Some(Message::Resilient(Resilient { message: ResilientMessage::Checkpoint(vote), .. })) = said else {
        panic!("r1 has executed")
    };
    let boundary = vote.claims().boundary;
    let value = Stable { init: (boundary.position, boundary.history), ..*vote.claims() };
    let signatures = (0..3).map(|id| (ReplicaId(id), run.net.keyring(r(id)).sign(value).signature())).collect();
    for _ in 0..2 {
        let message = ResilientMessage::Stable(Claimed::certified(value, Vec::clone(&signatures)));
        run.net.forge(r(0), r(3), Message::Resilient(Resilient { instance: INSTANCE, message }));
    }
    run.pass(1_500);
    assert_eq!(run.journals()[2], run.journals()[0], "r3 has gone on from there");
    let status = Status { opened: false, logged: 0, prepared: None, committed: None, anchor: 0 };
    let message = ResilientMessage::Status(status);
    run.net.forge(r(0), r(3), Message::Resilient(Resilient { instance: INSTANCE, message }));
    run.settle();
    let signed = run.net.said(r(3), "PREP").into_iter().filter_map(|frame| match &frame.message {
        Message::Resilient(Resilient { message: ResilientMessage::Prepare(signed), .. }) => Some(*signed.claims()),
        _ => None,
    });
    let mut at_one: Vec<Digest> = signed.filter(|value| value.position == 1).map(|value| value.history).collect();
    at_one.dedup();
    assert_eq!(at_one.len(), 1);
}

/// Resilient 6: the checkpoint at the quota's end is certain when 2f+1 replicas have signed it, each once.
#[test]
fn nothing_is_certain_before_2f_1_have_signed_it() {
    let mut run = ring(1);
    let pair = |of| of == r(0) || of == r(1);
    run.net.lose(move |frame| kind(&frame.message) == "RING-CHECKPOINT" && pair(frame.from) != pair(frame.to));
    for _ in 0..K {
        run.invoke(0);
        run.settle();
    }
    assert!(run.is_idle() && !run.anybody_said("ABORT"), "each knows of two signatures");
    run.net.heal();
    run.pass(1_000);
    assert_eq!(run.instances(), [2; 4]);
    run.check();
}

/// ring-S6, ring-F12: the sequencer serves one replica of three. That one has executed, and waits for nothing more; the
/// two others stop, and that is enough for all to stop: nobody waits for ever.
#[test]
fn s6_half_stopped_is_stopped() {
    let mut run = ring(1);
    run.liar = Some(0);
    run.net.lose(|frame| {
        let keeps = frame.to == r(3) || frame.to == c(0) || kind(&frame.message) == "ABORT";
        frame.from == r(0) && (keeps || frame.to == r(2) && kind(&frame.message) == "COMM")
    });
    run.invoke(0);
    run.settle();
    let answered = run.net.sent.iter().filter(|frame| frame.to == c(0)).map(|frame| frame.from);
    assert_eq!(answered.collect::<Vec<_>>(), [r(1), r(0)]);
    run.finish();
    assert!(run.instances()[1..].iter().all(|instance| *instance >= 2));
    let followed = |notice: &Notice| {
        matches!(notice, Notice::Stopped { instance: InstanceId(1), reason: StopReason::OthersStopped })
    };
    assert!((1..4).any(|id| run.net.noticed(id, followed)), "f+1 that have stopped are enough");
    run.check();
}

/// The report of a replica that denies everything.
pub(super) fn nothing_to_report(run: &Run, liar: u8, instance: InstanceId) -> Message {
    let nothing = AbortReport {
        instance,
        anchor: Boundary { position: 0, history: Digest::ZERO, root: Digest::ZERO },
        boundaries: Vec::new(),
        digests: Vec::new(),
        low_load: false,
        silent: ReplicaSet::NOBODY,
        certificates: Certificates::default(),
    };
    let report = Arc::new(run.net.keyring(r(liar)).sign(nothing).into());
    Message::Switch(Switch { instance, message: SwitchMessage::Abort(report) })
}

/// ring-S12: two replicas have executed, with the votes of a third that reports later that there is nothing. Whichever
/// three reports make the proof, what committed is in it.
#[test]
fn s12_what_committed_is_in_every_proof() {
    for omitted in 0..4 {
        let mut run = ring(1);
        run.liar = Some(3);
        run.net.lose(|frame| matches!(frame.message, Message::Resilient(_)) && frame.to == r(2));
        run.invoke(0);
        run.settle();
        assert_eq!(run.commits.len(), 1, "r0, r1 and the liar are 2f+1");
        run.net.lose(move |frame| {
            let is_kept = [r(3), r(omitted)].contains(&frame.from) && kind(&frame.message) == "ABORT";
            is_kept || matches!(&frame.message, Message::Resilient(_))
        });
        let lie = nothing_to_report(&run, 3, INSTANCE);
        (0..3).filter(|_| omitted != 3).for_each(|id| run.net.forge(r(3), r(id), lie.clone()));
        run.invoke(0);
        run.pass(4_000);
        run.net.heal();
        run.finish();
        assert!(run.instances()[..3].iter().all(|instance| *instance >= 2), "without r{omitted}'s");
        run.check();
    }
}

/// ring-F14: one replica is silent, and neither stops the ring nor keeps the others' logs from being forgotten.
#[test]
fn f14_a_silent_replica_keeps_nobody_from_forgetting() {
    let mut run = Run::of(Cluster { quota: Quota::Fixed(100), ..Run::cluster(alone(), 4) }, 1, 1);
    run.settle();
    run.net.lose(|frame| frame.from == r(3) || frame.to == r(3));
    let bound = run.net.cluster.history_bound();
    for _ in 0..4 * bound {
        run.invoke(0);
        run.settle();
        assert!(run.is_idle(), "without a timer");
        for Host { replica, .. } in &run.net.hosts[..3] {
            let certain = replica.certain_checkpoint(None).map_or(0, |at| at.sequence().0);
            assert!(replica.estate().position() <= certain + bound);
        }
    }
    assert_eq!(run.instances()[..3], [1; 3]);
    run.net.heal();
    run.finish();
    run.check();
}

/// ring-F23: each replica says once what it says of a batch. Whatever a client sends, it has one place in it.
#[test]
fn f23_a_flood_costs_one_place_for_each_client() {
    let mut run = ring(2);
    let batches = |run: &Run| run.net.said(r(0), "RING-ORDER").len() / 3;
    let before = batches(&run);
    for timestamp in 1..=50 {
        let operation = run.reserve();
        let request = run.net.request(INSTANCE, 1, timestamp, &operation).sign(&run.net.client_keys);
        run.ask(&request, 0..4);
    }
    let frames = core::mem::take(&mut run.net.in_flight);
    frames.into_iter().for_each(|frame| run.deliver(frame));
    assert!(run.net.hosts.iter().all(|host| host.replica.report().pending_requests == 1));
    run.invoke(0);
    run.settle();
    assert_eq!(batches(&run), before + 1);
    for (what, each) in [("PREP", 3), ("COMM", 3)] {
        let said: usize = (0..4).map(|id| run.net.said(r(id), what).len()).sum();
        assert!(said <= 4 * each * (before + 1), "{said} times {what}");
    }
    assert!(run.is_idle());
    run.check();
}

/// Whether a client is served whose requests take 400 ms, beside one that always has its next request ready. One
/// replica is down, so that the fast mode serves nobody.
fn serves_the_slow(quota: Quota) -> bool {
    // Without a Backup, whose quota grows as well.
    let modes = Protocol::Schedule(Schedule::new(&[Part::RingFast, Part::RingResilient]).unwrap());
    let mut run = Run::of(Cluster { quota, ..Run::cluster(modes, 4) }, 2, 1);
    run.net.isolate(&[3]);
    run.invoke(1);
    let mut late = Vec::new();
    let is_served = (0..4_000).any(|_| {
        run.invoke(0);
        let frames = core::mem::take(&mut run.net.in_flight);
        let (slow, rest): (Vec<_>, Vec<_>) = frames.into_iter().partition(|frame| frame.from == c(1));
        late.extend(slow.into_iter().map(|frame| (run.net.now + Duration::from_millis(400), frame)));
        let (due, not_yet): (Vec<_>, Vec<_>) = late.drain(..).partition(|(at, _)| *at <= run.net.now);
        late = not_yet;
        run.net.in_flight = rest.into_iter().chain(due.into_iter().map(|(_, frame)| frame)).collect();
        run.round();
        run.net.now += Duration::from_millis(5);
        while run.net.fire_before(run.net.now) {}
        run.commits.iter().any(|commit| commit.history.last() == Some(&1))
    });
    assert!(run.commits.len() > 10, "the other client is");
    run.check();
    is_served
}

/// ring-A15, abs-L5: with a quota that stays the same, a resilient ring is over before a slow client's request for it
/// comes. It grows, so that everybody is served.
#[test]
fn a15_the_quota_grows_until_a_slow_client_is_served() {
    assert!(!serves_the_slow(Quota::Fixed(1)), "as it would be without");
    assert!(serves_the_slow(Quota::Exponential { minimum: 1 }));
}

/// Resilient 8: somebody who has missed many small batches gets them many at a time, and executes as they come.
#[test]
fn who_missed_many_batches_catches_up_soon() {
    let cluster = Run::cluster(alone(), 4);
    let limits = Limits { history_interval: 512, ..cluster.limits };
    let mut run = Run::of(Cluster { quota: Quota::Fixed(1_000), limits, ..cluster }, 1, 1);
    run.settle();
    run.net.lose(|frame| frame.from == r(3) || frame.to == r(3));
    for _ in 0..200 {
        run.invoke(0);
        run.settle();
    }
    run.net.heal();
    // More than it keeps early, before it asks for what it has missed.
    for _ in 0..100 {
        run.invoke(0);
        run.settle();
    }
    run.pass(500);
    assert_eq!(run.journals()[3].len(), 300, "within two and a half status intervals");
    assert_eq!(run.instances(), [1; 4]);
    run.check();
}

/// Requests with MACs that hold for one replica, and signatures that hold for nobody, do not take the places of others
/// among those that it passes on.
#[test]
fn what_nobody_has_signed_is_not_passed_on() {
    let mut run = ring(1);
    for session in 100..300 {
        let operation = run.reserve();
        let mut request = run.net.request(INSTANCE, session, 10, &operation);
        request.authentication.signature =
            Some(TreeSignature { signature: Signature([1; 64]), sides: 0, path: Vec::new() });
        run.ask(&request, [1]);
    }
    run.round();
    // What it asks comes to one replica only.
    run.net.lose(|frame| frame.from == c(0) && frame.to != r(1));
    run.invoke(0);
    run.pass(1_000);
    let last = run.next - 1;
    assert_eq!(run.journals(), vec![vec![last]; 4], "long before anybody's patience is at an end");
    assert_eq!(run.instances(), [1; 4]);
    assert_eq!(run.net.rejected(1, c(0), Rejection::UnauthenticRequest), 200);
}

/// A sequencer serves one client, so that there is always progress, and never another one. It does not stay for the
/// quota, however long that is.
#[test]
fn a_sequencer_that_passes_a_client_over_does_not_stay() {
    let quota = Quota::Fixed(1 << 40);
    let mut run = Run::of(Cluster { quota, ..Run::cluster(alone(), 4) }, 2, 1);
    run.settle();
    run.liar = Some(0);
    run.net.lose(|frame| {
        let is_of_victim =
            matches!(&frame.message, Message::Request(request) if c(0) == Principal::Client(request.client));
        is_of_victim && frame.to == r(0)
    });
    run.invoke(0);
    let patience = run.net.cluster.limits.view_timeout.0 / 1_000;
    let mut passed = 0;
    while run.instances()[1..] == [1; 3] {
        run.invoke(1);
        run.pass(patience / 2);
        passed += patience / 2;
        assert!(passed < 12 * patience, "it stays");
    }
    assert!(passed >= 8 * patience, "others are served: {passed} ms");
    run.finish();
    run.check();
}

/// A flood of requests that come to one replica only is served in time by a sequencer that is correct.
#[test]
fn a_flood_that_one_replica_passes_on_stops_nothing() {
    let cluster = Run::cluster(alone(), 4);
    let limits = Limits { history_interval: 64, ..cluster.limits };
    let mut run = Run::of(Cluster { quota: Quota::Fixed(10_000), limits, ..cluster }, 1, 1);
    run.settle();
    for session in 0..1_000 {
        let operation = run.reserve();
        let request = run.net.request(INSTANCE, 100 + session, 10, &operation);
        run.ask(&request, [1, 2]);
    }
    run.pass(30_000);
    assert_eq!(run.journals().iter().map(Vec::len).collect::<Vec<_>>(), [1_000; 4]);
    assert_eq!(run.instances(), [1; 4]);
}

/// Who says again and again that it has logged all there will ever be, is told what it lacks once in a while.
#[test]
fn a_flood_of_statuses_is_not_answered() {
    let mut run = ring(1);
    for _ in 0..2 {
        run.invoke(0);
        run.settle();
    }
    run.net.sent.clear();
    let status = |logged| Status { opened: true, logged, prepared: None, committed: None, anchor: 0 };
    for logged in [0, u64::MAX].repeat(50) {
        let message = ResilientMessage::Status(status(logged));
        run.net.forge(r(3), r(1), Message::Resilient(Resilient { instance: INSTANCE, message }));
    }
    run.settle();
    let answers = run.net.sent.iter().filter(|frame| frame.from == r(1) && frame.to == r(3)).count();
    assert!((1..20).contains(&answers), "{answers}");
}

/// A batch that is longer than a correct sequencer makes one is not kept.
#[test]
fn an_order_beyond_its_bound_is_refused() {
    let cluster = Run::cluster(alone(), 4);
    let limits = Limits { batch_requests_max: 2, ..cluster.limits };
    let mut run = Run::of(Cluster { limits, ..cluster }, 3, 1);
    run.settle();
    let requests = ask_all_but_the_sequencer(&mut run, 3);
    let [order, _] = order(&run, (0, Digest::ZERO), &requests.iter().collect::<Vec<_>>());
    run.net.forge(r(0), r(1), order);
    run.round();
    assert_eq!(run.net.rejected(1, r(0), Rejection::BadBatch), 1);
}

/// A client says one thing to one replica and something else, under the same number, to the others. Whoever passes one
/// of them on is not blamed for the other.
#[test]
fn who_passes_on_what_a_client_says_is_not_blamed() {
    let mut run = ring(1);
    run.net.lose(|frame| kind(&frame.message) == "RING-ORDER");
    // As many batches are under way as may be: the next request waits.
    for session in 20..22 {
        let operation = run.reserve();
        let request = run.net.request(INSTANCE, session, 10, &operation);
        run.ask(&request, [0]);
        run.settle();
    }
    for receivers in [0..1, 1..4] {
        let operation = run.reserve();
        let request = run.net.request(INSTANCE, 7, 10, &operation);
        run.ask(&request, receivers);
    }
    run.settle();
    run.pass(500);
    let passed_on = run.net.rejected(0, r(1), Rejection::ReusedTimestamp);
    assert!(passed_on > 0, "{:?}", run.net.hosts[0].replica.report().rejections);
    assert!(run.net.hosts.iter().all(|host| host.replica.report().suspicions.is_empty()));
}

/// A ring whose quota nothing here comes to, in which r3 neither hears nor says anything.
fn without_r3(clients: u32) -> Run {
    without_r3_and(clients, |_| ())
}

fn without_r3_and(clients: u32, change: impl FnOnce(&mut Limits)) -> Run {
    let mut cluster = Cluster { quota: Quota::Fixed(100), ..Run::cluster(alone(), 4) };
    change(&mut cluster.limits);
    let mut run = Run::of(cluster, clients, 1);
    run.settle();
    run.net.isolate(&[3]);
    run
}

/// r3 is back and has caught up. Then r1 is gone, and r3 is one of the 2f+1 who serve.
fn r3_takes_part(mut run: Run) {
    run.net.heal();
    run.invoke(0);
    run.pass(1_500);
    assert_eq!(run.journals()[3], run.journals()[0]);
    run.net.isolate(&[1]);
    run.invoke(0);
    run.pass(1_000);
    assert!(run.is_idle());
    assert_eq!(run.instances(), [1; 4]);
    run.check();
}

/// A checkpoint may lie within a batch. Who goes on from there logs the rest of it.
#[test]
fn who_goes_on_from_within_a_batch_takes_part() {
    let mut run = without_r3(6);
    for _ in 0..3 {
        (0..6).for_each(|session| run.invoke(session));
        run.finish();
    }
    assert_eq!(run.net.said(r(0), "RING-ORDER").len(), 3 * 3, "batches of six");
    let certain = run.net.hosts[0].replica.certain_checkpoint(None).expect("a checkpoint");
    assert_eq!(certain.sequence().0, 16, "within the third");
    r3_takes_part(run);
}

/// Who was away for longer than clocks may differ logs what others have signed when it was fresh.
#[test]
fn who_was_away_for_long_takes_part() {
    let mut run = without_r3(1);
    run.invoke(0);
    run.settle();
    run.pass(2 * run.net.cluster.limits.clock_skew_max.0 / 1_000);
    r3_takes_part(run);
}

/// The same when it hears of more than it keeps before it asks for what it has missed.
#[test]
fn who_was_away_for_long_takes_part_under_load() {
    let mut run = without_r3_and(1, |limits| limits.history_interval = 512);
    run.invoke(0);
    run.settle();
    run.pass(2 * run.net.cluster.limits.clock_skew_max.0 / 1_000);
    run.net.heal();
    for _ in 0..90 {
        run.invoke(0);
        run.settle();
    }
    r3_takes_part(run);
}

/// The sequencer's word is not enough: neither for a batch whose agreed time is long past, nor for what it says that
/// clients have asked.
#[test]
fn the_sequencer_alone_vouches_for_nothing() {
    let mut run = ring(1);
    run.liar = Some(0);
    run.net.lose(|frame| frame.from == r(0));
    let request = run.net.request(INSTANCE, 90, 1, &[7; 4]);
    let [old, _] = order(&run, (0, Digest::ZERO), &[&request]);
    run.pass(2 * run.net.cluster.limits.clock_skew_max.0 / 1_000);
    run.net.forge(r(0), r(1), old);
    run.settle();
    assert_eq!(run.net.rejected(1, r(0), Rejection::BadAgreedValue), 1);
    let unproved = LogEntry::new(Proposal::default(), request);
    let [made_up, _] = order(&run, (0, Digest::ZERO), &[&unproved.request]);
    run.net.forge(r(0), r(1), made_up);
    let bodies = SwitchMessage::Bodies(Bodies(vec![unproved]));
    run.net.forge(r(0), r(1), Message::Switch(Switch { instance: INSTANCE, message: bodies }));
    run.settle();
    assert!(run.net.said(r(1), "PREP").iter().all(|frame| frame.message.to_string().contains("p0 ")));
}

/// Only what the sequencer has signed itself costs more than that.
#[test]
fn an_order_of_another_costs_no_signatures() {
    let mut run = ring(3);
    let mut requests = ask_all_but_the_sequencer(&mut run, 3);
    // By their signatures alone.
    requests.iter_mut().for_each(|request| request.authentication.tags = Authenticator::default());
    let [order, _] = order(&run, (0, Digest::ZERO), &requests.iter().collect::<Vec<_>>());
    let checked = |run: &Run| run.net.keyring(r(1)).counters().signatures_checked.get();
    let before = checked(&run);
    run.net.forge(r(3), r(1), order);
    run.settle();
    assert_eq!(run.net.rejected(1, r(3), Rejection::WrongSender), 1);
    assert_eq!(checked(&run), before);
}

/// Those who serve have restarted meanwhile, and their logs do not tell the proofs of clients.
#[test]
fn who_missed_what_nobody_can_prove_any_more_takes_part() {
    for inline_bytes_max in [0, 4] {
        let mut run = without_r3_and(1, |limits| limits.inline_bytes_max = inline_bytes_max);
        run.invoke(0);
        run.settle();
        for id in 0..3 {
            run.net.restart(id, false);
        }
        run.settle();
        r3_takes_part(run);
    }
}

/// What waits for the bodies of an ORDER waits for no others: not for those of ORDERs that came to nothing.
#[test]
fn only_bodies_of_the_next_order_are_waited_for() {
    let mut run = ring(1);
    run.liar = Some(0);
    run.net.lose(|frame| frame.from == r(0));
    let unknown: Vec<Request> =
        (1..=4).map(|session| run.net.request(INSTANCE, 90 + session, 1, &session.to_le_bytes())).collect();
    for count in (1..=4).rev() {
        let [message, _] = order(&run, (0, Digest::ZERO), &unknown[..count].iter().collect::<Vec<_>>());
        let Message::Resilient(Resilient { instance, message: ResilientMessage::Order(mut order) }) = message else {
            unreachable!()
        };
        let entries = unknown[..count].iter().map(|request| Entry::Reference(Reference::to(request))).collect();
        order.batch = Batch::new(order.batch.proposal().clone(), entries);
        let message = ResilientMessage::Order(order);
        run.net.forge(r(0), r(1), Message::Resilient(Resilient { instance, message }));
        run.settle();
    }
    run.net.sent.clear();
    run.pass(300);
    let asked = run.net.said(r(1), "RING-FETCH").first().map(|frame| frame.message.clone());
    let Some(Message::Resilient(Resilient { message: ResilientMessage::Fetch(fetch), .. })) = asked else {
        panic!("it asks")
    };
    assert_eq!(fetch.0, [unknown[0].digest()]);
}
