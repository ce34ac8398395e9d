//! What a statement asks for, as far as the gateway needs to know.

use crate::copy::Copy;
use crate::tag::Tag;

/// A statement, understood as far as the gateway needs.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Plan {
    /// Opens a transaction, which only reads, or also writes, or does what it does by default.
    Begin { read_only: Option<bool> },
    /// Says what it does after all.
    SetTransaction { read_only: Option<bool> },
    /// Closes it. `chain`: and opens the next.
    Commit { chain: bool },
    /// Gives it up. `chain`: and opens the next.
    Rollback { chain: bool },
    /// Marks a place in it.
    Savepoint(String),
    /// Goes back to that place.
    RollbackTo(String),
    /// Forgets the place.
    Release(String),
    /// Changes a setting.
    Set { name: String, value: String },
    /// Takes the change back; of all settings if none is named.
    Reset(Option<String>),
    /// Shows a setting.
    Show(String),
    /// Keeps a statement for later, with what is said of its parameters' types.
    Prepare { name: String, types: Vec<u32>, sql: String },
    /// Carries it out, with constants for its parameters.
    Execute { name: String, values: Vec<Constant> },
    /// Forgets prepared statements, or the one with this name.
    Deallocate(Option<String>),
    /// Forgets everything that the connection has.
    DiscardAll,
    /// Keeps the result of a query, to give it piece by piece.
    Declare(Declared, Box<Self>),
    /// Goes on with it. `moves`: without giving rows.
    Fetch { name: String, way: Way, moves: bool },
    /// Forgets it; all of them if none is named.
    Close(Option<String>),
    /// Brings rows, or takes them out.
    Copy(Box<Copy>),
    /// Nothing to do; the tag says that it is done.
    Nothing(&'static str),
    /// A question about the catalog, in SQLite's words.
    Catalog(String),
    /// A statement about the tables, as the client wrote it.
    Cluster { sql: String, tag: Tag },
}

/// What a cursor is declared to be.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Declared {
    pub(crate) name: String,
    /// Whether it outlives its transaction.
    pub(crate) holds: bool,
    /// Whether it goes forward only.
    pub(crate) is_forward_only: bool,
}

/// Where a cursor is to go. It stands on a row, before the first or behind the last.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Way {
    /// So many rows on; a negative number goes back.
    Forward(i64),
    /// To the end.
    ToEnd,
    /// Back to the beginning.
    ToStart,
    /// To the row with this number from 1 on; a negative number counts from the end.
    Absolute(i64),
    /// To the row so many places from here.
    Relative(i64),
}

/// A value that a statement is carried out with.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Constant {
    Null,
    /// A string, which is a value of whatever type the parameter has.
    Text(String),
    /// A number, or a truth value.
    Typed(String),
}
