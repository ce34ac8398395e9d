//! What a client machine tells replicas of all its sessions together: Robust 1 of [`crate::compositions::robust`]. Its
//! host says when a session begins to wait and when it has its answer, and asks whether something is to be said when it
//! has handed everything over.

use super::Client;
use crate::cluster::Cluster;
use crate::ids::{ClientId, InstanceId, Timestamp};
use crate::registry::Message;
use crate::switching::{Feedback, Switch, SwitchMessage};
use crate::time::{Duration, Instant};

/// Answers after which a machine says how much has waited.
const ANSWERS: u32 = 5;

/// How soon a machine says that something has waited, as a part of a status interval.
const INTERVAL_PARTS: u64 = 10;

/// How often it does so at most, as a part of that.
const PAUSE_PARTS: u64 = 2;

/// See the [module](self).
#[derive(Clone, Debug)]
pub struct Reporter {
    machine: ClientId,
    /// How long after the last time something is said in any case, and no sooner than when.
    interval: Duration,
    pause: Duration,
    /// Since when it is to be told; and whether what was said last is that something waits.
    since: Instant,
    told: bool,
    /// How many wait, since when that is so, and how many microseconds requests had waited together before.
    waiting: u32,
    at: Instant,
    waited: u64,
    /// Requests that have ended.
    ended: u32,
}

impl Client {
    /// Where it believes the cluster to be, and which request is outstanding, since when.
    fn standing(&self) -> (InstanceId, Option<(Timestamp, Instant)>) {
        (self.instance, self.call.as_ref().map(|call| (call.request.timestamp, call.submitted)))
    }
}

impl Reporter {
    /// Of the machine whose first session this is; `None` where nobody wants to know.
    pub fn new(cluster: &Cluster, machine: ClientId) -> Option<Self> {
        let interval = Duration(cluster.limits.status_interval.0 / INTERVAL_PARTS);
        cluster.protocol.is_robust().then_some(Self {
            machine,
            interval,
            pause: Duration(interval.0 / PAUSE_PARTS),
            since: Instant(0),
            told: false,
            waiting: 0,
            at: Instant(0),
            waited: 0,
            ended: 0,
        })
    }

    /// A session begins to wait for an answer, or does so no longer.
    pub fn waits(&mut self, now: Instant, begins: bool) {
        if begins && !self.has_news() {
            self.since = now;
        }
        self.pass(now);
        if begins {
            self.waiting = self.waiting.saturating_add(1);
        } else {
            self.waiting = self.waiting.saturating_sub(1);
            self.ended = self.ended.saturating_add(1);
        }
    }

    fn pass(&mut self, now: Instant) {
        self.waited = self.waited.saturating_add((now - self.at).0.saturating_mul(u64::from(self.waiting)));
        self.at = now.max(self.at);
    }

    const fn has_news(&self) -> bool {
        self.told || self.waiting > 0 || self.waited > 0
    }

    /// When there is something to say, if nothing happens until then.
    pub fn next(&self) -> Option<Instant> {
        let span = if self.ended >= ANSWERS { self.pause } else { self.interval };
        self.has_news().then_some(self.since + span)
    }

    /// What is to be said to all replicas now, if anything. These are the machine's sessions.
    pub fn say<'a>(&mut self, now: Instant, sessions: impl IntoIterator<Item = &'a Client>) -> Option<Message> {
        if self.next().is_none_or(|at| now < at) {
            return None;
        }
        self.pass(now);
        let mean = (u128::from(self.waited) * 1_000).checked_div(u128::from((now - self.since).0)).unwrap_or_default();
        let load = u32::try_from(mean).unwrap_or(u32::MAX);
        let (mut instance, mut oldest) = (InstanceId(1), None);
        for session in sessions {
            let (believed, asked) = session.standing();
            instance = instance.max(believed);
            // What was asked since is under way.
            if let Some((timestamp, at)) = asked.filter(|(_, at)| *at <= self.since && load > 0) {
                let this = (at, session.id().session, timestamp);
                oldest = Some(oldest.map_or(this, |other| this.min(other)));
            }
        }
        (self.since, self.told, self.waited, self.ended) = (now, load > 0, 0, 0);
        let oldest = oldest.map(|(_, session, timestamp)| (session, timestamp));
        let feedback = Feedback { machine: self.machine, load, oldest };
        Some(Switch { instance, message: SwitchMessage::Feedback(feedback) }.into())
    }

    /// What is to be said when no session asks any more.
    pub fn end(&self) -> Option<Message> {
        let feedback = Feedback { machine: self.machine, load: 0, oldest: None };
        let message = SwitchMessage::Feedback(feedback);
        self.has_news().then(|| Switch { instance: InstanceId(1), message }.into())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cluster::{ClientAuth, Limits};
    use crate::ids::Principal;
    use crate::schedule::Protocol;
    use crate::testing::net;
    use alloc::vec::Vec;

    fn reporter() -> Reporter {
        let cluster = net::cluster(4, ClientAuth::Hybrid, Limits::default());
        let Principal::Client(machine) = net::c(0) else { unreachable!() };
        assert!(Reporter::new(&cluster, machine).is_none(), "PBFT does not want to know");
        Reporter::new(&cluster.with_protocol(Protocol::RAliph), machine).unwrap()
    }

    fn load(said: Option<Message>) -> Option<u32> {
        match said {
            Some(Message::Switch(Switch { message: SwitchMessage::Feedback(said), .. })) => Some(said.load),
            Some(_) => unreachable!("a reporter gives feedback"),
            None => None,
        }
    }

    #[test]
    fn what_is_said_is_the_mean_since_the_last_time() {
        let mut reporter = reporter();
        assert_eq!((reporter.next(), load(reporter.say(Instant(9), []))), (None, None));
        let begins = Instant(1_000_000);
        // Four sessions ask again as soon as they have an answer, two milliseconds after they asked.
        (0..4).for_each(|_| reporter.waits(begins, true));
        let mut said = Vec::new();
        for round in 1..=10 {
            let now = begins + Duration(round * 2_000);
            (0..4).for_each(|_| reporter.waits(now, false));
            said.extend(load(reporter.say(now, [])));
            (0..4).for_each(|_| reporter.waits(now, true));
        }
        assert_eq!(said, [4_000, 4_000], "every ten milliseconds, and all that time");
        let silent = begins + Duration(20_000 + 20_000);
        assert_eq!(reporter.next(), Some(silent));
        assert_eq!(load(reporter.say(silent, [])), Some(4_000), "they wait");
    }

    #[test]
    fn who_asks_now_and_then_says_that_little_waits_and_then_that_nothing_does() {
        let mut reporter = reporter();
        let begins = Instant(1_000_000);
        reporter.waits(begins, true);
        reporter.waits(begins + Duration(2_000), false);
        let end = begins + Duration(20_000);
        assert_eq!(reporter.next(), Some(end));
        assert_eq!(load(reporter.say(end, [])), Some(100));
        let end = end + Duration(20_000);
        assert_eq!((reporter.next(), load(reporter.say(end, []))), (Some(end), Some(0)));
        assert_eq!((reporter.next(), load(reporter.end())), (None, None));
    }
}
