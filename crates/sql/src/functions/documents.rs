//! Parts of JSON: what `->`, `#>`, `@>` and the like find in a document, and how documents are made of values.
//!
//! A document is looked through as text and never copied whole: what is found is a piece of it, which is in `jsonb`'s
//! one form if the whole is.

use super::aggregate::Fold;
use super::call::{Arguments, Charge, Outcome, Refusal, refuse, room, truth};
use super::json::{self, Node};
use super::{input, numeric};
use crate::error::ErrorKind;
use crate::meter;
use rusqlite::types::Value;
use std::cmp::Ordering;
use std::collections::VecDeque;

/// Bytes of the value that a text begins with, if it is one.
fn length(text: &str) -> Option<usize> {
    let (mut depth, mut at) = (0_u32, 0);
    let bytes = text.as_bytes();
    loop {
        match *bytes.get(at)? {
            b'"' => at += string(&text[at..])?,
            b'{' | b'[' => {
                depth += 1;
                at += 1;
            }
            b'}' | b']' => {
                depth = depth.checked_sub(1)?;
                at += 1;
            }
            _ if depth > 0 => at += 1,
            _ => {
                let is_end = |byte: &u8| matches!(byte, b',' | b':' | b'}' | b']' | b' ' | b'\t' | b'\n' | b'\r');
                let end = bytes[at..].iter().position(is_end).map_or(bytes.len(), |end| at + end);
                return (end > at).then_some(end);
            }
        }
        if depth == 0 {
            return Some(at);
        }
    }
}

/// Bytes of the string that a text begins with.
fn string(text: &str) -> Option<usize> {
    let bytes = text.as_bytes();
    let mut at = 1;
    loop {
        match *bytes.get(at)? {
            b'"' => return Some(at + 1),
            b'\\' => at += 2,
            _ => at += 1,
        }
    }
}

/// The members of an object, each with its key as it is written, or the elements of an array, each with none.
struct Parts<'a> {
    rest: &'a str,
    is_object: bool,
}

impl<'a> Parts<'a> {
    /// `None`: it is neither.
    fn of(document: &'a str) -> Option<Self> {
        let document = blank(document);
        let is_object = document.starts_with('{');
        (is_object || document.starts_with('[')).then(|| Self { rest: &document[1..], is_object })
    }

    fn take(&mut self) -> Option<&'a str> {
        self.rest = blank(self.rest);
        let (taken, rest) = self.rest.split_at_checked(length(self.rest)?)?;
        self.rest = rest;
        Some(taken)
    }
}

impl<'a> Iterator for Parts<'a> {
    type Item = (&'a str, &'a str);

    fn next(&mut self) -> Option<Self::Item> {
        self.rest = blank(self.rest);
        self.rest = blank(self.rest.strip_prefix(',').unwrap_or(self.rest));
        let mut key = "";
        if self.is_object {
            key = self.take()?;
            self.rest = blank(self.rest).strip_prefix(':')?;
        }
        Some((key, self.take()?))
    }
}

fn blank(text: &str) -> &str {
    text.trim_start_matches([' ', '\t', '\n', '\r'])
}

fn piece(found: Option<&str>) -> Outcome {
    Ok(found.map_or(Value::Null, |found| Value::Text(found.into())))
}

/// The member with a key; of several the last.
fn member<'a>(document: &'a str, key: &str) -> Outcome<Option<&'a str>> {
    let mut found = None;
    for (name, value) in Parts::of(document).into_iter().filter(|parts| parts.is_object).flatten() {
        if json::unquoted(name)? == key {
            found = Some(value);
        }
    }
    Ok(found)
}

/// The element at a place, from 0 on, or from the end on below that.
fn element(document: &str, place: i64) -> Option<&str> {
    let elements = || Parts::of(document).into_iter().filter(|parts| !parts.is_object).flatten();
    let place = match usize::try_from(place) {
        Ok(place) => place,
        Err(_) => elements().count().checked_sub(usize::try_from(place.unsigned_abs()).ok()?)?,
    };
    elements().nth(place).map(|(_, value)| value)
}

/// `->` with a key.
pub(super) fn field(arguments: &Arguments<'_>) -> Outcome {
    piece(member(&arguments.text(0)?, &arguments.text(1)?)?)
}

/// `->` with a place.
pub(super) fn item(arguments: &Arguments<'_>) -> Outcome {
    piece(element(&arguments.text(0)?, arguments.integer(1)?))
}

/// The same of `jsonb`, where a scalar is the only element of itself.
pub(super) fn item_or_scalar(arguments: &Arguments<'_>) -> Outcome {
    let (document, place) = (arguments.text(0)?, arguments.integer(1)?);
    match Parts::of(&document) {
        None => piece(Some(&*document).filter(|_| matches!(place, 0 | -1))),
        Some(_) => piece(element(&document, place)),
    }
}

/// One step of a path: a key of an object, a place in an array.
pub(super) fn step(arguments: &Arguments<'_>) -> Outcome {
    let (document, name) = (arguments.text(0)?, arguments.text(1)?);
    match Parts::of(&document) {
        Some(Parts { is_object: true, .. }) => piece(member(&document, &name)?),
        Some(_) => piece(name.trim_matches(input::is_blank).parse().ok().and_then(|place| element(&document, place))),
        None => Ok(Value::Null),
    }
}

/// What `->>` shows of a value: a string without quotes, null as none, and the rest as it is.
pub(super) fn shown(arguments: &Arguments<'_>) -> Outcome {
    let text = arguments.text(0)?;
    Ok(match blank(&text) {
        "null" => Value::Null,
        quoted if quoted.starts_with('"') => Value::Text(json::unquoted(quoted)?),
        other => Value::Text(other.into()),
    })
}

/// `?`: whether a string is a key of an object, an element of an array, or the document.
pub(super) fn has(arguments: &Arguments<'_>) -> Outcome {
    let (document, wanted) = (arguments.text(0)?, arguments.text(1)?);
    let is_it = |text: &str| Ok::<bool, Refusal>(text.starts_with('"') && json::unquoted(text)? == *wanted);
    let Some(parts) = Parts::of(&document) else { return is_it(blank(&document)).map(truth) };
    let is_object = parts.is_object;
    for (key, value) in parts {
        if is_it(if is_object { key } else { value })? {
            return Ok(truth(true));
        }
    }
    Ok(truth(false))
}

fn is_equal(left: &str, right: &str) -> bool {
    let is_number = |text: &str| text.starts_with(|first: char| first == '-' || first.is_ascii_digit());
    if is_number(left) && is_number(right) {
        return numeric::compare(left, right) == Ordering::Equal;
    }
    left == right
}

fn contained(left: &Node, right: &Node) -> bool {
    match (left, right) {
        (Node::Scalar(left), Node::Scalar(right)) => is_equal(left, right),
        (Node::Array(left), Node::Array(right)) => {
            right.iter().all(|wanted| left.iter().any(|own| contained(own, wanted)))
        }
        (Node::Object(left), Node::Object(right)) => right.iter().all(|(key, wanted)| {
            left.iter().find(|(own, _)| own == key).is_some_and(|(_, own)| contained(own, wanted))
        }),
        _ => false,
    }
}

/// `@>`: whether all of the second document is in the first. An array may have a scalar that stands alone in it.
pub(super) fn contains(arguments: &Arguments<'_>) -> Outcome {
    let (left, right) = (Node::of(&arguments.text(0)?)?, Node::of(&arguments.text(1)?)?);
    let is_element = || {
        matches!((&left, &right), (Node::Array(all), Node::Scalar(_))
        if all.iter().any(|own| contained(own, &right)))
    };
    Ok(truth(contained(&left, &right) || is_element()))
}

/// `||` of `jsonb`: members of both objects, or elements of both, what is no array being one of itself alone.
pub(super) fn concat(arguments: &Arguments<'_>) -> Outcome {
    let (left, right) = (Node::of(&arguments.text(0)?)?, Node::of(&arguments.text(1)?)?);
    let elements = |node: Node| if let Node::Array(nodes) = node { nodes } else { vec![node] };
    match (left, right) {
        (Node::Object(left), Node::Object(right)) => Node::object(left.into_iter().chain(right).collect()).printed(),
        (left, right) => Node::Array(elements(left).into_iter().chain(elements(right)).collect()).printed(),
    }
}

pub(super) fn array_length(arguments: &Arguments<'_>) -> Outcome {
    let document = arguments.text(0)?;
    match Parts::of(&document) {
        Some(parts) if !parts.is_object => Ok(Value::Integer(parts.count() as i64)),
        Some(_) => refuse(ErrorKind::BadParameter, "cannot get array length of a non-array"),
        None => refuse(ErrorKind::BadParameter, "cannot get array length of a scalar"),
    }
}

pub(super) fn kind(arguments: &Arguments<'_>) -> Outcome {
    let document = arguments.text(0)?;
    let kind = match blank(&document).bytes().next() {
        Some(b'{') => "object",
        Some(b'[') => "array",
        Some(b'"') => "string",
        Some(b't' | b'f') => "boolean",
        Some(b'n') => "null",
        _ => "number",
    };
    Ok(Value::Text(kind.into()))
}

/// A text as a string of JSON.
pub(super) fn quoted(arguments: &Arguments<'_>) -> Outcome {
    Ok(Value::Text(json::quoted(&arguments.text(0)?)))
}

/// A floating-point number: JSON has no infinite one, and says so in a string.
pub(super) fn number(arguments: &Arguments<'_>) -> Outcome {
    let text = arguments.text(0)?;
    Ok(Value::Text(if text.ends_with("inity") { json::quoted(&text) } else { text.into_owned() }))
}

/// A moment with a `T` in it, and minutes behind the hours of its zone.
pub(super) fn moment(arguments: &Arguments<'_>) -> Outcome {
    let text = arguments.text(0)?.replacen(' ', "T", 1);
    let zone = text.find('T').and_then(|from| text[from..].find(['+', '-']).map(|at| from + at));
    let lacks_minutes = zone.is_some_and(|at| !text[at..].contains(':'));
    Ok(Value::Text(format!("\"{text}{}\"", if lacks_minutes { ":00" } else { "" })))
}

/// A value as a key: a string, whatever it was.
pub(super) fn key(arguments: &Arguments<'_>) -> Outcome {
    let text = arguments.text(0)?;
    Ok(Value::Text(if text.starts_with('"') { text.into_owned() } else { json::quoted(&text) }))
}

/// A key is missing.
pub(super) fn no_key(_: &Arguments<'_>) -> Outcome {
    refuse(ErrorKind::BadParameter, "field name must not be null")
}

/// The strings of an array, sorted, with a separator between them; backwards if the third argument says so.
pub(super) fn joined(arguments: &Arguments<'_>) -> Outcome {
    let (document, separator) = (arguments.text(0)?, arguments.text(1)?);
    let strings = Parts::of(&document).into_iter().flatten().map(|(_, string)| json::unquoted(string));
    let mut strings = strings.collect::<Outcome<Vec<_>>>()?;
    strings.sort_unstable();
    if arguments.integer(2)? != 0 {
        strings.reverse();
    }
    let bytes = strings.iter().map(|string| string.len().saturating_add(separator.len()));
    room(bytes.fold(0, usize::saturating_add))?;
    Ok(Value::Text(strings.join(&separator)))
}

/// Pieces of a document that rows make, one after the other.
#[derive(Default)]
pub(super) struct Gathered {
    pieces: VecDeque<String>,
    bytes: usize,
}

impl Gathered {
    fn push(&mut self, piece: String) -> Outcome<()> {
        self.bytes += piece.len() + SEPARATOR_BYTES;
        room(self.bytes)?;
        let bytes = held(&piece);
        self.pieces.push_back(piece);
        if meter::hold(bytes) { Err(Refusal::Spent) } else { Ok(()) }
    }

    fn pop(&mut self) {
        let Some(piece) = self.pieces.pop_front() else { return };
        self.bytes -= piece.len() + SEPARATOR_BYTES;
        meter::release(held(&piece));
    }

    fn joined(&self, begin: &str, separator: &str, end: &str) -> Outcome {
        let mut out = String::with_capacity(self.bytes + begin.len() + end.len());
        out.push_str(begin);
        for (number, piece) in self.pieces.iter().enumerate() {
            out.push_str(if number == 0 { "" } else { separator });
            out.push_str(piece);
        }
        out.push_str(end);
        Ok(Value::Text(out))
    }
}

impl Drop for Gathered {
    fn drop(&mut self) {
        meter::release(self.pieces.iter().map(|piece| held(piece)).sum());
    }
}

/// Bytes of memory that a piece takes, with what is around it.
fn held(piece: &str) -> i64 {
    (piece.len() + PIECE_BYTES) as i64
}

/// What a piece takes besides its text: its place in the list, and what an allocation costs.
const PIECE_BYTES: usize = 64;

/// What stands between two pieces, at most.
const SEPARATOR_BYTES: usize = 4;

/// An array of values; `ROWS` stand each in a line of its own.
#[derive(Default)]
pub(super) struct ArrayOf<const ROWS: bool>(Gathered);

impl<const ROWS: bool> Fold for ArrayOf<ROWS> {
    const CHARGE: Charge = Charge::Bytes(2);

    fn add(&mut self, arguments: &Arguments<'_>) -> Outcome<()> {
        self.0.push(arguments.text(0)?.into_owned())
    }

    fn remove(&mut self, _: &Arguments<'_>) -> Outcome<()> {
        self.0.pop();
        Ok(())
    }

    fn value(&self) -> Outcome {
        self.0.joined("[", if ROWS { ", \n " } else { ", " }, "]")
    }
}

/// An object of keys and values.
#[derive(Default)]
pub(super) struct ObjectOf(Gathered);

impl Fold for ObjectOf {
    const CHARGE: Charge = Charge::Bytes(2);

    fn add(&mut self, arguments: &Arguments<'_>) -> Outcome<()> {
        self.0.push(format!("{} : {}", arguments.text(0)?, arguments.text(1)?))
    }

    fn remove(&mut self, _: &Arguments<'_>) -> Outcome<()> {
        self.0.pop();
        Ok(())
    }

    fn value(&self) -> Outcome {
        self.0.joined("{ ", ", ", " }")
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn parts_are_found_where_they_are() {
        let document = r#" {"a" : [1, {"b":"]"}, "x\"y"], "c":{} , "a": null}"#;
        let parts: Vec<_> = Parts::of(document).unwrap().collect();
        assert_eq!(parts, [("\"a\"", r#"[1, {"b":"]"}, "x\"y"]"#), ("\"c\"", "{}"), ("\"a\"", "null")]);
        assert_eq!(member(document, "a"), Ok(Some("null")));
        assert_eq!(element("[1, [2], 3]", -2), Some("[2]"));
        assert_eq!(element("[1]", -2), None);
        assert!(Parts::of("1").is_none() && Parts::of("").is_none());
    }

    proptest! {
        /// Whatever stands in a document, looking through it ends.
        #[test]
        fn any_text_has_parts_or_none(text in r#"([\[\]{},: "\\a1]|\PC){0,40}"#, place in any::<i64>()) {
            let count = Parts::of(&text).map_or(0, Iterator::count);
            prop_assert!(count <= text.len());
            let _ = element(&text, place);
            let _ = member(&text, "a");
        }
    }
}
