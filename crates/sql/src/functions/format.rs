//! `to_char` of dates and timestamps: a pattern with names of parts, which become their values.

use super::calendar::{DATES, Moment, zone};
use super::call::{Arguments, Outcome, refuse, room};
use super::gregorian::{HOUR, MINUTE, SECOND, civil, days_of, iso_week, weekday};
use crate::error::ErrorKind;
use rusqlite::types::Value;

/// Parts by their names in upper case. Of names that begin alike the longer stands first.
const NAMES: &[&str] = &[
    "A.D.", "A.M.", "AD", "AM", "B.C.", "BC", "CC", "DAY", "DDD", "DD", "DY", "D", "FF1", "FF2", "FF3", "FF4", "FF5",
    "FF6", "FX", "HH24", "HH12", "HH", "IDDD", "ID", "IW", "IYYY", "IYY", "IY", "I", "J", "MI", "MM", "MONTH", "MON",
    "MS", "OF", "P.M.", "PM", "Q", "RM", "SSSSS", "SSSS", "SS", "TZH", "TZM", "TZ", "US", "WW", "W", "Y,YYY", "YYYY",
    "YYY", "YY", "Y",
];

/// Names that may be written with a capital letter alone.
const CAPITALS: [(&str, &str); 4] = [("Day", "DAY"), ("Dy", "DY"), ("Month", "MONTH"), ("Mon", "MON")];

const MONTHS: [&str; 12] = [
    "January",
    "February",
    "March",
    "April",
    "May",
    "June",
    "July",
    "August",
    "September",
    "October",
    "November",
    "December",
];
const DAYS: [&str; 7] = ["Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday", "Sunday"];
const ROMAN: [&str; 12] = ["I", "II", "III", "IV", "V", "VI", "VII", "VIII", "IX", "X", "XI", "XII"];

/// How a name's letters were written, and its value's are to be.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Case {
    Upper,
    Lower,
    Capital,
}

impl Case {
    fn of(self, text: &str) -> String {
        match self {
            Self::Upper => text.to_ascii_uppercase(),
            Self::Lower => text.to_ascii_lowercase(),
            Self::Capital => text.into(),
        }
    }
}

/// The part whose name a text begins with, how it is written, and what stands behind it.
fn part(text: &str) -> Option<(&'static str, Case, &str)> {
    if !text.starts_with(|character: char| character.is_ascii_alphabetic()) {
        return None;
    }
    let capital = CAPITALS.iter().find_map(|(spelled, name)| Some((*name, Case::Capital, text.strip_prefix(spelled)?)));
    capital.or_else(|| {
        NAMES.iter().copied().find_map(|name| {
            let (start, rest) = text.split_at_checked(name.len())?;
            let is_lower = start.bytes().zip(name.bytes()).all(|(byte, of)| byte == of.to_ascii_lowercase());
            match (start == name, is_lower) {
                (true, _) => Some((name, Case::Upper, rest)),
                (_, true) => Some((name, Case::Lower, rest)),
                _ => None,
            }
        })
    })
}

/// What a name becomes.
enum Shown {
    Text(String),
    /// Digits that may become an ordinal number.
    Digits(String),
    /// A number with so many digits at least, and whether `FM` takes the zeros away.
    Number(i64, usize, bool),
}

/// What is to be shown.
struct Source {
    moment: Moment,
    /// Microseconds east of UTC, if it is of a zone.
    zone: Option<i64>,
}

impl Source {
    /// The value of a part, `is_filled` with blanks or not.
    fn shown(&self, name: &str, case: Case, is_filled: bool) -> Outcome<Shown> {
        let (days, micros) = (self.moment.days, self.moment.micros);
        let (year, month, day) = civil(days);
        let of_day = weekday(days) as usize;
        let of_year = days - days_of(year, 1, 1) + 1;
        let (week_year, week) = iso_week(days);
        let name_of = |text: &str, width: usize| {
            let width = if is_filled { width } else { 0 };
            Shown::Text(format!("{:<width$}", case.of(text)))
        };
        Ok(match name {
            "AM" | "PM" => name_of(if micros / HOUR % 24 >= 12 { "PM" } else { "AM" }, 0),
            "A.M." | "P.M." => name_of(if micros / HOUR % 24 >= 12 { "P.M." } else { "A.M." }, 0),
            "AD" | "BC" => name_of("AD", 0),
            "A.D." | "B.C." => name_of("A.D.", 0),
            "MONTH" => name_of(MONTHS[month as usize - 1], 9),
            "MON" => name_of(&MONTHS[month as usize - 1][..3], 0),
            "RM" => name_of(ROMAN[month as usize - 1], 4),
            "DAY" => name_of(DAYS[of_day], 9),
            "DY" => name_of(&DAYS[of_day][..3], 0),
            "CC" => Shown::Number((year - 1) / 100 + 1, 2, true),
            "Y,YYY" => Shown::Digits(format!("{},{:03}", year / 1_000, year % 1_000)),
            "YYYY" => Shown::Number(year, 4, true),
            "YYY" => Shown::Number(year % 1_000, 3, true),
            "YY" => Shown::Number(year % 100, 2, true),
            "Y" => Shown::Number(year % 10, 1, true),
            "IYYY" => Shown::Number(week_year, 4, true),
            "IYY" => Shown::Number(week_year % 1_000, 3, true),
            "IY" => Shown::Number(week_year % 100, 2, true),
            "I" => Shown::Number(week_year % 10, 1, true),
            "Q" => Shown::Number((month - 1) / 3 + 1, 1, true),
            "MM" => Shown::Number(month, 2, true),
            "WW" => Shown::Number((of_year - 1) / 7 + 1, 2, true),
            "IW" => Shown::Number(week, 2, true),
            "W" => Shown::Number((day - 1) / 7 + 1, 1, true),
            "DDD" => Shown::Number(of_year, 3, true),
            "IDDD" => Shown::Number((week - 1) * 7 + weekday(days) + 1, 3, true),
            "DD" => Shown::Number(day, 2, true),
            "D" => Shown::Number((weekday(days) + 1) % 7 + 1, 1, true),
            "ID" => Shown::Number(weekday(days) + 1, 1, true),
            "J" => Shown::Number(days - DATES.start, 1, true),
            "FX" => Shown::Text(String::new()),
            _ => return self.clock(name, micros),
        })
    }

    /// The value of a part of the time of day, or of the zone.
    fn clock(&self, name: &str, micros: i64) -> Outcome<Shown> {
        let fraction = micros % SECOND;
        let (east, hours) = (self.zone.unwrap_or(0), micros / HOUR);
        let (sign, east) = (if east < 0 { '-' } else { '+' }, east.abs());
        Ok(match name {
            "HH24" => Shown::Number(hours, 2, true),
            "HH12" | "HH" => Shown::Number(if hours % 12 == 0 { 12 } else { hours % 12 }, 2, true),
            "MI" => Shown::Number(micros / MINUTE % 60, 2, true),
            "SS" => Shown::Number(micros / SECOND % 60, 2, true),
            "SSSS" | "SSSSS" => Shown::Number(micros / SECOND, 1, true),
            "FF1" => Shown::Number(fraction / 100_000, 1, false),
            "FF2" => Shown::Number(fraction / 10_000, 2, false),
            "FF3" | "MS" => Shown::Number(fraction / 1_000, 3, false),
            "FF4" => Shown::Number(fraction / 100, 4, false),
            "FF5" => Shown::Number(fraction / 10, 5, false),
            "FF6" | "US" => Shown::Number(fraction, 6, false),
            "TZH" => Shown::Text(format!("{sign}{:02}", east / HOUR)),
            "TZM" => Shown::Text(format!("{:02}", east / MINUTE % 60)),
            "TZ" if self.zone.is_none() => Shown::Text(String::new()),
            name => return refuse(ErrorKind::NotAllowed, format!("to_char with {name} is not supported")),
        })
    }
}

/// What makes a number an ordinal one, by its last digits.
fn ordinal(number: &str) -> &'static str {
    match (number.as_bytes().iter().rev().nth(1), number.as_bytes().last()) {
        (Some(b'1'), _) => "th",
        (_, Some(b'1')) => "st",
        (_, Some(b'2')) => "nd",
        (_, Some(b'3')) => "rd",
        _ => "th",
    }
}

/// The word of these with which a text begins.
fn begins(text: &str, words: &[&'static str]) -> Option<&'static str> {
    words.iter().find(|word| text.starts_with(**word)).copied()
}

/// A literal in quotes, from behind the first of them; what stands behind it.
fn quoted<'a>(text: &'a str, out: &mut String) -> &'a str {
    let mut characters = text.chars();
    while let Some(character) = characters.next() {
        match character {
            '"' => break,
            '\\' => out.push(characters.next().unwrap_or('\\')),
            other => out.push(other),
        }
    }
    characters.as_str()
}

/// A moment by a pattern; a third argument is the zone whose clock the moment shows.
pub(super) fn to_char(arguments: &Arguments<'_>) -> Outcome {
    let (moment, pattern) = (Moment::of(arguments, 0)?, arguments.text(1)?);
    let zone = if arguments.len() > 2 { Some(zone(arguments, 2)?) } else { None };
    let source = Source { moment, zone };
    if pattern.is_empty() {
        return Ok(Value::Null);
    }
    let (mut out, mut rest) = (String::new(), &*pattern);
    while !rest.is_empty() {
        let before = begins(rest, &["FM", "fm", "TM", "tm"]);
        rest = &rest[before.map_or(0, str::len)..];
        if let Some((name, case, behind)) = part(rest) {
            let is_short = matches!(before, Some("FM" | "fm"));
            let after = begins(behind, &["TH", "th", "SP", "sp"]);
            rest = &behind[after.map_or(0, str::len)..];
            let shown = match source.shown(name, case, before.is_none())? {
                Shown::Number(number, _, true) if is_short => number.to_string(),
                Shown::Number(number, digits, _) => format!("{number:0digits$}"),
                Shown::Digits(digits) => digits,
                Shown::Text(text) => {
                    out.push_str(&text);
                    room(out.len())?;
                    continue;
                }
            };
            let tail = ordinal(&shown);
            out.push_str(&shown);
            match after {
                Some("TH") => out.push_str(&tail.to_ascii_uppercase()),
                Some("th") => out.push_str(tail),
                _ => {}
            }
        } else if let Some(behind) = rest.strip_prefix('"') {
            rest = quoted(behind, &mut out);
        } else {
            rest = if rest.starts_with("\\\"") { &rest[1..] } else { rest };
            let mut characters = rest.chars();
            out.extend(characters.next());
            rest = characters.as_str();
        }
        room(out.len())?;
    }
    Ok(Value::Text(out))
}
