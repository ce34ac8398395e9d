//! Texts: lengths that types declare, patterns, parts. Positions count characters.

use super::call::{Arguments, Outcome, pay, refuse, room, truth};
use crate::error::ErrorKind;
use rusqlite::types::Value;
use std::collections::BTreeMap;

fn text(text: impl Into<String>) -> Outcome {
    Ok(Value::Text(text.into()))
}

/// The first so many characters, and the rest.
fn split(text: &str, characters: usize) -> (&str, &str) {
    let end = text.char_indices().nth(characters).map_or(text.len(), |(at, _)| at);
    text.split_at(end)
}

/// The declared length of a type, in characters.
fn declared(arguments: &Arguments<'_>) -> Outcome<usize> {
    Ok(usize::try_from(arguments.integer(1)?).unwrap_or(0))
}

/// What has room, when a value is stored: blanks may be cut, and nothing else.
fn assigned<'a>(value: &'a str, length: usize, kind: &str) -> Outcome<&'a str> {
    let (kept, rest) = split(value, length);
    if rest.bytes().all(|byte| byte == b' ') {
        return Ok(kept);
    }
    refuse(ErrorKind::TooLong, format!("value too long for type {kind}({length})"))
}

pub(super) fn varchar(arguments: &Arguments<'_>) -> Outcome {
    text(assigned(&arguments.text(0)?, declared(arguments)?, "character varying")?)
}

pub(super) fn varchar_cut(arguments: &Arguments<'_>) -> Outcome {
    text(split(&arguments.text(0)?, declared(arguments)?).0)
}

pub(super) fn char(arguments: &Arguments<'_>) -> Outcome {
    text(assigned(&arguments.text(0)?, declared(arguments)?, "character")?.trim_end_matches(' '))
}

pub(super) fn char_cut(arguments: &Arguments<'_>) -> Outcome {
    text(split(&arguments.text(0)?, declared(arguments)?).0.trim_end_matches(' '))
}

/// One element of a pattern.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Element {
    One(u8),
    AnyOne,
    Any,
}

/// A pattern byte by byte: UTF-8 needs no more, since no character begins within another.
struct Pattern<'a> {
    bytes: &'a [u8],
    /// Bytes of the escape character.
    escape: &'a [u8],
}

impl Pattern<'_> {
    /// The element at a place, and the place behind it; `None` at the end.
    fn at(&self, place: usize) -> Outcome<Option<(Element, usize)>> {
        let rest = &self.bytes[place..];
        if !self.escape.is_empty() && rest.starts_with(self.escape) {
            let place = place + self.escape.len();
            return match self.bytes.get(place) {
                Some(byte) => Ok(Some((Element::One(*byte), place + 1))),
                None => refuse(ErrorKind::BadPattern, "LIKE pattern must not end with escape character"),
            };
        }
        Ok(rest.first().map(|byte| {
            let element = match byte {
                b'%' => Element::Any,
                b'_' => Element::AnyOne,
                byte => Element::One(*byte),
            };
            (element, place + 1)
        }))
    }
}

/// Where the character ends that begins at a place.
fn character_end(text: &[u8], place: usize) -> usize {
    let is_middle = |byte: &&u8| **byte & 0xC0 == 0x80;
    place + 1 + text[place + 1..].iter().take_while(is_middle).count()
}

/// Whether a text matches. Behind each `%` the rest is tried at one place after the other; when it fails, only the last
/// `%` moves on, since an earlier one could do nothing that the last cannot: as many steps as the product of the
/// lengths, at most.
fn matches(text: &[u8], pattern: &Pattern<'_>) -> Outcome<bool> {
    let (mut at, mut place) = (0, 0);
    let mut resume: Option<(usize, usize)> = None;
    while at < text.len() {
        let fits = match pattern.at(place)? {
            Some((Element::Any, next)) => {
                let Some((start, next)) = behind_any(text, at, pattern, next)? else { return Ok(false) };
                if next == pattern.bytes.len() {
                    return Ok(true);
                }
                (at, place) = (start, next);
                resume = Some((start, next));
                continue;
            }
            Some((Element::AnyOne, next)) => Some((character_end(text, at), next)),
            Some((Element::One(byte), next)) if byte == text[at] => Some((at + 1, next)),
            Some(_) | None => None,
        };
        match (fits, resume) {
            (Some((end, next)), _) => (at, place) = (end, next),
            (None, Some((start, next))) => {
                let start = character_end(text, start);
                (at, place) = (start, next);
                resume = Some((start, next));
            }
            (None, None) => return Ok(false),
        }
    }
    // PostgreSQL looks at the rest only for `%`: an escape at the end is no error then.
    let rest = &pattern.bytes[place..];
    Ok(rest.iter().all(|byte| *byte == b'%') && (pattern.escape != b"%" || rest.is_empty()))
}

/// Behind a `%`: skips more of them, and a character for each `_`. Where to go on in both, or `None`: the text is over.
fn behind_any(text: &[u8], at: usize, pattern: &Pattern<'_>, next: usize) -> Outcome<Option<(usize, usize)>> {
    let (mut at, mut place) = (at, next);
    while let Some((element, next)) = pattern.at(place)? {
        match element {
            Element::Any => {}
            Element::AnyOne if at == text.len() => return Ok(None),
            Element::AnyOne => at = character_end(text, at),
            Element::One(_) => break,
        }
        place = next;
    }
    Ok(Some((at, place)))
}

/// The escape character: the third argument, or a backslash. An empty one: there is none.
fn escape<'a>(arguments: &'a Arguments<'_>) -> Outcome<std::borrow::Cow<'a, str>> {
    if arguments.len() < 3 {
        return Ok("\\".into());
    }
    let escape = arguments.text(2)?;
    if escape.chars().count() > 1 {
        return refuse(ErrorKind::BadPattern, "invalid escape string");
    }
    Ok(escape)
}

pub(super) fn like(arguments: &Arguments<'_>) -> Outcome {
    let (value, pattern, escape) = (arguments.text(0)?, arguments.text(1)?, escape(arguments)?);
    let pattern = Pattern { bytes: pattern.as_bytes(), escape: escape.as_bytes() };
    matches(value.as_bytes(), &pattern).map(truth)
}

pub(super) fn ilike(arguments: &Arguments<'_>) -> Outcome {
    let (value, pattern, escape) = (arguments.text(0)?, arguments.text(1)?, escape(arguments)?);
    let (value, pattern) = (value.to_ascii_lowercase(), pattern.to_ascii_lowercase());
    let pattern = Pattern { bytes: pattern.as_bytes(), escape: escape.as_bytes() };
    matches(value.as_bytes(), &pattern).map(truth)
}

/// Characters from a position on, which is counted from 1 and may lie before the text.
pub(super) fn substr(arguments: &Arguments<'_>) -> Outcome {
    let (value, from) = (arguments.text(0)?, i128::from(arguments.integer(1)?));
    let start = from.max(1);
    let end = match arguments.len() {
        2 => i128::MAX,
        _ => {
            let count = i128::from(arguments.integer(2)?);
            if count < 0 {
                return refuse(ErrorKind::BadSubstring, "negative substring length not allowed");
            }
            from + count
        }
    };
    let skipped = usize::try_from(start - 1).unwrap_or(usize::MAX);
    let wanted = usize::try_from((end - start).max(0)).unwrap_or(usize::MAX);
    text(split(split(&value, skipped).1, wanted).0)
}

/// The position of a part, counted from 1; 0 if it is not there.
pub(super) fn strpos(arguments: &Arguments<'_>) -> Outcome {
    let (value, part) = (arguments.text(0)?, arguments.text(1)?);
    // Rust's search is linear in both.
    let found = value.find(&*part).map_or(0, |at| value[..at].chars().count() + 1);
    Ok(Value::Integer(found as i64))
}

/// The characters that fill a text up to a length, and the text, cut to it.
fn padded(arguments: &Arguments<'_>) -> Outcome<(String, String)> {
    let value = arguments.text(0)?;
    let fill = if arguments.len() > 2 { arguments.text(2)? } else { " ".into() };
    let length = usize::try_from(arguments.integer(1)?).unwrap_or(0);
    let (kept, _) = split(&value, length);
    let missing = length - kept.chars().count();
    if fill.is_empty() || missing == 0 {
        return Ok((String::new(), kept.into()));
    }
    let per_fill = fill.chars().count();
    let (whole, part) = (missing / per_fill, split(&fill, missing % per_fill).0);
    let bytes = whole.saturating_mul(fill.len()).saturating_add(part.len() + kept.len());
    room(bytes)?;
    pay(bytes)?;
    Ok((fill.repeat(whole) + part, kept.into()))
}

pub(super) fn lpad(arguments: &Arguments<'_>) -> Outcome {
    let (fill, value) = padded(arguments)?;
    text(fill + &value)
}

pub(super) fn rpad(arguments: &Arguments<'_>) -> Outcome {
    let (fill, value) = padded(arguments)?;
    text(value + &fill)
}

/// How many characters from the left a count means: a negative one leaves so many out at the other end.
fn counted(value: &str, count: i64) -> usize {
    let wanted = usize::try_from(count.unsigned_abs()).unwrap_or(usize::MAX);
    if count >= 0 { wanted } else { value.chars().count().saturating_sub(wanted) }
}

pub(super) fn left(arguments: &Arguments<'_>) -> Outcome {
    let (value, count) = (arguments.text(0)?, arguments.integer(1)?);
    text(split(&value, counted(&value, count)).0)
}

pub(super) fn right(arguments: &Arguments<'_>) -> Outcome {
    let (value, count) = (arguments.text(0)?, arguments.integer(1)?);
    let all = value.chars().count();
    text(split(&value, all.saturating_sub(counted(&value, count))).1)
}

pub(super) fn lower(arguments: &Arguments<'_>) -> Outcome {
    text(arguments.text(0)?.to_ascii_lowercase())
}

pub(super) fn upper(arguments: &Arguments<'_>) -> Outcome {
    text(arguments.text(0)?.to_ascii_uppercase())
}

/// The part with a number between separators; a negative number counts from the end.
pub(super) fn split_part(arguments: &Arguments<'_>) -> Outcome {
    let (value, separator, number) = (arguments.text(0)?, arguments.text(1)?, arguments.integer(2)?);
    if number == 0 {
        return refuse(ErrorKind::BadParameter, "field position must not be zero");
    }
    let skipped = usize::try_from(number.unsigned_abs() - 1).unwrap_or(usize::MAX);
    let found = match (separator.is_empty(), number > 0) {
        (true, _) => Some(&*value).filter(|_| skipped == 0),
        (false, true) => value.split(&*separator).nth(skipped),
        // Separators are found from the left here, too: those that overlap differ from the right.
        (false, false) => {
            let parts = value.split(&*separator).count();
            parts.checked_sub(skipped + 1).and_then(|place| value.split(&*separator).nth(place))
        }
    };
    text(found.unwrap_or_default())
}

pub(super) fn repeat(arguments: &Arguments<'_>) -> Outcome {
    let value = arguments.text(0)?;
    let count = usize::try_from(arguments.integer(1)?).unwrap_or(0);
    let bytes = value.len().saturating_mul(count);
    room(bytes)?;
    pay(bytes)?;
    text(if bytes == 0 { String::new() } else { value.repeat(count) })
}

pub(super) fn reverse(arguments: &Arguments<'_>) -> Outcome {
    text(arguments.text(0)?.chars().rev().collect::<String>())
}

/// Words begin with a capital letter. What is not ASCII is neither a letter nor changed, as in the locale C.
pub(super) fn initcap(arguments: &Arguments<'_>) -> Outcome {
    let mut is_within = false;
    let capital = |character: char| {
        let shown = if is_within { character.to_ascii_lowercase() } else { character.to_ascii_uppercase() };
        is_within = character.is_ascii_alphanumeric();
        shown
    };
    text(arguments.text(0)?.chars().map(capital).collect::<String>())
}

/// Each character of one list becomes that at its place in another, or nothing if that list is over.
pub(super) fn translate(arguments: &Arguments<'_>) -> Outcome {
    let (value, from, to) = (arguments.text(0)?, arguments.text(1)?, arguments.text(2)?);
    let mut others = BTreeMap::new();
    let mut to = to.chars();
    for character in from.chars() {
        let other = to.next();
        others.entry(character).or_insert(other);
    }
    let mut out = String::new();
    for character in value.chars() {
        out.extend(others.get(&character).copied().unwrap_or(Some(character)));
        room(out.len())?;
    }
    text(out)
}
