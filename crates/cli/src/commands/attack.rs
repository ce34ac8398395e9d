//! `bezant attack`: somebody who misbehaves, to see that a cluster holds.
//!
//! A client: every few milliseconds another of its sessions sends a request and panics at all replicas, in the instance
//! that runs: at once, so that no answer can be in time, or with MACs that hold for some replicas and not for others.
//! Or it does what one of the simulator's clients does that lie ([`kind`]), some of which [join](joiner) first. Or
//! somebody without a key, who [floods](flood) the ports.

mod flood;
mod joiner;
mod kind;
mod lie;
mod operations;

use joiner::Joiner;
pub(crate) use kind::Kind;
use lie::lie;
use operations::Operations;

use crate::failure::{Failure, Result};
use crate::{files, given, output};
use bezant_core::auth::Tag;
use bezant_core::ids::{InstanceId, ReplicaId, Timestamp};
use bezant_core::message::Request;
use bezant_core::registry::Message;
use bezant_core::switching::{Panic, Switch, SwitchMessage};
use bezant_node::client::ClientOptions;
use bezant_node::config::{Address, ClusterConfig, resolve};
use bezant_node::{Error, keys};
use bezant_perf::raw::RawClient;
use bezant_sim::byzantine::{Adversary, ClientMind};
use bezant_sim::rng::Rng;
use bytes::Bytes;
use serde_json::json;
use std::collections::BTreeSet;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::{Duration, Instant};

/// How many sessions take turns.
const SESSIONS: usize = 64;
/// Attacks after which a simulated client draws anew how it lies.
const TURNS_OF_A_MIND: u64 = 128;
/// The pause between two attacks.
const PAUSE: Duration = Duration::from_millis(2);

/// What a client sends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Requests {
    /// Requests whose MACs some replicas accept and others do not, and panics.
    PartialMacs,
    /// Signed requests with good MACs, and panics.
    Signed,
    /// What this client of the simulator does.
    Simulated(Adversary),
}

/// Attack a cluster as one of its clients or from outside, to see that it holds
///
/// Sends requests whose MACs some replicas accept and others do not, and panics all the time. A cluster that is
/// attacked like that keeps every promise, but may stay out of its fast instances. Nothing is written, for the requests
/// are none that a service understands; only what --operation gives may be executed. Or lies like one of the
/// simulator's clients. Or floods the ports of all replicas with connections, for which it needs no key.
#[derive(clap::Args)]
#[command(after_help = "Examples:\n  bezant attack --cluster net/cluster.toml --seconds 5\n  \
    bezant attack --cluster net/cluster.toml --kind panics\n  \
    bezant attack --cluster net/cluster.toml --kind feedback-lies\n  \
    bezant attack --cluster net/cluster.toml --kind client-flood --operation 0100000000000000\n  \
    bezant attack --cluster net/cluster.toml --kind connect-flood --threads 4\n  \
    bezant attack --kind connect-flood --address 127.0.0.1:5432")]
pub(crate) struct Arguments {
    /// What to do
    #[arg(long, value_enum, default_value = "partial-macs")]
    kind: Kind,
    /// The cluster's file
    #[arg(long, value_name = "FILE", default_value = "cluster.toml")]
    cluster: PathBuf,
    /// The client's secret key [default: client.key beside the cluster's file; of somebody who joins, a new one]
    #[arg(long, value_name = "FILE")]
    key: Option<PathBuf>,
    /// Ask for this operation of whatever service the cluster has, in hexadecimal; several are taken in turn. It may be
    /// executed [default: what none of the services that ship understands]
    #[arg(long, value_name = "HEX", value_parser = given::operation)]
    operation: Vec<Bytes>,
    /// What a connect-flood floods, as often as you like [default: the ports for clients and for replicas of all
    /// replicas]
    #[arg(long, value_name = "HOST:PORT")]
    address: Vec<Address>,
    /// From how many threads a connect-flood comes
    #[arg(long, default_value_t = 4, value_parser = clap::value_parser!(u16).range(1..=256))]
    threads: u16,
    /// The replica that a client is in league with who gives something to one only, as withhold-body does; have it lie
    /// alike (`bezant replica --lie`), or it gives that to the others
    #[arg(long, value_name = "REPLICA", default_value_t = 0)]
    league: u8,
    /// How long
    #[arg(long, default_value_t = 10, value_parser = clap::value_parser!(u64).range(1..=86_400))]
    seconds: u64,
    /// End as soon as the standard input does: whoever started it has had enough, or has ended
    #[arg(long, hide = true)]
    while_input: bool,
    /// Print one JSON object
    #[arg(long)]
    json: bool,
}

/// Runs the command.
pub(crate) fn run(arguments: &Arguments) -> Result {
    let end = Instant::now() + Duration::from_secs(arguments.seconds);
    let enough = Arc::new(AtomicBool::new(false));
    if arguments.while_input {
        let enough = Arc::clone(&enough);
        thread::spawn(move || {
            // Nothing comes but the end.
            let _ = io::copy(&mut io::stdin(), &mut io::sink());
            enough.store(true, Ordering::Relaxed);
        });
    }
    let is_over = || enough.load(Ordering::Relaxed) || Instant::now() >= end;
    let requests = match arguments.kind {
        Kind::PartialMacs => Requests::PartialMacs,
        Kind::Panics => Requests::Signed,
        Kind::Simulated(adversary) => Requests::Simulated(adversary),
        Kind::ConnectFlood => return flood_ports(arguments, is_over),
    };
    let config = ClusterConfig::load(&arguments.cluster).map_err(Failure::usage)?;
    given::expect_ours_without(&arguments.operation, &config)?;
    let adversary = match requests {
        Requests::Simulated(adversary) => Some(adversary),
        Requests::PartialMacs | Requests::Signed => None,
    };
    if usize::from(arguments.league) >= config.replicas.len() {
        let last = config.replicas.len() - 1;
        return Err(Failure::usage(format!("--league {}: the replicas are 0 to {last}.", arguments.league)));
    }
    if let Some(why) = adversary.and_then(|adversary| adversary.is_idle_in(config.protocol)) {
        eprintln!("bezant: {why}. What it says is dropped, and costs replicas no more than that.");
    }
    let operations = Operations::of(&arguments.operation, adversary, &config.limits)?;
    let key = arguments.key.clone().unwrap_or_else(|| arguments.cluster.with_file_name("client.key"));
    let (attacks, instance) = match requests {
        Requests::Simulated(adversary) if arguments.kind.joins() => {
            let mut joiner = who_joins(&config, arguments.key.as_deref(), adversary, operations)?;
            joiner.go_on(is_over).map_err(failed)?;
            (joiner.attacks(), joiner.instance())
        }
        _ => {
            let league = ReplicaId(arguments.league);
            let mut attacker = Attacker::new(&config, &key, requests, operations, league)?;
            attacker.go_on(is_over)?;
            (attacker.attacks, attacker.instance)
        }
    };
    if attacks == 0 {
        return Err(Failure::failed(
            "the attack did nothing: no replica was there, or there was nothing to lie about.",
        ));
    }
    if arguments.json {
        return output::line(json!({ "attacks": attacks, "instance": instance.0 }));
    }
    let what = match requests {
        Requests::PartialMacs => "with bad MACs",
        Requests::Signed => "with a signature",
        Requests::Simulated(adversary) => {
            return output::line(format!("{attacks} lies of {adversary}; the last in instance {}", instance.0));
        }
    };
    output::line(format!("{attacks} requests {what} and as many panics; the last in instance {}", instance.0))
}

fn flood_ports(arguments: &Arguments, is_over: impl Fn() -> bool + Sync) -> Result {
    let addresses = if arguments.address.is_empty() {
        let cluster = ClusterConfig::load(&arguments.cluster).map_err(Failure::usage)?;
        let ports = cluster.replicas.iter().flat_map(|replica| [&replica.client_address, &replica.peer_address]);
        resolve(ports).map_err(Error::from)?
    } else {
        resolve(arguments.address.iter()).map_err(Error::from)?
    };
    let flood::Flood { made, failed } = flood::flood(&addresses, arguments.threads.into(), is_over)?;
    if made == 0 {
        return Err(Failure::failed(format!("the attack did nothing: {failed} connections were refused or not made.")));
    }
    if arguments.json {
        return output::line(json!({ "connections": made, "failed": failed }));
    }
    output::line(format!("{made} connections that were closed at once; {failed} more were refused or not made in time"))
}

/// With the key in this file, or a new one.
fn who_joins(
    config: &ClusterConfig,
    key: Option<&Path>,
    adversary: Adversary,
    operations: Operations,
) -> Result<Joiner> {
    if !config.dynamic_clients {
        return Err(Failure::usage(format!(
            "{adversary} joins, and this cluster lets nobody. Make one that does: bezant testnet --dynamic-clients."
        )));
    }
    let options = match key {
        Some(key) => files::client_options(config, key, 1, 1)?,
        None if adversary == Adversary::Takeover => {
            return Err(Failure::usage(format!("{adversary} speaks with another's key: name its file with --key.")));
        }
        None => ClientOptions::of_stranger(config, keys::generate().map_err(failed)?),
    };
    if options.identity.is_some() {
        return Err(Failure::usage(format!("{adversary} joins, and the cluster's file names this key already.")));
    }
    let raw = RawClient::new(&options).map_err(failed)?;
    Joiner::new(raw, adversary, operations).ok_or_else(|| Failure::usage(format!("{adversary} is no client.")))
}

struct Attacker {
    raw: RawClient,
    /// The latest that anybody named.
    instance: InstanceId,
    /// Requests, and with what is simulated, lies.
    attacks: u64,
    requests: Requests,
    operations: Operations,
    /// The replica that it may give something to, and to no other.
    league: ReplicaId,
    /// How often it has acted.
    turns: u64,
    /// What draws its lies, and who tells them now, if that is simulated.
    rng: Rng,
    mind: Option<ClientMind>,
}

/// The attack could not be carried out.
fn failed(error: io::Error) -> Failure {
    Failure::failed(format!("the attack: {error}."))
}

impl Attacker {
    fn new(
        config: &ClusterConfig,
        key: &Path,
        requests: Requests,
        operations: Operations,
        league: ReplicaId,
    ) -> Result<Self> {
        let options = files::client_options(config, key, 1, SESSIONS)?;
        let raw = RawClient::new(&options).map_err(failed)?;
        let rng = Rng::stream(raw.now().0, "attack");
        Ok(Self { raw, instance: InstanceId(1), attacks: 0, requests, operations, league, turns: 0, rng, mind: None })
    }

    fn go_on(&mut self, is_over: impl Fn() -> bool) -> Result {
        while !is_over() {
            self.listen().map_err(failed)?;
            self.attack();
            thread::sleep(PAUSE);
        }
        Ok(())
    }

    fn listen(&mut self) -> io::Result<()> {
        for (_, message) in self.raw.listen()? {
            if let Message::Switch(Switch { instance, message: SwitchMessage::Active(_) }) = message {
                self.instance = self.instance.max(instance);
            }
        }
        Ok(())
    }

    fn attack(&mut self) {
        if self.raw.links_up() == 0 {
            return;
        }
        self.turns += 1;
        let client = self.raw.session((self.turns % SESSIONS as u64) as u32);
        let timestamp = Timestamp(self.raw.now().0);
        let (cluster, keyring) = (self.raw.cluster(), self.raw.keyring());
        let operation = self.operations.at(self.turns);
        let mut request = Request::new(self.instance, client, timestamp, false, operation);
        request = request.authenticate_for_all(cluster, keyring);
        match self.requests {
            Requests::Simulated(adversary) => return self.lie(adversary, &request),
            Requests::Signed => request = request.sign(keyring),
            Requests::PartialMacs => {
                let tags = request.authentication.tags.iter().enumerate();
                // Every pattern of good and bad ones in turn.
                let spoilt =
                    |(replica, tag)| if self.turns >> replica & 1 == 1 { Tag::from_bytes([0; 16]) } else { tag };
                request.authentication.tags = tags.map(spoilt).collect();
            }
        }
        let panic = SwitchMessage::Panic(Panic { client, timestamp });
        let panic = Message::Switch(Switch { instance: self.instance, message: panic });
        let replicas: Vec<ReplicaId> = cluster.replicas.iter().collect();
        let request = Message::Request(request);
        let heard = replicas.into_iter().filter(|to| self.raw.say(*to, &request) & self.raw.say(*to, &panic)).count();
        self.attacks += u64::from(heard > 0);
    }

    /// Does with a request what a client of the simulator would.
    fn lie(&mut self, adversary: Adversary, request: &Request) {
        if self.turns % TURNS_OF_A_MIND == 1 {
            self.mind = ClientMind::new(adversary, &mut self.rng, &BTreeSet::from([self.league]));
        }
        let Some(mind) = &mut self.mind else { return };
        // What whoever is in league has not got either, nobody withholds.
        if adversary == Adversary::WithholdBody && !self.raw.reaches(self.league) {
            return;
        }
        let all: Vec<_> = self.raw.cluster().replicas.iter().collect();
        self.attacks += lie(&mut self.raw, mind, &mut self.rng, &all, request);
    }
}
