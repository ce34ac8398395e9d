//! What tests of whole clusters share: a network that does what the test says, and golden scripts played on it.

pub(crate) mod net;
pub(crate) mod stage;
