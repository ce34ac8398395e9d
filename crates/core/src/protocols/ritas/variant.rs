//! What a stack may do in several ways.

use crate::cluster::{Coin, Vects};

/// How a stack differs from the thesis', or not.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Variant {
    /// ECHO, READY and vectors repeat long values, as in the thesis.
    pub repeats: bool,
    /// How VECT is broadcast.
    pub vects: Vects,
    /// What binary consensus tosses, and which one it is therefore.
    pub coin: Coin,
    /// Bytes of messages that a round of atomic broadcast delivers, if it delivers more than one.
    pub round_bytes_max: usize,
    /// After a round of atomic broadcast that delivered anything a process begins the next one by itself only once the
    /// layer above says that it has rested.
    pub rests: bool,
}

impl Default for Variant {
    fn default() -> Self {
        Self {
            repeats: false,
            vects: Vects::default(),
            coin: Coin::default(),
            round_bytes_max: usize::MAX,
            rests: false,
        }
    }
}
