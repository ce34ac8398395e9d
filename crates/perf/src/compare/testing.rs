//! Measurements that were never made, for tests.

use super::sweep::{Measurement, Point, Results};
use crate::figures::{Figures, Settings};
use crate::load::Measured;
use std::time::Duration;

/// Round, protocol, clients and throughput of each; f = 1, 8-byte operations and results.
pub(crate) fn results(measured: &[(usize, &'static str, usize, f64)]) -> Results {
    Results { measurements: measured.iter().map(measurement).collect() }
}

fn measurement(&(round, protocol, clients, ops_per_s): &(usize, &'static str, usize, f64)) -> Measurement {
    let point = Point { f: 1, clients, request_bytes: 8, reply_bytes: 8, variant: None };
    let settings = Settings {
        workload: "null",
        protocol,
        n: 4,
        f: 1,
        clients,
        outstanding: 1,
        request_bytes: 8,
        reply_bytes: 8,
        durability: "memory",
        channel: "plain",
        auth: "mac",
        joined: false,
        coin: "none",
    };
    let nothing = Measured { elapsed: Duration::from_secs(1), ..Measured::default() };
    let figures = Figures { ops_per_s, ..Figures::new(settings, &nothing, &[], &[]) };
    Measurement { round, protocol: protocol.to_owned(), point, figures }
}
