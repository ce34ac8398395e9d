//! The workload's operations as SQL: registers in a table with defaults, a trigger, a view and an index, all of which
//! use agreed time and randomness, so that replicas that did not agree on them would have different pages.

use super::padding_of;
use crate::workload::{Action, Answer, Key};
use bezant_core::service::{Agreed, Service};
use bezant_core::wire::Wire;
use bezant_sql::{Batch, Request, Response, Sql, Statement, Value};
use bytes::Bytes;

/// What the database begins with.
const TABLES: [&str; 7] = [
    "insert into bezant_members values ('*', 'writer', 'whoever joins')",
    "create table register(
        key integer primary key, value integer not null, padding blob, at text default current_timestamp,
        draw integer default (random()))",
    "create index by_draw on register(draw)",
    "create table change(
        id integer primary key autoincrement, key integer, at text, draw blob default (randomblob(5)))",
    "create trigger on_insert after insert on register begin
        insert into change(key, at) values (new.key, strftime('%H:%M:%f', 'now'));
        delete from change where id < (select max(id) from change) - 20;
    end",
    "create trigger on_update after update on register begin
        insert into change(key, at) values (-new.key, date('now'));
        delete from change where id in (select id from change order by id desc limit -1 offset 20);
    end",
    "create view latest as select key, value, (select max(at) from change c where c.key = r.key) as at from register r",
];

const SET: &str = "insert into register(key, value, padding) values (?1, ?2, zeroblob(?3))
    on conflict (key) do update set value = excluded.value, padding = excluded.padding, draw = random(),
    at = datetime('now')";
const SET_IF_ABSENT: &str =
    "insert into register(key, value, padding) values (?1, ?2, zeroblob(?3)) on conflict (key) do nothing";
const SET_IF_EQUAL: &str = "update register set value = ?2, padding = zeroblob(?3) where key = ?1 and value = ?4";
const INCREMENT: &str = "insert into register(key, value) values (?1, 1)
    on conflict (key) do update set value = value + 1 returning value";

/// The service with its tables.
pub(super) fn new() -> Sql {
    let mut sql = Sql::new();
    let statements = TABLES.iter().map(|table| Statement::new(*table)).collect();
    let request = Request::Run(Batch { statements, ..Batch::default() });
    let response = Response::from_bytes(sql.execute(&request.to_bytes(), &Agreed::default()));
    assert!(matches!(response, Ok(Response::Done(_))), "{response:?}");
    sql
}

pub(super) fn encode(key: Key, action: Action) -> Bytes {
    let key = Value::Integer(key.into());
    let integer = |value: u64| Value::Integer(value as i64);
    let padding = |value: u64| Value::Integer(padding_of(value) as i64);
    let statement = match action {
        Action::Get => Statement::with("select value from latest where key = ?1", [key]),
        Action::Set(value) => Statement::with(SET, [key, integer(value), padding(value)]),
        Action::Delete => Statement::with("delete from register where key = ?1", [key]),
        Action::CompareAndSet(None, value) => Statement::with(SET_IF_ABSENT, [key, integer(value), padding(value)]),
        Action::CompareAndSet(Some(expected), value) => {
            Statement::with(SET_IF_EQUAL, [key, integer(value), padding(value), integer(expected)])
        }
        Action::Increment => Statement::with(INCREMENT, [key]),
        Action::SetFor(..) | Action::Life => unreachable!("rows live for ever: no plan asks for anything else"),
    };
    Request::one(statement).to_bytes().into()
}

pub(super) fn decode(action: Action, result: &Bytes) -> Answer {
    let Ok(Response::Done(results)) = Response::from_bytes(result.clone()) else { return Answer::Nonsense };
    let [result] = &results[..] else { return Answer::Nonsense };
    let value = match &result.rows[..] {
        [] => None,
        [row] => match row[..] {
            [Value::Integer(value @ 0..)] => Some(value as u64),
            _ => return Answer::Nonsense,
        },
        _ => return Answer::Nonsense,
    };
    match (action, value) {
        (Action::Get, value) => Answer::Value(value),
        (Action::Set(_), None) if result.changes == 1 => Answer::Done,
        (Action::Delete | Action::CompareAndSet(..), None) if result.changes <= 1 => {
            Answer::Changed(result.changes == 1)
        }
        (Action::Increment, Some(sum)) => Answer::Sum(sum),
        _ => Answer::Nonsense,
    }
}
