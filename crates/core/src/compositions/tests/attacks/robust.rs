//! What those who flood, dawdle, panic and lie make of R-Aliph (abs-K1 to abs-K4, abs-K14, abs-K22), or Aliph: abs-K23.
//!
//! Three clients ask all the time, on a network with a clock: a message takes a hop. In a Backup a hop takes 8/5 of
//! that, as signatures do, so that what speculates is better than it.

use crate::auth::Claimed;
use crate::batch::Batch;
use crate::checkpoint::Checkpoint;
use crate::cluster::{ClientAuth, Cluster, Limits};
use crate::compositions::tests::attacks::clients::spoilt;
use crate::compositions::tests::run::Run;
use crate::compositions::tests::script::{client, panic};
use crate::digest::Digest;
use crate::ids::{InstanceId, Principal, Sequence, Timestamp, View};
use crate::message::Request;
use crate::notice::Notice;
use crate::protocols::pbft::{Ordering, PbftMessage, Position, PrePrepare, ViewChange, Vote};
use crate::registry::Message;
use crate::rejection::Rejection;
use crate::schedule::{Order, Part, Protocol, Quota, Schedule};
use crate::services::Counter;
use crate::stop::StopReason;
use crate::switching::{Feedback, Returned, Switch, SwitchMessage};
use crate::testing::net::{Frame, Net, c, cluster, kind, r};
use alloc::boxed::Box;
use alloc::sync::Arc;
use alloc::vec;
use alloc::vec::Vec;

/// Correct clients.
const CLIENTS: usize = 3;
/// The session that lies.
const LIAR: u32 = CLIENTS as u32;
/// Microseconds between two looks.
const LOOK: u64 = 50_000;
/// Where Quorum and Chain run for the first time.
const QUORUM: InstanceId = InstanceId(2);
const CHAIN: InstanceId = InstanceId(3);

/// See the [module](self).
#[derive(Clone)]
struct Busy {
    net: Net<Counter>,
    /// Microseconds that a message takes.
    hop: u64,
    /// Who takes so many microseconds longer for whatever it says.
    slow: Option<(Principal, u64)>,
    late: Vec<(u64, Frame)>,
    /// How many of the clients ask again.
    ask: usize,
    /// Answers to each correct client.
    served: [u64; CLIENTS],
    /// When the clients say again what waits.
    next_feedback: u64,
    /// PANICs of correct clients.
    panics: usize,
    /// Every instance that a replica left, and why.
    left: Vec<(InstanceId, StopReason)>,
}

impl Busy {
    /// Backups of k requests.
    fn new(protocol: Protocol, k: u64, hop: u64) -> Self {
        let quota = Quota::Fixed(k);
        let cluster = Cluster { protocol, quota, ..cluster(4, ClientAuth::Hybrid, Limits::default()) };
        let net = Net::of(cluster, 1 + CLIENTS as u32, |_| Counter::default());
        let served = [0; CLIENTS];
        let mut busy = Self {
            net,
            hop,
            slow: None,
            late: Vec::new(),
            ask: CLIENTS,
            served,
            next_feedback: 0,
            panics: 0,
            left: Vec::new(),
        };
        (0..CLIENTS).for_each(|session| busy.net.submit(session, &Counter::add(1), false));
        busy
    }

    /// `r-aliph`, in its first Quorum: its Backup is over, and was measured.
    fn measured(hop: u64) -> Self {
        let mut busy = Self::new(Protocol::RAliph, 200 * 1_000 / hop, hop);
        busy.run_to(QUORUM);
        busy
    }

    /// The same, in Chain: somebody has panicked.
    fn in_chain(hop: u64) -> Self {
        let mut busy = Self::measured(hop);
        busy.panic();
        busy.run_to(CHAIN);
        busy
    }

    /// A robust ring; its Backup is over, and was measured.
    fn in_ring(hop: u64) -> Self {
        let schedule = Schedule::new(&[Part::Backup(Order::Aardvark), Part::RingFast]).unwrap();
        let mut busy = Self::new(Protocol::Schedule(schedule), 200 * 1_000 / hop, hop);
        busy.run_to(InstanceId(2));
        busy
    }

    fn instance(&self) -> InstanceId {
        self.net.hosts.iter().map(|host| host.replica.instance()).max().unwrap()
    }

    fn part(&self) -> Part {
        self.net.cluster.part(self.instance())
    }

    /// The liar panics in the instance that runs.
    fn panic(&mut self) {
        let instance = self.instance();
        (0..4).for_each(|id| self.net.forge(c(LIAR), r(id), panic(instance, LIAR)));
    }

    /// The liar asks for this in the instance that runs.
    fn ask(&mut self, timestamp: u64, operation: &[u8]) -> Request {
        let request = self.net.request(self.instance(), LIAR, timestamp, operation);
        if self.part() == Part::Chain {
            request
        } else {
            request.authenticate_for_all(&self.net.cluster, &self.net.client_keys)
        }
    }

    /// A machine says to all that so much waits, in thousandths, and this of it.
    fn say(&mut self, session: u32, load: u32, oldest: Option<u64>) {
        let oldest = oldest.map(|timestamp| (session, Timestamp(timestamp)));
        let message = SwitchMessage::Feedback(Feedback { machine: client(session), load, oldest });
        let said = Message::Switch(Switch { instance: self.instance(), message });
        (0..4).for_each(|id| self.net.forge(c(session), r(id), said.clone()));
    }

    /// One message delay, in which everybody hears what was said to it, and who is answered asks again.
    fn hop(&mut self) {
        let now = self.net.now.0 + if self.part().is_backup() { self.hop * 8 / 5 } else { self.hop };
        let frames = core::mem::take(&mut self.net.in_flight);
        while self.net.fire_before(crate::time::Instant(now)) {}
        self.net.now.0 = now;
        let slow = self.slow;
        let is_slow = |frame: &Frame| slow.is_some_and(|(who, _)| frame.from == who);
        let (late, mut arrive): (Vec<_>, Vec<_>) = frames.into_iter().partition(is_slow);
        self.late.extend(late.into_iter().map(|frame| (now + slow.map_or(0, |(_, by)| by), frame)));
        let (due, late) = core::mem::take(&mut self.late).into_iter().partition(|(at, _)| *at <= now);
        self.late = late;
        arrive.extend(Vec::into_iter(due).map(|(_, frame)| frame));
        self.net.deliver_all(arrive);
        for completed in core::mem::take(&mut self.net.completed) {
            let session = completed.client.session as usize;
            if let Some(served) = self.served[..self.ask].get_mut(session) {
                *served += 1;
                self.net.submit(session, &Counter::add(1), false);
            }
        }
        if now >= self.next_feedback {
            self.next_feedback = now + LOOK;
            for session in 0..CLIENTS {
                let oldest = self.net.clients[session].asked().map(|timestamp| timestamp.0);
                self.say(session as u32, 1_000, oldest);
            }
        }
        self.note();
    }

    /// Counts what was said and noticed, and forgets it: floods are long.
    fn note(&mut self) {
        let of_correct = |frame: &&Frame| frame.from != c(LIAR) && kind(&frame.message) == "PANIC";
        self.panics += self.net.sent.iter().filter(of_correct).count();
        self.net.sent.clear();
        self.net.events.clear();
        for host in &mut self.net.hosts {
            for (_, notice) in core::mem::take(&mut host.notices) {
                if let Notice::Stopped { instance, reason } = notice {
                    self.left.push((instance, reason));
                }
            }
        }
    }

    /// So many looks, before each hop of which somebody does something.
    fn looks(&mut self, looks: u64, mut act: impl FnMut(&mut Self)) {
        let until = self.net.now.0 + looks * LOOK;
        while self.net.now.0 < until {
            act(self);
            self.hop();
        }
    }

    /// Until all replicas are in this instance.
    fn run_to(&mut self, instance: InstanceId) {
        let until = self.net.now.0 + 200 * LOOK;
        while self.net.hosts.iter().any(|host| host.replica.instance() < instance) {
            assert!(self.net.now.0 < until, "{instance} does not begin");
            self.hop();
        }
        assert_eq!(self.instance(), instance);
    }

    /// How many looks pass until the instance that runs is left; at most so many.
    fn looks_until_it_is_left(&mut self, most: u64) -> Option<u64> {
        let (from, instance) = (self.net.now.0, self.instance());
        while self.instance() == instance && self.net.now.0 <= from + most * LOOK {
            self.hop();
        }
        (self.instance() > instance).then(|| (self.net.now.0 - from).div_ceil(LOOK))
    }

    /// How many requests each replica has executed, and how many of them were not the liar's.
    fn executed(&self) -> (u64, u64) {
        (self.net.hosts[0].replica.estate().position(), self.served.iter().sum())
    }

    fn views(&self) -> Vec<u64> {
        self.net.hosts.iter().map(|host| host.replica.report().view_changes).collect()
    }

    /// Instances that were left for anything but their end.
    fn aborted(&self) -> Vec<InstanceId> {
        let mut aborted: Vec<InstanceId> = self.left.iter().map(|(instance, _)| *instance).collect();
        aborted.retain(|instance| !self.net.cluster.part(*instance).is_backup());
        aborted.sort_unstable();
        aborted.dedup();
        aborted
    }

    fn stopped_for(&self, reason: StopReason) -> usize {
        self.left.iter().filter(|(_, of)| *of == reason).count()
    }
}

/// abs-K1: a client floods all replicas with requests of 9 kB, each newer than the one before. Where requests wait, in
/// Aardvark and at the head of Chain, it has one place, as everybody has: of what comes between two batches only its
/// newest is ordered. No instance is left for it, and nobody is served less.
#[test]
fn k01_a_flood_of_long_requests_takes_one_place_and_ends_nothing() {
    const LOOKS: u64 = 15;
    let instances: [fn() -> Busy; 3] =
        [|| Busy::new(Protocol::RAliph, 100_000, 1_000), || Busy::measured(1_000), || Busy::in_chain(1_000)];
    for start in instances {
        // Few enough not to be a crowd with one more.
        let begun = Busy { ask: CLIENTS - 1, ..start() };
        let mut busy = begun.clone();
        let (instance, before) = (busy.instance(), busy.served);
        busy.looks(LOOKS, |_| ());
        let quiet: Vec<u64> = (0..busy.ask).map(|session| busy.served[session] - before[session]).collect();
        let mut busy = begun;
        let (before, mut timestamp, mut hops) = (busy.executed(), 1, 0);
        let served = busy.served;
        busy.looks(LOOKS, |busy| {
            hops += 1;
            for _ in 0..4 {
                let request = busy.ask(timestamp, &[7; 9 << 10]);
                timestamp += 1;
                (0..4).for_each(|id| busy.net.forge(c(LIAR), r(id), Message::Request(request.clone())));
            }
            let pending = busy.net.hosts.iter().map(|host| host.replica.report().pending_requests);
            assert!(pending.max().unwrap() <= CLIENTS + 1, "one place for each");
        });
        let part = busy.part();
        assert_eq!(busy.instance(), instance, "{part} goes on: {:?}", busy.left);
        assert_eq!((busy.views(), busy.panics), (vec![0; 4], 0), "{part}");
        for (session, quiet) in quiet.into_iter().enumerate() {
            let flooded = busy.served[session] - served[session];
            assert!(flooded * 10 >= quiet * 9, "{part}: {flooded} instead of {quiet}");
        }
        if part != Part::Quorum {
            let (all, others) = busy.executed();
            let liars = (all - before.0).saturating_sub(others - before.1);
            assert!(0 < liars && liars <= hops + CLIENTS as u64, "{part}: {liars} in {hops} batches");
        }
    }
}

/// abs-K2: a client's MACs convince some replicas only. A request of it costs the instance in which it comes, and no
/// more; Aardvark does not notice. The instances and views after that are judged as if nothing had happened.
#[test]
fn k02_odd_macs_cost_one_instance_for_a_request_and_no_view() {
    for good in [&[0][..], &[0, 1, 2], &[3]] {
        let mut busy = Busy::measured(1_000);
        for asked in 1..=2 {
            let request = spoilt(busy.ask(asked, &Counter::add(1)), good);
            (0..4).for_each(|id| busy.net.forge(c(LIAR), r(id), Message::Request(request.clone())));
            busy.looks(30, |_| ());
            assert!(busy.aborted().len() <= asked as usize, "{good:?}: {:?}", busy.left);
        }
        assert!(busy.aborted().contains(&QUORUM), "{good:?}: it is an attack");
        while !busy.part().is_backup() {
            busy.panic();
            busy.looks(1, |_| ());
        }
        let backup = busy.instance();
        for asked in 3..9 {
            // Whom they convince, and none but the primary.
            let primary = [usize::from(busy.net.hosts[0].replica.report().primary.0)];
            let good = if asked % 2 == 0 { good } else { &primary };
            let mut request = spoilt(busy.ask(asked, &Counter::add(1)), good);
            request.authentication.signature = None;
            (0..4).for_each(|id| busy.net.forge(c(LIAR), r(id), Message::Request(request.clone())));
            busy.looks(1, |_| ());
        }
        assert_eq!(busy.views(), [0; 4], "{good:?}");
        busy.run_to(InstanceId(backup.0 + 1));
        let aborted = busy.aborted();
        busy.looks(30, |_| ());
        assert_eq!((busy.part(), busy.aborted()), (Part::Quorum, aborted), "{good:?}: {:?}", busy.left);
        assert_eq!(busy.views(), [0; 4], "{good:?}");
    }
}

/// abs-K3: a replica takes 10 ms longer for whatever comes, at any place. In Quorum, Chain and Ring each of them has to
/// answer: the instance is left within eight looks (three times two, and the two in which the delay began), and for no
/// client's PANIC. In a Backup the primary matters, and its view is left.
#[test]
fn abs_k3_a_delay_of_ten_milliseconds_is_left_wherever_it_is() {
    const DELAY: u64 = 10_000;
    for start in [Busy::measured as fn(u64) -> Busy, Busy::in_chain, Busy::in_ring] {
        let mut fast = start(250);
        assert_eq!(fast.looks_until_it_is_left(8), None, "it is fast");
        for slow in 0..4 {
            let mut busy = fast.clone();
            busy.slow = Some((r(slow), DELAY));
            let (part, looks) = (busy.part(), busy.looks_until_it_is_left(20));
            assert!(looks.is_some_and(|looks| looks <= 8), "{part} with a slow {slow} took {looks:?}");
            assert!(busy.stopped_for(StopReason::SlowerThanABackup) > 0, "{part}: {:?}", busy.left);
            assert_eq!(busy.panics, 0, "{part}");
        }
    }
    let mut busy = Busy::new(Protocol::RAliph, 100_000, 250);
    busy.looks(8, |_| ());
    assert_eq!(busy.net.views(), [busy.net.views()[0]; 4]);
    let primary = busy.net.hosts[0].replica.report().primary;
    busy.slow = Some((Principal::Replica(primary), DELAY));
    busy.looks(30, |_| ());
    let primaries = busy.net.hosts.iter().map(|host| host.replica.report().primary);
    assert!(primaries.into_iter().all(|now| now != primary), "its view is left");
    assert_eq!(busy.instance(), InstanceId(1));
}

/// abs-K4: a replica floods the others with instances to come, views, batches, requests, checkpoints, and words of who
/// is there. Each of them keeps of it what a sender may have of what comes early, counts the rest, and goes on as
/// without it.
#[test]
fn k04_a_flood_of_a_replica_fills_its_own_share_and_ends_nothing() {
    const FLOOD: u64 = 3_000;
    let instances: [fn() -> Busy; 3] =
        [|| Busy::new(Protocol::RAliph, 100_000, 1_000), || Busy::measured(1_000), || Busy::in_chain(1_000)];
    for start in instances {
        let mut busy = start();
        let instance = busy.instance();
        let (served, mut said) = (busy.served, 0);
        busy.looks(12, |busy| {
            for _ in 0..60.min(FLOOD - said) {
                said += 1;
                // The nearest first: what is for a farther one takes no place of it.
                let far = InstanceId(instance.0 + 1 + said / 600 * 1_000);
                let early = ordering(far, said);
                let now = invented(&busy.net, instance, said);
                for id in 0..3 {
                    busy.net.forge(r(3), r(id), early.clone());
                    busy.net.forge(r(3), r(id), now.clone());
                }
            }
        });
        let part = busy.part();
        assert_eq!(said, FLOOD);
        assert_eq!(busy.instance(), instance, "{part} goes on: {:?}", busy.left);
        assert_eq!((busy.views(), busy.panics), (vec![0; 4], 0), "{part}");
        for id in 0..3 {
            let overload = busy.net.rejected(id, r(3), Rejection::Overload);
            assert!(FLOOD - overload <= 512, "{part}: {overload} of {FLOOD} found no room at {id}");
            let pending = busy.net.hosts[id].replica.report().pending_requests;
            assert!(pending <= CLIENTS + 1, "{part}: {pending} wait at {id}");
        }
        assert!((0..CLIENTS).all(|session| busy.served[session] - served[session] >= 50), "{part}: {:?}", busy.served);
    }
}

/// A liar has told another replica much that is for the next instance, and each of it is signed. Whoever sends what
/// ends this one has sent none of that, and pays for none.
#[test]
fn k04_signatures_of_what_came_early_are_charged_to_nobody() {
    const EARLY: u64 = 200;
    let mut busy = Busy::in_chain(1_000);
    let instance = InstanceId(busy.instance().0 + 1);
    for number in 1..=EARLY {
        let first = Checkpoint { instance, sequence: Sequence(0), ruled: Sequence(0), root: Digest([0; 32]) };
        let stable = Claimed::certified(first, Vec::new());
        let change = ViewChange { view: View(number), stable, prepared: Vec::new(), pre_prepared: Vec::new() };
        let message = PbftMessage::ViewChange(Box::new(busy.net.keyring(r(3)).sign(change).claim()));
        busy.net.forge(r(3), r(0), Message::Ordering(Ordering { instance, message }));
    }
    busy.hop();
    let checked = |busy: &Busy| {
        let counters = busy.net.hosts[0].replica.keyring().counters();
        [counters.signatures_checked.get(), counters.occasional_signatures_checked.get()]
    };
    let [all, charged] = checked(&busy);
    busy.panic();
    busy.run_to(instance);
    assert!(busy.part().is_backup());
    assert!(checked(&busy)[0] - all >= EARLY, "each was looked at");
    assert!(checked(&busy)[1] - charged < EARLY / 4, "{:?} of others", checked(&busy)[1] - charged);
}

/// A vote for something far away.
fn ordering(instance: InstanceId, number: u64) -> Message {
    let vote = Vote { view: View(number % 5), sequence: Sequence(number), digest: Digest([number as u8; 32]) };
    Message::Ordering(Ordering { instance, message: PbftMessage::Commit(vote) })
}

/// Something that nobody asked for, about the instance that runs.
fn invented(net: &Net<Counter>, instance: InstanceId, number: u64) -> Message {
    let far = Sequence(number << (number % 40));
    let digest = Digest([number as u8; 32]);
    let order = |message| Message::Ordering(Ordering { instance, message });
    let switch = |message| Message::Switch(Switch { instance, message });
    let sign = |instance| Box::new(net.keyring(r(3)).sign(Returned { instance }).claim());
    match number % 8 {
        0 => order(PbftMessage::Prepare(Vote { view: View(number), sequence: far, digest })),
        1 => {
            let batch = Arc::new(Batch::null());
            order(PbftMessage::PrePrepare(PrePrepare { view: View(number), sequence: far, batch }))
        }
        2 => order(PbftMessage::FetchBatch(Position { sequence: far, digest })),
        3 => order(PbftMessage::Batch(Arc::new(Batch::null()))),
        4 => switch(SwitchMessage::Present(())),
        5 => switch(SwitchMessage::Returned(sign(instance))),
        6 => {
            let value = Checkpoint { instance, sequence: far, ruled: Sequence(0), root: digest };
            Message::Checkpoint(Box::new(net.keyring(r(3)).sign(value).claim()))
        }
        _ => {
            let mut request = spoilt(net.request(instance, LIAR, number, &Counter::add(1)), &[]);
            request.authentication.signature = None;
            Message::Request(request)
        }
    }
}

/// abs-K14: a client panics in every instance as soon as that begins, and k is as after a reset for ever. The
/// fewest requests of a Backup are so many that the others have nine tenths of the answers that Backups alone would
/// have given, and instances follow one another no faster.
#[test]
fn k14_a_storm_of_panics_leaves_nine_tenths_of_what_backups_do() {
    const LOOKS: u64 = 40;
    let k = Quota::default().minimum();
    let alone = Protocol::Schedule(Schedule::new(&[Part::Backup(Order::Aardvark)]).unwrap());
    let mut backups = Busy::new(alone, k, 250);
    backups.looks(LOOKS, |_| ());
    let mut busy = Busy::new(Protocol::RAliph, k, 250);
    busy.looks(LOOKS, |busy| {
        if !busy.part().is_backup() {
            busy.panic();
        }
    });
    let [with, without]: [u64; 2] = [&busy, &backups].map(|of| of.served.iter().sum());
    assert!(with * 10 >= without * 9, "{with} answers instead of {without}");
    let cycles = with / k + 1;
    assert!(busy.instance().0 <= 3 * cycles + 1, "{} instances for {with} requests", busy.instance().0);
    assert!(busy.instance().0 >= 3 * 3, "and it is a storm");
    assert_eq!(busy.views(), [0; 4]);
}

/// What a client says of what waits.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Lie {
    /// That it waits for what it was answered.
    NeverConfirms,
    /// That nothing waits, though something does.
    ConfirmsEarly,
    /// That it waits for what it never asked for.
    Withholds,
    /// That very much waits; and a head, its friend, leaves another client out.
    Colludes,
}

/// abs-K22, abs-P6: whatever a client says of what waits costs no more than its PANIC would: instances that end, each
/// round of them with a Backup of k requests. To say that an answer has not come, or that it has, costs nothing. Every
/// other client is served all the time.
#[test]
fn k22_whatever_is_said_of_what_waits_costs_no_more_than_a_panic() {
    const LOOKS: u64 = 60;
    let quiet = {
        let mut busy = Busy::measured(1_000);
        let before = busy.served;
        busy.looks(LOOKS, |_| ());
        assert_eq!(busy.instance(), QUORUM);
        (0..CLIENTS).map(|session| busy.served[session] - before[session]).min().unwrap()
    };
    for lie in [Lie::NeverConfirms, Lie::ConfirmsEarly, Lie::Withholds, Lie::Colludes] {
        let mut busy = if lie == Lie::Colludes { Busy::in_chain(1_000) } else { Busy::measured(1_000) };
        let (first, before) = (busy.instance(), busy.served);
        let request = busy.ask(1, &Counter::add(1));
        (0..4).for_each(|id| busy.net.forge(c(LIAR), r(id), Message::Request(request.clone())));
        if lie == Lie::Colludes {
            let head = Principal::Replica(busy.net.cluster.specification(CHAIN).head);
            let starved = |frame: &Frame| matches!(&frame.message, Message::Request(of) if of.client == client(0));
            busy.net.lose(move |frame| starved(frame) && frame.to == head && frame.message.instance() == Some(CHAIN));
        }
        busy.looks(LOOKS, |busy| match lie {
            _ if busy.net.now.0 % 20_000 > 1_600 => {}
            Lie::NeverConfirms => busy.say(LIAR, 1_000, Some(1)),
            Lie::ConfirmsEarly => busy.say(LIAR, 0, None),
            Lie::Withholds => busy.say(LIAR, 1_000, Some(7)),
            Lie::Colludes => busy.say(LIAR, u32::MAX, Some(1)),
        });
        let served: Vec<u64> = (0..CLIENTS).map(|session| busy.served[session] - before[session]).collect();
        if matches!(lie, Lie::NeverConfirms | Lie::ConfirmsEarly) {
            assert_eq!((busy.instance(), busy.panics), (first, 0), "{lie:?}: {:?}", busy.left);
        } else {
            assert!(busy.instance() > first, "{lie:?}: it is an attack");
        }
        if lie == Lie::Withholds {
            assert!(busy.stopped_for(StopReason::LeftOut) > 0, "{lie:?}: {:?}", busy.left);
        }
        let Quota::Fixed(k) = busy.net.cluster.quota else { unreachable!() };
        let cycles = served.iter().sum::<u64>() / k + 1;
        assert!(busy.instance().0 - first.0 <= 3 * cycles, "{lie:?}: {:?} for {served:?}", busy.left);
        assert!(served.iter().all(|served| served * 8 >= quiet), "{lie:?}: {served:?} instead of {quiet}");
        assert_eq!(busy.views(), [0; 4], "{lie:?}");
    }
}

/// abs-K23, abs-P8: in the Chain before the second Backup a liar says that it stopped for little load. Its flag alone
/// does not bring k down; with that of a correct replica it would.
#[test]
fn k23_a_flag_of_f_replicas_does_not_bring_k_down() {
    for flags in 0..=2_u8 {
        let mut run = second_chain();
        let reports = run.stop(InstanceId(5));
        let low = |id: u8| {
            let mut report = reports[&id].clone();
            report.claims_mut().low_load = id < flags;
            run.signed(id, &report)
        };
        let (one, other) = (low(0), low(1));
        run.begin([[&one, &other, &reports[&2]]; 4]);
        assert_eq!(quota(&mut run), if flags < 2 { 2 * KMIN } else { KMIN }, "{flags} flags");
        run.check();
    }
}

/// abs-K23: whenever the head of a Chain begins to serve one client only, the other one, which has asked before, ends
/// the instance before load is low; so nobody says that it was.
#[test]
fn k23_a_head_that_starves_all_but_one_makes_no_low_load() {
    // The Chain has run for a second, and load is judged after every second one.
    for before in [1_050, 1_500, 2_000, 2_500] {
        let mut run = second_chain();
        let head = Principal::Replica(run.net.cluster.specification(InstanceId(5)).head);
        run.liar = head.replica().map(|id| id.0);
        for _ in 0..before / 50 {
            run.invoke(0);
            run.invoke(1);
            run.pass(50);
        }
        assert_eq!((run.instances(), run.is_idle()), (vec![5; 4], true));
        let starved = |frame: &Frame| matches!(&frame.message, Message::Request(of) if of.client == client(1));
        run.net
            .lose(move |frame| starved(frame) && frame.to == head && frame.message.instance() == Some(InstanceId(5)));
        while run.instances() == [5; 4] {
            run.invoke(0);
            run.invoke(1);
            run.pass(50);
        }
        let low = |notice: &Notice| matches!(notice, Notice::Stopped { reason: StopReason::LowLoad, .. });
        assert!((0..4).all(|id| !run.net.noticed(id, low)), "starved after {before} ms");
        assert_eq!(quota(&mut run), 2 * KMIN);
        run.check();
    }
}

/// The fewest requests of a Backup where k grows.
const KMIN: u64 = 4;

/// Aliph in its second Chain. The Backup after that is the second, of twice as many requests.
fn second_chain() -> Run {
    let quota = Quota::Exponential { minimum: KMIN };
    let mut run = Run::of(Cluster { quota, ..Run::cluster(Protocol::Aliph, 4) }, 3, 1);
    while run.instances() != [5; 4] {
        let instance = InstanceId(run.instances()[0]);
        run.invoke(0);
        run.finish();
        if !run.net.cluster.part(instance).is_backup() {
            (0..4).for_each(|id| run.net.forge(c(2), r(id), panic(instance, 2)));
        }
        run.pass(1_000);
    }
    run
}

/// How many requests the Backup that follows executes.
fn quota(run: &mut Run) -> u64 {
    let length = |run: &Run, of| {
        let mut begun = run.begun.iter().filter(|(_, begun, _)| *begun == InstanceId(of));
        begun.next().map(|(_, _, init)| init.len() as u64)
    };
    for _ in 0..100 {
        run.invoke(0);
        run.pass(100);
        if let (Some(from), Some(to)) = (length(run, 6), length(run, 7)) {
            return to - from;
        }
    }
    core::panic!("the Backup does not end: {:?}", run.instances());
}
