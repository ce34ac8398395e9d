//! COPY brings rows and takes them out. Bytes and SQLSTATEs are those that PostgreSQL 15 gave.

mod support;

use bezant_postgres::{COPY_BYTES_MAX, COPY_ROWS_MAX};
use support::{Client, server, server_of_replicas};

/// COPY with lines, of the simple protocol.
fn bring(client: &mut Client, sql: &str, lines: &[u8]) -> String {
    client.send(b'Q', &[sql.as_bytes(), b"\0"].concat());
    // Lines are cut anywhere.
    for piece in lines.chunks(7.max(lines.len() / 50)) {
        client.send(b'd', piece);
    }
    client.send(b'c', b"");
    client.hear()
}

fn table(client: &mut Client) {
    client.query("create table t(a integer primary key, b text, c timestamp, d boolean default true)");
}

#[test]
fn rows_come_and_go_as_text() {
    let server = server();
    let mut client = Client::new(&server);
    table(&mut client);
    let lines = b"1\tx\\ty\\\\\t2026-01-02 03:04:05\tyes\n2\t\\N\t\\N\t\\N\n3\t\t2026-01-02\tf\n\\.\n";
    assert_eq!(bring(&mut client, "copy t from stdin", lines), "G C:COPY 3 Z:I");
    let all = "H d:1\tx\\ty\\\\\t2026-01-02 03:04:05\tt\n \
               d:2\t\\N\t\\N\t\\N\n d:3\t\t2026-01-02 00:00:00\tf\n c C:COPY 3 Z:I";
    assert_eq!(client.query("copy t to stdout"), all);
    assert_eq!(bring(&mut client, "copy public.t (b, a) from stdin", b"z\t4"), "G C:COPY 1 Z:I");
    let query = "copy (select b, d from t where a = 4) to stdout with delimiter '|'";
    assert_eq!(client.query(query), "H d:z|t\n c C:COPY 1 Z:I");
    assert_eq!(client.query("copy (delete from t where a > 2 returning a) to stdout"), "H d:3\n d:4\n c C:COPY 2 Z:I");
}

#[test]
fn rows_come_and_go_as_csv() {
    let server = server();
    let mut client = Client::new(&server);
    table(&mut client);
    let lines = b"a,b,c,d\r\n1,\"x,\"\"y\"\"\n\",,t\r\n2,\"\",2026-01-02,no\r\n3,,,\r\n";
    let sql = "copy t from stdin with (format csv, header match)";
    assert_eq!(bring(&mut client, sql, lines), "G C:COPY 3 Z:I");
    let all = "H d:a,b,c,d\n d:1,\"x,\"\"y\"\"\n\",,t\n d:2,\"\",2026-01-02 00:00:00,f\n d:3,,,\n c C:COPY 3 Z:I";
    assert_eq!(client.query("copy t to stdout csv header"), all);
    let odd = "copy (select 'a''b', 'N', null) to stdout (format csv, quote '''', escape '\\', null 'N')";
    assert_eq!(client.query(odd), "H d:'a\\'b','N',N\n c C:COPY 1 Z:I");
    assert_eq!(bring(&mut client, "copy t from stdin csv", b"x,b,c,d\n"), "G E:22P02 Z:I");
}

#[test]
fn what_is_wrong_has_postgresqls_sqlstate_and_no_row_stays() {
    let server = server();
    let mut client = Client::new(&server);
    table(&mut client);
    for (lines, state) in [
        (&b"1\ta\t\\N\tt\n2\tb\n"[..], "22P04"),
        (b"1\ta\t\\N\tt\t5\n", "22P04"),
        (b"1\ta\t\\N\tt\n1\ta\t\\N\tt\n", "23505"),
        (b"1\ta\t\\N\tt\n2\ta\tnever\tt\n", "22007"),
        (b"1\ta\t\\N\tmaybe\n", "22P02"),
        (b"99999999999\ta\t\\N\tt\n", "22003"),
        (b"1\t\xff\t\\N\tt\n", "22021"),
        (b"1\t\\xff\t\\N\tt\n", "22021"),
        (b"1\ta\t\\N\tt\r\n2\ta\t\\N\tt\n", "22P04"),
        (b"1\ta\t\\N\tt\n\\.x\n", "22P04"),
    ] {
        assert_eq!(bring(&mut client, "copy t from stdin", lines), format!("G E:{state} Z:I"), "{lines:?}");
    }
    assert_eq!(bring(&mut client, "copy t from stdin csv", b"1,\"a,,\n"), "G E:22P04 Z:I");
    client.query("create table complete(a text not null)");
    assert_eq!(bring(&mut client, "copy complete from stdin csv", b"a\n\n"), "G E:23502 Z:I");
    for (sql, state) in [
        ("copy t from 'file'", "0A000"),
        ("copy t to program 'x'", "0A000"),
        ("copy t to stdout (format binary)", "0A000"),
        ("copy t to stdout (format xml)", "22023"),
        ("copy t to stdout (delimiter 'ab')", "0A000"),
        ("copy t to stdout (delimiter 'a')", "22023"),
        ("copy t to stdout (quote 'a')", "0A000"),
        ("copy t to stdout (format csv, format csv)", "42601"),
        ("copy t to stdout (nonsense)", "42601"),
        ("copy nothing from stdin", "42P01"),
        ("copy t (z) from stdin", "42703"),
        ("copy t (a, a) from stdin", "42701"),
        ("copy (delete from t) to stdout", "0A000"),
        ("copy (", "42601"),
        ("copy (commit) to stdout", "42601"),
        ("copy (select 1) from stdin", "42601"),
        ("copy t from stdin (header match, format csv, header)", "42601"),
        ("copy t to stdout (header match)", "0A000"),
        ("copy t to stdout (header maybe)", "42601"),
        ("copy t to stdout (null 'a\t')", "0A000"),
        ("copy t to stdout (format csv, null '\"')", "0A000"),
        ("copy t to stdout (format csv, delimiter '\"')", "22023"),
        ("copy t to stdout (delimiter)", "42601"),
        ("copy t to stdout delimiter 'ab'", "0A000"),
        ("copy t to stdout (format 'CSV')", "22023"),
    ] {
        assert_eq!(client.query(sql), format!("E:{state} Z:I"), "{sql}");
    }
    assert_eq!(client.query("select count(*) from t"), "T D:0 C:SELECT 1 Z:I");
}

#[test]
fn odd_lines_are_what_they_are_to_postgresql() {
    let server = server();
    let mut client = Client::new(&server);
    client.query("create table w(a text, b text)");
    for (options, lines, rows) in [
        ("", "a\\x41\\101\tb\\\tc\n", "d:aAA\tb\\tc\n "),
        ("", "a\\q\\x\\xg\\9\tb\\134N\n", "d:aqxxg9\tb\\\\N\n "),
        ("", "a\\\nb\tc\n", "d:a\\nb\tc\n "),
        ("", "a\tb\\", "d:a\tb\n "),
        ("", "a\tb\\.\nc\td\n", "d:a\tb\n "),
        ("", "a\tb\n\\.", "22P04"),
        ("", "a\tb\rc\td\r", "d:a\tb\n d:c\td\n "),
        ("", "a\tb\rc\td\n", "22P04"),
        ("", "a\tb\n\n", "22P04"),
        ("", "\\NN\t\\N \n", "d:NN\tN \n "),
        ("delimiter '|' null 'x'", "a\\|b|x\n", "d:a|b\t\\N\n "),
        ("(header match)", "b\ta\na\tb\n", "22P04"),
        ("csv", "\"a\"b\"c\",d\n", "d:abc\td\n "),
        ("csv", "a\"b,c\nd\",e\n", "d:ab,c\\nd\te\n "),
        ("csv escape '\\'", "\"a\\\"b\\\\c\\d\",e\n", "d:a\"b\\\\c\\\\d\te\n "),
        ("csv", "\\.,b\n", "d:\\\\.\tb\n "),
        ("csv", ",\"\"\n", "d:\\N\t\n "),
        ("csv null 'NULL'", "NULL,\"NULL\"\n", "d:\\N\tNULL\n "),
        ("csv", "a,b\nc\rd,e\n", "22P04"),
    ] {
        let brought = bring(&mut client, &format!("copy w from stdin {options}"), lines.as_bytes());
        let count = rows.matches("d:").count();
        let expected = if count == 0 { format!("G E:{rows} Z:I") } else { format!("G C:COPY {count} Z:I") };
        assert_eq!(brought, expected, "{options} {lines:?}");
        let all = client.query("copy (delete from w returning a, b) to stdout");
        let rows = if count == 0 { "" } else { rows };
        assert_eq!(all, format!("H {rows}c C:COPY {count} Z:I"), "{options} {lines:?}");
    }
}

#[test]
fn generated_columns_are_left_out() {
    let server = server();
    let mut client = Client::new(&server);
    client.query("create table g(a integer, b integer generated always as (a * 2) stored, c text)");
    assert_eq!(bring(&mut client, "copy g from stdin csv", b"1,x\n"), "G C:COPY 1 Z:I");
    assert_eq!(client.query("copy g to stdout csv"), "H d:1,x\n c C:COPY 1 Z:I");
    assert_eq!(client.query("select * from g"), "T D:1,2,x C:SELECT 1 Z:I");
}

#[test]
fn a_copy_is_part_of_its_transaction() {
    let server = server_of_replicas();
    let mut client = Client::new(&server);
    table(&mut client);
    let lines: String = (0..1_500).map(|number| format!("{number}\tb\t\\N\tt\n")).collect();
    client.query("begin");
    assert_eq!(bring(&mut client, "copy t from stdin", lines.as_bytes()), "G C:COPY 1500 Z:T");
    client.query("savepoint s");
    assert_eq!(bring(&mut client, "copy t from stdin", b"2000\tb\t\\N\tt\n7\tb\t\\N\tt\n"), "G E:23505 Z:E");
    assert_eq!(client.query("copy t from stdin"), "E:25P02 Z:E");
    client.query("rollback to s");
    assert_eq!(client.query("copy (select count(*) from t) to stdout"), "H d:1500\n c C:COPY 1 Z:T");
    assert_eq!(client.query("commit"), "C:COMMIT Z:I");
    assert_eq!(client.query("select count(*) from t"), "T D:1500 C:SELECT 1 Z:I");
    client.query("begin read only");
    assert_eq!(client.query("copy t from stdin"), "E:25006 Z:E");
}

#[test]
fn drivers_copy_in_the_extended_protocol_and_among_statements() {
    let server = server();
    let mut client = Client::new(&server);
    table(&mut client);
    // As libpq does: the end of the series is sent before rows are asked for.
    client.send(b'P', b"\0copy t (a) from stdin\0\0\0");
    client.bind(&[], 0);
    client.send(b'S', b"");
    client.send(b'd', b"1\n2\n");
    client.send(b'c', b"");
    client.send(b'S', b"");
    assert_eq!(client.hear(), "1 2 n G C:COPY 2 Z:I");
    assert_eq!(client.ask("copy t (a) to stdout", &[], 0), "1 2 n H d:1\n d:2\n c C:COPY 2 Z:I");
    let both = "insert into t(a) values (8); copy t (a) from stdin; select count(*) from t";
    assert_eq!(bring(&mut client, both, b"9\n"), "C:INSERT 0 1 G C:COPY 1 T D:4 C:SELECT 1 Z:I");
    // The client gives up, or says something else.
    client.send(b'Q', b"copy t (a) from stdin\0");
    client.send(b'd', b"10\n");
    client.send(b'f', b"no more\0");
    assert_eq!(client.hear(), "G E:57014 Z:I");
    client.send(b'Q', b"copy t (a) from stdin\0");
    client.send(b'Q', b"select 1\0");
    assert_eq!(client.hear(), "G E:08P01 Z:I");
    assert_eq!(client.query("select max(a) from t"), "T D:9 C:SELECT 1 Z:I");
}

#[test]
fn a_copy_without_end_is_refused() {
    let server = server();
    let mut client = Client::new(&server);
    client.query("create table n(a text)");
    let lines = b"x\n".repeat(COPY_ROWS_MAX + 1);
    assert_eq!(bring(&mut client, "copy n from stdin", &lines), "G E:54000 Z:I");
    let line = vec![b'x'; COPY_BYTES_MAX + 1];
    client.send(b'Q', b"copy n from stdin\0");
    client.send(b'd', &line);
    assert_eq!(client.hear(), "G E:54000 Z:I");
    // What comes behind it counts for nothing.
    client.send(b'd', &line);
    client.send(b'c', b"");
    assert_eq!(client.query("select count(*) from n"), "T D:0 C:SELECT 1 Z:I");
}
