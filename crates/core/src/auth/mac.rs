//! Message authentication codes: keyed BLAKE3, truncated to 16 bytes, compared in constant time.

use crate::replicas::REPLICAS_MAX;
use crate::wire::{Mark, Reader, Sink, Wire, WireError};
use alloc::vec::Vec;
use bytes::Bytes;
use core::fmt;
use subtle::ConstantTimeEq;
use zeroize::ZeroizeOnDrop;

/// A MAC over one statement for one receiver.
///
/// There is deliberately no `PartialEq`: tags are compared by [`MacKey::verify`] alone, in constant time.
///
/// ```compile_fail
/// fn same(a: bezant_core::auth::Tag, b: bezant_core::auth::Tag) -> bool {
///     a == b
/// }
/// ```
#[derive(Clone, Copy)]
pub struct Tag([u8; 16]);

impl Tag {
    /// The size on the wire.
    pub const BYTES: usize = 16;

    /// The bytes, for the wire.
    pub const fn as_bytes(&self) -> &[u8; 16] {
        &self.0
    }

    /// A tag as read from the wire, or as an adversary of the simulator makes it up.
    pub const fn from_bytes(bytes: [u8; 16]) -> Self {
        Self(bytes)
    }
}

impl fmt::Debug for Tag {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "#{:02x}{:02x}", self.0[0], self.0[1])
    }
}

impl Wire for Tag {
    fn encode(&self, out: &mut impl Sink) {
        self.0.encode(out);
    }
    fn decode(reader: &mut Reader) -> Result<Self, WireError> {
        Ok(Self(reader.array()?))
    }
}

/// MACs over one statement, one for each replica by number; or none. Kept as they lie on the wire, so that a request
/// is read, passed on and copied without unpacking them.
#[derive(Clone, Default)]
pub struct Authenticator(Bytes);

impl Authenticator {
    /// The MAC for one replica, if there is one.
    pub fn get(&self, replica: usize) -> Option<Tag> {
        self.iter().nth(replica)
    }

    /// All of them, in order.
    pub fn iter(&self) -> impl ExactSizeIterator<Item = Tag> + '_ {
        self.0.chunks_exact(Tag::BYTES).map(|bytes| Tag(bytes.try_into().expect("a chunk of that size")))
    }
}

impl FromIterator<Tag> for Authenticator {
    fn from_iter<I: IntoIterator<Item = Tag>>(tags: I) -> Self {
        let tags = tags.into_iter();
        let mut bytes = Vec::with_capacity(tags.size_hint().0 * Tag::BYTES);
        tags.for_each(|tag| bytes.extend_from_slice(&tag.0));
        Self(bytes.into())
    }
}

impl fmt::Debug for Authenticator {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_list().entries(self.iter()).finish()
    }
}

impl Wire for Authenticator {
    fn encode(&self, out: &mut impl Sink) {
        out.mark(Mark::List);
        out.extend_from_slice(&(self.iter().len() as u32).to_le_bytes());
        out.extend_from_slice(&self.0);
        out.mark(Mark::End);
    }
    fn decode(reader: &mut Reader) -> Result<Self, WireError> {
        let tags = reader.length(REPLICAS_MAX, Tag::BYTES)?;
        Ok(Self(reader.piece(tags * Tag::BYTES)?))
    }
}

/// The key of one direction between two principals of one cluster. It never leaves the keyring.
#[derive(Clone, ZeroizeOnDrop)]
pub struct MacKey([u8; 32]);

impl fmt::Debug for MacKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("MacKey(..)")
    }
}

impl MacKey {
    /// Derives the key of the direction `sender → receiver` from a Diffie–Hellman secret. `context` names cluster,
    /// configuration and both ends, so that a MAC is good for nothing elsewhere.
    pub fn derive(shared: &[u8; 32], context: &[u8]) -> Self {
        let mut hasher = blake3::Hasher::new_derive_key("bezant 2026-11 pairwise mac key");
        hasher.update(shared);
        hasher.update(context);
        Self(*hasher.finalize().as_bytes())
    }

    /// The MAC over `statement`.
    pub fn tag(&self, statement: &[u8]) -> Tag {
        let mut tag = [0; 16];
        tag.copy_from_slice(&blake3::keyed_hash(&self.0, statement).as_bytes()[..16]);
        Tag(tag)
    }

    /// Whether `tag` is the MAC over `statement`, compared in constant time.
    #[must_use]
    pub fn verify(&self, statement: &[u8], tag: &Tag) -> bool {
        // As one number: subtle compares byte strings byte by byte, which takes longer than a block of the hash.
        let [own, other] = [self.tag(statement).0, tag.0].map(u128::from_le_bytes);
        own.ct_eq(&other).into()
    }
}
