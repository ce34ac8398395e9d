//! The names of units of time.

use super::call::{Outcome, refuse};
use crate::error::ErrorKind;

/// A unit of time, or a part of a moment.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Unit {
    Microsecond,
    Millisecond,
    Second,
    Minute,
    Hour,
    Day,
    Week,
    Month,
    Quarter,
    Year,
    Decade,
    Century,
    Millennium,
    Epoch,
    Julian,
    IsoYear,
    DayOfWeek,
    IsoDayOfWeek,
    DayOfYear,
    Timezone,
    TimezoneHour,
    TimezoneMinute,
}

/// Characters of a name that count.
const NAME_MAX: usize = 10;

/// The unit that a name in lower case means.
pub(super) fn unit(name: &str) -> Option<Unit> {
    let name = name.get(..NAME_MAX).unwrap_or(name);
    Some(match name {
        "microsecon" | "us" | "usec" | "usecond" | "useconds" | "usecs" => Unit::Microsecond,
        "millisecon" | "ms" | "msec" | "msecond" | "mseconds" | "msecs" => Unit::Millisecond,
        "s" | "sec" | "second" | "seconds" | "secs" => Unit::Second,
        "m" | "min" | "mins" | "minute" | "minutes" => Unit::Minute,
        "h" | "hour" | "hours" | "hr" | "hrs" => Unit::Hour,
        "d" | "day" | "days" => Unit::Day,
        "w" | "week" | "weeks" => Unit::Week,
        "mon" | "mons" | "month" | "months" => Unit::Month,
        "qtr" | "quarter" => Unit::Quarter,
        "y" | "year" | "years" | "yr" | "yrs" => Unit::Year,
        "dec" | "decade" | "decades" | "decs" => Unit::Decade,
        "c" | "cent" | "centuries" | "century" => Unit::Century,
        "mil" | "millennia" | "millennium" | "mils" => Unit::Millennium,
        "epoch" => Unit::Epoch,
        "julian" | "jd" | "j" => Unit::Julian,
        "isoyear" => Unit::IsoYear,
        "dow" => Unit::DayOfWeek,
        "isodow" => Unit::IsoDayOfWeek,
        "doy" => Unit::DayOfYear,
        "timezone" => Unit::Timezone,
        "timezone_h" => Unit::TimezoneHour,
        "timezone_m" => Unit::TimezoneMinute,
        _ => return None,
    })
}

/// A unit's name, or an error about it.
pub(super) fn named_unit(name: &str, kind: &str) -> Outcome<Unit> {
    match unit(&name.to_ascii_lowercase()) {
        Some(unit) => Ok(unit),
        None => refuse(ErrorKind::BadParameter, format!("unit \"{name}\" not recognized for type {kind}")),
    }
}

/// A unit that there is, and that this type does not have.
pub(super) fn no_unit<T>(name: &str, kind: &str) -> Outcome<T> {
    refuse(ErrorKind::NotAllowed, format!("unit \"{name}\" not supported for type {kind}"))
}
