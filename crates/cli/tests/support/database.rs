//! A cluster of four whose SQL a test uses.

use super::{Running, Scratch, bezant, settle, testnet_with};
use bezant_core::auth::{Ed25519, Suite};
use bezant_core::message::bundle::BUNDLE_OPERATIONS_MAX;
use bezant_core::wire::Wire;
use bezant_node::client::{Client, ClientOptions, connect};
use bezant_node::config::ClusterConfig;
use bezant_node::keys;
use bezant_sql::{Request, Response, Statement, Value};
use bytes::Bytes;
use std::fs::File;
use std::io::{BufRead, BufReader, Write};
use std::path::Path;
use std::process::Stdio;
use std::time::Duration;

const DEADLINE: Duration = Duration::from_secs(30);

/// Replicas as processes, and a client. They end with this.
pub struct Cluster {
    /// The cluster's file.
    pub file: String,
    folder: String,
    replicas: Vec<Option<Running>>,
    client: Client,
}

impl Cluster {
    /// Makes files and starts.
    pub fn start(scratch: &Scratch, name: &str, options: &[&str]) -> Self {
        testnet_with(scratch, name, 4, options);
        Self::run(scratch, name)
    }

    /// Starts what there are files for.
    pub fn run(scratch: &Scratch, name: &str) -> Self {
        let folder = scratch.join(name);
        let file = format!("{folder}/cluster.toml");
        let config = ClusterConfig::load(Path::new(&file)).unwrap();
        let secret = keys::load(Path::new(&format!("{folder}/client.key"))).unwrap();
        let replicas = (0..4).map(|number| Some(start(&folder, number, &[]))).collect();
        let client = connect(ClientOptions {
            cluster: config.to_cluster(),
            replicas: config.replicas.iter().map(|replica| replica.client_address.resolve().unwrap()).collect(),
            keys: config.public_keys(),
            identity: config.identity_of(&Ed25519.public(&secret)).map(|identity| identity.id),
            identification: Bytes::new(),
            secret,
            channel: config.channel.into(),
            connections: 1,
            sessions_per_connection: 1,
            bundle_operations_max: BUNDLE_OPERATIONS_MAX,
            first_session: None,
        });
        Self { file, folder, replicas, client: client.unwrap() }
    }

    /// Executes a statement. Returns its rows, values as text.
    #[track_caller]
    pub fn sql(&self, sql: &str) -> Vec<Vec<String>> {
        let operation: Bytes = Request::one(Statement::new(sql)).to_bytes().into();
        let call = match sql.starts_with("select") {
            true => self.client.query(operation, DEADLINE),
            false => self.client.execute(operation, DEADLINE),
        };
        let Ok(Response::Done(mut results)) = Response::from_bytes(call.wait().unwrap()) else { panic!("{sql}") };
        let shown = |value: Value| match value {
            Value::Integer(number) => number.to_string(),
            Value::Text(text) => text,
            other => format!("{other:?}"),
        };
        results.pop().unwrap().rows.into_iter().map(|row| row.into_iter().map(shown).collect()).collect()
    }

    /// Gives a replica an order, and waits until it obeys; it says how many lies it has told so far.
    pub fn order(&mut self, replica: usize, order: &str) -> u64 {
        let child = &mut self.replicas[replica].as_mut().unwrap().0;
        writeln!(child.stdin.as_mut().unwrap(), "{order}").unwrap();
        let mut line = String::new();
        BufReader::with_capacity(1, child.stdout.as_mut().unwrap()).read_line(&mut line).unwrap();
        let lies = line.strip_prefix(order).and_then(|rest| rest.strip_prefix(": ")?.trim_end().parse().ok());
        lies.unwrap_or_else(|| panic!("{line}"))
    }

    /// The process of a replica.
    pub fn process(&self, replica: usize) -> u32 {
        self.replicas[replica].as_ref().unwrap().0.id()
    }

    /// Waits until the slowest replica is as far as the others.
    pub fn settle(&self) {
        settle(&self.file);
    }

    pub fn kill(&mut self, replica: usize) {
        self.replicas[replica] = None;
    }

    pub fn restart(&mut self, replica: usize) {
        self.restart_with(replica, &[]);
    }

    pub fn restart_with(&mut self, replica: usize, flags: &[&str]) {
        self.replicas[replica] = Some(start(&self.folder, replica, flags));
    }
}

fn start(folder: &str, number: usize, flags: &[&str]) -> Running {
    let dir = format!("{folder}/replica-{number}");
    let mut command = bezant(&["replica", "--dir", &dir, "--obey-input"]);
    command.args(flags);
    let log = File::options().create(true).append(true).open(log(folder, number)).unwrap();
    Running(command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(log).spawn().unwrap())
}

/// What a replica says of itself, for whoever wonders why a test failed.
fn log(folder: &str, number: usize) -> String {
    format!("{folder}/replica-{number}.log")
}

impl Drop for Cluster {
    fn drop(&mut self) {
        if std::thread::panicking() {
            for number in 0..self.replicas.len() {
                let said = std::fs::read_to_string(log(&self.folder, number)).unwrap_or_default();
                eprintln!("replica {number} of {}:\n{said}", self.folder);
            }
        }
    }
}

/// Rows as [`Cluster::sql`] returns them.
pub fn rows(rows: &[&[&str]]) -> Vec<Vec<String>> {
    rows.iter().map(|row| row.iter().map(|cell| (*cell).to_owned()).collect()).collect()
}
