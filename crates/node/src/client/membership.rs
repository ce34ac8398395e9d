//! Where an engine stands whose key the cluster file does not name.

use bezant_core::members::Admission;
use bezant_core::message::Refusal;
use bezant_core::time::Instant;
use bytes::Bytes;

/// Whether the cluster has let this client in.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Admitted {
    /// It has.
    Yes,
    /// Not at this time; it is asked again.
    NotYet(Refusal),
    /// It will not.
    Never(Refusal),
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Phase {
    /// Joins at this time.
    Outside(Instant),
    Joining,
    Inside(Admission),
    Leaving,
    /// For good.
    Barred,
}

/// See the [module](self).
#[derive(Debug)]
pub(super) struct Membership {
    pub(super) phase: Phase,
    pub(super) identification: Bytes,
    /// The engine's number of the door.
    pub(super) door: usize,
}

impl Membership {
    pub(super) const fn new(identification: Bytes, door: usize) -> Self {
        Self { phase: Phase::Outside(Instant(0)), identification, door }
    }

    pub(super) const fn door(&self) -> usize {
        self.door
    }

    pub(super) const fn is_inside(&self) -> bool {
        matches!(self.phase, Phase::Inside(_))
    }

    /// When it joins next.
    pub(super) const fn next(&self) -> Option<Instant> {
        match self.phase {
            Phase::Outside(at) => Some(at),
            _ => None,
        }
    }
}
