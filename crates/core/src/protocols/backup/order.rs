//! Between a Backup and its order: what the order is asked, and what it wants done.

use super::message::{BackupMessage, Speaker};
use super::state::{Backup, Init, Queue};
use crate::ids::{Principal, Sequence};
use crate::machine::Destination;
use crate::message::Request;
use crate::protocols::total_order::{Context, Delivery, OrderEffect, TotalOrder};
use crate::rejection::Rejection;
use crate::replicas::ReplicaSet;
use crate::service::{Proposal, Service};
use crate::switching::{Heard, Surroundings, SwitchMessage};
use crate::vouching::ruling_after;
use alloc::vec::Vec;

impl<O: TotalOrder, S: Service> Backup<O, S> {
    /// The first input.
    pub fn start(&mut self, s: &mut Surroundings<'_, impl Speaker<O>>) {
        if self.proof.is_none() && matches!(self.init, Init::Waiting) {
            self.begin(false, ReplicaSet::NOBODY);
        }
        self.drive(s, O::start);
        if matches!(self.init, Init::Waiting) {
            self.submit_init(s);
            self.drive(s, O::do_without_missing);
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
                if vote.claims().instance == self.what.number =>
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
                if instance == self.what.number =>
            {
                self.drive(s, |order, context| order.message(context, from, message));
            }
            (Heard::Own(BackupMessage::Order(instance, _)), _) if instance != self.what.number => {
                s.reject(from, Rejection::WrongInstance);
            }
            (Heard::Switch(SwitchMessage::Bodies(bodies)), Principal::Replica(from)) => self.on_bodies(s, from, bodies),
            (Heard::Own(_) | Heard::Switch(_), from) => s.reject(from, Rejection::WrongSender),
        }
    }

    /// Everything that was waiting has been handed over.
    pub fn pass_end(&mut self, s: &mut Surroundings<'_, impl Speaker<O>>) {
        self.drive(s, O::pass_end);
        self.answer_waiting_reads(s);
    }

    /// Lets the order act, and carries out what it wants, in order.
    pub(super) fn drive(
        &mut self,
        s: &mut Surroundings<'_, impl Speaker<O>>,
        act: impl FnOnce(&mut O, &mut Context<'_, O>),
    ) {
        let mut queue = Queue::new();
        self.call(s, &mut queue, act);
        self.drain(s, queue);
    }

    pub(super) fn drain(&mut self, s: &mut Surroundings<'_, impl Speaker<O>>, mut queue: Queue<O>) {
        while let Some(effect) = queue.pop_front() {
            self.carry_out(s, &mut queue, effect);
        }
    }

    /// The state is that after this batch again. The order delivers again what follows, and what it has delivered since
    /// and nobody has executed is void.
    pub(super) fn go_back(&mut self, s: &mut Surroundings<'_, impl Speaker<O>>, queue: &mut Queue<O>, to: Sequence) {
        queue.retain(|effect| {
            !matches!(effect, OrderEffect::Deliver(Delivery::Tentative(_) | Delivery::Final(_) | Delivery::Undo))
        });
        self.call(s, queue, |order, context| order.went_back(context, to));
    }

    pub(super) fn call(
        &mut self,
        s: &mut Surroundings<'_, impl Speaker<O>>,
        queue: &mut Queue<O>,
        act: impl FnOnce(&mut O, &mut Context<'_, O>),
    ) {
        let mut effects = Vec::new();
        let estate = &self.ledger.estate;
        let validate = |proposal: &Proposal, request: &Request| {
            let validates = |operation: &[u8]| estate.service().validate(proposal, operation);
            match request.is_bundle() {
                false => validates(&request.operation),
                true => request.operations().iter().all(|operation| validates(operation)),
            }
        };
        // Before the init history is there the state may hold what will be taken back. One INIT that is ordered is
        // enough, whoever's it is.
        let (is_decided, works) = (!matches!(self.init, Init::Waiting), matches!(self.init, Init::Done));
        let (ruled, stays) = (estate.ruled(), estate.stays());
        let is_over = |request: &Request| match request.is_system() {
            true if request.is_ruling() => request.timestamp != ruling_after(ruled),
            true if request.is_end_of_stay() => works && !stays,
            true => is_decided,
            false => works && estate.is_over(request),
        };
        let mut context = Context {
            now: s.now,
            cluster: s.cluster,
            keyring: s.keyring,
            me: s.me,
            instance: self.what.number,
            validate: &validate,
            is_over: &is_over,
            is_fetching: self.transfer.is_some(),
            missing: self.left_out(),
            out: &mut effects,
            steps: s.out.steps(),
        };
        act(&mut self.order, &mut context);
        queue.extend(effects);
    }

    pub(super) fn carry_out(
        &mut self,
        s: &mut Surroundings<'_, impl Speaker<O>>,
        queue: &mut Queue<O>,
        effect: OrderEffect<O>,
    ) {
        match effect {
            OrderEffect::Send(to, message) => {
                s.send(Destination::Replica(to), (self.what.number, message));
            }
            OrderEffect::Broadcast(message) => {
                s.send(Destination::Replicas, (self.what.number, message));
            }
            OrderEffect::VoteAgain(to, stable) => self.vote_again(s, to, stable),
            OrderEffect::Forward(to, request) => s.send(Destination::Replica(to), request),
            OrderEffect::Persist(record) => {
                s.persist(self.what.number, record);
            }
            OrderEffect::Append(record) => {
                s.append(self.what.number, record);
            }
            OrderEffect::SetTimer(timer, at) => s.set_timer(timer, at),
            OrderEffect::CancelTimer(timer) => s.cancel_timer(timer),
            OrderEffect::Notify(notice) => s.out.notify(notice),
            OrderEffect::Reject(from, reason) => s.reject(Principal::Replica(from), reason),
            OrderEffect::Deliver(delivery) => self.on_delivery(s, queue, delivery),
        }
    }
}
