//! What an adversarial reader found against the meter, on the day it came.

use super::*;
use crate::{Check, Limits};
use bezant_core::ids::PublicKey;
use bezant_core::service::Asker;

/// Numbers from 1 to a bound.
fn numbers(to: u32) -> String {
    format!("with n(x) as (select 1 union all select x + 1 from n where x < {to})")
}

/// An array of JSON with very many elements.
const ARRAY: &str = "s(j) as materialized (select jsonb('[' || replace(hex(zeroblob(200000)), '0', '1,') || '1]'))";

/// Each view is the one before it, twice.
fn doubling(node: &mut Node, first: &str, depth: usize) -> Response {
    node.rows(first);
    let views = (1..=depth).map(|n| format!("create view v{n} as select a.x from v{} a, v{} b", n - 1, n - 1));
    let views: Vec<String> = views.collect();
    node.batch(&views.iter().map(String::as_str).collect::<Vec<_>>())
}

fn is_refused(response: &Response) -> bool {
    let is_bound = |kind| matches!(kind, ErrorKind::TooSlow | ErrorKind::TooLarge);
    matches!(response, Response::Failed(failure) if is_bound(failure.error.kind))
}

/// Functions that take far longer than their arguments are long, in one call or with each.
#[test]
fn what_grows_with_a_product_is_paid_for() {
    let paths: Vec<String> = (0..120).map(|n| format!("'$[399{n:03}]'")).collect();
    let zeros = "replace(hex(zeroblob(50000)), '0', 'z')";
    for sql in [
        format!("select unhex({zeros}, {zeros} || 'y')"),
        format!(
            "{}, {ARRAY} select sum(length(json_extract(j, {})) + x) from s cross join n",
            numbers(60),
            paths.join(", ")
        ),
        format!(
            "{} select sum('a' || replace(hex(zeroblob(490000)), '0', ' ') > 'b' || x collate rtrim) from n",
            numbers(20_000)
        ),
        format!(
            "{} select length(json_patch('{{}}', p)) from
                (select '{{' || group_concat('\"' || x || '\":1') || '}}' as p from n)",
            numbers(40_000)
        ),
        format!(
            "{}, {ARRAY} select sum((select value from json_each(j, '$[399999]') limit 1)) from s cross join n",
            numbers(6_000)
        ),
        format!("{} select sum(date(x, '+1 month', '+1 month', '+1 month') > 'a') from n", numbers(1_000_000)),
    ] {
        let response = Node::new().batch(&[&sql]);
        assert!(is_refused(&response), "{sql}: {response:?}");
    }
}

/// Preparing a statement takes no steps.
#[test]
fn planning_is_paid_for() {
    let mut node = Node::new();
    doubling(&mut node, "create view v0 as select 1 as x", 14);
    let response = node.batch(&["select x from v14 where 0"]);
    assert!(is_refused(&response), "{response:?}");
}

/// So is looking at what a change of the schema has made.
#[test]
fn the_check_of_a_schema_is_paid_for() {
    let mut node = Node::new();
    let wide = format!("create view v0 as select 1 as x, '{}' as y", "A".repeat(100_000));
    assert!(is_refused(&doubling(&mut node, &wide, 13)));
}

/// Names and types are the client's as well.
/// A text without a statement has nothing that could be executed, and one with very many is not gone through.
#[test]
fn a_text_is_one_statement() {
    let mut node = Node::new();
    for nothing in ["", " ", ";", ";;", "-- nothing", "/* */", "\0select 1"] {
        assert_eq!(node.error(nothing).0, ErrorKind::Syntax, "{nothing:?}");
        let read = node.query(nothing);
        assert!(matches!(read, Ok(Response::Failed(failed)) if failed.error.kind == ErrorKind::Syntax), "{nothing:?}");
        let described = node.run(&Request::Describe(nothing.into()));
        assert!(matches!(described, Response::Failed(failed) if failed.error.kind == ErrorKind::Syntax), "{nothing:?}");
    }
    for (several, rows) in
        [("select 1; -- and no more", Some(1)), (";select 1;;", Some(1)), ("select 1; select 2", None)]
    {
        match rows {
            Some(rows) => assert_eq!(node.rows(several).rows.len(), rows, "{several}"),
            None => assert_eq!(node.error(several).1, "more than one statement (send several statements as a batch)"),
        }
    }
    assert_eq!(node.error(&"select 1;".repeat(50_000)).0, ErrorKind::Syntax);
}

/// SQLite ends a text with a zero byte when it is read, and needs memory for that.
#[test]
fn reading_a_value_takes_memory_as_well() {
    let mut node = Node::new();
    node.sql = std::mem::take(&mut node.sql).with_limits(Limits { memory: 1 << 20, ..Limits::default() });
    let statement = |columns: usize| {
        let sql = format!("select {}", vec!["cast(?1 as text)"; columns].join(", "));
        Statement { sql: sql.into(), parameters: vec![Value::Blob(vec![b'a'; 600_000].into())] }
    };
    let mut ask = |columns| node.run(&Request::one(statement(columns)));
    assert!(matches!(ask(1), Response::Done(_)));
    assert!(matches!(ask(3), Response::Failed(failed) if failed.error.kind == ErrorKind::TooLarge));
}

/// Two thousand columns of a megabyte would be two gigabytes before anybody counted them.
#[test]
fn each_value_is_counted_before_it_is_copied() {
    let mut node = Node::new();
    let sql = format!("select {}", vec!["?1"; 2_000].join(", "));
    let statement = Statement { sql: sql.into(), parameters: vec![Value::Blob(vec![7; 1 << 20].into())] };
    let response = node.run(&Request::one(statement));
    assert!(matches!(response, Response::Failed(failed) if failed.error.kind == ErrorKind::TooLarge));
}

/// Each term of a union is prepared within the one behind it, and each union within what it is a part of.
#[test]
fn selects_within_one_another_are_bounded() {
    let mut node = Node::new();
    let terms = |inner: &str, terms: usize| format!("select ({inner}){}", " union all select 1".repeat(terms - 1));
    let nested = |levels: usize, of: usize| (0..levels).fold("select 1".to_owned(), |inner, _| terms(&inner, of));
    assert_eq!(node.rows(&nested(1, 500)).rows.len(), 500);
    let deep = nested(20, 500);
    let said = node.error(&deep);
    assert_eq!((said.0, &*said.1), (ErrorKind::TooLarge, "too many selects within one another"));
    assert!(is_refused(&node.run(&Request::Describe(deep))));
    assert_eq!(node.text("select 1"), "1");
}

#[test]
fn columns_are_part_of_the_result() {
    let mut node = Node::new();
    node.rows(&format!("create table t(c {})", "A".repeat(400_000)));
    let wide = format!("select {} from t", vec!["c"; 600].join(", "));
    assert!(is_refused(&node.batch(&[&wide])));
    assert!(is_refused(&node.run(&Request::Describe(wide))));
}

/// SQLite keeps the columns of a view when it has found them: one replica alone may have been asked for them.
#[test]
fn what_a_replica_knows_of_views_decides_nothing() {
    let mut old = Node::new();
    old.rows(&format!("create view b as select '{}' as x, 1 as y", "A".repeat(60_000)));
    for n in 1..10 {
        let from = if n == 1 { "b".to_string() } else { format!("v{}", n - 1) };
        old.rows(&format!("create view v{n} as select a.y from {from} a, {from} c"));
    }
    for n in 0..60 {
        old.rows(&format!("create view w{n} as select a.y, {n} from v9 a"));
    }
    let columns = |n| format!("select count(*) from pragma_table_info('w{n}')");
    let mut young = old.restarted();
    for n in 0..60 {
        assert!(old.query(&columns(n)).is_ok());
    }
    let sql = (0..60).map(columns).collect::<Vec<_>>().join(" union all ");
    assert_eq!(old.batch(&[&sql]), young.batch(&[&sql]));
}

#[test]
fn who_has_no_role_is_told_of_no_table() {
    let mut node = Node::new();
    node.rows("create table secret(salary)");
    node.rows(&format!("insert into bezant_members values ('{}', 'admin', null)", "01".repeat(32)));
    let asker = Asker { public_key: PublicKey([9; 32]), joined: true, ..Asker::default() };
    let request = Request::Describe("select * from secret".into()).to_bytes();
    let ordered = node.sql.execute(&request, &Agreed { asker, ..agreed(7) });
    for answer in [ordered, node.sql.query(&request, &asker).unwrap()] {
        let answer = Response::from_bytes(answer).unwrap();
        assert!(matches!(&answer, Response::Failed(failure) if failure.error.kind == ErrorKind::Denied), "{answer:?}");
    }
}

/// What was undone for want of memory is not what a commit says.
#[test]
fn an_error_at_the_end_is_its_own() {
    let mut node = Node::new();
    node.batch(&["create table p(a primary key)", "create table c(a references p(a) deferrable initially deferred)"]);
    let inner = |inner, _| format!("max({}, {inner})", ["hex(zeroblob(500000))"; 40].join(", "));
    let big = format!("select length({})", (0..12).fold("1".to_string(), inner));
    let Response::Failed(too_much) = node.batch(&[&big]) else { panic!("it takes too much") };
    let nothing = Rows::default().digest();
    let check = |statement, digest| Check { statement, digest };
    let checks = vec![
        check(Statement::new("insert into c values (5)"), Rows { changes: 1, ..Rows::default() }.digest()),
        check(Statement::attempt(), nothing),
        check(Statement::new(big.as_str()), too_much.error.digest()),
        check(Statement::undo(), nothing),
    ];
    let answer = node.run(&Request::Run(Batch { checks, ..Batch::default() }));
    assert!(matches!(&answer, Response::Failed(failure) if failure.error.kind == ErrorKind::ForeignKey), "{answer:?}");
}
