//! A machine that panics has broken an assertion of its own: that is a violation like any other, with a seed.

use crate::checks::Violation;
use crate::world::Verdict;
use std::backtrace::{Backtrace, BacktraceStatus};
use std::cell::RefCell;
use std::panic::{AssertUnwindSafe, catch_unwind, set_hook, take_hook};
use std::sync::Once;

thread_local! {
    /// What the last panic on this thread said, while it is being caught here.
    static CAUGHT: RefCell<Option<String>> = const { RefCell::new(None) };
}

static HOOK: Once = Once::new();

/// The functions of the core that led to a panic, if `RUST_BACKTRACE` asks for them.
fn way_here() -> String {
    let backtrace = Backtrace::capture();
    if backtrace.status() != BacktraceStatus::Captured {
        return String::new();
    }
    let text = backtrace.to_string();
    let of_core = text.lines().filter(|line| line.contains(": ") && line.contains("bezant_core::"));
    let names: Vec<&str> = of_core.map(|line| line.trim().split_once(": ").map_or(line, |(_, name)| name)).collect();
    format!("; called by {}", names.join(", "))
}

/// Runs, and turns a panic into a verdict. Whatever was half done is dropped with the world it was done in.
pub fn judge<T>(run: impl FnOnce() -> T, otherwise: impl FnOnce(Verdict) -> T) -> T {
    HOOK.call_once(|| {
        let before = take_hook();
        set_hook(Box::new(move |info| {
            let quiet = CAUGHT.with_borrow_mut(|caught| {
                let expected = caught.is_some();
                *caught = expected.then(|| format!("{info}{}", way_here()));
                expected
            });
            if !quiet {
                before(info);
            }
        }));
    });
    CAUGHT.set(Some(String::new()));
    let result = catch_unwind(AssertUnwindSafe(run));
    let said = CAUGHT.take().unwrap_or_default();
    result.unwrap_or_else(|_| {
        let what = said.replace('\n', " ");
        let violation = Violation { check: "panic", at: 0, what };
        otherwise(Verdict { violations: vec![violation], ..Verdict::default() })
    })
}
