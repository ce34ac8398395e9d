//! Clients of one identity that sign what they ask for together, as the sessions of one engine do in a pass.

use super::Caller;
use crate::checks::Event;
use crate::network::ProcessId;
use crate::passes::Unsigned;
use crate::stage::{Occurrence, Stage};
use bezant_core::ids::{ClientId, Principal, ReplicaId};
use bezant_core::message::Request;
use bezant_core::registry::Message;
use bezant_core::wire::Wire;
use bytes::Bytes;

impl Caller {
    /// The same. If a span is given and it is honest, it signs what it asks for together with others that ask within so
    /// many microseconds.
    #[must_use]
    pub fn signing_within(self, span: Option<u64>) -> Self {
        let signs_within = span.filter(|_| self.is_honest());
        let machine = if signs_within.is_some() { self.machine.signed_by_host() } else { self.machine };
        Self { signs_within, machine, ..self }
    }

    /// Whose key it signs with.
    fn signer(&self) -> Principal {
        match self.keyring.me() {
            Principal::Client(client) => Principal::Client(ClientId { session: 0, ..client }),
            me => me,
        }
    }

    /// Sends an honest request, now or when it is signed.
    pub(super) fn issue(&self, stage: &mut Stage, to: Vec<ReplicaId>, request: &Request) {
        let span = self.signs_within.filter(|_| request.lacks_signature(&stage.cluster));
        let Some(span) = span else { return post(stage, self.process, &to, request) };
        let waiting = stage.unsigned.entry(self.signer()).or_default();
        let is_first = waiting.is_empty();
        waiting.push(Unsigned { process: self.process, to, request: request.clone() });
        if is_first {
            stage.plan(stage.now + span, Occurrence::ClientPassEnd(self.process));
        }
    }

    /// Signs what clients with its key have asked for since the pass began, and sends it.
    pub fn pass_end(&self, stage: &mut Stage) {
        let mut waiting = stage.unsigned.remove(&self.signer()).unwrap_or_default();
        Request::sign_all(waiting.iter_mut().map(|unsigned| &mut unsigned.request), &self.keyring);
        stage.checks.watch.evidence.shared_signatures |= u64::from(waiting.len() > 1);
        for Unsigned { process, to, request } in waiting {
            post(stage, process, &to, &request);
        }
    }
}

fn post(stage: &mut Stage, process: ProcessId, to: &[ReplicaId], request: &Request) {
    stage.checks.see(stage.now, &Event::Issued(request));
    let frame = Bytes::from(Message::Request(request.clone()).to_bytes());
    for to in to {
        stage.post(process, Principal::Replica(*to), frame.clone());
    }
}
