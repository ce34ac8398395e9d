//! The client library.
//!
//! [`connect`] starts one background thread that drives many logical clients ("sessions") over shared connections, one
//! connection per replica. A [`Client`] is a cheap handle; many calls may be under way at once. Each borrows a free
//! session; those that wait at the same time share one, as a bundle ([`bezant_core::message::bundle`]). Every call has
//! a deadline and ends in one of four ways: done, rejected, unknown, or not sent.
//!
//! [`open`] connects with what the cluster's files say.
//!
//! A [`Call`] is a future for any executor, and can be waited for without one:
//!
//! ```no_run
//! # fn example(client: bezant_node::client::Client) -> Result<(), bezant_node::client::CallError> {
//! use std::time::Duration;
//! let result = client.execute("increment".into(), Duration::from_secs(5)).wait()?;
//! # drop(result); Ok(())
//! # }
//! ```
//!
//! A client whose key the cluster file does not name joins by itself, where the cluster lets clients join, and leaves
//! when it is closed ([`ClientOptions::identity`]).
//!
//! [`Closer`] ends the writing to a cluster for good.
//!
//! Benchmarks bring their own [`Driver`] and run it inside the engine's thread with [`run`].

mod access;
mod bundling;
mod call;
mod carrying;
mod closing;
mod driver;
mod engine;
mod explanation;
mod handle;
mod joining;
mod membership;
mod options;
mod pool;
mod signing;

pub use access::{key_beside, open};
pub use bundling::Operation;
pub use call::{Call, CallError, RequestId, Vouched};
pub use closing::Closer;
pub use driver::{Again, Driver, Finished};
pub use engine::run;
pub use handle::{EngineHandle, EngineStatus};
pub use membership::Admitted;
pub use options::ClientOptions;
pub use pool::{Client, connect};
