//! Moments in a run at which a fault does more than at any other: what was just said, and by whom, is then all that
//! there is. A fault that comes at some time hardly ever meets them.

use bezant_core::cluster::Cluster;
use bezant_core::digest::Digest;
use bezant_core::ids::InstanceId;
use bezant_core::message::Firmness;
use bezant_core::notice::Notice;
use bezant_core::registry::Message;
use bezant_core::switching::{ClaimedProof, Switch, SwitchMessage};
use std::sync::Arc;

/// A moment that a fault waits for. Whoever says what it is about is correct, except that liars answer as well.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Moment {
    /// Replicas have answered so many writes.
    Answers(u64),
    /// So many entries have been logged by somebody, who perhaps speculates.
    Logs(u64),
    /// So many instances have stopped somewhere.
    Ends(u64),
    /// In so many instances one replica begins with another history than another one.
    Partings(u64),
}

/// How often each moment has come.
#[derive(Clone, Debug, Default)]
pub struct Moments {
    answers: u64,
    logs: u64,
    ends: u64,
    partings: u64,
    /// The newest instance that has stopped somewhere.
    stopped: InstanceId,
    /// The newest instance that begins somewhere, the first proof with which it does, and what that proves.
    begins: Option<(InstanceId, Arc<ClaimedProof>, Option<Beginning>)>,
}

/// Where a history ends, and where it begins: two that differ in neither need the same.
type Beginning = (u64, Digest, u64);

fn proved(cluster: &Cluster, proof: &Arc<ClaimedProof>) -> Option<Beginning> {
    let history = proof.believed().abort_history(&cluster.specification(proof.instance()))?;
    Some((history.position, history.history(), history.anchor.position))
}

impl Moments {
    /// Whether a moment has come.
    pub const fn has_come(&self, moment: Moment) -> bool {
        match moment {
            Moment::Answers(count) => self.answers >= count,
            Moment::Logs(count) => self.logs >= count,
            Moment::Ends(count) => self.ends >= count,
            Moment::Partings(count) => self.partings >= count,
        }
    }

    /// A correct replica says this of itself.
    pub fn notice(&mut self, notice: &Notice) {
        if let Notice::Logged { entries, .. } = notice {
            self.logs += entries.len() as u64;
        }
    }

    /// A replica says this.
    pub fn hear(&mut self, cluster: &Cluster, is_correct: bool, message: &Message) {
        match message {
            Message::Reply(reply) => self.answers += u64::from(reply.firmness != Firmness::Read),
            Message::Switch(Switch { instance, message: SwitchMessage::Abort(_) })
                if is_correct && *instance > self.stopped =>
            {
                self.stopped = *instance;
                self.ends += 1;
            }
            Message::Switch(Switch { instance, message: SwitchMessage::Init(proof) }) if is_correct => {
                self.hear_beginning(cluster, *instance, proof);
            }
            _ => {}
        }
    }

    fn hear_beginning(&mut self, cluster: &Cluster, instance: InstanceId, proof: &Arc<ClaimedProof>) {
        match &mut self.begins {
            Some((newest, first, proves)) if *newest == instance => {
                // An instance counts once.
                let is_other = |proves: &mut Beginning| proved(cluster, proof).is_some_and(|other| other != *proves);
                if first != proof && proves.take_if(is_other).is_some() {
                    self.partings += 1;
                }
            }
            Some((newest, ..)) if *newest > instance => {}
            _ => self.begins = Some((instance, proof.clone(), proved(cluster, proof))),
        }
    }
}
