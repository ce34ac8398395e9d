//! The replicated database as the PostgreSQL gateway reaches it: over the client library.

use crate::service::Service;
use bezant_core::message::Refusal;
use bezant_core::wire::Wire;
use bezant_node::client::{CallError, Vouched};
use bezant_postgres::{Answer, CallFailure, Database};
use bezant_sql::{Request, Response};
use bytes::Bytes;

impl Database for Service {
    /// What seems to be a read is asked as a query first, and ordered only if the replicas say that it is none.
    fn call(&self, request: &Request) -> Result<Answer, CallFailure> {
        let operation = Bytes::from(request.to_bytes());
        if request.seems_read_only() {
            match self.query(operation.clone()) {
                // That is what all of them answer when it is ordered.
                Err(CallError::Rejected(Refusal::NotReadOnly)) if request.goes_on() => {
                    let (sequence, replicas) = (0, Vec::new());
                    return Ok(Answer { response: Response::NotHeld, sequence, replicas, ordered: true });
                }
                Err(CallError::Rejected(Refusal::NotReadOnly)) => {}
                Err(CallError::Unknown { replicas, .. }) if request.is_read_only() => {
                    let what: Vec<String> =
                        replicas.iter().map(|(id, what)| format!("replica {}: {what}", id.0)).collect();
                    return Err(CallFailure::Refused(format!("no answer in time; {}", what.join("; "))));
                }
                other => return answer(other, self.orders_reads),
            }
        }
        answer(self.execute(operation), true)
    }

    fn orders_reads(&self) -> bool {
        self.orders_reads
    }

    fn request_bytes_max(&self) -> usize {
        self.operation_bytes_max
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
    }
}
