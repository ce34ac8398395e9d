//! Which clusters cannot run a part.

use crate::batch::Batch;
use crate::cluster::{ClientAuth, Cluster};
use crate::protocols::pbft::NewView;
use crate::protocols::ritas::message::VALUE_BYTES_MAX;
use crate::schedule::{Order, Part};
use crate::wire::FRAME_BYTES_MAX;

/// The most that a message which must be sent may need, by an estimate.
pub(crate) const LONG: usize = FRAME_BYTES_MAX - FRAME_BYTES_MAX / 16;

/// The same, of what RITAS must broadcast.
pub(crate) const LONG_VALUE: usize = VALUE_BYTES_MAX - VALUE_BYTES_MAX / 16;

/// Why this cluster cannot run this part, in words.
pub(crate) fn objection_to(part: Part, cluster: &Cluster) -> Option<&'static str> {
    match part {
        Part::Backup(Order::Pbft | Order::Aardvark) if !NewView::fits(cluster, LONG) => {
            Some("a view change is longer than a message may be: set a lower checkpoint_interval")
        }
        Part::Backup(Order::Pbft | Order::Aardvark) if Batch::bytes_max(cluster) > LONG as u64 => {
            Some("a batch is longer than a message may be: set a lower batch_requests_max or batch_bytes_max")
        }
        Part::Backup(Order::Ritas) if cluster.client_auth == ClientAuth::Mac => {
            Some("a request has to convince every replica alike: set client_auth = \"hybrid\" or \"signature\"")
        }
        Part::Backup(Order::Ritas) if Batch::bytes_max(cluster) > LONG_VALUE as u64 => {
            Some("a payload is longer than a value may be: set a lower batch_requests_max or batch_bytes_max")
        }
        Part::Quorum
        | Part::ZLight
        | Part::Chain
        | Part::RingFast
        | Part::RingResilient
        | Part::Backup(_)
        | Part::Unreplicated => None,
        #[cfg(test)]
        Part::Sample => None,
    }
}
