//! PostgreSQL's words for what SQLite does as well.
//!
//! Only what can be told token by token: parameters, strings, casts and a few words. What neither understands is left
//! as it is, so that the error is about what the client wrote.

use crate::tokens::{Kind, Token, quote, text_of, tokens};
use crate::types::of_declaration;
use bezant_sql::{Column, PARAMETERS_MAX};

/// A statement as the replicas get it.
pub(crate) fn for_cluster(sql: &str) -> String {
    let tokens = tokens(sql);
    let mut out = Out::default();
    let defines =
        first_words(&tokens, 4).iter().any(|word| word == "table") && starts_with(&tokens, &["create", "alter"]);
    let drops = starts_with(&tokens, &["drop", "truncate"]);
    let mut at = 0;
    while let Some(token) = tokens.get(at) {
        at += 1;
        match token.kind {
            Kind::Space => out.space(token.text),
            Kind::Parameter => out.push(format!("?{}", &token.text[1..])),
            Kind::Dollar => out.push(quote(&text_of(*token))),
            Kind::Text if token.text.starts_with(['e', 'E', 'n', 'N']) => out.push(quote(&text_of(*token))),
            Kind::Symbol if token.text == "::" => at = out.cast(&tokens, at),
            Kind::Word | Kind::Quoted => at = word(&tokens, at - 1, defines, drops, &mut out),
            Kind::Symbol if token.text == ")" => at = out.close(&tokens, at),
            _ => out.push(token.text.into()),
        }
    }
    out.pieces.concat()
}

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

/// The first words, in lower case.
pub(crate) fn first_words(tokens: &[Token<'_>], count: usize) -> Vec<String> {
    tokens.iter().filter(|token| token.is_solid()).take(count).map(|token| token.text.to_ascii_lowercase()).collect()
}

fn starts_with(tokens: &[Token<'_>], words: &[&str]) -> bool {
    tokens.iter().find(|token| token.is_solid()).is_some_and(|token| token.is_any(words))
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

/// A word or a name: what SQLite calls otherwise. Returns where to go on.
fn word(tokens: &[Token<'_>], at: usize, defines: bool, drops: bool, out: &mut Out) -> usize {
    let token = tokens[at];
    let next = at + 1;
    let name = token.name().unwrap_or_default();
    let is_word = token.kind == Kind::Word;
    // There is one schema.
    if (name == "public" || name == "pg_catalog")
        && let Some(after) = follows(tokens, next, &["."])
    {
        return after;
    }
    if !is_word {
        out.push(token.text.into());
        return next;
    }
    match name.as_str() {
        "now" | "transaction_timestamp" | "statement_timestamp" | "clock_timestamp" => {
            if let Some(after) = follows(tokens, next, &["(", ")"]) {
                out.push("CURRENT_TIMESTAMP".into());
                return after;
            }
        }
        "ilike" => {
            out.push("LIKE".into());
            return next;
        }
        "as" => {
            if let Some(after) = cast_to_text(tokens, next) {
                out.push("AS TEXT".into());
                return after;
            }
        }
        // Every read is checked again before its transaction takes effect: no lock is needed.
        "for" => {
            if let Some(after) = lock_clause(tokens, next) {
                return after;
            }
        }
        "explain" if out.is_empty() && follows(tokens, next, &["query"]).is_none() => {
            out.push("EXPLAIN QUERY PLAN".into());
            return next;
        }
        "truncate" if out.is_empty() => {
            out.push("DELETE FROM".into());
            return follows(tokens, next, &["table"]).unwrap_or(next);
        }
        "cascade" | "restrict" if drops && solid(tokens, next).is_none() => return next,
        "serial" | "bigserial" | "smallserial" | "serial4" | "serial8" | "serial2" if defines => {
            out.push("INTEGER".into());
            return next;
        }
        "generated" if defines => {
            let by = follows(tokens, next, &["by", "default"]).or_else(|| follows(tokens, next, &["always"]));
            if let Some(after) = by.and_then(|at| follows(tokens, at, &["as", "identity"])) {
                out.integer_before();
                return skip_parentheses(tokens, after);
            }
        }
        "using" => {
            if let Some(after) = follows(tokens, next, &["btree"]) {
                return after;
            }
        }
        _ => {}
    }
    out.push(token.text.into());
    next
}

/// `FOR UPDATE` and its like, to the end of the clause.
fn lock_clause(tokens: &[Token<'_>], from: usize) -> Option<usize> {
    let locks: [&[&str]; 4] = [&["update"], &["share"], &["no", "key", "update"], &["key", "share"]];
    let mut at = locks.iter().find_map(|words| follows(tokens, from, words))?;
    if let Some(after) = follows(tokens, at, &["of"]) {
        at = solid(tokens, after)? + 1;
    }
    let patience: [&[&str]; 2] = [&["nowait"], &["skip", "locked"]];
    Some(patience.iter().find_map(|words| follows(tokens, at, words)).unwrap_or(at))
}

/// Behind `CAST(x AS`: a type that is text in SQLite, but which SQLite would take for a number.
fn cast_to_text(tokens: &[Token<'_>], from: usize) -> Option<usize> {
    let (class, end) = type_name(tokens, from)?;
    let closes = solid(tokens, end).is_some_and(|at| tokens[at].text == ")");
    (closes && class == Class::Written && is_in_cast(tokens, from)).then_some(end)
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

/// The statement that comes about, piece by piece, so that a cast can look back at what it is about.
#[derive(Default)]
struct Out {
    pieces: Vec<String>,
}

impl Out {
    fn push(&mut self, piece: String) {
        self.pieces.push(piece);
    }

    /// A zero-width mark of space: comments are kept, for they may be hints to people.
    fn space(&mut self, text: &str) {
        self.pieces.push(text.into());
    }

    fn is_empty(&self) -> bool {
        self.pieces.iter().all(|piece| is_space(piece))
    }

    /// A column that numbers itself is an INTEGER and nothing else.
    fn integer_before(&mut self) {
        if let Some(last) = self.pieces.iter_mut().rev().find(|piece| !is_space(piece)) {
            *last = "INTEGER".into();
        }
    }

    /// A closing parenthesis. `(SELECT …) AS name(a, b)` names the columns of a table that has no name: SQLite does so
    /// in a WITH clause only. Returns where to go on.
    fn close(&mut self, tokens: &[Token<'_>], from: usize) -> usize {
        self.push(")".into());
        let Some((name, columns, end)) = named_columns(tokens, from) else { return from };
        let start = operand(&self.pieces);
        let first = self.pieces[start..].iter().skip(1).find(|piece| !is_space(piece));
        if !first.is_some_and(|first| ["select", "values", "with"].iter().any(|word| first.eq_ignore_ascii_case(word)))
        {
            return from;
        }
        let table = self.pieces.split_off(start).concat();
        self.push(format!("(WITH {name}({columns}) AS {table} SELECT * FROM {name}) AS {name}"));
        end
    }

    /// `operand::type`: returns where the type's name ends.
    fn cast(&mut self, tokens: &[Token<'_>], from: usize) -> usize {
        let Some((class, end)) = type_name(tokens, from) else {
            self.push("::".into());
            return from;
        };
        let name = match class {
            Class::Integer => "INTEGER",
            Class::Real => "REAL",
            Class::Numeric => "NUMERIC",
            Class::Text => "TEXT",
            Class::Blob => "BLOB",
            Class::Boolean => "",
            Class::Written | Class::Nothing => return end,
        };
        let start = operand(&self.pieces);
        let operand = self.pieces.split_off(start).concat();
        self.push(match class {
            Class::Boolean => format!("(lower({operand}) IN ('1', 't', 'true', 'on', 'yes', 'y'))"),
            _ => format!("CAST({operand} AS {name})"),
        });
        end
    }
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

/// `AS name(a, b)`: the name, the columns, and where they end.
fn named_columns(tokens: &[Token<'_>], from: usize) -> Option<(String, String, usize)> {
    let name = solid(tokens, follows(tokens, from, &["as"])?)?;
    let start = follows(tokens, name + 1, &["("])?;
    let end = (start..tokens.len()).find(|at| tokens[*at].text == ")")?;
    let inside = &tokens[start..end];
    let is_list = |token: &Token<'_>| !token.is_solid() || token.name().is_some() || token.text == ",";
    let columns = inside.iter().map(|token| token.text).collect();
    (tokens[name].name().is_some() && inside.iter().all(is_list)).then(|| (tokens[name].text.into(), columns, end + 1))
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
    fn what_sqlite_calls_otherwise() {
        for (from, to) in [
            ("select $1, '$2', $12", "select ?1, '$2', ?12"),
            ("select $1::int + a.b::text", "select CAST(?1 AS INTEGER) + CAST(a.b AS TEXT)"),
            ("select lower(a || $1)::varchar(5), 1", "select CAST(lower(a || ?1) AS TEXT), 1"),
            ("values ($1::VARCHAR, $2::TIMESTAMP WITHOUT TIME ZONE)", "values (CAST(?1 AS TEXT), ?2)"),
            ("select '2024-01-01'::date, (1+2)::float8", "select '2024-01-01', CAST((1+2) AS REAL)"),
            ("select cast(a as timestamp), cast(b as int)", "select cast(a AS TEXT), cast(b as int)"),
            ("select 1::double precision::text", "select CAST(CAST(1 AS REAL) AS TEXT)"),
            (r"select E'a\'b', $$it's$$", "select 'a''b', 'it''s'"),
            ("select now(), a from public.t", "select CURRENT_TIMESTAMP, a from t"),
            ("select * from \"public\".\"t\" where a ilike 'x' for update", "select * from \"t\" where a LIKE 'x' "),
            ("select 1 for no key update of t skip locked", "select 1 "),
            ("create table t(id serial primary key)", "create table t(id INTEGER primary key)"),
            (
                "create table t(id bigint generated by default as identity (start 1) primary key)",
                "create table t(id INTEGER  primary key)",
            ),
            ("truncate table t", "DELETE FROM t"),
            ("drop table t cascade", "drop table t "),
            ("explain select 1", "EXPLAIN QUERY PLAN select 1"),
            ("create index i on t using btree (a)", "create index i on t  (a)"),
            ("select serial, now from t", "select serial, now from t"),
            ("select a as text from t", "select a as text from t"),
            ("select $1::boolean", "select (lower(?1) IN ('1', 't', 'true', 'on', 'yes', 'y'))"),
            (
                "select p::int from (values (1), (2)) as x(p, q) where p in (1)",
                "select CAST(p AS INTEGER) from (WITH x(p, q) AS (values (1), (2)) SELECT * FROM x) AS x \
                    where p in (1)",
            ),
            ("select (select max(d) as date)", "select (select max(d) as date)"),
        ] {
            assert_eq!(for_cluster(from), to);
        }
    }

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
            let _ = (for_cluster(&sql), verb(&sql));
        }
    }
}
