//! Tables that are made anew.

use super::*;
use crate::{Check, Dated, Limits, Rehearsal};
use bezant_core::ids::PublicKey;
use bezant_core::service::Asker;

/// Rebuilds a table for good.
fn rebuild(node: &mut Node, table: &str, definition: &str, columns: &str, values: &str) -> Response {
    node.run(&Request::one(Statement::rebuild(table, definition, columns, values)))
}

/// Why that fails; the state must be as before.
#[track_caller]
fn refused(node: &mut Node, table: &str, definition: &str, columns: &str, values: &str) -> ErrorKind {
    let before = node.root();
    match rebuild(node, table, definition, columns, values) {
        Response::Failed(failure) => {
            assert_eq!(node.root(), before, "{} changed something", failure.error);
            failure.error.kind
        }
        other => panic!("{other:?}"),
    }
}

#[track_caller]
fn done(response: &Response) {
    assert!(matches!(response, Response::Done(_)), "{response:?}");
}

/// A family of tables, with all that may hang on one.
fn family() -> Node {
    let mut node = Node::new();
    done(&node.batch(&[
        "create table parent(id integer primary key autoincrement, name text, boss integer references parent)",
        "create table child(id integer primary key, p integer references parent(id) on delete cascade)",
        "create index by_name on parent(name)",
        "create table log(what)",
        "create trigger noted after insert on parent begin insert into log values (new.name); end",
        "create view named as select name from parent",
        "insert into parent values (1, 'a', null), (2, 'b', 1), (9, 'gone', 1)",
        "delete from parent where id = 9",
        "insert into child values (1, 1), (2, 2), (3, null)",
    ]));
    node
}

const DEFINITION: &str = "(id integer primary key autoincrement, name text not null check (name <> ''), \
    boss integer references parent, at text default 'now')";

#[test]
fn what_hangs_on_a_table_stays() {
    let mut node = family();
    done(&rebuild(&mut node, "parent", DEFINITION, "id, name, boss", "id, upper(name), boss"));
    assert_eq!(node.text("select * from parent"), "1|A||now\n2|B|1|now");
    assert_eq!(node.text("select name from named"), "A\nB");
    let parts = "select type || ' ' || name from sqlite_schema where tbl_name = 'parent' order by 1";
    assert_eq!(node.text(parts), "index by_name\ntable parent\ntrigger noted");
    assert_eq!(node.rows("insert into parent(name) values ('c')").last_insert_rowid, 10, "no number comes twice");
    assert_eq!(node.text("select what from log"), "a\nb\ngone\nc", "the copied rows are no new ones");
    assert_eq!(node.error("insert into parent(name) values ('')").0, ErrorKind::Check);
    assert_eq!(node.error("insert into parent(name, boss) values ('x', 77)").0, ErrorKind::ForeignKey);
    assert_eq!(node.error("insert into child values (4, 77)").0, ErrorKind::ForeignKey);
    assert_eq!(node.error("delete from parent where id = 1").0, ErrorKind::ForeignKey, "2 refers to it");
    node.rows("delete from parent where id = 2");
    assert_eq!(node.text("select id from child"), "1\n3");
    assert_eq!(node.text("pragma integrity_check"), "ok");
    assert_eq!(node.text("select changes(), last_insert_rowid()"), "0|0");
}

/// Equal histories, wherever somebody has started again or rehearsed something meanwhile.
#[test]
fn all_replicas_make_the_same_table() {
    let (mut node, mut pages) = (family(), Vec::new());
    let mut other = node.restarted();
    let statement = Statement::rebuild("parent", DEFINITION, "id, name, boss", "id, name, boss");
    let batch = Batch { statements: vec![statement.clone()], ..Batch::default() };
    let rehearsal = Rehearsal::alone(Dated { time: 0, batch: batch.clone() });
    let before = other.root();
    other.requests = 100;
    done(&other.run(&Request::Rehearse(rehearsal)));
    assert_eq!(other.root(), before);
    other.requests = node.requests;
    for node in [&mut node, &mut other] {
        done(&node.run(&Request::Run(batch.clone())));
        node.rows("insert into parent(name) values ('c')");
        node.rows("analyze");
        pages.push(node.root());
    }
    assert_eq!(pages[0], pages[1]);
    let asked = node.sql.read(&Request::one(statement).to_bytes());
    assert!(asked.is_err(), "it is ordered, or nothing");
}

#[test]
fn what_fails_changes_nothing() {
    let mut node = family();
    for (definition, values, wanted) in [
        ("(id integer primary key, name text, boss integer not null)", "id, name, boss", ErrorKind::NotNull),
        ("(id integer primary key, name text check (name > 'a'), boss)", "id, name, boss", ErrorKind::Check),
        ("(id integer primary key, name text unique, boss)", "id, 'same', boss", ErrorKind::Unique),
        ("(id integer primary key, name text, boss references parent)", "id, name, 77", ErrorKind::ForeignKey),
        ("(id integer primary key, name text, boss)", "id + 100, name, boss", ErrorKind::ForeignKey),
        ("(id integer, name text, boss)", "id, name, boss", ErrorKind::Other),
        ("(id integer primary key, name text, boss)", "id, nosuch, boss", ErrorKind::NoSuchColumn),
        ("(id integer primary key, name text, boss)", "id, pg_in_int4(name), boss", ErrorKind::BadText),
        ("(id integer primary key, name text, boss)", "id, pg_raise('23502', 'no'), boss", ErrorKind::NotNull),
        (
            "(id integer primary key, name text, boss)",
            "id, sqlite_compileoption_used('x'), boss",
            ErrorKind::NotAllowed,
        ),
        ("(id integer primary key, boss)", "id, name, boss", ErrorKind::Other),
        ("(id integer primary key, name, boss references bezant_members)", "id, name, 1", ErrorKind::NotAllowed),
        ("(id, name, boss); delete from child", "id, name, boss", ErrorKind::Syntax),
        ("(id, name, boss)", "id, name, boss from parent; delete from child --", ErrorKind::Syntax),
    ] {
        assert_eq!(refused(&mut node, "parent", definition, "id, name, boss", values), wanted, "{definition} {values}");
    }
    for (table, wanted) in [
        ("bezant_members", ErrorKind::NotAllowed),
        ("BEZANT_old", ErrorKind::NotAllowed),
        ("sqlite_sequence", ErrorKind::Other),
        ("named", ErrorKind::Other),
        ("nosuch", ErrorKind::NoSuchTable),
        ("parent\" rename to x --", ErrorKind::NoSuchTable),
    ] {
        assert_eq!(refused(&mut node, table, "(id, name, boss)", "id", "1"), wanted, "{table}");
    }
    let wrong = Statement { parameters: vec![Value::Null], ..Statement::rebuild("", "", "", "") };
    let response = node.run(&Request::one(wrong));
    assert!(matches!(&response, Response::Failed(failure) if failure.error.kind == ErrorKind::Parameters));
    // References are followed again.
    assert_eq!(node.error("insert into child values (4, 77)").0, ErrorKind::ForeignKey);
    assert_eq!(node.error("alter table parent rename to bezant_old").0, ErrorKind::NotAllowed);
    assert_eq!(node.text("select count(*) from parent, child"), "6");
}

/// An index needs a column that is no longer there.
#[test]
fn what_hangs_on_a_table_must_go_with_it() {
    let mut node = family();
    let definition = "(id integer primary key, title text, boss)";
    let kind = refused(&mut node, "parent", definition, "id, title, boss", "id, name, boss");
    assert_eq!(kind, ErrorKind::NoSuchColumn);
    done(&node.batch(&["drop index by_name", "drop trigger noted"]));
    done(&rebuild(&mut node, "parent", definition, "id, title, boss", "id, name, boss"));
    assert_eq!(node.text("select title from parent"), "a\nb");
    assert_eq!(node.text("select count(*) from sqlite_sequence"), "0", "it no longer keeps account");
}

/// Somebody who leaves a failed attempt open keeps nothing of it.
#[test]
fn a_half_made_table_is_never_left_behind() {
    let mut node = family();
    let fails = Statement::rebuild("parent", "(id integer primary key, name unique, boss)", "id, name", "id, 'same'");
    let Response::Failed(failure) = node.run(&Request::one(fails.clone())) else { panic!("it fails") };
    let before = node.text("select sql from sqlite_schema");
    let check = |statement: Statement, digest| Check { statement, digest };
    let checks =
        vec![check(Statement::attempt(), Rows::default().digest()), check(fails.clone(), failure.error.digest())];
    let statements = vec![Statement::new("insert into child values (4, 2)"), Statement::new("delete from log")];
    done(&node.run(&Request::Settle(Dated { time: 0, batch: Batch { checks, statements, schema: 0 } })));
    assert_eq!(node.text("select sql from sqlite_schema"), before);
    assert_eq!(node.text("select count(*) from parent"), "2");
    assert_eq!(node.error("insert into child values (5, 77)").0, ErrorKind::ForeignKey);
    // Undone with its attempt, and done for good in the next.
    let works = Statement::rebuild("parent", DEFINITION, "id, name, boss", "id, name, boss");
    let none = Rows::default().digest();
    let checks = vec![
        check(Statement::attempt(), none),
        check(works.clone(), none),
        check(fails, failure.error.digest()),
        check(Statement::undo(), none),
    ];
    let last = Batch { checks, statements: vec![works], schema: 0 };
    done(&node.run(&Request::Settle(Dated { time: 0, batch: last })));
    assert_ne!(node.text("select sql from sqlite_schema"), before);
    let mut restarted = node.restarted();
    for node in [&mut node, &mut restarted] {
        node.rows("insert into parent(name) values ('c')");
    }
    assert_eq!(node.root(), restarted.root());
}

#[test]
fn a_deferred_reference_that_does_not_hold_yet_is_in_the_way() {
    let mut node = Node::new();
    done(&node.batch(&[
        "create table a(id integer primary key)",
        "create table b(id integer primary key, a integer references a deferrable initially deferred)",
    ]));
    let anew = Statement::rebuild(
        "b",
        "(id integer primary key, a integer references a deferrable initially deferred, c)",
        "id, a",
        "id, a",
    );
    let insert = [Statement::new("insert into b values (1, 7)"), Statement::new("insert into a values (7)")];
    let [late, parent] = insert;
    let batch = |statements: Vec<Statement>| Request::Run(Batch { statements, ..Batch::default() });
    let before = node.root();
    let response = node.run(&batch(vec![late.clone(), anew.clone(), parent.clone()]));
    assert!(matches!(&response, Response::Failed(failure) if failure.error.kind == ErrorKind::ForeignKey));
    assert_eq!(node.root(), before);
    done(&node.run(&batch(vec![late, parent, anew])));
    assert_eq!(node.text("select id, a, c from b"), "1|7|");
}

/// Whatever somebody has written where SQLite keeps account of numbers.
#[test]
fn a_sequence_may_be_anything() {
    let mut node = Node::new();
    done(&node.batch(&["create table t(id integer primary key autoincrement, a)", "insert into t(a) values (1)"]));
    for (seq, next) in [("'x'", 2), ("null", 3), ("x'ff'", 4), ("20.5", 21), ("-7", 22)] {
        node.rows(&format!("update sqlite_sequence set seq = {seq} where name = 't'"));
        done(&rebuild(&mut node, "T", "(id integer primary key autoincrement, a)", "id, a", "id, a"));
        assert_eq!(node.rows("insert into t(a) values (1)").last_insert_rowid, next, "{seq}");
    }
    node.rows("insert into sqlite_sequence values ('t', 90), ('t', 40)");
    done(&rebuild(&mut node, "t", "(id integer primary key autoincrement, a)", "id, a", "id, a"));
    assert_eq!(node.rows("insert into t(a) values (1)").last_insert_rowid, 91);
    node.rows("delete from sqlite_sequence");
    done(&rebuild(&mut node, "t", "(id integer primary key autoincrement, a)", "id, a", "id, a"));
    assert_eq!(node.rows("insert into t(a) values (1)").last_insert_rowid, 92);
}

/// Whoever changes the schema pays for reading all of it again.
#[test]
fn the_schema_is_paid_for() {
    let cost = |node: &mut Node| {
        let before = node.sql.charged();
        done(&rebuild(node, "t", "(a, b)", "a", "a"));
        node.sql.charged() - before
    };
    let (mut small, mut large) = (Node::new(), Node::new());
    small.rows("create table t(a)");
    let padding = "x".repeat(100_000);
    done(&large.batch(&["create table t(a)", &format!("create table p(a default '{padding}')")]));
    let (small, large) = (cost(&mut small), cost(&mut large));
    assert!(large - small > 100_000 * crate::meter::STEP_BYTES, "{small} {large}");
}

#[test]
fn what_may_not_be_deleted_is_a_foreign_keys_error() {
    let mut node = Node::new();
    done(&node.batch(&[
        "create table a(id integer primary key)",
        "create table b(a integer references a on delete restrict on update restrict)",
        "insert into a values (1)",
        "insert into b values (1)",
    ]));
    assert_eq!(node.error("delete from a").0, ErrorKind::ForeignKey);
    assert_eq!(node.error("update a set id = 2").0, ErrorKind::ForeignKey);
}

#[test]
fn tables_without_rowid_are_made_anew_as_well() {
    let mut node = Node::new();
    done(&node.batch(&["create table t(a text primary key, b) without rowid", "insert into t values ('x', 1)"]));
    done(&rebuild(&mut node, "t", "(a text primary key, b text) without rowid", "a, b", "a, cast(b as text)"));
    assert_eq!(node.text("select a, typeof(b) from t"), "x|text");
    assert_eq!(node.error("select rowid from t").0, ErrorKind::NoSuchColumn);
}

#[test]
fn only_who_may_define_tables_makes_them_anew() {
    let mut node = family();
    let operation = Request::one(Statement::rebuild("parent", DEFINITION, "id, name", "id, name")).to_bytes();
    let ask = |node: &mut Node, byte: u8| {
        node.requests += 1;
        let asker = Asker { public_key: PublicKey([byte; 32]), joined: true, ..Asker::default() };
        let agreed = Agreed { asker, ..agreed(node.requests) };
        Response::from_bytes(node.sql.execute(&operation, &agreed)).expect("a response")
    };
    for (byte, role) in [(1_u8, "reader"), (2, "writer")] {
        let hex = format!("{byte:02x}").repeat(32);
        node.rows(&format!("insert into bezant_members values ('{hex}', '{role}', null)"));
    }
    let before = node.root();
    for byte in [1, 3] {
        let response = ask(&mut node, byte);
        assert!(matches!(&response, Response::Failed(failure) if failure.error.kind == ErrorKind::Denied), "{byte}");
    }
    assert_eq!(node.root(), before);
    done(&ask(&mut node, 2));
}

/// It is paid for: what is too much is refused as a whole.
#[test]
fn a_large_table_is_too_much_or_is_made_as_a_whole() {
    let rows = "with recursive n(i) as (select 1 union all select i + 1 from n where i < 20000)
        insert into t select i, i, i from n";
    let mut node = Node::new();
    done(&node.batch(&["create table t(a integer primary key, b, c)", "create index i on t(b)", rows]));
    done(&rebuild(&mut node, "t", "(a integer primary key, b unique, c not null)", "a, b, c", "a, b, c"));
    assert_eq!(node.text("select count(*), max(a), count(distinct b) from t"), "20000|20000|20000");
    node.sql = std::mem::take(&mut node.sql).with_limits(Limits { steps: 200_000, ..Limits::default() });
    let kind = refused(&mut node, "t", "(a integer primary key, b, c)", "a, b, c", "a, b, c");
    assert_eq!(kind, ErrorKind::TooSlow);
    node.sql = std::mem::take(&mut node.sql).with_limits(Limits { memory: 300 << 10, ..Limits::default() });
    let long = "a, b, replace(hex(zeroblob(200000)), '0', 'ab')";
    assert_eq!(refused(&mut node, "t", "(a integer primary key, b, c)", "a, b, c", long), ErrorKind::TooLarge);
    node.sql = std::mem::take(&mut node.sql).with_limits(Limits::default());
    assert_eq!(node.error("insert into t values (20001, 7, 7)").0, ErrorKind::Unique);
}
