//! The contexts that there are, by number: a number of one that was destroyed, or of none, is an error and not a crash.

use crate::context::Context;
use crate::outcome::Failure;
use std::collections::BTreeMap;
use std::process;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// Contexts that one process may have: each is a thread and a link to every other process of its group.
const CONTEXTS_MAX: usize = 1_024;
/// Numbers are passed as pointers, and are as far apart as those of memory could be.
const STEP: usize = 16;

#[derive(Debug)]
struct Contexts {
    /// The last number that was given.
    last: usize,
    open: BTreeMap<usize, Arc<Context>>,
}

static CONTEXTS: Mutex<Contexts> = Mutex::new(Contexts { last: 0, open: BTreeMap::new() });

fn lock() -> MutexGuard<'static, Contexts> {
    CONTEXTS.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Its number is never 0, and never given twice.
pub(crate) fn add(context: Context) -> Result<usize, Failure> {
    let mut contexts = lock();
    if contexts.open.len() >= CONTEXTS_MAX {
        return Err(Failure::invalid("there are too many contexts"));
    }
    contexts.last += STEP;
    let number = contexts.last;
    contexts.open.insert(number, Arc::new(context));
    Ok(number)
}

/// One that was not destroyed.
pub(crate) fn get(number: usize) -> Result<Arc<Context>, Failure> {
    let context = lock().open.get(&number).cloned().ok_or_else(Failure::closed)?;
    if context.process != process::id() {
        return Err(Failure::invalid("the context was made before this process was forked: make another one here"));
    }
    Ok(context)
}

/// Forgets a context, and leaves its group.
pub(crate) fn remove(number: usize) {
    let context = lock().open.remove(&number);
    match context {
        // Its thread does not live in a process that was forked.
        Some(context) if context.process != process::id() => std::mem::forget(context),
        Some(context) => context.close(),
        None => {}
    }
}
