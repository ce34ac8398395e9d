//! The one place that names all protocols: what travels, and what runs.

mod message;
mod request;

pub use message::{Incoming, Message};
