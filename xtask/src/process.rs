//! Running other programs: in the workspace's root, with their output in a log, and never for longer than allowed.

use crate::failure::{Failure, Result, ensure};
use std::fs::{self, File, OpenOptions};
use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::time::{Duration, Instant};

/// How often a waiting loop looks.
const POLL: Duration = Duration::from_millis(20);

/// How much of the end of a failed program's output is shown; the log has the rest.
const TAIL_LINES: usize = 25;

/// How many panics before it are shown, and how many lines of each.
const PANICS: (usize, usize) = (3, 12);

/// The workspace's root.
pub(crate) fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).parent().expect("xtask is a folder of the workspace").to_path_buf()
}

/// Where cargo puts what it builds.
pub(crate) fn target() -> PathBuf {
    root().join(std::env::var_os("CARGO_TARGET_DIR").unwrap_or_else(|| "target".into()))
}

/// The profile of what the gate runs optimised, in the workspace's `Cargo.toml`.
pub(crate) const PROFILE: &str = "--profile=gate";

/// A file that cargo has built with [`PROFILE`].
pub(crate) fn built(name: &str) -> PathBuf {
    target().join("gate").join(name)
}

/// The program that users run.
pub(crate) fn binary() -> PathBuf {
    built("bezant")
}

/// Cargo, the one that runs us.
pub(crate) fn cargo(arguments: &[&str]) -> Command {
    let mut command = Command::new(std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into()));
    command.args(arguments).current_dir(root());
    command
}

/// Any other program, in the root.
pub(crate) fn program(name: &str, arguments: &[&str]) -> Command {
    let mut command = Command::new(name);
    command.args(arguments).current_dir(root());
    command
}

/// Whether `name` is a program on the search path.
pub(crate) fn is_installed(name: &str) -> bool {
    std::env::var_os("PATH").is_some_and(|path| std::env::split_paths(&path).any(|folder| folder.join(name).is_file()))
}

/// What a command prints on standard output.
pub(crate) fn output_of(command: &mut Command) -> Result<String> {
    let name = describe(command);
    let output = command.stdin(Stdio::null()).output().map_err(|error| Failure::from(error).during(&name))?;
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    ensure(output.status.success(), || {
        let complaint = String::from_utf8_lossy(&output.stderr);
        format!("`{name}` failed: {}", complaint.trim().lines().last().unwrap_or("it does not say why"))
    })?;
    Ok(text)
}

/// Runs a command to its end and returns all that it prints, which is also appended to a log in the folder `verify`
/// under the target folder. If it fails or takes longer than `limit`, shows the end of the output and fails.
pub(crate) fn logged(log: &str, limit: Duration, command: &mut Command) -> Result<String> {
    let (text, status) = recorded(log, limit, command)?;
    let reason = match status {
        Some(status) if status.success() => return Ok(text),
        Some(status) => status.to_string(),
        None => format!("not done after {} s, killed", limit.as_secs()),
    };
    println!("{}", excerpt(&text));
    let path = log_path(log)?;
    Err(Failure::new(format!(
        "`{}`: {reason} (all output: {})",
        describe(command),
        path.strip_prefix(root()).unwrap_or(&path).display()
    )))
}

/// What says best why a program failed: its first panics, far from the end where other tests follow, and its end.
fn excerpt(text: &str) -> String {
    let lines: Vec<&str> = text.lines().collect();
    let (before, end) = lines.split_at(lines.len().saturating_sub(TAIL_LINES));
    let panics = (0..before.len()).filter(|at| before[*at].contains("panicked at")).take(PANICS.0);
    let mut shown = Vec::new();
    for at in panics {
        shown.extend(before[at..].iter().take(PANICS.1));
        shown.push("...");
    }
    shown.extend(end);
    shown.join("\n")
}

/// The same for a command that may fail: returns what it printed and how it ended, `None` if it was killed after
/// `limit`.
pub(crate) fn recorded(log: &str, limit: Duration, command: &mut Command) -> Result<(String, Option<ExitStatus>)> {
    let name = describe(command);
    let path = log_path(log)?;
    let mut file = OpenOptions::new().create(true).append(true).open(&path)?;
    writeln!(file, "$ {name}")?;
    let start = file.metadata()?.len();
    command.stdin(Stdio::null()).stdout(file.try_clone()?).stderr(file);
    let mut child = command.spawn().map_err(|error| Failure::from(error).during(&name))?;
    let status = wait(&mut child, limit)?;
    let bytes = fs::read(&path)?;
    Ok((String::from_utf8_lossy(&bytes[start as usize..]).into_owned(), status))
}

/// Where the log of a step is; its folder exists afterwards.
pub(crate) fn log_path(log: &str) -> Result<PathBuf> {
    let folder = target().join("verify");
    fs::create_dir_all(&folder)?;
    Ok(folder.join(format!("{log}.log")))
}

/// Empties the log of a step.
pub(crate) fn clear_log(log: &str) -> Result {
    File::create(log_path(log)?)?;
    Ok(())
}

/// Does `work` for each job, two at a time. It is told in which of two lanes it is, 0 or 1, so that what it writes has
/// a place of its own. The results come in the order of the jobs; after a failure no other job begins.
pub(crate) fn two_at_a_time<J: Sync, R: Send>(
    jobs: &[J],
    work: impl Fn(usize, &J) -> Result<R> + Sync,
) -> Result<Vec<R>> {
    let (next, failed) = (AtomicUsize::new(0), AtomicBool::new(false));
    let lane = |lane: usize| {
        let mut done = Vec::new();
        while !failed.load(Ordering::Relaxed)
            && let number = next.fetch_add(1, Ordering::Relaxed)
            && let Some(job) = jobs.get(number)
        {
            let result = work(lane, job);
            failed.fetch_or(result.is_err(), Ordering::Relaxed);
            done.push((number, result));
        }
        done
    };
    let mut all = std::thread::scope(|scope| {
        let second = scope.spawn(|| lane(1));
        let mut all = lane(0);
        all.extend(second.join().expect("work does not panic"));
        all
    });
    all.sort_by_key(|(number, _)| *number);
    all.into_iter().map(|(_, result)| result).collect()
}

/// The name of a lane's log.
pub(crate) fn log_of(lane: usize, log: &str) -> String {
    if lane == 0 { log.to_owned() } else { format!("{log}-{}", lane + 1) }
}

/// Waits for a child's end; after `limit` kills it with all its descendants and returns `None`.
pub(crate) fn wait(child: &mut Child, limit: Duration) -> Result<Option<ExitStatus>> {
    let end = Instant::now() + limit;
    while Instant::now() < end {
        if let Some(status) = child.try_wait()? {
            return Ok(Some(status));
        }
        std::thread::sleep(POLL);
    }
    for id in descendants(child.id()) {
        output_of(&mut program("kill", &["-KILL", &id.to_string()])).ok();
    }
    child.kill()?;
    child.wait()?;
    Ok(None)
}

/// The processes that a process started, and those that they did.
fn descendants(id: u32) -> Vec<u32> {
    let children = fs::read_to_string(format!("/proc/{id}/task/{id}/children")).unwrap_or_default();
    let direct = children.split_whitespace().filter_map(|word| word.parse().ok());
    direct.flat_map(|child| std::iter::once(child).chain(descendants(child))).collect()
}

/// Asks `ready` again and again until it holds.
pub(crate) fn wait_until(what: &str, limit: Duration, mut ready: impl FnMut() -> bool) -> Result<Duration> {
    let start = Instant::now();
    while !ready() {
        ensure(start.elapsed() < limit, || format!("waited {} s in vain: {what}", limit.as_secs()))?;
        std::thread::sleep(POLL);
    }
    Ok(start.elapsed())
}

/// The command as one would type it.
fn describe(command: &Command) -> String {
    let mut words = vec![Path::new(command.get_program()).file_name().unwrap_or_default().to_string_lossy()];
    words.extend(command.get_args().map(|word| word.to_string_lossy()));
    words.join(" ")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_failure_far_from_the_end_is_shown() {
        let output = format!("{}test x panicked at y\nwhy\n{}last", "early\n".repeat(50), "later\n".repeat(50));
        let shown = excerpt(&output);
        assert!(shown.starts_with("test x panicked at y\nwhy\nlater") && shown.ends_with("later\nlast"), "{shown}");
        assert!(shown.lines().count() <= TAIL_LINES + PANICS.1 + 1);
    }

    #[test]
    fn a_program_that_takes_too_long_is_killed_with_its_children() {
        let mut child = program("sh", &["-c", "sleep 30 & sleep 30; true"]).spawn().expect("a shell");
        std::thread::sleep(Duration::from_millis(100));
        let started = descendants(child.id());
        assert_eq!(started.len(), 2);
        assert!(wait(&mut child, Duration::from_millis(100)).expect("waiting works").is_none());
        // Nobody may be left to reap them but init: a killed process may stay a zombie. On a busy machine it takes a
        // moment to die.
        let end = Instant::now() + Duration::from_secs(10);
        for id in started {
            let state = || fs::read_to_string(format!("/proc/{id}/stat")).unwrap_or_default();
            let is_dead = |state: &str| state.is_empty() || state.contains(") Z") || state.contains(") X");
            while !is_dead(&state()) {
                assert!(Instant::now() < end, "{id} runs on: {}", state());
                std::thread::sleep(Duration::from_millis(5));
            }
        }
    }

    #[test]
    fn two_lanes_do_all_jobs_and_stop_at_a_failure() {
        let jobs: Vec<u32> = (0..50).collect();
        assert_eq!(two_at_a_time(&jobs, |_, job| Ok(job * 2)).expect("no failure")[49], 98);
        let fails = |_, job: &u32| if *job == 7 { Err(Failure::new("seven")) } else { Ok(*job) };
        assert!(two_at_a_time(&jobs, fails).expect_err("one fails").to_string().contains("seven"));
    }

    #[test]
    fn a_failure_names_the_command() {
        let failure = output_of(&mut program("ls", &["no-such-file-anywhere"])).expect_err("there is none");
        assert!(failure.to_string().contains("ls no-such-file-anywhere"));
    }
}
