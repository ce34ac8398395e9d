//! How long measurements are, so that all of them keep within a budget of time.

use super::compare::Arguments;
use super::contender::Contender;
use crate::failure::{Failure, Result};
use bezant_perf::compare::{Experiment, Kind};
use std::time::{Duration, Instant};

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
    pub(super) fn new(arguments: &Arguments, experiments: &[(Experiment, Vec<Contender>)]) -> Result<Self> {
        let pace = |warmup, seconds, until| {
            let [warmup, seconds] = [warmup, seconds].map(Duration::from_secs_f64);
            Ok(Self { warmup, seconds, until })
        };
        let Some(minutes) = arguments.budget else { return pace(arguments.warmup, arguments.seconds, None) };
        let points = |(experiment, contenders): &(Experiment, Vec<Contender>)| match &experiment.kind {
            Kind::Sweep(sweep) => Ok(sweep.points.len() * contenders.len()),
            Kind::Course(_) | Kind::Switching(_) => Err(Failure::usage("--budget is for steady loads.")),
        };
        let points: usize = experiments.iter().map(points).sum::<Result<_>>()?;
        let measurements = (points * arguments.rounds as usize).max(1) as f64;
        let each = minutes * 60.0 / measurements - Self::AROUND;
        if each < Self::LEAST {
            let least = measurements * (Self::LEAST + Self::AROUND) / 60.0;
            return Err(Failure::usage(format!("{measurements} measurements take {least:.0} minutes at least.")));
        }
        pace(each / 3.0, each * 2.0 / 3.0, Some(Instant::now() + Duration::from_secs_f64(minutes * 60.0)))
    }
}
