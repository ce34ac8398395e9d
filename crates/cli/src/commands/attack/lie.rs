//! What a client of the simulator says that lies, said to real replicas.

use bezant_core::ids::ReplicaId;
use bezant_core::message::Request;
use bezant_core::registry::Message;
use bezant_perf::raw::RawClient;
use bezant_sim::byzantine::{ClientMind, Said};
use bezant_sim::rng::Rng;

/// Says what comes of a request for these replicas in the mind of a client of the simulator. Returns how many lies it
/// told at least: as many as it thought of, less what found no link to leave by, or no room on it.
pub(super) fn lie(
    raw: &mut RawClient,
    mind: &mut ClientMind,
    rng: &mut Rng,
    receivers: &[ReplicaId],
    request: &Request,
) -> u64 {
    let before = mind.acts;
    let mut lost = 0;
    for (to, said) in mind.issue(rng, raw.cluster(), raw.keyring(), receivers, request) {
        let leaves = match said {
            Said::Message(message) => !closes(&message) && raw.say(to, &message),
            Said::Frame(frame) => raw.send(to, frame),
        };
        lost += u64::from(!leaves);
    }
    (mind.acts - before).saturating_sub(lost)
}

/// Whether this would close the cluster for good, which any client may do that its file names: no attack does.
fn closes(message: &Message) -> bool {
    matches!(message, Message::Request(request) if request.is_close())
}
