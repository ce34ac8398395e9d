//! Hands for histories that are scripted to the message: which frames arrive, who stops when, who is shown which
//! proof, and what a liar signs.

use super::run::Run;
use crate::auth::{Claimed, Signed};
use crate::digest::Digest;
use crate::ids::{ClientId, InstanceId, Principal, ReplicaId, Timestamp};
use crate::message::Request;
use crate::registry::Message;
use crate::switching::{AbortHistory, AbortReport, ClaimedProof, Panic, Switch, SwitchMessage};
use crate::testing::net::{Frame, c, r};
use alloc::collections::BTreeMap;
use alloc::sync::Arc;
use alloc::vec::Vec;

/// A report with its signature.
pub(super) type Report = Claimed<Signed<AbortReport>>;

/// A client's name by the number of its session.
pub(super) fn client(session: u32) -> ClientId {
    let Principal::Client(client) = c(session) else { unreachable!() };
    client
}

/// PANIC of a client.
pub(super) fn panic(instance: InstanceId, session: u32) -> Message {
    let message = SwitchMessage::Panic(Panic { client: client(session), timestamp: Timestamp(1) });
    Message::Switch(Switch { instance, message })
}

/// INIT: what proves that the instance after that of the reports may run.
pub(super) fn init<'a>(reports: impl IntoIterator<Item = &'a Report>) -> Message {
    let proof = proof(reports);
    let instance = InstanceId(proof.instance().0 + 1);
    Message::Switch(Switch { instance, message: SwitchMessage::Init(proof) })
}

/// The proof that these reports make.
pub(super) fn proof<'a>(reports: impl IntoIterator<Item = &'a Report>) -> Arc<ClaimedProof> {
    let mut reports: Vec<Report> = reports.into_iter().cloned().collect();
    reports.sort_by_key(Claimed::signer);
    Arc::new(ClaimedProof { reports })
}

/// The abort report in a frame, if it is one of this instance.
pub(super) fn report_in(frame: &Frame, of: InstanceId) -> Option<Report> {
    match &frame.message {
        Message::Switch(Switch { instance, message: SwitchMessage::Abort(report) }) if *instance == of => {
            Some((**report).clone())
        }
        _ => None,
    }
}

impl Run {
    /// One round in which only these of the frames in flight arrive. The others are lost.
    pub(super) fn round_of(&mut self, which: impl Fn(&Frame) -> bool) {
        self.net.in_flight.retain(which);
        self.round();
    }

    /// A name for an operation that a liar asks for.
    pub(super) fn reserve(&mut self) -> [u8; 4] {
        self.next += 1;
        (self.next - 1).to_le_bytes()
    }

    /// A request of a client whose machine does not make it, to some replicas.
    pub(super) fn ask(&mut self, request: &Request, receivers: impl IntoIterator<Item = u8>) {
        for id in receivers {
            let from = Principal::Client(request.client);
            self.net.forge(from, r(id), Message::Request(request.clone()));
        }
    }

    /// Lets everybody stop in an instance, one after the other, for the last client's PANIC; nobody hears what they
    /// say then. The reports of those that are in that instance.
    pub(super) fn stop(&mut self, instance: InstanceId) -> BTreeMap<u8, Report> {
        let session = self.net.clients.len() as u32 - 1;
        let mut reports = BTreeMap::new();
        for id in 0..self.net.cluster.replicas.n() as u8 {
            self.net.in_flight.clear();
            self.net.forge(c(session), r(id), panic(instance, session));
            self.round();
            let mut said = self.net.sent.iter().rev().filter(|frame| frame.from == r(id));
            reports.extend(said.find_map(|frame| report_in(frame, instance)).map(|report| (id, report)));
        }
        self.net.in_flight.clear();
        reports
    }

    /// A report as a replica would sign it.
    pub(super) fn signed(&self, signer: u8, report: &Report) -> Report {
        self.net.keyring(r(signer)).sign(report.claims().clone()).into()
    }

    /// Shows every replica a proof of its own that the next instance may begin, before it hears of another one. What
    /// they say then is in flight.
    pub(super) fn begin(&mut self, proofs: [[&Report; 3]; 4]) {
        for (id, reports) in (0..).zip(proofs) {
            self.net.forge(r(u8::from(id == 0)), r(id), init(reports));
        }
        self.round();
    }

    /// Tells a client that an instance is active. It asks there if it waits for something.
    pub(super) fn redirect(&mut self, session: u32, instance: InstanceId) {
        for id in 0..self.net.cluster.replicas.n() as u8 {
            let message = SwitchMessage::Active(client(session));
            self.net.forge(r(id), c(session), Message::Switch(Switch { instance, message }));
        }
        self.round();
    }

    /// The history that these reports prove.
    ///
    /// # Panics
    /// If something that committed in their instance or before, and whose place is known, is not in it: abort order.
    pub(super) fn proved<'a>(&self, reports: impl IntoIterator<Item = &'a Report>) -> AbortHistory {
        let proof = proof(reports);
        let ended = self.net.cluster.specification(proof.instance());
        let history = proof.clone().recalled().abort_history(&ended).expect("f+1 reports have the beginning in common");
        let instance = proof.instance();
        let told = |commit: &&super::run::Commit| commit.instance <= instance && commit.digest != Digest::ZERO;
        for commit in self.commits.iter().filter(told) {
            let before = commit.position < history.anchor.position;
            let kept = before || history.history_at(commit.position) == Some(commit.digest);
            assert!(kept, "{commit:?} is not in {history:?}");
        }
        history
    }

    /// Which history a replica began an instance with.
    pub(super) fn init_of(&self, id: u8, instance: InstanceId) -> Option<&[u32]> {
        let mut begun = self.begun.iter().filter(|(replica, begun, _)| (*replica, *begun) == (ReplicaId(id), instance));
        begun.next().map(|(_, _, history)| history.as_slice())
    }
}
