//! Mutations: any part of any message changed, or replaced by another of its type that was seen in this run, or many
//! numbers at an end of what there is, and authenticated again ([`super::forge`]); for each receiver another lie, or
//! the same for all or for some of them; and, now and then, something that nobody asked for.

use super::forge::Forge;
use super::{Behaviour, Liar, chain_substitute, ring_forger};
use crate::rng::Rng;
use bezant_core::ids::Principal;
use bezant_core::registry::{Incoming, Message};
use bezant_core::wire::Wire;
use std::collections::VecDeque;

/// Messages, own and others', that it may say unasked; and lies that it tells again.
const MEMORY_MAX: usize = 48;

/// What becomes of a message.
#[derive(Clone, Copy, Debug)]
enum Way {
    /// Some of its parts are changed.
    Change,
    /// Nothing but how it is said.
    Reword,
    /// Several numbers at once lie at an end of what there is.
    Ends,
}

#[derive(Debug)]
pub(super) struct Mutate {
    forge: Forge,
    /// Messages that are changed, per mille.
    often: u64,
    /// Messages said unasked at each tick, at most.
    unasked: u64,
    /// Bit per replica: who is lied to.
    victims: u64,
    /// Whether all of them hear the same lie.
    agrees: bool,
    way: Way,
    heard: VecDeque<Message>,
    told: VecDeque<(Vec<u8>, Message)>,
}

fn remember<T>(memory: &mut VecDeque<T>, item: T) {
    if memory.len() == MEMORY_MAX {
        memory.pop_front();
    }
    memory.push_back(item);
}

/// The liar's own MACs inside a message, made anew.
pub(super) fn authenticate(liar: &mut Liar<'_>, to: Principal, message: &mut Message) {
    match message {
        // Only a chain's own places forward.
        Message::Chain(chain) => drop(chain_substitute::authenticate(liar, chain)),
        Message::Ring(ring) => {
            if let Some((path, position)) = ring_forger::place(liar, ring, to) {
                ring_forger::authenticate(liar, &path, position, ring, true);
            }
        }
        Message::ChainReply(reply) => {
            let tag = liar.keyring.tag(to, &reply.statement().bytes());
            reply.tags.last_mut().into_iter().for_each(|last| *last = tag);
        }
        Message::RingReply(reply) => {
            let tag = liar.keyring.tag(to, &reply.statement().bytes());
            reply.tags.last_mut().into_iter().for_each(|last| *last = tag);
        }
        _ => {}
    }
}

impl Mutate {
    pub(super) fn new(rng: &mut Rng) -> Self {
        Self {
            forge: Forge::default(),
            often: *rng.pick(&[5, 30, 120, 400]),
            unasked: *rng.pick(&[0, 1, 4]),
            victims: if rng.coin() { u64::MAX } else { rng.next() },
            agrees: rng.coin(),
            way: Way::Change,
            heard: VecDeque::new(),
            told: VecDeque::new(),
        }
    }

    /// One that changes only how things are said, and that often: the same digest for another encoding.
    pub(super) fn rewording(rng: &mut Rng) -> Self {
        let often = *rng.pick(&[100, 400, 900]);
        Self { often, way: Way::Reword, unasked: rng.below(2), ..Self::new(rng) }
    }

    /// One that says numbers at the ends of what there is. Something has to be believed for it to be asked on.
    pub(super) fn with_numbers_at_the_ends(rng: &mut Rng) -> Self {
        let often = *rng.pick(&[5, 30, 120]);
        Self { often, way: Way::Ends, unasked: *rng.pick(&[1, 4]), ..Self::new(rng) }
    }

    fn lie(&self, liar: &mut Liar<'_>, message: &Message) -> Option<Message> {
        let Liar { rng, keyring, .. } = liar;
        match self.way {
            Way::Change => self.forge.change(rng, keyring, message),
            Way::Reword => self.forge.reword(rng, keyring, message),
            Way::Ends => self.forge.at_the_ends(rng, keyring, message),
        }
    }
}

impl Behaviour for Mutate {
    fn send(&mut self, liar: &mut Liar<'_>, to: Principal, message: &Message) {
        self.forge.learn(liar.rng, message);
        remember(&mut self.heard, message.clone());
        let is_victim = !matches!(to, Principal::Replica(id) if self.victims >> id.0 & 1 == 0);
        if !is_victim {
            return liar.say(to, message);
        }
        let key = if self.agrees { message.to_bytes() } else { Vec::new() };
        let told = self.told.iter().find(|(honest, _)| self.agrees && *honest == key);
        let lie = match told {
            Some((_, lie)) => Some(lie.clone()),
            None if liar.rng.per_mille(self.often) => self.lie(liar, message),
            None => None,
        };
        let Some(mut lie) = lie else { return liar.say(to, message) };
        if self.agrees {
            remember(&mut self.told, (key, lie.clone()));
        }
        authenticate(liar, to, &mut lie);
        liar.say(to, &lie);
    }

    fn receive(&mut self, liar: &mut Liar<'_>, incoming: &Incoming) -> bool {
        self.forge.learn(liar.rng, &incoming.message);
        remember(&mut self.heard, (*incoming.message).clone());
        true
    }

    fn tick(&mut self, liar: &mut Liar<'_>) {
        for _ in 0..liar.rng.below(self.unasked + 1) {
            if self.heard.is_empty() {
                return;
            }
            let message = self.heard[liar.rng.below(self.heard.len() as u64) as usize].clone();
            let Some(mut lie) = self.lie(liar, &message) else { continue };
            let to = *liar.rng.pick(&liar.others());
            authenticate(liar, to, &mut lie);
            liar.say(to, &lie);
        }
    }
}
