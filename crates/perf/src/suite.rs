//! The settings of the published table.
//!
//! All combinations would take hours and say little more: every load with every kind of authentication at the
//! smallest size; larger sizes and the other kinds of channel and durability each at some of the loads.

/// One row's settings, as words of the command line.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Point {
    /// Connections, and requests under way on each.
    pub load: (usize, usize),
    /// Bytes of operation and result.
    pub bytes: (usize, usize),
    /// `memory` or `sync`.
    pub durability: &'static str,
    /// `plain` or `tls`.
    pub channel: &'static str,
    /// `mac`, `hybrid` or `signature`.
    pub auth: &'static str,
}

const SMALL: usize = 8;
const BIG: usize = 4096;

/// Every row.
pub fn points() -> Vec<Point> {
    let base = Point { load: (1, 1), bytes: (SMALL, SMALL), durability: "memory", channel: "plain", auth: "mac" };
    let mut points = Vec::new();
    for auth in ["mac", "hybrid", "signature"] {
        for load in [(1, 1), (40, 1), (4, 10), (200, 1), (20, 10)] {
            points.push(Point { load, auth, ..base });
        }
    }
    for bytes in [(BIG, SMALL), (SMALL, BIG), (BIG, BIG)] {
        for (load, auth) in [((40, 1), "mac"), ((200, 1), "mac"), ((200, 1), "hybrid")] {
            points.push(Point { load, bytes, auth, ..base });
        }
    }
    for (durability, channel) in [("memory", "tls"), ("sync", "plain"), ("sync", "tls")] {
        for (load, auth) in [((1, 1), "hybrid"), ((40, 1), "hybrid"), ((200, 1), "mac"), ((200, 1), "hybrid")] {
            points.push(Point { load, durability, channel, auth, ..base });
        }
    }
    points
}
