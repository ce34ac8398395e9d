//! Slowness as the attack in the paper on Abstract has it: a replica that takes a fixed time longer for whatever comes,
//! though what it says is right.

use super::Behaviour;
use bezant_core::cluster::Cluster;

/// How much longer: so many of these are a time-out of a view. 10 ms with the usual one of two seconds.
const OF_A_TIMEOUT: u64 = 200;

#[derive(Debug)]
pub(super) struct ProcessingDelay;

impl Behaviour for ProcessingDelay {
    fn stall(&self, cluster: &Cluster) -> Option<u64> {
        Some(cluster.limits.view_timeout.0 / OF_A_TIMEOUT)
    }
}
