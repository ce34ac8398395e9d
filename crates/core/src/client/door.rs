//! How a client that the cluster file does not name comes in and leaves: its part of [`crate::members`].
//!
//! # Steps
//! * Door 1. It asks every replica for a cookie until 2f+1 have given one. It takes the f+1 with the latest times: a
//!   faulty replica that gives an old one does not make the JOIN expire.
//! * Door 2. JOIN goes to every replica, again and again like any request, and its result names identity and session.
//! * Door 3. LEAVE is a request of the session number that is kept for it.
//!
//! A process with many sessions joins once, with a client of its own for it (the *door*), and hands the
//! [`Admission`] to all its sessions with [`Client::enter`].

use super::call::Call;
use super::{Client, Completed, Completion};
use crate::auth::Keyring;
use crate::client::joining::Joining;
use crate::cluster::Cluster;
use crate::digest::Digest;
use crate::ids::{ClientId, Principal, ReplicaId, Sequence, Timestamp};
use crate::joining::{Ask, CONTROL_SESSION, CookieMessage, Credential, Given, Join, Nonce, SessionId, Stamp};
use crate::machine::{Destination, Outbox};
use crate::members::Admission;
use crate::message::{Form, Refusal, Request};
use crate::registry::Message;
use crate::time::{Duration, Instant};
use crate::wire::Wire;
use alloc::collections::BTreeMap;
use alloc::rc::Rc;
use alloc::vec::Vec;
use bytes::Bytes;

impl Client {
    /// A client that the cluster file does not name, before it has joined.
    ///
    /// # Panics
    /// If these are the keys of somebody who is named.
    pub fn stranger(cluster: Rc<Cluster>, keyring: Rc<Keyring>) -> Self {
        let Principal::Key(key) = keyring.me() else { panic!("whoever is named need not join") };
        let credential = Credential { key, session: SessionId::default() };
        Self { credential: Some(credential), ..Self::new(cluster, keyring, ClientId::default()) }
    }

    /// From now on this is a session, by its number, of somebody who has joined. Returns how a request that was under
    /// way ends: its session is over.
    ///
    /// # Panics
    /// If the cluster file names this client.
    pub fn enter(&mut self, now: Instant, admission: Admission, session: u32) -> Option<Completed> {
        let ended = self.call.take().map(|call| {
            let latency = now - call.submitted;
            self.over(call.request.timestamp, Completion::Ended(Refusal::NoSession), latency)
        });
        let credential = self.credential.as_mut().expect("whoever is named need not join");
        credential.session = admission.session;
        self.id = ClientId { identity: admission.identity, session };
        self.joining = None;
        ended
    }

    /// How something ends that no replica answered.
    pub(super) fn over(&self, timestamp: Timestamp, result: Completion, latency: Duration) -> Completed {
        let (client, instance, sequence, history) = (self.id, self.instance, Sequence(0), Digest::ZERO);
        Completed { client, timestamp, result, instance, sequence, history, vouchers: 0, answers: Vec::new(), latency }
    }

    /// Door 1. Begins to join. It ends as [`Completion::Done`] with an encoded [`Admission`], refused, or unknown.
    /// `nonce` must not have been used before.
    ///
    /// # Panics
    /// If a request is outstanding, or the cluster file names this client.
    pub fn join(
        &mut self,
        now: Instant,
        nonce: Nonce,
        identification: Bytes,
        deadline: Instant,
        out: &mut Outbox<Self>,
    ) {
        assert!(self.call.is_none(), "one request at a time");
        let credential = self.credential.as_mut().expect("whoever is named need not join");
        credential.session = SessionId(nonce);
        self.id = credential.joining();
        self.joining = Some(Joining { nonce, identification, stamps: BTreeMap::new(), begun: now, deadline });
        self.set_deadline(deadline, out);
        self.ask_for_cookies(now, out);
    }

    pub(super) fn ask_for_cookies(&mut self, now: Instant, out: &mut Outbox<Self>) {
        out.step("Door 1");
        let Some(joining) = &self.joining else { return };
        let ask = Ask { nonce: joining.nonce };
        for replica in self.asked.replicas.iter().filter(|id| !joining.stamps.contains_key(id)) {
            out.send(Destination::Replica(replica), Message::Cookie(CookieMessage::Ask(ask)));
        }
        self.set_retry(now + self.cluster.limits.client_retry, out);
    }

    pub(super) fn on_cookie(&mut self, now: Instant, replica: ReplicaId, given: Given, out: &mut Outbox<Self>) {
        let (Some(joining), Some(credential)) = (&mut self.joining, self.credential) else { return };
        let Given { nonce, time, signature } = given;
        let stamp = Stamp { replica, time, signature };
        if nonce != joining.nonce || !stamp.holds(&self.keyring, &credential) {
            return;
        }
        joining.stamps.insert(replica, stamp);
        if joining.stamps.len() < self.asked.replicas.strong() {
            return;
        }
        let Some(joining) = self.joining.take() else { return };
        let mut stamps: Vec<Stamp> = joining.stamps.into_values().collect();
        stamps.sort_by_key(|stamp| core::cmp::Reverse(stamp.time));
        stamps.truncate(self.asked.replicas.weak());
        assert_eq!(stamps.len(), self.asked.replicas.weak(), "a JOIN has cookies of f+1 replicas (prac-F23)");
        stamps.sort_by_key(|stamp| stamp.replica);
        out.step("Door 2");
        let join = Join { identification: joining.identification, stamps };
        // A clock that is far off would make a number that the replicas do not take.
        let (earliest, latest) = (join.time(), join.time() + self.cluster.limits.cookie_lifetime);
        let timestamp = Timestamp(now.0.clamp(earliest.0, latest.0));
        let request = self.compose(timestamp, Form::default(), join.to_bytes().into());
        let request = self.prove(now, request);
        self.ask_everybody(request, joining.begun, now, joining.deadline, out);
    }

    /// Door 3. Ends as [`Completion::Done`], or as [`Completion::Ended`] if the session was over already.
    ///
    /// # Panics
    /// If a request is outstanding.
    pub fn leave(&mut self, now: Instant, admission: Admission, deadline: Instant, out: &mut Outbox<Self>) {
        out.step("Door 3");
        assert!(!self.is_busy(), "one request at a time");
        self.enter(now, admission, CONTROL_SESSION);
        let request = self.request(now, Form::default(), Bytes::new());
        self.ask_everybody(request, now, now, deadline, out);
    }

    fn ask_everybody(
        &mut self,
        request: Request,
        begun: Instant,
        now: Instant,
        deadline: Instant,
        out: &mut Outbox<Self>,
    ) {
        out.send(Destination::Replicas, Message::Request(request.clone()));
        let patience = self.patience();
        self.set_retry(now + patience, out);
        self.set_deadline(deadline, out);
        let mut call = Call::new(request, now, Some(deadline), patience);
        call.submitted = begun;
        self.call = Some(call);
    }

    /// The deadline of Door 1: not enough replicas gave a cookie.
    pub(super) fn give_up_joining(&mut self, now: Instant, out: &mut Outbox<Self>) {
        let Some(joining) = &self.joining else { return };
        if now < joining.deadline {
            let at = joining.deadline;
            return self.set_deadline(at, out);
        }
        let latency = now - joining.begun;
        self.joining = None;
        out.notify(self.over(Timestamp(0), Completion::Unknown, latency));
    }
}
