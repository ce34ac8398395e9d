//! Takes the lines of a COPY apart as PostgreSQL does: texts with escapes, or CSV.

use super::{COPY_ROWS_MAX, Header, Layout};
use crate::error::{PgError, sqlstate};
use bytes::Bytes;

/// The values of a line; `None`: no value.
pub(crate) type Row = Vec<Option<Bytes>>;

/// How lines end. The first end decides.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Ending {
    Unknown,
    Newline,
    Return,
    Both,
}

struct Reader<'a> {
    data: &'a [u8],
    at: usize,
    layout: &'a Layout,
    ending: Ending,
    /// The number of the line, from 1 on.
    line: usize,
    is_over: bool,
}

/// The rows of lines for so many columns, each with the number of its line.
///
/// # Errors
/// What PostgreSQL says of the first line that is wrong; 54000 of more than [`COPY_ROWS_MAX`] rows.
pub(crate) fn read(data: &[u8], layout: &Layout, columns: &[String]) -> Result<Vec<(usize, Row)>, PgError> {
    if std::str::from_utf8(data).is_err() {
        return Err(not_utf8());
    }
    let mut reader = Reader { data, at: 0, layout, ending: Ending::Unknown, line: 0, is_over: false };
    let mut rows = Vec::new();
    while let Some(values) = reader.next_line(columns.len())? {
        let line = reader.line;
        if line == 1 && layout.header != Header::None {
            check_header(layout, &values, columns)?;
            continue;
        }
        if rows.len() == COPY_ROWS_MAX {
            return Err(too_much(&format!("{COPY_ROWS_MAX} rows")));
        }
        if values.len() > columns.len() {
            return Err(malformed("extra data after last expected column", line));
        }
        if let Some(missing) = columns.get(values.len()) {
            return Err(malformed(&format!("missing data for column \"{missing}\""), line));
        }
        rows.push((line, values));
    }
    Ok(rows)
}

/// More came than one COPY may bring.
pub(crate) fn too_much(bound: &str) -> PgError {
    PgError::new(sqlstate::LIMIT, format!("a COPY brings at most {bound}"))
        .hint("send it in pieces: a COPY, and a transaction, is one request to the replicas")
}

fn check_header(layout: &Layout, values: &Row, columns: &[String]) -> Result<(), PgError> {
    let is_right = values.len() == columns.len()
        && values.iter().zip(columns).all(|(value, column)| value.as_deref() == Some(column.as_bytes()));
    if layout.header == Header::Match && !is_right {
        return Err(malformed("column names of the header line are not those of the table", 1));
    }
    Ok(())
}

fn malformed(text: &str, line: usize) -> PgError {
    PgError::new("22P04", text).detail(format!("line {line} of the COPY"))
}

fn not_utf8() -> PgError {
    PgError::new("22021", "invalid byte sequence for encoding \"UTF8\"")
}

impl Reader<'_> {
    fn peek(&self) -> Option<u8> {
        self.data.get(self.at).copied()
    }

    /// The values of the next line, of which no more than one too many are kept.
    fn next_line(&mut self, columns: usize) -> Result<Option<Row>, PgError> {
        if self.is_over || self.at >= self.data.len() {
            return Ok(None);
        }
        self.line += 1;
        let is_end = match &self.data[self.at..] {
            [b'\\', b'.', rest @ ..] => !self.layout.is_csv || matches!(rest, [b'\r' | b'\n', ..]),
            _ => false,
        };
        if is_end {
            self.end_of_data()?;
            return Ok(None);
        }
        let mut values = Row::new();
        loop {
            let (value, is_last) = if self.layout.is_csv { self.csv_value()? } else { self.text_value()? };
            if values.len() <= columns {
                values.push(value);
            }
            if is_last {
                return Ok(Some(values));
            }
        }
    }

    /// Goes over the end of a line, if it is here.
    fn end_of_line(&mut self) -> Result<bool, PgError> {
        let (ending, length) = match (self.peek(), self.data.get(self.at + 1)) {
            (Some(b'\n'), _) => (Ending::Newline, 1),
            (Some(b'\r'), Some(b'\n')) if matches!(self.ending, Ending::Unknown | Ending::Both) => (Ending::Both, 2),
            (Some(b'\r'), _) => (Ending::Return, 1),
            _ => return Ok(false),
        };
        if self.ending != Ending::Unknown && self.ending != ending {
            let what = if ending == Ending::Newline { "newline" } else { "carriage return" };
            let how = if self.layout.is_csv { "unquoted" } else { "literal" };
            return Err(malformed(&format!("{how} {what} found in data"), self.line));
        }
        self.ending = ending;
        self.at += length;
        Ok(true)
    }

    /// Goes over `\.`, behind which the line must end.
    fn end_of_data(&mut self) -> Result<(), PgError> {
        self.at += 2;
        if !self.end_of_line()? {
            return Err(malformed("end-of-copy marker corrupt", self.line));
        }
        self.is_over = true;
        Ok(())
    }

    /// A value, and whether the line ends with it.
    fn text_value(&mut self) -> Result<(Option<Bytes>, bool), PgError> {
        let start = self.at;
        let (mut value, mut is_escaped) = (Vec::new(), false);
        let (end, is_last) = loop {
            let end = self.at;
            match self.peek() {
                None => break (end, true),
                Some(byte) if byte == self.layout.delimiter => {
                    self.at += 1;
                    break (end, false);
                }
                Some(b'\r' | b'\n') => {
                    self.end_of_line()?;
                    break (end, true);
                }
                Some(b'\\') if self.data.get(end + 1) == Some(&b'.') => {
                    self.end_of_data()?;
                    break (end, true);
                }
                Some(b'\\') => {
                    self.at += 1;
                    is_escaped |= self.escaped(&mut value);
                }
                Some(byte) => {
                    value.push(byte);
                    self.at += 1;
                }
            }
        };
        if &self.data[start..end] == self.layout.null.as_bytes() {
            return Ok((None, is_last));
        }
        // Only numbers of bytes can spoil what was UTF-8.
        if is_escaped && (std::str::from_utf8(&value).is_err() || value.contains(&0)) {
            return Err(not_utf8());
        }
        Ok((Some(value.into()), is_last))
    }

    /// What a backslash and what follows it stand for. Says whether it was the number of a byte.
    fn escaped(&mut self, value: &mut Vec<u8>) -> bool {
        // Behind the last line's last backslash there is nothing to stand for.
        let Some(byte) = self.peek() else { return false };
        self.at += 1;
        match byte {
            b'0'..=b'7' => {
                let mut number = u32::from(byte - b'0');
                for _ in 0..2 {
                    let Some(digit @ b'0'..=b'7') = self.peek() else { break };
                    number = number * 8 + u32::from(digit - b'0');
                    self.at += 1;
                }
                value.push((number & 0xff) as u8);
                return true;
            }
            b'x' => {
                let digit = |byte: Option<u8>| byte.and_then(|byte| char::from(byte).to_digit(16));
                let Some(first) = digit(self.peek()) else {
                    value.push(b'x');
                    return false;
                };
                self.at += 1;
                let number = digit(self.peek()).map_or(first, |second| {
                    self.at += 1;
                    first * 16 + second
                });
                value.push(number as u8);
                return true;
            }
            b'b' => value.push(8),
            b'f' => value.push(12),
            b'n' => value.push(b'\n'),
            b'r' => value.push(b'\r'),
            b't' => value.push(b'\t'),
            b'v' => value.push(11),
            other => value.push(other),
        }
        false
    }

    /// The same of CSV.
    fn csv_value(&mut self) -> Result<(Option<Bytes>, bool), PgError> {
        let Layout { delimiter, quote, escape, ref null, .. } = *self.layout;
        let (mut value, mut is_inside, mut was_quoted) = (Vec::new(), false, false);
        let is_last = loop {
            let next = self.data.get(self.at + 1).copied();
            match self.peek() {
                None if is_inside => return Err(malformed("unterminated CSV quoted field", self.line)),
                None => break true,
                Some(byte)
                    if is_inside && byte == escape && next.is_some_and(|next| next == escape || next == quote) =>
                {
                    value.extend(next);
                    self.at += 2;
                }
                Some(byte) if byte == quote => {
                    (is_inside, was_quoted) = (!is_inside, true);
                    self.at += 1;
                }
                Some(byte) if !is_inside && byte == delimiter => {
                    self.at += 1;
                    break false;
                }
                Some(b'\r' | b'\n') if !is_inside => {
                    self.end_of_line()?;
                    break true;
                }
                Some(byte) => {
                    value.push(byte);
                    self.at += 1;
                }
            }
        };
        let is_null = !was_quoted && value == null.as_bytes();
        Ok((if is_null { None } else { Some(value.into()) }, is_last))
    }
}
