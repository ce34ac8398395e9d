//! What a run comes to: whether calls end, and replicas agree, once nothing is in their way.

use super::{Verdict, World};
use crate::byzantine::{self, Acts, Adversary};
use crate::caller::Caller;
use crate::checks::Event;
use crate::evidence::Evidence;
use crate::feature::Feature;
use crate::node::{Counts, Node};
use crate::stage::Stage;
use crate::trace::Trace;
use bezant_core::digest::Digest;
use bezant_core::ids::{InstanceId, Sequence};
use bezant_core::notice::Report;
use bezant_core::protocols::ritas::atomic_broadcast;
use bezant_core::schedule::Part;
use std::collections::BTreeSet;

/// A while in which whatever is on its way is ordered, in time-outs of a view.
const WHILE: u64 = 20;

/// Rounds that follow one another when nobody asks for anything: what is on its way; and who lost its log needs some
/// until it speaks of all again (Order 10).
const LAST_ROUNDS: u64 = 8 * atomic_broadcast::HEARD;

/// Whether a replica votes, and waits for no other view.
fn takes_part(report: Report) -> bool {
    !report.abstaining && !report.changing_view
}

impl World {
    pub(super) fn all_answered(&self) -> bool {
        self.callers.iter().filter(|caller| caller.is_honest()).all(Caller::is_done)
    }

    pub(super) fn judge_answers(&mut self) {
        if self.is_fine() && !self.all_answered() {
            let open = self.callers.iter().filter(|caller| caller.is_honest() && !caller.is_done());
            let open: Vec<String> = open.map(Caller::waits_for).collect();
            let what = format!("calls do not end in the second phase: {}; {}", open.join(", "), self.positions());
            self.stage.checks.fail("liveness", self.stage.now, what);
        }
    }

    /// Reads every key once more, so that what was acknowledged is seen to have survived.
    pub(super) fn inspect(&mut self, limit: u64) {
        if let (true, Some(first)) = (self.is_fine(), self.callers.first_mut()) {
            first.inspect(&mut self.stage);
            self.play(limit, Self::all_answered);
            self.judge_answers();
        }
    }

    fn core(&self) -> impl Iterator<Item = &Node> {
        self.nodes.iter().filter(|node| node.is_correct() && !self.scenario.outsiders.contains(&node.id()))
    }

    /// How far each replica of the core has come. What replicas speculate about need not agree while no client asks.
    fn ends(&self) -> BTreeSet<(InstanceId, Sequence, Digest)> {
        let end = |report: Report| match self.stage.cluster.part(report.instance) {
            Part::Backup(_) | Part::Unreplicated => (report.instance, report.executed, report.history),
            _ => (report.instance, Sequence(0), Digest::ZERO),
        };
        self.core().filter_map(Node::report).map(end).collect()
    }

    /// Whether all have one state; or, since liars may have something ordered for ever, all have come to where the
    /// first of them was: that their histories are the same as far as that [is checked](crate::checks) all the time.
    fn has_converged(&self, first: (InstanceId, Sequence)) -> bool {
        let ends = self.ends();
        let all_came = || ends.iter().all(|(instance, executed, _)| (*instance, *executed) >= first);
        let is_one = ends.len() == 1 || !self.scenario.liars.is_empty() && all_came();
        is_one && (!self.is_healthy() || self.core().filter_map(Node::report).all(takes_part))
    }

    /// Whether nobody lies and nobody is missing: then everybody takes part again in the end. In a composition whoever
    /// lost its log is silent until a Backup, however long the speculative instance lasts.
    fn is_healthy(&self) -> bool {
        let is_whole = self.scenario.liars.is_empty() && self.scenario.outsiders.is_empty();
        is_whole && self.stage.echo.is_none() && !self.stage.cluster.protocol.hands_on()
    }

    /// All replicas of the core reach one state. Their last stable checkpoints may differ: the next batches bring one.
    pub(super) fn converge(&mut self, limit: u64) {
        let first = self.ends().last().map(|(instance, executed, _)| (*instance, *executed)).unwrap_or_default();
        // A look at every report costs more than a step: look now and then.
        while self.is_fine() && !self.has_converged(first) && self.stage.now < limit {
            let next = (self.stage.now + self.scenario.limits.view_timeout.0).min(limit);
            self.play(next, |_| false);
            self.stage.now = next;
        }
        if self.is_fine() && !self.has_converged(first) {
            let what = format!("replicas do not converge in the second phase: {}", self.positions());
            self.stage.checks.fail("convergence", self.stage.now, what);
        }
    }

    /// Where replicas have one history in the end, each says the same of where the cluster was closed. What they
    /// speculate about the answers judge.
    pub(super) fn judge_closing(&mut self) {
        let Some(position) = self.stage.checks.closed else { return };
        // Beside liars one may be in an instance of which it lacks the beginning: it has executed less, or holds what
        // it had speculated about before.
        let begun = |node: &Node| self.stage.checks.begun.get(&node.id()).copied().unwrap_or(InstanceId(1));
        let has_come = |node: &Node, report: &Report| {
            self.scenario.liars.is_empty() || report.position >= position && begun(node) >= report.instance
        };
        let agrees = |node: &Node, report: &Report| match self.stage.cluster.part(report.instance) {
            Part::Backup(_) | Part::Unreplicated => !has_come(node, report) || report.closed == Some(position),
            _ => true,
        };
        let wrong = self.core().find(|node| node.report().is_some_and(|report| !agrees(node, &report)));
        if let Some(node) = wrong {
            let said = node.report().and_then(|report| report.closed);
            let where_all_are = self.positions();
            let what = format!("{} has {said:?} for the close at request {position}; {where_all_are}", node.id());
            self.stage.checks.fail("closing", self.stage.now, what);
        }
    }

    /// What everybody holds in the end.
    pub(super) fn measure(&mut self) {
        for node in self.nodes.iter().filter(|node| node.is_correct()) {
            if let Some(holdings) = node.holdings() {
                self.stage.checks.see(self.stage.now, &Event::Holds(node.id(), &holdings));
            }
        }
    }

    /// Where the order has rounds, these need a reason: they come to an end when nobody is left who lies, or asks for
    /// anything.
    pub(super) fn come_to_rest(&mut self) {
        let has_rounds = self.core().filter_map(Node::report).any(|report| report.round.is_some());
        if !has_rounds || self.stage.asynchrony.is_some() {
            return;
        }
        let liars = self.nodes.iter().filter(|node| !node.is_correct()).map(|node| node.process);
        let callers = self.callers.iter().filter(|caller| !caller.is_honest()).map(|caller| caller.process);
        self.stage.gone.extend(liars.chain(callers));
        let rounds = |world: &Self| -> Option<u64> {
            world.core().filter_map(Node::report).filter_map(|report| report.round).max()
        };
        let first = rounds(self);
        let mut last = None;
        while self.is_fine() && rounds(self) != last {
            last = rounds(self);
            if last > first.map(|round| round + LAST_ROUNDS) {
                let what = format!("nobody asks for anything, and rounds go on from {first:?} to {last:?}");
                return self.stage.checks.fail("rest", self.stage.now, what);
            }
            let limit = self.stage.now + WHILE * self.scenario.limits.view_timeout.0;
            self.play(limit, |_| false);
            self.stage.now = limit;
        }
    }

    /// Where each correct replica stands, for a person.
    fn positions(&self) -> String {
        let positions: Vec<String> = self
            .core()
            .map(|node| match node.report() {
                None => format!("{} is down", node.id()),
                Some(report) => {
                    let changing = if report.changing_view { " changing" } else { "" };
                    let abstaining = if report.abstaining { " abstaining" } else { "" };
                    let (id, view, executed, stable) = (node.id(), report.view, report.executed, report.stable);
                    let (pending, transfer) = (report.pending_requests, report.transfer);
                    let transfer = transfer.map_or_else(String::new, |(to, _)| format!(" fetches {to}"));
                    let position = report.position;
                    let progress = format!("executed {executed} at {position} stable {stable} pending {pending}");
                    let instance = report.instance;
                    let rejected = report.rejections;
                    format!("{id}: {instance} {view}{changing}{abstaining} {progress}{transfer} rejected {rejected:?}")
                }
            })
            .collect();
        positions.join(", ")
    }

    /// What everybody did who lies.
    fn acts(&self) -> Acts {
        let mut acts = Acts::new();
        for of_one in self.nodes.iter().map(Node::acts).chain(self.callers.iter().map(Caller::acts)) {
            byzantine::add_acts(&mut acts, &of_one);
        }
        let Stage { tamper, echo, asynchrony, sides, .. } = &self.stage;
        let of_links = [
            (Adversary::Tamper, tamper.as_ref().map_or(0, |tamper| tamper.acts)),
            (Adversary::Echo, echo.as_ref().map_or(0, |echo| echo.acts)),
            (Adversary::Asynchrony, asynchrony.as_ref().map_or(0, |asynchrony| asynchrony.acts)),
            (Adversary::Twins, sides.acts),
        ];
        acts.extend(of_links.into_iter().filter(|(_, acts)| *acts > 0).map(|(who, acts)| (who.label(), acts)));
        acts
    }

    pub(super) fn verdict(mut self) -> (Verdict, Trace) {
        let mut counts = Counts::default();
        for node in &self.nodes {
            counts.add(&node.counts);
        }
        let acts = self.acts();
        let verdict = Verdict {
            violations: std::mem::take(&mut self.stage.checks.violations),
            trace_hash: self.stage.trace.hash(),
            events: self.events,
            frames: self.stage.frames,
            answered: self.callers.iter().map(|caller| caller.answered).sum(),
            counts,
            acts,
            evidence: Evidence {
                calm: u64::from(self.scenario.is_calm()),
                small_limits: u64::from(self.scenario.features.contains(&Feature::SmallLimits)),
                blackouts: u64::from(self.scenario.faults.iter().any(|(_, fault)| fault.is_blackout())),
                ..self.stage.checks.watch.evidence
            },
        };
        (verdict, self.stage.trace)
    }
}
