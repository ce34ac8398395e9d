//! The protocols, side by side. Each folder opens with the paper: what it is for, numbered steps, why it is safe,
//! where we deviate and why, and what it costs.

pub mod aardvark;
pub mod backup;
pub mod chain;
pub mod pbft;
pub(crate) mod pool;
pub mod quorum;
pub mod ring_fast;
pub mod ring_resilient;
pub mod ritas;
#[cfg(test)]
pub(crate) mod sample;
pub mod speculative;
pub mod total_order;
pub mod unreplicated;
pub mod zlight;
