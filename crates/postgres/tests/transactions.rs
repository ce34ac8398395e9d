//! What holds for transactions, and what a client is told when it does not.

mod support;

use support::{Client, server, server_of_replicas, server_that_counts, server_that_orders_reads};

#[test]
fn a_transaction_is_shown_what_it_does() {
    let server = server();
    let (mut one, mut other) = (Client::new(&server), Client::new(&server));
    one.query("create table t(a integer primary key, b text)");
    assert_eq!(one.query("begin"), "C:BEGIN Z:T");
    assert_eq!(one.query("insert into t(b) values ('x') returning a"), "T D:1 C:INSERT 0 1 Z:T");
    assert_eq!(one.query("select b from t"), "T D:x C:SELECT 1 Z:T");
    assert_eq!(other.query("select b from t"), "T C:SELECT 0 Z:I");
    assert_eq!(one.query("savepoint s"), "C:SAVEPOINT Z:T");
    assert_eq!(one.query("insert into t(a) values (1)"), "E:23505 Z:E");
    assert_eq!(one.query("select 1"), "E:25P02 Z:E");
    assert_eq!(one.query("rollback to s"), "C:ROLLBACK Z:T");
    assert_eq!(one.query("update t set b = 'y'"), "C:UPDATE 1 Z:T");
    assert_eq!(one.query("commit"), "C:COMMIT Z:I");
    assert_eq!(other.query("select b from t"), "T D:y C:SELECT 1 Z:I");
    one.query("begin");
    one.query("nonsense");
    assert_eq!(one.query("commit"), "C:ROLLBACK Z:I");
    assert_eq!(one.query("begin read only"), "C:BEGIN Z:T");
    assert_eq!(one.query("delete from t"), "E:25006 Z:E");
}

#[test]
fn a_transaction_that_was_overtaken_takes_no_effect() {
    let server = server();
    let (mut one, mut other) = (Client::new(&server), Client::new(&server));
    one.query("create table t(a integer primary key, b integer)");
    one.query("insert into t values (1, 10)");
    one.query("begin");
    assert_eq!(one.query("select b from t"), "T D:10 C:SELECT 1 Z:T");
    assert_eq!(one.query("update t set b = 11"), "C:UPDATE 1 Z:T");
    other.query("update t set b = 20");
    assert_eq!(one.query("commit"), "E:40001 Z:I");
    assert_eq!(one.query("select b from t"), "T D:20 C:SELECT 1 Z:I");
    // While it runs it sees what was there when it began, and if that is all then nothing is wrong with it.
    for (last, told) in [("select 2", "C:COMMIT Z:I"), ("delete from t where a = 7", "E:40001 Z:I")] {
        one.query("begin");
        let shown = one.query("select b from t");
        other.query("update t set b = b + 10");
        assert_eq!(one.query("select b from t"), shown);
        one.query(last);
        assert_eq!(one.query("commit"), told, "{last}");
    }
    // What was not looked at is in nobody's way.
    one.query("begin");
    assert_eq!(one.query("insert into t values (2, 0)"), "C:INSERT 0 1 Z:T");
    other.query("insert into t values (3, 0)");
    assert_eq!(one.query("commit"), "C:COMMIT Z:I");
}

#[test]
fn time_stands_still_in_a_transaction() {
    let server = server();
    let mut client = Client::new(&server);
    client.query(
        "create table t(a integer primary key, at timestamptz default current_timestamp, r float8 default random())",
    );
    client.query("begin");
    let first = client.query("select now()");
    assert_eq!(client.query("select now()"), first);
    assert_eq!(client.query("insert into t(a) values (1) returning at"), first.replace("SELECT 1", "INSERT 0 1"));
    assert_eq!(client.query("commit"), "C:COMMIT Z:I");
    assert_eq!(client.query("select at from t"), first.replace("Z:T", "Z:I"));
    client.query("begin");
    assert_eq!(client.query("insert into t(a) values (2) returning r"), "E:0A000 Z:E");
}

const UPSERT: &str = "with a as (select 3 as a, 30 as b) insert into t select a, b from a
    on conflict (a) do update set b = excluded.b";

/// Whether a statement writes is what the replicas say, whatever its first words are.
#[test]
fn what_is_acknowledged_is_done_and_what_is_rolled_back_is_not() {
    for server in [server(), server_that_orders_reads(None)] {
        let mut client = Client::new(&server);
        client.query("create table t(a integer primary key, b integer)");
        client.query("begin");
        assert_eq!(client.query(UPSERT), "C:INSERT 0 1 Z:T");
        assert_eq!(client.query("select a from t"), "T D:3 C:SELECT 1 Z:T");
        client.query("rollback");
        assert_eq!(client.query("select a from t"), "T C:SELECT 0 Z:I");
        client.query("begin");
        client.query("select 1");
        client.query(UPSERT);
        assert_eq!(client.query("commit"), "C:COMMIT Z:I");
        assert_eq!(client.query("select a from t"), "T D:3 C:SELECT 1 Z:I");
        // What changes no row may still be a write.
        client.query("begin");
        client.query("create table u(a integer)");
        assert_eq!(client.query("commit"), "C:COMMIT Z:I");
        assert_eq!(client.query("select * from u"), "T C:SELECT 0 Z:I");
        client.query("begin read only");
        assert_eq!(client.query("select a from t"), "T D:3 C:SELECT 1 Z:T");
        assert_eq!(client.query(UPSERT), "E:25006 Z:E");
        client.query("rollback");
    }
}

/// What the client saw before it went back to a savepoint still holds when it commits.
#[test]
fn what_was_seen_and_taken_back_is_validated() {
    let server = server();
    let (mut one, mut other) = (Client::new(&server), Client::new(&server));
    one.query("create table acc(id integer primary key, bal integer)");
    one.query("insert into acc values (1, 100)");
    // A lost update, had the read been forgotten.
    one.query("begin");
    one.query("savepoint s");
    assert_eq!(one.query("select bal from acc where id = 1"), "T D:100 C:SELECT 1 Z:T");
    one.query("rollback to s");
    other.query("update acc set bal = bal + 50 where id = 1");
    assert_eq!(one.query("update acc set bal = 100 + 10 where id = 1"), "E:40001 Z:E");
    // Nor is it forgotten now.
    one.query("rollback to s");
    assert_eq!(one.query("select 1"), "E:40001 Z:E");
    one.query("rollback");
    assert_eq!(one.query("select bal from acc"), "T D:150 C:SELECT 1 Z:I");
    // A read that saw what was taken back is validated where it saw it.
    one.query("begin");
    one.query("insert into acc values (2, 0)");
    one.query("savepoint s");
    assert_eq!(one.query("update acc set bal = bal + 1 returning bal"), "T D:151 D:1 C:UPDATE 2 Z:T");
    assert_eq!(one.query("select sum(bal) from acc"), "T D:152 C:SELECT 1 Z:T");
    one.query("rollback to s");
    assert_eq!(one.query("select sum(bal) from acc"), "T D:150 C:SELECT 1 Z:T");
    assert_eq!(one.query("commit"), "C:COMMIT Z:I");
    assert_eq!(other.query("select bal from acc"), "T D:150 D:0 C:SELECT 2 Z:I");
    // Also at COMMIT, and whatever the level.
    one.query("begin");
    one.query("savepoint s");
    one.query("savepoint t");
    assert_eq!(one.query("update acc set bal = 7 where bal = 150"), "C:UPDATE 1 Z:T");
    one.query("rollback to t");
    one.query("insert into acc values (3, 0)");
    one.query("rollback to s");
    one.query("insert into acc values (4, 0)");
    other.query("update acc set bal = 0 where id = 1");
    assert_eq!(one.query("commit"), "E:40001 Z:I");
    assert_eq!(one.query("select count(*) from acc"), "T D:2 C:SELECT 1 Z:I");
}

/// An error tells something as well: here that there is a row.
#[test]
fn errors_that_were_swallowed_are_validated() {
    let server = server();
    let (mut one, mut other) = (Client::new(&server), Client::new(&server));
    one.query("create table t1(k integer primary key); create table t2(k text); insert into t1 values (5)");
    for overtaken in [false, true] {
        one.query("begin");
        one.query("savepoint s");
        assert_eq!(one.query("insert into t1 values (5)"), "E:23505 Z:E");
        one.query("rollback to s");
        assert_eq!(one.query("insert into t2 values ('5 exists')"), "C:INSERT 0 1 Z:T");
        if overtaken {
            // Serially, one of the two would have noticed the other.
            other.query("begin");
            assert_eq!(other.query("select count(*) from t2"), "T D:1 C:SELECT 1 Z:T");
            assert_eq!(other.query("delete from t1 where k = 5"), "C:DELETE 1 Z:T");
            assert_eq!(other.query("commit"), "C:COMMIT Z:I");
        }
        assert_eq!(one.query("commit"), if overtaken { "E:40001 Z:I" } else { "C:COMMIT Z:I" });
    }
    // A description that failed has told as much.
    one.query("begin");
    one.query("savepoint s");
    assert_eq!(one.ask("select * from later", &[], 0), "E:42P01 Z:E");
    one.query("rollback to s");
    other.query("create table later(a integer)");
    assert_eq!(one.query("insert into t2 values ('there is no such table')"), "E:40001 Z:E");
    one.query("rollback");
    // What was shown before and fails now is no error of the statement that notices.
    one.query("begin");
    assert_eq!(one.query("insert into t1 values (6)"), "C:INSERT 0 1 Z:T");
    other.query("insert into t1 values (6)");
    assert_eq!(one.query("select 1"), "T D:1 C:SELECT 1 Z:T");
    assert_eq!(one.query("commit"), "E:40001 Z:I");
}

/// What the catalog said depends on the tables, and the transaction on what it said.
#[test]
fn catalog_reads_are_validated() {
    let server = server();
    let (mut one, mut other) = (Client::new(&server), Client::new(&server));
    one.query("create table t(a integer)");
    let sql = "select count(*) from information_schema.tables where table_name = 'flag'";
    one.query("begin");
    assert_eq!(one.query(sql), "T D:0 C:SELECT 1 Z:T");
    assert_eq!(one.query("insert into t values (1)"), "C:INSERT 0 1 Z:T");
    other.query("create table flag(a integer)");
    assert_eq!(one.query("commit"), "E:40001 Z:I");
    one.query("begin");
    assert_eq!(one.query(sql), "T D:1 C:SELECT 1 Z:T");
    assert_eq!(one.query("create table u(a integer)"), "C:CREATE TABLE Z:T");
    assert_eq!(one.query("commit"), "C:COMMIT Z:I");
}

/// Other clients commit all the time, which makes a conflict at worst.
#[test]
fn a_conflict_is_no_random_number() {
    let server = server_that_orders_reads(Some("update t set b = b + 1"));
    let mut client = Client::new(&server);
    client.query("create table t(a integer primary key, b integer)");
    client.query("insert into t values (1, 0)");
    for sql in ["select b > 0 as b, b from t", "update t set a = 1 returning b"] {
        client.query("begin");
        let shown = client.query(sql);
        assert!(shown.starts_with("T D:") && shown.ends_with(" 1 Z:T"), "{sql}: {shown}");
        assert_eq!(client.query("select 1"), "E:40001 Z:E", "{sql}");
        client.query("rollback");
    }
}

/// Whether a result is random is a property of the statement.
#[test]
fn a_random_number_is_one_on_a_quiet_day() {
    for server in [server(), server_that_orders_reads(None), server_that_orders_reads(Some("delete from u"))] {
        let mut client = Client::new(&server);
        client.query("create table t(a integer primary key, b float8 default random()); create table u(a integer)");
        // One that was not shown is drawn at the end, and cannot be shown before.
        client.query("begin");
        assert_eq!(client.query("insert into t(a) values (1)"), "C:INSERT 0 1 Z:T");
        assert!(client.query("select b from t").ends_with("C:SELECT 1 Z:T"));
        assert_eq!(client.query("commit"), "E:0A000 Z:I");
        for sql in ["select random()", "insert into t(b) values (random()) returning b"] {
            client.query("begin");
            assert_eq!(client.query("select count(*) from t"), "T D:0 C:SELECT 1 Z:T");
            assert_eq!(client.query(sql), "E:0A000 Z:E");
            client.query("rollback");
        }
        client.query("begin");
        let now = client.query("select now()");
        assert_eq!(client.query("select now()"), now);
        // A result may be as large as outside of a transaction.
        assert!(client.query("select hex(zeroblob(450000)), hex(zeroblob(450000))").ends_with("C:SELECT 1 Z:T"));
        assert_eq!(client.query("commit"), "C:COMMIT Z:I");
    }
}

#[test]
fn a_transaction_that_only_reads_cannot_write() {
    let server = server();
    let mut client = Client::new(&server);
    client.query("create table t(a integer primary key, b integer)");
    let insert = "insert into t(b) values (1)";
    for (before, begin) in [
        ("select 1", "begin transaction isolation level read committed, read only"),
        ("set session characteristics as transaction read only, deferrable", "begin"),
        ("set default_transaction_read_only = true", "start transaction"),
        ("set default_transaction_read_only to 'yes'", "begin isolation level serializable"),
    ] {
        assert!(client.query(before).ends_with("Z:I"));
        client.query(begin);
        assert_eq!(client.query("show transaction_read_only"), "T D:on C:SHOW Z:T");
        assert_eq!(client.query(insert), "E:25006 Z:E", "{before}; {begin}");
        client.query("rollback");
    }
    // By default also without BEGIN, one statement or several.
    assert_eq!(client.query("show default_transaction_read_only"), "T D:on C:SHOW Z:I");
    assert_eq!(client.query(insert), "E:25006 Z:I");
    assert_eq!(client.query(UPSERT), "E:25006 Z:I");
    assert_eq!(client.query("select 1; insert into t(b) values (1)"), "E:25006 Z:I");
    assert_eq!(client.query("select count(*) from t; select 2"), "T D:0 C:SELECT 1 T D:2 C:SELECT 1 Z:I");
    client.query("begin read write");
    assert_eq!(client.query(insert), "C:INSERT 0 1 Z:T");
    assert_eq!(client.query("set transaction read only"), "E:25001 Z:E");
    client.query("rollback");
    assert_eq!(client.query("set default_transaction_read_only = perhaps"), "E:22023 Z:I");
    client.query("set default_transaction_read_only = off");
    for set in ["set transaction read only", "set transaction_read_only = on", "set local transaction_read_only to 't'"]
    {
        client.query("begin");
        assert_eq!(client.query(set), "C:SET Z:T");
        assert_eq!(client.query(insert), "E:25006 Z:E", "{set}");
        client.query("rollback");
    }
    client.query("begin read only");
    assert_eq!(client.query("set transaction read write"), "C:SET Z:T");
    assert_eq!(client.query(insert), "C:INSERT 0 1 Z:T");
    assert_eq!(client.query("commit"), "C:COMMIT Z:I");
    client.query("begin read only");
    assert_eq!(client.query("select * from nosuch"), "E:42P01 Z:E");
    client.query("rollback");
    let mut other = Client::with_options(&server, "-c default_transaction_read_only=on");
    assert_eq!(other.query(insert), "E:25006 Z:I");
    // Nothing to set it for.
    assert_eq!(client.query("set transaction read only"), "N C:SET Z:I");
    assert_eq!(client.query(insert), "C:INSERT 0 1 Z:I");
}

#[test]
fn a_transaction_is_chained_to_the_next() {
    let server = server();
    let mut client = Client::new(&server);
    client.query("create table t(a integer)");
    client.query("begin");
    client.query("insert into t values (1)");
    assert_eq!(client.query("rollback and chain"), "C:ROLLBACK Z:T");
    client.query("insert into t values (2)");
    assert_eq!(client.query("commit work and chain"), "C:COMMIT Z:T");
    client.query("insert into t values (3)");
    client.query("nonsense");
    assert_eq!(client.query("commit and chain"), "C:ROLLBACK Z:T");
    assert_eq!(client.query("rollback and no chain"), "C:ROLLBACK Z:I");
    assert_eq!(client.query("select group_concat(a) from t"), "T D:2 C:SELECT 1 Z:I");
    client.query("begin read only");
    client.query("commit and chain");
    assert_eq!(client.query("insert into t values (4)"), "E:25006 Z:E");
    client.query("rollback");
    for sql in ["commit and chain", "rollback and chain"] {
        assert_eq!(client.query(sql), "E:25P01 Z:I");
    }
}

/// Half of what a statement says is not what it says.
#[test]
fn what_is_not_understood_about_transactions_is_refused() {
    let server = server();
    let mut client = Client::new(&server);
    client.query("create table t(a integer)");
    for sql in [
        "commit prepared 'x'",
        "rollback prepared 'x'",
        "prepare transaction 'x'",
        "set transaction snapshot '00000003-1'",
        "commit and chain and chain",
        "rollback to a b",
        "begin immediate",
        "set transaction isolation level chaos",
    ] {
        client.query("begin");
        client.query("insert into t values (1)");
        assert_eq!(client.query(sql), "E:0A000 Z:E", "{sql}");
        assert_eq!(client.query("rollback"), "C:ROLLBACK Z:I");
    }
    assert_eq!(client.query("begin exclusive"), "E:0A000 Z:I");
    assert_eq!(client.query("set session characteristics as transaction read sometimes"), "E:0A000 Z:I");
    assert_eq!(client.query("select count(*) from t"), "T D:0 C:SELECT 1 Z:I");
}

/// What cannot be asked is refused before it is sent, and is no unknown outcome.
#[test]
fn what_is_too_large_is_said_at_once() {
    let server = server();
    let mut client = Client::new(&server);
    client.query("create table t(a text)");
    let much = "x".repeat(700 << 10);
    assert_eq!(client.ask("insert into t values ($1 || $2)", &[&much, &much], 0), "1 2 E:54000 Z:I");
    assert_eq!(client.query(&format!("insert into t values ('{much}')")), "E:54000 Z:I");
    assert_eq!(client.ask(&format!("insert into t values ('{much}')"), &[], 0), "E:54000 Z:I");
    assert_eq!(client.ask("insert into t values ($1)", &[&much.repeat(2)], 0), "1 2 E:54000 Z:I");
    assert_eq!(client.query(&"insert into t values ('1');".repeat(40_000)), "E:54000 Z:I");
    client.query("begin");
    assert_eq!(client.ask("insert into t values ($1)", &[&much], 0), "1 2 n C:INSERT 0 1 Z:T");
    assert_eq!(client.ask("insert into t values ($1)", &[&much], 0), "1 2 E:54000 Z:E");
    client.query("rollback");
    assert_eq!(client.query("select count(*) from t"), "T D:0 C:SELECT 1 Z:I");
}

/// Sends rows to a statement without waiting in between, and gives what is told of them.
fn send_rows(client: &mut Client, sql: &str, rows: impl IntoIterator<Item = i64>) -> String {
    client.send(b'P', &[b"\0", sql.as_bytes(), b"\0\0\0"].concat());
    for row in rows {
        client.bind(&[&row.to_string()], 0);
    }
    client.send(b'S', b"");
    client.hear()
}

/// What a statement costs does not grow with those before it, whether they come in one go or one by one.
#[test]
fn many_rows_cost_what_each_of_them_costs() {
    let (server, counts) = server_that_counts();
    let mut client = Client::new(&server);
    client.query("create table t(a integer primary key, b text default 'some text that is long enough to matter')");
    client.query("begin");
    let told = send_rows(&mut client, "insert into t(a) values ($1)", 0..4_000);
    assert_eq!(told.matches("2 n C:INSERT 0 1").count(), 4_000);
    for row in 4_000..4_400 {
        assert_eq!(client.query(&format!("insert into t(a) values ({row})")), "C:INSERT 0 1 Z:T");
    }
    assert_eq!(client.query("commit"), "C:COMMIT Z:I");
    assert_eq!(client.query("select count(*), max(a) from t"), "T D:4400,4399 C:SELECT 1 Z:I");
    let (requests, bytes) = *counts.lock().unwrap();
    // As a rule the rows that are sent in one go arrive in some forty pieces.
    assert!(requests < 1_500 && bytes < 1_000_000, "{requests} requests, {bytes} bytes");
}

/// What comes in one go is answered as if it had come piece by piece, errors included.
#[test]
fn statements_that_come_together_fail_one_by_one() {
    for server in [server(), server_that_orders_reads(None), server_of_replicas()] {
        let mut client = Client::new(&server);
        client
            .query("create table t(a integer primary key, at timestamptz default now(), r float8 default (random()))");
        client.query("begin");
        assert_eq!(
            send_rows(&mut client, "insert into t(a) values ($1) returning a", [1, 2, 1, 3]),
            "1 2 T D:1 C:INSERT 0 1 2 T D:2 C:INSERT 0 1 2 E:23505 Z:E"
        );
        client.query("rollback");
        client.query("begin");
        assert_eq!(
            send_rows(&mut client, "insert into t(a) values ($1)", [1, 2]),
            "1 2 n C:INSERT 0 1 2 n C:INSERT 0 1 Z:T"
        );
        client.query("savepoint s");
        // What was rehearsed and not shown has not happened.
        assert_eq!(
            client.query("insert into t(a) values (3); insert into t(a) values (4); nonsense; select 1"),
            "C:INSERT 0 1 C:INSERT 0 1 E:42601 Z:E"
        );
        client.query("rollback to s");
        assert_eq!(
            client.query("select a from t; select count(*) from t"),
            "T D:1 D:2 C:SELECT 2 T D:2 C:SELECT 1 Z:T"
        );
        assert_eq!(client.query("select 5; release s; select 6"), "T D:5 C:SELECT 1 C:RELEASE T D:6 C:SELECT 1 Z:T");
        assert_eq!(client.query("commit"), "C:COMMIT Z:I");
        client.query("begin");
        assert_eq!(send_rows(&mut client, "insert into t(a) values ($1) returning r", [3, 4]), "1 2 E:0A000 Z:E");
        client.query("rollback");
        assert_eq!(client.query("select count(*) from t"), "T D:2 C:SELECT 1 Z:I");
    }
}

/// A statement that asks for the time and does not show it does not fix it; what shows it afterwards does.
#[test]
fn time_that_is_not_shown_is_that_of_the_commit() {
    for server in [server(), server_of_replicas()] {
        let mut client = Client::new(&server);
        client.query("create table t(a integer primary key, at timestamptz default now())");
        for row in 1..=4 {
            client.query("begin");
            assert_eq!(client.query("select 1"), "T D:1 C:SELECT 1 Z:T");
            assert_eq!(client.query(&format!("insert into t(a) values ({row})")), "C:INSERT 0 1 Z:T");
            assert_eq!(client.query("insert into t(a) values (9)"), "C:INSERT 0 1 Z:T");
            assert_eq!(client.query("delete from t where a = 9"), "C:DELETE 1 Z:T");
            if row % 2 == 0 {
                let shown = client.query(&format!("select at from t where a = {row}"));
                assert_eq!(client.query("select now()"), shown);
            }
            assert_eq!(client.query("commit"), "C:COMMIT Z:I");
        }
        assert_eq!(client.query("select count(distinct at), min(at) > '2026-01-01' from t"), "T D:4,t C:SELECT 1 Z:I");
    }
}

/// One client of many: what it was told since BEGIN.
struct Party {
    client: Client,
    open: bool,
    must_run_again: bool,
    told: Vec<(String, String)>,
}

fn new_party(server: &bezant_postgres::Server) -> Party {
    Party { client: Client::new(server), open: false, must_run_again: false, told: Vec::new() }
}

impl Party {
    /// Does the next thing. Gives a transaction when it has committed.
    fn act(&mut self, random: &mut impl FnMut(u32) -> u32) -> Option<Vec<(String, String)>> {
        let (key, value) = (random(4), random(100));
        let sql = match random(16) {
            _ if !self.open => "begin".into(),
            0 | 1 => "savepoint s".into(),
            2 => "savepoint r".into(),
            3 | 4 => "rollback to s".into(),
            5 => "rollback to r".into(),
            6 => "release s".into(),
            7 => format!("insert into t values ({key}, {value})"),
            8 => format!("insert into t(v) values ({value}) returning k"),
            9 => format!("update t set v = v + 1 where k = {key}"),
            10 => format!(
                "with a as (select {key} as k, {value} as v) insert into t select k, v from a
                 on conflict (k) do update set v = excluded.v"
            ),
            11 => format!("delete from t where k >= {key} returning v"),
            12 => "select sum(v), count(*) from t".into(),
            13 => format!("insert into t select 9 - k, v from t where k >= {key}"),
            _ => {
                // A transaction that only read would stand where its last statement was.
                let told = format!("insert into log values ({value})");
                if self.client.query(&told).ends_with("Z:T") {
                    self.told.push((told, "C:INSERT 0 1 Z:T".into()));
                    "commit".into()
                } else {
                    "rollback to s".into()
                }
            }
        };
        let answer = self.client.query(&sql);
        self.open = !answer.ends_with("Z:I");
        // Whoever was told that it must run again was told nothing else, and may not believe it; until it goes back,
        // that is all that it is told.
        self.must_run_again |= answer.starts_with("E:40001");
        self.must_run_again &= answer.ends_with("Z:E");
        if !self.must_run_again {
            self.told.push((sql, answer.clone()));
        }
        if answer.ends_with("Z:E") && random(4) == 0 {
            self.client.query("rollback");
            self.open = false;
        }
        let told = if self.open { Vec::new() } else { std::mem::take(&mut self.told) };
        (answer == "C:COMMIT Z:I").then_some(told)
    }
}

/// Whatever clients do at the same time, each of those that committed was told what it would have been told had they
/// come one after the other.
#[test]
fn transactions_are_serializable() {
    let (mut total, mut taken_back) = (0, 0);
    for seed in 0..40_u32 {
        let mut state = seed;
        let mut random = |below: u32| {
            state = state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
            (state >> 16) % below
        };
        let schema = "create table t(k integer primary key, v integer); create table log(v integer)";
        let server = match seed % 4 {
            0 => server(),
            1 => server_that_orders_reads(None),
            _ => server_of_replicas(),
        };
        let mut parties: Vec<Party> = (0..3).map(|_| new_party(&server)).collect();
        parties[0].client.query(schema);
        let mut committed = Vec::new();
        for _ in 0..400 {
            let party = random(3) as usize;
            committed.extend(parties[party].act(&mut random));
        }
        let other = support::server();
        let mut alone = Client::new(&other);
        alone.query(schema);
        for (number, transaction) in committed.iter().enumerate() {
            for (sql, told) in transaction {
                assert_eq!(alone.query(sql), *told, "seed {seed}, transaction {number}: {sql} in {transaction:#?}");
            }
            total += 1;
            taken_back += usize::from(transaction.iter().any(|(sql, _)| sql.starts_with("rollback to")));
        }
    }
    assert!(total > 200 && taken_back > 50, "{total} transactions, {taken_back} of them with ROLLBACK TO");
}
