//! One measurement: a cluster, load on it, and its replicas' counters before and after.

use super::attacker::{self, Attack, Attacker, LIAR};
use super::contender::Contender;
use super::netns::Laboratory;
use super::share::Processors;
use super::words::name;
use crate::commands::attack::Kind;
use crate::commands::demo::cluster::{DemoCluster, wait_until_up};
use crate::commands::testnet::{AuthName, ChannelName, DurabilityName};
use crate::failure::{Failure, Result};
use crate::member::Member;
use crate::served::Served;
use crate::{files, quit};
use bezant_core::cluster::{ClientAuth, Cluster, Limits};
use bezant_core::compositions::objection;
use bezant_core::ids::InstanceId;
use bezant_core::schedule::Part;
use bezant_core::wire::Wire;
use bezant_node::client;
use bezant_node::config::{Channel, ClusterConfig, Protocol, Testnet};
use bezant_perf::compare::sweep::Variant;
use bezant_perf::figures::{Figures, Settings, Usage};
use bezant_perf::load::{Load, Measured};
use bezant_perf::workload::{Asked, Workload};
use bezant_sql::{Request, Response};
use bytes::Bytes;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};
use std::{fmt, io, thread};

/// How long connecting may take.
const CONNECT_MAX: Duration = Duration::from_secs(30);
/// How long a composition may stay in the Backup that it begins with: one client takes a while for 4,096 requests.
const LEAVE_MAX: Duration = Duration::from_secs(60);
/// How long it has to be in another part then.
const STEADY: Duration = Duration::from_millis(500);
/// How often is looked whether all are connected, and the like.
const CONNECT_POLL: Duration = Duration::from_millis(20);

/// What is measured.
#[derive(Clone, Copy, Debug)]
pub(super) struct Subject {
    pub(super) contender: Contender,
    pub(super) f: u8,
    /// Replicas, if not 3f + 1.
    pub(super) n: Option<u8>,
    pub(super) clients: usize,
    pub(super) outstanding: usize,
    /// Operations that leave together as one request, at most.
    pub(super) bundle: usize,
    pub(super) request_bytes: usize,
    pub(super) reply_bytes: usize,
    pub(super) durability: DurabilityName,
    pub(super) channel: ChannelName,
    pub(super) auth: AuthName,
    /// What clients ask.
    pub(super) asked: Asked,
    /// What is switched on and off, if not everything is as usual.
    pub(super) variant: Option<Variant>,
    /// Requests between two checkpoints of an instance that may abort, if not as usual.
    pub(super) history_interval: Option<u64>,
    /// Whether clients may join it that it does not name, even if none of those that are measured does.
    pub(super) lets_join: bool,
}

impl fmt::Display for Subject {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { clients, outstanding, request_bytes, reply_bytes, .. } = self;
        write!(out, "{} {clients}×{outstanding} ", self.contender)?;
        match self.asked {
            Asked::Alike | Asked::AlmostAlike => write!(out, "{request_bytes}/{reply_bytes} bytes")?,
            Asked::Mixed | Asked::Given | Asked::Sql(_) => out.write_str(self.asked.name())?,
        }
        write!(out, " {} {} {}", name(self.durability), name(self.channel), name(self.auth))
    }
}

impl Subject {
    /// How many replicas there are, and how many of them may be faulty.
    pub(super) fn replicas(&self) -> (usize, usize) {
        let f = usize::from(self.f);
        match self.contender.protocol {
            Protocol::Unreplicated => (1, 0),
            _ => (self.n.map_or(3 * f + 1, usize::from), f),
        }
    }

    /// Whether the protocol runs on so many replicas.
    ///
    /// # Errors
    /// Why it does not.
    pub(super) fn check(&self) -> Result {
        let ((n, f), protocol) = (self.replicas(), self.contender.protocol);
        let cluster = Cluster::new([0; 16], n, f, self.auth.into(), self.limits());
        let cluster = cluster.map_err(|error| Failure::usage(format!("{error}.")))?.with_protocol(protocol);
        let objection = objection(&cluster);
        objection.map_or(Ok(()), |why| Err(Failure::usage(format!("{protocol} with n = {n}, f = {f}: {why}."))))
    }

    /// The cluster's limits, some of which switch a variant's optimisations on and off.
    fn limits(&self) -> Limits {
        let mut limits = Limits::default();
        limits.history_interval = self.history_interval.unwrap_or(limits.history_interval);
        if let Some(Variant { big, batching, .. }) = self.variant {
            limits.inline_bytes_max = if big { 0 } else { limits.operation_bytes_max };
            if !batching {
                // Requests are ordered one by one, but need not wait for one another.
                limits.batch_requests_max = 1;
                limits.batches_in_flight_max = limits.checkpoint_interval;
            }
        }
        limits
    }

    /// As the figures name it: what the cluster's file says, and the rest.
    pub(super) fn settings(&self, config: &ClusterConfig, n: usize) -> Settings {
        Settings {
            protocol: config.protocol.name(),
            workload: self.asked.name(),
            n,
            f: config.f,
            clients: self.clients,
            joined: self.contender.joined,
            outstanding: self.outstanding,
            request_bytes: self.request_bytes,
            reply_bytes: self.reply_bytes,
            durability: match self.durability {
                DurabilityName::Memory => "memory",
                DurabilityName::Sync => "sync",
            },
            channel: match config.channel {
                Channel::Plain => "plain",
                Channel::Tls => "tls",
            },
            auth: match config.client_auth {
                ClientAuth::Mac => "mac",
                ClientAuth::Hybrid => "hybrid",
                ClientAuth::Signature => "signature",
            },
            coin: if config.protocol.has_ritas() { config.coin.label() } else { "none" },
        }
    }
}

/// The clusters that run, in the order in which they were started, and the network and the processors that they have,
/// if they have some of their own: a signal may end all of it at any time.
#[derive(Clone, Default)]
pub(super) struct Running {
    clusters: Arc<Mutex<Vec<DemoCluster>>>,
    pub(super) laboratory: Laboratory,
    pub(super) processors: Processors,
    pub(super) attacker: Attacker,
}

/// Ends what runs when its value goes away: at the end, after a failure, in a panic.
pub(super) struct Cleanup(pub(super) Running);

impl Drop for Cleanup {
    fn drop(&mut self) {
        self.0.stop_all();
        self.0.processors.remove();
        self.0.laboratory.remove();
    }
}

impl Running {
    fn lock(&self) -> MutexGuard<'_, Vec<DemoCluster>> {
        self.clusters.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Makes the files of a cluster, so that nobody can end it in the middle of that.
    fn prepare(&self, parent: &Path, options: Testnet, under_way_bytes: usize) -> Result {
        let mut running = self.lock();
        let (mut launchers, in_network) =
            (self.processors.launchers(options.replicas), self.laboratory.launchers(options.replicas));
        launchers.resize(launchers.len().max(in_network.len()), Vec::new());
        launchers.iter_mut().zip(in_network).for_each(|(launcher, words)| launcher.extend(words));
        let cluster = DemoCluster::prepare(parent, self.laboratory.place(options, under_way_bytes))?;
        running.push(cluster.launched_by(launchers));
        Ok(())
    }

    /// Ends every process of the last cluster, and removes every file.
    fn stop(&self) {
        if let Some(mut cluster) = self.lock().pop() {
            cluster.stop();
        }
    }

    /// The same of every cluster.
    fn stop_all(&self) {
        self.lock().drain(..).for_each(|mut cluster| cluster.stop());
    }

    /// Ends everything, and then this process. Until it has ended nobody can start another cluster.
    pub(super) fn exit(&self) -> ! {
        let mut running = self.lock();
        running.drain(..).for_each(|mut cluster| cluster.stop());
        self.attacker.stop();
        self.processors.remove();
        self.laboratory.remove();
        std::process::exit(quit::EXIT_CODE);
    }

    fn check_alive(&self) -> Result {
        self.lock().iter_mut().try_for_each(DemoCluster::check_alive)
    }

    /// Does something to the cluster that was started last.
    pub(super) fn with<T>(&self, act: impl FnOnce(&mut DemoCluster) -> Result<T>) -> Result<T> {
        self.lock().last_mut().map_or_else(|| Err(Failure::failed("interrupted.")), act)
    }
}

/// What all measurements have in common.
pub(super) struct Bench {
    /// Where folders are made.
    pub(super) parent: PathBuf,
    pub(super) warmup: Duration,
    pub(super) seconds: Duration,
    /// Threads over which clients are spread.
    pub(super) load_threads: usize,
    /// Operations of the service of a cluster that is running, if its own are to be measured.
    pub(super) given: Vec<Bytes>,
    /// What attacks a cluster meanwhile, or who in it lies.
    pub(super) attacks: attacker::Arguments,
    /// Whether an attacker is a client of the clusters that are started.
    pub(super) has_attacker: bool,
    pub(super) running: Running,
}

impl Bench {
    /// Measures a cluster that is started for it.
    pub(super) fn measure_own(&self, subject: &Subject) -> Result<Figures> {
        self.with_own(subject, |file| {
            self.let_in(subject, file)?;
            self.measure_at(subject, file, None)
        })
    }

    /// Lets those write who join, in a cluster that was started for them.
    pub(super) fn let_in(&self, subject: &Subject, file: &Path) -> Result {
        if !subject.contender.joined || subject.asked.sql().is_none() {
            return Ok(());
        }
        let config = ClusterConfig::load(file).map_err(Failure::usage)?;
        prepare(&config, file, None, bezant_perf::sql::admission())
    }

    /// Measures SQLite alone, in a folder that is thrown away.
    pub(super) fn measure_plain(&self, rows: usize) -> Result<Figures> {
        let folder = self.parent.join(format!("bezant-plain-{}", std::process::id()));
        let failed = |error: io::Error| Failure::failed(format!("{}: {error}.", folder.display()));
        std::fs::create_dir(&folder).map_err(failed)?;
        let figures = bezant_perf::plain::measure(&folder, rows, self.seconds);
        std::fs::remove_dir_all(&folder).map_err(failed)?;
        figures.map_err(|error| Failure::failed(format!("{error}.")))
    }

    /// Starts a cluster, does something with its file, and removes it.
    pub(super) fn with_own<T>(&self, subject: &Subject, act: impl FnOnce(&Path) -> Result<T>) -> Result<T> {
        let (replicas, f) = subject.replicas();
        let options = Testnet {
            replicas,
            f: Some(f),
            name: "bench".to_owned(),
            protocol: subject.contender.protocol,
            quota: subject.contender.quota,
            coin: subject.contender.coin.into(),
            client_auth: subject.auth.into(),
            channel: subject.channel.into(),
            durability: subject.durability.into(),
            service: subject.asked.sql().map_or(Served::Null, |_| Served::Sql).name().to_owned(),
            dynamic_clients: subject.contender.joined || subject.lets_join,
            limits: subject.limits(),
            ..Testnet::default()
        };
        let under_way_bytes = subject.clients * subject.outstanding * (subject.request_bytes + subject.reply_bytes);
        self.running.prepare(&self.parent, options, under_way_bytes)?;
        let admitted = match self.has_attacker {
            true => self.running.with(|cluster| attacker::admit(&cluster.file())),
            false => Ok(()),
        };
        let outcome = admitted.and_then(|()| self.start()).and_then(|file| act(&file));
        // A replica that has ended says why better than those who waited for it.
        let alive = self.running.check_alive();
        self.running.stop();
        alive.and(outcome)
    }

    fn start(&self) -> Result<PathBuf> {
        let (file, addresses) = self.running.with(|cluster| Ok((cluster.file(), cluster.start_all()?)))?;
        for (replica, address) in addresses {
            wait_until_up(replica, address, || self.running.check_alive())?;
        }
        Ok(file)
    }

    /// Load on a cluster that is running, in the part of its composition that is to be measured.
    pub(super) fn steady_load(&self, subject: &Subject, file: &Path, key: Option<&Path>) -> Result<Load> {
        let config = ClusterConfig::load(file).map_err(Failure::usage)?;
        if let Some(mix) = subject.asked.sql() {
            prepare(&config, file, key, bezant_perf::sql::preparation(mix))?;
        }
        let of_subject = Workload::of(subject.asked, subject.request_bytes, subject.reply_bytes);
        let workload = Workload { given: self.given.clone(), ..of_subject };
        let load = self.load(subject, file, key, &workload)?;
        self.leave_first_backup(subject, &files::members(&config))?;
        Ok(load)
    }

    /// Measures a cluster that is running.
    pub(super) fn measure_at(&self, subject: &Subject, file: &Path, key: Option<&Path>) -> Result<Figures> {
        let config = ClusterConfig::load(file).map_err(Failure::usage)?;
        let members = files::members(&config);
        let mut load = self.steady_load(subject, file, key)?;
        if let Some(lie) = self.attacks.lie {
            self.running.with(|cluster| cluster.have_lie(LIAR, lie))?;
        }
        let attack = self.attacks.attack.map(|kind| self.attack(kind, file, key)).transpose()?;
        thread::sleep(self.warmup);
        let before = usages(&members)?;
        let (counted, shared) = (self.running.laboratory.snapshot()?, self.running.processors.snapshot()?);
        load.measure();
        thread::sleep(self.seconds);
        let interval = load.pause();
        let counted = counted.zip(self.running.laboratory.snapshot()?);
        let shared = shared.zip(self.running.processors.snapshot()?);
        let after = usages(&members)?;
        let measured = answered(load.stop(interval))?;
        let mut figures = Figures::new(subject.settings(&config, members.len()), &measured, &before, &after);
        if let Some((before, after)) = shared {
            figures.shares = self.running.processors.shares(members.len(), &before, &after);
        }
        figures.attacked = attack.map(Attack::end).transpose()?;
        if let Some(lie) = self.attacks.lie {
            figures.attacked = Some(self.running.with(|cluster| attacker::end_lie(cluster, LIAR, lie))?);
        }
        if let Some((before, after)) = counted {
            figures.network = Some(self.running.laboratory.network(&before, &after, &figures)?);
        }
        Ok(figures)
    }

    /// Lets an attack begin on a cluster, by a client of its own if the cluster was started for that.
    pub(super) fn attack(&self, kind: Kind, file: &Path, key: Option<&Path>) -> Result<Attack> {
        let key = match (self.has_attacker, key) {
            (true, _) => attacker::key(file),
            (false, Some(key)) => key.to_owned(),
            (false, None) => file.with_file_name("client.key"),
        };
        let launcher = self.running.processors.attackers_launcher();
        self.running.attacker.begin(kind, launcher, (file, &key), &self.given)
    }

    /// Waits until a composition that begins with a Backup, to have something to measure others by, has been in one of
    /// the others for a while: nobody means it to be measured before.
    pub(super) fn leave_first_backup(&self, subject: &Subject, members: &[Member]) -> Result {
        let schedule = subject.contender.protocol.schedule();
        let begins_with_backup = matches!(schedule.parts(), [Part::Backup(_), _, ..]);
        let Some(first) = members.first().filter(|_| begins_with_backup) else { return Ok(()) };
        let begin = Instant::now();
        let (mut last, mut since) = (0, begin);
        loop {
            let status = first.account().map_err(Failure::failed)?;
            let instance = status["report"]["instance"].as_u64().unwrap_or(0);
            if instance != last {
                (last, since) = (instance, Instant::now());
            }
            let is_backup = instance == 0 || matches!(schedule.part(InstanceId(instance)), Part::Backup(_));
            if !is_backup && since.elapsed() >= STEADY {
                return Ok(());
            }
            if begin.elapsed() > LEAVE_MAX {
                let (seconds, report) = (LEAVE_MAX.as_secs(), &status["report"]);
                return Err(Failure::failed(format!(
                    "it was in no other part than a Backup for long in {seconds} s. Replica 0 is in instance \
                     {instance}, begun because {}, with {} requests executed, in view {}, and {} are pending.",
                    report["switch_reason"].as_str().filter(|why| !why.is_empty()).unwrap_or("it started"),
                    report["requests_executed"],
                    report["view"],
                    report["pending_requests"],
                )));
            }
            self.running.check_alive()?;
            thread::sleep(CONNECT_POLL);
        }
    }

    /// Load on a cluster that is running, once every connection is made.
    pub(super) fn load(&self, subject: &Subject, file: &Path, key: Option<&Path>, workload: &Workload) -> Result<Load> {
        let config = ClusterConfig::load(file).map_err(Failure::usage)?;
        let own = key.map_or_else(|| file.with_file_name("client.key"), Path::to_owned);
        let mut options = files::client_options(&config, &own, subject.clients, subject.outstanding)?;
        options.bundle_operations_max = subject.bundle;
        if subject.contender.joined {
            if !config.dynamic_clients {
                return Err(Failure::usage("nobody can join this cluster: its file has no `dynamic_clients = true`."));
            }
            options.identity = None;
        }
        let are_several = self.has_attacker && key.is_none() && !subject.contender.joined;
        let others = if are_several { attacker::measured(&config, file)? } else { Vec::new() };
        let load = Load::start(&options, &others, self.load_threads, workload)
            .map_err(|error| Failure::failed(format!("the load: {error}.")))?;
        self.connect(&load)?;
        Ok(load)
    }

    /// Waits until every connection is made, all have joined who have to, and the first answers came.
    fn connect(&self, load: &Load) -> Result {
        let deadline = Instant::now() + CONNECT_MAX;
        loop {
            let ((made, wanted), (joined, joining)) = (load.connections(), load.joined());
            if made == wanted && joined >= joining && load.finished() > 0 {
                return Ok(());
            }
            if let Some(barred) = load.barred() {
                return Err(Failure::failed(format!("a client cannot join: {barred}.")));
            }
            if Instant::now() > deadline {
                let seconds = CONNECT_MAX.as_secs();
                let joined =
                    if joining > 0 { format!(", {joined} of {joining} clients joined") } else { String::new() };
                let text = format!("{made} of {wanted} connections were made{joined} in {seconds} s.");
                return Err(Failure::failed(text));
            }
            self.running.check_alive()?;
            thread::sleep(CONNECT_POLL);
        }
    }
}

/// Makes what a workload needs in the database.
fn prepare(
    config: &ClusterConfig,
    file: &Path,
    key: Option<&Path>,
    requests: impl IntoIterator<Item = Request>,
) -> Result {
    let key = key.map_or_else(|| file.with_file_name("client.key"), Path::to_owned);
    let options = files::client_options(config, &key, 1, 1)?;
    let failed = |what: String| Failure::failed(format!("the database cannot be prepared: {what}."));
    let client = client::connect(options).map_err(|error| failed(error.to_string()))?;
    for request in requests {
        let result =
            client.execute(request.to_bytes().into(), CONNECT_MAX).wait().map_err(|e| failed(e.to_string()))?;
        match Response::from_bytes(result) {
            Ok(Response::Done(_)) => {}
            Ok(other) => return Err(failed(format!("{other:?}"))),
            Err(error) => return Err(failed(format!("{error}; is the service `sql`?"))),
        }
    }
    Ok(())
}

/// What the clients saw, if it was what they asked for.
pub(super) fn checked(measured: io::Result<Measured>) -> Result<Measured> {
    let measured = measured.map_err(|error| Failure::failed(format!("the load: {error}.")))?;
    match &measured.last_failure {
        Some(last) => Err(Failure::failed(format!("{} requests failed; the last: {last}.", measured.failures))),
        None => Ok(measured),
    }
}

/// The same, if anything was answered at all.
pub(super) fn answered(measured: io::Result<Measured>) -> Result<Measured> {
    let measured = checked(measured)?;
    if measured.latencies.count() == 0 {
        return Err(Failure::failed("no request was answered in time. Are all replicas there?"));
    }
    Ok(measured)
}

/// What every replica counts.
pub(super) fn usages(members: &[Member]) -> Result<Vec<Usage>> {
    let usage = |member: &Member| {
        let failed = |why: String| Failure::failed(format!("replica {}: {why}.", member.replica));
        let status = member.account().map_err(failed)?;
        Usage::from_status(&status).ok_or_else(|| failed("its admin port gives no counters".to_owned()))
    };
    members.iter().map(usage).collect()
}
