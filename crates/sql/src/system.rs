//! The tables of the system, by their names.

/// Tables whose names begin with this are the system's: everybody may read them, administrators may write their
/// rows.
pub const SYSTEM_PREFIX: &str = "bezant_";

/// Whether it is a table of the system.
pub(crate) fn is_system(table: &str) -> bool {
    table.to_ascii_lowercase().starts_with(SYSTEM_PREFIX)
}

/// Why nobody else makes such a name.
pub(crate) fn made_by_the_system(name: &str) -> String {
    format!("{name} is not allowed: what begins with {SYSTEM_PREFIX} is made by the system alone")
}
