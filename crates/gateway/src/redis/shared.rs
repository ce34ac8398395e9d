//! What all connections share.

use super::scan::Cursors;
use crate::door::Door;
use crate::store::Store;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, AtomicUsize};
use std::time::Instant;

/// What the connections of a gateway share.
pub(crate) struct Shared {
    pub(crate) store: Arc<dyn Store>,
    pub(crate) door: Door,
    pub(crate) cursors: Cursors,
    pub(crate) statistics: Statistics,
}

/// What the gateway counts.
#[derive(Debug)]
pub(crate) struct Statistics {
    pub(crate) started: Instant,
    pub(crate) connected: AtomicUsize,
    pub(crate) connections: AtomicU64,
    pub(crate) refused: AtomicU64,
    pub(crate) commands: AtomicU64,
    /// Connections that were closed because HTTP came.
    pub(crate) http: AtomicU64,
    /// Passwords that were wrong.
    pub(crate) wrong_passwords: AtomicU64,
}

impl Statistics {
    pub(crate) fn new() -> Self {
        Self {
            started: Instant::now(),
            connected: AtomicUsize::new(0),
            connections: AtomicU64::new(0),
            refused: AtomicU64::new(0),
            commands: AtomicU64::new(0),
            http: AtomicU64::new(0),
            wrong_passwords: AtomicU64::new(0),
        }
    }
}
