//! What the system counts: bytes of interfaces, and time of processors.

use super::plan::Link;
use super::tools::within;
use crate::failure::{Failure, Result};
use bezant_perf::laboratory::{Processors, Snapshot, Traffic};
use std::fs;

/// Interfaces of the calling thread's network namespace.
const INTERFACES: &str = "/proc/thread-self/net/dev";
/// The first line: all processors.
const PROCESSORS: &str = "/proc/stat";
/// In a line of interfaces: bytes received, and bytes sent.
const COLUMNS: [usize; 2] = [0, 8];

/// All of it, now. Both ends of a link count the same, so that one look at the switch shows all links at one moment.
pub(super) fn snapshot(switch: &str, links: &[Link]) -> Result<Snapshot> {
    let read = |path: &str| fs::read_to_string(path).map_err(|error| Failure::failed(format!("{path}: {error}.")));
    let interfaces = within(switch, || read(INTERFACES))?;
    let missing = |link: &Link| Failure::failed(format!("the switch has lost {}'s link.", link.node));
    let traffic = links.iter().map(|link| traffic(&interfaces, &link.port).ok_or_else(|| missing(link)));
    let traffic = traffic.collect::<Result<_>>()?;
    let processors =
        processors(&read(PROCESSORS)?).ok_or_else(|| Failure::failed(format!("{PROCESSORS} is of another form.")))?;
    Ok(Snapshot { traffic, processors })
}

/// What the switch sends goes to the node.
fn traffic(interfaces: &str, port: &str) -> Option<Traffic> {
    let of_port = |line: &str| line.trim_start().strip_prefix(port)?.strip_prefix(':').map(str::to_owned);
    let counts = interfaces.lines().find_map(of_port)?;
    let count = |column: usize| counts.split_whitespace().nth(column)?.parse().ok();
    let [out, into] = COLUMNS.map(count);
    Some(Traffic { into: into?, out: out? })
}

/// Of the columns user, nice, system, idle, iowait, irq, softirq and steal, two are without work.
fn processors(text: &str) -> Option<Processors> {
    let mut words = text.lines().next()?.strip_prefix("cpu ")?.split_whitespace();
    let times: Vec<u64> = words.by_ref().take(8).map(str::parse).collect::<std::result::Result<_, _>>().ok()?;
    let total = times.iter().sum();
    let idle = times.get(3)? + times.get(4)?;
    Some(Processors { busy: total - idle, total })
}

#[cfg(test)]
mod tests {
    use super::*;

    const TABLE: &str = "Inter-|   Receive                            |  Transmit\n \
        face |bytes packets errs drop fifo frame compressed multicast|bytes packets errs\n    \
        lo:       0       0    0    0    0     0          0         0        0       0    0\n  \
        c-1: 1000      10    0    0    0     0          0         0     2000      20    0\n \
        c-10: 5 1 0 0 0 0 0 0 6 1 0\n";

    #[test]
    fn bytes_are_seen_from_the_node() {
        assert_eq!(traffic(TABLE, "c-1"), Some(Traffic { into: 2000, out: 1000 }));
        assert_eq!(traffic(TABLE, "c-10"), Some(Traffic { into: 6, out: 5 }));
        assert_eq!(traffic(TABLE, "c"), None);
    }

    #[test]
    fn waiting_is_not_work() {
        let text = "cpu  10 1 20 100 30 2 3 4 0 0\ncpu0 1 1 1 1 1 1 1 1 0 0\n";
        assert_eq!(processors(text), Some(Processors { busy: 40, total: 170 }));
        assert_eq!(processors("intr 1 2 3"), None);
    }
}
