//! Robust compositions, such as R-Aliph: what a faulty replica can make of a fast instance is no less than what
//! Aardvark does (section 6 of the paper).
//!
//! # What it is for
//! Aliph's instances are fast while nobody fails, and as slow as one faulty replica wants: a head of Chain that orders
//! a request just before its client panics keeps its place, and a hundredth of the throughput. Aardvark cannot be
//! slowed down so. A robust composition has Aardvark as its Backup, and leaves every other instance that does less than
//! that Backup did. A composition is robust where its schedule has a `backup(aardvark)` and another part; `r-aliph`
//! begins with the Backup, so that there is something to measure by.
//!
//! # Steps
//! * Robust 1. *Feedback.* A client machine tells all replicas how many requests of all its sessions have waited, on
//!   average since it last said so, and which of them has waited longest. It begins a tenth of a status interval after
//!   something began to wait. If 128 requests wait it says so again after a twentieth of one; if fewer do, in inverse
//!   proportion later, but after seven twentieths of one at the latest. Where something waits and nothing has ended for
//!   twice as long as is usual there, or for two tenths, it says so every tenth. While a Backup runs, which nobody
//!   judges, it waits four times as long before it says so again, and before it says that nothing has ended.
//! * Robust 2. *Load.* So a replica knows how many requests wait, wherever they wait. Who has said nothing for three
//!   looks does not count; in a Backup, for twelve.
//! * Robust 3. *What a Backup does.* Four times in a status interval a replica looks at how much has been done. Of each
//!   of the last n Backups that it could measure it remembers the most that was done at each load: within two looks,
//!   and within twenty, if one lasted so long. There counts what waited in its own pool and was executed; the load is
//!   what waits there or what machines say, whichever is more. What those of one identity say counts for no more than
//!   if each of its requests that are executed had waited for a status interval before it came, or its answer after it
//!   left; the rest counts when more are, but for what waited longer ago than that. What was executed within two looks,
//!   or within twenty, counts at the load of the next ones if that is more, for answers are still under way. What a
//!   Backup expects of its primaries (Aardvark 5) it hands on to the next one.
//! * Robust 4. *Expectations.* An instance that is no Backup stops when it does less than half of that, at no less
//!   load, within two looks, three times in a row; or, within twenty, not a twentieth more: one that is no better than
//!   a Backup is not worth while, and a Backup may have been slow itself, whose primary the next one does not have.
//!   After one that was left within two looks, twice in a row is enough for the next n, at no less load than in a
//!   Backup, until one has held over twenty.
//!   Nothing is expected where less than half a request waits; nor before all have said that they are here (Presence
//!   1), as long as whoever has not is not silent yet: a Backup leaves behind who is slower than 2f + 1 others, and
//!   here, where nothing goes on without it, it catches up. What takes longer, because requests are rare, is looked at
//!   for longer: until a Backup would have executed 32, or 512. Where less waits than in a Backup, as much less is
//!   expected within two looks: no request takes longer than there. It stops as well after three times twenty looks in
//!   a row in which more than four times as much waited as in any Backup that was measured: then one is.
//! * Robust 5. *Fairness.* It also stops when a request that was named for a whole status interval is not executed here
//!   although, since then, some other session was served more than eight times.
//! * Robust 6. Whoever finds so stops (Switch 2). No client takes part in that or in the switch (Switch 3).
//! * Robust 7. Where another replica has stopped in an instance that needs all, this one stops as well when nothing is
//!   logged for eight times as long as usual, and a twentieth of a status interval at least, although something waits
//!   all the time, as some machine has said since then. Where nothing was logged so far it waits for a status interval,
//!   and until nobody may be on its way any more (Robust 4).
//!
//! # Why it is safe
//! An instance may stop at any time (Speculation 4 of [`crate::protocols::speculative`]), and what stops it has no say
//! in what the next one begins with. Clocks, feedback and expectations decide *when* a replica stops, and nothing else.
//!
//! # Whether one replica should be enough
//! One liar's stop stops nobody: that takes f+1, or that nothing goes on. A correct replica that stops alone ends the
//! instance all the same where all n have to answer: the others get nothing done without it, and Robust 7 lets them see
//! that soon. A liar that says it has stopped and goes on, so that something is logged, has said nothing. One that
//! does stop, or is as slow as that, could have been silent, which costs more. A replica that finds an instance slow
//! could wait for f others before it stops, as in Aardvark, where who leaves alone falls behind; for the same reason
//! nothing would be gained by it, and a switch would take longer by one round of messages.
//!
//! # Why it is live
//! The composition lives by its Backups, which never stop for this. An instance that is left for no good reason costs
//! one Backup, as a PANIC does that any client may send; and Backups that follow one another last longer and longer
//! ([`crate::schedule::Quota`]).
//!
//! # What liars can do
//! * A client that says that much waits which it never asks for, or never asks for what it names, makes an instance
//!   look slow, unmeasured or unfair, as often as it likes. It could as well panic; but a ring, in which panics do
//!   nothing, ends by a client's word only here, and only in robust compositions.
//! * A client that says so while a Backup runs has less expected of the instances after it: within two looks as much as
//!   if each of its own requests had taken a status interval longer in the Backup, and within twenty perhaps nothing.
//!   Where the Backup executed 10,000 requests in a second, one in forty of them its own, that is as if 50 more had
//!   waited. One that does ask for much while Backups run, and for nothing later, has as long a latency borne there as
//!   requests had then.
//! * A client that says nothing is not missed: its requests are served like others', and not looked after.
//! * A replica that is slow in Backups makes little be expected of others: Aardvark sees to that. It can also make a
//!   correct replica fall behind, which then measures nothing (it counts what waited in its pool).
//! * A replica that does not say that it is here has instances judged later, by as long as it takes to be silent. Then
//!   it is missing, and the Backup that follows goes on without it (Presence 4).
//! * A head may be as slow as the fastest Backup was that had a quarter as much to do, or more than twice as slow for
//!   less than six looks at a time. It may let a request wait for two status intervals while it serves others: then
//!   either it is found, or that request's client panics before.
//!
//! # Deviations from the paper
//! * There a client gives feedback with every fifth answer; here by the clock, the more often the more waits. It
//!   matters most when no answers come.
//! * There a client names each request that it issues, and each that was answered; a replica counts those that it has
//!   executed itself. Here a replica counts what it executes, which cannot run away from what clients have answers to:
//!   a session asks for one thing at a time. So a machine with many sessions says no more than one with a few.
//! * There the expectation is the most that was ever done, and 128 requests decide. That leaves instances without any
//!   fault, above all with few clients or very many (abs-P5, abs-P9). Here load is compared with load, over a time.
//! * There a replica that finds it unhappy acts as a client, and has a request of nothing ordered: here replicas switch
//!   among themselves in any case, and INIT is no request (abs-P7).
//! * The paper's fairness takes two answers to be the limit, which a fair queue exceeds all the time (abs-P6). Feedback
//!   may also come before the request that it names, which is long, or takes another way.
//!
//! # Cost
//! In a status interval 20n messages of some forty bytes for each 128 requests that wait, on however many machines; and
//! from each machine for which something waits nearly 3n at least, or 10n while none of it gets on. In a Backup a
//! quarter of that, as long as something gets on. A replica needs as long for each as for a request.

mod machines;
mod served;
mod worth;

use crate::protocols::aardvark::{Measure, Watch};
use crate::registry::Instance;
use crate::service::Service;
use crate::switching::{Feedback, Ledger};
use crate::time::{Duration, Instant};
use machines::Machines;
use served::Served;
pub(super) use worth::Found;
use worth::{Done, Role, Worth};

/// For how many times as long as usual nothing is logged in an instance that does not go on.
const QUIET_GAPS: u64 = 8;

/// What a replica knows of what its instances are worth. Local, and forgotten when it starts again.
#[derive(Clone, Debug)]
pub(super) struct Robust {
    machines: Machines,
    /// Who was served since something has waited for long.
    served: Served,
    worth: Worth,
    /// What the last Backup expected of its primaries, while none runs.
    watch: Option<Watch>,
    /// How long the history was at the last look, where it grows with each request.
    logged: u64,
    /// The same, and when that was, when it was last looked whether the instance goes on without a replica that has
    /// stopped.
    alone: Option<(u64, Instant)>,
    /// When the instance began here.
    begun: Instant,
    /// When it was last looked, and how long it took of late from one request to the next.
    looked: Instant,
    gap: Option<Duration>,
}

impl Robust {
    /// Among n replicas.
    pub(super) fn new(n: usize) -> Self {
        Self {
            machines: Machines::default(),
            served: Served::default(),
            worth: Worth::new(n),
            watch: None,
            logged: 0,
            alone: None,
            begun: Instant(0),
            looked: Instant(0),
            gap: None,
        }
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

    /// Robust 3. An instance begins.
    pub(super) fn begin(&mut self, now: Instant, instance: &mut Instance<impl Service>) {
        let is_yardstick = instance.take_measure(now).is_some();
        self.worth.begin(now, if is_yardstick { Role::Yardstick } else { Role::Measured });
        self.machines.begin();
        self.machines.take_waited(now, Duration(0), |_| u64::MAX);
        self.logged = instance.ledger().log.length();
        self.served = Served::from(self.logged);
        (self.alone, self.begun, self.looked, self.gap) = (None, now, now, None);
    }

    /// Robust 7: whether nothing has been logged for too long while something waited. `first`: for how long nothing may
    /// be where nothing was so far.
    pub(super) fn is_left_alone(&mut self, now: Instant, first: Duration, ledger: &Ledger<impl Service>) -> bool {
        let logged = ledger.log.length();
        let (before, at) = *self.alone.get_or_insert((logged, now));
        if before != logged || !self.machines.anything_waits() {
            self.alone = Some((logged, now));
            return false;
        }
        let most = self.gap.map_or(first, |gap| Duration(gap.0.saturating_mul(QUIET_GAPS)));
        now > at && now - at >= most && self.machines.anything_waits_since(at)
    }

    /// Robust 3 and 4: what is found of an instance that goes on. `status_interval`: a request that was served has
    /// waited elsewhere for no longer.
    pub(super) fn look(
        &mut self,
        now: Instant,
        status_interval: Duration,
        instance: &mut Instance<impl Service>,
    ) -> Option<Found> {
        let logged = instance.ledger().log.length();
        let logged_now = logged.saturating_sub(core::mem::replace(&mut self.logged, logged));
        if let Some(gap) = (now - core::mem::replace(&mut self.looked, now)).0.checked_div(logged_now) {
            self.gap = Some(Duration(gap));
        }
        let done = match instance.take_measure(now) {
            Some(Measure { executed, waited, executed_of }) => {
                let longest = status_interval.0.saturating_add(waited.checked_div(executed).unwrap_or_default());
                let of = |identity| executed_of.get(&identity).copied().unwrap_or_default();
                let most = |identity| longest.saturating_mul(1_000).saturating_mul(of(identity));
                let said = self.machines.take_waited(now, status_interval, most);
                Done { served: executed, waited: said.max(waited.saturating_mul(1_000)) }
            }
            None => Done { served: logged_now, waited: self.machines.take_waited(now, status_interval, |_| u64::MAX) },
        };
        self.worth.look(now, done)
    }

    /// Robust 5: whether others are served again and again, and one request is not.
    pub(super) fn has_left_out(&mut self, now: Instant, named: Duration, ledger: &Ledger<impl Service>) -> bool {
        if !self.machines.look_after(now, named, ledger.log.length()) {
            self.served = Served::from(ledger.log.length());
            return false;
        }
        self.served.look(&ledger.log);
        let has_waited = |since| self.machines.waits_since(since, |client, at| ledger.has(client, at));
        self.served.often_since().is_some_and(has_waited)
    }

    /// Robust 2. A machine says this. Returns whether there was room for it.
    pub(super) fn hear(&mut self, now: Instant, said: &Feedback) -> bool {
        self.machines.hear(now, said)
    }

    /// The same. Forgets who has said nothing for more than so many looks.
    pub(super) fn forget_silent(&mut self, after: u64) {
        self.machines.forget_silent(after);
    }

    /// When the instance began here.
    pub(super) const fn begun(&self) -> Instant {
        self.begun
    }

    /// Nothing can be said of what was done since the last look.
    pub(super) fn pause(&mut self, now: Instant) {
        self.worth.pause(now);
    }

    /// What is true between steps.
    pub(super) fn check_invariants(&self) {
        self.machines.check_invariants();
        self.served.check_invariants();
        self.worth.check_invariants();
    }
}
