//! Somebody who attacks the cluster while it is measured. In the processor laboratory the attacker has a control group
//! of its own, with a replica's share, so that it takes nothing from anybody but by what it sends. In a cluster that is
//! started to be attacked it is a client of its own as well, so that what its identity may take is not the others'. And
//! the others are several there, as a replica is fair among clients and not among one client's connections.

use super::words::name;
use crate::commands::attack::Kind;
use crate::commands::demo::cluster::DemoCluster;
use crate::failure::{Failure, Result};
use crate::liar::Lie;
use bezant_core::auth::{Ed25519, SecretKey, Suite};
use bezant_core::ids::IdentityId;
use bezant_node::config::{ClusterConfig, IdentityEntry};
use bezant_node::keys;
use bezant_perf::compare;
use bezant_perf::figures::Attacked;
use bytes::Bytes;
use std::iter;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::{Arc, Mutex, PoisonError};

/// The replica that lies: the first primary, head and sequencer.
pub(super) const LIAR: u8 = 0;

/// The attacker's name in the cluster's file.
const ATTACKER: &str = "attacker";
/// How many clients are measured in a cluster that is started to be attacked; each has its part of the connections. An
/// attacker has by right what a client has: beside ten of them, an eleventh of all that is done.
pub(super) const MEASURED: usize = 40;
/// How long an attack may last that nobody ends: nothing that is measured takes so long.
const LASTS_MAX: &str = "86400";

/// What the command line says about it.
#[derive(Clone, Copy, Debug, Default, clap::Args)]
#[group(id = "attacker")]
pub(super) struct Arguments {
    /// Let somebody attack the cluster meanwhile, as `bezant attack --kind` does; with --cpu-share, with as much of a
    /// core as a replica has
    #[arg(long, value_name = "KIND")]
    pub(super) attack: Option<Kind>,
    /// Let replica 0, the first primary and head, misbehave meanwhile, as `bezant replica --lie` does
    #[arg(long, value_name = "HOW", conflicts_with = "attack")]
    pub(super) lie: Option<Lie>,
}

impl Arguments {
    /// Whether the attacker is somebody who joins.
    pub(super) fn joins(&self) -> bool {
        self.attack.is_some_and(Kind::joins)
    }

    /// Whether all that is compared can be attacked.
    ///
    /// # Errors
    /// There is something whose course of events leaves no room for an attacker.
    pub(super) fn check<'a>(&self, experiments: impl IntoIterator<Item = &'a compare::Kind>) -> Result {
        let are_sweeps = experiments.into_iter().all(|kind| matches!(kind, compare::Kind::Sweep(_)));
        if self.attack.is_none() && self.lie.is_none() || are_sweeps {
            return Ok(());
        }
        Err(Failure::usage(
            "--attack and --lie: a figure over time, and one of how long a switch takes, is not attacked.",
        ))
    }
}

/// The attacker, while one is at work: a signal may end it at any time. It ends with this process as well, however that
/// ends.
#[derive(Clone, Default)]
pub(super) struct Attacker(Arc<Mutex<Option<Child>>>);

/// An attack under way. It ends with this value.
pub(super) struct Attack {
    name: String,
    attacker: Attacker,
}

impl Attacker {
    fn take(&self) -> Option<Child> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).take()
    }

    /// Ends it, if it is at work.
    pub(super) fn stop(&self) {
        if let Some(mut child) = self.take() {
            // It may have ended by itself.
            let _ = child.kill();
            let _ = child.wait();
        }
    }

    /// Begins an attack on a cluster, with a key, or with a new one where it joins. It asks for what is given, if
    /// something is. The launcher's words come before its command line.
    pub(super) fn begin(
        &self,
        kind: Kind,
        launcher: Vec<String>,
        (cluster, key): (&Path, &Path),
        given: &[Bytes],
    ) -> Result<Attack> {
        let name = name(kind);
        let failed = |error: std::io::Error| Failure::failed(format!("the attack {name} cannot begin: {error}."));
        let program = std::env::current_exe().map_err(failed)?;
        let mut words = launcher.into_iter().map(Into::into).chain([program.into_os_string()]);
        let mut command = Command::new(words.next().expect("there is a program"));
        command.args(words).args(["attack", "--json", "--while-input", "--kind", &name]).arg("--cluster").arg(cluster);
        command.args(["--seconds", LASTS_MAX]);
        if !kind.joins() {
            command.arg("--key").arg(key);
        }
        command.args(given.iter().flat_map(|operation| ["--operation".to_owned(), keys::to_hex(operation)]));
        let child = command.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().map_err(failed)?;
        *self.0.lock().unwrap_or_else(PoisonError::into_inner) = Some(child);
        Ok(Attack { name, attacker: self.clone() })
    }
}

impl Attack {
    /// Ends it, and says what it did.
    ///
    /// # Errors
    /// It failed, or did nothing: then nothing was measured.
    pub(super) fn end(self) -> Result<Attacked> {
        let failed = |why: String| Failure::failed(format!("the attack {}: {why}.", self.name));
        let mut child = self.attacker.take().ok_or_else(|| failed("it was interrupted".to_owned()))?;
        // It ends with its input.
        drop(child.stdin.take());
        let output = child.wait_with_output().map_err(|error| failed(error.to_string()))?;
        let said: serde_json::Value = serde_json::from_slice(&output.stdout).unwrap_or_default();
        let made = ["attacks", "connections"].iter().find_map(|name| said.get(name)?.as_u64()).unwrap_or_default();
        if !output.status.success() || made == 0 {
            return Err(failed("it did nothing".to_owned()));
        }
        Ok(Attacked { attack: self.name.clone(), attacks: made })
    }
}

/// Names clients in the file of a cluster that has not been started, with a key each: the attacker, and some of those
/// that are measured.
pub(super) fn admit(cluster: &Path) -> Result {
    let failed = |why: String| Failure::failed(format!("the clients' keys: {why}."));
    let mut config = ClusterConfig::load(cluster).map_err(Failure::usage)?;
    for name in iter::once(ATTACKER.to_owned()).chain(others()) {
        let secret = keys::generate().map_err(|error| failed(error.to_string()))?;
        keys::save(&key_of(cluster, &name), &secret).map_err(|error| failed(error.to_string()))?;
        let id = IdentityId(config.identities.len() as u32);
        config.identities.push(IdentityEntry { id, name, public_key: Ed25519.public(&secret) });
    }
    std::fs::write(cluster, config.to_toml()).map_err(|error| failed(error.to_string()))
}

/// Those that are measured, besides the one that every cluster has.
fn others() -> impl Iterator<Item = String> {
    (2..=MEASURED).map(|number| format!("client-{number}"))
}

/// Who they are, in a cluster to which they are admitted.
pub(super) fn measured(config: &ClusterConfig, cluster: &Path) -> Result<Vec<(IdentityId, SecretKey)>> {
    let who = |name: String| {
        let entry = config.identities.iter().find(|entry| entry.name == name);
        let entry = entry.ok_or_else(|| Failure::failed(format!("{name} is not in the cluster's file.")))?;
        let secret = keys::load(&key_of(cluster, &name)).map_err(|error| Failure::failed(format!("{error}.")))?;
        Ok((entry.id, secret))
    };
    others().map(who).collect()
}

/// Where the attacker's key is.
pub(super) fn key(cluster: &Path) -> PathBuf {
    key_of(cluster, ATTACKER)
}

fn key_of(cluster: &Path, name: &str) -> PathBuf {
    cluster.with_file_name(format!("{name}.key"))
}

/// Has a liar be honest again, and says how often it lied.
///
/// # Errors
/// It never did: then nothing was measured.
pub(super) fn end_lie(cluster: &mut DemoCluster, replica: u8, lie: Lie) -> Result<Attacked> {
    match cluster.have_honest(replica)? {
        0 => Err(Failure::failed(format!("the lie {}: it was never told.", lie.name()))),
        attacks => Ok(Attacked { attack: lie.name().to_owned(), attacks }),
    }
}

impl Drop for Attack {
    fn drop(&mut self) {
        self.attacker.stop();
    }
}
