//! `bezant gateway`: other systems' protocols in front of the cluster.

use crate::failure::{Failure, Result};
use crate::logging;
use crate::quit;
use crate::service::{Connection, Service};
use bezant_gateway::redis;
use std::net::SocketAddr;
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
    /// Let other hosts in, although nobody is asked for a password and nothing is encrypted
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
        return Err(Failure::usage(format!(
            "{address} is open to other hosts, and the gateway asks nobody for a password. Listen on 127.0.0.1, beside \
             the application, or say --open-to-network."
        )));
    }
    logging::start(arguments.log_format, "info");
    let service = Arc::new(Service::connect(&arguments.connection)?);
    let mut servers = Servers::start(arguments.postgres, arguments.redis, &service)?;
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

/// The gateways of one process.
pub(crate) struct Servers {
    postgres: Option<bezant_postgres::Server>,
    redis: Option<redis::Server>,
}

impl Servers {
    /// Opens the ports that are asked for.
    pub(crate) fn start(
        postgres: Option<SocketAddr>,
        redis: Option<SocketAddr>,
        service: &Arc<Service>,
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
            bezant_postgres::Server::start(address, service, None).map_err(refused(address, "--postgres"))
        });
        let redis = redis.map(|address| {
            let service = Arc::<Service>::clone(service);
            redis::Server::start(address, service, None).map_err(refused(address, "--redis"))
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
