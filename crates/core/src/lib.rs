//! Bezant's protocol machines.
//!
//! Everything here is pure: a machine takes the time, one input and an outbox, changes its own state, and appends
//! effects in the order in which the host must carry them out. There is no socket, clock, thread, file or random
//! source in this crate, so that the simulator and the runtime drive exactly the same code.
//!
//! Where to look:
//!
//! | question | module |
//! |---|---|
//! | what is a machine, an input, an effect? | [`machine`] |
//! | how many replicas, which thresholds? | [`replicas`] |
//! | which bounds? | [`cluster`] |
//! | how do bytes look on the wire? | [`wire`], [`message`] |
//! | who said this, and whom does that convince? | [`auth`] |
//! | what does an application implement? | [`service`], [`services`] |
//! | how is state kept, digested, rolled back and transferred? | [`estate`], [`checkpoint`] |
//! | exactly once? | [`clients`] |
//! | what has an instance logged that may still be taken back? | [`history`] |
//! | the protocols | [`protocols`] |
//! | how do instances follow one another? | [`switching`], [`compositions`] |
//! | the replica and the client as whole machines | [`replica`], [`client`] |
#![no_std]
#![forbid(unsafe_code)]

#[doc(hidden)]
pub extern crate alloc;

pub mod auth;
pub mod batch;
pub mod checkpoint;
pub mod client;
pub mod clients;
pub mod cluster;
pub mod compositions;
pub mod digest;
pub mod dissent;
pub mod estate;
pub mod history;
pub mod ids;
pub mod joining;
pub mod machine;
pub mod members;
pub mod message;
pub mod notice;
pub mod protocols;
pub mod registry;
pub mod rejection;
pub mod replica;
pub mod replicas;
pub mod schedule;
pub mod service;
pub mod services;
mod shares;
pub mod spoken;
pub mod stop;
pub mod switching;
#[cfg(test)]
mod testing;
pub mod time;
mod vouching;
pub mod wire;

/// The README's example, compiled and run with the other examples.
#[cfg(doctest)]
#[doc = include_str!("../../../README.md")]
struct Readme;
