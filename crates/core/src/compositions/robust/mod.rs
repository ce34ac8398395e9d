//! Robust compositions, such as R-Aliph: what a faulty replica can make of a fast instance is no less than what
//! Aardvark does (section 6 of the paper).
//!
//! # What it is for
//! Aliph's instances are fast while nobody fails, and as slow as one faulty replica wants: a head of Chain that orders
//! a request just before its client panics keeps its place, and a hundredth of the throughput. Aardvark cannot be
//! slowed down so. A robust composition has Aardvark as its Backup, and leaves every other instance that does less than
//! that Backup did. A composition is robust where its schedule has a `backup(aardvark)`; `r-aliph` begins with one, so
//! that there is something to measure by.
//!
//! # Steps
//! * Robust 1. *Feedback.* A client machine tells all replicas how many requests of all its sessions wait, and which of
//!   them has waited longest: after every five answers, but no more than twenty times in a status interval; when the
//!   last one has been answered; and else after each status interval in which something waits.
//! * Robust 2. *Load.* So a replica knows how many requests wait, on average over a time, wherever they wait. Who has
//!   said nothing for three status intervals does not count.
//! * Robust 3. *What a Backup does.* Four times in a status interval a replica looks at how much has been executed. It
//!   remembers the most that was done at each load in each of the last n Backups: within two looks, and within twenty.
//!   What a Backup expects of its primaries (Aardvark 5) it hands on to the next one.
//! * Robust 4. *Expectations.* An instance that is no Backup stops when less than half of that was executed within two
//!   looks, at no less load; or, within twenty, not a twentieth more: one that is no better than a Backup is not worth
//!   while, and a Backup may have been slow itself, whose primary the next one does not have. Only what was announced
//!   and is not answered makes a load, and nothing is expected where less than half a request waits. What takes longer,
//!   because requests are rare, is looked at for longer: until a Backup would have executed 32, or 512.
//! * Robust 5. *Fairness.* It also stops when the oldest request of some machine is not executed here although twice as
//!   many others were as waited when it was announced, or wait now, and 64 besides.
//! * Robust 6. Whoever finds so stops (Switch 2). No client takes part in that or in the switch (Switch 3).
//!
//! # Why it is safe
//! An instance may stop at any time (Speculation 4 of [`crate::protocols::speculative`]), and what stops it has no say
//! in what the next one begins with. Clocks, feedback and expectations decide *when* a replica stops, and nothing else.
//!
//! # Whether one replica should be enough
//! One liar's stop stops nobody: that takes f+1. A correct replica that stops alone ends the instance all the same
//! where all n have to answer: the others get nothing done without it, see that within two looks, and stop as well. It
//! could wait for f others, as in Aardvark, where who leaves alone falls behind; but here a liar can do the same by
//! being silent, so nothing is gained by it, and a switch takes longer by one round of messages.
//!
//! # Why it is live
//! The composition lives by its Backups, which never stop for this. An instance that is left for no good reason costs
//! one Backup, as a PANIC does that any client may send; and Backups that follow one another last longer and longer
//! ([`crate::schedule::Quota`]).
//!
//! # What liars can do
//! * A client that says that much waits which it never asks for makes an instance look slow, or a request left out. It
//!   could as well panic. In the Backups after that, what little is done at such a load is what is measured, and after
//!   n of them nothing more is expected.
//! * A client that says nothing is not missed. Its own requests are not looked after.
//! * A replica that is slow in Backups makes little be expected of others: Aardvark sees to that.
//! * A head that serves its friends fast and others late is found by Robust 5, or by those others, who panic.
//!
//! # Deviations from the paper
//! * There a client names each request that it issues, and each that was answered; a replica counts those that it has
//!   executed itself. Here a replica counts what it executes, which cannot run away from what clients have answers to:
//!   a session asks for one thing at a time. So a machine with many sessions says no more than one with a few.
//! * There the expectation is the most that was ever done, and 128 requests decide. That leaves instances without any
//!   fault, above all with few clients or very many (abs-P5, abs-P9). Here load is compared with load, over a time.
//! * There a replica that finds it unhappy acts as a client, and has a request of nothing ordered: here replicas switch
//!   among themselves in any case, and INIT is no request (abs-P7).
//! * The paper's fairness takes two answers to be the limit, which a fair queue exceeds all the time (abs-P6).
//!
//! # Cost
//! For five requests of a machine at most n messages of some forty bytes; none besides.

mod machines;
mod worth;

use super::composite::Composite;
use super::running::Running;
use crate::ids::Principal;
use crate::protocols::aardvark::Watch;
use crate::registry::{Instance, ReplicaTimer, Speaker};
use crate::rejection::Rejection;
use crate::service::Service;
use crate::stop::StopReason;
use crate::switching::{Feedback, Surroundings};
use crate::time::{Duration, Instant};
use machines::Machines;
use worth::Worth;

/// Looks in a status interval.
const LOOKS: u64 = 4;

/// Status intervals after which a machine counts no more that has said nothing.
const SILENT_INTERVALS: u64 = 3;

/// What a replica knows of what its instances are worth. Local, and forgotten when it starts again.
#[derive(Clone, Debug)]
pub(super) struct Robust {
    machines: Machines,
    worth: Worth,
    /// What the last Backup expected of its primaries, while none runs.
    watch: Option<Watch>,
}

impl Robust {
    /// Among n replicas.
    pub(super) fn new(n: usize) -> Self {
        Self { machines: Machines::default(), worth: Worth::new(n), watch: None }
    }

    /// Robust 3. An instance is over.
    pub(super) fn keep_watch(&mut self, of: &mut Instance<impl Service>) {
        self.watch = of.take_watch().or(self.watch.take());
    }

    /// The same. One is opened.
    pub(super) fn hand_on_watch(&mut self, to: &mut Instance<impl Service>) {
        if let Some(watch) = self.watch.take() {
            self.watch = to.resume_watch(watch);
        }
    }

    /// What is true between steps.
    pub(super) fn check_invariants(&self) {
        self.machines.check_invariants();
        self.worth.check_invariants();
    }
}

impl<S: Service> Composite<S> {
    /// How many requests have been ordered here: what grows while clients are served.
    fn served(&self) -> u64 {
        let ledger = self.ledger();
        if self.what.part.is_backup() { ledger.estate.position() } else { ledger.log.length() }
    }

    /// The first input.
    pub(super) fn begin_to_look(&mut self, s: &mut Surroundings<'_, impl Speaker>) {
        if self.robust.is_some() {
            self.begin_to_measure(s.now);
            s.set_timer(ReplicaTimer::Look, s.now + look_interval(s));
        }
    }

    /// Robust 3. An instance begins.
    pub(super) fn begin_to_measure(&mut self, now: Instant) {
        let (served, is_backup) = (self.served(), self.what.part.is_backup());
        if let Some(robust) = &mut self.robust {
            robust.worth.begin(now, served, is_backup);
            robust.machines.begin(served);
            robust.machines.take_waited(now);
        }
    }

    /// Robust 1 and 2.
    pub(super) fn on_feedback(&mut self, s: &mut Surroundings<'_, impl Speaker>, from: Principal, said: &Feedback) {
        s.step("Robust 2");
        let served = self.served();
        let has_room = self.robust.as_mut().is_some_and(|robust| robust.machines.hear(s.now, said, served));
        if !has_room {
            s.reject(from, Rejection::Overload);
        }
    }

    /// Robust 3 to 6.
    pub(super) fn look(&mut self, s: &mut Surroundings<'_, impl Speaker>) {
        s.set_timer(ReplicaTimer::Look, s.now + look_interval(s));
        let served = self.served();
        let Some(robust) = &mut self.robust else { return };
        let silence = Duration(s.cluster.limits.status_interval.0.saturating_mul(SILENT_INTERVALS));
        robust.machines.forget_silent(s.now, silence);
        let waited = robust.machines.take_waited(s.now);
        let Some(Running::Open(instance)) = &mut self.running else { return robust.worth.pause(s.now, served) };
        if instance.report().is_some() {
            return robust.worth.pause(s.now, served);
        }
        s.step("Robust 3");
        let is_slow = robust.worth.look(s.now, served, waited);
        if self.what.part.is_backup() {
            return;
        }
        let ledger = instance.ledger();
        let is_left_out = robust.machines.is_any_left_out(served, |client, timestamp| ledger.has(client, timestamp));
        let reason = match (is_slow, is_left_out) {
            (true, _) => StopReason::SlowerThanABackup,
            (false, true) => StopReason::LeftOut,
            (false, false) => return,
        };
        s.step(if is_slow { "Robust 4" } else { "Robust 5" });
        s.step("Robust 6");
        instance.stop(s, reason, false);
    }
}

/// How often a replica looks.
fn look_interval(s: &Surroundings<'_, impl Speaker>) -> Duration {
    Duration((s.cluster.limits.status_interval.0 / LOOKS).max(1))
}
