//! What may go wrong where an instance of a total order begins and ends: requests before its init history, k, answers
//! that are not final, reads.

use crate::batch::{Batch, Entry, Reference};
use crate::cluster::{Cluster, Limits};
use crate::compositions::tests::run::Run;
use crate::compositions::tests::script::{Report, panic, proof, report_in};
use crate::digest::Digest;
use crate::ids::{InstanceId, ReplicaId, Sequence, View};
use crate::message::Request;
use crate::protocols::pbft::{Ordering, PbftMessage, PrePrepare};
use crate::registry::Message;
use crate::rejection::Rejection;
use crate::schedule::{Protocol, Quota};
use crate::service::Proposal;
use crate::testing::net::{c, kind, r};
use alloc::collections::BTreeMap;
use alloc::sync::Arc;
use alloc::vec;
use alloc::vec::Vec;

const BACKUP: InstanceId = InstanceId(2);

/// ZLight is over, and every replica has opened the Backup behind it, with these reports. What they say is in flight.
fn backup(run: &mut Run) -> Vec<Report> {
    let reports: Vec<Report> = run.stop(InstanceId(1)).into_values().collect();
    let chosen = [&reports[0], &reports[1], &reports[2]];
    run.begin([chosen; 4]);
    reports
}

/// A batch, as the first primary proposes it.
fn proposed(run: &Run, sequence: u64, requests: Vec<Request>) -> Message {
    let proposal = Proposal { time: run.net.now, seed: Digest::ZERO };
    let batch = Arc::new(Batch::new(proposal, requests.into_iter().map(Entry::Inline).collect()));
    let pre_prepare = PrePrepare { view: View(0), sequence: Sequence(sequence), batch };
    Message::Ordering(Ordering { instance: BACKUP, message: PbftMessage::PrePrepare(pre_prepare) })
}

/// abs-L3: the primary orders a client's request before the INIT, in one batch. It is held until the init history is
/// there, and answered; were it ignored, the order would take its repetitions for duplicates.
#[test]
fn l3_what_is_ordered_before_the_init_is_held() {
    let mut run = Run::new(Protocol::ZLight, 4, 2, 1);
    run.liar = Some(0);
    run.invoke(0);
    run.net.lose(|frame| frame.from == r(0));
    let reports = backup(&mut run);
    let request = asked_again(&mut run, 0);
    let init = Request::init(BACKUP, ReplicaId(0), &proof(&reports[..3]));
    for id in 1..4 {
        run.net.forge(r(0), r(id), proposed(&run, 1, vec![request.clone(), init.clone()]));
    }
    run.settle();
    assert!(run.is_idle(), "answered by the other three, without a timer");
    assert_eq!(run.commits[0].instance, BACKUP);
    run.net.heal();
    run.invoke(1);
    run.finish();
    run.check();
}

/// abs-L3: one replica has executed what is not in the init history. Until that is decided, nothing that waits for the
/// order is over because that state says so.
#[test]
fn l3_nothing_is_over_by_a_state_that_is_taken_back() {
    let mut run = Run::new(Protocol::Quorum, 4, 2, 1);
    run.invoke(0);
    run.round_of(|frame| frame.to == r(1));
    assert_eq!(run.journals(), [vec![], vec![1], vec![], vec![]]);
    let reports = run.stop(InstanceId(1));
    run.net.lose(|frame| frame.from != c(0));
    run.begin([[&reports[&0], &reports[&2], &reports[&3]]; 4]);
    run.redirect(0, BACKUP);
    run.settle();
    run.net.lose(|_| true);
    let pending = |run: &Run| run.net.hosts.iter().map(|host| host.replica.report().pending_requests).collect();
    let waiting: Vec<usize> = pending(&run);
    assert!(waiting.iter().all(|number| *number == 2), "INIT, and what the client asks: {waiting:?}");
    run.net.pass(1_000_000);
    assert_eq!(waiting, pending(&run));
    run.net.heal();
    run.finish();
    run.check();
}

/// abs-L3: the first primary of a Backup is silent, and nobody asks for anything. The others leave its view for an INIT
/// of their own, however big that is, which they pass on to nobody.
#[test]
fn l3_a_backup_begins_although_nobody_asks() {
    for inline_bytes_max in [100, 10_000] {
        let of_run = Run::cluster(Protocol::Quorum, 4);
        let limits = Limits { inline_bytes_max, ..of_run.limits };
        let mut run = Run::of(Cluster { limits, ..of_run }, 2, 1);
        let primary = run.net.cluster.replicas.primary(run.net.cluster.specification(BACKUP).view).0;
        let reports = run.stop(InstanceId(1));
        run.net.lose(move |frame| frame.from == r(primary));
        run.begin([[&reports[&0], &reports[&1], &reports[&2]]; 4]);
        run.pass(10_000);
        for id in (0..4).filter(|id| *id != primary) {
            assert_eq!(run.net.said(r(id), "REQUEST").is_empty(), inline_bytes_max == 100);
            assert!(run.net.hosts[usize::from(id)].replica.report().executed > Sequence(0), "{id} has begun");
        }
        let views = run.net.views();
        run.pass(60_000);
        assert_eq!(run.net.views(), views, "one INIT is enough");
        run.net.heal();
        run.finish();
        run.check();
    }
}

/// abs-L3: the first primary of a Backup is silent. The client's request, which is in the init history, is not over
/// before that has begun, although the states of the others say that it is executed: they leave the view for it.
#[test]
fn l3_nothing_is_over_before_the_backup_has_begun() {
    let of_run = Run::cluster(Protocol::Quorum, 4);
    let limits = Limits { inline_bytes_max: 100, ..of_run.limits };
    let mut run = Run::of(Cluster { limits, ..of_run }, 2, 1);
    run.net.lose(|frame| frame.to == c(0));
    run.invoke(0);
    run.settle();
    let primary = r(run.net.cluster.replicas.primary(run.net.cluster.specification(BACKUP).view).0);
    let reports = run.stop(InstanceId(1));
    run.net.lose(move |frame| frame.from == primary);
    run.begin([[&reports[&0], &reports[&1], &reports[&2]]; 4]);
    run.redirect(0, BACKUP);
    run.pass(10_000);
    assert!(run.is_idle(), "it is answered");
    run.check();
}

/// abs-L3: two replicas have to fetch a body of the init history. What is ordered meanwhile they hold, and execute
/// then.
#[test]
fn l3_what_is_ordered_while_bodies_are_fetched_is_held() {
    let mut run = Run::new(Protocol::Quorum, 4, 3, 1);
    run.invoke(1);
    run.round_of(|frame| frame.to <= r(1));
    let reports = run.stop(InstanceId(1));
    run.net.lose(|frame| kind(&frame.message) == "BODIES");
    run.begin([[&reports[&0], &reports[&1], &reports[&2]]; 4]);
    run.settle();
    run.redirect(0, BACKUP);
    run.invoke(0);
    run.settle();
    assert_eq!(run.commits.len(), 0, "two replicas have answered");
    assert_eq!(run.journals(), [vec![1, 2], vec![1, 2], vec![], vec![]]);
    run.net.heal();
    run.pass(1_000);
    assert_eq!(run.journals(), vec![vec![1, 2]; 4]);
    run.finish();
    run.check();
}

/// abs-L3: the primary fills the window with everything but an INIT. Nobody accepts that, and another view begins.
#[test]
fn l3_a_primary_that_orders_no_init_stops_nothing() {
    let mut run = Run::new(Protocol::ZLight, 4, 2, 1);
    run.liar = Some(0);
    run.invoke(0);
    run.net.lose(|frame| frame.from == r(0));
    backup(&mut run);
    let request = asked_again(&mut run, 0);
    for sequence in 1..=run.net.cluster.window() {
        let operation = run.reserve();
        let other = run.net.request(BACKUP, 1, sequence, &operation);
        let request = if sequence == 1 { request.clone() } else { other };
        for id in 1..4 {
            run.net.forge(r(0), r(id), proposed(&run, sequence, vec![request.clone()]));
        }
    }
    run.finish();
    run.check();
}

/// abs-L3: the same with big requests, which the batches only refer to. Whether one is an INIT stands in the request,
/// and nothing else is believed.
#[test]
fn l3_nothing_passes_for_an_init_by_reference() {
    let of_run = Run::cluster(Protocol::ZLight, 4);
    let limits = Limits { inline_bytes_max: 2, ..of_run.limits };
    let mut run = Run::of(Cluster { limits, ..of_run }, 2, 1);
    run.liar = Some(0);
    run.invoke(0);
    run.net.lose(|frame| frame.from == r(0));
    backup(&mut run);
    let request = asked_again(&mut run, 0);
    for sequence in 1..=run.net.cluster.window() {
        let operation = run.reserve();
        let other = run.net.request(BACKUP, 1, sequence, &operation);
        let request = if sequence == 1 { request.clone() } else { other };
        let proposal = Proposal { time: run.net.now, seed: Digest::ZERO };
        let batch = Arc::new(Batch::new(proposal, vec![Entry::Reference(Reference::to(&request))]));
        let pre_prepare = PbftMessage::PrePrepare(PrePrepare { view: View(0), sequence: Sequence(sequence), batch });
        for message in [pre_prepare, PbftMessage::Body(alloc::boxed::Box::new(request))] {
            for id in 1..4 {
                let message = Message::Ordering(Ordering { instance: BACKUP, message: message.clone() });
                run.net.forge(r(0), r(id), message);
            }
            run.round();
        }
    }
    assert!((1..4).all(|id| run.net.said(r(id), "PREPARE").is_empty()));
    run.finish();
    run.check();
}

/// What a client asks in the Backup that it could not ask before.
fn asked_again(run: &mut Run, session: u32) -> Request {
    run.net.in_flight.clear();
    run.redirect(session, BACKUP);
    let asks = run.net.in_flight.iter().rfind(|frame| frame.from == c(session));
    let Some(Message::Request(request)) = asks.map(|frame| frame.message.clone()) else { panic!("it asks") };
    run.net.in_flight.clear();
    request
}

/// abs-K15, abs-L5: one replica is down, so that only Backups commit anything. A client ends every instance that may be
/// ended, and fills each Backup before another client's request comes. k grows, so that the other client is served.
#[test]
fn k15_l5_a_client_that_fills_every_backup_starves_nobody() {
    let cluster = Cluster { quota: Quota::Exponential { minimum: 1 }, ..Run::cluster(Protocol::ZLight, 4) };
    let mut run = Run::of(cluster, 3, 1);
    run.net.isolate(&[3]);
    run.invoke(0);
    let (mut late, mut last) = (Vec::new(), InstanceId(0));
    for _ in 0..400 {
        let instance = InstanceId(run.instances().into_iter().max().unwrap_or(1));
        for session in if instance > last { 1..3 } else { 0..0 } {
            let operation = run.reserve();
            let request = run.net.request(instance, session, instance.0, &operation);
            run.ask(&request, 0..3);
        }
        last = instance;
        (0..3).for_each(|id| run.net.forge(c(1), r(id), panic(instance, 1)));
        // What the slow client asks comes a round later than everything else, and never in time for ZLight.
        let (slow, rest) = core::mem::take(&mut run.net.in_flight).into_iter().partition(|frame| frame.from == c(0));
        run.net.in_flight = rest;
        run.net.in_flight.extend(core::mem::replace(&mut late, slow));
        let misses = instance.0 % 2 == 1;
        run.net.in_flight.retain(|frame| !misses || frame.from != c(0) || frame.message.instance() != Some(instance));
        run.round();
        run.net.now.0 += 20_000;
        while run.net.fire_before(run.net.now) {}
        if run.is_idle() {
            break;
        }
    }
    assert!(run.is_idle(), "the slow client was served, in {:?}", run.instances());
    run.check();
}

/// abs-S6: the same Backup is opened with different proofs: by one of them load was low, so that k is the minimum, by
/// the other it was not. What counts is the one that was ordered (abs-D11).
#[test]
fn s6_k_is_what_the_ordered_init_says() {
    let cluster = Cluster { quota: Quota::Exponential { minimum: 1 }, ..Run::cluster(Protocol::ZLight, 4) };
    let mut run = Run::of(cluster, 2, 1);
    backup(&mut run);
    run.settle();
    run.redirect(0, BACKUP);
    run.invoke(0);
    run.settle();
    assert_eq!(run.instances(), [3; 4], "k of the first Backup is 1");
    let reports = run.stop(InstanceId(3));
    let low = |id: u8| {
        let mut report = reports[&id].clone();
        report.claims_mut().low_load = true;
        run.signed(id, &report)
    };
    let (low0, low1) = (low(0), low(1));
    let quiet = [&low0, &low1, &reports[&2]];
    let busy = [&low1, &reports[&2], &reports[&3]];
    run.begin([quiet, quiet, busy, busy]);
    run.settle();
    run.redirect(0, InstanceId(4));
    run.invoke(0);
    run.settle();
    let reports = run.net.sent.iter().filter_map(|frame| report_in(frame, InstanceId(4)));
    let ends: BTreeMap<ReplicaId, u64> = reports.map(|report| (report.signer(), report.claims().end())).collect();
    assert_eq!(ends.len(), 4, "all have ended it");
    assert!(ends.values().all(|end| *end == 2), "in the same place: {ends:?}");
    run.finish();
    run.check();
}

/// abs-S7: one replica alone knows that the k-th request is prepared. It answers tentatively, which alone is worth
/// nothing, and signs nothing about it, neither a checkpoint nor a report: in the next view something else may come in
/// its place (abs-D12).
#[test]
fn s7_nothing_is_signed_before_it_is_final() {
    let cluster = Cluster { quota: Quota::Fixed(1), ..Run::cluster(Protocol::ZLight, 4) };
    let mut run = Run::of(cluster, 3, 1);
    backup(&mut run);
    run.settle();
    run.redirect(0, BACKUP);
    run.invoke(0);
    let before = run.net.sent.len();
    run.round();
    run.round_of(|frame| kind(&frame.message) == "PRE-PREPARE");
    run.round_of(|frame| kind(&frame.message) == "PREPARE" && frame.to == r(2));
    assert!(run.net.said(r(2), "COMMIT").len() > 3, "it is prepared there");
    let of =
        |what| run.net.sent[before..].iter().filter(|frame| frame.from == r(2) && kind(&frame.message) == what).count();
    assert_eq!((of("REPLY"), of("CHECKPOINT"), of("ABORT")), (1, 0, 0));
    run.net.in_flight.clear();
    run.net.isolate(&[2]);
    run.invoke(1);
    run.finish();
    run.net.heal();
    run.invoke(2);
    run.finish();
    run.pass(2_000);
    let journals = run.journals();
    assert!(journals.iter().all(|journal| *journal == journals[0]), "{journals:?}");
    run.check();
}

/// abs-K24, abs-S12: a write reached all but one replica when its instance aborts, and is lost with it. Its client had
/// three answers, a reader would have had three as well: only all n are enough. Reads are ordered, before and after.
#[test]
fn k24_s12_a_read_sees_nothing_that_an_abort_drops() {
    for protocol in [Protocol::Quorum, Protocol::ZLight] {
        let mut run = Run::new(protocol, 4, 3, 1);
        run.liar = Some(1);
        run.read(0);
        run.settle();
        assert!(run.is_idle(), "ordered like a write, in {protocol}");
        run.net.lose(|frame| frame.to == r(3));
        run.invoke(1);
        run.settle();
        assert_eq!(run.journals(), [vec![1, 2], vec![1, 2], vec![1]]);
        assert_eq!(run.commits.len(), 1, "three answers are not enough");
        let reports = run.stop(InstanceId(1));
        let short = run.signed(1, &reports[&3]);
        assert_eq!(run.proved([&reports[&0], &short, &reports[&3]]).position, 1);
        run.net.heal();
        run.begin([[&reports[&0], &short, &reports[&3]]; 4]);
        run.read(0);
        run.finish();
        run.check();
    }
}

/// abs-S12: a query that is not to be ordered is answered by nobody, in no instance: it would pass by init history, k
/// and the end of the instance.
#[test]
fn k24_s12_no_replica_answers_a_query_by_itself() {
    let mut run = Run::new(Protocol::Aliph, 4, 3, 1);
    run.invoke(0);
    run.settle();
    for instance in 1..=4 {
        let operation = run.reserve();
        let mut query = run.net.request(InstanceId(instance), 1, instance, &operation);
        query = Request::new(query.instance, query.client, query.timestamp, true, query.operation);
        query = query.authenticate_for_all(&run.net.cluster, &run.net.client_keys);
        let before = run.net.sent.len();
        run.ask(&query, 0..4);
        run.settle();
        let answers = run.net.sent[before..].iter().filter(|frame| frame.to == c(1)).count();
        assert_eq!(answers, 0, "in instance {instance}");
        let rejected: Vec<u64> = (0..4).map(|id| run.net.rejected(id, c(1), Rejection::WrongSender)).collect();
        assert_eq!(rejected, [instance; 4], "in instance {instance} of {:?}", run.instances());
        while run.instances() == [instance; 4] {
            run.stop(InstanceId(instance));
            run.invoke(0);
            run.finish();
            run.pass(1_000);
        }
    }
    run.check();
}
