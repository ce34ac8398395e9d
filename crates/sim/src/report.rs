//! What a hunt tells whoever started it.

use crate::byzantine::Adversary;
use crate::checks::Violation;

/// The exit code of a hunt that was interrupted and had found nothing.
pub(crate) const INTERRUPTED: u8 = 130;

/// What was wrong, line by line.
pub(crate) fn print_each(violations: &[Violation]) {
    for violation in violations {
        eprintln!("  {} at {:.3} ms: {}", violation.check, violation.at as f64 / 1000.0, violation.what);
    }
}

/// The adversary that was named did nothing, so that nothing was tried.
pub(crate) fn print_idle(adversary: Adversary, scenarios: u64) {
    eprintln!(
        "error: {adversary} never came into play in {scenarios} scenarios. Run more seeds, or a protocol in which \
         there is something for it to lie about."
    );
}
