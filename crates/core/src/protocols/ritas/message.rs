//! What processes say to one another: one statement about one instance.

use super::path::Path;
use crate::auth::CoinShare;
use crate::digest::{Digest, Domain};
use crate::replicas::REPLICAS_MAX;
use crate::wire::{Reader, Sink, Wire, WireError, encode_list, encode_shared};
use crate::{wire_enum, wire_struct};
use alloc::vec::Vec;
use bytes::Bytes;
use core::fmt;

/// Bytes of the longest value that is broadcast or decided.
pub const VALUE_BYTES_MAX: usize = 4 << 20;

/// Bytes of the longest message, proposal or broadcast of the application.
pub const MESSAGE_BYTES_MAX: usize = VALUE_BYTES_MAX / 4;

/// A value that is at most as long as its digest is repeated instead of the digest.
const WHOLE_BYTES_MAX: usize = Digest::BYTES;

/// A value: opaque to the layer that carries it.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Value(pub Bytes);

impl Wire for Value {
    fn encode(&self, out: &mut impl Sink) {
        encode_shared(&self.0, out);
    }
    fn decode(reader: &mut Reader) -> Result<Self, WireError> {
        Ok(Self(reader.payload(VALUE_BYTES_MAX)?))
    }
}

/// How ECHO, READY and vectors name a value.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Word {
    /// By itself: it is short, or the thesis' variant is measured, which repeats everything.
    Whole(Value),
    /// By its digest.
    Digest(Digest),
}
wire_enum!(Word {
    1 => Whole,
    2 => Digest,
});

impl Word {
    /// Bytes of the longest that [is due](Self::is_due) where values are not repeated.
    pub(super) const BYTES_MAX: usize = 1 + 4 + WHOLE_BYTES_MAX;

    /// How this value is named.
    pub fn of(value: &Value, repeats: bool) -> Self {
        if repeats || value.0.len() <= WHOLE_BYTES_MAX {
            Self::Whole(value.clone())
        } else {
            Self::Digest(Digest::of(Domain::Broadcast, &value.0))
        }
    }

    /// Whether this is the value that it names, whichever way.
    pub fn names(&self, value: &Value) -> bool {
        match self {
            Self::Whole(whole) => whole == value,
            Self::Digest(digest) => *digest == Digest::of(Domain::Broadcast, &value.0),
        }
    }

    /// Whether a correct process names a value so. What is longer nobody has to keep for each that says it.
    pub fn is_due(&self, repeats: bool) -> bool {
        repeats || self.whole().is_none_or(|value| value.0.len() <= WHOLE_BYTES_MAX)
    }

    /// The value, if it is there.
    pub const fn whole(&self) -> Option<&Value> {
        match self {
            Self::Whole(value) => Some(value),
            Self::Digest(_) => None,
        }
    }
}

/// What is said about an instance.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Statement {
    /// INITIAL: its owner broadcasts this.
    Initial(Value),
    /// ECHO: the sender has seen this as the owner's value.
    Echo(Word),
    /// READY: the sender knows that nobody will deliver anything else.
    Ready(Word),
    /// DECIDE: the instance has come to this decision.
    Decide(Value),
    /// The sender needs the value that is named so.
    Want(Word),
    /// Here it is.
    Body(Value),
    /// EST: the sender estimates this bit in a round with a common coin, or passes on that f + 1 do.
    Est(bool),
    /// AUX: the sender has seen that enough estimate it.
    Aux(bool),
    /// CONF: the AUX of n − f say this bit; or ⊥: they say both.
    Conf(Option<bool>),
    /// SHARE: the sender's share of the coin.
    Share(CoinShare),
}
wire_enum!(Statement {
    1 => Initial,
    2 => Echo,
    3 => Ready,
    4 => Decide,
    5 => Want,
    6 => Body,
    7 => Est,
    8 => Aux,
    9 => Conf,
    10 => Share,
});

impl Statement {
    /// Bytes of the value in it.
    pub const fn value_bytes(&self) -> usize {
        match self {
            Self::Initial(value) | Self::Decide(value) | Self::Body(value) => value.0.len(),
            Self::Echo(word) | Self::Ready(word) | Self::Want(word) => match word {
                Word::Whole(value) => value.0.len(),
                Word::Digest(_) => Digest::BYTES,
            },
            Self::Est(_) | Self::Aux(_) | Self::Conf(_) => 1,
            Self::Share(_) => CoinShare::BYTES,
        }
    }

    /// Whether it binds the sender: it is never said differently, and is on disk before it is said.
    pub const fn binds(&self) -> bool {
        !matches!(self, Self::Want(_) | Self::Body(_))
    }
}

/// A statement about an instance.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Said {
    /// The instance.
    pub path: Path,
    /// What about it.
    pub statement: Statement,
}
wire_struct!(Said { path, statement });

impl fmt::Display for Said {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let what = match &self.statement {
            Statement::Initial(_) => "INITIAL",
            Statement::Echo(_) => "ECHO",
            Statement::Ready(_) => "READY",
            Statement::Decide(_) => "DECIDE",
            Statement::Want(_) => "WANT",
            Statement::Body(_) => "BODY",
            Statement::Est(_) => "EST",
            Statement::Aux(_) => "AUX",
            Statement::Conf(_) => "CONF",
            Statement::Share(_) => "SHARE",
        };
        write!(f, "{what}({:?})", self.path)
    }
}

/// Which statements of one process another has heard about an instance.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Heard {
    bits: u8,
}
wire_struct!(Heard { bits });

impl Heard {
    /// INITIAL, of the owner.
    pub const INITIAL: Self = Self { bits: 1 };
    /// ECHO.
    pub const ECHO: Self = Self { bits: 2 };
    /// READY.
    pub const READY: Self = Self { bits: 4 };
    /// DECIDE.
    pub const DECIDE: Self = Self { bits: 8 };
    /// EST with a bit. What follows is said about rounds with a common coin, of which nothing of the above is said.
    pub const fn est(bit: bool) -> Self {
        Self { bits: if bit { 2 } else { 1 } }
    }
    /// AUX.
    pub const AUX: Self = Self { bits: 4 };
    /// CONF.
    pub const CONF: Self = Self { bits: 8 };
    /// SHARE.
    pub const SHARE: Self = Self { bits: 16 };

    /// Adds one.
    pub const fn add(&mut self, other: Self) {
        self.bits |= other.bits;
    }

    /// Whether this statement was heard; of those that bind nobody there is no account.
    pub const fn has(self, statement: &Statement) -> bool {
        let kind = match statement {
            Statement::Initial(_) => Self::INITIAL,
            Statement::Echo(_) => Self::ECHO,
            Statement::Ready(_) => Self::READY,
            Statement::Decide(_) => Self::DECIDE,
            Statement::Est(bit) => Self::est(*bit),
            Statement::Aux(_) => Self::AUX,
            Statement::Conf(_) => Self::CONF,
            Statement::Share(_) => Self::SHARE,
            Statement::Want(_) | Statement::Body(_) => return false,
        };
        self.bits & kind.bits != 0
    }
}

/// What a process has heard of the one that it writes to, about instances that it has not finished: who reads it says
/// again what is missing.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Summary {
    /// By instance, in order. Of those that are not there nothing was heard.
    pub heard: Vec<(Path, Heard)>,
    /// The first round of atomic broadcast that is not over at the sender: it needs nothing of those before.
    pub round: u64,
    /// The first message of each sender that it has not delivered: it needs nothing of those before.
    pub messages: Vec<u64>,
}

/// Instances in a summary: more than a process has.
pub const HEARD_MAX: usize = 1 << 17;

impl Wire for Summary {
    fn encode(&self, out: &mut impl Sink) {
        encode_list(&self.heard, out);
        self.round.encode(out);
        encode_list(&self.messages, out);
    }
    fn decode(reader: &mut Reader) -> Result<Self, WireError> {
        let (heard, round) = (reader.list(HEARD_MAX)?, Wire::decode(reader)?);
        Ok(Self { heard, round, messages: reader.list(REPLICAS_MAX)? })
    }
}
