//! Errors as PostgreSQL's clients expect them.

use bezant_sql::{ErrorKind, Failure, SqlError};

/// An error or a notice. Clients decide by the SQLSTATE, people by the rest.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PgError {
    /// Five characters.
    pub sqlstate: &'static str,
    /// What is wrong.
    pub message: String,
    /// More about it; may be empty.
    pub detail: String,
    /// What to do about it; may be empty.
    pub hint: String,
    /// Whether the connection ends.
    pub fatal: bool,
}

/// SQLSTATEs that the gateway itself gives.
pub mod sqlstate {
    /// All went well, and this is worth knowing.
    pub const NOTICE: &str = "00000";
    /// The outcome is not known.
    pub const UNKNOWN_OUTCOME: &str = "08007";
    /// The cluster cannot be asked.
    pub const NO_CONNECTION: &str = "08006";
    /// Not the protocol.
    pub const PROTOCOL: &str = "08P01";
    /// Not here.
    pub const UNSUPPORTED: &str = "0A000";
    /// A value that is none of its type.
    pub const BAD_TEXT: &str = "22P02";
    /// The same in binary.
    pub const BAD_BINARY: &str = "22P03";
    /// A value that a setting cannot have.
    pub const BAD_SETTING: &str = "22023";
    /// There is a transaction, and it is too late.
    pub const ACTIVE_TRANSACTION: &str = "25001";
    /// There is no transaction.
    pub const NO_TRANSACTION: &str = "25P01";
    /// The transaction has failed before.
    pub const FAILED_TRANSACTION: &str = "25P02";
    /// The transaction only reads.
    pub const READ_ONLY: &str = "25006";
    /// No such statement.
    pub const NO_STATEMENT: &str = "26000";
    /// No such savepoint.
    pub const NO_SAVEPOINT: &str = "3B001";
    /// No such portal.
    pub const NO_PORTAL: &str = "34000";
    /// Somebody else changed what the transaction has read.
    pub const CONFLICT: &str = "40001";
    /// Not SQL.
    pub const SYNTAX: &str = "42601";
    /// No such setting.
    pub const NO_SETTING: &str = "42704";
    /// Not let in.
    pub const NOT_LET_IN: &str = "28000";
    /// Does not know the password.
    pub const WRONG_PASSWORD: &str = "28P01";
    /// The name is taken.
    pub const DUPLICATE: &str = "42P05";
    /// Too much of it.
    pub const LIMIT: &str = "54000";
    /// Too many connections.
    pub const CONNECTIONS: &str = "53300";
    /// The client wants no answer any more.
    pub const CANCELED: &str = "57014";
    /// The gateway is closing.
    pub const CLOSING: &str = "57P01";
}

/// The SQLSTATE of an error that a function of the replicas gave here.
pub(crate) fn known(state: &str) -> &'static str {
    const KNOWN: [&str; 9] =
        ["22P02", "22003", "22007", "22008", "22009", "22001", "22023", "22012", sqlstate::UNSUPPORTED];
    KNOWN.into_iter().find(|known| *known == state).unwrap_or(sqlstate::BAD_TEXT)
}

impl PgError {
    /// An error without detail and hint.
    pub fn new(sqlstate: &'static str, message: impl Into<String>) -> Self {
        Self { sqlstate, message: message.into(), detail: String::new(), hint: String::new(), fatal: false }
    }

    /// What cannot be done here.
    pub(crate) fn unsupported(message: impl Into<String>) -> Self {
        Self::new(sqlstate::UNSUPPORTED, message)
    }

    /// With advice.
    pub(crate) fn hint(mut self, hint: impl Into<String>) -> Self {
        self.hint = hint.into();
        self
    }

    /// With more about it.
    pub(crate) fn detail(mut self, detail: impl Into<String>) -> Self {
        self.detail = detail.into();
        self
    }

    /// One after which the connection ends.
    pub(crate) fn fatal(sqlstate: &'static str, message: impl Into<String>) -> Self {
        Self { fatal: true, ..Self::new(sqlstate, message) }
    }

    /// Somebody else was faster.
    pub(crate) fn conflict() -> Self {
        Self::new(sqlstate::CONFLICT, "could not serialize access: what this transaction was shown has changed since")
            .hint("nothing of it has taken effect; run the whole transaction again")
    }

    /// Whoever said that nothing is written must not write.
    pub(crate) fn read_only() -> Self {
        Self::new(sqlstate::READ_ONLY, "cannot write in a read-only transaction")
    }

    /// Something was asked, and nothing was answered.
    pub(crate) fn no_result() -> Self {
        Self::new(sqlstate::PROTOCOL, "the replicas gave no result")
    }

    /// As the protocol calls it.
    pub(crate) const fn severity(&self) -> &'static str {
        if self.fatal { "FATAL" } else { "ERROR" }
    }
}

impl From<SqlError> for PgError {
    fn from(error: SqlError) -> Self {
        // What clients look for in PostgreSQL's message is in its SQLSTATE; the text is SQLite's.
        let sqlstate = match error.kind {
            ErrorKind::AlreadyExists if error.message.starts_with("duplicate column") => "42701",
            ErrorKind::Other if error.message.starts_with("foreign key mismatch") => "42830",
            kind => kind.sqlstate(),
        };
        Self::new(sqlstate, error.message).hint(error.hint)
    }
}

impl From<Failure> for PgError {
    fn from(failure: Failure) -> Self {
        failure.error.into()
    }
}
