//! Replicas that lose their logs (rule A, abs-S13). [`super::run`] says what is checked in every run: among that, that
//! no replica ever reports an instance in two ways.

use super::conformance::{protocols, protocols_but_ritas, trouble};
use super::run::Run;
use crate::cluster::{ClientAuth, Cluster, Limits};
use crate::ids::InstanceId;
use crate::registry::Message;
use crate::schedule::{Order, Part, Protocol, Quota, Schedule};
use crate::services::Counter;
use crate::switching::{Switch, SwitchMessage};
use crate::testing::net::{Frame, Net, cluster, done, kind, r};
use alloc::vec::Vec;

/// What binds whoever says it.
const PROMISES: [&str; 22] = [
    "RESP",
    "ORDER",
    "CHAIN",
    "CHAIN-REPLY",
    "RING",
    "ACK",
    "PROBE",
    "RING-REPLY",
    "CERTAIN",
    "RING-ORDER",
    "PREP",
    "COMM",
    "RING-CHECKPOINT",
    "RING-STABLE",
    "LCS",
    "ABORT",
    "PRE-PREPARE",
    "PREPARE",
    "COMMIT",
    "VIEW-CHANGE",
    "NEW-VIEW",
    "CHECKPOINT",
];

/// The instances in which a replica has promised anything. The end of a Backup is no promise: it is the same for all.
fn speaks_in(run: &Run, id: u8) -> Vec<u64> {
    let promises = |frame: &&Frame| {
        let instance = frame.message.instance().unwrap_or_default();
        let is_end = run.net.cluster.part(instance).is_backup() && kind(&frame.message) == "ABORT";
        frame.from == r(id) && !is_end && PROMISES.contains(&kind(&frame.message).as_str())
    };
    run.net.sent.iter().filter(promises).map(|frame| instance_of(&frame.message)).collect()
}

/// The order of a Backup abstains by itself for as long as it must (PBFT 11).
fn is_backup(run: &Run, instance: u64) -> bool {
    run.net.cluster.part(InstanceId(instance)).is_backup()
}

fn instance_of(message: &Message) -> u64 {
    match message {
        Message::Checkpoint(vote) => vote.claims().instance.0,
        message => message.instance().unwrap_or_default().0,
    }
}

fn abstains(run: &Run, id: usize) -> bool {
    run.net.hosts[id].replica.report().abstaining
}

/// Operations until the first replica runs this instance.
fn work_until(run: &mut Run, instance: u64) {
    for _ in 0..200 {
        run.invoke(0);
        run.finish();
        if run.instances()[0] >= instance {
            return;
        }
        // Chain stands as long as nobody panics, and Ring as long as it goes around: they are deaf for a while.
        run.net
            .lose(|frame| matches!(kind(&frame.message).as_str(), "RESP" | "CHAIN-REPLY" | "RING" | "ACK" | "PROBE"));
        run.invoke(0);
        run.pass(3_000);
        run.net.heal();
        run.finish();
    }
    panic!("{} does not go on: {:?}", run.net.cluster.protocol, run.instances());
}

/// Rule A: wherever the others are when it comes back, it says nothing there nor in the next instance, and takes part
/// in the one after that. RITAS sees to it that rounds follow (Order 10), and that replica speaks again within a
/// Backup: `ritas/order/tests.rs`.
#[test]
fn a_replica_that_lost_its_log_says_nothing_where_it_may_have_spoken() {
    for protocol in protocols_but_ritas() {
        for reached in 1..=4 {
            let mut run = Run::new(protocol, 4, 1, reached);
            work_until(&mut run, reached);
            run.pass(3_000);
            let latest = run.instances().into_iter().max().unwrap();
            run.net.sent.clear();
            run.net.restart(3, true);
            run.pass(3_000);
            assert!(abstains(&run, 3), "{protocol:?} from {latest}");
            work_until(&mut run, latest + 2);
            run.pass(3_000);
            assert!(!abstains(&run, 3), "{protocol:?} from {latest}: {:?}", run.instances());
            run.invoke(0);
            run.finish();
            let spoken = speaks_in(&run, 3);
            assert!(!spoken.is_empty(), "{protocol:?}: it takes part again");
            assert!(
                spoken.iter().all(|instance| *instance >= latest + 2 || is_backup(&run, *instance)),
                "{protocol:?} from {latest}: {spoken:?}"
            );
            run.check();
            let journals = run.journals();
            assert!(journals[3].starts_with(&run.commits.last().unwrap().history));
        }
    }
}

/// Why the instance after the latest that the others name counts: it may have been the first to open it.
#[test]
fn nor_where_it_was_before_all_others() {
    let parts = [Part::Quorum, Part::ZLight, Part::Chain, Part::Backup(Order::Pbft)];
    let mut run = Run::new(Protocol::Schedule(Schedule::new(&parts).unwrap()), 4, 1, 5);
    run.invoke(0);
    run.finish();
    let ahead = |frame: &Frame| match kind(&frame.message).as_str() {
        "ABORT" => frame.to != r(3),
        "RESP" | "INIT" | "LCS" => true,
        _ => false,
    };
    run.net.lose(ahead);
    run.invoke(0);
    run.pass(3_000);
    assert_eq!(run.instances(), [1, 1, 1, 2]);
    assert!(speaks_in(&run, 3).contains(&2), "it has told its checkpoint there");
    run.net.restart(3, true);
    run.pass(1_000);
    run.net.heal();
    run.net.sent.clear();
    run.finish();
    work_until(&mut run, 3);
    run.pass(3_000);
    assert!(!abstains(&run, 3));
    assert!(speaks_in(&run, 3).iter().all(|instance| *instance >= 3), "{:?}", speaks_in(&run, 3));
    run.check();
}

/// A crash in the meantime ends nothing: the new log says what is missing from it, also when it begins anew with a
/// state that was fetched.
#[test]
fn a_restart_does_not_end_the_silence() {
    for protocol in protocols_but_ritas() {
        for reached in 2..=4 {
            let mut run = Run::new(protocol, 4, 1, 9);
            work_until(&mut run, reached);
            run.pass(3_000);
            run.net.sent.clear();
            run.net.lose(|frame| kind(&frame.message) == "HERE");
            run.net.restart(3, true);
            run.pass(2_000);
            let latest = run.instances().into_iter().max().unwrap();
            for _ in 0..2 {
                // First it does not know where it may speak, then it does.
                run.net.restart(3, false);
                assert!(abstains(&run, 3), "{protocol:?} from {reached}");
                run.net.heal();
                run.pass(2_000);
            }
            assert!(abstains(&run, 3));
            work_until(&mut run, latest + 2);
            run.pass(3_000);
            run.net.restart(3, false);
            assert!(!abstains(&run, 3), "{protocol:?} from {reached}: and it is not silent for ever");
            run.pass(3_000);
            run.invoke(0);
            run.finish();
            let spoken = speaks_in(&run, 3);
            assert!(
                spoken.iter().all(|instance| *instance >= latest + 2 || is_backup(&run, *instance)),
                "{protocol:?} from {reached}: {spoken:?}"
            );
            run.check();
        }
    }
}

/// One log after the other is lost, among lost messages and contention: nothing that committed is.
#[test]
fn whoever_loses_its_log_the_orders_hold() {
    for protocol in protocols() {
        for seed in 0..6 {
            let mut run = Run::new(protocol, 4, 3, 2_000 + seed);
            trouble(&mut run, 90, lose_a_log);
            run.finish();
            run.check();
            assert!(run.net.sent.iter().any(|frame| kind(&frame.message) == "LOST"));
        }
    }
}

/// At most one at a time: whoever is silent is the one faulty replica.
fn lose_a_log(run: &mut Run) {
    let somebody = run.random.below(run.net.hosts.len());
    if run.random.once_in(8) && (0..run.net.hosts.len()).all(|id| !abstains(run, id)) {
        run.net.restart(somebody, true);
    }
}

/// A Backup may last: there the order's own rule A lets the replica vote again before the end, and a restart does not
/// take that back.
#[test]
fn in_a_long_backup_it_votes_when_the_order_lets_it() {
    let limits = Limits { checkpoint_interval: 4, ..Limits::default() };
    let cluster = cluster(4, ClientAuth::Hybrid, limits).with_protocol(Protocol::Quorum);
    let cluster = Cluster { quota: Quota::Fixed(1_000), ..cluster };
    let mut net = Net::of(cluster, 1, |_| Counter::default());
    assert_eq!(net.add(1), done(1));
    net.restart(3, true);
    net.add(1);
    net.pass(5_000_000);
    let votes = |net: &Net| !net.said(r(3), "PREPARE").is_empty();
    let report = net.hosts[3].replica.report();
    assert!((report.instance, report.abstaining) == (InstanceId(2), true) && !votes(&net));
    for value in 3..=30 {
        assert_eq!(net.add(1), done(value));
        net.pass(100_000);
    }
    net.pass(9_000_000);
    net.restart(3, false);
    net.settle();
    let report = net.hosts[3].replica.report();
    assert!((report.instance, report.abstaining) == (InstanceId(2), false), "in the same Backup: {report:?}");
    assert_eq!(net.add(1), done(31));
    assert!(votes(&net));
}

fn still_asks(run: &mut Run) -> bool {
    run.settle();
    run.net.sent.clear();
    run.pass(1_000);
    run.anybody_said("LOST")
}

/// What answers another question than the last one may have been said before the loss; and an instance that nobody
/// proves to have begun keeps nobody silent.
#[test]
fn only_answers_to_its_own_question_count_and_only_where_it_has_been() {
    let mut run = Run::new(Protocol::Aliph, 7, 1, 3);
    run.invoke(0);
    run.finish();
    run.net.lose(|frame| kind(&frame.message) == "HERE");
    run.net.restart(5, true);
    run.settle();
    let question = run.net.now;
    let here = |instance, question| {
        Message::Switch(Switch { instance: InstanceId(instance), message: SwitchMessage::Here(question) })
    };
    for id in 0..5 {
        let mut earlier = question;
        earlier.0 -= 1;
        run.net.forge(r(id), r(5), here(1, earlier));
    }
    assert!(still_asks(&mut run), "five answers to an earlier question");
    run.net.forge(r(6), r(5), here(1_000, question));
    for id in 0..4 {
        run.net.forge(r(id), r(5), here(1, question));
    }
    assert!(still_asks(&mut run), "four answers, and one of which there is no proof");
    run.net.forge(r(4), r(5), here(1, question));
    assert!(!still_asks(&mut run));
    run.net.heal();
    work_until(&mut run, 3);
    run.pass(3_000);
    assert!(!abstains(&run, 5));
    run.check();
}
