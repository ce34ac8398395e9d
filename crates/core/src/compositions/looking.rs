//! How a composition looks at what its instances are worth: the handlers of [Robust 1 to 7](super::robust).

use super::composite::Composite;
use super::robust::Found;
use super::running::Running;
use crate::ids::{InstanceId, Principal};
use crate::registry::{ReplicaTimer, Speaker};
use crate::rejection::Rejection;
use crate::service::Service;
use crate::stop::StopReason;
use crate::switching::{Feedback, Surroundings};
use crate::time::{Duration, Instant};

/// Looks in a status interval.
const LOOKS: u64 = 4;

/// Looks in a status interval while another replica has stopped.
const LOOKS_ALONE: u64 = 20;

/// Looks after which a machine counts no more that has said nothing: less than a slow instance has, if none was slow
/// of late, so that nobody is slow because a machine dies.
const SILENT_LOOKS: u64 = 3;

impl<S: Service> Composite<S> {
    /// The first input.
    pub(super) fn begin_to_look(&mut self, s: &mut Surroundings<'_, impl Speaker>) {
        if self.robust.is_some() {
            self.begin_to_measure(s.now);
            s.set_timer(ReplicaTimer::Look, s.now + look_interval(s));
        }
    }

    /// Robust 3. An instance begins.
    pub(super) fn begin_to_measure(&mut self, now: Instant) {
        if let (Some(robust), Some(Running::Open(instance))) = (&mut self.robust, &mut self.running) {
            robust.begin(now, instance);
        }
    }

    /// Robust 1 and 2.
    pub(super) fn on_feedback(
        &mut self,
        s: &mut Surroundings<'_, impl Speaker>,
        from: Principal,
        instance: InstanceId,
        said: Feedback,
    ) {
        s.step("Robust 2");
        // A request of another instance is asked for again in this one.
        let oldest = said.oldest.filter(|_| instance == self.what.number);
        let said = Feedback { oldest, ..said };
        if !self.robust.as_mut().is_some_and(|robust| robust.hear(s.now, &said)) {
            s.reject(from, Rejection::Overload);
        }
    }

    /// Robust 3 to 6.
    pub(super) fn look(&mut self, s: &mut Surroundings<'_, impl Speaker>) {
        s.set_timer(ReplicaTimer::Look, s.now + look_interval(s));
        let Some(robust) = &mut self.robust else { return };
        let interval = s.cluster.limits.status_interval;
        let silent = SILENT_LOOKS * Feedback::slowdown(self.what.part);
        robust.forget_silent(silent);
        let running = match &mut self.running {
            Some(Running::Open(instance)) if instance.report().is_none() => Some(instance),
            _ => None,
        };
        let Some(instance) = running else { return robust.pause(s.now) };
        s.step("Robust 3");
        let found = robust.look(s.now, interval, instance);
        if self.what.part.is_backup() {
            return;
        }
        // Robust 4. Whoever is not here yet may be on its way, and without it nothing is served that could be unfair.
        if self.presence.awaits_somebody(robust.begun(), s.now, s.cluster, s.me) {
            return robust.pause(s.now);
        }
        let (step, reason) = match found {
            Some(Found::Slow) => ("Robust 4", StopReason::SlowerThanABackup),
            Some(Found::Unmeasured) => ("Robust 4", StopReason::Unmeasured),
            None if robust.has_left_out(s.now, interval, instance.ledger()) => ("Robust 5", StopReason::LeftOut),
            None => return,
        };
        s.step(step);
        s.step("Robust 6");
        instance.stop(s, reason, false);
    }

    /// Robust 7. Another replica has stopped, or that is a while ago.
    pub(super) fn look_alone(&mut self, s: &mut Surroundings<'_, impl Speaker>) {
        if self.what.part.is_resilient() {
            return;
        }
        if let (Some(robust), Some(Running::Open(instance))) = (&mut self.robust, &mut self.running)
            && instance.report().is_none()
        {
            s.step("Robust 7");
            let awaits = self.presence.awaits_somebody(robust.begun(), s.now, s.cluster, s.me);
            let first = if awaits { Duration(u64::MAX) } else { s.cluster.limits.status_interval };
            if robust.is_left_alone(s.now, first, instance.ledger()) {
                return instance.stop(s, StopReason::LeftAlone, false);
            }
            let pause = Duration((s.cluster.limits.status_interval.0 / LOOKS_ALONE).max(1));
            s.set_timer(ReplicaTimer::Alone, s.now + pause);
        }
    }
}

/// How often a replica looks.
fn look_interval(s: &Surroundings<'_, impl Speaker>) -> Duration {
    Duration((s.cluster.limits.status_interval.0 / LOOKS).max(1))
}
