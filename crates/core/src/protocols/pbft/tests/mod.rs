//! The paper's sentences as tests, its costs as equations, and whole stories as golden scripts.

mod checkpoints;
mod costs;
mod forging;
mod net;
mod normal;
mod recovery;
mod requests;
mod scripts;
mod view_change;
