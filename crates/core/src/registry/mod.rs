//! The one place that names all protocols: what travels, what is logged, what is waited for, and what runs.

pub(crate) mod certifying;
mod client;
mod instance;
mod message;
mod objection;
mod record;
mod request;
mod timer;

pub(crate) use client::{ClientMemory, half_of, settled};
pub(crate) use instance::{Instance, Speaker};
pub use message::{Incoming, Message};
pub(crate) use objection::{LONG, LONG_VALUE, objection_to};
pub use record::{InstanceRecord, LogRecord, Record, SnapshotRecord};
pub use timer::ReplicaTimer;
