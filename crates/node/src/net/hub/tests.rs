//! Links that die in silence, buffers that are full, and TLS from somebody who does not mean well; over loopback.

mod doors;
mod fairness;
mod quarantine;

use super::super::handshake::LinkRefusal;
use super::super::output::Lane;
use super::super::tls::testing::Raw;
use super::super::{ANSWER_MS_MAX, FRAME_WINDOW_BYTES, FRAME_WINDOW_SECONDS, PASS_MS_MAX, SILENT_MS_MAX};
use super::*;
use bezant_core::auth::{Ed25519, PublicKeys, SecretKey, Suite};
use bezant_core::cluster::Cluster;
use bezant_core::ids::{ClientId, IdentityId, Principal};
use std::io::{ErrorKind, Read, Write};
use std::net::{Ipv4Addr, TcpListener, TcpStream as Socket};
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

const ONE: IdentityId = IdentityId(7);
const TWO: IdentityId = IdentityId(8);

fn secret(identity: IdentityId) -> SecretKey {
    SecretKey([200 + identity.0 as u8; 32])
}

fn keyring(me: Principal, secret: SecretKey) -> Keyring {
    let public = |secret: SecretKey| Ed25519.public(&secret);
    let keys = PublicKeys {
        replicas: (1..=4).map(|id| public(SecretKey([id; 32]))).collect(),
        identities: [ONE, TWO].map(|identity| (identity, public(self::secret(identity)))).into(),
    };
    let cluster = Cluster { dynamic_clients: true, ..Cluster::of([1; 16], 4).unwrap() };
    Keyring::new(&Ed25519, &cluster, me, secret, keys).unwrap()
}

fn replica(id: u8, channel: Channel, bounds: Bounds) -> Hub {
    let keyring = keyring(Principal::Replica(ReplicaId(id)), SecretKey([id + 1; 32]));
    Hub::new(HubOptions { bounds, ..HubOptions::new(keyring, channel) }).unwrap()
}

fn listening(channel: Channel, bounds: Bounds) -> (Hub, SocketAddr) {
    let mut hub = replica(0, channel, bounds);
    let address = hub.listen(TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).unwrap(), Port::Clients).unwrap();
    (hub, address)
}

fn client(identity: IdentityId, channel: Channel) -> Hub {
    let me = Principal::Client(ClientId { identity, session: 0 });
    Hub::new(HubOptions::new(keyring(me, secret(identity)), channel)).unwrap()
}

fn stranger(number: u8) -> (Hub, Peer) {
    let secret = SecretKey([number; 32]);
    let key = Ed25519.public(&secret);
    let hub = Hub::new(HubOptions::new(keyring(Principal::Key(key), secret), Channel::Plain)).unwrap();
    (hub, Peer::Stranger(key))
}

const fn who(identity: IdentityId, first: u32) -> Peer {
    Peer::Client { identity, first, sessions: 1 }
}

/// Runs all hubs for a pass or more, until `done`, or panics after so many seconds.
fn run(seconds: u64, hubs: &mut [&mut Hub], mut done: impl FnMut(&[Vec<Event>]) -> bool) -> Vec<Vec<Event>> {
    let mut events: Vec<Vec<Event>> = hubs.iter().map(|_| Vec::new()).collect();
    let start = Instant::now();
    loop {
        assert!(start.elapsed() < Duration::from_secs(seconds), "not in time: {events:?}");
        for (hub, events) in hubs.iter_mut().zip(&mut events) {
            hub.poll(Some(Duration::from_millis(1))).unwrap();
            events.extend(std::iter::from_fn(|| hub.next_event()));
            hub.flush();
        }
        if done(&events) {
            return events;
        }
    }
}

/// A link to the server, which knows it.
fn linked(server: &mut Hub, hub: &mut Hub, address: SocketAddr, who: Peer) -> LinkId {
    let link = hub.dial(address, ReplicaId(0), who).unwrap();
    run(10, &mut [server, hub], |events| up(&events[0]).is_some());
    link
}

fn up(events: &[Event]) -> Option<LinkId> {
    events.iter().find_map(|event| if let Event::Up(link, _) = event { Some(*link) } else { None })
}

fn down(events: &[Event]) -> Option<CloseReason> {
    events.iter().find_map(|event| if let Event::Down(_, reason) = event { Some(*reason) } else { None })
}

fn frames(events: &[Event]) -> usize {
    events.iter().filter(|event| matches!(event, Event::Frame(..))).count()
}

/// Something on the way that ends TCP on both sides. Once it is silent it takes what comes, and passes nothing on.
fn middle(to: SocketAddr) -> (SocketAddr, Arc<AtomicBool>) {
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).unwrap();
    let (address, silent) = (listener.local_addr().unwrap(), Arc::new(AtomicBool::new(false)));
    let is_silent = Arc::clone(&silent);
    std::thread::spawn(move || {
        for here in listener.incoming().map_while(Result::ok) {
            let Ok(there) = Socket::connect(to) else { return };
            // Who connects after it went silent is passed on again.
            let silent = if is_silent.load(Ordering::SeqCst) { Arc::default() } else { Arc::clone(&is_silent) };
            for (mut from, mut to) in [(here.try_clone(), there.try_clone()), (Ok(there), Ok(here))]
                .map(|(from, to)| (from.unwrap(), to.unwrap()))
            {
                let silent = Arc::clone(&silent);
                std::thread::spawn(move || {
                    let mut buffer = [0; 16 << 10];
                    while let Ok(count @ 1..) = from.read(&mut buffer) {
                        if !silent.load(Ordering::SeqCst) && to.write_all(&buffer[..count]).is_err() {
                            return;
                        }
                    }
                });
            }
        }
    });
    (address, silent)
}

/// A client and a replica with a silent middle: who spoke closes, dials anew, and is heard.
fn heals(channel: Channel) {
    let (mut server, address) = listening(channel, Bounds::default());
    let (address, silent) = middle(address);
    let mut asking = client(ONE, channel);
    let first = asking.dial(address, ReplicaId(0), who(ONE, 0)).unwrap();
    asking.send(first, Lane::Usual, &b"request".to_vec().into(), &[]);
    let events = run(10, &mut [&mut server, &mut asking], |events| frames(&events[0]) == 1);
    // The request was answered, and after that it is quiet, for longer than any patience: nobody is suspected.
    server.send(up(&events[0]).unwrap(), Lane::Usual, &b"reply".to_vec().into(), &[]);
    run(10, &mut [&mut server, &mut asking], |events| frames(&events[1]) == 1);
    let quiet = Instant::now();
    let patience = Duration::from_millis(SILENT_MS_MAX + ANSWER_MS_MAX + 2_000);
    let events = run(20, &mut [&mut server, &mut asking], |_| quiet.elapsed() > patience);
    assert!(events.iter().all(Vec::is_empty), "{events:?}");
    silent.store(true, Ordering::SeqCst);
    asking.send(first, Lane::Usual, &b"lost".to_vec().into(), &[]);
    let begin = Instant::now();
    let events = run(20, &mut [&mut server, &mut asking], |events| down(&events[1]).is_some());
    assert_eq!(down(&events[1]), Some(CloseReason::Silent));
    assert!(begin.elapsed() < patience, "{:?}", begin.elapsed());
    let second = asking.dial(address, ReplicaId(0), who(ONE, 0)).unwrap();
    asking.send(second, Lane::Usual, &b"again".to_vec().into(), &[]);
    run(10, &mut [&mut server, &mut asking], |events| frames(&events[0]) == 1);
}

#[test]
fn a_link_that_died_in_silence_is_closed_and_an_idle_one_is_not() {
    heals(Channel::Plain);
}

#[test]
fn a_link_that_died_in_silence_is_closed_over_tls_as_well() {
    heals(Channel::Tls);
}

/// Whoever has nothing to say answers all the same, for as long as it is spoken to.
#[test]
fn who_hears_and_has_nothing_to_say_is_not_silent() {
    let (mut server, address) = listening(Channel::Plain, Bounds::default());
    let mut asking = client(ONE, Channel::Plain);
    let link = asking.dial(address, ReplicaId(0), who(ONE, 0)).unwrap();
    let (begin, mut sent) = (Instant::now(), 0);
    let patience = Duration::from_millis(SILENT_MS_MAX + ANSWER_MS_MAX + 2_000);
    while begin.elapsed() < patience {
        asking.send(link, Lane::Usual, &b"request".to_vec().into(), &[]);
        sent += 1;
        let events = run(10, &mut [&mut server, &mut asking], |events| frames(&events[0]) == 1);
        assert_eq!((down(&events[0]), down(&events[1])), (None, None));
        std::thread::sleep(Duration::from_millis(100));
    }
    assert_eq!(server.metrics().clients.frames_in, sent, "questions are not counted as messages");
}

/// A client over a plain socket that proves who it is, and may be hostile from then on.
fn hostile(server: &mut Hub, address: SocketAddr, first: u32) -> Socket {
    let keyring = keyring(Principal::Client(ClientId { identity: ONE, session: 0 }), secret(ONE));
    let mut handshake = Handshake::new(&keyring, who(ONE, first), Expect::Replica(ReplicaId(0)), [3; 32]);
    let mut socket = Socket::connect(address).unwrap();
    let frame = |bytes: &[u8]| [&(bytes.len() as u32).to_le_bytes()[..], bytes].concat();
    socket.write_all(&frame(&handshake.hello())).unwrap();
    socket.set_nonblocking(true).unwrap();
    let mut answer = Vec::new();
    run(10, &mut [server], |_| {
        let mut part = [0; 256];
        if let Ok(count) = socket.read(&mut part) {
            answer.extend_from_slice(&part[..count]);
        }
        answer.len() > 4 && answer.len() >= 4 + u32::from_le_bytes(answer[..4].try_into().unwrap()) as usize
    });
    let super::super::handshake::Progress::Reply(proof) = handshake.receive(answer[4..].to_vec().into(), &keyring)
    else {
        panic!()
    };
    socket.set_nonblocking(false).unwrap();
    socket.write_all(&frame(&proof)).unwrap();
    run(10, &mut [server], |events| up(&events[0]).is_some());
    socket
}

const PART: usize = 100_000;

/// The beginning of a long frame.
fn part() -> Vec<u8> {
    let mut part = (1u32 << 20).to_le_bytes().to_vec();
    part.resize(PART, 0);
    part
}

#[test]
fn who_hoards_half_sent_frames_gives_way_and_nobody_else() {
    let bounds = Bounds { buffers_bytes_max: 1 << 20, ..Bounds::default() };
    let (mut server, address) = listening(Channel::Plain, bounds);
    let mut sockets = Vec::new();
    for number in 0..20 {
        let mut socket = hostile(&mut server, address, number);
        socket.write_all(&part()).unwrap();
        sockets.push(socket);
        let read = server.metrics().clients.bytes_in;
        run(10, &mut [&mut server], |_| true);
        assert!(read > 0 && server.shares.all_bytes() <= bounds.buffers_bytes_max);
    }
    let mut modest = client(TWO, Channel::Plain);
    for first in 0..2 {
        let link = modest.dial(address, ReplicaId(0), who(TWO, first)).unwrap();
        modest.send(link, Lane::Usual, &vec![7; 200_000].into(), &[]);
    }
    let events = run(10, &mut [&mut server, &mut modest], |events| frames(&events[0]) == 2);
    assert_eq!(down(&events[1]), None, "{events:?}");
    assert!(server.metrics().closed[&CloseReason::Overload] > 0);
}

/// However many keys somebody has: those whom the cluster file names keep half.
#[test]
fn strangers_together_have_half_of_the_buffers() {
    let bounds = Bounds { buffers_bytes_max: 1 << 20, ..Bounds::default() };
    let (mut server, address) = listening(Channel::Plain, bounds);
    let mut strangers: Vec<(Hub, Peer)> = (1..=12).map(stranger).collect();
    for (hub, peer) in &mut strangers {
        let link = hub.dial(address, ReplicaId(0), *peer).unwrap();
        run(10, &mut [&mut server, hub], |events| up(&events[1]).is_some());
        // A frame that does not come to its end: what is missing is never sent.
        let index = link.index as usize;
        let socket = &mut hub.links[index].as_mut().unwrap().socket;
        let mut rest = &part()[..];
        while !rest.is_empty() {
            match socket.write(rest) {
                Ok(count) => rest = &rest[count..],
                Err(error) => assert_eq!(error.kind(), ErrorKind::WouldBlock),
            }
            run(10, &mut [&mut server], |_| true);
        }
    }
    run(10, &mut [&mut server], |_| true);
    assert!(server.shares.strangers_bytes() <= bounds.buffers_bytes_max / 2);
    assert!(server.metrics().closed[&CloseReason::Overload] > 0);
}

#[test]
fn what_a_client_does_not_read_counts_although_nothing_can_be_written() {
    let bounds = Bounds { buffers_bytes_max: 4 << 20, ..Bounds::default() };
    let (mut server, address) = listening(Channel::Plain, bounds);
    let (mut sockets, mut links) = (Vec::new(), Vec::new());
    for number in 0..4 {
        let mut socket = hostile(&mut server, address, number);
        socket.write_all(&[2, 0, 0, 0, 0, 0]).unwrap();
        let events = run(10, &mut [&mut server], |events| frames(&events[0]) == 1);
        let Some(Event::Frame(link, ..)) = events[0].last() else { panic!() };
        links.push(*link);
        sockets.push(socket);
    }
    for _ in 0..200 {
        for link in &links {
            server.send(*link, Lane::Usual, &vec![0; 100_000].into(), &[]);
            assert!(server.shares.all_bytes() <= bounds.buffers_bytes_max);
        }
        server.flush();
    }
    assert!(server.metrics().closed[&CloseReason::Overload] > 0);
}

/// Nobody is woken for each piece of a frame that comes slowly, and the frame is whole.
#[test]
fn a_frame_in_pieces_is_read_now_and_then() {
    const PIECE: usize = 1_448;
    let (mut server, address) = listening(Channel::Plain, Bounds::default());
    let mut slow = hostile(&mut server, address, 0);
    let frame = [&(80 * PIECE as u32).to_le_bytes()[..], &[7; 80 * PIECE]].concat();
    let mut pieces = frame.chunks(PIECE);
    let (sent, reads) = (pieces.len() as u64, server.metrics().reads);
    let events = run(10, &mut [&mut server], |events| {
        if let Some(piece) = pieces.next() {
            slow.write_all(piece).unwrap();
            std::thread::sleep(Duration::from_millis(1));
        }
        frames(&events[0]) == 1
    });
    let Some(Event::Frame(.., body)) = events[0].last() else { panic!("{events:?}") };
    assert_eq!(**body, frame[4..]);
    let reads = server.metrics().reads - reads;
    assert!(reads * 4 < sent * 3, "{reads} reads of {sent} pieces");
    assert!(server.resting.is_empty(), "it is listened to again");
}

#[test]
fn a_frame_that_does_not_go_on_is_given_up() {
    let (mut server, address) = listening(Channel::Plain, Bounds::default());
    let mut stalled = hostile(&mut server, address, 0);
    let mut slow = hostile(&mut server, address, 1);
    stalled.write_all(&part()).unwrap();
    slow.write_all(&part()).unwrap();
    let begin = Instant::now();
    let mut more = begin;
    let window = Duration::from_secs(FRAME_WINDOW_SECONDS);
    let events = run(30, &mut [&mut server], |_| {
        if more.elapsed() > window / 4 {
            more = Instant::now();
            slow.write_all(&[0; FRAME_WINDOW_BYTES as usize]).unwrap();
        }
        begin.elapsed() > window + window / 2
    });
    assert_eq!(down(&events[0]), Some(CloseReason::Stalled));
    assert_eq!(server.metrics().clients.connections, 1, "the slow one is still there");
}

/// An owner that takes long for each frame, as for a signature on a slow machine, comes back to the others soon.
#[test]
fn frames_that_cost_much_end_a_pass() {
    let (mut server, address) = listening(Channel::Plain, Bounds::default());
    let mut flood = client(ONE, Channel::Plain);
    let mut modest = client(TWO, Channel::Plain);
    let [first, second] = [(&mut flood, ONE), (&mut modest, TWO)].map(|(hub, identity)| {
        let link = hub.dial(address, ReplicaId(0), who(identity, 0)).unwrap();
        run(10, &mut [&mut server, hub], |events| up(&events[1]).is_some());
        link
    });
    for (hub, link, frames) in [(&mut flood, first, 500), (&mut modest, second, 1)] {
        (0..frames).for_each(|_| _ = hub.send(link, Lane::Usual, &b"request".to_vec().into(), &[]));
        hub.flush();
    }
    std::thread::sleep(Duration::from_millis(200));
    let (mut passes, mut heard, cost) = (Vec::new(), None, Duration::from_millis(10));
    let begin = Instant::now();
    while passes.iter().sum::<usize>() < 501 {
        assert!(begin.elapsed() < Duration::from_secs(60), "{passes:?}");
        server.poll(Some(Duration::from_millis(1))).unwrap();
        let mut frames = 0;
        while let Some(event) = server.next_event() {
            if let Event::Frame(_, peer, _) = event {
                frames += 1;
                std::thread::sleep(cost);
                if peer == who(TWO, 0) {
                    heard = Some(passes.len());
                }
            }
        }
        server.flush();
        passes.push(frames);
    }
    let most = (PASS_MS_MAX / cost.as_millis() as u64) as usize + 1;
    assert!(passes.iter().all(|frames| *frames <= most), "{passes:?}");
    assert!(heard.is_some_and(|pass| pass <= 3), "its turn comes: {heard:?}");
}

/// Links of one client, over each of which there is always something to do, and how long that takes.
const BUSY: u32 = 16;
const COST: Duration = Duration::from_millis(40);

/// A replica whose link broke is not to wait until clients, whose requests are good, have had their turns.
#[test]
fn a_replica_comes_back_while_clients_take_all_the_time() {
    let mut server = replica(0, Channel::Plain, Bounds::default());
    let [clients, replicas] = [Port::Clients, Port::Replicas]
        .map(|port| server.listen(TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).unwrap(), port).unwrap());
    let mut busy = client(ONE, Channel::Plain);
    let links: Vec<LinkId> = (0..BUSY).map(|first| linked(&mut server, &mut busy, clients, who(ONE, first))).collect();
    for _ in 0..40 {
        links.iter().for_each(|link| _ = busy.send(*link, Lane::Usual, &b"request".to_vec().into(), &[]));
    }
    busy.flush();
    std::thread::sleep(Duration::from_millis(200));
    let mut back = replica(1, Channel::Plain, Bounds::default());
    back.dial(replicas, ReplicaId(0), Peer::Replica(ReplicaId(1))).unwrap();
    let (mut is_back, mut passes, mut served) = (false, 0, 0);
    while !is_back {
        assert!(passes < 10, "after {served} requests");
        passes += 1;
        back.poll(Some(Duration::from_millis(1))).unwrap();
        while back.next_event().is_some() {}
        back.flush();
        server.poll(Some(Duration::from_millis(1))).unwrap();
        while let Some(event) = server.next_event() {
            match event {
                Event::Up(_, Peer::Replica(_)) => is_back = true,
                Event::Frame(..) => {
                    served += 1;
                    std::thread::sleep(COST);
                }
                _ => {}
            }
        }
        server.flush();
    }
    assert!(served > 0, "else nobody was in its way");
}

/// What is sent in one pass, before anything is written, has a bound as well.
#[test]
fn much_that_is_sent_at_once_counts_before_it_is_written() {
    let bounds = Bounds { buffers_bytes_max: 4 << 20, ..Bounds::default() };
    let (mut server, address) = listening(Channel::Plain, bounds);
    let mut hubs = [ONE, TWO].map(|identity| (client(identity, Channel::Plain), identity));
    let mut links = Vec::new();
    for (hub, identity) in &mut hubs {
        let link = hub.dial(address, ReplicaId(0), who(*identity, 0)).unwrap();
        hub.send(link, Lane::Usual, &b"ask".to_vec().into(), &[]);
        let events = run(10, &mut [&mut server, hub], |events| frames(&events[0]) == 1);
        links.extend(
            events[0].iter().find_map(|event| if let Event::Frame(link, ..) = event { Some(*link) } else { None }),
        );
    }
    server.poll(Some(Duration::ZERO)).unwrap();
    for _ in 0..8 {
        server.send(links[0], Lane::Usual, &vec![0; 1 << 20].into(), &[]);
        assert!(server.pending() <= bounds.buffers_bytes_max + (1 << 20), "{}", server.pending());
    }
    server.send(links[1], Lane::Usual, &vec![0; 1 << 20].into(), &[]);
    let events: Vec<Event> = std::iter::from_fn(|| server.next_event()).collect();
    assert_eq!(down(&events), Some(CloseReason::Overload));
    server.flush();
    let modest = &mut hubs[1].0;
    run(10, &mut [&mut server, modest], |events| frames(&events[1]) == 1);
}

/// There may be thousands of clients, each of which once got something long.
#[test]
fn a_client_that_has_got_something_long_leaves_no_large_buffer() {
    for channel in [Channel::Plain, Channel::Tls] {
        let (mut server, address) = listening(channel, Bounds::default());
        let mut asking = client(ONE, channel);
        let link = asking.dial(address, ReplicaId(0), who(ONE, 0)).unwrap();
        asking.send(link, Lane::Usual, &b"ask".to_vec().into(), &[]);
        let events = run(10, &mut [&mut server, &mut asking], |events| frames(&events[0]) == 1);
        let Some(Event::Frame(link, ..)) = events[0].last() else { panic!("{events:?}") };
        server.send(*link, Lane::Usual, &vec![7; 1 << 20].into(), &[]);
        run(10, &mut [&mut server, &mut asking], |events| frames(&events[1]) == 1);
        let kept = server.link(*link).map(|link| link.capacity());
        assert!(kept.is_some_and(|kept| kept <= 64 << 10), "{kept:?} over {channel:?}");
    }
}

/// Until the other end has read what was sent before.
#[test]
fn a_link_is_behind_while_its_socket_takes_nothing() {
    let (mut server, address) = listening(Channel::Plain, Bounds::default());
    let mut asking = client(ONE, Channel::Plain);
    let link = asking.dial(address, ReplicaId(0), who(ONE, 0)).unwrap();
    run(10, &mut [&mut server, &mut asking], |events| up(&events[1]).is_some());
    let frame = vec![7; 64 << 10];
    let mut sent = 0;
    while !asking.is_behind(link) {
        assert!(sent < 1000, "the server reads nothing");
        asking.send(link, Lane::Usual, &frame.clone().into(), &[]);
        asking.flush();
        sent += 1;
    }
    assert!(sent > 1, "one frame fits into the socket");
    run(10, &mut [&mut server, &mut asking], |events| frames(&events[0]) == sent);
    run(10, &mut [&mut asking], |_| true);
    assert!(!asking.is_behind(link) && asking.pending() == 0);
}

/// Whoever may say what it runs before it has proved anything says something else each time.
#[test]
fn what_the_unknown_say_is_not_remembered() {
    let mut server = replica(0, Channel::Plain, Bounds::default());
    let address = server.listen(TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).unwrap(), Port::Replicas).unwrap();
    for number in 0..20 {
        let keyring = keyring(Principal::Replica(ReplicaId(1)), SecretKey([2; 32]));
        let service = ServiceBuild::new(&format!("made up {number}"));
        let mut other = Hub::new(HubOptions { service, ..HubOptions::new(keyring, Channel::Plain) }).unwrap();
        other.dial(address, ReplicaId(0), Peer::Replica(ReplicaId(1))).unwrap();
        let events = run(10, &mut [&mut server, &mut other], |events| down(&events[1]).is_some());
        assert!(matches!(down(&events[1]), Some(CloseReason::OtherService { .. })), "{events:?}");
    }
    assert_eq!(server.metrics().refused[&LinkRefusal::OtherService], 20);
    assert_eq!(server.metrics().closed.len(), 1, "{:?}", server.metrics().closed);
}

/// TLS is done, nobody has proved anything: what is said after the end is not waited for.
#[test]
fn bytes_after_the_end_of_tls_do_not_stop_the_loop() {
    let (mut server, address) = listening(Channel::Tls, Bounds::default());
    let mut other = Raw::connect(address, || run(10, &mut [&mut server], |_| true).clear());
    other.end_and_say(&[0; 30_000]);
    let (sender, receiver) = std::sync::mpsc::channel();
    std::thread::spawn(move || {
        let mut honest = client(ONE, Channel::Tls);
        honest.dial(address, ReplicaId(0), who(ONE, 0)).unwrap();
        run(10, &mut [&mut server, &mut honest], |events| up(&events[1]).is_some());
        let begin = Instant::now();
        while !server.metrics().closed.contains_key(&CloseReason::Ended) {
            assert!(begin.elapsed() < Duration::from_secs(3), "{:?}", server.metrics());
            run(10, &mut [&mut server], |_| true);
        }
        sender.send(()).unwrap();
    });
    receiver.recv_timeout(Duration::from_secs(20)).expect("the loop goes on");
    drop(other);
}

/// Messages of TLS itself are put together up to 64 KiB: nobody may make us hold so much before it is known.
#[test]
fn tls_holds_no_more_than_a_record() {
    let (mut server, address) = listening(Channel::Tls, Bounds::default());
    // The head of a record of the handshake, and in it the head of a long ClientHello.
    let mut socket = Socket::connect(address).unwrap();
    let mut hello = vec![1, 0, 0xff, 0];
    hello.resize(16 << 10, 0);
    for piece in [&hello[..], &[0; 8 << 10], &[0; 8 << 10]] {
        let length = piece.len() as u16;
        let _ = socket.write_all(&[&[22, 3, 1, (length >> 8) as u8, length as u8], piece].concat());
    }
    run(4, &mut [&mut server], |_| server_closed(&socket));
    assert_eq!(server.metrics().closed.get(&CloseReason::TlsFailed), Some(&1));
}

fn server_closed(mut socket: &Socket) -> bool {
    socket.set_nonblocking(true).unwrap();
    !matches!(socket.read(&mut [0; 1]), Err(error) if error.kind() == ErrorKind::WouldBlock)
}

/// Connections that say nothing cost no handshake, only so many are taken at a time, and an honest client comes in
/// while they wait.
#[test]
fn who_has_left_costs_no_handshake_and_keeps_nobody_out() {
    let (mut server, address) = listening(Channel::Plain, Bounds::default());
    (0..300).for_each(|_| drop(Socket::connect(address).unwrap()));
    let begin = Instant::now();
    server.poll(Some(Duration::from_millis(1))).unwrap();
    let taken = server.metrics().accepted;
    assert!(taken < 300, "{taken}");
    // While it rests nobody is accepted, and nothing wakes it.
    let polls = (0..).take_while(|_| {
        server.poll(Some(Duration::from_millis(100))).unwrap();
        server.metrics().accepted == taken
    });
    assert!(polls.count() <= 2);
    assert!(begin.elapsed() >= Duration::from_millis(50), "{:?}", begin.elapsed());
    let mut honest = client(ONE, Channel::Plain);
    honest.dial(address, ReplicaId(0), who(ONE, 0)).unwrap();
    let events = run(10, &mut [&mut server, &mut honest], |events| up(&events[1]).is_some());
    assert!(down(&events[1]).is_none());
    assert_eq!((server.metrics().turned_away, server.metrics().clients.connections), (300, 1));
    assert_eq!(server.metrics().closed.len(), 0, "{:?}", server.metrics().closed);
}

/// Whoever begins handshakes and ends none well is turned away before it costs one, and let in again later.
#[test]
fn an_address_whose_handshakes_fail_is_turned_away_for_a_while() {
    let (mut server, address) = listening(Channel::Plain, Bounds::default());
    for _ in 0..120 {
        let mut socket = Socket::connect(address).unwrap();
        let _ = socket.write_all(b"\x04\0\0\0what");
        run(10, &mut [&mut server], |_| server_closed(&socket));
    }
    let failed = server.metrics().refused[&LinkRefusal::NotBezant];
    assert_eq!(failed + server.metrics().turned_away, 120);
    assert!(server.metrics().turned_away > 0, "{failed} failed");
    let mut honest = client(ONE, Channel::Plain);
    let begin = Instant::now();
    loop {
        honest.dial(address, ReplicaId(0), who(ONE, 0)).unwrap();
        let events =
            run(10, &mut [&mut server, &mut honest], |events| up(&events[1]).is_some() || down(&events[1]).is_some());
        if up(&events[1]).is_some() {
            break;
        }
        assert!(begin.elapsed() < Duration::from_secs(10), "{events:?}");
    }
}
