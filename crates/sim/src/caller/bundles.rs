//! What a client asks for at once: one call, or several that make a bundle.

use super::Caller;
use crate::stage::Stage;
use crate::store;
use crate::workload::{Action, Call};
use bezant_core::client::{Completion, Read, Submit};
use bezant_core::message::bundle::{self, BUNDLE_OVERHEAD, Results, Single};
use bezant_core::time::Duration;
use bezant_core::wire::Wire;
use bytes::Bytes;

/// Calls that a bundle has beside its first, at most.
const BUNDLED_MAX: u64 = 5;

impl Caller {
    /// One call, or several that make a bundle.
    pub(super) fn draw(&mut self, stage: &Stage) -> Vec<(u64, Call)> {
        let number = self.next_number();
        if self.inspects {
            let query = stage.checks.closed.is_some();
            return vec![(number, Call { key: self.left as u8, action: Action::Get, query, deadline: None })];
        }
        let first = self.plan.next(&mut self.rng, number, self.last_seen);
        let mut calls = vec![(number, first)];
        let (often, most) = self.plan.bundles;
        if most == 0 || !self.rng.per_mille(often) {
            return calls;
        }
        let bytes = |calls: &[(u64, Call)]| -> usize {
            calls.iter().map(|(number, call)| BUNDLE_OVERHEAD + self.operation(*number, *call).len()).sum()
        };
        let mut rng = self.rng.clone();
        for _ in 0..rng.between(1, BUNDLED_MAX.min(most)) {
            let number = self.number(self.calls + calls.len() as u64);
            calls.push((number, self.plan.next_to(first, &mut rng, number)));
            if BUNDLE_OVERHEAD + bytes(&calls) > stage.cluster.limits.operation_bytes_max {
                calls.pop();
                break;
            }
        }
        self.rng = rng;
        let more = calls.len() as u64 - 1;
        self.calls += more;
        self.plan.bundles.1 -= more;
        calls
    }

    const fn next_number(&mut self) -> u64 {
        self.calls += 1;
        self.number(self.calls)
    }

    /// Its n-th call's number, different from those of all other callers.
    const fn number(&self, call: u64) -> u64 {
        (self.process as u64) << 32 | call
    }

    fn operation(&self, number: u64, call: Call) -> Bytes {
        store::encode(self.service, call.key, call.action, self.salt ^ number)
    }

    /// What is open, as the client is asked for it.
    pub(super) fn submit(&self, stage: &Stage) -> Submit {
        let operations: Vec<Bytes> = self.open.iter().map(|(number, call)| self.operation(*number, *call)).collect();
        let is_bundle = operations.len() > 1;
        let operation = if is_bundle { bundle::pack(&operations) } else { operations[0].clone() };
        let (_, first) = self.open[0];
        let deadline = first.deadline.map(|span| self.now(stage) + Duration(span));
        Submit { operation, is_bundle, read_only: first.query, read: Read::Quorum, deadline }
    }

    /// How each of so many calls ended that were asked for together, if the result is one for so many.
    pub(super) fn singles(result: &Completion, count: usize) -> Option<Vec<Completion>> {
        let Completion::Done(bytes) = result else { return Some(vec![result.clone(); count]) };
        if count == 1 {
            return Some(vec![result.clone()]);
        }
        let singles = Results::from_bytes(bytes.clone()).ok()?.into_singles();
        let each = singles.into_iter().map(|single| match single {
            Single::Done(result) => Completion::Done(result),
            Single::Refused(refusal) => Completion::Refused(refusal),
        });
        Some(each.collect()).filter(|each: &Vec<_>| each.len() == count)
    }
}
