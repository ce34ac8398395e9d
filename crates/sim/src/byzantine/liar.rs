//! What a behaviour works with. It does not know whether its replica is a simulated one or a real one: what it says
//! leaves through the [`Voice`] that its host gives it.

use crate::rng::Rng;
use bezant_core::auth::Keyring;
use bezant_core::cluster::Cluster;
use bezant_core::ids::{InstanceId, Principal, ReplicaId};
use bezant_core::protocols::pbft::{Ordering, PbftMessage};
use bezant_core::protocols::ritas::order::{Agreement, RitasMessage};
use bezant_core::registry::Message;
use bezant_core::wire::Wire;
use std::collections::BTreeSet;
use std::ptr;

/// How a liar is heard.
pub trait Voice {
    /// Says something to one principal after `delay` microseconds, sealed with the liar's keys.
    fn say(&mut self, delay: u64, to: Principal, message: &Message);
}

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
    voice: &'a mut dyn Voice,
    /// What an honest replica would say now, until it is said.
    honest: Option<(Principal, &'a Message)>,
    acts: u64,
}

impl<'a> Liar<'a> {
    /// The context of a behaviour, for the host of its replica.
    pub fn new(
        keyring: &'a Keyring,
        cluster: &'a Cluster,
        rng: &'a mut Rng,
        liars: &'a BTreeSet<ReplicaId>,
        voice: &'a mut dyn Voice,
    ) -> Self {
        let Principal::Replica(me) = keyring.me() else { panic!("a lying replica has a replica's keys") };
        Self { me, cluster, keyring, rng, liars, voice, honest: None, acts: 0 }
    }

    /// Says something to one principal.
    pub fn say(&mut self, to: Principal, message: &Message) {
        self.say_later(0, to, message);
    }

    /// Says something after `delay` microseconds.
    pub fn say_later(&mut self, delay: u64, to: Principal, message: &Message) {
        let same = |honest: &Message| ptr::eq(honest, message) || honest.to_bytes() == message.to_bytes();
        if delay == 0 && self.honest.is_some_and(|(receiver, honest)| receiver == to && same(honest)) {
            self.honest = None;
        } else {
            self.acts += 1;
        }
        self.voice.say(delay, to, message);
    }

    /// Says something of PBFT.
    pub fn order(&mut self, to: Principal, instance: InstanceId, message: PbftMessage) {
        self.say(to, &Message::Ordering(Ordering { instance, message }));
    }

    /// Says something of RITAS.
    pub fn agree(&mut self, to: Principal, instance: InstanceId, message: RitasMessage) {
        self.say(to, &Message::Agreement(Agreement { instance, message }));
    }

    /// The other replicas.
    pub fn others(&self) -> Vec<Principal> {
        let me = self.me;
        self.cluster.replicas.iter().filter(|id| *id != me).map(Principal::Replica).collect()
    }

    /// An honest replica would say this now.
    pub(super) fn expect(&mut self, to: Principal, message: &'a Message) {
        self.honest = Some((to, message));
    }

    /// How often something was said since the last time that an honest replica would not have said, or not said that
    /// it would have said.
    pub(super) fn acts(&mut self) -> u64 {
        let withheld = self.honest.take().is_some() && self.acts == 0;
        std::mem::take(&mut self.acts) + u64::from(withheld)
    }
}
