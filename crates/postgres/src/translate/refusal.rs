//! How a statement is refused.

use crate::error::PgError;

/// What PostgreSQL has and this has not, or what nobody has thought of.
pub(super) fn unsupported(what: impl std::fmt::Display) -> PgError {
    PgError::unsupported(format!("{what} is not supported")).hint("docs/postgres.md says what there is")
}

/// Refuses what stands in a statement and would be left out.
pub(super) fn refuse(is_there: bool, what: &str) -> Result<(), PgError> {
    if is_there { Err(unsupported(what)) } else { Ok(()) }
}

pub(super) fn mismatch(text: impl Into<String>) -> PgError {
    PgError::new("42804", text)
}

pub(super) fn no_operator(said: &str) -> PgError {
    PgError::new("42883", format!("operator does not exist: {said}"))
        .hint("No operator matches the given name and argument types. You might need to add explicit type casts.")
}
