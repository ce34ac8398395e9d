//! Closing the cluster: a session of its own, in which nothing else can be asked.

use super::ClientOptions;
use super::call::CallError;
use super::pool::{Client, connect_from};
use bezant_core::joining::CONTROL_SESSION;
use bezant_core::wire::Wire;
use bytes::Bytes;
use std::io;
use std::time::Duration;

/// A client that can do nothing but close its cluster, after which nothing is written there any more.
#[derive(Clone, Debug)]
pub struct Closer(Client);

impl Closer {
    /// Connects to a cluster. Returns at once, like [`connect`](super::connect).
    ///
    /// # Errors
    /// If the cluster file does not name the client, the keys are not those of the identity, or the system gives no
    /// readiness queue or thread.
    pub fn connect(options: ClientOptions) -> io::Result<Self> {
        if options.identity.is_none() {
            return Err(io::Error::other("only a client that the cluster file names may close the cluster"));
        }
        let options = ClientOptions { connections: 1, sessions_per_connection: 1, ..options };
        connect_from(options, CONTROL_SESSION).map(Self)
    }

    /// Closes the cluster. Returns how many requests it has executed with the one that closed it, be that this one or
    /// an earlier one. Whoever does not know what came of it may ask again: nothing is closed twice.
    ///
    /// # Errors
    /// [`CallError`].
    pub fn close(&self, deadline: Duration) -> Result<u64, CallError> {
        let position = self.0.execute(Bytes::new(), deadline).wait()?;
        // Enough replicas said so to say anything: more than f of them are faulty if this is no position.
        Ok(u64::from_bytes(position).unwrap_or_default())
    }
}
