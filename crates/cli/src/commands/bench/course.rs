//! One timeline: a cluster, load on it, and something that happens meanwhile.

use super::fault;
use super::measure::{Bench, Subject, checked};
use crate::failure::{Failure, Result};
use crate::{admin, files};
use bezant_core::ids::InstanceId;
use bezant_node::config::ClusterConfig;
use bezant_perf::compare::course::{BUCKET, Course, Event, Timeline};
use bezant_perf::load::Load;
use bezant_perf::workload::Workload;
use std::net::SocketAddr;
use std::path::Path;
use std::thread;
use std::time::{Duration, Instant};

/// How long all bursts together may take.
const BURSTS_MAX: Duration = Duration::from_secs(600);

impl Bench {
    /// What a protocol does while something happens, on a cluster that is started for it.
    pub(super) fn follow(&self, subject: &Subject, course: &Course) -> Result<Timeline> {
        self.with_own(subject, |file| self.follow_at(subject, course, file))
    }

    fn follow_at(&self, subject: &Subject, course: &Course, file: &Path) -> Result<Timeline> {
        let bursts = match &course.event {
            Event::Bursts(bursts) => Some(bursts.clone()),
            Event::Outage { .. } => None,
        };
        let (request_bytes, reply_bytes) = (course.request_bytes.clone(), course.reply_bytes);
        let workload = Workload { request_bytes, bursts, timeline: true, ..Workload::steady(0, reply_bytes) };
        let config = ClusterConfig::load(file).map_err(Failure::usage)?;
        let members = files::members(&config);
        let replicas = subject.replicas().0;
        let liar = match course.event {
            Event::Outage { fault, .. } => fault::liar(fault, replicas),
            Event::Bursts(_) => None,
        };
        let witness = members.iter().find(|member| Some(member.replica) != liar);
        let witness = witness.ok_or_else(|| Failure::failed("the cluster has no honest replica."))?;
        let mut load = self.load(subject, file, None, &workload)?;
        if matches!(course.event, Event::Outage { .. }) {
            self.leave_first_backup(subject, &members)?;
        }
        load.measure();
        let origin = load.origin().ok_or_else(|| Failure::failed("no request was sent."))?;
        let settled = origin.elapsed().div_duration_f64(BUCKET) as u32 * BUCKET;
        let mut watch = Watch { origin, settled, admin: witness.address()?, instances: Vec::new() };
        let marks = match course.event {
            Event::Outage { fault, before, down, after, .. } => {
                watch.until(settled + before, || false);
                let wrong = self.begin(fault, replicas, file)?;
                let gone = origin.elapsed();
                watch.until(gone + down, || false);
                self.end(wrong)?;
                let back = origin.elapsed();
                watch.until(back + after, || false);
                vec![gone, back]
            }
            Event::Bursts(_) => {
                watch.until(BURSTS_MAX, || load.is_done());
                Vec::new()
            }
        };
        self.timeline(load, watch, marks, subject)
    }

    fn timeline(&self, mut load: Load, watch: Watch, marks: Vec<Duration>, subject: &Subject) -> Result<Timeline> {
        let unfinished = marks.is_empty() && !load.is_done();
        let interval = load.pause();
        let measured = checked(load.stop(interval))?;
        if unfinished {
            return Err(Failure::failed(format!("the bursts took longer than {} s.", BURSTS_MAX.as_secs())));
        }
        let mut recorded = measured.recorded.unwrap_or_default();
        let mut instances = watch.instances;
        let marks = if marks.is_empty() {
            recorded.bursts
        } else {
            // The load ended within the last bucket. What was before everything was in its place does not count.
            let early = watch.settled.div_duration_f64(BUCKET) as usize;
            recorded.cut(early, instances.len());
            instances.drain(..early.min(instances.len()));
            marks.into_iter().map(|at| at.saturating_sub(watch.settled)).collect()
        };
        let protocol = subject.contender.to_string();
        let schedule = subject.contender.protocol.schedule();
        let is_fast = |instance: &u64| !schedule.part(InstanceId(*instance)).is_resilient();
        let fast = instances.iter().map(is_fast).collect();
        Ok(Timeline { protocol, buckets: recorded.buckets, instances, fast, marks, total: recorded.total })
    }
}

/// Asks a replica at the end of every bucket which instance it is in.
struct Watch {
    origin: Instant,
    /// When a composition had left the Backup that it began with: a whole number of buckets after the origin.
    settled: Duration,
    admin: SocketAddr,
    instances: Vec<u64>,
}

impl Watch {
    /// Goes on until so long after the first request, or until it is over.
    fn until(&mut self, end: Duration, is_over: impl Fn() -> bool) {
        while self.origin.elapsed() < end && !is_over() {
            let next = BUCKET * (self.instances.len() as u32 + 1);
            thread::sleep(next.min(end).saturating_sub(self.origin.elapsed()));
            let passed = self.origin.elapsed().div_duration_f64(BUCKET) as usize;
            if passed > self.instances.len() {
                let instance = self.ask().or(self.instances.last().copied()).unwrap_or_default();
                self.instances.resize(passed, instance);
            }
        }
    }

    fn ask(&self) -> Option<u64> {
        admin::get_json(self.admin, "/status").ok()?["report"]["instance"].as_u64()
    }
}
