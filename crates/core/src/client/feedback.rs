//! What a client machine tells replicas of all its sessions together: Robust 1 of [`crate::compositions::robust`]. Its
//! host says when a session begins to wait and when it has its answer, and asks whether something is to be said when it
//! has handed everything over.

use super::Client;
use crate::cluster::Cluster;
use crate::ids::{ClientId, InstanceId, Timestamp};
use crate::registry::Message;
use crate::switching::{Feedback, Switch, SwitchMessage};
use crate::time::{Duration, Instant};

/// How soon a machine says that something has begun to wait, or waits for longer than usual, as a part of a status
/// interval.
const INTERVAL_PARTS: u64 = 10;

/// How often it does so at most, as a part of that: when as many requests wait as it is one of.
const PAUSE_PARTS: u64 = 2;

/// So many requests that wait, of one machine or of several, are told of once in a pause.
const WAITING: u64 = 128;

/// How often it says so at least while something waits, in pauses: twice in the time after which a replica forgets who
/// is silent, so that one word may be lost.
const PAUSES_MAX: u64 = 7;

/// For how many times as long as was usual of late nothing ends where something is wrong.
const QUIET_GAPS: u64 = 2;

/// And for how many intervals, however long was usual: it may have been wrong before as well.
const QUIET_INTERVALS_MAX: u64 = 2;

/// See the [module](self).
#[derive(Clone, Debug)]
pub struct Reporter {
    machine: ClientId,
    /// The latest instance that any session asks, and how many times as long its pauses are.
    instance: InstanceId,
    slower: u64,
    /// How long after a change of note something is said.
    interval: Duration,
    pause: Duration,
    /// Since when it is to be told, and what was said last: how many waited, in thousandths.
    since: Instant,
    told: u32,
    /// How many wait, since when that is so, and how many microseconds requests had waited together before.
    waiting: u32,
    at: Instant,
    waited: u64,
    /// When a request last ended, or began where none waited; the longest time from then until one ended, since the
    /// last time that something was said, and before that.
    quiet_since: Instant,
    longest: Duration,
    gap: Duration,
}

impl Client {
    /// Which request is outstanding, since when.
    fn waits_for(&self) -> Option<(Timestamp, Instant)> {
        self.call.as_ref().map(|call| (call.request.timestamp, call.submitted))
    }
}

impl Reporter {
    /// Of the machine whose first session this is; `None` where nobody wants to know.
    pub fn new(cluster: &Cluster, machine: ClientId) -> Option<Self> {
        let interval = Duration(cluster.limits.status_interval.0 / INTERVAL_PARTS);
        cluster.protocol.is_robust().then_some(Self {
            machine,
            instance: InstanceId(1),
            slower: Feedback::slowdown(cluster.specification(InstanceId(1)).part),
            interval,
            pause: Duration(interval.0 / PAUSE_PARTS),
            since: Instant(0),
            told: 0,
            waiting: 0,
            at: Instant(0),
            waited: 0,
            quiet_since: Instant(0),
            longest: Duration(0),
            gap: Duration(0),
        })
    }

    /// A session begins to wait for an answer, or does so no longer.
    pub fn waits(&mut self, now: Instant, begins: bool) {
        if begins && !self.has_news() {
            self.since = now;
        }
        self.pass(now);
        if begins {
            // That others begin as well is no progress.
            if self.waiting == 0 {
                self.quiet_since = now;
            }
            self.waiting = self.waiting.saturating_add(1);
        } else {
            self.longest = self.longest.max(now - self.quiet_since);
            self.quiet_since = now;
            self.waiting = self.waiting.saturating_sub(1);
        }
    }

    /// Something has happened to this session: it may ask another instance.
    pub fn see(&mut self, session: &Client) {
        if session.instance > self.instance {
            self.instance = session.instance;
            self.slower = Feedback::slowdown(session.asked.part);
        }
    }

    fn pass(&mut self, now: Instant) {
        self.waited = self.waited.saturating_add((now - self.at).0.saturating_mul(u64::from(self.waiting)));
        self.at = now.max(self.at);
    }

    const fn has_news(&self) -> bool {
        self.told > 0 || self.waiting > 0 || self.waited > 0
    }

    /// When there is something to say, if nothing happens until then.
    pub fn next(&self) -> Option<Instant> {
        if !self.has_news() {
            return None;
        }
        if self.told == 0 {
            return Some(self.since + self.interval);
        }
        let waiting = u64::from(self.waiting).max(u64::from(self.told) / 1_000).max(1);
        let pace = self.pause.0.saturating_mul(WAITING) / waiting;
        let pace = pace.clamp(self.pause.0, self.pause.0.saturating_mul(PAUSES_MAX));
        let paced = self.since + Duration(pace.saturating_mul(self.slower));
        if self.waiting == 0 {
            return Some(paced);
        }
        let quiet = self.gap.0.saturating_mul(QUIET_GAPS).max(self.interval.0);
        let quiet = quiet.min(self.interval.0.saturating_mul(QUIET_INTERVALS_MAX)).saturating_mul(self.slower);
        Some(paced.min((self.quiet_since + Duration(quiet)).max(self.since + self.interval)))
    }

    /// What is to be said to all replicas now, if anything. These are the machine's sessions.
    pub fn say<'a>(&mut self, now: Instant, sessions: impl IntoIterator<Item = &'a Client>) -> Option<Message> {
        if self.next().is_none_or(|at| now < at) {
            return None;
        }
        self.pass(now);
        let mean = (u128::from(self.waited) * 1_000).checked_div(u128::from((now - self.since).0)).unwrap_or_default();
        let load = u32::try_from(mean).unwrap_or(u32::MAX);
        let mut oldest = None;
        for session in sessions {
            // What was asked later is under way.
            if let Some((timestamp, at)) = session.waits_for().filter(|(_, at)| *at + self.interval <= now && load > 0)
            {
                let this = (at, session.id().session, timestamp);
                oldest = Some(oldest.map_or(this, |other| this.min(other)));
            }
        }
        if self.longest > Duration(0) {
            self.gap = core::mem::replace(&mut self.longest, Duration(0));
        }
        (self.since, self.told, self.waited) = (now, load, 0);
        let oldest = oldest.map(|(_, session, timestamp)| (session, timestamp));
        let feedback = Feedback { machine: self.machine, load, oldest };
        Some(Switch { instance: self.instance, message: SwitchMessage::Feedback(feedback) }.into())
    }

    /// What is to be said when no session asks any more: nothing by who has said nothing else.
    pub fn end(&self) -> Option<Message> {
        let feedback = Feedback { machine: self.machine, load: 0, oldest: None };
        let message = SwitchMessage::Feedback(feedback);
        (self.told > 0).then(|| Switch { instance: InstanceId(1), message }.into())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cluster::{ClientAuth, Limits};
    use crate::ids::Principal;
    use crate::schedule::Protocol;
    use crate::testing::net;
    use alloc::rc::Rc;
    use alloc::vec::Vec;

    /// The first two of R-Aliph.
    const BACKUP: InstanceId = InstanceId(1);
    const QUORUM: InstanceId = InstanceId(2);

    /// A machine, and one of its sessions that asks this instance.
    struct Machine {
        reporter: Reporter,
        session: Client,
    }

    impl Machine {
        fn new(instance: InstanceId) -> Self {
            let cluster = net::cluster(4, ClientAuth::Hybrid, Limits::default());
            let Principal::Client(machine) = net::c(0) else { unreachable!() };
            assert!(Reporter::new(&cluster, machine).is_none(), "PBFT does not want to know");
            let cluster = cluster.with_protocol(Protocol::RAliph);
            let reporter = Reporter::new(&cluster, machine).unwrap();
            let keyring = net::keyring(&cluster, net::c(0));
            let mut session = Client::new(Rc::new(cluster), Rc::new(keyring), machine);
            session.instance = instance;
            session.asked = session.cluster.specification(instance);
            Self { reporter, session }
        }

        fn waits(&mut self, now: Instant, begins: bool) {
            self.reporter.see(&self.session);
            self.reporter.waits(now, begins);
        }

        fn say(&mut self, now: Instant) -> Option<u32> {
            load(self.reporter.say(now, []))
        }
    }

    fn load(said: Option<Message>) -> Option<u32> {
        match said {
            Some(Message::Switch(Switch { message: SwitchMessage::Feedback(said), .. })) => Some(said.load),
            Some(_) => unreachable!("a reporter gives feedback"),
            None => None,
        }
    }

    /// So many sessions ask again as soon as they have an answer, two milliseconds after they asked. What is said of
    /// that, and when, in milliseconds.
    fn busy(machine: &mut Machine, sessions: u32, begins: Instant, milliseconds: u64) -> Vec<(u64, u32)> {
        let mut said = Vec::new();
        for passed in (2..=milliseconds).step_by(2) {
            let now = begins + Duration::from_millis(passed);
            (0..sessions).for_each(|_| machine.waits(now, false));
            said.extend(machine.say(now).map(|load| (passed, load)));
            (0..sessions).for_each(|_| machine.waits(now, true));
        }
        said
    }

    #[test]
    fn what_is_said_is_the_mean_since_the_last_time() {
        let mut machine = Machine::new(QUORUM);
        assert_eq!((machine.reporter.next(), machine.say(Instant(9))), (None, None));
        let begins = Instant(1_000_000);
        (0..4).for_each(|_| machine.waits(begins, true));
        assert_eq!(busy(&mut machine, 4, begins, 160), [(20, 4_000), (90, 4_000), (160, 4_000)]);
    }

    #[test]
    fn who_has_no_answer_for_long_says_so() {
        let mut machine = Machine::new(QUORUM);
        let begins = Instant(1_000_000);
        (0..4).for_each(|_| machine.waits(begins, true));
        busy(&mut machine, 4, begins, 160);
        let silent = begins + Duration::from_millis(160 + 20);
        assert_eq!(machine.reporter.next(), Some(silent), "that is more than twice as long as from answer to answer");
        (0..4).for_each(|_| machine.waits(begins + Duration::from_millis(175), true));
        assert_eq!(machine.reporter.next(), Some(silent), "it is no answer that others ask");
        assert_eq!(machine.say(silent), Some(5_000), "four wait, and eight for a quarter of that time");
        let silent = silent + Duration::from_millis(20);
        assert_eq!(machine.reporter.next(), Some(silent), "and still do");
        let late = begins + Duration::from_millis(1_160);
        machine.waits(late, false);
        assert!(machine.say(late).is_some());
        assert_eq!(machine.reporter.next(), Some(late + Duration::from_millis(40)), "it is not to be as long again");
    }

    #[test]
    fn who_waits_for_much_says_so_more_often_and_four_times_as_rarely_in_a_backup() {
        for (sessions, every, in_backup) in [(400, 10, 40), (100, 14, 52), (64, 20, 80), (32, 40, 160), (1, 70, 280)] {
            for (instance, every) in [(QUORUM, every), (BACKUP, in_backup)] {
                let mut machine = Machine::new(instance);
                let begins = Instant(1_000_000);
                (0..sessions).for_each(|_| machine.waits(begins, true));
                let said = busy(&mut machine, sessions, begins, 20 + 3 * every);
                let times: Vec<u64> = said.into_iter().map(|(at, _)| at).collect();
                assert_eq!(times, [20, 20 + every, 20 + 2 * every, 20 + 3 * every], "{sessions} in {instance}");
            }
        }
    }

    #[test]
    fn who_asks_the_instance_after_a_backup_says_so_at_once() {
        let mut machine = Machine::new(BACKUP);
        let begins = Instant(1_000_000);
        (0..4).for_each(|_| machine.waits(begins, true));
        assert_eq!(busy(&mut machine, 4, begins, 200), [(20, 4_000)]);
        let late = begins + Duration::from_millis(201);
        assert_eq!(machine.say(late), None);
        machine.reporter.see(&Machine::new(QUORUM).session);
        assert_eq!(machine.say(late), Some(4_000));
        assert_eq!(machine.reporter.next(), Some(late + Duration::from_millis(20)), "if no answer comes");
    }

    #[test]
    fn who_asks_now_and_then_says_that_little_waits_and_then_that_nothing_does() {
        let mut machine = Machine::new(QUORUM);
        let begins = Instant(1_000_000);
        machine.waits(begins, true);
        machine.waits(begins + Duration(2_000), false);
        let end = begins + Duration::from_millis(20);
        assert_eq!(machine.reporter.next(), Some(end));
        assert_eq!(machine.say(end), Some(100));
        assert_eq!(load(machine.reporter.end()), Some(0), "if it ends");
        let end = end + Duration::from_millis(70);
        assert_eq!(machine.reporter.next(), Some(end));
        assert_eq!((machine.say(end), machine.reporter.next()), (Some(0), None));
        machine.waits(end, true);
        assert_eq!(load(machine.reporter.end()), None, "it has said nothing that is to be taken back");
    }
}
