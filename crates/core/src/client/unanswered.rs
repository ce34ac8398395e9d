//! How a call ends that nobody answers: at its deadline, or because it is too late (Client 10 of the [module](super)).
//!
//! # Too late
//! A client table keeps a bounded number of sessions of an identity. When a session is evicted while a request of it is
//! under way, the request may be below the floor when it arrives, or when its reply is lost and it is asked again. It
//! must not be executed then, and nobody remembers whether it was. A client that only waited would wait for ever, and
//! one that panics would stop every instance that may abort.
//!
//! So a replica that is asked by the client itself says TOO LATE ([`crate::message::Reply::too_late`]). It says so of
//! its present state, wherever that stands in the history, so the words of two replicas add up whatever their
//! positions are. f liars end no call. Of f+1 one is correct, and what the client may conclude is what follows from one
//! correct replica's state:
//!
//! * *Where only what is final is executed, or this one waits until it is* (PBFT, a Backup, the resilient ring): floors
//!   and last timestamps only rise along the one history, whoever is how far, and across instances. So the request is
//!   in the history before that state, or never will be executed: [`Completion::TooLate`]. Which of both is unknown.
//! * *Where an instance may abort* the state may be taken back, and others may have logged the request and not what
//!   evicted its session. Then a later instance may begin with a history that has it. All that is known is nothing:
//!   [`Completion::Unknown`], as after a deadline. It would take a PANIC to learn more, and then every session that is
//!   evicted would cost all others the instance. The session goes on with its next request.
//!
//! *It ends.* Once the session is evicted in what is final, every correct replica says TOO LATE as soon as it has
//! executed that and is asked; from its second attempt on a client asks all. A replica whose last batch is tentative
//! waits with it as with a read: fewer than f+1 correct ones can be kept from both committing and undoing that batch
//! (`protocols/pbft/status.rs`), so f+1 others remain.

use super::{Answer, Client, Completed, Completion};
use crate::ids::ReplicaId;
use crate::machine::Outbox;
use crate::time::Instant;
use alloc::vec::Vec;

impl Client {
    pub(super) fn on_deadline(&mut self, now: Instant, out: &mut Outbox<Self>) {
        self.deadline_at = None;
        if self.joining.is_some() {
            return self.give_up_joining(now, out);
        }
        match self.call.as_ref().and_then(|call| call.deadline) {
            Some(at) if now < at => self.set_deadline(at, out),
            Some(_) => self.give_up(now, out),
            None => {}
        }
    }

    /// Whether it was executed, or will be, stays unknown.
    pub(super) fn give_up(&mut self, now: Instant, out: &mut Outbox<Self>) {
        let answers = self.answers();
        let Some(call) = self.call.take() else { return };
        let over = self.over(call.request.timestamp, Completion::Unknown, now - call.submitted);
        out.notify(Completed { answers, ..over });
    }

    /// What each replica has said so far about the request that is outstanding, if one is.
    pub fn answers(&self) -> Vec<(ReplicaId, Answer)> {
        self.call.as_ref().map_or_else(Vec::new, |call| call.answers(self.asked.replicas, None))
    }
}
