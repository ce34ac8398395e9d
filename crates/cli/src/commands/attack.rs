//! `bezant attack`: a client that misbehaves, to see that a cluster holds.
//!
//! Every few milliseconds another of its sessions sends a request whose MACs hold for some replicas and not for others,
//! and panics at all of them, in the instance that runs.

use crate::failure::{Failure, Result};
use crate::{files, output};
use bezant_core::auth::Tag;
use bezant_core::cluster::{InstanceId, ReplicaId, Timestamp};
use bezant_core::message::{Message, Request};
use bezant_core::switching::{Panic, Switch, SwitchMessage};
use bezant_node::config::ClusterConfig;
use bezant_perf::raw::RawClient;
use bytes::Bytes;
use serde_json::json;
use std::io;
use std::path::PathBuf;
use std::time::{Duration, Instant};

/// How many sessions take turns.
const SESSIONS: usize = 64;
/// The pause between two attacks.
const PAUSE: Duration = Duration::from_millis(2);

/// Attack a cluster as one of its clients, to see that it holds
///
/// Sends requests whose MACs some replicas accept and others do not, and panics all the time. A cluster that is
/// attacked like that keeps every promise, but stays out of its fast instances. Nothing is written, for the requests
/// are none that a service understands.
#[derive(clap::Args)]
#[command(after_help = "Example:\n  bezant attack --cluster net/cluster.toml --seconds 5")]
pub(crate) struct Arguments {
    /// The cluster's file
    #[arg(long, value_name = "FILE", default_value = "cluster.toml")]
    cluster: PathBuf,
    /// The client's secret key [default: client.key beside the cluster's file]
    #[arg(long, value_name = "FILE")]
    key: Option<PathBuf>,
    /// How long
    #[arg(long, default_value_t = 10, value_parser = clap::value_parser!(u64).range(1..=86_400))]
    seconds: u64,
    /// Print one JSON object
    #[arg(long)]
    json: bool,
}

/// Runs the command.
pub(crate) fn run(arguments: &Arguments) -> Result {
    let config = ClusterConfig::load(&arguments.cluster).map_err(Failure::usage)?;
    let key = arguments.key.clone().unwrap_or_else(|| arguments.cluster.with_file_name("client.key"));
    let options = files::client_options(&config, &key, 1, SESSIONS)?;
    let end = Instant::now() + Duration::from_secs(arguments.seconds);
    let failed = |error: io::Error| Failure::failed(format!("the attack: {error}."));
    let mut attacker = Attacker::new(RawClient::new(&options).map_err(failed)?);
    while Instant::now() < end {
        attacker.listen().map_err(failed)?;
        attacker.attack();
        std::thread::sleep(PAUSE);
    }
    let Attacker { attacks, instance, .. } = attacker;
    if arguments.json {
        return output::line(json!({ "attacks": attacks, "instance": instance.0 }));
    }
    output::line(format!("{attacks} requests with bad MACs and as many panics; the last in instance {}", instance.0))
}

struct Attacker {
    raw: RawClient,
    /// The latest that anybody named.
    instance: InstanceId,
    attacks: u64,
}

impl Attacker {
    const fn new(raw: RawClient) -> Self {
        Self { raw, instance: InstanceId(1), attacks: 0 }
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
        self.attacks += 1;
        let client = self.raw.session((self.attacks % SESSIONS as u64) as u32);
        let timestamp = Timestamp(self.raw.now().0);
        let (cluster, keyring) = (self.raw.cluster(), self.raw.keyring());
        let mut request = Request::new(self.instance, client, timestamp, false, Bytes::from_static(b"attack"));
        request = request.authenticate_for_all(cluster, keyring);
        let tags = request.authentication.tags.iter().enumerate();
        // Every pattern of good and bad ones in turn.
        let spoilt = |(replica, tag)| if self.attacks >> replica & 1 == 1 { Tag::from_bytes([0; 16]) } else { tag };
        request.authentication.tags = tags.map(spoilt).collect();
        let panic = SwitchMessage::Panic(Panic { client, timestamp });
        let panic = Message::Switch(Switch { instance: self.instance, message: panic });
        let replicas: Vec<ReplicaId> = cluster.replicas().collect();
        for to in replicas {
            self.raw.say(to, &Message::Request(request.clone()));
            self.raw.say(to, &panic);
        }
    }
}
