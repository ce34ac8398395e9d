//! The program on a pseudo terminal of its own, as a person has it.

use super::{PATIENCE, Running, Scratch, wait_until};
use rustix::fs::{Mode, OFlags};
use rustix::pty::{self, OpenptFlags};
use std::fs::File;
use std::io::{Read, Write};
use std::process::{Child, Command, Stdio};
use std::sync::mpsc::{self, Receiver, RecvTimeoutError};
use std::thread;
use std::time::Instant;

/// A process whose terminal is ours. Its home and its temporary files are in a folder of the test.
pub struct Terminal {
    pub process: Running,
    keys: File,
    shown: Receiver<Vec<u8>>,
    /// All that was shown until now.
    pub text: String,
    /// How much of it was waited for.
    seen: usize,
}

impl Terminal {
    /// Starts the program that is tested.
    pub fn start(scratch: &Scratch, arguments: &[&str]) -> Self {
        Self::run(scratch, env!("CARGO_BIN_EXE_bezant"), arguments)
    }

    /// Starts any program, in the folder of the test.
    pub fn run(scratch: &Scratch, program: &str, arguments: &[&str]) -> Self {
        let outer = pty::openpt(OpenptFlags::RDWR | OpenptFlags::NOCTTY | OpenptFlags::CLOEXEC).unwrap();
        pty::grantpt(&outer).unwrap();
        pty::unlockpt(&outer).unwrap();
        let name = pty::ptsname(&outer, Vec::new()).unwrap();
        let flags = OFlags::RDWR | OFlags::NOCTTY | OFlags::CLOEXEC;
        let inner = File::from(rustix::fs::open(name, flags, Mode::empty()).unwrap());
        let stream = || Stdio::from(inner.try_clone().unwrap());
        // A session of its own, so that the terminal is the one that Ctrl-C comes from. What a script runs behind its
        // back ignores Ctrl-C, and so would all that is started here, until it listens.
        let mut command = Command::new("env");
        command.args(["--default-signal=INT,QUIT", "setsid", "--ctty", program]).args(arguments);
        command.current_dir(scratch.path());
        command.env("PATH", super::page::search_path());
        command.env("TERM", "xterm").env("HOME", scratch.path()).env("TMPDIR", scratch.path());
        command.env_remove("XDG_STATE_HOME");
        let mut child = command.stdin(stream()).stdout(stream()).stderr(stream()).spawn().unwrap();
        let keys = File::from(outer);
        // Before that, Ctrl-C is nobody's. It may have ended already.
        let group = Some(rustix::process::Pid::from_child(&child));
        let has_ended = |child: &mut Child| child.try_wait().unwrap().is_some();
        wait_until("having a terminal", || rustix::termios::tcgetpgrp(&keys).ok() == group || has_ended(&mut child));
        let mut screen = keys.try_clone().unwrap();
        let (send, shown) = mpsc::channel();
        thread::spawn(move || {
            let mut buffer = [0; 4096];
            // The end is an error: nobody has the other side any more.
            while let Ok(count) = screen.read(&mut buffer)
                && send.send(buffer[..count].to_vec()).is_ok()
            {}
        });
        Self { process: Running(child), keys, shown, text: String::new(), seen: 0 }
    }

    /// Presses keys.
    pub fn press(&mut self, keys: &str) {
        self.keys.write_all(keys.as_bytes()).unwrap();
    }

    /// Waits until this is shown, after what was waited for last.
    #[track_caller]
    pub fn expect(&mut self, what: &str) {
        let deadline = Instant::now() + PATIENCE;
        loop {
            if let Some(place) = self.text[self.seen..].find(what) {
                self.seen += place + what.len();
                return;
            }
            match self.shown.recv_timeout(deadline.saturating_duration_since(Instant::now())) {
                Ok(bytes) => self.text += &String::from_utf8_lossy(&bytes),
                Err(RecvTimeoutError::Timeout) => panic!("{what:?} is not shown:\n{}", self.text),
                Err(RecvTimeoutError::Disconnected) => panic!("it ended before it showed {what:?}:\n{}", self.text),
            }
        }
    }

    /// Waits until a command runs: until then every key is the editor's.
    pub fn wait_for_command(&self) {
        let mode = || rustix::termios::tcgetattr(&self.keys).unwrap().local_modes;
        wait_until("the end of editing", || mode().contains(rustix::termios::LocalModes::ICANON));
    }

    /// Waits until what a shell has started on its terminal is gone: until then keys are not the shell's.
    pub fn wait_for_shell(&self) {
        let shell = Some(rustix::process::Pid::from_child(&self.process.0));
        wait_until("the shell's turn", || rustix::termios::tcgetpgrp(&self.keys).ok() == shell);
    }

    /// Waits for the end, and returns the exit code.
    pub fn end(&mut self) -> Option<i32> {
        let code = self.process.wait().code();
        while let Ok(bytes) = self.shown.recv_timeout(PATIENCE) {
            self.text += &String::from_utf8_lossy(&bytes);
        }
        code
    }
}
