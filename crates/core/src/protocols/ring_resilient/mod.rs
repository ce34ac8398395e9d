//! The resilient ring: a sequencer orders, 2f+1 sign, and what committed can be proved. It is section 4.3 of the
//! thesis, with the repairs of `docs/papers/ring.md`. With more replicas than 3f+1, 2f+1 reads ⌈(n+f+1)/2⌉ everywhere
//! ([`crate::replicas`]): the correct ones are as many, and two such sets have a correct one in common.
//!
//! # What it is for
//! Fast instances stop as soon as one replica is down. Something has to serve the clients then, with as many as f
//! replicas that are silent or lie, and for long enough that the way through the fast instances is worth it. This one
//! does for as long as its sequencer is correct; it has no view change. When the sequencer is not, the replicas stop,
//! and the next resilient ring of the schedule has another one.
//!
//! # Steps
//! * Resilient 1. *Ask.* A client sends its request, signed, to every replica, and again until 2f+1 have answered. It
//!   never panics. Each replica keeps the newest request of each client, passes those that wait longest on to the
//!   sequencer, if their signatures hold, and stops if it waits too long while nothing is executed, or much longer
//!   while others are served and what it has passed on is not.
//! * Resilient 2. *Order.* The sequencer gives the requests that wait the next positions, as one batch, proposes the
//!   agreed time and a seed, and sends ORDER with its own PREP. Big requests travel by reference: the client has sent
//!   them to everybody, and who lacks one asks for it. The first ORDER is empty and about the init history, so that all
//!   who go on begin with the same one. Whoever began with another one, and has signed nothing yet, begins again with
//!   the sequencer's.
//! * Resilient 3. *Log and sign.* A replica that has every request in hand, checked, and finds none of them in the
//!   history that it has *logged* (not: executed), logs the batch, makes it durable, and sends PREP to all: its
//!   signature over instance, position and the digest of the history up to there. What only further execution makes
//!   stale is no reason not to sign: the sequencer may have executed less. It is executed as nothing, and is no
//!   progress (Speculation 1 of [`crate::protocols::speculative`]). It logs in order of the positions, takes nothing
//!   back, and so signs at most one history. What f+1 have signed, the sequencer among them, one correct replica has
//!   judged: who comes later logs it although the agreed time is long past, and although those who have the requests
//!   have restarted, and their clients' proofs are gone.
//! * Resilient 4. *Prepared.* 2f+1 PREPs for one position and history are a certificate. The replica makes it durable
//!   and sends COMM to all.
//! * Resilient 5. *Committed.* 2f+1 COMMs for this history or a longer one: the replica executes up to there, and
//!   answers each client with position, result and history digest. 2f+1 equal answers commit.
//! * Resilient 6. *Checkpoint.* After the init history, every CHK-th position and the last one, a replica signs its
//!   state. 2f+1 equal signatures make the checkpoint the anchor; nobody waits for it (ring-F14), but nothing is logged
//!   further than `Cluster::history_bound` above the anchor. When a client goes on asking for what it was answered
//!   above the anchor, replicas sign where they are, too. Either 2f+1 have the same state there, and the client has
//!   lost an answer; or else they have not all executed identically ([`crate::dissent`]), or one of them has stopped:
//!   after T a replica that is asked stops.
//! * Resilient 7. *End.* Nothing is ordered after the quota's last request. A replica that has executed it, with a
//!   checkpoint there, stops; and so does one that has waited too long, for a request or for that checkpoint. f+1 that
//!   have stopped stop all others (Switch 2 of [`crate::switching`]). The abort report lists the history up to the
//!   highest certificate, with that certificate.
//! * Resilient 8. *Repeat.* Messages may get lost. A replica that waits for something says how far it has come, and
//!   whoever has more sends it.
//!
//! # Why it is safe
//! Two certificates have a correct signer in common. It signed the history of one after that of the other, and logs
//! are only appended to: the shorter history is a prefix of the longer. So there is one certified history. A request
//! committed if one correct replica executed it: then 2f+1 said COMM, f+1 correct ones among them hold a durable
//! certificate for it, every 2f+1 abort reports include one of theirs, and [`crate::switching::report`] picks the
//! longest. A correct signer checked that each request is its client's and in no position before.
//!
//! # Why it is live
//! With a correct sequencer the 2f+1 correct replicas get each ORDER, and its PREPs and COMMs, from one another:
//! nothing is awaited from the other f. A liar's votes for another history are one per place and count for nothing. A
//! request that any correct replica has reaches the sequencer after a status interval, so what the clients send is
//! ordered within five message delays from then; T is longer and doubles from one failed instance to the next. A
//! sequencer that serves some and not others would stay for its quota, which doubles too; it does not: a correct one
//! orders what it gets in the order in which it came, so 8 T are enough for the few that a replica passes on at a
//! time, or are after some doublings. A replica that fell behind an anchor fetches the state there, and goes on from it
//! (`compositions/jump.rs`).
//!
//! # Deviations from the thesis, as repaired
//! * Not flooded. Each replica has a link to each other one, so a signature needs no relay: a correct signer sends
//!   it to all, and a certificate needs correct signers only. Flooding to f+1 successors sends each of 2n signatures
//!   over up to n(f+1) links, 2n²(f+1) messages for a batch (64 for f = 1); this sends 2n(n−1), 24.
//! * COMM is not signed. No report contains it: a MAC convinces the replica that executes.
//! * PREP names the history after the position only. Its digest covers all before: requests, agreed values, order.
//! * A batch is one step. A replica signs one PREP for each, at its end.
//!
//! # Cost
//! For a batch of b: 1 signature at every replica and at the client of each request, 2f checked PREPs and b checked
//! requests; n(n−1) PREPs (one of them within ORDER for n−1), n(n−1) COMMs, b·n answers. Five delays, two writes to
//! disk one after the other. A certificate is 2f+1 signatures, once in each report.

mod bodies;
mod checkpoints;
pub(crate) mod client;
mod instance;
mod invariants;
mod message;
#[cfg(test)]
mod paper_test;
mod peer;
mod record;
mod recovery;
mod replica;
mod state;
mod votes;

pub use message::{Commit, Order, Resilient, ResilientMessage, ResilientTimer, Speaker, Status};
pub use record::ResilientRecord;
pub(crate) use state::RingResilient;
