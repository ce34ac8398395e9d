//! Names of types, and how large their values are.

use super::oid;

/// Types that tables may declare: the words, the type, its name in PostgreSQL.
#[rustfmt::skip]
const DECLARED: &[(&[&str], u32, &str)] = &[
    (&["bigint", "int8"], oid::INT8, "bigint"),
    (&["integer", "int", "int4", "mediumint", "pg_int4"], oid::INT4, "integer"),
    (&["smallint", "int2", "tinyint", "pg_int2"], oid::INT2, "smallint"),
    (&["text", "clob", "citext"], oid::TEXT, "text"),
    (&["varchar", "character varying", "nvarchar"], oid::VARCHAR, "character varying"),
    (&["char", "character", "nchar", "bpchar"], oid::BPCHAR, "character"),
    (&["double precision", "double", "float", "float8"], oid::FLOAT8, "double precision"),
    (&["real", "float4"], oid::FLOAT4, "real"),
    (&["blob", "bytea"], oid::BYTEA, "bytea"),
    (&["bool", "boolean"], oid::BOOL, "boolean"),
    (&["numeric", "decimal"], oid::NUMERIC, "numeric"),
    (&["date"], oid::DATE, "date"),
    (&["time", "time without time zone"], oid::TIME, "time without time zone"),
    (&["timestamp", "datetime", "timestamp without time zone"], oid::TIMESTAMP, "timestamp without time zone"),
    (&["timestamptz", "timestamp with time zone"], oid::TIMESTAMPTZ, "timestamp with time zone"),
    (&["json"], oid::JSON, "json"),
    (&["jsonb"], oid::JSONB, "jsonb"),
    (&["uuid"], oid::UUID, "uuid"),
    (&["oid"], oid::OID, "oid"),
    (&["name"], oid::NAME, "name"),
    (&["\"char\""], oid::CHAR, "\"char\""),
    (&["interval"], oid::INTERVAL, "interval"),
    (&["text[]"], oid::TEXTS, "text[]"),
    (&["bigint[]"], oid::INT8S, "bigint[]"),
];

/// A declared type without its length, in lower case, and the length.
fn without_length(declared: &str) -> (String, Option<i32>) {
    let lower = declared.to_ascii_lowercase();
    let Some((before, after)) = lower.split_once('(') else { return (lower.trim().into(), None) };
    let (inside, rest) = after.split_once(')').unwrap_or((after, ""));
    let length = inside.split(',').next().and_then(|number| number.trim().parse().ok());
    (format!("{} {}", before.trim(), rest.trim()).trim().into(), length)
}

/// The type that a declaration means: its number, name and length. Text if it is none that we know.
pub(crate) fn of_declaration(declared: &str) -> (u32, &'static str, Option<i32>) {
    let (name, length) = without_length(declared);
    let known = DECLARED.iter().find(|(words, ..)| words.contains(&name.as_str()));
    known.map_or((oid::TEXT, "text", None), |(_, oid, name)| (*oid, *name, length))
}

/// The number of a type by one of its names.
pub(crate) fn by_name(name: &str) -> Option<u32> {
    let name = name.to_ascii_lowercase();
    DECLARED.iter().find(|(words, ..)| words.contains(&name.as_str())).map(|(_, oid, _)| *oid)
}

/// The name of a type by its number.
pub(crate) fn name_of(type_id: u32) -> Option<&'static str> {
    DECLARED.iter().find(|(_, oid, _)| *oid == type_id).map(|(.., name)| *name)
}

/// Bytes of a value of a type; negative: they differ.
pub(crate) const fn size_of(type_id: u32) -> i16 {
    match type_id {
        oid::BOOL | oid::CHAR => 1,
        oid::INT2 => 2,
        oid::INT4 | oid::FLOAT4 | oid::OID | oid::DATE => 4,
        oid::INT8 | oid::FLOAT8 | oid::TIME | oid::TIMESTAMP | oid::TIMESTAMPTZ => 8,
        oid::UUID | oid::INTERVAL => 16,
        oid::NAME => 64,
        _ => -1,
    }
}
