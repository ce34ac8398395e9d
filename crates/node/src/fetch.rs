//! Reads a checkpoint from replicas without being one: certified, so that none of them has to be believed.
//!
//! 1. Replicas say which checkpoints they have, with signatures. Signatures of different replicas over the same
//!    checkpoint are put together; f+1 valid ones prove it, because one of the signers is correct
//!    (`bezant_core::replica::checkpoints` says what each protocol signs when).
//! 2. The pages come from one replica after the other, until one has given all of them. Every node and page is
//!    checked against the digest that it must have, from the certified root downwards: a liar can delay, not deceive.
//!
//! A liar can also show an old checkpoint, so that what is newest is only known from more than f replicas; whoever has
//! to be sure of a write looks for it in the state.

use crate::admin::{self, pieces};
use crate::config::ClusterConfig;
use crate::keys::from_hex_any;
use bezant_core::auth::{Certificate, Claimed, Ed25519, Signed};
use bezant_core::checkpoint::{
    Checkpoint, ChildId, Evidence, NODE_CHILDREN, NodeId, Snapshot, TransferMessage, Tree, page_digest,
};
use bezant_core::digest::Digest;
use bezant_core::ids::ReplicaId;
use bezant_core::wire::Wire;
use bytes::Bytes;
use serde_json::Value;
use std::collections::BTreeMap;
use std::fmt;
use std::net::SocketAddr;

/// A replica, and where its admin port is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Source {
    /// Who.
    pub replica: ReplicaId,
    /// Where.
    pub admin: SocketAddr,
}

/// Why there is no checkpoint.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum FetchError {
    /// No replica answered.
    NoAnswer(Vec<(ReplicaId, String)>),
    /// No checkpoint has been taken yet.
    NoCheckpoint,
    /// Too few replicas signed any checkpoint that was shown.
    NotCertain {
        /// The most valid signatures on one checkpoint.
        signatures: usize,
        /// How many are needed.
        needed: usize,
    },
    /// Nobody gave all pages: what each replica did.
    Incomplete(Vec<(ReplicaId, String)>),
}

impl fmt::Display for FetchError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut list = |what: &str, whose: &[(ReplicaId, String)]| {
            f.write_str(what)?;
            whose.iter().try_for_each(|(replica, why)| write!(f, "; replica {}: {why}", replica.0))
        };
        match self {
            Self::NoAnswer(whose) => list("no replica says which checkpoints it has", whose),
            Self::Incomplete(whose) => list("no replica gave all pages of the checkpoint", whose),
            Self::NoCheckpoint => f.write_str("there is no checkpoint yet"),
            Self::NotCertain { signatures, needed } => write!(
                f,
                "{needed} signatures are needed to prove a checkpoint, and {signatures} on the same one were found: \
                 while the protocol is one that signs none, each replica must be asked for its own"
            ),
        }
    }
}

impl std::error::Error for FetchError {}

/// What a replica says that it has.
#[derive(Clone, Debug)]
pub struct Account {
    /// Who says so.
    pub source: Source,
    /// Checkpoints that are certain, with the signatures that it has. Nothing is checked.
    pub certain: Vec<Claimed<Certificate<Checkpoint>>>,
    /// The state that it had at its last checkpoints, oldest first, without signatures.
    pub own: Vec<Checkpoint>,
    /// Divergences that it has found and not yet recorded.
    pub announced: u64,
}

impl Account {
    /// Asks a replica.
    ///
    /// # Errors
    /// In a few words, why there is no account.
    pub fn of(source: Source) -> Result<Self, String> {
        let answer = admin::ask(source.admin, "/checkpoint")?;
        let certificates = |name: &str| -> Option<Vec<Claimed<Certificate<Checkpoint>>>> {
            let certificate = |entry: &Value| {
                let bytes = from_hex_any(entry["certificate"].as_str()?)?;
                Claimed::from_bytes(Bytes::from(bytes)).ok()
            };
            answer[name].as_array()?.iter().map(certificate).collect()
        };
        let (certain, own) = (certificates("certain"), certificates("own"));
        let announced = answer["announced"].as_u64().unwrap_or(0);
        let (Some(certain), Some(own)) = (certain, own) else { return Err("it answers something else".to_owned()) };
        Ok(Self { source, certain, own: own.iter().map(|certificate| *certificate.claims()).collect(), announced })
    }
}

/// What all of them say, and why the others say nothing.
pub fn accounts(sources: &[Source]) -> (Vec<Account>, Vec<(ReplicaId, String)>) {
    let asked: Vec<_> = std::thread::scope(|scope| {
        let threads: Vec<_> = sources.iter().map(|source| scope.spawn(|| Account::of(*source))).collect();
        threads.into_iter().map(|thread| thread.join().unwrap_or_else(|_| Err("no answer".to_owned()))).collect()
    });
    let (mut accounts, mut silent) = (Vec::new(), Vec::new());
    for (source, answer) in sources.iter().zip(asked) {
        match answer {
            Ok(account) => accounts.push(account),
            Err(why) => silent.push((source.replica, why)),
        }
    }
    (accounts, silent)
}

/// What is claimed, if it proves its checkpoint: f+1 replicas of the cluster signed it.
pub fn certain(config: &ClusterConfig, claimed: Claimed<Certificate<Checkpoint>>) -> Option<Certificate<Checkpoint>> {
    let cluster = config.to_cluster();
    config.public_keys().verify_certificate(&Ed25519, &cluster, claimed, cluster.replicas.weak())
}

/// The newest checkpoint that the accounts prove together.
///
/// # Errors
/// [`FetchError`]: none is proved.
pub fn newest_certain(config: &ClusterConfig, accounts: &[Account]) -> Result<Certificate<Checkpoint>, FetchError> {
    let cluster = config.to_cluster();
    let mut shown: BTreeMap<Checkpoint, BTreeMap<ReplicaId, Signed<Checkpoint>>> = BTreeMap::new();
    for certificate in accounts.iter().flat_map(|account| &account.certain) {
        let value = *certificate.claims();
        let votes = shown.entry(value).or_default();
        for (signer, signature) in certificate.signatures() {
            if votes.contains_key(signer) {
                continue;
            }
            // One by one: a false signature must not spoil the others.
            let vote = Claimed::signed(value, *signer, *signature);
            let checked = config.public_keys().verify(&Ed25519, &cluster, vote);
            votes.extend(checked.map(|vote| (*signer, vote)));
        }
    }
    if shown.is_empty() {
        return Err(FetchError::NoCheckpoint);
    }
    let most = shown.values().map(BTreeMap::len).max().unwrap_or(0);
    let newest = shown.into_iter().rev().find(|(_, votes)| votes.len() >= cluster.replicas.weak());
    match newest {
        Some((_, votes)) => Ok(Certificate::tally(votes.into_values(), cluster.replicas.weak())),
        None => Err(FetchError::NotCertain { signatures: most, needed: cluster.replicas.weak() }),
    }
}

/// The newest certified checkpoint with all its pages. `progress` is told how many bytes there are so far.
///
/// # Errors
/// [`FetchError`].
pub fn fetch(
    config: &ClusterConfig,
    sources: &[Source],
    progress: &mut dyn FnMut(u64),
) -> Result<Snapshot, FetchError> {
    let (certificate, accounts, silent) = newest_shown(config, sources)?;
    fetch_shown(certificate, &accounts, silent, &Tree::new(), progress)
}

/// The same if it is newer than the one that is here, sealed, and only what differs; `None` if it is not: a liar may
/// show an older one when those who know better do not answer. What was compared is what is fetched: asked again,
/// others would answer.
///
/// # Errors
/// [`FetchError`].
pub fn fetch_newer(
    config: &ClusterConfig,
    sources: &[Source],
    held: Option<(&Checkpoint, &Tree)>,
) -> Result<Option<Snapshot>, FetchError> {
    let (certificate, accounts, silent) = newest_shown(config, sources)?;
    if held.is_some_and(|(checkpoint, _)| checkpoint >= certificate.value()) {
        return Ok(None);
    }
    let nothing = Tree::new();
    let base = held.map_or(&nothing, |(_, tree)| tree);
    fetch_shown(certificate, &accounts, silent, base, &mut |_| ()).map(Some)
}

/// The newest checkpoint that replicas prove when they are asked, what each of them said, and who said nothing.
type Newest = (Certificate<Checkpoint>, Vec<Account>, Vec<(ReplicaId, String)>);

fn newest_shown(config: &ClusterConfig, sources: &[Source]) -> Result<Newest, FetchError> {
    let (accounts, silent) = accounts(sources);
    if accounts.is_empty() {
        return Err(FetchError::NoAnswer(silent));
    }
    Ok((newest_certain(config, &accounts)?, accounts, silent))
}

/// The pages of a certified checkpoint from those who gave these accounts.
fn fetch_shown(
    certificate: Certificate<Checkpoint>,
    accounts: &[Account],
    mut failed: Vec<(ReplicaId, String)>,
    base: &Tree,
    progress: &mut dyn FnMut(u64),
) -> Result<Snapshot, FetchError> {
    // Whoever shows it has it.
    let (having, others): (Vec<_>, Vec<_>) = accounts
        .iter()
        .partition(|account| account.certain.iter().any(|shown| shown.claims().root == certificate.value().root));
    for account in having.into_iter().chain(others) {
        match fetch_difference(account.source, certificate.value().root, base, progress) {
            Ok(tree) => return Ok(Snapshot { evidence: Evidence::Certified(certificate), tree }),
            Err(why) => failed.push((account.source.replica, why)),
        }
    }
    Err(FetchError::Incomplete(failed))
}

/// The pages under a root, from one replica.
///
/// # Errors
/// In a few words, why it does not give them.
pub fn fetch_tree(source: Source, root: Digest, progress: &mut dyn FnMut(u64)) -> Result<Tree, String> {
    fetch_difference(source, root, &Tree::new(), progress)
}

/// The same where another version is here already: only what differs is fetched.
///
/// # Errors
/// In a few words, why it does not give them.
pub fn fetch_difference(
    source: Source,
    root: Digest,
    base: &Tree,
    progress: &mut dyn FnMut(u64),
) -> Result<Tree, String> {
    let mut tree = base.clone();
    if root == Digest::ZERO {
        return Ok(Tree::new());
    }
    // Last in, first out: what is known to be missing stays short, however large the state.
    let mut wanted = if root == base.root() { Vec::new() } else { vec![(ChildId::Node(NodeId::ROOT), root)] };
    while !wanted.is_empty() {
        let some = wanted.split_off(wanted.len().saturating_sub(pieces::REQUESTS_MAX));
        let requests: Vec<_> = some.iter().map(|(child, _)| request(root, *child)).collect();
        let body = admin::get(source.admin, &pieces::path(&requests)).map_err(|error| format!("no answer: {error}"))?;
        let bytes = body.len();
        let answers = pieces::messages(Bytes::from(body)).ok_or("it answers something else")?;
        // Who gives less than it can, a piece at a time, would keep us for ever.
        let all_that_fits = answers.len() == some.len() || bytes >= pieces::ANSWER_BYTES_MAX;
        if answers.is_empty() || answers.len() > some.len() || !all_that_fits {
            return Err("it answers something else".to_owned());
        }
        wanted.extend_from_slice(&some[answers.len()..]);
        for ((child, digest), answer) in some.into_iter().zip(answers) {
            take(&mut tree, base, &mut wanted, (child, digest), answer)?;
        }
        progress(tree.bytes());
    }
    tree.seal();
    if tree.root() == root { Ok(tree) } else { Err("the pages do not have the root".to_owned()) }
}

fn request(version: Digest, child: ChildId) -> TransferMessage {
    match child {
        ChildId::Node(node) => TransferMessage::FetchNode { version, node },
        ChildId::Page(number) => TransferMessage::FetchPage { version, number },
    }
}

/// Uses a piece if it is the one that is wanted.
fn take(
    tree: &mut Tree,
    base: &Tree,
    wanted: &mut Vec<(ChildId, Digest)>,
    (child, digest): (ChildId, Digest),
    answer: TransferMessage,
) -> Result<(), String> {
    match (child, answer) {
        (ChildId::Node(node), TransferMessage::Node { content, .. }) if content.digest() == digest => {
            let here = base.node(node);
            for slot in 0..NODE_CHILDREN as u32 {
                let (there, mine) = (content.child(slot), here.as_ref().and_then(|here| here.child(slot)));
                match (there, node.child(slot)) {
                    (there, _) if there == mine => {}
                    (Some(digest), child) => wanted.push((child, digest)),
                    (None, ChildId::Page(number)) => tree.set(number, None),
                    (None, ChildId::Node(below)) => base.below(below).for_each(|(number, _)| tree.set(number, None)),
                }
            }
        }
        (ChildId::Page(number), TransferMessage::Page { content, .. }) if page_digest(number, &content) == digest => {
            // A slice of the answer would keep all of it in memory.
            tree.set(number, Some(Bytes::copy_from_slice(&content)));
        }
        (_, TransferMessage::Gone { .. }) => return Err("it has that checkpoint no more".to_owned()),
        _ => return Err("it sent a piece that is not of this checkpoint: it lies".to_owned()),
    }
    Ok(())
}

#[cfg(test)]
mod tests;
