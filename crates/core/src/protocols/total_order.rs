//! The trait behind which a total order hides: opaque requests in, one agreed sequence of batches out.
//!
//! [`super::backup::Backup`] wraps any of them: it authenticates and deduplicates requests, executes what is
//! delivered, answers clients, takes checkpoints and transfers state. The order only orders.

use crate::auth::{Certificate, Claimed, Keyring};
use crate::batch::Ordered;
use crate::checkpoint::{Checkpoint, Evidence};
use crate::cluster::Cluster;
use crate::digest::Digest;
use crate::ids::{ClientId, InstanceId, ReplicaId, Sequence, Timestamp, View};
use crate::machine::{Step, StepsTaken};
use crate::message::Request;
use crate::notice::{Notice, Report};
use crate::rejection::Rejection;
use crate::replicas::ReplicaSet;
use crate::schedule::Specification;
use crate::service::Proposal;
use crate::switching;
use crate::switching::HistoryRecord;
use crate::time::Instant;
use alloc::vec::Vec;
use bytes::Bytes;
use core::fmt::Debug;

/// What a total order sees of its surroundings during one step.
pub struct Context<'a, O: TotalOrder> {
    /// The time.
    pub now: Instant,
    /// The cluster.
    pub cluster: &'a Cluster,
    /// Our keys.
    pub keyring: &'a Keyring,
    /// Who we are.
    pub me: ReplicaId,
    /// The instance that the order runs in.
    pub instance: InstanceId,
    /// Whether the service finds a fresh proposal acceptable for this request ([`crate::service::Service::validate`]).
    pub validate: &'a dyn Fn(&Proposal, &Request) -> bool,
    /// Whether this request need not be ordered any more: it was executed for good, or never will be.
    pub is_over: &'a dyn Fn(&Request) -> bool,
    /// Whether this replica fetches a state: what others have executed since its own it does not know yet.
    pub is_fetching: bool,
    /// Who is known to be missing, so few that the others are a strong set: the order gives them no turn.
    pub missing: ReplicaSet,
    /// What is to be done, in order.
    pub out: &'a mut Vec<OrderEffect<O>>,
    /// Where numbered steps go.
    pub steps: &'a mut StepsTaken,
}

/// One thing that a total order wants done.
#[derive(Debug)]
pub enum OrderEffect<O: TotalOrder> {
    /// To one replica.
    Send(ReplicaId, O::Message),
    /// To every other replica.
    Broadcast(O::Message),
    /// Say to one replica once more what state we had at the checkpoints above this one, which are not stable for it.
    VoteAgain(ReplicaId, Sequence),
    /// Pass a client's request on.
    Forward(ReplicaId, Request),
    /// Make durable before anything that follows leaves.
    Persist(O::Record),
    /// Log, but nothing waits for it.
    Append(O::Record),
    /// Arm a timer.
    SetTimer(O::Timer, Instant),
    /// Disarm a timer.
    CancelTimer(O::Timer),
    /// Tell the host.
    Notify(Notice),
    /// Count something that this replica said and that was not accepted.
    Reject(ReplicaId, Rejection),
    /// Hand a batch, or news about one, to the execution.
    Deliver(Delivery),
}

/// What the execution learns from the order, in sequence.
#[derive(Debug)]
pub enum Delivery {
    /// Execute, but be ready to undo: at most the one batch after the last final one.
    Tentative(Ordered),
    /// Decided for good. It may have been delivered tentatively before.
    Final(Ordered),
    /// Undo the tentative batch.
    Undo,
    /// Somebody proved that this checkpoint is stable.
    Proved(Certificate<Checkpoint>),
}

impl<O: TotalOrder> Debug for Context<'_, O> {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        f.debug_struct("Context").field("now", &self.now).field("me", &self.me).finish_non_exhaustive()
    }
}

impl<O: TotalOrder> Context<'_, O> {
    /// Takes a numbered step.
    #[inline]
    pub fn step(&mut self, step: Step) {
        self.steps.step(step);
    }

    /// Appends an effect.
    pub fn push(&mut self, effect: OrderEffect<O>) {
        self.out.push(effect);
    }

    /// Counts something that was not accepted.
    pub fn reject(&mut self, from: ReplicaId, reason: Rejection) {
        self.push(OrderEffect::Reject(from, reason));
    }

    /// Somebody shows that a checkpoint of this instance is stable, by so many signatures. One at or below `known` is
    /// no news.
    pub fn prove(&mut self, from: ReplicaId, shown: Claimed<Certificate<Checkpoint>>, known: Sequence, enough: usize) {
        if shown.claims().sequence <= known {
            return;
        }
        let here = Some(shown).filter(|shown| shown.claims().instance == self.instance);
        match here.and_then(|shown| self.keyring.verify_certificate(shown, enough)) {
            Some(certificate) => self.push(OrderEffect::Deliver(Delivery::Proved(certificate))),
            None => self.reject(from, Rejection::BadCertificate),
        }
    }
}

/// A machine that this order may be a part of.
pub trait Speaker<O: TotalOrder>:
    switching::Speaker<
        Outgoing: From<(InstanceId, O::Message)>,
        Timer: From<O::Timer>,
        InstanceRecord: From<HistoryRecord> + From<O::Record>,
    >
{
}

impl<O, M> Speaker<O> for M
where
    O: TotalOrder,
    M: switching::Speaker<
            Outgoing: From<(InstanceId, O::Message)>,
            Timer: From<O::Timer>,
            InstanceRecord: From<HistoryRecord> + From<O::Record>,
        >,
{
}

/// A protocol that agrees on one sequence of batches of requests.
pub trait TotalOrder: Debug + Clone + Sized {
    /// What its replicas say to one another.
    type Message: Debug;
    /// Its timers.
    type Timer: Copy + Ord + Debug;
    /// What it must find again after a crash.
    type Record: Debug;

    /// An order before its first batch, over the state with this root. `lost_log`: this replica had a log once and
    /// lost it; it abstains until it cannot contradict itself.
    fn open(what: &Specification, root: Digest, lost_log: bool) -> Self;
    /// The state was restored from a snapshot: nothing at or below this checkpoint is needed. `standing`: what the
    /// order said there that it has to know ([`crate::batch::Ordered::standing`]).
    fn restored(&mut self, evidence: Evidence, standing: Option<&Bytes>);
    /// The log is a new one, as [`TotalOrder::open`] may be told before.
    fn lose_log(&mut self);
    /// Replays one record, oldest first. Nothing is delivered meanwhile.
    fn replay(&mut self, cluster: &Cluster, me: ReplicaId, record: Self::Record);
    /// The first call, after construction or recovery.
    fn start(&mut self, context: &mut Context<'_, Self>);
    /// An authentic request that was not executed yet. `from`: the replica that passes it on; none if its client asks.
    fn submit(&mut self, context: &mut Context<'_, Self>, request: Request, from: Option<ReplicaId>);
    /// A verified message of another replica.
    fn message(&mut self, context: &mut Context<'_, Self>, from: ReplicaId, message: Self::Message);
    /// A timer came due.
    fn timer(&mut self, context: &mut Context<'_, Self>, timer: Self::Timer);
    /// Everything that was waiting has been handed over.
    fn pass_end(&mut self, context: &mut Context<'_, Self>);
    /// A request was executed for good (or found to be executed already): it need not be ordered any more. Until then
    /// the order watches that it is.
    fn executed(&mut self, client: ClientId, timestamp: Timestamp);
    /// The checkpoint is stable and this replica's state contains it.
    fn stable(&mut self, context: &mut Context<'_, Self>, certificate: &Certificate<Checkpoint>);
    /// The state was replaced by the one at this checkpoint, which is ahead of all that was delivered. `standing`: as
    /// in [`TotalOrder::restored`].
    fn installed(
        &mut self,
        context: &mut Context<'_, Self>,
        certificate: &Certificate<Checkpoint>,
        standing: Option<&Bytes>,
    );
    /// The state was replaced by the right one after this batch, which was delivered for good before, and no proof of
    /// it for others came with it: what follows is to be delivered again.
    fn went_back(&mut self, context: &mut Context<'_, Self>, sequence: Sequence);
    /// What recreates this order above the last stable checkpoint.
    fn live_records(&self, me: ReplicaId) -> Vec<Self::Record>;
    /// Whose requests wait to be ordered.
    fn waiting_clients(&self) -> Vec<ClientId>;
    /// The history that the instance begins with is decided: from now on any request may be ordered. An order that
    /// was made to wait for this takes only batches with an INIT before.
    fn opened(&mut self, context: &mut Context<'_, Self>);
    /// The order has begun: if it depends on one of the missing, it goes on without him.
    fn do_without_missing(&mut self, context: &mut Context<'_, Self>);
    /// Whether this replica may vote now; it may not while it abstains after the loss of its log.
    fn may_vote(&self) -> bool;
    /// The last position that this replica may have helped to acknowledge, ever: that a batch was undone since does not
    /// unsay what a client was told. No question about the state is answered from below it.
    fn promised(&self) -> Sequence;
    /// The current view, for replies and for clients who ask its primary; none in an order without views.
    fn view(&self) -> Option<View>;
    /// Adds what it knows of itself.
    fn describe(&self, report: &mut Report);
    /// Asserts what is true of it between steps, at this replica.
    fn check_invariants(&self, cluster: &Cluster, me: ReplicaId);
}
