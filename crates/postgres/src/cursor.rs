//! `DECLARE`, `FETCH`, `MOVE` and `CLOSE`: results of which a client takes some rows at a time.
//!
//! A result arrives whole and is kept here until the cursor is closed, so that every cursor shows the moment at which
//! it was declared, and can go backward as well. One that is declared `WITH HOLD` outlives its transaction, if that is
//! committed; all others end with it.

use crate::error::{PgError, sqlstate};
use crate::outcome::Outcome;
use crate::plan::{Declared, Plan, Way};
use crate::rewrite::verb;
use crate::tokens::{Kind, Token, tokens};
use bezant_sql::{Column, Rows, Value};
use std::collections::BTreeMap;

/// Cursors of a connection; each holds a result.
pub(crate) const CURSORS_MAX: usize = 16;

/// What is declared, and for which query.
///
/// `DECLARE name [BINARY] [INSENSITIVE | ASENSITIVE] [[NO] SCROLL] CURSOR [WITH HOLD | WITHOUT HOLD] FOR query`
pub(crate) fn declare(sql: &str) -> Result<(Declared, String), PgError> {
    let all = tokens(sql);
    let Some(place) = all.iter().position(|token| token.is("for")) else { return Err(not_understood(sql)) };
    let head: Vec<Token<'_>> = all[..place].iter().copied().filter(Token::is_solid).collect();
    let query: String = all[place + 1..].iter().map(|token| token.text).collect();
    let [_, name, options @ ..] = &head[..] else { return Err(not_understood(sql)) };
    let Some(name) = name.name() else { return Err(not_understood(sql)) };
    let words: Vec<String> = options.iter().filter_map(Token::name).collect();
    let words: Vec<&str> = words.iter().map(String::as_str).collect();
    let Some(cursor) = words.iter().position(|word| *word == "cursor") else { return Err(not_understood(sql)) };
    let holds = match &words[cursor + 1..] {
        [] | ["without", "hold"] => false,
        ["with", "hold"] => true,
        _ => return Err(not_understood(sql)),
    };
    let mut is_forward_only = false;
    let mut before = words[..cursor].iter();
    while let Some(word) = before.next() {
        match *word {
            "insensitive" | "asensitive" | "scroll" => {}
            "no" if before.next() == Some(&"scroll") => is_forward_only = true,
            "binary" => return Err(PgError::unsupported("a BINARY cursor is not supported").hint("ask in binary")),
            _ => return Err(not_understood(sql)),
        }
    }
    if !matches!(verb(&query).as_str(), "select" | "values") {
        return Err(PgError::new(sqlstate::SYNTAX, "a cursor is for SELECT or VALUES"));
    }
    if tokens(&query).iter().any(|token| token.is("into")) {
        return Err(PgError::new(sqlstate::SYNTAX, "SELECT INTO is not allowed here"));
    }
    Ok((Declared { name, holds, is_forward_only }, query))
}

/// `{FETCH | MOVE} [direction] [FROM | IN] name`
pub(crate) fn fetch(sql: &str, rest: &[Token<'_>], moves: bool) -> Result<Plan, PgError> {
    let Some((name, way)) = rest.split_last() else { return Err(not_understood(sql)) };
    let Some(name) = name.name() else { return Err(not_understood(sql)) };
    let way = match way {
        [way @ .., last] if last.is("from") || last.is("in") => way,
        way => way,
    };
    let first = way.first().map(|token| token.text.to_ascii_lowercase()).unwrap_or_default();
    let more = way.get(1..).unwrap_or_default();
    let number = |tokens: &[Token<'_>]| count(tokens).ok_or_else(|| not_understood(sql));
    let is_all = matches!(more, [token] if token.is("all"));
    let way = match (first.as_str(), more) {
        ("" | "next" | "forward", []) => Way::Forward(1),
        ("prior" | "backward", []) => Way::Forward(-1),
        ("first", []) => Way::Absolute(1),
        ("last", []) => Way::Absolute(-1),
        ("all", []) => Way::ToEnd,
        ("forward", _) if is_all => Way::ToEnd,
        ("backward", _) if is_all => Way::ToStart,
        ("forward", more) => Way::Forward(number(more)?),
        ("backward", more) => Way::Forward(number(more)?.saturating_neg()),
        ("absolute", more) => Way::Absolute(number(more)?),
        ("relative", more) => Way::Relative(number(more)?),
        _ => Way::Forward(number(way)?),
    };
    Ok(Plan::Fetch { name, way, moves })
}

/// `CLOSE {name | ALL}`
pub(crate) fn close(sql: &str, rest: &[Token<'_>]) -> Result<Plan, PgError> {
    match rest {
        [all] if all.is("all") => Ok(Plan::Close(None)),
        [one] => Ok(Plan::Close(Some(one.name().ok_or_else(|| not_understood(sql))?))),
        _ => Err(not_understood(sql)),
    }
}

fn count(tokens: &[Token<'_>]) -> Option<i64> {
    let (sign, number) = match tokens {
        [sign, number] if sign.is_symbol("-") => ("-", number),
        [sign, number] if sign.is_symbol("+") => ("", number),
        [number] => ("", number),
        _ => return None,
    };
    format!("{sign}{}", number.text).parse().ok().filter(|_| number.kind == Kind::Number)
}

fn not_understood(sql: &str) -> PgError {
    let excerpt: String = sql.chars().take(60).collect();
    PgError::new(sqlstate::SYNTAX, format!("\"{excerpt}\" is not understood in a statement about a cursor"))
}

/// One result, and how far the client is.
#[derive(Debug)]
struct Cursor {
    outcome: Outcome,
    /// The number of the row on which it stands, from 1 on; 0: before the first.
    at: usize,
    is_forward_only: bool,
    holds: bool,
    /// Savepoints that were open in its transaction when it was declared; `None`: the transaction is over.
    depth: Option<usize>,
}

impl Cursor {
    /// Goes somewhere, and says which rows are met on the way, as indices, in the order of the way.
    fn go(&mut self, way: Way) -> Result<Vec<usize>, PgError> {
        let (at, end) = (self.at as i64, self.outcome.rows.rows.len() as i64 + 1);
        // The place to stop at, and whether only the row there is wanted.
        let (to, is_jump) = match way {
            Way::Forward(0) => (at, true),
            Way::Forward(count) => (at.saturating_add(count), false),
            Way::ToEnd => (end, false),
            Way::ToStart => (0, false),
            Way::Absolute(place) if place < 0 => (end.saturating_add(place), true),
            Way::Absolute(place) => (place, true),
            Way::Relative(count) => (at.saturating_add(count), true),
        };
        let to = to.clamp(0, end);
        if self.is_forward_only && (to < at || to == at && is_jump && at > 0) {
            return Err(PgError::new("55000", "cursor can only scan forward")
                .hint("Declare it with SCROLL option to enable backward scan."));
        }
        self.at = to as usize;
        let is_row = |place: &i64| (1..end).contains(place);
        let met: Vec<i64> = match (is_jump, to >= at) {
            (true, _) => [to].into_iter().filter(is_row).collect(),
            (false, true) => (at + 1..=to).filter(is_row).collect(),
            (false, false) => (to..at).rev().filter(is_row).collect(),
        };
        Ok(met.into_iter().map(|place| place as usize - 1).collect())
    }
}

/// Those of a connection.
#[derive(Debug, Default)]
pub(crate) struct Cursors(BTreeMap<String, Cursor>);

impl Cursors {
    /// Whether another one may be declared.
    ///
    /// # Errors
    /// If the name is taken, or there are too many.
    pub(crate) fn admit(&self, name: &str) -> Result<(), PgError> {
        if self.0.contains_key(name) {
            return Err(PgError::new("42P03", format!("cursor \"{name}\" already exists")));
        }
        if self.0.len() >= CURSORS_MAX {
            return Err(PgError::new(sqlstate::LIMIT, format!("more than {CURSORS_MAX} cursors are open")));
        }
        Ok(())
    }

    /// Keeps the result of what a cursor was declared for. `depth`: how many savepoints its transaction has, if there
    /// is one.
    pub(crate) fn keep(&mut self, declared: &Declared, outcome: Outcome, depth: Option<usize>) {
        let Declared { name, holds, is_forward_only } = declared.clone();
        self.0.insert(name, Cursor { outcome, at: 0, is_forward_only, holds, depth });
    }

    fn get(&mut self, name: &str) -> Result<&mut Cursor, PgError> {
        self.0.get_mut(name).ok_or_else(|| no_cursor(name))
    }

    /// The columns of a cursor's rows, if there is such a one.
    pub(crate) fn columns(&self, name: &str) -> Option<&[Column]> {
        self.0.get(name).map(|cursor| &cursor.outcome.rows.columns[..])
    }

    /// Goes on with a cursor.
    ///
    /// # Errors
    /// If there is none, or it does not go there.
    pub(crate) fn fetch(&mut self, name: &str, way: Way, moves: bool) -> Result<Outcome, PgError> {
        let cursor = self.get(name)?;
        let met = cursor.go(way)?;
        let word = if moves { "MOVE" } else { "FETCH" };
        let tag = format!("{word} {}", met.len());
        if moves {
            return Ok(Outcome { tag, ..Outcome::default() });
        }
        let all = &cursor.outcome.rows;
        let rows: Vec<Vec<Value>> = met.into_iter().map(|at| all.rows[at].clone()).collect();
        Ok(Outcome { rows: Rows { columns: all.columns.clone(), rows, ..Rows::default() }, tag, notice: None })
    }

    /// Forgets a cursor, or all of them.
    ///
    /// # Errors
    /// If there is none with that name.
    pub(crate) fn close(&mut self, name: Option<&str>) -> Result<(), PgError> {
        match name {
            None => self.0.clear(),
            Some(name) => _ = self.0.remove(name).ok_or_else(|| no_cursor(name))?,
        }
        Ok(())
    }

    /// The transaction is over.
    pub(crate) fn end(&mut self, is_committed: bool) {
        self.0.retain(|_, cursor| cursor.depth.is_none() || cursor.holds && is_committed);
        self.0.values_mut().for_each(|cursor| cursor.depth = None);
    }

    /// The transaction went back to its savepoint with this number: what was declared since is gone.
    pub(crate) fn go_back(&mut self, depth: usize) {
        self.0.retain(|_, cursor| cursor.depth.is_none_or(|of| of < depth));
    }

    /// The transaction has so many savepoints left.
    pub(crate) fn release(&mut self, depth: usize) {
        self.0.values_mut().for_each(|cursor| cursor.depth = cursor.depth.map(|of| of.min(depth)));
    }
}

fn no_cursor(name: &str) -> PgError {
    PgError::new(sqlstate::NO_PORTAL, format!("cursor \"{name}\" does not exist"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::understand;

    fn cursor(rows: i64, is_forward_only: bool) -> Cursor {
        let rows = Rows { rows: (1..=rows).map(|row| vec![Value::Integer(row)]).collect(), ..Rows::default() };
        let outcome = Outcome { rows, ..Outcome::default() };
        Cursor { outcome, at: 0, is_forward_only, holds: false, depth: Some(0) }
    }

    fn way(sql: &str) -> Way {
        match understand::plan(sql) {
            Ok(Plan::Fetch { way, .. }) => way,
            other => panic!("{sql}: {other:?}"),
        }
    }

    /// What PostgreSQL 15 gives for the same story.
    #[test]
    fn a_cursor_goes_where_it_is_told() {
        let mut cursor = cursor(5, false);
        for (sql, wanted) in [
            ("fetch c", vec![1]),
            ("fetch next from c", vec![2]),
            ("fetch prior from c", vec![1]),
            ("fetch prior from c", vec![]),
            ("fetch forward 2 in c", vec![1, 2]),
            ("fetch relative 0 from c", vec![2]),
            ("fetch 0 from c", vec![2]),
            ("fetch relative 2 from c", vec![4]),
            ("fetch all from c", vec![5]),
            ("fetch forward all from c", vec![]),
            ("fetch backward 2 from c", vec![5, 4]),
            ("fetch -1 from c", vec![3]),
            ("fetch last c", vec![5]),
            ("fetch absolute -2 from c", vec![4]),
            ("fetch absolute 9 from c", vec![]),
            ("fetch backward all from c", vec![5, 4, 3, 2, 1]),
            ("fetch first from c", vec![1]),
            ("fetch absolute 0 from c", vec![]),
            ("fetch 100 from c", vec![1, 2, 3, 4, 5]),
        ] {
            let met: Vec<usize> = cursor.go(way(sql)).unwrap().into_iter().map(|at| at + 1).collect();
            assert_eq!(met, wanted, "{sql}");
        }
    }

    #[test]
    fn what_makes_a_table_has_no_cursor() {
        for sql in ["declare c cursor for select a into t from s", "declare c cursor for select (select 1 into t)"] {
            assert_eq!(declare(sql).unwrap_err().sqlstate, "42601", "{sql}");
        }
        assert!(declare("declare c cursor for select \"into\", 'into' from t").is_ok());
    }

    #[test]
    fn one_without_scroll_goes_forward_only() {
        let mut cursor = cursor(3, true);
        assert_eq!(cursor.go(way("fetch 2 from c")), Ok(vec![0, 1]));
        for sql in ["fetch prior from c", "fetch first from c", "fetch backward all from c", "fetch relative 0 from c"]
        {
            assert_eq!(cursor.go(way(sql)).unwrap_err().sqlstate, "55000", "{sql}");
        }
        assert_eq!(cursor.go(way("fetch all from c")), Ok(vec![2]));
    }

    #[test]
    fn a_cursor_ends_with_its_transaction_unless_it_is_held() {
        let mut cursors = Cursors::default();
        let declared = |name: &str, holds| Declared { name: name.into(), holds, is_forward_only: false };
        cursors.keep(&declared("a", false), Outcome::default(), Some(0));
        cursors.keep(&declared("b", true), Outcome::default(), Some(1));
        cursors.keep(&declared("c", true), Outcome::default(), Some(2));
        let names = |cursors: &Cursors| cursors.0.keys().cloned().collect::<String>();
        cursors.go_back(2);
        assert_eq!(names(&cursors), "ab");
        cursors.release(0);
        cursors.go_back(1);
        assert_eq!(names(&cursors), "ab", "the savepoint of b was released");
        cursors.end(true);
        assert_eq!(names(&cursors), "b");
        cursors.end(false);
        assert_eq!(names(&cursors), "b", "another transaction's end");
        assert_eq!(cursors.close(Some("a")).unwrap_err().sqlstate, sqlstate::NO_PORTAL);
        for at in 0..CURSORS_MAX {
            assert_eq!(cursors.admit(&at.to_string()).is_ok(), at < CURSORS_MAX - 1);
            cursors.keep(&declared(&at.to_string(), false), Outcome::default(), None);
        }
    }

    #[test]
    fn what_is_not_understood_is_refused() {
        for sql in [
            "declare c cursor",
            "declare c for select 1",
            "declare c binary cursor for select 1",
            "declare c cursor for update t set a = 1",
            "declare c cursor with for select 1",
            "fetch",
            "fetch sideways from c",
            "fetch 1.5 from c",
            "close",
            "close a b",
        ] {
            assert!(understand::plan(sql).is_err(), "{sql}");
        }
        for sql in ["declare \"C 1\" no scroll cursor with hold for select 1", "close all", "move 5 in c"] {
            assert!(understand::plan(sql).is_ok(), "{sql}");
        }
    }
}
