//! SQLite as a replicated service: a SQL database that no single machine can falsify.
//!
//! Start with [`Sql`], the service; [`Request`] and [`Response`] are what clients exchange with it. `docs/sql.md` says
//! what users can expect.
//!
//! | question | file |
//! |---|---|
//! | Where are the bytes? | `pages.rs`, and `vfs.rs`, through which SQLite reaches them |
//! | What may a statement do? | `profile.rs`; `schema.rs` says what it may leave, `system.rs` which names are taken |
//! | Where do time and randomness come from? | `moment.rs` |
//! | What may a statement cost? | `meter.rs`, and `include/bezant_meter.h`, which is compiled into SQLite |
//! | How is a request executed? | `engine.rs`; `explain.rs` says what SQLite's errors mean |
//! | What if several operations come in a bundle? | `together.rs` |
//! | How does a client build a transaction step by step? | `rehearse.rs`, and `scratch.rs`, where it goes on |
//! | How is a table changed that SQLite cannot change? | `rebuild.rs` |
//! | Who may do what? | `roles.rs` |
//! | What are PostgreSQL's types to SQLite? | `functions/` |
//! | Where does a statement end? | `split.rs` |
//! | How is a checkpoint read, and how do two differ? | `snapshot.rs`, `difference.rs` |
//! | What makes it a service? | `service.rs`, and `database.rs`, which puts keys and values beside it |

mod build;
mod connection;
mod database;
mod difference;
pub mod engine;
mod error;
mod explain;
mod functions;
mod meter;
mod moment;
mod pages;
mod profile;
mod rebuild;
mod rehearse;
mod request;
mod response;
mod roles;
mod schema;
mod scratch;
mod service;
mod snapshot;
mod split;
mod stop;
mod system;
#[cfg(test)]
mod tests;
mod together;
mod unreadable;
mod value;
mod vfs;

pub use build::build;
pub use database::Database;
pub use difference::{Comparison, DIFFERENCES_MAX, Difference, Place, compare, key_count};
pub use error::{ErrorKind, MESSAGE_BYTES_MAX, SqlError};
pub use functions::add as add_functions;
pub use functions::{civil, days_of};
pub use meter::{Limits, hand_out, within};
pub use pages::PAGE_BYTES;
pub use request::{
    AGE_MAX, ATTEMPTS_MAX, Batch, Check, CheckBytes, Dated, PARAMETERS_MAX, Rehearsal, Request, SQL_BYTES_MAX,
    STATEMENTS_MAX, Statement,
};
pub use response::{COLUMNS_MAX, Column, Description, Failure, RESULT_BYTES_MAX, Response, Rows};
pub use service::Sql;
pub use snapshot::Snapshot;
pub use split::{Split, split};
pub use system::SYSTEM_PREFIX;
pub use unreadable::SnapshotError;
pub use value::{VALUE_BYTES_MAX, Value};
