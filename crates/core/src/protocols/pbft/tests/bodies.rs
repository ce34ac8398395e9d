//! What a batch only refers to: bodies are fetched, believed for what they are, and mend whatever waits for them.

use super::forging::{batch, commit, pre_prepare, request};
use crate::auth::{Authenticator, Tag};
use crate::batch::{Batch, Entry, Reference};
use crate::cluster::{ClientAuth, Limits};
use crate::digest::Digest;
use crate::ids::InstanceId;
use crate::message::Request;
use crate::protocols::pbft::{Ordering, PbftMessage};
use crate::registry::Message;
use crate::rejection::Rejection;
use crate::service::{Agreed, Asker, BadState, NotReadOnly, PageNumber, Proposal, Service};
use crate::services::Counter;
use crate::testing::net::{Net, c, done, kind, ordering, r};
use alloc::boxed::Box;
use alloc::sync::Arc;
use alloc::vec;
use alloc::vec::Vec;
use bytes::Bytes;

/// Every addition travels by reference.
fn small_inline() -> Limits {
    Limits { inline_bytes_max: 4, ..Limits::default() }
}

fn proposed<S: Service>(net: &Net<S>, entries: Vec<Entry>) -> Arc<Batch> {
    Arc::new(Batch::new(Proposal { time: net.now, ..Proposal::default() }, entries))
}

fn referring<S: Service>(net: &Net<S>, requests: &[&Request]) -> Arc<Batch> {
    proposed(net, requests.iter().map(|request| Entry::Reference(Reference::to(request))).collect())
}

fn body(request: &Request) -> Message {
    ordering(PbftMessage::Body(Box::new(request.clone())))
}

/// The same request, its proof spoilt.
fn spoilt(request: &Request) -> Request {
    let mut request = request.clone();
    request.authentication.tags = [Tag::from_bytes([0xee; 16]); 4].into_iter().collect::<Authenticator>();
    request.authentication.signature = None;
    request
}

/// r0, the primary, tells r1 and r2 one batch and r3 another form of it, which r3 can never complete. It commits with
/// r1 and r2, and says nothing more. Three correct replicas are left, and none of them may be lost.
fn goes_on_after(in_full: bool, other: impl Fn(&Request) -> Entry) {
    let limits = if in_full { Limits::default() } else { small_inline() };
    let mut net = Net::with(4, 2, ClientAuth::Hybrid, limits);
    net.isolate(&[0]);
    let asked = request(&net, 1, 1, &Counter::add(1));
    let right = if in_full { Entry::Inline(asked.clone()) } else { Entry::Reference(Reference::to(&asked)) };
    let (right, wrong) = (proposed(&net, vec![right]), proposed(&net, vec![other(&asked)]));
    for id in [1, 2] {
        net.forge(c(1), r(id), Message::Request(asked.clone()));
    }
    net.settle();
    for (id, batch) in [(1, &right), (2, &right), (3, &wrong)] {
        net.forge(r(0), r(id), pre_prepare(0, 1, batch));
    }
    for id in 1..4 {
        net.forge(r(0), r(id), commit(0, 1, right.digest()));
    }
    net.settle();
    let now = net.add(1);
    net.pass(30_000_000);
    let answer = now.or_else(|| net.completed.pop().map(|completed| completed.result));
    assert!(answer == done(1) || answer == done(2), "{answer:?}, executed {:?}", net.executed());
    assert!(net.executed()[1..].iter().all(|executed| *executed > 0));
}

#[test]
fn one_form_for_each_replica_stops_nobody() {
    goes_on_after(true, |request| Entry::Reference(Reference::to(request)));
    goes_on_after(false, |request| Entry::Inline(request.clone()));
    for length in [0, 7, 9, u32::MAX] {
        goes_on_after(false, |request| Entry::Reference(Reference { length, ..Reference::to(request) }));
    }
}

/// No batch has two requests of one client, however it names them: whose a request is stands in the request.
#[test]
fn no_client_hides_behind_a_reference() {
    let big = |net: &Net, timestamp| request(net, 0, timestamp, &Counter::add(timestamp));
    let small = |net: &Net| request(net, 0, 3, &[7; 4]);
    let forms: [fn(&Request, Request) -> Vec<Entry>; 2] = [
        |first, second| [first, &second].map(|request| Entry::Reference(Reference::to(request))).to_vec(),
        |first, second| vec![Entry::Reference(Reference::to(first)), Entry::Inline(second)],
    ];
    for (form, in_full) in forms.into_iter().zip([false, true]) {
        let mut net = Net::with(4, 2, ClientAuth::Hybrid, small_inline());
        net.isolate(&[0]);
        let (first, second) = (big(&net, 1), if in_full { small(&net) } else { big(&net, 2) });
        let proposal = proposed(&net, form(&first, second.clone()));
        (1..4).for_each(|id| net.forge(r(0), r(id), pre_prepare(0, 1, &proposal)));
        net.round();
        for request in [&first, &second] {
            (1..4).for_each(|id| net.forge(r(0), r(id), body(request)));
        }
        net.settle();
        assert!((1..4).all(|id| net.said(r(id), "PREPARE").is_empty()));
        assert!((1..4).all(|id| net.rejected(id, r(0), Rejection::BadBatch) > 0));
    }
}

/// Its signature would take as long as ten other messages, and to send it again costs a liar nothing.
#[test]
fn a_body_that_nobody_asked_for_costs_no_signature() {
    let mut net = Net::with(4, 2, ClientAuth::Hybrid, small_inline());
    let mut unasked = request(&net, 0, 1, &Counter::add(1));
    unasked.authentication.tags = [Tag::from_bytes([0xee; 16]); 4].into_iter().collect::<Authenticator>();
    let checked = |net: &Net| net.hosts[1].replica.keyring().counters().signatures_checked.get();
    let before = checked(&net);
    (0..5).for_each(|_| net.forge(r(3), r(1), body(&unasked)));
    net.settle();
    assert_eq!((checked(&net), net.rejected(1, r(3), Rejection::Unsolicited)), (before, 5));
}

/// One request at two positions, and nobody has it: when it comes, both go on.
#[test]
fn a_body_mends_every_position_that_waits_for_it() {
    let mut net = Net::with(4, 2, ClientAuth::Hybrid, small_inline());
    net.isolate(&[0]);
    let (first, second) = (request(&net, 0, 1, &Counter::add(1)), request(&net, 1, 1, &Counter::add(2)));
    for (sequence, requests) in [(1, vec![&first]), (2, vec![&second, &first]), (3, vec![&first])] {
        let proposal = referring(&net, &requests);
        (1..4).for_each(|id| net.forge(r(0), r(id), pre_prepare(0, sequence, &proposal)));
    }
    net.round();
    for request in [&first, &second] {
        (1..4).for_each(|id| net.forge(r(0), r(id), body(request)));
        net.round();
    }
    assert!((1..4).all(|id| net.said(r(id), "PREPARE").len() == 9), "three positions, three receivers");
    net.settle();
    assert_eq!(net.executed(), [0, 3, 3, 3]);
}

/// r3 is told another batch than all others, and waits for a body of each, at one position. It looks at what it was
/// told again and again, because something stands where only rulings may; what comes for the decided one lets it go on.
#[test]
fn a_body_of_what_was_decided_lets_a_replica_go_on_that_was_told_something_else() {
    let mut net = Net::with(4, 2, ClientAuth::Hybrid, small_inline());
    net.lose(|_| true);
    let (told, asked) = (request(&net, 0, 1, &Counter::add(1)), request(&net, 1, 1, &Counter::add(2)));
    let (other, decided) = (referring(&net, &[&told]), referring(&net, &[&asked]));
    net.forge(r(0), r(3), pre_prepare(0, 1, &other));
    net.settle();
    for id in 0..3 {
        net.forge(r(id), r(3), commit(0, 1, decided.digest()));
    }
    net.settle();
    net.forge(r(0), r(3), ordering(PbftMessage::Batch(decided)));
    net.settle();
    let last = net.cluster.window();
    net.forge(r(0), r(3), pre_prepare(0, last, &other));
    net.settle();
    assert_eq!(net.executed()[3], 0);
    net.forge(r(0), r(3), body(&asked));
    net.settle();
    assert_eq!(net.executed()[3], 1);
}

/// NEW-VIEW chooses one batch at two positions, and r3 has to fetch it: then it accepts both, without which the other
/// two could go no further.
#[test]
fn a_batch_mends_every_position_that_waits_for_it() {
    let mut net = Net::with(4, 2, ClientAuth::Hybrid, Limits::default());
    net.lose(|frame| kind(&frame.message) == "COMMIT" || [frame.from, frame.to].contains(&r(0)));
    let proposal = batch(net.now, vec![request(&net, 1, 1, &Counter::add(5))]);
    for id in [1, 2] {
        (1..3).for_each(|sequence| net.forge(r(0), r(id), pre_prepare(0, sequence, &proposal)));
    }
    net.settle();
    assert_eq!(net.add(1), None);
    // The batch comes when every vote for it is there.
    net.lose(|frame| {
        let vote = match &frame.message {
            Message::Ordering(Ordering { message: PbftMessage::Commit(vote), .. }) => Some(vote),
            _ => None,
        };
        vote.is_some_and(|vote| vote.view.0 == 0)
            || kind(&frame.message) == "BATCH"
            || [frame.from, frame.to].contains(&r(0))
    });
    net.pass(3_000_000);
    assert_eq!(net.views()[1..], [1; 3]);
    net.forge(r(1), r(3), ordering(PbftMessage::Batch(proposal)));
    net.settle();
    assert!(net.executed()[1..].iter().all(|executed| *executed >= 2), "{:?}", net.executed());
}

/// A faulty client gives its request to the primary only, and a liar is the first to answer who lacks it, with a proof
/// that it has spoilt. The true copy convinces all the same, so no correct primary loses its view.
#[test]
fn a_spoilt_copy_of_a_body_does_not_keep_out_a_good_one() {
    let mut net = Net::with(4, 2, ClientAuth::Hybrid, small_inline());
    net.lose(|frame| frame.from == r(3));
    let asked = request(&net, 1, 1, &Counter::add(5));
    net.forge(c(1), r(0), Message::Request(asked.clone()));
    net.round();
    net.round();
    assert_eq!(net.said(r(1), "FETCH-REQUEST").len(), 1);
    for id in [1, 2] {
        net.forge(r(3), r(id), body(&spoilt(&asked)));
    }
    net.settle();
    net.pass(1_000_000);
    assert_eq!(net.executed()[..3], [1; 3]);
    assert_eq!(net.views(), [0; 4]);
}

/// A batch's digest does not cover the instance of its requests: a fetched copy in which somebody has changed that is
/// not taken, and the true one still is.
#[test]
fn a_fetched_batch_is_checked_for_what_its_digest_does_not_cover() {
    let mut net = Net::with(4, 2, ClientAuth::Hybrid, Limits::default());
    net.lose(|frame| frame.to == r(3) && ["PRE-PREPARE", "BATCH"].contains(&kind(&frame.message).as_str()));
    assert_eq!(net.add(1), done(1));
    let said = net.said(r(0), "PRE-PREPARE")[0].message.clone();
    let Message::Ordering(Ordering { message: PbftMessage::PrePrepare(said), .. }) = said else { unreachable!() };
    let mut elsewhere = said.batch.entries()[0].inline().expect("it is small").clone();
    elsewhere.instance = InstanceId(9);
    let changed = Arc::new(Batch::new(said.batch.proposal().clone(), vec![Entry::Inline(elsewhere)]));
    assert_eq!(changed.digest(), said.batch.digest());
    net.forge(r(1), r(3), ordering(PbftMessage::Batch(changed)));
    net.settle();
    assert_eq!(net.rejected(3, r(1), Rejection::BadBatch), 1);
    assert_eq!(net.executed(), [1, 1, 1, 0]);
    net.forge(r(1), r(3), ordering(PbftMessage::Batch(said.batch)));
    net.settle();
    assert_eq!(net.executed(), [1; 4]);
}

/// Bodies count as if they stood in the batch, before any of them is fetched; and what is small stands there.
#[test]
fn what_a_batch_refers_to_is_bounded_before_it_comes() {
    let limits = Limits { batch_bytes_max: 20, ..small_inline() };
    let mut net = Net::with(4, 3, ClientAuth::Hybrid, limits);
    net.isolate(&[0]);
    let asked = |session, size| request(&net, session, 1, &[7; 32][..size]);
    let batches = [
        [asked(0, 8), asked(1, 8), asked(2, 8)]
            .iter()
            .map(|request| Entry::Reference(Reference::to(request)))
            .collect(),
        vec![Entry::Reference(Reference::to(&asked(0, 4)))],
    ];
    for (number, entries) in batches.into_iter().enumerate() {
        let proposal = proposed(&net, entries);
        net.forge(r(0), r(1), pre_prepare(0, 1, &proposal));
        net.settle();
        assert_eq!(net.rejected(1, r(0), Rejection::BadBatch), 1 + number as u64);
    }
    assert!(net.said(r(1), "FETCH-REQUEST").is_empty());
    let alone = referring(&net, &[&request(&net, 0, 1, &[7; 32])]);
    net.forge(r(0), r(1), pre_prepare(0, 1, &alone));
    net.settle();
    assert_eq!(net.said(r(1), "FETCH-REQUEST").len(), 1);
}

/// A counter that agrees to no addition of nine.
#[derive(Debug, Default)]
struct Choosy(Counter);

impl Service for Choosy {
    fn execute(&mut self, operation: &[u8], agreed: &Agreed) -> Bytes {
        self.0.execute(operation, agreed)
    }
    fn take_written(&mut self) -> Digest {
        self.0.take_written()
    }
    fn query(&self, operation: &[u8], asker: &Asker) -> Result<Bytes, NotReadOnly> {
        self.0.query(operation, asker)
    }
    fn validate(&self, _proposal: &Proposal, operation: &[u8]) -> bool {
        operation != Counter::add(9)
    }
    fn save(&mut self, write: &mut dyn FnMut(PageNumber, Option<Bytes>)) {
        self.0.save(write);
    }
    fn load(&mut self, pages: &mut dyn Iterator<Item = (PageNumber, Option<Bytes>)>) -> Result<(), BadState> {
        self.0.load(pages)
    }
}

/// prac-F27: the service is asked about big requests as well, once they are here.
#[test]
fn a_service_is_asked_about_what_a_batch_refers_to() {
    for (amount, accepted) in [(8, true), (9, false)] {
        let mut net = Net::serving(4, 2, ClientAuth::Hybrid, small_inline(), |_| Choosy::default());
        net.submit(0, &Counter::add(amount), false);
        net.settle();
        assert_eq!(!net.said(r(1), "PREPARE").is_empty(), accepted);
    }
}

/// The same of a copy that takes the place of one with spoilt proofs: its client has asked in another instance as well,
/// and the proofs hold there. Were it kept, r1 and r2 would hold what r3 refuses, and r3 could not go on with them.
#[test]
fn a_better_copy_of_a_batch_is_checked_for_what_its_digest_does_not_cover() {
    let mut net = Net::with(4, 2, ClientAuth::Hybrid, Limits::default());
    net.isolate(&[0]);
    let elsewhere = net.request(InstanceId(2), 1, 1, &Counter::add(1));
    let here = spoilt(&request(&net, 1, 1, &Counter::add(1)));
    for request in [here, elsewhere] {
        let proposal = proposed(&net, vec![Entry::Inline(request)]);
        (1..3).for_each(|id| net.forge(r(0), r(id), pre_prepare(0, 1, &proposal)));
        net.settle();
    }
    let now = net.add(1);
    net.pass(60_000_000);
    let answer = now.or_else(|| net.completed.pop().map(|completed| completed.result));
    assert!(answer == done(1) || answer == done(2), "{answer:?}, executed {:?}", net.executed());
    for (at, of) in [(1, 2), (1, 3), (2, 1), (2, 3), (3, 1), (3, 2)] {
        assert_eq!(net.rejected(at, r(of), Rejection::BadBatch), 0, "r{at} blames r{of}");
    }
}

/// Whoever serves a body knows nothing of the reference because of which it is asked for: that this says less than the
/// body has is the fault of whoever proposed it.
#[test]
fn who_serves_a_body_is_not_to_blame_for_the_reference() {
    let mut net = Net::with(4, 2, ClientAuth::Hybrid, small_inline());
    net.isolate(&[0]);
    let asked = request(&net, 1, 1, &Counter::add(1));
    (1..4).for_each(|id| net.forge(c(1), r(id), Message::Request(asked.clone())));
    net.settle();
    let short = Entry::Reference(Reference { length: 7, ..Reference::to(&asked) });
    let proposal = proposed(&net, vec![short]);
    (1..4).for_each(|id| net.forge(r(0), r(id), pre_prepare(0, 1, &proposal)));
    net.settle();
    net.add(1);
    net.pass(30_000_000);
    for at in 1..4 {
        let others = (1..4).filter(|of| *of != at);
        assert!(others.into_iter().all(|of| net.rejected(at as usize, r(of), Rejection::BadBatch) == 0), "r{at}");
    }
}
