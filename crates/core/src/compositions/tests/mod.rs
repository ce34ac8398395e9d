//! Compositions on a network that does what the test says: what they cost, what they keep, and whole stories.

mod amnesia;
mod attacks;
mod closing;
mod conformance;
mod costs;
mod dissent;
mod divergence;
mod durability;
mod effects;
mod explore;
mod load;
mod presence;
mod queries;
mod robust;
mod run;
mod script;

#[test]
fn every_script_goes_as_written() {
    crate::testing::stage::play_all(concat!(env!("CARGO_MANIFEST_DIR"), "/src/compositions/scripts"), 4);
}
