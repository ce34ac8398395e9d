//! Arrays as parameters: the replicas take them apart as JSON. Integers and truth values are numbers there, everything
//! else is text as PostgreSQL writes it.

use super::{BINARY_FORMAT, excerpt, take, text};
use crate::error::{PgError, sqlstate};
use crate::translate::Type;
use bezant_sql::Value;
use bytes::Bytes;

/// An array in a format, of elements of a type. An element of the array may be NULL, as in PostgreSQL.
///
/// # Errors
/// If it is none, if an element is none of its type, or if it has several dimensions.
pub(crate) fn take_array(bytes: &Bytes, element: Type, format: i16) -> Result<Value, PgError> {
    let elements = if format == BINARY_FORMAT {
        binary(bytes, element)?
    } else {
        let text = std::str::from_utf8(bytes).map_err(|_| PgError::new("22021", "a parameter is not UTF-8"))?;
        let of_text = |text: Option<String>| match text {
            None => Ok(Value::Null),
            Some(text) => take(&Bytes::from(text), element.oid(), super::TEXT_FORMAT),
        };
        elements(text)?.into_iter().map(of_text).collect::<Result<_, _>>()?
    };
    let mut json = String::from("[");
    for (at, value) in elements.iter().enumerate() {
        if at > 0 {
            json.push(',');
        }
        match value {
            Value::Null => json.push_str("null"),
            Value::Integer(number) => json.push_str(&number.to_string()),
            other => quote(&text(other, element.oid(), 0), &mut json),
        }
    }
    json.push(']');
    Ok(Value::Text(json))
}

/// A text in JSON.
fn quote(text: &str, json: &mut String) {
    json.push('"');
    for c in text.chars() {
        match c {
            '"' | '\\' => json.extend(['\\', c]),
            c if c < ' ' => json.push_str(&format!("\\u{:04x}", u32::from(c))),
            c => json.push(c),
        }
    }
    json.push('"');
}

/// The elements of `{a, "b c", NULL}`.
///
/// # Errors
/// 22P02 if it is no array, 0A000 if it has arrays in it.
pub(crate) fn elements(text: &str) -> Result<Vec<Option<String>>, PgError> {
    let bad = || PgError::new(sqlstate::BAD_TEXT, format!("malformed array literal: \"{}\"", excerpt(text)));
    let inner = text.trim().strip_prefix('{').and_then(|rest| rest.strip_suffix('}')).ok_or_else(bad)?;
    let mut all = Vec::new();
    let mut characters = inner.chars().peekable();
    let skip = |characters: &mut std::iter::Peekable<std::str::Chars<'_>>| {
        while characters.next_if(char::is_ascii_whitespace).is_some() {}
    };
    skip(&mut characters);
    if characters.peek().is_none() {
        return Ok(all);
    }
    loop {
        skip(&mut characters);
        let mut element = String::new();
        let is_quoted = characters.next_if_eq(&'"').is_some();
        if is_quoted {
            loop {
                match characters.next().ok_or_else(bad)? {
                    '"' => break,
                    '\\' => element.push(characters.next().ok_or_else(bad)?),
                    c => element.push(c),
                }
            }
            skip(&mut characters);
        } else {
            while let Some(c) = characters.next_if(|c| *c != ',') {
                match c {
                    '{' | '}' => return Err(PgError::unsupported("an array of arrays is not supported")),
                    '"' => return Err(bad()),
                    '\\' => element.push(characters.next().ok_or_else(bad)?),
                    c => element.push(c),
                }
            }
            element.truncate(element.trim_end().len());
            if element.is_empty() {
                return Err(bad());
            }
        }
        let is_null = !is_quoted && element.eq_ignore_ascii_case("null");
        all.push((!is_null).then_some(element));
        match characters.next() {
            None => return Ok(all),
            Some(',') => {}
            Some(_) => return Err(bad()),
        }
    }
}

/// The number of dimensions, a flag, the type of the elements, for each dimension a length and where it begins; then
/// the elements, each behind its length.
fn binary(bytes: &Bytes, element: Type) -> Result<Vec<Value>, PgError> {
    let bad = || PgError::new(sqlstate::BAD_BINARY, "a binary parameter is no array");
    let mut rest = bytes.clone();
    let next = |rest: &mut Bytes| {
        let four = split(rest, 4).and_then(|four| four.as_ref().try_into().ok());
        four.map(i32::from_be_bytes).ok_or_else(bad)
    };
    let (dimensions, _, kind) = (next(&mut rest)?, next(&mut rest)?, next(&mut rest)?);
    if Type::of_oid(kind as u32) != Some(element) {
        return Err(PgError::new("42804", "wrong element type"));
    }
    let length = match dimensions {
        0 => 0,
        1 => {
            let length = next(&mut rest)?;
            next(&mut rest)?;
            length
        }
        _ => return Err(PgError::unsupported("an array of arrays is not supported")),
    };
    let mut all = Vec::new();
    for _ in 0..length {
        let value = match usize::try_from(next(&mut rest)?) {
            Err(_) => Value::Null,
            Ok(size) => take(&split(&mut rest, size).ok_or_else(bad)?, kind as u32, BINARY_FORMAT)?,
        };
        all.push(value);
    }
    if rest.is_empty() { Ok(all) } else { Err(bad()) }
}

/// So many bytes of the front; `None`: there are fewer.
fn split(rest: &mut Bytes, count: usize) -> Option<Bytes> {
    (count <= rest.len()).then(|| rest.split_to(count))
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn json(array: &[u8], element: Type, format: i16) -> Result<String, &'static str> {
        match take_array(&Bytes::copy_from_slice(array), element, format) {
            Ok(Value::Text(json)) => Ok(json),
            Ok(other) => panic!("{other:?}"),
            Err(error) => Err(error.sqlstate),
        }
    }

    #[test]
    fn arrays_are_read_as_postgresql_reads_them() {
        for (text, element, wanted) in [
            ("{}", Type::Int4, Ok("[]")),
            (" { } ", Type::Text, Ok("[]")),
            ("{1, 2,NULL}", Type::Int4, Ok("[1,2,null]")),
            ("{t,false}", Type::Bool, Ok("[1,0]")),
            ("{a b , \"c,\\\"d\" , \"null\",\\,}", Type::Text, Ok("[\"a b\",\"c,\\\"d\",\"null\",\",\"]")),
            ("{1.50,-2}", Type::Numeric, Ok("[\"1.50\",\"-2\"]")),
            ("{\"\"}", Type::Text, Ok("[\"\"]")),
            ("{1,x}", Type::Int4, Err("22P02")),
            ("{99999}", Type::Int2, Err("22003")),
            ("{1,}", Type::Int4, Err("22P02")),
            ("{,}", Type::Text, Err("22P02")),
            ("{\"a\"b}", Type::Text, Err("22P02")),
            ("{a\"b\"}", Type::Text, Err("22P02")),
            ("1,2", Type::Int4, Err("22P02")),
            ("{\"a}", Type::Text, Err("22P02")),
            ("{{1},{2}}", Type::Int4, Err("0A000")),
        ] {
            assert_eq!(json(text.as_bytes(), element, 0), wanted.map(Into::into), "{text}");
        }
    }

    #[test]
    fn binary_arrays_are_read_or_refused() {
        let array = |numbers: &[i32]| numbers.iter().flat_map(|number| number.to_be_bytes()).collect::<Vec<_>>();
        let oid = Type::Int4.oid() as i32;
        for (numbers, wanted) in [
            (&[0, 0, oid][..], Ok("[]")),
            (&[1, 1, oid, 2, 1, 4, 7, -1], Ok("[7,null]")),
            (&[1, 0, oid, 2, 1, 4, 7], Err("22P03")),
            (&[1, 0, oid, 1, 1, 4, 7, 0], Err("22P03")),
            (&[1, 0, oid, 1, 1, 99, 7], Err("22P03")),
            (&[2, 0, oid, 1, 1, 1, 1, 4, 7], Err("0A000")),
            (&[1, 0, 25, 1, 1, 4, 7], Err("42804")),
            (&[1], Err("22P03")),
        ] {
            assert_eq!(json(&array(numbers), Type::Int4, BINARY_FORMAT), wanted.map(Into::into), "{numbers:?}");
        }
    }

    proptest! {
        /// Whatever texts are in an array come back from it.
        #[test]
        fn texts_come_back(
            texts in proptest::collection::vec(any::<String>(), 0..5),
            rubbish in r#"[{}",\\ a1]{0,20}"#,
        ) {
            let texts: Vec<String> = texts.into_iter().map(|text| text.replace('\0', "")).collect();
            let quoted = |text: &String| format!("\"{}\"", text.replace('\\', "\\\\").replace('"', "\\\""));
            let array = format!("{{{}}}", texts.iter().map(quoted).collect::<Vec<_>>().join(","));
            prop_assert_eq!(elements(&array).unwrap(), texts.into_iter().map(Some).collect::<Vec<_>>());
            let _ = elements(&rubbish);
            let _ = take_array(&Bytes::from(rubbish), Type::Int4, BINARY_FORMAT);
        }
    }
}
