//! What is true of a composition between steps.

use super::composite::Composite;
use super::robust::Robust;
use super::running::Running;
use crate::cluster::Cluster;
use crate::ids::{Principal, ReplicaId};
use crate::registry::Instance;
use crate::service::Service;
use crate::switching::Amnesia;

impl<S: Service> Composite<S> {
    /// See the [module](self).
    pub(crate) fn check_invariants(&self, cluster: &Cluster, me: ReplicaId, amnesia: Option<&Amnesia>) {
        self.check_instance(cluster, amnesia);
        self.check_proof();
        self.check_reports(cluster, me);
        self.check_questions(cluster, me);
        self.waiting.check_invariants();
        self.early.check_invariants();
        self.presence.check_invariants(cluster.replicas.n());
        self.robust.iter().for_each(Robust::check_invariants);
        if let Some(jump) = &self.ahead {
            jump.check_invariants(cluster, self.what.number);
        }
        self.running().check_invariants(cluster, me);
    }

    /// Whatever runs is what the schedule says.
    fn check_instance(&self, cluster: &Cluster, amnesia: Option<&Amnesia>) {
        let what = self.what;
        assert_eq!(what, cluster.specification(what.number), "what runs is what the schedule says");
        if !what.hands_on() {
            assert_eq!(self.what.number.0, 1, "where nothing follows there is one instance");
            assert!(self.early.is_empty() && self.reports.is_empty(), "nothing is said about others");
        }
        match self.running() {
            Running::Opening(_) => {
                assert!(!what.part.is_backup(), "a Backup comes to its history by itself (Switch 6)");
            }
            Running::Silent(_) => {
                assert!(!what.part.is_backup(), "a Backup executes what the others order (Amnesia 2)");
                let has_forgotten = amnesia.is_some() || self.what.number.0 == 0;
                assert!(has_forgotten, "only who may have spoken before is silent");
            }
            Running::Open(instance) => assert_eq!(*instance.what(), what, "it is what it was opened as"),
        }
        assert!(self.ahead.is_none() || what.part.certifies(), "2f+1 sign how far a resilient ring is");
    }

    /// Switch 3 of [`crate::switching`]: an instance runs where the one before it is known to have ended.
    fn check_proof(&self) {
        assert!(self.what.number.0 <= 1 || self.proof.is_some(), "every instance but the first needs a proof");
        if let Some(proof) = &self.proof {
            assert_eq!(proof.instance().0 + 1, self.what.number.0, "the proof is about the instance before");
        }
    }

    /// Switch 2 of [`crate::switching`]: who has stopped in this instance.
    fn check_reports(&self, cluster: &Cluster, me: ReplicaId) {
        assert!(self.reports.iter().all(|(id, report)| report.signer() == *id), "a report is its signer's");
        assert!(self.reports.keys().all(|id| cluster.replicas.contains(*id)), "replicas report");
        let is_here = self.reports.values().all(|report| report.value().instance == self.what.number);
        assert!(is_here, "reports of what is over are forgotten");
        let own = self.running().open().and_then(Instance::report);
        assert_eq!(self.reports.contains_key(&me), own.is_some(), "who has stopped says so, and nobody else");
        assert_eq!(self.reports.get(&me), own, "it is never said differently");
        assert!(self.announced.is_none() || own.is_some(), "only who has stopped says so");
    }

    /// Whom this replica has told, or asked.
    fn check_questions(&self, cluster: &Cluster, me: ReplicaId) {
        let is_replica = |told: &Principal| told.replica().is_some_and(|id| cluster.replicas.contains(id) && id != me);
        assert!(self.told.keys().all(is_replica), "other replicas are shown the proof");
        let (last, waits_for) = self.asked_for_proof;
        assert!(waits_for >> me.0 & 1 == 0, "nobody asks itself");
        assert!(cluster.replicas.n() == 64 || waits_for >> cluster.replicas.n() == 0, "replicas are asked");
        assert!(last.is_some() || waits_for == 0, "who is waited for was asked");
    }
}
