//! The Gregorian calendar: days since 1970-01-01, and what years, months and weeks they are of.

/// Microseconds of a second, a minute, an hour, a day.
pub(super) const SECOND: i64 = 1_000_000;
pub(super) const MINUTE: i64 = 60 * SECOND;
pub(super) const HOUR: i64 = 60 * MINUTE;
pub(super) const DAY: i64 = 24 * HOUR;

/// Days since 1970-01-01 of a day of the Gregorian calendar. Years begin in March here, so that the odd day is the last
/// one.
pub const fn days_of(year: i64, month: i64, day: i64) -> i64 {
    let year = if month <= 2 { year - 1 } else { year };
    let era = year.div_euclid(400);
    let of_era = year.rem_euclid(400);
    let of_year = (153 * ((month + 9) % 12) + 2) / 5 + day - 1;
    era * 146_097 + of_era * 365 + of_era / 4 - of_era / 100 + of_year - 719_468
}

/// Year, month and day, so many days since 1970-01-01.
pub const fn civil(days: i64) -> (i64, i64, i64) {
    let days = days + 719_468;
    let era = days.div_euclid(146_097);
    let of_era = days.rem_euclid(146_097);
    let year = (of_era - of_era / 1_460 + of_era / 36_524 - of_era / 146_096) / 365;
    let of_year = of_era - (365 * year + year / 4 - year / 100);
    let shifted = (5 * of_year + 2) / 153;
    let day = of_year - (153 * shifted + 2) / 5 + 1;
    let month = if shifted < 10 { shifted + 3 } else { shifted - 9 };
    (era * 400 + year + (month <= 2) as i64, month, day)
}

/// How many days a month has.
pub(super) const fn days_in(year: i64, month: i64) -> i64 {
    let (next_year, next) = if month == 12 { (year + 1, 1) } else { (year, month + 1) };
    days_of(next_year, next, 1) - days_of(year, month, 1)
}

/// Days since Monday.
pub(super) const fn weekday(days: i64) -> i64 {
    (days + 3).rem_euclid(7)
}

/// The year to which a day's week belongs, and the week's number in it.
pub(super) const fn iso_week(days: i64) -> (i64, i64) {
    let (year, _, _) = civil(days - weekday(days) + 3);
    let first = days_of(year, 1, 4);
    (year, (days - weekday(days) - (first - weekday(first))) / 7 + 1)
}
