//! Commands, one a line: from a prompt with history on a terminal, from standard input otherwise.

use crate::failure::{Failure, Result};
use crate::typist::Typist;
use crate::{output, words};
use clap::error::ErrorKind;
use clap::{Arg, ArgAction, Parser};
use rustyline::error::ReadlineError;
use rustyline::{Config, DefaultEditor};
use std::io::{BufRead, IsTerminal, Read};
use std::os::unix::fs::DirBuilderExt;
use std::path::PathBuf;

/// Most bytes of one line.
const LINE_BYTES_MAX: u64 = 4 << 20;

/// What was read.
pub(crate) enum Input {
    /// A line.
    Line(String),
    /// Ctrl-C.
    Interrupted,
    /// There is no more.
    End,
}

/// Whether there is a person to ask.
pub(crate) fn has_person() -> bool {
    std::io::stdin().is_terminal() && std::io::stdout().is_terminal()
}

/// Asks a person whether to go on. Whatever is not a yes is a no.
pub(crate) fn agrees(question: &str) -> Result<bool> {
    let answer = Prompt::new(question)?.next()?.unwrap_or_default();
    Ok(matches!(answer.trim(), "y" | "Y" | "yes"))
}

/// Where the history is kept, in a folder that is there and that nobody else can look into; `None` if that cannot be.
fn history_file() -> Option<PathBuf> {
    let state = std::env::var_os("XDG_STATE_HOME").map(PathBuf::from).filter(|path| path.is_absolute());
    let state = state.or_else(|| Some(PathBuf::from(std::env::var_os("HOME")?).join(".local/state")))?;
    let folder = state.join("bezant");
    std::fs::DirBuilder::new().recursive(true).mode(0o700).create(&folder).ok()?;
    Some(folder.join("history"))
}

/// Whether the editor takes the terminal for one that cannot move its cursor.
fn is_plain_terminal() -> bool {
    const PLAIN: [&str; 3] = ["dumb", "cons25", "emacs"];
    let name = std::env::var("TERM").unwrap_or_default();
    PLAIN.iter().any(|plain| name.eq_ignore_ascii_case(plain))
}

/// Where lines come from.
pub(crate) enum Prompt {
    /// A person.
    Terminal { editor: Box<DefaultEditor>, typist: Option<Typist>, text: String, history: Option<PathBuf> },
    /// A file or another program: no prompt is shown.
    Input,
}

impl Prompt {
    /// Looks at what standard input is.
    pub(crate) fn new(text: &str) -> Result<Self> {
        if !std::io::stdin().is_terminal() {
            return Ok(Self::Input);
        }
        // As in other shells: what begins with a space is not remembered.
        let config = Config::builder().history_ignore_space(true).build();
        let editor =
            DefaultEditor::with_config(config).map_err(|error| Failure::failed(format!("no prompt: {error}")))?;
        // Without one, what is typed ahead is lost. The editor leaves terminals that can do nothing to the kernel,
        // which loses nothing.
        let typist = if is_plain_terminal() { None } else { Typist::start().ok() };
        Ok(Self::Terminal { editor: Box::new(editor), typist, text: text.to_owned(), history: None })
    }

    /// The same with a history that outlives the process, in the user's folder for state.
    pub(crate) fn remembering(text: &str) -> Result<Self> {
        let mut prompt = Self::new(text)?;
        if let (Self::Terminal { editor, history, .. }, Some(path)) = (&mut prompt, history_file()) {
            // The first time there is none; one that cannot be read is no reason to do without a prompt.
            let _ = editor.load_history(&path);
            *history = Some(path);
        }
        Ok(prompt)
    }

    /// Whether a person looks on.
    pub(crate) const fn is_terminal(&self) -> bool {
        matches!(self, Self::Terminal { .. })
    }

    /// The next line; `None` at the end, which Ctrl-C and Ctrl-D are at the prompt.
    pub(crate) fn next(&mut self) -> Result<Option<String>> {
        match self.read(None)? {
            Input::Line(line) => Ok(Some(line)),
            Input::Interrupted | Input::End => Ok(None),
        }
    }

    /// The next line, at another prompt than the usual one if there is one.
    pub(crate) fn read(&mut self, instead: Option<&str>) -> Result<Input> {
        match self {
            Self::Terminal { editor, typist, text, history } => {
                let editing = typist.as_ref().map(Typist::edit);
                let read = editor.readline(instead.unwrap_or(text));
                drop(editing);
                match read {
                    Ok(line) => {
                        // A line that cannot be remembered can still be carried out.
                        let _ = editor.add_history_entry(&line);
                        if let Some(path) = history {
                            let _ = editor.append_history(path);
                        }
                        Ok(Input::Line(line))
                    }
                    Err(ReadlineError::Interrupted) => Ok(Input::Interrupted),
                    Err(ReadlineError::Eof) => Ok(Input::End),
                    Err(error) => Err(Failure::failed(format!("the terminal failed: {error}"))),
                }
            }
            Self::Input => {
                let mut line = Vec::new();
                let mut input = std::io::stdin().lock().take(LINE_BYTES_MAX);
                let read = input.read_until(b'\n', &mut line);
                let count = read.map_err(|error| Failure::failed(format!("standard input failed: {error}")))?;
                if count as u64 == LINE_BYTES_MAX {
                    return Err(Failure::usage(format!("a line has more than {LINE_BYTES_MAX} bytes.")));
                }
                let text = String::from_utf8(line).map_err(|_| Failure::usage("standard input is not UTF-8."))?;
                Ok(if count > 0 { Input::Line(text) } else { Input::End })
            }
        }
    }
}

/// What a line is.
pub(crate) enum Line<C> {
    /// Empty, or a comment.
    Nothing,
    /// A command.
    Command(C),
    /// A question about the commands, and the answer.
    Help(String),
    /// A mistake.
    Wrong(Failure),
}

/// Understands a line as the command line would.
pub(crate) fn parse<C: Parser>(line: &str) -> Line<C> {
    let words = match words::split(line) {
        Ok(words) if words.is_empty() => return Line::Nothing,
        Ok(words) => words,
        Err(what) => return Line::Wrong(Failure::usage(format!("{what}."))),
    };
    match C::try_parse_from(words) {
        Ok(command) => Line::Command(command),
        Err(error) => match error.kind() {
            ErrorKind::DisplayHelp | ErrorKind::DisplayHelpOnMissingArgumentOrSubcommand => Line::Help(help::<C>()),
            ErrorKind::InvalidSubcommand => {
                let what = first_lines(&error.render().to_string());
                Line::Wrong(Failure::usage(format!("{what}. Type help for a list.")))
            }
            _ => Line::Wrong(Failure::usage(first_lines(&error.render().to_string()))),
        },
    }
}

/// Every command with its arguments, and what it does: one a line.
fn help<C: Parser>() -> String {
    let rows: Vec<_> = C::command()
        .get_subcommands()
        .filter(|command| !command.is_hide_set())
        .map(|command| {
            let words = command.get_arguments().filter(|argument| !argument.is_hide_set()).map(shown);
            let words: Vec<_> = std::iter::once(command.get_name().to_owned()).chain(words).collect();
            let about = command.get_about().map(ToString::to_string).unwrap_or_default();
            vec![words.join(" "), about]
        })
        .collect();
    output::table(&rows).trim_end().to_owned()
}

/// An argument as a line of usage has it.
fn shown(argument: &Arg) -> String {
    if let Some(flag) = argument.get_long() {
        let takes_value = argument.get_action().takes_values();
        let value = if takes_value { format!(" {}", argument.get_id().as_str().to_uppercase()) } else { String::new() };
        return format!("[--{flag}{value}]");
    }
    let name = argument.get_id().as_str().to_uppercase();
    let many = if matches!(argument.get_action(), ArgAction::Append) { "..." } else { "" };
    if argument.is_required_set() { format!("{name}{many}") } else { format!("[{name}{many}]") }
}

/// What clap says without its usage lines and its prefix.
fn first_lines(text: &str) -> String {
    let lines = text.trim_start_matches("error: ").lines().map(str::trim);
    let told: Vec<_> = lines.take_while(|line| !line.starts_with("Usage:") && !line.starts_with("For more")).collect();
    told.into_iter().filter(|line| !line.is_empty()).collect::<Vec<_>>().join(" ")
}
