//! Connections that are closed as soon as they stand, as fast as they can be made: what anybody can do who reaches a
//! port, without a key.

use crate::failure::{Failure, Result};
use std::net::{SocketAddr, TcpStream};
use std::sync::atomic::{AtomicU64, Ordering};
use std::thread;
use std::time::Duration;

/// How long one connection may take to be made.
const CONNECT_MAX: Duration = Duration::from_secs(1);

/// What a flood came to.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Flood {
    /// Connections that stood.
    pub(super) made: u64,
    /// Those that were refused, or were not made in time.
    pub(super) failed: u64,
}

/// Floods these addresses in turn, from so many threads, until it is over. A connection that is under way then is
/// waited for, one second at most.
pub(super) fn flood(addresses: &[SocketAddr], threads: usize, is_over: impl Fn() -> bool + Sync) -> Result<Flood> {
    if addresses.is_empty() {
        return Err(Failure::usage("there is no address to flood."));
    }
    let (made, failed) = (AtomicU64::new(0), AtomicU64::new(0));
    thread::scope(|scope| {
        for first in 0..threads {
            let (made, failed, is_over) = (&made, &failed, &is_over);
            scope.spawn(move || {
                for address in addresses.iter().cycle().skip(first % addresses.len()) {
                    if is_over() {
                        break;
                    }
                    let connected = TcpStream::connect_timeout(address, CONNECT_MAX);
                    let count = if connected.is_ok() { made } else { failed };
                    count.fetch_add(1, Ordering::Relaxed);
                }
            });
        }
    });
    Ok(Flood { made: made.into_inner(), failed: failed.into_inner() })
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::net::{Ipv4Addr, TcpListener};
    use std::time::Instant;

    #[test]
    fn a_flood_ends_in_time_and_counts_what_it_did() {
        let open = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).unwrap();
        let closed = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).unwrap().local_addr().unwrap();
        let begin = Instant::now();
        let end = begin + Duration::from_millis(50);
        let flood = flood(&[open.local_addr().unwrap(), closed], 2, || Instant::now() >= end).unwrap();
        assert!(flood.made > 0 && flood.failed > 0, "{flood:?}");
        assert!(begin.elapsed() < Duration::from_secs(5));
    }

    #[test]
    fn nobody_is_flooded_by_mistake() {
        assert!(flood(&[], 1, || true).is_err());
    }
}
