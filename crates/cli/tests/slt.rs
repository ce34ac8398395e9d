//! The files of `crates/sql/tests/slt` through the client library and four replicas: what plain SQLite of the same
//! build gives, as `crates/sql/tests/slt.rs` checks.

#[path = "../../sql/tests/support/mod.rs"]
mod slt;
mod support;

use bezant_core::message::Refusal as Refused;
use bezant_core::message::bundle::BUNDLE_OPERATIONS_MAX;
use bezant_core::wire::Wire;
use bezant_node::client::{self, CallError, Client, ClientOptions};
use bezant_node::config::ClusterConfig;
use bezant_node::{keys, net};
use bezant_sql::{Request, Statement};
use bytes::Bytes;
use slt::{Output, Refusal, answered, files};
use sqllogictest::{DB, DefaultColumnType, Runner};
use support::{PATIENCE, Running, Scratch, bezant, spawn, testnet};

/// Four replicas and a client. The scratch folder goes last.
struct Cluster {
    client: Client,
    _replicas: Vec<Running>,
    _scratch: Scratch,
}

impl Cluster {
    fn start() -> Self {
        let scratch = Scratch::new();
        testnet(&scratch, "net", 4);
        let start = |number| {
            Running(spawn(&mut bezant(&["replica", "--dir", &scratch.join(&format!("net/replica-{number}"))])))
        };
        let replicas = (0..4).map(start).collect();
        let config = ClusterConfig::load(scratch.join("net/cluster.toml").as_ref()).unwrap();
        let options = ClientOptions {
            cluster: config.to_cluster(),
            replicas: config.replicas.iter().map(|replica| replica.client_address.resolve().unwrap()).collect(),
            keys: config.public_keys(),
            identity: Some(config.identities[0].id),
            identification: Bytes::new(),
            secret: keys::load(scratch.join("net/client.key").as_ref()).unwrap(),
            channel: net::Channel::Tls,
            connections: 1,
            sessions_per_connection: 1,
            bundle_operations_max: BUNDLE_OPERATIONS_MAX,
            first_session: None,
        };
        Self { client: client::connect(options).unwrap(), _replicas: replicas, _scratch: scratch }
    }
}

impl DB for Cluster {
    type Error = Refusal;
    type ColumnType = DefaultColumnType;

    fn run(&mut self, sql: &str) -> Result<Output, Refusal> {
        let request = Request::one(Statement::new(sql));
        let operation = Bytes::from(request.to_bytes());
        let ordered = || self.client.execute(operation.clone(), PATIENCE).wait();
        let result = match request.seems_read_only() {
            false => ordered(),
            true => match self.client.query(operation.clone(), PATIENCE).wait() {
                Err(CallError::Rejected(Refused::NotReadOnly)) => ordered(),
                other => other,
            },
        };
        answered(result.unwrap())
    }

    fn engine_name(&self) -> &str {
        "bezant"
    }
}

#[test]
fn a_cluster_gives_what_plain_sqlite_gives() {
    for file in files() {
        let mut runner = Runner::new(|| async { Ok::<_, Refusal>(Cluster::start()) });
        runner.run_file(&file).unwrap();
    }
}
