//! Steady loads on several clusters, in slices of time that take turns: what is compared is a second apart, and not as
//! far as starting a cluster takes. A machine that others share is as fast as it likes from one second to the next, and
//! what it does to one of them it does to all.

use super::measure::{Bench, Subject, answered, usages};
use crate::failure::{Failure, Result};
use crate::files;
use crate::member::Member;
use bezant_node::config::ClusterConfig;
use bezant_perf::figures::{Figures, Settings, Usage};
use bezant_perf::load::{Interval, Load};
use std::path::{Path, PathBuf};
use std::thread;
use std::time::Duration;

/// How long a load runs before its slice is measured.
const RAMP: Duration = Duration::from_millis(100);

/// A cluster that waits for its next slice.
struct Waiting {
    load: Load,
    members: Vec<Member>,
    settings: Settings,
    /// What its replicas had counted before the first slice.
    before: Vec<Usage>,
    measured: Interval,
}

impl Bench {
    /// Measures clusters that are started for it, all of which run meanwhile, and one of which has load on it at any
    /// time. What replicas need in the ramps counts, with what they execute in them; and what they need while they
    /// wait.
    pub(super) fn measure_in_slices(&self, subjects: &[Subject], slices: u32) -> Result<Vec<Figures>> {
        self.with_all(subjects, Vec::new(), &|files| {
            let each = subjects.iter().zip(files);
            let mut clusters = each.map(|(subject, file)| self.waiting(subject, file)).collect::<Result<Vec<_>>>()?;
            let mut order: Vec<_> = (0..clusters.len()).collect();
            for _ in 0..slices {
                order.iter().for_each(|&at| clusters[at].measure(self.seconds / slices));
                // Backwards after forwards: where the machine gets slower and slower nobody is always last.
                order.reverse();
            }
            clusters.into_iter().map(Waiting::figures).collect()
        })
    }

    /// Does something with the files of clusters that are started for it, in the order of the subjects, after those.
    fn with_all<T>(
        &self,
        subjects: &[Subject],
        files: Vec<PathBuf>,
        act: &dyn Fn(&[PathBuf]) -> Result<T>,
    ) -> Result<T> {
        let Some((first, others)) = subjects.split_first() else { return act(&files) };
        self.with_own(first, |file| self.with_all(others, [files, vec![file.to_owned()]].concat(), act))
    }

    fn waiting(&self, subject: &Subject, file: &Path) -> Result<Waiting> {
        self.let_in(subject, file)?;
        let config = ClusterConfig::load(file).map_err(Failure::usage)?;
        let members = files::members(&config);
        let load = self.steady_load(subject, file, None)?;
        thread::sleep(self.warmup);
        load.hold();
        let (settings, before) = (subject.settings(&config, members.len()), usages(&members)?);
        Ok(Waiting { load, members, settings, before, measured: Interval::default() })
    }
}

impl Waiting {
    fn measure(&mut self, slice: Duration) {
        self.load.go_on();
        thread::sleep(RAMP);
        self.load.measure();
        thread::sleep(slice);
        self.measured = self.measured + self.load.pause();
        self.load.hold();
    }

    fn figures(self) -> Result<Figures> {
        let after = usages(&self.members)?;
        let measured = answered(self.load.stop(self.measured))?;
        Ok(Figures::new(self.settings, &measured, &self.before, &after))
    }
}
