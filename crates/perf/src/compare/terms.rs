//! What experiments are written with: sizes, places, and short ways to say a point or a claim.

use super::claim::{Claim, Ours};
use super::sweep::{Place, Point};
use std::borrow::Cow;

pub(super) const SMALL: usize = crate::workload::OPERATION_BYTES_MIN;
pub(super) const BIG: usize = 4096;
/// The paper's 0/0.
pub(super) const NOTHING: (usize, usize) = (SMALL, SMALL);
/// The paper's 4/0.
pub(super) const BIG_REQUESTS: (usize, usize) = (BIG, SMALL);
/// The paper's 0/4.
pub(super) const BIG_REPLIES: (usize, usize) = (SMALL, BIG);
pub(super) const THE_PAPER: &str = "the paper";
pub(super) const ANYWHERE: Place = Place { f: None, clients: None, bytes: None, variant: None };

pub(super) fn names(protocols: &[&str]) -> Vec<String> {
    protocols.iter().map(|&name| name.to_owned()).collect()
}

pub(super) fn point(f: u8, clients: usize, bytes: (usize, usize)) -> Point {
    Point { f, clients, request_bytes: bytes.0, reply_bytes: bytes.1, variant: None }
}

pub(super) fn claim(what: impl Into<Cow<'static, str>>, said: &'static str, ours: Ours) -> Claim {
    Claim { what: what.into(), said, ours }
}
