//! What a behaviour works with.

use crate::checks::Event;
use crate::network::ProcessId;
use crate::rng::Rng;
use crate::stage::{Occurrence, Stage};
use bezant_core::auth::Keyring;
use bezant_core::cluster::Cluster;
use bezant_core::ids::{InstanceId, Principal, ReplicaId};
use bezant_core::protocols::pbft::{Ordering, PbftMessage};
use bezant_core::registry::Message;
use bytes::Bytes;
use std::collections::BTreeSet;

/// What a behaviour works with: its replica's keys, a random stream, and the means to speak.
pub struct Liar<'a> {
    /// Its own number.
    pub me: ReplicaId,
    /// The cluster.
    pub cluster: &'a Cluster,
    /// Its own keys.
    pub keyring: &'a Keyring,
    /// Its own randomness.
    pub rng: &'a mut Rng,
    /// Which others lie too: they may be spared.
    pub liars: &'a BTreeSet<ReplicaId>,
    process: ProcessId,
    stage: &'a mut Stage,
    /// What an honest replica would say now, until it is said.
    honest: Option<(Principal, Bytes)>,
    acts: u64,
}

impl Liar<'_> {
    /// Says something to one principal.
    pub fn say(&mut self, to: Principal, message: &Message) {
        self.say_later(0, to, message);
    }

    /// Says something after `delay` microseconds.
    pub fn say_later(&mut self, delay: u64, to: Principal, message: &Message) {
        if let Message::Ordering(Ordering { message, .. }) = message {
            let batch = match message {
                PbftMessage::PrePrepare(proposal) => Some(&proposal.batch),
                PbftMessage::Batch(batch) => Some(batch),
                _ => None,
            };
            if let Some(batch) = batch {
                self.stage.checks.see(self.stage.now, &Event::Batch(batch));
            }
        }
        self.release(delay, to, message.sealed(self.keyring, to).into());
    }

    /// Sends bytes after `delay` microseconds.
    pub fn release(&mut self, delay: u64, to: Principal, frame: Bytes) {
        if delay == 0 && self.honest.as_ref().is_some_and(|honest| *honest == (to, frame.clone())) {
            self.honest = None;
        } else {
            self.acts += 1;
        }
        if delay == 0 {
            self.stage.post(self.process, to, frame);
        } else {
            let at = self.stage.now + delay;
            self.stage.plan(at, Occurrence::Late { from: self.process, to, frame });
        }
    }

    /// Says something of PBFT.
    pub fn order(&mut self, to: Principal, instance: InstanceId, message: PbftMessage) {
        self.say(to, &Message::Ordering(Ordering { instance, message }));
    }

    /// The other replicas.
    pub fn others(&self) -> Vec<Principal> {
        let me = self.me;
        self.cluster.replicas.iter().filter(|id| *id != me).map(Principal::Replica).collect()
    }

    /// An honest replica would say this now.
    pub(super) fn expect(&mut self, to: Principal, message: &Message) {
        self.honest = Some((to, message.sealed(self.keyring, to).into()));
    }

    /// How often something was said since the last time that an honest replica would not have said, or not said that
    /// it would have said.
    pub(super) fn acts(&mut self) -> u64 {
        let withheld = self.honest.take().is_some() && self.acts == 0;
        std::mem::take(&mut self.acts) + u64::from(withheld)
    }
}

/// Makes the context of a behaviour. Only the host of its replica does.
pub fn liar<'a>(
    process: ProcessId,
    keyring: &'a Keyring,
    cluster: &'a Cluster,
    rng: &'a mut Rng,
    liars: &'a BTreeSet<ReplicaId>,
    stage: &'a mut Stage,
) -> Liar<'a> {
    let Principal::Replica(me) = keyring.me() else { panic!("a lying replica has a replica's keys") };
    Liar { me, cluster, keyring, rng, liars, process, stage, honest: None, acts: 0 }
}
