//! What can be told of a statement token by token: its first word, what its parameters are cast to, and the casts of
//! catalog queries. Statements about tables are understood whole, in `translate`.

use crate::tokens::{Kind, Token, tokens};
use crate::types::of_declaration;
use bezant_sql::{Column, PARAMETERS_MAX};

/// The keyword by which a statement is called when it is done: behind a WITH clause, the first one outside of its
/// parentheses. What the statement does the replicas say.
pub(crate) fn verb(sql: &str) -> String {
    let tokens = tokens(sql);
    let mut solid = tokens.iter().filter(|token| token.is_solid());
    let Some(first) = solid.next() else { return String::new() };
    if !first.is("with") {
        return first.text.to_ascii_lowercase();
    }
    let mut depth = 0_u32;
    let mut solid = solid.peekable();
    while let Some(token) = solid.next() {
        // A table of the clause may be called `replace`.
        let mut replaces = || token.is("replace") && solid.peek().is_some_and(|next| next.is("into"));
        match token.text {
            "(" => depth += 1,
            ")" => depth = depth.saturating_sub(1),
            _ if depth > 0 => {}
            _ if token.is_any(&["select", "insert", "update", "delete", "values"]) || replaces() => {
                return token.text.to_ascii_lowercase();
            }
            _ => {}
        }
    }
    "select".into()
}

/// The types of parameters: those that the client says, and for the rest those that they are cast to (`$1::int`). 0
/// where neither is known.
pub(crate) fn parameter_types(sql: &str, mut types: Vec<u32>) -> Vec<u32> {
    let tokens = tokens(sql);
    for (at, token) in tokens.iter().enumerate().filter(|(_, token)| token.kind == Kind::Parameter) {
        let place = token.text[1..].parse().ok().and_then(|number: usize| number.checked_sub(1));
        let cast = follows(&tokens, at + 1, &["::"]).and_then(|from| Some((from, type_name(&tokens, from)?)));
        let (Some(place), Some((from, (class, end)))) = (place, cast) else { continue };
        let is_array = tokens[end - 1].text == "]";
        if place >= PARAMETERS_MAX || class == Class::Nothing || is_array {
            continue;
        }
        if types.len() <= place {
            types.resize(place + 1, 0);
        }
        if types[place] == 0 {
            let name: String = tokens[from..end].iter().map(|token| token.text).collect();
            types[place] = of_declaration(name.trim()).0;
        }
    }
    types
}

/// Calls columns without a name as PostgreSQL does: functions by their name, a cast by what is cast, the rest
/// `?column?`. SQLite calls them as they are written.
pub(crate) fn rename(columns: &mut [Column], sql: &str) {
    let quoted: Vec<String> =
        tokens(sql).iter().filter(|token| token.kind == Kind::Quoted).filter_map(Token::name).collect();
    for column in columns {
        let is_plain = column.name.chars().all(|c| c.is_alphanumeric() || c == '_' || c == '.');
        let is_number = column.name.starts_with(|c: char| c.is_ascii_digit());
        if (!is_plain || is_number) && !quoted.contains(&column.name) {
            column.name = name_of(&column.name);
        }
    }
}

fn name_of(expression: &str) -> String {
    let all = tokens(expression);
    let solid: Vec<Token<'_>> = all.into_iter().filter(Token::is_solid).collect();
    match solid.as_slice() {
        [cast, open, inner @ .., close] if cast.is("cast") && open.text == "(" && close.text == ")" => {
            let end = inner.iter().rposition(|token| token.is("as")).unwrap_or(inner.len());
            let inner: Vec<&str> = inner[..end].iter().map(|token| token.text).collect();
            match inner.as_slice() {
                [.., name] if inner.len() == 1 || inner[inner.len() - 2] == "." => name_of(name),
                _ => name_of(&inner.join(" ")),
            }
        }
        [name] => name.name().unwrap_or_else(|| "?column?".into()),
        [function, open, .., close] if open.text == "(" && close.text == ")" => {
            function.name().unwrap_or_else(|| "?column?".into())
        }
        _ => "?column?".into(),
    }
}

/// The place of the next token that means something.
fn solid(tokens: &[Token<'_>], from: usize) -> Option<usize> {
    (from..tokens.len()).find(|at| tokens[*at].is_solid())
}

/// Whether these words and symbols follow, and where they end.
pub(crate) fn follows(tokens: &[Token<'_>], from: usize, wanted: &[&str]) -> Option<usize> {
    wanted.iter().try_fold(from, |at, wanted| {
        let found = solid(tokens, at)?;
        tokens[found].text.eq_ignore_ascii_case(wanted).then_some(found + 1)
    })
}

/// Whether the innermost parenthesis around a place is that of a CAST.
pub(crate) fn is_in_cast(tokens: &[Token<'_>], at: usize) -> bool {
    let mut depth = 0_u32;
    let open = (0..at).rev().find(|at| {
        match tokens[*at].text {
            ")" => depth += 1,
            "(" if depth == 0 => return true,
            "(" => depth -= 1,
            _ => {}
        }
        false
    });
    let before = open.and_then(|open| (0..open).rev().find(|at| tokens[*at].is_solid()));
    before.is_some_and(|at| tokens[at].is("cast"))
}

fn skip_parentheses(tokens: &[Token<'_>], from: usize) -> usize {
    let Some(open) = solid(tokens, from).filter(|at| tokens[*at].is_symbol("(")) else { return from };
    let mut depth = 0_u32;
    for (at, token) in tokens.iter().enumerate().skip(open) {
        match token.text {
            "(" => depth += 1,
            ")" if depth == 1 => return at + 1,
            ")" => depth -= 1,
            _ => {}
        }
    }
    tokens.len()
}

/// What a cast to a type comes to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Class {
    Integer,
    Real,
    Numeric,
    Text,
    Blob,
    Boolean,
    /// Text of a certain form: dates, UUIDs, JSON.
    Written,
    /// A cast that changes nothing here.
    Nothing,
}

/// The type that is named here, and where its name ends.
pub(crate) fn type_name(tokens: &[Token<'_>], from: usize) -> Option<(Class, usize)> {
    let mut at = solid(tokens, from)?;
    if tokens[at].name().is_some_and(|name| name == "pg_catalog") {
        at = solid(tokens, follows(tokens, at + 1, &["."])?)?;
    }
    let name = tokens[at].name()?;
    let mut end = at + 1;
    let class = match name.as_str() {
        "int" | "integer" | "int2" | "int4" | "int8" | "bigint" | "smallint" | "oid" => Class::Integer,
        "real" | "float" | "float4" | "float8" | "double" => {
            end = follows(tokens, end, &["precision"]).unwrap_or(end);
            Class::Real
        }
        "numeric" | "decimal" => Class::Numeric,
        "text" | "varchar" | "char" | "character" | "bpchar" | "name" | "citext" => {
            end = follows(tokens, end, &["varying"]).unwrap_or(end);
            Class::Text
        }
        "bytea" => Class::Blob,
        "bool" | "boolean" => Class::Boolean,
        "date" | "time" | "timestamp" | "timestamptz" | "timetz" | "uuid" | "json" | "jsonb" | "interval" => {
            for zone in [["with", "time", "zone"], ["without", "time", "zone"]] {
                end = follows(tokens, end, &zone).unwrap_or(end);
            }
            Class::Written
        }
        _ => Class::Nothing,
    };
    end = skip_parentheses(tokens, end);
    for zone in [["with", "time", "zone"], ["without", "time", "zone"]] {
        end = follows(tokens, end, &zone).unwrap_or(end);
    }
    while let Some(after) = follows(tokens, end, &["[", "]"]) {
        end = after;
    }
    Some((class, end))
}

/// The place where the operand begins that ends here.
pub(crate) fn operand(pieces: &[String]) -> usize {
    let mut at = pieces.len();
    let solid_before = |end: usize| (0..end).rev().find(|at| !is_space(&pieces[*at]));
    let Some(last) = solid_before(at) else { return at };
    at = last;
    if pieces[at] == ")" {
        let mut depth = 0_u32;
        for place in (0..=last).rev() {
            match pieces[place].as_str() {
                ")" => depth += 1,
                "(" => depth = depth.saturating_sub(1),
                _ => {}
            }
            if depth == 0 {
                at = place;
                break;
            }
        }
        // A function's name stands before its parentheses.
        if at > 0 && is_name(&pieces[at - 1]) {
            at -= 1;
        }
    }
    // Names may have several parts.
    while at >= 2 && pieces[at - 1] == "." {
        at -= 2;
    }
    at
}

fn is_space(piece: &str) -> bool {
    piece.trim_start().is_empty() || piece.starts_with("--") || piece.starts_with("/*")
}

fn is_name(piece: &str) -> bool {
    const NOT_FUNCTIONS: [&str; 12] =
        ["select", "in", "and", "or", "not", "where", "values", "on", "then", "else", "when", "returning"];
    let is_word = piece.starts_with(|c: char| c.is_alphabetic() || c == '_' || c == '"');
    is_word && !NOT_FUNCTIONS.iter().any(|word| piece.eq_ignore_ascii_case(word))
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn parameters_have_the_type_that_they_are_cast_to() {
        use crate::types::oid;
        let types = |sql| parameter_types(sql, vec![0, oid::TEXT]);
        assert_eq!(types("select $1::int, $2::int, $3 :: double precision"), [oid::INT4, oid::TEXT, oid::FLOAT8]);
        assert_eq!(types("select $1, $3::text[], $4::mood, '$1::int'"), [0, oid::TEXT]);
        assert_eq!(types("select $0::int, $99999999999::int"), [0, oid::TEXT]);
    }

    #[test]
    fn columns_are_called_as_postgresql_does() {
        for (from, to) in [
            ("count(*)", "count"),
            ("CAST(score AS TEXT)", "score"),
            ("CAST(t.score AS TEXT)", "score"),
            ("1 + 1", "?column?"),
            ("1", "?column?"),
            ("'x'", "?column?"),
            ("max(a) + 1", "?column?"),
            ("a", "a"),
            ("Total (EUR)", "Total (EUR)"),
        ] {
            let mut columns = [Column { name: from.into(), declared: None }];
            rename(&mut columns, "select x as \"Total (EUR)\"");
            assert_eq!(columns[0].name, to);
        }
    }

    #[test]
    fn the_verb_is_behind_the_with_clause() {
        assert_eq!(verb("with a as (select 1) insert into t select * from a"), "insert");
        assert_eq!(verb(" Select 1"), "select");
        assert_eq!(verb("-- c\nUPDATE t set a = 1"), "update");
    }

    proptest! {
        #[test]
        fn any_text_is_rewritten(sql in r"(::|int|text|a|\$1|'|\(|\)|\.|,| |for|update|as|cast|é|\PC){0,30}") {
            let _ = (verb(&sql), parameter_types(&sql, Vec::new()));
        }
    }
}
