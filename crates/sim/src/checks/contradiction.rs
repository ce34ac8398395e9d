//! A correct replica never contradicts itself, across restarts.
//!
//! Every statement that left a correct replica is kept. Two different ones where the protocol allows one are a fault,
//! whether or not anybody was misled this time: a replica that forgets is a Byzantine replica.

use super::{Check, Event};
use bezant_core::auth::{Claimed, Signed};
use bezant_core::digest::{Digest, Domain};
use bezant_core::ids::{ClientId, InstanceId, ReplicaId, Sequence, Timestamp, View};
use bezant_core::message::{Firmness, Outcome, Refusal, Request};
use bezant_core::notice::Notice;
use bezant_core::protocols::pbft::{Claim, PbftMessage, PbftRecord, ViewChange, Vote};
use bezant_core::protocols::ring_fast::{Body, RingMessage};
use bezant_core::protocols::ring_resilient::{Resilient, ResilientMessage};
use bezant_core::protocols::ritas::message::{Said, Statement};
use bezant_core::protocols::ritas::order::RitasMessage;
use bezant_core::protocols::ritas::path::Path;
use bezant_core::protocols::ritas::statements::Statements as Spoken;
use bezant_core::protocols::speculative::Certain;
use bezant_core::registry::{InstanceRecord, LogRecord, Message};
use bezant_core::replicas::ReplicaSet;
use bezant_core::switching::{AbortReport, Switch, SwitchMessage};
use bezant_core::wire::Wire;
use std::collections::{BTreeMap, BTreeSet};

/// Where a replica may say one thing only.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Place {
    PrePrepare(View, Sequence),
    Prepare(View, Sequence),
    Commit(View, Sequence),
    ViewChange(View),
    NewView(View),
    /// Under the rulings up to a batch.
    Checkpoint(Sequence, Sequence),
    Decided(Sequence),
    Result(ClientId, Timestamp),
    Abort,
    /// All of it but whom it has not heard of.
    End,
    Response(ClientId, Timestamp),
    Position(u64),
    /// PREP of a resilient ring.
    Logged(u64),
    /// Its COMM.
    Certified(u64),
    /// Its checkpoint.
    State(u64),
    /// INITIAL, ECHO, READY or DECIDE of RITAS, by its tag.
    Statement(Path, u8),
}

/// What one replica has said.
#[derive(Debug, Default)]
struct Statements {
    said: BTreeMap<Place, Digest>,
    /// The latest COMMIT at each position: a VIEW-CHANGE must not be silent about it.
    committed: BTreeMap<Sequence, (View, Digest)>,
    /// The highest view that a VIEW-CHANGE asked for.
    left_for: View,
    /// The highest view and position that it has voted in and for, if it has voted.
    voted: Option<(View, Sequence)>,
    /// The same, when it last lost its disk: it may vote beyond both only.
    forgotten: Option<(View, Sequence)>,
    /// The last view of which it said, or its log says, that it knows how it began.
    begun: View,
    /// The ways in which views began that it knows: of a view that began in several, what only one of them chose is
    /// refuted by the others, although the replica may have accepted it there.
    ways: BTreeMap<View, BTreeSet<Digest>>,
}

impl Statements {
    /// The disk is lost. Votes must still never be contradicted, nor cast in a view that was left, nor COMMITs be
    /// hidden: that is what abstaining is for, until a checkpoint covers them. But another VIEW-CHANGE for the same
    /// view is as true as the first; and so is another report of the same end, by one who has heard of others since.
    fn forget(&mut self) {
        self.forgotten = self.voted;
        self.said.retain(|place, _| !matches!(place, Place::ViewChange(_) | Place::Abort));
        self.begun = View(0);
        self.ways.clear();
    }

    fn say(&mut self, place: Place, digest: Digest) -> Result<(), String> {
        match self.said.insert(place, digest) {
            Some(before) if before != digest => Err(format!("said {before:?} and {digest:?} as {place:?}")),
            _ => Ok(()),
        }
    }

    /// A vote in a view that it has left, and that it did not cast before it left.
    fn vote(&mut self, place: Place, vote: &Vote) -> Result<(), String> {
        if vote.view < self.left_for && !self.said.contains_key(&place) {
            return Err(format!("voted {place:?} after its VIEW-CHANGE for {}", self.left_for));
        }
        if self.forgotten.is_some_and(|(view, sequence)| vote.view <= view || vote.sequence <= sequence) {
            return Err(format!("voted {place:?} where it may have voted before it lost its log"));
        }
        let (view, sequence) = self.voted.unwrap_or_default();
        self.voted = Some((view.max(vote.view), sequence.max(vote.sequence)));
        self.say(place, vote.digest)
    }

    fn view_change(&mut self, signed: &Claimed<Signed<ViewChange>>) -> Result<(), String> {
        let change = &signed.claims();
        self.say(Place::ViewChange(change.view), Digest::of(Domain::Trace, &change.to_bytes()))?;
        self.left_for = self.left_for.max(change.view);
        // What it claims to have prepared is what its COMMIT says, whether that has left it by now or not.
        for claim in &change.prepared {
            self.say(Place::Commit(claim.view, claim.sequence), claim.digest)?;
        }
        let stable = change.stable.claims().sequence;
        for (sequence, (view, digest)) in self.committed.range(stable.next()..) {
            if *view >= change.view {
                continue;
            }
            let kept = change.prepared.iter().any(|claim| {
                claim.sequence == *sequence && (claim.view > *view || (claim.view == *view && claim.digest == *digest))
            });
            // A view that has begun refutes what it did not choose, and is said to have accepted what it did.
            let chosen = |claim: &Claim| claim.sequence == *sequence && claim.digest == *digest;
            let in_several_ways = self.ways.iter().any(|(of, ways)| *of > *view && *of <= self.begun && ways.len() > 1);
            let refuted = *view < self.begun && (in_several_ways || !change.pre_prepared.iter().any(chosen));
            if !kept && !refuted {
                let wanted = change.view;
                return Err(format!(
                    "its VIEW-CHANGE for {wanted} hides its COMMIT {digest:?} at {sequence} in {view}"
                ));
            }
        }
        Ok(())
    }

    /// Whatever binds it, in every instance of every layer.
    fn ritas(&mut self, message: &RitasMessage) -> Result<(), String> {
        let RitasMessage::Said(Spoken(said)) = message else { return Ok(()) };
        let mut binding = said.iter().filter(|said| said.statement.binds());
        binding.try_for_each(|Said { path, statement }| {
            let bytes = statement.to_bytes();
            // Whoever passes on an estimate may say both.
            let kind = match statement {
                Statement::Est(bit) => bytes[0] + 128 * u8::from(*bit),
                _ => bytes[0],
            };
            self.say(Place::Statement(*path, kind), Digest::of(Domain::Trace, &bytes))
        })
    }

    fn pbft(&mut self, message: &PbftMessage) -> Result<(), String> {
        match message {
            PbftMessage::PrePrepare(proposal) => {
                self.say(Place::PrePrepare(proposal.view, proposal.sequence), proposal.digest())
            }
            PbftMessage::Prepare(vote) => self.vote(Place::Prepare(vote.view, vote.sequence), vote),
            PbftMessage::Commit(vote) => {
                self.vote(Place::Commit(vote.view, vote.sequence), vote)?;
                let latest = self.committed.entry(vote.sequence).or_insert((vote.view, vote.digest));
                if latest.0 <= vote.view {
                    *latest = (vote.view, vote.digest);
                }
                Ok(())
            }
            PbftMessage::ViewChange(signed) => self.view_change(signed),
            PbftMessage::NewView(signed) => {
                self.say(Place::NewView(signed.claims().view), Digest::of(Domain::Trace, &signed.claims().to_bytes()))
            }
            PbftMessage::Decided(position) => self.say(Place::Decided(position.sequence), position.digest),
            _ => Ok(()),
        }
    }
}

impl Statements {
    /// What a replica of a resilient ring says of its own.
    fn resilient(&mut self, replica: ReplicaId, message: &ResilientMessage) -> Result<(), String> {
        match message {
            ResilientMessage::Order(order) if order.prepare.signer() == replica => {
                self.say(Place::Logged(order.prepare.claims().position), order.prepare.claims().history)
            }
            ResilientMessage::Prepare(signed) if signed.signer() == replica => {
                self.say(Place::Logged(signed.claims().position), signed.claims().history)
            }
            ResilientMessage::Commit(commit) => self.say(Place::Certified(commit.position), commit.history),
            ResilientMessage::Checkpoint(vote) if vote.signer() == replica => {
                self.say(Place::State(vote.claims().boundary.position), vote.claims().boundary.root)
            }
            _ => Ok(()),
        }
    }

    /// An abort report must not be silent about what its replica said that it holds a certificate for.
    fn report(&self, report: &AbortReport) -> Result<(), String> {
        let hidden = self.said.keys().any(|place| matches!(place, Place::Certified(at) if *at > report.end()));
        if hidden { Err(format!("hides a certificate beyond {}", report.end())) } else { Ok(()) }
    }
}

/// See the [module](self).
#[derive(Debug, Default)]
pub struct Contradiction {
    replicas: BTreeMap<(ReplicaId, InstanceId), Statements>,
    /// Instances in which a replica has said that it stopped.
    stopped: BTreeMap<ReplicaId, InstanceId>,
    /// Whether a correct replica may execute a request twice in two ways.
    dissent: bool,
}

fn digest_of(requests: &[Request]) -> Digest {
    let digests: Vec<u8> = requests.iter().flat_map(|request| request.digest().0).collect();
    Digest::of(Domain::Trace, &digests)
}

impl Contradiction {
    /// With `dissent` a correct replica may execute a request twice in two ways.
    pub fn new(dissent: bool) -> Self {
        Self { dissent, ..Self::default() }
    }

    /// What a replica has said in the latest instance in which it said anything.
    fn latest(&mut self, replica: ReplicaId) -> Option<&mut Statements> {
        let of_replica = (replica, InstanceId(0))..=(replica, InstanceId(u64::MAX));
        self.replicas.range_mut(of_replica).next_back().map(|(_, statements)| statements)
    }

    /// What a replica knows and has forgotten decides what it may leave unsaid.
    fn learn(&mut self, event: &Event<'_>) {
        match event {
            Event::Forgot(replica) => {
                let of_replica = self.replicas.iter_mut().filter(|((id, _), _)| id == replica);
                of_replica.for_each(|(_, statements)| statements.forget());
            }
            Event::Noticed(replica, Notice::ViewEntered { view } | Notice::ViewMissed { view }) => {
                self.latest(*replica).into_iter().for_each(|statements| statements.begun = *view);
            }
            // A crash may fall between writing that down and saying it.
            Event::Restarted(replica, log) => {
                for LogRecord { instance, record } in *log {
                    if let InstanceRecord::Pbft(PbftRecord::NewView(signed)) = record {
                        let statements = self.replicas.entry((*replica, *instance)).or_default();
                        statements.begun = statements.begun.max(signed.claims().view);
                    }
                }
            }
            Event::Learned(replica, signed) => {
                if let Some(statements) = self.latest(*replica) {
                    let way = Digest::of(Domain::Trace, &signed.claims().to_bytes());
                    statements.ways.entry(signed.claims().view).or_default().insert(way);
                }
            }
            _ => {}
        }
    }

    /// Who has said that it stopped says nothing more for that instance (abs-A5).
    fn stop(&mut self, replica: ReplicaId, instance: InstanceId, message: &Message) -> Result<(), String> {
        let speaks = matches!(
            message,
            Message::Response(_)
                | Message::Order(_)
                | Message::Chain(_)
                | Message::ChainReply(_)
                | Message::Ring(_)
                | Message::RingReply(_)
                | Message::RingCertain(_)
                | Message::Resilient(Resilient {
                    message: ResilientMessage::Order(_)
                        | ResilientMessage::Prepare(_)
                        | ResilientMessage::Commit(_)
                        | ResilientMessage::Checkpoint(_),
                    ..
                })
        );
        match message {
            Message::Switch(Switch { message: SwitchMessage::Abort(_), .. }) => {
                let last = self.stopped.entry(replica).or_default();
                *last = instance.max(*last);
            }
            _ if speaks && self.stopped.get(&replica).is_some_and(|stopped| instance <= *stopped) => {
                return Err(format!("{replica} says {message} after it has said that it stopped"));
            }
            _ => {}
        }
        Ok(())
    }
}

impl Check for Contradiction {
    fn name(&self) -> &'static str {
        "contradiction"
    }

    fn see(&mut self, _at: u64, event: &Event<'_>) -> Result<(), String> {
        let Event::Said(replica, message) = event else {
            self.learn(event);
            return Ok(());
        };
        let instance = match message {
            Message::Checkpoint(signed) => signed.claims().instance,
            message => message.instance().unwrap_or_default(),
        };
        self.stop(*replica, instance, message)?;
        let statements = self.replicas.entry((*replica, instance)).or_default();
        match message {
            // View changes of others are passed on: only one's own are one's own statements.
            Message::Ordering(ordering) => match &ordering.message {
                PbftMessage::ViewChange(signed) if signed.signer() != *replica => Ok(()),
                PbftMessage::NewView(signed) if signed.signer() != *replica => Ok(()),
                message => statements.pbft(message),
            },
            Message::Checkpoint(signed) if signed.signer() == *replica && !self.dissent => {
                statements.say(Place::Checkpoint(signed.claims().sequence, signed.claims().ruled), signed.claims().root)
            }
            // Tentative results may be undone, and a refusal only says that the request is too late by now.
            Message::Reply(reply)
                if reply.firmness == Firmness::Final
                    && !matches!(reply.outcome, Outcome::Refused(_))
                    && !self.dissent =>
            {
                statements.say(Place::Result(reply.client, reply.timestamp), reply.outcome.digest())
            }
            Message::Resilient(resilient) => statements.resilient(*replica, &resilient.message),
            Message::Agreement(agreement) => statements.ritas(&agreement.message),
            Message::Switch(Switch { message: SwitchMessage::Abort(signed), .. }) => {
                let report = signed.claims();
                statements.report(report)?;
                let end = AbortReport { silent: ReplicaSet::NOBODY, ..report.clone() };
                statements.say(Place::End, Digest::of(Domain::Trace, &end.to_bytes()))?;
                statements.say(Place::Abort, Digest::of(Domain::Trace, &signed.to_bytes()))
            }
            // A head that lies has a request logged again once its session is evicted, and each time it is too late.
            Message::Response(response) | Message::RingCertain(Certain(response))
                if response.outcome == Outcome::Refused(Refusal::StaleTimestamp) =>
            {
                Ok(())
            }
            Message::Response(response) | Message::RingCertain(Certain(response)) => {
                let place = Place::Response(response.client, response.timestamp);
                statements.say(place, response.history)
            }
            Message::Order(order) => statements.say(Place::Position(order.first), digest_of(&order.requests)),
            Message::Chain(chain) if !chain.requests.is_empty() => {
                statements.say(Place::Position(chain.first), chain.history)
            }
            // In all passes the same.
            Message::Ring(RingMessage { stamp: Some(stamp), body, .. }) if !matches!(body, Body::Probe(_)) => {
                statements.say(Place::Position(stamp.first), stamp.history)
            }
            _ => Ok(()),
        }
        .map_err(|what| format!("{replica} {what}"))
    }
}
