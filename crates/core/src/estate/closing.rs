//! Closing: an ordered request after which nothing is written any more.
//!
//! What replicas agree on (n, f, the protocol, most limits) is in the cluster's digest, under which all of them
//! authenticate everything. It cannot change under a cluster that runs. So a cluster that needs other parameters gets a
//! *successor*: another cluster, which begins with this one's state. Nothing may be acknowledged here that the
//! successor does not begin with, and a clock or a word among operators does not make that so. A position in the agreed
//! order does.
//!
//! # Steps
//! * Closing 1. *CLOSE.* A client that the cluster file names asks, in the session number `CONTROL_SESSION`. It is
//!   ordered like any other request, and what it carries means nothing. A query in that session is a query.
//! * Closing 2. *Permission.* At its position the service is asked ([`Service::may_close`]). Whoever may not is refused
//!   as [`Refusal::Unauthorized`], and nothing has changed.
//! * Closing 3. *The mark.* Otherwise that position is noted in the page that holds the rest of the state, and is the
//!   result. Whoever asks again, and may, is told the same position.
//! * Closing 4. *From there on* every other new request is refused as [`Refusal::Closed`] at its own position, JOINs
//!   included. Queries go on, ordered or not; LEAVE is no matter of the service, and goes on as well. What was executed
//!   before is answered again as ever.
//! * Closing 5. *The successor* begins with the service's pages of any checkpoint that has the mark. Its digest is
//!   another one, so no MAC and no signature of this cluster means anything there, whoever keeps his keys.
//!
//! # Why it is safe
//! *Nothing acknowledged is left behind.* The mark is a function of the history, like the client table. A write that is
//! acknowledged as executed stands before the mark, and then its effects are in every state that has the mark. *All
//! such states are equal to the successor*: behind the mark no operation reaches [`Service::execute`] and no JOIN
//! [`Service::authorize`], and whatever else is asked of the service may not write. So it does not matter which of them
//! is backed up, or when. *It is undone with its batch*: the mark is in a page, hence rolled back, ruled upon and
//! transferred with the rest; while its batch is tentative nobody is told of it for good. *It cannot be taken back*
//! once it is final, because no request does so: otherwise there could be two clusters that are written to, each of
//! them the one to its own clients.

use super::Estate;
use crate::message::{Outcome, Refusal, Request};
use crate::service::{Asker, Service};
use bytes::Bytes;

impl<S: Service> Estate<S> {
    /// The position of the request that closed the cluster, once that is final.
    pub fn closed(&self) -> Option<u64> {
        let is_final = |at: &u64| self.tentative.as_ref().is_none_or(|tentative| *at <= tentative.position);
        self.meta.closed().filter(is_final)
    }

    /// Closing 4: why the next request is not executed, if the cluster is closed.
    pub(super) fn shut(&self, request: &Request) -> Option<Refusal> {
        let goes_on = request.is_ordered_query() || request.is_close();
        self.meta.closed().filter(|_| !goes_on).map(|_| Refusal::Closed)
    }

    /// Closing 2 and 3.
    pub(super) fn close(&mut self, asker: &Asker) -> Outcome {
        let may_close = self.service.may_close(asker);
        self.note_effects(&[may_close.into()]);
        if !may_close {
            return Outcome::Refused(Refusal::Unauthorized);
        }
        let position = self.meta.closed().unwrap_or(self.meta.position);
        assert!(position > 0 && position <= self.meta.position, "the mark names a request that was executed");
        self.meta.closed = position;
        self.done(Bytes::copy_from_slice(&position.to_le_bytes()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::auth::PublicKeys;
    use crate::cluster::Cluster;
    use crate::estate::{Ruled, Summary, next_batch};
    use crate::history::{Boundary, Log};
    use crate::ids::{ClientId, IdentityId, Sequence, Timestamp};
    use crate::joining::CONTROL_SESSION;
    use crate::services::Counter;
    use crate::testing::net::{INSTANCE, cluster};
    use alloc::string::ToString;

    fn open() -> (Cluster, Estate<Counter>) {
        let cluster = cluster(4, Default::default(), Default::default());
        let estate = Estate::new(&cluster, &PublicKeys::default(), Counter::default());
        (cluster, estate)
    }

    fn request(session: u32, timestamp: u64, operation: Bytes) -> Request {
        let client = ClientId { identity: IdentityId(1), session };
        Request::new(INSTANCE, client, Timestamp(timestamp), false, operation)
    }

    fn close(timestamp: u64) -> Request {
        request(CONTROL_SESSION, timestamp, Bytes::new())
    }

    fn add(timestamp: u64) -> Request {
        request(0, timestamp, Bytes::copy_from_slice(&Counter::add(1)))
    }

    /// Executes a request as the next batch.
    fn execute(cluster: &Cluster, estate: &mut Estate<Counter>, request: Request, for_good: bool) -> Outcome {
        let ordered = next_batch(estate, [request]);
        let mut outcome = None;
        estate.execute(cluster, ordered, for_good, |_, said, _| outcome = Some(said.clone()));
        outcome.unwrap()
    }

    const CLOSED: Outcome = Outcome::Refused(Refusal::Closed);

    #[test]
    fn a_close_is_undone_with_its_batch() {
        let (cluster, mut estate) = open();
        execute(&cluster, &mut estate, add(1), true);
        assert!(matches!(execute(&cluster, &mut estate, close(1), false), Outcome::Done { .. }));
        assert_eq!(estate.closed(), None, "not for good");
        estate.undo(&cluster).unwrap();
        assert!(matches!(execute(&cluster, &mut estate, add(2), true), Outcome::Done { .. }));
        execute(&cluster, &mut estate, close(1), false);
        estate.confirm();
        assert_eq!(estate.closed(), Some(3));
        assert_eq!(execute(&cluster, &mut estate, add(3), false), CLOSED);
        assert_eq!(estate.closed(), Some(3), "what came later is tentative");
        estate.undo(&cluster).unwrap();
        assert_eq!(execute(&cluster, &mut estate, add(3), true), CLOSED);
    }

    #[test]
    fn a_close_is_undone_by_a_ruling() {
        let (cluster, mut estate) = open();
        execute(&cluster, &mut estate, add(1), true);
        execute(&cluster, &mut estate, close(1), true);
        estate.checkpoint();
        assert_eq!(Summary::of(estate.newest_version()).unwrap().closed, Some(2));
        let ruled = Ruled { position: 1, until: Sequence(3) };
        assert_eq!(estate.rule(&cluster, ruled, Sequence(0), &Log::new(Boundary::default())), Ok(Sequence(0)));
        assert_eq!(execute(&cluster, &mut estate, add(1), true), Outcome::Refused(Refusal::Disputed));
        assert_eq!(execute(&cluster, &mut estate, close(1), true), Outcome::Refused(Refusal::Undone));
        assert_eq!(estate.closed(), None);
        execute(&cluster, &mut estate, add(2), true);
        assert!(matches!(execute(&cluster, &mut estate, close(2), true), Outcome::Done { .. }));
        assert_eq!(estate.closed(), Some(4));
    }

    #[test]
    fn only_who_is_named_closes_and_no_query_does() {
        assert!(close(1).is_close() && close(1).to_string().starts_with("CLOSE "));
        assert!(!close(1).as_ordered_query().is_close() && !add(1).is_close());
        for identity in [IdentityId::MEMBERS, IdentityId::JOINING, IdentityId::SYSTEM] {
            let client = ClientId { identity, session: CONTROL_SESSION };
            assert!(!Request::new(INSTANCE, client, Timestamp(1), false, Bytes::new()).is_close(), "{identity:?}");
        }
        let client = ClientId { identity: IdentityId(1), session: CONTROL_SESSION };
        assert!(!Request::new(INSTANCE, client, Timestamp(1), true, Bytes::new()).is_close(), "a query");
    }
}
