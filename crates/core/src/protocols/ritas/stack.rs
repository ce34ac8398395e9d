//! The stack: all instances of a process, by path, and what they are to one another.
//!
//! # How it works
//! Each layer is a machine that knows nothing of the others: it is told what the layer below has delivered, and says
//! what it wants broadcast, proposed or decided. Here its outputs become inputs of others, and its own statements are
//! counted as heard at once.
//!
//! # What is let in
//! A broadcast needs nothing of the layers above it: whoever hears of one that *may* be there takes part in it, also if
//! it has not come so far itself. So nothing is parked. Which may be there is said by windows: rounds and steps a few
//! ahead of this process, 2L messages of each sender. What is outside is dropped (ritas-F9), and said again by the
//! [channel] once this process has come there. What belongs to an instance that is over is dropped as well; the
//! decision stays for those who ask.
//!
//! # What bounds its memory
//! In each broadcast a process has one INITIAL, one ECHO and one READY. Of atomic broadcast there are at most 2n·L
//! messages and [`ROUNDS_OPEN_MAX`] + [`ROUNDS_AHEAD`] + 1 rounds, each of n broadcasts and one consensus; of that 2n
//! broadcasts and the steps of a binary one, of which there are 3n in each round that this process has come to, or may.
//! How many rounds that takes is up to the coins. Only the application's values are long. What others may still need
//! of a round that is over, or of a message that was delivered, is kept until the layer above knows that nobody does.
//!
//! [channel]: super::channel
//! [`ROUNDS_OPEN_MAX`]: super::atomic_broadcast::ROUNDS_OPEN_MAX
//! [`ROUNDS_AHEAD`]: super::atomic_broadcast::ROUNDS_AHEAD

use super::atomic_broadcast::{AtomicBroadcast, Hold, Standing};
use super::binary_consensus::BinaryConsensus;
use super::bounds::roots_max;
use super::common_coin_consensus::{CommonCoinConsensus, Round};
use super::decision::Decision;
use super::echo_broadcast::EchoBroadcast;
use super::message::{Said, Statement, Value};
use super::multi_valued_consensus::MultiValuedConsensus;
use super::path::{Id, Layer, Path};
use super::reliable_broadcast::ReliableBroadcast;
use super::scope::Scope;
use super::variant::Variant;
use super::vector_consensus::VectorConsensus;
use super::window::Window;
use crate::auth::CommonCoin;
use crate::digest::{Digest, Domain};
use crate::ids::ReplicaId;
use crate::rejection::Rejection;
use crate::wire::Wire;
use alloc::collections::{BTreeMap, VecDeque};
use alloc::vec::Vec;

/// What a stack comes to, for the layer above it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Outcome {
    /// A broadcast without a parent was delivered.
    Delivered(Path, Value),
    /// A binary consensus without a parent has decided.
    Bit(Path, bool),
    /// A multi-valued one.
    Agreed(Path, Option<Value>),
    /// A vector consensus.
    Vector(Path, Value),
    /// A message of an atomic broadcast is here, and is ordered once enough processes have
    /// [vouched](Stack::vouch) for it.
    Message(Path, Id, Value),
    /// It has its place in the order.
    Ordered(Path, Id, Value),
    /// That was all of a round.
    Reached(Path, Standing),
}

#[derive(Clone, Debug)]
pub(super) enum Instance {
    Echo(EchoBroadcast),
    Reliable(ReliableBroadcast),
    Binary(BinaryConsensus, Decision),
    CommonCoin(CommonCoinConsensus, Decision),
    CommonCoinRound(Round),
    Multi(MultiValuedConsensus, Decision),
    Vector(VectorConsensus, Decision),
    Atomic(AtomicBroadcast),
    /// Nobody needs it any more; its decision is for those who ask.
    Over(Decision),
}

impl Instance {
    /// What is decided, of one that decides.
    pub(super) const fn decision(&self) -> Option<&Decision> {
        match self {
            Self::Binary(_, decision)
            | Self::CommonCoin(_, decision)
            | Self::Multi(_, decision)
            | Self::Vector(_, decision)
            | Self::Over(decision) => Some(decision),
            Self::Echo(_) | Self::Reliable(_) | Self::Atomic(_) | Self::CommonCoinRound(_) => None,
        }
    }

    /// A value that others may have to fetch from this process.
    fn kept(&self, me: ReplicaId) -> Option<Value> {
        match self {
            Self::Echo(echo) => echo.echoes.kept(me),
            Self::Reliable(reliable) => reliable.echoes.kept(me),
            _ => None,
        }
    }

    /// What a process has said about it that binds it.
    pub(super) fn own(&self, me: ReplicaId) -> Vec<Statement> {
        match self {
            Self::Echo(echo) => echo.echoes.own(me).collect(),
            Self::Reliable(reliable) => reliable.own(me).collect(),
            Self::CommonCoinRound(round) => round.own(me),
            other => {
                let decided = other.decision().and_then(|decision| decision.own(me));
                decided.cloned().map(Statement::Decide).into_iter().collect()
            }
        }
    }

    /// The same.
    pub(super) const fn decision_mut(&mut self) -> Option<&mut Decision> {
        match self {
            Self::Binary(_, decision)
            | Self::CommonCoin(_, decision)
            | Self::Multi(_, decision)
            | Self::Vector(_, decision)
            | Self::Over(decision) => Some(decision),
            Self::Echo(_) | Self::Reliable(_) | Self::Atomic(_) | Self::CommonCoinRound(_) => None,
        }
    }
}

/// What is still to be done in a step.
#[derive(Clone, Debug)]
pub(super) enum Work {
    /// Broadcast something of this process's own.
    Broadcast(Path, Value),
    /// See what follows in a broadcast.
    Advance(Path),
    /// A broadcast was delivered.
    Delivered(Path, Value),
    /// An instance has decided, by itself or by f + 1 others.
    Decided(Path, Value),
    Propose(Path, Proposal),
}

/// What is proposed to a consensus.
#[derive(Clone, Debug)]
pub(super) enum Proposal {
    Bit(bool),
    Value(Value),
}

/// All instances of a process.
#[derive(Clone)]
pub struct Stack {
    pub(super) variant: Variant,
    /// What its coins are tossed with.
    pub(super) secret: Digest,
    /// What all toss together, where they do.
    pub(super) coin: Option<CommonCoin>,
    pub(super) instances: BTreeMap<Path, Instance>,
    /// Which roots are taken, by layer, and by owner where there is one.
    pub(super) roots: BTreeMap<(Layer, Option<ReplicaId>), Window>,
    pub(super) work: VecDeque<Work>,
    pub(super) outcomes: Vec<Outcome>,
}

impl core::fmt::Debug for Stack {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        f.debug_struct("Stack").field("instances", &self.instances).finish_non_exhaustive()
    }
}

impl Stack {
    /// A process that has not done anything. The secret is its own: who knows it foresees its coins.
    pub const fn new(secret: Digest, variant: Variant) -> Self {
        Self {
            variant,
            secret,
            coin: None,
            instances: BTreeMap::new(),
            roots: BTreeMap::new(),
            work: VecDeque::new(),
            outcomes: Vec::new(),
        }
    }

    /// How it differs from the thesis'. Nothing has been done so far.
    pub fn set_variant(&mut self, variant: Variant) {
        assert!(self.instances.is_empty(), "it has a variant from the beginning");
        self.variant = variant;
    }

    /// Tosses its coins with this from now on. It has tossed none so far.
    pub fn arm(&mut self, secret: Digest, coin: Option<CommonCoin>) {
        (self.secret, self.coin) = (secret, coin);
    }

    /// Broadcasts a value: reliably or by echo, as the path says.
    pub fn broadcast(&mut self, scope: &mut Scope<'_>, root: Path, value: Value) -> Vec<Outcome> {
        self.begin(scope, root.by(scope.me), Work::Broadcast(root.by(scope.me), value))
    }

    /// Proposes a bit to a binary consensus.
    pub fn propose_bit(&mut self, scope: &mut Scope<'_>, root: Path, bit: bool) -> Vec<Outcome> {
        self.begin(scope, root, Work::Propose(root, Proposal::Bit(bit)))
    }

    /// Proposes a value to a multi-valued consensus, or for a vector.
    pub fn propose(&mut self, scope: &mut Scope<'_>, root: Path, value: Value) -> Vec<Outcome> {
        self.begin(scope, root, Work::Propose(root, Proposal::Value(value)))
    }

    /// Sends a message by atomic broadcast. None is sent while L are on their way: the value comes back.
    ///
    /// # Errors
    /// The value.
    pub fn order(&mut self, scope: &mut Scope<'_>, root: Path, value: Value) -> Result<Vec<Outcome>, Value> {
        self.admit(scope, root).expect("there is such an atomic broadcast");
        let atomic = self.atomic_mut(root).expect("it is one");
        let Some(number) = atomic.number(scope.me) else { return Err(value) };
        scope.step("AB 1");
        let at = root.child(Layer::Message, number).by(scope.me);
        Ok(self.begin(scope, at, Work::Broadcast(at, value)))
    }

    /// AB 2. This process vouches for a message: it may be ordered.
    pub fn vouch(&mut self, scope: &mut Scope<'_>, root: Path, id: Id) -> Vec<Outcome> {
        scope.step("AB 2");
        self.change(scope, root, |atomic| atomic.vouch(id))
    }

    /// AB 3 and 5. What the layer above does not want from now on.
    pub fn hold(&mut self, scope: &mut Scope<'_>, root: Path, hold: Hold) -> Vec<Outcome> {
        self.admit(scope, root).expect("there is such an atomic broadcast");
        self.change(scope, root, |atomic| atomic.hold(hold))
    }

    /// AB 3. Lets this process begin no round by itself, or lets it do so again.
    pub fn rest(&mut self, scope: &mut Scope<'_>, root: Path, rests: bool) -> Vec<Outcome> {
        self.change(scope, root, |atomic| atomic.rest(rests))
    }

    fn change(&mut self, scope: &mut Scope<'_>, root: Path, change: impl FnOnce(&mut AtomicBroadcast)) -> Vec<Outcome> {
        if let Some(atomic) = self.atomic_mut(root) {
            change(atomic);
            let outputs = atomic.advance(&scope.replicas);
            self.of_atomic(scope, root, outputs);
        }
        self.run(scope)
    }

    /// AB 3. Whether this process begins no round of an atomic broadcast by itself.
    pub fn rests(&self, root: Path) -> bool {
        self.atomic(root).is_some_and(AtomicBroadcast::rests)
    }

    /// AB 2. Whether this process lists a message, so that a round comes to order it.
    pub fn lists(&self, root: Path, id: Id) -> bool {
        self.atomic(root).is_some_and(|atomic| atomic.lists(id))
    }

    /// How many messages of this process are on their way in an atomic broadcast.
    pub fn on_their_way(&self, root: Path, me: ReplicaId) -> u64 {
        self.atomic(root).map_or(0, |atomic| atomic.on_their_way(me))
    }

    /// Where this process stands in an atomic broadcast.
    pub fn standing(&self, root: Path) -> Option<&Standing> {
        self.atomic(root).map(AtomicBroadcast::standing)
    }

    /// The first round of an atomic broadcast that this process needs anything of.
    pub fn needs_from(&self, root: Path) -> u64 {
        self.atomic(root).map_or(0, AtomicBroadcast::needs_from)
    }

    /// This process stands in an atomic broadcast where others have come to, and the layer above knows what was
    /// delivered so far. Nothing is forgotten that others may need.
    pub fn resume_at(&mut self, scope: &mut Scope<'_>, root: Path, standing: Standing) -> Vec<Outcome> {
        self.admit(scope, root).expect("there is such an atomic broadcast");
        let atomic = self.atomic_mut(root).expect("it is one");
        atomic.resume_at(standing);
        let outputs = atomic.advance(&scope.replicas);
        self.of_atomic(scope, root, outputs);
        self.run(scope)
    }

    /// Nobody needs anything any more of what led here in an atomic broadcast: who has not come there is told the
    /// result in another way.
    pub fn forget_before(&mut self, scope: &mut Scope<'_>, root: Path, standing: &Standing) -> Vec<Outcome> {
        let is_before = |at: &Path| {
            at.is_within(&root)
                && (at.number(Layer::Round).is_some_and(|round| round < standing.round)
                    || at.message(&scope.replicas).is_some_and(|id| standing.has(id)))
        };
        self.instances.retain(|at, _| !is_before(at));
        if let Some(atomic) = self.atomic_mut(root) {
            let outputs = atomic.close_before(&scope.replicas, standing.round);
            self.of_atomic(scope, root, outputs);
        }
        self.run(scope)
    }

    /// What this process has said that binds it, about instances that are not over for it: what it has to find again
    /// after a crash, in an order in which it can be replayed. A value that others may have to fetch comes before.
    pub fn own_statements(&self, me: ReplicaId) -> Vec<Said> {
        let open = self.instances.iter().filter(|(_, instance)| !matches!(instance, Instance::Over(_)));
        let of = |(at, instance): (&Path, &Instance)| {
            let path = *at;
            let kept = instance.kept(me).map(Statement::Body);
            kept.into_iter().chain(instance.own(me)).map(move |statement| Said { path, statement })
        };
        open.flat_map(of).collect()
    }

    /// The decisions of the others, which it has to find again as well.
    pub fn own_decisions(&self, me: ReplicaId) -> Vec<(Path, Value)> {
        let of = |(at, instance): (&Path, &Instance)| match instance {
            Instance::Over(decision) => decision.own(me).map(|value| (*at, value.clone())),
            _ => None,
        };
        self.instances.iter().filter_map(of).collect()
    }

    /// How many instances there are.
    pub fn len(&self) -> usize {
        self.instances.len()
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.instances.is_empty()
    }

    /// Something that this process wants to do itself. What is finished is not done again.
    fn begin(&mut self, scope: &mut Scope<'_>, at: Path, work: Work) -> Vec<Outcome> {
        if self.admit(scope, at).is_ok() {
            self.work.push_back(work);
        }
        self.run(scope)
    }

    /// Another process says something.
    pub fn hear(&mut self, scope: &mut Scope<'_>, from: ReplicaId, said: Said) -> Vec<Outcome> {
        if let Err(reason) = self.admit_said(scope, &said).and_then(|()| self.take(scope, from, said)) {
            scope.reject(from, reason);
        }
        self.run(scope)
    }

    fn take(
        &mut self,
        scope: &mut Scope<'_>,
        from: ReplicaId,
        Said { path, statement }: Said,
    ) -> Result<(), Rejection> {
        match (self.instances.get_mut(&path).ok_or(Rejection::OutsideWindow)?, statement) {
            (Instance::Echo(echo), statement) => {
                echo.echoes.take(scope, path, from, statement)?;
                self.work.push_back(Work::Advance(path));
            }
            (Instance::Reliable(reliable), statement) => {
                reliable.take(scope, path, from, statement)?;
                self.work.push_back(Work::Advance(path));
            }
            (Instance::CommonCoinRound(round), statement) => {
                round.take(scope, (path, self.coin.as_ref()), from, statement)?;
                self.see(scope, path);
                self.work.push_back(Work::Advance(path));
            }
            (instance, Statement::Decide(value)) if instance.may_decide(&value) => {
                let decision = instance.decision_mut().ok_or(Rejection::Malformed)?;
                if let Some(value) = decision.on_decide(scope, path, from, value)? {
                    self.work.push_back(Work::Decided(path, value));
                }
                self.end(scope, path);
            }
            _ => return Err(Rejection::Malformed),
        }
        // Whoever says anything about a step is in it.
        if let Some((binary, step)) = step_of(path)
            && let Some(Instance::Binary(consensus, _)) = self.instances.get_mut(&binary)
        {
            let outputs = consensus.see(&scope.replicas, step, &toss(&self.secret, binary));
            self.of_binary(scope, binary, outputs);
        }
        Ok(())
    }

    /// Does what is to be done, until there is nothing more.
    pub(super) fn run(&mut self, scope: &mut Scope<'_>) -> Vec<Outcome> {
        while let Some(work) = self.work.pop_front() {
            match work {
                Work::Broadcast(path, value) => self.say(scope, path, value),
                Work::Advance(path) => self.advance(scope, path),
                Work::Delivered(path, value) => self.delivered(scope, path, value),
                Work::Decided(path, value) => self.decided(scope, path, value),
                Work::Propose(path, proposal) => self.propose_to(scope, path, proposal),
            }
        }
        core::mem::take(&mut self.outcomes)
    }

    fn say(&mut self, scope: &mut Scope<'_>, path: Path, value: Value) {
        // What belongs to an instance that is over meanwhile is not said any more.
        if self.admit(scope, path).is_err() {
            return;
        }
        match self.instances.get_mut(&path) {
            Some(Instance::Echo(echo)) => {
                scope.step("EB 1");
                echo.echoes.broadcast(scope, path, value);
            }
            Some(Instance::Reliable(reliable)) => {
                scope.step("RB 1");
                reliable.echoes.broadcast(scope, path, value);
            }
            _ => unreachable!("{path:?} is a broadcast"),
        }
        self.work.push_back(Work::Advance(path));
    }

    fn advance(&mut self, scope: &mut Scope<'_>, path: Path) {
        let delivered = match self.instances.get_mut(&path) {
            Some(Instance::Echo(echo)) => echo.advance(scope, path),
            Some(Instance::Reliable(reliable)) => reliable.advance(scope, path),
            Some(Instance::CommonCoinRound(round)) => {
                let end = round.advance(scope, path, self.coin.as_ref());
                end.into_iter().for_each(|end| self.ended(scope, path, end));
                None
            }
            _ => None,
        };
        if let Some(value) = delivered {
            self.work.push_back(Work::Delivered(path, value));
        }
    }

    /// Decide 3. If nobody needs the instance any more, its decision is all that is kept.
    pub(super) fn end(&mut self, scope: &mut Scope<'_>, path: Path) {
        let instance = self.instances.get(&path).filter(|instance| !matches!(instance, Instance::Over(_)));
        let Some(decision) = instance.and_then(Instance::decision) else { return };
        if !decision.is_over(scope) || decision.own(scope.me).is_none() {
            return;
        }
        scope.step("Decide 3");
        let over = Instance::Over(decision.clone());
        // A round of atomic broadcast is over with its consensus.
        let round = path.parent().filter(|parent| parent.last().layer() == Layer::Round);
        self.forget(round.unwrap_or(path));
        self.instances.insert(path, over);
        if let Some(round) = round {
            let root = round.of_root();
            if let Some(atomic) = self.atomic_mut(root) {
                let outputs = atomic.on_over(&scope.replicas, round.last().number());
                self.of_atomic(scope, root, outputs);
            }
        }
    }

    /// Drops an instance and all below it.
    pub(super) fn forget(&mut self, path: Path) {
        let within: Vec<Path> =
            self.instances.range(path..).map(|(at, _)| *at).take_while(|at| at.is_within(&path)).collect();
        for at in within {
            self.instances.remove(&at);
        }
    }

    /// The layer above has the result of a root: what follows has room. The root itself is kept for others until so
    /// many after it are taken.
    pub fn taken(&mut self, path: Path) {
        let root = path.of_root().last();
        let owner = path.last().number();
        let owner = (path.last().layer() == Layer::By).then_some(ReplicaId(owner as u8));
        let window = self.roots.entry((root.layer(), owner)).or_default();
        let before = window.first();
        window.finish(root.number());
        let kept = roots_max(root.layer());
        for old in before.saturating_sub(kept)..window.first().saturating_sub(kept) {
            let root = Path::root(root.layer(), old);
            self.forget(owner.map_or(root, |owner| root.by(owner)));
        }
    }
}

/// The binary consensus that a path is a step of, and which step.
fn step_of(path: Path) -> Option<(Path, u64)> {
    let step = path.parent().filter(|step| step.last().layer() == Layer::Step)?;
    Some((step.parent()?, step.last().number()))
}

/// The coin of this process for a round of a binary consensus.
pub(super) fn toss(secret: &Digest, path: Path) -> impl Fn(u64) -> bool + use<> {
    let secret = *secret;
    move |round| Digest::of_parts(Domain::Coin, &[&secret.0, &path.to_bytes(), &round.to_le_bytes()]).0[0] & 1 == 1
}
