//! What a client of the simulator says that lies, said to real replicas.

use bezant_core::ids::ReplicaId;
use bezant_core::message::Request;
use bezant_core::registry::Message;
use bezant_perf::raw::RawClient;
use bezant_sim::byzantine::{ClientMind, Said};
use bezant_sim::rng::Rng;

/// The operation of all attacks but floods: none that a service understands. The service of benchmarks takes its first
/// bytes for the length of the result, which has to be short: else what is measured would be what results cost.
pub(super) const NONSENSE: &[u8] = b"\0\0\0\0attack";

/// Says what comes of a request for these replicas in the mind of a client of the simulator.
pub(super) fn lie(
    raw: &mut RawClient,
    mind: &mut ClientMind,
    rng: &mut Rng,
    receivers: &[ReplicaId],
    request: &Request,
) {
    for (to, said) in mind.issue(rng, raw.cluster(), raw.keyring(), receivers, request) {
        match said {
            Said::Message(message) if closes(&message) => {}
            Said::Message(message) => raw.say(to, &message),
            Said::Frame(frame) => raw.send(to, frame),
        }
    }
}

/// Whether this would close the cluster for good, which any client may do that its file names: no attack does.
fn closes(message: &Message) -> bool {
    matches!(message, Message::Request(request) if request.is_close())
}

#[cfg(test)]
mod tests {
    use super::*;
    use bezant_core::service::{Agreed, Service};
    use bezant_core::services::kv::KvOperation;
    use bezant_core::services::{Counter, Null};
    use bezant_core::wire::Wire;
    use bezant_sql::Request as SqlRequest;
    use bytes::Bytes;

    #[test]
    fn nobody_understands_nonsense_and_its_result_is_short() {
        let services: [&mut dyn Service; 2] = [&mut Null::default(), &mut Counter::default()];
        assert!(services.into_iter().all(|service| service.execute(NONSENSE, &Agreed::default()).is_empty()));
        let nonsense = || Bytes::from_static(NONSENSE);
        assert!(KvOperation::from_bytes(nonsense()).is_err() && SqlRequest::from_bytes(nonsense()).is_err());
    }
}
