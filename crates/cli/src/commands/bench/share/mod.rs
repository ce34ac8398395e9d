//! The processor laboratory: each replica has a control group of its own with a share of a core, an attacker another
//! one, if there is one, and the clients have one with what is left.
//!
//! On one machine the replicas of a cluster share its processors, so what one does not need the others have. In a
//! cluster each has its own, and the busiest one decides. With shares it decides here, too: whoever has used up its
//! share waits for the next period, however idle the machine is.
//!
//! Replicas are started by a shell that moves itself into their group first; the clients are this process. A helper
//! that waits for the end of this process removes the groups, in whichever way it ends.

mod groups;

use super::owner::Owner;
use crate::failure::{Failure, Result};
use bezant_perf::shares::{Group, Shares, Snapshot};
use groups::{Hierarchy, procs};
use std::fs;
use std::os::unix::process::CommandExt;
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};

/// The least that the system lets a group work in one period, and the shortest period, in microseconds.
const QUOTA_US_MIN: f64 = 1_000.0;
/// Moves itself into a group, `$0`, and becomes the program that follows.
const INTO_GROUP: &str = "echo $$ > \"$0\" && exec \"$@\"";
/// Waits for the end of its input, and removes groups until they are gone: a group that has processes stays. Ten
/// seconds at most.
const JANITOR: &str = "cat > /dev/null; tries=100; while [ $tries -gt 0 ]; do left=; for group in \"$@\"; do \
    rmdir \"$group\" 2> /dev/null; if [ -d \"$group\" ]; then left=1; fi; done; \
    if [ -z \"$left\" ]; then exit 0; fi; tries=$((tries - 1)); sleep 0.1; done; exit 1";
/// The name of the group of all clients, and that of the attacker.
const CLIENTS: &str = "clients";
const ATTACKER: &str = "attacker";

/// What the command line says about it.
#[derive(clap::Args)]
#[group(id = "processors")]
pub(super) struct Arguments {
    /// Give each replica this share of a core, such as 0.2, and all clients together what is left: then the busiest
    /// replica decides, as on a cluster. Needs Linux and the right to make control groups, as root has it
    #[arg(long, value_name = "CORES", value_parser = share)]
    cpu_share: Option<f64>,
}

fn share(text: &str) -> std::result::Result<f64, &'static str> {
    let share: f64 = text.parse().map_err(|_| "no number")?;
    if (0.01..=64.0).contains(&share) { Ok(share) } else { Err("a share is between 0.01 and 64 cores") }
}

/// The laboratory, if there is one: a signal may remove it at any time.
#[derive(Clone, Default)]
pub(super) struct Processors(Arc<Mutex<Option<Built>>>);

/// What is there.
struct Built {
    hierarchy: Hierarchy,
    share: f64,
    of_clients: f64,
    period_us: u64,
    /// Replicas by number, the attacker, and the clients last: what it is called, and where it is.
    groups: Vec<(String, PathBuf)>,
    janitor: Child,
}

impl Processors {
    fn lock(&self) -> MutexGuard<'_, Option<Built>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Builds it for so many replicas, and for an attacker, if it is wanted, and moves this process to the clients'
    /// group.
    pub(super) fn build(&self, arguments: &Arguments, replicas: usize, is_attacked: bool) -> Result {
        let Some(share) = arguments.cpu_share else { return Ok(()) };
        let of_clients = left_for_clients(share, replicas + usize::from(is_attacked))?;
        let failed = |why: String| Failure::failed(format!("--cpu-share: control groups cannot be had: {why}."));
        let hierarchy = Hierarchy::find().map_err(failed)?;
        let owner = Owner::own().ok_or_else(|| failed("there is no /proc".to_owned()))?;
        for group in hierarchy.leftovers() {
            fs::remove_dir(&group).map_err(|error| failed(format!("{}: {error}", group.display())))?;
        }
        let period_us = period_us(share);
        let nodes = (0..replicas).map(|replica| format!("replica-{replica}"));
        let nodes = nodes.chain(is_attacked.then(|| ATTACKER.to_owned())).chain([CLIENTS.to_owned()]);
        let groups: Vec<_> = nodes.map(|node| (node.clone(), hierarchy.group(&owner.name(&node)))).collect();
        let mut built = self.lock();
        let janitor = janitor(&groups).map_err(|error| failed(format!("sh: {error}")))?;
        // From here on it is removed if anything fails.
        let Built { hierarchy, groups, .. } =
            built.insert(Built { hierarchy, share, of_clients, period_us, groups, janitor });
        let shares = std::iter::repeat_n(share, groups.len() - 1).chain([of_clients]);
        for ((_, group), share) in groups.iter().zip(shares) {
            hierarchy.make(group, quota_us(share, period_us), period_us).map_err(failed)?;
        }
        let attacker = if is_attacked { " and the attacker" } else { "" };
        eprintln!("processors: {share} of a core for each replica{attacker}, {of_clients:.2} cores for the clients");
        let clients = groups.last().map(|(_, group)| group.as_path());
        hierarchy.enter(clients).map_err(failed)
    }

    /// Removes it, if it is there. Replicas should have ended.
    pub(super) fn remove(&self) {
        let Some(Built { hierarchy, mut janitor, .. }) = self.lock().take() else { return };
        let left = hierarchy.enter(None);
        drop(janitor.stdin.take());
        let is_gone = janitor.wait().is_ok_and(|status| status.success());
        let why = match (left, is_gone) {
            (Err(why), _) => why,
            (Ok(()), false) => "processes are still in them".to_owned(),
            (Ok(()), true) => return,
        };
        Failure::failed(format!("control groups of this benchmark are left: {why}.")).report();
    }

    /// The words before the attacker's command line that start it in its group.
    pub(super) fn attackers_launcher(&self) -> Vec<String> {
        let built = self.lock();
        let groups = built.as_ref().map_or(&[][..], |built| &built.groups);
        groups.iter().find(|(node, _)| node == ATTACKER).map(launcher).unwrap_or_default()
    }

    /// The words before a replica's command line that start it in its group.
    pub(super) fn launchers(&self, replicas: usize) -> Vec<Vec<String>> {
        let of_all = |built: &Built| built.groups.iter().take(replicas).map(launcher).collect();
        self.lock().as_ref().map(of_all).unwrap_or_default()
    }

    /// The option that builds it, and what it gives, if it is there.
    pub(super) fn words(&self) -> Option<(String, String)> {
        let built = self.lock();
        let share = built.as_ref()?.share;
        let given = format!("{share} of a core for each replica, and what they leave for the clients");
        Some((format!("--cpu-share {share}"), given))
    }

    /// What is counted now; `None` outside of a laboratory.
    pub(super) fn snapshot(&self) -> Result<Option<Snapshot>> {
        let built = self.lock();
        let Some(Built { hierarchy, groups, .. }) = &*built else { return Ok(None) };
        let counted = groups.iter().map(|(_, group)| hierarchy.counted(group));
        let groups =
            counted.collect::<std::result::Result<_, _>>().map_err(|why| Failure::failed(format!("{why}.")))?;
        Ok(Some(Snapshot { groups, stolen_us: stolen_us().unwrap_or_default() }))
    }

    /// What to add to the figures of what happened between two snapshots, with so many replicas.
    pub(super) fn shares(&self, replicas: usize, before: &Snapshot, after: &Snapshot) -> Option<Shares> {
        let built = self.lock();
        let Built { share, of_clients, period_us, groups, .. } = built.as_ref()?;
        let mut shares = Shares::new(
            (*share, *of_clients),
            *period_us,
            groups.iter().map(|(node, _)| node.clone()),
            (before, after),
        );
        // A single server has the first group, and the others nobody.
        let is_replica = |group: &&Group| ![ATTACKER, CLIENTS].contains(&group.node.as_str());
        let built_for = shares.groups.iter().filter(is_replica).count();
        shares.groups.drain(replicas.min(built_for)..built_for);
        Some(shares)
    }
}

/// The words that start a process in a group.
fn launcher((_, group): &(String, PathBuf)) -> Vec<String> {
    let file = procs(group).to_string_lossy().into_owned();
    vec!["sh".to_owned(), "-c".to_owned(), INTO_GROUP.to_owned(), file]
}

/// The cores that this process may use, without what its group takes from it: they are counted before it enters one.
pub(super) fn cores() -> usize {
    static CORES: OnceLock<usize> = OnceLock::new();
    *CORES.get_or_init(|| std::thread::available_parallelism().map_or(1, usize::from))
}

/// The cores that the clients have: what the replicas leave, and that is as much as one of them has at least.
fn left_for_clients(share: f64, replicas: usize) -> Result<f64> {
    let cores = cores();
    let left = cores as f64 - share * replicas as f64;
    if left >= share {
        return Ok(left);
    }
    let most = cores as f64 / (replicas + 1) as f64;
    let text = format!(
        "--cpu-share {share}: {replicas} replicas leave the clients {left:.2} of {cores} cores: take {most:.2} at most."
    );
    Err(Failure::usage(text))
}

/// As short as the system allows, so that who waits does not wait long.
fn period_us(share: f64) -> u64 {
    (QUOTA_US_MIN / share).max(QUOTA_US_MIN).ceil() as u64
}

fn quota_us(share: f64, period_us: u64) -> u64 {
    (period_us as f64 * share).round() as u64
}

/// A process that removes the groups when this one ends.
fn janitor(groups: &[(String, PathBuf)]) -> std::io::Result<Child> {
    let mut command = Command::new("sh");
    command.args(["-c", JANITOR, "janitor"]).args(groups.iter().map(|(_, group)| group));
    // Ctrl-C is for us.
    command.process_group(0).stdin(Stdio::piped()).stdout(Stdio::null()).stderr(Stdio::null());
    command.spawn()
}

/// The time that the host gave to others instead of to this machine, since it started, in microseconds.
fn stolen_us() -> Option<u64> {
    let text = fs::read_to_string("/proc/stat").ok()?;
    // The eighth number of the first line, in hundredths of a second.
    let ticks: u64 = text.lines().next()?.split_whitespace().nth(8)?.parse().ok()?;
    Some(ticks * 10_000)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn periods_are_as_short_as_the_system_allows() {
        let all = |share| (quota_us(share, period_us(share)), period_us(share));
        assert_eq!([0.2, 0.3, 1.0, 1.5].map(all), [(1_000, 5_000), (1_000, 3_334), (1_000, 1_000), (1_500, 1_000)]);
    }

    #[test]
    fn more_than_there_is_cannot_be_shared_out() {
        let cores = cores() as f64;
        assert!(left_for_clients(cores / 8.0, 4).is_ok_and(|left| (left - cores / 2.0).abs() < 1e-9));
        assert!(left_for_clients(cores / 4.0, 4).is_err());
        assert!(share("0").is_err() && share("nan").is_err() && share("0.2").is_ok());
    }
}
