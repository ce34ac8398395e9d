//! Under which names the admin port may be asked.
//!
//! A page from anywhere can give its own name the replica's address, and then its reader's browser takes the admin port
//! for that page's own server and shows it the answers. Such a request still says the page's name in `Host`. An address
//! in that place cannot lead elsewhere, nor can `localhost`; other names are those that the operator chose.

use std::net::{IpAddr, Ipv6Addr};

/// Whether a value of `Host` is an address, `localhost` or the name in the configuration; whatever the port.
pub(super) fn is_own(host: &str, name: &str) -> bool {
    if let Some(rest) = host.strip_prefix('[') {
        let parts = rest.split_once(']');
        return parts.is_some_and(|(address, port)| address.parse::<Ipv6Addr>().is_ok() && is_port(port));
    }
    let (host, port) = host.find(':').map_or((host, ""), |colon| host.split_at(colon));
    let is_known =
        host.parse::<IpAddr>().is_ok() || ["localhost", name].iter().any(|own| host.eq_ignore_ascii_case(own));
    is_known && is_port(port)
}

/// Nothing, or a colon and digits.
fn is_port(text: &str) -> bool {
    text.is_empty() || text.strip_prefix(':').is_some_and(|digits| digits.bytes().all(|byte| byte.is_ascii_digit()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses_and_known_names_are_taken() {
        for host in ["127.0.0.1", "10.0.0.1:9100", "[::1]", "[::1]:80", "localhost", "LocalHost:1", "r0.example:9100"] {
            assert!(is_own(host, "R0.example"), "{host}");
        }
        for host in [
            "",
            ":80",
            "evil.example",
            "localhost.evil.example",
            "127.0.0.1.evil.example",
            "127.0.0.1:80@evil.example",
            "::1",
            "[::1",
            "[::1]evil",
            "[127.0.0.1]",
            "r0.example.",
            "r0",
            "127.0.0.1 evil.example",
            "[::1%eth0]",
        ] {
            assert!(!is_own(host, "r0.example"), "{host}");
        }
    }
}
