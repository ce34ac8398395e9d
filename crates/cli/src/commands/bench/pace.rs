//! How long measurements are, so that all of them keep within a budget of time.

use super::contender::Contender;
use crate::failure::{Failure, Result};
use bezant_perf::compare::{Experiment, Kind};
use std::time::{Duration, Instant};

/// How often to measure, and for how long each time.
#[derive(clap::Args)]
pub(super) struct Length {
    /// How often everything is measured
    #[arg(long, default_value_t = 5, value_parser = clap::value_parser!(u64).range(1..=1000))]
    pub(super) rounds: u64,
    /// How long to measure each time
    #[arg(long, default_value_t = 1.0, value_parser = seconds)]
    pub(super) seconds: f64,
    /// How long to run before that
    #[arg(long, value_name = "SECONDS", default_value_t = 0.5, value_parser = seconds)]
    pub(super) warmup: f64,
    /// Measure each as long as all together may take so many minutes, a third of it for running before that; what has
    /// not begun by then is left out
    #[arg(long, value_name = "MINUTES", conflicts_with_all = ["seconds", "warmup"], value_parser = seconds)]
    pub(super) budget: Option<f64>,
}

/// A number from the command line, at most so large.
pub(super) fn number(text: &str, most: f64) -> std::result::Result<f64, String> {
    let number = text.parse().map_err(|_| "not a number".to_owned())?;
    if (0.001..=most).contains(&number) { Ok(number) } else { Err(format!("it must be from 0.001 to {most}")) }
}

fn seconds(text: &str) -> std::result::Result<f64, String> {
    number(text, 3600.0)
}

/// How long each measurement is.
pub(super) struct Pace {
    pub(super) warmup: Duration,
    pub(super) seconds: Duration,
    /// Nothing begins after that.
    pub(super) until: Option<Instant>,
}

impl Pace {
    /// What starting and ending a cluster takes, about.
    const AROUND: f64 = 1.5;
    /// The least that tells anything.
    const LEAST: f64 = 1.5;

    /// As the command line has it: by itself, or as long as a budget allows.
    pub(super) fn new(length: &Length, experiments: &[(Experiment, Vec<Contender>)]) -> Result<Self> {
        let pace = |warmup, seconds, until| {
            let [warmup, seconds] = [warmup, seconds].map(Duration::from_secs_f64);
            Ok(Self { warmup, seconds, until })
        };
        let Some(minutes) = length.budget else { return pace(length.warmup, length.seconds, None) };
        let points = |(experiment, contenders): &(Experiment, Vec<Contender>)| match &experiment.kind {
            Kind::Sweep(sweep) => Ok(sweep.points.len() * contenders.len()),
            Kind::Course(_) | Kind::Switching(_) | Kind::Attacks(_) | Kind::Groups(_) => {
                Err(Failure::usage("--budget is for steady loads."))
            }
        };
        let points: usize = experiments.iter().map(points).sum::<Result<_>>()?;
        let measurements = (points * length.rounds as usize).max(1) as f64;
        let each = minutes * 60.0 / measurements - Self::AROUND;
        if each < Self::LEAST {
            let least = measurements * (Self::LEAST + Self::AROUND) / 60.0;
            return Err(Failure::usage(format!("{measurements} measurements take {least:.0} minutes at least.")));
        }
        pace(each / 3.0, each * 2.0 / 3.0, Some(Instant::now() + Duration::from_secs_f64(minutes * 60.0)))
    }
}
