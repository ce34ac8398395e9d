//! What a replica tells, as log lines. Nothing is logged for ordinary work, so that an idle or a busy healthy cluster
//! is  silent at the default level; and no peer can flood the log.

use super::evidence::Recorder;
use bezant_core::ids::ReplicaId;
use bezant_core::notice::Notice;
use bezant_core::rejection::Rejection;
use std::collections::BTreeMap;
use std::time::{Duration, Instant};

/// How long a suspicion is not repeated.
const REPEAT_AFTER: Duration = Duration::from_secs(10);

/// Writes log lines.
#[derive(Debug)]
pub(super) struct NoticeLog {
    /// When each suspicion was last logged: at most one entry for each replica and reason.
    suspicions: BTreeMap<(ReplicaId, Rejection), Instant>,
    /// Takes what is to be kept.
    recorder: Recorder,
}

impl NoticeLog {
    pub(super) const fn new(recorder: Recorder) -> Self {
        Self { suspicions: BTreeMap::new(), recorder }
    }

    pub(super) fn on_notice(&mut self, notice: &Notice) {
        match notice {
            Notice::Executed { .. } | Notice::Logged { .. } | Notice::Anchored { .. } => {}
            Notice::Stopped { instance, reason } => {
                tracing::info!(event = "stopped", instance = instance.0, reason = reason.words(), "instance stopped");
            }
            Notice::Begun { instance, position, .. } => {
                tracing::info!(event = "begun", instance = instance.0, position, "history known");
            }
            Notice::Switched { instance, part, reason, took } => {
                let (part, took_us, reason) = (part.name(), took.0, reason.words());
                tracing::info!(event = "switched", instance = instance.0, part, reason, took_us, "instance runs");
            }
            Notice::RolledBack { to } => tracing::debug!(event = "rolled-back", to = to.0, "tentative work undone"),
            Notice::Stable { sequence, root, .. } => {
                tracing::debug!(event = "checkpoint-stable", sequence = sequence.0, %root, "checkpoint");
            }
            Notice::Ruled { instance, position, batch, back } => {
                let (instance, batch, back) = (instance.0, batch.0, back.0);
                let told = "the replicas executed a request otherwise, each in its own way: it is refused, and what \
                            came after it is undone";
                tracing::warn!(event = "request-disputed", instance, position, batch, back, "{told}");
            }
            Notice::Diverged { sequence, mine, agreed } => {
                let sequence = sequence.0;
                let told = "f+1 others have another state: own one is wrong, not repaired yet";
                tracing::warn!(event = "state-diverged", sequence, %mine, %agreed, "{told}");
            }
            Notice::Repaired(divergence) => {
                let sequence = divergence.evidence.checkpoint().sequence.0;
                self.recorder.take(divergence);
                tracing::info!(event = "state-repaired", sequence, "own state is right again");
            }
            Notice::ViewEntered { view } => tracing::info!(event = "view-entered", view = view.0, "new view"),
            Notice::ViewMissed { view } => {
                tracing::debug!(event = "view-missed", view = view.0, "left it before it began");
            }
            Notice::ViewChangeStarted { view, reason } => {
                tracing::info!(event = "view-change-started", view = view.0, reason, "asking for a new view");
            }
            Notice::Transfer { sequence, received, done: true } => {
                tracing::info!(event = "state-transferred", sequence = sequence.0, received, "caught up");
            }
            Notice::Transfer { sequence, received, done: false } => {
                tracing::debug!(event = "state-transfer", sequence = sequence.0, received, "catching up");
            }
            Notice::Paced { instance, alarm: Some(alarm) } => {
                tracing::warn!(event = "ring-slow", instance = instance.0, %alarm, "the ring is slow");
            }
            Notice::Paced { instance, alarm: None } => {
                tracing::info!(event = "ring-fast", instance = instance.0, "the ring is fast again");
            }
            Notice::Suspicion { replica, reason } => self.on_suspicion(*replica, *reason),
        }
    }

    fn on_suspicion(&mut self, replica: ReplicaId, reason: Rejection) {
        let now = Instant::now();
        let last = self.suspicions.get(&(replica, reason));
        if last.is_none_or(|&last| now - last >= REPEAT_AFTER) {
            self.suspicions.insert((replica, reason), now);
            tracing::warn!(event = "replica-suspected", replica = replica.0, ?reason, "a replica seems to be faulty");
        }
    }
}
