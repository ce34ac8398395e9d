//! The network layer against honest and hostile peers, over loopback.

mod support;

use bezant_core::cluster::ClientAuth;
use bezant_core::ids::ReplicaId;
use bezant_core::wire::{Rope, encode_shared};
use bezant_node::net::{Bounds, Channel, CloseReason, Event, Hub, HubOptions, Lane, LinkId, LinkRefusal, Peer, Port};
use std::io::{Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::time::{Duration, Instant};
use support::{IDENTITY, OTHER, client_keyring, cluster, keyring_of, listener, replica_keyring};

const CLIENT: Peer = Peer::Client { identity: IDENTITY, first: 0, sessions: 4 };

/// Replica 0 with both ports.
fn server() -> (Hub, SocketAddr, SocketAddr) {
    server_over(Channel::Plain)
}

fn server_over(channel: Channel) -> (Hub, SocketAddr, SocketAddr) {
    let keyring = replica_keyring(&cluster(1, 4, ClientAuth::Mac), 0);
    let mut hub = Hub::new(HubOptions::new(keyring, channel)).unwrap();
    let replicas = hub.listen(listener(), Port::Replicas).unwrap();
    let clients = hub.listen(listener(), Port::Clients).unwrap();
    (hub, replicas, clients)
}

fn client(name: u8) -> Hub {
    client_over(name, Channel::Plain)
}

fn client_over(name: u8, channel: Channel) -> Hub {
    let keyring = client_keyring(&cluster(name, 4, ClientAuth::Mac));
    Hub::new(HubOptions::new(keyring, channel)).unwrap()
}

fn pass(hub: &mut Hub, events: &mut Vec<Event>) {
    hub.poll(Some(Duration::from_millis(1))).unwrap();
    while let Some(event) = hub.next_event() {
        events.push(event);
    }
    hub.flush();
}

/// Runs all hubs until `done`, or panics after ten seconds.
fn run(hubs: &mut [&mut Hub], mut done: impl FnMut(&[Vec<Event>]) -> bool) -> Vec<Vec<Event>> {
    let mut events: Vec<Vec<Event>> = hubs.iter().map(|_| Vec::new()).collect();
    let start = Instant::now();
    while !done(&events) {
        assert!(start.elapsed() < Duration::from_secs(10), "not in time: {events:?}");
        for (hub, events) in hubs.iter_mut().zip(&mut events) {
            pass(hub, events);
        }
    }
    events
}

fn frames(events: &[Event]) -> Vec<Vec<u8>> {
    let frame = |event: &Event| if let Event::Frame(_, _, frame) = event { Some(frame.to_vec()) } else { None };
    events.iter().filter_map(frame).collect()
}

fn down(events: &[Event]) -> Option<CloseReason> {
    events.iter().find_map(|event| if let Event::Down(_, reason) = event { Some(*reason) } else { None })
}

fn up(events: &[Event]) -> Option<LinkId> {
    events.iter().find_map(|event| if let Event::Up(link, _) = event { Some(*link) } else { None })
}

#[test]
fn frames_sent_before_the_handshake_arrive_after_it_in_order_and_are_answered() {
    in_order_and_answered(Channel::Plain);
}

#[test]
fn over_tls_as_well() {
    in_order_and_answered(Channel::Tls);
}

fn in_order_and_answered(channel: Channel) {
    let (mut server, _, address) = server_over(channel);
    let mut client = client_over(1, channel);
    let link = client.dial(address, ReplicaId(0), CLIENT).unwrap();
    for number in 0..1000u32 {
        client.send(link, Lane::Usual, &number.to_le_bytes().to_vec().into(), b" times");
    }
    let big = vec![9; 3 << 20];
    client.send(link, Lane::Usual, &big.to_vec().into(), &[]);
    let events = run(&mut [&mut server, &mut client], |events| frames(&events[0]).len() == 1001);
    let got = frames(&events[0]);
    assert_eq!(got[999], [&999u32.to_le_bytes()[..], b" times"].concat());
    assert_eq!(got[1000], big);
    assert!(matches!(events[0][0], Event::Up(_, peer) if peer == CLIENT));
    let back = up(&events[0]).unwrap();
    server.send(back, Lane::Usual, &b"yes".to_vec().into(), &[]);
    // Longer than what a socket takes, and in more segments than it is offered at once.
    let mut shared = Rope::new();
    for number in 0..1000u32 {
        encode_shared(&vec![number as u8; 1500 + number as usize].into(), &mut shared);
    }
    server.send(back, Lane::Usual, &shared, b"tail");
    let events = run(&mut [&mut server, &mut client], |events| frames(&events[1]).len() == 2);
    assert_eq!(frames(&events[1]), [b"yes".to_vec(), [&shared.to_vec()[..], b"tail"].concat()]);
    assert_eq!(server.metrics().clients.connections, 1);
}

/// A short frame and what it overtakes: an acknowledgement and a request, for instance.
#[test]
fn what_leaves_together_is_one_call() {
    for channel in [Channel::Plain, Channel::Tls] {
        let (mut server, _, address) = server_over(channel);
        let mut client = client_over(1, channel);
        let link = client.dial(address, ReplicaId(0), CLIENT).unwrap();
        client.send(link, Lane::Usual, &b"hello".to_vec().into(), &[]);
        let events = run(&mut [&mut server, &mut client], |events| !frames(&events[0]).is_empty());
        let back = up(&events[0]).unwrap();
        let before = server.metrics().writes;
        server.send(back, Lane::Usual, &vec![7; 1_000].into(), &[]);
        server.send(back, Lane::Express, &b"short".to_vec().into(), &[]);
        server.flush();
        assert_eq!(server.metrics().writes - before, 1, "{channel:?}");
        let events = run(&mut [&mut server, &mut client], |events| frames(&events[1]).len() == 2);
        assert_eq!(frames(&events[1]), [b"short".to_vec(), vec![7; 1_000]]);
    }
}

#[test]
fn a_foreign_cluster_is_refused_and_both_sides_know_why() {
    let (mut server, _, address) = server();
    let mut client = client(2);
    client.dial(address, ReplicaId(0), CLIENT).unwrap();
    let events = run(&mut [&mut server, &mut client], |events| !events[1].is_empty());
    assert_eq!(down(&events[1]), Some(CloseReason::RefusedByPeer(LinkRefusal::ForeignCluster)));
    assert_eq!(server.metrics().refused[&LinkRefusal::ForeignCluster], 1);
    let told: Vec<_> = server.metrics().refused_from.iter().collect();
    let (from, refused) = told[0];
    assert!(from.is_loopback() && told.len() == 1, "{told:?}");
    assert_eq!((refused.count, refused.reason, refused.port), (1, LinkRefusal::ForeignCluster, Port::Clients));
}

#[test]
fn two_sides_with_different_channels_part_and_say_so() {
    for (ours, theirs) in [(Channel::Plain, Channel::Tls), (Channel::Tls, Channel::Plain)] {
        let (mut server, _, address) = server_over(theirs);
        let mut client = client_over(1, ours);
        client.dial(address, ReplicaId(0), CLIENT).unwrap();
        let events = run(&mut [&mut server, &mut client], |events| !events[1].is_empty());
        assert!(down(&events[1]).is_some(), "{events:?}");
        assert_eq!(server.metrics().clients.connections, 0);
    }
}

#[test]
fn nobody_listening_is_reported() {
    let address = listener().local_addr().unwrap();
    let mut client = client(1);
    client.dial(address, ReplicaId(0), CLIENT).unwrap();
    let events = run(&mut [&mut client], |events| !events[0].is_empty());
    assert_eq!(down(&events[0]), Some(CloseReason::Unreachable));
}

#[test]
fn random_bytes_and_silence_on_both_ports_leave_nothing_behind() {
    let (mut server, replicas, clients) = server();
    let mut random = vec![0; 1 << 16];
    getrandom::fill(&mut random).unwrap();
    let mut sockets = Vec::new();
    for chunk in random.chunks(64) {
        for address in [replicas, clients] {
            let mut socket = TcpStream::connect(address).unwrap();
            let _ = socket.write_all(chunk);
            sockets.push(socket);
        }
        pass(&mut server, &mut Vec::new());
    }
    // So many handshakes fail that the rest of them are turned away.
    let gone = |server: &Hub| server.metrics().turned_away + server.metrics().closed.values().sum::<u64>();
    let start = Instant::now();
    while gone(&server) < sockets.len() as u64 {
        assert!(start.elapsed() < Duration::from_secs(15), "{:?}", server.metrics());
        pass(&mut server, &mut Vec::new());
    }
    assert_eq!(server.metrics().clients.connections + server.metrics().replicas.connections, 0);
}

#[test]
fn half_open_connections_are_closed_in_time_and_do_not_keep_others_out() {
    let (mut server, replicas, clients) = server();
    let mut silent: Vec<TcpStream> =
        (0..40).map(|number| TcpStream::connect(if number % 2 == 0 { replicas } else { clients }).unwrap()).collect();
    for socket in silent.iter_mut().skip(20) {
        socket.write_all(&[100, 0, 0, 0, b'H', b'B']).unwrap();
    }
    let mut honest = client(1);
    honest.dial(clients, ReplicaId(0), CLIENT).unwrap();
    run(&mut [&mut server, &mut honest], |events| up(&events[1]).is_some());
    run(&mut [&mut server], |_| all_closed(&silent));
    assert_eq!(server.metrics().closed[&CloseReason::NotAuthenticated], 40);
    assert_eq!(server.metrics().clients.connections, 1);
}

/// Whether the other side has closed all of them.
fn all_closed(sockets: &[TcpStream]) -> bool {
    sockets.iter().all(|mut socket| {
        socket.set_nonblocking(true).unwrap();
        !matches!(socket.read(&mut [0; 1]), Err(error) if error.kind() == std::io::ErrorKind::WouldBlock)
    })
}

/// A client over a plain socket that proves who it is, so that what follows can be hostile.
fn authenticated(server: &mut Hub, address: SocketAddr) -> TcpStream {
    use bezant_node::net::handshake::{Expect, Handshake, Progress};
    let keyring = client_keyring(&cluster(1, 4, ClientAuth::Mac));
    let mut handshake = Handshake::new(&keyring, CLIENT, Expect::Replica(ReplicaId(0)), [3; 32]);
    let mut socket = TcpStream::connect(address).unwrap();
    let say = |socket: &mut TcpStream, frame: &[u8]| {
        socket.write_all(&(frame.len() as u32).to_le_bytes()).unwrap();
        socket.write_all(frame).unwrap();
    };
    say(&mut socket, &handshake.hello());
    socket.set_nonblocking(true).unwrap();
    let mut answer = Vec::new();
    while answer.len() < 4 || answer.len() < 4 + u32::from_le_bytes(answer[..4].try_into().unwrap()) as usize {
        pass(server, &mut Vec::new());
        let mut part = [0; 256];
        if let Ok(count) = socket.read(&mut part) {
            answer.extend_from_slice(&part[..count]);
        }
    }
    socket.set_nonblocking(false).unwrap();
    let Progress::Reply(proof) = handshake.receive(answer[4..].to_vec().into(), &keyring) else { panic!() };
    say(&mut socket, &proof);
    let before = server.metrics().clients.connections;
    let start = Instant::now();
    while server.metrics().clients.connections == before && start.elapsed() < Duration::from_secs(10) {
        pass(server, &mut Vec::new());
    }
    // READY stays unread.
    socket
}

#[test]
fn one_byte_at_a_time_is_still_a_frame() {
    let (mut server, _, address) = server();
    let mut socket = authenticated(&mut server, address);
    let mut events = Vec::new();
    for byte in [5, 0, 0, 0, b'h', b'e', b'l', b'l', b'o'] {
        assert!(frames(&events).is_empty());
        socket.write_all(&[byte]).unwrap();
        pass(&mut server, &mut events);
    }
    let events = run(&mut [&mut server], |new| !frames(&events).is_empty() || !frames(&new[0]).is_empty());
    drop(events);
}

#[test]
fn an_oversized_frame_ends_the_connection() {
    let (mut server, _, address) = server();
    let mut socket = authenticated(&mut server, address);
    socket.write_all(&u32::MAX.to_le_bytes()).unwrap();
    let events = run(&mut [&mut server], |events| !events[0].is_empty());
    assert_eq!(down(&events[0]), Some(CloseReason::Oversized));
    assert_eq!(server.metrics().clients.connections, 0);
}

#[test]
fn a_client_that_never_reads_is_cut_off_at_its_bound() {
    let (mut server, _, address) = server();
    let mut socket = authenticated(&mut server, address);
    socket.write_all(&[1, 0, 0, 0, 0]).unwrap();
    let events = run(&mut [&mut server], |events| !frames(&events[0]).is_empty());
    let Event::Frame(link, ..) = &events[0][0] else { panic!() };
    let mut events = Vec::new();
    for _ in 0..200 {
        server.send(*link, Lane::Usual, &vec![0; 1 << 20].into(), &[]);
        assert!(server.pending() < 20 << 20);
        pass(&mut server, &mut events);
    }
    assert_eq!(down(&events), Some(CloseReason::NeverReads));
    assert_eq!(server.pending(), 0);
}

fn bounded(bounds: Bounds) -> (Hub, SocketAddr) {
    let keyring = replica_keyring(&cluster(1, 4, ClientAuth::Mac), 0);
    let mut hub = Hub::new(HubOptions { bounds, ..HubOptions::new(keyring, Channel::Plain) }).unwrap();
    let address = hub.listen(listener(), Port::Clients).unwrap();
    (hub, address)
}

#[test]
fn half_sent_frames_of_many_clients_stay_within_their_common_bound() {
    let buffers_bytes_max = 1 << 20;
    let (mut server, address) = bounded(Bounds { buffers_bytes_max, ..Bounds::default() });
    let mut part = (1u32 << 20).to_le_bytes().to_vec();
    part.resize(100_000, 0);
    let mut sockets = Vec::new();
    for _ in 0..20 {
        let mut socket = authenticated(&mut server, address);
        let _ = socket.write_all(&part);
        sockets.push(socket);
        pass(&mut server, &mut Vec::new());
    }
    let start = Instant::now();
    while server.metrics().closed.get(&CloseReason::Overload).is_none_or(|closed| *closed < 9) {
        assert!(start.elapsed() < Duration::from_secs(10), "{:?}", server.metrics());
        pass(&mut server, &mut Vec::new());
    }
    assert!(server.metrics().clients.connections <= 11);
    let mut honest = client(1);
    let link = honest.dial(address, ReplicaId(0), Peer::Client { identity: IDENTITY, first: 99, sessions: 1 }).unwrap();
    honest.send(link, Lane::Usual, &b"small".to_vec().into(), &[]);
    run(&mut [&mut server, &mut honest], |events| frames(&events[0]).iter().any(|frame| frame == b"small"));
}

#[test]
fn nobody_can_take_all_places_from_the_others() {
    let (mut server, address) = bounded(Bounds { connections_max: 4, ..Bounds::default() });
    let peer = |identity, first| Peer::Client { identity, first, sessions: 1 };
    let mut greedy = client(1);
    for first in 0..5 {
        greedy.dial(address, ReplicaId(0), peer(IDENTITY, first)).unwrap();
    }
    let ends = run(&mut [&mut server, &mut greedy], |events| events[1].len() == 5);
    assert_eq!(down(&ends[1]), Some(CloseReason::RefusedByPeer(LinkRefusal::TooMany)));
    let keyring = keyring_of(&cluster(1, 4, ClientAuth::Mac), OTHER);
    let mut modest = Hub::new(HubOptions::new(keyring, Channel::Plain)).unwrap();
    modest.dial(address, ReplicaId(0), peer(OTHER, 0)).unwrap();
    let events = run(&mut [&mut server, &mut greedy, &mut modest], |events| !events[2].is_empty());
    assert!(up(&events[2]).is_some(), "{events:?}");
    assert_eq!(down(&events[0]), Some(CloseReason::Superseded));
    assert_eq!(server.metrics().clients.connections, 4);
}

#[test]
fn a_flooding_client_does_not_starve_another() {
    let (mut server, _, address) = server();
    let mut flood = authenticated(&mut server, address);
    let mut frame = 1000u32.to_le_bytes().to_vec();
    frame.extend_from_slice(&[0; 1000]);
    let flooder = std::thread::spawn(move || while flood.write_all(&frame).is_ok() {});
    let mut honest = client(1);
    let link = honest.dial(address, ReplicaId(0), CLIENT).unwrap();
    honest.send(link, Lane::Usual, &b"honest".to_vec().into(), &[]);
    run(&mut [&mut server, &mut honest], |events| frames(&events[0]).iter().any(|frame| frame == b"honest"));
    drop(server);
    flooder.join().unwrap();
}
