//! Backup: any total order as an abortable instance, as in the paper on Abstract.
//!
//! # What it is for
//! A total order decides on one sequence of batches; Backup makes a replicated service of it. It checks whether a
//! request was executed before, hands new ones to the order, executes what the order delivers, answers clients,
//! takes checkpoints, and fetches the state when the replica has fallen behind. With `k = ∞` it never aborts, and the
//! composition of that one instance is plain PBFT.
//!
//! # Steps
//! 1. A request that is already in the client table is answered from there; a new one goes to the order. One that must
//!    not be executed any more is answered like a read, so that nobody is told so by a batch that is undone
//!    ([`crate::client`], step 10).
//! 2. A read-only request is answered from the state at once, or, while the last batch is tentative, as soon as it is
//!    final (F21); and not before everything that this replica helped to acknowledge is executed, be it again: after
//!    a restart, and also after a batch was undone. The client needs 2f+1 equal answers *from the same position*.
//! 3. A batch is executed tentatively when the order says so, and answered as tentative; 2f+1 such answers of one view
//!    are as good as final ones, because at least f+1 correct replicas prepared the batch in that view.
//! 4. A batch delivered for good is executed, or confirmed if it was executed tentatively. If the order undoes a
//!    tentative batch, the state goes back to the last checkpoint and the final batches since are executed again.
//! 5. After every K-th batch the replica signs the Merkle root of its state (CHECKPOINT). 2f+1 equal roots make the
//!    checkpoint stable: the order forgets what is below, and the version before it is dropped. Votes that are lost are
//!    sent again when the order sees that somebody lacks them.
//! 6. A replica that learns of a stable checkpoint which it cannot reach by executing fetches the state, page by page,
//!    from all the others, and checks every page against the certified root.
//! 7. A replica whose own root differs from the one that f+1 others signed, each for the same position, says so. It
//!    takes the right state as soon as 2f+1 have signed that, or a ruling says which one it is: then it need not wait
//!    for 2f+1 signatures, which there may never be while f others are down. It executes again what follows.
//! 8. What replicas have executed otherwise, each in its own way, they find, refuse and undo: [`crate::dissent`].
//!
//! # Why it is safe
//! Clients accept a result on 2f+1 equal replies, so that at least f+1 correct replicas executed it at that position:
//! every later read quorum contains one of them. State ahead of one's own is accepted only under a certificate of 2f+1
//! signatures, at least f+1 of them from correct replicas. The client table is part of the state, so that no request
//! takes effect twice, across view changes, restarts and transfers alike.
//!
//! *Step 7 with f+1 signatures.* A correct replica signs a checkpoint only for batches that were delivered as final and
//! that it executed; these are the same at all correct replicas of the instance, and so is the state after them. One of
//! f+1 signers is correct. So the state that they signed is the right one if all correct replicas executed alike, and a
//! replica that has another one there is wrong: f liars never have a wrong one taken. If correct replicas executed
//! otherwise, there may be two such states. Which of them counts is ordered, and all take the same. It is no
//! certificate for anybody else: the stable checkpoint, the window, what is shown and what is written to disk stay as
//! they were until 2f+1 signed. The log still leads from the snapshot to where the replica was, so that a crash undoes
//! the repair at worst. Whoever is overruled signs nothing before it has the right state.
//!
//! *It is live.* Say that f are down and others are wrong, which is more than f, but do not lie, and that f+1 correct
//! ones are left. All of these sign each checkpoint in the window, and say so again until it is stable; 2f+1 votes make
//! the ruling, and the wrong ones can have the state of a correct one. Theirs are the signatures that were missing,
//! there and at the checkpoint that the ruling makes.
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
mod dissent;
mod execution;
mod limited;

use crate::auth::{Certificate, Signed};
use crate::batch::Ordered;
use crate::checkpoint::transfer::Transfer;
use crate::checkpoint::{Checkpoint, TransferMessage, Tree};
use crate::cluster::Cluster;
use crate::dissent::Testimony;
use crate::history::LogEntry;
use crate::ids::{ClientId, InstanceId, Principal, ReplicaId, Sequence, View};
use crate::machine::Destination;
use crate::message::Request;
use crate::notice::Report;
use crate::protocols::speculative::Queue as Waiting;
use crate::protocols::total_order;
use crate::protocols::total_order::{Context, OrderEffect, TotalOrder};
use crate::rejection::Rejection;
use crate::service::{Proposal, Service};
use crate::shares::ClientSet;
use crate::switching::{AbortReport, Abortable, Heard, HistoryRecord, Ledger, Opening, Proof, Steps, Surroundings};
use crate::vouching::ruling_after;
use alloc::boxed::Box;
use alloc::collections::{BTreeMap, VecDeque};
use alloc::sync::Arc;
use alloc::vec::Vec;

/// A machine that a Backup over this order may be a part of.
pub trait Speaker<O: TotalOrder>:
    total_order::Speaker<
        O,
        Outgoing: From<Box<Signed<Checkpoint>>> + From<Box<Signed<Testimony>>>,
        Timer: From<TransferTimer>,
    >
{
}

impl<O, M> Speaker<O> for M
where
    O: TotalOrder,
    M: total_order::Speaker<
            O,
            Outgoing: From<Box<Signed<Checkpoint>>> + From<Box<Signed<Testimony>>>,
            Timer: From<TransferTimer>,
        >,
{
}

/// What the replicas of a Backup say to one another.
#[derive(Debug)]
pub enum BackupMessage<T> {
    /// A vote on a state.
    Checkpoint(Box<Signed<Checkpoint>>),
    /// What a replica's requests did.
    Testimony(Box<Signed<Testimony>>),
    /// A piece of a state, or a request for one.
    Transfer(TransferMessage),
    /// What the order says, in the instance named.
    Order(InstanceId, T),
}

/// The timers of a Backup.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum BackupTimer<T> {
    /// State transfer: begin, or ask again.
    Transfer,
    /// An init history: ask again for what is missing.
    Opening,
    /// Of the order.
    Order(T),
}

/// State transfer: begin, or ask again.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct TransferTimer;

/// How far a Backup has come with the history that it begins with.
#[derive(Clone, Debug)]
enum Init {
    /// No INIT was delivered yet.
    Waiting,
    /// Something of the history is missing.
    Opening(Box<Opening>),
    /// It works.
    Done,
}

/// See the [module](self).
#[derive(Clone, Debug)]
pub struct Backup<O: TotalOrder, S> {
    instance: InstanceId,
    order: O,
    ledger: Ledger<S>,
    /// Whether it hands on after k requests. Then only final deliveries count, and every read is ordered (D12).
    limited: bool,
    init: Init,
    /// Batches delivered before the init history was there.
    held: VecDeque<Ordered>,
    /// Requests executed where whoever lacks the init history begins to execute it.
    init_base: Option<u64>,
    report: Option<Arc<Signed<AbortReport>>>,
    /// The report that it made before a crash, until it is at the end again.
    said: Option<Arc<Signed<AbortReport>>>,
    /// Whether the state does not follow from the log: it was repaired with f+1 signatures.
    unlogged: bool,
    /// What proves that this instance may run, if there was one before it.
    proof: Option<Arc<Proof>>,
    /// Clients whose requests were ordered behind the last one that is executed.
    unserved: ClientSet,
    /// The last checkpoint that 2f+1 replicas signed and that this replica has.
    stable: Certificate<Checkpoint>,
    /// CHECKPOINT votes above it: the newest [`VOTES_PER_REPLICA_MAX`] of each replica.
    votes: BTreeMap<ReplicaId, Vec<Signed<Checkpoint>>>,
    /// A stable checkpoint that this replica has not reached by executing.
    ahead: Option<Certificate<Checkpoint>>,
    transfer: Option<Transfer>,
    /// What replicas testified about what they executed.
    dissent: dissent::Dissent,
    /// A state of this replica that is not the one that f+1 others signed, until it is repaired.
    wrong: Option<(Sequence, Tree)>,
    /// Read-only requests, and those that are too late, waiting for a state that may answer them.
    reads: Waiting,
    /// The view in which the tentative batch was executed.
    tentative_view: View,
    requests_executed: u64,
}

/// CHECKPOINT votes kept of each replica at one checkpoint: what it signed first, and what it signed last, once it had
/// repaired itself.
const VOTES_PER_CHECKPOINT_MAX: usize = 2;

/// CHECKPOINT votes kept of each replica: those for each checkpoint that fits into the window, and for one more.
const VOTES_PER_REPLICA_MAX: usize = 3 * VOTES_PER_CHECKPOINT_MAX;

/// The effects of the order that are still to be carried out.
type Queue<O> = VecDeque<OrderEffect<O>>;

impl<O: TotalOrder, S: Service> Backup<O, S> {
    /// The only instance of its composition, over a state whose newest version is the one that the certificate names.
    pub fn open(instance: InstanceId, order: O, ledger: Ledger<S>, stable: Certificate<Checkpoint>) -> Self {
        Self {
            instance,
            order,
            ledger,
            limited: false,
            init: Init::Done,
            held: VecDeque::new(),
            init_base: None,
            report: None,
            said: None,
            unlogged: false,
            proof: None,
            unserved: ClientSet::default(),
            stable,
            votes: BTreeMap::new(),
            ahead: None,
            transfer: None,
            dissent: dissent::Dissent::default(),
            wrong: None,
            reads: Waiting::default(),
            tentative_view: View(0),
            requests_executed: 0,
        }
    }

    /// The order.
    pub const fn order(&self) -> &O {
        &self.order
    }

    /// The order, for recovery.
    pub(crate) const fn order_mut(&mut self) -> &mut O {
        &mut self.order
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

    /// Where this replica's state differs from that of f+1 others, until it is repaired.
    pub fn differs(&self) -> Option<Sequence> {
        self.wrong.as_ref().map(|(sequence, _)| *sequence)
    }

    /// The first input.
    pub fn start(&mut self, s: &mut Surroundings<'_, impl Speaker<O>>) {
        if self.proof.is_none() && matches!(self.init, Init::Waiting) {
            self.begin(s.cluster, false);
        }
        self.drive(s, O::start);
        if matches!(self.init, Init::Waiting) {
            self.submit_init(s);
        } else {
            self.drive(s, O::opened);
        }
        self.end_if_done(s);
    }

    /// A message that the boundary verified.
    pub fn message(
        &mut self,
        s: &mut Surroundings<'_, impl Speaker<O>>,
        from: Principal,
        message: Heard<BackupMessage<O::Message>>,
    ) {
        match (message, from) {
            (Heard::Request(request), _) => self.on_request(s, from, request),
            (Heard::Own(BackupMessage::Checkpoint(vote)), Principal::Replica(from))
                if vote.value.instance == self.instance =>
            {
                self.on_checkpoint(s, from, *vote);
            }
            (Heard::Own(BackupMessage::Testimony(signed)), Principal::Replica(from)) => {
                self.on_testimony(s, from, *signed);
            }
            (Heard::Own(BackupMessage::Transfer(message)), Principal::Replica(from)) => {
                self.on_transfer(s, from, message);
            }
            (Heard::Own(BackupMessage::Order(instance, message)), Principal::Replica(from))
                if instance == self.instance =>
            {
                self.drive(s, |order, context| order.message(context, from, message));
            }
            (Heard::Own(BackupMessage::Order(instance, _)), _) if instance != self.instance => {
                s.reject(from, Rejection::WrongInstance);
            }
            (Heard::Own(_) | Heard::Switch(_), from) => s.reject(from, Rejection::WrongSender),
        }
    }

    /// Everything that was waiting has been handed over.
    pub fn pass_end(&mut self, s: &mut Surroundings<'_, impl Speaker<O>>) {
        self.drive(s, O::pass_end);
    }

    /// Lets the order act, and carries out what it wants, in order.
    fn drive(&mut self, s: &mut Surroundings<'_, impl Speaker<O>>, act: impl FnOnce(&mut O, &mut Context<'_, O>)) {
        let mut queue = Queue::new();
        self.call(s, &mut queue, act);
        self.drain(s, queue);
    }

    fn drain(&mut self, s: &mut Surroundings<'_, impl Speaker<O>>, mut queue: Queue<O>) {
        while let Some(effect) = queue.pop_front() {
            self.carry_out(s, &mut queue, effect);
        }
    }

    fn call(
        &mut self,
        s: &mut Surroundings<'_, impl Speaker<O>>,
        queue: &mut Queue<O>,
        act: impl FnOnce(&mut O, &mut Context<'_, O>),
    ) {
        let mut effects = Vec::new();
        let estate = &self.ledger.estate;
        let validate = |proposal: &Proposal, request: &Request| estate.service().validate(proposal, &request.operation);
        // Before the init history is there the state may hold what will be taken back. One INIT that is ordered is
        // enough, whoever's it is.
        let (is_decided, works) = (!matches!(self.init, Init::Waiting), matches!(self.init, Init::Done));
        let ruled = estate.ruled();
        let is_over = |request: &Request| match request.is_system() {
            true if request.is_ruling() => request.timestamp != ruling_after(ruled),
            true => is_decided,
            false => works && estate.is_over(request),
        };
        let mut context = Context {
            now: s.now,
            cluster: s.cluster,
            keyring: s.keyring,
            me: s.me,
            instance: self.instance,
            validate: &validate,
            is_over: &is_over,
            out: &mut effects,
        };
        act(&mut self.order, &mut context);
        queue.extend(effects);
    }

    fn carry_out(&mut self, s: &mut Surroundings<'_, impl Speaker<O>>, queue: &mut Queue<O>, effect: OrderEffect<O>) {
        match effect {
            OrderEffect::Send(to, message) => {
                s.send(Destination::Replica(to), (self.instance, message));
            }
            OrderEffect::Broadcast(message) => {
                s.send(Destination::Replicas, (self.instance, message));
            }
            OrderEffect::VoteAgain(to, stable) => self.vote_again(s, to, stable),
            OrderEffect::Forward(to, request) => s.send(Destination::Replica(to), request),
            OrderEffect::Persist(record) => {
                s.persist(self.instance, record);
            }
            OrderEffect::Append(record) => {
                s.append(self.instance, record);
            }
            OrderEffect::SetTimer(timer, at) => s.set_timer(timer, at),
            OrderEffect::CancelTimer(timer) => s.cancel_timer(timer),
            OrderEffect::Notify(notice) => s.out.notify(notice),
            OrderEffect::Reject(from, reason) => s.reject(Principal::Replica(from), reason),
            OrderEffect::Deliver(delivery) => self.on_delivery(s, queue, delivery),
        }
    }
}

impl<O: TotalOrder, S: Service> Abortable for Backup<O, S> {
    type Service = S;
    type Message = BackupMessage<O::Message>;
    type Timer = BackupTimer<O::Timer>;

    fn report(&self) -> Option<&Arc<Signed<AbortReport>>> {
        self.report.as_ref()
    }

    fn ledger(&self) -> &Ledger<S> {
        &self.ledger
    }

    fn waiting_clients(&self) -> Vec<ClientId> {
        self.clients_that_wait()
    }

    fn replay(&mut self, _cluster: &Cluster, record: HistoryRecord) {
        self.replay_history(record);
    }

    fn retain(&mut self, entries: Vec<LogEntry>) {
        self.ledger.log.retain(entries);
    }

    fn describe(&self, cluster: &Cluster, report: &mut Report) {
        self.order.describe(cluster, report);
        report.abstaining = !self.order.may_vote();
        report.stable = self.stable.value.sequence;
        report.stable_root = self.stable.value.root;
        report.requests_executed = self.requests_executed;
        report.transfer = self.transfer();
        report.differs = self.differs();
    }

    fn halt(self) -> Ledger<S> {
        self.into_ledger()
    }
}

impl<O: TotalOrder, S: Service, M: Speaker<O>> Steps<M> for Backup<O, S> {
    fn start(&mut self, surroundings: &mut Surroundings<'_, M>) {
        Self::start(self, surroundings);
    }

    fn message(&mut self, surroundings: &mut Surroundings<'_, M>, from: Principal, message: Heard<Self::Message>) {
        Self::message(self, surroundings, from, message);
    }

    fn timer(&mut self, surroundings: &mut Surroundings<'_, M>, timer: Self::Timer) {
        match timer {
            BackupTimer::Transfer => self.on_transfer_timeout(surroundings),
            BackupTimer::Opening => self.on_opening_timeout(surroundings),
            BackupTimer::Order(timer) => self.drive(surroundings, |order, context| order.timer(context, timer)),
        }
    }

    fn pass_end(&mut self, surroundings: &mut Surroundings<'_, M>) {
        Self::pass_end(self, surroundings);
    }

    /// No client makes it stop.
    fn panicked(&mut self, _s: &mut Surroundings<'_, M>) {}

    /// A Backup ends by itself, after k requests.
    fn stop(&mut self, _surroundings: &mut Surroundings<'_, M>, _reason: &'static str, _low_load: bool) {}
}
