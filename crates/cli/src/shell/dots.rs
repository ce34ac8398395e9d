//! Dot commands: what a shell says to itself and not to the database.

use super::format::Mode;
use super::{Next, Shell, import};
use crate::commands::status;
use crate::failure::{Failure, Result};
use crate::prompt::{self, Line};
use bezant_sql::{SYSTEM_PREFIX, Statement, Value};
use clap::{CommandFactory, Parser, Subcommand};
use std::fs::File;
use std::io::{BufRead, BufReader, IsTerminal};
use std::path::{Path, PathBuf};

/// Files that may be read within each other.
const DEPTH_MAX: usize = 16;

#[derive(Parser)]
#[command(no_binary_name = true, name = "", help_template = "{subcommands}", disable_help_flag = true)]
#[command(disable_help_subcommand = true)]
struct DotLine {
    #[command(subcommand)]
    command: Dot,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
enum Switch {
    On,
    Off,
}

#[derive(Subcommand)]
enum Dot {
    /// List tables and views
    #[command(name = ".tables")]
    Tables {
        /// Only those that are LIKE this
        pattern: Option<String>,
    },
    /// Show how tables, indexes, views and triggers were made
    #[command(name = ".schema")]
    Schema {
        /// Only those of tables that are LIKE this
        pattern: Option<String>,
    },
    /// List indexes
    #[command(name = ".indexes", alias = ".indices")]
    Indexes {
        /// Only those of this table
        table: Option<String>,
    },
    /// Load a file of comma-separated values, batch by batch
    #[command(name = ".import")]
    Import(import::Arguments),
    /// Print everything as SQL that an ordinary SQLite loads
    #[command(name = ".dump")]
    Dump {
        /// Only tables that are LIKE this
        pattern: Option<String>,
    },
    /// Choose the form of results
    #[command(name = ".mode")]
    Mode {
        /// The form
        mode: Mode,
        /// The table's name in mode insert
        table: Option<String>,
    },
    /// Print the names of columns first, or not
    #[command(name = ".headers", alias = ".header")]
    Headers { switch: Switch },
    /// Print this instead of NULL
    #[command(name = ".nullvalue")]
    NullValue { text: String },
    /// Print how long each statement takes
    #[command(name = ".timer")]
    Timer { switch: Switch },
    /// Carry out what a file says
    #[command(name = ".read")]
    Read { file: PathBuf },
    /// Send results to a file, or back to standard output
    #[command(name = ".output", alias = ".out")]
    Output { file: Option<PathBuf> },
    /// Show every replica, and name those at fault
    #[command(name = ".status")]
    Status,
    /// List these commands
    #[command(name = ".help")]
    Help,
    /// Leave
    #[command(name = ".quit", alias = ".exit")]
    Quit,
}

impl Shell {
    /// Carries out a dot command.
    pub(super) fn dot(&mut self, line: &str) -> Result<Next> {
        match prompt::parse::<DotLine>(line) {
            Line::Nothing => Ok(()),
            Line::Help(text) => self.print(&format!("{text}\n")),
            Line::Wrong(failure) => Err(failure),
            Line::Command(DotLine { command: Dot::Quit }) => return Ok(Next::Quit),
            Line::Command(DotLine { command }) => self.carry_out(&command),
        }?;
        Ok(Next::Continue)
    }

    fn carry_out(&mut self, command: &Dot) -> Result {
        match command {
            Dot::Tables { pattern } => self.list("type in ('table', 'view')", "name", pattern.as_deref()),
            Dot::Indexes { table } => self.list("type = 'index'", "tbl_name", table.as_deref()),
            Dot::Schema { pattern } => self.schema(pattern.as_deref()),
            Dot::Import(arguments) => self.import(arguments),
            Dot::Dump { pattern } => self.dump(pattern.as_deref()),
            Dot::Mode { mode, table } => {
                self.style.mode = *mode;
                self.style.table.clone_from(table);
                Ok(())
            }
            Dot::Headers { switch } => {
                self.style.headers = Some(*switch == Switch::On);
                Ok(())
            }
            Dot::NullValue { text } => {
                self.style.null.clone_from(text);
                Ok(())
            }
            Dot::Timer { switch } => {
                self.timer = *switch == Switch::On;
                Ok(())
            }
            Dot::Read { file } => self.read(file),
            Dot::Output { file } => self.redirect(file.as_deref()),
            Dot::Status => {
                let overview =
                    status::Overview::collect(self.service.members(), self.service.replicas(), &self.service.probe());
                self.print(&overview.show(self.style.mode == Mode::Json))
            }
            Dot::Help => self.print(&format!("{}\n", help())),
            Dot::Quit => Ok(()),
        }
    }

    /// Prints the names of things in the schema, those of the system only if they are asked for.
    fn list(&mut self, what: &str, of: &str, pattern: Option<&str>) -> Result {
        let sql = format!("select name from sqlite_schema where {what} and {} order by name", visible(of));
        let rows = self.rows(Statement::with(sql, [parameter(pattern)]))?;
        let names: Vec<_> = rows.rows.iter().flatten().map(|name| format!("{name}\n")).collect();
        self.print(&names.concat())
    }

    fn schema(&mut self, pattern: Option<&str>) -> Result {
        let sql =
            format!("select sql from sqlite_schema where sql is not null and {} order by rowid", visible("tbl_name"));
        let rows = self.rows(Statement::with(sql, [parameter(pattern)]))?;
        let texts: Vec<_> = rows.rows.iter().flatten().map(|sql| format!("{sql};\n")).collect();
        self.print(&texts.concat())
    }

    fn read(&mut self, file: &Path) -> Result {
        if self.depth == DEPTH_MAX {
            return Err(Failure::usage(format!("{} files read each other: that is too many.", DEPTH_MAX + 1)));
        }
        let wrong = |error| Failure::usage(format!("cannot read {}: {error}.", file.display()));
        let input = BufReader::new(File::open(file).map_err(wrong)?);
        self.depth += 1;
        for line in input.lines() {
            let line = line.map_err(wrong)?;
            if self.line(&line) == Next::Quit || self.service.interrupts.was_raised() {
                break;
            }
        }
        self.depth -= 1;
        Ok(())
    }

    fn redirect(&mut self, file: Option<&Path>) -> Result {
        let create = |path: &Path| {
            File::create(path).map_err(|error| Failure::usage(format!("cannot write {}: {error}.", path.display())))
        };
        self.output = file.map(create).transpose()?;
        self.style.escaped = self.output.is_none() && std::io::stdout().is_terminal();
        Ok(())
    }
}

/// The dot commands, one a line.
fn help() -> String {
    DotLine::command().render_help().to_string().trim_end().to_owned()
}

/// What of the schema is shown: what is LIKE the first parameter, or all that is the user's if that is null.
fn visible(column: &str) -> String {
    let user = format!("substr({column}, 1, {}) <> '{SYSTEM_PREFIX}'", SYSTEM_PREFIX.len());
    format!("case when ?1 is null then substr({column}, 1, 7) <> 'sqlite_' and {user} else {column} like ?1 end")
}

fn parameter(pattern: Option<&str>) -> Value {
    pattern.map_or(Value::Null, |pattern| Value::Text(pattern.to_owned()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_commands_are_consistent_and_listed() {
        DotLine::command().debug_assert();
        let text = help();
        for name in [".tables", ".import", ".dump", ".quit"] {
            assert!(text.contains(name), "{text}");
        }
    }
}
