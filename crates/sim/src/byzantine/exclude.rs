//! Exclusion (prac-A18): the liar talks with a bare quorum only, so that all correct replicas that it does not need, f
//! where n = 3f + 1, lag behind without anybody losing patience, and leaves clients to the others (pbft-F21).

use super::{Behaviour, Liar};
use bezant_core::ids::{Principal, ReplicaId};
use bezant_core::registry::Message;
use std::collections::BTreeSet;

#[derive(Debug, Default)]
pub(super) struct Exclude {
    excluded: Option<BTreeSet<ReplicaId>>,
}

impl Behaviour for Exclude {
    fn send(&mut self, liar: &mut Liar<'_>, to: Principal, message: &Message) {
        let excluded = self.excluded.get_or_insert_with(|| {
            let correct = liar.cluster.replicas.iter().filter(|id| !liar.liars.contains(id));
            correct.take(liar.cluster.replicas.all() - liar.cluster.replicas.strong()).collect()
        });
        match to {
            Principal::Client(_) | Principal::Key(_) => {}
            Principal::Replica(id) if excluded.contains(&id) => {}
            Principal::Replica(_) => liar.say(to, message),
        }
    }
}
