//! The gateway over sockets, in front of one SQL service without replicas.

mod support;

use bezant_postgres::CONNECTIONS_MAX;
use std::io::{Read, Write};
use std::net::TcpStream;
use std::time::Duration;
use support::{Client, connect, server, silent_server};

/// Everything until the other side closes.
fn rest(mut stream: TcpStream) -> Vec<u8> {
    let mut all = Vec::new();
    // A reset is an end as well.
    let _ = stream.read_to_end(&mut all);
    all
}

#[test]
fn both_protocols_give_the_same() {
    let server = server();
    let mut client = Client::new(&server);
    assert_eq!(client.query("create table t(a integer primary key, b text)"), "C:CREATE TABLE Z:I");
    assert_eq!(client.ask("insert into t(b) values ($1), ($2)", &["x", "y"], 0), "1 2 n C:INSERT 0 2 Z:I");
    assert_eq!(client.query("select * from t where a > 1"), "T D:2,y C:SELECT 1 Z:I");
    assert_eq!(client.ask("select * from t where a > $1", &["1"], 0), "1 2 T D:2,y C:SELECT 1 Z:I");
    assert_eq!(client.query("select 1; select 2"), "T D:1 C:SELECT 1 T D:2 C:SELECT 1 Z:I");
    assert_eq!(client.query(" ; "), "I Z:I");
    assert_eq!(client.ask("", &[], 0), "1 2 n I Z:I");
    // Statements that come together fail together.
    assert_eq!(client.query("insert into t(a) values (7); insert into t(a) values (1)"), "E:23505 Z:I");
    assert_eq!(client.query("select count(*) from t"), "T D:2 C:SELECT 1 Z:I");
}

#[test]
fn an_error_ends_a_series_and_nothing_else() {
    let server = server();
    let mut client = Client::new(&server);
    assert_eq!(client.ask("select nosuch from nosuch", &[], 0), "E:42P01 Z:I");
    assert_eq!(client.ask("select $1", &[], 0), "1 E:08P01 Z:I");
    assert_eq!(client.ask("copy t from 'file'", &[], 0), "E:0A000 Z:I");
    assert_eq!(client.query("select 'still here'"), "T D:still here C:SELECT 1 Z:I");
}

#[test]
fn rows_come_in_portions() {
    let server = server();
    let mut client = Client::new(&server);
    let sql = "with recursive n(i) as (select 1 union all select i + 1 from n limit 3) select i from n";
    client.query("begin");
    assert_eq!(client.ask(sql, &[], 2), "1 2 T D:1 D:2 s Z:T");
    client.send(b'E', b"\0\0\0\0\0");
    client.send(b'S', b"");
    assert_eq!(client.hear(), "D:3 C:SELECT 3 Z:T");
    client.query("rollback");
    client.send(b'E', b"\0\0\0\0\0");
    client.send(b'S', b"");
    assert_eq!(client.hear(), "E:34000 Z:I");
}

#[test]
fn whoever_speaks_something_else_is_told_so() {
    let server = server();
    let mut stream = connect(&server);
    stream.write_all(b"\0\0\0\x08\x04\xd2\x16\x2f").unwrap();
    let mut answer = [0];
    stream.read_exact(&mut answer).unwrap();
    assert_eq!(answer, *b"N");
    let mut stream = connect(&server);
    stream.write_all(b"GET / HTTP/1.1\r\n\r\n").unwrap();
    assert!(String::from_utf8_lossy(&rest(stream)).contains("08P01"));
    let mut stream = connect(&server);
    stream.write_all(b"\0\0\0\x10\x04\xd2\x16\x2e\0\0\0\0\0\0\0\0").unwrap();
    assert!(rest(stream).is_empty(), "a request to cancel has no answer");
    let mut client = Client::new(&server);
    client.0.write_all(b"Q\xff\xff\xff\xff").unwrap();
    assert!(String::from_utf8_lossy(&rest(client.0)).contains("FATAL"));
    assert_eq!(Client::new(&server).query("select 1"), "T D:1 C:SELECT 1 Z:I");
}

/// A request to cancel, by these eight bytes of a number and a secret.
fn cancel(server: &bezant_postgres::Server, key: &[u8]) {
    let mut stream = connect(server);
    stream.write_all(&[&b"\0\0\0\x10\x04\xd2\x16\x2e"[..], key].concat()).unwrap();
    assert!(rest(stream).is_empty(), "a request to cancel has no answer");
}

#[test]
fn who_has_waited_enough_may_cancel() {
    let server = silent_server();
    let mut client = Client::new(&server);
    let key = client.1.clone();
    assert_eq!(key.len(), 8);
    let wrong: Vec<u8> = key.iter().map(|byte| !byte).collect();
    cancel(&server, &key);
    client.send(b'Q', b"select 1\0");
    cancel(&server, &wrong);
    client.0.set_read_timeout(Some(Duration::from_millis(300))).unwrap();
    assert!(client.0.read(&mut [0]).is_err(), "a wish from before, and that of somebody else, end nothing");
    client.0.set_read_timeout(Some(Duration::from_secs(20))).unwrap();
    cancel(&server, &key);
    assert_eq!(client.hear(), "E:57014 Z:I");
    // Again, and with a series of messages.
    client.send(b'P', b"\0select 1\0\0\0");
    client.send(b'S', b"");
    std::thread::sleep(Duration::from_millis(100));
    cancel(&server, &key);
    assert_eq!(client.hear(), "E:57014 Z:I");
}

#[test]
fn a_client_too_many_is_told_so_where_it_listens() {
    let server = silent_server();
    let mut clients: Vec<Client> = (0..CONNECTIONS_MAX).map(|_| Client::new(&server)).collect();
    let mut one_more = connect(&server);
    // It asks for TLS first, as libpq does, and must hear a no before it hears why it is sent away.
    one_more.write_all(b"\0\0\0\x08\x04\xd2\x16\x2f").unwrap();
    let mut answer = [0];
    one_more.read_exact(&mut answer).unwrap();
    assert_eq!(answer, *b"N");
    one_more.write_all(b"\0\0\0\x11\0\x03\0\0user\0me\0\0").unwrap();
    let heard = String::from_utf8_lossy(&rest(one_more)).into_owned();
    assert!(heard.starts_with('E') && heard.contains("C53300") && heard.contains("FATAL"), "{heard}");
    // Whoever is in can cancel all the same.
    let mut client = clients.pop().unwrap();
    client.send(b'Q', b"select 1\0");
    std::thread::sleep(Duration::from_millis(100));
    let key = client.1.clone();
    cancel(&server, &key);
    assert_eq!(client.hear(), "E:57014 Z:I");
}

#[test]
fn rubbish_in_well_formed_messages_ends_nothing_but_itself() {
    let server = server();
    let mut client = Client::new(&server);
    let mut random = 1_u32;
    let mut next = |below: u32| {
        random = random.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
        (random >> 8) % below
    };
    let words: [&[u8]; 14] = [
        b"select ",
        b"$1",
        b"::int",
        b"'",
        b"\"",
        b"(",
        b")",
        b"begin;",
        b"pg_class",
        b"array[",
        b";",
        b"\0",
        b"\0\0",
        b"S\0",
    ];
    for _ in 0..300 {
        let kind = b"QPBDECHdcfF"[next(11) as usize];
        let body: Vec<u8> = (0..next(8)).flat_map(|_| words[next(14) as usize]).copied().collect();
        let message = [&[kind][..], &(body.len() as u32 + 4).to_be_bytes(), &body].concat();
        let sent = client.0.write_all(&message).and_then(|()| client.0.write_all(b"S\0\0\0\x04"));
        // What is no message ends the connection, with or without a last word; the gateway goes on.
        if sent.is_err() || client.0.take_error().is_ok_and(|error| error.is_some()) {
            client = Client::new(&server);
        }
    }
    assert_eq!(Client::new(&server).query("select 1"), "T D:1 C:SELECT 1 Z:I");
}

#[test]
fn catalog_questions_see_the_tables() {
    let server = server();
    let mut client = Client::new(&server);
    client.query("create table t(a integer primary key)");
    let sql = "select relname from pg_catalog.pg_class where relkind = 'r' order by 1";
    assert_eq!(client.query(sql), "T D:bezant_members D:t C:SELECT 2 Z:I");
    // Also those that only this transaction has made.
    client.query("begin");
    client.query("create table u(a integer)");
    assert_eq!(client.query(sql), "T D:bezant_members D:t D:u C:SELECT 3 Z:T");
    client.query("rollback");
    assert_eq!(client.ask("select format_type($1, null)", &["20"], 0), "1 2 T D:bigint C:SELECT 1 Z:I");
    assert_eq!(client.query("show server_version"), "T D:15.0 C:SHOW Z:I");
    assert_eq!(client.query("select current_user"), "T D:me C:SELECT 1 Z:I");
}

#[test]
fn cursors_show_the_moment_of_their_declaration() {
    let server = server();
    let mut client = Client::new(&server);
    client.query("create table t(a int primary key)");
    client.query("insert into t values (1), (2), (3)");
    assert_eq!(client.query("declare c cursor for select a from t"), "E:25P01 Z:I");
    assert_eq!(client.query("begin; declare c cursor for select a from t order by a"), "C:BEGIN C:DECLARE CURSOR Z:T");
    assert_eq!(client.query("fetch 2 from c"), "T D:1 D:2 C:FETCH 2 Z:T");
    assert_eq!(client.query("delete from t where a = 3"), "C:DELETE 1 Z:T");
    assert_eq!(client.query("fetch c; move backward all in c"), "T D:3 C:FETCH 1 C:MOVE 2 Z:T");
    assert_eq!(client.query("declare c cursor for select 1"), "E:42P03 Z:E");
    assert_eq!(client.query("commit; fetch c"), "C:ROLLBACK E:34000 Z:I");
    // As psycopg does outside of a transaction.
    assert_eq!(client.query("declare \"C\" cursor with hold for select a from t order by a"), "C:DECLARE CURSOR Z:I");
    client.query("delete from t");
    assert_eq!(client.query("fetch forward 2 from \"C\""), "T D:1 D:2 C:FETCH 2 Z:I");
    assert_eq!(client.query("close \"C\""), "C:CLOSE CURSOR Z:I");
    assert_eq!(client.query("close \"C\""), "E:34000 Z:I");
}

#[test]
fn cursors_are_declared_with_parameters_and_described_by_their_name() {
    let server = server();
    let mut client = Client::new(&server);
    client.query("create table t(a int primary key)");
    client.query("insert into t values (1), (2), (3)");
    client.query("begin");
    let declare = "declare c cursor for select a from t where a > $1 order by a";
    assert_eq!(client.ask(declare, &["1"], 0), "1 2 n C:DECLARE CURSOR Z:T");
    client.send(b'D', b"Pc\0");
    client.send(b'S', b"");
    assert_eq!(client.hear(), "T Z:T");
    assert_eq!(client.ask("fetch forward 5 from c", &[], 0), "1 2 T D:2 D:3 C:FETCH 2 Z:T");
    assert_eq!(
        client.query("savepoint s; declare d cursor for values (7); rollback to s"),
        "C:SAVEPOINT C:DECLARE CURSOR C:ROLLBACK Z:T"
    );
    assert_eq!(client.query("fetch prior from c"), "T D:3 C:FETCH 1 Z:T");
    assert_eq!(client.query("fetch d"), "E:34000 Z:E");
}

/// SQLite does one by one what PostgreSQL does in one statement: all of it, or nothing.
#[test]
fn one_statement_may_be_several_to_sqlite() {
    let server = server();
    let mut client = Client::new(&server);
    client.query("create table a(i int primary key)");
    client.query("create table b(i int primary key references a)");
    client.query("create table c(i int references b)");
    assert_eq!(client.query("drop table a, b"), "E:2BP01 Z:I");
    assert_eq!(client.query("drop table a, nowhere"), "E:2BP01 Z:I");
    assert_eq!(client.query("drop table c, nowhere"), "E:42P01 Z:I");
    assert_eq!(client.query("select count(*) from c"), "T D:0 C:SELECT 1 Z:I");
    assert_eq!(client.query("drop table a, b, c; select 1"), "C:DROP TABLE T D:1 C:SELECT 1 Z:I");
    client.query("create table t(i int primary key)");
    assert_eq!(
        client.query("alter table t add column a int default 7, add column b text, add column if not exists i int"),
        "C:ALTER TABLE Z:I"
    );
    assert_eq!(client.query("insert into t values (1) returning *"), "T D:1,7,- C:INSERT 0 1 Z:I");
    assert_eq!(client.query("alter table t drop column a, drop column nothing"), "E:42703 Z:I");
    assert_eq!(client.query("alter table t drop column if exists nothing"), "C:ALTER TABLE Z:I");
    assert_eq!(
        client.query("begin; alter table t drop column a, drop column b; select * from t"),
        "C:BEGIN C:ALTER TABLE T D:1 C:SELECT 1 Z:T"
    );
    assert_eq!(client.query("rollback; select * from t"), "C:ROLLBACK T D:1,7,- C:SELECT 1 Z:I");
    client.query("create index a_of_t on t(a); create index b_of_t on t(lower(b)); create index i_of_t on t(i)");
    assert_eq!(
        client.query("begin; alter table t drop column a, drop column b; rollback"),
        "C:BEGIN C:ALTER TABLE C:ROLLBACK Z:I"
    );
    assert_eq!(client.query("select count(*) from sqlite_schema where type = 'index'"), "T D:3 C:SELECT 1 Z:I");
    assert_eq!(client.query("create or replace view v as select i from t"), "C:CREATE VIEW Z:I");
    assert_eq!(client.query("create or replace view v as select i, a from t"), "C:CREATE VIEW Z:I");
    assert_eq!(client.query("select * from v"), "T D:1,7 C:SELECT 1 Z:I");
    assert_eq!(client.query("create or replace view v as select a from t"), "E:42P16 Z:I");
    assert_eq!(client.query("create or replace view v as select i::text, a from t"), "E:42P16 Z:I");
    assert_eq!(client.query("create or replace view t as select 1"), "E:42809 Z:I");
}

#[test]
fn a_table_may_be_made_of_the_rows_of_a_query() {
    let server = server();
    let mut client = Client::new(&server);
    client.query("create table t(i int primary key, n numeric(5,2), s varchar(3), at timestamptz)");
    client.query("insert into t values (1, 1.50, 'abc', '2024-01-01 00:00'), (2, null, null, null)");
    client.query("set timezone = '<+02>-02'");
    for (sql, wanted) in [
        ("create table a as select i, n, s, at, i / 2.0 as half, 'x' as text, null as nothing from t", "C:SELECT 2"),
        (
            "select i, n, s, half, text, nothing from a order by i",
            "T D:1,1.50,abc,0.50000000000000000000,x,- \
            D:2,-,-,1.00000000000000000000,x,- C:SELECT 2",
        ),
        ("insert into a(i) values ('x')", "E:22P02"),
        ("insert into a(s) values ('abcd')", "E:22001"),
        ("insert into a(i, half) values (1, 1)", "C:INSERT 0 1"),
        ("create table b as with c as (select i from t) select i from c where i > 1 order by i", "C:SELECT 1"),
        ("create table b as select 1 as i", "E:42P07"),
        ("create table if not exists b as select 2 as i", "C:CREATE TABLE AS"),
        ("select i into c from b", "C:SELECT 1"),
        ("select i from b union all select i from c", "T D:2 D:2 C:SELECT 2"),
        ("create table d as values (1, true), (2, false)", "C:SELECT 2"),
        ("select column1 from d where column2", "T D:1 C:SELECT 1"),
        ("create table e as select i from t with no data", "C:CREATE TABLE AS"),
        ("select * from e", "T C:SELECT 0"),
        // In the session's time zone, as it is read.
        ("create table f as select '2024-01-01 00:00'::timestamptz as at", "C:SELECT 1"),
        ("select at = '2024-01-01 00:00' from f", "T D:t C:SELECT 1"),
        ("create table g as select 1 as x, 2 as x", "E:42701"),
        ("create table g as select nosuch from t", "E:42703"),
        ("create table g as select i / 0 as x from t", "E:22012"),
        ("create temporary table g as select 1 as x", "E:0A000"),
        ("select 1 as x into temporary g", "E:0A000"),
        ("create table g as select unixepoch() as x", "E:0A000"),
        ("explain create table g as select 1 as x", "E:0A000"),
        ("explain drop table a, b", "E:0A000"),
        ("select count(*) from a", "T D:3 C:SELECT 1"),
        ("select * from g", "E:42P01"),
    ] {
        assert_eq!(client.query(sql), format!("{wanted} Z:I"), "{sql}");
    }
    assert_eq!(client.ask("create table h as select i + $1 as j from t", &["5"], 0), "1 2 n C:SELECT 2 Z:I");
    assert_eq!(
        client.query("begin; create table k as select j from h; select sum(j) from k; rollback; select j from k"),
        "C:BEGIN C:SELECT 2 T D:13 C:SELECT 1 C:ROLLBACK E:42P01 Z:I"
    );
    assert_eq!(
        client.query("create table k as select j from h; select max(j) from k"),
        "C:SELECT 2 T D:7 C:SELECT 1 Z:I"
    );
}

#[test]
fn a_parameter_may_be_an_array_of_what_is_looked_for() {
    let server = server();
    let mut client = Client::new(&server);
    client.query("create table t(i int primary key, s text, n numeric(5,2), u uuid, d date)");
    client.query("insert into t values (1, 'a,b', 1.50, null, '2024-01-01'), (2, 'c\"', 2, null, null)");
    client.query("insert into t(i) values (3)");
    let mut ask = |sql: &str, value: &str| client.ask(sql, &[value], 0).replace("1 2 T ", "").replace(" Z:I", "");
    assert_eq!(ask("select i from t where i = any($1) order by 1", "{3,1,NULL}"), "D:1 D:3 C:SELECT 2");
    assert_eq!(ask("select i from t where i = any($1::bigint[]) order by 1", "{3,9999999999}"), "D:3 C:SELECT 1");
    assert_eq!(ask("select i from t where s = any($1) order by 1", "{\"a,b\",\"c\\\"\"}"), "D:1 D:2 C:SELECT 2");
    assert_eq!(ask("select i from t where n = any($1) order by 1", "{1.5,2.000}"), "D:1 D:2 C:SELECT 2");
    assert_eq!(ask("select i from t where d = any($1)", "{2024-01-01}"), "D:1 C:SELECT 1");
    assert_eq!(ask("select i from t where i <> all($1) order by 1", "{1}"), "D:2 D:3 C:SELECT 2");
    assert_eq!(ask("select i from t where i <> all($1)", "{1,NULL}"), "C:SELECT 0");
    assert_eq!(ask("select i from t where i = any($1)", "{}"), "C:SELECT 0");
    assert_eq!(ask("delete from t where i = any($1)", "{2}"), "1 2 n C:DELETE 1");
    assert_eq!(ask("select i from t where i = any($1)", "{x}"), "1 E:22P02");
    assert_eq!(ask("select i from t where u = any($1)", "{x}"), "1 2 E:22P02");
    assert_eq!(ask("select $1::int[]", "{1}"), "E:0A000");
    assert_eq!(ask("select i from t where i > any($1)", "{1}"), "E:0A000");
    assert_eq!(
        client.query("select i from t where i = any('{1, 3}') and s = any('{\"a,b\"}'::text[])"),
        "T D:1 C:SELECT 1 Z:I"
    );
    assert_eq!(client.query("select i from t where i = any('{1, y}')"), "E:22P02 Z:I");
    assert_eq!(
        client.query("select 1 = any('{}'), 1 <> all('{}'::int[]), 1 = any('{null}')"),
        "T D:f,t,- C:SELECT 1 Z:I"
    );
}
