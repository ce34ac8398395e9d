//! How a call ended, as the thread that made it can ask afterwards.

use bezant_node::group::Problem;
use std::cell::RefCell;
use std::ffi::{CStr, CString};

/// How a call ended. The numbers are part of the interface.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(i32)]
pub enum Code {
    /// It was done.
    Ok = 0,
    /// An argument is wrong. Nothing was done.
    Invalid = 1,
    /// The context was destroyed, or never was one.
    Closed = 2,
    /// Not all n processes were added.
    Incomplete = 3,
    /// Communication has begun: it is too late for this.
    Begun = 4,
    /// The system refuses a port, a thread, or randomness.
    System = 5,
    /// Not in time. What was sent counts, and the same call may be made again to wait longer.
    TimedOut = 6,
    /// The value is longer than RITAS_MESSAGE_MAX. Nothing was sent.
    TooLong = 7,
    /// The result does not fit into the buffer. It is kept: ritas_needed says how many bytes the next call must have.
    TooShort = 8,
    /// The identifier was used before: each is good for one broadcast, one receipt or one consensus.
    Used = 9,
    /// The group has no such process.
    NoMember = 10,
    /// The others have gone on, and nobody keeps what this process misses. It can do no more in this epoch.
    LeftBehind = 11,
    /// A mistake in this library.
    Internal = 12,
}

/// Why a call has no result.
#[derive(Debug)]
pub(crate) struct Failure {
    code: Code,
    message: String,
    needed: usize,
}

impl Failure {
    pub(crate) fn new(code: Code, message: impl Into<String>) -> Self {
        Self { code, message: message.into(), needed: 0 }
    }

    pub(crate) fn invalid(message: &str) -> Self {
        Self::new(Code::Invalid, message)
    }

    pub(crate) fn closed() -> Self {
        Self::new(Code::Closed, "the context was destroyed, or never was one")
    }

    pub(crate) fn internal() -> Self {
        Self::new(Code::Internal, "a mistake in the library: its outcome is unknown")
    }

    pub(crate) fn message(&self) -> &str {
        &self.message
    }
}

impl From<Problem> for Failure {
    fn from(problem: Problem) -> Self {
        let code = match problem {
            Problem::TimedOut(_) => Code::TimedOut,
            Problem::Closed => Code::Closed,
            Problem::TooLong => Code::TooLong,
            Problem::TooShort(_) => Code::TooShort,
            Problem::Used => Code::Used,
            Problem::NoNumber => Code::Invalid,
            Problem::NoMember => Code::NoMember,
            Problem::LeftBehind => Code::LeftBehind,
            Problem::Failed(_) => Code::System,
        };
        let needed = if let Problem::TooShort(needed) = problem { needed } else { 0 };
        Self { needed, ..Self::new(code, problem.to_string()) }
    }
}

/// How the last call of a thread ended.
#[derive(Debug)]
struct Last {
    code: Code,
    message: CString,
    needed: usize,
}

thread_local! {
    static LAST: RefCell<Last> =
        RefCell::new(Last { code: Code::Ok, message: CString::default(), needed: 0 });
}

/// Remembers it for the thread.
pub(crate) fn remember(failure: Option<&Failure>) {
    let last = failure.map_or_else(
        || Last { code: Code::Ok, message: CString::default(), needed: 0 },
        |failure| Last { code: failure.code, message: c_text(&failure.message), needed: failure.needed },
    );
    // A thread that ends has nobody who asks.
    let _ = LAST.try_with(|kept| kept.replace(last));
}

fn c_text(text: &str) -> CString {
    CString::new(text.replace('\0', "?")).unwrap_or_default()
}

pub(crate) fn code() -> Code {
    LAST.try_with(|last| last.borrow().code).unwrap_or(Code::Internal)
}

pub(crate) fn needed() -> usize {
    LAST.try_with(|last| last.borrow().needed).unwrap_or(0)
}

/// Hands the message to someone who uses it before the thread's next call.
pub(crate) fn with_message<T>(give: impl FnOnce(&CStr) -> T) -> Option<T> {
    LAST.try_with(|last| give(&last.borrow().message)).ok()
}
