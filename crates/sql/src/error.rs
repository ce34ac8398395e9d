//! Errors that are answers: the same at every replica. Whatever only this machine met (no memory, a broken page) is
//! never an answer; the replica stops ([`crate::engine`]).

use crate::value::text;
use bezant_core::digest::{Digest, Domain};
use bezant_core::wire::{Reader, Sink, Wire, WireError, encode_payload};
use std::fmt;

/// The longest message and hint, in bytes. Longer ones, which quote the statement, are cut.
pub const MESSAGE_BYTES_MAX: usize = 1_024;

macro_rules! kinds {
    ($($(#[$doc:meta])* $tag:literal $kind:ident $sqlstate:literal),* $(,)?) => {
        /// What kind of error.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
        pub enum ErrorKind {
            $($(#[$doc])* $kind),*
        }

        impl ErrorKind {
            /// The SQLSTATE that PostgreSQL's clients know it by.
            pub const fn sqlstate(self) -> &'static str {
                match self { $(Self::$kind => $sqlstate),* }
            }

            /// The kind that has this SQLSTATE.
            pub(crate) fn of_sqlstate(sqlstate: &str) -> Option<Self> {
                [$(Self::$kind),*].into_iter().find(|kind| kind.sqlstate() == sqlstate)
            }
        }

        impl Wire for ErrorKind {
            fn encode(&self, out: &mut impl Sink) {
                out.push(match self { $(Self::$kind => $tag),* });
            }
            fn decode(reader: &mut Reader) -> Result<Self, WireError> {
                match reader.tag()? {
                    $($tag => Ok(Self::$kind),)*
                    _ => Err(WireError::UnknownTag),
                }
            }
        }
    };
}

kinds! {
    /// Not SQL, or not one statement.
    0 Syntax "42601",
    /// A table or view that does not exist.
    1 NoSuchTable "42P01",
    /// A column that does not exist.
    2 NoSuchColumn "42703",
    /// A function that does not exist.
    3 NoSuchFunction "42883",
    /// The name is taken.
    4 AlreadyExists "42P07",
    /// A statement, function or setting that is not allowed here.
    5 NotAllowed "0A000",
    /// The client's role does not allow it.
    6 Denied "42501",
    /// Two rows with the same key.
    7 Unique "23505",
    /// Null where there must be a value.
    8 NotNull "23502",
    /// A CHECK that does not hold.
    9 Check "23514",
    /// A row that refers to none, or is referred to.
    10 ForeignKey "23503",
    /// Another constraint.
    11 Constraint "23000",
    /// RAISE in a trigger.
    12 Raised "P0001",
    /// A value of the wrong type.
    13 Mismatch "42804",
    /// Statement, value or result too large.
    14 TooLarge "54000",
    /// It took more steps than a request may.
    15 TooSlow "57014",
    /// The database is as large as it may become.
    16 Full "53100",
    /// Too few or too many values for the parameters.
    17 Parameters "08P01",
    /// Anything else that SQLite objects to.
    18 Other "XX000",
    /// A text that is no value of its type.
    19 BadText "22P02",
    /// A number out of range.
    20 OutOfRange "22003",
    /// A division by zero.
    21 DivisionByZero "22012",
    /// A text that is no date or time.
    22 BadTime "22007",
    /// A date or time that does not exist, or is out of range.
    23 TimeOutOfRange "22008",
    /// A time zone too far from UTC.
    24 BadZone "22009",
    /// An interval out of range.
    25 IntervalOutOfRange "22015",
    /// A text that is too long for its type.
    26 TooLong "22001",
    /// A part of a text that cannot be.
    27 BadSubstring "22011",
    /// An escape character that is none.
    28 BadEscape "22019",
    /// A pattern whose last escape character escapes nothing.
    29 BadPattern "22025",
    /// A value that a function cannot take.
    30 BadParameter "22023",
    /// A character that a text cannot have.
    31 BadCharacter "22P05",
    /// Bytes that are no characters.
    32 NotUtf8 "22021",
    /// Nested too deep.
    33 TooDeep "54001",
    /// A subquery with more rows than one where one is wanted.
    34 ManyRows "21000",
    /// A negative number of rows.
    35 BadLimit "2201W",
    /// A negative number of rows to leave out.
    36 BadOffset "2201X",
    /// A root of a negative number.
    37 BadPower "2201F",
    /// A regular expression that is none.
    38 BadRegex "2201B",
}

/// Why a statement failed. Nothing was changed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SqlError {
    /// What kind of error.
    pub kind: ErrorKind,
    /// What was wrong, as SQLite says it.
    pub message: String,
    /// What to do about it, where that is known; otherwise empty.
    pub hint: String,
    /// Where in the statement, in bytes from its start, if SQLite says that.
    pub position: Option<u32>,
}

impl SqlError {
    /// An error without a hint.
    pub fn new(kind: ErrorKind, message: impl Into<String>) -> Self {
        Self::with_hint(kind, message, String::new())
    }

    /// An error that says what to do.
    pub fn with_hint(kind: ErrorKind, message: impl Into<String>, hint: impl Into<String>) -> Self {
        Self { kind, message: cut(message.into()), hint: cut(hint.into()), position: None }
    }

    /// What a [`Check`](crate::Check) of a statement that failed goes by.
    pub fn digest(&self) -> Digest {
        Digest::of(Domain::Service, &self.to_bytes())
    }
}

/// At most [`MESSAGE_BYTES_MAX`] bytes of a text, and whole characters.
fn cut(mut text: String) -> String {
    let end = (0..=MESSAGE_BYTES_MAX.min(text.len())).rev().find(|&end| text.is_char_boundary(end));
    text.truncate(end.unwrap_or(0));
    text
}

impl fmt::Display for SqlError {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str(&self.message)?;
        if self.hint.is_empty() { Ok(()) } else { write!(out, " ({})", self.hint) }
    }
}

impl std::error::Error for SqlError {}

impl Wire for SqlError {
    fn encode(&self, out: &mut impl Sink) {
        self.kind.encode(out);
        encode_payload(self.message.as_bytes(), out);
        encode_payload(self.hint.as_bytes(), out);
        self.position.encode(out);
    }
    fn decode(reader: &mut Reader) -> Result<Self, WireError> {
        Ok(Self {
            kind: Wire::decode(reader)?,
            message: text(reader, MESSAGE_BYTES_MAX)?,
            hint: text(reader, MESSAGE_BYTES_MAX)?,
            position: Wire::decode(reader)?,
        })
    }
}
