//! RITAS as a total order: what a Backup needs around an atomic broadcast.
//!
//! # What it is for
//! A Backup over PBFT waits for as long as the network is slower than its timers. Over RITAS it goes on: the clock
//! decides when something is said once more, and when a payload is listed that is ahead of its time, and nothing else.
//!
//! # Steps
//! * Order 1. A request that somebody asks for waits in the pool, until it is executed.
//! * Order 2. What waits goes into a *payload*, with this replica's clock and its part of the seed, and that is a
//!   message of the atomic broadcast. So many are on their way at a time ([`PAYLOADS_IN_FLIGHT`]): under load payloads
//!   grow by themselves.
//! * Order 3. A payload that was delivered reliably is listed once this replica vouches for it: each request is its
//!   client's by a signature, which convinces everybody alike; its time is not ahead of this replica's clock by more
//!   than the bound; and it has an INIT, where the instance still waits for one. Its requests need no other payload
//!   then, for what is listed comes to be ordered.
//! * Order 4. What a round of the atomic broadcast delivers is one batch: system requests first, then the payloads in
//!   their order, of each client the newest request. Its time is the latest of its payloads', its seed is over all of
//!   theirs. It is final at once.
//! * Order 5. No round begins that could deliver a batch beyond the window above the last stable checkpoint.
//! * Order 6. What led to a stable checkpoint is forgotten. Who has not come there is given the proof, and fetches the
//!   state, which says where its atomic broadcast stands ([`crate::batch::Ordered::standing`]).
//! * Order 7. A replica that has come to nothing new says on a timer what it has heard ([`super::channel`]), after a
//!   while more seldom; also if it lacks nothing, so that who has missed everything learns of it. Who hears from f + 1
//!   that they are some rounds ahead says it at once, and again as soon as it has come to another round.
//! * Order 8 to 10. A replica that lost its log: `amnesia.rs`.
//! * Then a rest between two rounds: `rest.rs`.
//!
//! # Why it is safe
//! Atomic broadcast delivers the same everywhere, and a batch is a function of what it delivers. A payload that was
//! delivered was listed by f + 1 replicas, so that a correct one vouched for its requests, and for its time: no batch
//! is ahead of a correct clock by more than the bound. (Where the time of a payload is *behind*, the estate sees to it
//! that time grows.)
//!
//! # Why it is live
//! A request that reaches a correct replica goes into a payload of it, which all correct replicas come to vouch for:
//! what they check is the same for all, and their clocks go on. Clients ask the replica whose turn it is by the number
//! of the request, and all when they retry; whoever did not see to one in time they pass over for some. A round begins
//! as soon as the stable checkpoint is not a window away; checkpoints become stable because all correct replicas come
//! to them.
//!
//! # What is on disk before it is said
//! Every statement that binds ([`super::message::Statement::binds`]), each value that this replica vouches for by its
//! name, and every batch before anybody is told of it.
//!
//! # Cost
//! That of atomic broadcast: for a payload a reliable broadcast, for a round four kinds of them. Each replica checks
//! the signature of every request.

mod amnesia;
mod delivery;
mod message;
mod payload;
mod record;
mod replica;
mod rest;
mod speaking;
#[cfg(test)]
mod tests;

pub use message::{Agreement, Lap, Progress, RitasMessage, Whereabouts};
pub use payload::Payload;
pub use record::{Delivered, Over, RitasRecord, RitasTimer};
pub use replica::{PAYLOADS_IN_FLIGHT, Ritas};
pub use rest::LAPS;
