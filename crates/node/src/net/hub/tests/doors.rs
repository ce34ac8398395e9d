//! Doors for one replica each.

use super::*;

/// How a replica's link to a port ends; `None`: it is up.
fn comes(server: &mut Hub, id: u8, to: SocketAddr) -> Option<CloseReason> {
    let mut hub = replica(id, Channel::Plain, Bounds::default());
    hub.dial(to, ReplicaId(0), Peer::Replica(ReplicaId(id))).unwrap();
    let events = run(10, &mut [server, &mut hub], |events| up(&events[1]).is_some() || down(&events[1]).is_some());
    down(&events[1])
}

#[test]
fn a_replica_with_a_door_of_its_own_comes_by_that_and_nobody_else_does() {
    let mut server = replica(0, Channel::Plain, Bounds::default());
    let [own, all] = [Port::Peer(ReplicaId(1)), Port::Replicas]
        .map(|port| server.listen(TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).unwrap(), port).unwrap());
    let refused = Some(CloseReason::RefusedByPeer(LinkRefusal::WrongParty));
    assert_eq!((comes(&mut server, 1, own), comes(&mut server, 2, all)), (None, None));
    assert_eq!((comes(&mut server, 2, own), comes(&mut server, 1, all)), (refused, refused));
    assert_eq!(server.metrics().refused[&LinkRefusal::WrongParty], 2);
    let from = server.metrics().refused_from.of(Ipv4Addr::LOCALHOST.into()).unwrap();
    assert_eq!((from.count, from.port), (2, Port::Replicas));
}

#[test]
fn a_port_for_each_replica_can_be_listened_to() {
    let mut server = replica(0, Channel::Plain, Bounds::default());
    for number in 0..LISTENERS_MAX {
        let port = if number < 2 { Port::Replicas } else { Port::Peer(ReplicaId(number as u8 - 2)) };
        server.listen(TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).unwrap(), port).unwrap();
    }
    assert!(server.waker().wake().is_ok());
    run(10, &mut [&mut server], |_| true);
}
