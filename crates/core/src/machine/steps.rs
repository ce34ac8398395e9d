//! The numbered steps of the protocols, as a machine takes them: for a host that shows what happened.

use alloc::vec::Vec;

/// A numbered step, by the name that the page of its protocol gives it, such as `PBFT 4`.
pub type Step = &'static str;

/// The steps that a machine has taken, in order. They are no effects: a host that listens sees the same effects as one
/// that does not. Where nobody listens, a step costs a branch.
#[derive(Debug, Default)]
pub struct StepsTaken(Option<Vec<Step>>);

impl StepsTaken {
    /// Adds one, if somebody listens.
    #[inline]
    pub fn step(&mut self, step: Step) {
        if let Some(taken) = &mut self.0 {
            taken.push(step);
        }
    }

    /// From now on somebody listens.
    pub(super) fn listen(&mut self) {
        self.0.get_or_insert_default();
    }

    /// Takes all of them, oldest first.
    pub(super) fn take(&mut self) -> Vec<Step> {
        self.0.as_mut().map(core::mem::take).unwrap_or_default()
    }
}
