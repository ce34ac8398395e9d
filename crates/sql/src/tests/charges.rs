//! What a step of SQLite, or preparing a statement, goes through besides bytes: digits, pages, names, the schema.

use super::*;

/// Numbers from 1 to a bound.
fn numbers(to: u32) -> String {
    format!("with recursive n(x) as (select 1 union all select x + 1 from n where x < {to})")
}

/// A list of as many.
fn list(count: usize, item: impl Fn(usize) -> String) -> String {
    (0..count).map(item).collect::<Vec<_>>().join(",")
}

#[track_caller]
fn is_too_slow(node: &mut Node, sql: &str) {
    let response = node.batch(&[sql]);
    let says = format!("{response:?}").chars().take(200).collect::<String>();
    let is = matches!(response, Response::Failed(failure) if failure.error.kind == ErrorKind::TooSlow);
    assert!(is, "{}: {says}", sql.chars().take(200).collect::<String>());
}

/// The steps that a request is charged, bytes included.
fn steps(node: &mut Node, sql: &[&str]) -> i64 {
    let before = node.sql.charged();
    let response = node.batch(sql);
    assert!(matches!(response, Response::Done(_)), "{response:?}");
    (node.sql.charged() - before) / 64
}

/// Each row took a millisecond with a hundred steps.
#[test]
fn digits_are_paid_for_at_every_use() {
    let digits = "(select replace(hex(zeroblob(500000)), '0', '1'))";
    for expression in [
        format!("sum({digits} + x)"),
        format!("sum(-{digits} + x)"),
        format!("sum(case when {digits} then x end)"),
        format!("sum(abs(cast({digits} as real)) > x)"),
        format!("sum(typeof(cast({digits} as integer) & x) > '')"),
    ] {
        is_too_slow(&mut Node::new(), &format!("{} select {expression} from n", numbers(5_000)));
    }
}

/// A statement that is kept prepared counts its steps anew each time (prac-F35).
#[test]
fn what_comes_again_costs_no_more() {
    let mut node = Node::new();
    let sql = format!("{} select count(*) from n", numbers(37));
    let costs = [0; 12].map(|_| steps(&mut node, &[&sql]));
    assert_eq!(costs, [costs[0]; 12]);
}

#[test]
fn a_zeroblob_is_compared_byte_by_byte() {
    let sql = "select sum(zeroblob(x + 900000) > unhex(hex(zeroblob(500000)))) from n";
    is_too_slow(&mut Node::new(), &format!("{} {sql}", numbers(3_000)));
}

/// What stands behind a long value is found through all its pages: a row took a quarter of a millisecond with five
/// steps.
#[test]
fn pages_are_paid_for() {
    let mut node = Node::new();
    node.rows("create table t(a, b)");
    let fill = format!("{} insert into t select zeroblob(1000000), x from n", numbers(40));
    let pages = 40 * 244;
    let filled = steps(&mut node, &[&fill]);
    assert!(filled > pages * 64, "{filled}");
    is_too_slow(&mut node, &format!("{} select sum(b) from n cross join t", numbers(100)));
    let deleted = steps(&mut node, &["delete from t"]);
    assert!(deleted > pages * 2 * 64, "{deleted}");
}

/// A search in an index goes through some dozens of texts in a step.
#[test]
fn collations_are_paid_for() {
    let mut node = Node::new();
    let sorted = |collation| {
        let order = format!("printf('%.200c%d', 'a', x * 7919 % 100003) collate {collation}");
        format!("{} select count(*) from (select x from n order by {order} limit -1)", numbers(5_000))
    };
    let binary = steps(&mut node, &[&sorted("binary")]);
    let nocase = steps(&mut node, &[&sorted("nocase")]);
    assert!(nocase - binary > 5_000 * 10 * 400 / 64, "{nocase} after {binary}");
}

/// Each of these took seconds for a few hundred thousand steps.
#[test]
fn names_are_paid_for() {
    let columns = list(2_000, |n| format!("1 c{n}"));
    let tables = list(40, |n| format!("q z{n}"));
    let common = list(15_000, |n| format!("a{n} as (select 1)"));
    let windows = list(30_000, |n| format!("w{n} as ()"));
    for sql in [
        format!(
            "with q as (select {columns}) select 1 in ({}) from (select 1 z), {tables}",
            list(60_000, |_| "z".into())
        ),
        format!("with {common} select 1 from a1"),
        format!("select {} window {windows}, w as ()", list(1_900, |_| "sum(1) over w".into())),
        format!("select x in ({}) from (select random() x)", list(30_000, |n| format!("x + {n}"))),
    ] {
        is_too_slow(&mut Node::new(), &sql);
    }
    let node = &mut Node::new();
    node.rows(&format!("create table t({})", list(2_000, |n| format!("c{n}"))));
    let wide = steps(node, &[&format!("select {} from t", list(2_000, |n| format!("c{n}")))]);
    assert!(wide < 1_000_000, "what is no attack is none: {wide}");
}

/// CREATE TABLE prepares a statement of its own, to find circles.
#[test]
fn planning_within_a_step_is_paid_for() {
    let mut node = Node::new();
    let chain = list(1_000, |n| format!("c{n} as (c{})", n + 1));
    let made = steps(&mut node, &[&format!("create table t({chain}, c1000)")]);
    assert!(made > 1_000 * 1_000 / 2 * 2, "{made}");
}

/// ALTER TABLE prepares each view, with all views that it reads, and so does whoever asks for its columns.
#[test]
fn views_are_paid_for_by_who_asks() {
    let mut node = Node::new();
    node.batch(&["create table t(a)", "create view v0 as select a from t"]);
    for n in 1..=11 {
        node.rows(&format!("create view v{n} as select x.a from v{} x, v{} y", n - 1, n - 1));
    }
    let asked = steps(&mut node, &["select count(*) from pragma_table_info('v11')"]);
    let altered = steps(&mut node, &["alter table t rename to u"]);
    assert!(asked > 10 * 2_048, "{asked}");
    assert!(altered > 10 * 4_096, "{altered}");
}

/// The last of two thousand columns took a step, and four microseconds.
#[test]
fn columns_before_a_column_are_paid_for() {
    let mut node = Node::new();
    node.rows(&format!("create table t({})", list(2_000, |n| format!("c{n}"))));
    node.rows(&format!("{} insert into t(c1999) select x from n", numbers(1_000)));
    let read = steps(&mut node, &["select sum(c1999) from t"]);
    assert!(read > 1_000 * 2_000 / 4, "{read}");
}

/// Each byte is held against most of the pattern.
#[test]
fn patterns_are_paid_for() {
    let text = "replace(hex(zeroblob(5000)), '0', 'a')";
    let pattern = format!("%{}b", "a".repeat(100));
    let matched = steps(&mut Node::new(), &[&format!("select pg_like({text}, '{pattern}')")]);
    assert!(matched > 10_000 * 102 * 4 / 64, "{matched}");
}

/// A change of the schema makes all replicas read all of it again.
#[test]
fn the_schema_is_paid_for_by_who_changes_it() {
    let mut node = Node::new();
    let many: Vec<String> = (0..500).map(|n| format!("create table t{n}(a, b, '{}')", "c".repeat(1_000))).collect();
    node.batch(&many.iter().map(String::as_str).collect::<Vec<_>>());
    let size = 500 * (64 + 1_000);
    let made = steps(&mut node, &["create table x(a)"]);
    assert!(made > size && made < 2 * size, "{made}");
    let both = steps(&mut node, &["drop table x", "create table x(a)"]);
    assert!(both < 2 * size, "it is read again once: {both}");
    // Who only tries makes them do it, too.
    let before = node.sql.charged();
    node.error("create table x(a)");
    assert!((node.sql.charged() - before) / 64 > size);
    // Those who change rows do not.
    assert!(steps(&mut node, &["insert into x values (1)"]) < 1_000);
}

#[test]
fn the_schema_is_bounded() {
    let mut node = Node::new();
    let view = |n| format!("create view v{n} as select '{}'", "a".repeat(500_000));
    for n in 0..8 {
        node.rows(&view(n));
    }
    let (kind, text) = node.error(&view(8));
    assert!(kind == ErrorKind::TooLarge && text.contains("schema"), "{text}");
    node.rows("create table small(a)");
    node.rows("drop view v7");
    node.rows(&view(8));
}

/// The planner's statistics are read with the schema. Whoever writes rows may write them.
#[test]
fn statistics_are_a_part_of_the_schema() {
    let mut node = Node::new();
    node.batch(&["create table t(a)", "create index i on t(a)", "insert into t values (1)", "analyze"]);
    let rows = |count| format!("{} insert into sqlite_stat1 select 't', 'i', '1 1' from n", numbers(count));
    node.rows(&rows(10_000));
    let made = steps(&mut node, &["create table x(a)"]);
    assert!(made > 10_000 * 64, "{made}");
    let (kind, text) = node.error(&rows(70_000));
    assert!(kind == ErrorKind::TooLarge && text.contains("schema"), "{text}");
    node.rows("delete from sqlite_stat1");
    assert!(steps(&mut node, &["create table y(a)"]) < 10_000);
}
