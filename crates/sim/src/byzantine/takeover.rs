//! Takeover (prac-F28): a client that holds another's key joins with it whenever it can, and so does the other. Neither
//! can be told from the other; what can be had is that each keeps its session for a while, and that both are told.

use super::ClientBehaviour;

/// What it says is honest; that it says it is not. Its host gives it the other's key.
#[derive(Debug)]
pub(super) struct Takeover;

impl ClientBehaviour for Takeover {}
