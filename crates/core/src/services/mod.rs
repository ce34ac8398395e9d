//! Services that ship.
//!
//! | service | for |
//! |---|---|
//! | [`Null`] | benchmarks: the client chooses the sizes of request and reply |
//! | [`Counter`] | reading: the smallest whole service (`docs/service.md`) |
//! | [`Kv`] | use: an ordered map from bytes to bytes |

mod counter;
pub mod kv;
mod null;

pub use counter::Counter;
pub use kv::Kv;
pub use null::{Null, REPLY_BYTES_MAX as NULL_REPLY_BYTES_MAX};
