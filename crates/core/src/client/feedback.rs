//! What a client machine tells replicas of all its sessions together: Robust 1 of [`crate::compositions::robust`]. Its
//! host says when a request has ended, and asks whether something is to be said when it has handed everything over.

use super::Client;
use crate::cluster::Cluster;
use crate::ids::{ClientId, InstanceId};
use crate::registry::Message;
use crate::switching::{Feedback, Switch, SwitchMessage};
use crate::time::{Duration, Instant};

/// Answers after which a machine says what still waits.
const ANSWERS: u32 = 5;

/// How often it does so at most, as a part of the status interval.
const PAUSE_PARTS: u64 = 20;

/// See the [module](self).
#[derive(Clone, Debug)]
pub struct Reporter {
    machine: ClientId,
    /// How long after the last time something is said in any case, if something waits; and no sooner than when.
    interval: Duration,
    pause: Duration,
    /// When something was said last, and how many waited then.
    said: Option<Instant>,
    waiting: u32,
    /// Requests that have ended since.
    ended: u32,
    /// When it was last looked whether that is enough.
    looked: Instant,
}

impl Reporter {
    /// Of the machine whose first session this is; `None` where nobody wants to know.
    pub fn new(cluster: &Cluster, machine: ClientId) -> Option<Self> {
        let interval = cluster.limits.status_interval;
        cluster.protocol.is_robust().then_some(Self {
            machine,
            interval,
            pause: Duration(interval.0 / PAUSE_PARTS),
            said: None,
            waiting: 0,
            ended: 0,
            looked: Instant(0),
        })
    }

    /// A request has ended.
    pub const fn ended(&mut self) {
        self.ended = self.ended.saturating_add(1);
    }

    /// When there may be something to say, if nothing happens until then.
    pub fn next(&self) -> Option<Instant> {
        let said = self.said.filter(|_| self.waiting > 0)?;
        let soon = said + self.pause;
        Some(if self.ended > 0 && self.looked < soon { soon } else { said + self.interval })
    }

    /// What is to be said to all replicas now, if anything. These are the machine's sessions.
    pub fn say<'a>(&mut self, now: Instant, sessions: impl IntoIterator<Item = &'a Client>) -> Option<Message> {
        let passed = |span: Duration| self.said.is_none_or(|said| now >= said + span);
        let (is_late, may) = (passed(self.interval), passed(self.pause));
        if !is_late && !(may && self.ended > 0) {
            return None;
        }
        self.looked = now;
        let (mut instance, mut waiting, mut oldest) = (InstanceId(1), 0, None);
        for session in sessions {
            let (believed, asked) = session.standing();
            instance = instance.max(believed);
            if let Some((timestamp, since)) = asked {
                waiting += 1;
                let this = (since, session.id().session, timestamp);
                oldest = Some(oldest.map_or(this, |other| this.min(other)));
            }
        }
        if waiting == 0 && self.waiting == 0 {
            self.ended = 0;
            return None;
        }
        if !is_late && waiting > 0 && self.ended < ANSWERS {
            return None;
        }
        (self.said, self.waiting, self.ended) = (Some(now), waiting, 0);
        let oldest = oldest.map(|(_, session, timestamp)| (session, timestamp));
        let feedback = Feedback { machine: self.machine, waiting, oldest };
        Some(Switch { instance, message: SwitchMessage::Feedback(feedback) }.into())
    }
}
