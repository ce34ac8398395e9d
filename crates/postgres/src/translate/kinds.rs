//! PostgreSQL's types, as far as a statement can have values of them.

use crate::types::oid;

/// A type. `docs/postgres.md` says how its values are stored.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) enum Type {
    /// A literal, a parameter or NULL whose type the context decides.
    Unknown,
    /// A value of SQLite's, of whatever class: of a column without a type of PostgreSQL's, or of a function that only
    /// SQLite has. SQLite's own rules hold for it.
    Any,
    Bool,
    Int2,
    Int4,
    Int8,
    Float4,
    Float8,
    Numeric,
    Text,
    Varchar,
    Char,
    Bytea,
    Date,
    Time,
    Timestamp,
    Timestamptz,
    Interval,
    Uuid,
    Json,
    Jsonb,
    /// Several values of one type: a parameter, and nothing else.
    Array(&'static Self),
}

/// A length, or a precision and a scale.
pub(crate) type Modifier = Option<(i32, i32)>;

/// What PostgreSQL's rules call a category: types among which conversions are looked for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Category {
    Boolean,
    Number,
    String,
    Moment,
    Span,
    Other(Type),
}

/// The type, its number, its name, and how a table declares it to SQLite.
const TYPES: &[(Type, u32, &str, &str)] = &[
    (Type::Unknown, oid::UNKNOWN, "unknown", ""),
    (Type::Bool, oid::BOOL, "boolean", "BOOLEAN"),
    (Type::Int2, oid::INT2, "smallint", "SMALLINT"),
    (Type::Int4, oid::INT4, "integer", "INTEGER"),
    (Type::Int8, oid::INT8, "bigint", "BIGINT"),
    (Type::Float4, oid::FLOAT4, "real", "REAL"),
    (Type::Float8, oid::FLOAT8, "double precision", "DOUBLE PRECISION"),
    (Type::Numeric, oid::NUMERIC, "numeric", "NUMERIC_TEXT"),
    (Type::Text, oid::TEXT, "text", "TEXT"),
    (Type::Varchar, oid::VARCHAR, "character varying", "VARCHAR"),
    (Type::Char, oid::BPCHAR, "character", "CHAR"),
    (Type::Bytea, oid::BYTEA, "bytea", "BYTEA"),
    (Type::Date, oid::DATE, "date", "DATE"),
    (Type::Time, oid::TIME, "time without time zone", "TIME"),
    (Type::Timestamp, oid::TIMESTAMP, "timestamp without time zone", "TIMESTAMP"),
    (Type::Timestamptz, oid::TIMESTAMPTZ, "timestamp with time zone", "TIMESTAMPTZ"),
    // SQLite would take a word with INT in it for an integer's.
    (Type::Interval, oid::INTERVAL, "interval", "SPAN_TEXT"),
    (Type::Uuid, oid::UUID, "uuid", "UUID_TEXT"),
    (Type::Json, oid::JSON, "json", "JSON_TEXT"),
    (Type::Jsonb, oid::JSONB, "jsonb", "JSONB_TEXT"),
];

/// The types that arrays are of, their numbers and names.
const ARRAYS: &[(Type, u32, &str)] = &[
    (Type::Bool, 1000, "boolean[]"),
    (Type::Int2, 1005, "smallint[]"),
    (Type::Int4, 1007, "integer[]"),
    (Type::Int8, oid::INT8S, "bigint[]"),
    (Type::Float4, 1021, "real[]"),
    (Type::Float8, 1022, "double precision[]"),
    (Type::Numeric, 1231, "numeric[]"),
    (Type::Text, oid::TEXTS, "text[]"),
    (Type::Varchar, 1015, "character varying[]"),
    (Type::Char, 1014, "character[]"),
    (Type::Date, 1182, "date[]"),
    (Type::Time, 1183, "time without time zone[]"),
    (Type::Timestamp, 1115, "timestamp without time zone[]"),
    (Type::Timestamptz, 1185, "timestamp with time zone[]"),
    (Type::Uuid, 2951, "uuid[]"),
];

impl Type {
    /// Arrays of this type, if there are any.
    pub(crate) fn array(self) -> Option<Self> {
        ARRAYS.iter().find(|(element, ..)| *element == self).map(|(element, ..)| Self::Array(element))
    }

    fn array_entry(self) -> Option<&'static (Self, u32, &'static str)> {
        let Self::Array(of) = self else { return None };
        ARRAYS.iter().find(|(element, ..)| element == of)
    }

    fn entry(self) -> Option<&'static (Self, u32, &'static str, &'static str)> {
        TYPES.iter().find(|(kind, ..)| *kind == self)
    }

    /// Its number; 0: the values decide.
    pub(crate) fn oid(self) -> u32 {
        let of_array = || self.array_entry().map(|(_, oid, _)| *oid);
        self.entry().map(|(_, oid, ..)| *oid).or_else(of_array).unwrap_or(0)
    }

    /// As PostgreSQL's messages call it.
    pub(crate) fn name(self) -> &'static str {
        let of_array = || self.array_entry().map(|(.., name)| *name);
        self.entry().map(|(_, _, name, _)| *name).or_else(of_array).unwrap_or("any")
    }

    /// How a table declares it.
    pub(crate) fn declaration(self) -> &'static str {
        self.entry().map_or("", |(.., declaration)| declaration)
    }

    /// The type with this number that a client says a parameter has; `None`: there is none here.
    pub(crate) fn of_oid(number: u32) -> Option<Self> {
        match number {
            0 => Some(Self::Unknown),
            oid::NAME | oid::CHAR => Some(Self::Text),
            oid::OID => Some(Self::Int8),
            _ => {
                let of_array = || ARRAYS.iter().find(|(_, oid, _)| *oid == number).map(|(of, ..)| Self::Array(of));
                TYPES.iter().find(|(_, oid, ..)| *oid == number).map(|(kind, ..)| *kind).or_else(of_array)
            }
        }
    }

    /// The type that a column of a table in SQLite has by its declaration, and its modifier. Whatever the gateway does
    /// not declare itself is [`Self::Any`].
    pub(crate) fn of_declaration(declared: &str) -> (Self, Modifier) {
        let upper = declared.to_ascii_uppercase();
        let (name, inside) = upper.split_once('(').map_or((upper.as_str(), ""), |(name, rest)| (name.trim(), rest));
        let mut numbers = inside.trim_end_matches(')').split(',').map_while(|number| number.trim().parse().ok());
        let modifier = numbers.next().map(|first| (first, numbers.next().unwrap_or(0)));
        let known = TYPES.iter().find(|(.., declaration)| !declaration.is_empty() && *declaration == name);
        let kind = known.map(|(kind, ..)| *kind).or_else(|| Self::older(name));
        (kind.unwrap_or(Self::Any), modifier)
    }

    /// The words of tables that others made.
    fn older(name: &str) -> Option<Self> {
        Some(match name {
            "INT" | "INT8" => Self::Int8,
            "INT2" => Self::Int2,
            "INT4" => Self::Int4,
            "DOUBLE" | "FLOAT" | "FLOAT8" => Self::Float8,
            "BOOL" => Self::Bool,
            "BLOB" => Self::Bytea,
            "CHARACTER VARYING" => Self::Varchar,
            "CHARACTER" => Self::Char,
            "TIMESTAMP WITHOUT TIME ZONE" => Self::Timestamp,
            "TIMESTAMP WITH TIME ZONE" => Self::Timestamptz,
            _ => return None,
        })
    }

    /// Its category.
    pub(crate) const fn category(self) -> Category {
        match self {
            Self::Bool => Category::Boolean,
            Self::Int2 | Self::Int4 | Self::Int8 | Self::Float4 | Self::Float8 | Self::Numeric => Category::Number,
            Self::Text | Self::Varchar | Self::Char => Category::String,
            Self::Date | Self::Timestamp | Self::Timestamptz => Category::Moment,
            Self::Interval | Self::Time => Category::Span,
            other => Category::Other(other),
        }
    }

    /// Whether its category prefers it.
    pub(crate) const fn is_preferred(self) -> bool {
        matches!(self, Self::Bool | Self::Float8 | Self::Text | Self::Timestamptz | Self::Interval)
    }

    /// Whether it is an integer, and of how many bits.
    pub(crate) const fn bits(self) -> Option<u32> {
        match self {
            Self::Int2 => Some(16),
            Self::Int4 => Some(32),
            Self::Int8 => Some(64),
            _ => None,
        }
    }

    /// Whether its values are texts, of whatever length.
    pub(crate) fn is_string(self) -> bool {
        self.category() == Category::String
    }

    /// Whether its stored form, with its collation, decides about equality and order. PostgreSQL does not order `json`,
    /// nor is `jsonb` ordered here, whose stored forms differ where the values do not.
    pub(crate) const fn is_comparable(self) -> bool {
        !matches!(self, Self::Json | Self::Jsonb)
    }

    /// What follows an expression of this type wherever SQLite compares its values, and the declaration of a column.
    pub(crate) const fn collation(self) -> &'static str {
        match self {
            Self::Numeric => " COLLATE pg_numeric",
            Self::Interval => " COLLATE pg_interval",
            _ => "",
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn declarations_are_types() {
        for (declared, wanted) in [
            ("NUMERIC_TEXT(10,2)", (Type::Numeric, Some((10, 2)))),
            ("VARCHAR(30)", (Type::Varchar, Some((30, 0)))),
            ("double precision", (Type::Float8, None)),
            ("NUMERIC", (Type::Any, None)),
            ("", (Type::Any, None)),
            ("TIMESTAMPTZ", (Type::Timestamptz, None)),
        ] {
            assert_eq!(Type::of_declaration(declared), wanted, "{declared}");
        }
        assert_eq!(Type::of_oid(oid::INT4), Some(Type::Int4));
        assert_eq!(Type::of_oid(1_000_000), None);
    }
}
