//! Everything that travels between principals, and how it is authenticated.
//!
//! A frame is `encode(message)` followed by a 16-byte MAC of the sender for the receiver. The message says what the MAC
//! [covers](Cover); one that carries its authentication inside has none. `docs/wire.md` has the bytes.

use crate::auth::{Claimed, Keyring, Signed, Tag, Verified};
use crate::checkpoint::{Checkpoint, TransferMessage};
use crate::cluster::Cluster;
use crate::digest::{Digest, Domain};
use crate::dissent::Testimony;
use crate::ids::{ClientId, InstanceId, Principal};
use crate::joining::CookieMessage;
use crate::message::{Reply, Request};
use crate::protocols::chain::{ChainMessage, ChainReply};
use crate::protocols::pbft::{Ordering, PbftMessage};
use crate::protocols::ring_fast::{RingMessage, RingPace, RingReply};
use crate::protocols::ring_resilient::Resilient;
use crate::protocols::speculative::{Certain, Response};
use crate::protocols::zlight::Order;
use crate::rejection::Rejection;
use crate::spoken::{Cover, Spoken};
use crate::switching::Switch;
use crate::wire::{Reader, Rope, Wire};
use crate::wire_enum;
use alloc::boxed::Box;
use alloc::vec::Vec;
use bytes::Bytes;
use core::fmt;

/// First byte of the statement of a large message that goes to several.
const LARGE: u8 = 0xa4;
/// Bytes from which such a message is hashed once.
const HASHED_ONCE: usize = 256;

/// Everything that travels.
#[derive(Clone, Debug)]
pub enum Message {
    /// A client's operation, from the client or passed on.
    Request(Request),
    /// An answer to a client.
    Reply(Reply),
    /// PBFT between replicas.
    Ordering(Ordering),
    /// A signed checkpoint vote between replicas.
    Checkpoint(Box<Claimed<Signed<Checkpoint>>>),
    /// What a replica's requests did, between replicas.
    Testimony(Box<Claimed<Signed<Testimony>>>),
    /// State transfer between replicas.
    Transfer(TransferMessage),
    /// About instances, between replicas and clients.
    Switch(Switch),
    /// A speculative answer of Quorum or ZLight, or a repeated one of Chain.
    Response(Response),
    /// ZLight's primary to the other replicas.
    Order(Order),
    /// Along the chain.
    Chain(ChainMessage),
    /// The chain's tail to a client.
    ChainReply(ChainReply),
    /// Between a client that wants to join and a replica.
    Cookie(CookieMessage),
    /// Around the ring.
    Ring(RingMessage),
    /// The ring's exit to a client.
    RingReply(RingReply),
    /// A replica of a ring to a client that asks again: the request is executed for good.
    RingCertain(Certain),
    /// The resilient ring between replicas.
    Resilient(Resilient),
    /// How fast the ring is, between replicas.
    RingPace(RingPace),
}
wire_enum!(Message {
    1 => Request,
    2 => Reply,
    3 => Ordering,
    4 => Checkpoint,
    5 => Transfer,
    6 => Switch,
    7 => Response,
    8 => Order,
    9 => Chain,
    10 => ChainReply,
    11 => Cookie,
    12 => Ring,
    13 => RingReply,
    14 => RingCertain,
    15 => Resilient,
    16 => RingPace,
    17 => Testimony,
});

macro_rules! said {
    ($($variant:ident($said:ty)),* $(,)?) => {$(
        impl From<$said> for Message {
            fn from(said: $said) -> Self {
                Self::$variant(said)
            }
        }
    )*};
}

said! {
    Request(Request),
    Reply(Reply),
    Ordering(Ordering),
    Checkpoint(Box<Claimed<Signed<Checkpoint>>>),
    Testimony(Box<Claimed<Signed<Testimony>>>),
    Transfer(TransferMessage),
    Switch(Switch),
    Response(Response),
    Order(Order),
    Chain(ChainMessage),
    ChainReply(ChainReply),
    Cookie(CookieMessage),
    Ring(RingMessage),
    RingReply(RingReply),
    RingCertain(Certain),
    Resilient(Resilient),
    RingPace(RingPace),
}

impl From<(InstanceId, PbftMessage)> for Message {
    fn from((instance, message): (InstanceId, PbftMessage)) -> Self {
        Self::Ordering(Ordering { instance, message })
    }
}

/// Lets whatever is said do the same thing.
macro_rules! each {
    ($message:expr, $said:ident => $act:expr) => {
        match $message {
            Message::Request($said) => $act,
            Message::Reply($said) => $act,
            Message::Ordering($said) => $act,
            Message::Checkpoint($said) => $act,
            Message::Testimony($said) => $act,
            Message::Transfer($said) => $act,
            Message::Switch($said) => $act,
            Message::Response($said) => $act,
            Message::Order($said) => $act,
            Message::Chain($said) => $act,
            Message::ChainReply($said) => $act,
            Message::Cookie($said) => $act,
            Message::Ring($said) => $act,
            Message::RingReply($said) => $act,
            Message::RingCertain($said) => $act,
            Message::Resilient($said) => $act,
            Message::RingPace($said) => $act,
        }
    };
}

/// One line, for traces, logs and golden scripts: its name in capitals, then what tells it apart.
impl fmt::Display for Message {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        each!(self, said => said.fmt(f))
    }
}

/// A message with the principal whose link it came over.
#[derive(Debug)]
pub struct Incoming {
    /// Who sent it to us. For a request that was passed on, not its client.
    pub from: Principal,
    /// What was said; a MAC convinced us.
    pub message: Verified<Message>,
}

/// What a MAC covers, given the encoding if that is needed for it.
fn statement<'a>(cover: &'a Cover, encoded: &'a [u8], scratch: &'a mut Vec<u8>) -> &'a [u8] {
    match cover {
        Cover::Summary(summary) => summary,
        Cover::Digest if encoded.len() > HASHED_ONCE => {
            scratch.clear();
            scratch.push(LARGE);
            scratch.extend_from_slice(&Digest::of(Domain::Frame, encoded).0);
            scratch
        }
        Cover::Whole | Cover::Digest | Cover::Inside => encoded,
    }
}

impl Message {
    /// The instance that it is about; state transfer and cookies are about none.
    pub fn instance(&self) -> Option<InstanceId> {
        each!(self, said => said.instance())
    }

    /// The client that it answers, if it answers one.
    pub fn addressee(&self) -> Option<ClientId> {
        each!(self, said => said.addressee())
    }

    /// Whether it is short, others wait for it, and it may arrive before what was sent earlier on the same link.
    pub fn may_overtake(&self) -> bool {
        each!(self, said => said.may_overtake())
    }

    fn cover(&self) -> Cover {
        each!(self, said => said.cover())
    }

    /// Puts the frame (without length prefix) that all receivers have in common into `out`, in place of what is there:
    /// `emit(receiver, tag)` is called once per receiver. What carries its authentication inside has no tag.
    pub fn seal(
        &self,
        keyring: &Keyring,
        receivers: impl Iterator<Item = Principal>,
        out: &mut Rope,
        mut emit: impl FnMut(Principal, Option<Tag>),
    ) {
        out.clear();
        self.encode(out);
        let (cover, mut flat, mut scratch) = (self.cover(), Vec::new(), Vec::new());
        // Hashing segments would take longer than to copy them first and hash all side by side.
        let encoded = match cover {
            Cover::Whole | Cover::Digest => out.whole(&mut flat),
            Cover::Summary(_) | Cover::Inside => &[],
        };
        let statement = statement(&cover, encoded, &mut scratch);
        for to in receivers {
            let tag = (cover != Cover::Inside).then(|| keyring.tag(to, statement));
            emit(to, tag);
        }
    }

    /// The frame for one receiver.
    pub fn sealed(&self, keyring: &Keyring, to: Principal) -> Vec<u8> {
        let mut out = self.to_bytes_with(Tag::BYTES);
        let cover = self.cover();
        if cover != Cover::Inside {
            let tag = keyring.tag(to, statement(&cover, &out, &mut Vec::new()));
            tag.encode(&mut out);
        }
        out
    }

    /// Opens a frame that came over the link of `from`: decodes it, checks its MAC, and checks what can be checked
    /// from the message, the keys and the cluster alone.
    ///
    /// # Errors
    /// The [`Rejection`] to be counted against `from`.
    pub fn open(frame: Bytes, from: Principal, cluster: &Cluster, keyring: &Keyring) -> Result<Incoming, Rejection> {
        let mut reader = Reader::new(frame.clone());
        let mut message = Self::decode(&mut reader)?;
        let cover = message.cover();
        if cover == Cover::Inside {
            reader.finish()?;
        } else {
            let body = frame.len() - reader.remaining();
            let tag = Tag::decode(&mut reader)?;
            reader.finish()?;
            if !keyring.check(from, statement(&cover, &frame[..body], &mut Vec::new()), &tag) {
                return Err(Rejection::BadMac);
            }
        }
        each!(&mut message, said => said.admit(from, cluster, keyring))?;
        Ok(Incoming { from, message: Verified::vouch(message) })
    }
}
