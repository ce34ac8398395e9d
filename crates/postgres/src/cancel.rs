//! A client's wish that what it waits for ends, as psql has one when somebody presses Ctrl-C.
//!
//! It comes over a connection of its own, with the number and the secret that the first connection was told. A request
//! that was sent cannot be called back: so the waiting ends, and what that means depends on the request.

use std::collections::BTreeMap;
use std::fmt;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll, Wake, Waker};
use std::thread::{self, Thread};

#[derive(Debug, Default)]
struct State {
    /// Whether the connection is carrying something out. A wish that comes too late is for nothing.
    busy: bool,
    wished: bool,
    /// The thread that waits.
    waiting: Option<Thread>,
}

/// Whether the client of one connection wants no answer any more.
#[derive(Debug, Default)]
pub struct Cancel(Mutex<State>);

/// Wakes whoever waits, and needs no lock for it: an answer comes for each of hundreds of threads in one go.
struct Waking(Thread);

impl Wake for Waking {
    fn wake(self: Arc<Self>) {
        self.0.unpark();
    }
}

impl Cancel {
    fn state(&self) -> MutexGuard<'_, State> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// From now on a wish is for what the connection does, or nothing any more and forgotten.
    pub(crate) fn set_busy(&self, busy: bool) {
        *self.state() = State { busy, wished: false, waiting: None };
    }

    fn wish(&self) {
        let mut state = self.state();
        state.wished = state.busy;
        if let Some(thread) = &state.waiting {
            thread.unpark();
        }
    }

    /// Whether there is a wish, which is fulfilled with that.
    pub(crate) fn take(&self) -> bool {
        std::mem::take(&mut self.state().wished)
    }

    /// Waits until `poll` has something; `None` if the wish came first.
    pub fn wait<T>(&self, mut poll: impl FnMut(&mut Context<'_>) -> Poll<T>) -> Option<T> {
        let thread = thread::current();
        self.state().waiting = Some(thread.clone());
        let waker = Waker::from(Arc::new(Waking(thread)));
        let mut context = Context::from_waker(&waker);
        loop {
            if let Poll::Ready(value) = poll(&mut context) {
                return Some(value);
            }
            if self.take() {
                return None;
            }
            // Returns at once if somebody has woken this thread since it last waited.
            thread::park();
        }
    }
}

/// The open connections by number, each with its secret: no more of them than the server takes.
#[derive(Default)]
pub(crate) struct Cancels(Mutex<BTreeMap<u32, (u32, Arc<Cancel>)>>);

impl fmt::Debug for Cancels {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        // Not the secrets.
        out.debug_set().entries(self.open().keys()).finish()
    }
}

impl Cancels {
    fn open(&self) -> MutexGuard<'_, BTreeMap<u32, (u32, Arc<Cancel>)>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// A connection that may be cancelled until the value goes away.
    pub(crate) fn enter(&self, number: u32, secret: u32) -> Entered<'_> {
        let cancel = Arc::<Cancel>::default();
        self.open().insert(number, (secret, Arc::clone(&cancel)));
        Entered { cancels: self, number, cancel }
    }

    /// Somebody wishes that what a connection does ends. Nobody is told whether there is one.
    pub(crate) fn wish(&self, number: u32, secret: u32) {
        let found =
            self.open().get(&number).filter(|(right, _)| *right == secret).map(|(_, cancel)| Arc::clone(cancel));
        if let Some(cancel) = found {
            cancel.wish();
        }
    }
}

/// An open connection.
pub(crate) struct Entered<'a> {
    cancels: &'a Cancels,
    number: u32,
    /// Of this connection.
    pub(crate) cancel: Arc<Cancel>,
}

impl Drop for Entered<'_> {
    fn drop(&mut self) {
        self.cancels.open().remove(&self.number);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_wish_needs_the_secret_and_somebody_who_waits() {
        let cancels = Cancels::default();
        let entered = cancels.enter(7, 99);
        cancels.wish(7, 99);
        assert!(!entered.cancel.take(), "nothing was being done");
        entered.cancel.set_busy(true);
        cancels.wish(7, 98);
        cancels.wish(8, 99);
        assert!(!entered.cancel.take(), "that was for somebody else");
        cancels.wish(7, 99);
        assert!(entered.cancel.take() && !entered.cancel.take(), "one wish ends one thing");
        cancels.wish(7, 99);
        entered.cancel.set_busy(false);
        assert!(!entered.cancel.take(), "it came too late");
        drop(entered);
        assert!(cancels.open().is_empty());
    }

    #[test]
    fn waiting_ends_with_a_value_or_a_wish() {
        let cancel = Arc::<Cancel>::default();
        cancel.set_busy(true);
        assert_eq!(cancel.wait(|_| Poll::Ready(3)), Some(3));
        thread::scope(|scope| {
            let waiting = scope.spawn(|| cancel.wait(|_| Poll::<()>::Pending));
            cancel.wish();
            assert_eq!(waiting.join().unwrap(), None);
        });
    }
}
