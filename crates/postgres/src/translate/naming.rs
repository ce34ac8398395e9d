//! What PostgreSQL calls the columns of a query.

use super::kinds::Type;
use super::names::{folded, object};
use sqlparser::ast::{DataType, Expr, SelectItem, SetExpr, TrimWhereField};

/// What PostgreSQL calls a column that nobody has named.
pub(super) fn name_of(expr: &Expr) -> String {
    known_name(expr).map_or_else(|| "?column?".into(), |(name, _)| name)
}

/// The name, and whether it is more than that of a type.
fn known_name(expr: &Expr) -> Option<(String, bool)> {
    let sure = |name: &str| Some((name.to_owned(), true));
    match expr {
        Expr::Identifier(ident) => Some((folded(ident), true)),
        Expr::CompoundIdentifier(parts) => parts.last().map(|ident| (folded(ident), true)),
        Expr::Nested(inner) | Expr::Collate { expr: inner, .. } => known_name(inner),
        Expr::Function(function) => object(&function.name).ok().map(|name| (name, true)),
        Expr::Cast { expr: inner, data_type, .. } => {
            known_name(inner).filter(|(_, is_sure)| *is_sure).or_else(|| Some((type_name(data_type)?, false)))
        }
        Expr::TypedString(typed) => Some((type_name(&typed.data_type)?, false)),
        Expr::Interval(_) => Some(("interval".into(), false)),
        Expr::Case { else_result, .. } => else_result
            .as_deref()
            .and_then(known_name)
            .filter(|(_, is_sure)| *is_sure)
            .or_else(|| Some(("case".into(), false))),
        Expr::Exists { negated: false, .. } => sure("exists"),
        Expr::Extract { .. } => sure("extract"),
        Expr::Ceil { .. } => sure("ceil"),
        Expr::Floor { .. } => sure("floor"),
        Expr::Position { .. } => sure("position"),
        Expr::Substring { shorthand, .. } => sure(if *shorthand { "substr" } else { "substring" }),
        Expr::AtTimeZone { .. } => sure("timezone"),
        Expr::Trim { trim_where, .. } => sure(match trim_where {
            None | Some(TrimWhereField::Both) => "btrim",
            Some(TrimWhereField::Leading) => "ltrim",
            Some(TrimWhereField::Trailing) => "rtrim",
        }),
        Expr::Subquery(query) => match &*query.body {
            SetExpr::Select(select) => match select.projection.first()? {
                SelectItem::UnnamedExpr(expr) => known_name(expr),
                SelectItem::ExprWithAlias { alias, .. } => Some((folded(alias), true)),
                _ => None,
            },
            SetExpr::Values(_) => sure("column1"),
            _ => None,
        },
        _ => None,
    }
}

fn type_name(named: &DataType) -> Option<String> {
    let (kind, _) = super::type_names::data_type(named).ok()?;
    Some(
        match kind {
            Type::Bool => "bool",
            Type::Int2 => "int2",
            Type::Int4 => "int4",
            Type::Int8 => "int8",
            Type::Float4 => "float4",
            Type::Float8 => "float8",
            Type::Varchar => "varchar",
            Type::Char => "bpchar",
            Type::Time => "time",
            Type::Timestamp => "timestamp",
            Type::Timestamptz => "timestamptz",
            other => other.name(),
        }
        .into(),
    )
}
