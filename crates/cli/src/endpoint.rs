//! Where gateways listen, as one writes it: an address with a port, or a path with a `/` in it.

use bezant_gateway::unix::PATH_BYTES_MAX;
use bezant_gateway::{Access, Endpoint};
use std::path::{Path, PathBuf};

/// PostgreSQL's port.
const POSTGRES_PORT: u16 = 5432;

/// A place for Redis clients: `ADDRESS:PORT`, or the path of a socket.
pub(crate) fn redis(text: &str) -> Result<Endpoint, String> {
    match text.contains('/') {
        true => unix(text.into()),
        false => tcp(text),
    }
}

/// A place for PostgreSQL clients: `ADDRESS:PORT`, or a folder, in which clients look for a socket by its port. The
/// folder may be followed by `:PORT`; one whose own name ends so is written with a `/` behind it.
pub(crate) fn postgres(text: &str) -> Result<Endpoint, String> {
    if !text.contains('/') {
        return tcp(text);
    }
    let (folder, port) = match text.rsplit_once(':') {
        Some((folder, digits)) if !digits.is_empty() && digits.bytes().all(|byte| byte.is_ascii_digit()) => {
            let port = digits.parse().ok().filter(|port| *port != 0);
            (folder, port.ok_or_else(|| format!("{digits} is no port: there are 1 to 65535"))?)
        }
        _ => (text, POSTGRES_PORT),
    };
    unix(Path::new(folder).join(format!(".s.PGSQL.{port}")))
}

fn tcp(text: &str) -> Result<Endpoint, String> {
    let address = text.parse().map_err(|_| {
        "neither an address with a port, such as 127.0.0.1:5432, nor a path with a `/`, such as ./here".to_owned()
    });
    address.map(Endpoint::Tcp)
}

fn unix(path: PathBuf) -> Result<Endpoint, String> {
    let bytes = path.as_os_str().len();
    if bytes > PATH_BYTES_MAX {
        return Err(format!("the socket's path has {bytes} bytes, and the system has room for {PATH_BYTES_MAX}"));
    }
    Ok(Endpoint::Unix(path, Access::Owner))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn socket(path: &str) -> Result<Endpoint, String> {
        Ok(Endpoint::Unix(path.into(), Access::Owner))
    }

    #[test]
    fn a_place_is_an_address_or_a_path() {
        for read in [redis, postgres] {
            assert_eq!(read("[::1]:6379"), Ok(Endpoint::Tcp("[::1]:6379".parse().unwrap())));
            for text in ["", "here", "localhost:5432", "127.0.0.1", "6379"] {
                assert!(read(text).unwrap_err().contains("nor a path"), "{text}");
            }
            assert!(read(&format!("/{}", "x".repeat(PATH_BYTES_MAX))).unwrap_err().contains("has room for 107"));
        }
        assert_eq!(redis("/run/bezant/redis.sock"), socket("/run/bezant/redis.sock"));
        assert_eq!(redis("./a:1"), socket("./a:1"));
    }

    #[test]
    fn clients_of_postgresql_find_a_socket_by_folder_and_port() {
        assert_eq!(postgres("/run/bezant"), socket("/run/bezant/.s.PGSQL.5432"));
        assert_eq!(postgres("./here:5433"), socket("./here/.s.PGSQL.5433"));
        assert_eq!(postgres("/odd:5433/"), socket("/odd:5433/.s.PGSQL.5432"));
        assert_eq!(postgres("/odd:name"), socket("/odd:name/.s.PGSQL.5432"));
        for port in ["0", "65536", "99999999999"] {
            assert!(postgres(&format!("/run:{port}")).unwrap_err().contains("is no port"), "{port}");
        }
    }
}
