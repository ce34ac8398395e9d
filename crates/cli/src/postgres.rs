//! The replicated database as the PostgreSQL gateway reaches it: over the client library.

use crate::service::Service;
use bezant_core::ids::ReplicaId;
use bezant_core::message::Refusal;
use bezant_core::wire::Wire;
use bezant_node::client::{Call, CallError, Vouched};
use bezant_postgres::{Answer, CallFailure, Cancel, Database};
use bezant_sql::{Request, Response};
use bytes::Bytes;
use std::sync::Arc;

impl Database for Service {
    /// What seems to be a read is asked as a query first, and ordered only if the replicas say that it is none.
    fn call(&self, request: &Request, cancel: &Arc<Cancel>) -> Result<Answer, CallFailure> {
        let operation = Bytes::from(request.to_bytes());
        if request.seems_read_only() {
            let queried = wait(self.query(operation.clone()), cancel).ok_or(CallFailure::Cancelled)?;
            if let Some(answered) = asked(request, queried, self.orders_reads) {
                return answered;
            }
        }
        answer(wait(self.execute(operation), cancel).ok_or_else(|| called_off(request))?, true)
    }

    /// Few are asked, unless they lately did not agree. What they do not agree on is ordered, and so not held.
    fn go_on(&self, request: &Request, holders: &[u8], cancel: &Arc<Cancel>) -> Result<Answer, CallFailure> {
        let few = if self.orders_reads { None } else { self.few.of(holders) };
        let Some(few) = few else { return self.call(request, cancel) };
        let call = self.query_few(request.to_bytes().into(), &few);
        let result = wait(call, cancel).ok_or(CallFailure::Cancelled)?;
        if !agreed(&few, &result) {
            self.few.doubt();
        }
        asked(request, result, false).unwrap_or_else(|| self.call(request, cancel))
    }

    fn orders_reads(&self) -> bool {
        self.orders_reads
    }

    fn request_bytes_max(&self) -> usize {
        self.operation_bytes_max
    }
}

/// Waits for an answer. `None`: the client did not want it any more.
fn wait(call: Call, cancel: &Arc<Cancel>) -> Option<Result<Vouched, CallError>> {
    cancel.wait(|context| call.poll_vouched(context))
}

/// What it means for a request that was sent to be ordered, and cannot be called back.
fn called_off(request: &Request) -> CallFailure {
    match request.is_read_only() {
        true => CallFailure::Cancelled,
        false => CallFailure::Unknown("cancelled when it was sent already, and before there was an answer".into()),
    }
}

/// Whether few gave an answer. If not, it was ordered, and more than those vouch for it.
fn agreed(few: &[ReplicaId], result: &Result<Vouched, CallError>) -> bool {
    match result {
        Ok(vouched) => vouched.replicas.len() <= few.len(),
        Err(error) => matches!(error, CallError::Rejected(_)),
    }
}

/// What came of asking a query. `None`: it must be ordered.
fn asked(request: &Request, result: Result<Vouched, CallError>, ordered: bool) -> Option<Result<Answer, CallFailure>> {
    match result {
        // That is what all of them answer when it is ordered.
        Err(CallError::Rejected(Refusal::NotReadOnly)) if request.goes_on() => {
            let (sequence, replicas) = (0, Vec::new());
            Some(Ok(Answer { response: Response::NotHeld, sequence, replicas, ordered: true }))
        }
        Err(CallError::Rejected(Refusal::NotReadOnly)) => None,
        Err(CallError::Unknown { replicas, .. }) if request.is_read_only() => {
            let what: Vec<String> = replicas.iter().map(|(id, what)| format!("replica {}: {what}", id.0)).collect();
            Some(Err(CallFailure::Refused(format!("no answer in time; {}", what.join("; ")))))
        }
        other => Some(answer(other, ordered)),
    }
}

fn answer(result: Result<Vouched, CallError>, ordered: bool) -> Result<Answer, CallFailure> {
    match result {
        Ok(Vouched { result, sequence, replicas }) => {
            let response = Response::from_bytes(result)
                .map_err(|_| CallFailure::Refused("the cluster does not replicate SQL".into()))?;
            let replicas = replicas.into_iter().map(|id| id.0).collect();
            Ok(Answer { response, sequence: sequence.0, replicas, ordered })
        }
        Err(error @ CallError::Rejected(Refusal::TooLarge)) => Err(CallFailure::TooLarge(error.to_string())),
        Err(error @ CallError::Rejected(Refusal::Closed)) => Err(CallFailure::ReadOnly(error.to_string())),
        Err(error) if error.may_have_been_executed() => Err(CallFailure::Unknown(error.to_string())),
        Err(error) => Err(CallFailure::Refused(error.to_string())),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// 08007 for whatever may have been executed, and nothing else.
    #[test]
    fn what_may_have_been_executed_is_unknown() {
        let (perhaps, never) = crate::service::tests::call_errors();
        for error in perhaps {
            assert!(matches!(answer(Err(error.clone()), true), Err(CallFailure::Unknown(_))), "{error}");
        }
        for error in never {
            assert!(matches!(answer(Err(error.clone()), true), Err(CallFailure::Refused(_))), "{error}");
        }
        let large = answer(Err(CallError::Rejected(Refusal::TooLarge)), true);
        assert!(matches!(large, Err(CallFailure::TooLarge(_))));
        let closed = answer(Err(CallError::Rejected(Refusal::Closed)), true);
        assert!(matches!(closed, Err(CallFailure::ReadOnly(_))));
    }

    /// Few that say alike that they do not hold something have answered; what was ordered instead they have not.
    #[test]
    fn few_are_doubted_only_if_they_do_not_agree() {
        let few = [ReplicaId(1), ReplicaId(2)];
        let by = |ids: &[u8]| {
            let replicas = ids.iter().copied().map(ReplicaId).collect();
            Ok(Vouched { result: Bytes::new(), sequence: bezant_core::ids::Sequence(0), replicas })
        };
        assert!(agreed(&few, &by(&[1, 2])));
        assert!(!agreed(&few, &by(&[0, 1, 2])));
        assert!(agreed(&few, &Err(CallError::Rejected(Refusal::NotReadOnly))));
        assert!(!agreed(&few, &Err(CallError::Closed)));
    }
}
