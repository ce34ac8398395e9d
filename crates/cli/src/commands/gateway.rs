//! `bezant gateway`: other systems' protocols in front of the cluster.

use crate::failure::{Failure, Result};
use crate::logging;
use crate::quit;
use crate::service::{Connection, Service};
use bezant_gateway::redis::Server;
use std::net::SocketAddr;
use std::sync::{Arc, mpsc};

/// Serve the cluster under the Redis protocol
///
/// Run it beside the application, on the same host: the gateway is a client that believes only what enough replicas
/// say, but whoever talks to it has to believe the gateway.
#[derive(clap::Args)]
#[command(after_help = "Example:\n  bezant gateway --cluster net/cluster.toml --redis 127.0.0.1:6379\n  \
    redis-cli -p 6379 set color blue")]
pub(crate) struct Arguments {
    #[command(flatten)]
    connection: Connection,
    /// Where to listen for Redis clients
    #[arg(long, value_name = "ADDRESS:PORT")]
    redis: SocketAddr,
    /// The form of log lines on standard error
    #[arg(long, value_enum, default_value_t)]
    log_format: logging::Format,
}

/// Runs until it is asked to end.
pub(crate) fn run(arguments: &Arguments) -> Result {
    logging::start(arguments.log_format, "info");
    let service = Arc::new(Service::connect(&arguments.connection)?);
    let mut server = start(arguments.redis, service)?;
    tracing::info!(event = "gateway-started", address = %server.address(), "serving Redis clients");
    let (leave, left) = mpsc::channel();
    quit::on_request(move || _ = leave.send(()))?;
    // An error would mean that the signal thread has gone: then it is time to go as well.
    let _ = left.recv();
    server.close();
    tracing::info!(event = "gateway-stopped", "closed");
    Ok(())
}

/// Opens the port.
pub(crate) fn start(address: SocketAddr, service: Arc<Service>) -> Result<Server> {
    Server::start(address, service).map_err(|error| {
        Failure::failed(format!(
            "cannot listen on {address}: {error}. Choose another port with --redis, or free this one."
        ))
    })
}
