//! What SQLite means by an error, as an answer.

use crate::engine::Engine;
use crate::error::{ErrorKind, SqlError};
use crate::functions;
use crate::meter::{self, STEP_BYTES};
use crate::stop::stop;
use rusqlite::ffi;
use std::sync::PoisonError;

impl Engine<'_> {
    /// The request takes too long.
    pub(crate) fn too_slow(&self) -> SqlError {
        SqlError::with_hint(
            ErrorKind::TooSlow,
            format!(
                "the request takes more than {} steps, a step for each {STEP_BYTES} bytes included",
                self.limits.steps
            ),
            "an index may help; or do less at once",
        )
    }

    /// The request takes too much memory.
    pub(crate) fn too_much(&self) -> SqlError {
        let text = format!("the request needs more than {} bytes of memory", self.limits.memory);
        SqlError::with_hint(ErrorKind::TooLarge, text, "do less at once, or with shorter values")
    }

    /// What SQLite means, as an answer.
    pub(crate) fn explain(&self, error: rusqlite::Error) -> SqlError {
        use rusqlite::Error;
        let (code, message, position) = match error {
            Error::SqliteFailure(code, message) => (code, message, None),
            Error::SqlInputError { error, msg, offset, .. } => (error, Some(msg), u32::try_from(offset).ok()),
            Error::MultipleStatement => {
                let hint = "send several statements as a batch";
                return SqlError::with_hint(ErrorKind::Syntax, "more than one statement", hint);
            }
            Error::NulError(_) => {
                return SqlError::new(ErrorKind::Syntax, "a zero byte in the statement");
            }
            other => stop(&other),
        };
        if meter::has_refused() {
            return self.too_much();
        }
        let message = message.unwrap_or_else(|| code.to_string());
        let refusal = self.disk.moment.refusal.lock().unwrap_or_else(PoisonError::into_inner).take();
        if let Some(refusal) = refusal {
            return SqlError::new(ErrorKind::NotAllowed, refusal);
        }
        // SQLite's authorizer is not asked about it.
        if message.starts_with("cannot VACUUM") {
            let hint = "what is deleted makes room for what comes; bezant export writes a copy";
            return SqlError::with_hint(ErrorKind::NotAllowed, "VACUUM is not allowed in a replicated database", hint);
        }
        if code.code == ffi::ErrorCode::OperationInterrupted {
            return self.too_slow();
        }
        if let Some((kind, text)) = functions::error_of(&message) {
            return SqlError::new(kind, text);
        }
        match kind_of(code, &message) {
            Some(kind) => SqlError { position, ..SqlError::new(kind, message) },
            None => stop(&Error::SqliteFailure(code, Some(message))),
        }
    }
}

/// The kind of an error that every replica has alike; `None`: only this one has it.
fn kind_of(error: ffi::Error, message: &str) -> Option<ErrorKind> {
    use ffi::ErrorCode;
    Some(match (error.code, error.extended_code) {
        (_, ffi::SQLITE_CONSTRAINT_UNIQUE | ffi::SQLITE_CONSTRAINT_PRIMARYKEY | ffi::SQLITE_CONSTRAINT_ROWID) => {
            ErrorKind::Unique
        }
        (_, ffi::SQLITE_CONSTRAINT_NOTNULL) => ErrorKind::NotNull,
        (_, ffi::SQLITE_CONSTRAINT_CHECK) => ErrorKind::Check,
        (_, ffi::SQLITE_CONSTRAINT_FOREIGNKEY) => ErrorKind::ForeignKey,
        // ON DELETE RESTRICT is a trigger of SQLite's own.
        (_, ffi::SQLITE_CONSTRAINT_TRIGGER) if message == "FOREIGN KEY constraint failed" => ErrorKind::ForeignKey,
        (_, ffi::SQLITE_CONSTRAINT_TRIGGER) => ErrorKind::Raised,
        (ErrorCode::ConstraintViolation, _) => ErrorKind::Constraint,
        (ErrorCode::TypeMismatch, _) => ErrorKind::Mismatch,
        (ErrorCode::TooBig, _) => ErrorKind::TooLarge,
        (ErrorCode::DiskFull, _) => ErrorKind::Full,
        (ErrorCode::ParameterOutOfRange, _) => ErrorKind::Parameters,
        (ErrorCode::ReadOnly | ErrorCode::AuthorizationForStatementDenied, _) => ErrorKind::NotAllowed,
        (ErrorCode::Unknown, ffi::SQLITE_ERROR) => kind_of_message(message),
        (ErrorCode::Unknown, _) => ErrorKind::Other,
        _ => return None,
    })
}

/// SQLite has one code for everything that is wrong with a statement's text.
fn kind_of_message(message: &str) -> ErrorKind {
    const BEGINNINGS: [(&str, ErrorKind); 5] = [
        ("no such table", ErrorKind::NoSuchTable),
        ("no such view", ErrorKind::NoSuchTable),
        ("no such column", ErrorKind::NoSuchColumn),
        ("no such function", ErrorKind::NoSuchFunction),
        // Our own word, in `bezant_meter.h`.
        ("too many selects", ErrorKind::TooLarge),
    ];
    const ENDINGS: [(&str, ErrorKind); 2] =
        [("already exists", ErrorKind::AlreadyExists), ("syntax error", ErrorKind::Syntax)];
    let beginning = BEGINNINGS.iter().find(|(text, _)| message.starts_with(text));
    let ending = || ENDINGS.iter().find(|(text, _)| message.ends_with(text));
    match beginning.or_else(ending) {
        Some((_, kind)) => *kind,
        None if message.contains("incomplete input") || message.contains("unrecognized token") => ErrorKind::Syntax,
        None => ErrorKind::Other,
    }
}
