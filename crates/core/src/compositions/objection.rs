//! Which clusters cannot run the protocol that they name.

use crate::cluster::{ClientAuth, Cluster, Coin, Vects};
use crate::registry::{LONG, LONG_VALUE, objection_to};
use crate::switching::AbortReport;
use crate::switching::report::ENTRIES_MAX;

/// Why this cluster cannot run the protocol that it names, in words.
pub fn objection(cluster: &Cluster) -> Option<&'static str> {
    let (protocol, schedule) = (cluster.protocol, cluster.protocol.schedule());
    if cluster.dynamic_clients && !protocol.lets_clients_join() {
        return Some(
            "dynamic_clients goes with pbft, or a schedule of backup(pbft) alone: other parts let nobody join",
        );
    }
    if cluster.dynamic_clients && cluster.client_auth == ClientAuth::Mac {
        return Some("dynamic_clients needs requests that are signed: client_auth = \"hybrid\" or \"signature\"");
    }
    if cluster.coin == Coin::Common && !protocol.has_ritas() {
        return Some(
            "only ritas tosses coins: coin = \"common\" goes with ritas, or a schedule that has backup(ritas)",
        );
    }
    if cluster.vects == Vects::Echo && !protocol.has_ritas() {
        return Some("only ritas has VECTs: vect = \"echo\" goes with ritas, or a schedule that has backup(ritas)");
    }
    if let Some(objection) = schedule.parts().iter().find_map(|part| part.objection(cluster.replicas)) {
        return Some(objection);
    }
    // What such a replica inherits at last is one bound more.
    if cluster.inherited_bound() + cluster.history_bound() > ENTRIES_MAX as u64 {
        return Some("histories grow too long: set a lower history_interval, or fewer parts between two Backups");
    }
    // Where RITAS orders INIT, it broadcasts it.
    let proof_bytes_max = if protocol.has_ritas() { LONG_VALUE } else { LONG };
    if protocol.hands_on() && AbortReport::proof_bytes_max(cluster) > proof_bytes_max as u64 {
        return Some(
            "a proof that an instance has ended is longer than a message may be: set a lower history_interval",
        );
    }
    schedule.parts().iter().find_map(|part| objection_to(*part, cluster))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cluster::Limits;
    use crate::testing::net::cluster;

    /// Thirteen replicas, and many instances that leave their history to the next: the proof is 4.1 MB long.
    #[test]
    fn ritas_broadcasts_init_as_one_value() {
        let objects = |order: &str| {
            let limits = Limits { history_interval: 780, ..Limits::default() };
            let schedule = alloc::format!("{}{order}", "quorum, chain, ".repeat(3));
            objection(&cluster(13, ClientAuth::Hybrid, limits).with_protocol(schedule.parse().unwrap()))
        };
        assert_eq!(objects("backup(pbft)"), None);
        assert!(objects("backup(ritas)").is_some_and(|objection| objection.starts_with("a proof")));
    }
}
