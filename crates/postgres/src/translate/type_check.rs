//! What a column's type asks of its values, as a CHECK.

use super::kinds::Type;
use super::names::name;
use super::schema::{Column, integer_check};

/// What keeps values out that are none of a column's type, whoever writes them: SQLite's own words.
pub(super) fn check(column: &Column) -> String {
    let quoted = name(&column.name);
    let class = |class: &str| format!("typeof({quoted}) IN ('{class}', 'null')");
    let integer = class("integer");
    // No more digits of a second than are meant, behind so many characters.
    let digits = |before: i32| match column.modifier {
        Some((0, _)) => format!(" AND length({quoted}) <= {before}"),
        Some((digits, _)) => format!(" AND length({quoted}) <= {}", before + 1 + digits),
        None => String::new(),
    };
    match column.kind {
        Type::Bool => format!("{quoted} IN (0, 1)"),
        Type::Int2 => format!("{integer} AND {quoted} BETWEEN -32768 AND 32767"),
        Type::Int4 => format!("{integer} AND {}", integer_check(&quoted)),
        Type::Int8 => integer,
        Type::Float4 | Type::Float8 => class("real"),
        Type::Numeric => format!("{} AND {quoted} NOT GLOB '*[^-0-9.]*'", class("text")),
        Type::Varchar | Type::Char => match column.modifier {
            Some((length, _)) => format!("{} AND length({quoted}) <= {length}", class("text")),
            None => class("text"),
        },
        Type::Text => class("text"),
        Type::Bytea => class("blob"),
        Type::Date => format!("date({quoted}) IS {quoted}"),
        Type::Time => {
            format!("time(substr({quoted}, 1, 8)) IS substr({quoted}, 1, 8){} OR {quoted} = '24:00:00'", digits(8))
        }
        Type::Timestamp => format!("datetime(substr({quoted}, 1, 19)) IS substr({quoted}, 1, 19){}", digits(19)),
        Type::Timestamptz => format!(
            "datetime(substr({quoted}, 1, 19)) IS substr({quoted}, 1, 19) AND {quoted} LIKE '%+00'{}",
            digits(22)
        ),
        Type::Interval => format!(
            "{} AND {quoted} GLOB '*[0-9] *[0-9] *[0-9]' AND {quoted} NOT GLOB '*[^-0-9 ]*' \
             AND {quoted} NOT GLOB '* * * *'",
            class("text")
        ),
        Type::Uuid => format!("length({quoted}) = 36 AND {quoted} NOT GLOB '*[^-0-9a-f]*'"),
        Type::Json | Type::Jsonb => format!("json_valid({quoted})"),
        Type::Unknown | Type::Any | Type::Array(_) => String::new(),
    }
}
