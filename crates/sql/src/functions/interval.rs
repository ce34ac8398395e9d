//! Intervals: months, days and microseconds, none of which is a number of the others.

use super::aggregate::Fold;
use super::call::{Arguments, Charge, Outcome, refuse};
use super::datetime::clock;
use super::fields::{Fault, Form, Read, fields};
use super::gregorian::{DAY, HOUR, MINUTE, SECOND};
use super::parts::{extract_time, fraction_text, millionths};
use super::units::{Unit, named_unit, no_unit, unit};
use super::{input as texts, integer};
use crate::error::ErrorKind;
use rusqlite::types::Value;
use std::cmp::Ordering;

/// Days of a month, where days of a part of a month are wanted.
const MONTH_DAYS: i64 = 30;

/// What seconds with a fraction say all of.
const SECONDS: [Unit; 3] = [Unit::Second, Unit::Millisecond, Unit::Microsecond];

/// An interval. Months and days have 32 bits, as PostgreSQL's.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Interval {
    pub(super) months: i64,
    pub(super) days: i64,
    pub(super) micros: i64,
}

fn out_of_range<T>() -> Outcome<T> {
    refuse(ErrorKind::TimeOutOfRange, "interval out of range")
}

impl Interval {
    /// Reads `months days microseconds`.
    pub(super) fn parse(text: &str) -> Option<Self> {
        let mut parts = text.split(' ').map(|part| part.parse::<i64>().ok());
        let (months, days, micros) = (parts.next()??, parts.next()??, parts.next()??);
        let fits = |number: i64| i32::try_from(number).is_ok();
        (parts.next().is_none() && fits(months) && fits(days)).then_some(Self { months, days, micros })
    }

    pub(super) fn of(arguments: &Arguments<'_>, number: usize) -> Outcome<Self> {
        let text = arguments.text(number)?;
        match Self::parse(&text) {
            Some(interval) => Ok(interval),
            None => Fault::Format.refuse("interval", &text),
        }
    }

    /// Microseconds, with months of 30 days, by which PostgreSQL compares.
    pub(super) fn length(self) -> i128 {
        i128::from(self.months * MONTH_DAYS + self.days) * i128::from(DAY) + i128::from(self.micros)
    }

    pub(super) fn value(self) -> Outcome {
        let fits = |number: i64| i32::try_from(number).is_ok();
        if !fits(self.months) || !fits(self.days) {
            return out_of_range();
        }
        Ok(Value::Text(format!("{} {} {}", self.months, self.days, self.micros)))
    }

    /// Part by part.
    fn combined(self, other: Self, act: fn(i64, i64) -> Option<i64>) -> Outcome<Self> {
        let (months, days) = (act(self.months, other.months), act(self.days, other.days));
        match (months, days, act(self.micros, other.micros)) {
            (Some(months), Some(days), Some(micros)) => Ok(Self { months, days, micros }),
            _ => out_of_range(),
        }
    }

    /// Cut off below a unit, towards zero.
    fn truncated(self, unit: Unit) -> Option<Self> {
        let cut = |number: i64, unit: i64| number / unit * unit;
        let (months, days, micros) = match unit {
            Unit::Microsecond => (self.months, self.days, self.micros),
            Unit::Millisecond => (self.months, self.days, cut(self.micros, 1_000)),
            Unit::Second => (self.months, self.days, cut(self.micros, SECOND)),
            Unit::Minute => (self.months, self.days, cut(self.micros, MINUTE)),
            Unit::Hour => (self.months, self.days, cut(self.micros, HOUR)),
            Unit::Day => (self.months, self.days, 0),
            Unit::Month => (self.months, 0, 0),
            Unit::Quarter => (cut(self.months, 3), 0, 0),
            Unit::Year => (cut(self.months, 12), 0, 0),
            Unit::Decade => (cut(self.months, 120), 0, 0),
            Unit::Century => (cut(self.months, 1_200), 0, 0),
            Unit::Millennium => (cut(self.months, 12_000), 0, 0),
            _ => return None,
        };
        Some(Self { months, days, micros })
    }

    /// A part of it, as text.
    pub(super) fn extract(self, unit: Unit) -> Option<String> {
        let years = self.months / 12;
        let number = match unit {
            Unit::Day => self.days,
            Unit::Month => self.months % 12,
            Unit::Quarter => self.months % 12 / 3 + 1,
            Unit::Year => years,
            Unit::Decade => years / 10,
            Unit::Century => years / 100,
            Unit::Millennium => years / 1_000,
            Unit::Epoch => {
                // A year has 365.25 days here, and a month 30.
                let quarter_days = i128::from(years) * 1_461
                    + i128::from(self.months % 12 * MONTH_DAYS) * 4
                    + i128::from(self.days) * 4;
                return Some(millionths(quarter_days * i128::from(DAY / 4) + i128::from(self.micros), 6).into());
            }
            _ => return extract_time(unit, self.micros).map(Into::into),
        };
        Some(number.to_string())
    }

    /// As PostgreSQL prints it.
    fn text(self) -> String {
        let mut out = String::new();
        let mut before = false;
        for (number, name) in [(self.months / 12, "year"), (self.months % 12, "mon"), (self.days, "day")] {
            if number != 0 {
                let blank = if out.is_empty() { "" } else { " " };
                let plus = if before && number > 0 { "+" } else { "" };
                let plural = if number == 1 { "" } else { "s" };
                out.push_str(&format!("{blank}{plus}{number} {name}{plural}"));
                before = number < 0;
            }
        }
        if out.is_empty() || self.micros != 0 {
            let blank = if out.is_empty() { "" } else { " " };
            let sign = match self.micros {
                ..0 => "-",
                _ if before => "+",
                _ => "",
            };
            let micros = self.micros.unsigned_abs() as i128;
            let (hour, minute, second) = (i128::from(HOUR), i128::from(MINUTE), i128::from(SECOND));
            let clock = format!("{:02}:{:02}:{:02}", micros / hour, micros / minute % 60, micros / second % 60);
            out.push_str(&format!("{blank}{sign}{clock}{}", fraction_text((micros % second) as i64)));
        }
        out
    }

    /// So many of a unit and a part of one.
    fn put(&mut self, unit: Unit, number: i64, part: f64) -> Read<()> {
        let fits = match unit {
            Unit::Microsecond => self.put_micros(number, part, 1),
            Unit::Millisecond => self.put_micros(number, part, 1_000),
            Unit::Second => self.put_micros(number, part, SECOND),
            Unit::Minute => self.put_micros(number, part, MINUTE),
            Unit::Hour => self.put_micros(number, part, HOUR),
            Unit::Day => self.put_days(number, 1).and_then(|()| self.put_micros(0, part, DAY)),
            Unit::Week => self.put_days(number, 7).and_then(|()| self.put_part_of_days(part, 7)),
            Unit::Month => self.put_months(number, 1).and_then(|()| self.put_part_of_days(part, MONTH_DAYS)),
            Unit::Year => self.put_years(number, part, 1),
            Unit::Decade => self.put_years(number, part, 10),
            Unit::Century => self.put_years(number, part, 100),
            Unit::Millennium => self.put_years(number, part, 1_000),
            _ => return Err(Fault::Format),
        };
        fits.ok_or(Fault::Range)
    }

    fn put_micros(&mut self, number: i64, part: f64, unit: i64) -> Option<()> {
        let part = part * unit as f64;
        let whole = part as i64;
        let rest = part - whole as f64;
        let rounded = whole + i64::from(rest > 0.5) - i64::from(rest < -0.5);
        self.micros = number.checked_mul(unit)?.checked_add(rounded)?.checked_add(self.micros)?;
        Some(())
    }

    fn put_days(&mut self, number: i64, unit: i64) -> Option<()> {
        self.days = number.checked_mul(unit)?.checked_add(self.days)?;
        i32::try_from(self.days).is_ok().then_some(())
    }

    fn put_part_of_days(&mut self, part: f64, unit: i64) -> Option<()> {
        let part = part * unit as f64;
        self.put_days(part as i64, 1)?;
        self.put_micros(0, part - (part as i64) as f64, DAY)
    }

    fn put_months(&mut self, number: i64, unit: i64) -> Option<()> {
        self.months = number.checked_mul(unit)?.checked_add(self.months)?;
        i32::try_from(number).is_ok().then_some(())
    }

    fn put_years(&mut self, number: i64, part: f64, unit: i64) -> Option<()> {
        i32::try_from(number.checked_mul(unit)?).ok()?;
        self.months = self.months.checked_add(number * unit * 12)?;
        self.put_months((part * (unit * 12) as f64).round_ties_even() as i64, 1)
    }
}

/// Reads the fields from the last to the first: a unit says what the number before it is.
fn read(text: &str) -> Read<Interval> {
    let mut interval = Interval::default();
    let mut seen: Vec<Unit> = Vec::new();
    let (mut next, mut ago) = (None, false);
    for (form, field) in fields(text)?.iter().rev() {
        let has_clock = *form == Form::Time || *form == Form::Zone && field[1..].contains(':');
        if has_clock {
            let (negative, clock_text) = texts::signed(field);
            let (hour, minute, second, micros) = clock(clock_text)?;
            let sign = if negative { -1 } else { 1 };
            note(&mut seen, &[Unit::Hour, Unit::Minute])?;
            note(&mut seen, &SECONDS)?;
            let all = ((hour * 60 + minute) * 60 + second) * SECOND + micros;
            interval.put(Unit::Microsecond, sign * all, 0.0)?;
            next = Some(Unit::Day);
            continue;
        }
        match form {
            Form::Number | Form::Zone | Form::Date => {
                let (unit, number, part) = number(field, next.unwrap_or(Unit::Second))?;
                match unit {
                    Unit::Second if part != 0.0 => note(&mut seen, &SECONDS)?,
                    _ => note(&mut seen, &[unit])?,
                }
                interval.put(unit, number, part)?;
                next = Some(if unit == Unit::Hour { Unit::Day } else { unit });
            }
            _ => match field.as_str() {
                "@" => {}
                "ago" => {
                    ago = true;
                    next = None;
                }
                word => next = Some(unit(word).ok_or(Fault::Format)?),
            },
        }
    }
    if seen.is_empty() {
        return Err(Fault::Format);
    }
    if ago {
        let micros = interval.micros.checked_neg().ok_or(Fault::Range)?;
        interval = Interval { months: -interval.months, days: -interval.days, micros };
    }
    Ok(interval)
}

/// Each unit may be given once.
fn note(seen: &mut Vec<Unit>, units: &[Unit]) -> Read<()> {
    for unit in units {
        if seen.contains(unit) {
            return Err(Fault::Format);
        }
        seen.push(*unit);
    }
    Ok(())
}

/// A number with a part, or years and months as `1-2`.
fn number(field: &str, unit: Unit) -> Read<(Unit, i64, f64)> {
    let (negative, unsigned) = texts::signed(field);
    let (digits, rest) = unsigned.split_at(texts::digits(unsigned));
    let parse = |text: &str| if text.is_empty() { Ok(0) } else { text.parse::<i64>().map_err(|_| Fault::Range) };
    let number = parse(digits)?;
    let sign = if negative { -1 } else { 1 };
    if let Some(months) = rest.strip_prefix('-') {
        let count = parse(months.get(..texts::digits(months)).unwrap_or_default())?;
        if count >= 12 {
            return Err(Fault::Range);
        }
        if texts::digits(months) != months.len() {
            return Err(Fault::Format);
        }
        let all = number.checked_mul(12).and_then(|all| all.checked_add(count)).ok_or(Fault::Range)?;
        return Ok((Unit::Month, sign * all, 0.0));
    }
    let is_part = rest.starts_with('.') && texts::digits(&rest[1..]) + 1 == rest.len();
    let part = match rest {
        "" | "." => 0.0,
        _ if is_part => rest.parse::<f64>().map_err(|_| Fault::Format)?,
        _ => return Err(Fault::Format),
    };
    Ok((unit, sign * number, if negative { -part } else { part }))
}

/// Reads `P1Y2M3DT4H5M6.7S`, where the units are letters.
fn read_designators(text: &str) -> Read<Interval> {
    let mut rest = text.strip_prefix('P').filter(|rest| !rest.is_empty()).ok_or(Fault::Format)?;
    let mut interval = Interval::default();
    let mut in_time = false;
    while !rest.is_empty() {
        if let (false, Some(behind)) = (in_time, rest.strip_prefix('T')) {
            (in_time, rest) = (true, behind);
            continue;
        }
        let length = rest.find(|c: char| c.is_ascii_alphabetic()).ok_or(Fault::Unsupported)?;
        // Dates and times as `0001-02-03T04:05:06`.
        if rest[..length].trim_start_matches(['-', '+']).contains(['-', ':']) {
            return Err(Fault::Unsupported);
        }
        let unit = match (&rest[length..=length], in_time) {
            ("Y", false) => Unit::Year,
            ("M", false) => Unit::Month,
            ("W", false) => Unit::Week,
            ("D", false) => Unit::Day,
            ("H", true) => Unit::Hour,
            ("M", true) => Unit::Minute,
            ("S", true) => Unit::Second,
            _ => return Err(Fault::Format),
        };
        let (unit, number, part) = match &rest[..length] {
            text if text.starts_with(|c: char| c.is_ascii_digit() || matches!(c, '+' | '-' | '.')) => {
                number(text, unit)?
            }
            _ => return Err(Fault::Format),
        };
        interval.put(unit, number, part)?;
        rest = &rest[length + 1..];
    }
    Ok(interval)
}

pub(super) fn input(arguments: &Arguments<'_>) -> Outcome {
    let text = arguments.text(0)?;
    let read = match read(&text) {
        Err(Fault::Format) => read_designators(&text),
        read => read,
    };
    match read {
        Ok(interval) => interval.value(),
        Err(Fault::Range) => {
            refuse(ErrorKind::IntervalOutOfRange, format!("interval field value out of range: \"{text}\""))
        }
        Err(fault) => fault.refuse("interval", &text),
    }
}

pub(super) fn output(arguments: &Arguments<'_>) -> Outcome {
    Ok(Value::Text(Interval::of(arguments, 0)?.text()))
}

pub(super) fn add(arguments: &Arguments<'_>) -> Outcome {
    Interval::of(arguments, 0)?.combined(Interval::of(arguments, 1)?, i64::checked_add)?.value()
}

pub(super) fn sub(arguments: &Arguments<'_>) -> Outcome {
    Interval::of(arguments, 0)?.combined(Interval::of(arguments, 1)?, i64::checked_sub)?.value()
}

pub(super) fn trunc(arguments: &Arguments<'_>) -> Outcome {
    let (name, interval) = (arguments.text(0)?, Interval::of(arguments, 1)?);
    match interval.truncated(named_unit(&name, "interval")?) {
        Some(interval) => interval.value(),
        None => no_unit(&name, "interval"),
    }
}

/// By length, as PostgreSQL compares. What is no interval comes first, by its bytes: a collation must order any texts.
pub(super) fn compare(left: &str, right: &str) -> Ordering {
    match (Interval::parse(left), Interval::parse(right)) {
        (Some(left), Some(right)) => left.length().cmp(&right.length()),
        (None, None) => left.cmp(right),
        (left, right) => left.is_some().cmp(&right.is_some()),
    }
}

/// The sum of intervals, part by part.
#[derive(Default)]
pub(super) struct IntervalSum(Interval);

impl Fold for IntervalSum {
    const CHARGE: Charge = Charge::FIELDS;

    fn add(&mut self, arguments: &Arguments<'_>) -> Outcome<()> {
        self.0 = self.0.combined(Interval::of(arguments, 0)?, i64::checked_add)?;
        Ok(())
    }

    fn remove(&mut self, arguments: &Arguments<'_>) -> Outcome<()> {
        self.0 = self.0.combined(Interval::of(arguments, 0)?, i64::checked_sub)?;
        Ok(())
    }

    fn value(&self) -> Outcome {
        self.0.value()
    }
}

/// The average of intervals: their sum, divided.
#[derive(Default)]
pub(super) struct IntervalAverage {
    sum: IntervalSum,
    count: u64,
}

impl Fold for IntervalAverage {
    const CHARGE: Charge = Charge::FIELDS;

    fn add(&mut self, arguments: &Arguments<'_>) -> Outcome<()> {
        self.count += 1;
        self.sum.add(arguments)
    }

    fn remove(&mut self, arguments: &Arguments<'_>) -> Outcome<()> {
        self.count = self.count.saturating_sub(1);
        self.sum.remove(arguments)
    }

    fn value(&self) -> Outcome {
        let count = self.count as f64;
        scaled(self.sum.0, |number| number / count)
    }
}

pub(super) fn neg(arguments: &Arguments<'_>) -> Outcome {
    let interval = Interval::of(arguments, 0)?;
    match interval.micros.checked_neg() {
        Some(micros) => Interval { months: -interval.months, days: -interval.days, micros }.value(),
        None => out_of_range(),
    }
}

pub(super) fn mul(arguments: &Arguments<'_>) -> Outcome {
    let (interval, factor) = (Interval::of(arguments, 0)?, arguments.real(1)?);
    scaled(interval, |number| number * factor)
}

pub(super) fn div(arguments: &Arguments<'_>) -> Outcome {
    let (interval, factor) = (Interval::of(arguments, 0)?, arguments.real(1)?);
    if factor == 0.0 {
        return integer::by_zero();
    }
    scaled(interval, |number| number / factor)
}

/// Each part scaled; what is left of a month becomes days, and what is left of a day becomes time.
fn scaled(interval: Interval, scale: impl Fn(f64) -> f64) -> Outcome {
    const DAY_SECONDS: f64 = 86_400.0;
    let to_micros = |number: f64| (number * 1e6).round_ties_even() / 1e6;
    let (months, days) = (scale(interval.months as f64), scale(interval.days as f64));
    let fits = |number: f64| number >= f64::from(i32::MIN) && number <= f64::from(i32::MAX);
    if !fits(months) || !fits(days) {
        return out_of_range();
    }
    let month_days = to_micros((months - months.trunc()) * MONTH_DAYS as f64);
    let mut seconds = to_micros((days - days.trunc() + month_days - month_days.trunc()) * DAY_SECONDS);
    let mut whole_days = days as i64;
    if seconds.abs() >= DAY_SECONDS {
        whole_days += (seconds / DAY_SECONDS) as i64;
        seconds -= (seconds / DAY_SECONDS).trunc() * DAY_SECONDS;
    }
    whole_days += month_days as i64;
    let micros = (scale(interval.micros as f64) + seconds * 1e6).round_ties_even();
    // 2^63 is the first number that has no room.
    let limit = 9_223_372_036_854_775_808.0;
    if !(-limit..limit).contains(&micros) {
        return out_of_range();
    }
    Interval { months: months as i64, days: whole_days, micros: micros as i64 }.value()
}
