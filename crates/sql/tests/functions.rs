//! The functions of PostgreSQL's types against PostgreSQL: the lines of `functions.tsv`, which a real one has answered.
//!
//! Each line is a call, a tab, and the answer: `NULL`, `=TEXT`, or `!SQLSTATE MESSAGE`. `xtask/src/e2e/referee/
//! functions.py` says how the lines come about; `BEZANT_FUNCTIONS` names another file of them.

use bezant_core::service::{Agreed, Service};
use bezant_core::wire::Wire;
use bezant_sql::{MESSAGE_BYTES_MAX, Request, Response, Sql, Statement, Value};

/// The lines that are always there.
const LINES: &str = include_str!("functions.tsv");

/// SQLSTATEs of what PostgreSQL may have and these functions refuse: not here, too much, too deep.
const REFUSED: [&str; 3] = ["0A000", "54000", "54001"];

/// Bytes of a line's `!SQLSTATE ` before the message.
const SQLSTATE_BYTES: usize = 7;

/// The answer, as the lines have it.
fn answer(sql: &mut Sql, call: &str) -> String {
    let request = Request::one(Statement::new(format!("select {call}")));
    let response = Response::from_bytes(sql.execute(&request.to_bytes(), &Agreed::default())).expect("a response");
    match response {
        Response::Done(results) => match &results[0].rows[0][0] {
            Value::Null => "NULL".into(),
            Value::Integer(number) => format!("={number}"),
            Value::Text(text) => format!("={text}"),
            other => panic!("{call} gives {other:?}"),
        },
        Response::Failed(failure) => format!("!{} {}", failure.error.kind.sqlstate(), failure.error.message),
        other => panic!("{call}: {other:?}"),
    }
}

fn unescaped(text: &str) -> String {
    let mut out = String::new();
    let mut characters = text.chars();
    while let Some(character) = characters.next() {
        out.push(match (character, character == '\\') {
            (_, true) => match characters.next().expect("an escape escapes something") {
                't' => '\t',
                'n' => '\n',
                'r' => '\r',
                's' => ' ',
                other => other,
            },
            (other, false) => other,
        });
    }
    out
}

#[test]
fn functions_answer_as_postgresql() {
    let other = std::env::var("BEZANT_FUNCTIONS").map(|path| std::fs::read_to_string(path).expect("the file"));
    let lines = other.as_deref().unwrap_or(LINES);
    let mut sql = Sql::new();
    let (mut equal, mut refused, mut differences) = (0_u64, 0_u64, Vec::new());
    for line in lines.split('\n').filter(|line| !line.is_empty() && !line.starts_with('#')) {
        let (call, wanted) = line.split_once('\t').expect("a call, a tab and an answer");
        let (call, mut wanted) = (unescaped(call), unescaped(wanted));
        if wanted.starts_with('!') && wanted.is_ascii() {
            // Messages that quote long numbers are cut.
            wanted.truncate(SQLSTATE_BYTES + MESSAGE_BYTES_MAX);
        }
        let found = answer(&mut sql, &call);
        if found == wanted {
            equal += 1;
        } else if REFUSED.iter().any(|sqlstate| found.strip_prefix('!').is_some_and(|of| of.starts_with(sqlstate))) {
            refused += 1;
        } else {
            differences.push(format!("{call}\n    PostgreSQL: {wanted}\n    here:       {found}"));
        }
    }
    println!("{equal} equal, {refused} refused, {} different", differences.len());
    assert!(differences.is_empty(), "{} calls differ:\n{}", differences.len(), differences.join("\n"));
    assert!(equal > 10 * refused, "{refused} calls are refused, and only {equal} answered as PostgreSQL does");
}
