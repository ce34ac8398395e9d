//! Ctrl-C while somebody waits for an answer: the waiting ends, and whoever asked says what that means for the request.
//!
//! A request that was sent cannot be called back. So an end without a word, which Ctrl-C is by default, would leave
//! open whether a write was done.

use crate::failure::{Failure, Result};
use crate::quit;
use bezant_node::client::{Call, CallError};
use bytes::Bytes;
use signal_hook::consts::SIGINT;
use signal_hook::iterator::Signals;
use std::pin::Pin;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll, Wake, Waker};
use std::thread;

#[derive(Debug, Default)]
struct State {
    /// How many calls are waited for.
    waiting: usize,
    /// Whether Ctrl-C was pressed since the last [`Interrupts::forget`], and did not end the process.
    raised: bool,
    /// Whether there is a prompt to go back to.
    has_prompt: bool,
}

/// Ctrl-C, as those see it who wait. Until somebody listens it does what it does by default.
#[derive(Debug, Default)]
pub(crate) struct Interrupts {
    state: Mutex<State>,
    changed: Condvar,
}

/// Wakes those who wait.
struct Waking(Arc<Interrupts>);

impl Wake for Waking {
    fn wake(self: Arc<Self>) {
        // With the lock, so that nobody is between looking and waiting.
        let _state = self.0.state();
        self.0.changed.notify_all();
    }
}

impl Interrupts {
    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// From now on Ctrl-C ends what is waited for, or the process if that is nothing and there is no prompt.
    ///
    /// # Errors
    /// The system refuses signal handlers or threads.
    pub(crate) fn listen(self: &Arc<Self>) -> Result {
        let mut signals =
            Signals::new([SIGINT]).map_err(|error| Failure::failed(format!("no signal handlers: {error}")))?;
        let interrupts = Arc::clone(self);
        let listen = move || signals.forever().for_each(|_| interrupts.raise());
        let thread = thread::Builder::new().name("interrupts".into()).spawn(listen);
        thread.map(drop).map_err(|error| Failure::failed(format!("no thread for signals: {error}")))
    }

    /// Ctrl-C. Pressed again before anybody could say what the first did, it does nothing more.
    fn raise(&self) {
        let mut state = self.state();
        if state.waiting == 0 && !state.raised && !state.has_prompt {
            quit::exit();
        }
        state.raised = true;
        self.changed.notify_all();
    }

    /// Whether waiting was ended: then what was to follow must not be done.
    pub(crate) fn was_raised(&self) -> bool {
        self.state().raised
    }

    /// There is a prompt, to which a person comes back now.
    pub(crate) fn forget(&self) {
        let mut state = self.state();
        state.raised = false;
        state.has_prompt = true;
    }

    /// Waits until a call ends; `None` if Ctrl-C came first.
    pub(crate) fn wait(self: &Arc<Self>, mut call: Call) -> Option<std::result::Result<Bytes, CallError>> {
        let waker = Waker::from(Arc::new(Waking(Arc::clone(self))));
        let mut context = Context::from_waker(&waker);
        let mut state = self.state();
        state.waiting += 1;
        let ended = loop {
            if let Poll::Ready(result) = Pin::new(&mut call).poll(&mut context) {
                break Some(result);
            }
            if state.raised {
                break None;
            }
            state = self.changed.wait(state).unwrap_or_else(PoisonError::into_inner);
        };
        state.waiting -= 1;
        ended
    }
}
