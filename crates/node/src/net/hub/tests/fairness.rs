//! A client that has had what the level allows waits, and loses nothing; over loopback.

use super::super::level::Fairness;
use super::*;

/// A frame of a flood.
const BYTES: usize = 9_000;

/// Reads the first client at a level of 1 MiB a second, and looks no more.
fn hold_one(server: &mut Hub) {
    let mut fairness = Fairness::new();
    fairness.level.hold_for_test(&[who(ONE, 0).principal()], 1 << 20, Instant::now());
    server.fairness = Some(fairness);
    server.look_at = Instant::now() + Duration::from_secs(60);
}

#[test]
fn a_client_is_read_at_the_level_and_loses_nothing() {
    let (mut server, address) = listening(Channel::Plain, Bounds::default());
    let mut hubs = [ONE, TWO].map(|identity| client(identity, Channel::Plain));
    let links = [0, 1].map(|at| linked(&mut server, &mut hubs[at], address, who([ONE, TWO][at], 0)));
    let second = Duration::from_secs(1);
    hold_one(&mut server);
    let (mut sent, mut came) = ([0_u32; 2], [0_u32; 2]);
    let mut turn = |server: &mut Hub, more: bool| {
        for at in [0, 1] {
            let room = |hub: &Hub| if at == 0 { hub.pending() < 1 << 17 } else { hub.pending() == 0 };
            while more && room(&hubs[at]) {
                hubs[at].send(links[at], Lane::Usual, &vec![at as u8; [BYTES, 100][at]].into(), &[]);
                sent[at] += 1;
            }
            hubs[at].poll(Some(Duration::ZERO)).unwrap();
            while hubs[at].next_event().is_some() {}
            hubs[at].flush();
        }
        server.poll(Some(Duration::from_millis(1))).unwrap();
        while let Some(event) = server.next_event() {
            let Event::Frame(_, _, body) = event else { continue };
            came[usize::from(body[0])] += 1;
        }
        server.flush();
        (sent, came)
    };
    let begin = Instant::now();
    let mut at_level = [0; 2];
    while begin.elapsed() < 2 * second {
        at_level = turn(&mut server, true).1;
    }
    let most = (2 << 20) / BYTES as u32 * 5 / 4;
    assert!((100..most).contains(&at_level[0]), "{at_level:?}, at most {most} of the one that is held");
    assert!(at_level[1] > 1_000, "{at_level:?}, and the other waits for nobody");
    server.fairness = None;
    let (mut sent, mut came) = turn(&mut server, false);
    while came != sent {
        assert!(begin.elapsed() < 20 * second, "{came:?} of {sent:?}");
        (sent, came) = turn(&mut server, false);
    }
}

/// No packet comes any more that would wake anybody.
#[test]
fn frames_that_are_here_already_come_when_their_link_has_rested() {
    let (mut server, address) = listening(Channel::Plain, Bounds::default());
    let mut hub = client(ONE, Channel::Plain);
    let link = linked(&mut server, &mut hub, address, who(ONE, 0));
    hold_one(&mut server);
    // And nobody asks whether the other side is there.
    hub.look_at = server.look_at;
    let frames = 100;
    (0..frames).for_each(|_| _ = hub.send(link, Lane::Usual, &vec![1; 1_000].into(), &[]));
    let came = |events: &[Event]| events.iter().filter(|event| matches!(event, Event::Frame(..))).count();
    let begin = Instant::now();
    run(10, &mut [&mut server, &mut hub], |events| came(&events[0]) == frames);
    // A frame counts 1 KiB besides its bytes, and a sixteenth of a second's worth is there at once.
    assert!(begin.elapsed() > Duration::from_millis(100), "{:?}", begin.elapsed());
}
