//! Clients that the cluster file does not name: how they join, what they may do, how they leave.
//!
//! Such a client is its public key. It needs the replicas' addresses and keys, and the operator's
//! `dynamic_clients = true`; the service is asked whether it may join ([`crate::service::Service::authorize`]).
//!
//! # Steps
//! * Members 1. *Cookies.* The client asks every replica for a cookie: that replica's signature on the client's key, a
//!   nonce of the client's and the replica's time. The replica answers whoever proved to hold the key at the other end
//!   of the link, keeps nothing, and says no more than it was asked (prac-F23).
//! * Members 2. *JOIN.* The client signs a request with f+1 cookies of different replicas in it: one of them is from a
//!   correct replica, which met the holder of the key. The request is ordered like any other.
//! * Members 3. *Admission.* At its position JOIN is executed against the replicated state, with the agreed time: are
//!   the cookies fresh, may the key's present session be replaced yet (prac-F28), is there room, does the service
//!   agree? Then the key gets a number (an [`IdentityId`](crate::ids::IdentityId) above those of the cluster file) and
//!   a session id. A key has one session at most: joining again ends the one before. The number of a JOIN, its
//!   timestamp, is at most `cookie_lifetime` beyond its cookies' time, so no clock closes a key for ever.
//! * Members 4. *Requests* carry the key and the session id beside the signature, which covers both (`Credential`).
//!   Checking the signature needs nothing but the request. Whether key and session are members is decided at execution,
//!   where it is the same everywhere: a request of no member is not executed, and nobody is blamed for it (prac-F26).
//!   So a request that overtakes its JOIN need not be parked.
//! * Members 5. *LEAVE* is a request too, in the session number `CONTROL_SESSION`. The session ends; its reply is kept
//!   for those who ask again.
//! * Members 6. *Eviction.* While there is room nobody is evicted, however long it has been silent. When there is none,
//!   a JOIN takes the place that has been out of use longest, if that is longer than `Limits::session_stale_after` of
//!   agreed time (prac-F27); otherwise it is refused.
//!
//! # Before any of that: admission by each replica
//! A replica looks the key up in *its* state before it does any work for a request: what is not its member's does not
//! wait to be ordered. The client is told, but only by a replica whose state holds everything that it helped to
//! acknowledge, and for which the end is final; 2f+1 of them cannot all have missed the JOIN. So strangers cost a
//! look-up, take nobody's place in the queues, and somebody whose session is over learns it without an ordered request.
//! A JOIN is checked in full before it waits. Half of the places in the pool are for those whom the cluster file names,
//! and JOINs have an eighth, at most `JOINS_PENDING_MAX`.
//!
//! # Why it is safe
//! *No session id is used twice*: it is a hash over the number of Joins so far, which only grows. *No request of an old
//! session is executed*: its signature names the session, and the table has at most one for its key. *No JOIN is
//! executed twice*: the table remembers a key's last JOIN, also after it left, for as long as the JOIN's cookies are
//! good. *No JOIN is executed that was refused*, where the key has a place: the table remembers the last such one, and
//! none with a lower number is taken. So a late copy ends no live session. Of keys without a place nothing is kept: a
//! late copy of their JOIN may find room, for a session that its client does not know of, and another JOIN may replace
//! it after `takeover_interval`. *The table is the same at every replica*: it is changed by execution alone, saved in
//! pages, rolled back and transferred like everything else.
//!
//! # Why it is live
//! *A JOIN is ordered, or watched.* A JOIN that comes from its client and finds the places for JOINs taken takes the
//! place of the oldest that nobody watches, and is watched at once. Were it not, then with more clients than places
//! each JOIN would be gone when its client sends it again, and under a silent primary none of them would ever be
//! watched. *No primary is to blame for what is over.* What waits may never be ordered: its session ends, its cookies
//! expire, or the state is fetched past it. Its primary knows and drops it. So each replica drops what its own state
//! says is over, before it suspects anybody, and then its place is free again. *A full table has turns.* Whoever is
//! told [`Refusal::Full`](crate::message::Refusal::Full) asks again; a place comes free `session_stale_after` or twice
//! `cookie_lifetime` of agreed time after its last use, whichever is later, and every JOIN that is refused moves the
//! agreed time on. *Who has no session learns it.* A replica whose last batch is tentative says so all the same, unless
//! that very batch ended the session. Then either f+1 correct replicas have prepared that batch, and see to it that it
//! commits, or f+1 take the session for live, and see to it that the request is ordered.
//!
//! # Bounds
//! Members: `Limits::members_max`. Sessions and replies of each: `MEMBER_SESSIONS_MAX`, `MEMBER_REPLY_BYTES_MAX`.
//! Joins under way: none are kept. JOINs that wait to be ordered: `JOINS_PENDING_MAX`.

mod table;
#[cfg(test)]
mod tests;

pub use table::{Admission, MEMBERS_MAX, Members, PAGES_MAX, Room, Standing};
