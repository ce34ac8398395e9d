//! A replica has two doors.

/// Which door a connection came through.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Port {
    /// Other replicas, those with higher numbers.
    Replicas,
    /// Clients.
    Clients,
}
