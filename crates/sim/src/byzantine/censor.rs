//! Censorship: a primary, head or entry that never hears some clients, and serves all others as fast as it can.

use super::{Behaviour, Liar};
use crate::rng::Rng;
use bezant_core::ids::ClientId;
use bezant_core::registry::{Incoming, Message};

#[derive(Debug)]
pub(super) struct Censor {
    /// Of how many clients it censors one.
    one_of: u64,
    salt: u64,
}

impl Censor {
    pub(super) fn new(rng: &mut Rng) -> Self {
        Self { one_of: *rng.pick(&[1, 2, 2, 3]), salt: rng.next() }
    }

    fn censors(&self, client: ClientId) -> bool {
        (u64::from(client.identity.0) + u64::from(client.session) + self.salt % self.one_of).is_multiple_of(self.one_of)
    }
}

impl Behaviour for Censor {
    fn receive(&mut self, _liar: &mut Liar<'_>, incoming: &Incoming) -> bool {
        !matches!(&*incoming.message, Message::Request(request) if self.censors(request.client))
    }
}
