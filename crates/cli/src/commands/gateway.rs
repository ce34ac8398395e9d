//! `bezant gateway`: other systems' protocols in front of the cluster.

use crate::endpoint;
use crate::failure::{Failure, Result};
use crate::service::{Connection, Service};
use crate::{logging, quit};
use bezant_gateway::password::{PASSWORD_BYTES_MAX, SALT_BYTES};
use bezant_gateway::tls::Tls;
use bezant_gateway::{Access, Door, Endpoint, Password, redis};
use bezant_node::keys::{self, KeyError};
use std::fs;
use std::ops::Deref;
use std::path::{Path, PathBuf};
use std::sync::{Arc, mpsc};

/// The longest file with a key.
const PEM_BYTES_MAX: usize = 64 << 10;

/// Serve the cluster under the protocols of PostgreSQL and Redis
///
/// Run it beside the application, on the same host: the gateway is a client that believes only what enough replicas
/// say, but whoever talks to it has to believe the gateway.
///
/// A PLACE is an address with a port, or a path with a `/` in it: that of a Unix socket, which costs the processor less
/// and which only users of this machine reach. For PostgreSQL it is the path of the socket's folder, as for psql's -h,
/// and may end with a port, which is 5432 otherwise. The file of a gateway that was killed is replaced.
#[derive(clap::Args)]
#[command(after_help = "Examples:\n  bezant gateway --cluster net/cluster.toml --postgres 127.0.0.1:5432\n  \
    psql -h 127.0.0.1 -U bezant\n  \
    bezant gateway --cluster net/cluster.toml --redis 127.0.0.1:6379\n  redis-cli -p 6379 set color blue\n  \
    bezant gateway --cluster net/cluster.toml --postgres /run/bezant --redis /run/bezant/redis.sock\n  \
    psql -h /run/bezant -U bezant\n  redis-cli -s /run/bezant/redis.sock set color blue")]
#[command(group = clap::ArgGroup::new("protocols").required(true).multiple(true))]
pub(crate) struct Arguments {
    #[command(flatten)]
    connection: Connection,
    /// Where to listen for PostgreSQL clients: ADDRESS:PORT, or FOLDER or FOLDER:PORT. May be given several times
    #[arg(long, value_name = "PLACE", group = "protocols", value_parser = endpoint::postgres)]
    postgres: Vec<Endpoint>,
    /// Where to listen for Redis clients: ADDRESS:PORT, or a socket's path. May be given several times
    #[arg(long, value_name = "PLACE", group = "protocols", value_parser = endpoint::redis)]
    redis: Vec<Endpoint>,
    /// Let the group of a Unix socket's file connect as well, and not only the user that runs the gateway
    #[arg(long)]
    open_to_group: bool,
    /// A file with one line, which clients must know: for all users, and readable by its owner only
    #[arg(long, value_name = "FILE")]
    password_file: Option<PathBuf>,
    /// A certificate in PEM, and those that vouch for it: clients must use TLS, but for those on Unix sockets
    #[arg(long, value_name = "FILE", requires = "tls_key")]
    tls_certificate: Option<PathBuf>,
    /// The certificate's key in PEM, readable by its owner only
    #[arg(long, value_name = "FILE", requires = "tls_certificate")]
    tls_key: Option<PathBuf>,
    /// Let other hosts in, although nobody is asked for a password or nothing is encrypted
    #[arg(long)]
    open_to_network: bool,
    /// The form of log lines on standard error
    #[arg(long, value_enum, default_value_t)]
    log_format: logging::Format,
}

/// Runs until it is asked to end.
pub(crate) fn run(arguments: &Arguments) -> Result {
    let door = arguments.door()?;
    logging::start(arguments.log_format, "info");
    if arguments.open_to_network && door.password.is_none() {
        tracing::warn!(event = "gateway-open", "whoever reaches the gateway may read and write: see --password-file");
    }
    let service = Arc::new(Service::connect_to_ours(&arguments.connection)?);
    let [postgres, redis] = [&arguments.postgres, &arguments.redis].map(|places| arguments.accessible(places));
    let mut servers = Servers::start(&postgres, &redis, &service, &door)?;
    for address in servers.postgres() {
        tracing::info!(event = "gateway-started", %address, "serving PostgreSQL clients");
    }
    for address in servers.redis() {
        tracing::info!(event = "gateway-started", %address, "serving Redis clients");
    }
    let (leave, left) = mpsc::channel();
    quit::on_request(move || _ = leave.send(()))?;
    // An error would mean that the signal thread has gone: then it is time to go as well.
    let _ = left.recv();
    servers.close();
    tracing::info!(event = "gateway-stopped", "closed");
    Ok(())
}

impl Arguments {
    /// The same places, with sockets for those who may connect.
    fn accessible(&self, places: &[Endpoint]) -> Vec<Endpoint> {
        let access = if self.open_to_group { Access::Group } else { Access::Owner };
        let accessible = |place: &Endpoint| match place {
            Endpoint::Tcp(address) => Endpoint::Tcp(*address),
            Endpoint::Unix(path, _) => Endpoint::Unix(path.clone(), access),
        };
        places.iter().map(accessible).collect()
    }

    /// What is asked of clients. It is enough for those who can come.
    fn door(&self) -> Result<Door> {
        let missing = match (&self.password_file, &self.tls_certificate) {
            (None, _) => Some("the gateway asks nobody for a password"),
            (Some(_), None) => Some("nothing is encrypted"),
            (Some(_), Some(_)) => None,
        };
        let mut addresses = self.postgres.iter().chain(&self.redis).filter_map(Endpoint::address);
        let foreign = addresses.find(|address| !address.ip().is_loopback());
        if let (Some(missing), Some(address), false) = (missing, foreign, self.open_to_network) {
            return Err(Failure::usage(format!(
                "{address} is open to other hosts, and {missing}. Listen on 127.0.0.1, beside the application, or say \
                 --open-to-network."
            )));
        }
        let password = self.password_file.as_deref().map(read_password).transpose()?.map(Arc::new);
        let files = self.tls_certificate.as_deref().zip(self.tls_key.as_deref());
        let tls = files.map(|(certificate, key)| read_tls(certificate, key)).transpose()?;
        Ok(Door { password, tls })
    }
}

/// What clients must know.
fn read_password(path: &Path) -> Result<Password> {
    let line = read_secret(path, PASSWORD_BYTES_MAX + 1)?;
    let mut salt = [0; SALT_BYTES];
    getrandom::fill(&mut salt).map_err(|error| Failure::failed(format!("no random bytes: {error}.")))?;
    let password = Password::new(line.strip_suffix(b"\n").unwrap_or(&line), salt);
    password.map_err(|error| Failure::usage(format!("{}: {error}.", path.display())))
}

/// What clients are shown, and its key.
fn read_tls(certificate: &Path, key: &Path) -> Result<Tls> {
    let chain =
        fs::read(certificate).map_err(|error| Failure::usage(format!("{}: {error}.", certificate.display())))?;
    let secret = read_secret(key, PEM_BYTES_MAX)?;
    Tls::new(&chain, &secret)
        .map_err(|error| Failure::usage(format!("{} and {}: {error}.", certificate.display(), key.display())))
}

/// What is in a file that only its owner can read.
fn read_secret(path: &Path, max: usize) -> Result<impl Deref<Target = Vec<u8>>> {
    keys::read_private(path, max).map_err(|error| match error {
        KeyError::Missing(path) | KeyError::Malformed(path) => {
            Failure::usage(format!("there is no file {}.", path.display()))
        }
        error => Failure::usage(format!("{error}.")),
    })
}

/// The gateways of one process.
pub(crate) struct Servers {
    postgres: Option<bezant_postgres::Server>,
    redis: Option<redis::Server>,
}

impl Servers {
    /// Opens what is asked for, if anything is.
    pub(crate) fn start(
        postgres: &[Endpoint],
        redis: &[Endpoint],
        service: &Arc<Service>,
        door: &Door,
    ) -> Result<Self> {
        // The error says where.
        let refused = |option: &'static str| {
            move |error| {
                Failure::failed(format!(
                    "cannot listen on {error}. Choose another place with {option}, or free this one."
                ))
            }
        };
        let mut servers = Self { postgres: None, redis: None };
        if !postgres.is_empty() {
            let service = Arc::<Service>::clone(service);
            let server = bezant_postgres::Server::start(postgres, service, door.clone());
            servers.postgres = Some(server.map_err(refused("--postgres"))?);
        }
        if !redis.is_empty() {
            let service = Arc::<Service>::clone(service);
            let server = redis::Server::start(redis, service, door.clone());
            servers.redis = Some(server.map_err(refused("--redis"))?);
        }
        Ok(servers)
    }

    /// Where PostgreSQL clients are served, if they are.
    pub(crate) fn postgres(&self) -> &[Endpoint] {
        self.postgres.as_ref().map_or(&[], bezant_postgres::Server::endpoints)
    }

    /// Where Redis clients are served, if they are.
    pub(crate) fn redis(&self) -> &[Endpoint] {
        self.redis.as_ref().map_or(&[], redis::Server::endpoints)
    }

    fn close(&mut self) {
        if let Some(server) = &mut self.postgres {
            server.close();
        }
        if let Some(server) = &mut self.redis {
            server.close();
        }
    }
}
