//! JSON: a text is checked, or written as PostgreSQL prints `jsonb`.

use super::call::{Arguments, Outcome, refuse, room};
use super::numeric;
use crate::error::ErrorKind;
use rusqlite::types::Value;

/// How deep arrays and objects may nest.
const DEPTH_MAX: usize = 1_000;

/// A value, with scalars as they are printed.
pub(super) enum Node {
    Scalar(String),
    Array(Vec<Self>),
    /// Members with printed keys, in the order of the keys.
    Object(Vec<(String, Self)>),
}

struct Reader<'a> {
    rest: &'a str,
    /// Whether strings and numbers are to be values of PostgreSQL's.
    binary: bool,
    depth: usize,
    /// Bytes that the scalars make.
    made: usize,
}

fn bad<T>() -> Outcome<T> {
    refuse(ErrorKind::BadText, "invalid input syntax for type json")
}

pub(super) fn input(arguments: &Arguments<'_>) -> Outcome {
    let text = arguments.text(0)?;
    Reader { rest: &text, binary: false, depth: 0, made: 0 }.document()?;
    Ok(Value::Text(text.into_owned()))
}

pub(super) fn input_binary(arguments: &Arguments<'_>) -> Outcome {
    let text = arguments.text(0)?;
    Node::of(&text)?.printed()
}

/// The characters of a string of JSON.
pub(super) fn unquoted(text: &str) -> Outcome<String> {
    if !text.starts_with('"') {
        return bad();
    }
    Reader { rest: text, binary: true, depth: 0, made: 0 }.string()
}

/// A text as a string of JSON.
pub(super) fn quoted(text: &str) -> String {
    let mut printed = String::with_capacity(text.len() + 2);
    print_string(text, &mut printed);
    printed
}

impl Node {
    /// The value that a text says.
    pub(super) fn of(text: &str) -> Outcome<Self> {
        Reader { rest: text, binary: true, depth: 0, made: 0 }.document()
    }

    /// An object of members, in the order of `jsonb`'s keys. Of equal keys the last one counts.
    pub(super) fn object(mut members: Vec<(String, Self)>) -> Self {
        // It is the first one that is kept.
        members.reverse();
        members.sort_by(|(left, _), (right, _)| (left.len(), left).cmp(&(right.len(), right)));
        members.dedup_by(|(later, _), (earlier, _)| later == earlier);
        Self::Object(members)
    }

    /// As PostgreSQL prints it.
    pub(super) fn printed(&self) -> Outcome {
        let mut printed = String::new();
        self.print(&mut printed);
        room(printed.len())?;
        Ok(Value::Text(printed))
    }

    fn print(&self, out: &mut String) {
        match self {
            Self::Scalar(text) => out.push_str(text),
            Self::Array(nodes) => {
                out.push('[');
                for (number, node) in nodes.iter().enumerate() {
                    out.push_str(if number == 0 { "" } else { ", " });
                    node.print(out);
                }
                out.push(']');
            }
            Self::Object(members) => {
                out.push('{');
                for (number, (key, node)) in members.iter().enumerate() {
                    out.push_str(if number == 0 { "" } else { ", " });
                    print_string(key, out);
                    out.push_str(": ");
                    node.print(out);
                }
                out.push('}');
            }
        }
    }
}

fn print_string(text: &str, out: &mut String) {
    out.push('"');
    for character in text.chars() {
        match character {
            '"' => out.push_str("\\\""),
            '\\' => out.push_str("\\\\"),
            '\u{8}' => out.push_str("\\b"),
            '\u{c}' => out.push_str("\\f"),
            '\n' => out.push_str("\\n"),
            '\r' => out.push_str("\\r"),
            '\t' => out.push_str("\\t"),
            control if control < ' ' => out.push_str(&format!("\\u{:04x}", u32::from(control))),
            other => out.push(other),
        }
    }
    out.push('"');
}

impl Reader<'_> {
    fn document(mut self) -> Outcome<Node> {
        let node = self.value()?;
        self.blanks();
        if self.rest.is_empty() { Ok(node) } else { bad() }
    }

    fn blanks(&mut self) {
        self.rest = self.rest.trim_start_matches([' ', '\t', '\n', '\r']);
    }

    /// Whether the next character, behind blanks, is this one; then it is taken.
    fn takes(&mut self, character: char) -> bool {
        self.blanks();
        match self.rest.strip_prefix(character) {
            Some(rest) => {
                self.rest = rest;
                true
            }
            None => false,
        }
    }

    fn value(&mut self) -> Outcome<Node> {
        self.blanks();
        match self.rest.bytes().next() {
            Some(b'{') => self.nested(Self::object),
            Some(b'[') => self.nested(Self::array),
            Some(b'"') => {
                let string = self.string()?;
                let mut printed = String::new();
                print_string(&string, &mut printed);
                self.scalar(printed)
            }
            Some(b'-' | b'0'..=b'9') => self.number(),
            _ => self.word(),
        }
    }

    fn scalar(&mut self, printed: String) -> Outcome<Node> {
        self.made += printed.len();
        room(self.made)?;
        Ok(Node::Scalar(printed))
    }

    fn nested(&mut self, read: impl FnOnce(&mut Self) -> Outcome<Node>) -> Outcome<Node> {
        self.depth += 1;
        if self.depth > DEPTH_MAX {
            return refuse(ErrorKind::TooDeep, format!("JSON is nested deeper than {DEPTH_MAX}"));
        }
        self.rest = &self.rest[1..];
        let node = read(self)?;
        self.depth -= 1;
        Ok(node)
    }

    fn array(&mut self) -> Outcome<Node> {
        let mut nodes = Vec::new();
        if self.takes(']') {
            return Ok(Node::Array(nodes));
        }
        loop {
            nodes.push(self.value()?);
            if self.takes(']') {
                return Ok(Node::Array(nodes));
            }
            if !self.takes(',') {
                return bad();
            }
        }
    }

    fn object(&mut self) -> Outcome<Node> {
        let mut members: Vec<(String, Node)> = Vec::new();
        if self.takes('}') {
            return Ok(Node::Object(members));
        }
        loop {
            self.blanks();
            if !self.rest.starts_with('"') {
                return bad();
            }
            let key = self.string()?;
            if !self.takes(':') {
                return bad();
            }
            members.push((key, self.value()?));
            if self.takes('}') {
                break;
            }
            if !self.takes(',') {
                return bad();
            }
        }
        Ok(Node::object(members))
    }

    fn word(&mut self) -> Outcome<Node> {
        for word in ["true", "false", "null"] {
            if let Some(rest) = self.rest.strip_prefix(word) {
                self.rest = rest;
                return if goes_on(rest) { bad() } else { self.scalar(word.into()) };
            }
        }
        bad()
    }

    fn number(&mut self) -> Outcome<Node> {
        let digits = |text: &str| text.bytes().take_while(u8::is_ascii_digit).count();
        let all = self.rest;
        let mut rest = all.strip_prefix('-').unwrap_or(all);
        let whole = digits(rest);
        if whole == 0 || whole > 1 && rest.starts_with('0') {
            return bad();
        }
        rest = &rest[whole..];
        if let Some(behind) = rest.strip_prefix('.') {
            let count = digits(behind);
            if count == 0 {
                return bad();
            }
            rest = &behind[count..];
        }
        if let Some(behind) = rest.strip_prefix(['e', 'E']) {
            let behind = behind.strip_prefix(['+', '-']).unwrap_or(behind);
            let count = digits(behind);
            if count == 0 {
                return bad();
            }
            rest = &behind[count..];
        }
        if goes_on(rest) {
            return bad();
        }
        self.rest = rest;
        let spelled = &all[..all.len() - rest.len()];
        let printed = if self.binary { numeric::canonical(spelled)? } else { String::new() };
        self.scalar(printed)
    }

    /// The characters of a string. In `json` escapes are only looked at.
    fn string(&mut self) -> Outcome<String> {
        let mut string = String::new();
        let mut rest = &self.rest[1..];
        loop {
            let plain = rest.bytes().take_while(|byte| !matches!(byte, b'"' | b'\\' | 0..=31)).count();
            string.push_str(&rest[..plain]);
            rest = &rest[plain..];
            let mut characters = rest.chars();
            match (characters.next(), characters.next()) {
                (Some('"'), _) => {
                    self.rest = &rest[1..];
                    return Ok(string);
                }
                (Some('\\'), Some('u')) => {
                    let (character, length) = self.unicode(&rest[2..])?;
                    string.push(character);
                    rest = &rest[2 + length..];
                }
                (Some('\\'), Some(escaped)) => {
                    string.push(match escaped {
                        '"' | '\\' | '/' => escaped,
                        'b' => '\u{8}',
                        'f' => '\u{c}',
                        'n' => '\n',
                        'r' => '\r',
                        't' => '\t',
                        _ => return bad(),
                    });
                    rest = &rest[2..];
                }
                _ => return bad(),
            }
        }
    }

    /// The character behind `\u`, and how many bytes spell it: two surrogates are one.
    fn unicode(&self, text: &str) -> Outcome<(char, usize)> {
        const REPLACED: char = '\u{fffd}';
        let high = hexadecimal(text)?;
        if !self.binary {
            return Ok((REPLACED, 4));
        }
        if high == 0 {
            return refuse(ErrorKind::BadCharacter, "unsupported Unicode escape sequence");
        }
        if (0xD800..0xDC00).contains(&high) {
            let Some(rest) = text[4..].strip_prefix("\\u") else { return bad() };
            let low = hexadecimal(rest)?;
            if !(0xDC00..0xE000).contains(&low) {
                return bad();
            }
            let code = 0x1_0000 + ((high - 0xD800) << 10) + (low - 0xDC00);
            return Ok((char::from_u32(code).unwrap_or(REPLACED), 10));
        }
        match char::from_u32(high) {
            Some(character) => Ok((character, 4)),
            None => bad(),
        }
    }
}

/// Four hexadecimal digits.
fn hexadecimal(text: &str) -> Outcome<u32> {
    let digits = text.get(..4).filter(|digits| digits.bytes().all(|byte| byte.is_ascii_hexdigit()));
    match digits.and_then(|digits| u32::from_str_radix(digits, 16).ok()) {
        Some(number) => Ok(number),
        None => bad(),
    }
}

/// Whether a word or number does not end where it should.
fn goes_on(rest: &str) -> bool {
    rest.starts_with(|c: char| c.is_ascii_alphanumeric() || c == '_' || !c.is_ascii())
}
