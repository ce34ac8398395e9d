//! The mind of a liar while the run lasts: some change what they do, some fall silent for good after a while. What each
//! does is counted: a lie that is never told finds nothing.

use super::registry::{behaviour, client_behaviour};
use super::{Adversary, Behaviour, ClientBehaviour, Crowd, Liar};
use crate::rng::Rng;
use bezant_core::auth::Keyring;
use bezant_core::cluster::Cluster;
use bezant_core::ids::{Principal, ReplicaId};
use bezant_core::message::Request;
use bezant_core::registry::{Incoming, Message};
use bezant_core::time::Instant;
use bezant_core::wire::Wire;
use std::collections::{BTreeMap, BTreeSet};

/// How often each behaviour did something else than an honest replica, client or network would have done.
pub type Acts = BTreeMap<&'static str, u64>;

/// Adds one count to another.
pub fn add_acts(sum: &mut Acts, acts: &Acts) {
    for (label, count) in acts {
        *sum.entry(label).or_default() += count;
    }
}

/// The mind of a lying replica: one behaviour, or several in turns.
#[derive(Debug)]
pub struct Mind {
    parts: Vec<(Adversary, Box<dyn Behaviour>)>,
    now: usize,
    /// After how many lies it falls silent for ever: what it did is then not mended by what it says later.
    quits: Option<u64>,
    /// What they did.
    pub acts: Acts,
}

/// Ticks at which a liar with several behaviours turns to the next, per mille.
const TURNS: u64 = 60;

impl Mind {
    /// A mind with these behaviours; `None` if none of them needs one.
    pub fn new(adversaries: &[Adversary], rng: &mut Rng) -> Option<Self> {
        let parts: Vec<_> = adversaries.iter().filter_map(|a| Some((*a, behaviour(*a, rng)?))).collect();
        // A slow hop that falls silent is not slow any more.
        let may_quit = !adversaries.contains(&Adversary::SlowHop);
        let quits = rng.per_mille(250).then(|| *rng.pick(&[1, 2, 3, 6, 20, 100])).filter(|_| may_quit);
        (!parts.is_empty()).then(|| Self { parts, now: 0, quits, acts: Acts::new() })
    }

    /// The same, and it never falls silent.
    #[must_use]
    pub fn steadfast(self) -> Self {
        Self { quits: None, ..self }
    }

    fn is_silent(&self) -> bool {
        self.quits.is_some_and(|quits| self.acts.values().sum::<u64>() >= quits)
    }

    fn act(&mut self, count: u64) {
        if count > 0 {
            *self.acts.entry(self.parts[self.now].0.label()).or_default() += count;
        }
    }

    /// See [`Behaviour::send`].
    pub fn send<'a>(&mut self, liar: &mut Liar<'a>, to: Principal, message: &'a Message) {
        if self.is_silent() {
            return;
        }
        liar.expect(to, message);
        self.parts[self.now].1.send(liar, to, message);
        let acts = liar.acts();
        self.act(acts);
    }

    /// See [`Behaviour::receive`].
    pub fn receive(&mut self, liar: &mut Liar<'_>, incoming: &Incoming) -> bool {
        if self.is_silent() {
            return true;
        }
        let takes = self.parts[self.now].1.receive(liar, incoming);
        let acts = liar.acts() + u64::from(!takes);
        self.act(acts);
        takes
    }

    /// See [`Behaviour::tick`].
    pub fn tick(&mut self, liar: &mut Liar<'_>) {
        if self.is_silent() {
            return;
        }
        self.parts[self.now].1.tick(liar);
        let acts = liar.acts();
        self.act(acts);
        if self.parts.len() > 1 && liar.rng.per_mille(TURNS) {
            self.now = (self.now + 1) % self.parts.len();
        }
    }

    /// See [`Behaviour::stall`].
    pub fn stall(&mut self, cluster: &Cluster) -> Option<u64> {
        let stall = self.parts[self.now].1.stall(cluster).filter(|_| !self.is_silent())?;
        self.act(1);
        Some(stall)
    }
}

/// What a lying client says to a replica.
#[derive(Debug)]
pub enum Said {
    /// A message, to be sealed.
    Message(Box<Message>),
    /// Bytes that need not be a message at all.
    Frame(Vec<u8>),
}

/// The mind of a lying client.
#[derive(Debug)]
pub struct ClientMind {
    adversary: Adversary,
    behaviour: Box<dyn ClientBehaviour>,
    /// What it says unasked, if it does, and the request of its own that was last.
    crowd: Option<Crowd>,
    last: Option<Request>,
    /// What it did.
    pub acts: u64,
}

impl ClientMind {
    /// A mind with this behaviour; `None` if it is no client's.
    pub fn new(adversary: Adversary, rng: &mut Rng, liars: &BTreeSet<ReplicaId>) -> Option<Self> {
        let behaviour = client_behaviour(adversary, rng, liars)?;
        Some(Self { adversary, behaviour, crowd: None, last: None, acts: 0 })
    }

    /// The same, and it speaks unasked if there is a crowd.
    #[must_use]
    pub fn with_crowd(self, crowd: Option<Crowd>) -> Self {
        Self { crowd, ..self }
    }

    /// Microseconds until it speaks unasked, if it does.
    pub fn pause(&self, cluster: &Cluster) -> Option<u64> {
        self.crowd.as_ref()?.pause(cluster)
    }

    /// What it says unasked, at this time of its client.
    pub fn tick(&mut self, now: Instant, cluster: &Cluster, keyring: &Keyring) -> Vec<(ReplicaId, Message)> {
        let (Some(crowd), Some(last)) = (&mut self.crowd, &self.last) else { return Vec::new() };
        let said = crowd.speak(now.0, cluster, keyring, last);
        self.acts += said.len() as u64;
        said
    }

    /// The behaviour's name.
    pub const fn label(&self) -> &'static str {
        self.adversary.label()
    }

    /// What it says, in order, where an honest client would send this request to these replicas.
    pub fn issue(
        &mut self,
        rng: &mut Rng,
        cluster: &Cluster,
        keyring: &Keyring,
        receivers: &[ReplicaId],
        honest: &Request,
    ) -> Vec<(ReplicaId, Said)> {
        if self.crowd.is_some() {
            self.last = Some(honest.clone());
        }
        let also = self.behaviour.also(rng, cluster, keyring, honest);
        self.acts += also.len() as u64;
        let mut said: Vec<_> = also.into_iter().map(|(to, message)| (to, Said::Message(message.into()))).collect();
        for &to in receivers {
            let request = self.behaviour.request(rng, cluster, keyring, to, honest);
            // That it speaks at all, with another's key, is what a takeover is.
            let lies = self.adversary == Adversary::Takeover
                || request.as_ref().is_none_or(|request| request.to_bytes() != honest.to_bytes());
            self.acts += u64::from(lies);
            said.extend(request.map(|request| (to, Said::Message(Message::Request(request).into()))));
            let frames = self.behaviour.frames(rng, keyring, to, honest);
            self.acts += frames.len() as u64;
            said.extend(frames.into_iter().map(|frame| (to, Said::Frame(frame))));
        }
        said
    }
}
