//! Regular expressions as PostgreSQL writes them: the part of them that can be decided in linear time.
//!
//! A pattern is read here and written anew for the matcher, every character of it by its ranges, so that nothing
//! depends on what the two languages have in common. What finds more than a matcher without memory can (references,
//! looking ahead) is refused, as is what nobody has tried.
//!
//! Whether a text matches is the same by any matcher. Which part of it matches is not: PostgreSQL takes the longest,
//! ours goes by the order of the branches. They agree where no character leaves a choice ([`Pattern::is_certain`]).

use super::call::{Outcome, refuse};
use crate::error::ErrorKind;
use std::fmt::Write as _;

/// Bytes of a pattern.
const BYTES_MAX: usize = 1_024;
/// How deep parentheses may nest.
const DEPTH_MAX: usize = 20;
/// Characters and choices that a pattern stands for, all its repetitions written out.
const STATES_MAX: usize = 2_000;
/// The largest number of repetitions, as PostgreSQL has it.
const REPEAT_MAX: u32 = 255;

/// Ranges of characters.
type Class = Vec<(char, char)>;

#[derive(Debug)]
enum Node {
    Class(Class),
    /// Takes no character: how the matcher says it.
    Place(&'static str),
    Group(Box<Self>, bool),
    Repeat(Box<Self>, u32, Option<u32>, bool),
    Sequence(Vec<Self>),
    Either(Vec<Self>),
}

/// A pattern.
#[derive(Debug)]
pub(super) struct Pattern {
    node: Node,
    /// How much it stands for.
    pub(super) states: usize,
}

fn bad<T>(what: &str) -> Outcome<T> {
    refuse(ErrorKind::BadRegex, format!("invalid regular expression: {what}"))
}

fn unsupported<T>(what: &str) -> Outcome<T> {
    refuse(ErrorKind::NotAllowed, format!("{what} in a regular expression is not supported"))
}

impl Pattern {
    /// Reads a pattern; `folds`: upper and lower case are the same.
    pub(super) fn of(text: &str, folds: bool) -> Outcome<Self> {
        if text.len() > BYTES_MAX {
            return refuse(ErrorKind::TooLarge, format!("a regular expression is longer than {BYTES_MAX} bytes"));
        }
        if text.starts_with("***") {
            return unsupported("***");
        }
        let mut reader = Reader { rest: text, folds, depth: 0 };
        let node = reader.either()?;
        if !reader.rest.is_empty() {
            return bad("parentheses () not balanced");
        }
        let states = node.states();
        if states > STATES_MAX {
            return refuse(ErrorKind::TooLarge, "a regular expression is too complex");
        }
        Ok(Self { node, states })
    }

    /// In the matcher's words.
    pub(super) fn written(&self) -> String {
        let mut out = String::new();
        self.node.write(&mut out);
        out
    }

    /// Whether no two ways lead through a text, and all of them want as much as they can get.
    pub(super) fn is_certain(&self) -> bool {
        let (_, is_empty) = self.node.first();
        !is_empty && self.node.is_certain(&[])
    }

    /// How many parentheses it has that remember what they found.
    pub(super) fn groups(&self) -> usize {
        self.node.groups()
    }
}

impl Node {
    fn states(&self) -> usize {
        match self {
            Self::Class(class) => 1 + class.len() / 8,
            Self::Place(_) => 1,
            Self::Group(inner, _) => 2 + inner.states(),
            Self::Repeat(inner, least, most, _) => {
                let times = most.unwrap_or(least + 1).max(1) as usize;
                inner.states().saturating_mul(times).saturating_add(times)
            }
            Self::Sequence(all) | Self::Either(all) => {
                all.iter().fold(all.len(), |sum, node| sum.saturating_add(node.states()))
            }
        }
    }

    fn groups(&self) -> usize {
        match self {
            Self::Class(_) | Self::Place(_) => 0,
            Self::Group(inner, remembers) => usize::from(*remembers) + inner.groups(),
            Self::Repeat(inner, ..) => inner.groups(),
            Self::Sequence(all) | Self::Either(all) => all.iter().map(Self::groups).sum(),
        }
    }

    fn write(&self, out: &mut String) {
        match self {
            Self::Class(class) if class.is_empty() => out.push_str(r"[^\x{0}-\x{10FFFF}]"),
            Self::Class(class) => {
                out.push('[');
                for (from, to) in class {
                    write!(out, "\\x{{{:X}}}-\\x{{{:X}}}", u32::from(*from), u32::from(*to))
                        .expect("a string takes all");
                }
                out.push(']');
            }
            Self::Place(word) => out.push_str(word),
            Self::Group(inner, remembers) => {
                out.push_str(if *remembers { "(" } else { "(?:" });
                inner.write(out);
                out.push(')');
            }
            Self::Repeat(inner, least, most, greedy) => {
                out.push_str("(?:");
                inner.write(out);
                let most = most.map(|most| most.to_string()).unwrap_or_default();
                write!(out, "){{{least},{most}}}{}", if *greedy { "" } else { "?" }).expect("a string takes all");
            }
            Self::Sequence(all) => all.iter().for_each(|node| node.write(out)),
            Self::Either(all) => {
                for (number, node) in all.iter().enumerate() {
                    out.push_str(if number == 0 { "" } else { "|" });
                    node.write(out);
                }
            }
        }
    }

    /// The characters that it can begin with, and whether it may take none.
    fn first(&self) -> (Class, bool) {
        match self {
            Self::Class(class) => (class.clone(), false),
            Self::Place(_) => (Vec::new(), true),
            Self::Group(inner, _) => inner.first(),
            Self::Repeat(inner, least, ..) => {
                let (class, is_empty) = inner.first();
                (class, is_empty || *least == 0)
            }
            Self::Sequence(all) => first_of(all),
            Self::Either(all) => {
                let mut both = (Vec::new(), false);
                for node in all {
                    let (class, is_empty) = node.first();
                    both.0.extend(class);
                    both.1 |= is_empty;
                }
                both
            }
        }
    }

    /// See [`Pattern::is_certain`]; these characters may come next.
    fn is_certain(&self, next: &[(char, char)]) -> bool {
        match self {
            Self::Class(_) | Self::Place(_) => true,
            Self::Group(inner, _) => inner.is_certain(next),
            Self::Repeat(inner, least, most, greedy) => {
                let (class, is_empty) = inner.first();
                let varies = *most != Some(*least);
                let mut behind = next.to_vec();
                behind.extend(&class);
                !is_empty && *greedy && !(varies && meet(&class, next)) && inner.is_certain(&behind)
            }
            Self::Sequence(all) => (0..all.len()).all(|at| {
                let (mut behind, is_empty) = first_of(&all[at + 1..]);
                if is_empty {
                    behind.extend(next);
                }
                all[at].is_certain(&behind)
            }),
            Self::Either(all) => {
                let firsts: Vec<_> = all.iter().map(Self::first).collect();
                let is_apart = |at: usize| firsts[..at].iter().all(|(class, _)| !meet(class, &firsts[at].0));
                let is_apart = (0..all.len()).all(|at| !firsts[at].1 && is_apart(at));
                is_apart && all.iter().all(|node| node.is_certain(next))
            }
        }
    }
}

fn first_of(all: &[Node]) -> (Class, bool) {
    let mut class = Vec::new();
    for node in all {
        let (own, is_empty) = node.first();
        class.extend(own);
        if !is_empty {
            return (class, false);
        }
    }
    (class, true)
}

fn meet(left: &[(char, char)], right: &[(char, char)]) -> bool {
    left.iter().any(|(from, to)| right.iter().any(|(other, end)| from <= end && other <= to))
}

struct Reader<'a> {
    rest: &'a str,
    folds: bool,
    depth: usize,
}

impl Reader<'_> {
    fn take(&mut self) -> Option<char> {
        let mut characters = self.rest.chars();
        let next = characters.next();
        self.rest = characters.as_str();
        next
    }

    fn takes(&mut self, word: &str) -> bool {
        let rest = self.rest.strip_prefix(word);
        self.rest = rest.unwrap_or(self.rest);
        rest.is_some()
    }

    fn either(&mut self) -> Outcome<Node> {
        let mut all = vec![self.sequence()?];
        while self.takes("|") {
            all.push(self.sequence()?);
        }
        Ok(if all.len() == 1 { all.swap_remove(0) } else { Node::Either(all) })
    }

    fn sequence(&mut self) -> Outcome<Node> {
        let mut all = Vec::new();
        while !self.rest.is_empty() && !self.rest.starts_with(['|', ')']) {
            let atom = self.atom()?;
            all.push(self.quantified(atom)?);
        }
        Ok(Node::Sequence(all))
    }

    /// How often an atom comes.
    fn quantified(&mut self, atom: Node) -> Outcome<Node> {
        let Some((least, most)) = self.quantifier()? else { return Ok(atom) };
        let greedy = !self.takes("?");
        if matches!(atom, Node::Place(_)) || self.quantifier()?.is_some() {
            return bad("quantifier operand invalid");
        }
        Ok(Node::Repeat(Box::new(atom), least, most, greedy))
    }

    fn quantifier(&mut self) -> Outcome<Option<(u32, Option<u32>)>> {
        let rest = self.rest;
        let is_bound = rest.starts_with('{') && rest[1..].starts_with(|next: char| next.is_ascii_digit());
        Ok(match rest.chars().next() {
            Some('*') => self.take().map(|_| (0, None)),
            Some('+') => self.take().map(|_| (1, None)),
            Some('?') => self.take().map(|_| (0, Some(1))),
            Some('{') if is_bound => {
                self.take();
                Some(self.bound()?)
            }
            _ => None,
        })
    }

    /// `m}`, `m,}` or `m,n}`.
    fn bound(&mut self) -> Outcome<(u32, Option<u32>)> {
        let least = self.number()?;
        let most = match self.takes(",") {
            false => Some(least),
            true if self.rest.starts_with('}') => None,
            true => Some(self.number()?),
        };
        if !self.takes("}") || most.is_some_and(|most| most < least) {
            return bad("invalid repetition count(s)");
        }
        Ok((least, most))
    }

    fn number(&mut self) -> Outcome<u32> {
        let (digits, rest) = self.rest.split_at(super::input::digits(self.rest));
        self.rest = rest;
        match digits.parse() {
            Ok(number) if number <= REPEAT_MAX => Ok(number),
            _ => bad("invalid repetition count(s)"),
        }
    }

    fn atom(&mut self) -> Outcome<Node> {
        match self.take() {
            Some('(') => self.group(),
            Some('[') if self.takes("[:<:]]") || self.takes("[:>:]]") => unsupported("[[:<:]]"),
            Some('[') => self.bracket().map(Node::Class),
            Some('.') => Ok(Node::Class(vec![('\0', char::MAX)])),
            Some('^') => Ok(Node::Place(r"\A")),
            Some('$') => Ok(Node::Place(r"\z")),
            Some('\\') => self.escape(),
            Some('*' | '+' | '?') => bad("quantifier operand invalid"),
            Some('{') if self.rest.starts_with(|next: char| next.is_ascii_digit()) => bad("quantifier operand invalid"),
            Some(other) => Ok(Node::Class(self.one(other))),
            None => bad("an atom is missing"),
        }
    }

    fn group(&mut self) -> Outcome<Node> {
        self.depth += 1;
        if self.depth > DEPTH_MAX {
            return refuse(ErrorKind::TooDeep, "a regular expression is nested too deep");
        }
        let remembers = !self.takes("?:");
        if remembers && self.rest.starts_with('?') {
            return unsupported("(?");
        }
        let inner = self.either()?;
        if !self.takes(")") {
            return bad("parentheses () not balanced");
        }
        self.depth -= 1;
        Ok(Node::Group(Box::new(inner), remembers))
    }

    /// One character, in both cases if they are the same.
    fn one(&self, character: char) -> Class {
        let mut class = vec![(character, character)];
        if self.folds && character.is_ascii_alphabetic() {
            let other = (u8::try_from(character).unwrap_or(0) ^ 32).into();
            class.push((other, other));
        }
        class
    }

    fn escape(&mut self) -> Outcome<Node> {
        let Some(escaped) = self.take() else { return bad("invalid escape \\ sequence") };
        if let Some(class) = class_of(escaped) {
            return Ok(Node::Class(class));
        }
        Ok(match escaped {
            'A' => Node::Place(r"\A"),
            'Z' => Node::Place(r"\z"),
            'y' => Node::Place(r"\b"),
            'Y' => Node::Place(r"\B"),
            other => Node::Class(self.one(character_of(other)?)),
        })
    }

    /// Behind `[`.
    fn bracket(&mut self) -> Outcome<Class> {
        let is_not = self.takes("^");
        let mut class = Vec::new();
        let mut is_first = true;
        while is_first || !self.takes("]") {
            is_first = false;
            if self.rest.starts_with("[:") {
                class.extend(self.named()?);
                continue;
            }
            let Some(from) = self.member(&mut class)? else { continue };
            let is_range = self.rest.starts_with('-') && !self.rest.starts_with("-]");
            if !is_range {
                class.extend(self.one(from));
                continue;
            }
            self.take();
            let Some(to) = self.member(&mut Vec::new())? else { return bad("invalid character range") };
            if to < from {
                return bad("invalid character range");
            }
            class.push((from, to));
            if self.folds {
                class.extend(other_case(from, to));
            }
        }
        Ok(if is_not { negated(class) } else { class })
    }

    /// A character of a bracket; `None`: a class of them, which has been added.
    fn member(&mut self, class: &mut Class) -> Outcome<Option<char>> {
        match self.take() {
            None => bad("brackets [] not balanced"),
            Some('[') if self.rest.starts_with(['.', '=', ':']) => unsupported("a collating element"),
            Some('\\') => {
                let Some(escaped) = self.take() else { return bad("invalid escape \\ sequence") };
                match class_of(escaped) {
                    Some(_) if escaped.is_ascii_uppercase() => unsupported("a negated class in brackets"),
                    Some(all) => {
                        class.extend(all);
                        Ok(None)
                    }
                    None => character_of(escaped).map(Some),
                }
            }
            Some(other) => Ok(Some(other)),
        }
    }

    /// `[:alpha:]`
    fn named(&mut self) -> Outcome<Class> {
        let Some((name, rest)) = self.rest[2..].split_once(":]") else { return bad("brackets [] not balanced") };
        self.rest = rest;
        let name = if self.folds && matches!(name, "lower" | "upper") { "alpha" } else { name };
        Ok(match name {
            "alpha" => vec![('A', 'Z'), ('a', 'z')],
            "digit" => vec![('0', '9')],
            "alnum" => vec![('0', '9'), ('A', 'Z'), ('a', 'z')],
            "upper" => vec![('A', 'Z')],
            "lower" => vec![('a', 'z')],
            "space" => SPACE.to_vec(),
            "blank" => vec![(' ', ' '), ('\t', '\t')],
            "punct" => vec![('!', '/'), (':', '@'), ('[', '`'), ('{', '~')],
            "xdigit" => vec![('0', '9'), ('A', 'F'), ('a', 'f')],
            "word" => class_of('w').unwrap_or_default(),
            _ => return bad("invalid character class"),
        })
    }
}

const SPACE: [(char, char); 2] = [('\t', '\r'), (' ', ' ')];

/// What a letter behind a backslash stands for, if that is a class.
fn class_of(letter: char) -> Option<Class> {
    let class = match letter.to_ascii_lowercase() {
        'd' => vec![('0', '9')],
        's' => SPACE.to_vec(),
        'w' => vec![('0', '9'), ('A', 'Z'), ('_', '_'), ('a', 'z')],
        _ => return None,
    };
    Some(if letter.is_ascii_uppercase() { negated(class) } else { class })
}

/// The character that is meant by one behind a backslash.
fn character_of(escaped: char) -> Outcome<char> {
    Ok(match escaped {
        'n' => '\n',
        'r' => '\r',
        't' => '\t',
        'f' => '\x0c',
        'v' => '\x0b',
        other if other.is_ascii_alphanumeric() => return unsupported(&format!("\\{other}")),
        other => other,
    })
}

/// The letters of a range in the other case.
fn other_case(from: char, to: char) -> Class {
    let of = |first: char, last: char| {
        let (first, last) = (from.max(first), to.min(last));
        let swapped = |letter: char| char::from(u8::try_from(letter).unwrap_or(0) ^ 32);
        (first <= last).then(|| (swapped(first), swapped(last)))
    };
    [of('a', 'z'), of('A', 'Z')].into_iter().flatten().collect()
}

/// All characters but these.
fn negated(mut class: Class) -> Class {
    class.sort_unstable();
    let mut out = Vec::new();
    let mut next = Some('\0');
    for (from, to) in class {
        let Some(start) = next else { break };
        if start < from {
            out.push((start, before(from)));
        }
        next = next.max(after(to));
        if after(to).is_none() {
            next = None;
        }
    }
    out.extend(next.map(|start| (start, char::MAX)));
    out
}

fn before(character: char) -> char {
    if character == '\u{e000}' { '\u{d7ff}' } else { char::from_u32(u32::from(character) - 1).unwrap_or('\0') }
}

fn after(character: char) -> Option<char> {
    if character == '\u{d7ff}' { Some('\u{e000}') } else { char::from_u32(u32::from(character) + 1) }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn where_a_character_leaves_a_choice_nothing_is_certain() {
        for (text, wanted) in [
            ("[0-9]+", true),
            ("a*b", true),
            ("(ab|cd)+e", true),
            ("x{2,4}y?", true),
            ("a?(ab)?", false),
            ("a*", false),
            ("a*a", false),
            ("(a|ab)c", false),
            ("a+?b", false),
            ("(a*)+", false),
            ("a|", false),
            ("(a+b?)+", false),
            (".*x", false),
            ("[^x]*x", true),
        ] {
            assert_eq!(Pattern::of(text, false).unwrap().is_certain(), wanted, "{text}");
        }
    }

    #[test]
    fn classes_are_negated() {
        assert_eq!(negated(vec![('b', 'd'), ('c', 'c')]), [('\0', 'a'), ('e', char::MAX)]);
        assert_eq!(negated(vec![('\0', char::MAX)]), []);
        assert_eq!(negated(Vec::new()), [('\0', char::MAX)]);
    }

    proptest! {
        /// Whatever is taken for a pattern the matcher takes, too.
        #[test]
        fn patterns_are_written_for_the_matcher(
            text in r"([\[\]{}()|*+?.^$\\:ab1,dswy-]|\PC){0,20}",
            folds in any::<bool>(),
        ) {
            if let Ok(pattern) = Pattern::of(&text, folds) {
                prop_assert!(regex_lite::Regex::new(&pattern.written()).is_ok(), "{text}: {}", pattern.written());
                pattern.is_certain();
            }
        }
    }
}
