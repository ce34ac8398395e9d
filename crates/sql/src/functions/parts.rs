//! Parts of a time of day, and fractions of a second, as texts.

use super::gregorian::{HOUR, MINUTE};
use super::units::Unit;
use std::borrow::Cow;

/// The digits of a fraction with their point, up to the last that is not zero.
pub(super) fn fraction_text(micros: i64) -> String {
    match micros {
        0 => String::new(),
        _ => format!(".{micros:06}").trim_end_matches('0').into(),
    }
}

/// A number with so many digits behind the point, of a count of millionths.
pub(super) fn millionths(micros: i128, digits: usize) -> Cow<'static, str> {
    let sign = if micros < 0 { "-" } else { "" };
    let (whole, rest) = (micros.unsigned_abs() / 1_000_000, micros.unsigned_abs() % 1_000_000);
    let fraction = format!("{rest:06}");
    format!("{sign}{whole}.{}", &fraction[..digits]).into()
}

/// A part of a time of day.
pub(super) fn extract_time(unit: Unit, micros: i64) -> Option<Cow<'static, str>> {
    let of_minute = i128::from(micros % MINUTE);
    Some(match unit {
        Unit::Microsecond => of_minute.to_string().into(),
        Unit::Millisecond => millionths(of_minute * 1_000, 3),
        Unit::Second => millionths(of_minute, 6),
        Unit::Minute => (micros / MINUTE % 60).to_string().into(),
        Unit::Hour => (micros / HOUR).to_string().into(),
        _ => return None,
    })
}
