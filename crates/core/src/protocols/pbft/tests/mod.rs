//! Attacks, mishaps and costs of PBFT as tests. Its paper's sentences and the golden scripts are in `paper_test`.

mod bodies;
mod checkpoints;
mod costs;
pub(super) mod forging;
mod normal;
mod recovery;
mod requests;
mod view_change;
mod whole_results;
