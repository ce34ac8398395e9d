//! The operations of a bundle: what each gives, and what is in the file afterwards.

use super::{Node, TIME, agreed};
use crate::{Batch, Check, Dated, ErrorKind, Limits, Request, Response, Rows, Sql, Statement, Value};
use bezant_core::service::{Agreed, Asker, Operation, Service, one_by_one};
use bezant_core::wire::Wire;
use bytes::Bytes;

/// How often a transaction changed the file, which page 1 counts.
fn transactions(node: &mut Node) -> u32 {
    node.save();
    let page = &node.pages[&0];
    u32::from_be_bytes([page[24], page[25], page[26], page[27]])
}

fn one(sql: &str) -> Request {
    Request::one(Statement::new(sql))
}

fn responses(results: Vec<Bytes>) -> Vec<Response> {
    results.into_iter().map(|result| Response::from_bytes(result).expect("a response")).collect()
}

/// What each of these gives in a bundle, which must be what it gives by itself, and how many transactions that takes.
#[track_caller]
fn bundle_of(node: &mut Node, requests: &[Request]) -> (Vec<Response>, u32) {
    let operations: Vec<Bytes> = requests.iter().map(|request| request.to_bytes().into()).collect();
    let agreed = agreed(100);
    let mut apart = node.restarted();
    let alone = one_by_one(&mut apart.sql, &Operation::of_bundle(&operations, &agreed));
    let before = transactions(node);
    let results = node.sql.execute_many(&Operation::of_bundle(&operations, &agreed));
    assert_eq!(results, alone);
    for table in ["t", "parent", "child"] {
        let sql = format!("select * from {table}");
        assert_eq!(node.query(&sql), apart.query(&sql));
    }
    (responses(results), transactions(node) - before)
}

#[track_caller]
fn bundle(node: &mut Node, statements: &[&str]) -> (Vec<Response>, u32) {
    bundle_of(node, &statements.iter().map(|sql| one(sql)).collect::<Vec<_>>())
}

fn node() -> Node {
    let mut node = Node::new();
    let made = node.batch(&[
        "create table t(a integer primary key, b)",
        "create table parent(a integer primary key)",
        "create table child(a references parent)",
        "create table log(a)",
        "create trigger noted after insert on t begin insert into log values (new.a); end",
    ]);
    assert!(matches!(made, Response::Done(_)));
    node
}

fn kinds(responses: &[Response]) -> Vec<Option<ErrorKind>> {
    let kind = |response: &Response| match response {
        Response::Done(_) => None,
        Response::Failed(failure) => Some(failure.error.kind),
        other => panic!("{other:?}"),
    };
    responses.iter().map(kind).collect()
}

#[test]
fn what_succeeds_is_one_transaction() {
    let mut node = node();
    let (responses, transactions) = bundle(
        &mut node,
        &[
            "insert into t(b) values (random())",
            "insert into t(b) values (random()) returning a, b",
            "select changes(), last_insert_rowid(), (select count(*) from t)",
            "update t set b = datetime('now')",
        ],
    );
    assert_eq!(kinds(&responses), [None; 4]);
    assert_eq!(transactions, 1);
    let Response::Done(results) = &responses[2] else { panic!("{responses:?}") };
    let forgotten = [Value::Integer(0), Value::Integer(0), Value::Integer(2)];
    assert_eq!(results[0].rows, [forgotten], "nothing of the operation before is left over (prac-F35)");
}

#[test]
fn operations_draw_different_numbers() {
    let mut node = node();
    bundle(&mut node, &["insert into t(b) values (random())"; 8]);
    assert_eq!(node.text("select count(distinct b) from t"), "8");
}

/// An error undoes its own request, whatever the conflict clause says of the transaction.
#[test]
fn what_fails_undoes_itself_alone() {
    for clause in ["", "or rollback", "or fail", "or abort"] {
        let mut node = node();
        let fails = format!("insert {clause} into t values (7, 7), (1, 2)");
        let (responses, transactions) =
            bundle(&mut node, &["insert into t values (1, 1)", &fails, "insert into t values (2, 2)"]);
        assert_eq!(kinds(&responses), [None, Some(ErrorKind::Unique), None], "{clause}");
        assert_eq!(transactions, 2, "{clause}");
        assert_eq!(node.text("select a from t"), "1\n2", "{clause}");
    }
}

/// What comes before it is one transaction, and what follows it is another.
#[test]
fn what_fails_parts_the_others_and_nothing_else() {
    let mut node = node();
    let insert = |row: usize| format!("insert into t values ({}, 0)", if [7, 19].contains(&row) { 1 } else { row });
    let statements: Vec<String> = (1..=40).map(insert).collect();
    let (responses, transactions) = bundle(&mut node, &statements.iter().map(String::as_str).collect::<Vec<_>>());
    let failed = kinds(&responses).into_iter().filter(|kind| *kind == Some(ErrorKind::Unique)).count();
    assert_eq!((failed, transactions), (2, 3));
    assert_eq!(node.text("select count(*) from t"), "38");
}

/// Requests that follow one another come from anybody.
#[test]
fn who_has_no_role_and_who_talks_nonsense_disturb_nobody() {
    let mut node = node();
    let stranger = |agreed: Agreed| Agreed { asker: Asker { joined: true, ..agreed.asker }, ..agreed };
    let insert: Bytes = one("insert into t(b) values (1)").to_bytes().into();
    let ask = |agreed: Agreed, bytes: &Bytes| Operation { bytes: bytes.clone(), agreed };
    let operations = [
        ask(agreed(9), &insert),
        ask(stranger(agreed(9)), &insert),
        ask(agreed(9), &Bytes::from_static(b"nonsense")),
        ask(agreed(9), &insert),
    ];
    let before = transactions(&mut node);
    let responses = responses(node.sql.execute_many(&operations));
    assert_eq!(responses[2], Response::Malformed);
    assert_eq!(kinds(&[&responses[..2], &responses[3..]].concat()), [None, Some(ErrorKind::Denied), None]);
    assert_eq!((transactions(&mut node) - before, node.text("select count(*) from t")), (1, "2".into()));
}

/// A reference that is unmet when its request ends is that request's error, though the next one would meet it.
#[test]
fn nobody_else_meets_a_reference() {
    let mut node = node();
    node.batch(&["drop table child", "create table child(a references parent deferrable initially deferred)"]);
    let (responses, _) = bundle(&mut node, &["insert into child values (1)", "insert into parent values (1)"]);
    assert_eq!(kinds(&responses), [Some(ErrorKind::ForeignKey), None]);
}

/// An old row without a reference, as DROP TABLE leaves it, makes SQLite's count say less than there is.
#[test]
fn old_unmet_references_excuse_nobody() {
    let mut node = node();
    for statement in [
        "create table p(b)",
        "create unique index i on p(b)",
        "create table c(a references p(b) deferrable initially DeFerred)",
        "insert into p values (7)",
        "insert into c values (7), (7)",
        "drop index i",
        "drop table p",
        "create table p(b unique)",
    ] {
        assert!(matches!(node.batch(&[statement]), Response::Done(_)), "{statement}");
    }
    let both = ["insert into c values (9)", "insert into p values (7)"].map(Statement::new).to_vec();
    let less = Request::Run(Batch { statements: both, ..Batch::default() });
    let (responses, _) = bundle_of(&mut node, &[less, one("insert into c values (10)")]);
    assert_eq!(kinds(&responses), [Some(ErrorKind::ForeignKey); 2]);
    assert_eq!(node.text("select count(*) from c"), "2");
}

/// An attempt ends with its request: the next one has none to undo.
#[test]
fn an_attempt_that_is_left_open_ends() {
    let mark = |statement| Check { statement, digest: Rows::default().digest() };
    let of = |checks: Vec<Check>, sql: &str| {
        Request::Run(Batch { checks, statements: vec![Statement::new(sql)], ..Batch::default() })
    };
    let mut node = node();
    let attempt = || mark(Statement::attempt());
    let insert = "insert into t(b) values (1)";
    let (responses, transactions) = bundle_of(&mut node, &[of(vec![attempt(), attempt()], insert), one(insert)]);
    assert_eq!((kinds(&responses), transactions), (vec![None; 2], 1));
    let (responses, transactions) =
        bundle_of(&mut node, &[of(vec![attempt()], insert), of(vec![mark(Statement::undo())], insert), one(insert)]);
    assert_eq!((kinds(&responses), transactions), (vec![None, Some(ErrorKind::NotAllowed), None], 2));
}

/// The schema decides what the statements after it are.
#[test]
fn a_change_of_the_schema_is_a_transaction_of_its_own() {
    let mut node = node();
    let (responses, transactions) =
        bundle(&mut node, &["insert into t values (1, 1)", "alter table t add column c default 5", "select c from t"]);
    assert_eq!((kinds(&responses), transactions), (vec![None; 3], 2));
}

/// Who is made a reader in a bundle writes nothing after it.
#[test]
fn a_change_of_the_members_counts_from_the_next_operation_on() {
    let mut node = node();
    let key = "00".repeat(32);
    let revoke = format!("insert into bezant_members values ('{key}', 'reader', null)");
    let (responses, _) = bundle(&mut node, &["insert into t values (1, 1)", &revoke, "insert into t values (2, 2)"]);
    assert_eq!(kinds(&responses), [None, None, Some(ErrorKind::Denied)]);
}

/// The time that a client brings is its own request's.
#[test]
fn a_time_is_that_of_its_request() {
    let settled = |time, sql: &str| {
        let batch = Batch { statements: vec![Statement::new(sql)], ..Batch::default() };
        Request::Settle(Dated { time, batch })
    };
    let mut node = node();
    let now = "insert into t(b) values (unixepoch('now'))";
    let (responses, transactions) = bundle_of(&mut node, &[settled(TIME, now), one(now), settled(0, now)]);
    assert_eq!((kinds(&responses), transactions), (vec![None; 3], 1));
    let late = TIME / 1_000_000 + 100;
    assert_eq!(node.text("select b from t"), format!("{}\n{late}\n{late}", TIME / 1_000_000));
    let (responses, transactions) = bundle_of(&mut node, &[settled(1, now), one(now), one(now)]);
    assert_eq!((kinds(&responses), transactions), (vec![Some(ErrorKind::TooSlow), None, None], 1));
}

/// Whatever a replica has done since it opened its database, it commits the same transactions: where the past and the
/// bundle are too much together, and the bundle alone is not, and where the bundle alone is.
#[test]
fn the_past_does_not_decide() {
    let limits = Limits { steps: 400_000, ..Limits::default() };
    let big = "insert into t(b) values (hex(zeroblob(60000)))";
    for (count, expected) in [(8, 1), (40, 5)] {
        let operations: Vec<Bytes> = vec![one(big).to_bytes().into(); count];
        for past in [0, 6, 12, 15, 18, 21, 24] {
            let mut node = Node { sql: Sql::new().with_limits(limits), ..Node::new() };
            node.batch(&["create table t(a integer primary key, b)"]);
            for _ in 0..past {
                _ = node.query("select hex(zeroblob(60000))");
            }
            let before = transactions(&mut node);
            let results = responses(node.sql.execute_many(&Operation::of_bundle(&operations, &agreed(50))));
            assert_eq!(kinds(&results), vec![None; count]);
            assert_eq!(transactions(&mut node) - before, expected, "after {past} reads");
        }
    }
}

/// What would cost too much together is in several transactions.
#[test]
fn together_they_cost_no_more_than_one_may() {
    let mut node = node();
    node.sql = node.restarted().sql.with_limits(Limits { steps: 400_000, ..Limits::default() });
    let big = "insert into t(b) values (hex(zeroblob(60000)))";
    let transactions_of = |node: &mut Node, count: usize| {
        let operations: Vec<Bytes> = (0..count).map(|_| one(big).to_bytes().into()).collect();
        let before = transactions(node);
        let results = responses(node.sql.execute_many(&Operation::of_bundle(&operations, &agreed(50))));
        assert_eq!(kinds(&results), vec![None; count]);
        transactions(node) - before
    };
    assert_eq!(transactions_of(&mut node, 2), 1);
    assert_eq!(transactions_of(&mut node, 64), 8);
}

/// As many results as there is room for; what comes after them is not executed.
#[test]
fn results_without_room_are_not_executed() {
    let mut node = node();
    let long = "insert into t(b) values (1) returning hex(zeroblob(100000))";
    let (responses, transactions) = bundle(&mut node, &[long; 5]);
    assert_eq!((responses.len(), transactions), (2, 1));
    assert_eq!(node.text("select count(*) from t"), "2");
}

#[test]
fn whoever_has_no_role_gets_nothing() {
    let mut node = node();
    let stranger = |agreed: Agreed| Agreed { asker: Asker { joined: true, ..agreed.asker }, ..agreed };
    let operations: Vec<Bytes> = vec![one("select 1").to_bytes().into(); 2];
    let responses = responses(node.sql.execute_many(&Operation::of_bundle(&operations, &stranger(agreed(9)))));
    assert_eq!(kinds(&responses), [Some(ErrorKind::Denied); 2]);
}
