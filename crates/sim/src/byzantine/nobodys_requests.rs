//! An entry of a ring that passes on requests of identities that nobody has named, beside those that it should: each of
//! another one, with MACs that cannot hold. Whoever keeps something for each identity that a message names keeps more
//! and more.

use super::ring_forger::{authenticate, place};
use super::{Behaviour, Liar};
use crate::rng::Rng;
use bezant_core::ids::{ClientId, IdentityId, Principal};
use bezant_core::message::Request;
use bezant_core::protocols::ring_fast::{Body, RingMessage};
use bezant_core::registry::Message;

#[derive(Debug)]
pub(super) struct NobodysRequests {
    /// Messages beside each that its replica sends as an entry.
    burst: u64,
    /// The last identity that it made up.
    last: u32,
}

impl NobodysRequests {
    pub(super) fn new(rng: &mut Rng) -> Self {
        Self { burst: *rng.pick(&[1, 4, 12]), last: 1 << 20 }
    }

    /// The same request as if somebody else had made it.
    fn of_nobody(&mut self, request: &Request) -> Request {
        self.last += 1;
        let client = ClientId { identity: IdentityId(self.last), session: 0 };
        let Request { instance, timestamp, read_only, ref operation, .. } = *request;
        let mut lie = Request::new(instance, client, timestamp, read_only, operation.clone());
        lie.authentication = request.authentication.clone();
        lie
    }
}

impl Behaviour for NobodysRequests {
    fn send(&mut self, liar: &mut Liar<'_>, to: Principal, message: &Message) {
        liar.say(to, message);
        if let Message::Ring(ring) = message
            && let Body::Requests(requests) = &ring.body
            && let Some((path, 0)) = place(liar, ring, to)
        {
            for _ in 0..self.burst {
                let requests = requests.iter().map(|request| self.of_nobody(request)).collect();
                let mut lie = RingMessage { body: Body::Requests(requests), ..ring.clone() };
                authenticate(liar, &path, 0, &mut lie, true);
                liar.say(to, &Message::Ring(lie));
            }
        }
    }
}
