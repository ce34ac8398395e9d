//! What a client is for that closes the cluster.

/// Where a client stands that closes the cluster.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Errand {
    /// It has not asked yet, or asks again.
    ToDo,
    Asked,
    Done,
}
