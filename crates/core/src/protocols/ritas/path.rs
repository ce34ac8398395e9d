//! The names of instances: paths of 64-bit segments, from the root to the broadcast.
//!
//! A process takes part in many instances of each layer at once, and an instance of one layer makes instances of the
//! layer below. So an instance is named by the way that leads to it: which atomic broadcast, which of its rounds, that
//! round's multi-valued consensus, its binary consensus, which step of that, whose broadcast.
//!
//! A segment is a [`Layer`] and a number of 56 bits, which nobody counts to the end of (ritas-F9: with 16 bits a
//! message of 2¹⁶ instances ago is taken for a new one). What may follow what is checked when a path is read
//! ([`Path::from_segments`]): a path that exists as a value has the right shape, and no table is asked for another.

use crate::ids::ReplicaId;
use crate::replicas::Replicas;
use crate::wire::{Mark, Reader, Sink, Wire, WireError};
use crate::wire_struct;
use core::fmt;

/// A message: who sent it, and its number there.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Id {
    /// The sender.
    pub sender: ReplicaId,
    /// Its number.
    pub number: u64,
}
wire_struct!(Id { sender, number });

impl Id {
    /// Bytes of one.
    pub(super) const BYTES: usize = 1 + 8;
}

/// Segments of the longest path: a step of the binary consensus of a round of an atomic broadcast, and whose it is.
pub const SEGMENTS_MAX: usize = 6;

/// The largest number of a segment.
pub const NUMBER_MAX: u64 = (1 << 56) - 1;

macro_rules! layers {
    ($(
        $(#[$doc:meta])*
        $tag:literal $name:ident($label:literal) under [$($parent:ident),*] $(root $root:literal)?;
    )*) => {
        /// What a segment is an instance of.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
        #[repr(u8)]
        pub enum Layer {
            $($(#[$doc])* $name = $tag,)*
        }

        impl Layer {
            const fn of(tag: u8) -> Option<Self> {
                match tag {
                    $($tag => Some(Self::$name),)*
                    _ => None,
                }
            }

            const fn label(self) -> &'static str {
                match self { $(Self::$name => $label),* }
            }

            /// Whether it may come right behind another, or first.
            fn may_follow(self, parent: Option<Self>) -> bool {
                match self {
                    $(Self::$name => match parent {
                        None => false $(|| $root)?,
                        Some(parent) => [$(Self::$parent),*].contains(&parent),
                    },)*
                }
            }
        }
    };
}

layers! {
    /// Atomic broadcast.
    1 Atomic("ab") under [] root true;
    /// A message of an atomic broadcast; the number is its sender's.
    2 Message("message") under [Atomic];
    /// A round of an atomic broadcast.
    3 Round("round") under [Atomic];
    /// What a process proposes in such a round; the number is 0.
    4 Proposal("proposal") under [Round];
    /// Vector consensus.
    5 Vector("vc") under [] root true;
    /// The value of a process in a vector consensus; the number is 0.
    6 Value("value") under [Vector];
    /// Multi-valued consensus. In a vector consensus there are several; elsewhere the number is 0.
    7 Multi("mvc") under [Round, Vector] root true;
    /// INIT of a multi-valued consensus; the number is 0.
    8 Init("init") under [Multi];
    /// VECT of a multi-valued consensus; the number is 0.
    9 Vect("vect") under [Multi];
    /// Binary consensus. In a multi-valued one there is one, with number 0.
    10 Binary("bc") under [Multi] root true;
    /// A step of a binary consensus: three for each round, counted from 0.
    11 Step("step") under [Binary];
    /// Reliable broadcast.
    12 Reliable("rb") under [] root true;
    /// Echo broadcast.
    13 Echo("eb") under [] root true;
    /// Whose broadcast it is: the last segment, if there is one.
    14 By("by") under [Message, Proposal, Value, Init, Vect, Step, Reliable, Echo];
    /// A round of a binary consensus with a common coin, counted from 0.
    15 Toss("toss") under [Binary];
}

impl Layer {
    /// Whether there is but one of it behind this parent: its number is 0.
    const fn is_single(self, parent: Option<Self>) -> bool {
        match self {
            Self::Proposal | Self::Value | Self::Init | Self::Vect => true,
            Self::Multi => matches!(parent, Some(Self::Round)),
            Self::Binary => parent.is_some(),
            _ => false,
        }
    }
}

/// One segment: an instance among those of its parent.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct Segment(u64);

impl Segment {
    /// An instance. The number is at most [`NUMBER_MAX`].
    pub const fn new(layer: Layer, number: u64) -> Self {
        assert!(number <= NUMBER_MAX, "nobody counts so far");
        Self((layer as u64) << 56 | number)
    }

    /// What it is an instance of.
    pub fn layer(self) -> Layer {
        Layer::of((self.0 >> 56) as u8).expect("segments are made of layers")
    }

    /// Which.
    pub const fn number(self) -> u64 {
        self.0 & NUMBER_MAX
    }
}

/// The name of an instance.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct Path {
    /// The unused ones are 0, so that a path comes right before those below it.
    segments: [u64; SEGMENTS_MAX],
    length: u8,
}

impl Path {
    /// An instance that has no parent.
    pub fn root(layer: Layer, number: u64) -> Self {
        assert!(layer.may_follow(None), "the layer has instances without a parent");
        Self { segments: [0; SEGMENTS_MAX], length: 0 }.extended(Segment::new(layer, number))
    }

    /// The atomic broadcast: a process takes part in one.
    pub(super) fn atomic_broadcast() -> Self {
        Self::root(Layer::Atomic, 0)
    }

    /// The instance with these segments, as somebody says.
    ///
    /// # Errors
    /// [`WireError`] if there is none: a layer that may not be there, too many segments, or none.
    pub fn from_segments(segments: &[u64]) -> Result<Self, WireError> {
        if segments.is_empty() {
            return Err(WireError::Truncated);
        }
        if segments.len() > SEGMENTS_MAX {
            return Err(WireError::TooLong);
        }
        let mut path = Self { segments: [0; SEGMENTS_MAX], length: 0 };
        let mut parent = None;
        for &segment in segments {
            let layer = Layer::of((segment >> 56) as u8).ok_or(WireError::UnknownTag)?;
            if !layer.may_follow(parent) {
                return Err(WireError::UnknownTag);
            }
            if layer.is_single(parent) && Segment(segment).number() != 0 {
                return Err(WireError::NotCanonical);
            }
            parent = Some(layer);
            path = path.extended(Segment(segment));
        }
        Ok(path)
    }

    /// An instance that this one made.
    #[must_use]
    pub fn child(self, layer: Layer, number: u64) -> Self {
        assert!(layer.may_follow(Some(self.last().layer())), "{layer:?} is no part of {self:?}");
        self.extended(Segment::new(layer, number))
    }

    /// The broadcast of one process.
    #[must_use]
    pub fn by(self, owner: ReplicaId) -> Self {
        self.child(Layer::By, owner.0.into())
    }

    const fn extended(mut self, segment: Segment) -> Self {
        self.segments[self.length as usize] = segment.0;
        self.length += 1;
        self
    }

    /// The instance that made this one; none made a root.
    pub fn parent(self) -> Option<Self> {
        self.length.checked_sub(1).filter(|length| *length > 0).map(|length| self.up_to(length))
    }

    /// The instances that lead to it, from the root, and itself.
    pub fn ways(self) -> impl DoubleEndedIterator<Item = Self> {
        (1..=self.length).map(move |length| self.up_to(length))
    }

    /// Its first segments.
    fn up_to(mut self, length: u8) -> Self {
        self.segments[usize::from(length)..].fill(0);
        self.length = length;
        self
    }

    /// Its own segment.
    pub fn last(self) -> Segment {
        Segment(self.segments[usize::from(self.length) - 1])
    }

    /// Its segments, from the root.
    pub fn segments(&self) -> &[u64] {
        &self.segments[..usize::from(self.length)]
    }

    /// Its segments of one layer: the instance of that layer which it is a part of.
    pub fn number(&self, layer: Layer) -> Option<u64> {
        self.segments().iter().map(|segment| Segment(*segment)).find(|s| s.layer() == layer).map(Segment::number)
    }

    /// The root that it is a part of.
    #[must_use]
    pub fn of_root(self) -> Self {
        self.up_to(1)
    }

    /// Whose broadcast it is, if it is one, and if there is such a process.
    pub fn owner(self, replicas: &Replicas) -> Option<ReplicaId> {
        let last = self.last();
        let owner = u8::try_from(last.number()).ok().map(ReplicaId).filter(|owner| replicas.contains(*owner));
        owner.filter(|_| last.layer() == Layer::By)
    }

    /// Which message of an atomic broadcast it is about, if it is about one.
    pub(super) fn message(self, replicas: &Replicas) -> Option<Id> {
        let (number, sender) = (self.number(Layer::Message)?, self.owner(replicas)?);
        Some(Id { sender, number })
    }

    /// Whether this is an instance that `other` made, directly or not, or that one itself.
    pub fn is_within(&self, other: &Self) -> bool {
        self.segments().starts_with(other.segments())
    }
}

impl fmt::Debug for Path {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (i, segment) in self.segments().iter().enumerate() {
            let segment = Segment(*segment);
            let slash = if i == 0 { "" } else { "/" };
            write!(f, "{slash}{}{}", segment.layer().label(), segment.number())?;
        }
        Ok(())
    }
}

impl Wire for Path {
    fn encode(&self, out: &mut impl Sink) {
        out.mark(Mark::Value(core::any::type_name::<Self>()));
        out.push(self.length);
        for segment in self.segments() {
            out.extend_from_slice(&segment.to_le_bytes());
        }
        out.mark(Mark::End);
    }

    fn decode(reader: &mut Reader) -> Result<Self, WireError> {
        let length = usize::from(reader.tag()?);
        let mut segments = [0; SEGMENTS_MAX];
        let segments = segments.get_mut(..length).ok_or(WireError::TooLong)?;
        for segment in &mut *segments {
            *segment = u64::from_le_bytes(reader.array()?);
        }
        Self::from_segments(segments)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use alloc::format;
    use bytes::Bytes;
    use proptest::prelude::*;

    fn step() -> Path {
        let round = Path::root(Layer::Atomic, 0).child(Layer::Round, 7);
        round.child(Layer::Multi, 0).child(Layer::Binary, 0).child(Layer::Step, 4).by(ReplicaId(2))
    }

    #[test]
    fn a_path_says_where_it_leads() {
        let path = step();
        assert_eq!(format!("{path:?}"), "ab0/round7/mvc0/bc0/step4/by2");
        assert_eq!((path.number(Layer::Round), path.number(Layer::Vector)), (Some(7), None));
        let replicas = Replicas::of(4).unwrap();
        assert_eq!(path.owner(&replicas), Some(ReplicaId(2)));
        assert_eq!(path.parent().unwrap().owner(&replicas), None);
        assert_eq!(path.of_root(), Path::root(Layer::Atomic, 0));
        assert_eq!(Path::root(Layer::Atomic, 0).parent(), None);
        assert!(path.is_within(&path.parent().unwrap()) && !path.parent().unwrap().is_within(&path));
    }

    #[test]
    fn what_is_below_an_instance_comes_right_behind_it() {
        let (path, next) = (step().parent().unwrap(), step().parent().unwrap().parent().unwrap().child(Layer::Step, 5));
        assert!(path < step() && step() < next);
    }

    #[test]
    fn no_other_process_and_no_other_shape_has_a_path() {
        let replicas = Replicas::of(4).unwrap();
        assert_eq!(step().parent().unwrap().by(ReplicaId(4)).owner(&replicas), None);
        let far = Path::root(Layer::Reliable, 0).child(Layer::By, 256);
        assert_eq!(far.owner(&replicas), None, "256 is not taken for 0");
        let binary = Segment::new(Layer::Binary, 0).0;
        assert!(Path::from_segments(&[binary, binary]).is_err(), "bc in bc");
        assert!(Path::from_segments(&[Segment::new(Layer::Step, 0).0]).is_err(), "a step has a parent");
        let second = [Segment::new(Layer::Multi, 3).0, Segment::new(Layer::Init, 1).0];
        assert!(Path::from_segments(&second).is_err(), "there is one INIT");
        assert!(Path::from_segments(&[0]).is_err() && Path::from_segments(&[]).is_err());
        assert!(Path::from_bytes(Bytes::from_static(&[7; 60])).is_err(), "seven segments");
    }

    proptest! {
        /// Whatever is read as a path is written the same way.
        #[test]
        fn a_path_has_one_encoding(bytes in proptest::collection::vec(0u8..16, 0..60)) {
            if let Ok(path) = Path::from_bytes(Bytes::from(bytes.clone())) {
                prop_assert_eq!(path.to_bytes(), bytes);
            }
        }
    }
}
