//! Whoever sends what is of no use is read last and little, and everybody else as before; over loopback.

use super::super::super::Worth;
use super::*;
use std::cell::Cell;
use std::collections::BTreeMap;

const SECOND: Duration = Duration::from_secs(1);

/// What came of whom, and of whom how much while it was in quarantine.
#[derive(Debug, Default)]
struct Came {
    frames: BTreeMap<Principal, usize>,
    rationed: BTreeMap<Principal, usize>,
}

/// Runs a server and two others that send to it, one frame and many in each pass, for so long after the second is in
/// quarantine. What the second sends is worth so much.
fn flooded(server: &mut Hub, [modest, flood]: [(&mut Hub, LinkId); 2], frame: &[u8], worth: Worth) -> (Came, usize) {
    let (mut came, mut sent, mut since) = (Came::default(), 0, None);
    let begin = Instant::now();
    while since.is_none_or(|since: Instant| since.elapsed() < SECOND) {
        assert!(begin.elapsed() < 20 * SECOND, "no quarantine begins: {came:?}");
        modest.0.send(modest.1, Lane::Usual, &b"modest".to_vec().into(), &[]);
        sent += 1;
        while flood.0.pending() < 1 << 20 {
            flood.0.send(flood.1, Lane::Usual, &frame.to_vec().into(), &[]);
        }
        for hub in [&mut *modest.0, &mut *flood.0] {
            hub.poll(Some(Duration::ZERO)).unwrap();
            while hub.next_event().is_some() {}
            hub.flush();
        }
        server.poll(Some(Duration::from_millis(1))).unwrap();
        while let Some(event) = server.next_event() {
            let Event::Frame(link, peer, body) = event else { continue };
            *came.frames.entry(peer.principal()).or_default() += 1;
            if since.is_some() {
                *came.rationed.entry(peer.principal()).or_default() += 1;
            }
            let is_modest = *body == b"modest"[..];
            if is_modest {
                // What is of use leads to something.
                server.send(link, Lane::Usual, &b"answer".to_vec().into(), &[]);
            }
            server.judge(peer, body.len(), if is_modest { Worth::Useful } else { worth });
        }
        server.flush();
        if since.is_none() && server.quarantined().next().is_some() {
            since = Some(Instant::now());
        }
    }
    (came, sent)
}

/// A server, and two replicas with links to it.
fn replicas() -> (Hub, [(Hub, LinkId); 2]) {
    let mut server = replica(0, Channel::Plain, Bounds::default());
    let address = server.listen(TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).unwrap(), Port::Replicas).unwrap();
    let others = [1, 2].map(|id| {
        let mut hub = replica(id, Channel::Plain, Bounds::default());
        let link = linked(&mut server, &mut hub, address, Peer::Replica(ReplicaId(id)));
        (hub, link)
    });
    (server, others)
}

/// Frames that a ration of about a second may have of a replica, with room for a slow machine.
const RATION_MAX: usize = 130;

#[test]
fn a_replica_that_floods_has_its_ration_and_no_more() {
    let (mut server, [(mut honest, first), (mut liar, second)]) = replicas();
    let (came, sent) = flooded(&mut server, [(&mut honest, first), (&mut liar, second)], &[0; 64], Worth::Failed);
    let [honest, liar] = [1, 2].map(|id| Principal::Replica(ReplicaId(id)));
    assert!(came.frames[&honest] + 2 >= sent, "it is read in every pass: {came:?} of {sent}");
    let rationed = came.rationed[&liar];
    assert!((16..=RATION_MAX).contains(&rationed), "{came:?}");
    let quarantined: Vec<_> = server.quarantined().map(|it| (it.party, it.cause)).collect();
    assert_eq!(quarantined, [(Some(liar), Cause::FailedVerifications)]);
    assert_eq!((server.metrics().replicas.quarantined, server.metrics().clients.quarantined), (1, 0));
    assert_eq!(server.metrics().replicas.connections, 2, "nobody is cut off");
}

#[test]
fn what_is_for_the_link_only_is_a_flood_too() {
    let (mut server, [(mut honest, first), (mut liar, second)]) = replicas();
    let (came, sent) = flooded(&mut server, [(&mut honest, first), (&mut liar, second)], b"?", Worth::Useful);
    let [honest, liar] = [1, 2].map(|id| Principal::Replica(ReplicaId(id)));
    assert!(came.frames[&honest] + 2 >= sent, "{came:?} of {sent}");
    let quarantined: Vec<_> = server.quarantined().map(|it| (it.party, it.cause)).collect();
    assert_eq!(quarantined, [(Some(liar), Cause::Flood)]);
}

/// However few frames they are in, and whatever these are worth.
#[test]
fn who_has_far_more_signatures_checked_than_others_is_in_quarantine() {
    let (mut server, [(mut honest, first), (mut liar, second)]) = replicas();
    let begin = Instant::now();
    while server.quarantined().next().is_none() {
        assert!(begin.elapsed() < 20 * SECOND, "no quarantine begins: {:?}", server.metrics().replicas);
        for (hub, link) in [(&mut honest, first), (&mut liar, second)] {
            hub.send(link, Lane::Usual, &b"signed".to_vec().into(), &[]);
            hub.poll(Some(Duration::ZERO)).unwrap();
            while hub.next_event().is_some() {}
            hub.flush();
        }
        server.poll(Some(Duration::from_millis(1))).unwrap();
        while let Some(event) = server.next_event() {
            let Event::Frame(link, Peer::Replica(from), body) = event else { continue };
            server.send(link, Lane::Usual, &b"answer".to_vec().into(), &[]);
            server.note_signatures(from, if from == ReplicaId(2) { 10 } else { 1 });
            server.judge(Peer::Replica(from), body.len(), Worth::Useful);
        }
        server.flush();
    }
    let quarantined: Vec<_> = server.quarantined().map(|it| (it.party, it.cause)).collect();
    assert_eq!(quarantined, [(Some(Principal::Replica(ReplicaId(2))), Cause::Signatures)]);
}

/// Frames that come over one link are not forgotten because the next ones come over another.
#[test]
fn who_dials_anew_floods_all_the_same() {
    let mut server = replica(0, Channel::Plain, Bounds::default());
    let address = server.listen(TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).unwrap(), Port::Replicas).unwrap();
    let mut liar = replica(1, Channel::Plain, Bounds::default());
    let begin = Instant::now();
    while server.quarantined().next().is_none() {
        assert!(begin.elapsed() < 20 * SECOND, "it floods: {:?}", server.metrics().replicas);
        let link = linked(&mut server, &mut liar, address, Peer::Replica(ReplicaId(1)));
        let until = Instant::now() + SECOND / 20;
        while Instant::now() < until {
            while liar.pending() < 1 << 20 {
                liar.send(link, Lane::Usual, &b"?".to_vec().into(), &[]);
            }
            for hub in [&mut liar, &mut server] {
                hub.poll(Some(Duration::ZERO)).unwrap();
                while hub.next_event().is_some() {}
                hub.flush();
            }
        }
        liar.drop_link(link, CloseReason::Superseded);
        let gone = |events: &[Vec<Event>]| down(&events[0]).is_some();
        run(10, &mut [&mut server, &mut liar], gone);
    }
    assert_eq!(server.quarantined().next().map(|it| it.cause), Some(Cause::Flood));
}

#[test]
fn a_client_whose_macs_fail_is_read_after_the_others() {
    let (mut server, address) = listening(Channel::Plain, Bounds::default());
    let [(mut honest, first), (mut liar, second)] = [ONE, TWO].map(|identity| {
        let mut hub = client(identity, Channel::Plain);
        let link = linked(&mut server, &mut hub, address, who(identity, 0));
        (hub, link)
    });
    let (came, sent) = flooded(&mut server, [(&mut honest, first), (&mut liar, second)], &[0; 9_000], Worth::Failed);
    let [honest, liar] = [ONE, TWO].map(|identity| Principal::Client(ClientId { identity, session: 0 }));
    assert!(came.frames[&honest] + 2 >= sent, "{came:?} of {sent}");
    assert!(came.rationed[&liar] * 9_000 <= 1_640_000 * 3 / 2, "{came:?}");
    assert!(server.quarantined().any(|it| it.party == Some(liar)));
}

/// As many as it takes for that.
const FLOODS: u8 = 11;

/// Whoever is not known while all clients are in quarantine waits for its turn, and has one.
#[test]
fn a_client_that_nobody_knows_has_its_turn_while_others_flood() {
    let (mut server, address) = listening(Channel::Plain, Bounds::default());
    let dial = |server: &mut Hub, number| {
        let (mut hub, peer) = stranger(number);
        let link = linked(server, &mut hub, address, peer);
        (hub, link)
    };
    // Each costs all clients together no more than it takes until it is in quarantine itself.
    let mut floods: Vec<_> = (1..=FLOODS).map(|number| dial(&mut server, number)).collect();
    let mut modest = None;
    let (begin, mut came) = (Instant::now(), 0);
    while came < 20 {
        assert!(begin.elapsed() < 20 * SECOND, "{came} of 20: {:?}", server.quarantined().collect::<Vec<_>>());
        for (hub, link) in &mut floods {
            while hub.pending() < 1 << 14 {
                hub.send(*link, Lane::Usual, &vec![0; 64].into(), &[]);
            }
        }
        if modest.is_none() && server.quarantined().any(|it| it.party.is_none()) {
            let (mut hub, link) = dial(&mut server, 99);
            (0..20).for_each(|_| _ = hub.send(link, Lane::Usual, &b"modest".to_vec().into(), &[]));
            modest = Some((hub, link));
        }
        for (hub, _) in floods.iter_mut().chain(&mut modest) {
            hub.poll(Some(Duration::ZERO)).unwrap();
            while hub.next_event().is_some() {}
            hub.flush();
        }
        server.poll(Some(Duration::from_millis(1))).unwrap();
        while let Some(event) = server.next_event() {
            let Event::Frame(_, peer, body) = event else { continue };
            let is_modest = *body == b"modest"[..];
            came += usize::from(is_modest);
            server.judge(peer, body.len(), if is_modest { Worth::Useful } else { Worth::Failed });
        }
        server.flush();
    }
    assert!(server.quarantined().any(|it| it.party.is_none()), "all that nobody knows are still in quarantine");
    assert!(server.metrics().clients.quarantined > u64::from(FLOODS) / 2, "and those that flood have one each");
}

/// Packets of one frame each.
const PACKETS: usize = 2_000;

/// Each pass ends a batch of everybody else: one for each packet would cost more than what is in it.
#[test]
fn who_is_in_quarantine_wakes_nobody_for_each_packet() {
    let (mut server, address) = listening(Channel::Plain, Bounds::default());
    let mut liar = client(ONE, Channel::Plain);
    let link = linked(&mut server, &mut liar, address, who(ONE, 0));
    let (sent, is_over) = (Arc::new(AtomicUsize::new(0)), Arc::new(AtomicBool::new(false)));
    let (count, is_enough) = (Arc::clone(&sent), Arc::clone(&is_over));
    let sender = std::thread::spawn(move || {
        while !is_enough.load(Ordering::SeqCst) {
            liar.send(link, Lane::Usual, &vec![0; 64].into(), &[]);
            liar.flush();
            liar.poll(Some(Duration::ZERO)).unwrap();
            while liar.next_event().is_some() {}
            count.fetch_add(1, Ordering::SeqCst);
            std::thread::sleep(Duration::from_micros(200));
        }
    });
    let (begin, came) = (Instant::now(), Cell::new(0));
    let mut pass = || {
        assert!(begin.elapsed() < 60 * SECOND, "not in time");
        server.poll(Some(SECOND)).unwrap();
        while let Some(event) = server.next_event() {
            let Event::Frame(_, peer, body) = event else { continue };
            came.set(came.get() + 1);
            server.judge(peer, body.len(), Worth::Failed);
        }
        server.flush();
        server.quarantined().next().is_some()
    };
    while !pass() {}
    let (since, before, mut passes) = (Instant::now(), sent.load(Ordering::SeqCst), 0);
    came.set(0);
    while sent.load(Ordering::SeqCst) < before + PACKETS {
        assert!(pass(), "it goes on");
        passes += 1;
    }
    is_over.store(true, Ordering::SeqCst);
    sender.join().unwrap();
    // In each ration's time once for that, once when it is listened to again, and as often for what else there is.
    let rations = since.elapsed().as_millis() / 10;
    let most = rations * 4 + 50;
    assert!(passes <= most, "{passes} passes for {PACKETS} packets, where {most} would do");
    let least = (PACKETS as u128).min(rations * 16) / 4;
    assert!(came.get() >= least, "{} frames came, of a ration {least} at least", came.get());
}
