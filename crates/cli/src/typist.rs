//! Hands what is typed to the line editor one line at a time, so that none of it is lost.
//!
//! The editor begins each line with a new buffer and forgets what it has read beyond the end of the last one: of a
//! pasted block, all lines but the first. So it reads from a pseudo terminal of ours instead of the real one, and a
//! thread passes on what comes from there: what follows the end of a line waits until the editor asks for another.
//! It waits as well while a command runs. What cannot be passed on stays in the kernel's queue, which has a bound.

use rustix::fs::{self, Mode, OFlags};
use rustix::io::{self, Errno};
use rustix::process;
use rustix::pty::{self, OpenptFlags};
use rustix::termios::{self, InputModes, LocalModes, OptionalActions, SpecialCodeIndex, Termios};
use signal_hook::consts::{SIGCONT, SIGTSTP};
use signal_hook::iterator::Signals;
use std::os::fd::OwnedFd;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread;
use std::time::Duration;

/// Most bytes that are read ahead of the editor.
const AHEAD_BYTES_MAX: usize = 1024;
/// How long an editor that has the end of a line may take to be done with it. One that is not has taken it for
/// something else, as after Ctrl-V, and waits for more.
const END_OF_LINE_MAX: Duration = Duration::from_millis(100);
/// What a terminal that is at its end says: Ctrl-D.
const END: &[u8] = b"\x04";
/// What stands around pasted text, if the terminal was asked for it.
const PASTE_BEGINS: &[u8] = b"\x1b[200~";
const PASTE_ENDS: &[u8] = b"\x1b[201~";

/// How the terminal was before the editor had it, as long as the editor has it.
static BEFORE: Mutex<Option<(Arc<OwnedFd>, Termios)>> = Mutex::new(None);

/// Gives the terminal back as it was: also for whoever ends the process while a line is edited.
pub(crate) fn restore() {
    if let Some((terminal, before)) = BEFORE.lock().unwrap_or_else(PoisonError::into_inner).take() {
        // A terminal that is gone needs nothing.
        let _ = termios::tcsetattr(terminal, OptionalActions::Drain, &before);
    }
}

/// Ctrl-Z stops the process, with the terminal as it was. When it goes on, an editor has it for editing again: the
/// shell that we are a job of may have changed it meanwhile.
fn on_stop_or_continue(signal: i32) {
    let edited = BEFORE.lock().unwrap_or_else(PoisonError::into_inner).clone();
    if let Some((terminal, before)) = edited {
        let mode = if signal == SIGTSTP { before } else { for_editing(before) };
        // A terminal that is gone will say so when it is read.
        let _ = termios::tcsetattr(terminal, OptionalActions::Drain, &mode);
    }
    if signal == SIGTSTP {
        // Nobody can forbid it. This thread may go on for a moment, and so has nothing more to do.
        let _ = process::kill_process(process::getpid(), process::Signal::STOP);
    }
}

/// Who asks for lines.
#[derive(Debug, Default)]
struct Editor {
    /// How many lines were asked for.
    asked: u64,
    /// Whether one is being edited just now.
    editing: bool,
}

#[derive(Debug, Default)]
struct Shared {
    editor: Mutex<Editor>,
    changed: Condvar,
}

impl Shared {
    fn editor(&self) -> MutexGuard<'_, Editor> {
        self.editor.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// See the [module](self).
#[derive(Debug)]
pub(crate) struct Typist {
    terminal: Arc<OwnedFd>,
    shared: Arc<Shared>,
}

/// A line is edited as long as this lives.
#[derive(Debug)]
pub(crate) struct Editing<'a>(&'a Shared);

impl Drop for Editing<'_> {
    fn drop(&mut self) {
        self.0.editor().editing = false;
        restore();
    }
}

impl Typist {
    /// Puts itself between standard input, which must be a terminal, and this process.
    ///
    /// # Errors
    /// There are no pseudo terminals here, or no threads.
    pub(crate) fn start() -> std::io::Result<Self> {
        let terminal = Arc::new(io::fcntl_dupfd_cloexec(rustix::stdio::stdin(), 3)?);
        let outer = pty::openpt(OpenptFlags::RDWR | OpenptFlags::NOCTTY)?;
        io::fcntl_setfd(&outer, io::FdFlags::CLOEXEC)?;
        pty::grantpt(&outer)?;
        pty::unlockpt(&outer)?;
        let name = pty::ptsname(&outer, Vec::new())?;
        let inner = fs::open(name, OFlags::RDWR | OFlags::NOCTTY | OFlags::CLOEXEC, Mode::empty())?;
        // Nobody reads what it would echo. The codes stay those of the terminal: the editor goes by them.
        let mut quiet = termios::tcgetattr(&terminal)?;
        quiet.make_raw();
        termios::tcsetattr(&inner, OptionalActions::Now, &quiet)?;
        let shared = Arc::new(Shared::default());
        let pass = Pass { terminal: Arc::clone(&terminal), outer, inner, shared: Arc::clone(&shared), handed: 0 };
        let typist = Self { terminal, shared };
        let mut stops = Signals::new([SIGTSTP, SIGCONT])?;
        thread::Builder::new().name("stops".into()).spawn(move || stops.forever().for_each(on_stop_or_continue))?;
        rustix::stdio::dup2_stdin(&pass.inner)?;
        thread::Builder::new().name("typist".into()).spawn(move || pass.run())?;
        Ok(typist)
    }

    /// A line is going to be edited.
    pub(crate) fn edit(&self) -> Editing<'_> {
        if let Ok(before) = termios::tcgetattr(&self.terminal) {
            let raw = for_editing(before.clone());
            *BEFORE.lock().unwrap_or_else(PoisonError::into_inner) = Some((Arc::clone(&self.terminal), before));
            // One that is gone will say so when it is read.
            let _ = termios::tcsetattr(&self.terminal, OptionalActions::Drain, &raw);
        }
        let mut editor = self.shared.editor();
        editor.asked += 1;
        editor.editing = true;
        self.shared.changed.notify_all();
        Editing(&self.shared)
    }
}

/// The terminal while a line is edited: every key at once, none of them shown. Ctrl-C is a key like others, and Ctrl-Z
/// none.
fn for_editing(mut mode: Termios) -> Termios {
    mode.input_modes -=
        InputModes::BRKINT | InputModes::ICRNL | InputModes::INPCK | InputModes::ISTRIP | InputModes::IXON;
    mode.local_modes -= LocalModes::ECHO | LocalModes::ICANON | LocalModes::IEXTEN;
    // Zero is no key.
    mode.special_codes[SpecialCodeIndex::VINTR] = 0;
    mode.special_codes[SpecialCodeIndex::VQUIT] = 0;
    mode.special_codes[SpecialCodeIndex::VMIN] = 1;
    mode.special_codes[SpecialCodeIndex::VTIME] = 0;
    mode
}

/// What the thread has.
struct Pass {
    terminal: Arc<OwnedFd>,
    /// What is written here, the editor reads.
    outer: OwnedFd,
    /// Where the editor reads.
    inner: OwnedFd,
    shared: Arc<Shared>,
    /// The line whose end was passed on last.
    handed: u64,
}

impl Pass {
    /// Until the terminal is gone, which the editor then sees as the end of its own.
    fn run(mut self) {
        let mut buffer = [0; AHEAD_BYTES_MAX];
        let mut brackets = Brackets::default();
        loop {
            let typed = match io::read(&self.terminal, &mut buffer) {
                Ok(0) if termios::tcgetattr(&self.terminal).is_ok() => END.to_vec(),
                Ok(count) if count > 0 => brackets.strip(&buffer[..count]),
                Err(Errno::INTR) => continue,
                Ok(_) | Err(_) => return,
            };
            let ends = |byte: &u8| matches!(byte, b'\r' | b'\n') || typed == END;
            for piece in typed.split_inclusive(ends) {
                self.wait_for_turn();
                if self.write(piece).is_err() {
                    return;
                }
                if piece.last().is_some_and(ends) {
                    self.handed = self.shared.editor().asked;
                }
            }
        }
    }

    fn write(&self, mut piece: &[u8]) -> io::Result<()> {
        while !piece.is_empty() {
            match io::write(&self.outer, piece) {
                Ok(count) => piece = &piece[count..],
                Err(Errno::INTR) => {}
                Err(error) => return Err(error),
            }
        }
        Ok(())
    }

    /// Returns when the editor has asked for another line, or wants more of this one.
    fn wait_for_turn(&self) {
        let mut editor = self.shared.editor();
        while editor.asked == self.handed {
            let wait = |editor| self.shared.changed.wait_timeout(editor, END_OF_LINE_MAX);
            if editor.editing {
                let (now, waited) = wait(editor).unwrap_or_else(PoisonError::into_inner);
                editor = now;
                let has_all = matches!(io::ioctl_fionread(&self.inner), Ok(0));
                if waited.timed_out() && editor.editing && has_all {
                    return;
                }
            } else {
                editor = self.shared.changed.wait(editor).unwrap_or_else(PoisonError::into_inner);
            }
        }
    }
}

/// Takes away what stands around pasted text: its lines count as typed ones.
#[derive(Debug, Default)]
struct Brackets {
    /// What may become one.
    begun: Vec<u8>,
    pasting: bool,
}

impl Brackets {
    /// The text without them. What may be the beginning of one is kept for the next time, as editors do with keys.
    fn strip(&mut self, typed: &[u8]) -> Vec<u8> {
        let mut text = Vec::with_capacity(typed.len());
        for &byte in typed {
            self.begun.push(byte);
            if self.begun == PASTE_BEGINS || self.begun == PASTE_ENDS {
                self.pasting = self.begun == PASTE_BEGINS;
                self.begun.clear();
            } else if !PASTE_BEGINS.starts_with(&self.begun) && !PASTE_ENDS.starts_with(&self.begun) {
                // Only the newest byte can begin another: there is one escape in each, and it is the first.
                let kept = usize::from(byte == PASTE_BEGINS[0] && self.begun.len() > 1);
                let rest = self.begun.split_off(self.begun.len() - kept);
                // The key would ask for what the word could be.
                let shown = |byte: u8| if self.pasting && byte == b'\t' { b' ' } else { byte };
                text.extend(self.begun.drain(..).map(shown));
                self.begun = rest;
            }
        }
        text
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn brackets_are_taken_away_wherever_they_are_cut() {
        let typed = b"a\tb\x1b[200~c\td\re\x1b[201~\tf\x1b[A\x1b\x1b[200~\x1b[202~g";
        let text = b"a\tbc d\re\tf\x1b[A\x1b\x1b[202~g";
        for cut in 0..typed.len() {
            let mut brackets = Brackets::default();
            let mut stripped = brackets.strip(&typed[..cut]);
            stripped.extend(brackets.strip(&typed[cut..]));
            assert_eq!(stripped, text, "cut at {cut}");
        }
    }
}
