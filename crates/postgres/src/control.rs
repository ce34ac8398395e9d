//! Statements about transactions. They are understood whole or refused: what is left out of one could be what matters.

use crate::error::{PgError, sqlstate};
use crate::plan::Plan;
use crate::rewrite::follows;
use crate::settings::{READ_ONLY_BY_DEFAULT, on_or_off};
use crate::tokens::Token;

/// What a transaction can be told to be, and whether that says that it only reads. Every one is serializable, and waits
/// for nobody.
const MODES: &[(&[&str], Option<bool>)] = &[
    (&["isolation", "level", "serializable"], None),
    (&["isolation", "level", "repeatable", "read"], None),
    (&["isolation", "level", "read", "committed"], None),
    (&["isolation", "level", "read", "uncommitted"], None),
    (&["read", "only"], Some(true)),
    (&["read", "write"], Some(false)),
    (&["deferrable"], None),
    (&["not", "deferrable"], None),
];

/// `BEGIN [WORK | TRANSACTION] [modes]`
pub(crate) fn begin(rest: &[Token<'_>]) -> Result<Plan, PgError> {
    Ok(Plan::Begin { read_only: modes(behind(rest, &["work", "transaction"]))? })
}

/// `START TRANSACTION [modes]`
pub(crate) fn start(rest: &[Token<'_>]) -> Result<Plan, PgError> {
    match rest {
        [first, rest @ ..] if first.is("transaction") => Ok(Plan::Begin { read_only: modes(rest)? }),
        _ => Err(not_understood(rest)),
    }
}

/// `COMMIT [WORK | TRANSACTION] [AND [NO] CHAIN]`
pub(crate) fn commit(rest: &[Token<'_>]) -> Result<Plan, PgError> {
    Ok(Plan::Commit { chain: chain(behind(rest, &["work", "transaction"]))? })
}

/// `ROLLBACK [WORK | TRANSACTION] [AND [NO] CHAIN | TO [SAVEPOINT] name]`
pub(crate) fn rollback(rest: &[Token<'_>]) -> Result<Plan, PgError> {
    let rest = behind(rest, &["work", "transaction"]);
    match rest {
        [to, rest @ ..] if to.is("to") => Ok(Plan::RollbackTo(name(rest)?)),
        _ => Ok(Plan::Rollback { chain: chain(rest)? }),
    }
}

/// `[SAVEPOINT] name`
pub(crate) fn name(rest: &[Token<'_>]) -> Result<String, PgError> {
    match rest {
        [word, rest @ ..] if word.is("savepoint") && !rest.is_empty() => name(rest),
        [only] => only.name().ok_or_else(|| not_understood(rest)),
        [] => Err(PgError::new(sqlstate::SYNTAX, "a savepoint needs a name")),
        _ => Err(not_understood(rest)),
    }
}

/// `SET TRANSACTION modes`
pub(crate) fn set_transaction(rest: &[Token<'_>]) -> Result<Plan, PgError> {
    if rest.is_empty() {
        return Err(PgError::new(sqlstate::SYNTAX, "SET TRANSACTION needs to know what to set"));
    }
    Ok(Plan::SetTransaction { read_only: modes(rest)? })
}

/// `SET SESSION CHARACTERISTICS AS TRANSACTION modes`
pub(crate) fn set_characteristics(rest: &[Token<'_>]) -> Result<Plan, PgError> {
    let Some(at) = follows(rest, 0, &["as", "transaction"]) else { return Err(not_understood(rest)) };
    Ok(match modes(&rest[at..])? {
        None => Plan::Nothing("SET"),
        Some(read_only) => Plan::Set { name: READ_ONLY_BY_DEFAULT.into(), value: on_or_off(read_only).into() },
    })
}

/// What follows a word that may be left out.
fn behind<'a, 'b>(rest: &'a [Token<'b>], words: &[&str]) -> &'a [Token<'b>] {
    match rest {
        [first, rest @ ..] if first.is_any(words) => rest,
        _ => rest,
    }
}

/// Whether the next transaction begins at once.
fn chain(rest: &[Token<'_>]) -> Result<bool, PgError> {
    match rest {
        [] => Ok(false),
        [and, chain] if and.is("and") && chain.is("chain") => Ok(true),
        [and, no, chain] if and.is("and") && no.is("no") && chain.is("chain") => Ok(false),
        _ => Err(not_understood(rest)),
    }
}

/// Whether a list of modes says that the transaction only reads; the last word counts.
fn modes(rest: &[Token<'_>]) -> Result<Option<bool>, PgError> {
    let (mut at, mut read_only) = (0, None);
    while at < rest.len() {
        let known = MODES.iter().find_map(|(words, says)| Some((follows(rest, at, words)?, *says)));
        let Some((end, says)) = known else { return Err(not_understood(&rest[at..])) };
        read_only = says.or(read_only);
        at = follows(rest, end, &[","]).unwrap_or(end);
    }
    Ok(read_only)
}

fn not_understood(rest: &[Token<'_>]) -> PgError {
    let words: Vec<&str> = rest.iter().map(|token| token.text).collect();
    PgError::unsupported(format!("\"{}\" is not understood in a statement about transactions", words.join(" ")))
        .hint("docs/postgres.md says what there is")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::understand;

    #[test]
    fn transactions_are_understood_whole() {
        let begin = |read_only| Plan::Begin { read_only };
        for (sql, plan) in [
            ("BEGIN", begin(None)),
            ("begin work", begin(None)),
            ("begin transaction read write", begin(Some(false))),
            ("start transaction isolation level serializable, read only", begin(Some(true))),
            ("start transaction read only not deferrable isolation level repeatable read", begin(Some(true))),
            ("END", Plan::Commit { chain: false }),
            ("commit transaction and no chain", Plan::Commit { chain: false }),
            ("commit and chain", Plan::Commit { chain: true }),
            ("abort and chain", Plan::Rollback { chain: true }),
            ("rollback to savepoint \"S 1\"", Plan::RollbackTo("S 1".into())),
            ("ROLLBACK work TO a", Plan::RollbackTo("a".into())),
            ("release savepoint sa_savepoint_1", Plan::Release("sa_savepoint_1".into())),
            ("set transaction isolation level read committed", Plan::SetTransaction { read_only: None }),
            ("set session characteristics as transaction isolation level serializable", Plan::Nothing("SET")),
            (
                "set session characteristics as transaction read write",
                Plan::Set { name: "default_transaction_read_only".into(), value: "off".into() },
            ),
        ] {
            assert_eq!(understand::plan(sql), Ok(plan), "{sql}");
        }
        for sql in [
            "begin immediate",
            "begin read",
            "start",
            "start replication",
            "commit prepared 'x'",
            "rollback prepared 'x'",
            "commit and",
            "rollback to a b",
            "rollback to 'a'",
            "release",
            "savepoint a b",
            "set transaction",
            "set transaction snapshot 'x'",
            "set session characteristics as something",
            "prepare transaction 'x'",
        ] {
            assert!(understand::plan(sql).is_err(), "{sql}");
        }
    }
}
