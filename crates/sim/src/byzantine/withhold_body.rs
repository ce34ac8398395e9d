//! A withheld body (pbft-F22): a client gives a big request to the liars only; they order it by its digest and then do
//! not give the body to anybody. In instances that may abort every request is like that: the liar vouches for it in its
//! abort report and answers no FETCH (abs-K12).

use super::{Behaviour, ClientBehaviour, Liar};
use crate::rng::Rng;
use bezant_core::auth::Keyring;
use bezant_core::cluster::Cluster;
use bezant_core::ids::{Principal, ReplicaId};
use bezant_core::message::Request;
use bezant_core::protocols::pbft::{Ordering, PbftMessage};
use bezant_core::registry::Message;
use bezant_core::switching::{Switch, SwitchMessage};
use std::collections::BTreeSet;

/// The lying replica's part.
#[derive(Debug)]
pub(super) struct WithholdBody;

impl Behaviour for WithholdBody {
    fn send(&mut self, liar: &mut Liar<'_>, to: Principal, message: &Message) {
        let big = |request: &Request| request.operation.len() > liar.cluster.limits.inline_bytes_max;
        let body = match message {
            Message::Request(request) => big(request),
            Message::Ordering(Ordering { message: PbftMessage::Batch(_) | PbftMessage::Body(_), .. })
            | Message::Switch(Switch { message: SwitchMessage::Bodies(_), .. }) => true,
            _ => false,
        };
        if !body {
            liar.say(to, message);
        }
    }
}

/// The lying client's part.
#[derive(Debug)]
pub(super) struct ToLiarsOnly {
    liars: BTreeSet<ReplicaId>,
}

impl ToLiarsOnly {
    pub(super) fn new(liars: &BTreeSet<ReplicaId>) -> Self {
        Self { liars: liars.clone() }
    }
}

impl ClientBehaviour for ToLiarsOnly {
    fn request(
        &mut self,
        rng: &mut Rng,
        _cluster: &Cluster,
        _keyring: &Keyring,
        to: ReplicaId,
        request: &Request,
    ) -> Option<Request> {
        // Sometimes one correct replica gets it as well: then it must reach all.
        (self.liars.contains(&to) || rng.per_mille(50)).then(|| request.clone())
    }
}
