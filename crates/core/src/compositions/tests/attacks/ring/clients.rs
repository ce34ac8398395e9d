//! What clients do to a ring, and what ends it: signed requests, panics, probes, reads.

use super::*;

/// ring-O12: no replica fails, and nothing stops, whatever a client does: signed requests to some replicas only, to
/// all, for an entry or for none, with MACs that hold for nobody, two operations under one number, PANIC all the time.
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
    let asks = |at: &u64| Path::entry_for(run.net.cluster.replicas, client, Timestamp(*at), 2) == ReplicaId(entry);
    let timestamp = (least..least + 99).find(asks).unwrap();
    let operation = run.reserve();
    let request = run.net.request(InstanceId(1), session, timestamp, &operation);
    request.authenticate_for_all(&run.net.cluster, &run.net.client_keys).sign(&run.net.client_keys)
}

/// ring-O12: a client sends a signed request to a single replica, which hands it on to its entry. There another request
/// of the client waits already: an older one, or a newer one whose MACs hold for the entry only. Both replicas that
/// know of the signed one have a timer for it: it is served.
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

/// ring-O12: a client fills the places for signed requests at an entry, and sends another one to others only. They hand
/// it on, and what they have room for the entry has room for.
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

/// ring-O12: signed requests that are longer than a batch should be leave side by side. One after the other they would
/// take a round each, and whoever panicked last would have no time left.
#[test]
fn ring_o12_long_signed_requests_do_not_wait_for_each_other() {
    let cluster = Run::cluster(ring_fast(), 4);
    let limits = Limits { batch_bytes_max: 1, ..cluster.limits };
    let mut run = Run::of(Cluster { limits, ..cluster }, 1, 1);
    for session in 1..5 {
        let request = signed_at(&mut run, session, 2, 2_000);
        run.ask(&request, [2]);
    }
    run.round();
    let left = run.net.in_flight.iter().filter(|frame| frame.from == r(2) && kind(&frame.message) == "RING");
    assert_eq!(left.count(), 4);
    run.settle();
    assert_eq!(run.journals().iter().map(Vec::len).collect::<Vec<_>>(), [4; 4]);
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

/// ring-A8, ring-F19: an exit that says nothing to a client, now or later. The others have no n answers, but f + 1 of
/// them find out that everybody has the request: it commits, without another instance.
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

/// ring-S6, ring-F12: the sequencer lets the probe of one replica pass and none of the others'. That one knows, the two
/// others stop, and that is enough for all to stop: nobody waits for ever.
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

/// ring-F17: who panics again and again does not put off the end.
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

/// When nothing goes on all clients panic, again and again, and each panic is handed on. To check a signature takes
/// longer than all else that a replica does for one, and what clients say waits meanwhile does wait behind it.
#[test]
fn panicking_again_costs_no_signatures() {
    let mut run = Run::new(ring_fast(), 4, 1, 1);
    run.net.lose(|frame| matches!(frame.message, Message::Ring(_)));
    let request = signed_at(&mut run, 0, 1, 1);
    let checked = |run: &Run| [0, 1, 2, 3].map(|id| run.net.keyring(r(id)).counters().signatures_checked.get());
    run.ask(&request, 0..4);
    run.settle();
    assert_eq!(checked(&run), [1; 4]);
    run.ask(&request, 0..4);
    run.settle();
    assert_eq!(checked(&run), [1; 4], "the client says it again, and the others hand it on again");
    // The signature is that of another request, or holds for none.
    let mut other = signed_at(&mut run, 0, 1, request.timestamp.0);
    assert_eq!(other.timestamp, request.timestamp);
    let mut spoilt = request.clone();
    spoilt.authentication.signature.as_mut().unwrap().signature.0[5] ^= 1;
    other.authentication.signature = request.authentication.signature;
    run.ask(&other, 1..2);
    run.ask(&spoilt, 1..2);
    run.settle();
    assert_eq!(checked(&run), [1, 3, 1, 1]);
    assert_eq!(run.net.rejected(1, c(0), Rejection::UnauthenticRequest), 2);
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
    let path = Path::of_probe(run.net.cluster.replicas, SEQUENCER, ReplicaId(0));
    let Body::Probe(asked) = message.body else { unreachable!() };
    // As if it came over r3, its exit, on the last position: the MACs of r2 and r3 are missing.
    run.liar = Some(3);
    let stamp = Stamp { first: 2, proposal: Proposal::default(), history: Digest::ZERO, effects: Digest::ZERO };
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

/// ring-A16, ring-S13, ring-F7: a write is executed at two replicas, and a switch drops it. No read tells of it before:
/// reads go around the ring as well.
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
        run.net.forge(r(0), r(id), super::super::ring_resilient::nothing_to_report(&run, 0, InstanceId(1)));
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
