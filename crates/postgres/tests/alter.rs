//! ALTER TABLE beyond what SQLite has.

mod support;

use support::{Client, server};

#[track_caller]
fn all(client: &mut Client, statements: &[(&str, &str)]) {
    for (sql, wanted) in statements {
        assert_eq!(client.query(sql), format!("{wanted} Z:I"), "{sql}");
    }
}

const ALTERED: &str = "C:ALTER TABLE";

#[test]
fn constraints_come_and_go() {
    let server = server();
    let mut client = Client::new(&server);
    client.query("create table p(a int, b text, c numeric(10,2)); insert into p values (1, 'x', 1.50), (2, 'y', 2)");
    client.query("create table k(id serial primary key, p int); insert into k(p) values (1), (2), (null)");
    client.query("create index on p(lower(b)); create view v as select b from p");
    all(
        &mut client,
        &[
            ("alter table k add foreign key (p) references p(a)", "E:42830"),
            ("alter table k add foreign key (p) references p", "E:42704"),
            ("alter table k add foreign key (p) references nosuch", "E:42P01"),
            ("alter table k add foreign key (nosuch) references p(a)", "E:42703"),
            ("alter table p add primary key (a)", ALTERED),
            ("alter table p add constraint again primary key (b)", "E:42P16"),
            ("alter table k add foreign key (p) references p(a) on delete cascade", ALTERED),
            ("insert into k(p) values (3)", "E:23503"),
            ("alter table k add constraint k_p_fkey unique (p)", "E:42710"),
            ("alter table p drop constraint p_pkey", "E:2BP01"),
            ("alter table p add constraint u unique (b, c), add constraint ok check (a < 10)", ALTERED),
            ("insert into p values (3, 'x', 1.5)", "E:23505"),
            ("insert into p values (33, 'z', 1)", "E:23514"),
            ("insert into p values (null, 'z', 1)", "C:INSERT 0 1"),
            ("delete from p where a = 3", "C:DELETE 1"),
            ("alter table p add check (c > 1.7)", "E:23514"),
            ("alter table p add check (nosuch > 1)", "E:42703"),
            ("alter table p add unique (nosuch)", "E:42703"),
            ("alter table p drop constraint nosuch", "E:42704"),
            ("alter table p drop constraint if exists nosuch", ALTERED),
            ("alter table p rename constraint u to unique_of_p", ALTERED),
            ("alter table p rename constraint u to w", "E:42704"),
            ("alter table p drop constraint unique_of_p, drop constraint ok", ALTERED),
            ("insert into p values (33, 'x', 1.5)", "C:INSERT 0 1"),
            ("delete from p where a in (1, 33)", "C:DELETE 2"),
            ("select count(*) from k", "T D:2 C:SELECT 1"),
            ("alter table k drop constraint k_p_fkey", ALTERED),
            ("alter table p drop constraint p_pkey", ALTERED),
            ("insert into p values (2, 'x', 1.5)", "C:INSERT 0 1"),
            ("insert into p values (null, 'x', 1.5)", "E:23502"),
            ("alter table p add primary key (a)", "E:23505"),
            ("select b from v order by 1", "T D:x D:y C:SELECT 2"),
            ("insert into k(p) values (9) returning id", "T D:4 C:INSERT 0 1"),
            ("alter table k add foreign key (p) references p(a)", "E:42830"),
            ("alter table v add unique (b)", "E:42809"),
            ("alter table nosuch add unique (b)", "E:42P01"),
            ("alter table if exists nosuch add unique (b)", ALTERED),
            ("alter table bezant_members add unique (name)", "E:0A000"),
        ],
    );
}

#[test]
fn columns_change() {
    let server = server();
    let mut client = Client::new(&server);
    client.query("create table t(id serial primary key, a int, b text default '5' not null, c varchar(3) unique)");
    client.query("insert into t(a, b, c) values (1, '10', 'abc'), (null, '20', 'de')");
    all(
        &mut client,
        &[
            ("alter table t alter column a set not null", "E:23502"),
            ("update t set a = 2 where a is null", "C:UPDATE 1"),
            ("alter table t alter column a set not null, alter a set default 7", ALTERED),
            ("insert into t(a) values (null)", "E:23502"),
            ("insert into t(c) values ('f') returning *", "T D:3,7,5,f C:INSERT 0 1"),
            ("alter table t alter b type int", "E:42804"),
            ("alter table t alter b type int using b::int", "E:42804"),
            ("alter table t alter b drop default, alter b type int using b::int + 1", ALTERED),
            ("select a, b + 1 from t order by id", "T D:1,12 D:2,22 D:7,7 C:SELECT 3"),
            ("insert into t(b) values (null)", "E:23502"),
            ("alter table t alter c type varchar(2)", "E:22001"),
            ("alter table t alter c type varchar(2) using left(c, 2), alter b drop not null", ALTERED),
            ("select c, b from t order by id", "T D:ab,11 D:de,21 D:f,6 C:SELECT 3"),
            ("insert into t(c) values ('ab')", "E:23505"),
            ("insert into t(c) values ('long')", "E:22001"),
            ("alter table t alter id type bigint, alter b type numeric(10,2)", ALTERED),
            ("insert into t(b) values (1) returning id, b", "T D:4,1.00 C:INSERT 0 1"),
            ("alter table t alter id type text", "E:22023"),
            ("alter table t alter id drop not null", "E:42P16"),
            ("alter table t alter nosuch drop not null", "E:42703"),
            ("alter table t alter a drop default", ALTERED),
            ("insert into t(b) values (1)", "E:23502"),
            ("alter table t alter a set default 'x'", "E:22P02"),
            ("alter table t alter a set default now()", "E:42804"),
            ("alter table t alter a set default 1 + 1", ALTERED),
            ("insert into t(b) values (1.25) returning a", "T D:2 C:INSERT 0 1"),
        ],
    );
}

#[test]
fn columns_come_and_go() {
    let server = server();
    let mut client = Client::new(&server);
    client.query("create table o(id int primary key); insert into o values (1)");
    client.query("create table t(a int); insert into t values (10), (20)");
    all(
        &mut client,
        &[
            ("alter table t add column b int not null", "E:23502"),
            ("alter table t add column b int unique default 1", "E:23505"),
            ("alter table t add column b int references o default 1", ALTERED),
            ("alter table t add column b int references o default 1", "E:42701"),
            ("alter table t add column c timestamptz not null default now(), add column u text unique", ALTERED),
            ("select a, b, c is null, u from t order by 1", "T D:10,1,f,- D:20,1,f,- C:SELECT 2"),
            ("update t set b = 2", "E:23503"),
            ("alter table t add column id serial primary key", ALTERED),
            ("select id, a from t order by 1", "T D:1,10 D:2,20 C:SELECT 2"),
            ("insert into t(a) values (30) returning id", "T D:3 C:INSERT 0 1"),
            ("alter table t add column other serial", "E:0A000"),
            ("alter table t drop column b, drop column u", ALTERED),
            ("select * from t where id = 1 and c is null", "T C:SELECT 0"),
            ("create table t(a int); select 1", "E:42P07"),
            ("create table e()", "E:0A000"),
            ("create table e(a int)", "C:CREATE TABLE"),
            ("alter table e add column b int not null, add check (a < b)", ALTERED),
            ("insert into e values (2, 1)", "E:23514"),
            ("alter table e drop column b", ALTERED),
            ("insert into e values (2)", "C:INSERT 0 1"),
            ("alter table o drop column id", "E:0A000"),
            ("alter table e add column a int, add column if not exists a int", "E:42701"),
            ("alter table e add column if not exists a int", ALTERED),
            ("alter table t add column g int generated always as (a * 2) stored", ALTERED),
            ("select g from t where id = 1", "T D:20 C:SELECT 1"),
            ("alter table t drop column a", "E:2BP01"),
        ],
    );
}

/// In a transaction, behind a savepoint, and for statements that were prepared before.
#[test]
fn changes_are_taken_back_with_their_transaction() {
    let server = server();
    let mut client = Client::new(&server);
    let mut other = Client::new(&server);
    client.query("create table t(a int, b text); insert into t values (1, '7')");
    client.query("create table c(a int)");
    assert_eq!(client.ask("select b from t", &[], 0), "1 2 T D:7 C:SELECT 1 Z:I");
    for (sql, wanted) in [
        ("begin", "C:BEGIN Z:T"),
        ("alter table t add unique (a), alter b type int using b::int", "C:ALTER TABLE Z:T"),
        ("savepoint s", "C:SAVEPOINT Z:T"),
        ("insert into t values (1, 2)", "E:23505 Z:E"),
        ("rollback to s", "C:ROLLBACK Z:T"),
        ("alter table t drop constraint t_a_key", "C:ALTER TABLE Z:T"),
        ("insert into t values (1, 2)", "C:INSERT 0 1 Z:T"),
        ("alter table t add unique (a)", "E:23505 Z:E"),
        ("rollback to s", "C:ROLLBACK Z:T"),
        ("alter table c add foreign key (a) references t(a)", "C:ALTER TABLE Z:T"),
        ("insert into c values (1)", "C:INSERT 0 1 Z:T"),
        ("insert into t values (2, 2)", "C:INSERT 0 1 Z:T"),
        ("select b + 1 from t order by a", "T D:8 D:3 C:SELECT 2 Z:T"),
    ] {
        assert_eq!(client.query(sql), wanted, "{sql}");
        assert_eq!(other.query("select count(*) from t where b = '7'"), "T D:1 C:SELECT 1 Z:I");
    }
    assert_eq!(client.query("commit"), "C:COMMIT Z:I");
    assert_eq!(other.query("select b + 1 from t order by a"), "T D:8 D:3 C:SELECT 2 Z:I");
    assert_eq!(other.query("insert into t values (2, 2)"), "E:23505 Z:I");
    assert_eq!(other.query("delete from t where a = 1"), "E:23503 Z:I");
    assert_eq!(client.query("begin; alter table t drop column b; rollback"), "C:BEGIN C:ALTER TABLE C:ROLLBACK Z:I");
    assert_eq!(client.query("set default_transaction_read_only = on"), "C:SET Z:I");
    assert_eq!(client.query("alter table t alter a set not null"), "E:25006 Z:I");
    assert_eq!(other.query("alter table t alter a set not null; insert into t values (null, 1)"), "E:23502 Z:I");
    assert_eq!(other.query("insert into t values (null, 1)"), "C:INSERT 0 1 Z:I");
}

/// By the names that PostgreSQL would have given.
#[test]
fn the_catalog_tells_what_was_changed() {
    let server = server();
    let mut client = Client::new(&server);
    client.query("create table p(a int primary key, b int check (b > 0), c int, check (b < c and c < 9))");
    client.query("create table k(p int references p, q int)");
    all(
        &mut client,
        &[
            ("alter table p add unique (c, b), add constraint more unique (c)", ALTERED),
            (
                "select conname, contype, conkey::text from pg_constraint where conrelid = 'p'::regclass order by 1",
                "T D:more,u,{3} D:p_b_check,c,{2} D:p_c_b_key,u,{3,2} D:p_check,c,{2,3} D:p_pkey,p,{1} C:SELECT 5",
            ),
            ("alter table p rename to r", ALTERED),
            ("alter table r rename b to d", ALTERED),
            ("alter table r drop constraint p_c_b_key, drop constraint more, drop constraint p_b_check", ALTERED),
            ("alter table r add column e int check (e > 0)", ALTERED),
            ("alter table r rename e to f", ALTERED),
            ("alter table r drop constraint r_e_check, drop constraint p_pkey", "E:2BP01"),
            ("alter table r drop constraint r_e_check", ALTERED),
            ("create table twice(a int constraint c unique, b int constraint c check (b > 0))", "E:42710"),
            ("alter table r add column g int constraint p_check check (g > 0)", "E:42710"),
            (
                "select constraint_name from information_schema.table_constraints where table_name = 'k'",
                "T D:k_p_fkey C:SELECT 1",
            ),
            ("alter table k drop constraint k_p_fkey, alter q set default 4, alter q set not null", ALTERED),
            (
                "select column_default, is_nullable from information_schema.columns where column_name = 'q'",
                "T D:4,NO C:SELECT 1",
            ),
            ("create index likely on k(q text_pattern_ops)", "E:0A000"),
            ("create table l(a varchar(5)); create index on l(a varchar_pattern_ops)", "C:CREATE TABLE C:CREATE INDEX"),
        ],
    );
}

/// Half a table is never there: what is too much is refused.
#[test]
fn what_is_too_much_is_not_done() {
    let server = server();
    let mut client = Client::new(&server);
    client.query("create table t(a int, b text)");
    let rows = "insert into t with recursive n(i) as (select 1 union all select i + 1 from n limit 50000)
        select i, 'x' from n";
    for _ in 0..2 {
        assert_eq!(client.query(rows), "C:INSERT 0 50000 Z:I");
    }
    let change = "alter table t alter b type bytea using decode(repeat(md5(b), 50), 'hex')";
    assert_eq!(client.query(change), "E:57014 Z:I");
    assert_eq!(client.query(&format!("begin; {change}")), "C:BEGIN E:57014 Z:E");
    assert_eq!(client.query("rollback; select count(*) from t where b = 'x'"), "C:ROLLBACK T D:100000 C:SELECT 1 Z:I");
    let less = format!("delete from t where a > 1000; {change}");
    assert_eq!(client.query(&less), "C:DELETE 98000 C:ALTER TABLE Z:I");
    assert_eq!(client.query("select count(*) from t where length(b) = 800"), "T D:2000 C:SELECT 1 Z:I");
    assert_eq!(client.query("insert into t select a, b from t"), "C:INSERT 0 2000 Z:I");
}
