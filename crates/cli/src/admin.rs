//! Asks a replica's admin port.

pub(crate) use bezant_node::admin::NOT_RUNNING;
use serde_json::Value;
use std::net::SocketAddr;

/// The JSON document at `path`, or in a few words why there is none.
pub(crate) fn get_json(address: SocketAddr, path: &str) -> Result<Value, String> {
    bezant_node::admin::ask(address, path)
}

/// Whether the process is there and answers.
pub(crate) fn is_live(address: SocketAddr) -> bool {
    bezant_node::admin::get(address, "/livez").is_ok()
}
