//! The SQL shell: statements over several lines, dot commands as in sqlite3, results in the form that is wished for.
//!
//! `bezant sql` and `bezant demo` feed it lines. A statement is a request of its own; what stands between BEGIN and
//! COMMIT is kept until COMMIT and sent as one, for a request is the transaction.

mod dots;
mod dump;
mod format;
mod import;
mod records;

use crate::database::{DatabaseError, Level};
use crate::failure::{Code, Failure, Result};
use crate::service::Service;
use bezant_sql::{
    Batch, Failure as SqlFailure, Rehearsal, Request, Response, Rows, SQL_BYTES_MAX, STATEMENTS_MAX, Statement,
};
use format::{Mode, Style};
use std::fs::File;
use std::io::{IsTerminal, Write};
use std::sync::Arc;
use std::time::Instant;

/// The prompt while a statement goes on.
pub(crate) const CONTINUATION: &str = "   ...> ";

/// Most bytes of statements that are not complete, or wait for COMMIT.
const PENDING_BYTES_MAX: usize = 2 * SQL_BYTES_MAX;

/// Most characters of a statement that are shown beside an error in it.
const EXCERPT_CHARS: usize = 60;

/// In which form results are printed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Form {
    /// For whoever looks: a table on a terminal, lines otherwise.
    Plain,
    Json,
    Csv,
}

/// Whether to read another line.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Next {
    Continue,
    Quit,
}

/// See the [module](self).
pub(crate) struct Shell {
    service: Arc<Service>,
    level: Level,
    style: Style,
    /// Where results go; `None` is standard output.
    output: Option<File>,
    timer: bool,
    /// Whether a person looks on.
    interactive: bool,
    /// Whether the first failure is the last thing that happens.
    stops_at_failure: bool,
    /// Lines of a statement that has not ended.
    pending: String,
    /// What was said since BEGIN.
    transaction: Option<Vec<String>>,
    /// Files that are being read within each other.
    depth: usize,
    /// What went wrong, at worst.
    outcome: Result,
}

impl Shell {
    pub(crate) fn new(service: Arc<Service>, form: Form, interactive: bool) -> Self {
        let mode = match form {
            Form::Json => Mode::Json,
            Form::Csv => Mode::Csv,
            Form::Plain if std::io::stdout().is_terminal() => Mode::Box,
            Form::Plain => Mode::List,
        };
        Self {
            service,
            level: Level::default(),
            style: Style { mode, escaped: std::io::stdout().is_terminal(), ..Style::default() },
            output: None,
            timer: false,
            interactive,
            stops_at_failure: false,
            pending: String::new(),
            transaction: None,
            depth: 0,
            outcome: Ok(()),
        }
    }

    /// With reads at this level.
    pub(crate) const fn at_level(mut self, level: Level) -> Self {
        self.level = level;
        self
    }

    /// Whether the next line goes on with a statement.
    pub(crate) const fn is_waiting(&self) -> bool {
        !self.pending.is_empty()
    }

    /// Forgets a statement that has not ended.
    pub(crate) fn cancel(&mut self) {
        self.pending.clear();
    }

    /// Carries out what is said in a text of any number of lines, up to the first failure.
    pub(crate) fn say(&mut self, text: &str) {
        self.stops_at_failure = true;
        for line in text.split_inclusive('\n') {
            if self.line(line) == Next::Quit || self.outcome.is_err() {
                return;
            }
        }
        self.finish();
    }

    /// The next line of input. What goes wrong is reported at once.
    pub(crate) fn line(&mut self, line: &str) -> Next {
        let word = line.trim();
        if self.pending.is_empty() && (word.starts_with('.') || matches!(word, "help" | "quit" | "exit")) {
            let command = format!(".{}", word.trim_start_matches('.'));
            return self.dot(&command).unwrap_or_else(|failure| self.note(failure));
        }
        self.pending += line;
        if !line.ends_with('\n') {
            self.pending.push('\n');
        }
        if line.contains(';') {
            let text = std::mem::take(&mut self.pending);
            let split = bezant_sql::split(&text);
            self.pending = split.rest.to_owned();
            self.statements(&split.statements);
        } else if bezant_sql::split(&self.pending) == bezant_sql::Split::default() {
            self.pending.clear();
        }
        if self.pending.len() > PENDING_BYTES_MAX {
            self.pending.clear();
            self.note(Failure::failed(format!("a statement has more than {PENDING_BYTES_MAX} bytes.")));
        }
        Next::Continue
    }

    /// The end of input: what needs no semicolon any more is carried out.
    pub(crate) fn finish(&mut self) {
        let text = std::mem::take(&mut self.pending);
        if !text.is_empty() {
            self.statements(&[text.trim_end()]);
        }
        if self.transaction.take().is_some() {
            self.note(Failure::failed("the input ends within a transaction: nothing of it was done. Say COMMIT."));
        }
    }

    /// What went wrong at worst; printed already.
    pub(crate) fn outcome(&self) -> Result {
        self.outcome.clone()
    }

    fn note(&mut self, failure: Failure) -> Next {
        failure.report();
        if !matches!(self.outcome, Err(Failure { code: Code::Unknown, .. })) {
            self.outcome = Err(failure.silenced());
        }
        Next::Continue
    }

    fn statements(&mut self, statements: &[&str]) {
        for sql in statements {
            if let Err(failure) = self.statement(sql) {
                self.note(failure);
                if self.stops_at_failure || self.service.interrupts.was_raised() {
                    return;
                }
            }
        }
    }

    /// One statement, or one end of a transaction.
    fn statement(&mut self, sql: &str) -> Result {
        let words: Vec<_> = sql.trim_end_matches([';', ' ', '\n']).split_ascii_whitespace().take(3).collect();
        let is = |at: usize, word: &str| words.get(at).is_some_and(|found| found.eq_ignore_ascii_case(word));
        if is(0, "begin") {
            return self.begin();
        }
        if is(0, "commit") || is(0, "end") {
            return self.commit();
        }
        if is(0, "rollback") && !is(1, "to") && !is(2, "to") {
            let begun = self.transaction.take();
            return begun.map(drop).ok_or_else(|| Failure::failed("there is no transaction to roll back."));
        }
        let Some(transaction) = &mut self.transaction else {
            return self.batch(&[sql.to_owned()]);
        };
        transaction.push(sql.to_owned());
        let bytes: usize = transaction.iter().map(String::len).sum();
        if transaction.len() > STATEMENTS_MAX || bytes > PENDING_BYTES_MAX {
            self.transaction = None;
            return Err(Failure::failed(format!(
                "a transaction has at most {STATEMENTS_MAX} statements and {PENDING_BYTES_MAX} bytes; nothing was \
                 done. Use several, or .import for data."
            )));
        }
        Ok(())
    }

    fn begin(&mut self) -> Result {
        if self.transaction.is_some() {
            return Err(Failure::failed("a transaction has begun already."));
        }
        self.transaction = Some(Vec::new());
        if self.interactive {
            eprintln!("Statements are kept and sent as one batch at COMMIT; their results come then.");
        }
        Ok(())
    }

    fn commit(&mut self) -> Result {
        let Some(statements) = self.transaction.take() else {
            return Err(Failure::failed("there is no transaction to commit."));
        };
        if statements.is_empty() { Ok(()) } else { self.batch(&statements) }
    }

    /// Sends statements as one request and prints what they give.
    fn batch(&mut self, statements: &[String]) -> Result {
        let start = Instant::now();
        let request = Request::Run(Batch {
            statements: statements.iter().map(|sql| Statement::new(sql.as_str())).collect(),
            ..Batch::default()
        });
        let results = self.ask(&request)?;
        for rows in &results {
            let text = self.style.render(rows);
            self.print(&text)?;
            if self.interactive && rows.changes > 0 && rows.columns.is_empty() {
                eprintln!("{} changed", plural(rows.changes, "row"));
            }
        }
        if self.timer {
            self.print(&format!("Run Time: real {:.3}\n", start.elapsed().as_secs_f64()))?;
        }
        Ok(())
    }

    /// The results of a request that only has statements.
    fn ask(&self, request: &Request) -> Result<Vec<Rows>> {
        let answer = self.service.database().call_at(request, self.level).map_err(failure)?;
        if !answer.verified {
            eprintln!("bezant: UNVERIFIED: this is the word of one replica, which may be behind, or lie.");
        }
        match answer.response {
            Response::Done(results) => Ok(results),
            Response::Failed(error) => Err(explain(request, &error)),
            other => Err(Failure::failed(format!("the service answered {other:?}."))),
        }
    }

    /// The rows of one statement of our own.
    fn rows(&self, statement: Statement) -> Result<Rows> {
        self.ask(&Request::one(statement)).map(|results| results.into_iter().next().unwrap_or_default())
    }

    /// Prints a text that has its new line, if it is not empty.
    fn print(&mut self, text: &str) -> Result {
        match &mut self.output {
            Some(file) => file.write_all(text.as_bytes()).map_err(|error| {
                Failure::failed(format!("cannot write to the output file: {error}. .output chooses another."))
            }),
            None if text.is_empty() => Ok(()),
            None => crate::output::line(text.strip_suffix('\n').unwrap_or(text)),
        }
    }
}

/// Why there is no response, with an exit code.
fn failure(error: DatabaseError) -> Failure {
    match error {
        DatabaseError::Unknown(_) => Failure::unknown(format!("{error}.")),
        _ => Failure::failed(format!("{error}.")),
    }
}

/// An error of SQL: what, where, and what to do about it.
fn explain(request: &Request, failure: &SqlFailure) -> Failure {
    let statements = match request {
        Request::Run(batch) => batch.statements.as_slice(),
        Request::Rehearse(Rehearsal { dated, .. }) | Request::Settle(dated) => dated.batch.statements.as_slice(),
        Request::Describe(_) => &[],
    };
    let mut text = failure.error.message.clone();
    if statements.len() > 1 {
        text += &format!(" (statement {} of {}; none was done)", failure.statement + 1, statements.len());
    }
    let statement = statements.get(failure.statement as usize);
    if let (Some(statement), Some(position)) = (statement, failure.error.position) {
        text += &excerpt(&statement.sql, position as usize);
    }
    if !failure.error.hint.is_empty() {
        text += &format!("\n  hint: {}", failure.error.hint);
    }
    Failure::failed(text)
}

/// The line of a statement around a position, and a mark under it.
fn excerpt(sql: &str, position: usize) -> String {
    let Some((before, after)) = sql.split_at_checked(position) else { return String::new() };
    let before = before.rsplit('\n').next().unwrap_or_default();
    let after = after.lines().next().unwrap_or_default();
    let skipped = before.chars().count().saturating_sub(EXCERPT_CHARS / 2);
    let shown: String = before.chars().skip(skipped).collect();
    let rest: String = after.chars().take(EXCERPT_CHARS - EXCERPT_CHARS / 2).collect();
    let visible = |text: &str| text.replace(char::is_control, " ");
    format!("\n  {}{}\n  {}^", visible(&shown), visible(&rest), " ".repeat(shown.chars().count()))
}

/// A number of things.
fn plural(count: u64, thing: &str) -> String {
    if count == 1 { format!("1 {thing}") } else { format!("{count} {thing}s") }
}

/// Whether a line begins as SQL or a dot command does, and so is meant for the shell.
pub(crate) fn is_meant_for_shell(line: &str) -> bool {
    #[rustfmt::skip]
    const WORDS: [&str; 24] = [
        "alter", "analyze", "attach", "begin", "commit", "create", "delete", "detach", "drop", "end", "explain",
        "insert", "pragma", "reindex", "release", "replace", "rollback", "savepoint", "select", "update", "vacuum",
        "values", "with", "/*",
    ];
    let line = line.trim_start();
    let word = line.split(|c: char| c.is_whitespace() || matches!(c, ';' | '(' | '\'' | '"' | '*')).next();
    let known = |word: &str| WORDS.iter().any(|known| word.eq_ignore_ascii_case(known));
    let is_comment = line.starts_with("--") || line.starts_with("/*");
    line.starts_with('.') || is_comment || line.trim_end().ends_with(';') || word.is_some_and(known)
}

#[cfg(test)]
mod tests {
    use super::*;
    use bezant_sql::{ErrorKind, SqlError};

    #[test]
    fn an_error_shows_the_place_and_the_hint() {
        let request = Request::one(Statement::new("select 1,\n  2 frm t where a"));
        let error = SqlError { position: Some(18), ..SqlError::with_hint(ErrorKind::Syntax, "near \"t\"", "look") };
        let failure = explain(&request, &SqlFailure { statement: 0, error });
        assert_eq!(failure.to_string(), "near \"t\"\n    2 frm t where a\n          ^\n  hint: look");
        assert_eq!(excerpt("short", 99), "");
        let long = format!("select {} x", "ü".repeat(400));
        assert!(excerpt(&long, long.len() - 1).lines().all(|line| line.chars().count() <= EXCERPT_CHARS + 2));
    }

    #[test]
    fn sql_and_commands_are_told_apart() {
        for line in ["SELECT 1", " values(1)", ".tables", "-- x", "/* x", "selec 1;", "with a as (select 1)"] {
            assert!(is_meant_for_shell(line), "{line}");
        }
        for line in ["", "set a 1", "get select", "kill 2", "paint it black", "selection"] {
            assert!(!is_meant_for_shell(line), "{line}");
        }
    }
}
