//! Bezant's gateways: other systems' protocols in front of the replicated service.
//!
//! A gateway is a client: it collects the replies of the replicas, believes what enough of them say, and then speaks
//! plain Redis. So it belongs beside the application, on its host: whoever can reach a gateway on someone else's host
//! must trust that host. [`redis`] is here, PostgreSQL has a crate
//! of its own; [`acceptor`] has the sockets of both.

pub mod acceptor;
pub mod base64;
mod door;
mod endpoint;
mod local;
pub mod password;
mod patience;
pub mod redis;
mod store;
pub mod stream;
pub mod tls;
pub mod unix;

pub use door::Door;
pub use endpoint::{Access, Endpoint};
pub use local::Local;
pub use password::Password;
pub use store::{Store, StoreError};
