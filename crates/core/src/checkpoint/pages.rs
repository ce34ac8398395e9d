//! Pages.
use crate::digest::Digest;
/// placeholder
pub const LEVELS: u32 = 4;
/// placeholder
pub const NODE_CHILDREN: usize = 64;
/// placeholder
#[derive(Clone, Copy, Debug)]
pub struct NodeId;
/// placeholder
#[derive(Clone, Debug, Default)]
pub struct Tree;
impl Tree {
    /// placeholder
    pub fn root(&self) -> Digest {
        Digest::ZERO
    }
}
