//! Ctrl-C and its relatives.

use crate::Error;
use signal_hook::consts::{SIGHUP, SIGINT, SIGTERM};
use signal_hook::iterator::Signals;
use std::thread;

/// Calls `leave` on a thread of its own when the process is asked to end, by SIGINT, SIGTERM or SIGHUP.
///
/// # Errors
/// [`Error::System`]: the system refuses signal handlers or threads.
pub fn on_request_to_end(leave: impl FnOnce() + Send + 'static) -> Result<(), Error> {
    let mut signals =
        Signals::new([SIGINT, SIGTERM, SIGHUP]).map_err(|error| Error::System("no signal handlers", error))?;
    let wait = move || {
        if signals.forever().next().is_some() {
            leave();
        }
    };
    let thread = thread::Builder::new().name("signals".into()).spawn(wait);
    thread.map(drop).map_err(|error| Error::System("no thread for signals", error))
}
