//! The fields of a date, time or interval as people write it, and the words that stand in them.

use super::call::{Outcome, refuse};
use super::input;
use crate::error::ErrorKind;

/// The longest text that is looked at, and the most fields.
const TEXT_MAX: usize = 128;
const FIELDS_MAX: usize = 25;

/// What a field looks like.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Form {
    Number,
    Word,
    Date,
    Time,
    /// A sign and digits.
    Zone,
    /// A sign and a word.
    Special,
}

/// Why a text cannot be read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Fault {
    Format,
    Range,
    Zone,
    /// Understood, and not to be had here.
    Unsupported,
}

impl Fault {
    /// The error that it is for a text.
    pub(super) fn refuse<T>(self, kind: &str, text: &str) -> Outcome<T> {
        let (error, message) = match self {
            Self::Format => (ErrorKind::BadTime, format!("invalid input syntax for type {kind}: \"{text}\"")),
            Self::Range => (ErrorKind::TimeOutOfRange, format!("date/time field value out of range: \"{text}\"")),
            Self::Zone => (ErrorKind::BadZone, format!("time zone displacement out of range: \"{text}\"")),
            Self::Unsupported => (ErrorKind::NotAllowed, format!("not supported in type {kind}: \"{text}\"")),
        };
        refuse(error, message)
    }
}

pub(super) type Read<T> = Result<T, Fault>;

/// A field: what it looks like, and its text in lower case.
pub(super) type Field = (Form, String);

/// The fields of a text.
pub(super) fn fields(text: &str) -> Read<Vec<Field>> {
    if text.len() > TEXT_MAX {
        return Err(Fault::Format);
    }
    let mut rest = text;
    let mut fields = Vec::new();
    while let Some(first) = rest.chars().next() {
        if input::is_blank(first) {
            rest = &rest[1..];
            continue;
        }
        if fields.len() == FIELDS_MAX {
            return Err(Fault::Format);
        }
        let (form, length) = match first {
            '0'..='9' => number_field(rest),
            '.' => (Form::Number, 1 + run(&rest[1..], |c| c.is_ascii_digit())),
            'a'..='z' | 'A'..='Z' => word_field(rest),
            '+' | '-' => {
                let behind = rest[1..].trim_start_matches(input::is_blank);
                let (form, length) = match behind.chars().next() {
                    Some('0'..='9') => {
                        (Form::Zone, run(behind, |c| c.is_ascii_digit() || matches!(c, ':' | '.' | '-')))
                    }
                    Some(c) if c.is_ascii_alphabetic() => (Form::Special, run(behind, |c| c.is_ascii_alphabetic())),
                    _ => return Err(Fault::Format),
                };
                fields.push((form, format!("{first}{}", behind[..length].to_ascii_lowercase())));
                rest = &behind[length..];
                continue;
            }
            c if c.is_ascii_punctuation() => {
                rest = &rest[1..];
                continue;
            }
            _ => return Err(Fault::Format),
        };
        fields.push((form, rest[..length].to_ascii_lowercase()));
        rest = &rest[length..];
    }
    Ok(fields)
}

/// How many bytes of a text are characters of a kind, from its beginning.
pub(super) fn run(text: &str, is: impl Fn(char) -> bool) -> usize {
    text.find(|c: char| !is(c)).unwrap_or(text.len())
}

/// A field that begins with a digit.
fn number_field(text: &str) -> (Form, usize) {
    let digits = run(text, |c| c.is_ascii_digit());
    match text[digits..].chars().next() {
        Some(':') => (Form::Time, digits + run(&text[digits..], |c| c.is_ascii_digit() || matches!(c, ':' | '.'))),
        Some(mark @ ('-' | '/' | '.')) => {
            let behind = &text[digits + 1..];
            if !behind.starts_with(|c: char| c.is_ascii_digit()) {
                return (Form::Date, digits + 1 + run(behind, |c| c.is_ascii_alphanumeric() || c == mark));
            }
            let second = digits + 1 + run(behind, |c| c.is_ascii_digit());
            if text[second..].starts_with(mark) {
                return (Form::Date, second + run(&text[second..], |c| c.is_ascii_digit() || c == mark));
            }
            (if mark == '.' { Form::Number } else { Form::Date }, second)
        }
        _ => (Form::Number, digits),
    }
}

/// A field that begins with a letter: a word, a date such as `may-6-2024`, or the name of a zone.
fn word_field(text: &str) -> (Form, usize) {
    let letters = run(text, |c| c.is_ascii_alphabetic());
    let goes_on = match text[letters..].chars().next() {
        Some('-' | '/' | '.') => true,
        Some(c) if c == '+' || c.is_ascii_digit() => word(&text[..letters].to_ascii_lowercase()).is_none(),
        _ => false,
    };
    if !goes_on {
        return (Form::Word, letters);
    }
    let is_part = |c: char| c.is_ascii_alphanumeric() || matches!(c, '+' | '-' | '/' | '_' | '.' | ':');
    (Form::Date, letters + run(&text[letters..], is_part))
}

/// What a word means.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Meaning {
    Nothing,
    Month(i64),
    Weekday,
    Afternoon(bool),
    BeforeChrist(bool),
    /// Seconds east of UTC.
    Zone(i64),
    Midnight,
    Epoch,
    /// A time follows.
    TimeFollows,
    Unsupported,
}

/// The meaning of a word in lower case, if it has one in dates and times.
pub(super) fn word(text: &str) -> Option<Meaning> {
    const MONTHS: [&str; 12] = [
        "january",
        "february",
        "march",
        "april",
        "may",
        "june",
        "july",
        "august",
        "september",
        "october",
        "november",
        "december",
    ];
    const DAYS: [&str; 7] = ["monday", "tuesday", "wednesday", "thursday", "friday", "saturday", "sunday"];
    let is_of = |whole: &&str| text == *whole || text.len() == 3 && whole.starts_with(text);
    if let Some(month) = MONTHS.iter().position(is_of) {
        return Some(Meaning::Month(month as i64 + 1));
    }
    if DAYS.iter().any(is_of) {
        return Some(Meaning::Weekday);
    }
    Some(match text {
        "at" | "on" => Meaning::Nothing,
        "sept" => Meaning::Month(9),
        "tues" | "weds" | "thur" | "thurs" => Meaning::Weekday,
        "am" => Meaning::Afternoon(false),
        "pm" => Meaning::Afternoon(true),
        "ad" => Meaning::BeforeChrist(false),
        "bc" => Meaning::BeforeChrist(true),
        "allballs" => Meaning::Midnight,
        "epoch" => Meaning::Epoch,
        "t" => Meaning::TimeFollows,
        "now" | "today" | "tomorrow" | "yesterday" | "infinity" | "-infinity" | "d" | "dst" | "h" | "j" | "jd"
        | "julian" | "m" | "mm" | "s" | "y" | "dow" | "doy" | "isodow" | "isoyear" => Meaning::Unsupported,
        _ => return None,
    })
}

/// PostgreSQL's abbreviations of zones other than UTC, which stand for a place's time: refused, and not unknown.
#[rustfmt::skip]
const ABBREVIATIONS: &[&str] = &[
    "acdt", "acsst", "acst", "act", "acwst", "adt", "aedt", "aesst", "aest", "aft", "akdt", "akst", "almst", "almt",
    "amst", "amt", "anast", "anat", "arst", "art", "ast", "awsst", "awst", "azost", "azot", "azst", "azt", "bdst",
    "bdt", "bnt", "bort", "bot", "bra", "brst", "brt", "bst", "btt", "cadt", "cast", "cct", "cdt", "cest", "cet",
    "cetdst", "chadt", "chast", "chut", "ckt", "clst", "clt", "cot", "cst", "cxt", "davt", "ddut", "easst", "east",
    "eat", "edt", "eest", "eet", "eetdst", "egst", "egt", "est", "fet", "fjst", "fjt", "fkst", "fkt", "fnst", "fnt",
    "galt", "gamt", "gest", "get", "gft", "gilt", "gyt", "hkt", "hst", "ict", "idt", "iot", "irkst", "irkt", "irt",
    "ist", "jayt", "jst", "kdt", "kgst", "kgt", "kost", "krast", "krat", "kst", "lhdt", "lhst", "ligt", "lint",
    "lkt", "magst", "magt", "mart", "mawt", "mdt", "mest", "mesz", "met", "metdst", "mez", "mht", "mmt", "mpt",
    "msd", "msk", "mst", "must", "mut", "mvt", "myt", "ndt", "nft", "novst", "novt", "npt", "nst", "nut", "nzdt",
    "nzst", "nzt", "omsst", "omst", "pdt", "pet", "petst", "pett", "pgt", "pht", "pkst", "pkt", "pmdt", "pmst",
    "pont", "pst", "pwt", "pyst", "pyt", "ret", "sadt", "sast", "sct", "sgt", "taht", "tft", "tjt", "tkt", "tmt",
    "tot", "trut", "tvt", "ulast", "ulat", "uyst", "uyt", "uzst", "uzt", "vet", "vlast", "vlat", "volt", "vut",
    "wadt", "wakt", "wast", "wat", "wdt", "wet", "wetdst", "wft", "wgst", "wgt", "xjt", "yakst", "yakt", "yapt",
    "yekst", "yekt",
];

/// The zone that a word in lower case names, if it is one.
pub(super) fn zone_word(text: &str) -> Option<Meaning> {
    match text {
        "utc" | "gmt" | "z" | "zulu" | "ut" | "uct" => Some(Meaning::Zone(0)),
        _ => ABBREVIATIONS.contains(&text).then_some(Meaning::Unsupported),
    }
}
