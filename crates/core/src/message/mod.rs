//! What clients and replicas say whatever the protocol: requests, what came of them, and replies; and what every
//! message says of itself is [`crate::spoken`].
//!
//! What the replicas of one protocol say to one another, and to its clients, is in that protocol's folder. The list of
//! everything that travels is [`crate::registry::Message`].

pub mod bundle;
mod outcome;
mod reply;
mod request;

pub use outcome::{Outcome, Refusal};
pub use reply::{Firmness, RESULT_BYTES_FULL_MAX, Reply};
pub use request::{Authentication, REQUESTS_ROOT_KIND, Request, Vouched};
pub(crate) use request::{Form, Manner, are_of_distinct_clients};
