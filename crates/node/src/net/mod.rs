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
//! | which socket next, and for how long? | `hub` |
//! | who connects to whom, and when again? | [`dialer`] |
//!
//! What nobody can do: an unauthenticated connection holds [`handshake::HANDSHAKE_BYTES_MAX`] bytes (and what TLS
//! itself holds) and lives [`HANDSHAKE_SECONDS_MAX`] seconds. There are at most [`UNAUTHENTICATED_MAX`] of them per
//! port, and the newest pushes the oldest out after a second. A flooding client shares with all other clients what
//! one replica gets alone. When all places for clients are taken, whoever has the most gives one up. A peer that
//! never reads fills its own queue and loses frames (a replica: the protocol sends again) or its connection (a
//! client).

pub mod clock;
pub mod dialer;
mod frame;
pub mod handshake;
mod hub;
mod link;
pub mod metrics;
mod output;
mod tls;

pub use clock::Clock;
pub use dialer::{Dialer, Target};
pub use handshake::{LinkRefusal, Peer, ServiceBuild};
pub use hub::{Bounds, Channel, Event, Hub, HubOptions, Port};
pub use link::{CloseReason, LinkId};
pub use metrics::{NetMetrics, Traffic};
pub use output::Lane;

use bezant_core::message::FRAME_BYTES_MAX;

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

/// Bytes taken in one pass from one client connection.
pub const CLIENT_PASS_BYTES_MAX: usize = 128 << 10;

/// Bytes waiting to be written to one replica; frames beyond it are dropped and counted.
pub const REPLICA_QUEUE_BYTES_MAX: usize = 64 << 20;

/// Bytes waiting to be written to one client; a client that reads so slowly is disconnected.
pub const CLIENT_QUEUE_BYTES_MAX: usize = 2 * FRAME_BYTES_MAX;

/// Bytes in the buffers of all client connections together, in either direction. A connection that would exceed it
/// is closed if it holds more than [`CLIENT_FAIR_BYTES`] itself.
pub const CLIENT_BUFFERS_BYTES_MAX: usize = 256 << 20;

/// What a client connection may always buffer.
pub const CLIENT_FAIR_BYTES: usize = 4 << 10;
