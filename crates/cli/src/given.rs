//! Operations that the command line gives, of whatever service a cluster has: nothing need be known about it.

use crate::failure::{Failure, Result};
use crate::{files, served};
use bezant_node::config::ClusterConfig;
use bezant_node::keys;
use bytes::Bytes;

/// An operation in hexadecimal.
pub(crate) fn operation(digits: &str) -> std::result::Result<Bytes, &'static str> {
    keys::from_hex_any(digits).map(Bytes::from).ok_or("no pairs of hexadecimal digits")
}

/// Refuses a cluster that serves a service of somebody's own, if nothing is given: what else is sent might mean
/// something to it.
pub(crate) fn expect_ours_without(given: &[Bytes], config: &ClusterConfig) -> Result {
    if !given.is_empty() {
        return Ok(());
    }
    let Some(service) = served::anothers(&files::members(config), config.to_cluster().replicas.weak()) else {
        return Ok(());
    };
    Err(Failure::usage(format!(
        "the replicas serve {service:?}, a service of somebody's own: give with --operation what to ask it for."
    )))
}
