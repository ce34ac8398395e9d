//! What a statement may cost: steps of SQLite's virtual machine, bytes that it goes through, and memory.
//!
//! A step takes some fifty nanoseconds, unless it goes through a megabyte, which no limit of SQLite's forbids: `instr`
//! holds each place of one text against another, `||` copies, a comparison reads. So bytes are counted as well, and
//! [`STEP_BYTES`] of them count as one step. Memory is bounded for each request, since SQLite can only bound it for
//! the process, where it depends on everybody else.
//!
//! What a request costs depends on the past a little: on what SQLite has kept of the schema, and on what is in its
//! buffers. What is refused may not. So what comes above half of a bound is executed once more, on a database that has
//! just been opened, which is the same everywhere; and only then a bound holds, to the byte
//! ([`Near`](crate::engine::Near)). What counts here is not the request alone but all that was done since the database
//! was opened, reads included: whatever SQLite has kept it made within that, so that a request costs elsewhere at most
//! both together. Besides,
//! * a statement that is kept prepared costs what it cost to prepare it ([`crate::engine`]);
//! * pages in the cache do not count;
//! * plans do not depend on the values of parameters ([`crate::profile`]).
//!
//! The meter itself is compiled into SQLite: `include/bezant_meter.h` says what it counts, and how.

#![allow(unsafe_code)]

use std::ffi::{c_int, c_longlong};

/// Bytes that a step pays for.
pub(crate) const STEP_BYTES: i64 = 64;

/// The C side has the same layout, with the same words.
#[repr(C)]
struct Meter {
    bytes: c_longlong,
    memory: c_longlong,
    least: c_longlong,
    price: c_longlong,
    runs: c_int,
    pages: c_int,
    refused: c_int,
    depth: c_int,
}

unsafe extern "C" {
    fn bezant_meter_of_thread() -> *mut Meter;
}

/// Looks at this thread's meter, or sets it.
fn with<T>(act: impl FnOnce(&mut Meter) -> T) -> T {
    // SAFETY: it is the thread's own and lives as long as the thread; `act` neither calls SQLite nor comes here again.
    act(unsafe { &mut *bezant_meter_of_thread() })
}

/// What a request may still cost.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Allowance {
    /// Bytes that it may go through, [`STEP_BYTES`] for a step; below zero: it took more.
    pub(crate) bytes: i64,
    /// Bytes that it may allocate.
    pub(crate) memory: i64,
}

impl Allowance {
    /// All that one request may cost.
    pub(crate) const fn of(limits: &Limits) -> Self {
        Self { bytes: limits.steps as i64 * STEP_BYTES, memory: limits.memory as i64 }
    }

    /// Lets SQLite do something while the meter runs.
    pub(crate) fn measure<T>(&mut self, act: impl FnOnce() -> T) -> (T, Measured) {
        with(|meter| {
            *meter = Meter {
                bytes: self.bytes,
                memory: self.memory,
                least: self.memory,
                price: 0,
                runs: 1,
                pages: 0,
                refused: 0,
                depth: 0,
            }
        });
        let stop = Stop;
        let result = act();
        drop(stop);
        with(|meter| {
            let measured = Measured {
                bytes: self.bytes - meter.bytes,
                kept: self.memory - meter.memory,
                least: meter.least,
                refused: meter.refused != 0,
            };
            (self.bytes, self.memory) = (meter.bytes, meter.memory);
            (result, measured)
        })
    }

    /// Whether more was taken than there was.
    pub(crate) const fn is_spent(&self) -> bool {
        self.bytes < 0
    }
}

/// What requests may cost, for all replicas alike.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Limits {
    /// Steps of SQLite's virtual machine for a request. Bytes that a step goes through count as steps of their own,
    /// 64 each.
    pub steps: u64,
    /// Bytes that SQLite may allocate for a request, without the pages in its cache; and for preparing a statement.
    pub memory: u64,
}

impl Default for Limits {
    /// About half a second.
    fn default() -> Self {
        Self { steps: 10_000_000, memory: 256 << 20 }
    }
}

/// Lets SQLite do something on this thread that is no request, and says whether it kept within these limits. Steps
/// count only where whoever asks counts them. What SQLite says of what was too much is not to be told.
pub fn within<T>(limits: &Limits, act: impl FnOnce() -> T) -> (T, bool) {
    let mut left = Allowance::of(limits);
    let (value, measured) = left.measure(act);
    (value, !left.is_spent() && !measured.refused)
}

/// What a database has done since it was opened, as far as it may have kept something.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Past {
    /// Bytes gone through.
    pub(crate) bytes: i64,
    /// Bytes allocated and not given back.
    pub(crate) kept: i64,
}

/// What SQLite did while the meter ran.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Measured {
    /// Bytes gone through, steps included.
    pub(crate) bytes: i64,
    /// Bytes allocated that were not given back.
    pub(crate) kept: i64,
    /// The least memory that was left, in bytes.
    pub(crate) least: i64,
    /// It asked for more memory than there was.
    pub(crate) refused: bool,
}

/// Stops the meter, after a panic too.
struct Stop;

impl Drop for Stop {
    fn drop(&mut self) {
        with(|meter| meter.runs = 0);
    }
}

/// Takes from what the running statement may cost; whether it must end. Without a meter nothing ever must.
pub(crate) fn pay(bytes: i64) -> bool {
    with(|meter| {
        if meter.runs == 0 {
            return false;
        }
        meter.bytes -= bytes;
        meter.bytes < 0 || meter.refused != 0
    })
}

/// Takes from the memory that the running statement may hold, beside what SQLite allocates itself; whether there is no
/// more, and the statement must end. What was taken is given back by [`release`], refused or not.
pub(crate) fn hold(bytes: i64) -> bool {
    with(|meter| {
        if meter.runs == 0 {
            return false;
        }
        meter.refused |= c_int::from(bytes > meter.memory);
        meter.memory -= bytes;
        meter.least = meter.least.min(meter.memory);
        meter.refused != 0
    })
}

/// Lets SQLite hand out a value while the meter runs. What it allocates for that is not refused, as whoever asks cannot
/// be told; it counts all the same, and whether it was too much is known afterwards.
pub fn hand_out<T>(act: impl FnOnce() -> T) -> T {
    let before = with(|meter| std::mem::replace(&mut meter.refused, 1));
    let value = act();
    with(|meter| {
        let is_too_much = meter.runs != 0 && (meter.memory < 0 || meter.bytes < 0);
        meter.refused = c_int::from(before != 0 || is_too_much);
    });
    value
}

/// Gives memory back.
pub(crate) fn release(bytes: i64) {
    with(|meter| meter.memory += if meter.runs == 0 { 0 } else { bytes });
}

/// Whether what runs was refused memory. What SQLite says of it then is not what is told.
pub(crate) fn has_refused() -> bool {
    with(|meter| meter.runs != 0 && meter.refused != 0)
}
