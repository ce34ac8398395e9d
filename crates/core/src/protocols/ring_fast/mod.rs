//! Ring, fast mode: every link carries an equal part of the load, as long as nobody fails (chapter 4 of the thesis).
//!
//! # What it is for
//! Where bandwidth decides, not CPU. Any replica may be asked, and the body of a request crosses each link of the ring
//! but one, once: n links together carry n/(n−1) times what one link can.
//!
//! # Steps
//! * Ring 1. The client sends its request to one replica, its *entry*, another one each time, with MACs for the first
//!   f+1 positions ([`path`] has all positions and sets).
//! * Ring 2. The entry sends what waits there to the next replica: RING, one batch at a time, and no more than its part
//!   while others' requests come by ([`flow`]). Up to four are under way of whatever size, so that what comes meanwhile
//!   becomes the next batch. One that is full need not wait for them: on a slow link many batches have to be under way,
//!   or others would be without work, and full ones cost no more for it.
//! * Ring 3. A replica checks the MACs of the f+1 positions before it. Its position says which kind each must be of and
//!   whether it must cover a number. On the first f+1 positions it checks the clients' MACs as well, and *strikes*
//!   requests whose MAC is bad. It keeps the requests, adds its own MACs for the next f+1 positions, and passes on. The
//!   replica before the entry, the *exit*, sends ACK instead: the digest of the batch, which goes around once more. The
//!   runtime lets ACKs overtake RINGs that wait for the same link.
//! * Ring 4. When a batch comes to the sequencer, it strikes what may not be logged, gives the rest the next positions
//!   of the history, proposes agreed time and a seed, logs and executes. It says what the state came to (its
//!   [effects](crate::dissent)); who comes to something else stops. The others do so when they first see the number:
//!   those after the sequencer in the RING pass, those before it in the ACK pass. A sequencer to which it comes before
//!   f+1 positions have checked the clients' MACs waits for the ACK, which then goes as much further.
//! * Ring 5. The last f+1 positions vouch to the clients for position, history and result; the last one, which is the
//!   exit unless the path is longer, sends REPLY with their MACs. A client accepts it if all of them hold.
//! * Ring 6. A client that waits too long sends its request to all, which answer if they have executed it; the next
//!   entry takes it up otherwise. If that does not help it *panics*: it signs the request and sends it to all, again
//!   and again. Who gets a signed request hands it to the third entry, unless it is in the history, and starts a timer
//!   for it. There it leaves with the next batch: it waits neither in the queue nor for batches that are under way. As
//!   long as it is kept nobody for whom its MAC holds checks its signature again.
//! * Ring 7. When it has executed the request, it sends a PROBE around the ring twice and back to itself, without
//!   requests. The sequencer says in it what it has; everybody else passes it on, where it would execute, when it has
//!   the same. When the probe is back every correct replica has the request: CERTAIN tells the client so. f+1 equal
//!   ones commit.
//! * Ring 8. When the timer expires before that, the replica stops.
//! * Ring 9. Replicas compare how long a batch takes with how long its hops take, and raise an alarm: [`pace`].
//!
//! # Why it is safe
//! * *No bypass* (ring-P1). If a correct replica accepts at position q, every correct replica has accepted at its
//!   positions before q: among f+1 positions in a row is a correct one, whose MAC is checked within the next f+1, and
//!   which makes it only after having accepted.
//! * *One order* (ring-P2). So the correct replicas after the sequencer log only what those before them, counted from
//!   the sequencer, have logged at the same position of the same history: their logs are prefixes of one another.
//! * *Commit* (ring-P3). REPLY has the MACs of all correct replicas of the last f+1 positions, at least one. They have
//!   executed, and so have all before them.
//! * None of this asks how long a path is. Any f+1 positions in a row are f+1 replicas (ring-P1); from whatever entry,
//!   each replica executes at one position, in the order of the ring from the sequencer on (ring-P2), the last one
//!   included (ring-P3).
//! * *Certain.* A probe is on its path what a batch is, and ring-P1 holds for it: when it is back, every correct
//!   replica was at the position where it answers for its log. Of f+1 that say so one is correct.
//! * n equal answers to a repeated request are the evidence of Quorum. f+1 would not do: a replica may have executed in
//!   the RING pass what others will never see.
//!
//! # Why it is live
//! With no failure a batch takes 2n − 1 hops, or up to f − 1 more. The sequencer is another replica in each instance
//! (abs-P1). A client alone stops nothing. It may panic at will: where all are correct, a signed request is
//! executed and a probe comes back, both in time if 4n + f delays take no longer than twice `client_retry`. Its MACs
//! may hold for some replicas only: whether a request gets a number is decided when f+1 positions have looked at its
//! MACs, and after that nobody looks at them (ring-F16). To that end a sequencer that comes earlier on the path gives
//! numbers in the ACK pass. A signature convinces all or none. Nor is anything of its own in the way of its signed
//! request: not another request in the queue of the entry, where MACs that hold for the entry are enough to wait, nor
//! its share of the places for signed requests there. For who is handed one by another replica has as much room for
//! that as the other has ([`panics`]), and forgets it sooner: as soon as it is executed.
//!
//! Nobody waits for ever (ring-F12): of the n−f correct replicas that have a signed request, f+1 are certain, and
//! their word commits it; or f+1 stop, and so all do.
//!
//! # Deviations from the thesis
//! * MACs cover instance and history as well, and client's MACs the entry (ring-F1, ring-F6, ring-F8, ring-F9); the
//!   accept rule is that of `docs/papers/ring.md`. Since the history is covered, nobody who began with another one gets
//!   a number accepted, and no INIT has to go around first.
//! * Strikes. A bad request in a batch does not cost the others theirs, so batching need not be switched off while
//!   requests are malformed. MACs made before a strike stay good: each covers the strikes up to its maker's position.
//! * The sequencer strikes repeated and stale requests. Every number is one of a request that is logged (ring-F10).
//! * Ring 7 and 8 instead of requests on behalf of clients (OBR): a probe has MACs only, where an OBR costs 4 + 12 + 4
//!   signatures for one client (n = 4), and one probe at a time serves all clients of a replica (ring-F20). The
//!   signatures of OBR, and with them ring-F2, ring-F3 and ring-F11, are gone. A timer that runs is not put off by
//!   another PANIC (ring-F17).
//! * Every replica is an entry, for every f (ring-F16): the thesis has the rule for f = 1, in which a sequencer orders
//!   no requests for which it is the entry.
//! * An ACK has the number only as far as replicas are told it. Those that have it already check the MACs over their
//!   own, so an ACK with another one does not pass them.
//! * Piggybacked ACKs, with a MAC for both of ACK and RING, are left out. They would be 5 MACs instead of 7.5 for f = b
//!   = 1, but hardly less to hash ([`path`] counts both), and hashing is what a MAC costs here. Replicas that left
//!   those MACs out altogether, for every batch, needed as much CPU as before; and of the batches not even a third find
//!   an ACK to go with (docs/benchmarks.md). What a common frame would save is saved without it: what leaves together
//!   for one link is one write. ACKs may go ahead of bodies instead.
//! * Read-only requests around f+1 replicas are left out: they would not be linearizable in a composition, not even
//!   when answered from what every correct replica has executed. Backup goes on with 2f+1 replicas. A correct one that
//!   has not heard of it would vouch, together with f liars, for a state that is over. 2f+1 equal answers would do, of
//!   replicas that have executed nothing but what is certain; under load there are none.
//! * What is kept of batches for the ACK pass is bounded for each entry (ring-F28), and so is what overtakes
//!   (ring-F27).
//!
//! # Cost
//! MACs made and checked per request and replica, with batches of b: (f+1)(2b + 11f + 2 + 2q) / (bn), so 7.5 for
//! f = b = 1; 2(f+1) at the client. 2n + 1 + q delays, n − 1 times the request's bytes and n + q headers on n links. If
//! the sequencer comes q hops after the entry and 0 < q < f, this is q; from the other entries q is 0 here.

pub(crate) mod client;
mod fairness;
mod flow;
mod held;
mod instance;
mod invariants;
mod message;
mod pace;
mod pacing;
mod panics;
#[cfg(test)]
mod paper_test;
pub(crate) mod path;
mod replica;
mod shelves;
mod state;
mod tags;

pub(crate) use fairness::Fairness;
#[cfg(test)]
pub(crate) use held::{PER_ENTRY_MAX, WINDOW};
pub use message::{
    Body, Probe, RingHeard, RingMessage, RingReply, RingReplyStatement, RingTimer, Speaker, Stamp, Strike,
};
pub use pace::{Delay, Hop, Hops, PaceMessage, RingPace, Round, Vote};
pub use path::Path;
pub(crate) use state::RingFast;
