//! The call of a function: what it was given, what it costs, and why it gives nothing.

use super::{digits, shortest};
use crate::error::ErrorKind;
use crate::meter;
use crate::value::VALUE_BYTES_MAX;
use rusqlite::functions::Context;
use rusqlite::types::{Value, ValueRef};
use rusqlite::{Error, Result, ffi};
use std::borrow::Cow;

/// How an error's message begins that names its SQLSTATE.
const PREFIX: &str = "pg:";

/// What a call costs besides, for each argument and the result, in bytes gone through.
pub(super) const VALUE_BYTES: usize = 32;

/// What it costs to hold a byte of a text against an element of a pattern: up to ten nanoseconds.
const PAIR_BYTES: usize = 4;

/// What a function is charged before it works, in bytes gone through, besides [`VALUE_BYTES`] for each argument.
#[derive(Clone, Copy, Debug)]
pub(super) enum Charge {
    /// It goes through its arguments so many times.
    Bytes(usize),
    /// It computes with digits: each of one number with each of the other, a byte for 32 such pairs.
    Digits,
    /// It holds each byte of the first against each of the second.
    Product,
}

impl Charge {
    /// Dates and times are read field by field.
    pub(super) const FIELDS: Self = Self::Bytes(16);

    pub(super) fn of(self, arguments: &Arguments<'_>) -> usize {
        let lengths = || (0..arguments.0.len()).map(|number| bytes_of(arguments.0.get_raw(number)));
        let all: usize = lengths().sum();
        let work = match self {
            Self::Bytes(times) => all.saturating_mul(times),
            Self::Digits => {
                all.saturating_add(digits::work(lengths().map(|length| length.min(digits::TEXT_MAX)).sum()))
            }
            Self::Product => all.saturating_add(lengths().take(2).fold(PAIR_BYTES, usize::saturating_mul)),
        };
        work.saturating_add(arguments.0.len() * VALUE_BYTES)
    }

    /// What the result costs that was made.
    pub(super) fn of_result(self, result: &Value) -> usize {
        let length = bytes_of(result.into());
        match self {
            Self::Digits => length.saturating_add(digits::work(length)),
            Self::Bytes(_) | Self::Product => length,
        }
    }
}

/// Bytes of a text or blob.
const fn bytes_of(value: ValueRef<'_>) -> usize {
    match value {
        ValueRef::Text(bytes) | ValueRef::Blob(bytes) => bytes.len(),
        ValueRef::Null | ValueRef::Integer(_) | ValueRef::Real(_) => 0,
    }
}

/// Why a function gives nothing.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Refusal {
    /// An error of its arguments.
    Error(ErrorKind, String),
    /// The request has nothing left to pay with.
    Spent,
}

/// What a function gives.
pub(super) type Outcome<T = Value> = std::result::Result<T, Refusal>;

/// An error, as PostgreSQL says it.
pub(super) fn refuse<T>(kind: ErrorKind, message: impl Into<String>) -> Outcome<T> {
    Err(Refusal::Error(kind, message.into()))
}

impl From<Refusal> for Error {
    fn from(refusal: Refusal) -> Self {
        let (code, message) = match refusal {
            // A zero byte would end the text.
            Refusal::Error(kind, text) => {
                (ffi::SQLITE_ERROR, Some(format!("{PREFIX}{}:{}", kind.sqlstate(), text.replace('\0', "\\0"))))
            }
            Refusal::Spent => (ffi::SQLITE_INTERRUPT, None),
        };
        Self::SqliteFailure(ffi::Error::new(code), message)
    }
}

/// The kind and the words of an error of these functions, as SQLite passes its message on.
pub(crate) fn error_of(message: &str) -> Option<(ErrorKind, &str)> {
    let (sqlstate, text) = message.strip_prefix(PREFIX)?.split_once(':')?;
    Some((ErrorKind::of_sqlstate(sqlstate)?, text))
}

/// Takes from what the request may cost.
pub(super) fn pay(bytes: usize) -> Outcome<()> {
    let bytes = i64::try_from(bytes).unwrap_or(i64::MAX / 2);
    if meter::pay(bytes) { Err(Refusal::Spent) } else { Ok(()) }
}

/// What a function was given.
pub(super) struct Arguments<'a>(pub(super) &'a Context<'a>);

impl Arguments<'_> {
    pub(super) fn has_null(&self) -> bool {
        (0..self.0.len()).any(|number| self.0.get_raw(number) == ValueRef::Null)
    }

    pub(super) fn len(&self) -> usize {
        self.0.len()
    }

    /// A value of another class than belongs there.
    fn wrong<T>(&self, number: usize, wanted: &str) -> Outcome<T> {
        let given = self.0.get_raw(number).data_type();
        refuse(ErrorKind::Mismatch, format!("argument {} is {given} where {wanted} belongs", number + 1))
    }

    /// A text, or a number as one.
    pub(super) fn text(&self, number: usize) -> Outcome<Cow<'_, str>> {
        match self.0.get_raw(number) {
            ValueRef::Text(bytes) => match std::str::from_utf8(bytes) {
                Ok(text) => Ok(Cow::Borrowed(text)),
                Err(_) => refuse(ErrorKind::NotUtf8, "invalid byte sequence for encoding \"UTF8\""),
            },
            ValueRef::Integer(number) => Ok(Cow::Owned(number.to_string())),
            ValueRef::Real(number) => Ok(Cow::Owned(shortest::spell(number))),
            ValueRef::Null | ValueRef::Blob(_) => self.wrong(number, "a text"),
        }
    }

    pub(super) fn integer(&self, number: usize) -> Outcome<i64> {
        match self.0.get_raw(number) {
            ValueRef::Integer(number) => Ok(number),
            _ => self.wrong(number, "an integer"),
        }
    }

    /// A floating-point number; SQLite keeps whole ones as integers.
    pub(super) fn real(&self, number: usize) -> Outcome<f64> {
        match self.0.get_raw(number) {
            ValueRef::Integer(number) => Ok(number as f64),
            ValueRef::Real(number) => Ok(number),
            _ => self.wrong(number, "a floating-point number"),
        }
    }

    pub(super) fn blob(&self, number: usize) -> Outcome<&[u8]> {
        match self.0.get_raw(number) {
            ValueRef::Blob(bytes) => Ok(bytes),
            _ => self.wrong(number, "a blob"),
        }
    }
}

/// An error with the SQLSTATE and the words that the arguments say: for a value that must not be there.
pub(super) fn raise(arguments: &Arguments<'_>) -> Outcome {
    let (sqlstate, text) = (arguments.text(0)?, arguments.text(1)?);
    refuse(ErrorKind::of_sqlstate(&sqlstate).unwrap_or(ErrorKind::BadParameter), text)
}

/// A function of SQL.
pub(super) struct Function {
    pub(super) name: &'static str,
    pub(super) arity: i32,
    pub(super) charge: Charge,
    pub(super) call: fn(&Arguments<'_>) -> Outcome,
}

impl Function {
    pub(super) fn call(&self, context: &Context<'_>) -> Result<Value> {
        let arguments = Arguments(context);
        pay(self.charge.of(&arguments))?;
        if arguments.has_null() {
            return Ok(Value::Null);
        }
        let result = (self.call)(&arguments)?;
        pay(self.charge.of_result(&result))?;
        Ok(positive_zero(result))
    }
}

/// Zero has no sign: SQLite would lose it when it stores the number.
pub(super) fn positive_zero(value: Value) -> Value {
    match value {
        Value::Real(number) => Value::Real(number + 0.0),
        other => other,
    }
}

/// A text of so many bytes, or a refusal before it is made.
pub(super) fn room(bytes: usize) -> Outcome<()> {
    if bytes <= VALUE_BYTES_MAX {
        return Ok(());
    }
    refuse(ErrorKind::TooLarge, format!("a value is larger than {VALUE_BYTES_MAX} bytes"))
}

/// A truth value, as it is stored.
pub(super) fn truth(is: bool) -> Value {
    Value::Integer(is.into())
}
