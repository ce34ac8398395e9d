//! Regular expressions: whether a text matches one, and what becomes of the part that does.

use super::call::{Arguments, Outcome, pay, refuse, room, truth};
use super::pattern::Pattern;
use crate::error::ErrorKind;
use regex_lite::{Captures, Regex, RegexBuilder};
use rusqlite::types::Value;
use std::sync::Arc;

/// What it costs to hold a byte of a text against a state of a pattern: up to ten nanoseconds.
const PAIR_BYTES: usize = 12;
/// What it costs to make a state.
const STATE_BYTES: usize = 256;
/// Bytes of a compiled pattern, which are far more than those that one of the largest needs.
const COMPILED_BYTES_MAX: usize = 8 << 20;

/// A pattern that is ready.
struct Ready {
    regex: Regex,
    states: usize,
    groups: usize,
    is_certain: bool,
}

impl Ready {
    fn of(text: &str, folds: bool) -> Outcome<Self> {
        let pattern = Pattern::of(text, folds)?;
        match RegexBuilder::new(&pattern.written()).size_limit(COMPILED_BYTES_MAX).build() {
            Ok(regex) => {
                Ok(Self { regex, states: pattern.states, groups: pattern.groups(), is_certain: pattern.is_certain() })
            }
            Err(_) => refuse(ErrorKind::NotAllowed, "this regular expression is not supported"),
        }
    }

    /// The pattern of a call. It is made once for all rows, and each pays for it: what a row costs does not depend on
    /// those before it.
    fn argument(arguments: &Arguments<'_>, number: usize, folds: bool) -> Outcome<Arc<Self>> {
        let text = arguments.text(number)?;
        let ready = || Ok::<_, std::convert::Infallible>(Self::of(&text, folds).map(Arc::new));
        let index = i32::try_from(number).unwrap_or(0);
        let kept: rusqlite::Result<Arc<Outcome<Arc<Self>>>> = arguments.0.get_or_create_aux(index, |_| ready());
        let ready = match kept {
            Ok(kept) => (*kept).clone()?,
            Err(_) => Self::of(&text, folds).map(Arc::new)?,
        };
        pay(ready.states * STATE_BYTES)?;
        Ok(ready)
    }

    /// Pays for going through a text.
    fn pay(&self, text: &str) -> Outcome<()> {
        pay((text.len() + 1).saturating_mul((self.states + 1) * PAIR_BYTES))
    }

    /// Refuses a pattern where it decides which part of a text is meant.
    fn check_certain(&self) -> Outcome<()> {
        if self.is_certain {
            return Ok(());
        }
        refuse(
            ErrorKind::NotAllowed,
            "a regular expression that could match more than one part is not supported where the part matters",
        )
    }
}

fn matches(arguments: &Arguments<'_>, folds: bool) -> Outcome {
    let text = arguments.text(0)?;
    let ready = Ready::argument(arguments, 1, folds)?;
    ready.pay(&text)?;
    Ok(truth(ready.regex.is_match(&text)))
}

/// `~`
pub(super) fn matches_exactly(arguments: &Arguments<'_>) -> Outcome {
    matches(arguments, false)
}

/// `~*`
pub(super) fn matches_in_any_case(arguments: &Arguments<'_>) -> Outcome {
    matches(arguments, true)
}

/// The part that matches, or that in its first parentheses.
pub(super) fn substring(arguments: &Arguments<'_>) -> Outcome {
    let text = arguments.text(0)?;
    let ready = Ready::argument(arguments, 1, false)?;
    ready.check_certain()?;
    ready.pay(&text)?;
    let found = ready.regex.captures(&text);
    let part = found.as_ref().and_then(|found| found.get(usize::from(ready.groups > 0)));
    Ok(part.map_or(Value::Null, |part| Value::Text(part.as_str().into())))
}

/// What a part becomes: `\1` is what the first parentheses found, `\&` all of it.
fn replaced(found: &Captures<'_>, by: &str, out: &mut String) {
    let part = |number: usize| found.get(number).map_or("", |part| part.as_str());
    let mut rest = by.chars().peekable();
    while let Some(character) = rest.next() {
        match (character, rest.peek().copied()) {
            ('\\', Some(digit @ '1'..='9')) => out.push_str(part(digit as usize - '0' as usize)),
            ('\\', Some('&')) => out.push_str(part(0)),
            ('\\', Some('\\')) => out.push('\\'),
            _ => {
                out.push(character);
                continue;
            }
        }
        rest.next();
    }
}

/// `regexp_replace` of text, pattern and replacement; a fourth argument has the flags `g` and `i`.
pub(super) fn replace(arguments: &Arguments<'_>) -> Outcome {
    let (text, by) = (arguments.text(0)?, arguments.text(2)?);
    let flags = if arguments.len() > 3 { arguments.text(3)? } else { "".into() };
    if let Some(other) = flags.chars().find(|flag| !matches!(flag, 'g' | 'i')) {
        let kind = if "cxnpwsmbetq".contains(other) { ErrorKind::NotAllowed } else { ErrorKind::BadParameter };
        return refuse(kind, format!("invalid regular expression option: \"{other}\""));
    }
    let ready = if flags.contains('i') {
        // What is kept of a call is of one kind.
        Ready::of(&arguments.text(1)?, true).map(Arc::new)?
    } else {
        Ready::argument(arguments, 1, false)?
    };
    ready.check_certain()?;
    ready.pay(&text)?;
    let most = if flags.contains('g') { usize::MAX } else { 1 };
    let (mut out, mut end) = (String::new(), 0);
    for found in ready.regex.captures_iter(&text).take(most) {
        let Some(whole) = found.get(0) else { continue };
        ready.pay(whole.as_str())?;
        out.push_str(&text[end..whole.start()]);
        replaced(&found, &by, &mut out);
        room(out.len())?;
        end = whole.end();
    }
    out.push_str(&text[end..]);
    room(out.len())?;
    Ok(Value::Text(out))
}

#[cfg(test)]
mod tests {
    use super::super::call::Refusal;
    use super::*;

    #[test]
    fn the_largest_pattern_is_made() {
        for text in ["(((a{9}b?){9}c?){9}d?){1,2}", "(?:[^a-z]{1,255}|x){7}", "\\w{255}\\W{255}"] {
            let made = Ready::of(text, true);
            let refusal = made.as_ref().err();
            assert!(matches!(refusal, None | Some(Refusal::Error(ErrorKind::TooLarge, _))), "{text}: {refusal:?}");
        }
        assert!(Ready::of("[a-z]{1,255}", false).is_ok());
    }
}
