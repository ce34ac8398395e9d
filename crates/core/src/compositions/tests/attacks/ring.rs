//! Flaws (F) of Ring as the thesis has it, and attacks (A) on it: the numbers are those of the note on Ring.

use crate::auth::Tag;
use crate::cluster::{ClientId, Cluster, IdentityId, InstanceId, Limits, ReplicaId, Timestamp};
use crate::compositions::Protocol;
use crate::compositions::tests::conformance::ring_fast;
use crate::compositions::tests::run::Run;
use crate::compositions::tests::script::panic;
use crate::digest::{Digest, Domain};
use crate::history::LogEntry;
use crate::machine::Principal;
use crate::message::{Message, Outcome, Request};
use crate::protocols::ring_fast::{
    Body, PER_ENTRY_MAX, PaceMessage, Path, Probe, RingMessage, RingPace, RingReply, Stamp, Strike, WINDOW,
};
use crate::rejection::Rejection;
use crate::replica::Notice;
use crate::service::Proposal;
use crate::switching::Switch;
use crate::testing::net::{c, kind, r};
use alloc::format;
use alloc::vec;
use alloc::vec::Vec;
use bytes::Bytes;

/// The sequencer of the first instance.
const SEQUENCER: ReplicaId = ReplicaId(0);

fn path(run: &Run, entry: u8) -> Path {
    Path::new(&run.net.cluster, SEQUENCER, ReplicaId(entry))
}

/// A client begins a call at this entry: the time decides which one it asks.
fn invoke_at(run: &mut Run, session: usize, entry: u8) {
    let Principal::Client(client) = c(session as u32) else { unreachable!() };
    let asks = |wait: &u64| {
        let at = Timestamp(run.net.now.0 + wait + 10);
        Path::entry_for(&run.net.cluster, client, at, 0) == ReplicaId(entry)
    };
    run.net.now.0 += (0..99).find(asks).unwrap();
    run.invoke(session);
}

/// A request for this entry which no machine makes, with its client's MACs.
fn request_at(run: &mut Run, session: u32, entry: u8, least: u64) -> Request {
    let Principal::Client(client) = c(session) else { unreachable!() };
    let asks = |at: &u64| Path::entry_for(&run.net.cluster, client, Timestamp(*at), 0) == ReplicaId(entry);
    let timestamp = (least..least + 99).find(asks).unwrap();
    let operation = run.reserve();
    run.net.request(InstanceId(1), session, timestamp, &operation)
}

/// Whether a replica has stopped, and why.
fn reason(run: &Run, id: usize) -> Option<&'static str> {
    let mut notices = run.net.hosts[id].notices.iter();
    notices.find_map(|(_, notice)| match notice {
        Notice::Stopped { reason, .. } => Some(*reason),
        _ => None,
    })
}

/// So many message delays.
fn rounds(run: &mut Run, count: usize) {
    for _ in 0..count {
        run.round();
    }
}

/// Takes the one message around the ring that is in flight.
fn intercepted(run: &mut Run) -> (Principal, Principal, RingMessage) {
    let at = run.net.in_flight.iter().position(|frame| matches!(frame.message, Message::Ring(_))).unwrap();
    let frame = run.net.in_flight.remove(at);
    let Message::Ring(message) = frame.message else { unreachable!() };
    (frame.from, frame.to, message)
}

/// Somebody asks this entry of a ring of n. The message that is under way after so many delays, from whom and to whom.
fn under_way(n: usize, entry: u8, delays: usize) -> (Run, Principal, Principal, RingMessage) {
    let mut run = Run::new(ring_fast(), n, 1, 1);
    invoke_at(&mut run, 0, entry);
    rounds(&mut run, delays);
    let (from, to, message) = intercepted(&mut run);
    (run, from, to, message)
}

/// The maker's MACs anew, for these receivers, over what `over` says.
fn resign(run: &Run, message: &mut RingMessage, maker: usize, receivers: &[usize], over: &RingMessage) {
    let path = path(run, message.entry.0);
    let statement = over.statement(&path, over.body.digest(), maker);
    let keyring = run.net.keyring(Principal::Replica(path.at(maker)));
    for (index, pair) in path.carried(maker).enumerate() {
        if pair.0 == maker && receivers.contains(&pair.1) {
            message.tags[index] = keyring.tag(Principal::Replica(path.at(pair.1)), &statement);
        }
    }
}

/// The batch of one request that an entry sends on.
fn of_entry(run: &Run, entry: u8, request: &Request) -> RingMessage {
    let mut request = request.clone();
    request.authentication.tags = request.authentication.tags.clone().iter().skip(1).collect();
    let body = Body::Requests(vec![request]);
    let (instance, entry) = (InstanceId(1), ReplicaId(entry));
    let tags = vec![Tag::from_bytes([0; 16]); path(run, entry.0).carried(0).count()];
    RingMessage { instance, entry, body, strikes: vec![], stamp: None, tags, reply_tags: vec![] }
}

/// Everybody in turn, all at once, from every entry: the numbers overlap, and nobody panics. Each client is told the
/// history at its own number, although later ones have been executed by then (F9).
#[test]
fn ring_f9_answers_tell_the_history_at_their_own_number() {
    for n in [4, 7] {
        let mut run = Run::new(ring_fast(), n, 8, 1);
        for _ in 0..5 {
            for session in 0..8 {
                run.invoke(session);
            }
            run.settle();
            assert!(run.is_idle() && !run.anybody_said("PANIC"), "n = {n}");
        }
        assert_eq!(run.commits.len(), 40);
        assert!(run.commits.iter().all(|commit| commit.position as usize == commit.history.len()));
        assert_eq!(run.instances(), vec![1; n]);
        run.check();
    }
}

/// S1 (F1): replica 2 gives a batch of a colluding client the number that the sequencer gave to another, and makes MACs
/// for that. Replica 3 knows that the batch has not been at the sequencer yet: it takes neither the number nor MACs
/// that cover one, whichever of the two is right.
#[test]
fn ring_f1_a_number_from_before_the_sequencer_is_not_taken() {
    for (in_header, in_tags, expected) in
        [(true, true, Rejection::Malformed), (true, false, Rejection::Malformed), (false, true, Rejection::BadMac)]
    {
        let mut run = Run::new(ring_fast(), 4, 4, 1);
        run.liar = Some(2);
        // Z enters at r1, and r2 keeps its ACK from r3.
        run.net.lose(|frame| frame.from == r(2) && frame.to == r(3) && kind(&frame.message) == "ACK");
        invoke_at(&mut run, 0, 1);
        run.settle();
        assert_eq!(run.journals().iter().map(Vec::len).collect::<Vec<_>>(), [1, 1, 0]);
        let request = request_at(&mut run, 1, 2, 1);
        let mut honest = of_entry(&run, 2, &request);
        let entry = LogEntry::new(Proposal::default(), request);
        let stamp = Stamp { first: 1, proposal: Proposal::default(), history: Digest::ZERO.chain(entry.digest()) };
        let stamped = RingMessage { stamp: Some(stamp), ..honest.clone() };
        let mut lie = if in_header { stamped.clone() } else { honest.clone() };
        if in_tags {
            // As if the sequencer had been passed at position 0: its own path says where.
            let own = Path::new(&run.net.cluster, ReplicaId(2), ReplicaId(3));
            let statement = stamped.statement(&own, stamped.body.digest(), own.stamp());
            for (index, (_, receiver)) in path(&run, 2).carried(0).enumerate() {
                let to = Principal::Replica(path(&run, 2).at(receiver));
                lie.tags[index] = run.net.keyring(r(2)).tag(to, &statement);
            }
        } else {
            let over = honest.clone();
            resign(&run, &mut lie, 0, &[1, 2], &over);
        }
        run.net.forge(r(2), r(3), Message::Ring(lie));
        run.settle();
        assert_eq!(run.net.rejected(3, r(2), expected), 1, "{in_header}, {in_tags}");
        assert_eq!(run.journals().iter().map(Vec::len).collect::<Vec<_>>(), [1, 1, 0]);
        // What it should have said is taken.
        let over = honest.clone();
        resign(&run, &mut honest, 0, &[1, 2], &over);
        run.net.forge(r(2), r(3), Message::Ring(honest));
        run.round();
        assert_eq!(run.net.said(r(3), "RING").len(), 2);
        run.net.heal();
        run.finish();
        run.check();
    }
}

/// F10: a client uses a number twice, for other operations, at another entry, and goes back to a smaller one. Nothing
/// of it gets a number in the history, and nothing is missing there.
#[test]
fn ring_f10_a_timestamp_used_twice_leaves_no_gap() {
    let mut run = Run::new(ring_fast(), 4, 2, 1);
    let requests = [1_000, 1_001, 1_002, 1_003].map(|least| request_at(&mut run, 1, (least % 4) as u8, least));
    // All at once: the last one comes to the sequencer first, and no entry had a reason to refuse the others.
    requests.iter().for_each(|request| run.ask(request, 0..4));
    run.settle();
    let first = requests[3].clone();
    let again = Request::new(InstanceId(1), first.client, first.timestamp, false, Bytes::from_static(b"else"));
    let again = again.authenticate_for_all(&run.net.cluster, &run.net.client_keys);
    run.ask(&again, 0..4);
    for request in requests.iter().chain(&requests).rev() {
        run.ask(request, 0..4);
    }
    run.settle();
    for entry in 0..4 {
        invoke_at(&mut run, 0, entry);
        run.settle();
        assert!(run.is_idle(), "entry r{entry}");
    }
    let lengths: Vec<usize> = run.journals().iter().map(Vec::len).collect();
    assert!(lengths.windows(2).all(|pair| pair[0] == pair[1]), "{lengths:?}");
    assert!((0..4).all(|id| reason(&run, id).is_none()));
    run.check();
}

/// A6, F16: the MACs of a client hold for some positions only. Whichever entry and positions these are, the sequencer's
/// and the sequencer as entry included: nothing stops, nothing is missing, and the others in the batch are served.
#[test]
fn ring_f16_bad_macs_strike_one_request_and_nothing_else() {
    for n in [4_usize, 7, 10] {
        let f = (n - 1) / 3;
        for (entry, bad) in (0..n as u8).flat_map(|entry| (1..1 << f).map(move |bad: usize| (entry, bad << 1))) {
            let case = format!("n = {n}, entry r{entry}, bad at positions {bad:#b}");
            let mut run = Run::new(ring_fast(), n, 4, 1);
            let mut request = request_at(&mut run, 3, entry, 1);
            let tags = request.authentication.tags.iter().enumerate();
            let spoilt = Tag::from_bytes([0; 16]);
            request.authentication.tags = tags.map(|(at, tag)| if bad >> at & 1 == 1 { spoilt } else { tag }).collect();
            run.ask(&request, [entry]);
            invoke_at(&mut run, 0, entry);
            invoke_at(&mut run, 1, entry);
            run.settle();
            assert!(run.is_idle() && !run.anybody_said("PANIC"), "{case}");
            assert_eq!(run.journals(), vec![vec![2, 3]; n], "{case}");
            let at = path(&run, entry).at(bad.trailing_zeros() as usize).0 as usize;
            assert_eq!(run.net.rejected(at, c(3), Rejection::UnauthenticRequest), 1, "{case}");
            // And the same with nobody else in the batch.
            run.ask(&request, [entry]);
            run.settle();
            for other in 0..n as u8 {
                invoke_at(&mut run, 0, other);
                run.settle();
                assert!(run.is_idle(), "{case}");
            }
            assert!((0..n).all(|id| reason(&run, id).is_none()), "{case}");
            run.check();
        }
    }
}

/// What goes the f−1 longer ways is said in three passes. Who says that it is another one is not believed.
#[test]
fn ring_the_pass_of_an_ack_is_not_a_matter_of_opinion() {
    // From r6 the sequencer comes first at position 1, and r5 last at 6 and 13, before r6 at 7 and 14.
    for (delay, says, expected) in [
        (7, Body::DigestAgain as fn(Digest) -> Body, Rejection::Malformed),
        (14, Body::Digest, Rejection::Malformed),
        (8, Body::DigestAgain, Rejection::WrongSender),
    ] {
        let (mut run, from, to, message) = under_way(7, 6, delay);
        let Principal::Replica(receiver) = to else { unreachable!() };
        run.liar = Some((receiver.0 + 6) % 7);
        let lie = RingMessage { body: says(message.body.digest()), ..message.clone() };
        run.net.forge(from, to, Message::Ring(lie));
        run.settle();
        assert_eq!(run.net.rejected(receiver.0 as usize, from, expected), 1, "after {delay} hops");
        run.net.forge(from, to, Message::Ring(message));
        run.settle();
        assert!(run.is_idle() && run.instances() == [1; 7]);
        run.check();
    }
}

/// Nobody is at the position that an entry beyond the cluster would give.
#[test]
fn ring_an_entry_that_does_not_exist_is_refused() {
    let (mut run, from, to, message) = under_way(4, 3, 1);
    run.liar = Some(3);
    for entry in [4, 8, 255] {
        run.net.forge(from, to, Message::Ring(RingMessage { entry: ReplicaId(entry), ..message.clone() }));
    }
    run.settle();
    assert_eq!(run.net.rejected(0, from, Rejection::WrongSender), 3);
    run.net.forge(from, to, Message::Ring(message));
    run.settle();
    assert!(run.is_idle());
    run.check();
}

/// Strikes: only by those who may, in their own name, and in the order of positions.
#[test]
fn ring_strikes_are_those_of_their_positions() {
    let strike = |position, request| Strike { position, request };
    let cases: [(&[Strike], Option<&str>); 5] = [
        (&[strike(0, 0)], Some("a predecessor's MAC is bad")),
        (&[strike(2, 0)], None),
        (&[strike(1, 2)], None),
        (&[strike(1, 0), strike(1, 0)], None),
        (&[strike(1, 0), strike(1, 1)], None),
    ];
    for (strikes, stops) in cases {
        let mut run = Run::new(ring_fast(), 4, 2, 1);
        run.liar = Some(3);
        invoke_at(&mut run, 0, 2);
        invoke_at(&mut run, 1, 2);
        run.round();
        run.round();
        let (from, to, mut message) = intercepted(&mut run);
        assert_eq!((from, to), (r(3), r(0)));
        message.strikes = strikes.to_vec();
        let over = message.clone();
        resign(&run, &mut message, 1, &[2, 3], &over);
        run.net.forge(from, to, Message::Ring(message));
        run.settle();
        assert_eq!(reason(&run, 0), stops, "{strikes:?}");
        assert_eq!(run.net.rejected(0, r(3), Rejection::Malformed), u64::from(stops.is_none()), "{strikes:?}");
        run.finish();
        run.check();
    }
}

/// A3: the sequencer makes the MACs for the next two positions for different numbers. The second one stops.
#[test]
fn ring_a3_two_numbers_for_one_batch_stop_the_ring() {
    let mut run = Run::new(ring_fast(), 4, 2, 1);
    run.liar = Some(0);
    invoke_at(&mut run, 0, 2);
    rounds(&mut run, 3);
    let (from, to, mut message) = intercepted(&mut run);
    assert_eq!((from, to), (r(0), r(1)));
    let mut other = message.clone();
    other.stamp.as_mut().unwrap().first = 7;
    resign(&run, &mut message, 2, &[4], &other);
    run.net.forge(from, to, Message::Ring(message));
    run.settle();
    assert_eq!(reason(&run, 2), Some("a predecessor's MAC is bad"));
    assert!(run.commits.is_empty());
    run.finish();
    run.check();
}

/// A5: a MAC that is good for the next position only, or spoilt on its way, from every position on. Where it is found
/// the ring stops; what anybody commits stays.
#[test]
fn ring_a5_partial_macs_stop_the_ring() {
    // The last two go longer ways than others.
    for (n, entry) in [(4, 2), (7, 2), (7, 6), (10, 8)] {
        for delay in 1..path(&Run::new(ring_fast(), n, 1, 1), entry).last() {
            let mut run = Run::new(ring_fast(), n, 2, 1);
            invoke_at(&mut run, 0, entry);
            rounds(&mut run, delay);
            let (from, to, mut message) = intercepted(&mut run);
            let Principal::Replica(liar) = from else { unreachable!() };
            run.liar = Some(liar.0);
            let path = path(&run, entry);
            // The one that the maker before the last made for the receiver, or else its own for the one after that.
            let maker = if delay > 1 { delay - 2 } else { 0 };
            let receiver = if delay > 1 { delay } else { 2 };
            let index = path.carried(delay - 1).position(|pair| pair == (maker, receiver)).unwrap();
            message.tags[index] = Tag::from_bytes([0; 16]);
            run.net.forge(from, to, Message::Ring(message));
            run.settle();
            let victim = path.at(receiver).0 as usize;
            assert_eq!(reason(&run, victim), Some("a predecessor's MAC is bad"), "n = {n}, r{entry}, delay {delay}");
            run.finish();
            run.check();
        }
    }
}

/// Line noise, or somebody in another's name: dropped, and nothing stops.
#[test]
fn ring_who_is_not_the_predecessor_stops_nothing() {
    let (mut run, from, to, message) = under_way(4, 0, 1);
    run.liar = Some(3);
    run.net.forge(r(3), to, Message::Ring(message.clone()));
    let noise = RingMessage { tags: vec![Tag::from_bytes([1; 16]); message.tags.len()], ..message.clone() };
    run.net.forge(from, to, Message::Ring(noise));
    let ack = RingMessage { body: Body::Digest(message.body.digest()), ..message.clone() };
    run.net.forge(from, to, Message::Ring(ack));
    let beyond = RingMessage { body: Body::DigestAgain(message.body.digest()), ..message.clone() };
    run.net.forge(from, to, Message::Ring(beyond));
    run.settle();
    assert_eq!(run.net.rejected(1, r(3), Rejection::WrongSender), 1);
    assert_eq!(run.net.rejected(1, from, Rejection::WrongSender), 1, "there is no such position");
    assert_eq!(run.net.rejected(1, from, Rejection::BadMac), 1);
    assert_eq!(run.net.rejected(1, from, Rejection::Unsolicited), 1);
    run.net.forge(from, to, Message::Ring(message));
    run.settle();
    assert!(run.is_idle() && run.instances() == [1; 4]);
    run.check();
}

/// The kind is in the MAC: a MAC for a RING message is none for an ACK of the same batch.
#[test]
fn ring_a_mac_for_one_pass_is_none_for_the_other() {
    let (run, .., message) = under_way(4, 2, 1);
    let path = path(&run, 2);
    let batch = message.body.digest();
    let numbered =
        RingMessage { stamp: Some(Stamp { first: 1, proposal: Proposal::default(), history: batch }), ..message };
    let statements: Vec<_> = (0..path.last()).map(|maker| numbered.statement(&path, batch, maker)).collect();
    // Before the sequencer, from there to the exit, and from the exit on.
    assert!(statements[..2].iter().all(|other| *other == statements[0]));
    assert!(statements[3..].iter().all(|other| *other == statements[3]));
    assert!(statements[0] != statements[2] && statements[2] != statements[3]);
}

/// S8, F6: what was said in one instance is nothing in another one, not even under that one's number: neither a batch
/// with its MACs, nor the reports that ended the first one.
#[test]
fn ring_s8_what_was_said_in_another_instance_is_nothing_here() {
    let mut run = Run::new(Protocol::Ring, 4, 1, 1);
    run.liar = Some(2);
    invoke_at(&mut run, 0, 2);
    run.round();
    let (from, to, old) = intercepted(&mut run);
    run.finish();
    run.net.lose(|frame| frame.from == r(3) || frame.to == r(3));
    while run.instances()[0] < 2 {
        run.invoke(0);
        run.finish();
    }
    run.net.heal();
    while run.instances() != [3; 4] {
        run.invoke(0);
        run.finish();
        run.pass(1_000);
    }
    let reports: Vec<_> = run.net.sent.iter().filter(|frame| kind(&frame.message) == "ABORT").cloned().collect();
    let before = run.net.rejected(3, r(2), Rejection::BadMac);
    run.net.forge(from, to, Message::Ring(RingMessage { instance: InstanceId(3), ..old }));
    let mut replayed = 0;
    for frame in reports {
        let Message::Switch(Switch { message, .. }) = frame.message else { unreachable!() };
        run.net.forge(frame.from, frame.to, Message::Switch(Switch { instance: InstanceId(3), message }));
        replayed += 1;
    }
    assert!(replayed > 12);
    run.settle();
    assert_eq!(run.net.rejected(3, r(2), Rejection::BadMac), before + 1);
    assert_eq!(run.instances(), [3; 4]);
    run.invoke(0);
    run.settle();
    assert!(run.is_idle() && run.instances() == [3; 4], "nobody has stopped");
    run.check();
}

/// A8: the exit swallows the answer, or answers something else. Everybody has executed the request: the client asks
/// all, and has n equal answers without another instance.
#[test]
fn ring_a8_an_exit_cannot_keep_an_answer_to_itself() {
    for lies in [false, true] {
        let mut run = Run::new(ring_fast(), 4, 1, 1);
        run.net.lose(|frame| kind(&frame.message) == "RING-REPLY");
        invoke_at(&mut run, 0, 2);
        run.settle();
        let Some(Message::RingReply(reply)) = run.net.said(r(1), "RING-REPLY").first().map(|frame| &frame.message)
        else {
            panic!("the exit has answered")
        };
        let reply = reply.clone();
        if lies {
            let outcome = Outcome::Done(Bytes::from_static(&[9, 0, 0, 0]));
            let wrong = RingReply { outcome, ..reply.clone() };
            let own = run.net.keyring(r(1)).tag(c(0), &wrong.statement().bytes());
            for tags in [wrong.tags.clone(), vec![wrong.tags[0], own], vec![own, own], vec![own], vec![]] {
                run.net.forge(r(1), c(0), Message::RingReply(RingReply { tags, ..wrong.clone() }));
            }
            // The MACs are good, but they are those of another way (F8b).
            run.net.forge(r(1), c(0), Message::RingReply(RingReply { entry: ReplicaId(1), ..reply }));
            run.settle();
            assert!(run.commits.is_empty());
        }
        run.finish();
        assert_eq!(run.commits[0].history, [1]);
        assert_eq!((run.instances(), run.anybody_said("PANIC")), (vec![1; 4], false));
        run.check();
    }
}

/// A8: the exit sends the digest of the result, under the MACs of the others. That is no answer.
#[test]
fn ring_a8_a_digest_is_no_answer() {
    let mut run = Run::new(ring_fast(), 4, 1, 1);
    run.net.lose(|frame| kind(&frame.message) == "RING-REPLY");
    invoke_at(&mut run, 0, 2);
    run.settle();
    let Some(Message::RingReply(reply)) = run.net.said(r(1), "RING-REPLY").first().map(|frame| &frame.message) else {
        panic!("the exit has answered")
    };
    let outcome = Outcome::DoneDigest(reply.outcome.digest());
    let reply = RingReply { outcome, ..reply.clone() };
    run.net.forge(r(1), c(0), Message::RingReply(reply));
    run.finish();
    assert_eq!(run.commits[0].history, [1]);
    run.check();
}

/// A8: an entry swallows what it is asked. The client asks all, and the next entry takes it up.
#[test]
fn ring_a8_an_entry_cannot_keep_a_request_to_itself() {
    let mut run = Run::new(ring_fast(), 4, 1, 1);
    run.liar = Some(2);
    let first = |run: &mut Run| run.net.lose(|frame| frame.from == c(0) && frame.to == r(2));
    first(&mut run);
    invoke_at(&mut run, 0, 2);
    run.finish();
    assert_eq!((run.instances(), run.anybody_said("PANIC")), (vec![1; 4], false));
    run.check();
}

/// A wrong number or history under good MACs: the next one that logs stops, whoever is to blame.
#[test]
fn ring_another_history_than_ones_own_is_not_followed() {
    let change: [fn(&mut Stamp); 2] =
        [|stamp| stamp.history = Digest::of(Domain::Trace, b"other"), |stamp| stamp.proposal.seed = Digest::ZERO];
    for change in change {
        let (mut run, from, to, mut message) = under_way(4, 2, 3);
        run.liar = Some(0);
        change(message.stamp.as_mut().unwrap());
        let over = message.clone();
        resign(&run, &mut message, 2, &[3, 4], &over);
        run.net.forge(from, to, Message::Ring(message));
        run.settle();
        assert_eq!(reason(&run, 1), Some("the sequencer has another history"));
        run.finish();
        run.check();
    }
}

/// O12: no replica fails, and nothing stops, whatever a client does: signed requests to some replicas only, to all, for
/// an entry or for none, with MACs that hold for nobody, two operations under one number, PANIC all the time.
#[test]
fn ring_o12_no_client_stops_a_healthy_ring() {
    for n in [4_usize, 7] {
        let mut run = Run::new(ring_fast(), n, 2, 1);
        let mut timestamp = 1;
        for few in 1..=n as u8 {
            for spoil in [false, true] {
                for tags in [0, 1, n] {
                    timestamp += 1;
                    let operation = run.reserve();
                    let mut request = run.net.request(InstanceId(1), 1, timestamp, &operation);
                    request = request.authenticate_for_all(&run.net.cluster, &run.net.client_keys);
                    let kept = request.authentication.tags.iter().take(tags);
                    let spoilt = |tag| if spoil { Tag::from_bytes([9; 16]) } else { tag };
                    request.authentication.tags = kept.map(spoilt).collect();
                    let operation = Bytes::copy_from_slice(&run.reserve());
                    let other = Request::new(InstanceId(1), request.client, Timestamp(timestamp), false, operation);
                    let other = other.authenticate_for_all(&run.net.cluster, &run.net.client_keys);
                    let (request, other) = (request.sign(&run.net.client_keys), other.sign(&run.net.client_keys));
                    run.ask(&request, n as u8 - few..n as u8);
                    run.ask(&other, 0..few / 2);
                    for id in 0..few {
                        run.net.forge(c(1), r(id), panic(InstanceId(1), 1));
                    }
                    run.settle();
                }
            }
            run.invoke(0);
            run.pass(100);
            assert!(run.is_idle(), "n = {n}, {few}");
        }
        run.pass(5_000);
        assert!((0..n).all(|id| reason(&run, id).is_none()), "n = {n}");
        let lengths: Vec<usize> = run.journals().iter().map(Vec::len).collect();
        assert!(lengths.iter().all(|length| *length == lengths[0] && *length > n * 6), "{lengths:?}");
    }
}

/// A signed request that no machine makes, and whose entry is this.
fn signed_at(run: &mut Run, session: u32, entry: u8, least: u64) -> Request {
    let Principal::Client(client) = c(session) else { unreachable!() };
    let asks = |at: &u64| Path::entry_for(&run.net.cluster, client, Timestamp(*at), 2) == ReplicaId(entry);
    let timestamp = (least..least + 99).find(asks).unwrap();
    let operation = run.reserve();
    let request = run.net.request(InstanceId(1), session, timestamp, &operation);
    request.authenticate_for_all(&run.net.cluster, &run.net.client_keys).sign(&run.net.client_keys)
}

/// O12: a client sends a signed request to a single replica, which hands it on to its entry. There another request of
/// the client waits already: an older one, or a newer one whose MACs hold for the entry only. Both replicas that know
/// of the signed one have a timer for it: it is served.
#[test]
fn ring_o12_a_signed_request_waits_for_no_other_of_its_client() {
    for is_newer in [false, true] {
        let mut run = Run::new(ring_fast(), 4, 1, 1);
        let signed = signed_at(&mut run, 8, 2, 2_000);
        let mut waits = request_at(&mut run, 8, 2, if is_newer { 3_000 } else { 1_000 });
        if is_newer {
            let first = waits.authentication.tags.get(0).unwrap();
            waits.authentication.tags = [first, Tag::from_bytes([9; 16])].into_iter().collect();
        }
        run.ask(&signed, [1]);
        run.round();
        let handed_on = run.net.in_flight.len();
        run.ask(&waits, [2]);
        run.net.in_flight.rotate_left(handed_on);
        run.settle();
        run.pass(5_000);
        assert!((0..4).all(|id| reason(&run, id).is_none()), "a client alone stops nothing");
        // Whoever panics over a later request has given up the one before.
        assert_eq!(run.journals(), [[1]; 4]);
        run.check();
    }
}

/// O12: a client fills the places for signed requests at an entry, and sends another one to others only. They hand it
/// on, and what they have room for the entry has room for.
#[test]
fn ring_o12_who_fills_its_places_at_an_entry_stops_nothing() {
    let cluster = Run::cluster(ring_fast(), 4);
    let limits = Limits { pending_requests_max: 64, ..cluster.limits };
    let mut run = Run::of(Cluster { limits, ..cluster }, 1, 1);
    let requests: Vec<Request> = (1..6).map(|session| signed_at(&mut run, session, 2, 2_000)).collect();
    requests[..4].iter().for_each(|request| run.ask(request, [2]));
    run.ask(&requests[4], [1, 3]);
    run.settle();
    assert_eq!(run.net.rejected(2, c(1), Rejection::Overload), 2, "two of an identity have room");
    run.pass(5_000);
    assert!((0..4).all(|id| reason(&run, id).is_none()), "a client alone stops nothing");
    assert_eq!(run.journals().iter().map(Vec::len).collect::<Vec<_>>(), [3; 4]);
    run.check();
}

/// Where a request is not its client's, its sessions are one to whoever counts; and so are identities that nobody has,
/// which a liar can make up as it likes.
#[test]
fn ring_strikes_are_counted_for_an_identity_and_not_for_each_session() {
    let mut run = Run::new(ring_fast(), 4, 1, 1);
    run.liar = Some(1);
    for session in 0..40 {
        let identity = IdentityId(if session % 2 == 0 { 1 } else { 100 + session });
        let client = ClientId { identity, session };
        let mut request = Request::new(InstanceId(1), client, Timestamp(1), false, Bytes::from_static(b"x"));
        request.authentication.tags = [Tag::from_bytes([9; 16]); 2].into_iter().collect();
        let mut message = of_entry(&run, 1, &request);
        let over = message.clone();
        resign(&run, &mut message, 0, &[1, 2], &over);
        run.net.forge(r(1), r(2), Message::Ring(message));
    }
    run.settle();
    assert_eq!(run.net.rejected(2, c(0), Rejection::UnauthenticRequest), 20);
    assert_eq!(run.net.hosts[2].replica.report().rejections.len(), 2, "those of the identity, and all others");
}

/// A8, F19: an exit that says nothing to a client, now or later. The others have no n answers, but f + 1 of them find
/// out that everybody has the request: it commits, without another instance.
#[test]
fn ring_f19_an_exit_that_stays_silent_costs_no_instance() {
    let mut run = Run::new(ring_fast(), 4, 1, 1);
    run.liar = Some(1);
    run.net.lose(|frame| frame.from == r(1) && frame.to == c(0));
    invoke_at(&mut run, 0, 2);
    run.finish();
    assert_eq!((run.instances(), run.commits[0].history.clone()), (vec![1; 4], vec![1]));
    assert!(run.anybody_said("CERTAIN") && run.anybody_said("PROBE"));
    run.check();
}

/// S6, F12: the sequencer lets the probe of one replica pass and none of the others'. That one knows, the two others
/// stop, and that is enough for all to stop: nobody waits for ever.
#[test]
fn ring_f12_half_stopped_is_stopped() {
    let mut run = Run::new(ring_fast(), 4, 1, 1);
    run.liar = Some(0);
    run.net.lose(|frame| match &frame.message {
        Message::Ring(ring) => frame.from == r(0) && matches!(ring.body, Body::Probe(_)) && ring.entry != ReplicaId(1),
        message => frame.from == r(0) && frame.to == c(0) || kind(message) == "RING-REPLY",
    });
    invoke_at(&mut run, 0, 2);
    run.finish();
    assert!((2..4).any(|id| reason(&run, id) == Some("a client that panicked was not served")));
    assert!(run.instances().iter().all(|instance| *instance >= 2));
    run.check();
}

/// F17: who panics again and again does not put off the end.
#[test]
fn ring_f17_panicking_again_does_not_put_off_the_end() {
    let mut run = Run::new(ring_fast(), 4, 1, 1);
    run.net.lose(|frame| matches!(frame.message, Message::Ring(_)));
    let operation = run.reserve();
    let request = run.net.request(InstanceId(1), 0, 1, &operation).sign(&run.net.client_keys);
    let patience = run.net.cluster.limits.client_retry.0 / 1_000;
    for _ in 0..7 {
        run.ask(&request, 0..4);
        run.pass(patience / 3);
    }
    assert!((0..4).all(|id| reason(&run, id).is_some()));
}

/// A probe that comes back too early, or for another number, or without having been everywhere, makes nobody certain.
#[test]
fn ring_a_probe_tells_only_what_everybody_answers_for() {
    let mut run = Run::new(ring_fast(), 4, 1, 1);
    run.liar = Some(1);
    // r1, the exit of r2, keeps the ACK from r2 and the answer from the client: r2 and r3 have not executed.
    run.net.lose(|frame| frame.from == r(1) && matches!(kind(&frame.message).as_str(), "ACK" | "RESP" | "PROBE"));
    invoke_at(&mut run, 0, 2);
    run.settle();
    run.pass(1_100);
    let probe = run.net.said(r(0), "PROBE").first().map(|frame| (*frame).clone()).expect("r0 has executed, and asks");
    let Message::Ring(message) = probe.message else { unreachable!() };
    let path = Path::of_probe(&run.net.cluster, SEQUENCER, ReplicaId(0));
    let Body::Probe(asked) = message.body else { unreachable!() };
    // As if it came over r3, its exit, on the last position: the MACs of r2 and r3 are missing.
    run.liar = Some(3);
    let stamp = Stamp { first: 2, proposal: Proposal::default(), history: Digest::ZERO };
    let mut last = RingMessage { stamp: Some(stamp), body: Body::Probe(Probe { pass: 2, ..asked }), ..message };
    last.tags = vec![Tag::from_bytes([0; 16]); path.carried(path.last() - 1).count()];
    let statement = last.statement(&path, last.body.digest(), path.last() - 1);
    let own = run.net.keyring(r(3)).tag(r(0), &statement);
    *last.tags.last_mut().unwrap() = own;
    run.net.forge(r(3), r(0), Message::Ring(last));
    run.round();
    assert_eq!(reason(&run, 0), Some("a predecessor's MAC is bad"));
    assert!(!run.anybody_said("CERTAIN"));
    run.liar = Some(1);
    run.net.heal();
    run.finish();
    run.check();
}

/// A16, S13, F7: a write is executed at two replicas, and a switch drops it. No read tells of it before: reads go
/// around the ring as well.
#[test]
fn ring_a16_nothing_is_read_that_a_switch_may_drop() {
    let mut run = Run::new(Protocol::Ring, 4, 3, 1);
    run.liar = Some(0);
    run.net.lose(|frame| {
        let is_kept = frame.from == r(1) && matches!(&frame.message, Message::Ring(_));
        is_kept || [r(0), r(1)].contains(&frame.from) && kind(&frame.message) == "ABORT"
    });
    invoke_at(&mut run, 0, 2);
    run.settle();
    let executed = |run: &Run| run.net.hosts.iter().map(|host| host.replica.estate().position()).collect::<Vec<_>>();
    assert_eq!(executed(&run), [1, 1, 0, 0]);
    run.read(1);
    run.settle();
    assert!(run.commits.is_empty(), "nobody answers for what two replicas have");
    for id in 1..4 {
        run.net.forge(r(0), r(id), super::ring_resilient::nothing_to_report(&run, 0, InstanceId(1)));
    }
    run.pass(4_000);
    let dropped = run.begun.iter().filter(|(_, instance, _)| *instance == InstanceId(2));
    assert!(
        dropped.clone().count() > 0 && dropped.clone().all(|(_, _, history)| history.is_empty()),
        "a switch drops it"
    );
    run.net.heal();
    run.finish();
    run.read(2);
    run.finish();
    run.check();
}

/// How many requests have left each entry.
fn left(run: &Run) -> Vec<usize> {
    let mut left = vec![0; run.net.cluster.n];
    for frame in &run.net.sent {
        let Message::Ring(RingMessage { entry, body: Body::Requests(requests), .. }) = &frame.message else { continue };
        if frame.from == Principal::Replica(*entry) {
            left[entry.0 as usize] += requests.len();
        }
    }
    left
}

/// A ring whose batches are small, so that few clients fill it.
fn narrow(clients: u32) -> Run {
    let cluster = Run::cluster(ring_fast(), 4);
    let limits = Limits { batch_requests_max: 2, batch_bytes_max: 300, history_interval: 64, ..cluster.limits };
    Run::of(Cluster { limits, ..cluster }, clients, 1)
}

/// The clients of an entry want ever more. While those of another entry ask now and then, they have a third of what
/// these have, besides a window to begin with and one batch each time around; and these are served at once, each time.
/// Who is alone has the whole ring.
#[test]
fn ring_greedy_clients_of_one_entry_leave_the_others_their_part() {
    let greedy_requests = |is_alone: bool| {
        let mut run = narrow(44);
        for step in 0..27 {
            if !is_alone {
                invoke_at(&mut run, 40 + step % 4, 0);
            }
            (0..40).for_each(|session| invoke_at(&mut run, session, 2));
            rounds(&mut run, 3);
        }
        let left = left(&run);
        assert!(is_alone || left[0] == 27, "each was served before its next one: {left:?}");
        run.finish();
        run.check();
        left[2]
    };
    let (window, each_time_around, a_third) = (2 * (WINDOW + 1), 2 * 81 / 4, 27 / 3);
    let shared = greedy_requests(false);
    assert!((each_time_around - 4..=window + each_time_around + a_third).contains(&shared), "{shared}");
    let alone = greedy_requests(true);
    assert!(alone > 2 * shared, "{alone}");
}

/// And the other way around: an entry that sends without end what its clients have signed fills only its own place. The
/// next one serves its own client as ever.
#[test]
fn ring_an_entry_that_floods_the_ring_starves_nobody() {
    let flood = PER_ENTRY_MAX as u32 + 24;
    let mut run = narrow(1 + flood);
    run.liar = Some(1);
    // They get no further, so that no history has what replica 1 does not know of.
    run.net.lose(|frame| matches!(&frame.message, Message::Ring(ring) if ring.entry.0 == 1) && frame.from == r(3));
    for session in 1..=flood {
        let request = request_at(&mut run, session, 1, 10);
        let mut message = of_entry(&run, 1, &request);
        let over = message.clone();
        resign(&run, &mut message, 0, &[1, 2], &over);
        run.net.forge(r(1), r(2), Message::Ring(message));
    }
    invoke_at(&mut run, 0, 2);
    rounds(&mut run, 9);
    assert_eq!(run.commits.len(), 1, "served in the time that an idle ring takes");
    assert_eq!(run.net.rejected(2, r(1), Rejection::Overload), 24);
    let passed_on = run.net.said(r(2), "RING").iter().filter(|frame| frame.to == r(3)).count();
    assert_eq!(passed_on, PER_ENTRY_MAX + 1);
    run.check();
}

/// A batch that is longer than any that a correct entry makes is not passed on.
#[test]
fn ring_a_batch_beyond_its_bound_is_dropped() {
    let mut run = narrow(4);
    run.liar = Some(1);
    let requests: Vec<Request> = (0..3).map(|session| request_at(&mut run, session, 1, 10)).collect();
    let mut message = of_entry(&run, 1, &requests[0]);
    let trimmed = requests.iter().flat_map(|request| match of_entry(&run, 1, request).body {
        Body::Requests(requests) => requests,
        _ => unreachable!(),
    });
    message.body = Body::Requests(trimmed.collect());
    let over = message.clone();
    resign(&run, &mut message, 0, &[1, 2], &over);
    run.net.forge(r(1), r(2), Message::Ring(message));
    run.settle();
    assert_eq!(run.net.rejected(2, r(1), Rejection::Overload), 1);
    assert!(run.net.said(r(2), "RING").is_empty());
}

/// Which entry a client asks is not its choice: others do not take its request up.
#[test]
fn ring_entries_are_assigned() {
    let mut run = Run::new(ring_fast(), 4, 1, 1);
    let request = request_at(&mut run, 0, 1, 10);
    run.ask(&request, [0, 2, 3]);
    run.settle();
    // Its second position can check its MAC, others cannot even do that.
    let reasons = [Rejection::UnauthenticRequest, Rejection::WrongEntry, Rejection::UnauthenticRequest];
    let counted = [0, 2, 3].into_iter().zip(reasons).map(|(id, reason)| run.net.rejected(id, c(0), reason));
    assert_eq!(counted.collect::<Vec<_>>(), [1, 1, 1]);
    assert!(!run.anybody_said("RING"));
    run.ask(&request, 1..2);
    run.settle();
    assert!(run.anybody_said("RING"));
}

/// How often a client has asked an entry first, and not everybody.
fn asked_first(run: &Run, client: Principal, entry: u8) -> usize {
    let asked = run.net.sent.iter().filter(|frame| frame.from == client && frame.to == r(entry));
    asked
        .filter(
            |frame| matches!(&frame.message, Message::Request(asked) if asked.authentication.tags.iter().len() == 2),
        )
        .count()
}

/// 5.3.3, F19: a replica is quick with everybody, but as an entry it does not hear one client, or as an exit it does
/// not answer it. That client asks it less and less often, its others as before, and no instance ends.
#[test]
fn ring_f19_who_is_discriminated_asks_others() {
    for (is_entry, victim) in [(true, 2), (false, 3)] {
        let mut run = Run::new(ring_fast(), 4, 2, 1);
        run.liar = Some(2);
        run.net.lose(move |frame| match &frame.message {
            Message::Request(request) if is_entry => {
                (frame.from, frame.to) == (c(0), r(2)) && request.authentication.tags.iter().len() == 2
            }
            Message::RingReply(_) => !is_entry && (frame.from, frame.to) == (r(2), c(0)),
            _ => false,
        });
        for _ in 0..120 {
            run.invoke(0);
            run.invoke(1);
            run.finish();
            run.net.now.0 += 1;
        }
        let (of_victim, of_other) = (asked_first(&run, c(0), victim), asked_first(&run, c(1), victim));
        // After 8, 16, 32, and 64 requests that went elsewhere.
        assert!((2..=5).contains(&of_victim), "{of_victim}");
        assert!(of_other >= 10, "{of_other}");
        assert_eq!(run.instances(), vec![1; 4]);
        run.check();
    }
}

/// The client asks now and then, and only those that have had batches tell it how long they take.
#[test]
fn ring_clients_are_told_how_long_batches_take() {
    let mut run = Run::new(ring_fast(), 4, 1, 1);
    for entry in [0, 1, 2, 3, 0] {
        invoke_at(&mut run, 0, entry);
        run.settle();
    }
    let asked = run.net.said(c(0), "PACE-ASK").len();
    let told = run.net.sent.iter().filter(|frame| frame.to == c(0) && kind(&frame.message) == "PACE-DELAY").count();
    assert_eq!((asked, told), (4, 3), "before the fourth request");
    // Nobody is told in another's name, and replicas have no such question.
    let Principal::Client(client) = c(0) else { unreachable!() };
    let ask = |client| Message::RingPace(RingPace { instance: InstanceId(1), message: PaceMessage::Ask(client) });
    run.net.forge(r(1), r(0), ask(client));
    let other = ClientId { identity: IdentityId(client.identity.0 + 1), ..client };
    run.net.forge(c(0), r(0), ask(other));
    run.settle();
    assert_eq!(run.net.rejected(0, r(1), Rejection::WrongSender), 1);
    assert_eq!(run.net.rejected(0, c(0), Rejection::WrongSender), 1);
}
