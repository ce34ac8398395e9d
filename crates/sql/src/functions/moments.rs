//! Dates and timestamps made of numbers, and the age that lies between two.

use super::calendar::{Kind, Moment, YEARS};
use super::call::{Arguments, Outcome, refuse};
use super::gregorian::{DAY, HOUR, MINUTE, SECOND, civil, days_in, days_of};
use super::interval::Interval;
use super::shortest;
use crate::error::ErrorKind;

/// Seconds from 1970 to 2000, from which PostgreSQL counts: its sums are rounded there.
const YEAR_2000: f64 = 946_684_800.0;

/// A day that there is, in days since 1970-01-01, of the first three arguments. `counts`: what is said of a wrong year
/// before the first counts as if there were a year 0, as PostgreSQL has it for dates.
fn day_of(arguments: &Arguments<'_>, counts: bool) -> Outcome<i64> {
    let (year, month, day) = (arguments.integer(0)?, arguments.integer(1)?, arguments.integer(2)?);
    let months_days = if (1..=12).contains(&month) { days_in(year, month) } else { 0 };
    if year == 0 || !(1..=months_days).contains(&day) {
        let year = if counts && year < 0 { year + 1 } else { year };
        let message = format!("date field value out of range: {year}-{month:02}-{day:02}");
        return refuse(ErrorKind::TimeOutOfRange, message);
    }
    if !YEARS.contains(&year) {
        return refuse(ErrorKind::NotAllowed, "a date outside of the years 1 to 9999 is not supported");
    }
    Ok(days_of(year, month, day))
}

pub(super) fn make_date(arguments: &Arguments<'_>) -> Outcome {
    Moment { kind: Kind::Date, days: day_of(arguments, true)?, micros: 0 }.value()
}

/// Seconds are rounded to microseconds, to even ones where two are as near.
pub(super) fn make_timestamp(arguments: &Arguments<'_>) -> Outcome {
    let days = day_of(arguments, false)?;
    let (hour, minute, second) = (arguments.integer(3)?, arguments.integer(4)?, arguments.real(5)?);
    let micros = (second * SECOND as f64).round_ties_even();
    let is_time = (0..=24).contains(&hour) && (0..60).contains(&minute) && (0.0..=MINUTE as f64).contains(&micros);
    let whole = if is_time { hour * HOUR + minute * MINUTE + micros as i64 } else { DAY + 1 };
    if whole > DAY {
        let second = shortest::spell(second);
        let message = format!("time field value out of range: {hour}:{minute:02}:{second:0>2}");
        return refuse(ErrorKind::TimeOutOfRange, message);
    }
    Moment::at(Kind::Timestamp, days * DAY + whole).value()
}

/// So many seconds after 1970-01-01.
pub(super) fn to_timestamp(arguments: &Arguments<'_>) -> Outcome {
    let seconds = arguments.real(0)?;
    if !seconds.is_finite() {
        return refuse(ErrorKind::NotAllowed, "an infinite timestamp is not supported");
    }
    // A cast of what is too large gives the largest, of which the sum is checked.
    let micros = ((seconds - YEAR_2000) * SECOND as f64).round_ties_even() as i64;
    match micros.checked_add(YEAR_2000 as i64 * SECOND) {
        Some(micros) => Moment::at(Kind::Timestamptz, micros).value(),
        None => refuse(ErrorKind::TimeOutOfRange, format!("timestamp out of range: \"{}\"", shortest::spell(seconds))),
    }
}

/// Years, months and days by the calendar, counted from the earlier one, and the rest.
pub(super) fn age(arguments: &Arguments<'_>) -> Outcome {
    let (first, second) = (Moment::of(arguments, 0)?, Moment::of(arguments, 1)?);
    let is_negative = first.all() < second.all();
    let (late, early) = if is_negative { (second, first) } else { (first, second) };
    let ((year, month, day), (from_year, from_month, from_day)) = (civil(late.days), civil(early.days));
    let (mut months, mut days) = ((year - from_year) * 12 + month - from_month, day - from_day);
    let mut micros = late.micros - early.micros;
    if micros < 0 {
        (micros, days) = (micros + DAY, days - 1);
    }
    // A month that is not whole has the days of the earlier one's month.
    while days < 0 {
        (days, months) = (days + days_in(from_year, from_month), months - 1);
    }
    let sign = if is_negative { -1 } else { 1 };
    Interval { months: sign * months, days: sign * days, micros: sign * micros }.value()
}
