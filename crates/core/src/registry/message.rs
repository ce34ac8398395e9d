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
use crate::protocols::ritas::order::{Agreement, RitasMessage};
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

/// One row for each message: its tag on the wire, its name here, and what it says.
macro_rules! messages {
    ($($(#[doc = $about:literal])* $(#[cfg($when:meta)])? $tag:literal => $variant:ident($said:ty),)*) => {
        /// Everything that travels.
        #[derive(Clone, Debug)]
        pub enum Message {
            $($(#[doc = $about])* $(#[cfg($when)])? $variant($said),)*
        }

        wire_enum!(Message { $($(#[cfg($when)])? $tag => $variant,)* });

        impl Message {
            fn said(&self) -> &dyn Spoken {
                match self {
                    $($(#[cfg($when)])? Self::$variant(said) => said,)*
                }
            }

            fn said_mut(&mut self) -> &mut dyn Spoken {
                match self {
                    $($(#[cfg($when)])? Self::$variant(said) => said,)*
                }
            }
        }

        $($(#[cfg($when)])? impl From<$said> for Message {
            fn from(said: $said) -> Self {
                Self::$variant(said)
            }
        })*
    };
}

messages! {
    /// A client's operation, from the client or passed on.
    1 => Request(Request),
    /// An answer to a client.
    2 => Reply(Reply),
    /// PBFT between replicas.
    3 => Ordering(Ordering),
    /// A signed checkpoint vote between replicas.
    4 => Checkpoint(Box<Claimed<Signed<Checkpoint>>>),
    /// State transfer between replicas.
    5 => Transfer(TransferMessage),
    /// About instances, between replicas and clients.
    6 => Switch(Switch),
    /// A speculative answer of Quorum or ZLight, or a repeated one of Chain.
    7 => Response(Response),
    /// ZLight's primary to the other replicas.
    8 => Order(Order),
    /// Along the chain.
    9 => Chain(ChainMessage),
    /// The chain's tail to a client.
    10 => ChainReply(ChainReply),
    /// Between a client that wants to join and a replica.
    11 => Cookie(CookieMessage),
    /// Around the ring.
    12 => Ring(RingMessage),
    /// The ring's exit to a client.
    13 => RingReply(RingReply),
    /// A replica of a ring to a client that asks again: the request is executed for good.
    14 => RingCertain(Certain),
    /// The resilient ring between replicas.
    15 => Resilient(Resilient),
    /// How fast the ring is, between replicas.
    16 => RingPace(RingPace),
    /// What a replica's requests did, between replicas.
    17 => Testimony(Box<Claimed<Signed<Testimony>>>),
    /// RITAS between replicas.
    18 => Agreement(Agreement),
    /// What a new protocol says.
    #[cfg(test)]
    255 => Sample(crate::protocols::sample::Pass),
}

impl From<(InstanceId, PbftMessage)> for Message {
    fn from((instance, message): (InstanceId, PbftMessage)) -> Self {
        Self::Ordering(Ordering { instance, message })
    }
}

impl From<(InstanceId, RitasMessage)> for Message {
    fn from((instance, message): (InstanceId, RitasMessage)) -> Self {
        Self::Agreement(Agreement { instance, message })
    }
}

/// One line, for traces, logs and golden scripts: its name in capitals, then what tells it apart.
impl fmt::Display for Message {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.said().fmt(f)
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
        self.said().instance()
    }

    /// The client that it answers, if it answers one.
    pub fn addressee(&self) -> Option<ClientId> {
        self.said().addressee()
    }

    /// Whether it is short, others wait for it, and it may arrive before what was sent earlier on the same link.
    pub fn may_overtake(&self) -> bool {
        self.said().may_overtake()
    }

    /// Whether this, if it goes to one replica alone, was said to all before. A link that is behind need not carry it
    /// again: what is said again is what was not heard, and on such a link that may be on its way yet.
    pub const fn repeats(&self) -> bool {
        matches!(self, Self::Agreement(Agreement { message: RitasMessage::Said(_), .. }))
    }

    fn cover(&self) -> Cover {
        self.said().cover()
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
        message.said_mut().admit(from, cluster, keyring)?;
        Ok(Incoming { from, message: Verified::vouch(message) })
    }
}
