//! The protocols, side by side. Each folder opens with the paper: what it is for, numbered steps, why it is safe,
//! where we deviate and why, and what it costs.

pub mod backup;
pub mod batch;
pub mod pbft;
pub mod total_order;
