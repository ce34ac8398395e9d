//! What holds for PostgreSQL's types: each sentence of `docs/postgres.md` about types and expressions has a test here.

mod support;

use std::io::{Read, Write};
use support::{Client, connect, server};

/// What a statement gives: its rows, each in brackets, or its SQLSTATE.
fn ask(client: &mut Client, sql: &str) -> String {
    let heard = client.query(sql);
    let parts = heard.split(' ').filter(|part| !matches!(*part, "T" | "Z:I" | "Z:T" | "Z:E"));
    let mut words: Vec<String> = parts.map(Into::into).collect();
    // The tag has blanks, and so may values: what counts is between the first D and the C.
    if let Some(error) = words.iter().find(|word| word.starts_with("E:")) {
        return error[2..].into();
    }
    let end = words.iter().rposition(|word| word.starts_with("C:")).unwrap_or(words.len());
    words.truncate(end);
    words.join(" ").split("D:").skip(1).map(|row| format!("[{}]", row.trim_end())).collect()
}

#[track_caller]
fn all(client: &mut Client, cases: &[(&str, &str)]) {
    for (sql, wanted) in cases {
        assert_eq!(ask(client, sql), *wanted, "{sql}");
    }
}

fn alone(cases: &[(&str, &str)]) {
    let server = server();
    all(&mut Client::new(&server), cases);
}

#[test]
fn integers_keep_to_their_range() {
    alone(&[
        ("select 2147483647 + 1", "22003"),
        ("select 2147483647::bigint + 1", "[2147483648]"),
        ("select 'abc'::int", "22P02"),
        ("select 3.7::int, 2.5::int, 2.5::float8::int", "[4,3,2]"),
        ("select -7 / 2, -7 % 3, 5::numeric / 2", "[-3,-1,2.5000000000000000]"),
        ("select 1 / 0", "22012"),
        ("create table t(s smallint, i integer, b bigint)", ""),
        ("insert into t(s) values (99999)", "22003"),
        ("insert into t(i) values ('x')", "22P02"),
        ("insert into t(i) values (true)", "42804"),
        ("insert into t(i) values (3.7) returning i", "[4]"),
    ]);
}

#[test]
fn truth_is_a_type() {
    alone(&[
        ("create table t(id integer, ok boolean)", ""),
        ("insert into t values (1, true), (2, 'no'), (3, null)", ""),
        ("select id from t where ok", "[1]"),
        ("select id from t where ok = 'true'", "[1]"),
        ("select id from t where not ok", "[2]"),
        ("select id from t where ok is not true order by id", "[2][3]"),
        ("select ok, ok::text, 1 = 1, 2::boolean from t where id = 1", "[t,true,t,t]"),
        ("insert into t values (4, 1)", "42804"),
        ("insert into t values (4, 'maybe')", "22P02"),
        ("select 1 where 1", "42804"),
    ]);
}

#[test]
fn decimals_are_exact() {
    alone(&[
        ("create table t(n numeric, m numeric(10,2))", ""),
        ("insert into t values (9007199254740993.01, 1.005), (12345678901234567890123.45, 2), (1.50, 3)", ""),
        ("select n, m from t order by n", "[1.50,3.00][9007199254740993.01,1.01][12345678901234567890123.45,2.00]"),
        ("select n from t where n = 1.5", "[1.50]"),
        ("select 0.1 + 0.2, 1.0 = 1.00, 1e3", "[0.3,t,1000]"),
        ("select count(distinct x) from (values (1.0), (1.00), (2)) as v(x)", "[2]"),
        ("select sum(m), avg(m), max(n) from t", "[6.01,2.0033333333333333,12345678901234567890123.45]"),
        ("insert into t(m) values (123456789.5)", "22003"),
        ("select 'NaN'::numeric", "0A000"),
    ]);
}

#[test]
fn floating_point_numbers_are_shown_shortest() {
    alone(&[
        (
            "select 0.1::float8 + 0.2::float8, 1e20::float8, 0.1::real, 123456789.0::real",
            "[0.30000000000000004,1e+20,0.1,1.2345679e+08]",
        ),
        ("select 1e300::float8 * 1e300::float8", "22003"),
        ("select 'NaN'::float8", "0A000"),
        (
            "select timestamp(3) '2024-01-01 00:00:00.1235', '00:59:59.96'::time(1)",
            "[2024-01-01 00:00:00.124,01:00:00]",
        ),
        ("select 'infinity'::timestamp", "0A000"),
    ]);
}

#[test]
fn texts_keep_to_their_length_and_their_case() {
    alone(&[
        ("create table t(v varchar(5), c char(3))", ""),
        ("insert into t values ('abcdef', 'a')", "22001"),
        ("insert into t values ('abcde', 'a')", ""),
        ("select v, c || '|', c = 'a  ', length(c) from t", "[abcde,a|,t,1]"),
        ("select 'abcdef'::varchar(2)", "[ab]"),
        ("select 'abc' like 'A%', 'abc' ilike 'A%', 'a_c' like 'a\\_c', 'abc' = 'ABC'", "[f,t,t,f]"),
        ("select x from (values ('b'), ('B'), ('a')) as v(x) order by x", "[B][a][b]"),
        ("select 'a' || 1, 1::text || 'a'", "[a1,1a]"),
        ("select 1 || 2", "42883"),
    ]);
}

#[test]
fn strings_are_read_as_postgresql_reads_them() {
    alone(&[
        ("select E'a\\'b\\101', 'a'\n'b', $$it's$$, $t$a$$b$t$", "[a'bA,ab,it's,a$$b]"),
        ("select 1 /* a /* b */ c */ + 1", "[2]"),
        ("select 'a\\b'", "[a\\b]"),
        ("select U&'x'", "0A000"),
        ("select 0x1F", "42601"),
    ]);
}

#[test]
fn bytes_are_bytes() {
    alone(&[
        ("create table t(b bytea)", ""),
        ("insert into t values ('\\x00ff'), ('a\\000')", ""),
        ("select b, length(b) from t order by b", "[\\x00ff,2][\\x6100,2]"),
        ("select count(*) from t where b = '\\x00FF'", "[1]"),
        ("select '\\x0'::bytea", "22023"),
    ]);
}

#[test]
fn dates_and_times_are_no_texts() {
    alone(&[
        ("select '2024-01-01'::date + 1, date '2024-03-01' - date '2024-02-01'", "[2024-01-02,29]"),
        ("select date '2024-01-31' + interval '1 month'", "[2024-02-29 00:00:00]"),
        ("select 'not a date'::date", "22007"),
        ("select '2024-02-30'::date", "22008"),
        ("create table t(id integer, d date, at timestamptz, plain timestamp, c time)", ""),
        ("insert into t(id, d) values (1, 'not a date')", "22007"),
        ("insert into t values (1, 'Feb 28 2024', '2024-02-29 12:30+02', '2024-02-29', '1:02')", ""),
        ("select d, at, plain, c from t", "[2024-02-28,2024-02-29 10:30:00+00,2024-02-29 00:00:00,01:02:00]"),
        ("select id from t where at = '2024-02-29 05:30-05'", "[1]"),
        ("select at < '2024-02-29 10:30:00.5+00', d < plain, extract(year from at) from t", "[t,t,2024]"),
        ("delete from t where at > now() - '7 days'::interval", ""),
        ("select count(*) from t", "[1]"),
        ("select now() - '7 days'::interval < now(), now() - interval '1 day' > '2020-01-01'", "[t,t]"),
    ]);
}

#[test]
fn the_time_zone_is_utc_or_a_fixed_offset() {
    alone(&[
        ("select '2024-06-01 12:00+02'::timestamptz", "[2024-06-01 10:00:00+00]"),
        ("set timezone = '<+02>-02'", ""),
        (
            "select '2024-06-01 12:00+02'::timestamptz, '2024-06-01 12:00'::timestamptz::text",
            "[2024-06-01 12:00:00+02,2024-06-01 12:00:00+02]",
        ),
        ("select '2024-06-01 23:30+00'::timestamptz::date", "[2024-06-02]"),
        ("set timezone = 'Europe/Berlin'", "22023"),
        ("show timezone", "[<+02>-02]"),
        ("select '2024-06-01 12:00'::timestamp at time zone 'UTC'", "[2024-06-01 14:00:00+02]"),
        ("select now() at time zone 'Europe/Berlin'", "22023"),
        ("create table t(id integer, at timestamp default now())", ""),
        ("insert into t(id) values (1)", ""),
        ("select at = now() at time zone 'UTC' or at < now() at time zone 'UTC' from t", "[t]"),
    ]);
}

/// A client that begins in a zone whose clocks nobody knows is told so at once.
#[test]
fn a_connection_cannot_begin_in_an_unknown_time_zone() {
    let server = server();
    let mut stream = connect(&server);
    let body = "\0\x03\0\0user\0me\0TimeZone\0Europe/Berlin\0\0";
    stream.write_all(&[&(body.len() as u32 + 4).to_be_bytes(), body.as_bytes()].concat()).unwrap();
    let mut answer = Vec::new();
    let _ = stream.read_to_end(&mut answer);
    assert!(String::from_utf8_lossy(&answer).contains("22023"));
    let mut client = Client::with_options(&server, "-c timezone=-05:30");
    assert_eq!(client.query("select '2024-01-01'::timestamptz"), "T D:2024-01-01 00:00:00+05:30 C:SELECT 1 Z:I");
}

#[test]
fn intervals_are_kept_part_by_part_and_compared_by_their_length() {
    alone(&[
        (
            "select '1 year 2 days 03:04:05.5'::interval, interval '90 minutes', interval '1 day' * 2",
            "[1 year 2 days 03:04:05.5,01:30:00,2 days]",
        ),
        ("select timestamp '2024-01-02' - timestamp '2024-01-01 12:00'", "[12:00:00]"),
        ("select '1 day'::interval = '24 hours'::interval, '1 mon' > interval '29 days'", "[t,t]"),
        ("create table t(id integer, i interval unique default '1 day', n interval)", ""),
        ("insert into t values (1, '1 mon', '0'), (2, '-1 hour', '3 days'), (3, '1 year 1 sec', null)", ""),
        ("insert into t(id) values (4) returning i", "[1 day]"),
        ("insert into t(id, i) values (5, '30 days')", "23505"),
        ("insert into t(id, i) values (5, 'soon')", "22007"),
        ("select i from t order by i desc", "[1 year 00:00:01][1 mon][1 day][-01:00:00]"),
        ("select id from t where i = '720 hours' or n between '2 days' and '1 week' order by id", "[1][2]"),
        ("select max(i), min(i), sum(n), avg(n) from t", "[1 year 00:00:01,-01:00:00,3 days,1 day 12:00:00]"),
        (
            "select count(distinct x), sum(x) from (values (interval '1 mon'), ('30 days'), ('1 hour')) v(x)",
            "[2,1 mon 30 days 01:00:00]",
        ),
        (
            "select date_trunc('hour', interval '1 day 02:03:04'), date_trunc('second', time '12:13:14.5')",
            "[1 day 02:00:00,12:13:14]",
        ),
        ("select date_trunc('week', interval '1 day')", "0A000"),
        ("update t set i = i * 2, n = time '01:02' where id = 4 returning i, n", "[2 days,01:02:00]"),
        ("alter table t alter n type text", ""),
        ("select n || '' from t where id = 2", "[3 days]"),
        ("alter table t alter n type interval using n::interval", ""),
        ("select to_json(n), extract(epoch from n) from t where id = 2", "[\"3 days\",259200.000000]"),
        ("select column_default from information_schema.columns where column_name = 'i'", "['1 day']"),
    ]);
}

#[test]
fn defaults_are_told_in_words_of_postgresqls() {
    alone(&[
        (
            "create table t(id uuid default gen_random_uuid(), a timestamp(3) default now(),
             b timestamptz default now(), c interval default '1 mon', d boolean default true)",
            "",
        ),
        (
            "select column_default from information_schema.columns where table_name = 't' order by ordinal_position",
            "[gen_random_uuid()][CURRENT_TIMESTAMP][CURRENT_TIMESTAMP]['1 mon'][true]",
        ),
    ]);
}

#[test]
fn moments_have_as_many_digits_of_a_second_as_were_asked_for() {
    alone(&[
        ("create table t(id serial primary key, a timestamp(3) default '2024-01-01 1:2:3.4567', z timestamptz(0))", ""),
        (
            "insert into t(z) values ('1999-12-31 23:59:59.5+00') returning a, z",
            "[2024-01-01 01:02:03.457,1999-12-31 23:59:59+00]",
        ),
        ("update t set a = '2024-01-01 00:00:00.9996'", ""),
        ("select a, a = '2024-01-01 00:00:01' from t", "[2024-01-01 00:00:01,t]"),
        ("alter table t alter a type timestamp(6), alter z type timestamp(1)", ""),
        ("update t set a = '2024-01-01 00:00:00.123456', z = '2024-01-01 00:00:00.16'", ""),
        ("select a, z from t", "[2024-01-01 00:00:00.123456,2024-01-01 00:00:00.2]"),
        (
            "select format_type(atttypid, atttypmod), atttypmod from pg_attribute where attname = 'z'",
            "[timestamp(1) without time zone,1]",
        ),
        ("select datetime_precision from information_schema.columns where column_name in ('a', 'z')", "[6][1]"),
        ("alter table t alter a type timestamp(3)", ""),
        ("select a from t", "[2024-01-01 00:00:00.123]"),
        ("create table n(id integer, at timestamp(3) not null default current_timestamp)", ""),
        ("insert into n values (1)", ""),
        ("select at < now(), length(to_char(at, 'MS')) from n", "[t,3]"),
    ]);
}

#[test]
fn uuids_and_json_have_one_form() {
    alone(&[
        ("create table t(u uuid, j json, b jsonb)", ""),
        (
            "insert into t values ('{A0EEBC999C0B4EF8BB6D6BB9BD380A11}',
                '{\"b\":1,  \"a\":2}', '{\"b\":1,\"a\":2,\"b\":3}')",
            "",
        ),
        ("select u from t where u = 'a0eebc99-9c0b-4ef8-bb6d-6bb9bd380a11'", "[a0eebc99-9c0b-4ef8-bb6d-6bb9bd380a11]"),
        ("select j, b from t", "[{\"b\":1,  \"a\":2},{\"a\": 2, \"b\": 3}]"),
        ("insert into t(u) values ('zz')", "22P02"),
        ("insert into t(j) values ('{')", "22P02"),
        ("select b = b from t", "0A000"),
        ("select j = j from t", "42883"),
    ]);
}

#[test]
fn nulls_come_last_unless_said_otherwise() {
    alone(&[
        ("select x from (values (1), (null), (2)) as v(x) order by x", "[1][2][-]"),
        ("select x from (values (1), (null), (2)) as v(x) order by x desc", "[-][2][1]"),
        ("select x from (values (1), (null), (2)) as v(x) order by x nulls first", "[-][1][2]"),
        ("select greatest(1, null, 3), least('b', 'a'), coalesce(null, 1, 2.5)", "[3,a,1]"),
    ]);
}

#[test]
fn literals_take_the_type_of_what_is_beside_them() {
    let server = server();
    let mut client = Client::new(&server);
    all(
        &mut client,
        &[
            ("select '1' = 1, '2024-01-01' = date '2024-01-01', '10' < '9'", "[t,t,t]"),
            ("select 1 = 'abc'", "22P02"),
            ("select 'a' + 1", "22P02"),
            ("select true + 1", "42883"),
            ("select current_date + '7'", "42725"),
            ("select 1 union select '2' order by 1", "[1][2]"),
            ("select 1 union select true", "42804"),
            ("select case when true then 1 else 2.5 end", "[1]"),
            ("create table t(id integer, n numeric, at timestamptz, t text)", ""),
        ],
    );
    // And parameters do: of integer, numeric, timestamptz, text, bigint.
    let types =
        client.types("update t set n = $2 where id = $1 and at < $3 and t like $4 returning id, n, 1 = 1, $5::int8");
    assert_eq!(types, Ok((vec![23, 1700, 1184, 25, 20], vec![23, 1700, 16, 20])));
    assert_eq!(
        client.types("select avg(id), count(*), sum(id), now(), 'x' from t").unwrap().1,
        [1700, 20, 20, 1184, 25]
    );
    assert_eq!(client.types("select $1 is null").unwrap().0, [25]);
}

#[test]
fn what_is_not_understood_is_refused() {
    alone(&[
        ("select array[1]", "0A000"),
        ("select 1 = any('{1}')", "[t]"),
        ("select '{1}'::int[]", "0A000"),
        ("select 1 = any(array[1, 2])", "[t]"),
        ("select 'a' ~ '(?=b)'", "0A000"),
        ("select to_number('1', '9')", "0A000"),
        ("select pg_advisory_lock(7)", "0A000"),
        ("select pg_sleep(1)", "0A000"),
        ("select nosuch(1)", "42883"),
        ("select * from nosuch", "42P01"),
        ("select x from (values (1)) as v(y)", "42703"),
        ("select x from (select 1 as x, 2 as x) as v", "42702"),
        ("create table t(a integer[])", "0A000"),
        ("create table t(a nosuch)", "42704"),
        ("create trigger t after insert on t begin select 1; end", "0A000"),
        ("replace into t values (1)", "42601"),
    ]);
}

/// What is around a query does not change what it sorts and counts.
#[test]
fn queries_are_sorted_by_the_types_that_they_have() {
    alone(&[
        ("create table t(i integer)", ""),
        ("insert into t values (10), (9), (100)", ""),
        ("create table s(x text, n numeric)", ""),
        ("insert into s select i, i from t order by 1 limit 1", ""),
        ("select x, n from s", "[9,9]"),
        ("select 9.0 in (select i from t order by i limit 1), 10.0 in (select i from t order by i limit 1)", "[t,f]"),
        ("(select i from t order by i limit 1) union all select 2.5 order by 1", "[2.5][9]"),
        ("select coalesce((select i from t order by i desc limit 1), 0.5)", "[100]"),
        ("insert into s(x) values (10), (9) returning x", "[10][9]"),
    ]);
}

#[test]
fn what_is_not_grouped_is_refused() {
    alone(&[
        ("create table t(id integer primary key, k text, v integer)", ""),
        ("insert into t values (1, 'a', 1), (2, 'a', 2), (3, 'b', 3)", ""),
        ("select k, v from t group by k", "42803"),
        ("select k, sum(v) from t", "42803"),
        ("select k, sum(v), count(*) from t group by k order by k", "[a,3,2][b,3,1]"),
        ("select k || '!', sum(v) + 1 from t group by k || '!' order by 1", "[a!,4][b!,4]"),
        ("select id, v, count(*) from t group by id order by id limit 1", "[1,1,1]"),
        ("select k from t group by k having sum(v) > 2 order by max(v)", "[a][b]"),
        ("select k from t group by k order by v", "42803"),
        ("select sum(v) from t where sum(v) > 1", "42803"),
        ("select sum(sum(v)) from t", "42803"),
        ("select least(min(v), greatest(v, 2)) from t group by greatest(v, 2) order by 1", "[1][3]"),
        ("select min(v) + v from t group by greatest(v, 2)", "42803"),
        ("select min(v + id) from t group by v order by 1", "[2][4][6]"),
        (
            "select (select count(*) from t y where y.id > x.id) c, count(*) from t x
             group by (select count(*) from t y where y.id > x.id) order by 1",
            "[0,1][1,1][2,1]",
        ),
        ("select k, sum(sum(v)) over (order by k) from t group by k order by k", "[a,3][b,6]"),
        ("select x.k, (select max(y.v) from t y where y.k = x.k) from t x group by x.k order by 1", "[a,2][b,3]"),
        ("select id from t limit -1", "2201W"),
        ("select id from t offset -1", "2201X"),
        ("select (select id from t)", "21000"),
        ("select (select id from t where id = 2), (select id from t where id = 9), (select max(id) from t)", "[2,-,3]"),
        ("select (select y.v from t y where y.id = x.id) from t x order by 1", "[1][2][3]"),
        ("select (select v from t order by v desc limit 1)", "[3]"),
    ]);
}

#[test]
fn a_table_that_is_referred_to_is_not_dropped() {
    alone(&[
        ("create table p(id integer primary key)", ""),
        ("create table c(p integer references p, id integer primary key references c)", ""),
        ("drop table p", "2BP01"),
        ("drop table p cascade", "2BP01"),
        ("drop table c", ""),
        ("drop table p", ""),
    ]);
}

#[test]
fn functions_of_texts_and_bytes_are_postgresqls() {
    alone(&[
        (
            "select split_part('a,b,c', ',', -1), reverse('abc'), initcap('a bc'), translate('abc', 'ab', 'x')",
            "[c,cba,A Bc,xc]",
        ),
        ("select repeat('ab', 2), repeat('x', -1) = '', repeat(null, 2) is null", "[abab,t,t]"),
        ("select repeat('x', 1000000000)", "54000"),
        ("select split_part('a', ',', 0)", "22023"),
        ("select md5('abc')", "[900150983cd24fb0d6963f7d28e17f72]"),
        ("select encode(sha256('abc'), 'hex')", "[ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad]"),
        ("select encode('abc', 'base64'), decode('YWJj', 'base64') = 'abc'", "[YWJj,t]"),
        ("select sqrt(2), sqrt(-1)", "2201F"),
        ("select sqrt(2)", "[1.4142135623730951]"),
        ("select sqrt(2.5)", "0A000"),
        ("create table t(id uuid primary key)", ""),
        ("insert into t values (gen_random_uuid()), (uuid_generate_v4())", ""),
        ("select count(*), count(distinct id) from t where substr(id::text, 15, 1) = '4'", "[2,2]"),
    ]);
}

#[test]
fn functions_of_moments_are_postgresqls() {
    alone(&[
        (
            "select to_char(timestamp '2024-02-29 13:05:06.5', 'FMMonth DDth, YYYY HH12:MI:SS.MS AM')",
            "[February 29th, 2024 01:05:06.500 PM]",
        ),
        ("select to_char(timestamptz '2024-02-29 13:05:06+00', 'TZ')", "0A000"),
        ("select to_char(1, '9'), to_char(1, 'RN')", "0A000"),
        ("select to_char(1, '9')", "[ 1]"),
        ("select to_date('2024', 'YYYY')", "0A000"),
        ("set timezone = '<+02>-02'", ""),
        ("select to_char(timestamptz '2024-02-29 23:05:06+00', 'YYYY-MM-DD HH24 TZH')", "[2024-03-01 01 +02]"),
        ("select age(timestamp '2024-03-01', '2023-01-31'), age(current_date)", "[1 year 1 mon 1 day,00:00:00]"),
        ("select make_date(2024, 2, 29), make_timestamp(2024, 2, 29, 1, 2, 3.5)", "[2024-02-29,2024-02-29 01:02:03.5]"),
        ("select make_date(2023, 2, 29)", "22008"),
        ("select to_timestamp(0.5)", "[1970-01-01 02:00:00.5+02]"),
        ("select date_part('hour', time '12:30'), extract(day from interval '3 days')", "[12,3]"),
    ]);
}

#[test]
fn functions_of_sqlite_may_be_called() {
    alone(&[
        ("select hex('a'), typeof(1.5), json_extract('{\"a\":[1,2]}', '$.a[1]')", "[61,text,2]"),
        ("select sql is not null from sqlite_schema where name = 'bezant_members'", "[t]"),
    ]);
}

#[test]
fn a_serial_is_the_primary_key_and_gives_no_number_twice() {
    alone(&[
        ("create table t(id serial primary key, serial text)", ""),
        ("insert into t(serial) values ('a'), ('b') returning id", "[1][2]"),
        ("delete from t", ""),
        ("insert into t(serial) values ('c') returning id, serial", "[3,c]"),
        ("create table u(id integer, n serial)", "0A000"),
        ("create table v(id bigint generated by default as identity primary key, a integer)", ""),
        ("insert into v(a) values (1) returning id", "[1]"),
    ]);
}

/// Whoever writes, with whatever words: the tables themselves keep wrong values out.
#[test]
fn checks_keep_wrong_values_out() {
    let server = server();
    let mut client = Client::new(&server);
    let columns = "b boolean, i integer, s smallint, n numeric, f float8, v varchar(2), d date, c time, at timestamp, \
                   z timestamptz, u uuid, y bytea, j json";
    client.query(&format!("create table t({columns})"));
    let sql = ask(&mut client, "select sql from sqlite_schema where name = 't'");
    let connection = rusqlite::Connection::open_in_memory().unwrap();
    bezant_sql::add_functions(&connection).unwrap();
    connection.execute_batch(&sql[1..sql.len() - 1]).unwrap();
    let insert =
        |column: &str, value: &str| connection.execute(&format!("insert into t({column}) values ({value})"), []);
    for (column, right, wrong) in [
        ("b", "1", "7"),
        ("i", "-5", "1.5"),
        ("i", "2147483647", "2147483648"),
        ("s", "-32768", "40000"),
        ("n", "'1.50'", "'1e5'"),
        ("f", "1", "'x'"),
        ("v", "'ab'", "'abc'"),
        ("d", "'2024-02-29'", "'2024-02-30'"),
        ("c", "'24:00:00'", "'noon'"),
        ("at", "'2024-02-29 23:59:59.999999'", "'2024-02-29T10:00:00'"),
        ("z", "'2024-02-29 23:59:59+00'", "'2024-02-29 23:59:59+02'"),
        ("u", "'a0eebc99-9c0b-4ef8-bb6d-6bb9bd380a11'", "'A0EEBC99-9C0B-4EF8-BB6D-6BB9BD380A11'"),
        ("y", "x'00'", "'text'"),
        ("j", "'{}'", "'{'"),
    ] {
        assert_eq!(insert(column, right), Ok(1), "{column} {right}");
        assert_eq!(insert(column, "null"), Ok(1), "{column}");
        assert!(insert(column, wrong).is_err(), "{column} {wrong}");
    }
}

#[test]
fn a_column_keeps_its_type_through_queries() {
    let server = server();
    let mut client = Client::new(&server);
    all(
        &mut client,
        &[
            ("create table t(id integer primary key, n numeric(10,2), d date, ok boolean)", ""),
            ("insert into t values (1, 2.5, '2024-01-01', true)", ""),
            ("create view w as select id, n * 2 as twice, not ok as no from t", ""),
            ("select * from w", "[1,5.00,f]"),
        ],
    );
    assert_eq!(client.types("select * from w").unwrap().1, [23, 1700, 16]);
    assert_eq!(client.types("with c as (select max(d) as d from t) select d from c").unwrap().1, [1082]);
    assert_eq!(client.types("select n from t union select 1").unwrap().1, [1700]);
    assert_eq!(client.types("select (select d from t), exists (select 1)").unwrap().1, [1082, 16]);
}

/// A statement is never executed by what the tables were.
#[test]
fn a_stale_schema_never_decides() {
    let server = server();
    let (mut one, mut other) = (Client::new(&server), Client::new(&server));
    one.query("create table t(a integer)");
    assert_eq!(one.query("insert into t values ('7')"), "C:INSERT 0 1 Z:I");
    other.query("drop table t");
    other.query("create table t(a text)");
    assert_eq!(one.query("insert into t values ('7') returning a || '!'"), "T D:7! C:INSERT 0 1 Z:I");
    // Not even for an error.
    assert_eq!(one.query("select b from t"), "E:42703 Z:I");
    other.query("alter table t add column b integer");
    assert_eq!(one.query("select b from t"), "T D:- C:SELECT 1 Z:I");
    // In a transaction that has begun it is a conflict, found when it ends.
    one.query("begin");
    assert_eq!(one.query("select a from t"), "T D:7 C:SELECT 1 Z:T");
    other.query("alter table t add column c integer");
    assert_eq!(one.query("insert into t(a) values ('8')"), "C:INSERT 0 1 Z:T");
    assert_eq!(one.query("commit"), "E:40001 Z:I");
    one.query("begin");
    assert_eq!(one.query("select nosuch from t"), "E:42703 Z:E");
    one.query("rollback");
}

/// Nor are values ever of other types than those that the client was told.
#[test]
fn a_description_holds_or_the_statement_is_refused() {
    let server = server();
    let (mut one, mut other) = (Client::new(&server), Client::new(&server));
    one.query("create table t(a integer)");
    let execute = |client: &mut Client| {
        client.send(b'B', b"\0\0\0\0\0\0\0\0");
        client.send(b'E', b"\0\0\0\0\0");
        client.send(b'S', b"");
        client.hear()
    };
    let sql = "insert into t values (7) returning a";
    assert_eq!(one.types(sql), Ok((vec![], vec![23])));
    assert_eq!(execute(&mut one), "2 D:7 C:INSERT 0 1 Z:I");
    other.query("drop table t");
    other.query("create table t(a numeric)");
    assert_eq!(execute(&mut one), "2 E:0A000 Z:I");
    assert_eq!(one.query("select count(*) from t"), "T D:0 C:SELECT 1 Z:I");
}

#[test]
fn a_transaction_sees_the_tables_that_it_makes() {
    let server = server();
    let (mut one, mut other) = (Client::new(&server), Client::new(&server));
    one.query("begin");
    assert_eq!(one.query("create table t(a numeric)"), "C:CREATE TABLE Z:T");
    assert_eq!(one.query("insert into t values (1.50) returning a"), "T D:1.50 C:INSERT 0 1 Z:T");
    assert_eq!(one.query("savepoint s"), "C:SAVEPOINT Z:T");
    assert_eq!(one.query("alter table t add column b boolean"), "C:ALTER TABLE Z:T");
    assert_eq!(one.query("select b from t"), "T D:- C:SELECT 1 Z:T");
    assert_eq!(one.query("rollback to s"), "C:ROLLBACK Z:T");
    assert_eq!(one.query("select b from t"), "E:42703 Z:E");
    assert_eq!(one.query("rollback to s"), "C:ROLLBACK Z:T");
    assert_eq!(one.query("commit"), "C:COMMIT Z:I");
    assert_eq!(other.query("select a + 1 from t"), "T D:2.50 C:SELECT 1 Z:I");
    // So do statements that come in one message.
    let both = "create table u(d date); insert into u values ('2024-01-01'); select d + 1 from u";
    assert!(other.query(both).contains("D:2024-01-02"));
    assert_eq!(one.query("select d - 1 from u"), "T D:2023-12-31 C:SELECT 1 Z:I");
}

#[test]
fn functions_are_tables_too() {
    alone(&[
        ("select * from lower('ABC')", "[abc]"),
        ("select x.y from abs(-3) as x(y)", "[3]"),
        ("select * from current_schema()", "[public]"),
        ("select s from current_schema as s", "[public]"),
        ("select * from count(1)", "42803"),
        ("create table t(a integer)", ""),
        ("insert into t select g from generate_series(1, 3) g", ""),
        ("select a, l from t, lower('X') l order by a", "[1,x][2,x][3,x]"),
        ("select * from t, generate_series(1, t.a) g", "0A000"),
        ("select a, (select sum(g) from generate_series(1, a) g) from t order by a", "[1,1][2,3][3,6]"),
        ("select generate_series(1, 3)", "0A000"),
    ]);
}

#[test]
fn a_series_has_the_type_of_its_beginning_and_its_end() {
    alone(&[
        ("select * from generate_series(1, 10, 4)", "[1][5][9]"),
        ("select * from generate_series(3, 1, -1) as g(n) where n <> 2", "[3][1]"),
        ("select * from generate_series(1, 0)", ""),
        ("select * from generate_series(1, null)", ""),
        ("select * from generate_series(1, 3, 0)", "22023"),
        (
            "select * from generate_series(9223372036854775806, 9223372036854775807)",
            "[9223372036854775806][9223372036854775807]",
        ),
        (
            "select * from generate_series(-9223372036854775807, -9223372036854775808, -1::bigint)",
            "[-9223372036854775807][-9223372036854775808]",
        ),
        ("select * from generate_series(1.1, 2.5, 0.7)", "[1.1][1.8][2.5]"),
        (
            "select d::date from generate_series(date '2024-01-31', '2024-03-31', '1 month') d",
            "[2024-01-31][2024-02-29][2024-03-29]",
        ),
        (
            "select * from generate_series('2024-01-01 12:00'::timestamp, '2024-01-01', '-6 hours')",
            "[2024-01-01 12:00:00][2024-01-01 06:00:00][2024-01-01 00:00:00]",
        ),
        ("select * from generate_series('a', 'b')", "42725"),
        ("select count(*) from generate_series(1, 1000000000)", "57014"),
    ]);
}

#[test]
fn tables_are_emptied_together() {
    alone(&[
        ("create table parent(id serial primary key)", ""),
        ("create table child(id integer primary key, p integer references parent(id))", ""),
        ("insert into parent default values returning id", "[1]"),
        ("insert into child values (1, 1)", ""),
        ("truncate parent", "0A000"),
        ("truncate parent, child", ""),
        ("select (select count(*) from parent) + (select count(*) from child)", "[0]"),
        ("insert into parent default values returning id", "[2]"),
        ("insert into child values (1, 2)", ""),
        ("truncate parent restart identity cascade", ""),
        ("select (select count(*) from parent) + (select count(*) from child)", "[0]"),
        ("insert into parent default values returning id", "[1]"),
        ("truncate nowhere", "42P01"),
    ]);
}

#[test]
fn an_index_has_a_name_even_if_nobody_gives_it_one() {
    alone(&[
        ("create table t(k text, v integer)", ""),
        ("create index on t(k)", ""),
        ("create index on t(k)", ""),
        ("create unique index on t(lower(k), lower(k), v + 1)", ""),
        ("drop index t_k_idx, t_k_idx1, t_lower_lower1_expr_idx", ""),
        ("drop index t_k_idx", "42704"),
        ("comment on table t is 'it''s'", ""),
        ("comment on column t.v is null", ""),
        ("comment on column t.w is 'x'", "42703"),
        ("comment on table nowhere is 'x'", "42P01"),
        ("comment on database postgres is 'x'", "0A000"),
        ("alter table t add constraint \"of V\" check (v > 0), add unique (k)", ""),
        ("comment on constraint \"of V\" on t is 'it''s'", ""),
        ("COMMENT ON CONSTRAINT t_k_key ON public.t IS null", ""),
        ("comment on constraint nosuch on t is 'x'", "42704"),
        ("comment on constraint t_k_key on nowhere is 'x'", "42P01"),
        ("comment on constraint t_k_key on t", "42601"),
        // The key of what numbers itself has the name that it was given, too.
        ("create table s(id serial, constraint \"Key\" primary key (id))", ""),
        ("comment on constraint \"Key\" on s is 'x'", ""),
        ("comment on constraint s_pkey on s is 'x'", "42704"),
        ("insert into s values (1)", ""),
        ("insert into s values (1) on conflict on constraint \"Key\" do nothing", ""),
        ("insert into s default values returning id", "[2]"),
        ("select conname from pg_constraint where contype = 'p' and conrelid = 's'::regclass", "[Key]"),
    ]);
}

/// Nothing is locked, whatever stands before the word.
#[test]
fn locks_are_left_out() {
    alone(&[
        ("create table t(i integer)", ""),
        ("insert into t values (1)", ""),
        ("select i from t for update of t nowait", "[1]"),
        ("select 1 for update", "[1]"),
        ("with a as (select i from t for share) select 2 as b for no key update skip locked", "[2]"),
        ("select i from t for key share", "[1]"),
        ("select 1 for key", "42601"),
        ("select 1 for no key share", "42601"),
        ("update t set i = 2 for update", "42601"),
        ("select substring('abc' from 2 for 1)", "[b]"),
    ]);
}

#[test]
fn distinct_on_keeps_the_first_row() {
    alone(&[
        ("create table t(id integer primary key, k text, n numeric)", ""),
        ("insert into t values (1, 'a', 1.0), (2, 'a', 2), (3, 'b', 1.00), (4, null, 3)", ""),
        ("select distinct on (k) k, id from t order by k, id desc", "[a,2][b,3][-,4]"),
        ("select distinct on (q) k as q, id from t order by q desc, 2 limit 2", "[-,4][b,3]"),
        ("select distinct on (n) id from t order by n, id", "[1][2][4]"),
        ("select distinct on (k) k, count(*) from t group by k, n order by k, n", "[a,1][b,1][-,1]"),
        ("select distinct on (k) k from t union all select 'z' order by 1", "[a][b][z][-]"),
        ("select distinct on (k) k, id from t order by id", "42P10"),
        ("select distinct on (k, n) k, id from t order by k, id", "42P10"),
        ("select distinct on (2) k from t", "42P10"),
    ]);
}

#[test]
fn rows_of_a_write_are_selected() {
    alone(&[
        ("create table t(id integer primary key, k text)", ""),
        ("with x as (insert into t values (1, 'a'), (2, 'b') returning *) select k as key, id from x", "[a,1][b,2]"),
        ("with x as (update t set k = 'c' where id = 1 returning id + 1 as i, k) select x.* from x", "[2,c]"),
        ("with a as (select 2 as i), x as (delete from t using a where id = i returning k) select y.k from x y", "[b]"),
        ("with x as (delete from t returning id) select count(*) from x", "0A000"),
        ("with x as (delete from t returning id) select id from x where id > 1", "0A000"),
        ("with x as (delete from t returning id) select k from x", "42703"),
        ("with x as (delete from t) select * from x", "0A000"),
        ("select * from t", "[1,c]"),
    ]);
}

#[test]
fn comparisons_with_all_rows_know_what_is_not_known() {
    alone(&[
        ("create table t(id integer, n numeric)", ""),
        ("insert into t values (1, 1.0), (2, 2), (3, null)", ""),
        ("select id from t where id > all(select n from t where n < 3) order by id", "[3]"),
        ("select id from t where id >= any(select n from t) order by id", "[1][2][3]"),
        ("select 5 > all(select n from t), 5 > any(select n from t), 0 > any(select n from t)", "[-,t,-]"),
        ("select 1 > all(select 1 where false), null < any(select 1 where false)", "[t,f]"),
        ("select row(1, 2) < row(1, 3), row(1, null) = (1, 2)", "[t,-]"),
        ("update t set (id, n) = (select 7, 8.50) where id = 3 returning *", "[7,8.50]"),
        ("update t set (id, n) = (select id, n from t)", "21000"),
        ("update t set (id, n) = (select 1, 2, 3)", "42601"),
        ("values (2, 'a'), (1, 'b') order by 1 limit 1", "[1,b]"),
        ("select id from t order by id offset 1 row fetch next row only", "[2]"),
        ("select id, c from t, lateral (select count(*) as c from t) x where id = 1", "[1,3]"),
        ("select t.id, c from t, lateral (select count(*) as c from t y where y.id = t.id) x", "0A000"),
    ]);
}

#[test]
fn an_identity_that_is_always_generated_takes_no_number() {
    alone(&[
        ("create table t(id bigint primary key generated always as identity, a integer)", ""),
        ("insert into t(a) values (1) returning id", "[1]"),
        ("insert into t(id, a) values (7, 1)", "428C9"),
        ("insert into t select 7, 1", "428C9"),
        ("insert into t values (default, 2) returning id", "[2]"),
        ("insert into t overriding system value values (7, 3) returning id", "[7]"),
        ("insert into t(id, a) overriding user value values (7, 3)", "0A000"),
        ("update t set id = 9", "428C9"),
        ("update t set (id, a) = (select 9, 9)", "428C9"),
        ("select id from t order by id", "[1][2][7]"),
        ("alter table t alter a set not null, add check (a > 0)", ""),
        ("insert into t(id, a) values (9, 1)", "428C9"),
        ("create table s(id integer primary key)", ""),
        ("alter table s alter id add generated always as identity", ""),
        ("insert into s values (9)", "428C9"),
    ]);
}

#[test]
fn json_is_made_of_values_as_postgresql_writes_it() {
    alone(&[
        ("create table t(id integer primary key, k text, n numeric(5,2), at timestamptz)", ""),
        ("insert into t values (1, 'a\"', 1.50, '2024-01-01 12:30+02'), (2, null, null, null)", ""),
        (
            "select row_to_json(t) from t order by id",
            r#"[{"id":1,"k":"a\"","n":1.50,"at":"2024-01-01T10:30:00+00:00"}][{"id":2,"k":null,"n":null,"at":null}]"#,
        ),
        ("select jsonb_build_object('id', id, 'b', n) from t where id = 1", r#"[{"b": 1.50, "id": 1}]"#),
        ("select json_build_object('id', id, 'b', n) from t where id = 1", r#"[{"id" : 1, "b" : 1.50}]"#),
        ("select json_build_array(id, null, true), to_jsonb(k) from t where id = 1", r#"[[1, null, true],"a\""]"#),
        ("select json_agg(id order by id desc), json_agg(id) filter (where false) from t", "[[2, 1],-]"),
        ("select json_agg(x) from (select id from t order by id) x", "[[{\"id\":1}, \n {\"id\":2}]]"),
        ("select jsonb_object_agg(id, n) from t", r#"[{"1": 1.50, "2": null}]"#),
        ("select json_object_agg(id, n order by id) from t", r#"[{ "1" : 1.50, "2" : null }]"#),
        ("select json_agg(id) over (order by id rows 1 preceding) from t", "[[1]][[1, 2]]"),
        ("select json_object_agg(k, id) from t", "22023"),
        ("select json_build_object('a')", "22023"),
        ("select json_agg('a')", "42804"),
        ("select json_agg(distinct id) from t", "0A000"),
    ]);
}

#[test]
fn different_texts_come_in_their_own_order() {
    alone(&[
        ("create table t(k text, v integer)", ""),
        ("insert into t values ('b', 1), ('a', 2), ('b', 3), (null, 4), ('B\"', 5)", ""),
        ("select string_agg(distinct k, ', ') from t", "[B\", a, b]"),
        ("select string_agg(distinct k, '' order by k desc) filter (where v < 5) from t", "[ba]"),
        ("select string_agg(distinct k, ',') from t where false", "[-]"),
        ("select string_agg(distinct k, ',' order by v) from t", "0A000"),
        ("select string_agg(distinct k, k) from t", "0A000"),
        ("select to_char(1234.5, '9,999.99'), to_char(-7, 'FM000'), to_char(0.5, '9.9')", "[ 1,234.50,-007,  .5]"),
        ("select to_char(1.5::float8, '9.9')", "0A000"),
    ]);
}

#[test]
fn json_is_looked_into() {
    alone(&[
        ("create table t(j json, b jsonb)", ""),
        (r#"insert into t values ('{"a" : [1, {"b":null}], "a":2}', '{"z":{"q":[1, "two"]},"n":1.0}')"#, ""),
        ("select j->'a', j->>'a', j->0, b->'z'->'q'->-1, b->'z'->'q'->>1 from t", r#"[2,2,-,"two",two]"#),
        ("select b#>'{z,q,0}', b#>>'{z,q,-1}', b->>'none' from t", "[1,two,-]"),
        ("select b @> '{\"n\":1}', b @> '{\"z\":{}}', b <@ '{}', b ? 'n', b ? 'q' from t", "[t,t,f,t,f]"),
        ("select '[1, 2]'::jsonb @> '1', '[1, 2]'::jsonb @> '[2, 2]', '1'::jsonb @> '[1]'", "[t,t,f]"),
        (r#"select b || '{"n":null}' from t"#, r#"[{"n": null, "z": {"q": [1, "two"]}}]"#),
        ("select '1'::jsonb || '[2]', '[]'::jsonb || '[]'", "[[1, 2],[]]"),
        ("select b || 'x' from t", "22P02"),
        ("select jsonb_array_length(b->'z'->'q'), jsonb_typeof(b->'n') from t", "[2,number]"),
        ("select jsonb_array_length(b) from t", "22023"),
        ("select b->'n' = '1' from t", "0A000"),
        ("select jsonb_set(b, '{a}', '1') from t", "0A000"),
        ("select b #> k from (select b, 'x' as k from t) x", "0A000"),
    ]);
}

#[test]
fn regular_expressions_are_decided_where_nothing_is_ambiguous() {
    alone(&[
        ("create table t(k text)", ""),
        ("insert into t values ('abc'), ('ABC'), (null), ('x1y22')", ""),
        ("select k from t where k ~ '^a.c$'", "[abc]"),
        ("select k from t where k ~* '^A' order by k", "[ABC][abc]"),
        ("select k from t where k !~ '[0-9]' and k !~* 'abc'", ""),
        ("select k ~ 'b', k !~ 'b' from t where k is null", "[-,-]"),
        ("select regexp_replace(k, '[0-9]+', '<\\&>', 'g') from t where k ~ '[0-9]'", "[x<1>y<22>]"),
        ("select substring('me@home' from '([a-z]+)@'), substring('abc' from 'x')", "[me,-]"),
        ("select regexp_replace('ab', 'a?(ab)?', 'x')", "0A000"),
        ("select 'a' ~ 'a**'", "2201B"),
        ("select 'aa' ~ '(a)\\1'", "0A000"),
        ("select 'a' ~ repeat('a', 2000)", "54000"),
        ("select regexp_matches('a', 'a')", "0A000"),
        ("select count(*) from generate_series(1, 1000000) g where repeat('a', 1000) || g ~ 'x[ab]{250}c'", "57014"),
    ]);
}

#[test]
fn a_conflict_is_named_by_its_constraint() {
    alone(&[
        ("create table t(id integer primary key, k text, n numeric, constraint one unique (k, n), unique (n))", ""),
        ("insert into t values (1, 'a', 1.5)", ""),
        ("insert into t values (1, 'b', 2) on conflict on constraint t_pkey do update set k = 'c' returning k", "[c]"),
        ("insert into t values (2, 'c', 1.50) on conflict on constraint one do update set id = 7 returning id", "[7]"),
        ("insert into t values (3, 'd', 1.5) on conflict on constraint t_n_key do nothing returning id", ""),
        ("insert into t values (3, 'd', 9) on conflict on constraint two do nothing", "42704"),
    ]);
}

#[test]
fn statements_are_prepared_by_statements() {
    alone(&[
        ("create table t(id integer primary key, k text)", ""),
        ("insert into t values (1, 'a'), (2, 'b')", ""),
        ("prepare p(integer) as select k from t where id = $1", ""),
        ("execute p(2)", "[b]"),
        ("execute p('1')", "[a]"),
        ("execute p(null)", ""),
        ("execute p(true)", "42804"),
        ("execute p(1, 2)", "42601"),
        ("execute p(1 + 1)", "0A000"),
        ("prepare p as select 1", "42P05"),
        ("prepare w as insert into t values ($1, $2) returning id", ""),
        ("execute w(3, 'it''s')", "[3]"),
        ("deallocate p", ""),
        ("execute p(1)", "26000"),
        ("prepare transaction 'x'", "0A000"),
    ]);
}
