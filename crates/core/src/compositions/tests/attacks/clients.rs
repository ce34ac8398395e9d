//! What clients try: floods, MACs that convince some replicas only, two operations under one number.

use crate::auth::Tag;
use crate::batch::{Batch, Entry};
use crate::client::Completion;
use crate::cluster::{ClientAuth, Cluster, Limits};
use crate::compositions::tests::run::Run;
use crate::digest::Digest;
use crate::ids::{ClientId, InstanceId, Principal, Timestamp, View};
use crate::message::{Refusal, Reply, Request};
use crate::protocols::pbft::{PbftMessage, PrePrepare};
use crate::registry::Message;
use crate::rejection::Rejection;
use crate::schedule::{Order, Part, Protocol, Quota, Schedule};
use crate::service::Proposal;
use crate::shares::CLIENT_SET_MAX;
use crate::switching::{Panic, Switch, SwitchMessage};
use crate::testing::journal::Journal;
use crate::testing::net::{Frame, IDENTITY, Net, c, cluster, kind, ordering, r};
use alloc::sync::Arc;
use alloc::vec;
use alloc::vec::Vec;
use core::cell::Cell;

/// The request without good MACs but for some replicas.
pub(super) fn spoilt(mut request: Request, good: &[usize]) -> Request {
    let tags = request.authentication.tags.iter().enumerate();
    let zero = Tag::from_bytes([0; 16]);
    request.authentication.tags = tags.map(|(id, tag)| if good.contains(&id) { tag } else { zero }).collect();
    request
}

/// abs-K1: a client floods the head. It has one place in the queue, like everybody else.
#[test]
fn k01_a_flood_takes_one_place_in_the_queue() {
    for protocol in [Protocol::ZLight, Protocol::Chain] {
        let mut run = Run::new(protocol, 4, 2, 1);
        for timestamp in 1..=300 {
            let operation = run.reserve();
            let request = run.net.request(InstanceId(1), 1, timestamp, &operation);
            run.ask(&request, [0]);
        }
        let much = vec![0; run.net.cluster.limits.operation_bytes_max + 1];
        let request = run.net.request(InstanceId(1), 1, 301, &much);
        run.ask(&request, [0]);
        run.invoke(0);
        run.settle();
        assert!(run.is_idle(), "{protocol}");
        assert_eq!(run.net.hosts[0].replica.estate().position(), 2, "{protocol}: its newest, and the other's");
        assert_eq!(run.net.rejected(0, c(1), Rejection::TooLarge), 1, "{protocol}");
        assert!(!run.anybody_said("PANIC"), "{protocol}");
        run.check();
    }
}

/// No replica keeps what is too long, and none would answer it. Its own client says so, and can ask again.
#[test]
fn an_operation_that_is_too_long_ends_where_it_begins() {
    for (protocol, _) in endings() {
        let mut net = with_a_full_table(protocol);
        let (sent, calls) = (net.said(c(0), "REQUEST").len(), net.completed.len());
        let much = vec![0; net.cluster.limits.operation_bytes_max + 1];
        net.submit(0, &much, false);
        net.settle();
        assert_eq!(net.said(c(0), "REQUEST").len(), sent, "{protocol}");
        assert_eq!(net.completed[calls..].len(), 1, "{protocol}");
        assert_eq!(net.completed[calls].result, Completion::Refused(Refusal::TooLarge), "{protocol}");
        serve(&mut net, 0);
    }
}

/// abs-K2: requests whose MACs convince some replicas only: the first, all but one, only the last. Each costs one
/// instance at most. A Backup has a primary that wants a signature, and does not notice.
#[test]
fn k02_malformed_macs_cost_one_instance_and_no_backup() {
    for protocol in [Protocol::Quorum, Protocol::ZLight, Protocol::Chain] {
        for good in [&[0][..], &[0, 1, 2], &[3]] {
            let mut run = Run::new(protocol, 4, 2, 1);
            let operation = run.reserve();
            let request = run.net.request(InstanceId(1), 1, 1, &operation);
            let request = spoilt(request.authenticate_for_all(&run.net.cluster, &run.net.client_keys), good);
            run.ask(&request, 0..4);
            run.invoke(0);
            run.finish();
            // Who is first decides in ZLight and Chain; in Chain the first f+1 places are to be convinced.
            let aborts = match protocol {
                Protocol::Quorum => true,
                Protocol::ZLight => good.contains(&0),
                _ => good == [0],
            };
            assert_eq!(run.instances(), [1 + u64::from(aborts); 4], "{protocol} {good:?}");
            if !aborts {
                continue;
            }
            let operation = run.reserve();
            let mut request = spoilt(run.net.request(InstanceId(2), 1, 2, &operation), good);
            request.authentication.signature = None;
            run.ask(&request, 0..4);
            run.invoke(0);
            run.finish();
            run.pass(10_000);
            assert_eq!(run.instances(), [2; 4], "{protocol} {good:?}");
            assert!(run.net.hosts.iter().all(|host| host.replica.report().view_changes == 0), "{protocol} {good:?}");
            run.check();
        }
    }
}

/// abs-K16: two operations under one number, to different replicas: one of them at most is ever executed.
#[test]
fn k16_one_number_means_one_operation() {
    for protocol in [Protocol::Quorum, Protocol::ZLight, Protocol::Chain, Protocol::Aliph] {
        let mut run = Run::new(protocol, 4, 2, 1);
        let operations = [run.reserve(), run.reserve()];
        for round in 0..4 {
            for instance in run.instances().into_iter().map(InstanceId) {
                let [one, other] = operations.map(|operation| run.net.request(instance, 1, 1, &operation));
                run.ask(&one, [0, 1]);
                run.ask(&other, [2, 3]);
                run.ask(&other, [0]);
            }
            run.invoke(0);
            run.finish();
            assert_eq!(run.commits.len(), round + 1);
        }
        let names = operations.map(u32::from_le_bytes);
        for journal in run.journals() {
            assert!(journal.iter().filter(|name| names.contains(name)).count() <= 1, "{protocol}: {journal:?}");
        }
        run.check();
    }
}

/// Who is not the client cannot ask in its name: neither another identity nor a replica without its MACs.
#[test]
fn k02_nobody_asks_in_the_name_of_another() {
    let mut run = Run::new(Protocol::Quorum, 4, 2, 1);
    let operation = run.reserve();
    let request = spoilt(run.net.request(InstanceId(1), 1, 1, &operation), &[]);
    for id in 0..3 {
        run.net.forge(r(3), r(id), Message::Request(request.clone()));
    }
    run.invoke(0);
    run.settle();
    assert!(run.is_idle());
    assert_eq!(run.commits[0].history.len(), 1, "nothing came before it");
    assert!((0..3).all(|id| run.net.rejected(id, r(3), Rejection::UnauthenticRequest) == 1));
}

/// A network whose clients' identity has as many sessions as it may, so that one more evicts the one used longest ago.
pub(super) fn with_a_full_table(protocol: Protocol) -> Net<Journal> {
    with_a_full_table_and(protocol, Run::cluster(protocol, 4).limits)
}

fn with_a_full_table_and(protocol: Protocol, limits: Limits) -> Net<Journal> {
    let cluster = Run::cluster(protocol, 4);
    let limits = Limits { sessions_per_identity_max: 2, ..limits };
    let mut net = Net::of(Cluster { limits, quota: Quota::Fixed(100), ..cluster }, 5, |_| Journal::default());
    net.settle();
    for session in 0..2 {
        serve(&mut net, session);
    }
    net
}

/// A client asks, and is served by those who run.
pub(super) fn serve(net: &mut Net<Journal>, session: usize) {
    net.now.0 += 10;
    net.submit(session, &(100 + net.completed.len() as u32).to_le_bytes(), false);
    net.settle();
    net.pass(1_500_000);
    let completed = net.completed.last().map(|completed| (completed.client.session as usize, &completed.result));
    assert!(matches!(completed, Some((served, Completion::Done(_))) if served == session), "{completed:?}");
}

/// Asks in the name of a new session, with a small number.
pub(super) fn ask_as(net: &mut Net<Journal>, session: u32, receivers: &[u8]) -> Request {
    let request = net.request(InstanceId(1), session, 1, &session.to_le_bytes());
    for to in receivers {
        net.forge(c(session), r(*to), Message::Request(request.clone()));
    }
    request
}

fn resilient_ring() -> Protocol {
    Protocol::Schedule(Schedule::new(&[Part::RingResilient]).unwrap())
}

/// abs-K28: two new sessions of a full table ask with small numbers, in one batch. Each is new when it is logged; the
/// first evicts a session, whose number the second is below.
#[test]
fn k28_what_is_stale_when_its_turn_comes_does_nothing() {
    // In a fast ring both have the same entry.
    let of_all = (resilient_ring(), [10, 11], &[0, 1, 2, 3][..]);
    let of_one =
        [(Protocol::ZLight, [10, 11], &[0][..]), (Protocol::Chain, [10, 11], &[0]), (Protocol::Ring, [10, 14], &[3])];
    for (protocol, sessions, receivers) in of_one.into_iter().chain([of_all]) {
        let mut net = with_a_full_table(protocol);
        for session in sessions {
            ask_as(&mut net, session, receivers);
        }
        net.settle();
        serve(&mut net, 0);
        for id in 0..4 {
            net.restart(id, false);
        }
        net.settle();
        serve(&mut net, 1);
        assert!(net.hosts.iter().all(|host| host.replica.instance().0 == 1), "{protocol}: nobody is to blame");
        for host in &net.hosts {
            let journal = &host.replica.service().entries;
            assert_eq!(journal.len(), 5, "{protocol}: {journal:?}");
            assert!(journal.contains(&sessions[0]) && !journal.contains(&sessions[1]), "{protocol}: {journal:?}");
            assert_eq!(host.replica.estate().position(), 6, "{protocol}: it has its place in the history");
        }
    }
}

/// abs-K28: the head of a chain logs a second batch before it executes the first. Those who execute each at once know
/// more.
#[test]
fn k28_a_head_that_executes_late_is_not_to_blame() {
    let limits = Limits { batch_requests_max: 1, ..Run::cluster(Protocol::Chain, 4).limits };
    let mut net = with_a_full_table_and(Protocol::Chain, limits);
    for session in [10, 11] {
        ask_as(&mut net, session, &[0]);
    }
    net.settle();
    serve(&mut net, 0);
    assert!(net.hosts.iter().all(|host| host.replica.instance().0 == 1));
}

/// abs-K28: a correct sequencer that has executed less than the others orders what is new as far as it knows.
#[test]
fn k28_who_has_executed_less_may_order_what_is_stale_for_others() {
    let mut net = with_a_full_table(resilient_ring());
    net.lose(|frame| kind(&frame.message) == "COMM" && frame.to == r(0));
    for session in [10, 11] {
        ask_as(&mut net, session, &[0, 1, 2, 3]);
        net.settle();
    }
    net.heal();
    serve(&mut net, 0);
    assert!(net.hosts.iter().all(|host| host.replica.instance().0 == 1));
}

/// abs-K29: a Backup has executed a request, its client has not heard of it, and other sessions evict it. A lying
/// primary orders it again. Nobody knows any more what came of it, and nobody says that nothing did.
#[test]
fn k29_what_was_executed_and_forgotten_is_not_called_refused() {
    let mut net =
        with_a_full_table(Protocol::Schedule(Schedule::new(&[Part::Backup(Order::Pbft), Part::Quorum]).unwrap()));
    net.lose(|frame| frame.to == c(0));
    net.submit(0, &7_u32.to_le_bytes(), false);
    net.settle();
    let mut asked = net.sent.iter().rev().filter(|frame| frame.from == c(0));
    let Some(Message::Request(request)) = asked.next().map(|frame| frame.message.clone()) else { panic!("it asks") };
    for session in [10, 11] {
        let mut request = net.request(InstanceId(1), session, request.timestamp.0 + 1, &session.to_le_bytes());
        request = request.authenticate(&net.cluster, &net.client_keys);
        net.forge(c(session), r(0), Message::Request(request));
        net.settle();
    }
    assert_eq!(net.hosts[3].replica.service().entries[2..], [7, 10, 11], "all are executed");
    net.heal();
    let sequence = net.hosts[3].replica.estate().executed().next();
    let proposal = Proposal { time: net.now, seed: Digest::ZERO };
    let batch = Arc::new(Batch::new(proposal, vec![Entry::Inline(request)]));
    let pre_prepare = PbftMessage::PrePrepare(PrePrepare { view: View(0), sequence, batch });
    for id in 1..4 {
        net.forge(r(0), r(id), ordering(pre_prepare.clone()));
    }
    net.settle();
    net.pass(3_000_000);
    let told = net.completed.iter().filter(|done| done.client.session == 0).map(|done| &done.result);
    assert_eq!(told.last(), Some(&Completion::TooLate(Refusal::StaleTimestamp)));
}

/// Every protocol, and how a call ends there whose session was evicted.
fn endings() -> [(Protocol, Completion); 7] {
    let too_late = || Completion::TooLate(Refusal::StaleTimestamp);
    let limited = Protocol::Schedule(Schedule::new(&[Part::Backup(Order::Pbft), Part::Quorum]).unwrap());
    [
        (Protocol::Quorum, Completion::Unknown),
        (Protocol::ZLight, Completion::Unknown),
        (Protocol::Chain, Completion::Unknown),
        (Protocol::Ring, Completion::Unknown),
        (Protocol::Pbft, too_late()),
        (limited, too_late()),
        (resilient_ring(), too_late()),
    ]
}

/// A request of session 0 is on its way while other sessions of the full table ask: those up to this one.
fn overtaken(protocol: Protocol, last: usize) -> Net<Journal> {
    let mut net = with_a_full_table(protocol);
    net.lose(|frame| frame.from == c(0));
    net.submit(0, &7_u32.to_le_bytes(), false);
    for session in 2..=last {
        net.submit(session, &(10 + session as u32).to_le_bytes(), false);
        net.settle();
        assert!(net.completed.last().is_some_and(|done| done.client.session as usize == session), "{protocol}");
    }
    net.heal();
    net
}

/// How session 0's calls ended, but for its first.
fn ended(net: &Net<Journal>) -> Vec<&Completion> {
    let of_session = net.completed.iter().filter(|done| done.client.session == 0).skip(1);
    of_session.map(|done| &done.result).collect()
}

/// abs-K31: an identity's other sessions evict one whose request is under way. Its client is told, and stops no
/// instance.
#[test]
fn k31_who_is_evicted_with_a_request_under_way_is_told() {
    for (protocol, ending) in endings() {
        let mut net = overtaken(protocol, 4);
        net.pass(3_000_000);
        assert_eq!(ended(&net), [&ending], "{protocol}");
        assert_eq!(net.hosts[0].replica.service().entries, [100, 101, 12, 13, 14], "{protocol}");
        assert!(net.hosts.iter().all(|host| host.replica.instance() == InstanceId(1)), "{protocol}: nobody stops");
        serve(&mut net, 0);
    }
}

#[test]
fn k31_f_replicas_tell_nobody_that_it_is_too_late() {
    for (protocol, _) in endings() {
        let mut net = overtaken(protocol, 4);
        net.lose(|frame| frame.to == c(0) && frame.from != r(3));
        net.pass(600_000);
        assert!(net.said(r(3), "REPLY").iter().any(|frame| frame.to == c(0)), "{protocol}");
        assert!(ended(&net).is_empty(), "{protocol}");
        net.heal();
        net.pass(10_000_000);
        assert_eq!(ended(&net).len(), 1, "{protocol}");
    }
}

/// abs-K31: the same, of a request that is not too late at all, said again and again.
#[test]
fn k31_f_liars_end_no_call() {
    for (protocol, _) in endings() {
        let mut net = overtaken(protocol, 1);
        let asked = net.said(c(0), "REQUEST").last().map(|frame| frame.message.clone());
        let Some(Message::Request(request)) = asked else { panic!("it has asked") };
        for _ in 0..3 {
            net.forge(r(3), c(0), Message::Reply(Reply::too_late(View(0), &request)));
        }
        net.settle();
        assert!(ended(&net).is_empty(), "{protocol}");
        net.pass(3_000_000);
        assert!(matches!(ended(&net)[..], [Completion::Done(_)]), "{protocol}");
    }
}

/// abs-K31: the batch that evicts the last session may be undone. Until it is final nobody says that it is too late.
#[test]
fn k31_what_a_tentative_batch_made_too_late_is_not_told() {
    let mut net = overtaken(Protocol::Pbft, 3);
    net.lose(|frame| kind(&frame.message) == "COMMIT");
    net.submit(4, &14_u32.to_le_bytes(), false);
    net.settle();
    assert!(net.hosts.iter().all(|host| host.replica.estate().is_tentative()), "it is executed");
    net.pass(600_000);
    assert!(net.said(c(0), "REQUEST").len() > 4, "everybody is asked");
    assert!(ended(&net).is_empty());
    net.heal();
    net.pass(3_000_000);
    assert_eq!(ended(&net), [&Completion::TooLate(Refusal::StaleTimestamp)]);
}

/// abs-K31: a resilient ring whose sequencer is silent has no init history, by which to say that a request is too late.
/// Nor does it stay for ever, although nobody else asks for anything.
#[test]
fn k31_a_silent_sequencer_keeps_nobody_waiting() {
    let schedule = Schedule::new(&[Part::Quorum, Part::RingResilient, Part::Backup(Order::Pbft)]).unwrap();
    let mut net = overtaken(Protocol::Schedule(schedule), 4);
    let sequencer = Principal::Replica(schedule.head(net.cluster.replicas, InstanceId(2)));
    let is_late = |frame: &Frame| frame.from == c(1) && frame.message.instance() == Some(InstanceId(2));
    // Were it known to be missing, the ring would be left at once.
    let is_cut = move |frame: &Frame| [frame.from, frame.to].contains(&sequencer) && kind(&frame.message) != "PRESENT";
    net.lose(move |frame| is_cut(frame) || frame.from == c(0) || is_late(frame));
    net.submit(1, &15_u32.to_le_bytes(), false);
    let begun = |net: &Net<Journal>| net.hosts.iter().filter(|host| host.replica.instance().0 == 2).count();
    for _ in 0..100 {
        net.pass(50_000);
        if begun(&net) == 3 {
            break;
        }
    }
    assert_eq!(begun(&net), 3);
    net.lose(move |frame| is_cut(frame) || frame.from == c(1));
    net.pass(20_000_000);
    assert_eq!(ended(&net), [&Completion::TooLate(Refusal::StaleTimestamp)]);
}

/// abs-K31: what a copy of a request by somebody else leads to is nobody's answer.
#[test]
fn k31_only_who_asks_is_told() {
    for (protocol, _) in endings() {
        let mut net = overtaken(protocol, 4);
        let asked = net.said(c(0), "REQUEST").last().map(|frame| frame.message.clone());
        let Some(Message::Request(request)) = asked else { panic!("it has asked") };
        let request = request.authenticate_for_all(&net.cluster, &net.client_keys);
        let before = net.sent.len();
        for id in 0..3 {
            net.forge(r(3), r(id), Message::Request(request.clone()));
        }
        net.settle();
        assert!(net.sent[before..].iter().all(|frame| frame.to != c(0)), "{protocol}");
        assert_eq!(net.rejected(0, r(3), Rejection::StaleTimestamp), 1, "{protocol}");
    }
}

/// abs-K30: an identity keeps the primary's pool full, and has the others watch one request more.
fn flooded(lose_what_is_passed_on: bool) -> Net<Journal> {
    let limits = Limits { pending_requests_max: 2, batches_in_flight_max: 1, ..Limits::default() };
    let mut net = Net::of(cluster(4, ClientAuth::Hybrid, limits), 2, |_| Journal::default());
    let watched = net.request(InstanceId(1), 0, 1_000_000, &[7; 4]);
    let first = Cell::new(3_u8);
    net.lose(move |frame| {
        let is_passed_on = kind(&frame.message) == "REQUEST" && frame.from != c(0);
        is_passed_on && lose_what_is_passed_on && first.replace(first.get().saturating_sub(1)) > 0
    });
    for id in 1..4 {
        net.forge(c(0), r(id), Message::Request(watched.clone()));
    }
    let mut session = 100;
    for _ in 0..400 {
        // Whatever makes room, the room is taken at once.
        let others = core::mem::take(&mut net.in_flight);
        for frame in others.into_iter().map(Some).chain([None]) {
            net.in_flight.extend(frame);
            for _ in 0..2 {
                session += 1;
                let request = net.request(InstanceId(1), session, session.into(), &session.to_le_bytes());
                net.forge(c(session), r(0), Message::Request(request));
            }
        }
        net.round();
        net.now.0 += 10_000;
        net.fire_before(net.now);
    }
    net.settle();
    assert!(
        net.rejected(0, c(0), Rejection::Overload) + net.rejected(0, r(0), Rejection::Overload) > 100,
        "it is full"
    );
    net
}

#[test]
fn k30_a_full_primary_has_room_for_what_is_watched() {
    for lose_what_is_passed_on in [false, true] {
        let net = flooded(lose_what_is_passed_on);
        assert_eq!(net.views(), [0; 4], "nobody suspects a correct primary");
        assert!(net.hosts[1].replica.service().entries.contains(&u32::from_le_bytes([7; 4])));
    }
}

/// abs-K30: what waits at a backup, and other sessions of its identity have evicted since, is no reason to suspect
/// anybody.
#[test]
fn k30_what_is_stale_is_not_watched() {
    let limits = Limits { sessions_per_identity_max: 2, ..Limits::default() };
    let mut net = Net::of(cluster(4, ClientAuth::Hybrid, limits), 2, |_| Journal::default());
    let watched = net.request(InstanceId(1), 0, 5, &[7; 4]);
    net.lose(|frame| kind(&frame.message) == "REQUEST");
    for id in 1..4 {
        net.forge(c(0), r(id), Message::Request(watched.clone()));
    }
    for session in 100..103 {
        let request = net.request(InstanceId(1), session, 9, &session.to_le_bytes());
        net.forge(c(session), r(0), Message::Request(request));
        net.settle();
    }
    net.pass(20_000_000);
    assert_eq!(net.views(), [0; 4]);
    assert!(net.hosts.iter().all(|host| host.replica.report().pending_requests == 0));
}

/// abs-K30: what one identity says of sessions that it does not have is not remembered for each of them, nor answered
/// when the next instance begins.
#[test]
fn k30_panics_of_many_sessions_are_not_all_remembered() {
    let mut run = Run::new(Protocol::Ring, 4, 1, 1);
    for session in 0..20_000 {
        let client = ClientId { identity: IDENTITY, session: 1_000 + session };
        let message = SwitchMessage::Panic(Panic { client, timestamp: Timestamp(1) });
        run.net.forge(c(0), r(1), Message::Switch(Switch { instance: InstanceId(1), message }));
    }
    run.settle();
    run.net.sent.clear();
    run.net.isolate(&[3]);
    run.invoke(0);
    run.finish();
    let told = run.net.said(r(1), "ACTIVE").into_iter().filter(|frame| frame.to != c(0));
    assert_eq!(told.count(), CLIENT_SET_MAX);
}

/// Of an identity's rejections there is one count, however many sessions it has.
#[test]
fn k30_rejections_are_counted_by_identity() {
    let mut run = Run::new(Protocol::Quorum, 4, 1, 1);
    for session in 0..100 {
        let request = run.net.request(InstanceId(1), session, 0, &[7; 4]);
        run.net.forge(c(session), r(1), Message::Request(request));
    }
    run.settle();
    assert_eq!(run.net.rejected(1, c(0), Rejection::StaleTimestamp), 100);
    assert_eq!(run.net.hosts[1].replica.report().rejections.len(), 1);
}
