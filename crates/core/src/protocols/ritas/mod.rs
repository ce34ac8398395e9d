//! RITAS (Moniz, *Randomized Intrusion-Tolerant Asynchronous Services*, 2006): agreement without leaders, clocks or
//! signatures.
//!
//! # What it is for
//! PBFT, and all that falls back to it, stops while the network is slower than its timers. RITAS has none that matter:
//! it flips coins instead, and lives in a network that delays messages as it likes. Each layer is a machine in a file
//! of its own, which opens with its steps and arguments.
//!
//! | layer | gives | rests on |
//! |---|---|---|
//! | [`atomic_broadcast`] | the same messages in the same order everywhere | multi-valued consensus, reliable broadcast |
//! | [`vector_consensus`] | a vector with the values of n − f processes | multi-valued consensus, reliable broadcast |
//! | [`multi_valued_consensus`] | one value, or ⊥ where proposals differ | binary consensus, reliable broadcast |
//! | [`binary_consensus`] | one bit | reliable broadcast, coins |
//! | [`common_coin_consensus`] | one bit, sooner where the network is against it | the channel, a common coin |
//! | [`reliable_broadcast`] | the same value everywhere, or nowhere | the channel |
//! | [`echo_broadcast`] | no two different values | the channel |
//! | [`channel`] | what was said is heard | links that lose frames |
//!
//! [`group`] is a process that has all of them and nothing else; [`order`] makes them a total order for a service.
//!
//! [`stack`] has all instances of a process, by [`path`], and [`decision`] ends those that others may still need.

mod admission;
pub mod atomic_broadcast;
pub mod binary_consensus;
mod bounds;
mod catching_up;
pub mod channel;
pub mod common_coin_consensus;
pub mod decision;
pub mod echo_broadcast;
pub mod group;
pub mod message;
pub mod multi_valued_consensus;
pub mod order;
mod pace;
pub mod path;
mod recovery;
pub mod reliable_broadcast;
pub mod scope;
pub mod stack;
pub mod statements;
mod tally;
#[cfg(test)]
mod tests;
pub mod variant;
pub mod vector_consensus;
pub mod window;
mod wiring;
