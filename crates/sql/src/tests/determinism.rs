//! prac-F31 to prac-F36, and what else could make two replicas differ.

use super::*;
use crate::{Check, Dated, Rehearsal};

/// prac-F31: the agreed seed decides, whatever was drawn before; the same at a replica that has just started.
#[test]
fn f31_randomness_is_the_requests_own() {
    let mut node = Node::new();
    node.rows("create table t(a integer primary key, r default (random()), b blob default (randomblob(3)))");
    let mut other = node.restarted();
    // Draws that only one of them makes, from SQLite's own generator as well.
    _ = node.query("select random(), randomblob(2) from (select 1 union select 2)");
    for node in [&mut node, &mut other] {
        node.rows("insert into t(a) values (1), (2)");
    }
    assert_eq!(node.text("select a, r, hex(b) from t"), other.text("select a, r, hex(b) from t"));
    assert_eq!(node.root(), other.root());
    assert_eq!(node.text("select count(distinct r), count(distinct b) from t"), "2|2");
    assert_ne!(node.text("select random()"), node.text("select random()"), "another request, another seed");
}

/// prac-F31, prac-F32: time and randomness in defaults, triggers, views and expressions are the agreed ones.
#[test]
fn f32_agreed_values_govern_everything_that_a_schema_can_hide() {
    let mut node = Node::new();
    node.batch(&[
        "create table t(a integer primary key, at default current_timestamp, d default (date('now')),
            u default (unixepoch('now', 'subsec')), r default (random()))",
        "create table log(at, r)",
        "create trigger g after insert on t begin insert into log values (datetime('now'), hex(randomblob(4))); end",
        "create view v as select strftime('%Y-%m-%d %H:%M', 'now') as now, julianday('now') as j",
    ]);
    let mut other = node.restarted();
    std::thread::sleep(std::time::Duration::from_millis(20));
    for node in [&mut node, &mut other] {
        node.rows("insert into t(a) values (1)");
    }
    assert_eq!(node.root(), other.root());
    assert_eq!(node.text("select at, d, u from t"), "2026-11-22 05:43:08|2026-11-22|1795326188.123");
    assert_eq!(node.text("select at from log"), "2026-11-22 05:43:08");
    other.requests = node.requests;
    assert_eq!(node.text("select * from v"), other.text("select * from v"));
    assert!(node.text("select now from v").starts_with("2026-11-22 05:43"));
}

/// prac-F35: nothing of one request shows in the next.
#[test]
fn f35_requests_leave_nothing_behind() {
    let mut node = Node::new();
    node.rows("create table t(a integer primary key)");
    node.rows("insert into t values (41), (42)");
    assert_eq!(node.text("select last_insert_rowid(), changes()"), "0|0");
    assert_eq!(node.rows("select 1").last_insert_rowid, 0);
    assert_eq!(node.error("select total_changes()").0, ErrorKind::NotAllowed);
    // A failed request leaves nothing either: this rowid survives a ROLLBACK in SQLite.
    let failed = node.batch(&["insert into t values (99)", "insert into t values (99)"]);
    assert!(matches!(failed, Response::Failed(_)));
    assert_eq!(node.text("select last_insert_rowid()"), "0");
}

/// prac-F35: after the largest rowid SQLite would choose at random.
#[test]
fn f35_the_largest_rowid_is_refused() {
    let mut node = Node::new();
    node.rows("create table t(a)");
    let (kind, text) = node.error("insert into t(rowid, a) values (9223372036854775807, 1)");
    assert_eq!(kind, ErrorKind::NotAllowed, "{text}");
    node.rows("insert into t values (1)");
    assert_eq!(node.error("update t set rowid = 9223372036854775807").0, ErrorKind::NotAllowed);
    assert_eq!(node.rows("insert into t values (2)").last_insert_rowid, 2);
}

/// The planner's statistics are rows that anybody can write, and are read when a database is opened.
#[test]
fn f35_statistics_have_no_history() {
    let mut node = Node::new();
    node.batch(&["create table t(a, b, c)", "create index ia on t(a)", "create index ib on t(b)", "create table x(c)"]);
    node.rows(
        "with recursive n(i) as (select 1 union all select i + 1 from n where i < 1000)
            insert into t select i % 7, (1000 - i) % 11, i * 7919 % 1000 from n",
    );
    node.rows("analyze");
    // Samples would tell the planner more.
    node.rows("delete from sqlite_stat4");
    node = node.restarted();
    for (ia, ib) in [("1000 1", "1000 900"), ("1000 900", "1000 1")] {
        node.rows(&format!("update sqlite_stat1 set stat = '{ia}' where idx = 'ia'"));
        node.rows(&format!("update sqlite_stat1 set stat = '{ib}' where idx = 'ib'"));
        let mut other = node.restarted();
        for sql in [
            "explain query plan select c from t where a = 1 and b = 2",
            "insert into x select c from t where a = 1 and b = 2",
        ] {
            assert_eq!(node.text(sql), other.text(sql));
        }
        assert_eq!(node.root(), other.root());
    }
}

/// SQLite draws the sixth equal name at random, and with it what a table is.
#[test]
fn names_are_not_drawn() {
    let mut node = Node::new();
    node.rows("create table a(id integer primary key, x)");
    let same = |count: usize| {
        let columns: Vec<String> = (0..count).map(|n| format!("t{n}.id")).collect();
        let tables: Vec<String> = (0..count).map(|n| format!("a t{n}")).collect();
        format!("select {} from {}", columns.join(", "), tables.join(", "))
    };
    for made in ["create table j as", "create view v as", "create table j as select * from (select 1 as n),"] {
        let tail = if made.ends_with(',') { format!("({})", same(6)) } else { same(6) };
        let (kind, text) = node.error(&format!("{made} {tail}"));
        assert_eq!(kind, ErrorKind::NotAllowed, "{made}: {text}");
    }
    let (kind, text) = node.error(&format!("select * from ({})", same(7)));
    assert_eq!(kind, ErrorKind::NotAllowed, "{text}");
    // Which nobody sees.
    assert_eq!(node.text(&format!("select count(*) from ({})", same(7))), "0");
    assert_eq!(node.rows(&same(7)).columns.len(), 7, "what a statement itself selects keeps its names");
    node.rows(&format!("create table j as {}", same(5)));
    assert_eq!(node.text("select group_concat(name) from pragma_table_info('j')"), "id,id:1,id:2,id:3,id:4");
    // A view that gets more columns when a table does.
    let wide = "create view w as select * from a t0, a t1, a t2, a t3, a t4";
    node.rows(wide);
    node.rows("create table b(y)");
    node.rows("create view u as select * from b t0, b t1, b t2, b t3, b t4, (select 1 as z)");
    assert_eq!(node.error("alter table b rename column y to z").0, ErrorKind::NotAllowed);
    node.rows("create table times(\"at 12:30\", \"at 12:45\", \"at 12:4\")");
}

/// prac-F35: nor in the tables that SQLite writes itself.
#[test]
fn f35_the_largest_rowid_of_sqlites_own_tables_is_refused() {
    let mut node = Node::new();
    node.batch(&["create table s(a integer primary key autoincrement)", "create index i on s(a)", "analyze"]);
    for row in ["sqlite_sequence(rowid, name, seq) values (?1, 'z', 1)", "sqlite_stat1(rowid, tbl) values (?1, 'z')"] {
        let sql = format!("insert into {}", row.replace("?1", "9223372036854775807"));
        assert_eq!(node.error(&sql).0, ErrorKind::NotAllowed, "{sql}");
    }
}

/// prac-F35: how a schema came about does not show, neither in ANALYZE nor in the order of a pragma's rows.
#[test]
fn f35_a_schema_has_no_history() {
    let mut node = Node::new();
    for n in 0..60 {
        node.batch(&[&format!("create table t{n}(a, b)"), &format!("create index i{n} on t{n}(b)")]);
        node.rows(&format!("insert into t{n} values (1, 2), (3, 4)"));
    }
    // SQLite's table of names in memory stays as large as it was.
    for n in (0..60).filter(|n| n % 10 != 3) {
        node.rows(&format!("drop table t{n}"));
    }
    let mut other = node.restarted();
    for node in [&mut node, &mut other] {
        node.rows("analyze");
    }
    assert_eq!(node.root(), other.root());
    for pragma in ["pragma table_list", "pragma index_list(t3)", "pragma foreign_key_check"] {
        assert_eq!(node.text(pragma), other.text(pragma));
    }
}

/// prac-F35: a request that is undone leaves nothing on free pages either, however small the cache.
#[test]
fn f35_free_pages_do_not_tell_what_was_undone() {
    let mut node = Node { sql: Sql::with_cache(40), ..Node::default() };
    let fill = "with recursive n(i) as (select 1 union all select i + 1 from n limit 400)
        insert into t select i, zeroblob(1000) from n";
    node.batch(&["create table t(a integer primary key, b)", fill]);
    node.batch(&["delete from t where a > 3"]);
    let before = node.root();
    let again = fill.replace("select i, zeroblob(1000)", "select i + 10, randomblob(1000)");
    assert!(matches!(node.batch(&[&again, "insert into t values (1, 1)"]), Response::Failed(_)));
    assert_eq!(node.root(), before);
}

/// prac-F35: a statement that was kept prepared has the columns that it has now, as at a replica that never saw it
/// (found by `cargo xtask sql-fuzz`, seed 9186).
#[test]
fn f35_kept_statements_see_a_schema_change_of_their_request() {
    let mut node = Node::new();
    node.batch(&["create table t(a)", "insert into t values (1)"]);
    for _ in 0..3 {
        node.rows("select * from t");
    }
    let mut other = node.restarted();
    let batch = ["alter table t add column b text default 'x'", "select * from t"];
    let answer = node.batch(&batch);
    assert_eq!(other.batch(&batch), answer);
    let Response::Done(results) = answer else { panic!("{answer:?}") };
    assert_eq!(results[1].columns[1].declared.as_deref(), Some("TEXT"));
    assert_eq!(results[1].rows, [[Value::Integer(1), Value::Text("x".into())]]);
}

/// A transaction's next step: what it gives after those before it is what it must give again.
fn step(node: &mut Node, checks: &mut Vec<Check>, statement: Statement) {
    let batch = Batch { checks: checks.clone(), statements: vec![statement.clone()], ..Batch::default() };
    let digest = match node.run(&Request::Rehearse(Rehearsal::alone(Dated { time: 0, batch }))) {
        Response::Done(results) => results[0].digest(),
        Response::Failed(failure) if failure.statement as usize == checks.len() => failure.error.digest(),
        other => panic!("{statement:?}: {other:?}"),
    };
    checks.push(Check { statement, digest });
}

/// prac-F35: what an attempt did and undid is not there, and its traces on free pages are the same however small the
/// cache, and at a replica that has just started.
#[test]
fn f35_attempts_leave_the_same_pages_everywhere() {
    let mut node = Node { sql: Sql::with_cache(40), ..Node::default() };
    let fill = "with recursive n(i) as (select 1 union all select i + 1 from n limit 400)
        insert into t select i, i || zeroblob(1000) from n";
    node.batch(&["create table t(a integer primary key, b unique)", fill, "delete from t where a % 7 > 3"]);
    for round in 0..4 {
        let mut other = node.restarted();
        let mut checks = Vec::new();
        let large = fill.replace("i, i || ", &format!("i + 1000, '{round}-' || i || "));
        let failing = "insert or fail into t select 5000 + a, iif(a < 3, a, (select b from t where a = 1)) from t";
        let kept = ["delete from t where a % 11 = 5", "update t set b = b || zeroblob(a)"][round % 2];
        for statement in [
            Statement::attempt(),
            Statement::new(large),
            Statement::attempt(),
            Statement::new(failing),
            Statement::undo(),
            Statement::new("create table u as select * from t"),
            Statement::new("delete from t where a < 300"),
            Statement::undo(),
            Statement::new(kept),
            Statement::new("select count(*), max(a) from t"),
        ] {
            step(&mut node, &mut checks, statement);
        }
        let settle = Request::Settle(Dated { time: 0, batch: Batch { checks, ..Batch::default() } });
        other.requests = node.requests;
        assert_eq!(node.run(&settle), Response::Done(Vec::new()));
        assert_eq!(other.run(&settle), Response::Done(Vec::new()));
        assert_eq!(other.root(), node.root());
        assert_eq!(node.text("select max(a) < 401 from t"), "1");
        assert_eq!(node.text("pragma integrity_check"), "ok");
    }
    assert_eq!(node.error("select * from u").0, ErrorKind::NoSuchTable);
}

/// prac-F35, prac-A22: each way out of the database, one statement each.
#[test]
fn f35_every_way_out_is_closed() {
    let mut node = Node::new();
    node.rows("create table t(a integer primary key)");
    let refused = [
        "commit",
        "rollback",
        "begin",
        "end",
        "savepoint a",
        "release a",
        "attach 'x.db' as x",
        "attach ':memory:' as x",
        "detach main",
        "pragma journal_mode = wal",
        "pragma writable_schema = on",
        "pragma cache_size = 1",
        "pragma page_size",
        "select * from pragma_cache_size",
        "select * from pragma_database_list",
        "create temp table x(a)",
        "create temporary view x as select 1",
        "create table temp.x(a)",
        "create temp trigger x after insert on t begin select 1; end",
        "create virtual table x using fts5(a)",
        "create virtual table x using dbstat",
        "select load_extension('x')",
        "select readfile('/etc/passwd')",
        "select writefile('x', 'y')",
        "select sqlite_compileoption_get(1)",
        "select sin(1)",
        "select sqlite_log(1, 'x')",
        "vacuum",
        "vacuum into 'x.db'",
        "explain select 1",
        "select * from dbstat",
        "select * from sqlite_dbpage",
        "insert into sqlite_master values ('table', 'x', 'x', 2, 'create table x(a)')",
        "update sqlite_master set sql = 'x'",
    ];
    for sql in refused {
        let (kind, text) = node.error(sql);
        if let "commit" | "rollback" | "begin" | "end" | "savepoint a" | "release a" = sql {
            assert_eq!(kind, ErrorKind::NotAllowed, "{sql}: {text}");
        }
        let expected = [ErrorKind::NotAllowed, ErrorKind::NoSuchFunction, ErrorKind::NoSuchTable, ErrorKind::Other];
        assert!(expected.contains(&kind), "{sql}: {kind:?} {text}");
        assert!(!text.is_empty());
    }
    assert_eq!(node.text("select datetime('2026-01-01', 'localtime')"), "", "no local time");
    assert!(!node.text("explain query plan select * from t").is_empty());
    assert!(node.text("pragma table_info(t)").contains("INTEGER"));
    assert!(node.text("select name from pragma_table_info('t')").contains('a'));
}

/// prac-F34: after a state transfer nothing of the old connection's cache is left, even with an equal change counter.
#[test]
fn f34_pages_are_loaded_behind_no_open_connection() {
    let mut node = Node::new();
    node.rows("create table t(a)");
    node.save();
    let mut other = node.restarted();
    node.rows("insert into t values ('agreed')");
    other.rows("insert into t values ('old')");
    assert_eq!(other.text("select a from t"), "old");
    node.save();
    other.save();
    let changed = node.pages.iter().filter(|(number, page)| other.pages.get(number) != Some(page));
    let changed: Vec<_> = changed.map(|(number, page)| (*number, Some(page.clone()))).collect();
    other.sql.load(&mut changed.into_iter()).unwrap();
    other.pages = node.pages.clone();
    assert_eq!(other.text("select a from t"), "agreed");
    for node in [&mut node, &mut other] {
        node.requests = 100;
        node.rows("insert into t values ('next')");
    }
    assert_eq!(node.root(), other.root());
}

/// The budget is the same however often a statement was executed before, and on a replica that has just started.
#[test]
fn budgets_do_not_depend_on_what_came_before() {
    let mut node = Node::new();
    let sql = "with recursive n(i) as (select 1 union all select i + 1 from n where i < ?1) select count(*) from n";
    let mut outcome = |limit: i64| {
        let request = Request::one(Statement::with(sql, [Value::Integer(limit)]));
        matches!(node.run(&request), Response::Done(_))
    };
    let (mut low, mut high) = (0, 10_000_000);
    while high - low > 1 {
        let middle = i64::midpoint(low, high);
        *if outcome(middle) { &mut low } else { &mut high } = middle;
    }
    for limit in [low - 300, low - 1, low, high, high + 300] {
        let request = Request::one(Statement::with(sql, [Value::Integer(limit)]));
        let first = matches!(Node::new().run(&request), Response::Done(_));
        let mut used = Node::new();
        for n in 0..3 {
            used.run(&Request::one(Statement::with(sql, [Value::Integer(n * 377 + 5)])));
        }
        assert_eq!(first, matches!(used.run(&request), Response::Done(_)), "{limit}");
    }
}

/// Replicas that answer alike and write otherwise say so, whenever they started, and however a state came to them.
#[test]
fn what_is_written_is_told() {
    let mut node = Node::new();
    node.rows("create table t(a integer primary key, b)");
    node.rows("insert into t values (1, 'x'), (2, 'y')");
    node.sql.take_written();
    let mut other = node.restarted();
    let same = |one: &mut Node, other: &mut Node, sql: &str| {
        let answers = [one.batch(&[sql]), other.batch(&[sql])];
        assert_eq!(answers[0], answers[1], "{sql}");
        let written = [one.sql.take_written(), other.sql.take_written()];
        assert_eq!(written.map(|digest| digest == Digest::ZERO), [sql.starts_with("select"); 2], "{sql}");
        written[0] == written[1]
    };
    for sql in ["update t set b = 'z' where a = 1", "select * from t", "insert into t values (3, 'w')", "delete from t"]
    {
        assert!(same(&mut node, &mut other, sql), "{sql}");
    }
    node.rows("insert into t values (7, 'seven')");
    other.rows("insert into t values (7, 'other')");
    node.sql.take_written();
    other.sql.take_written();
    assert!(!same(&mut node, &mut other, "update t set b = b || '!'"), "the answers are alike, the rows are not");
}
