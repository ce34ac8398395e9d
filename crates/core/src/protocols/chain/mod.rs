//! Chain: the least work per request at the busiest replica, as long as nobody fails (section 5.2 of the paper).
//!
//! # What it is for
//! Under load the busiest replica decides. Here every replica receives a request once and sends it once: the client
//! sends to the head, each replica to the next, the tail answers.
//!
//! # Steps
//! * Chain 1. The client sends its request to the head, with MACs for the first f+1 places.
//! * Chain 2. The head checks its MAC, gives the requests that wait the next positions, proposes agreed time and a
//!   seed, logs them and sends CHAIN to the next place.
//! * Chain 3. A replica first checks the MAC of its direct predecessor; if that is bad, the message is not the
//!   predecessor's, and is dropped. Then come the other MACs meant for it, position, history and agreed values; if
//!   anything is wrong it stops. Otherwise it logs the batch, adds its own MACs for its successors and passes on. The
//!   places from f execute first and compare: who has other results than the place before stops. The last f+1 vouch
//!   for results and history to the client.
//! * Chain 4. The client accepts the tail's answer with the MACs of all of the last f+1 places.
//!
//! # Who vouches to whom
//! A replica makes MACs for the next f+1 places; one of the last f+1 for all that follow and the client; the client for
//! the first f+1. A MAC travels along until it reaches its receiver. So among the f+1 whose MACs a replica
//! checks is a correct one, if there are so many before it: by induction every correct replica before has logged the
//! batch. [`topology`] has the sets.
//!
//! # Why it is safe
//! The MACs between replicas cover the history's digest with the batch (abs-D10; the paper's cover request and position
//! only, so a replica initialised with another history could be fed the same request: abs-S1). The client's f+1
//! MACs include a correct one, so every correct replica before it has logged this history, and with the tail's MAC all
//! have. Those from place f on cover results and [effects](crate::dissent) as well, so by the same induction all
//! correct replicas of the last n−f places have executed identically what a client accepts: n−2f at least.
//!
//! # Why it is live
//! With no failure a batch takes n hops. The head is another replica in each instance (abs-P1).
//!
//! # Deviations from the paper
//! * abs-D10, above.
//! * A client that waits too long sends its request to all before it panics (abs-P12). The last f+1 places answer such
//!   a request from their client tables, each for itself; the client accepts f+1 equal answers of exactly those, which
//!   is the same evidence as Chain 4.
//!   The init history travels along the chain as an empty batch first, so that nobody vouches for a history that others
//!   did not begin with.
//! * CHAIN messages that overtake one another are put in order; the paper relies on TCP.
//! * The head counts a request's MACs: with fewer or more than f + 1 a place further on would blame it.
//! * The first f places execute when everything that waits has been passed on, and at every checkpoint (abs-P10). In
//!   the paper the first 2f do: then two halves that execute otherwise could both be acknowledged.
//!
//! # Cost
//! With n = 3f + 1, MACs per request with batches of b: place p makes and checks [p ≤ f] + [p ≥ 2f] + (min(p, f+1) +
//! |Succ(p)|) / b. The most is 1 + (2f+1)/b, at places f and 2f. n + 1 messages per batch of one, n + 1 delays.

pub(crate) mod client;
mod invariants;
mod message;
#[cfg(test)]
mod paper_test;
pub(crate) mod replica;
pub(crate) mod topology;

pub use message::{ChainMessage, ChainReply, ReplyStatement};
pub(crate) use replica::Chain;
pub use topology::Topology;
