//! Standard output: JSON lines, tables, and colours where a person looks on.

use crate::failure::{Failure, Result};
use std::fmt::{self, Write as _};
use std::io::{ErrorKind, IsTerminal, Write as _};

/// Prints a line, at once.
///
/// # Errors
/// Nobody reads any more, which nobody needs to be told; or the disk that it goes to is full.
pub(crate) fn line(text: impl fmt::Display) -> Result {
    let mut out = std::io::stdout().lock();
    writeln!(out, "{text}").and_then(|()| out.flush()).map_err(|error| match error.kind() {
        ErrorKind::BrokenPipe => Failure::silent(),
        _ => Failure::failed(format!("cannot write to standard output: {error}.")),
    })
}

/// Whether a stream, which is or is not a terminal, wants colours.
pub(crate) fn is_colourful(is_terminal: bool) -> bool {
    is_terminal && std::env::var_os("NO_COLOR").is_none()
}

/// Text for standard output as an alarm, if there are colours.
pub(crate) fn alarming(text: &str) -> String {
    if is_colourful(std::io::stdout().is_terminal()) { format!("\x1b[1;31m{text}\x1b[0m") } else { text.to_owned() }
}

/// Rows as aligned columns; the first row is the head. Columns are two spaces apart.
pub(crate) fn table(rows: &[Vec<String>]) -> String {
    let columns = rows.iter().map(Vec::len).max().unwrap_or(0);
    let width = |column: usize| rows.iter().filter_map(|row| row.get(column)).map(|cell| cell.chars().count()).max();
    let widths: Vec<_> = (0..columns).map(|column| width(column).unwrap_or(0)).collect();
    let mut text = String::new();
    for row in rows {
        let mut line = String::new();
        for (cell, width) in row.iter().zip(&widths) {
            let _ = write!(line, "{cell:<width$}  ");
        }
        text.push_str(line.trim_end());
        text.push('\n');
    }
    text
}

/// Bytes as text: what is no UTF-8 or cannot be printed is escaped, so that one value is one line.
pub(crate) fn printable(bytes: &[u8]) -> String {
    match std::str::from_utf8(bytes) {
        Ok(text) if !text.chars().any(char::is_control) => text.to_owned(),
        _ => bytes.escape_ascii().to_string(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn columns_are_aligned_and_lines_do_not_end_in_spaces() {
        let rows = [["id", "state"], ["0", "ok"], ["10", ""]].map(|row| row.map(str::to_owned).to_vec());
        assert_eq!(table(&rows), "id  state\n0   ok\n10\n");
    }

    #[test]
    fn a_value_is_one_line() {
        assert_eq!(printable("blau ü".as_bytes()), "blau ü");
        assert_eq!(printable(b"a\nb\xff"), "a\\nb\\xff");
    }
}
