//! Fills the catalog from the replicas' schema.
//!
//! The schema's own statements are executed in a second SQLite database, which has no rows, and its pragmas tell the
//! rest.

use super::functions::{Names, SharedNames, array, quoted};
use crate::translate::{ConstraintKind, Definition, NamedConstraint, Type};
use crate::types;
use bezant_sql::{Rows, Value};
use rusqlite::{Connection, Result, params};
use std::sync::PoisonError;

/// The first number that PostgreSQL gives to what users make.
const FIRST: i64 = 16_384;
/// Constraints have numbers of their own.
const FIRST_CONSTRAINT: i64 = 1 << 24;

/// Something in the schema.
struct Object {
    number: i64,
    kind: String,
    name: String,
    table: String,
    sql: String,
}

/// A column of a table.
struct Column {
    name: String,
    declared: String,
    not_null: bool,
    default: Option<String>,
    /// Its place in the primary key, from 1 on; 0: none.
    key: i64,
    generated: bool,
}

/// A column of an index, or an expression.
struct Part {
    /// The column's place; 0: an expression.
    place: i64,
    name: String,
    descends: bool,
}

struct Filler<'a> {
    catalog: &'a Connection,
    schema: Connection,
    objects: Vec<Object>,
    names: Names,
    constraints: i64,
}

/// See the [module](self).
pub(super) fn fill(catalog: &Connection, schema: &Rows, shared: &SharedNames) -> Result<()> {
    let objects: Vec<Object> = schema.rows.iter().filter_map(|row| object(row)).collect();
    let scratch = Connection::open_in_memory()?;
    bezant_sql::add_functions(&scratch)?;
    for object in &objects {
        // A view may be about what is no longer there: it has no columns then.
        let _ = scratch.execute_batch(&object.sql);
    }
    let names = Names::default();
    let mut filler = Filler { catalog, schema: scratch, objects, names, constraints: FIRST_CONSTRAINT };
    filler.relations()?;
    for at in 0..filler.objects.len() {
        match filler.objects[at].kind.as_str() {
            "table" => filler.table(at)?,
            "view" => filler.view(at)?,
            "trigger" => filler.trigger(at)?,
            _ => {}
        }
    }
    // A foreign key goes by the index of the key that it refers to.
    catalog.execute_batch(
        "update pg_constraint as f set conindid = coalesce((select k.conindid from pg_constraint k
            where k.conrelid = f.confrelid and k.contype in ('p', 'u') and k.conkey = f.confkey), 0)
            where f.contype = 'f'",
    )?;
    *shared.lock().unwrap_or_else(PoisonError::into_inner) = filler.names;
    Ok(())
}

/// What the system has made for itself is in `pg_catalog`, where tools leave it alone that drop all they find.
fn namespace_of(table: &str) -> i64 {
    if table.starts_with("bezant_") { 11 } else { 2200 }
}

fn object(row: &[Value]) -> Option<Object> {
    let [Value::Integer(rowid), Value::Text(kind), Value::Text(name), Value::Text(table), sql] = row else {
        return None;
    };
    let sql = if let Value::Text(sql) = sql { sql.clone() } else { String::new() };
    let is_internal = name.starts_with("sqlite_") && kind == "table";
    let object =
        Object { number: FIRST + 2 * rowid, kind: kind.clone(), name: name.clone(), table: table.clone(), sql };
    (!is_internal).then_some(object)
}

impl Filler<'_> {
    /// Everybody's number, so that constraints can refer to tables that come later.
    fn relations(&mut self) -> Result<()> {
        for object in self.objects.iter().filter(|object| object.kind != "trigger") {
            self.names.relations.insert(object.name.clone(), object.number);
            let kind = match object.kind.as_str() {
                "view" => "v",
                "index" => "i",
                _ => "r",
            };
            self.relation(object.number, &object.name, kind, namespace_of(&object.table))?;
        }
        Ok(())
    }

    fn relation(&self, number: i64, name: &str, kind: &str, namespace: i64) -> Result<()> {
        let method = if kind == "i" { 403 } else { 2 };
        // Rows of tables and views have a type, although nobody may ask for it: what has one has columns.
        let sql = "insert into pg_class(oid, relname, relnamespace, relam, relkind, reltype)
            values (?1, ?2, ?5, ?3, ?4, iif(?4 in ('r', 'v'), ?1, 0))";
        self.catalog.execute(sql, params![number, name, method, kind, namespace]).map(drop)
    }

    fn columns(&self, table: &str) -> Vec<Column> {
        let read = || -> Result<Vec<Column>> {
            let mut statement = self
                .schema
                .prepare("select name, type, \"notnull\", dflt_value, pk, hidden from pragma_table_xinfo(?1)")?;
            let column = |row: &rusqlite::Row<'_>| {
                Ok(Column {
                    name: row.get(0)?,
                    declared: row.get(1)?,
                    not_null: row.get(2)?,
                    default: row.get(3)?,
                    key: row.get(4)?,
                    generated: row.get::<_, i64>(5)? >= 2,
                })
            };
            statement.query_map([table], column)?.collect()
        };
        read().unwrap_or_default()
    }

    fn attributes(
        &self,
        number: i64,
        columns: &[Column],
        sql: &str,
        numbers_itself: Option<(&str, usize)>,
    ) -> Result<()> {
        let insert = "insert into pg_attribute(attrelid, attname, atttypid, attlen, attnum, atttypmod, attnotnull,
            atthasdef, attgenerated) values (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9)";
        for (at, column) in columns.iter().enumerate() {
            let kind = Type::of_column(&column.name, &column.declared, sql);
            let (type_id, modifier) = match kind {
                (Type::Any, _) => (types::of_declaration(&column.declared).0, -1),
                (kind, None) => (kind.oid(), -1),
                // As PostgreSQL packs them.
                (Type::Numeric, Some((precision, scale))) => (kind.0.oid(), (precision << 16 | scale & 0x7ff) + 4),
                (kind @ (Type::Time | Type::Timestamp | Type::Timestamptz), Some((digits, _))) => (kind.oid(), digits),
                (kind, Some((length, _))) => (kind.oid(), length + 4),
            };
            let sequence = numbers_itself.filter(|(_, place)| *place == at);
            let default = match sequence {
                Some((table, _)) => Some(format!("nextval('{table}_{}_seq'::regclass)", column.name)),
                None => column.default.as_deref().map(|default| crate::translate::default_of(default, kind.0)),
            };
            let generated = if column.generated { "s" } else { "" };
            let place = at as i64 + 1;
            let not_null = column.not_null || column.key > 0;
            let has_default = default.is_some() || column.generated;
            self.catalog.execute(
                insert,
                params![
                    number,
                    column.name,
                    type_id,
                    types::size_of(type_id),
                    place,
                    modifier,
                    not_null,
                    has_default,
                    generated
                ],
            )?;
            if let Some(default) = default {
                let sql = "insert into pg_attrdef values (?1, ?2, ?3, ?4)";
                self.catalog.execute(sql, params![number * 1_000 + place, number, place, default])?;
            }
        }
        self.catalog
            .execute("update pg_class set relnatts = ?2 where oid = ?1", params![number, columns.len() as i64])
            .map(drop)
    }

    fn table(&mut self, at: usize) -> Result<()> {
        let (number, name) = (self.objects[at].number, self.objects[at].name.clone());
        let columns = self.columns(&name);
        let mut key: Vec<usize> = (0..columns.len()).filter(|at| columns[*at].key > 0).collect();
        key.sort_by_key(|at| columns[*at].key);
        // An INTEGER that is the primary key is the rowid, and numbers itself.
        let is_rowid = key.len() == 1 && columns[key[0]].declared.eq_ignore_ascii_case("integer");
        let numbers_itself = is_rowid.then(|| (name.as_str(), key[0]));
        self.attributes(number, &columns, &self.objects[at].sql, numbers_itself)?;
        let key: Vec<i64> = key.into_iter().map(|at| at as i64 + 1).collect();
        let declared = Definition::parse(&self.objects[at].sql).map(|definition| definition.named(&name));
        let declared = declared.unwrap_or_default();
        let mut key_index = 0;
        for (index, unique, origin) in self.indexes(&name)? {
            let index_number = self.names.relations.get(&index).copied().unwrap_or(0);
            let parts = self.index_parts(&index)?;
            let is_key = origin == "pk";
            if is_key {
                key_index = index_number;
            }
            let index = self.call_as_postgresql_does(index, &name, &declared, is_key, &parts)?;
            let definition = self.index_definition(&index, &name, unique, &parts);
            self.index(index_number, number, &parts, (unique, is_key), self.condition(&index))?;
            self.names.definitions.insert(index_number, definition);
            if origin == "u" {
                let columns: Vec<i64> = parts.iter().map(|part| part.place).collect();
                self.constraint(number, &index, "u", index_number, &columns, format!("UNIQUE ({})", list(&parts)))?;
            }
        }
        if !key.is_empty() {
            let part = |place: &i64| {
                let name = columns[*place as usize - 1].name.clone();
                Part { place: *place, name, descends: false }
            };
            let named: Vec<Part> = key.iter().map(part).collect();
            let constraint = name_of(&declared, ConstraintKind::PrimaryKey, None);
            let constraint = constraint.unwrap_or_else(|| format!("{name}_pkey"));
            if key_index == 0 {
                key_index = number + 1;
                self.relation(key_index, &constraint, "i", namespace_of(&name))?;
                self.names.relations.insert(constraint.clone(), key_index);
                let definition = self.index_definition(&constraint, &name, true, &named);
                self.names.definitions.insert(key_index, definition);
                self.index(key_index, number, &named, (true, true), None)?;
            }
            self.constraint(number, &constraint, "p", key_index, &key, format!("PRIMARY KEY ({})", list(&named)))?;
        }
        self.foreign_keys(number, &name, &columns, &declared)?;
        self.checks(number, &columns, &declared)?;
        let sql = "update pg_class set relhasindex = (select count(*) > 0 from pg_index where indrelid = ?1)
            where oid = ?1";
        self.catalog.execute(sql, [number]).map(drop)
    }

    /// An index that a constraint brought has a name that SQLite invented; PostgreSQL invents others.
    fn call_as_postgresql_does(
        &mut self,
        index: String,
        table: &str,
        named: &[NamedConstraint],
        is_key: bool,
        parts: &[Part],
    ) -> Result<String> {
        if !index.starts_with("sqlite_autoindex_") {
            return Ok(index);
        }
        let columns: Vec<&str> = parts.iter().map(|part| part.name.as_str()).collect();
        let kind = if is_key { ConstraintKind::PrimaryKey } else { ConstraintKind::Unique };
        let invented = || if is_key { format!("{table}_pkey") } else { format!("{table}_{}_key", columns.join("_")) };
        let name = name_of(named, kind, Some(&columns)).unwrap_or_else(invented);
        if let Some(number) = self.names.relations.remove(&index) {
            self.catalog.execute("update pg_class set relname = ?2 where oid = ?1", params![number, name])?;
            self.names.relations.insert(name.clone(), number);
        }
        Ok(name)
    }

    /// Name, whether unique, where it comes from.
    fn indexes(&self, table: &str) -> Result<Vec<(String, bool, String)>> {
        let sql = "select name, \"unique\", origin from pragma_index_list(?1) order by seq desc";
        let mut statement = self.schema.prepare(sql)?;
        let index = |row: &rusqlite::Row<'_>| Ok((row.get(0)?, row.get(1)?, row.get(2)?));
        statement.query_map([table], index)?.collect()
    }

    /// What an index is about.
    fn index_parts(&self, index: &str) -> Result<Vec<Part>> {
        let sql = "select cid, name, \"desc\" from pragma_index_xinfo(?1) where key order by seqno";
        let mut statement = self.schema.prepare(sql)?;
        let part = |row: &rusqlite::Row<'_>| {
            let (place, name): (i64, Option<String>) = (row.get(0)?, row.get(1)?);
            let name = name.unwrap_or_else(|| "(expression)".into());
            Ok(Part { place: (place + 1).max(0), name, descends: row.get(2)? })
        };
        statement.query_map([index], part)?.collect()
    }

    fn index_definition(&self, index: &str, table: &str, unique: bool, parts: &[Part]) -> String {
        let unique = if unique { "UNIQUE " } else { "" };
        let text =
            format!("CREATE {unique}INDEX {} ON public.{} USING btree ({})", quoted(index), quoted(table), list(parts));
        self.condition(index).map_or_else(|| text.clone(), |condition| format!("{text} WHERE {condition}"))
    }

    /// Of a partial index the condition is told as it was written.
    fn condition(&self, index: &str) -> Option<String> {
        let sql = &self.objects.iter().find(|object| object.name == index)?.sql;
        let at = sql.to_ascii_lowercase().find(" where ")?;
        Some(format!("({})", &sql[at + 7..]))
    }

    fn index(
        &self,
        number: i64,
        table: i64,
        parts: &[Part],
        (unique, primary): (bool, bool),
        predicate: Option<String>,
    ) -> Result<()> {
        let places: Vec<String> = parts.iter().map(|part| part.place.to_string()).collect();
        // What descends has NULLs first.
        let options: Vec<&str> = parts.iter().map(|part| if part.descends { "3" } else { "0" }).collect();
        let zeros = vec!["0"; parts.len()].join(" ");
        let sql = "insert into pg_index(indexrelid, indrelid, indnatts, indnkeyatts, indisunique, indisprimary, indkey,
            indclass, indoption, indpred) values (?1, ?2, ?3, ?3, ?4, ?5, ?6, ?7, ?9, ?8)";
        let count = parts.len() as i64;
        self.catalog.execute(
            sql,
            params![number, table, count, unique, primary, places.join(" "), zeros, predicate, options.join(" ")],
        )?;
        for (at, Part { name, .. }) in (1_i64..).zip(parts) {
            let sql = "insert into pg_attribute(attrelid, attname, atttypid, attnum, attnotnull, atthasdef)
                values (?1, ?2, 25, ?3, 0, 0)";
            self.catalog.execute(sql, params![number, name, at])?;
        }
        Ok(())
    }

    fn constraint(
        &mut self,
        table: i64,
        name: &str,
        kind: &str,
        index: i64,
        columns: &[i64],
        definition: String,
    ) -> Result<()> {
        self.constraints += 1;
        let sql = "insert into pg_constraint(oid, conname, contype, conrelid, conindid, conkey, definition)
            values (?1, ?2, ?3, ?4, ?5, ?6, ?7)";
        let places: Vec<String> = columns.iter().map(ToString::to_string).collect();
        self.catalog.execute(sql, params![self.constraints, name, kind, table, index, array(&places), definition])?;
        self.names.definitions.insert(self.constraints, definition);
        Ok(())
    }

    /// The CHECKs that somebody has declared.
    fn checks(&mut self, number: i64, columns: &[Column], named: &[NamedConstraint]) -> Result<()> {
        for NamedConstraint { name, constraint, .. } in named {
            if constraint.kind != ConstraintKind::Check {
                continue;
            }
            let place = |name: &String| columns.iter().position(|column| column.name == *name);
            let places: Vec<i64> = constraint.columns.iter().filter_map(place).map(|at| at as i64 + 1).collect();
            self.constraint(number, name, "c", 0, &places, constraint.text.clone())?;
            self.catalog.execute("update pg_class set relchecks = relchecks + 1 where oid = ?1", [number])?;
        }
        Ok(())
    }

    fn foreign_keys(&mut self, number: i64, table: &str, columns: &[Column], named: &[NamedConstraint]) -> Result<()> {
        let keys: Vec<ForeignKey> = self.read_foreign_keys(table)?;
        // Both are in the order in which they were declared.
        let declared: Vec<&NamedConstraint> =
            named.iter().filter(|named| named.constraint.kind == ConstraintKind::ForeignKey).collect();
        for (at, key) in keys.iter().enumerate() {
            let Some(&other) = self.names.relations.get(&key.other) else { continue };
            let other_columns = self.columns(&key.other);
            let place = |columns: &[Column], name: &str| {
                columns.iter().position(|column| column.name.eq_ignore_ascii_case(name)).map_or(0, |at| at as i64 + 1)
            };
            let mut to = key.to.clone();
            // Nothing named: the other table's primary key.
            if to.iter().any(Option::is_none) {
                to = other_columns
                    .iter()
                    .filter(|column| column.key > 0)
                    .map(|column| Some(column.name.clone()))
                    .collect();
            }
            let to: Vec<String> = to.into_iter().flatten().collect();
            let from_places: Vec<i64> = key.from.iter().map(|name| place(columns, name)).collect();
            let to_places: Vec<String> = to.iter().map(|name| place(&other_columns, name).to_string()).collect();
            let names = |names: &[String]| names.iter().map(|name| quoted(name)).collect::<Vec<_>>().join(", ");
            let mut definition =
                format!("FOREIGN KEY ({}) REFERENCES {}({})", names(&key.from), quoted(&key.other), names(&to));
            for (event, action) in [("UPDATE", &key.on_update), ("DELETE", &key.on_delete)] {
                if action != "NO ACTION" {
                    definition += &format!(" ON {event} {action}");
                }
            }
            let name = declared.get(at).filter(|_| declared.len() == keys.len());
            let name = name.map_or_else(|| format!("{table}_{}_fkey", key.from.join("_")), |named| named.name.clone());
            self.constraint(number, &name, "f", 0, &from_places, definition)?;
            let sql = "update pg_constraint set confrelid = ?2, confkey = ?3, confupdtype = ?4, confdeltype = ?5,
                confmatchtype = 's' where oid = ?1";
            // PostgreSQL watches references with triggers; psql looks for references where there are some.
            self.catalog.execute("update pg_class set relhastriggers = 1 where oid in (?1, ?2)", [number, other])?;
            let codes = (code(&key.on_update), code(&key.on_delete));
            self.catalog.execute(sql, params![self.constraints, other, array(&to_places), codes.0, codes.1])?;
        }
        Ok(())
    }

    fn read_foreign_keys(&self, table: &str) -> Result<Vec<ForeignKey>> {
        let sql = "select id, \"table\", \"from\", \"to\", on_update, on_delete from pragma_foreign_key_list(?1)
            order by id desc, seq";
        let mut statement = self.schema.prepare(sql)?;
        let mut rows = statement.query([table])?;
        let mut keys: Vec<ForeignKey> = Vec::new();
        while let Some(row) = rows.next()? {
            let id: i64 = row.get(0)?;
            if keys.last().is_none_or(|key| key.id != id) {
                let (other, on_update, on_delete) = (row.get(1)?, row.get(4)?, row.get(5)?);
                keys.push(ForeignKey { id, other, from: Vec::new(), to: Vec::new(), on_update, on_delete });
            }
            let key = keys.last_mut().expect("one was pushed if there was none");
            key.from.push(row.get(2)?);
            key.to.push(row.get(3)?);
        }
        Ok(keys)
    }

    fn view(&mut self, at: usize) -> Result<()> {
        let object = &self.objects[at];
        let mut columns = self.columns(&object.name);
        for (column, own) in columns.iter_mut().zip(crate::translate::view_columns(&object.sql)) {
            column.declared = own.declaration();
        }
        self.attributes(object.number, &columns, &object.sql, None)?;
        let query = object.sql.to_ascii_lowercase().find(" as ").map_or("", |at| object.sql[at + 4..].trim());
        let sql = "insert into pg_views_ values ('public', ?1, 'bezant', ?2)";
        self.catalog.execute(sql, params![object.name, query])?;
        let sql = "insert into pg_rewrite values (?1, '_RETURN', ?1, '1', 'O', 1)";
        self.catalog.execute(sql, [object.number])?;
        self.names.definitions.insert(object.number, format!(" {query};"));
        Ok(())
    }

    fn trigger(&mut self, at: usize) -> Result<()> {
        let object = &self.objects[at];
        let table = self.names.relations.get(&object.table).copied().unwrap_or(0);
        let sql = "insert into pg_trigger(oid, tgrelid, tgname, definition) values (?1, ?2, ?3, ?4)";
        self.catalog.execute(sql, params![object.number, table, object.name, object.sql])?;
        self.catalog.execute("update pg_class set relhastriggers = 1 where oid = ?1", [table])?;
        self.names.definitions.insert(object.number, object.sql.clone());
        Ok(())
    }
}

struct ForeignKey {
    id: i64,
    other: String,
    from: Vec<String>,
    to: Vec<Option<String>>,
    on_update: String,
    on_delete: String,
}

/// What a constraint is called: the first of a kind, of these columns.
fn name_of(named: &[NamedConstraint], kind: ConstraintKind, columns: Option<&[&str]>) -> Option<String> {
    let is = |named: &&NamedConstraint| {
        named.constraint.kind == kind
            && columns
                .is_none_or(|columns| named.constraint.columns.iter().map(String::as_str).eq(columns.iter().copied()))
    };
    named.iter().find(is).map(|named| named.name.clone())
}

fn list(parts: &[Part]) -> String {
    let one = |Part { place, name, descends }: &Part| {
        let name = if *place == 0 { name.clone() } else { quoted(name) };
        if *descends { format!("{name} DESC") } else { name }
    };
    parts.iter().map(one).collect::<Vec<_>>().join(", ")
}

/// How PostgreSQL abbreviates what happens to a row when the row that it refers to changes.
fn code(action: &str) -> &'static str {
    match action {
        "CASCADE" => "c",
        "SET NULL" => "n",
        "SET DEFAULT" => "d",
        "RESTRICT" => "r",
        _ => "a",
    }
}
