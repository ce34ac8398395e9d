//! Makes lines of rows, byte by byte those of PostgreSQL.

use super::Layout;

/// A line of values, of which one may be `None`: no value.
pub(crate) fn line<'a>(values: impl ExactSizeIterator<Item = Option<&'a [u8]>>, layout: &Layout, out: &mut Vec<u8>) {
    let is_alone = values.len() == 1;
    for (at, value) in values.enumerate() {
        if at > 0 {
            out.push(layout.delimiter);
        }
        match value {
            None => out.extend(layout.null.bytes()),
            Some(value) if layout.is_csv => csv(value, is_alone, layout, out),
            Some(value) => text(value, layout.delimiter, out),
        }
    }
    out.push(b'\n');
}

/// The line with the names of the columns.
pub(crate) fn header<'a>(names: impl ExactSizeIterator<Item = &'a str>, layout: &Layout, out: &mut Vec<u8>) {
    line(names.map(|name| Some(name.as_bytes())), layout, out);
}

fn text(value: &[u8], delimiter: u8, out: &mut Vec<u8>) {
    for &byte in value {
        let letter = match byte {
            8 => b'b',
            12 => b'f',
            b'\n' => b'n',
            b'\r' => b'r',
            b'\t' => b't',
            11 => b'v',
            b'\\' => b'\\',
            byte if byte == delimiter => byte,
            byte => {
                out.push(byte);
                continue;
            }
        };
        out.extend([b'\\', letter]);
    }
}

/// A value is quoted if it could be taken for something else.
fn csv(value: &[u8], is_alone: bool, layout: &Layout, out: &mut Vec<u8>) {
    let Layout { delimiter, quote, escape, ref null, .. } = *layout;
    let is_special = |byte: &u8| [delimiter, quote, b'\r', b'\n'].contains(byte);
    if value != null.as_bytes() && !(is_alone && value == b"\\.") && !value.iter().any(is_special) {
        return out.extend(value);
    }
    out.push(quote);
    for &byte in value {
        if byte == quote || byte == escape {
            out.push(escape);
        }
        out.push(byte);
    }
    out.push(quote);
}
