//! What came of a call.

use bezant_core::message::Refusal;
use bezant_node::client::CallError;
use bezant_sql::{Column, Failure, Rows, Value};

/// How a call ended. The numbers are part of the interface.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[repr(i32)]
pub enum Code {
    /// It was done.
    #[default]
    Ok = 0,
    /// An argument is wrong. Nothing was sent.
    Invalid = 1,
    /// The client cannot be opened: a file or a key is wrong, or the system refuses something.
    Open = 2,
    /// Not sent: there was no connection, or too much was under way, until the time was over.
    NotSent = 3,
    /// Not sent: the cluster does not let this client join.
    NotAdmitted = 4,
    /// The replicas agree that it was not executed and never will be.
    Refused = 5,
    /// The same, because it was asked as a query and writes.
    NotReadOnly = 6,
    /// Not enough equal answers in time to something that only reads: nothing has changed.
    Unanswered = 7,
    /// Not enough equal answers in time: it may have been executed, or may be yet.
    Unknown = 8,
    /// It will not be executed from now on; it may have been before.
    TooLate = 9,
    /// The client was closed; what was under way may have been executed.
    Closed = 10,
    /// An error of SQL: nothing was changed.
    Sql = 11,
    /// The service refuses it: no room, too large, not allowed. Nothing was changed.
    Service = 12,
    /// The replicas agree on an answer that is none of this service's: they run another, or another version.
    Foreign = 13,
    /// A mistake in this library.
    Internal = 14,
}

/// Why a call has no answer.
#[derive(Debug)]
pub(crate) struct Problem {
    code: Code,
    message: String,
    failure: Option<(&'static str, u32)>,
}

impl Problem {
    pub(crate) fn new(code: Code, message: impl Into<String>) -> Self {
        Self { code, message: message.into(), failure: None }
    }

    pub(crate) fn invalid(message: &str) -> Self {
        Self::new(Code::Invalid, message)
    }

    pub(crate) fn internal() -> Self {
        Self::new(Code::Internal, "a mistake in the library: its outcome is unknown")
    }

    pub(crate) fn sql(failure: Failure) -> Self {
        let told = Some((failure.error.kind.sqlstate(), failure.statement));
        Self { code: Code::Sql, message: failure.error.to_string(), failure: told }
    }

    /// Of a call that was made. What only reads changes nothing, whatever became of it.
    pub(crate) fn of(error: &CallError, reads_only: bool) -> Self {
        let code = match error {
            CallError::NotSent => Code::NotSent,
            CallError::NotAdmitted(_) => Code::NotAdmitted,
            CallError::Rejected(Refusal::NotReadOnly) => Code::NotReadOnly,
            CallError::Rejected(_) => Code::Refused,
            _ if reads_only => Code::Unanswered,
            CallError::Unknown { .. } => Code::Unknown,
            CallError::TooLate(_) | CallError::SessionOver(_) | CallError::Forgotten => Code::TooLate,
            CallError::Closed => Code::Closed,
        };
        Self::new(code, error.to_string())
    }
}

/// What came of a call: tables if it was done, and otherwise why not.
#[derive(Debug, Default)]
pub struct Outcome {
    pub(crate) code: Code,
    pub(crate) message: String,
    pub(crate) failure: Option<(&'static str, u32)>,
    pub(crate) tables: Vec<Rows>,
}

impl Outcome {
    /// One value: a table of one row and one column.
    pub(crate) fn one(value: Value) -> Self {
        let columns = vec![Column { name: "value".into(), declared: None }];
        Self { tables: vec![Rows { columns, rows: vec![vec![value]], ..Rows::default() }], ..Self::default() }
    }
}

impl From<Problem> for Outcome {
    fn from(Problem { code, message, failure }: Problem) -> Self {
        Self { code, message, failure, tables: Vec::new() }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_unknown_outcome_is_told_from_one_that_never_comes() {
        let (id, over) = (Default::default(), Refusal::TakenOver);
        let unknown = CallError::Unknown { id, replicas: Vec::new() };
        let code = |error: &CallError| Problem::of(error, false).code;
        assert_eq!(code(&unknown), Code::Unknown);
        assert_eq!(code(&CallError::TooLate(over)), Code::TooLate);
        assert_eq!(code(&CallError::Rejected(Refusal::TooLarge)), Code::Refused);
        assert_eq!(code(&CallError::Rejected(Refusal::NotReadOnly)), Code::NotReadOnly);
        assert_eq!(code(&CallError::NotSent), Code::NotSent);
        for error in [unknown, CallError::TooLate(over), CallError::SessionOver(over), CallError::Forgotten] {
            assert!(error.may_have_been_executed());
            assert_eq!(Problem::of(&error, true).code, Code::Unanswered, "{error}");
        }
    }
}
