//! Who gets how much of a ring, and which entry a client asks.

use super::*;

/// How many requests have left each entry.
fn left(run: &Run) -> Vec<usize> {
    let mut left = vec![0; run.net.cluster.replicas.n()];
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

/// 5.3.3, ring-F19: a replica is quick with everybody, but as an entry it does not hear one client, or as an exit it
/// does not answer it. That client asks it less and less often, its others as before, and no instance ends.
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
