//! Where a gateway listens: on an address of TCP, or on a Unix socket, which only this machine reaches.

use std::fmt;
use std::net::SocketAddr;
use std::path::PathBuf;

/// Who may connect to a Unix socket: the bits of its file's mode.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Access {
    /// The user that runs the gateway, and root: 0600.
    #[default]
    Owner,
    /// The file's group as well: 0660.
    Group,
}

impl Access {
    /// The mode of the socket's file.
    pub const fn mode(self) -> u32 {
        match self {
            Self::Owner => 0o600,
            Self::Group => 0o660,
        }
    }
}

/// Where a gateway listens, and where its clients come in.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Endpoint {
    /// An address and a port; port 0 is any that is free.
    Tcp(SocketAddr),
    /// The path of a socket, at most [`PATH_BYTES_MAX`](crate::unix::PATH_BYTES_MAX) long.
    Unix(PathBuf, Access),
}

impl Endpoint {
    /// The address and port; `None` for a Unix socket, which has none.
    pub const fn address(&self) -> Option<SocketAddr> {
        match self {
            Self::Tcp(address) => Some(*address),
            Self::Unix(..) => None,
        }
    }
}

impl fmt::Display for Endpoint {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Tcp(address) => address.fmt(out),
            Self::Unix(path, _) => path.display().fmt(out),
        }
    }
}
