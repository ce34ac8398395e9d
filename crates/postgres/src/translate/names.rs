//! Names of tables and columns.

use crate::error::PgError;
use sqlparser::ast::{Ident, ObjectName, ObjectNamePart};

/// A name as SQLite may have it.
pub(crate) fn name(name: &str) -> String {
    format!("\"{}\"", name.replace('"', "\"\""))
}

/// What a name without quotes means.
pub(super) fn folded(ident: &Ident) -> String {
    if ident.quote_style.is_some() { ident.value.clone() } else { ident.value.to_lowercase() }
}

/// The one name of an object, without the schema that all are in.
pub(super) fn object(object: &ObjectName) -> Result<String, PgError> {
    let parts: Option<Vec<String>> = object
        .0
        .iter()
        .map(|part| match part {
            ObjectNamePart::Identifier(ident) => Some(folded(ident)),
            ObjectNamePart::Function(_) => None,
        })
        .collect();
    match parts.as_deref() {
        Some([name]) => Ok(name.clone()),
        Some([schema, name]) if schema == "public" => Ok(name.clone()),
        Some([schema, _]) => {
            Err(PgError::new("3F000", format!("schema \"{schema}\" does not exist"))
                .hint("there is one schema, public"))
        }
        _ => Err(PgError::unsupported(format!("the name {object} is not understood"))),
    }
}
