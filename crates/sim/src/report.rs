//! What a hunt tells whoever started it.

use crate::checks::Violation;

/// The exit code of a hunt that was interrupted and had found nothing.
pub(crate) const INTERRUPTED: u8 = 130;

/// What was wrong, line by line.
pub(crate) fn print_each(violations: &[Violation]) {
    for violation in violations {
        eprintln!("  {} at {:.3} ms: {}", violation.check, violation.at as f64 / 1000.0, violation.what);
    }
}
