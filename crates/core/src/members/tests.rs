//! prac-I7: no session id is used twice, no request of an old session is executed, a key has one session at most, and
//! the table is the same everywhere, also after restarts and transfers.

use super::Admission;
use crate::batch::{Batch, Entry, Ordered};
use crate::client::{Completion, Read, Submit};
use crate::cluster::{ClientAuth, Cluster, Limits};
use crate::compositions::objection;
use crate::ids::{ClientId, Principal, Timestamp, View};
use crate::joining::{Credential, Join, SessionId};
use crate::machine::{Destination, Input, Machine};
use crate::message::{Outcome, Refusal, Request};
use crate::registry::Message;
use crate::rejection::Rejection;
use crate::schedule::{Protocol, Quota};
use crate::service::Proposal;
use crate::services::Counter;
use crate::testing::net::{Frame, INSTANCE, Net, c, cluster, done, kind, r};
use crate::time::{Duration, Instant};
use crate::wire::Wire;
use alloc::collections::BTreeSet;
use alloc::sync::Arc;
use alloc::vec::Vec;
use bytes::Bytes;

fn limits() -> Limits {
    Limits { checkpoint_interval: 4, members_max: 3, ..Limits::default() }
}

fn net() -> Net {
    net_with(limits())
}

fn net_with(limits: Limits) -> Net {
    Net::of(cluster(4, ClientAuth::Hybrid, limits).with_dynamic_clients(), 1, |_| Counter::default())
}

const FAR: Instant = Instant(u64::MAX);

/// A stranger joins: its admission, or why not.
fn join(net: &mut Net, client: usize, nonce: u8) -> Result<Admission, Completion> {
    net.now.0 += 10;
    net.drive_client(client, |client, now, out| client.join(now, [nonce; 16], Bytes::new(), FAR, out));
    net.settle();
    let completed = net.completed.pop().expect("the JOIN is answered");
    match completed.result {
        Completion::Done(bytes) => Ok(Admission::from_bytes(bytes).unwrap()),
        other => Err(other),
    }
}

fn enter(net: &mut Net, client: usize, nonce: u8) -> Admission {
    let admission = join(net, client, nonce).unwrap();
    let now = net.now;
    net.clients[client].enter(now, admission, 0);
    admission
}

fn leave(net: &mut Net, client: usize, admission: Admission) -> Completion {
    net.now.0 += 10;
    net.drive_client(client, |client, now, out| client.leave(now, admission, FAR, out));
    net.settle();
    net.completed.pop().expect("the LEAVE is answered").result
}

fn add(net: &mut Net, client: usize, amount: u64) -> Option<Completion> {
    net.submit(client, &Counter::add(amount), false);
    net.settle();
    net.completed.pop().map(|completed| completed.result)
}

/// The table as each replica has it.
fn tables_agree(net: &Net) {
    let first = net.hosts[0].replica.estate();
    for host in &net.hosts[1..] {
        let estate = host.replica.estate();
        assert_eq!(estate.executed(), first.executed());
        assert_eq!(estate.members(), first.members());
    }
}

fn forward(net: &mut Net, request: Request) {
    for id in 0..4 {
        net.forge(net.clients[1].party(), r(id), Message::Request(request.clone()));
    }
    net.settle();
}

/// The request that this client sent last.
fn last_request(net: &Net, client: usize) -> Request {
    let me = net.clients[client].party();
    let sent = net.sent.iter().rev().filter(|frame| frame.from == me);
    sent.filter_map(|frame| if let Message::Request(request) = &frame.message { Some(request.clone()) } else { None })
        .next()
        .unwrap()
}

#[test]
fn a_client_that_nobody_named_joins_asks_and_leaves() {
    let mut net = net();
    let client = net.stranger(77);
    let admission = enter(&mut net, client, 1);
    assert!(admission.identity.is_member());
    assert_eq!(add(&mut net, client, 5), done(5));
    assert_eq!(net.add(1), done(6), "those who are named go on as before");
    net.submit(client, Counter::READ, true);
    net.settle();
    assert_eq!(net.completed.pop().map(|completed| completed.result), done(6));
    assert_eq!(net.hosts[0].replica.estate().members().live(), 1);
    assert_eq!(leave(&mut net, client, admission), Completion::Done(Bytes::new()));
    assert_eq!(net.hosts[0].replica.estate().members().live(), 0);
    tables_agree(&net);
    let now = net.now;
    net.clients[client].enter(now, admission, 0);
    assert_eq!(add(&mut net, client, 5), Some(Completion::Ended(Refusal::NoSession)));
    assert_eq!(net.read(), done(6));
}

/// A schedule of Backups: each hands on after three requests, and the next begins with the members of the one before.
#[test]
fn who_has_joined_is_a_member_in_every_instance_that_follows() {
    let schedule = Protocol::Schedule("backup(pbft)".parse().unwrap());
    let open = cluster(4, ClientAuth::Hybrid, limits()).with_dynamic_clients().with_protocol(schedule);
    let mut net = Net::of(Cluster { quota: Quota::Fixed(3), ..open }, 1, |_| Counter::default());
    let client = net.stranger(77);
    let admission = enter(&mut net, client, 1);
    for sum in 1..=8 {
        assert_eq!(add(&mut net, client, 1), done(sum));
    }
    assert!(net.hosts.iter().all(|host| host.replica.instance().0 >= 3));
    assert_eq!(leave(&mut net, client, admission), Completion::Done(Bytes::new()));
    tables_agree(&net);
    let now = net.now;
    net.clients[client].enter(now, admission, 0);
    assert_eq!(add(&mut net, client, 5), Some(Completion::Ended(Refusal::NoSession)));
    let again = enter(&mut net, client, 2);
    assert_ne!(admission, again);
    assert_eq!(add(&mut net, client, 1), done(9));
}

/// Where what was executed may be taken back, so may a JOIN.
#[test]
fn nobody_joins_where_instances_speculate() {
    for (protocol, may) in [("pbft", true), ("aliph", false), ("ring", false), ("backup(pbft), quorum", false)] {
        let protocol: Protocol = protocol.parse().unwrap();
        let open = cluster(4, ClientAuth::Hybrid, limits()).with_dynamic_clients().with_protocol(protocol);
        assert_eq!(objection(&open).is_none(), may, "{protocol}");
    }
}

#[test]
fn where_nobody_may_join_a_stranger_has_no_keys_and_no_answer() {
    let closed = cluster(4, ClientAuth::Hybrid, limits());
    let open = closed.clone().with_dynamic_clients();
    assert_ne!(closed.digest(), open.digest());
    let net = Net::of(closed, 1, |_| Counter::default());
    assert!(!net.keyring(r(0)).admits_strangers());
}

/// prac-F25. The old session's request, properly signed, is proposed again after its client left and came back.
#[test]
fn a_request_of_an_old_session_is_never_executed() {
    let mut net = net();
    let client = net.stranger(77);
    let old = enter(&mut net, client, 1);
    assert_eq!(add(&mut net, client, 5), done(5));
    let replayed = last_request(&net, client);
    assert_eq!(leave(&mut net, client, old), Completion::Done(Bytes::new()));
    let new = enter(&mut net, client, 2);
    assert_ne!(old.session, new.session);
    assert_ne!(old.identity, new.identity);
    forward(&mut net, replayed.clone());
    // A faulty primary orders it all the same: nobody is blamed, and it is not executed (prac-F26).
    let mut estate = net.hosts[1].replica.estate().clone();
    let before = (estate.service().clone(), estate.position());
    let batch = Arc::new(Batch::new(Proposal::default(), alloc::vec![Entry::Inline(replayed.clone())]));
    let ordered =
        Ordered { sequence: estate.executed().next(), view: View(0), batch, bodies: Vec::new(), standing: None };
    let mut outcomes = Vec::new();
    let cluster = net.cluster.clone();
    estate.execute(&cluster, ordered, true, |_, outcome, now| outcomes.push((outcome.clone(), now)));
    assert_eq!(outcomes, [(Outcome::Refused(Refusal::TakenOver), false)]);
    assert_eq!((estate.service().clone(), estate.position()), before);
    for id in 0..4 {
        let estate = net.hosts[id].replica.estate();
        assert!(matches!(estate.freshness(&replayed), crate::clients::Freshness::Gone(Refusal::TakenOver)));
    }
    assert_eq!(add(&mut net, client, 1), done(6));
}

/// prac-F25: LEAVE and JOIN are answered again, and are not executed again.
#[test]
fn join_and_leave_are_answered_again_and_executed_once() {
    let mut net = net();
    let client = net.stranger(77);
    let admission = enter(&mut net, client, 1);
    let joined = last_request(&net, client);
    let replies = net.said(r(0), "REPLY").len();
    forward(&mut net, joined.clone());
    assert_eq!(net.said(r(0), "REPLY").len(), replies + 1, "the same answer again");
    assert_eq!(net.hosts[0].replica.estate().members().live(), 1, "once");
    leave(&mut net, client, admission);
    let left = last_request(&net, client);
    let replies = net.said(r(0), "REPLY").len();
    forward(&mut net, left);
    assert_eq!(net.said(r(0), "REPLY").len(), replies + 1);
    forward(&mut net, joined);
    assert_eq!(net.hosts[0].replica.estate().members().live(), 0, "an old JOIN does not bring it back");
    tables_agree(&net);
}

/// prac-F28: a key has one session; the one before learns what became of it; and it takes time.
#[test]
fn joining_again_takes_over_but_not_at_once() {
    let mut net = net();
    let (first, second) = (net.stranger(77), net.stranger(77));
    let old = enter(&mut net, first, 1);
    assert_eq!(join(&mut net, second, 2), Err(Completion::Refused(Refusal::TooSoon)));
    assert_eq!(add(&mut net, first, 1), done(1));
    net.pass(limits().takeover_interval.0 + 1);
    let new = enter(&mut net, second, 3);
    assert_ne!(new.session, old.session);
    assert_eq!(net.hosts[0].replica.estate().members().live(), 1);
    assert_eq!(add(&mut net, second, 1), done(2));
    // Both hear every answer to their key; only the one that asked has use for it.
    net.submit(first, &Counter::add(1), false);
    net.settle();
    assert_eq!(net.completed.pop().unwrap().result, Completion::Ended(Refusal::TakenOver));
    assert_eq!(net.read(), done(2));
}

/// prac-F27: nobody is evicted while there is room or while all are in use; then the one that was silent longest is.
#[test]
fn only_a_full_table_evicts_and_only_the_stale() {
    let mut net = net();
    let clients: Vec<usize> = (0..4).map(|n| net.stranger(100 + n)).collect();
    for client in &clients[..3] {
        enter(&mut net, *client, 1);
    }
    assert_eq!(join(&mut net, clients[3], 1), Err(Completion::Refused(Refusal::Full)));
    let stale = limits().session_stale_after.0;
    net.pass(stale / 2);
    assert_eq!(add(&mut net, clients[0], 1), done(1));
    net.pass(stale / 2 + 1_000);
    enter(&mut net, clients[3], 2);
    assert_eq!(add(&mut net, clients[0], 1), done(2), "it was used");
    assert_eq!(add(&mut net, clients[1], 1), Some(Completion::Ended(Refusal::NoSession)), "it was not");
    assert_eq!(add(&mut net, clients[2], 1), done(3), "one place was enough");
    tables_agree(&net);
}

/// prac-F27: a faulty primary's clock cannot make everybody stale.
#[test]
fn a_far_future_clock_at_the_primary_evicts_nobody() {
    let mut net = net();
    let clients: Vec<usize> = (0..4).map(|n| net.stranger(100 + n)).collect();
    for client in &clients[..3] {
        enter(&mut net, *client, 1);
    }
    net.skews[0] = 1 << 50;
    net.drive_client(clients[3], |client, now, out| client.join(now, [1; 16], Bytes::new(), FAR, out));
    net.settle();
    net.pass(20_000_000);
    let result = net.completed.pop().map(|completed| completed.result);
    assert_eq!(result, Some(Completion::Refused(Refusal::Full)));
    net.skews[0] = 0;
    for (turn, client) in clients[..3].iter().enumerate() {
        assert_eq!(add(&mut net, *client, 1), done(turn as u64 + 1));
    }
}

/// A JOIN as only a liar would write it.
fn forged(net: &Net, client: usize, nonce: u16, change: impl FnOnce(&mut Vec<crate::joining::Stamp>)) -> Request {
    forged_at(net, client, Timestamp(net.now.0), nonce, change)
}

fn forged_at(
    net: &Net,
    client: usize,
    timestamp: Timestamp,
    nonce: u16,
    change: impl FnOnce(&mut Vec<crate::joining::Stamp>),
) -> Request {
    let keyring = net.clients[client].keyring();
    let Principal::Key(key) = keyring.me() else { unreachable!() };
    let mut chosen = [0; 16];
    chosen[..2].copy_from_slice(&nonce.to_le_bytes());
    let credential = Credential { key, session: SessionId(chosen) };
    let stamp = |id: u8| {
        let cookie = crate::joining::Cookie { key, nonce: chosen, time: net.now };
        let signed = net.keyring(r(id)).sign(cookie);
        crate::joining::Stamp { replica: signed.signer(), time: net.now, signature: signed.signature() }
    };
    let mut stamps = alloc::vec![stamp(0), stamp(1)];
    change(&mut stamps);
    let join = Join { identification: Bytes::new(), stamps };
    let operation = join.to_bytes().into();
    let client = credential.joining();
    let request = Request::of_stranger(INSTANCE, client, credential, timestamp, false, operation);
    request.authenticate(&net.cluster, keyring)
}

fn members_after(mut net: Net, request: Request) -> usize {
    for id in 0..4 {
        net.forge(net.clients[1].party(), r(id), Message::Request(request.clone()));
    }
    net.settle();
    net.hosts[1].replica.estate().members().live()
}

/// prac-F23: cookies of f replicas, of one replica twice, of somebody else or with another time are none.
#[test]
fn a_join_needs_cookies_of_f_plus_1_different_replicas() {
    let mut net = net();
    let client = net.stranger(77);
    let tried =
        |change: fn(&mut Vec<crate::joining::Stamp>)| members_after(net.clone(), forged(&net, client, 9, change));
    assert_eq!(tried(|_| ()), 1, "as it should be");
    assert_eq!(tried(|stamps| stamps.truncate(1)), 0, "f are not enough");
    assert_eq!(tried(|stamps| stamps[1] = stamps[0]), 0, "one replica twice");
    assert_eq!(tried(|stamps| stamps.reverse()), 0, "in another order");
    assert_eq!(tried(|stamps| stamps[0].time += Duration(1)), 0, "another time");
    assert_eq!(tried(|stamps| stamps[0].replica.0 = 2), 0, "another replica");
    assert_eq!(tried(|stamps| stamps[0].replica.0 = 200), 0, "no replica");
}

#[test]
fn old_cookies_are_refused_at_the_agreed_time() {
    let mut net = net();
    let client = net.stranger(77);
    let request = forged(&net, client, 9, |_| ());
    net.pass(limits().cookie_lifetime.0 + 1_000_000);
    assert_eq!(members_after(net, request), 0);
}

/// Nobody can ask in the name of a key that is not his.
#[test]
fn another_key_is_not_to_be_had() {
    let mut net = net();
    let (client, thief) = (net.stranger(77), net.stranger(78));
    let admission = enter(&mut net, client, 1);
    let now = net.now;
    net.clients[thief].enter(now, admission, 0);
    net.submit(thief, &Counter::add(9), false);
    net.settle();
    assert_eq!(net.completed.pop().unwrap().result, Completion::Ended(Refusal::NoSession));
    let Principal::Key(key) = net.clients[client].party() else { unreachable!() };
    let credential = Credential { key, session: admission.session };
    let id = net.clients[client].id();
    let operation = Bytes::copy_from_slice(&Counter::add(9));
    let request = Request::of_stranger(INSTANCE, id, credential, Timestamp(net.now.0), false, operation);
    let request = request.authenticate(&net.cluster, net.clients[thief].keyring());
    net.forge(net.clients[thief].party(), r(0), Message::Request(request.clone()));
    net.forge(r(1), r(0), Message::Request(request));
    net.settle();
    assert_eq!(net.rejected(0, r(1), Rejection::UnauthenticRequest), 1);
    assert_eq!(net.read(), done(0));
}

/// F23c: whoever asks for a cookie sends more than it gets.
#[test]
fn an_answer_is_no_longer_than_its_question() {
    let mut net = net();
    let client = net.stranger(77);
    join(&mut net, client, 1).unwrap();
    let length = |from: Principal, to: Principal, what: &str| {
        let frame = net.said(from, what)[0].message.clone();
        frame.sealed(net.keyring(from), to).len()
    };
    let me = net.clients[client].party();
    assert!(length(r(1), me, "GIVEN") <= length(me, r(1), "ASK"));
}

/// JOINs wait among themselves: however many there are, others find room.
#[test]
fn a_flood_of_joins_does_not_fill_the_pool() {
    let mut net = net_with(Limits { pending_requests_max: 1_024, ..limits() });
    let client = net.stranger(77);
    net.isolate(&[1, 2, 3]);
    for nonce in 0..=crate::joining::JOINS_PENDING_MAX as u16 {
        net.now.0 += 1;
        let request = forged(&net, client, nonce, |_| ());
        net.forge(net.clients[client].party(), r(0), Message::Request(request));
    }
    net.settle();
    assert_eq!(net.hosts[0].replica.report().pending_requests, 1_024 / 8);
}

/// Three clients join while there are places for two JOINs and the primary is silent: each JOIN that comes again takes
/// the place of another. Somebody has to watch one of them all the same.
#[test]
fn joins_that_take_each_others_places_are_watched() {
    let mut net = net_with(Limits { pending_requests_max: 16, inline_bytes_max: 64, ..limits() });
    net.isolate(&[0]);
    for number in 0..3 {
        let client = net.stranger(100 + number);
        net.drive_client(client, |client, now, out| client.join(now, [1; 16], Bytes::new(), FAR, out));
    }
    net.settle();
    net.pass(30_000_000);
    assert_eq!(net.hosts[1].replica.estate().members().live(), 3);
    assert!(net.completed.iter().all(|completed| matches!(completed.result, Completion::Done(_))));
}

/// A replica watches a request that it could not pass on, and then the session ends: nobody will order it any more,
/// and no primary is to blame.
#[test]
fn what_can_no_longer_be_executed_waits_no_longer() {
    let mut net = net();
    let client = net.stranger(77);
    let admission = enter(&mut net, client, 1);
    net.lose(|frame| frame.from == r(3) && matches!(frame.message, Message::Request(_)));
    let credential = last_request(&net, client).credential().unwrap();
    let credential = Credential { session: admission.session, ..credential };
    let request = unsent(&net, client, 0, credential, &Counter::add(1));
    net.forge(net.clients[client].party(), r(3), Message::Request(request));
    net.settle();
    assert_eq!(net.hosts[3].replica.report().pending_requests, 1);
    assert_eq!(leave(&mut net, client, admission), Completion::Done(Bytes::new()));
    net.pass(10_000_000);
    assert_eq!(net.hosts[3].replica.report().pending_requests, 0);
    assert_eq!(net.views(), [0; 4]);
}

/// A request of a stranger, with its proof, which its machine did not send.
fn unsent(net: &Net, client: usize, session: u32, credential: Credential, operation: &[u8]) -> Request {
    let id = ClientId { session, ..net.clients[client].id() };
    let operation = Bytes::copy_from_slice(operation);
    let request = Request::of_stranger(INSTANCE, id, credential, Timestamp(net.now.0), false, operation);
    request.authenticate(&net.cluster, net.clients[client].keyring())
}

/// The primary orders a request so that replica 1 alone prepares it; from then on nobody hears anybody but clients.
fn leave_tentative(net: &mut Net, from: Principal, request: Request) {
    let between = |frame: &Frame| matches!((frame.from, frame.to), (Principal::Replica(_), Principal::Replica(_)));
    net.lose(move |frame| {
        let helps = (frame.from == r(0) || kind(&frame.message) == "PREPARE") && frame.to == r(1);
        let proposes = kind(&frame.message) == "PRE-PREPARE" && frame.to == r(2);
        between(frame) && !helps && !proposes
    });
    net.forge(from, r(0), Message::Request(request));
    net.settle();
    assert!(net.hosts[1].replica.estate().is_tentative());
    assert!(!net.hosts[2].replica.estate().is_tentative());
    net.lose(move |frame| between(frame) || frame.from == r(0) || frame.to == r(0));
}

/// One replica is silent, and another has a batch that will stay tentative: whose session is over learns it.
#[test]
fn a_session_is_over_whatever_else_is_tentative() {
    let mut net = net();
    let client = net.stranger(77);
    let admission = enter(&mut net, client, 1);
    leave(&mut net, client, admission);
    let other = net.request(INSTANCE, 0, net.now.0, &Counter::add(1));
    leave_tentative(&mut net, c(0), other);
    let now = net.now;
    net.clients[client].enter(now, admission, 0);
    net.submit(client, &Counter::add(5), false);
    net.pass(5_000_000);
    let result = net.completed.pop().map(|completed| completed.result);
    assert_eq!(result, Some(Completion::Ended(Refusal::NoSession)));
}

/// While the batch that ends a session may be undone, the session may have a future.
#[test]
fn a_session_that_ends_tentatively_is_not_called_over() {
    let mut net = net();
    let client = net.stranger(77);
    let admission = enter(&mut net, client, 1);
    let key = last_request(&net, client).credential().unwrap().key;
    let credential = Credential { key, session: admission.session };
    let me = net.clients[client].party();
    let asked = unsent(&net, client, 0, credential, &Counter::add(1));
    let left = unsent(&net, client, crate::joining::CONTROL_SESSION, credential, &[]);
    leave_tentative(&mut net, me, left);
    let said = net.said(r(1), "REPLY").len();
    net.forge(me, r(1), Message::Request(asked));
    net.settle();
    assert_eq!(net.hosts[1].replica.estate().members().live(), 0);
    assert_eq!(net.said(r(1), "REPLY").len(), said);
}

/// The table is state like any other: a restart, a rollback and a transfer bring it back as it was.
#[test]
fn joins_leaves_and_evictions_commute_with_restarts() {
    let mut net = net();
    let clients: Vec<usize> = (0..6).map(|n| net.stranger(100 + n)).collect();
    let mut sessions = BTreeSet::new();
    let mut total = 0;
    net.isolate(&[3]);
    for round in 0..6u8 {
        for (at, client) in clients.iter().enumerate() {
            if let Ok(admission) = join(&mut net, *client, round * 16 + at as u8) {
                assert!(sessions.insert(admission.session), "a session id is used once");
                let now = net.now;
                net.clients[*client].enter(now, admission, 0);
                total += 1;
                assert_eq!(add(&mut net, *client, 1), done(total));
                if at % 2 == 0 {
                    leave(&mut net, *client, admission);
                }
            }
        }
        net.restart(usize::from(round) % 3, false);
        net.pass(limits().session_stale_after.0 + 1_000_000);
    }
    assert!(sessions.len() > 12, "there was something to see: {}", sessions.len());
    net.heal();
    net.pass(5_000_000);
    assert_eq!(net.add(1), done(total + 1));
    net.pass(5_000_000);
    tables_agree(&net);
    for id in 0..4 {
        net.restart(id, false);
        net.pass(1_000_000);
    }
    tables_agree(&net);
    assert_eq!(net.add(1), done(total + 2));
}

#[test]
fn a_member_is_answered_at_its_key() {
    let mut net = net();
    let client = net.stranger(77);
    enter(&mut net, client, 1);
    let request = last_request(&net, client);
    assert_eq!(request.asker(), Destination::Key(request.credential().unwrap().key));
}

/// Whoever is told that it was too soon is told so again, by those who keep the answer: no copy of the JOIN is ordered
/// again, and none ends the session that was there before.
#[test]
fn a_join_that_was_refused_is_not_executed_later() {
    let mut net = net();
    let (first, second) = (net.stranger(77), net.stranger(77));
    enter(&mut net, first, 1);
    assert_eq!(join(&mut net, second, 2), Err(Completion::Refused(Refusal::TooSoon)));
    let (refused, before) = (last_request(&net, second), net.hosts[1].replica.estate().position());
    let replies = net.said(r(0), "REPLY").len();
    for _ in 0..3 {
        forward(&mut net, refused.clone());
    }
    assert_eq!(net.hosts[1].replica.estate().position(), before, "ordered once");
    assert_eq!(net.said(r(0), "REPLY").len(), replies + 3, "and answered as often as its client asks");
    net.pass(limits().takeover_interval.0 + 1);
    assert!(net.now < Instant(refused.join().unwrap().time().0 + limits().cookie_lifetime.0), "its cookies are good");
    for id in 0..3 {
        net.forge(r(3), r(id), Message::Request(refused.clone()));
    }
    net.settle();
    net.restart(2, false);
    net.settle();
    assert_eq!(add(&mut net, first, 1), done(1), "its session lives");
    enter(&mut net, second, 3);
    assert_eq!(add(&mut net, second, 1), done(2), "whoever joins anew takes over");
    tables_agree(&net);
}

/// A JOIN that found no place may come again. A view that begins with the batch in which it was refused does not take
/// it for proposed: that batch is executed, and not once more.
#[test]
fn a_join_that_found_no_place_is_ordered_again_in_a_later_view() {
    let mut net = net_with(Limits { checkpoint_interval: 128, ..limits() });
    let clients: Vec<usize> = (0..4).map(|number| net.stranger(100 + number)).collect();
    for client in &clients[..3] {
        enter(&mut net, *client, 1);
    }
    assert_eq!(join(&mut net, clients[3], 1), Err(Completion::Refused(Refusal::Full)));
    let refused = last_request(&net, clients[3]);
    net.isolate(&[0]);
    for id in 1..4 {
        net.forge(net.clients[clients[3]].party(), r(id), Message::Request(refused.clone()));
    }
    net.pass(5_000_000);
    assert_eq!(net.views()[1..], [1; 3]);
    assert_eq!(net.hosts[1].replica.estate().executed().0, 5);
}

/// A request that ended as unknown, and its session with it: under the next session it would be another request.
#[test]
fn nothing_is_asked_again_under_another_session() {
    let mut net = net();
    let client = net.stranger(77);
    let old = enter(&mut net, client, 1);
    let me = net.clients[client].party();
    net.lose(move |frame| frame.to == me);
    let operation = Bytes::copy_from_slice(&Counter::add(5));
    let submit = Submit {
        operation,
        is_bundle: false,
        read_only: false,
        read: Read::Quorum,
        deadline: Some(net.now + Duration(1_000_000)),
    };
    let again = Submit { deadline: None, ..submit.clone() };
    net.drive_client(client, |machine, now, out| machine.step(now, Input::Command(submit), out));
    net.settle();
    net.pass(2_000_000);
    let unknown = net.completed.pop().unwrap();
    assert_eq!(unknown.result, Completion::Unknown);
    net.heal();
    assert_eq!(leave(&mut net, client, old), Completion::Done(Bytes::new()));
    enter(&mut net, client, 2);
    let id = (unknown.client, unknown.timestamp);
    net.drive_client(client, |machine, now, out| machine.ask_again(now, id, again, out));
    net.settle();
    let told = net.completed.pop().unwrap();
    assert_eq!((told.result, told.client), (Completion::Ended(Refusal::NoSession), unknown.client));
    assert_eq!(net.read(), done(5), "executed once");
    assert_eq!(add(&mut net, client, 1), done(6), "and the client goes on");
}

/// The number of a JOIN lies in the time of its cookies: else one of the far future would be its key's last for ever. A
/// client whose clock is far off joins all the same.
#[test]
fn no_clock_closes_a_key_for_ever() {
    const FAR_OFF: u64 = 1 << 50;
    let mut net = net();
    let client = net.stranger(77);
    let far = forged_at(&net, client, Timestamp(u64::MAX), 7, |_| ());
    assert_eq!(members_after(net.clone(), far), 0);
    net.now.0 += FAR_OFF;
    for replicas_are_ahead in [-(FAR_OFF as i64), FAR_OFF as i64] {
        net.skews = alloc::vec![replicas_are_ahead; 4];
        let admission = enter(&mut net, client, 1 + u8::from(replicas_are_ahead > 0));
        assert_eq!(leave(&mut net, client, admission), Completion::Done(Bytes::new()));
    }
}
