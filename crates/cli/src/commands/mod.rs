//! One file, or folder, per sub-command.

pub(crate) mod attack;
pub(crate) mod backup;
pub(crate) mod bench;
pub(crate) mod client_key;
pub(crate) mod close;
pub(crate) mod config;
pub(crate) mod demo;
pub(crate) mod diff;
pub(crate) mod export;
pub(crate) mod gateway;
pub(crate) mod kv;
pub(crate) mod replica;
pub(crate) mod sim;
pub(crate) mod sql;
pub(crate) mod status;
pub(crate) mod stopped;
pub(crate) mod testnet;
pub(crate) mod version;
