//! A process of ours: its output in a log, its end certain.

use crate::failure::{Failure, Result};
use crate::process;
use std::fs::OpenOptions;
use std::io::{BufRead, BufReader, Write};
use std::process::{Child, ChildStdin, Command, ExitStatus, Stdio};
use std::sync::mpsc::{Receiver, RecvTimeoutError, channel};
use std::time::{Duration, Instant};

/// A process that runs until it is killed, by its id and not its name, at the latest when its value goes away.
pub(super) struct Running {
    child: Child,
}

impl Running {
    /// Starts it, with all that it prints appended to the log of a step.
    pub(super) fn start(log: &str, command: &mut Command) -> Result<Self> {
        let file = OpenOptions::new().create(true).append(true).open(process::log_path(log)?)?;
        let child = command.stdin(Stdio::piped()).stdout(file.try_clone()?).stderr(file).spawn()?;
        Ok(Self { child })
    }

    /// Writes a line to its standard input.
    pub(super) fn send_line(&mut self, word: &str) -> Result {
        let input = self.child.stdin.as_mut().expect("its input was piped when it started");
        Ok(writeln!(input, "{word}")?)
    }

    /// SIGKILL: it gets no chance to finish anything.
    pub(super) fn kill(mut self) -> Result {
        self.child.kill()?;
        self.child.wait()?;
        Ok(())
    }

    /// Its process.
    pub(super) fn id(&self) -> u32 {
        self.child.id()
    }

    /// Waits for its end.
    pub(super) fn finish(mut self, limit: Duration) -> Result<ExitStatus> {
        let status = process::wait(&mut self.child, limit)?;
        status.ok_or_else(|| Failure::new(format!("it did not end within {} s", limit.as_secs())))
    }

    /// Whether it has ended although nobody asked it to.
    pub(super) fn has_ended(&mut self) -> Result<bool> {
        Ok(self.child.try_wait()?.is_some())
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        // After `kill` there is nothing left to do, and both calls say so by failing.
        self.child.kill().ok();
        self.child.wait().ok();
    }
}

/// A process that one talks to, line by line.
pub(super) struct Conversation {
    child: Child,
    to: Option<ChildStdin>,
    from: Receiver<String>,
}

impl Conversation {
    /// Starts it; what it complains about goes to the log of a step.
    pub(super) fn start(log: &str, command: &mut Command) -> Result<Self> {
        let file = OpenOptions::new().create(true).append(true).open(process::log_path(log)?)?;
        let mut child = command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(file).spawn()?;
        let to = child.stdin.take();
        let output = BufReader::new(child.stdout.take().expect("its output was piped just above"));
        let (sender, from) = channel();
        // Ends when the process closes its output, at the latest when it is killed.
        std::thread::spawn(move || {
            output.lines().map_while(std::result::Result::ok).all(|line| sender.send(line).is_ok())
        });
        Ok(Self { child, to, from })
    }

    /// Sends one line.
    pub(super) fn say(&mut self, line: &str) -> Result {
        let to = self.to.as_mut().ok_or_else(|| Failure::new("its input is closed already"))?;
        writeln!(to, "{line}").map_err(|error| Failure::from(error).during(&format!("saying `{line}`")))
    }

    /// Reads lines until one is as wanted, and returns it.
    pub(super) fn hear(&self, what: &str, limit: Duration, wanted: impl Fn(&str) -> bool) -> Result<String> {
        let end = Instant::now() + limit;
        let mut last = String::from("nothing");
        loop {
            match self.from.recv_timeout(end.saturating_duration_since(Instant::now())) {
                Ok(line) if wanted(&line) => return Ok(line),
                Ok(line) => last = format!("`{line}`"),
                Err(RecvTimeoutError::Timeout) => {
                    let seconds = limit.as_secs();
                    return Err(Failure::new(format!("{what} did not come within {seconds} s; the last was {last}")));
                }
                Err(RecvTimeoutError::Disconnected) => {
                    return Err(Failure::new(format!("it ended before {what} came; the last was {last}")));
                }
            }
        }
    }

    /// Closes its input and waits for its end.
    pub(super) fn finish(mut self, limit: Duration) -> Result<ExitStatus> {
        self.to = None;
        let status = process::wait(&mut self.child, limit)?;
        status.ok_or_else(|| Failure::new(format!("it did not end within {} s", limit.as_secs())))
    }
}

impl Drop for Conversation {
    fn drop(&mut self) {
        // First its input: a process that tidies up when its input ends takes its own children along.
        self.to = None;
        process::wait(&mut self.child, Duration::from_secs(5)).ok();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SOON: Duration = Duration::from_secs(10);

    #[test]
    fn a_conversation_is_heard_to_its_end() {
        let mut cat = Conversation::start("e2e-test", &mut process::program("cat", &[])).expect("cat is everywhere");
        cat.say("one").expect("it listens");
        cat.say("two").expect("it listens");
        assert_eq!(cat.hear("an echo", SOON, |line| line.starts_with("tw")).expect("it echoes"), "two");
        assert!(cat.hear("silence", Duration::from_millis(50), |_| true).is_err());
        assert!(cat.finish(SOON).expect("it ends").success());
    }

    #[test]
    fn a_process_ends_with_its_value() {
        let mut sleeper = Running::start("e2e-test", &mut process::program("sleep", &["60"])).expect("sleep works");
        let id = sleeper.child.id();
        assert!(!sleeper.has_ended().expect("it can be asked"));
        drop(sleeper);
        assert!(!std::path::Path::new(&format!("/proc/{id}")).exists());
    }
}
