//! A certified checkpoint, read from the replicas' admin ports: for backups, exports and comparisons.

use crate::failure::{Failure, Result};
use crate::member::Member;
use crate::{files, served};
use bezant_core::checkpoint::{Checkpoint, Snapshot};
use bezant_core::estate::clients_of;
use bezant_core::ids::{ClientId, IdentityId, ReplicaId, Timestamp};
use bezant_core::message::Refusal;
use bezant_core::schedule::Protocol;
use bezant_core::services::kv::KvOperation;
use bezant_core::wire::Wire;
use bezant_node::client::{self, CallError, Client};
use bezant_node::config::ClusterConfig;
use bezant_node::fetch::{self, FetchError, Source};
use std::io::{IsTerminal, Write};
use std::path::PathBuf;
use std::time::{Duration, Instant, SystemTime};

/// Requests that are under way at a time to bring a checkpoint about: so few that no protocol takes them for a crowd.
const SESSIONS: u32 = 3;
/// Rounds of requests between two looks whether there is a checkpoint.
const ROUNDS_PER_LOOK: usize = 16;
/// How long one request may take.
const DEADLINE: Duration = Duration::from_secs(20);
/// How long a checkpoint may take.
const PATIENCE: Duration = Duration::from_secs(60);

/// Which cluster's checkpoint, from whom, and how new.
#[derive(Clone, Debug, clap::Args)]
pub(crate) struct Reading {
    /// The cluster's file
    #[arg(long, value_name = "FILE")]
    pub(crate) cluster: PathBuf,
    /// Read from this replica alone. It need not be trusted
    #[arg(long, value_name = "N")]
    pub(crate) replica: Option<u8>,
    /// A client's secret key, to have a checkpoint taken [default: client.key beside the cluster's file]
    #[arg(long, value_name = "FILE")]
    pub(crate) key: Option<PathBuf>,
    /// Take the last checkpoint as it is, without what was written since. Needs no key
    #[arg(long)]
    pub(crate) last: bool,
}

/// A checkpoint that the cluster's keys prove.
pub(crate) struct Read {
    pub(crate) config: ClusterConfig,
    pub(crate) snapshot: Snapshot,
}

impl Reading {
    /// Reads the checkpoint: one with everything in it that was acknowledged before the call, or the last one.
    pub(crate) fn read(&self) -> Result<Read> {
        let config = ClusterConfig::load(&self.cluster).map_err(Failure::usage)?;
        let sources = self.sources(&config)?;
        let snapshot = if self.last {
            fetch::fetch(&config, &sources, &mut Bar::new().taking("reading")).map_err(|error| explain(&error))?
        } else {
            let key = self.key.clone().unwrap_or_else(|| self.cluster.with_file_name("client.key"));
            Fresh::begin(&config, &key)?.read(&config, &sources)?
        };
        Ok(Read { config, snapshot })
    }

    /// Whom to ask.
    fn sources(&self, config: &ClusterConfig) -> Result<Vec<Source>> {
        let all = sources(config);
        let Some(replica) = self.replica else { return Ok(all) };
        if let Some(one) = all.iter().find(|source| source.replica == ReplicaId(replica)) {
            return Ok(vec![*one]);
        }
        Err(match config.replica(ReplicaId(replica)) {
            Some(entry) => Failure::failed(format!("{} does not resolve.", entry.admin_address)),
            None => {
                let last = config.replicas.len() - 1;
                Failure::usage(format!("there is no replica {replica}: they are 0 to {last}."))
            }
        })
    }
}

/// Every replica's admin port.
pub(crate) fn sources(config: &ClusterConfig) -> Vec<Source> {
    let source = |member: Member| Some(Source { replica: ReplicaId(member.replica), admin: member.admin? });
    files::members(config).into_iter().filter_map(source).collect()
}

fn explain(error: &FetchError) -> Failure {
    match error {
        FetchError::NoCheckpoint => Failure::failed(format!("{error}. Without --last, one is brought about.")),
        error => Failure::failed(format!("{error}.")),
    }
}

/// Brings about a checkpoint with everything that was acknowledged before.
///
/// A request of our own marks the moment; replicas take a checkpoint after so many batches, so that more requests
/// follow until there is one. They read only. Whether the checkpoint is new enough need not be believed: the client
/// table is part of the state, and has our request.
pub(crate) struct Fresh {
    client: Client,
    identity: IdentityId,
    first_session: u32,
    since: Timestamp,
    /// Whether batches are counted, rather than requests: then one request at a time makes the most of them.
    one_at_a_time: bool,
}

impl Fresh {
    /// Marks the moment.
    pub(crate) fn begin(config: &ClusterConfig, key: &std::path::Path) -> Result<Self> {
        if served::anothers(&files::members(config), config.to_cluster().replicas.weak()).is_some() {
            let why = "the replicas run a service of somebody's own, which takes no requests from here: give --last.";
            return Err(Failure::usage(why));
        }
        let mut options = files::client_options(config, key, 1, SESSIONS as usize)?;
        let failed = |error: std::io::Error| Failure::failed(format!("cannot connect: {error}."));
        let first_session = options.first_session().map_err(failed)?;
        options.first_session = Some(first_session);
        let identity = options.identity.ok_or_else(|| {
            let key = key.display();
            Failure::usage(format!(
                "{key} is not the key of an identity in the cluster's file. Give another, or --last."
            ))
        })?;
        let now = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default();
        let client = client::connect(options).map_err(failed)?;
        let since = Timestamp(now.as_micros() as u64);
        let one_at_a_time = config.protocol.is_one_order() || config.protocol == Protocol::Unreplicated;
        let fresh = Self { client, identity, first_session, since, one_at_a_time };
        fresh.ask(1)?;
        Ok(fresh)
    }

    fn ask(&self, at_once: usize) -> Result {
        let operation = KvOperation::Count.to_bytes();
        let calls: Vec<_> = (0..at_once).map(|_| self.client.execute(operation.clone().into(), DEADLINE)).collect();
        for call in calls {
            match call.wait() {
                // What a closed cluster refuses it has ordered all the same, and the client table has it.
                Ok(_) | Err(CallError::Rejected(Refusal::Closed)) => {}
                Err(error) => return Err(Failure::failed(format!("no checkpoint can be brought about: {error}."))),
            }
        }
        Ok(())
    }

    /// More requests, so that a checkpoint comes nearer.
    fn push(&self) -> Result {
        let at_once = if self.one_at_a_time { 1 } else { SESSIONS as usize };
        (0..ROUNDS_PER_LOOK).try_for_each(|_| self.ask(at_once))
    }

    /// The checkpoint with its pages.
    pub(crate) fn read(&self, config: &ClusterConfig, sources: &[Source]) -> Result<Snapshot> {
        let mut bar = Bar::new();
        self.until(config, sources, &mut bar, |bar, _| {
            let snapshot =
                fetch::fetch(config, sources, &mut bar.taking("reading")).map_err(|error| explain(&error))?;
            Ok(self.is_in(config, &snapshot).then_some(snapshot))
        })
    }

    /// The checkpoint without its pages: one that was taken after the moment, if replicas told the truth about what
    /// they had before.
    pub(crate) fn wait(&self, config: &ClusterConfig, sources: &[Source]) -> Result<Checkpoint> {
        self.until(config, sources, &mut Bar::new(), |_, newest| Ok(Some(newest)))
    }

    /// Calls `look` with each newer checkpoint that may be new enough, until it has what it wants.
    fn until<T>(
        &self,
        config: &ClusterConfig,
        sources: &[Source],
        bar: &mut Bar,
        mut look: impl FnMut(&mut Bar, Checkpoint) -> Result<Option<T>>,
    ) -> Result<T> {
        let deadline = Instant::now() + PATIENCE;
        let mut before = newest_shown(sources);
        while Instant::now() < deadline {
            bar.say("waiting for a checkpoint");
            self.push()?;
            let (accounts, _) = fetch::accounts(sources);
            match fetch::newest_certain(config, &accounts) {
                Ok(certificate) if Some(*certificate.value()) > before => {
                    if let Some(found) = look(bar, *certificate.value())? {
                        return Ok(found);
                    }
                    before = Some(*certificate.value());
                }
                Ok(_) | Err(FetchError::NoCheckpoint | FetchError::NotCertain { .. }) => {}
                Err(error) => return Err(explain(&error)),
            }
        }
        let seconds = PATIENCE.as_secs();
        Err(Failure::failed(format!(
            "there is no new checkpoint after {seconds} s. With --last the last one is taken as it is."
        )))
    }

    /// Whether the state has the request that marked the moment, or one of ours that followed it.
    fn is_in(&self, config: &ClusterConfig, snapshot: &Snapshot) -> bool {
        let Some(clients) = clients_of(&config.to_cluster(), &snapshot.tree) else { return false };
        let ours = |session| ClientId { identity: self.identity, session };
        (self.first_session..self.first_session + SESSIONS)
            .any(|session| clients.last(ours(session)).is_some_and(|entry| entry.timestamp >= self.since))
    }
}

/// The newest checkpoint that anybody says it has, which need not be true.
fn newest_shown(sources: &[Source]) -> Option<Checkpoint> {
    let (accounts, _) = fetch::accounts(sources);
    accounts.iter().flat_map(|account| &account.certain).map(|certificate| *certificate.claims()).max()
}

/// What is under way, on a terminal.
pub(crate) struct Bar {
    is_terminal: bool,
    is_shown: bool,
}

impl Bar {
    pub(crate) fn new() -> Self {
        Self { is_terminal: std::io::stderr().is_terminal(), is_shown: false }
    }

    /// Shows a line in place of the one before.
    pub(crate) fn say(&mut self, text: &str) {
        if self.is_terminal {
            self.is_shown = true;
            eprint!("\r\x1b[K{text}");
            // A line that is not shown is no loss.
            let _ = std::io::stderr().flush();
        }
    }

    /// Shows how many bytes there are so far.
    pub(crate) fn taking(&mut self, what: &'static str) -> impl FnMut(u64) {
        move |bytes| self.say(&format!("{what}: {:.1} MiB", bytes as f64 / f64::from(1 << 20)))
    }
}

impl Drop for Bar {
    fn drop(&mut self) {
        if self.is_shown {
            eprint!("\r\x1b[K");
        }
    }
}
