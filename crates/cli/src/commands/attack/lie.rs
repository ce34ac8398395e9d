//! What a client of the simulator says that lies, said to real replicas.

use bezant_core::ids::ReplicaId;
use bezant_core::message::Request;
use bezant_core::registry::Message;
use bezant_perf::raw::RawClient;
use bezant_sim::byzantine::{ClientMind, Said};
use bezant_sim::rng::Rng;

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
