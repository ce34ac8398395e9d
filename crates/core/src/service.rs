//! What an application implements.
//!
//! A [`Service`] is a deterministic state machine whose state is a set of numbered pages. Between two checkpoints it
//! keeps its state in whatever form is fast; at a checkpoint it hands over the pages that changed; after a rollback
//! or a state transfer it takes pages back. Everything else (Merkle tree, copy on write, rollback, transfer, disk)
//! is done for it. `docs/service.md` walks through a whole service in 60 lines.

use crate::digest::{Digest, Domain};
use crate::ids::{ClientId, PublicKey};
use crate::time::Instant;
use crate::wire_struct;
use alloc::boxed::Box;
use alloc::vec::Vec;
use bytes::Bytes;

/// The number of a page of a service's state, below [`PAGES_MAX`].
pub type PageNumber = u32;

/// Pages that a service may have.
pub const PAGES_MAX: u32 = 1 << 23;

/// The largest page, in bytes.
pub const PAGE_BYTES_MAX: usize = 1 << 20;

/// What the replicas agreed on besides the operation itself (prac-F27, prac-F29).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Agreed {
    /// Microseconds since the Unix epoch; grows strictly with every batch that is not empty.
    pub time: Instant,
    /// For everything random: another one for each operation.
    pub seed: Seed,
    /// Who asks. The default for operations of the system itself.
    pub asker: Asker,
}

/// An operation with what was agreed for it.
#[derive(Clone, Debug)]
pub struct Operation {
    /// What the client asks for.
    pub bytes: Bytes,
    /// The agreed values. The time is the same for all of a batch.
    pub agreed: Agreed,
}

impl Operation {
    /// Those of a bundle: they share the agreed values, and each has a seed of its own.
    pub fn of_bundle(operations: &[Bytes], agreed: &Agreed) -> Vec<Self> {
        let at_place = |place| Agreed { seed: agreed.seed.at_place(place), ..*agreed };
        let operations = (0..).zip(operations);
        operations.map(|(place, bytes)| Self { bytes: bytes.clone(), agreed: at_place(place) }).collect()
    }
}

/// Where the randomness of an operation comes from. The primary proposes it with a batch: it is unpredictable to
/// clients, but a faulty primary may have chosen it (prac-F29). Operations of one batch have different seeds.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Seed {
    proposed: Digest,
    /// The request's position in the history.
    position: u64,
    /// Where in its bundle the operation stands, from 0.
    place: u32,
}

impl Seed {
    /// Of the operation of the request at this position.
    pub const fn new(proposed: Digest, position: u64) -> Self {
        Self { proposed, position, place: 0 }
    }

    /// That of the operation at this place of the same bundle.
    pub const fn at_place(self, place: u32) -> Self {
        Self { place, ..self }
    }

    /// The seed itself. It is hashed only when somebody asks: most operations draw nothing.
    pub fn digest(&self) -> Digest {
        let Self { proposed, position, place } = self;
        Digest::of_parts(Domain::Seed, &[&proposed.0, &position.to_le_bytes(), &place.to_le_bytes()])
    }
}

/// Who asks for an operation.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Asker {
    /// The client.
    pub client: ClientId,
    /// Whose key speaks for it, whether the cluster file names it or it joined.
    pub public_key: PublicKey,
    /// Whether it joined, rather than being named in the cluster file.
    pub joined: bool,
}

/// What a primary proposes with a batch, for services that need more than time and seed.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Proposal {
    /// Agreed time before clamping.
    pub time: Instant,
    /// Random seed.
    pub seed: Digest,
}
wire_struct!(Proposal { time, seed });

impl Proposal {
    /// Over both: what an entry of a history says of its batch.
    pub(crate) fn digest(&self) -> Digest {
        Digest::of_parts(Domain::Agreed, &[&self.time.0.to_le_bytes(), &self.seed.0])
    }
}

/// An operation that is not read-only was sent as a query.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct NotReadOnly;

/// The longest result of an operation, in bytes, whatever a service says: a longer one is replaced by none. Half a
/// frame, so that a reply fits into one.
pub const RESULT_BYTES_MAX: usize = crate::wire::FRAME_BYTES_MAX / 2;

/// Results of a bundle that are longer than this together, in bytes, leave no room for one more. The last one may be as
/// long as a result may be, and all of them fit into a frame. The client table keeps them: a few bundles must not evict
/// the other sessions of an identity.
pub const RESULTS_BYTES_MAX: usize = RESULT_BYTES_MAX / 16;

/// A replicated service. Same state, same operation, same agreed values: same result and same new state, on every
/// machine and after every restart.
pub trait Service: core::fmt::Debug {
    /// Executes one operation. Malformed operations get a result that says so; nothing may panic.
    fn execute(&mut self, operation: &[u8], agreed: &Agreed) -> Bytes;

    /// Executes operations that follow one another, those of a [bundle](crate::message::bundle) or of several requests:
    /// by default with [`Service::execute`], one after the other. A service that can do it for less together may, as
    /// long as every client gets the results that it would get so, and every replica the same state. It returns results
    /// up to the first for which [there is no more room](in_turn); the operations after that it must not execute.
    fn execute_many(&mut self, operations: &[Operation]) -> Vec<Bytes> {
        one_by_one(self, operations)
    }

    /// How many requests that follow one another in a batch the service takes in one call of
    /// [`Service::execute_many`]; bundles are calls of their own. More than one pays if it does them for less together.
    /// It must be the same at every replica and for ever: what is executed in one call shows in replies.
    fn run_max(&self) -> usize {
        1
    }

    /// A digest of what has been written since the last call, asked for after each [`Service::execute`],
    /// [`Service::execute_many`] and [`Service::authorize`]; zero if nothing was. Replies contain it, chained, so
    /// that nobody takes the answer of a replica that wrote something else, be the answer itself what others say. A
    /// service that leaves it out is compared at checkpoints only. What is there when a service is made or loaded does
    /// not count, whatever this says of it.
    fn take_written(&mut self) -> Digest {
        Digest::ZERO
    }

    /// Answers without changing anything.
    ///
    /// # Errors
    /// [`NotReadOnly`] if the operation could change the state: its client has to send it to be ordered.
    fn query(&self, operation: &[u8], asker: &Asker) -> Result<Bytes, NotReadOnly>;

    /// Answers a query that was ordered, because the protocol orders every read or because not enough replicas answered
    /// it equally. Like [`Service::execute`] it must be the same on every machine: where [`Service::query`] goes by
    /// more than the state, this may not.
    ///
    /// # Errors
    /// [`NotReadOnly`] if the operation could change the state: then it does not.
    fn ordered_query(&mut self, operation: &[u8], agreed: &Agreed) -> Result<Bytes, NotReadOnly> {
        self.query(operation, &agreed.asker)
    }

    /// Whether a primary's proposal is acceptable, asked on a *fresh* proposal only, never on replay. Time and seed
    /// are checked by the replica itself; most services need nothing here.
    fn validate(&self, _proposal: &Proposal, _operation: &[u8]) -> bool {
        true
    }

    /// Whether the holder of `agreed.asker.public_key`, which it has proved to hold, may join, given what it says about
    /// itself (an invitation, say; every replica reads it, so it must not be a secret worth stealing: prac-F24).
    /// Asked on clusters with dynamic clients only, at the agreed position of the Join; may change the state. By
    /// default everybody may.
    fn authorize(&mut self, _identification: &[u8], _agreed: &Agreed) -> bool {
        true
    }

    /// Whether this client may close the cluster, after which nothing is written to it any more
    /// (`docs/operations.md`). Asked at the agreed position of its request, of clients that the cluster file names;
    /// by default each of them may.
    fn may_close(&self, asker: &Asker) -> bool {
        !asker.joined
    }

    /// Calls `write` with every page that changed since the last call (`None`: the page is gone). The order does
    /// not matter; a page that is written must be given in full.
    fn save(&mut self, write: &mut dyn FnMut(PageNumber, Option<Bytes>));

    /// Takes back pages, after a rollback or a transfer: each named page now has this content (`None`: gone), the
    /// others stay as they were last saved.
    ///
    /// # Errors
    /// [`BadState`] if the pages are not what this service would have saved. They have been checked against an
    /// agreed digest before, so this means a different version of the service.
    fn load(&mut self, pages: &mut dyn Iterator<Item = (PageNumber, Option<Bytes>)>) -> Result<(), BadState>;
}

/// Executes operations one after the other, from the first that has no result yet, until their results leave no room
/// for one more ([`RESULTS_BYTES_MAX`]). `None` as soon as `execute` says so.
pub fn in_turn(
    operations: &[Operation],
    results: &mut Vec<Bytes>,
    mut execute: impl FnMut(&Operation) -> Option<Bytes>,
) -> Option<()> {
    let mut bytes: usize = results.iter().map(Bytes::len).sum();
    for operation in operations.iter().skip(results.len()) {
        if bytes > RESULTS_BYTES_MAX {
            break;
        }
        let result = bounded(execute(operation)?);
        bytes += result.len();
        results.push(result);
    }
    Some(())
}

/// Has a service execute operations one after the other: [`in_turn`], by [`Service::execute`].
pub fn one_by_one(service: &mut (impl Service + ?Sized), operations: &[Operation]) -> Vec<Bytes> {
    let mut results = Vec::with_capacity(operations.len());
    in_turn(operations, &mut results, |Operation { bytes, agreed }| Some(service.execute(bytes, agreed)));
    results
}

/// A result, or none if it is longer than one may be: a service that breaks its word must not make a state that nobody
/// can load.
pub(crate) fn bounded(result: Bytes) -> Bytes {
    if result.len() > RESULT_BYTES_MAX { Bytes::new() } else { result }
}

/// A program that can run one of several services has the replica compiled once, and not for each of them.
impl<S: Service + ?Sized> Service for Box<S> {
    fn execute(&mut self, operation: &[u8], agreed: &Agreed) -> Bytes {
        (**self).execute(operation, agreed)
    }

    fn execute_many(&mut self, operations: &[Operation]) -> Vec<Bytes> {
        (**self).execute_many(operations)
    }

    fn run_max(&self) -> usize {
        (**self).run_max()
    }

    fn take_written(&mut self) -> Digest {
        (**self).take_written()
    }

    fn query(&self, operation: &[u8], asker: &Asker) -> Result<Bytes, NotReadOnly> {
        (**self).query(operation, asker)
    }

    fn ordered_query(&mut self, operation: &[u8], agreed: &Agreed) -> Result<Bytes, NotReadOnly> {
        (**self).ordered_query(operation, agreed)
    }

    fn validate(&self, proposal: &Proposal, operation: &[u8]) -> bool {
        (**self).validate(proposal, operation)
    }

    fn authorize(&mut self, identification: &[u8], agreed: &Agreed) -> bool {
        (**self).authorize(identification, agreed)
    }

    fn may_close(&self, asker: &Asker) -> bool {
        (**self).may_close(asker)
    }

    fn save(&mut self, write: &mut dyn FnMut(PageNumber, Option<Bytes>)) {
        (**self).save(write);
    }

    fn load(&mut self, pages: &mut dyn Iterator<Item = (PageNumber, Option<Bytes>)>) -> Result<(), BadState> {
        (**self).load(pages)
    }
}

/// Pages that this service cannot have saved.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct BadState;
