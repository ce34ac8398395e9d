//! Results as text, in the forms that sqlite3 has as well.

use bezant_sql::{Rows, Value};
use serde_json::Value as Json;
use std::fmt::Write as _;

/// The form of results.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, clap::ValueEnum)]
pub(super) enum Mode {
    /// Values with | between them
    #[default]
    List,
    /// Comma-separated, quoted where needed (RFC 4180)
    Csv,
    /// Aligned columns
    Column,
    /// A table with lines around
    Box,
    /// One array of objects a result
    Json,
    /// One value a line
    Line,
    /// A table for Markdown
    Markdown,
    /// SQL statements
    Insert,
}

/// How results are shown.
#[derive(Clone, Debug, Default)]
pub(super) struct Style {
    pub(super) mode: Mode,
    /// Whether the names of columns come first; `None`: as the mode has it.
    pub(super) headers: Option<bool>,
    /// What stands for NULL.
    pub(super) null: String,
    /// The table's name in mode insert.
    pub(super) table: Option<String>,
    /// Whether control characters are escaped, because a terminal would obey them.
    pub(super) escaped: bool,
}

/// Integers up to this size are numbers in JSON, for readers that know only floating point; beyond, they are strings.
const EXACT_MAX: u64 = (1 << 53) - 1;

impl Style {
    fn has_headers(&self) -> bool {
        self.headers.unwrap_or(!matches!(self.mode, Mode::List | Mode::Line | Mode::Insert))
    }

    /// A result as text that ends with a new line, or is empty.
    pub(super) fn render(&self, rows: &Rows) -> String {
        if rows.columns.is_empty() {
            return match self.mode {
                Mode::Json => {
                    format!("{{\"changes\":{},\"last_insert_rowid\":{}}}\n", rows.changes, rows.last_insert_rowid)
                }
                _ => String::new(),
            };
        }
        match self.mode {
            Mode::List => self.separated(rows, "|", |text| text),
            Mode::Csv => self.separated(rows, ",", quoted_for_csv),
            Mode::Column => grid(&self.cells(rows), &COLUMN),
            Mode::Box => grid(&self.cells(rows), &BOX),
            Mode::Markdown => grid(&self.cells(rows), &MARKDOWN),
            Mode::Json => json(rows),
            Mode::Line => self.lines(rows),
            Mode::Insert => self.inserts(rows),
        }
    }

    fn show(&self, value: &Value) -> String {
        match value {
            Value::Null => self.null.clone(),
            value if self.escaped && !self.is_table() => tamed(&value.to_string(), false),
            value => value.to_string(),
        }
    }

    const fn is_table(&self) -> bool {
        matches!(self.mode, Mode::Column | Mode::Box | Mode::Markdown)
    }

    fn separated(&self, rows: &Rows, separator: &str, quote: impl Fn(String) -> String) -> String {
        let mut text = String::new();
        if self.has_headers() {
            let names: Vec<_> = rows.columns.iter().map(|column| quote(column.name.clone())).collect();
            text = names.join(separator) + "\n";
        }
        for row in &rows.rows {
            let cells: Vec<_> = row.iter().map(|value| quote(self.show(value))).collect();
            text += &cells.join(separator);
            text.push('\n');
        }
        text
    }

    /// Rows of cells that are one line each, the head first; without it the first row is empty.
    fn cells(&self, rows: &Rows) -> Vec<Vec<String>> {
        let cell = |text: &str| match self.mode {
            Mode::Markdown => tamed(text, true).replace('|', "\\|"),
            _ => tamed(text, true),
        };
        let head = match self.has_headers() {
            true => rows.columns.iter().map(|column| cell(&column.name)).collect(),
            false => Vec::new(),
        };
        let body = rows.rows.iter().map(|row| row.iter().map(|value| cell(&self.show(value))).collect());
        std::iter::once(head).chain(body).collect()
    }

    fn lines(&self, rows: &Rows) -> String {
        let width = rows.columns.iter().map(|column| column.name.chars().count()).max().unwrap_or(0);
        let mut text = String::new();
        for (number, row) in rows.rows.iter().enumerate() {
            if number > 0 {
                text.push('\n');
            }
            for (column, value) in rows.columns.iter().zip(row) {
                let _ = writeln!(text, "{:>width$} = {}", column.name, self.show(value));
            }
        }
        text
    }

    fn inserts(&self, rows: &Rows) -> String {
        let table = name_literal(self.table.as_deref().unwrap_or("table"));
        rows.rows.iter().map(|row| format!("INSERT INTO {table} VALUES({});\n", literals(row))).collect()
    }
}

/// Values as SQL has them, with commas between them.
pub(super) fn literals(row: &[Value]) -> String {
    let values: Vec<_> = row.iter().map(literal).collect();
    values.join(",")
}

/// A value as SQL has it: read back, it is the same one.
pub(super) fn literal(value: &Value) -> String {
    match value {
        Value::Null => "NULL".to_owned(),
        Value::Integer(i64::MIN) => "(-9223372036854775807-1)".to_owned(),
        Value::Integer(number) => number.to_string(),
        Value::Real(number) if number.is_infinite() => if *number > 0.0 { "9e999" } else { "-9e999" }.to_owned(),
        Value::Real(number) => format!("{number:?}"),
        Value::Text(text) if text.contains('\0') => format!("CAST(X'{}' AS TEXT)", hex(text.as_bytes())),
        Value::Text(text) => format!("'{}'", text.replace('\'', "''")),
        Value::Blob(bytes) => format!("X'{}'", hex(bytes)),
    }
}

/// A name as SQL has it, whatever is in it.
pub(super) fn name_literal(name: &str) -> String {
    format!("\"{}\"", name.replace('"', "\"\""))
}

fn hex(bytes: &[u8]) -> String {
    Value::Blob(bytes::Bytes::copy_from_slice(bytes)).to_string()
}

fn quoted_for_csv(text: String) -> String {
    let special = |c: char| matches!(c, ',' | '"' | '\n' | '\r');
    if text.contains(special) || text != text.trim() { format!("\"{}\"", text.replace('"', "\"\"")) } else { text }
}

/// Names and values by hand: a map would lose the order of the columns, and one of two with the same name.
fn json(rows: &Rows) -> String {
    let names: Vec<_> = rows.columns.iter().map(|column| Json::from(column.name.as_str()).to_string()).collect();
    let object = |row: &Vec<Value>| {
        let fields: Vec<_> =
            names.iter().zip(row).map(|(name, value)| format!("{name}:{}", json_value(value))).collect();
        format!("{{{}}}", fields.join(","))
    };
    let objects: Vec<_> = rows.rows.iter().map(object).collect();
    format!("[{}]\n", objects.join(","))
}

fn json_value(value: &Value) -> Json {
    match value {
        Value::Null => Json::Null,
        Value::Integer(number) if number.unsigned_abs() <= EXACT_MAX => Json::from(*number),
        // JSON has no infinity: `from` would turn it into null.
        Value::Real(number) if number.is_finite() => Json::from(*number),
        other => Json::from(other.to_string()),
    }
}

/// What is drawn around cells.
struct Lines {
    /// Above, under the head, below: left end, filling, between columns, right end.
    top: Option<[&'static str; 4]>,
    middle: Option<[&'static str; 4]>,
    bottom: Option<[&'static str; 4]>,
    /// Before, between and behind cells.
    sides: [&'static str; 3],
}

const COLUMN: Lines = Lines { top: None, middle: Some(["", "-", "  ", ""]), bottom: None, sides: ["", "  ", ""] };
const BOX: Lines = Lines {
    top: Some(["┌─", "─", "─┬─", "─┐"]),
    middle: Some(["├─", "─", "─┼─", "─┤"]),
    bottom: Some(["└─", "─", "─┴─", "─┘"]),
    sides: ["│ ", " │ ", " │"],
};
const MARKDOWN: Lines =
    Lines { top: None, middle: Some(["|-", "-", "-|-", "-|"]), bottom: None, sides: ["| ", " | ", " |"] };

/// Cells with lines around. The first row is the head, if it is not empty.
fn grid(cells: &[Vec<String>], lines: &Lines) -> String {
    let columns = cells.iter().map(Vec::len).max().unwrap_or(0);
    let width = |column: usize| cells.iter().filter_map(|row| row.get(column)).map(|cell| cell.chars().count()).max();
    let widths: Vec<_> = (0..columns).map(|column| width(column).unwrap_or(0)).collect();
    let rule = |ends: &Option<[&str; 4]>| {
        ends.as_ref().map_or(String::new(), |[left, fill, between, right]| {
            let parts: Vec<_> = widths.iter().map(|width| fill.repeat(*width)).collect();
            format!("{left}{}{right}\n", parts.join(between))
        })
    };
    let line = |row: &Vec<String>| {
        let [left, between, right] = lines.sides;
        let parts: Vec<_> = row.iter().zip(&widths).map(|(cell, &width)| format!("{cell:<width$}")).collect();
        format!("{}\n", format!("{left}{}{right}", parts.join(between)).trim_end())
    };
    let (head, body) = cells.split_first().map_or((None, cells), |(head, body)| (Some(head), body));
    let mut text = rule(&lines.top);
    if let Some(head) = head.filter(|head| !head.is_empty()) {
        text += &line(head);
        text += &rule(&lines.middle);
    }
    body.iter().for_each(|row| text += &line(row));
    text + &rule(&lines.bottom)
}

/// A text whose control characters are escaped; if it is to be one line, ends of lines and tabs as well.
fn tamed(text: &str, one_line: bool) -> String {
    let mut safe = String::with_capacity(text.len());
    for character in text.chars() {
        match character {
            '\n' | '\t' if !one_line => safe.push(character),
            character if character.is_control() => safe.extend(character.escape_default()),
            character => safe.push(character),
        }
    }
    safe
}

#[cfg(test)]
mod tests {
    use super::*;
    use bezant_sql::Column;

    fn rows() -> Rows {
        let column = |name: &str| Column { name: name.into(), declared: None };
        let text = |text: &str| Value::Text(text.into());
        Rows {
            columns: [column("a"), column("b")].to_vec(),
            rows: vec![
                vec![Value::Integer(1), text("say \"x\", y")],
                vec![Value::Null, text("it's\nü\x1b[1m")],
                vec![Value::Integer(i64::MAX), Value::Blob(vec![0, 255].into())],
            ],
            changes: 0,
            last_insert_rowid: 0,
        }
    }

    fn shown(mode: Mode) -> String {
        Style { mode, escaped: true, ..Style::default() }.render(&rows())
    }

    #[test]
    fn every_mode_shows_the_same_rows() {
        assert_eq!(shown(Mode::List), "1|say \"x\", y\n|it's\nü\\u{1b}[1m\n9223372036854775807|00ff\n");
        assert_eq!(shown(Mode::Csv), "a,b\n1,\"say \"\"x\"\", y\"\n,\"it's\nü\\u{1b}[1m\"\n9223372036854775807,00ff\n");
        assert_eq!(
            shown(Mode::Json),
            "[{\"a\":1,\"b\":\"say \\\"x\\\", y\"},{\"a\":null,\"b\":\"it's\\nü\\u001b[1m\"},\
             {\"a\":\"9223372036854775807\",\"b\":\"00ff\"}]\n"
        );
        assert_eq!(
            shown(Mode::Insert),
            "INSERT INTO \"table\" VALUES(1,'say \"x\", y');\nINSERT INTO \"table\" VALUES(NULL,'it''s\nü\x1b[1m');\n\
             INSERT INTO \"table\" VALUES(9223372036854775807,X'00ff');\n"
        );
        assert_eq!(
            shown(Mode::Markdown),
            "| a                   | b                |\n|---------------------|------------------|\n\
             | 1                   | say \"x\", y       |\n|                     | it's\\nü\\u{1b}[1m |\n\
             | 9223372036854775807 | 00ff             |\n"
        );
        assert!(shown(Mode::Box).starts_with("┌─────────────────────┬"));
        assert!(shown(Mode::Column).starts_with("a                    b\n-------------------  ---"));
        assert!(shown(Mode::Line).starts_with("a = 1\nb = say \"x\", y\n\na = \n"));
    }

    #[test]
    fn what_gives_no_rows_prints_nothing_but_in_json() {
        let none = Rows { changes: 2, last_insert_rowid: 7, ..Rows::default() };
        assert_eq!(Style::default().render(&none), "");
        let json = Style { mode: Mode::Json, ..Style::default() };
        assert_eq!(json.render(&none), "{\"changes\":2,\"last_insert_rowid\":7}\n");
        assert_eq!(json.render(&Rows { rows: Vec::new(), ..rows() }), "[]\n");
    }

    #[test]
    fn literals_are_read_back_as_they_were() {
        let row = [
            Value::Null,
            Value::Real(0.1),
            Value::Real(1e16),
            Value::Real(f64::NEG_INFINITY),
            Value::Text("a\0b".into()),
            Value::Text("it's".into()),
        ];
        assert_eq!(literals(&row), "NULL,0.1,1e16,-9e999,CAST(X'610062' AS TEXT),'it''s'");
        assert_eq!(name_literal("a\"b"), "\"a\"\"b\"");
    }
}
