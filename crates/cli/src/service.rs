//! The replicated service as the sub-commands reach it: files, keys, client library.

use crate::database::Database;
use crate::failure::{Failure, Result};
use crate::few::Few;
use crate::interrupt::Interrupts;
use crate::member::Member;
use crate::snapshot::Snapshots;
use crate::{checkpoint, files, served};
use bezant_core::ids::ReplicaId;
use bezant_core::message::Refusal;
use bezant_core::replicas::Replicas;
use bezant_core::services::kv::{KvOperation, KvResult};
use bezant_core::wire::Wire;
use bezant_gateway::{Store, StoreError};
use bezant_node::client::{self, Call, CallError, Client};
use bezant_node::config::ClusterConfig;
use bytes::Bytes;
use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::thread;
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

/// Requests that one process may have under way: more of them wait.
const SESSIONS: usize = 256;
/// How often `probe` reads.
const PROBES: usize = 5;
/// How old the client library's status may be.
const PUBLISH_INTERVAL: Duration = Duration::from_millis(110);
/// How long `probe` waits for answers that come after enough others.
const LATE_ANSWERS: Duration = Duration::from_millis(250);
/// How long a read of `probe` may take.
const PROBE_DEADLINE: Duration = Duration::from_secs(3);

/// Which cluster, as whom, and how patiently.
#[derive(Clone, Debug, clap::Args)]
pub(crate) struct Connection {
    /// The cluster's file
    #[arg(long, value_name = "FILE")]
    cluster: PathBuf,
    /// The client's secret key [default: client.key beside the cluster's file]
    #[arg(long, value_name = "FILE")]
    key: Option<PathBuf>,
    /// Seconds after which an outcome that is not known counts as unknown
    #[arg(long, value_name = "SECONDS", default_value_t = 30, value_parser = clap::value_parser!(u64).range(1..=3600))]
    deadline: u64,
}

/// What reading a few times told about the replicas.
#[derive(Clone, Debug, Default)]
pub(crate) struct Probe {
    /// Whether the service answers. `None`: it was not asked, for what we could ask might change another service.
    pub(crate) answering: Option<bool>,
    /// Who answered otherwise than the others just now.
    pub(crate) lying: BTreeSet<u8>,
    /// How often each replica did so since this client connected; those that never did are left out.
    pub(crate) differed: BTreeMap<u8, u64>,
}

/// A client of the cluster, for any number of threads.
pub(crate) struct Service {
    client: Client,
    deadline: Duration,
    members: Vec<Member>,
    /// How many of them may lie, and so how many to believe.
    replicas: Replicas,
    snapshots: Arc<Snapshots>,
    /// What ends waiting.
    pub(crate) interrupts: Arc<Interrupts>,
    /// Who goes on with transactions.
    pub(crate) few: Few,
    /// Whether the protocol orders every read, as those do whose parts may abort.
    pub(crate) orders_reads: bool,
    /// The most bytes of a request.
    pub(crate) operation_bytes_max: usize,
}

impl Service {
    /// Reads the files and connects. Replicas that are not there are looked for again and again.
    pub(crate) fn connect(connection: &Connection) -> Result<Self> {
        let config = ClusterConfig::load(&connection.cluster).map_err(Failure::usage)?;
        let key = connection.key.clone().unwrap_or_else(|| client::key_beside(&connection.cluster));
        Self::of(&config, &key, Duration::from_secs(connection.deadline))
    }

    /// The same for operations of our own services: replicas that serve another one are not asked.
    pub(crate) fn connect_to_ours(connection: &Connection) -> Result<Self> {
        let service = Self::connect(connection)?;
        served::expect_ours(&service.members, service.replicas.weak())?;
        Ok(service)
    }

    /// With what the files say.
    pub(crate) fn of(config: &ClusterConfig, key: &Path, deadline: Duration) -> Result<Self> {
        let options = files::client_options(config, key, 1, SESSIONS)?;
        let client = client::connect(options).map_err(|error| Failure::failed(format!("cannot connect: {error}")))?;
        let snapshots = Arc::new(Snapshots::new(config.clone(), checkpoint::sources(config)));
        let orders_reads = config.protocol.hands_on();
        let operation_bytes_max = config.limits.operation_bytes_max;
        let replicas = config.to_cluster().replicas;
        let few = Few::new(replicas.weak());
        let members = files::members(config);
        let interrupts = Arc::default();
        Ok(Self { client, deadline, members, replicas, snapshots, interrupts, few, orders_reads, operation_bytes_max })
    }

    /// SQL over the same connections.
    pub(crate) fn database(&self) -> Database {
        let (snapshots, interrupts) = (Arc::clone(&self.snapshots), Arc::clone(&self.interrupts));
        Database::new(self.client.clone(), self.deadline, snapshots, interrupts)
    }

    /// Every replica, and where to ask how it is.
    pub(crate) fn members(&self) -> &[Member] {
        &self.members
    }

    /// How many there are, and how many of them may lie.
    pub(crate) const fn replicas(&self) -> Replicas {
        self.replicas
    }

    /// Asks without changing anything.
    pub(crate) fn query(&self, operation: Bytes) -> Call {
        self.client.query(operation, self.deadline)
    }

    /// Asks these replicas, and believes what f + 1 of them say alike.
    pub(crate) fn query_few(&self, operation: Bytes, few: &[ReplicaId]) -> Call {
        self.client.query_few(operation, few, self.deadline)
    }

    /// Executes an operation.
    pub(crate) fn execute(&self, operation: Bytes) -> Call {
        self.client.execute(operation, self.deadline)
    }

    fn differed(&self) -> BTreeMap<u8, u64> {
        self.client.status().differed.iter().map(|(replica, count)| (replica.0, *count)).collect()
    }

    /// Reads a few times, so that all replicas have a chance to give themselves away.
    pub(crate) fn probe(&self) -> Probe {
        if served::anothers(&self.members, self.replicas.weak()).is_some() {
            return Probe::default();
        }
        // What the client library publishes of earlier answers may be a little old.
        thread::sleep(PUBLISH_INTERVAL);
        let before = self.differed();
        let start = Instant::now();
        let answering = (0..PROBES).all(|_| self.ask(&KvOperation::Count, PROBE_DEADLINE).is_ok());
        thread::sleep(LATE_ANSWERS.saturating_sub(start.elapsed()));
        let differed = self.differed();
        let lying = differed.iter().filter(|(replica, count)| before.get(replica) != Some(count));
        Probe { answering: Some(answering), lying: lying.map(|(replica, _)| *replica).collect(), differed }
    }

    fn ask(&self, operation: &KvOperation, deadline: Duration) -> std::result::Result<KvResult, StoreError> {
        if self.interrupts.was_raised() {
            return Err(StoreError::Refused("interrupted before it was sent".into()));
        }
        let start = Instant::now();
        let asked = operation.is_query().then(|| self.client.query(as_of_now(operation), deadline));
        let answer = match asked.map(|call| self.interrupts.wait(call)) {
            // A key may be due: what is not ordered cannot tell.
            None | Some(Some(Err(CallError::Rejected(Refusal::NotReadOnly)))) => {
                let left = deadline.saturating_sub(start.elapsed());
                self.interrupts.wait(self.client.execute(operation.to_bytes().into(), left))
            }
            Some(answer) => answer,
        };
        match answer {
            Some(Ok(result)) => KvResult::from_bytes(result).map_err(|_| {
                StoreError::Refused("the replicas agree on a result that is none of this service's".into())
            }),
            Some(Err(error)) => Err(store_error(error)),
            None => Err(StoreError::Unknown("interrupted before there was an answer".into())),
        }
    }
}

/// The operation as a query that is refused where a key may be due.
fn as_of_now(operation: &KvOperation) -> Bytes {
    let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    let operation = Box::new(operation.clone());
    KvOperation::AsOf { now_ms: now.as_millis() as u64, operation }.to_bytes().into()
}

/// What it means to whoever asked for a key.
fn store_error(error: CallError) -> StoreError {
    match error {
        CallError::Unknown { id, replicas } => {
            let mut text = format!("not enough equal answers in time to request {id}");
            for (replica, what) in replicas {
                text += &format!("; replica {}: {what}", replica.0);
            }
            StoreError::Unknown(text)
        }
        error if error.may_have_been_executed() => StoreError::Unknown(error.to_string()),
        error => StoreError::Refused(error.to_string()),
    }
}

impl Store for Service {
    fn call(&self, operation: &KvOperation) -> std::result::Result<KvResult, StoreError> {
        self.ask(operation, self.deadline)
    }
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;

    /// Errors of calls that may have been executed, and of calls that were not.
    pub(crate) fn call_errors() -> (Vec<CallError>, Vec<CallError>) {
        let (id, over) = (Default::default(), Refusal::TakenOver);
        let perhaps = vec![
            CallError::Unknown { id, replicas: Vec::new() },
            CallError::SessionOver(over),
            CallError::TooLate(Refusal::StaleTimestamp),
            CallError::Forgotten,
            CallError::Closed,
        ];
        (perhaps, vec![CallError::NotSent, CallError::NotAdmitted(over), CallError::Rejected(over)])
    }

    #[test]
    fn what_may_have_been_executed_is_unknown() {
        let (perhaps, never) = call_errors();
        for error in perhaps {
            assert!(matches!(store_error(error.clone()), StoreError::Unknown(_)), "{error}");
        }
        for error in never {
            assert!(matches!(store_error(error.clone()), StoreError::Refused(_)), "{error}");
        }
    }
}
