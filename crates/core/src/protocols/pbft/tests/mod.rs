//! The paper's sentences as tests, its costs as equations, and whole stories as golden scripts.

mod bodies;
mod checkpoints;
mod costs;
mod forging;
mod normal;
mod recovery;
mod requests;
mod view_change;

#[test]
fn every_script_goes_as_written() {
    crate::testing::stage::play_all(concat!(env!("CARGO_MANIFEST_DIR"), "/src/protocols/pbft/scripts"), 6);
}
