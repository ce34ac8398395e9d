//! What the tables are: the names and types that statements are bound to.

use super::kinds::{Modifier, Type};
use crate::tokens::{Kind, Token, tokens};
use bezant_sql::{Rows, Value};
use std::collections::BTreeMap;
use std::sync::Arc;

/// Asks the replicas for the schema, and which version of it this is, in one state. A view may be about what is no
/// longer there: its columns cannot be asked for with those of the others.
pub(crate) const SCHEMA_SQL: &str = "select (select schema_version from pragma_schema_version), \
     s.type, s.name, s.sql, coalesce(x.name, s.tbl_name), x.type, x.\"notnull\", x.dflt_value, x.pk, x.hidden \
     from sqlite_schema s left join pragma_table_xinfo(s.name) x on s.type = 'table' \
     where s.type in ('table', 'view') or s.type = 'index' and s.sql is not null order by s.rowid, x.cid";

/// A column of a table.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Column {
    pub(crate) name: String,
    pub(crate) kind: Type,
    pub(crate) modifier: Modifier,
    pub(crate) not_null: bool,
    /// What it is if nothing is said, in SQLite's words.
    pub(crate) default: Option<String>,
    /// Whether it numbers itself.
    pub(crate) is_rowid: bool,
    /// Whether it is of the primary key.
    pub(crate) is_key: bool,
    /// Whether it is computed, and cannot be written.
    pub(crate) is_generated: bool,
    /// Whether it numbers itself and takes no number.
    pub(crate) is_always: bool,
}

impl Column {
    /// One of a query's.
    pub(crate) fn new(name: impl Into<String>, kind: Type, modifier: Modifier) -> Self {
        let name = name.into();
        Self {
            name,
            kind,
            modifier,
            not_null: false,
            default: None,
            is_rowid: false,
            is_key: false,
            is_generated: false,
            is_always: false,
        }
    }
}

/// A table or a view.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Table {
    pub(crate) name: String,
    pub(crate) columns: Vec<Column>,
    pub(crate) is_view: bool,
    /// Columns of the primary key.
    keys: usize,
    /// The tables that its rows refer to, in lower case.
    refers: Vec<String>,
    indexes: Vec<Index>,
    /// What no two rows have in common, by the constraints' names: the columns.
    pub(super) unique: Vec<(String, Vec<String>)>,
    /// The statement that has made it.
    pub(crate) sql: Arc<str>,
    /// Whether its primary key never gives a number twice.
    pub(super) counts: bool,
}

/// An index that somebody has created.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Index {
    pub(super) name: String,
    /// The names that stand in it.
    names: Vec<String>,
    /// Whether it is of columns as they are, compared by their own rules.
    pub(super) is_plain: bool,
}

impl Column {
    /// How SQLite is told its type.
    pub(crate) fn declaration(&self) -> String {
        let word = self.kind.declaration();
        match (self.kind, self.modifier) {
            (Type::Numeric, Some((precision, scale))) => format!("{word}({precision},{scale})"),
            (_, Some((length, _))) => format!("{word}({length})"),
            (_, None) => word.into(),
        }
    }
}

impl Table {
    /// How many columns its primary key has.
    pub(super) const fn keys(&self) -> usize {
        self.keys
    }

    /// The indexes that depend on a column.
    pub(super) fn indexes_of(&self, column: &str) -> impl Iterator<Item = &Index> {
        self.indexes.iter().filter(move |index| index.names.iter().any(|name| name == column))
    }

    /// One that is being created.
    pub(super) fn new(name: String, columns: Vec<Column>) -> Self {
        let (refers, indexes, unique, sql) = (Vec::new(), Vec::new(), Vec::new(), "".into());
        Self { name, columns, is_view: false, keys: 0, refers, indexes, unique, sql, counts: false }
    }
}

/// See the [module](self).
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Schema {
    /// SQLite's `schema_version` at the replicas.
    pub(crate) version: u32,
    /// By their names in lower case: SQLite does not tell upper from lower case.
    tables: BTreeMap<String, Table>,
}

impl Schema {
    /// From the rows that [`SCHEMA_SQL`] gives.
    pub(crate) fn of(rows: &Rows) -> Self {
        let mut schema = Self::default();
        for row in &rows.rows {
            let [version, Value::Text(kind), Value::Text(name), sql, column @ ..] = &row[..] else { continue };
            if let Value::Integer(version) = version {
                schema.version = *version as u32;
            }
            let sql = if let Value::Text(sql) = sql { sql.as_str() } else { "" };
            if kind == "index" {
                schema.add_index(name, sql, column);
                continue;
            }
            let is_view = kind == "view";
            let table = schema.tables.entry(name.to_ascii_lowercase()).or_insert_with(|| Table {
                name: name.clone(),
                columns: if is_view { view_columns(sql) } else { Vec::new() },
                is_view,
                keys: 0,
                refers: references(sql),
                indexes: Vec::new(),
                unique: unique(name, sql),
                sql: sql.into(),
                counts: tokens(sql).iter().any(|token| token.is("autoincrement")),
            });
            if !is_view {
                table.columns.extend(table_column(column, sql));
                table.keys += usize::from(matches!(column.get(4), Some(Value::Integer(1..))));
            }
        }
        for table in schema.tables.values_mut() {
            // Only an INTEGER that is the whole primary key is the rowid.
            for column in &mut table.columns {
                column.is_rowid &= table.keys == 1;
                column.not_null |= column.is_rowid;
            }
        }
        let columns = ["type", "name", "tbl_name", "rootpage", "sql"];
        let kind = |name: &str| if name == "rootpage" { Type::Int8 } else { Type::Text };
        let columns = columns.iter().map(|name| Column::new(*name, kind(name), None)).collect();
        let name = "sqlite_schema".to_owned();
        schema.tables.insert(name.clone(), Table { is_view: true, ..Table::new(name, columns) });
        schema
    }

    /// An index of a table that came before it: behind the table's name all that is quoted is a column.
    fn add_index(&mut self, name: &str, sql: &str, table: &[Value]) {
        let Some(Value::Text(table)) = table.first() else { return };
        let Some(table) = self.tables.get_mut(&table.to_ascii_lowercase()) else { return };
        let behind: Vec<_> = tokens(sql).into_iter().skip_while(|token| !token.is_symbol("(")).collect();
        let is_plain = |token: &Token<'_>| match token.kind {
            Kind::Quoted | Kind::Space => true,
            Kind::Word => token.is("desc"),
            _ => matches!(token.text, "(" | "," | ")"),
        };
        let is_plain = behind.iter().all(is_plain);
        let names = behind.iter().filter(|token| token.kind == Kind::Quoted).filter_map(Token::name).collect();
        table.indexes.push(Index { name: name.into(), names, is_plain });
    }

    /// The tables whose rows refer to those of this one, itself included.
    pub(super) fn referrers(&self, name: &str) -> impl Iterator<Item = &Table> {
        let name = name.to_ascii_lowercase();
        self.tables.values().filter(move |table| table.refers.contains(&name))
    }

    /// Whether a table, a view or an index has this name.
    pub(super) fn has_relation(&self, name: &str) -> bool {
        let is = |own: &str| own.eq_ignore_ascii_case(name);
        self.tables.values().any(|table| is(&table.name) || table.indexes.iter().any(|index| is(&index.name)))
    }

    /// A view that names a column of a table.
    pub(super) fn view_of(&self, table: &str, column: &str) -> Option<&str> {
        let names = |view: &&Table| {
            if !view.is_view {
                return false;
            }
            let all: Vec<String> = tokens(&view.sql).iter().filter_map(Token::name).collect();
            let has = |name: &str| all.iter().any(|own| own.eq_ignore_ascii_case(name));
            has(table) && has(column)
        };
        self.tables.values().find(names).map(|view| view.name.as_str())
    }

    /// The name of another table whose rows refer to those of this one, and that is none of these.
    pub(crate) fn referrer(&self, name: &str, but: &[String]) -> Option<&str> {
        let name = name.to_ascii_lowercase();
        let is_left = |own: &String| *own != name && !but.iter().any(|gone| gone.eq_ignore_ascii_case(own));
        let refers = |(own, table): &(&String, &Table)| is_left(own) && table.refers.contains(&name);
        self.tables.iter().find(refers).map(|(_, table)| table.name.as_str())
    }

    /// Tables whose rows are referred to behind those that refer to them. Of tables that refer to each other in a
    /// circle, or are referred to from elsewhere: one of them, and who refers to it.
    pub(super) fn referrers_first(&self, mut left: Vec<String>) -> Result<Vec<String>, (String, String)> {
        let mut first = Vec::new();
        while !left.is_empty() {
            match left.iter().position(|table| self.referrer(table, &first).is_none()) {
                Some(next) => first.push(left.remove(next)),
                None => {
                    let referrer = self.referrer(&left[0], &first).unwrap_or_default().to_owned();
                    return Err((left.swap_remove(0), referrer));
                }
            }
        }
        Ok(first)
    }

    /// The table that has an index with this name.
    pub(super) fn indexed(&self, index: &str) -> Option<&Table> {
        let has = |table: &&Table| table.indexes.iter().any(|found| found.name.eq_ignore_ascii_case(index));
        self.tables.values().find(has)
    }

    /// The table or view with this name.
    pub(crate) fn table(&self, name: &str) -> Option<&Table> {
        self.tables.get(&name.to_ascii_lowercase())
    }
}

impl Type {
    /// The type of a column by its declaration and the statement that has made its table.
    pub(crate) fn of_column(name: &str, declared: &str, sql: &str) -> (Self, Modifier) {
        if !declared.eq_ignore_ascii_case("integer") {
            return Self::of_declaration(declared);
        }
        let quoted = super::name(name);
        let kind = match () {
            () if sql.contains(&integer_check(&quoted)) => Self::Int4,
            () if sql.contains(&format!("{quoted} BETWEEN -32768 AND 32767")) => Self::Int2,
            () if sql.contains("/*pg ") => Self::Int4,
            () => Self::Int8,
        };
        (kind, None)
    }
}

/// The CHECK that makes an INTEGER one of PostgreSQL's: without it, it is as wide as SQLite's.
pub(crate) fn integer_check(name: &str) -> String {
    format!("{name} BETWEEN -2147483648 AND 2147483647")
}

/// What is behind INTEGER where a column numbers itself and takes no number. Its type stays the one word with which
/// SQLite has a column number itself.
pub(crate) const ALWAYS: &str = "/*always*/";

fn table_column(values: &[Value], sql: &str) -> Option<Column> {
    let [Value::Text(name), Value::Text(declared), Value::Integer(not_null), default, Value::Integer(key), hidden] =
        values
    else {
        return None;
    };
    let (kind, modifier) = Type::of_column(name, declared, sql);
    Some(Column {
        name: name.clone(),
        kind,
        modifier,
        not_null: *not_null != 0,
        default: if let Value::Text(default) = default { Some(default.clone()) } else { None },
        // For now: part of the primary key, and an INTEGER.
        is_rowid: *key != 0 && declared.eq_ignore_ascii_case("integer"),
        is_key: *key != 0,
        is_generated: matches!(hidden, Value::Integer(2 | 3)),
        is_always: sql.contains(&format!("{} INTEGER {ALWAYS}", super::name(name))),
    })
}

/// The constraints of a table that say what no two rows have in common, with PostgreSQL's names where they have none.
fn unique(table: &str, sql: &str) -> Vec<(String, Vec<String>)> {
    let tokens = tokens(sql);
    let solid: Vec<&Token<'_>> = tokens.iter().filter(|token| token.is_solid()).collect();
    let Some(open) = solid.iter().position(|token| token.is_symbol("(")) else { return Vec::new() };
    let (mut all, mut depth, mut column, mut called) = (Vec::new(), 0_u32, None, None);
    for (at, token) in solid.iter().enumerate().skip(open + 1) {
        let before = solid[at - 1];
        match token.text {
            "(" => depth += 1,
            ")" => depth = depth.saturating_sub(1),
            _ if depth > 0 => {}
            _ if before.is_symbol(",") || at == open + 1 => {
                (column, called) = (token.name().filter(|_| !token.is_any(&["constraint", "primary", "unique"])), None);
            }
            _ if before.is("constraint") => called = token.name(),
            _ => {}
        }
        let is_key = token.is("key") && before.is("primary");
        if depth == 0 && (is_key || token.is("unique")) {
            let is_first = |pair: &&[&Token<'_>]| pair[0].is_symbol("(") || pair[0].is_symbol(",");
            let listed = solid[at + 1..].windows(2).take_while(|pair| !pair[0].is_symbol(")"));
            let listed = listed.filter(is_first).filter_map(|pair| pair[1].name());
            let columns: Vec<String> = column.clone().map_or_else(|| listed.collect(), |column| vec![column]);
            let own = if is_key { format!("{table}_pkey") } else { format!("{table}_{}_key", columns.join("_")) };
            all.push((called.take().unwrap_or(own), columns));
        }
    }
    all
}

/// What stands behind each REFERENCES of a table.
fn references(sql: &str) -> Vec<String> {
    let tokens = tokens(sql);
    let solid: Vec<_> = tokens.iter().filter(|token| token.is_solid()).collect();
    let other = |pair: &[&Token<'_>]| {
        let name = pair[1].name().filter(|_| pair[0].is("references"));
        name.map(|name| name.to_ascii_lowercase())
    };
    solid.windows(2).filter_map(other).collect()
}

/// A view says in a comment what its columns are: `/* a integer, b numeric(10,2) */`. One that somebody else made has
/// columns of whatever type, whose names the gateway does not know.
pub(crate) fn view_columns(sql: &str) -> Vec<Column> {
    let comment = tokens(sql).into_iter().find(|token| token.kind == Kind::Space && token.text.starts_with("/*pg "));
    let Some(comment) = comment else { return Vec::new() };
    let inside = comment.text.trim_start_matches("/*pg ").trim_end_matches("*/");
    let parts = tokens(inside);
    let solid: Vec<_> = parts.iter().filter(|token| token.is_solid()).collect();
    let column = |part: &[&Token<'_>]| {
        let (name, rest) = part.split_first()?;
        let declared: String = rest.iter().map(|token| token.text).collect::<Vec<_>>().join(" ");
        let declared = declared.replace(" (", "(").replace("( ", "(").replace(" )", ")").replace(" , ", ",");
        let (kind, modifier) = Type::of_column("", &declared, "/*pg ");
        Some(Column::new(name.name()?, kind, modifier))
    };
    solid.split(|token| token.is_symbol(";")).filter_map(column).collect()
}

/// What [`view_columns`] reads.
pub(crate) fn view_comment(columns: &[Column]) -> String {
    let one = |column: &Column| format!("{} {}", super::name(&column.name), column.declaration());
    format!("/*pg {}*/", columns.iter().map(one).collect::<Vec<_>>().join("; "))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn constraints_are_found_by_their_names() {
        let sql = r#"CREATE TABLE "t" ("a" INTEGER CHECK ("a" IN (1, 2)) PRIMARY KEY, "b" TEXT CONSTRAINT "one" UNIQUE,
            "c" NUMERIC_TEXT(10,2) UNIQUE DEFAULT ('unique (x'), CONSTRAINT "two" UNIQUE ("a" COLLATE x, "b" DESC),
            UNIQUE ("b", "c"))"#;
        let of = |name: &str, columns: &[&str]| (name.to_owned(), columns.iter().map(|c| (*c).to_owned()).collect());
        let wanted = [
            of("t_pkey", &["a"]),
            of("one", &["b"]),
            of("t_c_key", &["c"]),
            of("two", &["a", "b"]),
            of("t_b_c_key", &["b", "c"]),
        ];
        assert_eq!(unique("t", sql), wanted);
        assert_eq!(unique("t", "create table t"), []);
    }

    #[test]
    fn views_say_what_they_are() {
        let columns = [
            Column::new("a", Type::Int4, None),
            Column::new("b \" /", Type::Numeric, Some((10, 2))),
            Column::new("c", Type::Float8, None),
            Column::new("d", Type::Any, None),
        ];
        let sql = format!("CREATE VIEW v AS {} SELECT 1", view_comment(&columns));
        assert_eq!(view_columns(&sql), columns);
        assert!(view_columns("create view v as select 1").is_empty());
    }
}
