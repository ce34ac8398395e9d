//! Groups, and a network that delivers in an order that a seed decides, and loses some.

use super::*;
use crate::machine::Effect;
use crate::protocols::ritas::bounds::ROOTS;
use crate::protocols::ritas::message::{Statement, Summary};
use crate::protocols::ritas::statements::Statements;
use alloc::vec;

/// What a process keeps for others.
const HISTORY_BYTES: usize = 100_000;

struct Net {
    groups: Vec<Group>,
    events: Vec<Vec<GroupEvent>>,
    packets: Vec<(ReplicaId, usize, GroupMessage)>,
    cut_off: Option<usize>,
    /// Whether results are taken at once.
    takes: bool,
    lots: u64,
}

impl Net {
    fn new(n: usize, bundles: bool) -> Self {
        let replicas = Replicas::of(n).unwrap();
        let group = |me: usize| {
            Group::new(GroupOptions {
                replicas,
                me: ReplicaId(me as u8),
                epoch: 7,
                secret: Digest([me as u8; 32]),
                coin: None,
                variant: Variant::default(),
                bundles,
                interval: Duration::from_millis(100),
                history_bytes_max: HISTORY_BYTES,
            })
        };
        let groups = (0..n).map(group).collect();
        Self { groups, events: vec![Vec::new(); n], packets: Vec::new(), cut_off: None, takes: true, lots: 1 }
    }

    fn draw(&mut self, end: usize) -> usize {
        self.lots = self.lots.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (self.lots >> 33) as usize % end
    }

    fn step(&mut self, me: usize, input: Input<Group>) {
        let (mut out, mut taken) = (Outbox::new(), Vec::new());
        self.groups[me].step(Instant(0), input, &mut out);
        self.groups[me].step(Instant(0), Input::PassEnd, &mut out);
        for effect in out.drain() {
            match effect {
                Effect::Send(to, message) => {
                    let all: Vec<usize> = match to {
                        Destination::Replica(to) => vec![to.0.into()],
                        _ => (0..self.groups.len()).filter(|to| *to != me).collect(),
                    };
                    let heard = all.into_iter().filter(|to| ![Some(me), Some(*to)].contains(&self.cut_off));
                    self.packets.extend(heard.map(|to| (ReplicaId(me as u8), to, message.clone())));
                }
                Effect::Notify(event) => {
                    taken.extend(event.taken().filter(|_| self.takes));
                    self.events[me].push(event);
                }
                _ => {}
            }
        }
        for taken in taken {
            self.step(me, Input::Command(Command::Taken(taken)));
        }
    }

    fn call(&mut self, me: usize, call: Call) {
        self.step(me, Input::Command(Command::Call(call)));
    }

    /// Delivers everything.
    fn deliver(&mut self) {
        while !self.packets.is_empty() {
            let at = self.draw(self.packets.len());
            let (from, to, message) = self.packets.swap_remove(at);
            self.step(to, Input::Message((from, message)));
        }
    }

    /// Delivers, loses one frame in fifty, and goes through so many intervals of the channel.
    fn settle(&mut self, intervals: usize) {
        for _ in 0..intervals {
            while !self.packets.is_empty() {
                let at = self.draw(self.packets.len());
                let (from, to, message) = self.packets.swap_remove(at);
                if self.draw(50) > 0 {
                    let bytes = Bytes::from(message.to_bytes());
                    assert_eq!(GroupMessage::from_bytes(bytes), Ok(message.clone()), "it is read as it was written");
                    self.step(to, Input::Message((from, message)));
                }
            }
            (0..self.groups.len()).for_each(|me| self.step(me, Input::Timer(GroupTimer::Channel)));
        }
    }

    fn ordered(&self, me: usize) -> Vec<GroupEvent> {
        self.events[me].iter().filter(|event| matches!(event, GroupEvent::Ordered(..))).cloned().collect()
    }
}

fn message(of: usize, number: usize) -> Bytes {
    Bytes::from(alloc::format!("message {number} of {of}"))
}

#[test]
fn every_layer_answers_and_all_answers_are_the_same() {
    let mut net = Net::new(4, true);
    for me in 0..4 {
        net.call(me, Call::Reliable(0, message(me, 0)));
        net.call(me, Call::Echo(0, message(me, 1)));
        net.call(me, Call::Bit(0, true));
        net.call(me, Call::Value(0, Bytes::from_static(b"same")));
        net.call(me, Call::Vector(0, message(me, 2)));
        net.call(me, Call::Order(message(me, 3)));
    }
    net.settle(12);
    for me in 0..4 {
        let events = &net.events[me];
        for of in 0..4 {
            let owner = ReplicaId(of as u8);
            assert!(events.contains(&GroupEvent::Reliable(owner, 0, message(of, 0))), "{events:?}");
            assert!(events.contains(&GroupEvent::Echo(owner, 0, message(of, 1))));
            assert!(events.contains(&GroupEvent::Ordered(owner, message(of, 3))));
        }
        assert!(events.contains(&GroupEvent::Bit(0, true)));
        assert!(events.contains(&GroupEvent::Value(0, Some(Bytes::from_static(b"same")))));
        assert!(events.iter().any(|event| matches!(event, GroupEvent::Vector(0, vector) if vector.len() == 4)));
        assert_eq!(net.ordered(me), net.ordered(0));
        assert_eq!(net.groups[me].waiting(), 0);
    }
}

/// Group 2, 3 and 5: more than any window has.
#[test]
fn what_has_no_room_yet_waits() {
    for bundles in [false, true] {
        let mut net = Net::new(4, bundles);
        for number in 0..200 {
            net.call(1, Call::Reliable(number as u64, message(1, number)));
            net.call(1, Call::Order(message(1, number)));
        }
        assert!(net.groups[1].waiting() > 0);
        net.settle(40);
        let sent: Vec<_> = (0..200).map(|number| GroupEvent::Ordered(ReplicaId(1), message(1, number))).collect();
        for me in 0..4 {
            // Group 5.
            assert_eq!(net.ordered(me), sent, "bundles: {bundles}");
            let broadcasts = net.events[me].iter().filter(|event| matches!(event, GroupEvent::Reliable(..)));
            assert_eq!(broadcasts.count(), 200);
        }
        assert_eq!(net.groups[1].waiting(), 0);
    }
}

/// `history.rs`: nothing grows while all come along, and who is cut off is told so once nobody keeps what it misses.
#[test]
fn what_all_have_is_forgotten_and_who_is_cut_off_is_left_behind() {
    let mut net = Net::new(4, true);
    let mut instances = 0;
    for number in 0..60 {
        net.call(number % 4, Call::Order(message(0, number)));
        net.settle(4);
        instances = instances.max(net.groups[0].instances());
    }
    net.settle(8);
    assert!(net.groups[0].instances() < 40, "{} of {instances} instances are left", net.groups[0].instances());
    net.cut_off = Some(3);
    let large = Bytes::from(vec![5; HISTORY_BYTES / 10]);
    for _ in 0..16 {
        net.call(0, Call::Order(large.clone()));
        net.settle(4);
    }
    assert!(net.groups[0].history.kept() > net.groups[3].round(), "more than the bound is not kept");
    net.cut_off = None;
    net.settle(80);
    assert!(net.events[3].contains(&GroupEvent::LeftBehind));
    assert!(!net.events[0].contains(&GroupEvent::LeftBehind));
}

/// ritas-F11.
#[test]
fn another_run_is_not_listened_to() {
    let mut net = Net::new(4, true);
    net.call(0, Call::Reliable(0, message(0, 0)));
    for (_, _, message) in &mut net.packets {
        message.epoch += 1;
    }
    net.settle(1);
    assert!(net.events[1].contains(&GroupEvent::Rejected(ReplicaId(0), Rejection::WrongInstance)));
    net.settle(8);
    assert!(net.events[1].contains(&GroupEvent::Reliable(ReplicaId(0), 0, message(0, 0))), "said again in this one");
}

/// Group 2.
#[test]
fn what_nobody_takes_has_a_bound() {
    let mut net = Net::new(4, true);
    net.takes = false;
    for number in 0..200 {
        net.call(1, Call::Reliable(number, message(1, 0)));
    }
    net.settle(20);
    let delivered = net.events[0].len();
    assert!((1..=ROOTS as usize).contains(&delivered), "{delivered}");
    for number in 0..10 {
        for me in 0..4 {
            net.step(me, Input::Command(Command::Taken(Taken::Reliable(ReplicaId(1), number))));
        }
    }
    net.settle(20);
    assert_eq!(net.events[0].len(), delivered + 10);
}

/// Group 6: no timer leads it further, while the others go on.
#[test]
fn a_process_that_is_behind_comes_along_at_once() {
    let mut net = Net::new(4, false);
    net.cut_off = Some(3);
    for number in 0..40 {
        net.call(0, Call::Order(message(0, number)));
        net.deliver();
    }
    assert!(net.groups[0].round() > 20, "many rounds");
    net.cut_off = None;
    (0..4).for_each(|number| net.call(0, Call::Order(message(0, 40 + number))));
    net.deliver();
    assert_eq!(net.ordered(3), net.ordered(0));
    assert_eq!(net.ordered(3).len(), 44);
}

/// Its author claims that it has heard nothing.
fn asking_for_all() -> GroupMessage {
    let summary = Summary { heard: Vec::new(), round: 0, messages: vec![0; 4] };
    GroupMessage { epoch: 7, speech: Speech::Summary(Box::new(summary)) }
}

#[test]
fn who_asks_all_the_time_is_answered_now_and_then() {
    let mut net = Net::new(4, true);
    net.call(0, Call::Reliable(0, message(0, 0)));
    net.deliver();
    let message = asking_for_all();
    for _ in 0..1_000 {
        net.step(0, Input::Message((ReplicaId(3), message.clone())));
    }
    assert!(!net.packets.is_empty() && net.packets.len() <= 32, "{} answers", net.packets.len());
    let refused = GroupEvent::Rejected(ReplicaId(3), Rejection::Overload);
    assert_eq!(net.events[0].iter().filter(|event| **event == refused).count(), 1_000 - 32);
}

/// Who claims not to have heard anything is told no more in an interval, whatever it costs to tell.
#[test]
fn an_answer_has_a_bound_in_bytes() {
    let mut net = Net::new(4, true);
    let long = Bytes::from(vec![7; MESSAGE_BYTES_MAX]);
    (0..12).for_each(|number| net.call(0, Call::Reliable(number, long.clone())));
    net.deliver();
    let message = asking_for_all();
    let told = |net: &mut Net| {
        (0..10).for_each(|_| net.step(0, Input::Message((ReplicaId(3), message.clone()))));
        net.packets.drain(..).map(|(.., packet)| packet.to_bytes().len()).sum::<usize>()
    };
    for _ in 0..2 {
        let bytes = told(&mut net);
        assert!((4 << 20..6 << 20).contains(&bytes), "{bytes}");
        net.step(0, Input::Timer(GroupTimer::Channel));
        net.packets.clear();
    }
}

/// Its application takes nothing: it comes no further, as if it were slow.
#[test]
fn who_is_held_is_given_nothing_and_comes_along_later() {
    let mut net = Net::new(4, false);
    net.step(3, Input::Command(Command::Hold(true)));
    for number in 0..40 {
        net.call(0, Call::Order(message(0, number)));
        net.deliver();
    }
    assert_eq!((net.ordered(0).len(), net.ordered(3).len()), (40, 0));
    net.step(3, Input::Command(Command::Hold(false)));
    net.settle(80);
    assert_eq!(net.ordered(3), net.ordered(0));
}

#[test]
fn one_alone_forgets_what_it_has_ordered() {
    let mut net = Net::new(1, true);
    for number in 0..50 {
        net.call(0, Call::Order(message(0, number)));
        net.settle(1);
    }
    assert_eq!(net.ordered(0).len(), 50);
    assert!(net.groups[0].instances() < 10, "{} instances are left", net.groups[0].instances());
}

/// The application has no room for more, and each that is let in is kept.
#[test]
fn nobody_says_what_is_longer_than_a_message() {
    let mut net = Net::new(4, true);
    let (reliable, echo) = (Path::root(Layer::Reliable, 0), Path::root(Layer::Echo, 0));
    let (multi, vector) = (Path::root(Layer::Multi, 0), Path::root(Layer::Vector, 0));
    let owner = ReplicaId(3);
    let broadcasts = [
        (reliable.by(owner), MESSAGE_BYTES_MAX),
        (echo.by(owner), MESSAGE_BYTES_MAX),
        (multi.child(Layer::Init, 0).by(owner), MESSAGE_BYTES_MAX + 8),
        (vector.child(Layer::Value, 0).by(owner), MESSAGE_BYTES_MAX - 16),
    ];
    let mut refused = 0;
    for (path, longest) in broadcasts {
        for bytes in [longest, longest + 1] {
            let statement = Statement::Initial(Value(vec![1; bytes].into()));
            let speech = Speech::Said(Statements(vec![Said { path, statement }]));
            net.step(0, Input::Message((owner, GroupMessage { epoch: 7, speech })));
            refused += usize::from(bytes > longest);
            let rejected = net.events[0].iter().filter(|event| matches!(event, GroupEvent::Rejected(..))).count();
            assert_eq!(rejected, refused, "{path:?}");
        }
    }
}

/// What waits takes memory, also if it is empty.
#[test]
fn an_empty_call_that_waits_counts() {
    let mut net = Net::new(4, true);
    (0..1_000).for_each(|_| net.call(0, Call::Order(Bytes::new())));
    assert!(net.groups[0].waiting() >= 900 * CALL_ALLOWANCE);
    net.settle(8);
    assert_eq!(net.groups[0].waiting(), 0);
}
