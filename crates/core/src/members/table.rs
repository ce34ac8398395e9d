//! The replicated table of those who have joined. See the [module](super).
//!
//! **Pages.** Members lie in numbered slots; a page holds [`SLOTS_PER_PAGE`] of them, so no choice of keys makes
//! one page large. Page 0 holds the number of Joins so far.

use crate::clients::Entry;
use crate::cluster::{Cluster, Limits};
use crate::digest::{Digest, Domain};
use crate::ids::{IdentityId, PublicKey, Timestamp};
use crate::joining::{Credential, Nonce, SessionId};
use crate::message::{Refusal, Request};
use crate::service::{BadState, PageNumber};
use crate::time::{Duration, Instant};
use crate::wire::{Reader, Wire, WireError};
use crate::wire_struct;
use alloc::collections::{BTreeMap, BTreeSet};
use alloc::vec::Vec;
use bytes::Bytes;

/// Slots in a page.
const SLOTS_PER_PAGE: u32 = 64;

/// Page numbers of the table are below this.
pub const PAGES_MAX: u32 = 1 << 16;

/// The most that `Limits::members_max` may be.
pub const MEMBERS_MAX: usize = 1 << 20;

/// What a key got by joining: the result of a JOIN.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Admission {
    /// Its number.
    pub identity: IdentityId,
    /// Its session.
    pub session: SessionId,
}
wire_struct!(Admission { identity, session });

/// What the table says about a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Standing<'a> {
    /// Of a live session: the client table knows more.
    Live,
    /// A JOIN that was not executed before.
    Join,
    /// The key's last JOIN, refused ones included, or its LEAVE: here is the reply.
    Last(&'a Entry),
    /// Of no live session: not to be executed.
    Gone(Refusal),
}

/// How a LEAVE ended.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Left {
    entry: Entry,
    at: Instant,
}
wire_struct!(Left { entry, at });

/// A JOIN of a key that has a place: it was refused.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Tried {
    nonce: Nonce,
    entry: Entry,
}
wire_struct!(Tried { nonce, entry });

/// A key that has joined, and perhaps left.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Member {
    key: PublicKey,
    identity: IdentityId,
    session: SessionId,
    nonce: Nonce,
    /// The JOIN, with its reply.
    joined: Entry,
    joined_at: Instant,
    /// The last JOIN since then, which was refused.
    tried: Option<Tried>,
    /// How old the cookies of either were: until they expire somebody may try to use them again.
    cookies: Instant,
    /// When the session was last used.
    used: Instant,
    left: Option<Left>,
}
wire_struct!(Member { key, identity, session, nonce, joined, joined_at, tried, cookies, used, left });

impl Member {
    /// Its session, while that lives.
    fn live(&self) -> Option<Admission> {
        let Self { identity, session, .. } = *self;
        self.left.is_none().then_some(Admission { identity, session })
    }

    /// The number of its last JOIN. An older one must not come back (prac-F25), whether it was executed or refused.
    fn last_join(&self) -> Timestamp {
        self.tried.as_ref().map_or(self.joined.timestamp, |tried| tried.entry.timestamp.max(self.joined.timestamp))
    }

    /// The reply to this JOIN, if it is the last that was executed or the last that was refused.
    fn reply_to(&self, nonce: Nonce, timestamp: Timestamp) -> Option<&Entry> {
        let refused = self.tried.as_ref().map(|tried| (tried.nonce, &tried.entry));
        let entry = [Some((self.nonce, &self.joined)), refused].into_iter().flatten();
        entry.into_iter().find(|(of, entry)| (*of, entry.timestamp) == (nonce, timestamp)).map(|(_, entry)| entry)
    }

    /// From when on another may have its slot.
    fn until(&self, limits: &Limits) -> Instant {
        // Until then a copy of its JOIN, or of its LEAVE, may still come. Twice, because an earlier JOIN of the key may
        // have cookies of a faster clock.
        let remembered = Duration(2 * limits.cookie_lifetime.0);
        match &self.left {
            None => (self.used + limits.session_stale_after).max(self.cookies + remembered),
            Some(left) => left.at.max(self.cookies) + remembered,
        }
    }
}

/// Where a JOIN finds room.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Room {
    slot: u32,
    /// What the key gets.
    pub admission: Admission,
    /// The session that ends.
    pub ends: Option<Admission>,
}

/// See the [module](self).
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Members {
    cookie_lifetime: Duration,
    slots: BTreeMap<u32, Member>,
    /// Joins so far.
    joins: u64,
    // What follows from the slots:
    by_key: BTreeMap<PublicKey, u32>,
    by_identity: BTreeMap<IdentityId, u32>,
    /// Pages that changed since they were saved.
    dirty: BTreeSet<PageNumber>,
}

const fn page_of(slot: u32) -> PageNumber {
    1 + slot / SLOTS_PER_PAGE
}

impl Members {
    /// An empty table.
    pub const fn new(limits: &Limits) -> Self {
        Self {
            cookie_lifetime: limits.cookie_lifetime,
            slots: BTreeMap::new(),
            joins: 0,
            by_key: BTreeMap::new(),
            by_identity: BTreeMap::new(),
            dirty: BTreeSet::new(),
        }
    }

    /// Keys that have a session.
    pub fn live(&self) -> usize {
        self.slots.values().filter(|member| member.left.is_none()).count()
    }

    fn of_key(&self, key: &PublicKey) -> Option<(u32, &Member)> {
        let slot = *self.by_key.get(key)?;
        Some((slot, self.slots.get(&slot)?))
    }

    /// What the table says about the request of somebody who joins or has joined, at an agreed time.
    pub fn standing(&self, request: &Request, now: Instant) -> Standing<'_> {
        let Some(credential) = request.credential() else { return Standing::Gone(Refusal::NoSession) };
        if request.client.identity.is_joining() {
            return self.standing_of_join(request, &credential, now);
        }
        let Some((_, member)) = self.of_key(&credential.key) else { return Standing::Gone(Refusal::NoSession) };
        if member.session != credential.session || member.identity != request.client.identity {
            let taken = member.left.is_none();
            return Standing::Gone(if taken { Refusal::TakenOver } else { Refusal::NoSession });
        }
        match &member.left {
            None => Standing::Live,
            Some(left) if request.is_leave() && left.entry.timestamp == request.timestamp => {
                Standing::Last(&left.entry)
            }
            Some(_) => Standing::Gone(Refusal::NoSession),
        }
    }

    fn standing_of_join(&self, request: &Request, credential: &Credential, now: Instant) -> Standing<'_> {
        let timestamp = request.timestamp;
        // Its number lies in the time of its cookies as well: one of the far future would be the key's last for ever.
        let is_fresh = || {
            let until = request.join().map(|join| join.time() + self.cookie_lifetime);
            until.is_some_and(|until| now <= until && timestamp.0 <= until.0)
        };
        let of_key = self.of_key(&credential.key);
        match of_key.and_then(|(_, member)| member.reply_to(credential.session.0, timestamp)) {
            Some(reply) => Standing::Last(reply),
            None if of_key.is_some_and(|(_, member)| timestamp <= member.last_join()) => {
                Standing::Gone(Refusal::StaleTimestamp)
            }
            None if !is_fresh() => Standing::Gone(Refusal::Expired),
            None => Standing::Join,
        }
    }

    /// Members 3: where a JOIN that is new finds room, at an agreed time.
    ///
    /// # Errors
    /// Why there is none.
    pub fn room(&self, cluster: &Cluster, credential: &Credential, now: Instant) -> Result<Room, Refusal> {
        let limits = &cluster.limits;
        let (slot, ends) = match self.of_key(&credential.key) {
            Some((_, member)) if member.left.is_none() && now < member.joined_at + limits.takeover_interval => {
                return Err(Refusal::TooSoon);
            }
            Some((slot, member)) => (slot, member.live()),
            None => self.free_slot(limits, now).ok_or(Refusal::Full)?,
        };
        let joins = self.next_join();
        let identity = identity_of(joins);
        let parts: [&[u8]; 4] = [&cluster.digest().0, &joins.to_le_bytes(), &credential.key.0, &credential.session.0];
        let name = Digest::of_parts(Domain::Session, &[b"session", parts[0], parts[1], parts[2], parts[3]]);
        let mut session = [0; 16];
        session.copy_from_slice(&name.0[..16]);
        Ok(Room { slot, admission: Admission { identity, session: SessionId(session) }, ends })
    }

    /// The number of the next Join. Those whose identity is still in use are passed over.
    fn next_join(&self) -> u64 {
        let mut joins = self.joins + 1;
        while self.by_identity.contains_key(&identity_of(joins)) {
            joins += 1;
        }
        joins
    }

    /// Members 6: the first slot that is free, or the one that was free for the taking longest.
    fn free_slot(&self, limits: &Limits, now: Instant) -> Option<(u32, Option<Admission>)> {
        if self.slots.len() < limits.members_max.min(MEMBERS_MAX) {
            let taken = self.slots.keys().copied();
            let slot = (0..).zip(taken).find_map(|(expected, slot)| (expected != slot).then_some(expected));
            return Some((slot.unwrap_or(self.slots.len() as u32), None));
        }
        let (until, slot) = self.slots.iter().map(|(slot, member)| (member.until(limits), *slot)).min()?;
        (until < now).then_some((slot, self.slots[&slot].live()))
    }

    /// Members 3: the service agrees. `entry` is the JOIN with its reply, `cookies` its cookies' time.
    pub fn admit(&mut self, room: Room, credential: &Credential, entry: Entry, cookies: Instant, now: Instant) {
        self.joins = self.next_join();
        self.remove(room.slot);
        let Admission { identity, session } = room.admission;
        assert!(!self.by_identity.contains_key(&identity), "no number is given to two");
        let Credential { key, session: SessionId(nonce) } = *credential;
        let (joined, joined_at, used) = (entry, now, now);
        let (tried, left) = (None, None);
        let member = Member { key, identity, session, nonce, joined, joined_at, tried, cookies, used, left };
        self.insert(room.slot, member);
        self.dirty.insert(0);
        self.dirty.insert(page_of(room.slot));
    }

    /// A JOIN is refused. Where the key has a place, this is remembered there: no copy of the JOIN is executed later.
    /// `entry` is the JOIN with its reply, `cookies` its cookies' time.
    pub fn refuse(&mut self, credential: &Credential, entry: Entry, cookies: Instant) {
        let Some(slot) = self.by_key.get(&credential.key) else { return };
        let Some(member) = self.slots.get_mut(slot) else { return };
        member.tried = Some(Tried { nonce: credential.session.0, entry });
        member.cookies = member.cookies.max(cookies);
        self.dirty.insert(page_of(*slot));
    }

    /// A member's request was executed. Noted to a sixteenth of the time that makes it stale, so most requests
    /// leave the page as it is.
    pub fn touch(&mut self, identity: IdentityId, limits: &Limits, now: Instant) {
        let Some(slot) = self.by_identity.get(&identity) else { return };
        let Some(member) = self.slots.get_mut(slot) else { return };
        if now - member.used > Duration(limits.session_stale_after.0 / 16) {
            member.used = now;
            self.dirty.insert(page_of(*slot));
        }
    }

    /// Members 5.
    pub fn leave(&mut self, identity: IdentityId, entry: Entry, now: Instant) {
        let Some(slot) = self.by_identity.get(&identity) else { return };
        let Some(member) = self.slots.get_mut(slot) else { return };
        member.left = Some(Left { entry, at: now });
        self.dirty.insert(page_of(*slot));
    }

    fn insert(&mut self, slot: u32, member: Member) {
        self.by_key.insert(member.key, slot);
        self.by_identity.insert(member.identity, slot);
        self.slots.insert(slot, member);
    }

    fn remove(&mut self, slot: u32) {
        let Some(member) = self.slots.remove(&slot) else { return };
        self.by_key.remove(&member.key);
        self.by_identity.remove(&member.identity);
    }

    /// What is true between steps. As long as the table: for checkpoints.
    pub(crate) fn check_invariants(&self, limits: &Limits) {
        assert!(self.slots.len() <= limits.members_max.min(MEMBERS_MAX), "at most members_max");
        assert_eq!(self.by_key.len(), self.slots.len(), "a key has one place");
        assert_eq!(self.by_identity.len(), self.slots.len(), "an identity has one place");
        assert!(self.slots.is_empty() || self.joins > 0, "whoever has a place has joined");
        for (slot, member) in &self.slots {
            assert_eq!(self.by_key.get(&member.key), Some(slot), "the key finds its place");
            assert_eq!(self.by_identity.get(&member.identity), Some(slot), "the identity finds its place");
            assert!(member.identity.is_member(), "who joins gets a number above the cluster file's");
            assert!(member.used >= member.joined_at, "agreed time does not go back (prac-F27)");
            assert!(member.left.as_ref().is_none_or(|left| left.at >= member.joined_at), "who leaves had joined");
            let is_later = |tried: &Tried| tried.entry.timestamp > member.joined.timestamp;
            assert!(member.tried.as_ref().is_none_or(is_later), "no old JOIN comes back (prac-F25)");
        }
    }

    /// Calls `write` with every page that changed since the last call (`None`: the page is gone).
    pub fn save(&mut self, write: &mut dyn FnMut(PageNumber, Option<Bytes>)) {
        for page in core::mem::take(&mut self.dirty) {
            write(page, self.page(page).map(Bytes::from));
        }
    }

    fn page(&self, page: PageNumber) -> Option<Vec<u8>> {
        let Some(number) = page.checked_sub(1) else { return Some(self.joins.to_bytes()) };
        let mut bytes = Vec::new();
        for (slot, member) in self.slots.range(number * SLOTS_PER_PAGE..(number + 1) * SLOTS_PER_PAGE) {
            slot.encode(&mut bytes);
            member.encode(&mut bytes);
        }
        (!bytes.is_empty()).then_some(bytes)
    }

    /// Takes back pages, after a rollback or a transfer: each named page now has this content (`None`: gone).
    ///
    /// # Errors
    /// [`BadState`] if the pages are not what [`Members::save`] writes.
    ///
    /// # Panics
    /// If something changed since the last save: nobody could know which pages to name.
    pub fn load(&mut self, pages: &mut dyn Iterator<Item = (PageNumber, Option<Bytes>)>) -> Result<(), BadState> {
        assert!(self.dirty.is_empty(), "everything is saved before pages are loaded");
        let pages: Vec<(PageNumber, Option<Bytes>)> = pages.collect();
        // Everything old goes before anything new comes: a key may have moved to another slot.
        for number in pages.iter().filter_map(|(page, _)| page.checked_sub(1)) {
            let end = number.checked_add(1).and_then(|next| next.checked_mul(SLOTS_PER_PAGE)).ok_or(BadState)?;
            let slots: Vec<u32> = self.slots.range(end - SLOTS_PER_PAGE..end).map(|(slot, _)| *slot).collect();
            for slot in slots {
                self.remove(slot);
            }
        }
        for (page, content) in pages {
            match (page, content) {
                (0, None) => self.joins = 0,
                (0, Some(bytes)) => self.joins = u64::from_bytes(bytes).map_err(|_| BadState)?,
                (_, None) => {}
                (page, Some(bytes)) => self.load_page(page, bytes).map_err(|_| BadState)?,
            }
        }
        Ok(())
    }

    fn load_page(&mut self, page: PageNumber, bytes: Bytes) -> Result<(), WireError> {
        let mut reader = Reader::new(bytes);
        while reader.remaining() > 0 {
            let slot = u32::decode(&mut reader)?;
            let member = Member::decode(&mut reader)?;
            let known = self.by_key.contains_key(&member.key) || self.by_identity.contains_key(&member.identity);
            if page_of(slot) != page || known || self.slots.contains_key(&slot) {
                return Err(WireError::NotCanonical);
            }
            self.insert(slot, member);
        }
        Ok(())
    }
}

/// The number that goes with a Join. Numbers come back after 2³⁰ Joins; what tells sessions apart is their id.
const fn identity_of(joins: u64) -> IdentityId {
    IdentityId(IdentityId::MEMBERS.0 + (joins % (IdentityId::JOINING.0 - IdentityId::MEMBERS.0) as u64) as u32)
}
