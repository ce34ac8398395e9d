//! What a client tells replicas of what it waits for, where they want to know.

use super::Caller;
use crate::stage::{Occurrence, Stage};
use bezant_core::client::Reporter;
use bezant_core::machine::Destination;

impl Caller {
    /// It may have begun to wait for an answer, or have got it. `asked`: whether it waited before.
    pub(super) fn note_waiting(&mut self, stage: &Stage, asked: bool) {
        let (now, asks) = (self.now(stage), self.machine.asked().is_some());
        if let Some(reporter) = &mut self.reporter {
            reporter.see(&self.machine);
            if asks != asked {
                reporter.waits(now, asks);
            }
        }
    }

    /// Tells replicas what it waits for, if that is due.
    pub fn report(&mut self, stage: &mut Stage) {
        let now = self.now(stage);
        let said = self.reporter.as_mut().and_then(|reporter| reporter.say(now, [&self.machine]));
        if let Some(said) = said {
            self.send(stage, Destination::Replicas, &said);
        }
        let next = self.reporter.as_ref().and_then(Reporter::next).map(|at| self.clock.when(at, stage.now));
        if let Some(at) = next.filter(|at| self.report_at.is_none_or(|planned| planned <= stage.now || *at < planned)) {
            self.report_at = Some(at);
            stage.plan(at, Occurrence::Report(self.process));
        }
    }
}
