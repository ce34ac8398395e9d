//! `bezant sql`: the SQL shell, or one text of statements.

use crate::database::Level;
use crate::failure::Result;
use crate::prompt::{Input, Prompt};
use crate::service::{Connection, Service};
use crate::shell::{CONTINUATION, Form, Next, Shell};
use std::sync::Arc;

/// Ask the replicated SQL database
///
/// Statements if there are some on the command line, otherwise from a prompt or from standard input. `.help` lists the
/// dot commands. A statement is a transaction of its own; what stands between BEGIN and COMMIT is sent as one.
#[derive(clap::Args)]
#[command(after_help = "Examples:\n  bezant sql --cluster net/cluster.toml\n  \
    bezant sql --cluster net/cluster.toml \"select count(*) from t\"\n  \
    bezant sql --cluster net/cluster.toml --json \"select * from t\"\n  \
    bezant sql --cluster net/cluster.toml \".import data.csv t\"\n  \
    bezant sql --cluster net/cluster.toml < script.sql\n\n\
    Exit codes: 0 done · 1 an error of SQL, or refused · 2 wrong arguments or files · 3 outcome unknown")]
pub(crate) struct Arguments {
    #[command(flatten)]
    connection: Connection,
    /// Print results as JSON: one array of objects a result
    #[arg(long)]
    json: bool,
    /// Print results as comma-separated values, names of columns first
    #[arg(long, conflicts_with = "json")]
    csv: bool,
    /// How much reads are worth
    #[arg(long, value_enum, default_value_t)]
    read: Level,
    /// Statements or one dot command
    #[arg(value_name = "SQL")]
    text: Option<String>,
}

/// Runs the command.
pub(crate) fn run(arguments: &Arguments) -> Result {
    let service = Arc::new(Service::connect_to_ours(&arguments.connection)?);
    service.interrupts.listen()?;
    let form = match (arguments.json, arguments.csv) {
        (true, _) => Form::Json,
        (_, true) => Form::Csv,
        _ => Form::Plain,
    };
    let Some(text) = &arguments.text else {
        return converse(service, form, arguments.read);
    };
    let mut shell = Shell::new(service, form, false).at_level(arguments.read);
    shell.say(text);
    shell.outcome()
}

fn converse(service: Arc<Service>, form: Form, level: Level) -> Result {
    let mut prompt = Prompt::remembering("sql> ")?;
    let mut shell = Shell::new(Arc::clone(&service), form, prompt.is_terminal()).at_level(level);
    loop {
        match prompt.is_terminal() {
            true => service.interrupts.forget(),
            false if service.interrupts.was_raised() => break,
            false => {}
        }
        match prompt.read(shell.is_waiting().then_some(CONTINUATION))? {
            Input::Line(line) if shell.line(&line) == Next::Quit => break,
            Input::Line(_) => {}
            Input::Interrupted if shell.is_waiting() => shell.cancel(),
            Input::Interrupted => break,
            Input::End => {
                shell.finish();
                break;
            }
        }
    }
    shell.outcome()
}
