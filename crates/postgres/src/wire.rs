//! PostgreSQL's messages, version 3 of the protocol: what clients send is read with every length checked, what they are
//! sent is written into a buffer.
//!
//! Reading is ours because the bytes are anyone's: whatever arrives is a message or a [`WireError`], never a panic, and
//! takes no more memory than [`MESSAGE_BYTES_MAX`].

mod copy;
mod copying;
mod sasl;

pub use copying::Copying;
pub use sasl::{read_sasl, sasl_choice};

use crate::error::PgError;
use bytes::{Buf, Bytes, BytesMut};
use std::fmt;

/// The longest message of a client, in bytes.
pub const MESSAGE_BYTES_MAX: usize = 4 << 20;
/// The longest message before a client has said who it is, in bytes.
pub const STARTUP_BYTES_MAX: usize = 10_000;

/// The longest message about a password, in bytes.
pub const SASL_BYTES_MAX: usize = 1_024;

const VERSION_3: u32 = 3;
const CANCEL: u32 = 80_877_102;
const SSL: u32 = 80_877_103;
const GSS: u32 = 80_877_104;

/// What is wrong with bytes that are no message.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum WireError {
    /// Longer than the bound.
    TooLong,
    /// It ends before it is complete, or goes on after it.
    Length,
    /// A text that is not UTF-8.
    NotUtf8,
    /// No kind of message that a client sends.
    UnknownKind(u8),
    /// A version of the protocol that is not ours.
    Version(u32),
}

impl fmt::Display for WireError {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::TooLong => out.write_str("a message is longer than it may be"),
            Self::Length => out.write_str("a message's length is not that of its contents"),
            Self::NotUtf8 => out.write_str("a text is not UTF-8"),
            Self::UnknownKind(kind) => write!(out, "messages of kind {kind} are unknown"),
            Self::Version(version) => write!(out, "version {}.{} of the protocol", version >> 16, version & 0xffff),
        }
    }
}

impl std::error::Error for WireError {}

/// The first message of a connection.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Startup {
    /// Asks for encryption with TLS.
    Tls,
    /// Asks for encryption with GSSAPI.
    Gss,
    /// Asks to cancel what another connection does.
    Cancel {
        /// The number of that connection.
        process: u32,
        /// What only its client was told.
        secret: u32,
    },
    /// Who it is and what it wants: `user`, `database` and settings.
    Start {
        /// The second half of the version; more than 0 wants to be told that there is only 0.
        minor: u16,
        /// Names and values.
        parameters: Vec<(String, String)>,
    },
}

/// What `Describe` and `Close` are about.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Target {
    /// A prepared statement.
    Statement,
    /// A prepared statement with values.
    Portal,
}

/// A message of a client that has said who it is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Frontend {
    /// Statements as text, all at once.
    Query(String),
    /// Prepares a statement.
    Parse {
        /// Its name; empty for the one without a name.
        name: String,
        /// The statement.
        sql: String,
        /// Types of its parameters; 0 or missing where the client does not say.
        types: Vec<u32>,
    },
    /// Gives a prepared statement its values.
    Bind {
        /// The name of the result.
        portal: String,
        /// The statement's.
        statement: String,
        /// Whether values are text (0) or binary (1): one for all, one each, or none.
        formats: Vec<i16>,
        /// The values.
        values: Vec<Option<Bytes>>,
        /// How results are wanted; as `formats`.
        results: Vec<i16>,
    },
    /// Asks what a statement or portal takes and gives.
    Describe(Target, String),
    /// Executes a portal.
    Execute {
        /// Its name.
        portal: String,
        /// How many rows are wanted now; 0 or less: all.
        rows: i32,
    },
    /// Forgets a statement or portal.
    Close(Target, String),
    /// Wants what was answered so far.
    Flush,
    /// Ends a series of messages.
    Sync,
    /// Leaves.
    Terminate,
    /// Part of a COPY; ignored where none is under way.
    Copy(Copying),
    /// Calls a function by number, or sends a password that nobody asked for.
    Unsupported,
}

/// Takes the first message out of `input`; `None`: it is not complete.
///
/// # Errors
/// [`WireError`]; the connection is beyond repair.
pub fn read_startup(input: &mut BytesMut) -> Result<Option<Startup>, WireError> {
    let Some(mut body) = take_frame(input, 0, STARTUP_BYTES_MAX)? else { return Ok(None) };
    let version = u32_of(&mut body)?;
    match version {
        SSL => Ok(Some(Startup::Tls)),
        GSS => Ok(Some(Startup::Gss)),
        CANCEL => Ok(Some(Startup::Cancel { process: u32_of(&mut body)?, secret: u32_of(&mut body)? })),
        _ if version >> 16 == VERSION_3 => {
            let mut parameters = Vec::new();
            loop {
                let name = text(&mut body)?;
                if name.is_empty() {
                    break;
                }
                parameters.push((name, text(&mut body)?));
            }
            Ok(Some(Startup::Start { minor: version as u16, parameters }))
        }
        _ => Err(WireError::Version(version)),
    }
}

/// Takes the next message out of `input`; `None`: it is not complete.
///
/// # Errors
/// [`WireError`]; the connection is beyond repair.
pub fn read(input: &mut BytesMut) -> Result<Option<Frontend>, WireError> {
    let Some(&kind) = input.first() else { return Ok(None) };
    if !b"QPBDECHSXdcfFp".contains(&kind) {
        return Err(WireError::UnknownKind(kind));
    }
    let Some(mut body) = take_frame(input, 1, MESSAGE_BYTES_MAX)? else { return Ok(None) };
    let message = match kind {
        b'Q' => Frontend::Query(text(&mut body)?),
        b'P' => Frontend::Parse { name: text(&mut body)?, sql: text(&mut body)?, types: list(&mut body, u32_of)? },
        b'B' => Frontend::Bind {
            portal: text(&mut body)?,
            statement: text(&mut body)?,
            formats: list(&mut body, i16_of)?,
            values: list(&mut body, value_of)?,
            results: list(&mut body, i16_of)?,
        },
        b'D' => Frontend::Describe(target(&mut body)?, text(&mut body)?),
        b'C' => Frontend::Close(target(&mut body)?, text(&mut body)?),
        b'E' => Frontend::Execute { portal: text(&mut body)?, rows: u32_of(&mut body)? as i32 },
        b'H' => Frontend::Flush,
        b'S' => Frontend::Sync,
        b'X' => Frontend::Terminate,
        b'd' | b'c' | b'f' => return Ok(Some(Frontend::Copy(copying::read(kind, body)))),
        _ => return Ok(Some(Frontend::Unsupported)),
    };
    if body.is_empty() { Ok(Some(message)) } else { Err(WireError::Length) }
}

/// The body of a message whose length follows `before` bytes.
fn take_frame(input: &mut BytesMut, before: usize, max: usize) -> Result<Option<Bytes>, WireError> {
    const LENGTH: usize = 4;
    let Some(length) = input.get(before..before + LENGTH) else { return Ok(None) };
    let length = u32::from_be_bytes(length.try_into().expect("four bytes")) as usize;
    if length > max {
        return Err(WireError::TooLong);
    }
    let body = length.checked_sub(LENGTH).ok_or(WireError::Length)?;
    if input.len() < before + length {
        return Ok(None);
    }
    input.advance(before + LENGTH);
    Ok(Some(input.split_to(body).freeze()))
}

fn text(body: &mut Bytes) -> Result<String, WireError> {
    let end = body.iter().position(|byte| *byte == 0).ok_or(WireError::Length)?;
    let bytes = body.split_to(end);
    body.advance(1);
    String::from_utf8(bytes.into()).map_err(|_| WireError::NotUtf8)
}

fn i16_of(body: &mut Bytes) -> Result<i16, WireError> {
    body.try_get_i16().map_err(|_| WireError::Length)
}

fn u32_of(body: &mut Bytes) -> Result<u32, WireError> {
    body.try_get_u32().map_err(|_| WireError::Length)
}

fn value_of(body: &mut Bytes) -> Result<Option<Bytes>, WireError> {
    let length = u32_of(body)?;
    if length == u32::MAX {
        return Ok(None);
    }
    let length = length as usize;
    if length > body.len() { Err(WireError::Length) } else { Ok(Some(body.split_to(length))) }
}

/// As many as a 16-bit number says. The memory is that of the bytes that are there.
fn list<T>(body: &mut Bytes, item: fn(&mut Bytes) -> Result<T, WireError>) -> Result<Vec<T>, WireError> {
    let count = body.try_get_u16().map_err(|_| WireError::Length)?;
    (0..count).map(|_| item(body)).collect()
}

fn target(body: &mut Bytes) -> Result<Target, WireError> {
    match body.try_get_u8() {
        Ok(b'S') => Ok(Target::Statement),
        Ok(b'P') => Ok(Target::Portal),
        _ => Err(WireError::Length),
    }
}

/// A column as a client is told about it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Field {
    /// Its name.
    pub name: String,
    /// The number of its type.
    pub type_id: u32,
    /// Bytes of each value; negative: they differ.
    pub size: i16,
    /// Text (0) or binary (1).
    pub format: i16,
}

/// Whether statements stand alone.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Status {
    /// They do.
    Idle,
    /// A transaction is open.
    Open,
    /// A transaction is open, and one of its statements has failed.
    Failed,
}

/// Messages to a client.
#[derive(Debug, Default)]
pub struct Output {
    bytes: Vec<u8>,
}

impl Output {
    /// What was written since it was taken last.
    pub fn take(&mut self) -> Vec<u8> {
        std::mem::take(&mut self.bytes)
    }

    /// Bytes that wait to be taken.
    pub fn len(&self) -> usize {
        self.bytes.len()
    }

    /// Whether nothing waits.
    pub fn is_empty(&self) -> bool {
        self.bytes.is_empty()
    }

    fn message(&mut self, kind: u8, body: impl FnOnce(&mut Vec<u8>)) {
        self.bytes.push(kind);
        let start = self.bytes.len();
        self.bytes.extend([0; 4]);
        body(&mut self.bytes);
        let length = (self.bytes.len() - start) as u32;
        self.bytes[start..start + 4].copy_from_slice(&length.to_be_bytes());
    }

    /// Whether what follows is encrypted, as it was asked for.
    pub fn encryption(&mut self, is_possible: bool) {
        self.bytes.push(if is_possible { b'S' } else { b'N' });
    }

    /// Version 3.0 and none of the options.
    pub fn negotiate(&mut self, unknown: &[&str]) {
        self.message(b'v', |out| {
            out.extend((VERSION_3 << 16).to_be_bytes());
            out.extend((unknown.len() as u32).to_be_bytes());
            unknown.iter().for_each(|name| put_text(out, name));
        });
    }

    /// Asks for a password, by this mechanism.
    pub fn sasl(&mut self, mechanism: &str) {
        self.authentication(10, |out| {
            put_text(out, mechanism);
            // The end of the list.
            out.push(0);
        });
    }

    /// A question of the mechanism's.
    pub fn sasl_continue(&mut self, message: &str) {
        self.authentication(11, |out| out.extend(message.as_bytes()));
    }

    /// The mechanism's last word.
    pub fn sasl_final(&mut self, message: &str) {
        self.authentication(12, |out| out.extend(message.as_bytes()));
    }

    fn authentication(&mut self, kind: u32, body: impl FnOnce(&mut Vec<u8>)) {
        self.message(b'R', |out| {
            out.extend(kind.to_be_bytes());
            body(out);
        });
    }

    /// Come in.
    pub fn authenticated(&mut self) {
        self.authentication(0, |_| {});
    }

    /// A setting that clients want to know.
    pub fn parameter(&mut self, name: &str, value: &str) {
        self.message(b'S', |out| {
            put_text(out, name);
            put_text(out, value);
        });
    }

    /// How a request to cancel would name this connection.
    pub fn key(&mut self, process: u32, secret: u32) {
        self.message(b'K', |out| {
            out.extend(process.to_be_bytes());
            out.extend(secret.to_be_bytes());
        });
    }

    /// Waiting for the next series of messages.
    pub fn ready(&mut self, status: Status) {
        let status = match status {
            Status::Idle => b'I',
            Status::Open => b'T',
            Status::Failed => b'E',
        };
        self.message(b'Z', |out| out.push(status));
    }

    /// One of the messages without a body.
    fn bare(&mut self, kind: u8) {
        self.message(kind, |_| ());
    }

    /// A statement is prepared.
    pub fn parsed(&mut self) {
        self.bare(b'1');
    }

    /// A portal is there.
    pub fn bound(&mut self) {
        self.bare(b'2');
    }

    /// A statement or portal is forgotten.
    pub fn closed(&mut self) {
        self.bare(b'3');
    }

    /// The statement gives no rows.
    pub fn no_data(&mut self) {
        self.bare(b'n');
    }

    /// There was no statement.
    pub fn empty(&mut self) {
        self.bare(b'I');
    }

    /// There are more rows.
    pub fn suspended(&mut self) {
        self.bare(b's');
    }

    /// A statement is done.
    pub fn complete(&mut self, tag: &str) {
        self.message(b'C', |out| put_text(out, tag));
    }

    /// The types of a statement's parameters.
    pub fn parameters(&mut self, types: &[u32]) {
        self.message(b't', |out| {
            out.extend((types.len() as u16).to_be_bytes());
            types.iter().for_each(|type_id| out.extend(type_id.to_be_bytes()));
        });
    }

    /// The columns of the rows that follow.
    pub fn fields(&mut self, fields: &[Field]) {
        self.message(b'T', |out| {
            out.extend((fields.len() as u16).to_be_bytes());
            for field in fields {
                put_text(out, &field.name);
                out.extend([0; 6]);
                out.extend(field.type_id.to_be_bytes());
                out.extend(field.size.to_be_bytes());
                out.extend((-1_i32).to_be_bytes());
                out.extend(field.format.to_be_bytes());
            }
        });
    }

    /// A row: `value` writes the values one after the other and says whether there is one.
    pub fn row(&mut self, columns: usize, mut value: impl FnMut(usize, &mut Vec<u8>) -> bool) {
        self.message(b'D', |out| {
            out.extend((columns as u16).to_be_bytes());
            for column in 0..columns {
                let start = out.len();
                out.extend([0xff; 4]);
                if value(column, out) {
                    let length = (out.len() - start - 4) as u32;
                    out[start..start + 4].copy_from_slice(&length.to_be_bytes());
                }
            }
        });
    }

    /// Something went wrong.
    pub fn error(&mut self, error: &PgError) {
        self.message(b'E', |out| put_report(out, error.severity(), error));
    }

    /// Something worth knowing.
    pub fn notice(&mut self, notice: &PgError) {
        self.message(b'N', |out| put_report(out, "NOTICE", notice));
    }
}

fn put_text(out: &mut Vec<u8>, text: &str) {
    // A zero would end the text early, and the message with it.
    out.extend(text.bytes().filter(|byte| *byte != 0));
    out.push(0);
}

fn put_report(out: &mut Vec<u8>, severity: &str, report: &PgError) {
    let fields = [
        (b'S', severity),
        (b'V', severity),
        (b'C', report.sqlstate),
        (b'M', &report.message),
        (b'D', &report.detail),
        (b'H', &report.hint),
    ];
    for (kind, text) in fields.into_iter().filter(|(_, text)| !text.is_empty()) {
        out.push(kind);
        put_text(out, text);
    }
    out.push(0);
}

#[cfg(test)]
mod tests;
