//! Questions as tools ask them.

use super::*;
use crate::plan::Plan;
use crate::understand;

/// The schema as the replicas would tell it.
fn schema(sql: &[&str]) -> Rows {
    let database = Connection::open_in_memory().unwrap();
    sql.iter().for_each(|sql| database.execute_batch(sql).unwrap());
    collect(&mut database.prepare(SCHEMA_SQL).unwrap(), &[]).unwrap()
}

fn example() -> Rows {
    schema(&[
        "create table author(id integer primary key, name text not null unique, born date default current_date)",
        "create table book(isbn varchar(13) not null, author_id integer references author(id) on delete cascade,
            price numeric(10,2), primary key (isbn, author_id)) without rowid",
        "create index book_price on book(price) where price > 10",
        "create view cheap as select isbn from book where price < 5",
    ])
}

#[track_caller]
fn ask(sql: &str) -> Vec<String> {
    let Ok(Plan::Catalog(sql)) = understand::plan(sql) else { panic!("{sql} is no question about the catalog") };
    let rows = Catalog::new().query(&example(), "me", &sql, &[]).unwrap_or_else(|error| panic!("{sql}: {error:?}"));
    let line = |row: &Vec<Value>| row.iter().map(ToString::to_string).collect::<Vec<_>>().join("|");
    rows.rows.iter().map(line).collect()
}

#[test]
fn questions_are_told_from_statements() {
    let is = |sql: &str| matches!(understand::plan(sql), Ok(Plan::Catalog(_)));
    for sql in
        ["select version()", "select * from pg_class", "SELECT current_user", "select 1 from information_schema.tables"]
    {
        assert!(is(sql), "{sql}");
    }
    for sql in ["select 1", "select version from t", "insert into t values (current_user)", "select 'pg_class'"] {
        assert!(!is(sql), "{sql}");
    }
}

#[test]
fn relations_have_names_kinds_and_keys() {
    let relations = ask("select relname, relkind from pg_catalog.pg_class order by relname");
    let wanted = ["author|r", "author_name_key|i", "author_pkey|i", "book|r", "book_pkey|i", "book_price|i", "cheap|v"];
    assert_eq!(relations, wanted);
    let keys = ask("select conname, pg_get_constraintdef(oid, true) from pg_constraint order by 1");
    assert_eq!(
        keys,
        [
            "author_name_key|UNIQUE (name)",
            "author_pkey|PRIMARY KEY (id)",
            "book_author_id_fkey|FOREIGN KEY (author_id) REFERENCES author(id) ON DELETE CASCADE",
            "book_pkey|PRIMARY KEY (isbn, author_id)",
        ]
    );
    let index = ask("select pg_get_indexdef('book_price'::regclass)");
    assert_eq!(index, ["CREATE INDEX book_price ON public.book USING btree (price) WHERE (price > 10)"]);
}

#[test]
fn indexes_say_how_they_are_sorted() {
    let schema = schema(&["create table t(a, b)", "create index i on t(b desc, a, lower(a)) where b > 1"]);
    let ask = |sql: &str| {
        let Ok(Plan::Catalog(sql)) = understand::plan(sql) else { panic!("{sql} is no question about the catalog") };
        let rows = Catalog::new().query(&schema, "me", &sql, &[]).unwrap().rows;
        rows.iter().map(|row| row.iter().map(ToString::to_string).collect::<Vec<_>>().join("|")).collect::<Vec<_>>()
    };
    let sql = "select indkey, indoption, pg_get_expr(indpred, indrelid) from pg_index";
    assert_eq!(ask(sql), ["2 1 0|3 0 0|(b > 1)"]);
    let definition = "CREATE INDEX i ON public.t USING btree (b DESC, a, (expression)) WHERE (b > 1)";
    assert_eq!(ask("select indexdef from pg_indexes"), [definition]);
    // As SQLAlchemy asks: what an index is of is counted from 0.
    let sql = "select k.n, pg_get_indexdef(k.i, k.n + 1, true) from (select indexrelid as i, unnest(indkey) as a,
        generate_subscripts(indkey, 1) as n from pg_index) k order by 1";
    assert_eq!(ask(sql), ["0|b", "1|a", "2|(expression)"]);
}

/// By the names that they were given, or that PostgreSQL would give them: what tools drop them by.
#[test]
fn constraints_have_names() {
    let schema = schema(&[
        "create table p(a int constraint k primary key, b int unique, c int constraint u unique check (c > 0))",
        "create table f(a int references gone(x), b int constraint r references p, c int references p,
            check (a < b), check (b < c), constraint w check (a > 1), constraint v unique (a, b), unique (b))",
    ]);
    let catalog = Catalog::new();
    let ask = |sql: &str| {
        let Ok(Plan::Catalog(sql)) = understand::plan(sql) else { panic!("{sql} is no question about the catalog") };
        let rows = catalog.query(&schema, "me", &sql, &[]).unwrap();
        rows.rows
            .iter()
            .map(|row| row.iter().map(ToString::to_string).collect::<Vec<_>>().join("|"))
            .collect::<Vec<_>>()
    };
    assert_eq!(
        ask("select conname, contype, conkey from pg_constraint order by conrelid, contype, conname"),
        [
            "p_c_check|c|{3}",
            "k|p|{1}",
            "p_b_key|u|{2}",
            "u|u|{3}",
            "f_check|c|{1,2}",
            "f_check1|c|{2,3}",
            "w|c|{1}",
            "f_c_fkey|f|{3}",
            "r|f|{2}",
            "f_b_key|u|{2}",
            "v|u|{1,2}",
        ]
    );
    let checks = ask("select constraint_name from information_schema.table_constraints where constraint_type = 'CHECK'
        and table_name = 'f' order by 1");
    assert_eq!(checks, ["f_check", "f_check1", "w"]);
    assert_eq!(ask("select pg_get_constraintdef(oid) from pg_constraint where conname = 'w'"), ["check (a > 1)"]);
}

#[test]
fn columns_have_types_and_defaults() {
    let columns =
        ask("select a.attname, format_type(a.atttypid, a.atttypmod), a.attnotnull, pg_get_expr(d.adbin, d.adrelid)
        from pg_attribute a left join pg_attrdef d on d.adrelid = a.attrelid and d.adnum = a.attnum
        where a.attrelid = 'author'::regclass order by a.attnum");
    assert_eq!(columns, ["id|bigint|1|nextval('author_id_seq'::regclass)", "name|text|1|", "born|date|0|current_date"]);
    let columns = ask("select column_name, data_type, character_maximum_length, is_nullable
        from information_schema.columns where table_schema = 'public' and table_name = 'book' order by column_name");
    let by_name = ask("select ('\"' || udt_schema || '\".\"' || udt_name || '\"')::regtype::text
        from information_schema.columns where table_schema = 'public' and table_name = 'book' order by column_name");
    assert_eq!(by_name, ["bigint", "character varying", "numeric"]);
    assert_eq!(columns, ["author_id|bigint||NO", "isbn|character varying|13|NO", "price|numeric||YES"]);
}

#[test]
fn arrays_are_texts_that_can_be_taken_apart() {
    assert_eq!(ask("select array_to_string(current_schemas(true), '/')"), ["pg_catalog/public"]);
    assert_eq!(ask("select (current_schemas(false))[1]"), ["public"]);
    let places = ask("select a.attname, k.ord from (
            select conrelid, unnest(conkey) as attnum, generate_subscripts(conkey, 1) as ord from pg_constraint
            where conname = 'book_pkey'
        ) k join pg_attribute a on a.attrelid = k.conrelid and a.attnum = k.attnum order by k.ord");
    assert_eq!(places, ["isbn|1", "author_id|2"]);
    assert_eq!(ask("select relname from pg_class where relkind = any (array['v', 'm'])"), ["cheap"]);
    assert_eq!(ask("select * from current_schema() where 1 = 1"), ["public"]);
    assert_eq!(
        ask("select s.s, current_database from current_database() join current_schema s on true"),
        ["public|bezant"]
    );
    assert_eq!(functions::elements(&functions::array(&["a", "b c", "", "\"\\"])), ["a", "b c", "", "\"\\"]);
}

#[test]
fn questions_have_bounds() {
    let catalog = Catalog::new();
    let forever = "with recursive n(i) as (select 1 union all select i + 1 from n) select count(*) from n, pg_class";
    let error = catalog.query(&example(), "me", forever, &[]).unwrap_err();
    assert_eq!(error.sqlstate, "57014");
    let large = "with recursive n(i) as (select 1 union all select i + 1 from n limit 100000)
        select zeroblob(1000) from n, pg_am";
    assert_eq!(catalog.query(&example(), "me", large, &[]).unwrap_err().sqlstate, sqlstate::LIMIT);
    // One step each, that goes through very much or takes all memory.
    let find =
        "select instr(replace(hex(zeroblob(500000)), '0', 'a'), replace(hex(zeroblob(250000)), '0', 'a') || 'b')";
    for costly in [find.to_owned(), format!("select {}", vec!["zeroblob(500000000)"; 50].join(", "))] {
        assert_eq!(catalog.query(&example(), "me", &costly, &[]).unwrap_err().sqlstate, sqlstate::LIMIT, "{costly}");
    }
    assert_eq!(catalog.query(&example(), "me", "select * from pg_nothing", &[]).unwrap_err().sqlstate, "42P01");
    // It can be asked again afterwards.
    assert!(catalog.query(&example(), "me", "select 1", &[]).is_ok());
}

#[test]
fn nothing_in_a_schema_stops_the_catalog() {
    let mut schema = example();
    let rubbish = |sql: Value| {
        vec![Value::Integer(99), Value::Text("table".into()), Value::Text("x".into()), Value::Text("x".into()), sql]
    };
    schema.rows.push(rubbish(Value::Text("create table x(".into())));
    schema.rows.push(rubbish(Value::Null));
    schema.rows.push(Vec::new());
    assert!(Catalog::new().query(&schema, "me", "select * from pg_class", &[]).is_ok());
}

#[test]
fn tools_find_what_is_theirs() {
    // What the system has made for itself is not among what a tool drops.
    let rows = schema(&["create table bezant_members(a)", "create table mine(a integer primary key)"]);
    let ask_of = |sql: &str| {
        let Ok(Plan::Catalog(sql)) = understand::plan(sql) else { panic!("{sql} is no question about the catalog") };
        Catalog::new().query(&rows, "me", &sql, &[]).unwrap().rows
    };
    assert_eq!(ask_of("select tablename from pg_tables where schemaname = 'public'"), [[Value::Text("mine".into())]]);
    assert_eq!(
        ask("select columns.column_name, ordinal_position from \"information_schema\".\"columns\"
            where table_name = 'book' and column_name = 'price'"),
        ["price|3"]
    );
    assert_eq!(
        ask("select ccu.table_name, ccu.column_name from information_schema.constraint_column_usage ccu
            where ccu.constraint_name = 'book_author_id_fkey'"),
        ["author|id"]
    );
    assert_eq!(
        ask("select delete_rule, update_rule from information_schema.referential_constraints"),
        ["CASCADE|NO ACTION"]
    );
    assert_eq!(ask("select indisprimary as primary from pg_index where indisprimary limit 1"), ["1"]);
    assert_eq!(ask("select relname from pg_statio_all_tables where relid = 'book'::regclass"), ["book"]);
    assert_eq!(ask("select gid from pg_prepared_xacts"), [""; 0]);
    assert_eq!(
        ask("select k.contype from pg_constraint f join pg_constraint k on k.conindid = f.conindid and k.oid <> f.oid
            where f.contype = 'f'"),
        ["p"]
    );
    assert_eq!(ask("select pg_get_indexdef('book_pkey'::regclass, 2, false)"), ["author_id"]);
    assert_eq!(ask("select pg_get_indexdef('book_price'::regclass, 1, true)"), ["price"]);
    assert_eq!(
        ask("select (x.keys).n, (x.keys).x from (select information_schema._pg_expandarray(i.indkey) as keys
        from pg_index i where i.indexrelid = 'book_pkey'::regclass) x"),
        ["1|1", "2|2"]
    );
}
