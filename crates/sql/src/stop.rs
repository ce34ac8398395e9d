//! Errors of this machine, after which the replica stops.

/// An error of this machine and not of the request (prac-F35): an answer would make the replicas differ.
pub(crate) fn stop(error: &rusqlite::Error) -> ! {
    panic!("SQLite failed, and not because of a request: {error}; the replica stops and can start again from its log")
}
