//! `bezant sim --layers`: many seeds, and what came of them.

use super::{ADVERSARIES, GroupOptions, GroupVerdict, Rounds, run};
use crate::arguments::Arguments;
use crate::byzantine::{Acts, Choice, add_acts};
use crate::report::{INTERRUPTED, print_each, was_tried};
use crate::runs::{Hunt, RangeOptions, hunt};
use serde_json::json;
use std::process::ExitCode;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

#[derive(Default)]
struct Summary {
    runs: u64,
    deliveries: u64,
    answers: u64,
    acts: Acts,
    rounds: Rounds,
    failures: Vec<(GroupOptions, GroupVerdict)>,
}

/// Runs and prints.
pub(crate) fn run_all(arguments: &Arguments, choices: &[Choice], stop: &Arc<AtomicBool>) -> ExitCode {
    let fits = |choice: &Choice| !matches!(choice, Choice::Only(adversary) if !ADVERSARIES.contains(adversary));
    if let Some(choice) = choices.iter().find(|choice| !fits(choice)) {
        let names: Vec<&str> = ADVERSARIES.iter().map(|adversary| adversary.label()).collect();
        eprintln!("error: {choice} has nothing to lie about in a group: try all, each, none, {}", names.join(", "));
        return ExitCode::from(2);
    }
    let failed = choices.iter().filter(|choice| !run_many(arguments, **choice, stop)).count();
    match (failed, stop.load(Ordering::Relaxed)) {
        (0, false) => ExitCode::SUCCESS,
        (0, true) => ExitCode::from(INTERRUPTED),
        _ => ExitCode::FAILURE,
    }
}

/// Whether nothing was violated, and something tried.
fn run_many(arguments: &Arguments, choice: Choice, stop: &Arc<AtomicBool>) -> bool {
    let (n, f) = arguments.options(choice, 0).replicas();
    let seeds = arguments.seed.map_or_else(|| arguments.seeds.clone(), |seed| seed..seed + 1);
    let (threads, failures_max) = (arguments.threads.max(1), arguments.failures_max.max(1));
    let range = RangeOptions { threads, check_determinism: false, failures_max, stop: stop.clone() };
    let begin = Instant::now();
    let judge = |seed| {
        let options = GroupOptions { n, f, adversary: choice, coin: arguments.coin, seed };
        (options, run(&options))
    };
    let add = |summary: &mut Summary, (options, verdict): (GroupOptions, GroupVerdict)| {
        summary.runs += 1;
        summary.deliveries += verdict.deliveries;
        summary.answers += verdict.answers;
        add_acts(&mut summary.acts, &verdict.acts);
        for (which, rounds) in &verdict.rounds {
            let sum = summary.rounds.entry(*which).or_default();
            rounds.iter().for_each(|(rounds, count)| *sum.entry(*rounds).or_default() += count);
        }
        if !verdict.violations.is_empty() {
            summary.failures.push((options, verdict));
        }
        if !arguments.json && summary.runs.is_multiple_of(10_000) {
            eprintln!("{} runs", summary.runs);
        }
        summary.failures.len()
    };
    let (mut summary, Hunt { next, interrupted, cpu }) = hunt(seeds.clone(), &range, judge, add);
    summary.failures.sort_by_key(|(options, _)| options.seed);
    let expected = match choice {
        Choice::Nobody => Vec::new(),
        Choice::Only(adversary) => vec![adversary],
        Choice::All => ADVERSARIES.to_vec(),
    };
    for adversary in expected {
        summary.acts.entry(adversary.label()).or_default();
    }
    let times = (begin.elapsed(), cpu);
    print(arguments, choice, &summary, times, (next, interrupted));
    for (options, verdict) in &summary.failures {
        eprintln!("VIOLATION replay: {options}");
        print_each(&verdict.violations);
    }
    let was_tried = interrupted || was_tried(arguments, choice, &summary.acts, summary.runs);
    summary.failures.is_empty() && was_tried
}

/// What came of it, on standard output.
fn print(
    arguments: &Arguments,
    choice: Choice,
    summary: &Summary,
    (elapsed, cpu): (Duration, Duration),
    (next, interrupted): (u64, bool),
) {
    let (n, f) = arguments.options(choice, 0).replicas();
    let seeds = arguments.seed.map_or_else(|| arguments.seeds.clone(), |seed| seed..seed + 1);
    let Summary { runs, deliveries, answers, acts, rounds, failures } = summary;
    let (per_second, per_core) = (*runs as f64 / elapsed.as_secs_f64(), *runs as f64 / cpu.as_secs_f64());
    if arguments.json {
        let object = json!({
            "layers": true, "adversary": choice.to_string(), "n": n, "f": f,
            "seeds": format!("{}..{}", seeds.start, seeds.end), "scenarios": runs, "violations": failures.len(),
            "scenarios_per_s": per_second.round(), "scenarios_per_s_per_core": per_core.round(),
            "cpu_s": (cpu.as_secs_f64() * 1e3).round() / 1e3, "deliveries": deliveries, "answers": answers,
            "acts": acts, "rounds": rounds_as_json(rounds),
            "next_seed": next, "interrupted": interrupted,
        });
        println!("{object}");
    } else {
        println!(
            "layers, {choice}, n = {n}, f = {f}: {runs} runs, {} violations, {per_second:.0}/s ({per_core:.0} in a \
             second of a core); {deliveries} frames, {answers} broadcasts and decisions",
            failures.len()
        );
        let acts: Vec<String> = acts.iter().map(|(label, count)| format!("{label} {count}")).collect();
        println!("  lies: {}", acts.join(", "));
        for ((coin, network), rounds) in rounds {
            let counts: Vec<String> = rounds.iter().map(|(rounds, count)| format!("{rounds}: {count}")).collect();
            println!("  rounds of a binary decision, {coin}, {network}: {}", counts.join(", "));
        }
        if interrupted {
            println!("  interrupted: {next} of {}..{} is the first seed that was not begun", seeds.start, seeds.end);
        }
    }
}

/// A histogram for each coin and network.
fn rounds_as_json(rounds: &Rounds) -> serde_json::Value {
    let one =
        |((coin, network), counts): (&(&str, &str), _)| json!({ "coin": coin, "network": network, "counts": counts });
    rounds.iter().map(one).collect()
}
