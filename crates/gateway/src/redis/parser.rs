//! Requests of the Redis protocol (RESP): arrays of bulk strings, and inline commands as typed into a terminal.
//!
//! The parser consumes each argument as soon as it is complete, so that a request that arrives one byte at a time
//! costs no more than one that arrives at once. It works on bytes alone: no socket, no clock. What it holds is
//! bounded by [`COMMAND_BYTES_MAX`] and [`ARGUMENTS_MAX`].

use bytes::{Buf, Bytes, BytesMut};
use std::fmt;

/// Most arguments of one command, its name included.
pub const ARGUMENTS_MAX: usize = 16_384;
/// Most bytes of one argument.
pub const BULK_BYTES_MAX: usize = 1 << 20;
/// Most bytes of all arguments of one command.
pub const COMMAND_BYTES_MAX: usize = 2 << 20;
/// Most bytes of an inline command.
pub const INLINE_BYTES_MAX: usize = 64 << 10;
/// A header is one type byte, a sign and at most 19 digits; anything longer is no number.
const HEADER_BYTES_MAX: usize = 32;

/// Why a connection must be closed: the two sides no longer agree where a command begins. Shown as Redis words it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ProtocolError {
    /// `*` was followed by no number, or by one that is out of range.
    MultibulkLength,
    /// `$` was followed by no number, or by one that is out of range.
    BulkLength,
    /// An argument began with this byte instead of `$`.
    ExpectedBulk(u8),
    /// A bulk string was not followed by CR LF.
    UnterminatedBulk,
    /// An inline command without an end in sight.
    InlineTooBig,
    /// An inline command whose quotes do not match.
    UnbalancedQuotes,
    /// The arguments of one command exceed [`COMMAND_BYTES_MAX`].
    CommandTooBig,
}

impl fmt::Display for ProtocolError {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str("Protocol error: ")?;
        match self {
            Self::MultibulkLength => out.write_str("invalid multibulk length"),
            Self::BulkLength => out.write_str("invalid bulk length"),
            Self::ExpectedBulk(byte) => write!(out, "expected '$', got '{}'", byte.escape_ascii()),
            Self::UnterminatedBulk => out.write_str("bulk string without CR LF"),
            Self::InlineTooBig => out.write_str("too big inline request"),
            Self::UnbalancedQuotes => out.write_str("unbalanced quotes in request"),
            Self::CommandTooBig => write!(out, "command of more than {COMMAND_BYTES_MAX} bytes"),
        }
    }
}

impl std::error::Error for ProtocolError {}

/// A command as it was sent: its name, then its arguments. Never empty.
pub type Arguments = Vec<Bytes>;

/// The part of a command that has been consumed.
#[derive(Debug, Default)]
pub struct Parser {
    arguments: Arguments,
    /// Arguments still to come.
    missing: usize,
    /// The length of the argument that is being received, once its header was read.
    bulk: Option<usize>,
    /// Bytes of `arguments`.
    bytes: usize,
    /// Bytes at the start of the buffer that are known to hold no line feed.
    scanned: usize,
}

impl Parser {
    /// A parser at the start of a connection.
    pub fn new() -> Self {
        Self::default()
    }

    /// Takes the next command from the front of `buffer`; `None` if it is not complete yet.
    ///
    /// # Errors
    /// [`ProtocolError`]: nothing that follows can be understood, and the parser must not be used again.
    pub fn parse(&mut self, buffer: &mut BytesMut) -> Result<Option<Arguments>, ProtocolError> {
        loop {
            if self.missing > 0 {
                if !self.parse_argument(buffer)? {
                    return Ok(None);
                }
                if self.missing == 0 {
                    self.bytes = 0;
                    return Ok(Some(std::mem::take(&mut self.arguments)));
                }
                continue;
            }
            match buffer.first() {
                None => return Ok(None),
                Some(b'*') => {
                    let Some(count) = self.parse_header(buffer, ProtocolError::MultibulkLength)? else {
                        return Ok(None);
                    };
                    // Redis skips empty and null arrays without an answer, and so do we.
                    let count = usize::try_from(count).unwrap_or(0);
                    if count > ARGUMENTS_MAX {
                        return Err(ProtocolError::MultibulkLength);
                    }
                    self.missing = count;
                }
                Some(_) => {
                    let Some(line) = self.take_line(buffer, INLINE_BYTES_MAX, ProtocolError::InlineTooBig)? else {
                        return Ok(None);
                    };
                    let arguments = split_inline(&line)?;
                    if !arguments.is_empty() {
                        return Ok(Some(arguments));
                    }
                }
            }
        }
    }

    /// Takes one argument; `false` if it is not complete.
    fn parse_argument(&mut self, buffer: &mut BytesMut) -> Result<bool, ProtocolError> {
        let length = match self.bulk {
            Some(length) => length,
            None => {
                match buffer.first() {
                    None => return Ok(false),
                    Some(b'$') => {}
                    Some(&other) => return Err(ProtocolError::ExpectedBulk(other)),
                }
                let Some(length) = self.parse_header(buffer, ProtocolError::BulkLength)? else { return Ok(false) };
                let length = usize::try_from(length).map_err(|_| ProtocolError::BulkLength)?;
                if length > BULK_BYTES_MAX {
                    return Err(ProtocolError::BulkLength);
                }
                if self.bytes + length > COMMAND_BYTES_MAX {
                    return Err(ProtocolError::CommandTooBig);
                }
                self.bulk = Some(length);
                length
            }
        };
        if buffer.len() < length + 2 {
            return Ok(false);
        }
        if &buffer[length..length + 2] != b"\r\n" {
            return Err(ProtocolError::UnterminatedBulk);
        }
        self.arguments.push(buffer.split_to(length).freeze());
        buffer.advance(2);
        self.bytes += length;
        self.bulk = None;
        self.missing -= 1;
        Ok(true)
    }

    /// Takes a line of one type byte and a number.
    fn parse_header(&mut self, buffer: &mut BytesMut, error: ProtocolError) -> Result<Option<i64>, ProtocolError> {
        let Some(line) = self.take_line(buffer, HEADER_BYTES_MAX, error)? else { return Ok(None) };
        let digits = std::str::from_utf8(&line[1..]).map_err(|_| error)?;
        digits.parse().map(Some).map_err(|_| error)
    }

    /// Takes a line without its end, which is LF or CR LF.
    fn take_line(
        &mut self,
        buffer: &mut BytesMut,
        bytes_max: usize,
        too_long: ProtocolError,
    ) -> Result<Option<Bytes>, ProtocolError> {
        let window = &buffer[self.scanned..buffer.len().min(bytes_max + 1)];
        let Some(offset) = window.iter().position(|&byte| byte == b'\n') else {
            if buffer.len() > bytes_max {
                return Err(too_long);
            }
            self.scanned = buffer.len();
            return Ok(None);
        };
        let end = self.scanned + offset;
        self.scanned = 0;
        let mut line = buffer.split_to(end).freeze();
        buffer.advance(1);
        if line.last() == Some(&b'\r') {
            line.truncate(end - 1);
        }
        Ok(Some(line))
    }
}

/// Splits an inline command at white space. Arguments may stand in double quotes (with `\n`, `\r`, `\t`, `\a`, `\b`,
/// `\xHH` and `\` before any other byte) or in single quotes (with `\'`).
fn split_inline(line: &[u8]) -> Result<Arguments, ProtocolError> {
    let mut arguments = Vec::new();
    let mut rest = line;
    loop {
        rest = rest.trim_ascii_start();
        if rest.is_empty() {
            return Ok(arguments);
        }
        let (argument, after) = take_word(rest)?;
        arguments.push(argument);
        rest = after;
    }
}

/// One word at the start of `text`, and what follows it.
fn take_word(text: &[u8]) -> Result<(Bytes, &[u8]), ProtocolError> {
    let mut word = Vec::new();
    let mut quote = None;
    let mut at = 0;
    while let Some(&byte) = text.get(at) {
        at += 1;
        match (quote, byte) {
            (None, b'"' | b'\'') => quote = Some(byte),
            (None, _) if byte.is_ascii_whitespace() => break,
            (Some(b'"'), b'\\') => {
                let (unescaped, length) = unescape(&text[at..]).ok_or(ProtocolError::UnbalancedQuotes)?;
                word.push(unescaped);
                at += length;
            }
            (Some(b'\''), b'\\') if text.get(at) == Some(&b'\'') => {
                word.push(b'\'');
                at += 1;
            }
            (Some(open), _) if byte == open => {
                // As in Redis, a closing quote ends the argument.
                if text.get(at).is_some_and(|next| !next.is_ascii_whitespace()) {
                    return Err(ProtocolError::UnbalancedQuotes);
                }
                quote = None;
                break;
            }
            _ => word.push(byte),
        }
    }
    if quote.is_some() {
        return Err(ProtocolError::UnbalancedQuotes);
    }
    Ok((word.into(), &text[at..]))
}

/// What stands after a backslash in double quotes: the byte it means, and how many bytes say so.
fn unescape(text: &[u8]) -> Option<(u8, usize)> {
    let hex = |byte: u8| char::from(byte).to_digit(16).map(|digit| digit as u8);
    if let [b'x', high, low, ..] = text
        && let (Some(high), Some(low)) = (hex(*high), hex(*low))
    {
        return Some((high << 4 | low, 3));
    }
    let byte = match text.first()? {
        b'n' => b'\n',
        b'r' => b'\r',
        b't' => b'\t',
        b'b' => 8,
        b'a' => 7,
        &other => other,
    };
    Some((byte, 1))
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn all(input: &[u8]) -> Result<Vec<Arguments>, ProtocolError> {
        let (mut parser, mut buffer) = (Parser::new(), BytesMut::from(input));
        let mut commands = Vec::new();
        while let Some(command) = parser.parse(&mut buffer)? {
            commands.push(command);
        }
        Ok(commands)
    }

    fn words(words: &[&str]) -> Arguments {
        words.iter().map(|word| Bytes::copy_from_slice(word.as_bytes())).collect()
    }

    #[test]
    fn commands_come_out_in_order_whether_typed_or_sent() {
        let input = b"*2\r\n$3\r\nGET\r\n$1\r\na\r\nPING\r\n\r\n*0\r\n*-1\r\nset k \"a b\\x41\\n\" 'it\\'s'\n";
        let expected = [words(&["GET", "a"]), words(&["PING"]), words(&["set", "k", "a bA\n", "it's"])];
        assert_eq!(all(input).unwrap(), expected);
    }

    #[test]
    fn one_byte_at_a_time_gives_the_same_commands() {
        let input = b"*3\r\n$3\r\nSET\r\n$1\r\nk\r\n$5\r\nv\r\nw*\r\nget k\r\n*1\r\n$4\r\nPING\r\n";
        let (mut parser, mut buffer, mut commands) = (Parser::new(), BytesMut::new(), Vec::new());
        for &byte in input {
            buffer.extend_from_slice(&[byte]);
            commands.extend(parser.parse(&mut buffer).unwrap());
        }
        assert_eq!(commands, all(input).unwrap());
        assert_eq!(commands.len(), 3);
    }

    #[test]
    fn what_cannot_be_understood_is_named_as_redis_names_it() {
        let cases: [(&[u8], &str); 9] = [
            (b"*x\r\n", "invalid multibulk length"),
            (b"*99999999\r\n", "invalid multibulk length"),
            (b"*1\r\n$-1\r\n", "invalid bulk length"),
            (b"*1\r\n$999999999999\r\n", "invalid bulk length"),
            (b"*1\r\n$99999999999999999999999999999999999999", "invalid bulk length"),
            (b"*1\r\n+OK\r\n", "expected '$', got '+'"),
            (b"*1\r\n$1\r\nabc", "bulk string without CR LF"),
            (b"get \"a\r\n", "unbalanced quotes in request"),
            (&[b'a'; INLINE_BYTES_MAX + 1], "too big inline request"),
        ];
        for (input, expected) in cases {
            let error = all(input).unwrap_err().to_string();
            assert_eq!(error, format!("Protocol error: {expected}"), "{}", input[..input.len().min(40)].escape_ascii());
        }
    }

    #[test]
    fn the_arguments_of_a_command_are_bounded_together() {
        let mut input = b"*4\r\n".to_vec();
        for _ in 0..3 {
            input.extend_from_slice(format!("${BULK_BYTES_MAX}\r\n").as_bytes());
            input.extend_from_slice(&vec![b'v'; BULK_BYTES_MAX]);
            input.extend_from_slice(b"\r\n");
        }
        assert_eq!(all(&input), Err(ProtocolError::CommandTooBig));
    }

    proptest! {
        #[test]
        fn no_bytes_panic_and_the_cuts_do_not_matter(input in prop::collection::vec(
            prop_oneof![Just(b'*'), Just(b'$'), Just(b'\r'), Just(b'\n'), Just(b'1'), Just(b'2'), Just(b'"'),
                Just(b'\\'), Just(b' '), any::<u8>()], 0..200), step in 1..20usize)
        {
            let (mut parser, mut buffer, mut commands) = (Parser::new(), BytesMut::new(), Vec::new());
            let mut error = None;
            'cut: for piece in input.chunks(step) {
                buffer.extend_from_slice(piece);
                loop {
                    match parser.parse(&mut buffer) {
                        Ok(Some(command)) => commands.push(command),
                        Ok(None) => break,
                        Err(stop) => {
                            error = Some(stop);
                            break 'cut;
                        }
                    }
                }
            }
            match (all(&input), error) {
                (Ok(whole), None) => prop_assert_eq!(whole, commands),
                (Err(whole), Some(pieces)) => prop_assert_eq!(whole, pieces),
                (whole, pieces) => prop_assert!(false, "whole {:?}, in pieces {:?}", whole, pieces),
            }
        }
    }
}
