//! Ctrl-C and its relatives.

use crate::failure::Result;
use crate::typist;
use std::sync::atomic::{AtomicBool, Ordering};

/// How a command ends that was asked to by a signal: as shells have it for Ctrl-C.
pub(crate) const EXIT_CODE: i32 = 130;

/// Whether the process was asked to end.
static REQUESTED: AtomicBool = AtomicBool::new(false);

/// Whether the process was asked to end, and somebody sees to it: what goes wrong from now on goes wrong for that.
pub(crate) fn was_requested() -> bool {
    REQUESTED.load(Ordering::SeqCst)
}

/// Ends the process as one that was asked to, with the terminal as it was.
pub(crate) fn exit() -> ! {
    typist::restore();
    std::process::exit(EXIT_CODE)
}

/// Calls `leave` on a thread of its own when the process is asked to end. Who asks a second time asks for nothing
/// more.
///
/// # Errors
/// The system refuses signal handlers or threads.
pub(crate) fn on_request(leave: impl FnOnce() + Send + 'static) -> Result {
    let leave = move || {
        REQUESTED.store(true, Ordering::SeqCst);
        leave();
    };
    Ok(bezant_node::host::on_request_to_end(leave)?)
}
