//! Who is there: what a composition does while a replica is down.
//!
//! # What it is for
//! The most common fault is one machine that is down for an hour. Instances that need every replica get nowhere then,
//! and each attempt costs its clients a time-out. So they are not attempted while somebody is known to be missing.
//!
//! # Steps
//! * Presence 1. Whoever has the state of an instance says PRESENT to all others in every status interval, also if it
//!   has stopped there.
//! * Presence 2. Who has not said so for [`SILENCE`] is silent. Who stops names the silent in its abort report, and of
//!   these the next instance takes those to be missing whom f+1 reports name. A Backup's report names them as well: f+1
//!   of these prove where it ended, whomever each of them names. But a Backup may take long to begin, and nobody is
//!   there before it has: so it names nobody until whoever has begun when this replica did must have said so.
//! * Presence 3. An instance that needs all replicas is left as soon as it begins if somebody is missing and a Backup
//!   comes after it.
//! * Presence 4. A Backup that begins when somebody is missing, as its INIT says, has no last request yet: it *stays*.
//!   It leaves the first view at once if the primary is one of those, and view changes pass over them as long as it
//!   stays.
//! * Presence 5. In a Backup that stays, whoever hears all replicas says so in RETURNED, signed, in every status
//!   interval. f+1 of these are an END, which is ordered like any request. With the batch of the first valid one the
//!   Backup executes its last request, but not before the k-th (Backup 12 of [`crate::protocols::backup`]).
//!
//! # Why it is safe
//! Nothing is decided by who is silent but when instances end. Where a Backup ends follows from its INIT and the first
//! valid END, which are ordered: it is the same everywhere, and travels with the state. The others end as they do after
//! any stop.
//!
//! # Why it is live
//! f liars make nobody missing, since one of f+1 that name him is correct; nor do they end a stay, for the same reason.
//! If all are there, all correct ones hear all, so that there is an END. A liar who keeps silent keeps the Backup,
//! which makes progress without him, as long as he likes; in the instances that need him he could do no less. One who
//! comes and goes ends a Backup each time, but not before its k-th request, and k doubles. A schedule without a Backup
//! has nothing to do without the missing, and tries.
//!
//! Those who lead while a Backup stays are a strong set, and f+1 of them correct. If too many are missing for that, all
//! lead: after a partition f liars could name all correct ones but one, and that one the rest, so that none but liars
//! would be left. And whom a replica passes over is what the INIT says, or nobody, where it has a later state and not
//! the INIT. Those who pass over nobody visit all views that the others do. If each went by its own proof, and liars
//! gave each another one, the lower views could be left for views above the higher ones, for ever. Before the INIT the
//! proof serves to leave the first view.
//!
//! Who has lost its log is there as soon as it follows in a Backup, so that the Backup ends, although it may have to be
//! silent in the next instance: it speaks again after so many instances, and there have to be some.
//!
//! # Cost
//! n − 1 messages of a few bytes from each replica in a status interval; one signature and n − 1 checks in an interval
//! in which a Backup stays though all are there.

use crate::auth::Signed;
use crate::cluster::Cluster;
use crate::ids::ReplicaId;
use crate::replicas::ReplicaSet;
use crate::switching::Returned;
use crate::time::{Duration, Instant};
use alloc::collections::BTreeMap;
use alloc::vec;
use alloc::vec::Vec;

/// How long a replica is not heard of until it is silent: in quarters of a status interval.
pub const SILENCE: u64 = 9;

fn silence(cluster: &Cluster) -> Duration {
    Duration(cluster.limits.status_interval.0.saturating_mul(SILENCE) / 4)
}

/// What a replica knows of the presence of others.
#[derive(Clone, Debug)]
pub(super) struct Presence {
    /// When this replica came to have the state of the instance that runs.
    pub(super) here: Option<Instant>,
    /// Whether it had listened for long enough in the instance before.
    knew: bool,
    /// When each replica said last that it is there.
    pub(super) heard: Vec<Instant>,
    /// Who has returned in the instance that runs, as it says, and when it said so last.
    pub(super) returned: BTreeMap<ReplicaId, (Instant, Signed<Returned>)>,
}

impl Presence {
    /// Nobody of n replicas is silent before the first input.
    pub(super) fn new(n: usize) -> Self {
        Self { here: None, knew: false, heard: vec![Instant(u64::MAX); n], returned: BTreeMap::new() }
    }

    /// Presence 2.
    pub(super) fn silent(&self, now: Instant, cluster: &Cluster, me: ReplicaId) -> ReplicaSet {
        let is_silent = |id: &ReplicaId| *id != me && now > self.heard[usize::from(id.0)] + silence(cluster);
        cluster.replicas.iter().filter(is_silent).collect()
    }

    /// Presence 2: whether whoever is there must have said so since this replica is.
    pub(super) fn has_listened(&self, now: Instant, cluster: &Cluster) -> bool {
        self.here.is_some_and(|here| now > here + silence(cluster))
    }

    /// Whether somebody has not said so since the instance began who is not silent yet.
    pub(super) fn awaits_somebody(&self, began: Instant, now: Instant, cluster: &Cluster, me: ReplicaId) -> bool {
        let awaited = |heard: Instant| {
            let since = if self.knew { heard } else { began };
            heard <= began && now <= since + silence(cluster)
        };
        cluster.replicas.iter().any(|id| id != me && awaited(self.heard[usize::from(id.0)]))
    }

    /// Presence 5: who says now that it hears all, f+1 of them; none, if there are fewer.
    pub(super) fn returned(&self, now: Instant, cluster: &Cluster) -> Option<Vec<Signed<Returned>>> {
        let is_new = |(at, _): &&(Instant, Signed<Returned>)| now <= *at + silence(cluster);
        let returned = self.returned.values().filter(is_new).map(|(_, signed)| signed.clone());
        let enough: Vec<_> = returned.take(cluster.replicas.weak()).collect();
        (enough.len() == cluster.replicas.weak()).then_some(enough)
    }

    /// Another instance runs.
    pub(super) fn begin_instance(&mut self, now: Instant, cluster: &Cluster) {
        self.knew = self.has_listened(now, cluster);
        self.here = None;
        self.returned.clear();
    }

    pub(super) fn check_invariants(&self, n: usize) {
        assert_eq!(self.heard.len(), n, "each replica was heard of at some time");
        assert!(self.returned.len() <= n, "one RETURNED of each replica");
    }
}
