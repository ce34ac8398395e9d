//! Dates, times and timestamps: days and microseconds since 1970-01-01, and the texts that they are stored as.

use super::call::{Arguments, Outcome, refuse};
use super::datetime::{self, Reading};
use super::fields::Fault;
use super::gregorian::{DAY, HOUR, MINUTE, SECOND, civil, days_in, days_of, iso_week, weekday};
use super::interval::Interval;
use super::parts::{extract_time, fraction_text, millionths};
use super::units::{Unit, named_unit, no_unit};
use crate::error::ErrorKind;
use rusqlite::types::Value;

/// The years that there are.
pub(super) const YEARS: std::ops::RangeInclusive<i64> = 1..=9_999;

/// The days since 1970-01-01 between which PostgreSQL has dates, and timestamps.
pub(super) const DATES: std::ops::Range<i64> = -2_440_588..2_145_042_906;
const TIMESTAMPS: std::ops::Range<i64> = -2_440_588..106_762_940;

/// What a value is, as its text shows.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Kind {
    Date,
    Time,
    Timestamp,
    Timestamptz,
}

impl Kind {
    const fn name(self) -> &'static str {
        match self {
            Self::Date => "date",
            Self::Time => "time without time zone",
            Self::Timestamp => "timestamp without time zone",
            Self::Timestamptz => "timestamp with time zone",
        }
    }
}

/// A stored date, time or timestamp.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Moment {
    pub(super) kind: Kind,
    /// Days since 1970-01-01; 0 for a time.
    pub(super) days: i64,
    /// Microseconds since midnight.
    pub(super) micros: i64,
}

impl Moment {
    /// Reads what is stored.
    fn parse(text: &str) -> Option<Self> {
        let (text, zoned) = match text.strip_suffix("+00") {
            Some(text) => (text, true),
            None => (text, false),
        };
        let (date, time) = match text.split_once(' ') {
            Some((date, time)) => (Some(date), Some(time)),
            None if text.contains(':') => (None, Some(text)),
            None => (Some(text), None),
        };
        let days = date.map_or(Some(0), parse_date)?;
        let micros = time.map_or(Some(0), parse_time)?;
        let kind = match (date, time, zoned) {
            (Some(_), Some(_), true) => Kind::Timestamptz,
            (Some(_), Some(_), false) => Kind::Timestamp,
            (None, Some(_), false) => Kind::Time,
            (Some(_), None, false) => Kind::Date,
            _ => return None,
        };
        Some(Self { kind, days, micros })
    }

    /// The argument of a function.
    pub(super) fn of(arguments: &Arguments<'_>, number: usize) -> Outcome<Self> {
        let text = arguments.text(number)?;
        match Self::parse(&text) {
            Some(moment) => Ok(moment),
            None => Fault::Format.refuse("timestamp", &text),
        }
    }

    /// Microseconds since 1970-01-01.
    pub(super) const fn all(self) -> i64 {
        self.days * DAY + self.micros
    }

    /// That long after 1970-01-01.
    pub(super) const fn at(kind: Kind, micros: i64) -> Self {
        Self { kind, days: micros.div_euclid(DAY), micros: micros.rem_euclid(DAY) }
    }

    /// As it is stored, if it is within the years that there are.
    fn text(self) -> Outcome<String> {
        let (range, name) = match self.kind {
            Kind::Time => return Ok(time_text(self.micros)),
            Kind::Date => (DATES, "date"),
            Kind::Timestamp | Kind::Timestamptz => (TIMESTAMPS, "timestamp"),
        };
        if !range.contains(&self.days) {
            return refuse(ErrorKind::TimeOutOfRange, format!("{name} out of range"));
        }
        let (year, month, day) = civil(self.days);
        if !YEARS.contains(&year) {
            return refuse(ErrorKind::NotAllowed, format!("a {name} outside of the years 1 to 9999 is not supported"));
        }
        let date = format!("{year:04}-{month:02}-{day:02}");
        Ok(match self.kind {
            Kind::Date | Kind::Time => date,
            Kind::Timestamp => format!("{date} {}", time_text(self.micros)),
            Kind::Timestamptz => format!("{date} {}+00", time_text(self.micros)),
        })
    }

    pub(super) fn value(self) -> Outcome {
        self.text().map(Value::Text)
    }
}

/// A number of exactly so many digits.
fn fixed(text: &str, length: usize) -> Option<i64> {
    let is_number = text.len() == length && text.bytes().all(|byte| byte.is_ascii_digit());
    text.parse().ok().filter(|_| is_number)
}

fn parse_date(text: &str) -> Option<i64> {
    let mut parts = text.split('-');
    let (year, month, day) = (fixed(parts.next()?, 4)?, fixed(parts.next()?, 2)?, fixed(parts.next()?, 2)?);
    let days = days_of(year, month, day);
    // A day that does not exist would come back as another.
    (parts.next().is_none() && civil(days) == (year, month, day)).then_some(days)
}

fn parse_time(text: &str) -> Option<i64> {
    let (clock, fraction) = text.split_once('.').unwrap_or((text, "0"));
    let mut parts = clock.split(':');
    let (hour, minute, second) = (fixed(parts.next()?, 2)?, fixed(parts.next()?, 2)?, fixed(parts.next()?, 2)?);
    if parts.next().is_some() || hour > 24 || minute > 59 || second > 59 || fraction.len() > 6 {
        return None;
    }
    let micros = fixed(&format!("{fraction:0<6}"), 6)?;
    Some(hour * HOUR + minute * MINUTE + second * SECOND + micros).filter(|all| *all <= DAY)
}

/// `HH:MM:SS`, and the digits of a fraction up to the last that is not zero.
pub(super) fn time_text(micros: i64) -> String {
    let text = format!("{:02}:{:02}:{:02}", micros / HOUR, micros / MINUTE % 60, micros / SECOND % 60);
    text + &fraction_text(micros % SECOND)
}

/// A text read as a date, time or timestamp, of which a time alone is wanted.
fn read(text: &str, kind: Kind) -> Outcome<Reading> {
    Reading::of(text, kind == Kind::Time).or_else(|fault| {
        let name = if kind == Kind::Time { "time" } else { short_name(kind) };
        fault.refuse(name, text)
    })
}

/// The name by which errors of reading call a type.
const fn short_name(kind: Kind) -> &'static str {
    match kind {
        Kind::Date => "date",
        Kind::Time => "time",
        Kind::Timestamp => "timestamp",
        Kind::Timestamptz => "timestamp with time zone",
    }
}

pub(super) fn in_date(arguments: &Arguments<'_>) -> Outcome {
    let text = arguments.text(0)?;
    let days = read(&text, Kind::Date)?.days();
    if !DATES.contains(&days) {
        return refuse(ErrorKind::TimeOutOfRange, format!("date out of range: \"{text}\""));
    }
    Moment { kind: Kind::Date, days, micros: 0 }.value()
}

pub(super) fn in_time(arguments: &Arguments<'_>) -> Outcome {
    let micros = read(&arguments.text(0)?, Kind::Time)?.micros();
    Moment { kind: Kind::Time, days: 0, micros }.value()
}

/// A text as a timestamp, `west` microseconds later.
fn in_moment(text: &str, kind: Kind, reading: &Reading, west: i64) -> Outcome {
    if !TIMESTAMPS.contains(&reading.days()) {
        return refuse(ErrorKind::TimeOutOfRange, format!("timestamp out of range: \"{text}\""));
    }
    Moment::at(kind, reading.days() * DAY + reading.micros() + west).value()
}

pub(super) fn in_timestamp(arguments: &Arguments<'_>) -> Outcome {
    let text = arguments.text(0)?;
    in_moment(&text, Kind::Timestamp, &read(&text, Kind::Timestamp)?, 0)
}

pub(super) fn in_timestamptz(arguments: &Arguments<'_>) -> Outcome {
    let text = arguments.text(0)?;
    let reading = read(&text, Kind::Timestamptz)?;
    let offset = match reading.zone() {
        Some(seconds) => seconds * SECOND,
        None => zone(arguments, 1)?,
    };
    in_moment(&text, Kind::Timestamptz, &reading, -offset)
}

/// A session's zone: microseconds east of UTC.
pub(super) fn zone(arguments: &Arguments<'_>, number: usize) -> Outcome<i64> {
    let name = arguments.text(number)?;
    match name.to_ascii_uppercase().as_str() {
        "UTC" | "GMT" | "Z" => return Ok(0),
        offset if offset.starts_with(['+', '-']) => {
            if let Ok(seconds) = datetime::zone(offset) {
                return Ok(seconds * SECOND);
            }
        }
        _ => {}
    }
    refuse(ErrorKind::NotAllowed, format!("time zone \"{name}\" is not supported: UTC, or an offset such as +02:00"))
}

/// A timestamp with the clock of a zone, and how far that is from UTC.
pub(super) fn out_timestamptz(arguments: &Arguments<'_>) -> Outcome {
    let (moment, offset) = (Moment::of(arguments, 0)?, zone(arguments, 1)?);
    let local = Moment::at(Kind::Timestamp, moment.all() + offset).text()?;
    let (sign, offset) = (if offset < 0 { '-' } else { '+' }, offset.abs() / SECOND);
    let (hours, minutes, seconds) = (offset / 3_600, offset / 60 % 60, offset % 60);
    let behind = match (minutes, seconds) {
        (0, 0) => String::new(),
        (_, 0) => format!(":{minutes:02}"),
        _ => format!(":{minutes:02}:{seconds:02}"),
    };
    Ok(Value::Text(format!("{local}{sign}{hours:02}{behind}")))
}

pub(super) fn timestamp_to_date(arguments: &Arguments<'_>) -> Outcome {
    Moment { kind: Kind::Date, micros: 0, ..Moment::of(arguments, 0)? }.value()
}

pub(super) fn date_to_timestamp(arguments: &Arguments<'_>) -> Outcome {
    Moment { kind: Kind::Timestamp, ..Moment::of(arguments, 0)? }.value()
}

pub(super) fn timestamp_to_time(arguments: &Arguments<'_>) -> Outcome {
    Moment { kind: Kind::Time, ..Moment::of(arguments, 0)? }.value()
}

pub(super) fn timestamp_to_timestamptz(arguments: &Arguments<'_>) -> Outcome {
    let (moment, offset) = (Moment::of(arguments, 0)?, zone(arguments, 1)?);
    Moment::at(Kind::Timestamptz, moment.all() - offset).value()
}

pub(super) fn timestamptz_to_timestamp(arguments: &Arguments<'_>) -> Outcome {
    let (moment, offset) = (Moment::of(arguments, 0)?, zone(arguments, 1)?);
    Moment::at(Kind::Timestamp, moment.all() + offset).value()
}

pub(super) fn date_add_days(arguments: &Arguments<'_>) -> Outcome {
    let (date, days) = (Moment::of(arguments, 0)?, arguments.integer(1)?);
    let days = date.days.saturating_add(days);
    Moment { kind: Kind::Date, days, micros: 0 }.value()
}

pub(super) fn date_sub(arguments: &Arguments<'_>) -> Outcome {
    Ok(Value::Integer(Moment::of(arguments, 0)?.days - Moment::of(arguments, 1)?.days))
}

/// Months first, and a day that the month has; then days, then the rest. A date becomes a timestamp.
pub(super) fn timestamp_add_interval(arguments: &Arguments<'_>) -> Outcome {
    let (moment, interval) = (Moment::of(arguments, 0)?, Interval::of(arguments, 1)?);
    let kind = if moment.kind == Kind::Date { Kind::Timestamp } else { moment.kind };
    let (year, month, day) = civil(moment.days);
    let months = year * 12 + month - 1 + interval.months;
    let (year, month) = (months.div_euclid(12), months.rem_euclid(12) + 1);
    let days = days_of(year, month, day.min(days_in(year, month)));
    let days = if interval.months == 0 { moment.days } else { days };
    let out_of_range = || refuse(ErrorKind::TimeOutOfRange, "timestamp out of range");
    let days = days + interval.days;
    if !TIMESTAMPS.contains(&days) {
        return out_of_range();
    }
    match (days * DAY + moment.micros).checked_add(interval.micros) {
        Some(micros) => Moment::at(kind, micros).value(),
        None => out_of_range(),
    }
}

pub(super) fn timestamp_sub(arguments: &Arguments<'_>) -> Outcome {
    let micros = Moment::of(arguments, 0)?.all() - Moment::of(arguments, 1)?.all();
    Interval { months: 0, days: micros / DAY, micros: micros % DAY }.value()
}

pub(super) fn time_add_interval(arguments: &Arguments<'_>) -> Outcome {
    let (time, interval) = (Moment::of(arguments, 0)?, Interval::of(arguments, 1)?);
    let micros = (time.micros + interval.micros % DAY).rem_euclid(DAY);
    Moment { kind: Kind::Time, days: 0, micros }.value()
}

pub(super) fn time_sub(arguments: &Arguments<'_>) -> Outcome {
    let micros = Moment::of(arguments, 0)?.micros - Moment::of(arguments, 1)?.micros;
    Interval { months: 0, days: 0, micros }.value()
}

/// The first year of a span of years that begins with a year 1: a century, a millennium.
const fn span_start(year: i64, span: i64) -> i64 {
    (year + span - 1) / span * span - span + 1
}

/// To so many digits of a second, halves away from PostgreSQL's day zero.
pub(super) fn fit(arguments: &Arguments<'_>) -> Outcome {
    /// The day 2000-01-01.
    const ZERO: i64 = 10_957 * DAY;
    let (moment, digits) = (Moment::of(arguments, 0)?, arguments.integer(1)?);
    let digits = u32::try_from(digits).unwrap_or_default().min(6);
    let unit = 10_i64.pow(6 - digits);
    let zero = if moment.kind == Kind::Time { 0 } else { ZERO };
    let micros = moment.all() - zero;
    let rounded = (micros.abs() + unit / 2) / unit * unit * micros.signum() + zero;
    match moment.kind {
        Kind::Time => Moment { micros: rounded, ..moment }.value(),
        kind => Moment::at(kind, rounded).value(),
    }
}

pub(super) fn date_trunc(arguments: &Arguments<'_>) -> Outcome {
    let (name, moment) = (arguments.text(0)?, Moment::of(arguments, 1)?);
    let kind = if moment.kind == Kind::Date { Kind::Timestamp } else { moment.kind };
    let (year, month, day) = civil(moment.days);
    let (days, micros) = match named_unit(&name, kind.name())? {
        Unit::Microsecond => (moment.days, moment.micros),
        Unit::Millisecond => (moment.days, moment.micros / 1_000 * 1_000),
        Unit::Second => (moment.days, moment.micros / SECOND * SECOND),
        Unit::Minute => (moment.days, moment.micros / MINUTE * MINUTE),
        Unit::Hour => (moment.days, moment.micros / HOUR * HOUR),
        Unit::Day => (moment.days, 0),
        Unit::Week => (moment.days - weekday(moment.days), 0),
        Unit::Month => (moment.days - day + 1, 0),
        Unit::Quarter => (days_of(year, (month - 1) / 3 * 3 + 1, 1), 0),
        Unit::Year => (days_of(year, 1, 1), 0),
        Unit::Decade => (days_of(year / 10 * 10, 1, 1), 0),
        Unit::Century => (days_of(span_start(year, 100), 1, 1), 0),
        Unit::Millennium => (days_of(span_start(year, 1_000), 1, 1), 0),
        _ => return no_unit(&name, kind.name()),
    };
    Moment { kind, days, micros }.value()
}

pub(super) fn extract(arguments: &Arguments<'_>) -> Outcome {
    let (name, value) = (arguments.text(0)?, arguments.text(1)?);
    if let Some(interval) = Interval::parse(&value) {
        let unit = named_unit(&name, "interval")?;
        return interval.extract(unit).map_or_else(|| no_unit(&name, "interval"), |text| Ok(Value::Text(text)));
    }
    let moment = Moment::of(arguments, 1)?;
    let kind = moment.kind;
    let unit = named_unit(&name, kind.name())?;
    let is_of_a_day = matches!(kind, Kind::Date);
    let text = match unit {
        Unit::Epoch if is_of_a_day => (moment.days * 86_400).to_string().into(),
        Unit::Epoch => millionths(moment.all().into(), 6),
        _ => match extract_time(unit, moment.micros).filter(|_| !is_of_a_day) {
            Some(text) => text,
            None => match extract_day(unit, kind, moment.days) {
                Some(number) => number.to_string().into(),
                None => return no_unit(&name, kind.name()),
            },
        },
    };
    Ok(Value::Text(text.into_owned()))
}

/// A part of a day.
fn extract_day(unit: Unit, kind: Kind, days: i64) -> Option<i64> {
    if kind == Kind::Time {
        return None;
    }
    let (year, month, day) = civil(days);
    Some(match unit {
        Unit::Day => day,
        Unit::Month => month,
        Unit::Quarter => (month - 1) / 3 + 1,
        Unit::Week => iso_week(days).1,
        Unit::Year => year,
        Unit::Decade => year / 10,
        Unit::Century => (year + 99) / 100,
        Unit::Millennium => (year + 999) / 1_000,
        Unit::IsoYear => iso_week(days).0,
        Unit::DayOfWeek => (weekday(days) + 1) % 7,
        Unit::IsoDayOfWeek => weekday(days) + 1,
        Unit::DayOfYear => days - days_of(year, 1, 1) + 1,
        Unit::Julian if kind == Kind::Date => days - DATES.start,
        Unit::Timezone | Unit::TimezoneHour | Unit::TimezoneMinute if kind == Kind::Timestamptz => 0,
        _ => return None,
    })
}
