//! Statements at random: most of them sensible, some of them wrong.

use crate::rng::Rng;

/// A table as the generator believes it to be. It may be wrong: statements fail, too.
#[derive(Clone, Debug)]
struct Table {
    name: String,
    columns: Vec<String>,
    /// How many columns are computed: the last ones.
    generated: usize,
    is_view: bool,
}

/// Makes statements that refer to what earlier ones made.
#[derive(Debug)]
pub(super) struct Grammar {
    rng: Rng,
    tables: Vec<Table>,
    names: u64,
    /// Whether statements may use what plain SQLite does not have or takes from elsewhere: time, randomness, and the
    /// functions of PostgreSQL's types.
    agreed: bool,
}

/// How deep expressions nest.
const DEPTH: u32 = 3;

const TYPES: [&str; 7] = ["integer", "text", "real", "blob", "numeric", "varchar(10)", ""];
const CONFLICTS: [&str; 5] = ["", "or ignore ", "or replace ", "or fail ", "or abort "];
const TERMS: [&str; 14] = [
    "null",
    "0",
    "1",
    "-1",
    "7",
    "2.5",
    "-0.125",
    "1e9",
    "'a'",
    "'abc'",
    "'2024-02-29'",
    "x'00ff'",
    "''",
    "9007199254740993",
];
const OPERATORS: [&str; 20] = [
    "+", "-", "*", "/", "%", "||", "=", "<>", "<", ">=", "and", "or", "is", "is not", "&", "|", "<<", ">>", "like",
    "glob",
];
#[rustfmt::skip]
const FUNCTIONS: [(&str, u32); 34] = [
    ("abs", 1), ("coalesce", 2), ("hex", 1), ("ifnull", 2), ("instr", 2), ("length", 1), ("lower", 1), ("upper", 1),
    ("max", 2), ("min", 2), ("nullif", 2), ("quote", 1), ("replace", 3), ("round", 2), ("substr", 3), ("trim", 1),
    ("typeof", 1), ("unicode", 1), ("char", 2), ("printf", 2), ("iif", 3), ("sign", 1), ("date", 2), ("julianday", 1),
    ("strftime", 2), ("unixepoch", 1), ("json_array", 2), ("json_extract", 2), ("json_type", 1), ("concat", 2),
    ("unhex", 1), ("octet_length", 1), ("json_quote", 1), ("timediff", 2),
];
/// Functions of PostgreSQL's types, with what their arguments look like: an expression for each `?`.
#[rustfmt::skip]
const TYPED: [&str; 44] = [
    "pg_in_bool(?)", "pg_in_int2(?)", "pg_in_int8(?)", "pg_in_float4(?)", "pg_in_float8(?)", "pg_in_numeric(?)",
    "pg_in_numeric(?, 6, 2)", "pg_in_bytea(?)", "pg_in_date(?)", "pg_in_time('01:02:0' || ?)",
    "pg_in_timestamp('2024-02-29 1:' || ?)", "pg_in_timestamptz(?, '+02:00')", "pg_in_interval(? || ' days')",
    "pg_in_uuid(?)", "pg_in_json(?)", "pg_in_jsonb('[' || ? || ']')", "pg_out_float8(?)", "pg_out_bytea(?)",
    "pg_to_int4(?)", "pg_numeric_fit(?, 5, 1)", "pg_int_add(?, ?, 32)", "pg_int_div(?, ?, 64)", "pg_int_neg(?, 16)",
    "pg_float_mul(?, ?)", "pg_float_div(?, ?)", "pg_numeric_add(?, ?)", "pg_numeric_mul(?, ?)",
    "pg_numeric_div(?, ?)", "pg_numeric_mod(?, ?)", "pg_numeric_round(?, ?)", "pg_numeric_cmp(?, ?)",
    "pg_timestamp_add_interval('2024-01-31 00:00:00', ? || ' 1 0')", "pg_date_trunc('month', ?)",
    "pg_extract('second', ?)", "pg_like(?, ?)", "pg_ilike(?, '%' || ?)", "pg_like(?, ?, ?)", "pg_substr(?, ?, ?)",
    "pg_lpad(?, 5, ?)", "pg_varchar(?, 3)", "pg_char_cut(?, 2)", "pg_float8_to_numeric(?)", "pg_int_to_numeric(?)",
    "(? collate pg_numeric > ?)",
];
const TYPED_AGGREGATES: [&str; 6] =
    ["pg_numeric_sum", "pg_numeric_avg", "pg_int_sum", "pg_bigint_sum", "pg_float_sum", "pg_float_avg"];
const AGGREGATES: [&str; 9] =
    ["count(*)", "count", "sum", "total", "avg", "min", "max", "group_concat", "json_group_array"];
const WINDOWS: [&str; 8] =
    ["row_number()", "rank()", "dense_rank()", "ntile(3)", "lag(1)", "lead(1, 2)", "first_value(1)", "cume_dist()"];
const AGREED: [&str; 8] = [
    "random()",
    "hex(randomblob(4))",
    "current_timestamp",
    "date('now')",
    "strftime('%f', 'now')",
    "julianday('now')",
    "unixepoch('now', 'subsec')",
    "current_time",
];
const REFUSED: [&str; 10] = [
    "commit",
    "begin",
    "savepoint a",
    "pragma cache_size = 5",
    "attach 'x' as y",
    "vacuum",
    "select total_changes()",
    "create temp table temporary(a)",
    "select load_extension('x')",
    "explain select 1",
];

impl Grammar {
    pub(super) fn new(seed: u64, agreed: bool) -> Self {
        Self { rng: Rng::stream(seed, "sql"), tables: Vec::new(), names: 0, agreed }
    }

    fn one_of<'a>(&mut self, words: &[&'a str]) -> &'a str {
        words[self.rng.below(words.len() as u64) as usize]
    }

    fn chance(&mut self, percent: u64) -> bool {
        self.rng.below(100) < percent
    }

    fn some<T>(&mut self, most: u64, mut make: impl FnMut(&mut Self) -> T) -> Vec<T> {
        (0..self.rng.between(1, most)).map(|_| make(self)).collect()
    }

    fn name(&mut self, prefix: &str) -> String {
        self.names += 1;
        format!("{prefix}{}", self.names)
    }

    /// A table that should be there.
    fn table(&mut self) -> Table {
        match self.tables.is_empty() {
            true => Table { name: "nowhere".into(), columns: vec!["a".into()], generated: 0, is_view: false },
            false => self.tables[self.rng.below(self.tables.len() as u64) as usize].clone(),
        }
    }

    /// A table that can be written, and its columns that can be: nearly always.
    fn writable(&mut self) -> Table {
        let tables: Vec<Table> = self.tables.iter().filter(|table| !table.is_view).cloned().collect();
        if tables.is_empty() || self.chance(4) {
            return self.table();
        }
        let mut table = tables[self.rng.below(tables.len() as u64) as usize].clone();
        table.columns.truncate(table.columns.len() - table.generated);
        table
    }

    fn column(&mut self, columns: &[String]) -> String {
        columns[self.rng.below(columns.len() as u64) as usize].clone()
    }

    /// The next statement; one that only reads, if that is wanted.
    pub(super) fn statement(&mut self, read: bool) -> String {
        if read {
            return self.select(2);
        }
        match self.rng.below(100) {
            _ if self.tables.is_empty() => self.create_table(),
            0..12 => self.create_table(),
            12..16 => self.create_index(),
            16..20 => self.create_trigger(),
            20..24 => self.create_view(),
            24..29 => self.change_schema(),
            29..61 => self.insert(),
            61..73 => self.update(),
            73..80 => self.delete(),
            80..97 => self.select(2),
            _ => self.one_of(&REFUSED).to_owned(),
        }
    }

    /// A statement about rows.
    pub(super) fn rows(&mut self) -> String {
        match self.rng.below(100) {
            0..60 => self.insert(),
            60..75 => self.update(),
            75..80 => self.delete(),
            _ => self.select(2),
        }
    }

    fn create_table(&mut self) -> String {
        if self.tables.len() > 6 {
            return self.insert();
        }
        let name = self.name("t");
        let columns: Vec<String> = (0..self.rng.between(1, 5)).map(|n| format!("c{n}")).collect();
        let mut parts = self.parts(&columns);
        let rowid = if parts[0].contains("primary key") && !parts[0].contains("autoincrement") && self.chance(20) {
            " without rowid"
        } else {
            ""
        };
        let mut columns = columns;
        let mut generated = 0;
        if self.chance(25) {
            let (expression, kind) = (self.expression(&columns, 1), self.one_of(&["stored", "virtual"]));
            parts.insert(columns.len(), format!("computed generated always as ({expression}) {kind}"));
            columns.push("computed".to_owned());
            generated = 1;
        }
        self.tables.push(Table { name: name.clone(), columns, generated, is_view: false });
        format!("create table {name}({}){rowid}", parts.join(", "))
    }

    /// What a table of some columns is made of.
    fn parts(&mut self, columns: &[String]) -> Vec<String> {
        let mut parts = Vec::new();
        for (number, column) in columns.iter().enumerate() {
            let key = match number {
                0 => self.one_of(&["", "primary key", "primary key autoincrement", "primary key desc"]),
                _ => "",
            };
            let kind = if key.is_empty() { self.one_of(&TYPES) } else { "integer" };
            parts.push(format!("{column} {kind} {key} {}", self.column_constraint(&columns[..number])));
        }
        if self.chance(20) {
            parts.push(format!("unique ({}) on conflict {}", columns[0], self.one_of(&["abort", "ignore", "replace"])));
        }
        if self.chance(8) {
            let parent = self.table();
            parts.push(format!(
                "foreign key ({}) references {} {}",
                columns[0],
                parent.name,
                self.one_of(&["", "on delete cascade", "on delete set null", "deferrable initially deferred"])
            ));
        }
        parts
    }

    /// Whether a table is made anew now, which plain SQLite does not do.
    pub(super) fn rebuilds(&mut self) -> bool {
        self.agreed && !self.tables.is_empty() && self.chance(4)
    }

    /// A table that is made anew: most columns keep their values.
    pub(super) fn rebuild(&mut self) -> [String; 4] {
        let Table { name, columns, .. } = self.writable();
        let parts = self.parts(&columns);
        let known = self.tables.iter_mut().filter(|other| other.name == name);
        known.for_each(|other| (other.columns, other.generated) = (columns.clone(), 0));
        let values: Vec<String> = columns
            .iter()
            .map(|column| if self.chance(85) { column.clone() } else { self.expression(&columns, 1) })
            .collect();
        [name, format!("({})", parts.join(", ")), columns.join(", "), values.join(", ")]
    }

    fn column_constraint(&mut self, before: &[String]) -> String {
        match self.rng.below(10) {
            0 => "not null".into(),
            1 => "unique".into(),
            2 => format!("check ({})", self.expression(before, 1)),
            3..6 => {
                let value = self.value();
                format!("default ({value})")
            }
            6 if self.agreed => "collate pg_numeric".into(),
            6 => "collate nocase".into(),
            _ => String::new(),
        }
    }

    /// A value of no column.
    fn value(&mut self) -> String {
        if self.agreed && self.chance(40) { self.one_of(&AGREED) } else { self.one_of(&TERMS) }.to_owned()
    }

    fn create_index(&mut self) -> String {
        let (name, table) = (self.name("i"), self.writable());
        let unique = if self.chance(20) { "unique " } else { "" };
        let columns =
            self.some(2, |g| if g.chance(70) { g.column(&table.columns) } else { g.expression(&table.columns, 1) });
        let partial =
            if self.chance(25) { format!(" where {}", self.expression(&table.columns, 1)) } else { String::new() };
        format!("create {unique}index {name} on {}({}){partial}", table.name, columns.join(", "))
    }

    fn create_view(&mut self) -> String {
        let name = self.name("v");
        let table = self.table();
        let columns = vec!["a".to_owned(), "b".to_owned()];
        let (first, second) = (self.expression(&table.columns, 2), self.expression(&table.columns, 2));
        let rest = self.condition(&table.columns);
        self.tables.push(Table { name: name.clone(), columns, generated: 0, is_view: true });
        format!("create view {name}(a, b) as select {first}, {second} from {}{rest}", table.name)
    }

    fn create_trigger(&mut self) -> String {
        let (name, table) = (self.name("g"), self.table());
        let event = self.one_of(&["insert", "update", "delete"]);
        let time = if table.is_view { "instead of" } else { self.one_of(&["before", "after"]) };
        let row = if event == "delete" { "old" } else { "new" };
        let columns: Vec<String> = table.columns.iter().map(|column| format!("{row}.{column}")).collect();
        let when = if self.chance(30) { format!("when {}", self.expression(&columns, 1)) } else { String::new() };
        let target = self.table();
        let body = match self.rng.below(4) {
            0 => format!(
                "select raise({}, 'no') where {}",
                self.one_of(&["abort", "ignore", "fail", "rollback"]),
                self.expression(&columns, 1)
            ),
            1 => format!("delete from {} where {} = {}", target.name, target.columns[0], self.expression(&columns, 1)),
            _ => {
                let column = self.column(&target.columns);
                format!("insert or ignore into {}({column}) values ({})", target.name, self.expression(&columns, 1))
            }
        };
        format!("create trigger {name} {time} {event} on {} for each row {when} begin {body}; end", table.name)
    }

    fn change_schema(&mut self) -> String {
        let table = self.table();
        match self.rng.below(7) {
            0 => {
                self.tables.retain(|other| other.name != table.name);
                format!("drop {} {}", if table.is_view { "view" } else { "table" }, table.name)
            }
            1 => {
                let name = self.name("c");
                let value = self.one_of(&TERMS);
                let known = self.tables.iter_mut().find(|other| other.name == table.name);
                known.into_iter().for_each(|other| other.columns.insert(0, name.clone()));
                format!("alter table {} add column {name} default {value}", table.name)
            }
            2 => {
                let name = self.name("t");
                let known = self.tables.iter_mut().find(|other| other.name == table.name);
                known.into_iter().for_each(|other| other.name.clone_from(&name));
                format!("alter table {} rename to {name}", table.name)
            }
            3 => format!("alter table {} drop column {}", table.name, self.column(&table.columns)),
            4 => "analyze".into(),
            5 => "reindex".into(),
            _ => format!("drop index if exists i{}", self.rng.between(1, self.names + 1)),
        }
    }

    fn insert(&mut self) -> String {
        let table = self.writable();
        let conflict = self.one_of(&CONFLICTS);
        let columns = self.some(3, |g| g.column(&table.columns));
        let source = if self.chance(80) {
            let rows = self.some(4, |g| {
                let values: Vec<String> = columns.iter().map(|_| g.expression(&[], 1)).collect();
                format!("({})", values.join(", "))
            });
            format!("values {}", rows.join(", "))
        } else {
            let other = self.table();
            let values: Vec<String> = columns.iter().map(|_| self.expression(&other.columns, 1)).collect();
            format!("select {} from {} where true limit 20", values.join(", "), other.name)
        };
        let upsert = if conflict.is_empty() && self.chance(30) {
            let (column, value) = (self.column(&table.columns), self.expression(&table.columns, 1));
            match self.rng.below(3) {
                0 => " on conflict do nothing".to_owned(),
                1 => format!(" on conflict do update set {column} = {value}"),
                _ => format!(" on conflict ({}) do update set {column} = excluded.{column}", table.columns[0]),
            }
        } else {
            String::new()
        };
        let returning = self.returning(&table.columns);
        format!("insert {conflict}into {}({}) {source}{upsert}{returning}", table.name, columns.join(", "))
    }

    fn returning(&mut self, columns: &[String]) -> String {
        if self.chance(20) { format!(" returning {}", self.expression(columns, 2)) } else { String::new() }
    }

    fn update(&mut self) -> String {
        let table = self.writable();
        let sets = self.some(2, |g| format!("{} = {}", g.column(&table.columns), g.expression(&table.columns, 2)));
        let rest = self.condition(&table.columns);
        let returning = self.returning(&table.columns);
        format!("update {}{} set {}{rest}{returning}", self.one_of(&CONFLICTS), table.name, sets.join(", "))
    }

    fn delete(&mut self) -> String {
        let table = self.writable();
        let condition = format!(" where {}", self.expression(&table.columns, 2));
        let returning = self.returning(&table.columns);
        format!("delete from {}{condition}{returning}", table.name)
    }

    fn condition(&mut self, columns: &[String]) -> String {
        if self.chance(60) { format!(" where {}", self.expression(columns, 2)) } else { String::new() }
    }

    fn select(&mut self, depth: u32) -> String {
        let table = self.table();
        let columns = &table.columns;
        match self.rng.below(9) {
            0 => format!("select * from {}", table.name),
            1 => {
                let other = self.table();
                let join = self.one_of(&["join", "left join", "cross join", "full join", "natural join"]);
                let on = if join.starts_with("cross") || join.starts_with("natural") {
                    String::new()
                } else {
                    format!(" on x.{} = y.{}", self.column(columns), self.column(&other.columns))
                };
                format!("select x.*, y.{} from {} x {join} {} y{on} limit 40", other.columns[0], table.name, other.name)
            }
            2 => {
                let (key, aggregate) = (self.column(columns), self.aggregate(columns));
                let having = if self.chance(30) { " having count(*) > 1" } else { "" };
                format!("select {key}, {aggregate} from {} group by 1{having} order by 1, 2", table.name)
            }
            3 => {
                let (window, key) = (self.one_of(&WINDOWS), self.column(columns));
                let order = self.column(columns);
                format!("select {key}, {window} over (partition by {key} order by {order}) from {}", table.name)
            }
            4 if depth > 0 => {
                let word = self.one_of(&["union", "union all", "except", "intersect"]);
                let other = self.table();
                let (first, second) = (self.expression(columns, 1), self.expression(&other.columns, 1));
                format!("select {first} from {} {word} select {second} from {}", table.name, other.name)
            }
            5 => format!(
                "with recursive n(i) as (select 1 union all select i + 1 from n where i < {}) select i, {} from n",
                self.rng.between(1, 30),
                self.expression(&["i".to_owned()], 2)
            ),
            6 => format!("select value, type from json_each(json_array({}, {}))", self.value(), self.value()),
            7 => format!(
                "select {} from {} order by {} limit 5",
                self.expression(columns, DEPTH),
                table.name,
                columns[0]
            ),
            _ => {
                let expressions = self.some(3, |g| g.expression(columns, DEPTH));
                let rest = self.condition(columns);
                format!("select {} from {}{rest}", expressions.join(", "), table.name)
            }
        }
    }

    /// A function of PostgreSQL's types, of whatever comes.
    fn typed(&mut self, columns: &[String], depth: u32) -> String {
        let pieces = self.one_of(&TYPED).split('?');
        let mut text = String::new();
        for (number, piece) in pieces.enumerate() {
            if number > 0 {
                text += &self.expression(columns, depth);
            }
            text += piece;
        }
        text
    }

    fn aggregate(&mut self, columns: &[String]) -> String {
        let names = if self.agreed && self.chance(30) { &TYPED_AGGREGATES[..] } else { &AGGREGATES };
        match self.one_of(names) {
            "count(*)" => "count(*)".into(),
            name => format!("{name}({})", self.expression(columns, 1)),
        }
    }

    fn expression(&mut self, columns: &[String], depth: u32) -> String {
        if depth == 0 || self.chance(25) {
            return if !columns.is_empty() && self.chance(65) { self.column(columns) } else { self.value() };
        }
        let below = depth - 1;
        match self.rng.below(8) {
            0 => {
                let (left, right) = (self.expression(columns, below), self.expression(columns, below));
                format!("({left} in ({right}, {}))", self.value())
            }
            1 => format!(
                "case when {} then {} else {} end",
                self.expression(columns, below),
                self.expression(columns, below),
                self.expression(columns, below)
            ),
            2 => format!("cast({} as {})", self.expression(columns, below), self.one_of(&TYPES[..5])),
            3 if self.chance(30) => {
                let table = self.table();
                format!("(select max({}) from {})", self.column(&table.columns), table.name)
            }
            4 if self.agreed && self.chance(50) => self.typed(columns, below),
            4 | 5 => {
                let (name, count) = FUNCTIONS[self.rng.below(FUNCTIONS.len() as u64) as usize];
                let arguments: Vec<String> = (0..count).map(|_| self.expression(columns, below)).collect();
                format!("{name}({})", arguments.join(", "))
            }
            _ => {
                let (left, right) = (self.expression(columns, below), self.expression(columns, below));
                format!("({left} {} {right})", self.one_of(&OPERATORS))
            }
        }
    }
}
