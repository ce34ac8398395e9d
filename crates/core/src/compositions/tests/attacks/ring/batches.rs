//! What a liar makes of a batch on its way: numbers, histories, MACs, passes, strikes, answers.

use super::super::two_modes;
use super::*;

/// Everybody in turn, all at once, from every entry: the numbers overlap, and nobody panics. Each client is told the
/// history at its own number, although later ones have been executed by then (ring-F9).
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

/// ring-S1 (ring-F1): replica 2 gives a batch of a colluding client the number that the sequencer gave to another, and
/// makes MACs for that. Replica 3 knows that the batch has not been at the sequencer yet: it takes neither the number
/// nor MACs that cover one, whichever of the two is right.
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
        let stamp = Stamp {
            first: 1,
            proposal: Proposal::default(),
            history: Digest::ZERO.chain(entry.digest()),
            effects: Digest::ZERO,
        };
        let stamped = RingMessage { stamp: Some(stamp), ..honest.clone() };
        let mut lie = if in_header { stamped.clone() } else { honest.clone() };
        if in_tags {
            // As if the sequencer had been passed at position 0: its own path says where.
            let own = Path::new(run.net.cluster.replicas, ReplicaId(2), ReplicaId(3));
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

/// ring-F10: a client uses a number twice, for other operations, at another entry, and goes back to a smaller one.
/// Nothing of it gets a number in the history, and nothing is missing there.
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

/// ring-A6, ring-F16: the MACs of a client hold for some positions only. Whichever entry and positions these are, the
/// sequencer's and the sequencer as entry included: nothing stops, nothing is missing, and the others in the batch are
/// served.
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

/// The sequencer is the last position that checks clients' MACs. Of one batch it strikes a request whose MAC is bad,
/// and one that it may not give a number: whichever stands first, the others take its strikes for good.
#[test]
fn ring_o12_a_sequencer_strikes_for_two_reasons() {
    for stale_first in [true, false] {
        let mut run = Run::new(ring_fast(), 4, 3, 1);
        let (newer, older) = (request_at(&mut run, 1, 2, 2_000), request_at(&mut run, 1, 3, 1_000));
        let mut bad = request_at(&mut run, 2, 3, 1_000);
        let first = bad.authentication.tags.get(0).unwrap();
        bad.authentication.tags = [first, Tag::from_bytes([9; 16])].into_iter().collect();
        run.ask(&newer, [2]);
        rounds(&mut run, 2);
        let (one, other) = if stale_first { (&older, &bad) } else { (&bad, &older) };
        run.ask(one, [3]);
        run.ask(other, [3]);
        invoke_at(&mut run, 0, 3);
        run.settle();
        assert!(run.is_idle() && !run.anybody_said("PANIC"), "stale first: {stale_first}");
        assert_eq!(run.journals(), [[1, 4]; 4]);
        assert_eq!(run.net.rejected(0, c(2), Rejection::UnauthenticRequest), 1);
        assert!((0..4).all(|id| run.net.rejected(id, r(0), Rejection::Malformed) == 0));
        run.check();
    }
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

/// ring-A3: the sequencer makes the MACs for the next two positions for different numbers. The second one stops.
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

/// ring-A5: a MAC that is good for the next position only, or spoilt on its way, from every position on. Where it is
/// found the ring stops; what anybody commits stays.
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
    let numbered = RingMessage {
        stamp: Some(Stamp { first: 1, proposal: Proposal::default(), history: batch, effects: Digest::ZERO }),
        ..message
    };
    let statements: Vec<_> = (0..path.last()).map(|maker| numbered.statement(&path, batch, maker)).collect();
    // Before the sequencer, from there to the exit, and from the exit on.
    assert!(statements[..2].iter().all(|other| *other == statements[0]));
    assert!(statements[3..].iter().all(|other| *other == statements[3]));
    assert!(statements[0] != statements[2] && statements[2] != statements[3]);
}

/// ring-S8, ring-F6: what was said in one instance is nothing in another one, not even under that one's number: neither
/// a batch with its MACs, nor the reports that ended the first one.
#[test]
fn ring_s8_what_was_said_in_another_instance_is_nothing_here() {
    let mut run = Run::new(two_modes(), 4, 1, 1);
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

/// ring-A8: the exit swallows the answer, or answers something else. Everybody has executed the request: the client
/// asks all, and has n equal answers without another instance.
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
            let outcome = Outcome::read(Bytes::from_static(&[9, 0, 0, 0]));
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

/// ring-A8: the exit sends the digest of the result, under the MACs of the others. That is no answer.
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

/// ring-A8: an entry swallows what it is asked. The client asks all, and the next entry takes it up.
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
