//! What a statement asks for: the gateway itself answers about transactions, settings and the catalog, everything else
//! goes to the replicas.

use crate::error::{PgError, sqlstate};
use crate::plan::Plan;
use crate::settings::boolean;
use crate::tag::Tag;
use crate::tokens::{Kind, Token, text_of, tokens};
use crate::{catalog, control, copy, cursor, prepared, sequence};

/// Understands a statement.
///
/// # Errors
/// What PostgreSQL has and this has not.
pub(crate) fn plan(sql: &str) -> Result<Plan, PgError> {
    let tokens = tokens(sql);
    let solid: Vec<Token<'_>> = tokens.iter().copied().filter(Token::is_solid).collect();
    let Some(first) = solid.first() else { return Err(PgError::new(sqlstate::SYNTAX, "an empty statement")) };
    let rest = &solid[1..];
    Ok(match first.text.to_ascii_lowercase().as_str() {
        "begin" => control::begin(rest)?,
        "start" => control::start(rest)?,
        "commit" | "end" => control::commit(rest)?,
        "rollback" | "abort" => control::rollback(rest)?,
        "savepoint" => Plan::Savepoint(control::name(rest)?),
        "release" => Plan::Release(control::name(rest)?),
        "set" => set(rest)?,
        "reset" if is_alone(rest, "all") => Plan::Reset(None),
        "reset" => Plan::Reset(Some(setting_name(rest).0)),
        "show" => Plan::Show(setting_name(rest).0),
        "declare" => {
            let (declared, query) = cursor::declare(sql)?;
            Plan::Declare(declared, Box::new(plan(&query)?))
        }
        "fetch" => cursor::fetch(sql, rest, false)?,
        "move" => cursor::fetch(sql, rest, true)?,
        "close" => cursor::close(sql, rest)?,
        "copy" => Plan::Copy(Box::new(copy::copy(sql)?)),
        "prepare" if !rest.first().is_some_and(|token| token.is("transaction")) => prepared::prepare(sql)?,
        "execute" => prepared::execute(rest)?,
        "deallocate" if rest.last().is_some_and(|token| token.is("all")) => Plan::Deallocate(None),
        "deallocate" => Plan::Deallocate(rest.last().and_then(Token::name)),
        "discard" if is_alone(rest, "all") => Plan::DiscardAll,
        "discard" => Plan::Nothing("DISCARD"),
        "create" if makes_public(rest) => Plan::Nothing("CREATE SCHEMA"),
        "unlisten" => Plan::Nothing("UNLISTEN"),
        "vacuum" => Plan::Nothing("VACUUM"),
        word @ ("listen" | "notify" | "lock" | "prepare" | "grant" | "revoke" | "do" | "call" | "cluster") => {
            return Err(refused(word));
        }
        "select" if let Some(sql) = sequence::counting_on(&solid) => Plan::Cluster { sql, tag: Tag::Select },
        _ if catalog::is_about(&solid) => Plan::Catalog(catalog::for_catalog(sql)),
        _ => Plan::Cluster { sql: sql.into(), tag: Tag::of(sql) },
    })
}

fn refused(word: &str) -> PgError {
    let hint = match word {
        "prepare" => "a transaction is committed by the gateway that it was begun at",
        "lock" => "leave it out: a transaction is validated when it is committed",
        "listen" | "notify" => "ask again from time to time",
        _ => "docs/postgres.md says what there is",
    };
    PgError::unsupported(format!("{} is not supported", word.to_uppercase())).hint(hint)
}

fn is_alone(rest: &[Token<'_>], word: &str) -> bool {
    matches!(rest, [token] if token.is(word))
}

/// `CREATE SCHEMA IF NOT EXISTS public`: there is that one.
fn makes_public(rest: &[Token<'_>]) -> bool {
    let words = ["schema", "if", "not", "exists"];
    let [first @ .., name] = rest else { return false };
    first.len() == words.len()
        && first.iter().zip(words).all(|(token, word)| token.is(word))
        && name.name().is_some_and(|name| name == "public")
}

/// A setting's name, with dots in it, and what follows.
fn setting_name<'a, 'b>(rest: &'a [Token<'b>]) -> (String, &'a [Token<'b>]) {
    if rest.len() >= 2 && rest[0].is("time") && rest[1].is("zone") {
        return ("timezone".into(), &rest[2..]);
    }
    if rest.len() >= 3 && rest[0].is("transaction") && rest[1].is("isolation") {
        return ("transaction_isolation".into(), &rest[3..]);
    }
    let is_name = |token: &&Token<'_>| token.name().is_some() || token.is_symbol(".");
    let mut end = 0;
    for token in rest.iter().take_while(is_name) {
        let joins = token.is_symbol(".") || end == 0 || rest[end - 1].is_symbol(".");
        if !joins {
            break;
        }
        end += 1;
    }
    let name: String = rest[..end].iter().map(|token| token.name().unwrap_or_else(|| ".".into())).collect();
    (name.to_ascii_lowercase(), &rest[end..])
}

/// `SET [SESSION | LOCAL] name {= | TO} value`, and the forms about transactions, all of which are serializable.
fn set(rest: &[Token<'_>]) -> Result<Plan, PgError> {
    let rest = match rest {
        [first, more @ ..]
            if first.is_any(&["session", "local"]) && !more.first().is_some_and(|t| t.is_symbol("=")) =>
        {
            more
        }
        _ => rest,
    };
    match rest {
        [first, rest @ ..] if first.is("transaction") => return control::set_transaction(rest),
        [first, rest @ ..] if first.is("characteristics") => return control::set_characteristics(rest),
        [first, ..] if first.is("constraints") => return Ok(Plan::Nothing("SET")),
        [first, rest @ ..] if first.is("names") => {
            return Ok(Plan::Set { name: "client_encoding".into(), value: setting_value(rest) });
        }
        _ => {}
    }
    let (name, value) = setting_name(rest);
    if name.is_empty() {
        return Err(PgError::new(sqlstate::SYNTAX, "SET needs the name of a setting"));
    }
    let value = match value {
        [first, more @ ..] if first.is_symbol("=") || first.is("to") => more,
        // `SET TIME ZONE INTERVAL '+02:00' HOUR TO MINUTE` counts as people do, and not as POSIX does.
        [interval, offset, hour, to, minute]
            if name == "timezone"
                && interval.is("interval")
                && hour.is("hour")
                && to.is("to")
                && minute.is("minute") =>
        {
            let offset = text_of(*offset);
            let turned = match offset.strip_prefix('-') {
                Some(rest) => format!("+{rest}"),
                None => format!("-{}", offset.trim_start_matches('+')),
            };
            return Ok(Plan::Set { name, value: turned });
        }
        more => more,
    };
    let value = setting_value(value);
    if name == "transaction_read_only" {
        return Ok(Plan::SetTransaction { read_only: Some(boolean(&name, &value)?) });
    }
    Ok(Plan::Set { name, value })
}

fn setting_value(tokens: &[Token<'_>]) -> String {
    let one = |token: &Token<'_>| match token.kind {
        Kind::Text | Kind::Dollar => text_of(*token),
        Kind::Quoted => token.name().unwrap_or_default(),
        _ if token.is_symbol(",") => ", ".into(),
        _ => token.text.into(),
    };
    tokens.iter().map(one).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn set_to(name: &str, value: &str) -> Plan {
        Plan::Set { name: name.into(), value: value.into() }
    }

    #[test]
    fn statements_of_the_gateway_are_its_own() {
        for (sql, plan) in [
            ("set search_path to a, 'b'", set_to("search_path", "a, b")),
            ("set bezant.provenance = on", set_to("bezant.provenance", "on")),
            ("set session application_name = 'x y'", set_to("application_name", "x y")),
            ("SET TIME ZONE 'UTC'", set_to("timezone", "UTC")),
            ("SET TIME ZONE INTERVAL '+02:00' HOUR TO MINUTE", set_to("timezone", "-02:00")),
            ("SET TIME ZONE INTERVAL '-05:30' HOUR TO MINUTE", set_to("timezone", "+05:30")),
            ("create schema if not exists \"public\"", Plan::Nothing("CREATE SCHEMA")),
            ("set transaction_read_only to 'Yes'", Plan::SetTransaction { read_only: Some(true) }),
            ("show transaction isolation level", Plan::Show("transaction_isolation".into())),
            ("SHOW bezant.sequence", Plan::Show("bezant.sequence".into())),
            ("deallocate all", Plan::Deallocate(None)),
            ("DISCARD ALL", Plan::DiscardAll),
            ("unlisten *", Plan::Nothing("UNLISTEN")),
        ] {
            assert_eq!(super::plan(sql), Ok(plan), "{sql}");
        }
        for sql in ["copy t from 'file'", "listen x", "savepoint", "set", "set transaction_read_only = maybe"] {
            assert!(plan(sql).is_err(), "{sql}");
        }
    }

    #[test]
    fn tags_are_those_that_clients_expect() {
        let tag = |sql: &str, changes| match plan(sql) {
            Ok(Plan::Cluster { tag, .. }) => tag.text(7, changes),
            other => panic!("{sql}: {other:?}"),
        };
        assert_eq!(tag("select 1", 0), "SELECT 7");
        assert_eq!(tag("insert into t values (1) returning a", 2), "INSERT 0 2");
        assert_eq!(tag("with a as (select 1) update t set b = 1", 3), "UPDATE 3");
        assert_eq!(tag("with replace as (select 1) replace into t select * from replace", 3), "INSERT 0 3");
        assert_eq!(tag("create table if not exists t(a)", 0), "CREATE TABLE");
        assert_eq!(tag("create unique index i on t(a)", 0), "CREATE INDEX");
        assert_eq!(tag("alter table t add column b", 0), "ALTER TABLE");
    }
}
