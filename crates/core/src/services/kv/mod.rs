//! An ordered map from bytes to bytes.
//!
//! Entries lie in [`BUCKETS`] buckets by a hash of the key. A bucket is one page, its entries in the order of their
//! keys, and only the buckets that were written since the last checkpoint are looked at and encoded again. Beside them
//! all keys are kept in order, for ranges, and those with a [deadline](Until) in the order in which they are due. A
//! bucket that would not fit in a page, or a service that would exceed [`TOTAL_BYTES_MAX`], refuses the write with
//! [`KvResult::Full`], which is the same at every replica.

mod bucket;
mod deadline;
mod expiry;
mod operation;
mod parts;
mod result;
mod store;
#[cfg(test)]
mod tests;

pub use bucket::BUCKETS;
pub use deadline::{DEADLINE_MS_MAX, DeadlineCondition, Until};
pub use operation::{Condition, KvOperation};
pub use parts::{KEY_BYTES_MAX, LIST_MAX, RESULT_BYTES_MAX, VALUE_BYTES_MAX};
pub use result::KvResult;
pub use store::{Kv, TOTAL_BYTES_MAX};
