//! What a message says of itself. Nothing here has a default: a message that leaves something out does not compile,
//! and none is authenticated, admitted or counted in a way that nobody wrote down.

use crate::auth::Keyring;
use crate::cluster::Cluster;
use crate::ids::{ClientId, InstanceId, Principal};
use crate::rejection::Rejection;
use alloc::boxed::Box;
use alloc::vec::Vec;
use core::fmt;

/// What the MAC covers that its sender puts behind a message, one for each receiver.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Cover {
    /// There is none: what authenticates the message is inside, and its receiver checks it.
    Inside,
    /// All of its encoding.
    Whole,
    /// All of its encoding, by its digest if it is long: it goes to several, and is hashed once.
    Digest,
    /// This summary, which names all that is parsed.
    Summary(Vec<u8>),
}

/// A message that travels on its own.
pub trait Spoken: fmt::Display {
    /// The instance that it is about; none if it is about no single one.
    fn instance(&self) -> Option<InstanceId>;

    /// The client that it answers, if it answers one.
    fn addressee(&self) -> Option<ClientId>;

    /// What the MAC behind it covers.
    fn cover(&self) -> Cover;

    /// Whether it is short, others wait for it, and it may arrive before what was sent earlier on the same link.
    fn may_overtake(&self) -> bool;

    /// Whether this party may send it, and which of the requests inside are their clients': what can be checked from
    /// the message, the keys and the cluster alone. What else is inside its receiver checks when it is due.
    ///
    /// # Errors
    /// The [`Rejection`] to be counted against the sender.
    fn admit(&mut self, from: Principal, cluster: &Cluster, keyring: &Keyring) -> Result<(), Rejection>;
}

/// Admits what only replicas say.
///
/// # Errors
/// [`Rejection::WrongSender`] if it comes from a client.
pub const fn from_replica(from: Principal) -> Result<(), Rejection> {
    match from {
        Principal::Replica(_) => Ok(()),
        Principal::Client(_) | Principal::Key(_) => Err(Rejection::WrongSender),
    }
}

impl<T: Spoken> Spoken for Box<T> {
    fn instance(&self) -> Option<InstanceId> {
        (**self).instance()
    }

    fn addressee(&self) -> Option<ClientId> {
        (**self).addressee()
    }

    fn cover(&self) -> Cover {
        (**self).cover()
    }

    fn may_overtake(&self) -> bool {
        (**self).may_overtake()
    }

    fn admit(&mut self, from: Principal, cluster: &Cluster, keyring: &Keyring) -> Result<(), Rejection> {
        (**self).admit(from, cluster, keyring)
    }
}
