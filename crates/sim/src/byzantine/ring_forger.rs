//! A replica on a ring that says something else than it should, with its own MACs to match: numbers that nobody gave or
//! others than were given (ring-A1, ring-A3), other histories and batches, strikes without reason, MACs that hold for
//! some of the next positions only (ring-A5), and silence, of an exit above all (ring-A8).

use super::split_order::forged;
use super::wrong_reply::with_result;
use super::{Behaviour, Liar};
use crate::rng::Rng;
use bezant_core::digest::{Digest, Domain};
use bezant_core::history::LogEntry;
use bezant_core::ids::Principal;
use bezant_core::protocols::ring_fast::{Body, Path, RingMessage, RingReply, Stamp, Strike};
use bezant_core::protocols::speculative::Certain;
use bezant_core::registry::Message;
use bezant_core::schedule::Part;
use bezant_core::service::Proposal;

#[derive(Debug)]
pub(super) struct RingForger {
    /// Messages that it changes, per mille.
    often: u64,
    /// Answers that it swallows, per mille.
    silent: u64,
    /// Where the history was by the last number that came by.
    last: Option<Stamp>,
    /// How many requests had a number then.
    next: u64,
}

/// The way of a message and this replica's position on it, if this is a ring.
pub(super) fn place(liar: &Liar<'_>, ring: &RingMessage, to: Principal) -> Option<(Path, usize)> {
    let what = liar.cluster.specification(ring.instance);
    if what.part != Part::RingFast || !liar.cluster.replicas.contains(ring.entry) {
        return None;
    }
    let path = Path::new(liar.cluster.replicas, what.head, ring.entry);
    let Principal::Replica(to) = to else { return None };
    let path = match ring.body {
        Body::Probe(_) => Path::of_probe(liar.cluster.replicas, what.head, ring.entry),
        _ => path,
    };
    let next = path.offset(to) + usize::from(ring.body.pass()) * liar.cluster.replicas.n();
    Some((path, next.checked_sub(1)?))
}

/// This replica's own MACs, made anew for what the message says now: for all receivers, or for some of them.
pub(super) fn authenticate(liar: &mut Liar<'_>, path: &Path, position: usize, ring: &mut RingMessage, all: bool) {
    let statement = ring.statement(path, ring.body.digest(), position);
    for (index, (maker, receiver)) in path.carried(position).enumerate() {
        if maker == position
            && (all || liar.rng.coin())
            && let Some(tag) = ring.tags.get_mut(index)
        {
            *tag = liar.keyring.tag(Principal::Replica(path.at(receiver)), &statement);
        }
    }
}

impl RingForger {
    pub(super) fn new(rng: &mut Rng) -> Self {
        let (often, silent) = (*rng.pick(&[30, 150, 500]), *rng.pick(&[0, 100, 900]));
        Self { often, silent, last: None, next: 1 }
    }

    /// A number of its own for a batch that has none yet, with a history that fits (ring-F1).
    fn stamp(&self, ring: &RingMessage, now: Proposal) -> Option<Stamp> {
        let Body::Requests(requests) = &ring.body else { return None };
        let before = self.last.as_ref().map_or(Digest::ZERO, |stamp| stamp.history);
        let proposal = self.last.as_ref().map_or(now, |stamp| stamp.proposal.clone());
        let entries = requests.iter().map(|request| LogEntry::new(proposal.clone(), request.clone()));
        let history = entries.fold(before, |history, entry| history.chain(entry.digest()));
        let effects = self.last.as_ref().map_or(Digest::ZERO, |stamp| stamp.effects);
        Some(Stamp { first: self.next, proposal, history, effects })
    }

    fn change(&self, liar: &mut Liar<'_>, position: usize, ring: &mut RingMessage) {
        match (liar.rng.below(10), &mut ring.body, &mut ring.stamp) {
            (0, _, Some(stamp)) => stamp.history = Digest::of(Domain::Trace, &stamp.history.0),
            (1, _, Some(stamp)) => stamp.first += 1,
            (2, _, Some(stamp)) => stamp.proposal.seed = Digest::of(Domain::Trace, &stamp.proposal.seed.0),
            (3, _, Some(_)) => ring.stamp = None,
            (0..=3, _, None) => ring.stamp = self.stamp(ring, Proposal::default()),
            (4, Body::Requests(requests), _) => {
                let request = liar.rng.below(requests.len().max(1) as u64) as u32;
                ring.strikes.push(Strike { position: position as u8, request });
            }
            (5, Body::Requests(requests), _) => *requests = requests.iter().map(forged).collect(),
            (6, Body::Requests(requests), _) => requests.reverse(),
            (7, Body::Probe(probe), _) => probe.number += 1,
            // Of another pass.
            (7, body @ Body::Digest(_), _) => *body = Body::DigestAgain(body.digest()),
            (7, body, _) => *body = Body::Digest(body.digest()),
            (8, _, _) => drop(ring.strikes.pop()),
            (9, _, Some(stamp)) => stamp.effects = Digest::of(Domain::Trace, &stamp.effects.0),
            (_, Body::Digest(digest) | Body::DigestAgain(digest), _) => *digest = Digest::of(Domain::Trace, &digest.0),
            _ => {}
        }
    }

    fn answer(liar: &mut Liar<'_>, reply: &RingReply) -> RingReply {
        let mut lie = reply.clone();
        match liar.rng.below(4) {
            0 => lie.outcome = with_result(&lie.outcome, Vec::new().into()),
            1 => lie.history = Digest::of(Domain::Trace, &lie.history.0),
            2 => lie.position += 1,
            _ => lie.entry.0 = (lie.entry.0 + 1) % liar.cluster.replicas.n() as u8,
        }
        let tag = liar.keyring.tag(Principal::Client(lie.client), &lie.statement().bytes());
        let count = lie.tags.len();
        if liar.rng.coin() {
            lie.tags = vec![tag; count];
        } else {
            lie.tags.last_mut().into_iter().for_each(|last| *last = tag);
        }
        lie
    }
}

impl Behaviour for RingForger {
    fn send(&mut self, liar: &mut Liar<'_>, to: Principal, message: &Message) {
        let changes = liar.rng.per_mille(self.often);
        match message {
            Message::Ring(ring) => {
                let mut lie = ring.clone();
                if let Some((path, position)) = place(liar, ring, to)
                    && changes
                {
                    if position == path.exit() && liar.rng.per_mille(self.silent) {
                        return;
                    }
                    self.change(liar, position, &mut lie);
                    let all = liar.rng.coin();
                    authenticate(liar, &path, position, &mut lie, all);
                }
                if let Some(stamp) = &ring.stamp
                    && stamp.first >= self.next
                {
                    self.next = stamp.first + 1;
                    self.last = Some(stamp.clone());
                }
                liar.say(to, &Message::Ring(lie));
            }
            Message::RingCertain(_) if liar.rng.per_mille(self.silent) => {}
            Message::RingCertain(Certain(response)) if changes => {
                let mut lie = response.clone();
                match liar.rng.below(3) {
                    0 => lie.outcome = with_result(&lie.outcome, Vec::new().into()),
                    1 => lie.history = Digest::of(Domain::Trace, &lie.history.0),
                    _ => lie.position += 1,
                }
                liar.say(to, &Message::RingCertain(Certain(lie)));
            }
            // Certain of what it has only heard of.
            Message::Response(response) if changes => liar.say(to, &Message::RingCertain(Certain(response.clone()))),
            Message::RingReply(_) if liar.rng.per_mille(self.silent) => {}
            Message::RingReply(reply) if changes => {
                let lie = Self::answer(liar, reply);
                liar.say(to, &Message::RingReply(lie));
            }
            message => liar.say(to, message),
        }
    }
}
