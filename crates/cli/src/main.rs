//! The `bezant` command.
fn main() {}
