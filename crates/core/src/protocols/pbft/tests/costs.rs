//! What a batch costs, counted: the formulas of `docs/protocols.md` are equations here.

use crate::cluster::{ClientAuth, Limits};
use crate::ids::Principal;
use crate::services::Counter;
use crate::testing::net::{Net, c, kind, r};
use alloc::collections::BTreeMap;
use alloc::string::String;

/// MACs that a principal made and checked.
type Macs = (u64, u64);

fn macs(net: &Net, of: Principal) -> Macs {
    let counters = net.keyring(of).counters();
    (counters.macs_made.get(), counters.macs_checked.get())
}

/// One batch of `requests` requests at 3f+1 replicas: MACs at primary, backup and clients together, and frames of
/// each kind.
fn one_batch(f: usize, requests: u32, auth: ClientAuth) -> (Net, [Macs; 3], BTreeMap<String, usize>) {
    let mut net = Net::with(3 * f + 1, requests, auth, Limits::default());
    let parties = [r(0), r(1), c(0)];
    let before = parties.map(|party| macs(&net, party));
    for session in 0..requests {
        net.submit(session as usize, &Counter::add(1), false);
    }
    net.settle();
    assert_eq!(net.completed.len(), requests as usize);
    assert!(net.executed().iter().all(|executed| *executed == 1), "one batch");
    let after = parties.map(|party| macs(&net, party));
    let mut frames = BTreeMap::new();
    for frame in &net.sent {
        *frames.entry(kind(&frame.message)).or_default() += 1;
    }
    (net, core::array::from_fn(|i| (after[i].0 - before[i].0, after[i].1 - before[i].1)), frames)
}

const FAULTS: [usize; 3] = [1, 2, 3];
const REQUESTS: [u32; 3] = [1, 8, 64];

#[test]
fn a_batch_costs_the_macs_that_the_formulas_say() {
    for f in FAULTS {
        for requests in REQUESTS {
            let (n, b) = (3 * f as u64 + 1, u64::from(requests));
            let (_, [primary, backup, clients], _) = one_batch(f, requests, ClientAuth::Mac);
            let case = alloc::format!("f = {f}, b = {b}");
            // PRE-PREPARE and COMMIT to every backup, and a reply to every request; b requests, n−1 PREPAREs and n−1
            // COMMITs.
            assert_eq!(primary, (2 * (n - 1) + b, 2 * (n - 1) + b), "primary, {case}");
            // PREPARE and COMMIT to everybody, and the replies; PRE-PREPARE, b requests in it, n−2 PREPAREs, n−1
            // COMMITs.
            assert_eq!(backup, (2 * (n - 1) + b, 2 * (n - 1) + b), "backup, {case}");
            // An authenticator of n entries for every request, and n replies.
            assert_eq!(clients, (n * b, n * b), "clients, {case}");
        }
    }
}

#[test]
fn a_batch_costs_the_messages_that_the_table_says() {
    for f in FAULTS {
        for requests in REQUESTS {
            let (n, b) = (3 * f + 1, requests as usize);
            let (_, _, frames) = one_batch(f, requests, ClientAuth::Mac);
            let expected = [
                ("COMMIT", n * (n - 1)),
                ("PRE-PREPARE", n - 1),
                ("PREPARE", (n - 1) * (n - 1)),
                ("REPLY", n * b),
                ("REQUEST", b),
            ];
            let expected: BTreeMap<String, usize> = expected.map(|(kind, count)| (kind.into(), count)).into();
            assert_eq!(frames, expected, "f = {f}, b = {b}");
        }
    }
}

/// What hybrid mode adds: a signature by the client and one check at the primary; backups are content with MACs.
#[test]
fn hybrid_mode_adds_two_signature_operations_per_request() {
    for f in FAULTS {
        let (net, [primary, backup, _], _) = one_batch(f, 8, ClientAuth::Hybrid);
        let n = 3 * f as u64 + 1;
        assert_eq!([primary, backup], [(2 * (n - 1) + 8, 2 * (n - 1) + 8); 2]);
        let signatures = |of| {
            let counters = net.keyring(of).counters();
            (counters.signatures_made.get(), counters.signatures_checked.get())
        };
        assert_eq!(signatures(c(0)), (8, 0));
        assert_eq!(signatures(r(0)), (0, 8));
        assert!((1..n as u8).all(|id| signatures(r(id)) == (0, 0)));
    }
}

/// Per checkpoint: one signature made by each replica; each checks those of the others until it has a certificate.
#[test]
fn a_checkpoint_costs_one_signature_each() {
    for f in FAULTS {
        let n = 3 * f + 1;
        let mut net = Net::with(n, 1, ClientAuth::Mac, Limits { checkpoint_interval: 2, ..Limits::default() });
        net.add(1).unwrap();
        net.add(1).unwrap();
        let frames = net.sent.iter().filter(|frame| kind(&frame.message) == "CHECKPOINT").count();
        assert_eq!(frames, n * (n - 1));
        for id in 0..n as u8 {
            let counters = net.keyring(r(id)).counters();
            assert_eq!(counters.signatures_made.get(), 1);
            assert_eq!(counters.signatures_checked.get(), 2 * f as u64, "its own and 2f others are a certificate");
        }
    }
}

/// The table in `docs/protocols.md`: frames for each request, to one decimal.
#[test]
fn the_page_shows_what_was_counted() {
    let page = include_str!("../../../../../../docs/protocols.md");
    for f in FAULTS {
        let mut row = alloc::format!("| {} (f = {f}) |", 3 * f + 1);
        for requests in REQUESTS {
            let (_, _, frames) = one_batch(f, requests, ClientAuth::Mac);
            let total: usize = frames.values().sum();
            let tenths = (10 * total + requests as usize / 2) / requests as usize;
            row += &match (tenths / 10, tenths % 10) {
                (whole, 0) => alloc::format!(" {whole} |"),
                (whole, tenth) => alloc::format!(" {whole}.{tenth} |"),
            };
        }
        assert!(page.contains(&row), "{row}");
    }
}
