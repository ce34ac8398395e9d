//! The client that closes the cluster in the second phase, and what that means for the others: a write that begins
//! after somebody was told that the cluster is closed is not acknowledged, whichever replicas lie or come back.

use super::Caller;
use super::errand::Errand;
use crate::stage::Stage;
use crate::store::ServiceKind;
use crate::workload::{Call, Plan};
use bezant_core::client::{Completed, Completion, Read, Submit};
use bezant_core::machine::Input;
use bezant_core::message::Refusal;
use bezant_core::wire::Wire;
use bytes::Bytes;

impl Caller {
    /// The same, to do nothing but close the cluster, somewhere in the second phase.
    #[must_use]
    pub fn closing(self) -> Self {
        // Among the other clients' calls.
        let think = self.plan.think * self.plan.more;
        let plan = Plan { requests: 0, more: 1, think, ..self.plan };
        Self { plan, left: 0, errand: Some(Errand::ToDo), ..self }
    }

    /// Asks the replicas to close the cluster.
    pub(super) fn close(&mut self, stage: &mut Stage) {
        self.errand = Some(Errand::Asked);
        stage.checks.closing = true;
        stage.note(self.process, 11, || "closes the cluster".into());
        let submit =
            Submit { operation: Bytes::new(), is_bundle: false, read_only: false, read: Read::Quorum, deadline: None };
        self.step(stage, Input::Command(submit));
    }

    /// Looks whether this is what came of it.
    pub(super) fn has_closed(&mut self, stage: &mut Stage, completed: &Completed) -> bool {
        if self.errand != Some(Errand::Asked) {
            return false;
        }
        self.errand = Some(Errand::Done);
        match &completed.result {
            Completion::Done(position) => {
                let position = u64::from_bytes(position.clone()).unwrap_or_default();
                stage.note(self.process, 12, || format!("the cluster is closed since request {position}"));
                stage.checks.closed = Some(position);
                stage.checks.watch.evidence.closed = 1;
            }
            // Its session may be evicted: it asks anew.
            Completion::Unknown | Completion::TooLate(_) if self.may_be_evicted(stage) => {
                self.errand = Some(Errand::ToDo);
                self.left = 1;
                self.pause(stage);
            }
            Completion::Refused(Refusal::Unauthorized) if matches!(self.service, ServiceKind::Own(_)) => {}
            Completion::Refused(Refusal::Disputed) if stage.checks.dissent => {}
            other => stage.checks.fail("closing", stage.now, format!("CLOSE ends with {other:?}")),
        }
        true
    }

    /// Looks at how a call ended that began when the cluster was closed already.
    pub(super) fn judge_closed(&self, stage: &mut Stage, call: Call, completed: &Completed) {
        let is_done = matches!(completed.result, Completion::Done(_));
        if is_done && self.begun_closed && !call.query {
            let what = format!("{} had {:?} executed after the cluster was closed", self.id(), call.action);
            stage.checks.fail("closing", stage.now, what);
        }
    }
}
