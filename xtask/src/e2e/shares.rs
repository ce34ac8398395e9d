//! The processor laboratory of `bezant bench --cpu-share`: nobody gets more than its share, somebody uses it up, and
//! nothing is left behind, however it ends.

use super::running::Running;
use crate::failure::{Failure, Result, ensure};
use crate::process::{self, output_of, program, wait_until};
use serde_json::Value;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

const LOG: &str = "e2e-shares";
/// Where control groups are mounted.
const GROUPS: &str = "/sys/fs/cgroup";
/// What a replica has of a core.
const SHARE: &str = "0.1";
/// How long building the laboratory, or taking it down, may take.
const BUILD_MAX: Duration = Duration::from_secs(30);
/// How long a whole measurement may take.
const MEASURE_MAX: Duration = Duration::from_secs(60);
/// How a command ends that a signal interrupted.
const INTERRUPTED: i32 = 130;

/// Why this machine cannot have a laboratory; `None` if it can.
pub(crate) fn obstacle() -> Option<String> {
    let version_one = Path::new(GROUPS).join("cpu");
    let base = if version_one.is_dir() { version_one } else { PathBuf::from(GROUPS) };
    let group = base.join(format!("bezant-check-{}", std::process::id()));
    let made = fs::create_dir(&group);
    let has_limit = ["cpu.cfs_quota_us", "cpu.max"].iter().any(|file| group.join(file).exists());
    fs::remove_dir(&group).ok();
    match made {
        Err(error) => Some(format!("no control group can be made here: {error}")),
        Ok(()) if !has_limit => Some("control groups here do not limit processors".to_owned()),
        Ok(()) => None,
    }
}

/// One laboratory that is killed, one that is interrupted, and one that is used.
pub(crate) fn run(binary: &Path) -> Result<String> {
    let killed = start(binary)?;
    let id = killed.id();
    killed.kill()?;
    wait_until("nothing is left of a killed laboratory", BUILD_MAX, || groups_of(id).is_empty())?;

    let interrupted = start(binary)?;
    let id = interrupted.id();
    output_of(&mut program("kill", &["-INT", &id.to_string()]))?;
    let status = interrupted.finish(BUILD_MAX)?;
    ensure(status.code() == Some(INTERRUPTED), || format!("an interrupted measurement ended with {status}"))?;
    ensure(groups_of(id).is_empty(), || "an interrupted laboratory left groups behind".into())?;

    let flags = ["--attack", "connect-flood", "--seconds", "3", "--warmup", "1", "--json"];
    let (output, status) = process::recorded(LOG, MEASURE_MAX, bench(binary).args(flags))?;
    ensure(status.is_some_and(|status| status.success()), || "the measurement failed: see the log".into())?;
    let line = output.lines().find(|line| line.starts_with('{')).unwrap_or_default();
    let figures: Value = serde_json::from_str(line).map_err(|_| Failure::new("the measurement gave no JSON"))?;
    check(&figures)
}

/// The measurement, but for its duration.
fn bench(binary: &Path) -> Command {
    let mut command = program(&binary.to_string_lossy(), &["bench", "--cpu-share", SHARE, "--protocol", "pbft"]);
    command.args(["--auth", "mac", "--clients", "10", "--outstanding", "10"]);
    command
}

/// A measurement that takes long, as soon as all its groups are there and the replicas run.
fn start(binary: &Path) -> Result<Running> {
    let running = Running::start(LOG, bench(binary).args(["--attack", "connect-flood", "--seconds", "60"]))?;
    let id = running.id();
    let has_processes = |group: &PathBuf| fs::read_to_string(group.join("cgroup.procs")).is_ok_and(|it| !it.is_empty());
    wait_until("the laboratory has its groups, and processes in all of them", BUILD_MAX, || {
        let groups = groups_of(id);
        groups.len() == 6 && groups.iter().all(has_processes)
    })?;
    Ok(running)
}

/// What must be so, and in words what was measured.
fn check(figures: &Value) -> Result<String> {
    let share: f64 = SHARE.parse().unwrap_or_default();
    let busiest = figures["busiest_replica_cpu_us_per_op"].as_f64().unwrap_or(f64::NAN);
    let worked = busiest * figures["ops_per_s"].as_f64().unwrap_or(f64::NAN) / 1e6;
    // Who has worked too long before the system noticed waits longer in the next period.
    let range = 0.7 * share..=1.25 * share;
    ensure(range.contains(&worked), || format!("the busiest replica worked {worked:.3} of a core, and had {share}"))?;
    let groups = figures["groups"].as_array().map(Vec::as_slice).unwrap_or_default();
    ensure(groups.iter().any(|group| group["node"] == "attacker"), || "the attacker had no group".into())?;
    ensure(groups.len() == 6, || format!("{} groups", groups.len()))?;
    let attacks = figures["attacks"].as_u64().unwrap_or_default();
    ensure(attacks > 0, || "the attacker did nothing".into())?;
    let used_up = groups.iter().filter_map(|group| group["throttled_share"].as_f64()).fold(0.0, f64::max);
    ensure(used_up >= 0.5, || format!("nobody used up more than {used_up:.2} of its periods"))?;
    Ok(format!(
        "the busiest replica had {share} of a core, worked {worked:.3}, and used up {used_up:.2} of its periods, with \
         {attacks} attacks"
    ))
}

/// The control groups that a process has made.
fn groups_of(process: u32) -> Vec<PathBuf> {
    let prefix = format!("bezant-lab-{process}-");
    let version_one = Path::new(GROUPS).join("cpu");
    let base = if version_one.is_dir() { version_one } else { PathBuf::from(GROUPS) };
    let entries = fs::read_dir(base).into_iter().flatten().flatten();
    let ours = entries.filter(|entry| entry.file_name().to_str().is_some_and(|name| name.starts_with(&prefix)));
    ours.map(|entry| entry.path()).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn figures(busiest: f64, used_up: f64) -> Value {
        let node = |group| if group == 4 { "attacker" } else { "other" };
        let used = |group| used_up / f64::from(group + 1);
        let groups: Vec<_> = (0..6).map(|group| json!({"node": node(group), "throttled_share": used(group)})).collect();
        json!({"busiest_replica_cpu_us_per_op": busiest, "ops_per_s": 10_000, "groups": groups, "attacks": 7})
    }

    #[test]
    fn what_cannot_be_is_noticed() {
        assert!(check(&figures(10.0, 0.9)).is_ok());
        assert!(check(&figures(20.0, 0.9)).is_err_and(|why| why.to_string().contains("worked 0.200 of a core")));
        assert!(check(&figures(10.0, 0.1)).is_err_and(|why| why.to_string().contains("nobody used up")));
        assert!(check(&json!({})).is_err());
    }
}
