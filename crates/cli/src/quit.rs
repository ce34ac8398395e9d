//! Ctrl-C and its relatives.

use crate::failure::{Failure, Result};
use signal_hook::consts::{SIGHUP, SIGINT, SIGTERM};
use signal_hook::iterator::Signals;
use std::thread;

/// How a command ends that was asked to by a signal: as shells have it for Ctrl-C.
pub(crate) const EXIT_CODE: i32 = 130;

/// Calls `leave` on a thread of its own when the process is asked to end.
///
/// # Errors
/// The system refuses signal handlers or threads.
pub(crate) fn on_request(leave: impl FnOnce() + Send + 'static) -> Result {
    let mut signals = Signals::new([SIGINT, SIGTERM, SIGHUP])
        .map_err(|error| Failure::failed(format!("no signal handlers: {error}")))?;
    let wait = move || {
        if signals.forever().next().is_some() {
            leave();
        }
    };
    let thread = thread::Builder::new().name("signals".into()).spawn(wait);
    thread.map(drop).map_err(|error| Failure::failed(format!("no thread for signals: {error}")))
}
