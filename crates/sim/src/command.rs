//! `bezant sim`: the arguments and what they do.

use crate::byzantine::{Acts, Adversary, Choice};
use crate::scenario::{Feature, Scenario};
use crate::seeds::{Saved, saved};
use crate::shrink::shrink;
use crate::size::Size;
use crate::store::ServiceKind;
use crate::world::Verdict;
use crate::{RangeOptions, ScenarioOptions, Summary, run, run_range, run_traced};
use bezant_core::schedule::{Protocol, UnknownProtocol};
use clap::Args;
use serde_json::json;
use signal_hook::consts::{SIGINT, SIGTERM};
use signal_hook::flag;
use std::ops::Range;
use std::process::ExitCode;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Instant;

/// What `bezant sim` takes. Exit code 0 if nothing was violated, 1 if something was, 130 if it was interrupted before.
#[derive(Args, Clone, Debug)]
pub struct Arguments {
    /// What runs: the name of a composition, or a list of parts such as "chain, backup(pbft)"
    #[arg(long, default_value = "pbft", value_parser = parse_protocol)]
    protocol: Protocol,
    /// What is replicated
    #[arg(long, value_enum, default_value_t)]
    service: ServiceKind,
    /// Faults tolerated; there are 3f + 1 replicas
    #[arg(long, default_value_t = 1, value_parser = clap::value_parser!(u8).range(0..=5))]
    f: u8,
    /// Who lies: the name of a behaviour, all (drawn from the seed), each (one after the other), or none
    #[arg(long, default_value = "all")]
    adversary: String,
    /// Seeds to run, A..B without B
    #[arg(long, value_parser = parse_seeds, conflicts_with = "seed", default_value = "0..1000")]
    seeds: Range<u64>,
    /// The one seed to run
    #[arg(long)]
    seed: Option<u64>,
    /// How big runs are; if not said, the seed decides
    #[arg(long, value_enum)]
    size: Option<Size>,
    /// Run the saved seeds
    #[arg(long, conflicts_with_all = ["seed", "seeds"])]
    saved: bool,
    /// Features to do without, e.g. loss,crashes
    #[arg(long, value_delimiter = ',')]
    without: Vec<Feature>,
    /// Most requests of each client in each phase
    #[arg(long)]
    requests: Option<u64>,
    /// With --seed: print what happened, line by line
    #[arg(long, requires = "seed")]
    trace: bool,
    /// With --seed: print a Mermaid sequence diagram
    #[arg(long, requires = "seed")]
    diagram: bool,
    /// Print one JSON object per adversary
    #[arg(long)]
    json: bool,
    /// Run every seed twice and compare
    #[arg(long)]
    check_determinism: bool,
    /// Threads, each with runs of its own
    #[arg(long, default_value_t = RangeOptions::default().threads)]
    threads: usize,
    /// Stop after so many failing seeds
    #[arg(long, default_value_t = RangeOptions::default().failures_max)]
    failures_max: usize,
    /// Do not look for a smaller run that fails in the same way
    #[arg(long)]
    no_shrink: bool,
}

/// The exit code of a hunt that was interrupted and had found nothing.
const INTERRUPTED: u8 = 130;

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

fn parse_protocol(name: &str) -> Result<Protocol, String> {
    name.parse().map_err(|error: UnknownProtocol| error.to_string())
}

fn parse_seeds(text: &str) -> Result<Range<u64>, String> {
    let parse = || {
        let (from, to) = text.split_once("..")?;
        Some(from.parse().ok()?..to.parse().ok()?)
    };
    parse()
        .filter(|range: &Range<u64>| !range.is_empty())
        .ok_or_else(|| format!("{text:?} is not a range like 0..1000"))
}

impl Arguments {
    /// The one run that `--seed` names, if it does and if the adversary is one.
    pub fn scenario(&self) -> Option<ScenarioOptions> {
        Some(self.options(self.adversary.parse().ok()?, self.seed?))
    }

    /// The same about another service.
    #[must_use]
    pub fn serving(self, service: ServiceKind) -> Self {
        Self { service, ..self }
    }

    /// Runs and prints.
    pub fn run(self) -> ExitCode {
        if self.saved {
            return run_saved();
        }
        let choices = match self.adversary.as_str() {
            "each" => {
                let named = Adversary::all_against(self.protocol).into_iter().map(Choice::Only);
                [Choice::Nobody].into_iter().chain(named).collect()
            }
            name => match name.parse() {
                Ok(choice) => vec![choice],
                Err(error) => {
                    eprintln!("error: {error}");
                    return ExitCode::from(2);
                }
            },
        };
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

    fn options(&self, adversary: Choice, seed: u64) -> ScenarioOptions {
        ScenarioOptions {
            protocol: self.protocol,
            service: self.service,
            f: usize::from(self.f),
            adversary,
            seed,
            size: self.size,
            without: self.without.iter().copied().collect(),
            requests: self.requests,
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

    /// Whether nothing was violated.
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
        summary.failures.is_empty() && summary.diverged.is_empty()
    }

    /// How often each behaviour acted that a run may have had, those that never did as well.
    fn acts(&self, choice: Choice, summary: &Summary) -> Acts {
        let mut acts = summary.acts.clone();
        let expected = match choice {
            Choice::Nobody => Vec::new(),
            Choice::Only(adversary) => vec![adversary],
            Choice::All => Adversary::all_against(self.protocol),
        };
        // Where nobody may join, nobody is lied to about joining.
        let may = |adversary: &&Adversary| self.protocol == Protocol::Pbft || !adversary.needs_strangers();
        for adversary in expected.iter().filter(may) {
            acts.entry(adversary.label()).or_default();
        }
        acts
    }

    fn print_summary(&self, choice: Choice, summary: &Summary, per_second: f64) {
        let Range { start, end } = self.seeds;
        let counts = summary.counts;
        let cpu = summary.cpu.as_secs_f64();
        let per_core = summary.scenarios as f64 / cpu;
        if self.json {
            let object = json!({
                "protocol": self.protocol.to_string(), "adversary": choice.to_string(), "f": self.f,
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
            "{choice}: {} scenarios, {} violations, {per_second:.0}/s ({per_core:.0} in a second of a core); {} calls, \
             {} batches, {} view changes, {} transfers, {} rollbacks, {} recoveries, {} lost logs, {} failed syncs, \
             {} old disks, {} slow rings",
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

fn run_saved() -> ExitCode {
    let saved = match saved() {
        Ok(saved) => saved,
        Err(error) => {
            eprintln!("error: {error}");
            return ExitCode::from(2);
        }
    };
    let mut failed = 0;
    for Saved { options, why } in &saved {
        let verdict = run(options);
        if !verdict.violations.is_empty() {
            failed += 1;
            eprintln!("VIOLATION replay: {options} --trace\n  kept because: {why}");
            print_violations(&verdict);
        }
    }
    println!("{} saved seeds, {failed} violations", saved.len());
    ExitCode::from(u8::from(failed > 0))
}

fn print_violations(verdict: &Verdict) {
    for violation in &verdict.violations {
        eprintln!("  {} at {:.3} ms: {}", violation.check, violation.at as f64 / 1000.0, violation.what);
    }
}
