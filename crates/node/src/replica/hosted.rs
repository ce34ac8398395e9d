//! What a replica's loop can host.

use bezant_core::auth::Keyring;
use bezant_core::checkpoint::{Checkpoint, Snapshot};
use bezant_core::ids::Principal;
use bezant_core::machine::Machine;
use bezant_core::notice::{Notice, Report};
use bezant_core::registry::{Incoming, Message, Record};
use bezant_core::rejection::{Account, Rejection};
use bezant_core::replica::Replica;
use bezant_core::service::Service;
use bytes::Bytes;

/// A machine that a replica's loop can host: the replica of `bezant-core`, or one that wraps it (a liar, for
/// demonstrations).
pub trait Hosted: Machine<Incoming = Incoming, Outgoing = Message, Notice = Notice, Record = Record> + 'static {
    /// Decodes and verifies a frame that came over the link of `from`. A rejection is counted, and `None`.
    fn open(&mut self, frame: Bytes, from: Principal) -> Option<Incoming>;
    /// Counts something that the loop itself did not accept, such as an oversized frame.
    fn reject(&mut self, _from: Principal, _reason: Rejection) {}
    /// What was rejected since this was asked last.
    fn recent_rejections(&mut self) -> Vec<(Account, Rejection)> {
        Vec::new()
    }
    /// The keys with which outgoing messages are sealed.
    fn keyring(&self) -> &Keyring;
    /// The machine's view of itself.
    fn report(&self) -> Report;
    /// The newest checkpoint that is certain, unless it is the one that is known.
    fn certain_checkpoint(&self, known: Option<&Checkpoint>) -> Option<Snapshot>;
    /// What the machine has at its newest checkpoint.
    fn newest_checkpoint(&self) -> Snapshot;
}

impl<S: Service + 'static> Hosted for Replica<S> {
    fn open(&mut self, frame: Bytes, from: Principal) -> Option<Incoming> {
        self.open(frame, from)
    }

    fn reject(&mut self, from: Principal, reason: Rejection) {
        self.reject(from, reason);
    }

    fn recent_rejections(&mut self) -> Vec<(Account, Rejection)> {
        self.recent_rejections()
    }

    fn keyring(&self) -> &Keyring {
        self.keyring()
    }

    fn report(&self) -> Report {
        self.report()
    }

    fn certain_checkpoint(&self, known: Option<&Checkpoint>) -> Option<Snapshot> {
        self.certain_checkpoint(known)
    }

    fn newest_checkpoint(&self) -> Snapshot {
        self.newest_checkpoint()
    }
}
