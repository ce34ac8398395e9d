//! Lies that are well formed: a message taken apart by [its codec](super::anatomy), with a part changed or put in place
//! of another of the same type that was seen in this run, and then signed and authenticated again with the liar's keys.
//!
//! Nothing here lists messages or fields. What is added to the wire is lied about from then on. Only where one thing
//! has several encodings, a request in full or by its digest and with any proof or none, are they known by name.

use super::anatomy::{Anatomy, Shape, Span};
use crate::rng::Rng;
use bezant_core::auth::{Keyring, Tag};
use bezant_core::batch::{Entry, Reference};
use bezant_core::cluster::Cluster;
use bezant_core::digest::Digest;
use bezant_core::ids::{ClientId, InstanceId, Principal, Timestamp};
use bezant_core::message::{Authentication, Request};
use bezant_core::registry::Message;
use bezant_core::wire::Wire;
use bytes::Bytes;
use std::collections::BTreeMap;
use std::ops::Range;

/// Values of one type that are remembered, the bytes of one, and bodies of requests.
const SEEN_MAX: usize = 24;
const SEEN_BYTES_MAX: usize = 4 << 10;
const BODIES_MAX: usize = 64;
/// Attempts at a change that gives a message.
const ATTEMPTS: usize = 6;
/// Bytes of a signature, and of the signer before it.
const SIGNATURE: usize = 64;
const SIGNED: usize = SIGNATURE + 1;

/// What may take one another's place: the same shape, and for lists the same shape of what they begin with.
type Kind = (Shape, Option<Shape>);

/// What a liar has seen in this run, by type.
#[derive(Debug, Default)]
pub struct Forge {
    seen: BTreeMap<Kind, Vec<Bytes>>,
    bodies: BTreeMap<Digest, Request>,
}

fn kind(anatomy: &Anatomy, at: usize) -> Kind {
    let shape = anatomy.spans[at].shape;
    let first = if shape == Shape::List { anatomy.parts(at).next() } else { None };
    (shape, first.map(|part| anatomy.spans[part].shape))
}

/// Whether somebody else's signature covers it, or is it.
fn is_sealed(anatomy: &Anatomy, keyring: &Keyring, span: &Span) -> bool {
    let mut above = span.parent;
    while let Some(at) = above {
        let Span { shape, end, parent, .. } = anatomy.spans[at];
        match shape {
            Shape::Signed(_) if !is_mine(keyring, anatomy.bytes[end - SIGNED]) => return true,
            Shape::Certified(_) => return true,
            _ => above = parent,
        }
    }
    false
}

fn is_mine(keyring: &Keyring, signer: u8) -> bool {
    matches!(keyring.me(), Principal::Replica(me) if me.0 == signer)
}

/// A number near this one, or at an end of what there is.
fn number(rng: &mut Rng, bytes: &[u8]) -> Vec<u8> {
    let mut wide = [0; 8];
    wide[..bytes.len()].copy_from_slice(bytes);
    let (value, max) = (u64::from_le_bytes(wide), u64::MAX >> (64 - 8 * bytes.len()));
    let other = match rng.below(8) {
        0 | 1 => value.wrapping_add(1),
        2 | 3 => value.wrapping_sub(1),
        4 => value.wrapping_add(rng.between(2, 40)),
        5 => 0,
        6 => max,
        _ => max - rng.below(3),
    };
    other.to_le_bytes()[..bytes.len()].to_vec()
}

fn flipped(rng: &mut Rng, bytes: &[u8]) -> Vec<u8> {
    let mut other = bytes.to_vec();
    if let Some(byte) = rng.below(bytes.len().max(1) as u64).try_into().ok().and_then(|at: usize| other.get_mut(at)) {
        *byte ^= 1 << rng.below(8);
    }
    other
}

impl Forge {
    /// Remembers the parts of a message.
    pub fn learn(&mut self, rng: &mut Rng, message: &Message) {
        let anatomy = Anatomy::of(message);
        for (at, span) in anatomy.spans.iter().enumerate() {
            if span.shape != Shape::Raw && span.length() <= SEEN_BYTES_MAX {
                self.remember(rng, kind(&anatomy, at), &anatomy.bytes[span.range()]);
            }
            if let Shape::Value("Request") = span.shape
                && self.bodies.len() < BODIES_MAX
                && let Ok(request) = Request::from_bytes(Bytes::copy_from_slice(&anatomy.bytes[span.range()]))
            {
                self.bodies.insert(request.digest(), request);
            }
        }
    }

    fn remember(&mut self, rng: &mut Rng, kind: Kind, bytes: &[u8]) {
        let seen = self.seen.entry(kind).or_default();
        if seen.iter().any(|known| known == bytes) {
            return;
        }
        let bytes = Bytes::copy_from_slice(bytes);
        if seen.len() < SEEN_MAX {
            seen.push(bytes);
        } else {
            seen[rng.below(SEEN_MAX as u64) as usize] = bytes;
        }
    }

    fn another(&self, rng: &mut Rng, kind: Kind, than: &[u8]) -> Option<Bytes> {
        let seen = self.seen.get(&kind)?;
        let other = rng.pick(seen);
        (other != than).then(|| other.clone())
    }

    /// The message with one or a few parts changed, signed again where it is the liar's to sign. `None` if no attempt
    /// gave a message.
    pub fn change(&self, rng: &mut Rng, keyring: &Keyring, message: &Message) -> Option<Message> {
        let changes = *rng.pick(&[1, 1, 1, 2, 3]);
        let mut lie = self.changed(rng, keyring, message, |_| true)?;
        for _ in 1..changes {
            lie = self.changed(rng, keyring, &lie, |_| true).unwrap_or(lie);
        }
        Some(signed(&lie, keyring))
    }

    /// The message with several of its long numbers at an end of what there is, whoever has signed them. One number is
    /// often judged by another: alone at the end it is refused, and with what it is measured by there may be no number
    /// beyond. What says to which instance it belongs stays as it is, else it would be about another. `None` if no
    /// attempt gave a message.
    pub fn at_the_ends(&self, rng: &mut Rng, keyring: &Keyring, message: &Message) -> Option<Message> {
        let anatomy = Anatomy::of(message);
        let is_of_instance = |at: usize| anatomy.spans[at].shape == Shape::Value("InstanceId");
        let is_number = |at: &usize| {
            let Span { shape, parent, .. } = anatomy.spans[*at];
            matches!(shape, Shape::Value(_))
                && anatomy.spans[*at].length() == size_of::<u64>()
                && anatomy.parts(*at).next().is_none()
                && !is_of_instance(*at)
                && !parent.is_some_and(is_of_instance)
        };
        let numbers: Vec<usize> = (0..anatomy.spans.len()).filter(is_number).collect();
        (0..ATTEMPTS).find_map(|_| {
            let mut bytes = anatomy.bytes.clone();
            for at in &numbers {
                let end = if rng.below(8) == 0 { rng.below(2) } else { u64::MAX - rng.below(4) };
                if rng.coin() {
                    bytes[anatomy.spans[*at].range()].copy_from_slice(&end.to_le_bytes());
                }
            }
            let is_changed = bytes != anatomy.bytes;
            let lie = Message::from_bytes(bytes.into()).ok()?;
            is_changed.then(|| signed(&lie, keyring))
        })
    }

    /// The message with something put in another way that leaves its digests as they are, if that can be.
    pub fn reword(&self, rng: &mut Rng, keyring: &Keyring, message: &Message) -> Option<Message> {
        let is_entry = |shape| shape == Shape::Value("Entry");
        let is_proof = |shape| matches!(shape, Shape::Value("Request" | "Reference" | "Authentication"));
        let entry = if rng.per_mille(800) { self.changed(rng, keyring, message, is_entry) } else { None };
        let mut lie = entry.or_else(|| self.changed(rng, keyring, message, is_proof))?;
        // One request of a batch, or many of them.
        for _ in 0..*rng.pick(&[0, 0, 3]) {
            lie = self.changed(rng, keyring, &lie, is_entry).unwrap_or(lie);
        }
        Some(signed(&lie, keyring))
    }

    /// The message with one part of these shapes changed; not signed yet.
    fn changed(
        &self,
        rng: &mut Rng,
        keyring: &Keyring,
        message: &Message,
        wanted: impl Fn(Shape) -> bool,
    ) -> Option<Message> {
        let anatomy = Anatomy::of(message);
        let mut shapes: Vec<Shape> =
            anatomy.spans.iter().map(|span| span.shape).filter(|shape| wanted(*shape)).collect();
        shapes.sort_unstable();
        shapes.dedup();
        for _ in 0..ATTEMPTS {
            // What there is one of is changed as often as what there are many of.
            let shape = *shapes.get(rng.below(shapes.len().max(1) as u64) as usize)?;
            let of_shape: Vec<usize> =
                (0..anatomy.spans.len()).filter(|at| anatomy.spans[*at].shape == shape).collect();
            let at = *rng.pick(&of_shape);
            // A lie under another's signature is found out at once: now and then it is worth a try.
            if is_sealed(&anatomy, keyring, &anatomy.spans[at]) && !rng.per_mille(100) {
                continue;
            }
            let Some((range, part)) = self.replacement(rng, &anatomy, at) else { continue };
            let mut bytes = anatomy.bytes.clone();
            bytes.splice(range, part);
            if bytes == anatomy.bytes {
                continue;
            }
            if let Ok(message) = Message::from_bytes(bytes.into()) {
                return Some(message);
            }
        }
        None
    }

    /// What to put where.
    fn replacement(&self, rng: &mut Rng, anatomy: &Anatomy, at: usize) -> Option<(Range<usize>, Vec<u8>)> {
        let span = &anatomy.spans[at];
        let bytes = &anatomy.bytes[span.range()];
        let is_leaf = anatomy.parts(at).next().is_none();
        let graft = |rng: &mut Rng| self.another(rng, kind(anatomy, at), bytes).map(|other| other.to_vec());
        let part = match span.shape {
            Shape::Value("Entry") if rng.coin() => self.entry(rng, bytes)?,
            Shape::Value("Request") if rng.coin() => {
                let request = Request::from_bytes(Bytes::copy_from_slice(bytes)).ok()?;
                reproved(rng, request).to_bytes()
            }
            Shape::Value("bool") => vec![u8::from(bytes == [0])],
            Shape::Value(_) if is_leaf && matches!(bytes.len(), 1 | 2 | 4 | 8) && rng.coin() => number(rng, bytes),
            Shape::Value(_) if is_leaf && rng.per_mille(200) => flipped(rng, bytes),
            Shape::Value(_) | Shape::Signed(_) | Shape::Certified(_) => graft(rng)?,
            Shape::Raw if bytes.len() == 1 => vec![rng.below(20) as u8],
            Shape::Raw => flipped(rng, bytes),
            Shape::Payload => {
                let content = match rng.below(5) {
                    0 => return Some((span.range(), graft(rng)?)),
                    1 => bytes[4..].iter().skip(1).copied().collect(),
                    2 => bytes[4..].iter().copied().chain([0]).collect(),
                    3 => Vec::new(),
                    _ => flipped(rng, &bytes[4..]),
                };
                let length = content.len() as u32;
                [&length.to_le_bytes(), &content[..]].concat()
            }
            Shape::List => self.list(rng, anatomy, at)?,
        };
        Some((span.range(), part))
    }

    /// A list with a value dropped, repeated, moved, or put in.
    fn list(&self, rng: &mut Rng, anatomy: &Anatomy, at: usize) -> Option<Vec<u8>> {
        let parts: Vec<usize> = anatomy.parts(at).collect();
        let bytes_of = |part: &usize| anatomy.bytes[anatomy.spans[*part].range()].to_vec();
        let mut items: Vec<Vec<u8>> = parts.iter().map(bytes_of).collect();
        let draw = |rng: &mut Rng, items: &[Vec<u8>]| rng.below(items.len() as u64) as usize;
        match (rng.below(7), items.is_empty()) {
            (_, true) => {
                // Nothing says of what an empty list is: what fits is found by trying.
                let kinds: Vec<&Kind> = self.seen.keys().filter(|(shape, _)| *shape == Shape::List).collect();
                let kind = **kinds.get(rng.below(kinds.len().max(1) as u64) as usize)?;
                return self.another(rng, kind, &[]).map(|other| other.to_vec());
            }
            (0, _) => drop(items.remove(draw(rng, &items))),
            (1, _) => {
                let again = items[draw(rng, &items)].clone();
                items.insert(draw(rng, &items), again);
            }
            (2, _) => {
                let (a, b) = (draw(rng, &items), draw(rng, &items));
                items.swap(a, b);
            }
            (3, _) => items.truncate(draw(rng, &items)),
            (4, _) => items.reverse(),
            (5, _) => {
                let (of, place) = (kind(anatomy, *parts.first()?), draw(rng, &items));
                items.insert(place, self.another(rng, of, &[])?.to_vec());
            }
            _ => return self.another(rng, kind(anatomy, at), &[]).map(|other| other.to_vec()),
        }
        let count = (items.len() as u32).to_le_bytes().to_vec();
        Some([vec![count], items].concat().concat())
    }

    /// What a batch orders, said in another way.
    fn entry(&self, rng: &mut Rng, bytes: &[u8]) -> Option<Vec<u8>> {
        let other = match Entry::from_bytes(Bytes::copy_from_slice(bytes)).ok()? {
            Entry::Inline(request) if rng.coin() => Entry::Inline(reproved(rng, request)),
            Entry::Inline(request) if rng.coin() => Entry::Reference(Reference::to(&request)),
            Entry::Inline(request) => Entry::Reference(self.mislabelled(rng, Reference::to(&request))),
            Entry::Reference(Reference { digest, .. }) if rng.coin() && self.bodies.contains_key(&digest) => {
                Entry::Inline(self.bodies[&digest].clone())
            }
            Entry::Reference(reference) => Entry::Reference(self.mislabelled(rng, reference)),
        };
        Some(other.to_bytes())
    }

    /// What is said of a request that does not stand here.
    fn mislabelled(&self, rng: &mut Rng, reference: Reference) -> Reference {
        let Reference { digest, length } = reference;
        let known = self.another(rng, (Shape::Value("Digest"), None), &[]);
        let known = known.and_then(|bytes| Digest::from_bytes(bytes).ok());
        match rng.below(4) {
            0 => Reference { digest: known.unwrap_or(digest), length },
            1 => Reference { digest, length: length.wrapping_add(1) },
            2 => Reference { digest, length: 0 },
            _ => Reference { digest, length: u32::MAX },
        }
    }
}

/// What a request asks for, in another session's name and under another number, for an instance, with good MACs.
pub(super) fn in_the_name_of(
    of: &Request,
    instance: InstanceId,
    client: ClientId,
    timestamp: Timestamp,
    (cluster, keyring): (&Cluster, &Keyring),
) -> Request {
    let request = Request::new(instance, client, timestamp, false, of.operation.clone());
    let request = if of.is_bundle() { request.as_bundle() } else { request };
    request.authenticate(cluster, keyring)
}

/// The same request with a MAC that one replica, if there is one for it, finds to be nobody's.
pub(super) fn with_spoilt_mac(mut request: Request, which: usize) -> Request {
    let mut tags: Vec<Tag> = request.authentication.tags.iter().collect();
    tags.get_mut(which).into_iter().for_each(|tag| *tag = Tag::from_bytes([0xee; 16]));
    request.authentication.tags = tags.into_iter().collect();
    request
}

/// The same request for whoever looks at its digest: with another proof, or for another instance.
pub(super) fn reproved(rng: &mut Rng, mut request: Request) -> Request {
    let Authentication { tags, signature } = &mut request.authentication;
    match rng.below(6) {
        0 => request.authentication = Authentication::default(),
        1 => *signature = None,
        2 => *tags = Authentication::default().tags,
        3 => *tags = tags.iter().take(1).collect(),
        4 => *tags = tags.iter().collect::<Vec<_>>().into_iter().rev().collect(),
        _ => request.instance = InstanceId(request.instance.0.wrapping_add(1)),
    }
    request
}

/// The message with every signature of this principal made anew, the innermost first.
pub fn signed(message: &Message, keyring: &Keyring) -> Message {
    let mut anatomy = Anatomy::of(message);
    for at in (0..anatomy.spans.len()).rev() {
        let Span { shape, begin, end, .. } = anatomy.spans[at];
        match shape {
            Shape::Signed(kind) if is_mine(keyring, anatomy.bytes[end - SIGNED]) => {
                let signature = keyring.sign_bytes(kind, &anatomy.bytes[begin..end - SIGNED]);
                anatomy.bytes[end - SIGNATURE..end].copy_from_slice(&signature.0);
            }
            Shape::Certified(kind) => {
                let parts: Vec<usize> = anatomy.parts(at).collect();
                let [value, list] = parts[..] else { continue };
                let signature = keyring.sign_bytes(kind, &anatomy.bytes[anatomy.spans[value].range()]);
                let mut signers: Vec<usize> = anatomy.parts(list).map(|part| anatomy.spans[part].begin).collect();
                signers.retain(|signer| is_mine(keyring, anatomy.bytes[*signer]));
                for signer in signers {
                    anatomy.bytes[signer + 1..signer + SIGNED].copy_from_slice(&signature.0);
                }
            }
            _ => {}
        }
    }
    Message::from_bytes(anatomy.bytes.into()).unwrap_or_else(|_| message.clone())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::byzantine::tests::keyring;
    use std::collections::BTreeSet;

    /// Each message of the golden bytes: what is on the wire is on that page, a test of the core says.
    fn golden() -> Vec<(String, Message)> {
        let page = include_str!("../../../../docs/wire.md");
        let (_, block) = page.split_once("```text\nREQUEST\n").expect("the page lists the bytes");
        let (block, _) = block.split_once("```").expect("the list ends");
        let mut messages: Vec<(String, Vec<u8>)> = vec![("REQUEST".into(), Vec::new())];
        for line in block.lines() {
            match line.strip_prefix("  ") {
                None => messages.push((line.into(), Vec::new())),
                Some(hex) => {
                    let pairs = (0..hex.len() / 2).map(|at| u8::from_str_radix(&hex[2 * at..2 * at + 2], 16));
                    messages.last_mut().expect("a name").1.extend(pairs.map(|byte| byte.expect("hexadecimal")));
                }
            }
        }
        let decode = |bytes: Vec<u8>| Message::from_bytes(bytes.into()).expect("golden");
        messages.into_iter().map(|(name, bytes)| (name, decode(bytes))).collect()
    }

    /// The tags of the wire's page, so that a new kind of message without an example is noticed.
    #[test]
    fn there_is_an_example_of_every_kind_of_message() {
        let tags: BTreeSet<u8> = golden().iter().map(|(_, message)| message.to_bytes()[0]).collect();
        let known: BTreeSet<u8> = (0..=255)
            .filter(|tag| {
                // An unknown tag is told from a value that is too short.
                let error = Message::from_bytes(vec![*tag].into()).expect_err("too short");
                error != bezant_core::wire::WireError::UnknownTag
            })
            .collect();
        assert_eq!(tags, known);
    }

    /// Every byte of every message belongs to something that is changed sooner or later, but for counts, which change
    /// with their lists.
    #[test]
    fn every_field_of_every_message_is_lied_about() {
        let (mut rng, mut forge) = (Rng::stream(1, "forge"), Forge::default());
        let golden = golden();
        for (_, message) in &golden {
            forge.learn(&mut rng, message);
        }
        for (name, message) in &golden {
            let anatomy = Anatomy::of(message);
            let leaves: Vec<usize> =
                (0..anatomy.spans.len()).filter(|at| anatomy.parts(*at).next().is_none()).collect();
            assert!(!leaves.is_empty(), "{name}");
            for at in leaves {
                let span = &anatomy.spans[at];
                let mut decoded = 0;
                for _ in 0..400 {
                    let Some((range, part)) = forge.replacement(&mut rng, &anatomy, at) else { continue };
                    let mut bytes = anatomy.bytes.clone();
                    bytes.splice(range, part);
                    let changed = bytes != anatomy.bytes;
                    decoded += u64::from(changed && Message::from_bytes(bytes.into()).is_ok());
                }
                // A kind that no other has the form of is replaced as a whole.
                let is_tag = span.shape == Shape::Raw && span.length() == 1;
                // Padding says nothing.
                let is_padding = name == "ASK" && span.shape == Shape::Raw;
                let is_empty = span.length() == 0;
                // What is right only together is replaced by another of its type.
                let above = span.parent.map(|at| anatomy.spans[at].shape);
                let is_whole = matches!(above, Some(Shape::Value("NodeId" | "NodeContent" | "Path")));
                // Without a path there are no other sides.
                let of_a_path = matches!(above, Some(Shape::Value(name)) if name.ends_with("TreeSignature"));
                let are_sides = of_a_path && span.shape == Shape::Value("u8");
                assert!(
                    decoded > 0 || are_sides || is_tag || is_padding || is_empty || is_whole,
                    "{name}: {span:?} never changes"
                );
            }
        }
    }

    /// A batch that is said to be prepared just above a checkpoint that is said to be the last but one of all.
    #[test]
    fn numbers_that_are_judged_by_each_other_lie_at_the_ends_together() {
        let (keyring, mut rng, forge) = (keyring(), Rng::stream(4, "forge"), Forge::default());
        let golden = golden();
        let (_, message) = golden.iter().find(|(name, _)| name == "VIEW-CHANGE").expect("there is one");
        let is_beyond = |lie: &Message| match lie {
            Message::Ordering(ordering) => match &ordering.message {
                bezant_core::protocols::pbft::PbftMessage::ViewChange(claimed) => {
                    let lie = claimed.claims();
                    let low = lie.stable.claims().sequence;
                    low.0 > u64::MAX - 8 && lie.prepared.iter().any(|claim| claim.sequence > low)
                }
                _ => panic!("another kind"),
            },
            _ => panic!("another kind"),
        };
        let lies = (0..400).filter_map(|_| forge.at_the_ends(&mut rng, &keyring, message));
        assert!(lies.filter(is_beyond).count() > 4);
    }

    #[test]
    fn whatever_a_liar_may_sign_is_signed_again() {
        let (keyring, mut rng, mut forge) = (keyring(), Rng::stream(2, "forge"), Forge::default());
        let golden = golden();
        for (_, message) in &golden {
            forge.learn(&mut rng, message);
        }
        let mut lied = BTreeSet::new();
        for (_, message) in &golden {
            for _ in 0..300 {
                let Some(lie) = forge.change(&mut rng, &keyring, message) else { continue };
                let anatomy = Anatomy::of(&lie);
                for span in &anatomy.spans {
                    let Shape::Signed(kind) = span.shape else { continue };
                    if is_mine(&keyring, anatomy.bytes[span.end - SIGNED]) {
                        let mut signature = [0; SIGNATURE];
                        signature.copy_from_slice(&anatomy.bytes[span.end - SIGNATURE..span.end]);
                        let body = &anatomy.bytes[span.begin..span.end - SIGNED];
                        let signature = bezant_core::auth::Signature(signature);
                        assert!(keyring.check_bytes(kind, keyring.me(), body, &signature), "{lie}");
                        lied.insert(kind);
                    }
                }
            }
        }
        // View changes, new views, checkpoints, abort reports, hops, votes, PREPs and checkpoints of a ring,
        // testimonies, and who has returned.
        assert_eq!(lied, BTreeSet::from([2, 3, 4, 5, 9, 10, 17, 18, 19, 21]));
    }

    #[test]
    fn another_wording_has_the_same_digest() {
        let (keyring, mut rng, mut forge) = (keyring(), Rng::stream(3, "forge"), Forge::default());
        let golden = golden();
        let (_, proposal) = golden.iter().find(|(name, _)| name == "PRE-PREPARE").expect("there is one");
        forge.learn(&mut rng, proposal);
        let digest = |message: &Message| match message {
            Message::Ordering(ordering) => match &ordering.message {
                bezant_core::protocols::pbft::PbftMessage::PrePrepare(proposal) => proposal.batch.digest(),
                _ => panic!("another kind"),
            },
            _ => panic!("another kind"),
        };
        let lies: Vec<Message> = (0..200).filter_map(|_| forge.reword(&mut rng, &keyring, proposal)).collect();
        let same = lies.iter().filter(|lie| digest(lie) == digest(proposal)).count();
        assert!(same > 20, "{same} of {}", lies.len());
    }
}
