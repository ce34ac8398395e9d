//! Compositions on a network that does what the test says: what they cost, what they keep, and whole stories.

mod conformance;
mod costs;
mod run;
