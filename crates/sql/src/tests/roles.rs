//! Readers, writers, administrators.

use super::*;
use bezant_core::ids::PublicKey;
use bezant_core::service::Asker;

fn key(byte: u8) -> PublicKey {
    PublicKey([byte; 32])
}

fn hex(byte: u8) -> String {
    format!("{byte:02x}").repeat(32)
}

/// What somebody's statement gives.
fn ask(node: &mut Node, who: PublicKey, joined: bool, sql: &str) -> Result<Vec<Rows>, ErrorKind> {
    node.requests += 1;
    let asker = Asker { public_key: who, joined, ..Asker::default() };
    let agreed = Agreed { asker, ..agreed(node.requests) };
    let operation = Request::one(Statement::new(sql)).to_bytes();
    match Response::from_bytes(node.sql.execute(&operation, &agreed)).expect("a response") {
        Response::Done(results) => Ok(results),
        Response::Failed(failure) => Err(failure.error.kind),
        other => panic!("{other:?}"),
    }
}

#[test]
fn roles_are_kept() {
    let mut node = Node::new();
    node.rows("create table t(a)");
    let statements =
        ["select * from t", "insert into t values (1)", "create table u1(a)", "delete from bezant_members"];
    let may = |node: &mut Node, byte: u8, joined: bool| {
        let allowed = statements.map(|sql| ask(node, key(byte), joined, sql));
        node.rows("drop table if exists u1");
        allowed.map(|outcome| outcome.map(|_| ()).map_err(|kind| assert_eq!(kind, ErrorKind::Denied)).is_ok())
    };
    assert_eq!(may(&mut node, 9, false), [true; 4], "named in the cluster file, and nothing else is said");
    for (byte, role) in [(1, "reader"), (2, "writer"), (3, "admin")] {
        node.rows(&format!("insert into bezant_members values ('{}', '{role}', null)", hex(byte)));
    }
    assert_eq!(may(&mut node, 1, true), [true, false, false, false]);
    assert_eq!(may(&mut node, 1, false), [true, false, false, false]);
    assert_eq!(may(&mut node, 2, true), [true, true, true, false]);
    assert_eq!(may(&mut node, 4, true), [false; 4], "nobody knows it");
    assert_eq!(may(&mut node.restarted(), 2, true), [true, true, true, false]);
    assert_eq!(may(&mut node, 3, true), [true; 4]);
    assert_eq!(may(&mut node, 2, true), [false; 4], "its row is gone");
}

/// A read is answered by whoever is asked, without an order: the role is asked for there as well.
#[test]
fn who_has_no_role_reads_nothing() {
    let mut node = Node::new();
    let may_read = |node: &Node, byte: u8, joined: bool| {
        let asker = Asker { public_key: key(byte), joined, ..Asker::default() };
        let answer = node.sql.query(&Request::one(Statement::new("select 1")).to_bytes(), &asker).expect("it reads");
        match Response::from_bytes(answer).expect("a response") {
            Response::Done(_) => true,
            Response::Failed(failure) => {
                assert_eq!(failure.error.kind, ErrorKind::Denied);
                false
            }
            other => panic!("{other:?}"),
        }
    };
    node.rows(&format!("insert into bezant_members values ('{}', 'reader', null)", hex(1)));
    assert!(may_read(&node, 1, true) && !may_read(&node, 2, true) && may_read(&node, 2, false));
    node.rows("delete from bezant_members");
    assert!(!may_read(&node, 1, true), "its row is gone");
}

#[test]
fn who_has_a_role_may_join() {
    let mut node = Node::new();
    let may_join = |node: &mut Node, byte| {
        node.requests += 1;
        let asker = Asker { public_key: key(byte), ..Asker::default() };
        let agreed = Agreed { asker, ..agreed(node.requests) };
        node.sql.authorize(b"", &agreed)
    };
    assert!(!may_join(&mut node, 1));
    node.rows(&format!("insert into bezant_members values ('{}', 'reader', 'r')", hex(1)));
    assert!(may_join(&mut node, 1) && !may_join(&mut node, 2));
    node.rows("insert into bezant_members values ('*', 'reader', 'everybody')");
    assert!(may_join(&mut node, 2));
    assert_eq!(node.error("insert into bezant_members values ('short', 'reader', null)").0, ErrorKind::Check);
    assert_eq!(node.error("insert into bezant_members values ('*', 'king', null)").0, ErrorKind::Check);
}

/// A trigger that somebody else made does not lend its maker's role.
#[test]
fn roles_hold_behind_triggers() {
    let mut node = Node::new();
    node.rows(&format!("insert into bezant_members values ('{}', 'writer', null)", hex(2)));
    node.rows("create table t(a)");
    assert!(ask(&mut node, key(2), true, "insert into t values (1)").is_ok());
    assert!(ask(&mut node, key(2), true, "insert into t values (1)").is_ok(), "now it is kept prepared");
    node.rows("create trigger g after insert on t begin update bezant_members set role = 'admin'; end");
    assert_eq!(ask(&mut node, key(2), true, "insert into t values (1)"), Err(ErrorKind::NotAllowed));
}

/// Whoever writes a table may give it a trigger. When an administrator writes that table, it acts for no administrator:
/// nothing behind a statement writes the system's rows.
#[test]
fn a_writers_trigger_makes_nobody_an_administrator() {
    let mut node = Node::new();
    node.rows(&format!("insert into bezant_members values ('{}', 'writer', null)", hex(2)));
    node.rows("create table t(a)");
    node.rows("create view v as select a from t");
    let seize = format!("update bezant_members set role = 'admin' where public_key = '{}'", hex(2));
    for (when, target, act) in [
        ("after", "t", seize.as_str()),
        ("instead of", "v", &seize),
        ("after", "t", "delete from bezant_members where role = 'writer'"),
        ("before", "t", "insert into bezant_members values ('*', 'admin', 'x')"),
    ] {
        let trigger = format!("create trigger g {when} insert on {target} begin {act}; end");
        assert!(ask(&mut node, key(2), true, &trigger).is_ok(), "{trigger}");
        let (kind, text) = node.error(&format!("insert into {target} values (1)"));
        assert_eq!(kind, ErrorKind::NotAllowed, "{trigger}");
        assert!(text.starts_with("trigger g may not write"), "{text}");
        node.rows("drop trigger g");
    }
    assert_eq!(ask(&mut node, key(2), true, &seize), Err(ErrorKind::Denied));
    assert!(ask(&mut node, key(9), false, &seize).is_ok(), "an administrator's own statement");
}

/// What is said of a key is found: else who is named in the cluster file would stay an administrator.
#[test]
fn a_key_has_one_form() {
    let mut node = Node::new();
    for key in [hex(0xab).to_uppercase(), hex(0xab).replace('a', "g"), format!("{} ", &hex(0xab)[1..])] {
        let sql = format!("insert into bezant_members values ('{key}', 'reader', null)");
        assert_eq!(node.error(&sql).0, ErrorKind::Check, "{key}");
    }
}

/// Without the table of members as it was made, no replica would know whose request to execute: not even an
/// administrator may change more of it than its rows.
#[test]
fn nobody_changes_what_the_tables_of_the_system_are_like() {
    let mut node = Node::new();
    node.rows("create table own(a)");
    for sql in [
        "drop table bezant_members",
        "alter table bezant_members rename to mine",
        "alter table BEZANT_members rename column role to r",
        "create index i on bezant_members(name)",
        "create trigger t after insert on bezant_members begin select 1; end",
        "create table bezant_more(a)",
        "alter table own rename to bezant_own",
        "alter table own rename to BEZANT_members2",
        "create table child(k text references bezant_members)",
        "create table child(k text references Bezant_Members(public_key) on delete cascade)",
        "alter table own add column k text references bezant_members",
        "create table child(k, foreign key (k) references bezant_later(k))",
        "create index bezant_i on own(a)",
    ] {
        assert_eq!(node.error(sql).0, ErrorKind::NotAllowed, "{sql}");
    }
    node.rows("create table child(k text references own(a))");
    node.rows("drop table child");
    node.rows("alter table own rename to not_bezant_own");
    node.rows("analyze");
    node.rows("insert into bezant_members values ('*', 'reader', null)");
}
