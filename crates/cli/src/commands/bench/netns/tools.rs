//! `ip` and `tc`, and being inside of a namespace.

use super::names;
use crate::failure::{Failure, Result};
use rustix::thread::{LinkNameSpaceType, move_into_link_name_space};
use std::fs::File;
use std::io::{ErrorKind, Write};
use std::os::fd::AsFd;
use std::os::unix::process::CommandExt;
use std::process::{Command, Stdio};
use std::thread;

/// Lets `ip` or `tc` follow a script, in a namespace or where we are.
pub(super) fn batch(program: &str, namespace: Option<&str>, script: &str) -> Result {
    let flags = namespace.into_iter().flat_map(|name| ["-n", name]);
    let mut command = Command::new(program);
    command.args(flags).args(["-batch", "-"]);
    // Ctrl-C is for us: half a laboratory is harder to remove than a whole one.
    command.process_group(0).stdin(Stdio::piped()).stdout(Stdio::null()).stderr(Stdio::piped());
    let failed = |why: &str| Failure::failed(format!("the network laboratory cannot be built: {program}: {why}."));
    let mut child = command.spawn().map_err(|error| match error.kind() {
        ErrorKind::NotFound => Failure::usage(format!(
            "the network laboratory needs the program `{program}`: install iproute2 (apt-get install iproute2)."
        )),
        _ => failed(&error.to_string()),
    })?;
    let written = child.stdin.take().map_or(Ok(()), |mut input| input.write_all(script.as_bytes()));
    let output = child.wait_with_output().map_err(|error| failed(&error.to_string()))?;
    if output.status.success() {
        return written.map_err(|error| failed(&error.to_string()));
    }
    let complaint = String::from_utf8_lossy(&output.stderr);
    // The last line says where in the script; the one before says why.
    let why = complaint.lines().rfind(|line| !line.starts_with("Command failed")).unwrap_or("it does not say why");
    Err(failed(why.trim_end_matches('.')))
}

/// Removes namespaces, and with them all that is only there. The first failure does not keep the others.
pub(super) fn remove(names: &[String]) -> Result {
    if names.is_empty() {
        return Ok(());
    }
    let script: String = names.iter().map(|name| format!("netns del {name}\n")).collect();
    batch("ip", None, &script).or_else(|_| {
        names.iter().map(|name| batch("ip", None, &format!("netns del {name}\n"))).fold(Ok(()), Result::and)
    })
}

/// Moves the calling thread, and all threads and processes that it starts from now on, into a namespace.
pub(super) fn enter(name: &str) -> Result {
    let failed = |why: String| Failure::failed(format!("the network namespace {name} cannot be entered: {why}."));
    let file = File::open(names::path(name)).map_err(|error| failed(error.to_string()))?;
    move_into_link_name_space(file.as_fd(), Some(LinkNameSpaceType::Network)).map_err(|error| failed(error.to_string()))
}

/// Does something in a namespace. Sockets that it makes stay there.
pub(super) fn within<T: Send>(name: &str, act: impl FnOnce() -> Result<T> + Send) -> Result<T> {
    thread::scope(|scope| {
        let inside = thread::Builder::new().spawn_scoped(scope, || enter(name).and_then(|()| act()));
        let inside = inside.map_err(|error| Failure::failed(format!("no thread: {error}.")))?;
        inside.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic))
    })
}
