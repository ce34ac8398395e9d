//! `bezant gateway`: other systems' protocols in front of the cluster.

use crate::failure::{Failure, Result};
use crate::logging;
use crate::quit;
use crate::service::{Connection, Service};
use bezant_gateway::password::{PASSWORD_BYTES_MAX, SALT_BYTES};
use bezant_gateway::{Password, redis};
use bezant_node::keys::{self, KeyError};
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::sync::{Arc, mpsc};

/// Serve the cluster under the protocols of PostgreSQL and Redis
///
/// Run it beside the application, on the same host: the gateway is a client that believes only what enough replicas
/// say, but whoever talks to it has to believe the gateway.
#[derive(clap::Args)]
#[command(after_help = "Examples:\n  bezant gateway --cluster net/cluster.toml --postgres 127.0.0.1:5432\n  \
    psql -h 127.0.0.1 -U bezant\n  \
    bezant gateway --cluster net/cluster.toml --redis 127.0.0.1:6379\n  redis-cli -p 6379 set color blue")]
#[command(group = clap::ArgGroup::new("protocols").required(true).multiple(true))]
pub(crate) struct Arguments {
    #[command(flatten)]
    connection: Connection,
    /// Where to listen for PostgreSQL clients
    #[arg(long, value_name = "ADDRESS:PORT", group = "protocols")]
    postgres: Option<SocketAddr>,
    /// Where to listen for Redis clients
    #[arg(long, value_name = "ADDRESS:PORT", group = "protocols")]
    redis: Option<SocketAddr>,
    /// A file with one line, which clients must know: for all users, and readable by its owner only
    #[arg(long, value_name = "FILE")]
    password_file: Option<PathBuf>,
    /// Let other hosts in, although nothing is encrypted and, without --password-file, nobody is asked for a password
    #[arg(long)]
    open_to_network: bool,
    /// The form of log lines on standard error
    #[arg(long, value_enum, default_value_t)]
    log_format: logging::Format,
}

/// Runs until it is asked to end.
pub(crate) fn run(arguments: &Arguments) -> Result {
    let mut addresses = arguments.postgres.iter().chain(&arguments.redis);
    if let Some(address) = addresses.find(|address| !address.ip().is_loopback() && !arguments.open_to_network) {
        let why = match arguments.password_file {
            Some(_) => "nothing is encrypted",
            None => "the gateway asks nobody for a password",
        };
        return Err(Failure::usage(format!(
            "{address} is open to other hosts, and {why}. Listen on 127.0.0.1, beside the application, or say \
             --open-to-network."
        )));
    }
    let password = arguments.password_file.as_deref().map(read_password).transpose()?.map(Arc::new);
    logging::start(arguments.log_format, "info");
    if arguments.open_to_network && password.is_none() {
        tracing::warn!(event = "gateway-open", "whoever reaches the gateway may read and write: see --password-file");
    }
    let service = Arc::new(Service::connect(&arguments.connection)?);
    let mut servers = Servers::start(arguments.postgres, arguments.redis, &service, password.as_ref())?;
    if let Some(address) = servers.postgres() {
        tracing::info!(event = "gateway-started", %address, "serving PostgreSQL clients");
    }
    if let Some(address) = servers.redis() {
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

/// What clients must know.
fn read_password(path: &Path) -> Result<Password> {
    let line = keys::read_line(path, PASSWORD_BYTES_MAX).map_err(|error| match error {
        KeyError::Missing(path) | KeyError::Malformed(path) => {
            Failure::usage(format!("{} is no file with a password.", path.display()))
        }
        error => Failure::usage(format!("{error}.")),
    })?;
    let mut salt = [0; SALT_BYTES];
    getrandom::fill(&mut salt).map_err(|error| Failure::failed(format!("no random bytes: {error}.")))?;
    Password::new(&line, salt).map_err(|error| Failure::usage(format!("{}: {error}.", path.display())))
}

/// The gateways of one process.
pub(crate) struct Servers {
    postgres: Option<bezant_postgres::Server>,
    redis: Option<redis::Server>,
}

impl Servers {
    /// Opens the ports that are asked for, to those who know the password if there is one.
    pub(crate) fn start(
        postgres: Option<SocketAddr>,
        redis: Option<SocketAddr>,
        service: &Arc<Service>,
        password: Option<&Arc<Password>>,
    ) -> Result<Self> {
        let refused = |address: SocketAddr, option: &'static str| {
            move |error| {
                Failure::failed(format!(
                    "cannot listen on {address}: {error}. Choose another port with {option}, or free this one."
                ))
            }
        };
        let postgres = postgres.map(|address| {
            let service = Arc::<Service>::clone(service);
            bezant_postgres::Server::start(address, service, password.cloned()).map_err(refused(address, "--postgres"))
        });
        let redis = redis.map(|address| {
            let service = Arc::<Service>::clone(service);
            redis::Server::start(address, service, password.cloned()).map_err(refused(address, "--redis"))
        });
        Ok(Self { postgres: postgres.transpose()?, redis: redis.transpose()? })
    }

    /// Where PostgreSQL clients are served, if they are.
    pub(crate) fn postgres(&self) -> Option<SocketAddr> {
        self.postgres.as_ref().map(bezant_postgres::Server::address)
    }

    /// Where Redis clients are served, if they are.
    pub(crate) fn redis(&self) -> Option<SocketAddr> {
        self.redis.as_ref().map(redis::Server::address)
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
