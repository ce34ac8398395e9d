//! `bezant sim`: what its arguments do.

use crate::arguments::Arguments;
use crate::byzantine::{Acts, Adversary, Choice};
use crate::group::{self, ADVERSARIES};
use crate::options::ScenarioOptions;
use crate::report::{INTERRUPTED, print_each, was_tried};
use crate::runs::{RangeOptions, Summary, run_range, run_traced};
use crate::scenario::Scenario;
use crate::seeds::{Saved, saved};
use crate::shrink::shrink;
use crate::world::Verdict;
use serde_json::json;
use signal_hook::consts::{SIGINT, SIGTERM};
use signal_hook::flag;
use std::fmt::Display;
use std::ops::Range;
use std::process::ExitCode;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Instant;

/// Set when somebody interrupts: the hunt then says what it did so far. Who does it twice does not wait for that.
fn interruption() -> Arc<AtomicBool> {
    let stop = Arc::new(AtomicBool::new(false));
    for signal in [SIGINT, SIGTERM] {
        // In this order: the first signal finds the flag unset. Without handlers an interruption ends the process.
        let _ = flag::register_conditional_shutdown(signal, i32::from(INTERRUPTED), stop.clone());
        let _ = flag::register(signal, stop.clone());
    }
    stop
}

impl Arguments {
    /// Runs and prints.
    pub fn run(self) -> ExitCode {
        if self.saved {
            return run_saved();
        }
        let choices = match self.adversary.as_str() {
            "each" => {
                let fitting = if self.layers { ADVERSARIES.to_vec() } else { Adversary::against(self.protocol) };
                let named = fitting.into_iter().map(Choice::Only);
                [Choice::Nobody].into_iter().chain(named).collect()
            }
            name => match name.parse() {
                Ok(choice) => vec![choice],
                Err(error) => {
                    return refused(error);
                }
            },
        };
        if let Err(unfit) = self.options(Choice::Nobody, 0).check() {
            return refused(unfit);
        }
        let idle = |choice: &Choice| match choice {
            Choice::Only(adversary) if !self.layers => adversary.is_idle_in(self.protocol),
            _ => None,
        };
        if let Some(why) = choices.iter().find_map(idle) {
            return refused(why);
        }
        if self.layers {
            return group::run_all(&self, &choices, &interruption());
        }
        if let Some(seed) = self.seed {
            let failed = choices.iter().filter(|choice| !self.run_one(&self.options(**choice, seed))).count();
            return ExitCode::from(u8::from(failed > 0));
        }
        let stop = interruption();
        let failed = choices.iter().filter(|choice| !self.run_many(**choice, &stop)).count();
        match (failed, stop.load(Ordering::Relaxed)) {
            (0, false) => ExitCode::SUCCESS,
            (0, true) => ExitCode::from(INTERRUPTED),
            _ => ExitCode::FAILURE,
        }
    }

    fn run_one(&self, options: &ScenarioOptions) -> bool {
        let scenario = Scenario::draw(options);
        let (verdict, trace) = run_traced(options);
        if self.trace {
            print!("{}", trace.text());
        }
        if self.diagram {
            print!("{}", trace.diagram());
            return verdict.violations.is_empty();
        }
        let adversary = scenario.adversary.map_or("nobody", Adversary::label);
        let liars: Vec<String> = scenario.liars.iter().map(|liar| scenario.cast.describe(*liar)).collect();
        let client = scenario.cast.client.map_or_else(String::new, |client| format!(" and a client: {client}"));
        let features: Vec<&str> = scenario.features.iter().map(|feature| feature.label()).collect();
        println!("{adversary} {}{client} with {}", liars.join(" "), features.join(","));
        println!(
            "seed {}: {} calls answered, {} frames, trace {:016x}",
            options.seed, verdict.answered, verdict.frames, verdict.trace_hash
        );
        print_violations(&verdict);
        verdict.violations.is_empty()
    }

    /// Whether nothing was violated, and something tried.
    fn run_many(&self, choice: Choice, stop: &Arc<AtomicBool>) -> bool {
        if stop.load(Ordering::Relaxed) {
            return true;
        }
        let (threads, failures_max) = (self.threads.max(1), self.failures_max.max(1));
        let range =
            RangeOptions { threads, check_determinism: self.check_determinism, failures_max, stop: stop.clone() };
        let begin = Instant::now();
        let progress = |done: u64| {
            if !self.json && done.is_multiple_of(10_000) {
                eprintln!("{done} scenarios");
            }
        };
        let summary = run_range(&self.options(choice, 0), self.seeds.clone(), &range, &progress);
        self.print_summary(choice, &summary, summary.scenarios as f64 / begin.elapsed().as_secs_f64());
        for (options, verdict) in &summary.failures {
            self.print_failure(options, verdict);
        }
        for seed in &summary.diverged {
            eprintln!("seed {seed}: the second run had another trace");
        }
        let was_tried = summary.interrupted || was_tried(self, choice, &summary.acts, summary.scenarios);
        summary.failures.is_empty() && summary.diverged.is_empty() && was_tried
    }

    /// How often each behaviour acted that a run may have had, those that never did as well.
    fn acts(&self, choice: Choice, summary: &Summary) -> Acts {
        let mut acts = summary.acts.clone();
        let expected = match choice {
            Choice::Nobody => Vec::new(),
            Choice::Only(adversary) => vec![adversary],
            Choice::All => Adversary::against(self.protocol),
        };
        for adversary in expected {
            acts.entry(adversary.label()).or_default();
        }
        acts
    }

    fn print_summary(&self, choice: Choice, summary: &Summary, per_second: f64) {
        let Range { start, end } = self.seeds;
        let counts = summary.counts;
        let cpu = summary.cpu.as_secs_f64();
        let per_core = summary.scenarios as f64 / cpu;
        let (n, f) = self.options(choice, start).replicas();
        if self.json {
            let object = json!({
                "protocol": self.protocol.to_string(), "adversary": choice.to_string(), "n": n, "f": f,
                "seeds": format!("{start}..{end}"), "scenarios": summary.scenarios,
                "violations": summary.failures.len() + summary.diverged.len(),
                "scenarios_per_s": per_second.round(), "scenarios_per_s_per_core": per_core.round(),
                "cpu_s": (cpu * 1e3).round() / 1e3, "events": summary.events,
                "events_per_cpu_s": (summary.events as f64 / cpu).round(),
                "longest_tenth": (summary.longest_tenth() * 1e3).round() / 1e3,
                "met": summary.evidence,
                "calls": summary.answered, "batches": counts.executed, "view_changes": counts.view_changes,
                "transfers": counts.transfers, "rollbacks": counts.rollbacks, "recoveries": counts.recoveries,
                "lost_logs": counts.lost_logs, "failed_syncs": counts.failed_syncs, "old_disks": counts.old_disks,
                "slow_rings": counts.slow_rings, "acts": self.acts(choice, summary),
                "next_seed": summary.next, "interrupted": summary.interrupted,
            });
            return println!("{object}");
        }
        println!(
            "{choice}, n = {n}, f = {f}: {} scenarios, {} violations, {per_second:.0}/s ({per_core:.0} in a second of \
             a core); {} calls, {} batches, {} view changes, {} transfers, {} rollbacks, {} recoveries, {} lost logs, \
             {} failed syncs, {} old disks, {} slow rings",
            summary.scenarios,
            summary.failures.len(),
            summary.answered,
            counts.executed,
            counts.view_changes,
            counts.transfers,
            counts.rollbacks,
            counts.recoveries,
            counts.lost_logs,
            counts.failed_syncs,
            counts.old_disks,
            counts.slow_rings,
        );
        let acts: Vec<String> =
            self.acts(choice, summary).iter().map(|(label, count)| format!("{label} {count}")).collect();
        println!("  lies: {}", acts.join(", "));
        if summary.interrupted {
            println!("  interrupted: {} of {start}..{end} is the first seed that was not begun", summary.next);
        }
    }

    /// Failures go to standard error, so that `--json` stays JSON.
    fn print_failure(&self, options: &ScenarioOptions, verdict: &Verdict) {
        eprintln!("VIOLATION replay: {options} --trace");
        print_violations(verdict);
        if self.no_shrink {
            return;
        }
        if let Some((smaller, verdict)) = shrink(options)
            && smaller != *options
        {
            eprintln!("  smaller: {smaller} --trace");
            print_violations(&verdict);
        }
    }
}

/// The command cannot do what it was asked for.
fn refused(why: impl Display) -> ExitCode {
    eprintln!("error: {why}");
    ExitCode::from(2)
}

fn run_saved() -> ExitCode {
    let saved = match saved() {
        Ok(saved) => saved,
        Err(error) => {
            return refused(error);
        }
    };
    let mut failed = 0;
    for Saved { run, why } in &saved {
        let violations = run.violations();
        if !violations.is_empty() {
            failed += 1;
            eprintln!("VIOLATION replay: {run}\n  kept because: {why}");
            print_each(&violations);
        }
    }
    println!("{} saved seeds, {failed} violations", saved.len());
    ExitCode::from(u8::from(failed > 0))
}

fn print_violations(verdict: &Verdict) {
    print_each(&verdict.violations);
}
