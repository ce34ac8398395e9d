//! Sockets: one readiness loop, authenticated links, bounded buffers.
//!
//! A [`Hub`] owns every socket of one thread. A frame is a `u32` little-endian length and that many bytes. System calls
//! are what a request costs here, so each pass reads each readable socket once, in a large gulp, and writes each
//! socket once, with everything that the pass produced for it.
//!
//! | question | module |
//! |---|---|
//! | who is at the other end, and how do we know? | [`handshake`] |
//! | how do bytes become frames? | `frame` |
//! | one socket with its buffers | `link` |
//! | how is it hidden from others? | `tls` |
//! | does the other side still hear? | `watch` |
//! | which socket next, and for how long? | `hub` |
//! | what was a frame worth? | `worth` |
//! | who connects to whom, and when again? | [`dialer`] |
//! | who was refused, and why? | `refusals` |
//!
//! What nobody can do: an unauthenticated connection holds [`handshake::HANDSHAKE_BYTES_MAX`] bytes (and what TLS
//! itself holds) and lives [`HANDSHAKE_SECONDS_MAX`] seconds. There are at most [`UNAUTHENTICATED_MAX`] of them per
//! port, and the newest pushes the oldest out after a second. Connections that come to nothing, however many, cost a
//! part of a core that has a bound (`hub/debt.rs`). A flooding client shares with all other clients what one replica
//! gets alone, and keeps no replica at the door that dials anew. Whoever sends what is of no use, replica or client, is
//! read last and little (`hub/rations.rs`). When all places for clients are taken, or all their buffers full, whoever
//! has the most gives way, and a frame that has begun has to go on. A peer that never reads fills its own queue and
//! loses frames (a replica: the protocol sends again) or its connection (a client). A link that is silent although it
//! was spoken to is asked, closed, and dialled anew.

pub mod clock;
mod close_reason;
pub mod dialer;
mod frame;
pub mod handshake;
mod hub;
mod link;
pub mod metrics;
mod output;
mod pace;
mod port;
mod refusals;
mod tls;
mod watch;
mod worth;

pub use clock::Clock;
pub use close_reason::CloseReason;
pub use dialer::{Dialer, Target};
pub use handshake::{LinkRefusal, Peer, ServiceBuild};
pub use hub::{Bounds, Cause, Channel, Event, Hub, HubOptions, Quarantine};
pub use link::LinkId;
pub use metrics::{NetMetrics, Traffic};
pub use output::Lane;
pub use port::Port;
pub use refusals::{REFUSED_ADDRESSES_MAX, Refusals, Refused};
pub use worth::Worth;

use bezant_core::wire::FRAME_BYTES_MAX;

/// How long a connection may stay unauthenticated, in seconds.
pub const HANDSHAKE_SECONDS_MAX: u64 = 5;

/// Accepted connections that are not authenticated yet, per port.
pub const UNAUTHENTICATED_MAX: usize = 1024;

/// Client connections of one replica.
pub const CLIENT_CONNECTIONS_MAX: usize = 16_384;

/// Bytes taken in one pass from one replica, and from all clients together: with 3f replicas that is the weight 3f : 1
/// between replicas and clients.
pub const PASS_BYTES_MAX: usize = 1 << 20;

/// Frames taken in one pass from one replica, and from all clients together: small frames cost a MAC each.
pub const PASS_FRAMES_MAX: usize = 4096;

/// Time spent in one pass on the frames of one replica, and on those of all clients together, in milliseconds: frames
/// that cost a signature each must not keep everybody else waiting.
pub const PASS_MS_MAX: u64 = 100;

/// The same for one client connection, while others wait for their turn.
pub const CLIENT_VISIT_MS_MAX: u64 = 10;

/// The same for all handshakes of those who have come.
pub const SHAKING_PASS_MS_MAX: u64 = 20;

/// Bytes taken in one pass from one client connection.
pub const CLIENT_PASS_BYTES_MAX: usize = 128 << 10;

/// Bytes waiting to be written to one replica; frames beyond it are dropped and counted.
pub const REPLICA_QUEUE_BYTES_MAX: usize = 64 << 20;

/// Bytes waiting to be written to one client; a client that reads so slowly is disconnected.
pub const CLIENT_QUEUE_BYTES_MAX: usize = 2 * FRAME_BYTES_MAX;

/// Bytes in the buffers of all client connections together, in either direction, beyond [`CLIENT_FAIR_BYTES`] on each.
/// When there are more, the client that holds the most loses the connection on which it holds the most. Those whom the
/// cluster file does not name have half of it, together.
pub const CLIENT_BUFFERS_BYTES_MAX: usize = 256 << 20;

/// What a client connection may always buffer.
pub const CLIENT_FAIR_BYTES: usize = 4 << 10;

/// How long the other side may be silent after something was sent to it before it is asked whether it hears, in
/// milliseconds.
pub const SILENT_MS_MAX: u64 = 500;

/// How long the answer may take, in milliseconds. A link on which it takes longer is closed: a new one, whose handshake
/// takes several such answers within [`HANDSHAKE_SECONDS_MAX`], is better or cannot be had.
pub const ANSWER_MS_MAX: u64 = 4_000;

/// How long a link over which a frame comes slowly is left alone, at most, in milliseconds.
pub const REST_MS_MAX: u64 = 2;

/// Links that are left alone at a time: all there may be, and some that are gone, which count until their time is up.
pub const RESTING_MAX: usize = 32 << 10;

/// How long a frame that has begun to come is watched, in seconds.
pub const FRAME_WINDOW_SECONDS: u64 = 10;

/// How many bytes have to come meanwhile, if the frame is not whole by then.
pub const FRAME_WINDOW_BYTES: u64 = 4 << 10;
