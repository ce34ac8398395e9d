//! How people write dates and times: what PostgreSQL reads with `DateStyle` ISO, MDY.
//!
//! A text falls into fields by how they look ([`super::fields`]), and each field says something about the moment
//! according to what is known already ([`Reading`]): `5/6/2024`, `6 May 2024`, `20240506 070809` and
//! `2024-05-06T07:08:09.1Z` are the same day. What depends on the moment (`now`, `today`) or on a place
//! (`Europe/Berlin`, `EST`) is refused.

use super::fields::{Fault, Field, Form, Meaning, Read, fields, run, word, zone_word};
use super::{gregorian, input};

/// Hours that a zone may be away from UTC.
const ZONE_HOURS_MAX: i64 = 15;

/// Parts of a moment that are known: bits.
mod known {
    pub(super) const YEAR: u32 = 1;
    pub(super) const MONTH: u32 = 2;
    pub(super) const DAY: u32 = 4;
    pub(super) const DATE: u32 = 7;
    pub(super) const DAY_OF_YEAR: u32 = 8;
    pub(super) const TIME: u32 = 16;
    pub(super) const ZONE: u32 = 32;
    pub(super) const HALF: u32 = 64;
    pub(super) const ERA: u32 = 128;
    pub(super) const WEEKDAY: u32 = 256;
    pub(super) const EPOCH: u32 = 512;
}

/// What has been read of a moment.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Reading {
    known: u32,
    year: i64,
    month: i64,
    day: i64,
    day_of_year: i64,
    hour: i64,
    minute: i64,
    second: i64,
    micros: i64,
    /// Seconds east of UTC.
    zone: Option<i64>,
    is_epoch: bool,
    two_digits: bool,
    named_month: bool,
    afternoon: Option<bool>,
    before_christ: bool,
}

impl Reading {
    /// Reads a date, with or without a time, or a time alone.
    pub(super) fn of(text: &str, time_only: bool) -> Read<Self> {
        let mut reading = Self::default();
        let fields = fields(text)?;
        let mut labelled = false;
        for (number, (form, field)) in fields.iter().enumerate() {
            let was_labelled = std::mem::take(&mut labelled);
            let known = match form {
                Form::Date if reading.date_is_over(&fields, number, time_only) || was_labelled => {
                    reading.time_and_zone(field, time_only)?
                }
                Form::Date => reading.date(field)?,
                Form::Time => {
                    reading.clock(field, time_only)?;
                    known::TIME
                }
                Form::Zone => {
                    reading.zone = Some(zone(field)?);
                    known::ZONE
                }
                Form::Number if was_labelled => {
                    // PostgreSQL looks at it as a number first.
                    leading(field)?;
                    match reading.run_together(field, known::DATE)? {
                        known::TIME => known::TIME,
                        _ => return Err(Fault::Format),
                    }
                }
                Form::Number if time_only => reading.number_of_a_time(field, &fields, number)?,
                Form::Number => reading.number_field(field)?,
                Form::Word | Form::Special => match zone_word(field).or_else(|| word(field)) {
                    Some(Meaning::Nothing) => continue,
                    Some(Meaning::TimeFollows) => {
                        let is_time = |(form, _): &Field| matches!(form, Form::Number | Form::Time | Form::Date);
                        let has_date = time_only || reading.known & known::DATE == known::DATE;
                        if !has_date || !fields.get(number + 1).is_some_and(is_time) {
                            return Err(Fault::Format);
                        }
                        labelled = true;
                        0
                    }
                    Some(Meaning::Month(_) | Meaning::Weekday | Meaning::Epoch) if time_only => {
                        return Err(Fault::Format);
                    }
                    Some(meaning) => reading.word(meaning)?,
                    None => return Err(Fault::Format),
                },
            };
            if known & reading.known != 0 {
                return Err(Fault::Format);
            }
            reading.known |= known;
        }
        reading.settle(time_only)?;
        Ok(reading)
    }

    /// Whether a field that looks like a date is none, for there is one.
    fn date_is_over(&self, fields: &[Field], number: usize, time_only: bool) -> bool {
        if time_only {
            let last = fields.last().is_some_and(|(form, _)| *form == Form::Date);
            let second = fields.get(1).is_some_and(|(form, _)| *form == Form::Time);
            return !(number == 0 && fields.len() >= 2 && (last || second));
        }
        const MONTH_AND_DAY: u32 = known::MONTH | known::DAY;
        self.known & MONTH_AND_DAY == MONTH_AND_DAY
    }

    /// A time run together with a zone, as `070809-02`, or the name of a zone.
    fn time_and_zone(&mut self, field: &str, time_only: bool) -> Read<u32> {
        if !field.starts_with(|c: char| c.is_ascii_digit()) {
            return Err(Fault::Unsupported);
        }
        let at = field.find('-').filter(|_| self.known & known::TIME == 0).ok_or(Fault::Format)?;
        self.zone = Some(zone(&field[at..])?);
        let has = if time_only { known::DATE } else { self.known };
        Ok(self.run_together(&field[..at], has)? | known::ZONE)
    }

    fn word(&mut self, meaning: Meaning) -> Read<u32> {
        Ok(match meaning {
            Meaning::Month(month) => {
                let is_day = self.known & known::MONTH != 0
                    && !self.named_month
                    && self.known & known::DAY == 0
                    && (1..=31).contains(&self.month);
                let known = if is_day {
                    self.day = self.month;
                    known::DAY
                } else {
                    known::MONTH
                };
                self.named_month = true;
                self.month = month;
                known
            }
            Meaning::Weekday => known::WEEKDAY,
            Meaning::Afternoon(afternoon) => {
                self.afternoon = Some(afternoon);
                known::HALF
            }
            Meaning::BeforeChrist(before) => {
                self.before_christ = before;
                known::ERA
            }
            Meaning::Zone(seconds) => {
                self.zone = Some(seconds);
                known::ZONE
            }
            Meaning::Midnight => {
                self.zone = Some(0);
                self.is_epoch = false;
                known::TIME | known::ZONE
            }
            Meaning::Epoch => {
                self.is_epoch = true;
                known::EPOCH
            }
            Meaning::Nothing | Meaning::TimeFollows => 0,
            Meaning::Unsupported => return Err(Fault::Unsupported),
        })
    }

    /// A date in one field.
    fn date(&mut self, field: &str) -> Read<u32> {
        let parts = date_parts(field)?;
        let mut found = 0;
        let mut note = |reading: &Self, known: u32| {
            let twice = known & (reading.known | found) != 0;
            found |= known;
            if twice { Err(Fault::Format) } else { Ok(found) }
        };
        let is_word = |part: &&&str| part.starts_with(|c: char| c.is_ascii_alphabetic());
        self.named_month = false;
        for part in parts.iter().filter(is_word) {
            match word(part) {
                Some(Meaning::Month(month)) => {
                    self.month = month;
                    self.named_month = true;
                    note(self, known::MONTH)?;
                }
                _ => return Err(Fault::Format),
            }
        }
        let mut all = self.known | if self.named_month { known::MONTH } else { 0 };
        for part in parts.iter().filter(|part| !is_word(part)) {
            let known = self.number(part, all)?;
            all |= known;
            note(self, known)?;
        }
        let found = note(self, 0)?;
        let dated = (self.known | found) & !(known::DAY_OF_YEAR | known::ZONE);
        if dated == known::DATE { Ok(found) } else { Err(Fault::Format) }
    }

    /// A field of digits with or without a point.
    fn number_field(&mut self, field: &str) -> Read<u32> {
        let before_point = field.find('.');
        let needs_more = self.known & known::DATE == 0 || self.known & known::TIME == 0;
        match before_point {
            Some(_) if self.known & known::DATE == 0 => self.date(field),
            Some(digits) if digits > 2 => self.run_together(field, self.known),
            None if field.len() >= 6 && needs_more => self.run_together(field, self.known),
            _ => self.number(field, self.known),
        }
    }

    /// The same where only a time is wanted.
    fn number_of_a_time(&mut self, field: &str, fields: &[Field], number: usize) -> Read<u32> {
        match field.find('.') {
            Some(_) if number == 0 && fields.len() >= 2 && fields.last().is_some_and(|last| last.0 == Form::Date) => {
                self.date(field)
            }
            Some(digits) if digits > 2 => self.run_together(field, known::DATE),
            Some(_) => Err(Fault::Format),
            None if field.len() > 4 => self.run_together(field, known::DATE),
            None => self.number(field, self.known | known::DATE),
        }
    }

    /// One number: what it is follows from what is known.
    fn number(&mut self, field: &str, has: u32) -> Read<u32> {
        let digits = input::digits(field);
        if digits == 0 {
            return Err(Fault::Format);
        }
        let value = field[..digits].parse::<i32>().map_err(|_| Fault::Range)?.into();
        if field[digits..].starts_with('.') {
            if digits > 2 {
                return self.run_together(field, has | known::DATE);
            }
            self.micros = fraction(&field[digits..])?;
        } else if digits != field.len() {
            return Err(Fault::Format);
        }
        if field.len() == 3 && has & known::DATE == known::YEAR && (1..=366).contains(&value) {
            self.day_of_year = value;
            return Ok(known::DAY_OF_YEAR | known::MONTH | known::DAY);
        }
        const YEAR_MONTH: u32 = known::YEAR | known::MONTH;
        const MONTH_DAY: u32 = known::MONTH | known::DAY;
        let known = match has & known::DATE {
            0 if field.len() >= 3 => known::YEAR,
            0 | known::YEAR | known::DAY => known::MONTH,
            known::MONTH if self.named_month && field.len() >= 3 => known::YEAR,
            known::MONTH => known::DAY,
            YEAR_MONTH if self.named_month && field.len() >= 3 && self.two_digits => {
                self.day = std::mem::replace(&mut self.year, value);
                self.two_digits = false;
                return Ok(known::DAY);
            }
            YEAR_MONTH => known::DAY,
            MONTH_DAY => known::YEAR,
            known::DATE => return self.run_together(field, has),
            _ => return Err(Fault::Format),
        };
        match known {
            known::YEAR => {
                self.year = value;
                self.two_digits = field.len() <= 2;
            }
            known::MONTH => self.month = value,
            _ => self.day = value,
        }
        Ok(known)
    }

    /// Digits without anything between them: `yymmdd` or longer, `hhmm`, `hhmmss`.
    fn run_together(&mut self, field: &str, has: u32) -> Read<u32> {
        let (digits, rest) = field.split_at(input::digits(field));
        let has_point = rest.starts_with('.');
        if has_point {
            self.micros = fraction(rest)?;
        } else if !rest.is_empty() {
            return Err(Fault::Format);
        }
        let two = |at: usize| digits[at..at + 2].parse::<i64>().map_err(|_| Fault::Format);
        if !has_point && has & known::DATE != known::DATE && digits.len() >= 6 {
            let year = &digits[..digits.len() - 4];
            self.day = two(digits.len() - 2)?;
            self.month = two(digits.len() - 4)?;
            // PostgreSQL keeps the lower half of a number that is too large.
            self.year = i64::from(year.parse::<i64>().unwrap_or(i64::MAX) as i32);
            self.two_digits = year.len() == 2;
            return Ok(known::DATE);
        }
        if self.known & known::TIME == 0 && matches!(digits.len(), 4 | 6) {
            (self.hour, self.minute) = (two(0)?, two(2)?);
            self.second = if digits.len() == 6 { two(4)? } else { 0 };
            return Ok(known::TIME);
        }
        Err(Fault::Format)
    }

    /// `hh:mm`, `hh:mm:ss` or `mm:ss.fraction`. A time alone is checked at the end.
    fn clock(&mut self, field: &str, time_only: bool) -> Read<()> {
        (self.hour, self.minute, self.second, self.micros) = clock(field)?;
        if !time_only && overflows(self.hour, self.minute, self.second, self.micros) {
            Err(Fault::Range)
        } else {
            Ok(())
        }
    }

    /// Checks the whole, and computes what follows from two fields.
    fn settle(&mut self, time_only: bool) -> Read<()> {
        self.settle_date()?;
        if let Some(afternoon) = self.afternoon {
            if self.hour > 12 {
                return Err(Fault::Range);
            }
            self.hour = self.hour % 12 + if afternoon { 12 } else { 0 };
        }
        if time_only {
            if overflows(self.hour, self.minute, self.second, self.micros) {
                return Err(Fault::Range);
            }
            return if self.known & known::TIME == 0 { Err(Fault::Format) } else { Ok(()) };
        }
        if self.is_epoch || self.known & known::DATE == known::DATE { Ok(()) } else { Err(Fault::Format) }
    }

    fn settle_date(&mut self) -> Read<()> {
        if self.known & known::YEAR != 0 {
            if self.before_christ {
                return Err(if self.year <= 0 { Fault::Range } else { Fault::Unsupported });
            }
            if self.two_digits {
                self.year += if self.year < 70 { 2000 } else { 1900 };
            } else if self.year <= 0 {
                return Err(Fault::Range);
            }
        }
        if self.known & known::DAY_OF_YEAR != 0 {
            let days = gregorian::days_of(self.year, 1, 1) + self.day_of_year - 1;
            (self.year, self.month, self.day) = gregorian::civil(days);
        }
        let month_is_wrong = self.known & known::MONTH != 0 && !(1..=12).contains(&self.month);
        let day_is_wrong = self.known & known::DAY != 0 && !(1..=31).contains(&self.day);
        let is_full = self.known & known::DATE == known::DATE;
        if month_is_wrong || day_is_wrong || is_full && self.day > gregorian::days_in(self.year, self.month) {
            return Err(Fault::Range);
        }
        Ok(())
    }

    /// Days since 1970-01-01.
    pub(super) fn days(&self) -> i64 {
        if self.is_epoch { 0 } else { gregorian::days_of(self.year, self.month, self.day) }
    }

    /// Microseconds since midnight.
    pub(super) const fn micros(&self) -> i64 {
        if self.is_epoch {
            return 0;
        }
        ((self.hour * 60 + self.minute) * 60 + self.second) * gregorian::SECOND + self.micros
    }

    /// Seconds east of UTC, if the text says that.
    pub(super) const fn zone(&self) -> Option<i64> {
        if self.is_epoch { Some(0) } else { self.zone }
    }
}

/// The parts of a date between its separators.
fn date_parts(field: &str) -> Read<Vec<&str>> {
    let mut parts = Vec::new();
    let mut rest = field;
    while !rest.is_empty() {
        rest = rest.trim_start_matches(|c: char| !c.is_ascii_alphanumeric());
        let length = match rest.chars().next() {
            Some(c) if c.is_ascii_digit() => input::digits(rest),
            Some(_) => run(rest, |c| c.is_ascii_alphabetic()),
            None => return Err(Fault::Format),
        };
        parts.push(&rest[..length]);
        rest = &rest[length..];
        // Whatever follows separates, a letter behind digits too.
        rest = rest.get(1..).unwrap_or_default();
    }
    Ok(parts)
}

/// Hours, minutes, seconds and microseconds of a time. The hours are for the caller to check.
pub(super) fn clock(field: &str) -> Read<(i64, i64, i64, i64)> {
    let (hour, rest) = leading(field)?;
    let (minute, rest) = leading(rest.strip_prefix(':').ok_or(Fault::Format)?)?;
    let (hour, minute, second, micros) = match rest.chars().next() {
        None => (hour, minute, 0, 0),
        Some('.') => (0, hour, minute, fraction(rest)?),
        Some(':') => {
            let (second, rest) = leading(&rest[1..])?;
            (hour, minute, second, if rest.is_empty() { 0 } else { fraction(rest)? })
        }
        Some(_) => return Err(Fault::Format),
    };
    if minute > 59 || second > 60 || micros > gregorian::SECOND {
        Err(Fault::Range)
    } else {
        Ok((hour, minute, second, micros))
    }
}

/// The number at the beginning of a text, 0 if there is none, and the rest.
fn leading(text: &str) -> Read<(i64, &str)> {
    let (digits, rest) = text.split_at(input::digits(text));
    let number: i32 = if digits.is_empty() { 0 } else { digits.parse().map_err(|_| Fault::Range)? };
    Ok((number.into(), rest))
}

/// Microseconds of `.ddd`, rounded; `.` alone is none.
fn fraction(text: &str) -> Read<i64> {
    if text == "." {
        return Ok(0);
    }
    let is_fraction = text.starts_with('.') && input::digits(&text[1..]) == text.len() - 1;
    let fraction: f64 = text.parse().ok().filter(|_| is_fraction).ok_or(Fault::Format)?;
    Ok((fraction * gregorian::SECOND as f64).round_ties_even() as i64)
}

/// Whether it is later than the end of a day.
const fn overflows(hour: i64, minute: i64, second: i64, micros: i64) -> bool {
    let all = ((hour * 60 + minute) * 60 + second) * gregorian::SECOND + micros;
    hour > 24 || minute > 59 || second > 60 || micros > gregorian::SECOND || all > gregorian::DAY
}

/// Seconds east of UTC of `+hh`, `+hh:mm`, `+hh:mm:ss` or `+hhmm`.
pub(super) fn zone(field: &str) -> Read<i64> {
    let (negative, text) = input::signed(field);
    let part = |text| -> Read<(i64, &str)> { leading(text).map_err(|_| Fault::Zone) };
    if text.starts_with('-') && text[1..].starts_with(|c: char| c.is_ascii_digit()) {
        return Err(Fault::Zone);
    }
    let (all, rest) = part(text)?;
    let digits = text.len() - rest.len();
    let mut seconds = 0;
    let (hours, minutes, rest) = match rest.strip_prefix(':') {
        Some(behind) => {
            let (minutes, mut rest) = part(behind)?;
            if let Some(behind) = rest.strip_prefix(':') {
                (seconds, rest) = part(behind)?;
            }
            (all, minutes, rest)
        }
        None if rest.is_empty() && digits > 2 => (all / 100, all % 100, rest),
        None => (all, 0, rest),
    };
    if hours > ZONE_HOURS_MAX || minutes > 59 || seconds > 59 {
        return Err(Fault::Zone);
    }
    if !rest.is_empty() {
        return Err(Fault::Format);
    }
    let all = (hours * 60 + minutes) * 60 + seconds;
    Ok(if negative { -all } else { all })
}
