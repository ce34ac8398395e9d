//! What a hunt tells whoever started it.

use crate::arguments::Arguments;
use crate::byzantine::{Acts, Choice};
use crate::checks::Violation;

/// The exit code of a hunt that was interrupted and had found nothing.
pub(crate) const INTERRUPTED: u8 = 130;

/// What was wrong, line by line.
pub(crate) fn print_each(violations: &[Violation]) {
    for violation in violations {
        eprintln!("  {} at {:.3} ms: {}", violation.check, violation.at as f64 / 1000.0, violation.what);
    }
}

/// Whether something was tried: an adversary that was named came into play. If not, says so.
pub(crate) fn was_tried(arguments: &Arguments, choice: Choice, acts: &Acts, scenarios: u64) -> bool {
    let is_named = arguments.adversary != "each" && arguments.seed.is_none();
    let Some(adversary) = choice.idle(acts).filter(|_| is_named) else { return true };
    eprintln!(
        "error: {adversary} never came into play in {scenarios} scenarios. Run more seeds, or a protocol in which \
         there is something for it to lie about."
    );
    false
}
