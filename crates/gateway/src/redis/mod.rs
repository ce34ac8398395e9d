//! The Redis protocol: RESP2 and RESP3.
//!
//! [`parser`] reads commands, [`session`] turns those of one connection into batches of operations, [`reply`] writes
//! the answers, [`server`] has the sockets. `docs/redis.md` lists the commands and where they differ from Redis.

mod auth;
mod batch;
mod command;
mod expiry;
mod form;
mod glob;
mod info;
mod integer;
pub mod output;
pub mod parser;
pub mod reply;
mod scan;
pub mod server;
mod session;
mod shape;
mod shared;
mod transaction;
mod translate;

pub use batch::{BATCH_BYTES_MAX, BATCH_OPERATIONS_MAX};
pub use info::REDIS_VERSION;
pub use server::Server;
pub use transaction::{TRANSACTION_BYTES_MAX, TRANSACTION_COMMANDS_MAX};
