//! What a table was made with: the text of its CREATE TABLE in parts, so that one of them can be changed.
//!
//! The text is SQLite's, of tables that the gateway has made and of others. What is not understood gives none.

use super::kinds::Type;
use super::names::name;
use super::schema::{ALWAYS, Column};
use super::type_check::check;
use crate::error::PgError;
use crate::tokens::{Kind as TokenKind, Token, tokens};
use std::collections::{BTreeMap, BTreeSet};

/// The longest name that PostgreSQL gives, in bytes.
const NAME_BYTES_MAX: usize = 63;

/// What a part of a column, or of a table, says.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Kind {
    Null,
    NotNull,
    Default,
    Collate,
    Generated,
    PrimaryKey,
    Unique,
    Check,
    ForeignKey,
}

/// A constraint, or whatever else a column has besides a name and a type.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Constraint {
    /// The name that was given to it.
    pub(crate) name: Option<String>,
    pub(crate) kind: Kind,
    /// What it says, without its name.
    pub(crate) text: String,
    /// The columns of a key. Of a CHECK, all names that stand in it.
    pub(crate) columns: Vec<String>,
}

/// A column.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct ColumnPart {
    pub(crate) name: String,
    /// Its type, as SQLite was told.
    pub(crate) declared: String,
    /// Whether it numbers itself and takes no number.
    pub(crate) is_always: bool,
    pub(crate) constraints: Vec<Constraint>,
}

/// See the [module](self).
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Definition {
    pub(crate) columns: Vec<ColumnPart>,
    pub(crate) constraints: Vec<Constraint>,
    /// What stands behind the parentheses.
    tail: String,
    /// The whole text, from which types are read.
    sql: String,
}

/// Where a constraint stands: with a column, by its place, or with the table; and its place there.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Place {
    pub(crate) column: Option<usize>,
    pub(crate) at: usize,
}

/// A constraint as PostgreSQL's catalog has it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Named {
    pub(crate) name: String,
    pub(crate) place: Place,
    pub(crate) constraint: Constraint,
}

impl Constraint {
    /// One that a column or a table has, by its text.
    pub(crate) fn parse(text: &str, column: Option<&str>) -> Option<Self> {
        let all = tokens(text);
        clauses(&all, column)?.into_iter().next()
    }

    /// The table and the columns that a foreign key refers to; no columns: those of the primary key.
    pub(crate) fn target(&self) -> Option<(String, Vec<String>)> {
        let all = tokens(&self.text);
        let solid: Vec<&Token<'_>> = all.iter().filter(|token| token.is_solid()).collect();
        let at = solid.iter().position(|token| token.is("references"))?;
        let table = solid.get(at + 1)?.name()?;
        let is_list = solid.get(at + 2).is_some_and(|token| token.is_symbol("("));
        Some((table, if is_list { in_parentheses(&solid[at + 2..]) } else { Vec::new() }))
    }

    /// Whether a column has to do with it.
    pub(crate) fn mentions(&self, column: &str) -> bool {
        self.columns.iter().any(|own| own == column)
    }

    fn render(&self) -> String {
        let called = self.name.as_ref().map(|called| format!("CONSTRAINT {} ", name(called)));
        called.unwrap_or_default() + &self.text
    }
}

impl ColumnPart {
    /// A column by its text.
    pub(crate) fn parse(text: &str) -> Option<Self> {
        column(&tokens(text))
    }

    /// What it has of a kind.
    pub(crate) fn find(&self, kind: Kind) -> Option<&Constraint> {
        self.constraints.iter().find(|constraint| constraint.kind == kind)
    }

    /// Leaves out what it has of a kind.
    pub(crate) fn remove(&mut self, kind: Kind) {
        self.constraints.retain(|constraint| constraint.kind != kind);
    }

    /// Says something more, before all CHECKs.
    pub(crate) fn add(&mut self, kind: Kind, text: impl Into<String>) {
        let at = self.constraints.iter().position(|constraint| constraint.kind == Kind::Check);
        let constraint = Constraint { name: None, kind, text: text.into(), columns: vec![self.name.clone()] };
        self.constraints.insert(at.unwrap_or(self.constraints.len()), constraint);
    }

    /// The CHECK that keeps values out that are none of its type.
    pub(crate) fn type_check(column: &Column) -> Option<Constraint> {
        let text = check(column);
        let columns = vec![column.name.clone()];
        let text = (!text.is_empty()).then(|| format!("CHECK ({text})"))?;
        Some(Constraint { name: None, kind: Kind::Check, text, columns })
    }

    /// What stands for it in a CREATE TABLE.
    pub(crate) fn render(&self) -> String {
        let constraints = self.constraints.iter().map(Constraint::render);
        let declared = (!self.declared.is_empty()).then(|| self.declared.clone());
        let always = self.is_always.then(|| ALWAYS.to_owned());
        let parts = [name(&self.name)].into_iter().chain(declared).chain(always).chain(constraints);
        parts.collect::<Vec<_>>().join(" ")
    }
}

impl Definition {
    /// The parts of a CREATE TABLE. `None`: it is written in a way that is not understood.
    pub(crate) fn parse(sql: &str) -> Option<Self> {
        let all = tokens(sql);
        if all.iter().any(|token| token.kind == TokenKind::Symbol && matches!(token.text, "[" | "`")) {
            return None;
        }
        let open = all.iter().position(|token| token.is_symbol("(") || token.is("as"))?;
        if !all[open].is_symbol("(") {
            return None;
        }
        let (mut parts, mut depth, mut start) = (Vec::new(), 1_usize, open + 1);
        let mut close = None;
        for (at, token) in all.iter().enumerate().skip(open + 1) {
            match token.text {
                "(" if token.kind == TokenKind::Symbol => depth += 1,
                ")" if token.kind == TokenKind::Symbol => depth -= 1,
                _ => {}
            }
            if depth == 0 || depth == 1 && token.is_symbol(",") {
                parts.push(&all[start..at]);
                start = at + 1;
            }
            if depth == 0 {
                close = Some(at);
                break;
            }
        }
        let tail = text_of(&all[close? + 1..]);
        let mut definition = Self { columns: Vec::new(), constraints: Vec::new(), tail, sql: sql.into() };
        for part in parts {
            let first = part.iter().find(|token| token.is_solid())?;
            if first.is_any(&["constraint", "primary", "unique", "check", "foreign"]) {
                definition.constraints.extend(clauses(part, None)?);
            } else {
                definition.columns.push(column(part)?);
            }
        }
        Some(definition)
    }

    /// What stands behind `CREATE TABLE name`.
    pub(crate) fn render(&self) -> String {
        let columns = self.columns.iter().map(ColumnPart::render);
        let all: Vec<String> = columns.chain(self.constraints.iter().map(Constraint::render)).collect();
        format!("({}) {}", all.join(", "), self.tail).trim_end().into()
    }

    /// A column has another type now.
    pub(crate) fn retyped(&mut self) {
        self.sql = self.render();
    }

    /// The type of a column.
    pub(crate) fn column_of(&self, part: &ColumnPart) -> Column {
        let (kind, modifier) = Type::of_column(&part.name, &part.declared, &self.sql);
        Column::new(part.name.clone(), kind, modifier)
    }

    /// Whether it is a CHECK that the gateway has added for the sake of a column's type.
    pub(crate) fn is_of_type(&self, part: &ColumnPart, constraint: &Constraint) -> bool {
        constraint.kind == Kind::Check
            && constraint.name.is_none()
            && ColumnPart::type_check(&self.column_of(part)).is_some_and(|own| own.text == constraint.text)
    }

    /// What is a constraint to PostgreSQL, with the names that it gives to those that have none.
    pub(crate) fn named(&self, table: &str) -> Vec<Named> {
        let is_named = |kind| matches!(kind, Kind::PrimaryKey | Kind::Unique | Kind::Check | Kind::ForeignKey);
        let mut all: Vec<(Place, Constraint)> = Vec::new();
        for (number, part) in self.columns.iter().enumerate() {
            let own = part.constraints.iter().enumerate();
            let own = own.filter(|(_, constraint)| is_named(constraint.kind) && !self.is_of_type(part, constraint));
            all.extend(own.map(|(at, found)| (Place { column: Some(number), at }, found.clone())));
        }
        let own = self.constraints.iter().enumerate();
        all.extend(own.map(|(at, found)| (Place { column: None, at }, found.clone())));
        let own_names: BTreeSet<&str> = self.columns.iter().map(|part| part.name.as_str()).collect();
        let mut names = Names::default();
        names.taken.extend(all.iter().filter_map(|(_, constraint)| constraint.name.clone()));
        let mut named = Vec::new();
        for (place, mut constraint) in all {
            if constraint.kind == Kind::Check {
                let mut seen = BTreeSet::new();
                constraint.columns.retain(|name| own_names.contains(name.as_str()) && seen.insert(name.clone()));
                // That of a column is called for it, whatever it is about.
                if let (Some(column), None) = (place.column, &constraint.name) {
                    constraint.columns = vec![self.columns[column].name.clone()];
                }
            }
            let name = constraint.name.clone().unwrap_or_else(|| names.invent(table, &constraint));
            named.push(Named { name, place, constraint });
        }
        named
    }

    /// Writes those names down, so that they stay when the table or a column is called otherwise.
    ///
    /// # Errors
    /// If two constraints have one name.
    pub(crate) fn pin(&mut self, table: &str) -> Result<(), PgError> {
        let mut seen = BTreeSet::new();
        for Named { name, place, .. } in self.named(table) {
            self.at(place).name = Some(name.clone());
            if !seen.insert(name.clone()) {
                return Err(taken(&name, table));
            }
        }
        Ok(())
    }

    /// The constraint at a place.
    pub(crate) fn at(&mut self, place: Place) -> &mut Constraint {
        &mut self.list(place.column)[place.at]
    }

    /// Those of a column, or of the table.
    pub(crate) fn list(&mut self, column: Option<usize>) -> &mut Vec<Constraint> {
        match column {
            Some(column) => &mut self.columns[column].constraints,
            None => &mut self.constraints,
        }
    }

    /// The columns of the primary key.
    pub(crate) fn key(&self) -> Vec<String> {
        let own = self.columns.iter().flat_map(|part| &part.constraints);
        let found = own.chain(&self.constraints).find(|constraint| constraint.kind == Kind::PrimaryKey);
        found.map(|key| key.columns.clone()).unwrap_or_default()
    }
}

/// A part that the gateway itself has just written, and does not understand.
pub(crate) fn not_understood() -> PgError {
    super::unsupported("this part of a table")
}

/// A constraint has this name already.
pub(crate) fn taken(name: &str, table: &str) -> PgError {
    PgError::new("42710", format!("constraint \"{name}\" for relation \"{table}\" already exists"))
}

/// The names of a table's constraints.
#[derive(Default)]
struct Names {
    taken: BTreeSet<String>,
    /// The number that comes next, by the name that has none: many constraints may want the same name.
    next: BTreeMap<String, usize>,
}

impl Names {
    /// The name that PostgreSQL gives to a constraint that has none.
    fn invent(&mut self, table: &str, constraint: &Constraint) -> String {
        let columns = constraint.columns.join("_");
        let (columns, label) = match constraint.kind {
            Kind::PrimaryKey => ("", "pkey"),
            Kind::Unique => (columns.as_str(), "key"),
            Kind::ForeignKey => (columns.as_str(), "fkey"),
            _ if constraint.columns.len() == 1 => (columns.as_str(), "check"),
            _ => ("", "check"),
        };
        let mut name = shortened(table, columns, label);
        let next = self.next.entry(name.clone()).or_insert(1);
        while !self.taken.insert(name.clone()) {
            name = shortened(table, columns, &format!("{label}{next}"));
            *next += 1;
        }
        name
    }
}

/// A name of three parts, of which the first two are cut where it would be too long.
fn shortened(first: &str, second: &str, label: &str) -> String {
    let (mut first, mut second) = (first.to_owned(), second.to_owned());
    let between = label.len() + 1 + usize::from(!second.is_empty());
    while first.len() + second.len() + between > NAME_BYTES_MAX {
        let longer = if first.len() > second.len() { &mut first } else { &mut second };
        if longer.pop().is_none() {
            break;
        }
    }
    let parts = [first.as_str(), second.as_str(), label];
    parts.into_iter().filter(|part| !part.is_empty()).collect::<Vec<_>>().join("_")
}

/// Tokens as text, without comments.
fn text_of(part: &[Token<'_>]) -> String {
    let text: String = part.iter().map(|token| if token.is_solid() { token.text } else { " " }).collect();
    text.trim().into()
}

fn column(part: &[Token<'_>]) -> Option<ColumnPart> {
    let at = part.iter().position(Token::is_solid)?;
    let name = name_of(&part[at])?;
    let rest = &part[at + 1..];
    let end = starts(rest).first().copied().unwrap_or(rest.len());
    let constraints = clauses(&rest[end..], Some(&name))?;
    let is_always = rest[..end].iter().any(|token| token.text == ALWAYS);
    Some(ColumnPart { declared: text_of(&rest[..end]), is_always, constraints, name })
}

/// A name; SQLite keeps upper and lower case.
fn name_of(token: &Token<'_>) -> Option<String> {
    match token.kind {
        TokenKind::Word => Some(token.text.into()),
        TokenKind::Quoted => token.name(),
        _ => None,
    }
}

/// Where each clause begins.
fn starts(part: &[Token<'_>]) -> Vec<usize> {
    const FIRST: [&str; 7] = ["constraint", "primary", "unique", "check", "foreign", "collate", "generated"];
    let solid: Vec<(usize, &Token<'_>)> = part.iter().enumerate().filter(|(_, token)| token.is_solid()).collect();
    let (mut all, mut depth) = (Vec::new(), 0_i32);
    // Whether a name has just been given, and whether this is FOREIGN KEY (…), whose REFERENCES belongs to it.
    let (mut named, mut foreign) = (None, false);
    for (number, (at, token)) in solid.iter().enumerate() {
        match token.text {
            "(" => depth += 1,
            ")" => depth -= 1,
            _ => {}
        }
        if depth > 0 || named.is_some_and(|name| number == name) {
            continue;
        }
        let before = number.checked_sub(1).map(|before| solid[before].1);
        let after_any = |words: &[&str]| before.is_some_and(|before| before.is_any(words));
        let begins = token.is_any(&FIRST)
            || token.is("not") && solid.get(number + 1).is_some_and(|(_, next)| next.is("null"))
            || token.is("null") && !after_any(&["not", "set", "default"])
            || token.is("default") && !after_any(&["set"])
            || token.is("references") && !foreign
            || token.is("as") && !after_any(&["always"]);
        if !begins {
            continue;
        }
        if named.is_none_or(|name| number != name + 1) {
            all.push(*at);
        }
        named = token.is("constraint").then_some(number + 1);
        foreign = token.is("foreign");
    }
    all
}

/// The constraints of a column, or of a table.
fn clauses(part: &[Token<'_>], column: Option<&str>) -> Option<Vec<Constraint>> {
    let starts = starts(part);
    let ends = starts.iter().skip(1).copied().chain([part.len()]);
    starts.iter().zip(ends).map(|(start, end)| clause(&part[*start..end], column)).collect()
}

fn clause(part: &[Token<'_>], column: Option<&str>) -> Option<Constraint> {
    let mut solid: Vec<&Token<'_>> = part.iter().filter(|token| token.is_solid()).collect();
    let mut part = part;
    let mut called = None;
    if solid.first()?.is("constraint") {
        called = Some(name_of(solid.get(1)?)?);
        solid.drain(..2);
        let names = part.iter().enumerate().filter(|(_, token)| token.is_solid()).nth(1)?.0;
        part = &part[names + 1..];
    }
    let first = solid.first()?;
    let kind = match first.text.to_ascii_lowercase().as_str() {
        "primary" => Kind::PrimaryKey,
        "unique" => Kind::Unique,
        "check" => Kind::Check,
        "foreign" | "references" => Kind::ForeignKey,
        "not" => Kind::NotNull,
        "null" => Kind::Null,
        "default" => Kind::Default,
        "collate" => Kind::Collate,
        "generated" | "as" => Kind::Generated,
        _ => return None,
    };
    let columns = match (kind, column) {
        (Kind::Check | Kind::Generated, _) => solid.iter().skip(1).filter_map(|token| name_of(token)).collect(),
        (_, Some(column)) => vec![column.to_owned()],
        (_, None) => in_parentheses(solid.iter().position(|token| token.is_symbol("(")).map(|at| &solid[at..])?),
    };
    Some(Constraint { name: called, kind, text: text_of(part), columns })
}

/// The names at the beginning of each item of a list in parentheses.
fn in_parentheses(solid: &[&Token<'_>]) -> Vec<String> {
    let (mut names, mut depth) = (Vec::new(), 0_i32);
    for pair in solid.windows(2) {
        match pair[0].text {
            "(" => depth += 1,
            ")" => depth -= 1,
            _ => {}
        }
        if depth == 0 {
            break;
        }
        if depth == 1 && (pair[0].is_symbol("(") || pair[0].is_symbol(",")) {
            names.extend(name_of(pair[1]));
        }
    }
    names
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    const TABLE: &str = "CREATE TABLE \"t\" (\"id\" INTEGER PRIMARY KEY AUTOINCREMENT CHECK (typeof(\"id\") IN \
        ('integer', 'null') AND \"id\" BETWEEN -2147483648 AND 2147483647), \"n\" NUMERIC_TEXT(10,2) COLLATE \
        pg_numeric NOT NULL DEFAULT '1, 2' CONSTRAINT \"u\"\"1\" UNIQUE CHECK ((\"n\" > 'a)')) REFERENCES \
        \"o\"(\"x\") ON DELETE SET NULL ON UPDATE SET DEFAULT DEFERRABLE INITIALLY DEFERRED, \"m\" NUMERIC_TEXT \
        COLLATE pg_numeric, UNIQUE (\"n\" COLLATE pg_numeric, \"id\"), CONSTRAINT \"k\" FOREIGN KEY (\"n\", \
        \"m\") REFERENCES \"t\", CHECK ((\"n\" < \"m\"))) WITHOUT ROWID";

    #[test]
    fn definitions_come_in_parts() {
        let definition = Definition::parse(TABLE).unwrap();
        assert_eq!(format!("CREATE TABLE \"t\" {}", definition.render()), TABLE);
        let kinds: Vec<Kind> = definition.columns[1].constraints.iter().map(|constraint| constraint.kind).collect();
        let wanted = [Kind::Collate, Kind::NotNull, Kind::Default, Kind::Unique, Kind::Check, Kind::ForeignKey];
        assert_eq!(kinds, wanted);
        assert_eq!(definition.columns[1].declared, "NUMERIC_TEXT(10,2)");
        let named = definition.named("t");
        let names: Vec<&str> = named.iter().map(|named| named.name.as_str()).collect();
        assert_eq!(names, ["t_pkey", "u\"1", "t_n_check", "t_n_fkey", "t_n_id_key", "k", "t_check"]);
        assert_eq!(named[3].constraint.target(), Some(("o".into(), vec!["x".into()])));
        assert_eq!(named[5].constraint.target(), Some(("t".into(), Vec::new())));
        assert_eq!(named[5].constraint.columns, ["n", "m"]);
        assert_eq!(named[6].constraint.columns, ["n", "m"]);
        assert_eq!(definition.key(), ["id"]);
    }

    #[test]
    fn tables_of_others_are_understood_or_not() {
        let sql = "create table t(a, b int null constraint c check(a) default null, -- why\n\
            c text generated always as (a || ',') stored, d as (1), \
            e integer primary key on conflict ignore default (1 + 2) not null on conflict fail, unique(a) ) strict";
        let definition = Definition::parse(sql).unwrap();
        assert_eq!(definition.columns.len(), 5);
        let again = Definition::parse(&format!("create table t {}", definition.render())).unwrap();
        assert_eq!((&again.columns, &again.constraints), (&definition.columns, &definition.constraints));
        assert!(definition.render().ends_with("strict"));
        for sql in ["create table t([a] int)", "create table t as select 1", "create table t(`a`)", "create table t(a"]
        {
            assert_eq!(Definition::parse(sql), None, "{sql}");
        }
    }

    /// Whoever declares thousands of them keeps nobody busy.
    #[test]
    fn many_constraints_may_want_one_name() {
        let sql = format!("create table t(a{})", ", check (1)".repeat(40_000));
        let named = Definition::parse(&sql).unwrap().named("t");
        assert_eq!((named[0].name.as_str(), named[39_999].name.as_str()), ("t_check", "t_check39999"));
    }

    #[test]
    fn names_are_not_longer_than_postgresqls() {
        let (table, column) = ("t".repeat(50), "c".repeat(40));
        let definition = Definition::parse(&format!("create table t(\"{column}\" int unique, unique (\"{column}\"))"));
        let names: Vec<String> = definition.unwrap().named(&table).into_iter().map(|named| named.name).collect();
        assert_eq!(names[0], format!("{}_{}_key", "t".repeat(29), "c".repeat(29)));
        assert_eq!(names[1], format!("{}_{}_key1", "t".repeat(29), "c".repeat(28)));
        assert!(names.iter().all(|name| name.len() <= NAME_BYTES_MAX));
    }

    proptest! {
        #[test]
        fn any_text_has_parts_or_none(
            words in proptest::collection::vec(proptest::sample::select(&[
                "create table t", "(", ")", ",", "\"a\"", "b", "int", "constraint", "primary key", "unique", "check",
                "foreign key", "references", "not", "null", "default", "'x'", "1", "collate", "as", "generated always",
            ][..]), 0..24),
        ) {
            let sql = words.join(" ");
            if let Some(definition) = Definition::parse(&sql) {
                let again = Definition::parse(&format!("create table t {}", definition.render()));
                prop_assert!(again.is_some(), "{sql}");
                for named in definition.named("t") {
                    let _ = named.constraint.target();
                }
            }
        }
    }
}
