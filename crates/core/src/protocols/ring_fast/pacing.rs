//! What the ring does about how fast it is: Pace 1 to 5 of [`super::pace`] at a replica.

use super::message::{RingTimer, Speaker};
use super::pace::{Around, Delay, PaceMessage, RingPace, interval};
use super::state::RingFast;
use crate::ids::{Principal, ReplicaId};
use crate::machine::Destination;
use crate::notice::{Alarm, Notice, Pace};
use crate::protocols::ring_fast::pace::Watch;
use crate::rejection::Rejection;
use crate::service::Service;
use crate::stop::StopReason;
use crate::switching::Surroundings;

impl<S: Service> RingFast<S> {
    fn watching<R>(
        &mut self,
        s: &mut Surroundings<'_, impl Speaker>,
        act: impl FnOnce(&mut Watch, &mut Around<'_>) -> R,
    ) -> R {
        let (instance, out) = (self.base.what.number, &mut *s.out);
        let mut send = |to, message: PaceMessage| {
            out.step(message.step());
            out.send(to, RingPace { instance, message }.into());
        };
        let Surroundings { now, cluster, keyring, me, .. } = *s;
        act(&mut self.watch, &mut Around { now, limits: &cluster.limits, keyring, me, send: &mut send })
    }

    /// Pace 1.
    pub(super) fn on_pace_timer(&mut self, s: &mut Surroundings<'_, impl Speaker>) {
        self.watching(s, Watch::tick);
        Self::set_pace_timer(s);
        self.judge_pace(s);
    }

    pub(super) fn set_pace_timer(s: &mut Surroundings<'_, impl Speaker>) {
        s.set_timer(RingTimer::Pace, s.now + interval(&s.cluster.limits));
    }

    pub(super) fn on_pace(&mut self, s: &mut Surroundings<'_, impl Speaker>, from: ReplicaId, message: PaceMessage) {
        if self.base.is_stopped() {
            return;
        }
        if matches!(message, PaceMessage::Vote(_)) {
            s.step("Pace 5");
        }
        if let Err(reason) = self.watching(s, |watch, around| watch.on_message(around, from, message)) {
            s.reject(Principal::Replica(from), reason);
        }
        self.judge_pace(s);
    }

    /// A client asks how long the requests of this entry take: Fairness 1 of [`super::fairness`]. Nothing is kept
    /// of it.
    pub(super) fn on_question(&self, s: &mut Surroundings<'_, impl Speaker>, from: Principal, message: &PaceMessage) {
        match (message, self.watch.delay()) {
            (PaceMessage::Ask(_), _) if self.base.is_stopped() => {}
            (PaceMessage::Ask(client), Some(microseconds)) => {
                let delay = PaceMessage::Delay(Delay { client: *client, microseconds });
                s.step(delay.step());
                let answer = RingPace { instance: self.base.what.number, message: delay };
                s.send(Destination::Client(*client), answer);
            }
            (PaceMessage::Ask(_), None) => {}
            _ => s.reject(from, Rejection::WrongSender),
        }
    }

    /// Pace 5: tells the host, and leaves the ring if that is what the operator wants.
    fn judge_pace(&mut self, s: &mut Surroundings<'_, impl Speaker>) {
        let alarm = self.watch.alarm(s.now, &s.cluster.limits);
        let gist = |alarm: &Alarm| (alarm.pace, alarm.suspect.map(|suspect| suspect.from));
        if alarm.as_ref().map(gist) != self.alarm.as_ref().map(gist) {
            s.out.notify(Notice::Paced { instance: self.base.what.number, alarm });
        }
        self.alarm = alarm;
        if alarm.is_some_and(|alarm| alarm.pace == Pace::BeyondDoubt) {
            self.base.stop(s, StopReason::Slow, false);
        }
    }
}
