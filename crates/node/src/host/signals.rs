//! Ctrl-C and its relatives.

use crate::Error;
use nix::sys::signal::{SigSet, SigmaskHow, Signal};
use signal_hook::consts::{SIGHUP, SIGINT, SIGTERM};
use signal_hook::iterator::Signals;
use std::{io, thread};

/// Calls `leave` on a thread of its own when the process is asked to end, by SIGINT, SIGTERM or SIGHUP.
///
/// Only before there are other threads is no request lost: one that comes during this call may go to any of them.
///
/// # Errors
/// [`Error::System`]: the system refuses signal handlers or threads.
pub fn on_request_to_end(leave: impl FnOnce() + Send + 'static) -> Result<(), Error> {
    let mut signals =
        listen(&[SIGINT, SIGTERM, SIGHUP], Signals::new).map_err(|error| Error::System("no signal handlers", error))?;
    let wait = move || {
        if signals.forever().next().is_some() {
            leave();
        }
    };
    let thread = thread::Builder::new().name("signals".into()).spawn(wait);
    thread.map(drop).map_err(|error| Error::System("no thread for signals", error))
}

/// Has `handlers` set up handlers of these signals, which wait for this thread until that is done.
///
/// The system knows a handler a moment before `signal-hook` knows whom it is for. A signal that came in between would
/// neither end the process nor be heard.
fn listen<'a, T>(signals: &'a [i32], handlers: impl FnOnce(&'a [i32]) -> io::Result<T>) -> io::Result<T> {
    let held = signals.iter().map(|&signal| Signal::try_from(signal)).collect::<Result<SigSet, _>>()?;
    let before = held.thread_swap_mask(SigmaskHow::SIG_BLOCK)?;
    let listening = handlers(signals);
    before.thread_set_mask()?;
    listening
}

#[cfg(test)]
mod tests {
    use super::*;
    use signal_hook::consts::SIGUSR1;
    use signal_hook::low_level;

    /// Let through at once, it would end the process.
    #[test]
    fn a_signal_that_comes_before_its_handler_is_heard() {
        let mut signals = listen(&[SIGUSR1], |signals| {
            low_level::raise(SIGUSR1)?;
            Signals::new(signals)
        })
        .unwrap();
        assert_eq!(signals.pending().collect::<Vec<_>>(), [SIGUSR1]);
    }
}
