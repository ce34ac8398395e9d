//! What clients try: floods, MACs that convince some replicas only, two operations under one number.

use crate::auth::Tag;
use crate::cluster::InstanceId;
use crate::compositions::Protocol;
use crate::compositions::tests::run::Run;
use crate::message::{Message, Request};
use crate::rejection::Rejection;
use crate::testing::net::{c, r};
use alloc::vec;

/// The request without good MACs but for some replicas.
fn spoilt(mut request: Request, good: &[usize]) -> Request {
    let tags = request.authentication.tags.iter().enumerate();
    let zero = Tag::from_bytes([0; 16]);
    request.authentication.tags = tags.map(|(id, tag)| if good.contains(&id) { tag } else { zero }).collect();
    request
}

/// K1: a client floods the head. It has one place in the queue, like everybody else.
#[test]
fn k01_a_flood_takes_one_place_in_the_queue() {
    for protocol in [Protocol::ZLight, Protocol::Chain] {
        let mut run = Run::new(protocol, 4, 2, 1);
        for timestamp in 1..=300 {
            let operation = run.reserve();
            let request = run.net.request(InstanceId(1), 1, timestamp, &operation);
            run.ask(&request, [0]);
        }
        let much = vec![0; run.net.cluster.limits.operation_bytes_max + 1];
        let request = run.net.request(InstanceId(1), 1, 301, &much);
        run.ask(&request, [0]);
        run.invoke(0);
        run.settle();
        assert!(run.is_idle(), "{protocol}");
        assert_eq!(run.net.rejected(0, c(1), Rejection::Duplicate), 299, "{protocol}");
        assert_eq!(run.net.rejected(0, c(1), Rejection::BadBatch), 1, "{protocol}");
        assert!(!run.anybody_said("PANIC"), "{protocol}");
        run.check();
    }
}

/// K2: requests whose MACs convince some replicas only: the first, all but one, only the last. Each costs one instance
/// at most. A Backup has a primary that wants a signature, and does not notice.
#[test]
fn k02_malformed_macs_cost_one_instance_and_no_backup() {
    for protocol in [Protocol::Quorum, Protocol::ZLight, Protocol::Chain] {
        for good in [&[0][..], &[0, 1, 2], &[3]] {
            let mut run = Run::new(protocol, 4, 2, 1);
            let operation = run.reserve();
            let request = run.net.request(InstanceId(1), 1, 1, &operation);
            let request = spoilt(request.authenticate_for_all(&run.net.cluster, &run.net.client_keys), good);
            run.ask(&request, 0..4);
            run.invoke(0);
            run.finish();
            // Who is first decides in ZLight and Chain; in Chain the first f+1 places are to be convinced.
            let aborts = match protocol {
                Protocol::Quorum => true,
                Protocol::ZLight => good.contains(&0),
                _ => good == [0],
            };
            assert_eq!(run.instances(), [1 + u64::from(aborts); 4], "{protocol} {good:?}");
            if !aborts {
                continue;
            }
            let operation = run.reserve();
            let mut request = spoilt(run.net.request(InstanceId(2), 1, 2, &operation), good);
            request.authentication.signature = None;
            run.ask(&request, 0..4);
            run.invoke(0);
            run.finish();
            run.pass(10_000);
            assert_eq!(run.instances(), [2; 4], "{protocol} {good:?}");
            assert!(run.net.hosts.iter().all(|host| host.replica.report().view_changes == 0), "{protocol} {good:?}");
            run.check();
        }
    }
}

/// K16: two operations under one number, to different replicas: one of them at most is ever executed.
#[test]
fn k16_one_number_means_one_operation() {
    for protocol in [Protocol::Quorum, Protocol::ZLight, Protocol::Chain, Protocol::Aliph] {
        let mut run = Run::new(protocol, 4, 2, 1);
        let operations = [run.reserve(), run.reserve()];
        for round in 0..4 {
            for instance in run.instances().into_iter().map(InstanceId) {
                let [one, other] = operations.map(|operation| run.net.request(instance, 1, 1, &operation));
                run.ask(&one, [0, 1]);
                run.ask(&other, [2, 3]);
                run.ask(&other, [0]);
            }
            run.invoke(0);
            run.finish();
            assert_eq!(run.commits.len(), round + 1);
        }
        let names = operations.map(u32::from_le_bytes);
        for journal in run.journals() {
            assert!(journal.iter().filter(|name| names.contains(name)).count() <= 1, "{protocol}: {journal:?}");
        }
        run.check();
    }
}

/// Who is not the client cannot ask in its name: neither another identity nor a replica without its MACs.
#[test]
fn k02_nobody_asks_in_the_name_of_another() {
    let mut run = Run::new(Protocol::Quorum, 4, 2, 1);
    let operation = run.reserve();
    let request = spoilt(run.net.request(InstanceId(1), 1, 1, &operation), &[]);
    for id in 0..3 {
        run.net.forge(r(3), r(id), Message::Request(request.clone()));
    }
    run.invoke(0);
    run.settle();
    assert!(run.is_idle());
    assert_eq!(run.commits[0].history.len(), 1, "nothing came before it");
    assert!((0..3).all(|id| run.net.rejected(id, r(3), Rejection::UnauthenticRequest) == 1));
}
