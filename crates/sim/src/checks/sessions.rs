//! prac-I7: what the history says of clients that nobody has named. A JOIN that was executed had a cookie of a correct
//! replica (prac-F23); after a LEAVE, and after a request of a later session of the same key, no request of a session
//! is executed (prac-F25); no two keys share a session; and no JOIN is executed once a later one took effect.
//!
//! A JOIN that was refused as too soon is not executed again: its key has a place, where that is remembered. Of other
//! refusals the check knows nothing: what it knows is which requests are in the history, in which order, and what
//! correct replicas answered for good.

use bezant_core::auth::Signature;
use bezant_core::ids::{ClientId, InstanceId, PublicKey, Sequence, Timestamp};
use bezant_core::joining::{CONTROL_SESSION, Credential, SessionId};
use bezant_core::message::Request;
use std::collections::{BTreeMap, BTreeSet};

/// What matters of a stranger's request.
#[derive(Clone, Debug)]
pub(super) struct Stranger {
    credential: Credential,
    timestamp: Timestamp,
    act: Act,
}

/// A batch of an instance.
pub(super) type At = (InstanceId, Sequence);

/// The JOINs that were refused as too soon, each with the batch after which that was so.
pub(super) type TooSoon = BTreeMap<(ClientId, Timestamp), At>;

#[derive(Clone, Debug)]
enum Act {
    /// With these cookies.
    Join(Vec<Signature>),
    Leave,
    Ask,
}

impl Stranger {
    /// Of a request, if it is a stranger's.
    pub(super) fn of(request: &Request) -> Option<Self> {
        let credential = request.credential()?;
        let act = match request.join() {
            Some(join) => Act::Join(join.stamps.iter().map(|stamp| stamp.signature).collect()),
            None if request.client.session == CONTROL_SESSION => Act::Leave,
            None => Act::Ask,
        };
        Some(Self { credential, timestamp: request.timestamp, act })
    }
}

/// See the [module](self).
#[derive(Clone, Debug, Default)]
pub(super) struct Sessions {
    /// Sessions in which nothing may be executed any more.
    over: BTreeSet<SessionId>,
    /// The last session of each key that was seen, and the owner of each session.
    current: BTreeMap<PublicKey, SessionId>,
    owners: BTreeMap<SessionId, PublicKey>,
    /// JOINs of each key since its last session began. One of them began the next.
    tried: BTreeMap<PublicKey, Vec<Timestamp>>,
    /// The JOIN of each key that took effect last is no older than this one.
    joined: BTreeMap<PublicKey, Timestamp>,
}

impl Sessions {
    /// One more stranger's request is in the history, in this batch. `given` are the cookies of correct replicas.
    pub(super) fn executed(
        &mut self,
        stranger: &Stranger,
        at: At,
        given: &BTreeSet<Signature>,
        too_soon: &TooSoon,
    ) -> Result<(), String> {
        let Stranger { credential: Credential { key, session }, timestamp, act } = stranger;
        match act {
            Act::Join(cookies) => {
                if !cookies.iter().any(|cookie| given.contains(cookie)) {
                    return Err(format!("{key:?} joined without having met a correct replica (prac-F23)"));
                }
                let refused = too_soon.get(&(stranger.credential.joining(), *timestamp));
                if refused.is_some_and(|refused| *refused < at) {
                    return Err(format!("a JOIN of {key:?} that was refused as too soon is executed later (prac-F25)"));
                }
                // One that was refused for want of room may be tried again, but not once a later one took effect.
                if self.joined.get(key).is_some_and(|joined| timestamp < joined) {
                    return Err(format!("an old JOIN of {key:?} is executed (prac-F25)"));
                }
                self.tried.entry(*key).or_default().push(*timestamp);
                return Ok(());
            }
            Act::Leave | Act::Ask => {}
        }
        if *self.owners.entry(*session).or_insert(*key) != *key {
            return Err(format!("{session:?} is another key's"));
        }
        if self.over.contains(session) {
            return Err(format!("{session:?} of {key:?} was over, and a request of it is executed (prac-F25)"));
        }
        let before = self.current.insert(*key, *session);
        if before != Some(*session) {
            self.over.extend(before);
            let tried = self.tried.remove(key).unwrap_or_default();
            let Some(oldest) = tried.into_iter().min() else {
                return Err(format!("{session:?} of {key:?} began without a JOIN (prac-F25)"));
            };
            self.joined.insert(*key, oldest);
        }
        if matches!(act, Act::Leave) {
            self.over.insert(*session);
        }
        Ok(())
    }
}
