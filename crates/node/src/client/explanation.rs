//! Why an outcome is unknown.

use crate::net::Dialer;
use bezant_core::client::{Answer, Completed, Completion};
use bezant_core::ids::ReplicaId;

/// What each replica did, in words, if the outcome is unknown; by the connections over which they were asked.
pub(super) fn of(completed: &Completed, dialers: &[Dialer]) -> Vec<(ReplicaId, String)> {
    if completed.result != Completion::Unknown {
        return Vec::new();
    }
    let explain = |&(replica, answer): &(ReplicaId, Answer)| {
        let dialer = dialers.get(replica.0 as usize);
        let up = dialer.is_some_and(Dialer::is_up);
        let text = match (answer, dialer.and_then(Dialer::last)) {
            (Answer::Agreed, _) => "answered like the most".into(),
            (Answer::Differed, _) => "gave a different answer".into(),
            (Answer::Waiting, _) => "gave an answer that did not add up with the others".into(),
            (Answer::Silent, _) if up => "connected, but silent".into(),
            (Answer::Silent, Some(reason)) => format!("not connected: {reason}"),
            (Answer::Silent, None) => "not connected: no answer from its address yet".into(),
        };
        (replica, text)
    };
    completed.answers.iter().map(explain).collect()
}
