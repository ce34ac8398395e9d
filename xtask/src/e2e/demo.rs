//! `bezant demo`, driven through its standard input.

use super::running::Conversation;
use crate::failure::{Result, ensure};
use crate::process;
use std::path::Path;
use std::time::{Duration, Instant};

const LOG: &str = "e2e-demo";
/// How soon the first command must have been answered: the prompt's 3 s and a little for the answer.
const FIRST_ANSWER_MAX: Duration = Duration::from_millis(3_500);
/// How long any one command may take, with a replica down and another view to be found.
const ANSWER_MAX: Duration = Duration::from_secs(20);

/// Plays through what the README shows, then makes a mistake.
pub(crate) fn run(binary: &Path) -> Result<String> {
    let start = Instant::now();
    let mut demo = Conversation::start(LOG, &mut process::program(&binary.to_string_lossy(), &["demo"]))?;
    exchange(&mut demo, "blue", "at the start")?;
    let first = start.elapsed();
    ensure(first < FIRST_ANSWER_MAX, || format!("the first answer took {:.1} s", first.as_secs_f64()))?;

    ask(&mut demo, "kill 2", |line| line.contains("killed"))?;
    exchange(&mut demo, "green", "with replica 2 down")?;
    ask(&mut demo, "restart 2", |line| line.contains("running"))?;
    exchange(&mut demo, "red", "with replica 2 back")?;
    ask(&mut demo, "lie 3", |line| line.contains("lying"))?;
    // Enough operations for its lies to be noticed.
    for number in 0..20 {
        exchange(&mut demo, &format!("shade-{number}"), "with replica 3 lying")?;
    }
    ask(&mut demo, "status --json", |line| line.contains("\"at_fault\":[3]"))?;
    ask(&mut demo, "status", |line| line.contains("replica 3 is at fault"))?;
    ask(&mut demo, "honest 3", |line| line.contains("honest"))?;
    exchange(&mut demo, "white", "with all honest again")?;
    demo.say("quit")?;
    let status = demo.finish(ANSWER_MAX)?;
    ensure(status.success(), || format!("it ended with {status} although all went right"))?;

    let mut confused = Conversation::start(LOG, &mut process::program(&binary.to_string_lossy(), &["demo"]))?;
    confused.say("paint it black")?;
    let status = confused.finish(ANSWER_MAX)?;
    ensure(!status.success(), || "it ended with 0 although a command was unknown".into())?;
    let repaired = repair(binary)?;
    let (first, repaired) = (first.as_secs_f64(), repaired.as_secs_f64());
    Ok(format!("first answer after {first:.1} s; a wrong state repaired with one replica down after {repaired:.1} s"))
}

/// A state is altered, then another replica goes: the two that are right are f + 1, and bring the service back. Returns
/// how long that took.
fn repair(binary: &Path) -> Result<Duration> {
    let mut demo = Conversation::start(LOG, &mut process::program(&binary.to_string_lossy(), &["demo"]))?;
    exchange(&mut demo, "blue", "before the state is altered")?;
    ask(&mut demo, "lie 3", |line| line.contains("lying"))?;
    ask(&mut demo, "get color", |line| line == "blue")?;
    ask(&mut demo, "honest 3", |line| line.contains("may still be altered until the next checkpoint"))?;
    ask(&mut demo, "kill 1", |line| line.contains("killed"))?;
    let start = Instant::now();
    ask(&mut demo, "set size 7", |line| line == "ok")?;
    ask(&mut demo, "diff", |line| line.starts_with("Replica 3 had another state than the others"))?;
    ask(&mut demo, "get color", |line| line == "blue")?;
    let took = start.elapsed();
    ask(&mut demo, "status", |line| line.starts_with("Replica 3 had another state than the others once"))?;
    ask(&mut demo, "status --json", |line| line.contains("\"answering\":true"))?;
    demo.say("quit")?;
    let status = demo.finish(ANSWER_MAX)?;
    ensure(status.success(), || format!("it ended with {status} although the state was repaired"))?;
    Ok(took)
}

/// Sets a value and reads it back; lines that are neither answer do not come in between.
fn exchange(demo: &mut Conversation, value: &str, when: &str) -> Result {
    ask(demo, &format!("set color {value}"), |line| line == "ok").map_err(|failure| failure.during(when))?;
    ask(demo, "get color", |line| line == value).map_err(|failure| failure.during(when))
}

fn ask(demo: &mut Conversation, line: &str, right: impl Fn(&str) -> bool) -> Result {
    demo.say(line)?;
    demo.hear(&format!("the answer to `{line}`"), ANSWER_MAX, right)?;
    Ok(())
}
