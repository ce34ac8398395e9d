//! Which clusters cannot run the protocol that they name.

use crate::cluster::{ClientAuth, Cluster};
use crate::protocols::pbft::{NewView, PrePrepare};
use crate::schedule::{Part, Protocol};
use crate::switching::AbortReport;
use crate::switching::report::ENTRIES_MAX;
use crate::wire::FRAME_BYTES_MAX;

/// The most that a message which must be sent may need, by an estimate.
const LONG: usize = FRAME_BYTES_MAX - FRAME_BYTES_MAX / 16;

/// Why this cluster cannot run the protocol that it names, in words.
pub fn objection(cluster: &Cluster) -> Option<&'static str> {
    let protocol = cluster.protocol;
    let of_part = |part: &Part| part.objection(cluster.replicas);
    let of_parts = protocol.schedule().and_then(|schedule| schedule.parts().iter().find_map(of_part));
    match protocol {
        Protocol::Unreplicated if cluster.replicas.n() != 1 => Some("unreplicated runs on exactly one replica"),
        _ if cluster.dynamic_clients && protocol != Protocol::Pbft => {
            Some("dynamic_clients goes with protocol = \"pbft\" only: the other protocols cannot let clients join yet")
        }
        _ if cluster.dynamic_clients && cluster.client_auth == ClientAuth::Mac => {
            Some("dynamic_clients needs requests that are signed: client_auth = \"hybrid\" or \"signature\"")
        }
        _ if of_parts.is_some() => of_parts,
        // What such a replica inherits at last is one bound more.
        _ if cluster.inherited_bound() + cluster.history_bound() > ENTRIES_MAX as u64 => {
            Some("histories grow too long: set a lower history_interval, or fewer parts between two Backups")
        }
        _ if protocol.schedule().is_some() && AbortReport::proof_bytes_max(cluster) > LONG as u64 => {
            Some("a proof that an instance has ended is longer than a message may be: set a lower history_interval")
        }
        _ if protocol.orders_by_pbft() && !NewView::fits(cluster, LONG) => {
            Some("a view change is longer than a message may be: set a lower checkpoint_interval")
        }
        _ if protocol.orders_by_pbft() && PrePrepare::bytes_max(cluster) > LONG as u64 => {
            Some("a batch is longer than a message may be: set a lower batch_requests_max or batch_bytes_max")
        }
        _ => None,
    }
}
