//! Decimal digits: how many there may be, and what it costs to compute with them.

use num_bigint::BigInt;

/// Digits of a number, before and behind the point together.
pub(super) const DIGITS_MAX: usize = 2_000;

/// The longest canonical text, in bytes.
pub(super) const TEXT_MAX: usize = DIGITS_MAX + 2;

/// Ten to a power.
pub(super) fn power(exponent: u32) -> BigInt {
    BigInt::from(10).pow(exponent)
}

/// What it costs to compute with so many digits.
pub(super) const fn work(count: usize) -> usize {
    count.saturating_mul(count) / 32
}
