//! One signature for several statements: each is a leaf of a Merkle tree, and the root is signed.
//!
//! # Steps
//! * Tree 1. The signer makes a tree over the statements, signs its root, and gives each statement the signature and
//!   the path from its leaf to the root: the digests beside it, from the bottom up.
//! * Tree 2. Whoever checks a statement computes its leaf, goes up the path to a root, and checks the signature over
//!   that. It needs nothing of the other statements.
//!
//! # Why it is safe
//! Who finds a path from another statement to a root that somebody signed has found two equal digests of different
//! bytes. Leaves and inner nodes are hashed for different purposes, so no inner node passes for a leaf, nor a leaf for
//! an inner node, wherever a path ends. A root has a kind of statement of its own. A statement is as good alone as in
//! any company: the signature convinces whoever sees it, and says nothing about what else was signed.
//!
//! # Deviations
//! A level with an odd number of nodes hands its last one up as it is, so paths of one tree differ in length. The path
//! says on which side each digest stands, and not which leaf of how many it is: nobody needs to know.
//!
//! # Cost
//! One signature for at most [`LEAVES_MAX`] statements; for each of them two digests of one block when it is made, and
//! one for each level when it is checked; 32 bytes for each level.

use super::{Keyring, Signature};
use crate::digest::{Digest, Domain};
use crate::wire::{Mark, Reader, Sink, Wire, WireError, encode_list, encode_part};
use alloc::vec::Vec;

/// The most levels above a leaf.
pub const PATH_MAX: usize = 6;

/// The most statements that share a signature. A level more would cost everybody 32 bytes of each request, from the
/// client to all logs, to save one signature in 128.
pub const LEAVES_MAX: usize = 1 << PATH_MAX;

/// A signature over the root of a tree, and the way there from one leaf.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TreeSignature {
    /// Over the root.
    pub signature: Signature,
    /// Bit k says that the k-th digest of the path stands to the left. There are no other bits.
    pub sides: u8,
    /// The digests beside the way, from the bottom up: at most [`PATH_MAX`]. None: the leaf is the root.
    pub path: Vec<Digest>,
}

impl TreeSignature {
    /// The leaf of a statement.
    pub fn leaf(statement: &[u8]) -> Digest {
        Digest::of(Domain::Leaf, statement)
    }

    /// Where the path leads from this leaf.
    pub fn root(&self, leaf: Digest) -> Digest {
        let level = |below: Digest, (level, beside): (usize, &Digest)| match self.sides >> level & 1 {
            0 => branch(below, *beside),
            _ => branch(*beside, below),
        };
        self.path.iter().enumerate().fold(leaf, level)
    }

    /// Tree 1. Signs roots of this kind over all leaves, as few as may be. The signatures come in the leaves' order.
    pub fn sign(keyring: &Keyring, kind: u8, leaves: &[Digest]) -> Vec<Self> {
        // Trees of about one size: the last one is no shallower than the others for nothing.
        let size = leaves.len().div_ceil(leaves.len().div_ceil(LEAVES_MAX).max(1)).max(1);
        leaves.chunks(size).flat_map(|leaves| Self::sign_one(keyring, kind, leaves)).collect()
    }

    fn sign_one(keyring: &Keyring, kind: u8, leaves: &[Digest]) -> Vec<Self> {
        assert!(leaves.len() <= LEAVES_MAX, "a tree has so many leaves");
        let mut paths: Vec<(u8, Vec<Digest>)> = leaves.iter().map(|_| (0, Vec::new())).collect();
        let (mut level, mut width) = (leaves.to_vec(), 1);
        while level.len() > 1 {
            for (place, (sides, path)) in paths.iter_mut().enumerate() {
                let node = place / width;
                if let Some(beside) = level.get(node ^ 1) {
                    *sides |= ((node & 1) as u8) << path.len();
                    path.push(*beside);
                }
            }
            level = level.chunks(2).map(|pair| pair.get(1).map_or(pair[0], |right| branch(pair[0], *right))).collect();
            width *= 2;
        }
        let signature = keyring.sign_bytes(kind, &level[0].0);
        paths.into_iter().map(|(sides, path)| Self { signature, sides, path }).collect()
    }
}

/// The node above two.
fn branch(left: Digest, right: Digest) -> Digest {
    let mut both = [0; 2 * Digest::BYTES];
    both[..Digest::BYTES].copy_from_slice(&left.0);
    both[Digest::BYTES..].copy_from_slice(&right.0);
    Digest::of(Domain::Branch, &both)
}

impl Wire for TreeSignature {
    fn encode(&self, out: &mut impl Sink) {
        out.mark(Mark::Value(core::any::type_name::<Self>()));
        encode_part(&self.signature, out);
        encode_part(&self.sides, out);
        encode_list(&self.path, out);
        out.mark(Mark::End);
    }
    fn decode(reader: &mut Reader) -> Result<Self, WireError> {
        let (signature, sides) = (Wire::decode(reader)?, Wire::decode(reader)?);
        let path: Vec<Digest> = reader.list(PATH_MAX)?;
        if u32::from(sides) >= 1 << path.len() {
            return Err(WireError::NotCanonical);
        }
        Ok(Self { signature, sides, path })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cluster::{ClientAuth, Limits};
    use crate::testing::net::{c, cluster, keyring, r};

    const KIND: u8 = 200;

    fn leaves(count: usize) -> Vec<Digest> {
        (0..count).map(|number| TreeSignature::leaf(&number.to_le_bytes())).collect()
    }

    fn keyrings() -> (Keyring, Keyring) {
        let cluster = cluster(4, ClientAuth::Hybrid, Limits::default());
        (keyring(&cluster, c(0)), keyring(&cluster, r(0)))
    }

    fn holds(of: &Keyring, signed: &TreeSignature, leaf: Digest) -> bool {
        of.check_bytes(KIND, c(0), &signed.root(leaf).0, &signed.signature)
    }

    #[test]
    fn every_leaf_of_every_tree_has_a_path_to_a_signed_root() {
        let (client, replica) = keyrings();
        for (count, signatures, levels) in
            [(0, 0, 0), (1, 1, 0), (2, 1, 1), (3, 1, 2), (5, 1, 3), (64, 1, 6), (65, 2, 6), (256, 4, 6)]
        {
            let before = client.counters().signatures_made.get();
            let (leaves, signed) = (leaves(count), TreeSignature::sign(&client, KIND, &leaves(count)));
            assert_eq!(signed.len(), count);
            assert_eq!(client.counters().signatures_made.get() - before, signatures, "{count} statements");
            assert_eq!(signed.iter().map(|signed| signed.path.len()).max().unwrap_or_default(), levels);
            for (signed, leaf) in signed.iter().zip(leaves) {
                assert!(holds(&replica, signed, leaf), "{count} statements");
                assert_eq!(TreeSignature::from_bytes(signed.to_bytes().into()).as_ref(), Ok(signed));
            }
        }
    }

    #[test]
    fn a_signature_over_one_statement_has_no_path() {
        let (client, _) = keyrings();
        let signed = TreeSignature::sign(&client, KIND, &leaves(1)).remove(0);
        assert_eq!((signed.sides, signed.path.len()), (0, 0));
        assert_eq!(signed.signature, client.sign_bytes(KIND, &leaves(1)[0].0));
    }

    #[test]
    fn whatever_is_changed_leads_to_another_root() {
        let (client, replica) = keyrings();
        let (leaves, signed) = (leaves(5), TreeSignature::sign(&client, KIND, &leaves(5)));
        for (place, one) in signed.iter().enumerate() {
            for (other, leaf) in leaves.iter().enumerate() {
                assert_eq!(holds(&replica, one, *leaf), place == other, "the path of {place} for {other}");
            }
            for level in 0..one.path.len() {
                let mut lie = one.clone();
                lie.sides ^= 1 << level;
                assert!(!holds(&replica, &lie, leaves[place]), "the other side");
                let mut lie = one.clone();
                lie.path[level].0[7] ^= 1;
                assert!(!holds(&replica, &lie, leaves[place]), "another digest");
                let mut lie = one.clone();
                lie.path.remove(level);
                assert!(!holds(&replica, &lie, leaves[place]), "a level less");
            }
            let mut lie = one.clone();
            lie.path.push(leaves[0]);
            assert!(!holds(&replica, &lie, leaves[place]), "a level more");
            let mut lie = one.clone();
            lie.signature.0[0] ^= 1;
            assert!(!holds(&replica, &lie, leaves[place]), "another signature");
        }
    }

    /// What is hashed to the one is never hashed to the other, although both may have the same bytes.
    #[test]
    fn no_inner_node_is_a_leaf() {
        let (client, replica) = keyrings();
        let (leaves, signed) = (leaves(4), TreeSignature::sign(&client, KIND, &leaves(4)));
        let both = [leaves[0].0, leaves[1].0].concat();
        let node = branch(leaves[0], leaves[1]);
        let above = TreeSignature { sides: 0, path: signed[0].path[1..].to_vec(), ..signed[0].clone() };
        assert!(holds(&replica, &above, node), "the way from the node is right");
        assert!(!holds(&replica, &above, TreeSignature::leaf(&both)), "and no statement stands there");
        assert_ne!(TreeSignature::leaf(&both), node);
    }

    #[test]
    fn a_path_has_a_bound_and_one_encoding() {
        let (client, _) = keyrings();
        let signed = TreeSignature::sign(&client, KIND, &leaves(LEAVES_MAX)).remove(LEAVES_MAX - 1);
        assert_eq!((signed.sides, signed.path.len()), (0b11_1111, PATH_MAX));
        let decode = |lie: &TreeSignature| TreeSignature::from_bytes(lie.to_bytes().into()).err();
        let mut longer = signed.clone();
        longer.path.push(Digest::ZERO);
        assert_eq!(decode(&longer), Some(WireError::TooLong));
        let mut shorter = signed.clone();
        shorter.path.pop();
        assert_eq!(decode(&shorter), Some(WireError::NotCanonical), "a side of no digest");
        shorter.sides = 0b1_1111;
        assert_eq!(decode(&shorter), None);
    }
}
