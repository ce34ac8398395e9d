//! What statements give, and how they fail.

use super::*;
use crate::{AGE_MAX, ATTEMPTS_MAX, Check, Dated, Limits, Rehearsal};
use proptest::prelude::*;

#[test]
fn rows_go_in_and_come_out() {
    let mut node = Node::new();
    node.rows("create table t(a integer primary key, b text, c real, d blob)");
    let insert = Statement::with(
        "insert into t values (?1, ?2, ?3, ?4)",
        [Value::Integer(7), Value::Text("x".into()), Value::Real(0.5), Value::Blob(Bytes::from_static(b"\0\xff"))],
    );
    let Response::Done(results) = node.run(&Request::one(insert.clone())) else { panic!("inserted") };
    assert_eq!((results[0].changes, results[0].last_insert_rowid), (1, 7));
    let rows = node.rows("select * from t");
    assert_eq!(rows.rows, [insert.parameters]);
    let names: Vec<_> = rows.columns.iter().map(|column| (column.name.as_str(), column.declared.as_deref())).collect();
    assert_eq!(names, [("a", Some("INTEGER")), ("b", Some("TEXT")), ("c", Some("REAL")), ("d", Some("BLOB"))]);
    assert_eq!(
        node.query("select count(*) from t").unwrap(),
        Response::Done(vec![node.rows("select count(*) from t")])
    );
}

#[test]
fn an_error_says_where_it_is() {
    let mut node = Node::new();
    for (sql, position) in [("select 1 frm t", Some(13)), ("select nothing", Some(7)), ("select * from t", None)] {
        let Response::Failed(failure) = node.batch(&[sql]) else { panic!("{sql}") };
        assert_eq!(failure.error.position, position, "{sql}: {}", failure.error);
    }
}

#[test]
fn a_batch_takes_effect_as_a_whole() {
    let mut node = Node::new();
    node.rows("create table t(a integer primary key)");
    let before = node.root();
    let response = node.batch(&["insert into t values (1)", "insert into t values (2)", "insert into t values (1)"]);
    let Response::Failed(failure) = response else { panic!("{response:?}") };
    assert_eq!((failure.statement, failure.error.kind), (2, ErrorKind::Unique));
    assert_eq!(node.root(), before);
    let response = node.batch(&["insert into t values (1), (2)", "select changes(), last_insert_rowid()"]);
    let Response::Done(results) = response else { panic!("{response:?}") };
    assert_eq!(results[1].rows, [[Value::Integer(2), Value::Integer(2)]]);
}

#[test]
fn a_transaction_that_read_something_else_conflicts() {
    let mut node = Node::new();
    node.batch(&["create table t(a integer primary key, b)", "insert into t values (1, 10)"]);
    let read = Statement::new("select b from t where a = 1");
    let digest = node.rows(&read.sql).digest();
    let add = |node: &mut Node| {
        node.run(&Request::Run(Batch {
            checks: vec![Check { statement: read.clone(), digest }],
            statements: vec![Statement::new("update t set b = 11 where a = 1")],
            ..Batch::default()
        }))
    };
    assert!(matches!(add(&mut node), Response::Done(_)));
    assert_eq!(add(&mut node), Response::Conflict(0));
    assert_eq!(node.text("select b from t"), "11");
}

#[test]
fn deferred_constraints_fail_at_the_end() {
    let mut node = Node::new();
    node.batch(&[
        "create table p(a integer primary key)",
        "create table c(a references p deferrable initially deferred)",
    ]);
    assert_eq!(node.error("insert into c values (9)").0, ErrorKind::ForeignKey);
    assert!(matches!(node.batch(&["insert into c values (9)", "insert into p values (9)"]), Response::Done(_)));
}

#[test]
fn errors_have_kinds_and_change_nothing() {
    let mut node = Node::new();
    node.batch(&[
        "create table t(a integer primary key, b text not null, c check (c > 0), unique (b))",
        "insert into t values (1, 'x', 1)",
        "create trigger r before delete on t begin select raise(abort, 'no deletion'); end",
    ]);
    let cases = [
        ("selec 1", ErrorKind::Syntax),
        ("select '", ErrorKind::Syntax),
        ("insert into t values (", ErrorKind::Syntax),
        ("select 1; select 2", ErrorKind::Syntax),
        ("select * from nowhere", ErrorKind::NoSuchTable),
        ("select x from t", ErrorKind::NoSuchColumn),
        ("select f()", ErrorKind::NoSuchFunction),
        ("create table t(a)", ErrorKind::AlreadyExists),
        ("insert into t values (1, 'y', 1)", ErrorKind::Unique),
        ("insert into t values (2, 'x', 1)", ErrorKind::Unique),
        ("insert into t values (2, null, 1)", ErrorKind::NotNull),
        ("insert into t values (2, 'y', 0)", ErrorKind::Check),
        ("insert into t values ('two', 'y', 1)", ErrorKind::Mismatch),
        ("delete from t", ErrorKind::Raised),
        ("select zeroblob(2000000)", ErrorKind::TooLarge),
        ("select ?1", ErrorKind::Parameters),
        ("select cast(x'ff' as text)", ErrorKind::Mismatch),
        ("with recursive n(i) as (select 1 union all select i + 1 from n) select count(*) from n", ErrorKind::TooSlow),
        (
            "with recursive n(i) as (select 1 union all select i + 1 from n limit 9) select zeroblob(500000) from n",
            ErrorKind::TooLarge,
        ),
    ];
    for (sql, kind) in cases {
        assert_eq!(node.error(sql).0, kind, "{sql}: {}", node.error(sql).1);
    }
}

#[test]
fn sorts_that_need_too_much_room_are_refused() {
    let sql = Sql::new().with_limits(Limits { steps: 100_000_000, ..Limits::default() });
    let mut node = Node { sql, ..Node::default() };
    let sql = "with recursive n(i) as (select 1 union all select i + 1 from n limit 400)
        select count(b) from (select i, zeroblob(900000) as b from n order by -i)";
    let (kind, text) = node.error(sql);
    assert_eq!(kind, ErrorKind::Full, "{text}");
}

#[test]
fn what_is_no_request_is_answered() {
    let mut node = Node::new();
    assert_eq!(node.sql.execute(b"\x09", &agreed(1)), Response::Malformed.to_bytes());
    assert_eq!(node.sql.read(b""), Ok(Response::Malformed.to_bytes().into()));
}

#[test]
fn queries_only_read() {
    let mut node = Node::new();
    node.rows("create table t(a integer primary key, at default current_timestamp)");
    for sql in ["insert into t values (1, 2)", "select random()", "select date('now')", "select current_timestamp"] {
        assert_eq!(node.query(sql), Err(NotReadOnly), "{sql}");
    }
    assert!(matches!(node.query("select date('2026-11-22', '+1 day')"), Ok(Response::Done(_))));
    assert!(matches!(node.query("select no"), Ok(Response::Failed(_))));
}

#[test]
fn what_is_ordered_as_a_query_only_reads_as_well() {
    let mut node = Node::new();
    node.rows("create table t(a integer primary key)");
    let before = node.root();
    let mut ordered = |sql: &str| {
        let answer = node.sql.ordered_query(&Request::one(Statement::new(sql)).to_bytes(), &agreed(1));
        answer.map(|bytes| Response::from_bytes(bytes).expect("a response"))
    };
    for sql in ["insert into t values (1)", "drop table t", "select random()", "select current_timestamp"] {
        assert_eq!(ordered(sql), Err(NotReadOnly), "{sql}");
    }
    assert!(matches!(ordered("select count(*) from t"), Ok(Response::Done(_))));
    assert!(matches!(ordered("select no"), Ok(Response::Failed(_))));
    let settled = Request::Settle(Dated::default());
    assert_eq!(node.sql.ordered_query(&settled.to_bytes(), &agreed(1)), Err(NotReadOnly));
    assert_eq!(node.root(), before);
}

/// A query that comes near a bound is left to the order, which must judge it, and alike however much was asked before.
#[test]
fn what_comes_near_a_bound_is_judged_where_it_is_ordered() {
    let sql = "with recursive n(i) as (select 1 union all select i + 1 from n limit 400)
        select count(b) from (select i, zeroblob(900000) as b from n order by -i)";
    let (mut node, mut busy) = (Node::new(), Node::new());
    assert_eq!(node.query(sql), Err(NotReadOnly));
    for _ in 0..3 {
        let _ = busy.query(sql);
    }
    let operation = Request::one(Statement::new(sql)).to_bytes();
    let answers = [&mut node, &mut busy].map(|node| node.sql.ordered_query(&operation, &agreed(1)));
    assert_eq!(answers[0], answers[1]);
    let answer = Response::from_bytes(answers[0].clone().expect("it only reads")).expect("a response");
    assert!(matches!(answer, Response::Failed(_)), "{answer:?}");
}

#[test]
fn functions_are_known_however_they_are_written() {
    let mut node = Node::new();
    node.rows("CREATE TABLE t(a INTEGER PRIMARY KEY, at DEFAULT CURRENT_TIMESTAMP, d DEFAULT (DATE('now')))");
    node.rows("INSERT INTO t(a) VALUES (1)");
    assert_eq!(node.text("SELECT COUNT(*), MAX(LENGTH(at)), CURRENT_DATE = d FROM t"), "1|19|1");
}

#[test]
fn statements_are_described() {
    let mut node = Node::new();
    node.rows("create table t(a integer primary key, b text)");
    let response = node.run(&Request::Describe("select b, a + ?1 from t where b = ?2".into()));
    let Response::Described(description) = response else { panic!("{response:?}") };
    assert_eq!((description.parameters, description.read_only), (2, true));
    assert_eq!(description.columns[0].declared.as_deref(), Some("TEXT"));
    assert_eq!(description.columns[1].declared, None);
}

/// A transaction statement by statement: true results, nothing changed, and in the end all of it or a conflict.
#[test]
fn rehearsals_show_what_a_batch_would_do() {
    let mut node = Node::new();
    node.rows("create table t(a integer primary key, b text, at default current_timestamp)");
    node.rows("create table u(c)");
    let before = node.root();
    let mut checks = Vec::new();
    for (sql, wanted) in [
        ("insert into t(b, at) values ('x', 1) returning a", "1"),
        ("select count(*) from t", "1"),
        ("insert into u select b from t", ""),
        ("select c from u", "x"),
    ] {
        let batch = Batch { checks: checks.clone(), statements: vec![Statement::new(sql)], ..Batch::default() };
        let request = Request::Rehearse(Rehearsal::alone(Dated { time: 0, batch }));
        let query = node.sql.read(&request.to_bytes()).expect("no time, no randomness");
        let response = node.run(&request);
        assert_eq!(query, Bytes::from(response.to_bytes()));
        let Response::Done(results) = response else { panic!("{response:?}") };
        let shown: Vec<String> = results[0].rows.iter().flatten().map(ToString::to_string).collect();
        assert_eq!(shown.concat(), wanted, "{sql}");
        checks.push(Check { statement: Statement::new(sql), digest: results[0].digest() });
    }
    assert_eq!(node.root(), before);
    let all = Request::Settle(Dated { time: 0, batch: Batch { checks, ..Batch::default() } });
    let mut late = node.restarted();
    late.rows("insert into t(b) values ('somebody else')");
    assert_eq!(late.run(&all), Response::Conflict(0));
    assert_eq!(node.run(&all), Response::Done(Vec::new()));
    assert_eq!(node.text("select a, b from t, u"), "1|x");
}

/// What was written for one schema is not executed under another, whatever it is and however it comes.
#[test]
fn a_batch_for_another_schema_is_refused_whole() {
    let mut node = Node::new();
    let version = |node: &mut Node| match node.rows("select schema_version from pragma_schema_version").rows[0][0] {
        Value::Integer(version) => version as u32,
        ref other => panic!("{other:?}"),
    };
    node.rows("create table t(a integer)");
    let first = version(&mut node);
    let batch =
        |schema| Batch { statements: vec![Statement::new("insert into t values (1)")], schema, ..Batch::default() };
    let read =
        |schema| Request::Run(Batch { statements: vec![Statement::new("select 1")], schema, ..Batch::default() });
    assert!(matches!(node.run(&Request::Run(batch(first))), Response::Done(_)));
    node.rows("alter table t add column b");
    assert_ne!(version(&mut node), first);
    let before = node.root();
    for request in [
        Request::Run(batch(first)),
        Request::Rehearse(Rehearsal::alone(Dated { time: 0, batch: batch(first) })),
        Request::Settle(Dated { time: 0, batch: batch(first) }),
        read(first),
    ] {
        assert_eq!(node.run(&request), Response::Stale);
    }
    assert_eq!(node.sql.read(&read(first).to_bytes()), Ok(Response::Stale.to_bytes().into()));
    assert_eq!(node.root(), before);
    // Others have the same, whatever they executed before.
    let now = version(&mut node);
    assert!(matches!(node.restarted().run(&read(now)), Response::Done(_)));
    assert_eq!(node.error("pragma schema_version = 7").0, ErrorKind::NotAllowed);
}

/// What was tried and undone must give again what it gave, errors included; and whoever has no transaction can undo
/// nothing.
#[test]
fn attempts_are_checked_and_undone() {
    let mut node = Node::new();
    node.batch(&["create table t(a integer primary key)", "insert into t values (1)"]);
    let failed = |response| match response {
        Response::Failed(failure) => failure.error,
        other => panic!("{other:?}"),
    };
    let twice = "insert into t values (1)";
    let mark = |statement| Check { statement, digest: Rows::default().digest() };
    let error = failed(node.batch(&[twice])).digest();
    let mut checks = vec![
        mark(Statement::attempt()),
        Check { statement: Statement::new(twice), digest: error },
        mark(Statement::undo()),
    ];
    let settle = |checks: &[Check]| {
        let batch = Batch {
            checks: checks.to_vec(),
            statements: vec![Statement::new("insert into t values (2)")],
            ..Batch::default()
        };
        Request::Settle(Dated { time: 0, batch })
    };
    assert!(matches!(node.run(&settle(&checks)), Response::Done(_)));
    node.rows("delete from t");
    assert_eq!(node.run(&settle(&checks)), Response::Conflict(1));
    // An error that nothing undoes is one, expected or not.
    node.rows("insert into t values (1)");
    assert_eq!(failed(node.run(&settle(&checks[1..2]))).kind, ErrorKind::Unique);
    assert_eq!(failed(node.run(&settle(&[mark(Statement::undo())]))).kind, ErrorKind::NotAllowed);
    let deep = vec![mark(Statement::attempt()); ATTEMPTS_MAX + 1];
    assert_eq!(node.run(&settle(&deep)), Response::Conflict(ATTEMPTS_MAX as u32));
    // These end the transaction, so that nothing could be undone.
    checks[1].statement = Statement::new("insert or rollback into t values (1)");
    assert_eq!(failed(node.run(&settle(&checks))).kind, ErrorKind::Unique);
    let batch = Batch { checks, ..Batch::default() };
    let query = node.sql.read(&Request::Run(batch).to_bytes()).expect("it does nothing");
    assert_eq!(failed(Response::from_bytes(query).unwrap()).kind, ErrorKind::NotAllowed);
    assert_eq!(node.text("select group_concat(a) from t"), "1");
}

#[test]
fn rehearsals_leave_no_page_behind() {
    let mut node = Node::new();
    node.rows("create table t(a integer primary key, b, at default current_timestamp)");
    let before = node.root();
    // More than the cache holds, so that pages are written before all is undone.
    let large = "with recursive n(i) as (select 1 union all select i + 1 from n limit 20)
        insert into t(b, at) select zeroblob(900000), i from n";
    let dated =
        |time, sql: &str| Dated { time, batch: Batch { statements: vec![Statement::new(sql)], ..Batch::default() } };
    let rehearse = |sql: &str| Request::Rehearse(Rehearsal::alone(dated(0, sql)));
    assert!(node.sql.read(&rehearse(large).to_bytes()).is_ok());
    node.sql.save(&mut |number, _| panic!("a query wrote page {number}"));
    assert!(matches!(node.run(&rehearse(large)), Response::Done(_)));
    node.sql.save(&mut |number, _| panic!("what was undone left page {number}"));
    assert_eq!(node.root(), before);
    // What depends on the moment must be ordered, as everywhere.
    assert_eq!(node.sql.read(&rehearse("insert into t(a) values (1)").to_bytes()), Err(NotReadOnly));
    assert!(matches!(node.run(&rehearse("insert into t(a) values (1)")), Response::Done(_)));
    assert!(matches!(node.run(&rehearse("insert into no values (1)")), Response::Failed(_)));
    // So must what changes the schema.
    assert_eq!(node.sql.read(&rehearse("create table u(c)").to_bytes()), Err(NotReadOnly));
    assert!(matches!(node.run(&rehearse("create table u(c)")), Response::Done(_)));
    // A time that the request brings along does not depend on the moment, randomness does.
    let insert = "insert into t(a) values (1) returning at";
    let dated_rehearsal = |sql| Request::Rehearse(Rehearsal::alone(dated(TIME, sql))).to_bytes();
    let query = node.sql.read(&dated_rehearsal(insert)).expect("it has its time");
    assert!(matches!(node.sql.read(&dated_rehearsal("select random()")), Err(NotReadOnly)));
    assert_eq!(node.root(), before);
    let Response::Done(mut results) = node.run(&Request::Settle(dated(TIME, insert))) else { panic!("it is settled") };
    // The only thing that a rehearsal leaves out.
    assert_eq!(std::mem::take(&mut results[0].last_insert_rowid), 1);
    assert_eq!(Bytes::from(Response::Done(results).to_bytes()), query);
    assert_eq!(node.text("select at from t"), "2026-11-22 05:43:06");
    for time in [TIME - AGE_MAX, TIME + AGE_MAX] {
        let late = node.run(&Request::Settle(dated(time, "delete from t")));
        assert!(matches!(late, Response::Failed(failure) if failure.error.kind == ErrorKind::TooSlow));
    }
}

/// Whatever functions of PostgreSQL's types are given, they answer or refuse.
#[test]
fn functions_of_types_take_anything() {
    let values = [
        "null",
        "0",
        "-1",
        "64",
        "9223372036854775807",
        "(-9223372036854775807 - 1)",
        "0.1",
        "-1e308",
        "9e999",
        "-9e999",
        "''",
        "' '",
        "'-'",
        "'.'",
        "'1'",
        "'-0'",
        "'1e'",
        "'00'",
        "'-9223372036854775808 us -1 us ago'",
        "'P'",
        "'PT1'",
        "'P-1\u{e4}Y'",
        "'1-'",
        "'2024-02-29'",
        "'0000-00-00'",
        "'9999-12-31 24:00:00'",
        "'9999-12-31 23:59:59.999999+00'",
        "'23:59:60'",
        "'2147483647 -2147483648 -9223372036854775808'",
        "'-2147483648 2147483647 9223372036854775807'",
        "'+15:59'",
        "'\u{e4}\u{1f600}'",
        "'%\u{e4}_\\'",
        "'{\"\\u00e4\u{e4}\":['",
        "'\"\\ud800\\'",
        "'month'",
        "'julian'",
        "'utc'",
        "x''",
        "x'ff00'",
        "x'c3'",
        "cast(x'c3' as text)",
        "cast(x'00' as text)",
    ];
    let mut node = Node::new();
    for (name, arity) in crate::functions::names() {
        for first in values {
            let calls: Vec<String> = match arity {
                1 => vec![format!("{name}({first})")],
                2 => values.iter().map(|second| format!("{name}({first}, {second})")).collect(),
                _ => values.iter().map(|second| format!("{name}({first}, {second}, {first})")).collect(),
            };
            for call in calls {
                if let Response::Failed(failure) = node.batch(&[&format!("select {call}")]) {
                    let message = &failure.error.message;
                    assert!(!message.contains("panic"), "{call}: {message}");
                }
            }
        }
    }
}

/// Every function of PostgreSQL's types that there is may be called.
#[test]
fn functions_of_types_are_allowed() {
    let mut node = Node::new();
    let names = node.rows("select distinct name from pragma_function_list where name like 'pg!_%' escape '!'");
    assert!(names.rows.len() > 100, "{}", names.rows.len());
    for row in &names.rows {
        let [Value::Text(name)] = &row[..] else { panic!("{row:?}") };
        assert!(crate::functions::is_function(name), "{name}");
    }
}

/// The collation of exact decimals is an order of all texts, and equal numbers are one to an index.
#[test]
fn exact_decimals_are_ordered_by_value() {
    let mut node = Node::new();
    node.rows("create table t(n numeric_text collate pg_numeric unique)");
    node.rows(
        "insert into t values ('10'), ('-1.5'), ('9.99'), ('0'), ('-20'), ('x'), ('0.001'), ('-0'), ('100'), ('')",
    );
    let ordered = "select group_concat(n, ' ') from (select n from t order by n)";
    assert_eq!(node.text(ordered), "-20 -1.5 0 0.001 9.99 10 100  -0 x");
    assert_eq!(node.error("insert into t values ('10.00')").0, ErrorKind::Unique);
    assert_eq!(node.text("select n from t where n = '9.9900'"), "9.99");
}

proptest! {
    /// Nor does any text that looks a little like a value.
    #[test]
    fn any_text_is_a_value_or_not(
        text in r#"([0-9]{1,4}|[-: .+/,ZTPe"{}\[\]\\@]|jan|utc|pm|day|mon|ago|null|\PC){0,12}"#,
    ) {
        let (mut node, text) = (Node::new(), text.replace('\'', "''"));
        for kind in ["bool", "int2", "int8", "float4", "float8", "numeric", "bytea", "date", "time", "timestamp",
            "interval", "uuid", "json", "jsonb"] {
            if let Response::Failed(failure) = node.batch(&[&format!("select pg_in_{kind}('{text}')")]) {
                let has_sqlstate = !matches!(failure.error.kind, ErrorKind::Constraint | ErrorKind::Other);
                prop_assert!(has_sqlstate, "{kind} of {text}: {}", failure.error.message);
            }
        }
    }
}
