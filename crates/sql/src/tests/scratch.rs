//! Transactions that are built step by step, and what a replica keeps of them.

use super::*;
use crate::scratch::SCRATCHES_MAX;
use crate::{Check, Dated, Rehearsal};
use bezant_core::ids::PublicKey;
use bezant_core::service::Asker;

/// A client's side of a transaction.
#[derive(Clone)]
struct Steps {
    rehearsal: Rehearsal,
    asker: Asker,
    shown: Vec<Check>,
}

impl Steps {
    /// The n-th transaction of the n-th client.
    fn new(client: u8, transaction: u64) -> Self {
        let transaction = Digest::of(Domain::Trace, &transaction.to_le_bytes());
        let asker = Asker { public_key: PublicKey([client; 32]), ..Asker::default() };
        Self { rehearsal: Rehearsal { transaction, lasts: true, ..Rehearsal::default() }, asker, shown: Vec::new() }
    }

    fn request(&self, sql: &str) -> Vec<u8> {
        let mut rehearsal = self.rehearsal.clone();
        rehearsal.dated.batch.statements = vec![Statement::new(sql)];
        Request::Rehearse(rehearsal).to_bytes()
    }

    fn ask(&self, node: &Node, sql: &str) -> Response {
        let answer = node.sql.query(&self.request(sql), &self.asker).expect("no randomness");
        Response::from_bytes(answer).expect("a response")
    }

    /// One more statement, and what it gives.
    #[track_caller]
    fn go_on(&mut self, node: &Node, sql: &str) -> Rows {
        match self.ask(node, sql) {
            Response::Done(mut results) => {
                let rows = results.remove(0);
                let (statement, digest) = (Statement::new(sql), rows.digest());
                self.rehearsal.held = Rehearsal::chain(self.rehearsal.held, &statement, digest);
                self.shown.push(Check { statement, digest });
                rows
            }
            other => panic!("{sql}: {other:?}"),
        }
    }

    /// The same from the beginning: all that was shown comes as checks.
    fn again(&self) -> Self {
        let mut again = self.clone();
        again.rehearsal.held = Digest::ZERO;
        again.rehearsal.dated.batch.checks.clone_from(&self.shown);
        again
    }

    fn settle(&self) -> Request {
        let batch = Batch { checks: self.shown.clone(), ..Batch::default() };
        Request::Settle(Dated { time: self.rehearsal.dated.time, batch })
    }
}

/// What depends on the statements before, and on what of them the connection remembers.
const STATEMENTS: [&str; 7] = [
    "insert into t(b) values ('x'), ('y')",
    "select changes(), last_insert_rowid()",
    "create table u(c)",
    "insert into u select b || changes() from t returning c",
    "update t set b = b || 'z' where a = last_insert_rowid()",
    "select * from t, u",
    "alter table u add column d default 5",
];

#[test]
fn steps_give_what_a_whole_batch_gives() {
    let mut node = Node::new();
    node.rows("create table t(a integer primary key, b text unique)");
    node.rows("insert into t values (1, 'w')");
    let before = node.root();
    let mut steps = Steps::new(1, 1);
    for sql in STATEMENTS {
        let mut whole = steps.again();
        whole.rehearsal.transaction = Digest::of(Domain::Trace, sql.as_bytes());
        let whole = whole.ask(&node, sql);
        assert_eq!(Response::Done(vec![steps.go_on(&node, sql)]), whole, "{sql}");
        // What does not last, what fails and what may not be asked leaves no trace.
        let mut look = steps.clone();
        look.rehearsal.lasts = false;
        assert!(matches!(look.ask(&node, "insert into t(b) values ('look')"), Response::Done(_)));
        assert!(matches!(look.ask(&node, "drop table t"), Response::Done(_)));
        assert!(matches!(steps.ask(&node, "insert or fail into t(b) values ('q'), ('w')"), Response::Failed(_)));
        assert_eq!(node.sql.query(&steps.request("select random()"), &steps.asker), Err(NotReadOnly));
    }
    assert_eq!(node.root(), before);
    assert_eq!(node.run(&steps.settle()), Response::Done(Vec::new()));
    assert_eq!(node.text("select group_concat(b), (select group_concat(c || d) from u) from t"), "w,x,yz|w05,x05,y05");
}

/// Whoever has it not says so, and nothing else; and can begin it again.
#[test]
fn what_is_not_held_is_asked_again() {
    let mut node = Node::new();
    node.rows("create table t(a integer primary key)");
    let mut steps = Steps::new(1, 1);
    steps.go_on(&node, "insert into t values (7)");
    let count = "select count(*) from t";
    for change in [
        |steps: &mut Steps| steps.asker = Steps::new(2, 1).asker,
        |steps: &mut Steps| steps.rehearsal.transaction = Steps::new(1, 2).rehearsal.transaction,
    ] {
        let mut stranger = steps.clone();
        change(&mut stranger);
        assert_eq!(stranger.ask(&node, count), Response::NotHeld);
    }
    // A request that comes twice is not executed twice, and whoever names what was not executed changes nothing.
    let before = steps.clone();
    steps.go_on(&node, count);
    assert_eq!(before.ask(&node, count), Response::NotHeld);
    let mut stranger = Steps::new(1, 1);
    stranger.rehearsal.held = Digest::of(Domain::Trace, b"something else");
    assert_eq!(stranger.ask(&node, count), Response::NotHeld);
    // Time may begin where nothing has asked for it, and then stands still.
    for time in [0, 7, 7] {
        steps.rehearsal.dated.time = time;
        steps.go_on(&node, count);
    }
    let mut stranger = steps.clone();
    stranger.rehearsal.dated.time = 8;
    assert_eq!(stranger.ask(&node, count), Response::NotHeld);
    steps.go_on(&node, count);
    // Whoever has lost it is told all of it.
    let mut again = |node: &Node| {
        assert_eq!(steps.ask(node, count), Response::NotHeld);
        let Response::Done(results) = steps.again().ask(node, count) else { panic!("all of it came") };
        assert_eq!(results[0].rows, [[Value::Integer(1)]]);
        let (statement, digest) = (Statement::new(count), results[0].digest());
        steps.rehearsal.held = Rehearsal::chain(steps.rehearsal.held, &statement, digest);
        steps.shown.push(Check { statement, digest });
        steps.go_on(node, count);
    };
    let mut node = node.restarted();
    again(&node);
    // What was undone may have been its beginning.
    let mut pages = node.pages.iter().map(|(number, page)| (*number, Some(page.clone())));
    node.sql.load(&mut pages).unwrap();
    again(&node);
}

/// One connection for many transactions: each sees the database as it is when it begins, and nothing of those before.
#[test]
fn what_is_over_leaves_its_place_and_no_trace() {
    let mut node = Node::new();
    node.rows("create table t(a integer primary key, b unique)");
    let mut after = Digest::ZERO;
    for number in 0..40_i64 {
        let mut steps = Steps::new(1, number as u64);
        steps.rehearsal.after = std::mem::replace(&mut after, steps.rehearsal.transaction);
        assert_eq!(
            steps.go_on(&node, "select count(*), last_insert_rowid(), changes() from t").rows[0][..],
            [Value::Integer(number), Value::Integer(0), Value::Integer(0)]
        );
        steps.go_on(&node, &format!("insert into t(b) values ({number}), (-1 - {number})"));
        match number % 4 {
            1 => _ = steps.go_on(&node, "create table u(c)"),
            2 => _ = steps.go_on(&node, "delete from t"),
            _ => {}
        }
        if number % 5 == 0 {
            node.rows(&format!("create table v{number}(c)"));
        }
        node.rows(&format!("insert into t(b) values ({number})"));
        if number % 7 == 0 {
            node = node.restarted();
        }
        assert!(node.sql.scratches.borrow().count() <= 1);
    }
    assert_eq!(node.text("select count(*), min(b), max(b) from t"), "40|0|39");
}

/// A transaction goes on from what it saw, whatever others do meanwhile; and is validated in the end.
#[test]
fn a_scratch_state_is_a_snapshot() {
    let mut node = Node::new();
    node.batch(&["create table t(a integer primary key, b)", "insert into t values (1, 10), (2, 20)"]);
    let (mut reads, mut writes) = (Steps::new(1, 1), Steps::new(1, 2));
    assert_eq!(reads.go_on(&node, "select b from t where a = 1").rows, [[Value::Integer(10)]]);
    assert_eq!(writes.go_on(&node, "update t set b = 21 where a = 2").changes, 1);
    node.batch(&["update t set b = 11 where a = 1", "create table u(c)", "insert into t values (3, 30)"]);
    assert_eq!(reads.go_on(&node, "select sum(b) from t").rows, [[Value::Integer(30)]]);
    assert_eq!(writes.go_on(&node, "insert into t values (4, 40)").changes, 1);
    assert_eq!(reads.again().ask(&node, "select 1"), Response::Conflict(0));
    assert_eq!(node.run(&reads.settle()), Response::Conflict(0));
    assert_eq!(node.run(&writes.settle()), Response::Done(Vec::new()));
    assert_eq!(node.text("select group_concat(b) from t"), "11,21,30,40");
}

/// A client with many transactions pushes out its own, and not the one of another client.
#[test]
fn many_transactions_stay_within_the_bounds() {
    let mut node = Node::new();
    node.rows("create table t(a integer primary key, b)");
    let mut other = Steps::new(2, 0);
    other.go_on(&node, "insert into t values (1, 1)");
    let mut first = Steps::new(1, 0);
    first.go_on(&node, "insert into t values (1, 1)");
    for number in 1..SCRATCHES_MAX as u64 + 10 {
        Steps::new(1, number).go_on(&node, "insert into t values (1, 1)");
    }
    assert_eq!(node.sql.scratches.borrow().count(), SCRATCHES_MAX);
    assert_eq!(first.ask(&node, "select 1"), Response::NotHeld);
    other.go_on(&node, "select 1");
    // So does one with large ones.
    let large = "with recursive n(i) as (select 1 union all select i + 1 from n limit 50)
        insert into t(b) select zeroblob(900000) from n";
    for number in 0..4 {
        Steps::new(1, number).go_on(&node, large);
    }
    assert!(node.sql.scratches.borrow().count() <= 3);
    other.go_on(&node, "select 1");
    // Nor are old pages kept for long.
    for _ in 0..2 {
        node.rows(large);
        node.rows("delete from t");
    }
    assert_eq!(node.sql.scratches.borrow().count(), 0);
    assert_eq!(other.ask(&node, "select 1"), Response::NotHeld);
}

/// What is ordered looks at no scratch state, whether there is one or not.
#[test]
fn a_rehearsal_decides_nothing_that_is_ordered() {
    let (mut node, mut quiet) = (Node::new(), Node::new());
    for node in [&mut node, &mut quiet] {
        node.rows("create table t(a integer primary key, b, at default current_timestamp)");
    }
    for number in 0..30 {
        let mut steps = Steps::new(1, number);
        steps.rehearsal.dated.time = TIME;
        for sql in ["insert into t(b) values (5) returning a", "delete from t where a % 3 = 0", "create table u(c)"] {
            let request = Request::Rehearse(Rehearsal {
                dated: Dated { time: TIME, batch: Batch { statements: vec![Statement::new(sql)], ..Batch::default() } },
                ..steps.rehearsal.clone()
            });
            steps.go_on(&node, sql);
            let ordered = [&mut node, &mut quiet].map(|node| node.run(&request));
            assert_eq!(ordered[0], ordered[1]);
            assert_eq!(ordered[0] == Response::NotHeld, sql.starts_with("delete") || sql.starts_with("create"));
        }
        steps.shown.truncate(2);
        let settled = [&mut node, &mut quiet].map(|node| node.run(&steps.settle()));
        assert_eq!(settled[0], settled[1]);
        assert_eq!(node.root(), quiet.root(), "transaction {number}");
    }
}
