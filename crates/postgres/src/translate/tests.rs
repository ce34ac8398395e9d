//! What statements become.

use super::*;

/// How much stack a statement takes that is nested as deep as it may be.
#[test]
fn deep_statements_end_well_before_the_stack() {
    let deep = |count: usize| {
        let nested = |open: &str, inner: &str, close: &str| {
            format!("select {}{inner}{}", open.repeat(count), close.repeat(count))
        };
        [
            nested("(", "1", ")"),
            nested("- ", "1", ""),
            nested("not ", "true", ""),
            nested("1 + ", "1", ""),
            nested("", "1", "::int"),
            nested("case when true then ", "1", " end"),
            nested("(select ", "1", ")"),
            nested("abs(", "1", ")"),
            nested("true in (select ", "true", ")"),
            nested("1 union select ", "1", ""),
            nested("1, 2 union select ", "1, 2", ""),
            nested("* from (select ", "1 as a", ") as t"),
            nested("1 from (values (1)) a(x) join ", "(values (1)) b(x) using (x)", ""),
        ]
    };
    let try_all = move || {
        for count in [5, 20, 50, 100, 200, 400, 800, 1_200, 3_000, 20_000] {
            for sql in deep(count) {
                if let Err(error) = translate(&sql, &Schema::default(), "UTC", &[]) {
                    let is_expected = ["54000", "54001", "42601", "0A000"].contains(&error.sqlstate);
                    assert!(is_expected, "{}: {error:?}", &sql[..40]);
                }
            }
        }
    };
    std::thread::Builder::new().stack_size(crate::server::STACK_BYTES / 2).spawn(try_all).unwrap().join().unwrap();
}

fn schema() -> Schema {
    let text = |text: &str| Value::Text(text.into());
    let number = Value::Integer;
    let column = |name: &str, declared: &str, key| {
        let sql = text("CREATE TABLE \"t\" (\"i\" INTEGER CHECK (\"i\" BETWEEN -2147483648 AND 2147483647))");
        let default = Value::Null;
        vec![
            number(9),
            text("table"),
            text("t"),
            sql,
            text(name),
            text(declared),
            number(0),
            default,
            number(key),
            number(0),
        ]
    };
    let rows = vec![
        column("id", "INTEGER", 1),
        column("i", "INTEGER", 0),
        column("n", "NUMERIC_TEXT(10,2)", 0),
        column("at", "TIMESTAMPTZ", 0),
        column("old", "NUMERIC", 0),
    ];
    Schema::of(&bezant_sql::Rows { rows, ..bezant_sql::Rows::default() })
}

#[test]
fn sqlite_is_told_to_compute_the_same() {
    let schema = schema();
    for (sql, wanted) in [
        ("select i + 1 from t", "SELECT pg_int_add(\"t\".\"i\", 1, 32) AS \"?column?\" FROM \"t\""),
        (
            "select id from t where n = 1.50",
            "SELECT \"t\".\"id\" AS \"id\" FROM \"t\" WHERE (\"t\".\"n\" COLLATE pg_numeric = ?1)",
        ),
        ("update t set n = $1", "UPDATE \"t\" SET \"n\" = pg_numeric_fit(pg_in_numeric(?1), 10, 2)"),
        ("select old > 1 from t", "SELECT (\"t\".\"old\" > 1) AS \"?column?\" FROM \"t\""),
        ("delete from t where at < '2024-01-01'", "DELETE FROM \"t\" WHERE (\"t\".\"at\" < pg_in_timestamptz(?1, ?2))"),
        (
            "select i from t order by id, i",
            "SELECT \"t\".\"i\" AS \"i\" FROM \"t\" ORDER BY \"t\".\"id\", 1 NULLS LAST",
        ),
        ("insert into t(i) values ('7')", "INSERT INTO \"t\"(\"i\") VALUES (?1)"),
    ] {
        assert_eq!(translate(sql, &schema, "UTC", &[]).unwrap().sql, wanted, "{sql}");
    }
    let translation = translate("select $1 + i, $2 = n from t", &schema, "UTC", &[]).unwrap();
    assert_eq!((translation.parameters, translation.schema), (vec![Type::Int4, Type::Numeric], 9));
}

/// Columns without a type of PostgreSQL's, as other makers of tables declare them, go by SQLite's rules.
#[test]
fn tables_of_others_keep_working() {
    let schema = schema();
    for (sql, wanted) in [
        ("select old + 1, sum(old) from t group by old", Ok([Type::Any, Type::Any].as_slice())),
        ("select old = $1, old is null, coalesce(old, 1) from t", Ok(&[Type::Bool, Type::Bool, Type::Any])),
        ("select old::numeric, old::text, old::int from t", Ok(&[Type::Numeric, Type::Text, Type::Int4])),
        ("select max(old), count(old), max(lower(old)) from t", Ok(&[Type::Any, Type::Int8, Type::Text])),
        ("insert into t(old) values ('x'), (1), (2.5), ($1) returning old", Ok(&[Type::Any])),
        ("update t set i = old, n = old, at = old", Ok(&[])),
        ("select nosuch from t", Err("42703")),
    ] {
        let translation = translate(sql, &schema, "UTC", &[]);
        let kinds = translation.map(|found| found.columns.iter().map(|column| column.kind).collect::<Vec<_>>());
        assert_eq!(kinds.as_deref().map_err(|error| error.sqlstate), wanted, "{sql}");
    }
}

/// Tables that somebody else has made are altered as well, if their declaration is understood.
#[test]
fn tables_of_others_are_made_anew() {
    let schema = |sql: &str| {
        let column = |name: &str, declared: &str| {
            let text = |text: &str| Value::Text(text.into());
            let none = Value::Integer(0);
            let table = [Value::Integer(9), text("table"), text("t"), text(sql), text(name), text(declared)];
            [&table[..], &[none.clone(), Value::Null, none.clone(), none]].concat()
        };
        let rows = vec![column("a", ""), column("b", "INT")];
        Schema::of(&bezant_sql::Rows { rows, ..bezant_sql::Rows::default() })
    };
    let sql = "alter table t alter b set not null, add check (b > 0)";
    let known = schema("create table t(a, -- why\n b int default 1, unique(a)) strict");
    let translation = translate(sql, &known, "UTC", &[]).unwrap();
    let statement = translation.statements(Vec::new()).next().unwrap();
    let coalesced = "coalesce(\"b\", pg_raise('23502', 'column \"b\" of relation \"t\" contains null values'))";
    let wanted = bezant_sql::Statement::rebuild(
        "t",
        "(\"a\", \"b\" int default 1 NOT NULL, CONSTRAINT \"t_a_key\" unique(a), CONSTRAINT \"t_b_check\" \
         CHECK ((\"b\" > 0))) strict",
        "\"a\", \"b\"",
        format!("\"a\", {coalesced}"),
    );
    assert_eq!((translation.count(), statement), (1, wanted));
    for other in ["create table t([a], b int)", "create table t(a int)", "create table t as select 1", ""] {
        assert_eq!(translate(sql, &schema(other), "UTC", &[]).unwrap_err().sqlstate, "0A000", "{other}");
    }
    let many = format!("alter table t {}", vec!["alter b set not null"; 101].join(", "));
    assert_eq!(translate(&many, &known, "UTC", &[]).unwrap_err().sqlstate, "54000");
}

mod whatever_comes {
    use super::*;
    use proptest::prelude::*;

    const WORDS: [&str; 60] = [
        "select",
        "from",
        "t",
        "where",
        "i",
        "n",
        "at",
        "old",
        "id",
        "(",
        ")",
        ",",
        "=",
        "<",
        "+",
        "-",
        "*",
        "/",
        "||",
        "::",
        "int",
        "numeric",
        "date",
        "text",
        "'1'",
        "'x'",
        "1",
        "2.5",
        "$1",
        "$2",
        "null",
        "true",
        "case",
        "when",
        "then",
        "else",
        "end",
        "in",
        "between",
        "and",
        "or",
        "not",
        "group by",
        "order by",
        "union",
        "values",
        "insert into",
        "update",
        "set",
        "delete from",
        "with x as",
        "join",
        "using",
        "count",
        "sum",
        "coalesce",
        "interval",
        "é",
        "limit",
        "as a",
    ];

    proptest! {
        /// No statement ends anything but itself.
        #[test]
        fn is_translated_or_refused(words in proptest::collection::vec(0..WORDS.len(), 0..40), zone in any::<bool>()) {
            let sql: Vec<&str> = words.iter().map(|at| WORDS[*at]).collect();
            let sql = sql.join(" ");
            let zone = if zone { "UTC" } else { "+02:00" };
            for sql in [sql.clone(), format!("select {sql} from t"), format!("select * from t where {sql}")] {
                let _ = translate(&sql, &schema(), zone, &[23]);
            }
        }

        /// Nor does any change of a table, whatever others come with it.
        #[test]
        fn is_changed_or_refused(
            changes in proptest::collection::vec((0..CHANGES.len(), 0..COLUMNS.len(), 0..COLUMNS.len()), 1..8),
        ) {
            let change = |(change, first, second): &(usize, usize, usize)| {
                CHANGES[*change].replace('?', COLUMNS[*first]).replace('!', COLUMNS[*second])
            };
            let all: Vec<String> = changes.iter().map(change).collect();
            let sql = format!("alter table t {}", all.join(", "));
            let Ok(translation) = translate(&sql, &whole(), "UTC", &[]) else { return Ok(()) };
            let statement = translation.statements(Vec::new()).last().unwrap();
            // What is made anew is a table.
            if let [_, Value::Text(definition), ..] = &statement.parameters[..] {
                let database = rusqlite::Connection::open_in_memory().unwrap();
                bezant_sql::add_functions(&database).unwrap();
                let made = database.execute_batch(&format!("create table t {definition}"));
                let is_of_sqlite = made.as_ref().is_err_and(|error| error.to_string().contains("generated column"));
                prop_assert!(made.is_ok() || is_of_sqlite, "{sql}: {made:?}: {definition}");
            }
        }
    }

    const COLUMNS: [&str; 6] = ["a", "b", "c", "d", "t_b_key", "t_check"];
    const CHANGES: [&str; 18] = [
        "add column ? int not null",
        "add column ? numeric(5,2) unique default 1 + 1",
        "add column ? serial primary key",
        "add column ? int generated always as (! + 1) stored",
        "drop column ?",
        "add primary key (?)",
        "add unique (?, !)",
        "add constraint ? check (! > 1)",
        "add foreign key (?) references t(!)",
        "drop constraint ?",
        "drop constraint if exists t_pkey",
        "rename constraint ? to !",
        "alter ? set not null",
        "alter ? drop not null",
        "alter ? set default '7'",
        "alter ? type text",
        "alter ? type bigint using !::bigint",
        "alter ? add generated always as identity",
    ];

    /// A table as the gateway itself makes one.
    fn whole() -> Schema {
        let sql =
            "create table t(a int primary key, b numeric(4,1) unique check (b > 1), c text default 'x', check (a > b),
            foreign key (a) references t(b))";
        let sql = translate(sql, &Schema::default(), "UTC", &[]).unwrap().sql;
        let database = rusqlite::Connection::open_in_memory().unwrap();
        bezant_sql::add_functions(&database).unwrap();
        database.execute_batch(&sql).unwrap();
        let mut statement = database.prepare(SCHEMA_SQL).unwrap();
        let width = statement.column_count();
        let mut rows = statement.query([]).unwrap();
        let mut all = bezant_sql::Rows::default();
        while let Some(row) = rows.next().unwrap() {
            all.rows.push((0..width).map(|at| Value::try_from(row.get_ref(at).unwrap()).unwrap()).collect());
        }
        Schema::of(&all)
    }
}
