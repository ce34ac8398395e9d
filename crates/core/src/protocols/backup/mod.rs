//! Backup: any total order as an abortable instance, as in the paper on Abstract.
//!
//! # What it is for
//! A total order decides on one sequence of batches; Backup makes a replicated service of it. It checks whether a
//! request was executed before, hands new ones to the order, executes what the order delivers, answers clients,
//! takes checkpoints, and fetches the state when the replica has fallen behind. With `k = ∞` it never aborts, and the
//! composition of that one instance is plain PBFT.
//!
//! # Steps
//! 1. A request that is already in the client table is answered from there; a new one goes to the order.
//! 2. A read-only request is answered from the state at once, or, while the last batch is tentative, as soon as it is
//!    final (F21); after a restart, not before everything that this replica helped to acknowledge is executed again.
//!    The client needs 2f+1 equal answers *from the same position*.
//! 3. A batch is executed tentatively when the order says so, and answered as tentative; 2f+1 such answers of one view
//!    are as good as final ones, because at least f+1 correct replicas prepared the batch in that view.
//! 4. A batch delivered for good is executed, or confirmed if it was executed tentatively. If the order undoes a
//!    tentative batch, the state goes back to the last checkpoint and the final batches since are executed again.
//! 5. After every K-th batch the replica signs the Merkle root of its state (CHECKPOINT). 2f+1 equal roots make the
//!    checkpoint stable: the order forgets what is below, and the version before it is dropped.
//! 6. A replica that learns of a stable checkpoint which it cannot reach by executing fetches the state, page by page,
//!    from all the others, and checks every page against the certified root.
//! 7. A replica whose own root differs from the certified one says so and repairs itself the same way.
//!
//! # Why it is safe
//! Clients accept a result on 2f+1 equal replies, so that at least f+1 correct replicas executed it at that position:
//! every later read quorum contains one of them. State is accepted only under a certificate of 2f+1 signatures, at
//! least f+1 of them from correct replicas. The client table is part of the state, so that no request takes effect
//! twice, across view changes, restarts and transfers alike.
//!
//! # Deviations from the paper
//! * Backup there wraps a whole protocol with its clients as a black box. Here it wraps the order only and does what
//!   every order would need again: execution, replies, checkpoints, transfer.
//! * D12 (final deliveries only, no read-only path) matters when Backup aborts after k requests. With `k = ∞` there
//!   is no abort and both optimisations are safe; an instance with finite k must switch them off.
//!
//! # Cost
//! Per request one MAC to answer it. Per checkpoint one signature made and n−1 checked. Everything else is the order's.

mod checkpoints;
mod execution;

use crate::auth::{Certificate, Keyring, Signed};
use crate::checkpoint::{Checkpoint, transfer::Transfer};
use crate::cluster::{Cluster, InstanceId, ReplicaId, Sequence, View};
use crate::estate::Estate;
use crate::machine::{Destination, Instant, Outbox, Principal};
use crate::message::{Message, Request};
use crate::protocols::total_order::{Context, OrderEffect, TotalOrder};
use crate::rejection::{Rejection, RejectionCounts};
use crate::replica::{Record, Replica};
use crate::service::Service;
use alloc::collections::{BTreeMap, VecDeque};
use alloc::vec::Vec;

/// How many requests Backup commits before it hands on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Quota {
    /// k = ∞: the last instance of its composition.
    Unlimited,
}

/// What surrounds an instance during one step.
#[derive(Debug)]
pub struct Surroundings<'a, S: Service> {
    /// The time.
    pub now: Instant,
    /// The cluster.
    pub cluster: &'a Cluster,
    /// Our keys.
    pub keyring: &'a Keyring,
    /// Who we are.
    pub me: ReplicaId,
    /// What was not accepted, by sender.
    pub rejections: &'a mut BTreeMap<Principal, RejectionCounts>,
    /// What is to be done.
    pub out: &'a mut Outbox<Replica<S>>,
}

impl<S: Service> Surroundings<'_, S> {
    /// Counts something that was not accepted.
    pub fn reject(&mut self, from: Principal, reason: Rejection) {
        self.rejections.entry(from).or_default().add(reason);
    }
}

/// See the [module](self).
#[derive(Clone, Debug)]
pub struct Backup<O: TotalOrder, S> {
    instance: InstanceId,
    quota: Quota,
    order: O,
    estate: Estate<S>,
    /// The last checkpoint that 2f+1 replicas signed and that this replica has.
    stable: Certificate<Checkpoint>,
    /// CHECKPOINT votes above it: the newest [`VOTES_PER_REPLICA_MAX`] of each replica.
    votes: BTreeMap<ReplicaId, Vec<Signed<Checkpoint>>>,
    /// A stable checkpoint that this replica has not reached by executing.
    ahead: Option<Certificate<Checkpoint>>,
    transfer: Option<Transfer>,
    /// Read-only requests waiting for a state that may answer them.
    reads: VecDeque<Request>,
    /// The last position that this replica helped to acknowledge before it restarted: no read is answered before it
    /// has executed it again.
    promised: Sequence,
    /// The view in which the tentative batch was executed.
    tentative_view: View,
    /// Bytes logged since the last snapshot.
    log_bytes: u64,
    requests_executed: u64,
}

/// CHECKPOINT votes kept of each replica: one for each checkpoint that fits into the window, and one more.
const VOTES_PER_REPLICA_MAX: usize = 3;

/// The effects of the order that are still to be carried out.
type Queue<O> = VecDeque<OrderEffect<O>>;

impl<O: TotalOrder, S: Service> Backup<O, S> {
    /// Opens an instance over an estate whose newest version is the one that the certificate names.
    pub fn open(
        instance: InstanceId,
        quota: Quota,
        order: O,
        estate: Estate<S>,
        stable: Certificate<Checkpoint>,
    ) -> Self {
        Self {
            instance,
            quota,
            order,
            estate,
            stable,
            votes: BTreeMap::new(),
            ahead: None,
            transfer: None,
            reads: VecDeque::new(),
            promised: Sequence(0),
            tentative_view: View(0),
            log_bytes: 0,
            requests_executed: 0,
        }
    }

    /// Stops for good and hands the estate on: nothing of this instance can speak any more.
    pub fn halt(self) -> Estate<S> {
        let Quota::Unlimited = self.quota;
        self.estate
    }

    /// The order.
    pub const fn order(&self) -> &O {
        &self.order
    }

    /// The order, for recovery.
    pub(crate) const fn order_mut(&mut self) -> &mut O {
        &mut self.order
    }

    /// Service, client table, history.
    pub const fn estate(&self) -> &Estate<S> {
        &self.estate
    }

    /// The last stable checkpoint that this replica has.
    pub const fn stable(&self) -> &Certificate<Checkpoint> {
        &self.stable
    }

    /// Requests executed for good since the process started.
    pub const fn requests_executed(&self) -> u64 {
        self.requests_executed
    }

    /// A running state transfer: target and items received.
    pub fn transfer(&self) -> Option<(Sequence, u64)> {
        self.transfer.as_ref().map(|transfer| (transfer.target().value.sequence, transfer.received()))
    }

    /// The first input.
    pub fn start(&mut self, s: &mut Surroundings<'_, S>) {
        self.promised = self.order.promised();
        self.drive(s, O::start);
    }

    /// A message that the boundary verified.
    pub fn message(&mut self, s: &mut Surroundings<'_, S>, from: Principal, message: Message) {
        match (message, from) {
            (Message::Request(request), _) => self.on_request(s, from, request),
            (Message::Checkpoint(vote), Principal::Replica(from)) => self.on_checkpoint(s, from, *vote),
            (Message::Transfer(message), Principal::Replica(from)) => self.on_transfer(s, from, message),
            (message, from) => match (O::unwrap_message(message), from) {
                (Some((instance, message)), Principal::Replica(from)) if instance == self.instance => {
                    self.drive(s, |order, context| order.message(context, from, message));
                }
                (Some((instance, _)), _) if instance != self.instance => s.reject(from, Rejection::WrongInstance),
                _ => s.reject(from, Rejection::WrongSender),
            },
        }
    }

    /// A timer of the order.
    pub fn order_timer(&mut self, s: &mut Surroundings<'_, S>, timer: O::Timer) {
        self.drive(s, |order, context| order.timer(context, timer));
    }

    /// Everything that was waiting has been handed over.
    pub fn pass_end(&mut self, s: &mut Surroundings<'_, S>) {
        self.drive(s, O::pass_end);
    }

    /// Lets the order act, and carries out what it wants, in order.
    fn drive(&mut self, s: &mut Surroundings<'_, S>, act: impl FnOnce(&mut O, &mut Context<'_, O>)) {
        let mut queue = Queue::new();
        self.call(s, &mut queue, act);
        self.drain(s, queue);
    }

    fn drain(&mut self, s: &mut Surroundings<'_, S>, mut queue: Queue<O>) {
        while let Some(effect) = queue.pop_front() {
            self.carry_out(s, &mut queue, effect);
        }
    }

    fn call(
        &mut self,
        s: &mut Surroundings<'_, S>,
        queue: &mut Queue<O>,
        act: impl FnOnce(&mut O, &mut Context<'_, O>),
    ) {
        let mut effects = Vec::new();
        let service = self.estate.service();
        let validate =
            |proposal: &crate::service::Proposal, request: &Request| service.validate(proposal, &request.operation);
        let mut context = Context {
            now: s.now,
            cluster: s.cluster,
            keyring: s.keyring,
            me: s.me,
            instance: self.instance,
            validate: &validate,
            out: &mut effects,
        };
        act(&mut self.order, &mut context);
        queue.extend(effects);
    }

    fn log_record(&mut self, record: O::Record) -> Record {
        let record = O::wrap_record(self.instance, record);
        self.log_bytes += record.encoded_length() as u64;
        Record::Log(record)
    }

    fn carry_out(&mut self, s: &mut Surroundings<'_, S>, queue: &mut Queue<O>, effect: OrderEffect<O>) {
        match effect {
            OrderEffect::Send(to, message) => {
                s.out.send(Destination::Replica(to), O::wrap_message(self.instance, message));
            }
            OrderEffect::Broadcast(message) => {
                s.out.send(Destination::Replicas, O::wrap_message(self.instance, message));
            }
            OrderEffect::Forward(to, request) => s.out.send(Destination::Replica(to), Message::Request(request)),
            OrderEffect::Persist(record) => {
                let record = self.log_record(record);
                s.out.persist(record);
            }
            OrderEffect::Append(record) => {
                let record = self.log_record(record);
                s.out.append(record);
            }
            OrderEffect::SetTimer(timer, at) => s.out.set_timer(O::wrap_timer(timer), at),
            OrderEffect::CancelTimer(timer) => s.out.cancel_timer(O::wrap_timer(timer)),
            OrderEffect::Notify(notice) => s.out.notify(notice),
            OrderEffect::Reject(from, reason) => s.reject(Principal::Replica(from), reason),
            OrderEffect::Deliver(delivery) => self.on_delivery(s, queue, delivery),
        }
    }
}
