//! PostgreSQL's catalog queries in SQLite's words.
//!
//! Tools ask in more of PostgreSQL than applications do: operators by their full names, arrays, names as numbers, sets
//! in the list of columns. Each of these has a form that SQLite knows, and the functions that it takes are in
//! `functions.rs`.

mod pairs;

use crate::rewrite::{Class, follows, is_in_cast, operand, type_name};
use crate::tokens::{Kind, Token, quote, text_of, tokens};

/// Words that end a FROM clause.
const CLAUSES: [&str; 10] =
    ["where", "group", "having", "order", "limit", "offset", "union", "intersect", "except", "window"];

/// Words behind a table that are no alias of it.
const BEHIND_TABLE: [&str; 18] = [
    "where",
    "group",
    "having",
    "order",
    "limit",
    "offset",
    "fetch",
    "union",
    "intersect",
    "except",
    "window",
    "join",
    "inner",
    "left",
    "right",
    "full",
    "cross",
    "on",
];

/// What SQLite takes for no alias.
const NO_ALIAS: [&str; 16] = [
    "check",
    "constraint",
    "create",
    "default",
    "foreign",
    "index",
    "join",
    "order",
    "primary",
    "references",
    "select",
    "table",
    "transaction",
    "unique",
    "update",
    "values",
];

/// A catalog query as SQLite understands it.
pub(crate) fn for_catalog(sql: &str) -> String {
    let all = tokens(sql);
    let solid: Vec<Token<'_>> = all.into_iter().filter(Token::is_solid).collect();
    rewrite(&solid)
}

fn rewrite(tokens: &[Token<'_>]) -> String {
    let mut rewriter = Rewriter { tokens, at: 0, pieces: Vec::new(), open: vec![Level::default()], sets: 0 };
    while rewriter.at < tokens.len() {
        rewriter.token();
    }
    rewriter.join_sets();
    rewriter.pieces.join(" ")
}

/// Between a pair of parentheses or brackets.
#[derive(Default)]
struct Level {
    /// What closes it.
    close: &'static str,
    /// Whether a SELECT stands here, and whether its FROM has come.
    selects: bool,
    has_from: bool,
    /// The set in the list of columns: its number and what it is made of.
    set: Option<(u32, String)>,
}

struct Rewriter<'a> {
    tokens: &'a [Token<'a>],
    at: usize,
    pieces: Vec<String>,
    open: Vec<Level>,
    sets: u32,
}

impl Rewriter<'_> {
    fn push(&mut self, piece: impl Into<String>) {
        self.pieces.push(piece.into());
    }

    fn follows(&self, wanted: &[&str]) -> Option<usize> {
        follows(self.tokens, self.at, wanted)
    }

    fn level(&mut self) -> &mut Level {
        self.open.last_mut().expect("the outermost level is never closed")
    }

    fn enter(&mut self, open: &str, close: &'static str) {
        self.push(open);
        self.open.push(Level { close, ..Level::default() });
    }

    fn leave(&mut self) {
        self.join_sets();
        if self.open.len() > 1 {
            let close = self.open.pop().map_or("", |level| level.close);
            self.push(close);
        } else {
            self.push(")");
        }
    }

    fn token(&mut self) {
        let token = self.tokens[self.at];
        self.at += 1;
        match token.kind {
            Kind::Word | Kind::Quoted => self.word(token),
            Kind::Symbol => self.symbol(token.text),
            Kind::Parameter => self.push(format!("?{}", &token.text[1..])),
            Kind::Dollar => self.push(quote(&text_of(token))),
            Kind::Text if token.text.starts_with(['e', 'E', 'n', 'N']) => self.push(quote(&text_of(token))),
            Kind::Text if self.is_compared_truth() => self.push(match token.text {
                "'t'" | "'true'" => "1",
                "'f'" | "'false'" => "0",
                other => other,
            }),
            _ => self.push(token.text),
        }
    }

    /// Whether the token is compared with a column of truth values, for which SQLite has numbers.
    fn is_compared_truth(&self) -> bool {
        let mut before = self.tokens[..self.at - 1].iter().rev().filter(|token| token.is_solid());
        let compares = before.next().is_some_and(|token| token.is_symbol("="));
        let column = before.next().and_then(Token::name);
        compares && column.is_some_and(|column| super::TABLES.contains(&format!(" {column} bool")))
    }

    fn word(&mut self, token: Token<'_>) {
        let name = token.name().unwrap_or_default();
        if self.of_schema(&name) {
            return;
        }
        if token.kind == Kind::Quoted || self.pieces.last().is_some_and(|last| last == ".") {
            return self.push(token.text);
        }
        match name.as_str() {
            "select" => {
                let level = self.level();
                (level.selects, level.has_from) = (true, false);
                self.push("SELECT");
            }
            "from" => {
                self.level().has_from = true;
                self.push("FROM");
            }
            _ if CLAUSES.contains(&name.as_str()) => {
                self.join_sets();
                self.push(token.text);
            }
            "trim" => self.trim(token.text),
            "json_build_object" => self.push("json_object"),
            "operator" => self.named_operator(token.text),
            "collate" => {
                let after = self.follows(&["pg_catalog", "."]).unwrap_or(self.at);
                self.at = after + 1;
            }
            "lateral" => {}
            "ilike" => self.push("LIKE"),
            "array" => self.array(token.text),
            "any" | "some" | "all" => self.quantified(token.text),
            "unnest" | "generate_subscripts" | "generate_series" | "pg_partition_ancestors" => {
                self.set(&name, token.text);
            }
            "as" => self.alias_or_type(),
            "current_user" | "session_user" | "current_role" | "current_catalog" | "current_schema"
            | "current_database" | "version"
                if self.is_table() =>
            {
                self.value_in_from(&name);
            }
            "current_user" | "session_user" | "current_role" | "current_catalog" | "current_schema" => {
                self.push(token.text);
                if self.follows(&["("]).is_none() {
                    self.push("()");
                }
            }
            _ => self.push(token.text),
        }
    }

    /// Whether a table has to come next.
    fn is_table(&self) -> bool {
        self.pieces.last().is_some_and(|last| last.eq_ignore_ascii_case("from") || last.eq_ignore_ascii_case("join"))
    }

    /// `FROM current_schema()`: a function of one value as a table. Its column is called as the table is.
    fn value_in_from(&mut self, function: &str) {
        self.at = self.follows(&["(", ")"]).unwrap_or(self.at);
        self.at = self.follows(&["as"]).unwrap_or(self.at);
        let is_name = |token: &&Token<'_>| token.name().is_some_and(|name| !BEHIND_TABLE.contains(&name.as_str()));
        let alias = self.tokens.get(self.at).filter(is_name).and_then(Token::name);
        self.at += usize::from(alias.is_some());
        let alias = crate::translate::name(alias.as_deref().unwrap_or(function));
        self.push(format!("(SELECT {function}() AS {alias}) AS {alias}"));
    }

    /// `OPERATOR(pg_catalog.~)`.
    fn named_operator(&mut self, text: &str) {
        let Some(start) = self.follows(&["(", "pg_catalog", "."]).or_else(|| self.follows(&["("])) else {
            return self.push(text);
        };
        let end = (start..self.tokens.len()).find(|at| self.tokens[*at].text == ")").unwrap_or(start);
        let operator: String = self.tokens[start..end].iter().map(|token| token.text).collect();
        self.at = end + 1;
        self.operator(&operator);
    }

    fn operator(&mut self, operator: &str) {
        self.push(match operator {
            "~" => "REGEXP",
            "!~" => "NOT REGEXP",
            "~*" => "REGEXP '(?i)' ||",
            "!~*" => "NOT REGEXP '(?i)' ||",
            "~~" | "~~*" => "LIKE",
            "!~~" | "!~~*" => "NOT LIKE",
            other => return self.pieces.push(other.into()),
        });
    }

    fn symbol(&mut self, text: &str) {
        match text {
            "(" if self.part_of_pair() => {}
            "(" => {
                // What a function takes is in the scope of the SELECT around it.
                self.enter("(", ")");
            }
            ")" | "]" => self.leave(),
            "[" => {
                let start = operand(&self.pieces);
                let of = self.pieces.split_off(start).join(" ");
                self.enter(&format!("pg_item({of},"), ")");
            }
            "::" => self.cast(),
            "!" | "~" => {
                let mut operator = text.to_owned();
                while let Some(next) = self.tokens.get(self.at).filter(|next| ["~", "*"].contains(&next.text)) {
                    operator += next.text;
                    self.at += 1;
                }
                self.operator(&operator);
            }
            // The second character of an operator.
            "<" | ">" | "=" | "|"
                if self.pieces.last().is_some_and(|last| ["<", ">", "|", "!", "-", "->"].contains(&last.as_str())) =>
            {
                self.pieces.last_mut().expect("there is one").push_str(text);
            }
            _ => self.push(text),
        }
    }

    /// `ARRAY[…]` and `ARRAY(SELECT …)`.
    fn array(&mut self, text: &str) {
        if let Some(after) = self.follows(&["["]) {
            self.at = after;
            self.enter("pg_array(", ")");
        } else if let Some(after) = self.follows(&["("]) {
            self.at = after;
            self.enter("(WITH _a(x) AS (", ") SELECT array_agg(x) FROM _a)");
        } else {
            self.push(text);
        }
    }

    /// `= ANY (array)` and `<> ALL (array)`.
    fn quantified(&mut self, text: &str) {
        let Some(after) = self.follows(&["("]) else { return self.push(text) };
        let operator = match self.pieces.last().map(String::as_str) {
            Some("=") => "IN",
            Some("<>" | "!=") => "NOT IN",
            _ => return self.push(text),
        };
        self.pieces.pop();
        self.at = after;
        self.push(operator);
        if self.tokens.get(after).is_some_and(|token| token.is_any(&["select", "with"])) {
            self.enter("(", ")");
        } else {
            self.enter("(SELECT value FROM json_each(pg_json(", ")))");
        }
    }

    /// A set of rows made of an array, in a FROM clause or in a list of columns.
    fn set(&mut self, name: &str, text: &str) {
        let Some(start) = self.follows(&["("]) else { return self.push(text) };
        let mut depth = 1_u32;
        let close = (start..self.tokens.len()).find(|at| {
            match self.tokens[*at].text {
                "(" => depth += 1,
                ")" => depth -= 1,
                _ => {}
            }
            depth == 0
        });
        let Some(end) = close else { return self.push(text) };
        let inside = &self.tokens[start..end];
        let of = match name {
            "unnest" | "_pg_expandarray" => rewrite(inside),
            "generate_series" => format!("pg_series({})", rewrite(inside)),
            // No table is a partition of another.
            "pg_partition_ancestors" => "'{}'".into(),
            // Behind the array stands a comma and the number of the dimension.
            _ => rewrite(&inside[..inside.len().saturating_sub(2)]),
        };
        self.at = end + 1;
        let Some(level) = self.open.iter().rposition(|level| level.selects) else { return self.push(text) };
        if self.open[level].has_from && level + 1 == self.open.len() {
            return self.set_in_from(&of);
        }
        if name == "pg_partition_ancestors" {
            return self.push("NULL");
        }
        let first = self.open[level].set.clone();
        let (number, made_of) = first.unwrap_or_else(|| {
            self.sets += 1;
            (self.sets, of.clone())
        });
        // All sets in one list of columns advance together.
        let piece = match name {
            "unnest" | "generate_series" if made_of == of => format!("_s{number}.value"),
            "unnest" => format!("pg_item({of}, _s{number}.key + 1)"),
            // What an index is of is counted from 0.
            "generate_subscripts" if inside.iter().any(|token| token.is_any(&["indkey", "indclass", "indoption"])) => {
                format!("_s{number}.key")
            }
            _ => format!("(_s{number}.key + 1)"),
        };
        self.open[level].set = Some((number, made_of));
        self.push(piece);
    }

    /// `unnest(array) AS name`: the name is that of the table and of its column. `WITH ORDINALITY AS name(a, b)` names
    /// both, and numbers the rows.
    fn set_in_from(&mut self, of: &str) {
        let after = self.follows(&["with", "ordinality"]).unwrap_or(self.at);
        let after = follows(self.tokens, after, &["as"]).unwrap_or(after);
        let name_at = |at: usize| self.tokens.get(at).filter(|token| !token.is_any(&CLAUSES)).and_then(Token::name);
        let Some(name) = name_at(after) else {
            return self.push(format!("(SELECT value AS unnest FROM json_each(pg_json({of})))"));
        };
        self.at = after + 1;
        let (mut columns, mut end) = (Vec::new(), self.at);
        if let Some(mut at) = self.follows(&["("]) {
            while let Some(column) = name_at(at) {
                columns.push(column);
                at = follows(self.tokens, at + 1, &[","]).unwrap_or(at + 1);
            }
            end = follows(self.tokens, at, &[")"]).unwrap_or(at);
        }
        self.at = end;
        let value = columns.first().unwrap_or(&name);
        let number = columns.get(1).map(|number| format!(", key + 1 AS \"{number}\"")).unwrap_or_default();
        self.push(format!("(SELECT value AS \"{value}\"{number} FROM json_each(pg_json({of}))) AS \"{name}\""));
    }

    /// Joins what the sets in the list of columns are made of, at the end of the FROM clause.
    fn join_sets(&mut self) {
        let level = self.level();
        if let Some((number, of)) = level.set.take() {
            let word = if level.has_from { "JOIN" } else { "FROM" };
            self.push(format!("{word} json_each(pg_json({of})) AS _s{number}"));
        }
    }

    /// `AS type)` at the end of a CAST, where the type is none of SQLite's.
    fn alias_or_type(&mut self) {
        if let Some((class, end)) = type_name(self.tokens, self.at)
            && self.tokens.get(end).is_some_and(|token| token.text == ")")
            && is_in_cast(self.tokens, self.at)
        {
            let is_array = end > 0 && self.tokens[end - 1].text == "]";
            if is_array || matches!(class, Class::Written | Class::Nothing) {
                self.at = end;
                return self.push("AS TEXT");
            }
        }
        self.push("AS");
        // Words of SQLite that are names to PostgreSQL behind AS.
        if let Some(word) = self.tokens.get(self.at).filter(|token| token.kind == Kind::Word && token.is_any(&NO_ALIAS))
        {
            self.at += 1;
            self.push(format!("\"{}\"", word.text.to_ascii_lowercase()));
        }
    }

    /// A table of the other schema, whose columns may be named by the table as it was called, unless it has an alias.
    fn call_as_before(&mut self, table: &str) {
        let is_table = |piece: &String| [",", "FROM", "JOIN"].iter().any(|word| piece.eq_ignore_ascii_case(word));
        let stands_alone = match self.tokens.get(self.at) {
            None => true,
            Some(next) => next.kind == Kind::Symbol || next.is_any(&BEHIND_TABLE),
        };
        if stands_alone && self.pieces.iter().rev().nth(1).is_some_and(is_table) {
            self.push(format!("AS \"{table}\""));
        }
    }

    /// `operand::type`.
    fn cast(&mut self) {
        let Some((class, end)) = type_name(self.tokens, self.at) else { return self.push("::") };
        let names: Vec<String> = self.tokens[self.at..end].iter().filter_map(Token::name).collect();
        let is_array = self.tokens[end - 1].text == "]";
        self.at = end;
        let start = operand(&self.pieces);
        let of = self.pieces.split_off(start).join(" ");
        let is_given = of.starts_with(['\'', '?']);
        let piece = match (names.last().map_or("", String::as_str), class) {
            _ if is_array => of,
            ("regclass", _) if is_given => format!("pg_relation_number({of})"),
            ("regclass", _) => format!("pg_relation_name({of})"),
            ("regtype", _) if !is_given => format!("format_type({of}, NULL)"),
            (_, Class::Integer) => format!("CAST({of} AS INTEGER)"),
            (_, Class::Real) => format!("CAST({of} AS REAL)"),
            (_, Class::Text) => format!("CAST({of} AS TEXT)"),
            _ => of,
        };
        self.push(piece);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn truth_is_a_number() {
        let sql = "select 1 from pg_class c where c.relkind = 't' and relispartition = 'f' or c.relhasindex = 'true'";
        let wanted = "SELECT 1 FROM pg_class c WHERE c . relkind = 't' AND relispartition = 0 OR c . relhasindex = 1";
        assert_eq!(for_catalog(sql).to_lowercase(), wanted.to_lowercase());
    }

    #[test]
    fn what_sqlite_says_otherwise() {
        for (from, to) in [
            ("select pg_catalog.version()", "SELECT version ( )"),
            (
                "select 1 from pg_catalog.pg_class where a OPERATOR(pg_catalog.~) '^(t)$' COLLATE pg_catalog.default",
                "SELECT 1 FROM pg_class where a REGEXP '^(t)$'",
            ),
            (
                "select 1 where a !~ '^pg_' and b ~* 'x'",
                "SELECT 1 where a NOT REGEXP '^pg_' and b REGEXP '(?i)' || 'x'",
            ),
            (
                "select 't'::regclass, c.oid::pg_catalog.regclass",
                "SELECT pg_relation_number('t') , pg_relation_name(c . oid)",
            ),
            (
                "select a = any (array['r', $1::varchar])",
                "SELECT a IN (SELECT value FROM json_each(pg_json( pg_array( 'r' , CAST(?1 AS TEXT) ) )))",
            ),
            ("select a <> all (b)", "SELECT a NOT IN (SELECT value FROM json_each(pg_json( b )))"),
            ("select array(select 1 from x)", "SELECT (WITH _a(x) AS ( SELECT 1 FROM x ) SELECT array_agg(x) FROM _a)"),
            ("select k[1] from x", "SELECT pg_item(k, 1 ) FROM x"),
            (
                "select unnest(k) as a, generate_subscripts(k, 1) as o, unnest(l) from c where d",
                "SELECT _s1.value AS a , (_s1.key + 1) AS o , pg_item(l, _s1.key + 1) FROM c \
                    JOIN json_each(pg_json(k)) AS _s1 where d",
            ),
            (
                "select unnest(i.indkey) as a, generate_subscripts(i.indkey, 1) from pg_index i",
                "SELECT _s1.value AS a , _s1.key FROM pg_index i JOIN json_each(pg_json(i . indkey)) AS _s1",
            ),
            (
                "select 1 from unnest(k) as x",
                "SELECT 1 FROM (SELECT value AS \"x\" FROM json_each(pg_json(k))) AS \"x\"",
            ),
            (
                "select 1 from unnest(k) with ordinality as x(a, b) where c",
                "SELECT 1 FROM (SELECT value AS \"a\", key + 1 AS \"b\" FROM json_each(pg_json(k))) AS \"x\" where c",
            ),
            ("select cast(a as text[]), cast(b as regclass)", "SELECT cast ( a AS TEXT ) , cast ( b AS TEXT )"),
            ("select current_user, current_schema()", "SELECT current_user () , current_schema ( )"),
            (
                "select tables.* from information_schema.tables, information_schema.views as v",
                "SELECT tables . * FROM information_schema_tables AS \"tables\" , information_schema_views AS v",
            ),
            (
                "select (information_schema._pg_expandarray(k)).n as m, \
                    information_schema._pg_expandarray(k) as p from c",
                "SELECT (_s1.key + 1) AS m , _s1.value AS p , (_s1.key + 1) AS p_n FROM c \
                    JOIN json_each(pg_json(k)) AS _s1",
            ),
            ("select (r.keys).n from r where a = (r.keys).x", "SELECT r.keys_n FROM r where a = r.keys"),
            ("select trim(both '\"' from f(a))", "SELECT pg_trim ( '\"' , f ( a ) )"),
            ("select a as primary, b as Unique", "SELECT a AS \"primary\" , b AS \"unique\""),
            ("select E'\\n', '{}'::text[]", "SELECT '\n' , '{}'"),
            ("select a <> b, c || d, e >= f, g != h, - 1", "SELECT a <> b , c || d , e >= f , g != h , - 1"),
        ] {
            assert_eq!(for_catalog(from), to);
        }
    }

    proptest! {
        #[test]
        fn any_text_is_rewritten(
            sql in r"(::|regclass|\[|\]|\(|\)|unnest|array|any|=|~|!|select|from|where|a|collate| |,|\PC){0,40}"
        ) {
            let _ = for_catalog(&sql);
        }
    }
}
