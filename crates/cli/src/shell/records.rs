//! Records of comma-separated values (RFC 4180), read one by one however large the file is.

use std::io::{self, BufRead, Read as _};

/// Most bytes of a record: more fit into no request.
const RECORD_BYTES_MAX: u64 = 1 << 20;

/// A file's records.
#[derive(Debug)]
pub(super) struct Records<R> {
    input: R,
    separator: u8,
    /// Bytes that the records so far had.
    pub(super) bytes: u64,
}

impl<R: BufRead> Records<R> {
    pub(super) const fn new(input: R, separator: u8) -> Self {
        Self { input, separator, bytes: 0 }
    }

    /// The fields of the next record; `None` at the end.
    ///
    /// # Errors
    /// The input fails, is not UTF-8, has a quote that does not end, or a record that is too long.
    pub(super) fn next_record(&mut self) -> io::Result<Option<Vec<String>>> {
        let mut record = Record { separator: self.separator, fields: Vec::new(), field: Vec::new(), quoted: false };
        let mut bytes = 0;
        loop {
            let mut line = Vec::new();
            let count = (&mut self.input).take(RECORD_BYTES_MAX).read_until(b'\n', &mut line)? as u64;
            self.bytes += count;
            bytes += count;
            if bytes >= RECORD_BYTES_MAX {
                return Err(invalid(format!("a record has {RECORD_BYTES_MAX} bytes or more; is a quote missing?")));
            }
            match (count, record.quoted) {
                (0, true) => return Err(invalid("a quote is not closed".into())),
                (0, false) => return Ok(None),
                _ => record.add(&line),
            }
            if !record.quoted {
                break;
            }
        }
        record.fields.push(record.field);
        let text = |field: Vec<u8>| String::from_utf8(field).map_err(|_| invalid("it is not UTF-8".into()));
        record.fields.into_iter().map(text).collect::<io::Result<_>>().map(Some)
    }
}

fn invalid(what: String) -> io::Error {
    io::Error::new(io::ErrorKind::InvalidData, what)
}

/// A record as far as it was read.
struct Record {
    separator: u8,
    fields: Vec<Vec<u8>>,
    field: Vec<u8>,
    /// Whether the field is quoted and has not ended.
    quoted: bool,
}

impl Record {
    /// Takes one more line, with its end.
    fn add(&mut self, line: &[u8]) {
        let end = line.strip_suffix(b"\n").map_or(line, |line| line.strip_suffix(b"\r").unwrap_or(line)).len();
        let mut bytes = line.iter().enumerate().peekable();
        while let Some((at, &byte)) = bytes.next() {
            match byte {
                b'"' if self.quoted => match bytes.next_if(|(_, next)| **next == b'"') {
                    Some(_) => self.field.push(b'"'),
                    None => self.quoted = false,
                },
                b'"' if self.field.is_empty() => self.quoted = true,
                byte if self.quoted => self.field.push(byte),
                _ if at >= end => {}
                byte if byte == self.separator => self.fields.push(std::mem::take(&mut self.field)),
                byte => self.field.push(byte),
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn read(text: &str) -> io::Result<Vec<Vec<String>>> {
        let mut records = Records::new(text.as_bytes(), b',');
        let mut all = Vec::new();
        while let Some(record) = records.next_record()? {
            all.push(record);
        }
        assert_eq!(records.bytes, text.len() as u64);
        Ok(all)
    }

    #[test]
    fn quotes_keep_commas_lines_and_quotes() {
        let text = "a,b\r\n1,\"x, \"\"y\"\"\r\nz\"\n,\n3,4\"5";
        assert_eq!(read(text).unwrap(), [["a", "b"], ["1", "x, \"y\"\r\nz"], ["", ""], ["3", "4\"5"]]);
        assert!(read("a,\"b\n").is_err());
        assert_eq!(read("").unwrap(), [[""; 0]; 0]);
    }

    proptest! {
        #[test]
        fn what_is_quoted_comes_back(
            rows in prop::collection::vec(prop::collection::vec("[a,\"\n\r ü]{0,6}", 1..4), 0..5)
        ) {
            let quoted = |field: &String| format!("\"{}\"", field.replace('"', "\"\""));
            let line = |row: &Vec<String>| row.iter().map(quoted).collect::<Vec<_>>().join(",") + "\n";
            prop_assert_eq!(read(&rows.iter().map(line).collect::<String>()).unwrap(), rows);
        }
    }
}
