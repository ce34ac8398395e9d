//! Statements about whole tables: TRUNCATE and COMMENT; and what an index is called that nobody has named.

use super::definition::Definition;
use super::names::{name, object};
use super::naming::name_of;
use super::refusal::{refuse, unsupported};
use super::schema::Table;
use super::translator::Translator;
use crate::error::PgError;
use crate::rewrite::follows;
use crate::tokens::{Token, tokens};
use sqlparser::ast::{CascadeOption, CommentObject, IndexColumn, ObjectName, Truncate, TruncateIdentityOption};

/// What who comments is told: it is no error, for those who describe their tables do not depend on it.
const NOT_KEPT: &str = "comments are accepted and not kept";

/// `COMMENT ON CONSTRAINT name ON table IS …`, which the parser does not know, as a comment on the table; and the name.
pub(super) fn of_constraint(sql: &str) -> Option<(String, String)> {
    sql.trim_start().get(..7).filter(|word| word.eq_ignore_ascii_case("comment"))?;
    let all = tokens(sql);
    let start = follows(&all, 0, &["comment", "on", "constraint"])?;
    let at = (start..all.len()).find(|at| all[*at].is_solid())?;
    let end = follows(&all, at + 1, &["on"])?;
    let rest: String = all[end..].iter().map(|token| token.text).collect();
    Some((format!("COMMENT ON TABLE {rest}"), all.get(at).and_then(Token::name)?))
}

impl Translator<'_> {
    /// Rows go one table after the other, those first that refer to others.
    pub(super) fn truncate(&mut self, truncate: &Truncate) -> Result<String, PgError> {
        refuse(truncate.partitions.is_some() || truncate.if_exists || truncate.on_cluster.is_some(), "this TRUNCATE")?;
        let mut names: Vec<String> = Vec::new();
        for table in &truncate.table_names {
            let table = self.written(&object(&table.name)?)?.name;
            if !names.contains(&table) {
                names.push(table);
            }
        }
        let mut at = 0;
        while let Some(table) = names.get(at) {
            match self.schema.referrer(table, &names) {
                None => at += 1,
                Some(referrer) if truncate.cascade == Some(CascadeOption::Cascade) => names.push(referrer.to_owned()),
                Some(referrer) => {
                    let text = "cannot truncate a table referenced in a foreign key constraint";
                    return Err(PgError::new("0A000", text)
                        .detail(format!("Table \"{referrer}\" references \"{table}\"."))
                        .hint(format!(
                            "Truncate table \"{referrer}\" at the same time, or use TRUNCATE ... CASCADE."
                        )));
                }
            }
        }
        let restarts = truncate.identity == Some(TruncateIdentityOption::Restart);
        let counts = |table: &String| restarts && self.schema.table(table).is_some_and(|table| table.counts);
        let restart =
            |table: &String| format!("DELETE FROM sqlite_sequence WHERE name = {}", crate::tokens::quote(table));
        let mut all: Vec<String> = names.iter().filter(|table| counts(table)).map(restart).collect();
        let names = self.schema.referrers_first(names).map_err(|(table, referrer)| {
            unsupported(format!("TRUNCATE of {table} and {referrer}, which refer to each other"))
        })?;
        all.extend(names.iter().map(|table| format!("DELETE FROM {}", name(table))));
        let last = all.pop().ok_or_else(|| unsupported("this TRUNCATE"))?;
        self.first = all;
        Ok(last)
    }

    /// A comment on what is there is a write that changes nothing.
    pub(super) fn comment(&mut self, what: &CommentObject, on: &ObjectName) -> Result<String, PgError> {
        let nothing = |table: &Table| format!("DELETE FROM {} WHERE false", name(&table.name));
        let sql = match what {
            CommentObject::Table => {
                let table = self.written(&object(on)?)?;
                self.constraint.iter().try_for_each(|constraint| has(&table, constraint))?;
                nothing(&table)
            }
            CommentObject::Column => {
                let (column, table) = on.0.split_last().ok_or_else(|| unsupported("this COMMENT"))?;
                let (column, table) = (object(&ObjectName(vec![column.clone()]))?, ObjectName(table.to_vec()));
                let table = self.written(&object(&table)?)?;
                if !table.columns.iter().any(|known| known.name == column) {
                    let text = format!("column \"{column}\" of relation \"{}\" does not exist", table.name);
                    return Err(PgError::new("42703", text));
                }
                nothing(&table)
            }
            CommentObject::Index => {
                let index = object(on)?;
                let none = || PgError::new("42P01", format!("relation \"{index}\" does not exist"));
                nothing(self.schema.indexed(&index).ok_or_else(none)?)
            }
            other => return Err(unsupported(format!("COMMENT ON {other}"))),
        };
        self.notice = Some(NOT_KEPT);
        Ok(sql)
    }

    /// `table_column_idx`, with a number behind it if that is taken.
    pub(super) fn index_name(&self, table: &Table, columns: &[IndexColumn]) -> String {
        let mut words: Vec<String> = vec![table.name.clone()];
        for column in columns {
            let own = name_of(&column.column.expr).replace("?column?", "expr");
            let is_free = |word: &String| !words[1..].contains(word);
            let word = numbered(&own).find(is_free).unwrap_or_default();
            words.push(word);
        }
        words.push("idx".into());
        let is_free = |called: &String| self.schema.indexed(called).is_none() && self.schema.table(called).is_none();
        numbered(&words.join("_")).find(is_free).unwrap_or_default()
    }
}

fn has(table: &Table, constraint: &str) -> Result<(), PgError> {
    let definition = Definition::parse(&table.sql);
    let named = definition.map(|definition| definition.named(&table.name)).unwrap_or_default();
    if named.iter().any(|named| named.name == constraint) {
        return Ok(());
    }
    let text = format!("constraint \"{constraint}\" for table \"{}\" does not exist", table.name);
    Err(PgError::new("42704", text))
}

/// A name, and the same with 1, 2 and so on behind it.
fn numbered(own: &str) -> impl Iterator<Item = String> {
    std::iter::once(own.to_owned()).chain((1_u64..).map(move |number| format!("{own}{number}")))
}
