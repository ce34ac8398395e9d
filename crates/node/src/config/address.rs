//! Addresses: where others connect to, and where a replica listens.

use std::net::{IpAddr, SocketAddr, ToSocketAddrs};
use std::str::FromStr;
use std::{fmt, io};

/// Host and port under which others reach a replica. The host is a name or an IP address, never a wildcard.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Address {
    /// A name or an IP address; IPv6 without brackets.
    pub host: String,
    /// The port, not 0.
    pub port: u16,
}

impl Address {
    /// The address, if the host is no name.
    pub(super) fn numeric(&self) -> Option<SocketAddr> {
        self.host.parse().ok().map(|ip| SocketAddr::new(ip, self.port))
    }

    /// Looks the name up. Blocks while it does.
    ///
    /// # Errors
    /// If the name is not known.
    pub fn resolve(&self) -> io::Result<SocketAddr> {
        let mut found = (self.host.as_str(), self.port).to_socket_addrs()?;
        found.next().ok_or_else(|| io::Error::new(io::ErrorKind::NotFound, format!("{self} has no address")))
    }
}

/// A host has no address that could be found.
#[derive(Debug)]
pub struct UnknownHost {
    /// Which.
    pub address: Address,
    /// Why.
    pub error: io::Error,
}

impl fmt::Display for UnknownHost {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} cannot be found: {}", self.address, self.error)
    }
}

impl std::error::Error for UnknownHost {}

/// Where these addresses are. Blocks while names are looked up.
///
/// # Errors
/// [`UnknownHost`], the first that is not known.
pub fn resolve<'a>(addresses: impl Iterator<Item = &'a Address>) -> Result<Vec<SocketAddr>, UnknownHost> {
    let unknown = |address: &Address, error| UnknownHost { address: address.clone(), error };
    addresses.map(|address| address.resolve().map_err(|error| unknown(address, error))).collect()
}

impl fmt::Display for Address {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.host.contains(':') {
            write!(f, "[{}]:{}", self.host, self.port)
        } else {
            write!(f, "{}:{}", self.host, self.port)
        }
    }
}

impl FromStr for Address {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let (host, port) = text.rsplit_once(':').ok_or_else(|| format!("\"{text}\" has no port"))?;
        let port: u16 = port.parse().map_err(|_| format!("\"{port}\" is not a port from 1 to 65535"))?;
        if port == 0 {
            return Err("port 0 is none that others could connect to".to_owned());
        }
        let bracketed = host.strip_prefix('[').and_then(|host| host.strip_suffix(']'));
        let ip = bracketed.unwrap_or(host).parse::<IpAddr>().ok();
        match ip {
            Some(ip) if ip.is_unspecified() => {
                return Err(format!("{ip} means every address of this machine, and others need one of them"));
            }
            Some(IpAddr::V6(_)) if bracketed.is_none() => return Err("write IPv6 as [address]:port".to_owned()),
            Some(_) => {}
            None if bracketed.is_some() => return Err(format!("\"{host}\" is not an IPv6 address")),
            None if !is_host_name(host) => return Err(format!("\"{host}\" is neither a host name nor an IP address")),
            None => {}
        }
        Ok(Self { host: bracketed.unwrap_or(host).to_owned(), port })
    }
}

/// Letters, digits, hyphens, underscores and dots; not only digits and dots, which would be a mistyped IP address.
fn is_host_name(host: &str) -> bool {
    let allowed = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'_' | b'.');
    (1..=253).contains(&host.len())
        && host.bytes().all(allowed)
        && host.split('.').all(|label| !label.is_empty() && !label.starts_with('-'))
        && !host.bytes().all(|byte| byte.is_ascii_digit() || byte == b'.')
}

/// An IP address and port to listen on. A wildcard is allowed, port 0 is not.
pub(super) fn parse_listen(text: &str) -> Result<SocketAddr, String> {
    match text.parse::<SocketAddr>() {
        Ok(address) if address.port() != 0 => Ok(address),
        Ok(_) => Err("nobody would find port 0".to_owned()),
        Err(_) => Err(format!("\"{text}\" is not an IP address with a port")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses_that_others_can_use() {
        for text in ["127.0.0.1:4100", "replica-1.example.org:80", "[::1]:4100", "localhost:65535"] {
            assert_eq!(text.parse::<Address>().unwrap().to_string(), text);
        }
        assert_eq!("[::1]:7".parse::<Address>().unwrap().resolve().unwrap(), "[::1]:7".parse().unwrap());
    }

    #[test]
    fn addresses_that_others_cannot_use() {
        for (text, why) in [
            ("0.0.0.0:4100", "every address"),
            ("[::]:4100", "every address"),
            ("127.0.0.1", "no port"),
            ("127.0.0.1:0", "port 0"),
            ("127.0.0.1:70000", "not a port"),
            ("::1:4100", "[address]:port"),
            ("127.0.0:1", "neither"),
            ("ho st:1", "neither"),
            (":1", "neither"),
            ("a..b:1", "neither"),
            ("[x]:1", "not an IPv6"),
        ] {
            let error = text.parse::<Address>().unwrap_err();
            assert!(error.contains(why), "{text}: {error}");
        }
        assert!(parse_listen("0.0.0.0:4100").is_ok() && parse_listen("[::]:1").is_ok());
        assert!(parse_listen("0.0.0.0:0").is_err() && parse_listen("localhost:1").is_err());
    }
}
