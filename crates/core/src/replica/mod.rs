//! The replica as one machine: what the simulator and the runtime drive.
//!
//! A replica is a composition ([`crate::compositions`]) of abortable instances over one estate. This module gives it
//! its outer face: configuration, records, notices, timers, recovery.

mod record;
mod report;

pub use record::{LogRecord, Record, SnapshotRecord};
pub use report::{Notice, Report};
