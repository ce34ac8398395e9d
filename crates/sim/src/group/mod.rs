//! The layers of RITAS alone: groups of processes that broadcast and agree, without a service, clients or disks.
//!
//! A whole replica takes hundreds of thousands of frames to order a few payloads, and most of what could go wrong is
//! in the layers below. So `bezant sim --layers` runs [`Group`] machines by themselves: a hundred times as many runs,
//! each with calls of every layer at once, so that instances of all kinds are under way together.
//!
//! | question | file |
//! |---|---|
//! | what does a seed decide? | `scenario.rs` |
//! | in which order do things happen, and who lies? | `world.rs` |
//! | what must be true? | `checks.rs` |
//! | how are many seeds run? | `command.rs` |
//!
//! [`Group`]: bezant_core::protocols::ritas::group::Group

mod checks;
mod command;
mod scenario;
mod world;

pub(crate) use command::run_all;
pub use scenario::{GroupOptions, GroupScenario};
pub use world::{GroupVerdict, Rounds, run};

/// Who may lie in a group: those whose lies are about statements, and who wait for nothing that a service says.
pub const ADVERSARIES: [crate::byzantine::Adversary; 7] = {
    use crate::byzantine::Adversary::{FarStatements, LopsidedStatements, Mutate, Replay, Silent, Twins, TwoFaced};
    [TwoFaced, LopsidedStatements, FarStatements, Twins, Mutate, Replay, Silent]
};
