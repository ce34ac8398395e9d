//! Ports for the processes of one test.

use crate::failure::{Failure, Result};
use std::net::TcpListener;

/// The first of `count` neighbouring ports that are free now. Below the range from which systems take the ports of
/// outgoing connections, so that none of those slips in between.
pub(super) fn free_ports(count: u16) -> Result<u16> {
    const FIRST: u16 = 12_000;
    const TRIES: u16 = 400;
    let offset = (std::process::id() % u32::from(TRIES)) as u16;
    let bases = (0..TRIES).map(|at| FIRST + (at + offset) % TRIES * count);
    let is_free = |port: u16| TcpListener::bind(("127.0.0.1", port)).is_ok();
    let mut free = bases.filter(|base| (*base..base + count).all(is_free));
    free.next().ok_or_else(|| Failure::new(format!("no {count} neighbouring ports are free")))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn free_ports_can_be_bound() {
        let base = free_ports(4).expect("some are free");
        for port in base..base + 4 {
            TcpListener::bind(("127.0.0.1", port)).expect("it was free");
        }
    }
}
