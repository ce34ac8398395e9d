//! Dates and times: SQLite keeps them as text, PostgreSQL's binary format counts from the year 2000 on.

use bezant_sql::{civil, days_of};

/// Days from 1970-01-01 to 2000-01-01.
const DAYS_TO_2000: i64 = 10_957;
const MICROS_PER_DAY: i64 = 86_400_000_000;
/// Years that are understood.
const YEARS: std::ops::RangeInclusive<i64> = 1..=9_999;

/// Days since 2000-01-01 of `YYYY-MM-DD`.
pub(crate) fn date(text: &str) -> Option<i32> {
    let parts: Vec<&str> = text.trim().split('-').collect();
    let [year, month, day] = parts[..] else { return None };
    if (year.len(), month.len(), day.len()) != (4, 2, 2) {
        return None;
    }
    let (year, month, day) = (digits(year)?, digits(month)?, digits(day)?);
    let days = days_of(year, month, day);
    // A day that does not exist would come back as another.
    let exists = YEARS.contains(&year) && civil(days) == (year, month, day);
    exists.then(|| i32::try_from(days - DAYS_TO_2000).ok())?
}

/// Microseconds since midnight of `HH:MM`, `HH:MM:SS` or `HH:MM:SS.fraction`.
pub(crate) fn time(text: &str) -> Option<i64> {
    let mut parts = text.trim().split(':');
    let (hours, minutes, seconds) = (parts.next()?, parts.next()?, parts.next().unwrap_or("0"));
    let (seconds, fraction) = seconds.split_once('.').unwrap_or((seconds, "0"));
    let (hours, minutes, seconds) = (digits(hours)?, digits(minutes)?, digits(seconds)?);
    if (hours, minutes, seconds, digits(fraction)) == (24, 0, 0, Some(0)) && parts.next().is_none() {
        return Some(MICROS_PER_DAY);
    }
    if parts.next().is_some() || hours > 23 || minutes > 59 || seconds > 59 || fraction.len() > 9 {
        return None;
    }
    let micros = digits(&format!("{fraction:0<6}")[..6])?;
    Some(((hours * 60 + minutes) * 60 + seconds) * 1_000_000 + micros)
}

/// Microseconds since 2000-01-01 of a date, a time and, if there is one, a zone.
pub(crate) fn timestamp(text: &str) -> Option<i64> {
    let text = text.trim();
    let Some((day, rest)) = text.split_once([' ', 'T']) else { return Some(i64::from(date(text)?) * MICROS_PER_DAY) };
    let zone_at = rest.find(['Z', '+', '-']).unwrap_or(rest.len());
    let (clock, zone) = rest.split_at(zone_at);
    let offset = match zone {
        "" | "Z" => 0,
        zone => {
            let sign = if zone.starts_with('-') { -1 } else { 1 };
            let (hours, minutes) = zone[1..].split_once(':').unwrap_or((&zone[1..], "0"));
            sign * (digits(hours)? * 60 + digits(minutes)?) * 60_000_000
        }
    };
    Some(i64::from(date(day)?) * MICROS_PER_DAY + time(clock)? - offset)
}

/// The other way round; `None`: out of the years that are understood.
pub(crate) fn date_text(days: i32) -> Option<String> {
    let (year, month, day) = civil(i64::from(days) + DAYS_TO_2000);
    YEARS.contains(&year).then(|| format!("{year:04}-{month:02}-{day:02}"))
}

/// The other way round.
pub(crate) fn time_text(micros: i64) -> Option<String> {
    if !(0..=MICROS_PER_DAY).contains(&micros) {
        return None;
    }
    let (seconds, fraction) = (micros / 1_000_000, micros % 1_000_000);
    let text = format!("{:02}:{:02}:{:02}", seconds / 3_600, seconds / 60 % 60, seconds % 60);
    Some(match fraction {
        0 => text,
        _ => format!("{text}.{fraction:06}").trim_end_matches('0').into(),
    })
}

/// The other way round.
pub(crate) fn timestamp_text(micros: i64) -> Option<String> {
    let days = i32::try_from(micros.div_euclid(MICROS_PER_DAY)).ok()?;
    Some(format!("{} {}", date_text(days)?, time_text(micros.rem_euclid(MICROS_PER_DAY))?))
}

/// A moment as clocks show it that are so many seconds before those of UTC.
pub(crate) fn zoned_text(micros: i64, zone: i32) -> Option<String> {
    let local = timestamp_text(micros.checked_add(i64::from(zone) * 1_000_000)?)?;
    let sign = if zone < 0 { '-' } else { '+' };
    let (hours, minutes) = (zone.abs() / 3_600, zone.abs() / 60 % 60);
    Some(if minutes == 0 {
        format!("{local}{sign}{hours:02}")
    } else {
        format!("{local}{sign}{hours:02}:{minutes:02}")
    })
}

/// An interval as PostgreSQL writes it: what is not zero, the signs as they are.
pub(crate) fn interval_text(months: i32, days: i32, micros: i64) -> String {
    let mut parts: Vec<String> = Vec::new();
    let mut is_negative = false;
    for (count, unit) in [(months / 12, "year"), (months % 12, "mon"), (days, "day")] {
        if count != 0 {
            let sign = if is_negative && count > 0 { "+" } else { "" };
            let plural = if count == 1 { "" } else { "s" };
            parts.push(format!("{sign}{count} {unit}{plural}"));
            is_negative = count < 0;
        }
    }
    if micros != 0 || parts.is_empty() {
        let sign = match micros {
            ..0 => "-",
            _ if is_negative => "+",
            _ => "",
        };
        let magnitude = micros.unsigned_abs();
        let (seconds, fraction) = (magnitude / 1_000_000, magnitude % 1_000_000);
        let clock = format!("{sign}{:02}:{:02}:{:02}", seconds / 3_600, seconds / 60 % 60, seconds % 60);
        parts.push(match fraction {
            0 => clock,
            _ => format!("{clock}.{fraction:06}").trim_end_matches('0').into(),
        });
    }
    parts.join(" ")
}

/// A short number without a sign.
fn digits(text: &str) -> Option<i64> {
    let is_number = !text.is_empty() && text.len() <= 6 && text.bytes().all(|byte| byte.is_ascii_digit());
    is_number.then(|| text.parse().ok())?
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn intervals_are_written_as_postgresql_does() {
        for (interval, wanted) in [
            ((0, 0, 0), "00:00:00"),
            ((14, 3, 4_005_000_000), "1 year 2 mons 3 days 01:06:45"),
            ((-1, 2, 0), "-1 mons +2 days"),
            ((0, -1, 1_500_000), "-1 days +00:00:01.5"),
            ((0, 1, -1), "1 day -00:00:00.000001"),
        ] {
            let (months, days, micros) = interval;
            assert_eq!(interval_text(months, days, micros), wanted);
        }
    }

    #[test]
    fn moments_are_those_of_the_zone() {
        assert_eq!(zoned_text(0, 0).as_deref(), Some("2000-01-01 00:00:00+00"));
        assert_eq!(zoned_text(1, -19_800).as_deref(), Some("1999-12-31 18:30:00.000001-05:30"));
    }

    #[test]
    fn known_days() {
        assert_eq!(date("2000-01-01"), Some(0));
        assert_eq!(date("1999-12-31"), Some(-1));
        assert_eq!(date("2000-03-01"), Some(60));
        assert_eq!(timestamp("2000-01-02T00:00:01Z"), Some(MICROS_PER_DAY + 1_000_000));
        assert_eq!(timestamp("2000-01-01 02:00:00+02:00"), Some(0));
        assert_eq!(timestamp("2000-01-01 02:00:00-0"), Some(7_200_000_000));
        for wrong in ["2023-02-29", "2024-13-01", "24-01-01", "2024-1-1", "", "x", "2024-01-01-01"] {
            assert_eq!(date(wrong), None, "{wrong}");
        }
        for wrong in ["24:01", "1", "1:60", "1:1:1:1", "1:1:1.-5"] {
            assert_eq!(time(wrong), None, "{wrong}");
        }
    }

    proptest! {
        #[test]
        fn days_and_times_come_back(days in -700_000_i32..2_900_000, micros in 0..MICROS_PER_DAY) {
            prop_assert_eq!(date_text(days).and_then(|text| date(&text)), Some(days));
            prop_assert_eq!(time_text(micros).and_then(|text| time(&text)), Some(micros));
            let both = i64::from(days) * MICROS_PER_DAY + micros;
            prop_assert_eq!(timestamp_text(both).and_then(|text| timestamp(&text)), Some(both));
        }

        #[test]
        fn any_text_is_a_day_or_not(text in r"([0-9]{1,4}|[-: .+ZT]|\PC){0,12}", days: i32, micros: i64) {
            let _ = (date(&text), time(&text), timestamp(&text));
            let _ = (date_text(days), time_text(micros), timestamp_text(micros));
        }
    }
}
