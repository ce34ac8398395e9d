//! A replica of a cluster, and how to ask it how it is.

use crate::admin;
use crate::failure::{Failure, Result};
use serde_json::Value;
use std::net::SocketAddr;

/// Why there is no account of a replica whose host has no address.
pub(crate) const UNRESOLVED: &str = "its address does not resolve";

/// A replica, and where to ask how it is.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Member {
    pub(crate) replica: u8,
    /// `None` if its host has no address.
    pub(crate) admin: Option<SocketAddr>,
}

impl Member {
    /// Where to ask.
    pub(crate) fn address(self) -> Result<SocketAddr> {
        self.admin.ok_or_else(|| Failure::failed(format!("replica {}: {UNRESOLVED}.", self.replica)))
    }

    /// Its own account, or in a few words why there is none.
    pub(crate) fn account(self) -> std::result::Result<Value, String> {
        self.admin.map_or_else(|| Err(UNRESOLVED.to_owned()), |admin| admin::get_json(admin, "/status"))
    }
}
