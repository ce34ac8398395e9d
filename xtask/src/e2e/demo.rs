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

/// Plays through what the README shows, and then makes a mistake.
pub(crate) fn run(binary: &Path) -> Result<String> {
    let start = Instant::now();
    let mut demo = Conversation::start(LOG, process::program(&binary.to_string_lossy(), &["demo"]).arg("--json"))?;
    demo.say("set color blue")?;
    demo.say("get color")?;
    demo.hear("the first value", ANSWER_MAX, |line| line.contains("blue"))?;
    let first = start.elapsed();
    ensure(first < FIRST_ANSWER_MAX, || format!("the first answer took {:.1} s", first.as_secs_f64()))?;

    demo.say("kill 2")?;
    expect(&mut demo, "green", "with replica 2 down")?;
    demo.say("restart 2")?;
    expect(&mut demo, "red", "with replica 2 back")?;
    demo.say("lie 3")?;
    // Enough operations for its lies to be noticed.
    for number in 0..20 {
        expect(&mut demo, &format!("shade-{number}"), "with replica 3 lying")?;
    }
    demo.say("status --json")?;
    let at_fault = |line: &str| line.contains('3') && line.contains("differ");
    demo.hear("a status that names replica 3", ANSWER_MAX, at_fault)?;
    demo.say("honest 3")?;
    expect(&mut demo, "white", "with all honest again")?;
    demo.say("quit")?;
    let status = demo.finish(ANSWER_MAX)?;
    ensure(status.success(), || format!("it ended with {status} although all went right"))?;

    let mut confused = Conversation::start(LOG, &mut process::program(&binary.to_string_lossy(), &["demo"]))?;
    confused.say("paint it black")?;
    let status = confused.finish(ANSWER_MAX)?;
    ensure(!status.success(), || "it ended with 0 although a command was unknown".into())?;
    Ok(format!("first answer after {:.1} s", first.as_secs_f64()))
}

fn expect(demo: &mut Conversation, value: &str, when: &str) -> Result {
    demo.say(&format!("set color {value}"))?;
    demo.say("get color")?;
    demo.hear(&format!("`{value}` {when}"), ANSWER_MAX, |line| line.contains(value))?;
    Ok(())
}
