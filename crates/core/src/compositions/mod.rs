//! Compositions: schedules of abortable instances over one estate (`docs/papers/abstract.md`).
//!
//! A replicated state machine is an abortable instance that never aborts, so that every configuration, plain PBFT
//! included, is a schedule:
//!
//! | name | schedule |
//! |---|---|
//! | `pbft` | `backup(pbft)` without end |
//! | `quorum`, `zlight`, `chain` | that protocol, `backup(pbft)` |
//! | `azyzzyva` | `zlight`, `backup(pbft)` |
//! | `aliph` | `quorum`, `chain`, `backup(pbft)` |
//! | `r-aliph` | `backup(aardvark)`, `quorum`, `chain` |
//! | `ring` | `ring-fast`, `ring-resilient`, `backup(pbft)` |
//! | a list of the operator's own | as written, e.g. `zlight, chain, backup(pbft)` or `quorum, ring-resilient` |
//! | `unreplicated` | one server without any protocol, the yardstick of every benchmark |

mod ahead;
mod amnesia;
mod composite;
mod early;
mod invariants;
mod jump;
mod looking;
mod missing;
mod objection;
pub mod presence;
mod recovery;
mod resumed;
pub mod robust;
mod running;
mod switch;
#[cfg(test)]
mod tests;

pub(crate) use composite::Composite;
pub(crate) use early::ALL_MAX as EARLY_MAX;
pub use objection::objection;
pub(crate) use running::Running;
