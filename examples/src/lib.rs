//! Examples: services, and what their programs have in common.

pub mod ledger;

use bezant_core::service::Service;
use bezant_node::host::Running;
use std::error::Error;
use std::io;
use std::path::Path;
use std::process::ExitCode;
use std::sync::mpsc;

/// Shows what a replica logs on standard error. Without a subscriber of `tracing` nothing is shown.
pub fn log_to_stderr() {
    tracing_subscriber::fmt().with_writer(io::stderr).init();
}

/// Runs all replicas of a folder in this process, until it is asked to end: for a first look, since what ends the
/// process ends them all.
///
/// # Errors
/// As [`bezant_node::host`](bezant_node::host()).
pub fn demo<S: Service + Default + Send + 'static>(folder: &Path, name: &str) -> Result<(), bezant_node::Error> {
    // Whoever has an answer may ask it to end, although the last replica is not there yet.
    let (leave, left) = mpsc::channel();
    bezant_node::host::on_request_to_end(move || _ = leave.send(()))?;
    let host = |number| bezant_node::host(&folder.join(format!("replica-{number}")), name, 1, S::default());
    let mut others = (0..4).map(host).collect::<Result<Vec<_>, _>>()?;
    others.remove(0).until(&left)?;
    others.into_iter().try_for_each(Running::stop)
}

/// The number that a reply is.
///
/// # Errors
/// In words, if it is none.
pub fn number(reply: &[u8]) -> Result<u64, String> {
    let bytes = reply.try_into().map_err(|_| "the service took this for nonsense".to_owned())?;
    Ok(u64::from_le_bytes(bytes))
}

/// Runs a program with its arguments; what goes wrong is said on standard error.
pub fn program(run: impl FnOnce(&[&str]) -> Result<(), Box<dyn Error>>) -> ExitCode {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    match run(&arguments.iter().map(String::as_str).collect::<Vec<_>>()) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("{error}");
            ExitCode::FAILURE
        }
    }
}
