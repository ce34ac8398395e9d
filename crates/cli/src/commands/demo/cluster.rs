//! Replicas on this machine for the demo and the benchmarks: processes that are started, killed, talked to and cleaned
//! up after.

use crate::commands::testnet;
use crate::failure::{Failure, Result};
use crate::liar::Lie;
use crate::member::Member;
use crate::service::Service;
use crate::{admin, files};
use bezant_node::config::{self, ClusterConfig, Testnet};
use rustix::process::{Pid, Signal, kill_process};
use std::collections::BTreeMap;
use std::ffi::OsString;
use std::fs::{self, File};
use std::io::{Read, Write};
use std::net::{Ipv4Addr, SocketAddr, TcpListener};
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdout, Command, Stdio};
use std::thread;
use std::time::{Duration, Instant};

/// The cluster's files within the demo's folder.
const NET: &str = "net";
/// How long an operation may take: longer than finding another primary does.
const DEADLINE: Duration = Duration::from_secs(20);
/// The distance between the ports of one replica and the next in a new testnet.
const PORTS_PER_REPLICA: u16 = 10;
/// The ports that are tried.
const PORTS: std::ops::Range<u16> = 20_000..30_000;
/// How many places among them are tried.
const PORT_TRIALS: usize = 100;
/// How long a replica may take to start.
const START_MAX: Duration = Duration::from_secs(20);
/// How often a starting replica is asked.
const START_POLL: Duration = Duration::from_millis(20);
/// How long replicas may take to end by themselves.
const STOP_MAX: Duration = Duration::from_secs(3);

/// A cluster in a folder of its own.
pub(in crate::commands) struct DemoCluster {
    folder: PathBuf,
    config: ClusterConfig,
    members: Vec<Member>,
    /// By number; `None` for those that were killed.
    replicas: Vec<Option<Child>>,
    /// Those that have been told to lie since they were started, each with its count of lies at that moment.
    liars: BTreeMap<u8, u64>,
    /// By number: what stands before the command line of a replica. Empty for all that are started as usual.
    launchers: Vec<Vec<String>>,
    /// What keeps other demos from our ports.
    _claims: Vec<TcpListener>,
    stopped: bool,
}

impl DemoCluster {
    /// Makes a folder in `parent`, keys and files; starts nothing. The options' port is chosen here, unless they have
    /// addresses.
    pub(in crate::commands) fn prepare(parent: &Path, options: Testnet) -> Result<Self> {
        let folder = make_folder(parent, &options.name)?;
        let prepare = || {
            let (options, claims) = match options.addresses.is_empty() {
                true => {
                    let (base_port, claims) = free_base_port(options.replicas)?;
                    (Testnet { base_port, ..options }, claims)
                }
                false => (options, Vec::new()),
            };
            let config = config::testnet(&folder.join(NET), &options).map_err(|error| testnet::refusal(&error))?;
            let members = files::members(&config);
            Ok((config, members, claims))
        };
        match prepare() {
            Ok((config, members, claims)) => {
                let replicas = members.iter().map(|_| None).collect();
                let (liars, launchers) = (BTreeMap::new(), Vec::new());
                Ok(Self { folder, config, members, replicas, liars, launchers, _claims: claims, stopped: false })
            }
            Err(failure) => {
                remove_folder(&folder);
                Err(failure)
            }
        }
    }

    /// The same, with replicas that are started by other programs: the words that stand before the command line of
    /// each.
    pub(in crate::commands) fn launched_by(self, launchers: Vec<Vec<String>>) -> Self {
        Self { launchers, ..self }
    }

    /// The cluster's file, as clients read it.
    pub(in crate::commands) fn file(&self) -> PathBuf {
        self.folder.join(NET).join("cluster.toml")
    }

    /// Starts every replica. Returns where each can be asked how it is.
    pub(in crate::commands) fn start_all(&mut self) -> Result<Vec<(u8, SocketAddr)>> {
        (0..self.replicas.len() as u8).map(|replica| Ok((replica, self.start(replica)?))).collect()
    }

    /// A client of the cluster.
    pub(in crate::commands) fn connect(&self) -> Result<Service> {
        Service::of(&self.config, &self.folder.join(NET).join("client.key"), DEADLINE)
    }

    /// What the cluster's file says, and the client's key.
    pub(in crate::commands) fn credentials(&self) -> (ClusterConfig, PathBuf) {
        (self.config.clone(), self.folder.join(NET).join("client.key"))
    }

    /// Every replica, and whether it is meant to be there.
    pub(in crate::commands) fn members(&self) -> Vec<Member> {
        self.members.clone()
    }

    /// Whether replicas that nobody killed are still there.
    pub(in crate::commands) fn check_alive(&mut self) -> Result {
        for (replica, slot) in self.replicas.iter_mut().enumerate() {
            let Some(child) = slot else { continue };
            let ended = child.try_wait().map_err(|error| Failure::failed(format!("replica {replica}: {error}")))?;
            if let Some(status) = ended {
                *slot = None;
                let log = self.folder.join(format!("replica-{replica}.log"));
                let text = fs::read_to_string(log).unwrap_or_default();
                let last = text.lines().last().unwrap_or("it said nothing");
                return Err(Failure::failed(format!("replica {replica} ended by itself with {status}: {last}")));
            }
        }
        Ok(())
    }

    /// Kills a replica without warning.
    pub(in crate::commands) fn kill(&mut self, replica: u8) -> Result {
        let Some(mut child) = self.slot(replica)?.take() else {
            return Err(Failure::failed(format!("replica {replica} is not running.")));
        };
        // It cannot have ended unseen: then killing would be an error, and the state is the wanted one.
        let _ = child.kill();
        child.wait().map(drop).map_err(|error| Failure::failed(format!("replica {replica}: {error}")))
    }

    /// Lets a replica's process stand still, as if its machine did.
    pub(in crate::commands) fn pause(&mut self, replica: u8) -> Result {
        self.signal(replica, Signal::STOP)
    }

    /// Lets it go on.
    pub(in crate::commands) fn resume(&mut self, replica: u8) -> Result {
        self.signal(replica, Signal::CONT)
    }

    /// Nobody has waited for the process, so that its id is no other's.
    fn signal(&mut self, replica: u8, signal: Signal) -> Result {
        let Some(child) = self.slot(replica)? else {
            return Err(Failure::failed(format!("replica {replica} is not running.")));
        };
        let sent = kill_process(Pid::from_child(child), signal);
        sent.map_err(|error| Failure::failed(format!("replica {replica}: {error}.")))
    }

    /// Starts a replica that was killed, or kills and starts it. Returns where it can be asked how it is.
    pub(in crate::commands) fn restart(&mut self, replica: u8) -> Result<SocketAddr> {
        if self.slot(replica)?.is_some() {
            self.kill(replica)?;
        }
        self.start(replica)
    }

    /// Has a replica lie, and waits for that.
    pub(in crate::commands) fn have_lie(&mut self, replica: u8, lie: Lie) -> Result {
        let before = self.order(replica, &format!("lie {}", lie.name()))?;
        self.liars.entry(replica).or_insert(before);
        Ok(())
    }

    /// Has a liar be honest again, and waits for that. How many lies it has told since it began.
    ///
    /// # Errors
    /// It is not there, or does not lie: what is said of the state of one that did would be wrong.
    pub(in crate::commands) fn have_honest(&mut self, replica: u8) -> Result<u64> {
        if self.slot(replica)?.is_some() && !self.liars.contains_key(&replica) {
            return Err(Failure::failed(format!("replica {replica} does not lie: `lie {replica}` has it do so.")));
        }
        let lies = self.order(replica, "honest")?;
        Ok(lies - self.liars.remove(&replica).unwrap_or_default())
    }

    /// Writes a line to a replica's standard input, and waits for it to be obeyed.
    fn order(&mut self, replica: u8, word: &str) -> Result<u64> {
        let Some(child) = self.slot(replica)? else {
            return Err(Failure::failed(format!("replica {replica} is not running: restart it first.")));
        };
        let (Some(input), Some(output)) = (&mut child.stdin, &mut child.stdout) else {
            unreachable!("both are pipes, see spawn");
        };
        match writeln!(input, "{word}").and_then(|()| read_line(output)) {
            Ok(echo) => {
                let lies = echo.strip_prefix(word).and_then(|rest| rest.strip_prefix(": ")?.parse().ok());
                lies.ok_or_else(|| Failure::failed(format!("replica {replica} does not obey.")))
            }
            Err(error) => Err(Failure::failed(format!("replica {replica} does not listen: {error}."))),
        }
    }

    /// Ends every replica and removes every file. Nothing can be started afterwards.
    pub(in crate::commands) fn stop(&mut self) {
        if std::mem::replace(&mut self.stopped, true) {
            return;
        }
        let mut children: Vec<_> = self.replicas.iter_mut().filter_map(Option::take).collect();
        // The end of their input is the sign to leave.
        children.iter_mut().for_each(|child| drop(child.stdin.take()));
        let deadline = Instant::now() + STOP_MAX;
        for child in &mut children {
            while Instant::now() < deadline && matches!(child.try_wait(), Ok(None)) {
                thread::sleep(Duration::from_millis(5));
            }
            // No effect on one that has ended.
            let _ = child.kill();
            let _ = child.wait();
        }
        remove_folder(&self.folder);
    }

    fn slot(&mut self, replica: u8) -> Result<&mut Option<Child>> {
        let count = self.replicas.len();
        let slot = self.replicas.get_mut(usize::from(replica));
        slot.ok_or_else(|| Failure::usage(format!("there is no replica {replica}: they are 0 to {}.", count - 1)))
    }

    fn start(&mut self, replica: u8) -> Result<SocketAddr> {
        if self.stopped {
            return Err(Failure::failed("the demo is ending."));
        }
        let child = self.spawn(replica).map_err(|error| Failure::failed(format!("replica {replica}: {error}")))?;
        *self.slot(replica)? = Some(child);
        self.liars.remove(&replica);
        self.members[usize::from(replica)].address()
    }

    fn spawn(&self, replica: u8) -> std::io::Result<Child> {
        let log = File::options().create(true).append(true).open(self.folder.join(format!("replica-{replica}.log")))?;
        let launcher = self.launchers.get(usize::from(replica)).into_iter().flatten().map(OsString::from);
        let mut words = launcher.chain([std::env::current_exe()?.into_os_string()]);
        Command::new(words.next().expect("our own program is the last word"))
            .args(words)
            .arg("replica")
            .arg("--dir")
            .arg(self.folder.join(NET).join(format!("replica-{replica}")))
            .arg("--obey-input")
            // Ctrl-C is for us: who ends because of it here would seem to have failed.
            .process_group(0)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(log)
            .spawn()
    }
}

/// A line of a replica's standard output. There are no other lines than answers to orders.
fn read_line(output: &mut ChildStdout) -> std::io::Result<String> {
    let mut line = Vec::new();
    let mut byte = [0];
    while output.read(&mut byte)? == 1 && byte != *b"\n" {
        line.push(byte[0]);
    }
    Ok(String::from_utf8_lossy(&line).into_owned())
}

/// Waits until a replica says that it runs; gives up as soon as `check` fails.
pub(in crate::commands) fn wait_until_up(
    replica: u8,
    address: SocketAddr,
    mut check: impl FnMut() -> Result,
) -> Result {
    let deadline = Instant::now() + START_MAX;
    while !admin::is_live(address) {
        check()?;
        if Instant::now() > deadline {
            return Err(Failure::failed(format!("replica {replica} does not start within {} s.", START_MAX.as_secs())));
        }
        thread::sleep(START_POLL);
    }
    Ok(())
}

/// A port such that those of all replicas are free just now, and claims that keep other demos from them: those of the
/// ports of a replica that none uses.
fn free_base_port(replicas: usize) -> Result<(u16, Vec<TcpListener>)> {
    let bind = |port| TcpListener::bind((Ipv4Addr::LOCALHOST, port));
    let needed = replicas as u16 * PORTS_PER_REPLICA;
    let places = u32::from((PORTS.end - PORTS.start - needed) / PORTS_PER_REPLICA);
    for _ in 0..PORT_TRIALS {
        let base = PORTS.start + (random()? % places) as u16 * PORTS_PER_REPLICA;
        let is_claim = |port: &u16| port % PORTS_PER_REPLICA == PORTS_PER_REPLICA - 1;
        // The claims first: whoever has them may try the others.
        let claims: Vec<_> = (base..base + needed).filter(is_claim).map_while(|port| bind(port).ok()).collect();
        let is_free = |port: u16| is_claim(&port) || bind(port).is_ok();
        if claims.len() == replicas && (base..base + needed).all(is_free) {
            return Ok((base, claims));
        }
    }
    Err(Failure::failed(format!("found no {needed} free ports in a row between {} and {}.", PORTS.start, PORTS.end)))
}

fn random() -> Result<u32> {
    getrandom::u32().map_err(|error| Failure::failed(format!("no random bytes: {error}.")))
}

/// A new folder that nobody else can look into.
fn make_folder(parent: &Path, name: &str) -> Result<PathBuf> {
    use std::os::unix::fs::DirBuilderExt;
    let folder = parent.join(format!("bezant-{name}-{}-{:08x}", std::process::id(), random()?));
    fs::DirBuilder::new().mode(0o700).create(&folder).map_err(|error| {
        Failure::failed(format!(
            "cannot make a folder in {}: {error}. Choose another place: TMPDIR says where.",
            parent.display()
        ))
    })?;
    Ok(folder)
}

fn remove_folder(folder: &PathBuf) {
    if let Err(error) = fs::remove_dir_all(folder) {
        eprintln!("bezant: {} is left behind: {error}.", folder.display());
    }
}
