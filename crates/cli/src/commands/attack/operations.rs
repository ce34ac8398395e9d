//! What an attack asks for: something that no service of ours understands, of the size that the attack needs, or what
//! the author of a service has given for it.

use crate::failure::{Failure, Result};
use bezant_core::cluster::Limits;
use bezant_sim::byzantine::Adversary;
use bytes::Bytes;

/// An operation that no service understands. The service of benchmarks takes its first bytes for the length of the
/// result, which has to be short: else what is measured would be what results cost.
const NONSENSE: &[u8] = b"\0\0\0\0attack";

/// Bytes of an operation of a flood, as in section 6.1 of the paper on Abstract.
const FLOOD_BYTES: usize = 9_000;

/// Operations that are asked for in turn.
pub(super) struct Operations(Vec<Bytes>);

impl Operations {
    /// Those that are given, or one that nobody understands, in a cluster with these limits.
    ///
    /// # Errors
    /// The attack could do nothing with them.
    pub(super) fn of(given: &[Bytes], adversary: Option<Adversary>, limits: &Limits) -> Result<Self> {
        let operations = if given.is_empty() { vec![nonsense(adversary, limits)] } else { given.to_vec() };
        // A batch holds smaller bodies itself: there is nothing to withhold.
        let withholds = adversary == Some(Adversary::WithholdBody);
        let withheld = |operation: &Bytes| {
            operation.len() > limits.inline_bytes_max && operation.len() <= limits.operation_bytes_max
        };
        if withholds && !operations.iter().all(withheld) {
            return Err(Failure::usage(format!(
                "withhold-body: here, a body can be withheld of operations of more than {} bytes (inline_bytes_max), \
                 up to {} (operation_bytes_max).",
                limits.inline_bytes_max, limits.operation_bytes_max
            )));
        }
        Ok(Self(operations))
    }

    /// Whose turn it is.
    pub(super) fn at(&self, turn: u64) -> Bytes {
        self.0[(turn % self.0.len() as u64) as usize].clone()
    }
}

fn nonsense(adversary: Option<Adversary>, limits: &Limits) -> Bytes {
    match adversary {
        Some(Adversary::ClientFlood) => Bytes::from_static(&[0; FLOOD_BYTES]),
        Some(Adversary::WithholdBody) => {
            let mut operation = NONSENSE.to_vec();
            operation.resize(operation.len().max(limits.inline_bytes_max + 1), 0);
            operation.into()
        }
        _ => Bytes::from_static(NONSENSE),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use bezant_core::service::{Agreed, Service};
    use bezant_core::services::kv::KvOperation;
    use bezant_core::services::{Counter, Null};
    use bezant_core::wire::Wire;
    use bezant_sql::Request as SqlRequest;

    #[test]
    fn nobody_understands_nonsense_and_its_result_is_short() {
        for adversary in [None, Some(Adversary::ClientFlood), Some(Adversary::WithholdBody)] {
            let nonsense = nonsense(adversary, &Limits::default());
            let services: [&mut dyn Service; 2] = [&mut Null::default(), &mut Counter::default()];
            let mut results = services.into_iter().map(|service| service.execute(&nonsense, &Agreed::default()));
            assert!(results.all(|result| result.is_empty()), "{adversary:?}");
            assert!(KvOperation::from_bytes(nonsense.clone()).is_err(), "{adversary:?}");
            assert!(SqlRequest::from_bytes(nonsense).is_err(), "{adversary:?}");
        }
    }

    #[test]
    fn a_body_is_withheld_of_big_operations_only() {
        let limits = Limits { inline_bytes_max: 100, operation_bytes_max: 1_000, ..Limits::default() };
        let of = |given: &[Bytes], limits: &Limits| Operations::of(given, Some(Adversary::WithholdBody), limits);
        assert!(of(&[], &limits).unwrap().at(7).len() > 100);
        let (small, big) = (Bytes::from_static(&[1; 100]), Bytes::from_static(&[1; 101]));
        assert_eq!(of(std::slice::from_ref(&big), &limits).unwrap().at(7), big);
        assert!(of(&[big, small.clone()], &limits).is_err());
        assert!(of(&[], &Limits { inline_bytes_max: 1_000, ..limits.clone() }).is_err(), "nothing is that big");
        let other = Operations::of(std::slice::from_ref(&small), Some(Adversary::ClientFlood), &limits);
        assert_eq!(other.unwrap().at(0), small, "what is given is what is sent");
    }

    #[test]
    fn what_is_given_has_its_turn() {
        let given = [Bytes::from_static(b"a"), Bytes::from_static(b"b")];
        let operations = Operations::of(&given, None, &Limits::default()).unwrap();
        assert_eq!([0, 1, 2].map(|turn| operations.at(turn)), ["a", "b", "a"]);
    }
}
