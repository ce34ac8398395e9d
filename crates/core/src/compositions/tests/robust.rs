//! Robust compositions: what their instances are left for, and what they are not left for.

use crate::cluster::{ClientAuth, Cluster, Limits};
use crate::compositions::tests::script::panic;
use crate::ids::{ClientId, IdentityId, InstanceId, Principal, Timestamp};
use crate::notice::Notice;
use crate::registry::Message;
use crate::rejection::Rejection;
use crate::schedule::{Order, Part, Protocol, Quota, Schedule};
use crate::services::Counter;
use crate::stop::StopReason;
use crate::switching::{Feedback, Panic, Switch, SwitchMessage};
use crate::testing::net::{Net, OTHER_IDENTITY, c, cluster, kind, r};

/// Clients that ask all the time, so few that they do not crowd Quorum.
const CLIENTS: usize = 3;
/// Microseconds between two looks.
const LOOK: u64 = 50_000;
/// Microseconds until a request is answered where nobody is slow.
const FAST: u64 = 1_000;

/// `backup(aardvark)`, `quorum`, in turns; Backups of so many requests.
fn net(k: u64) -> Net<Counter> {
    let schedule = Schedule::new(&[Part::Backup(Order::Aardvark), Part::Quorum]).unwrap();
    let protocol = Protocol::Schedule(schedule);
    let quota = Quota::Fixed(k);
    let cluster = Cluster { protocol, quota, ..cluster(4, ClientAuth::Hybrid, Limits::default()) };
    Net::of(cluster, 1 + CLIENTS as u32, |_| Counter::default())
}

fn client(session: usize) -> ClientId {
    let Principal::Client(client) = c(session as u32) else { unreachable!() };
    client
}

/// A machine tells all replicas that so many of its requests wait, the oldest of this number.
fn announce(net: &mut Net<Counter>, machine: usize, waiting: u32, timestamp: u64) {
    announce_of(net, client(machine), waiting, timestamp);
}

fn announce_of(net: &mut Net<Counter>, machine: ClientId, waiting: u32, timestamp: u64) {
    let oldest = (waiting > 0).then_some((machine.session, Timestamp(timestamp)));
    let load = waiting.saturating_mul(1_000);
    let message = SwitchMessage::Feedback(Feedback { machine, load, oldest });
    let said = Message::Switch(Switch { instance: net.hosts[0].replica.instance(), message });
    (0..4).for_each(|id| net.forge(Principal::Client(machine), r(id), said.clone()));
    net.settle();
}

/// So many clients ask once. Their requests are on their way for so many microseconds, and answered so many later.
/// Returns the number of the first one's.
fn ask_once(net: &mut Net<Counter>, clients: usize, away: u64, later: u64) -> u64 {
    (0..clients).for_each(|session| net.submit(session, &Counter::add(1), false));
    let asked = net.clients[0].asked().unwrap().0;
    let requests = core::mem::take(&mut net.in_flight);
    announce(net, 0, clients as u32, asked);
    net.pass(away);
    net.in_flight.extend(requests);
    net.round();
    let proposals = core::mem::take(&mut net.in_flight);
    net.pass(later - 10 * clients as u64);
    net.in_flight.extend(proposals);
    net.settle();
    asked
}

/// For so many looks the clients ask, and are answered so many microseconds later; as long as an instance runs.
fn ask(net: &mut Net<Counter>, looks: u64, later: u64) {
    let (until, instance) = (net.now.0 + looks * LOOK, net.hosts[0].replica.instance());
    while net.now.0 < until && net.hosts[0].replica.instance() == instance {
        let asked = ask_once(net, CLIENTS, 0, later);
        if core::mem::take(&mut net.completed).len() < CLIENTS {
            let is_over = |notice: &Notice| matches!(notice, Notice::Stopped { instance: of, .. } if *of == instance);
            assert!((0..4).any(|id| net.noticed(id, is_over)), "each is answered");
            // The first one has stopped. The others follow, and the clients ask again.
            announce(net, 0, CLIENTS as u32, asked);
            (0..20).for_each(|_| net.pass(LOOK));
            assert_eq!(core::mem::take(&mut net.completed).len(), CLIENTS, "each is answered in the next instance");
        }
    }
}

/// Who has stopped for this reason.
fn stopped_for(net: &Net<Counter>, reason: StopReason) -> usize {
    let is_it = |notice: &Notice| matches!(notice, Notice::Stopped { reason: of, .. } if *of == reason);
    (0..4).filter(|id| net.noticed(*id, is_it)).count()
}

/// Runs until the Backup with which the composition begins is over, after so many requests, answered so much later.
fn measured(k: u64, later: u64) -> Net<Counter> {
    let mut net = net(k);
    ask(&mut net, 1_000, later);
    assert_eq!(net.hosts[0].replica.instance(), InstanceId(2), "the Backup comes to its end");
    net
}

#[test]
fn abs_k3_an_instance_that_does_less_than_half_of_what_a_backup_did_is_left_in_seven_looks() {
    let mut net = measured(600, FAST);
    ask(&mut net, 10, FAST);
    assert_eq!(net.hosts[0].replica.instance(), InstanceId(2), "as fast as a Backup");
    let from = net.now;
    ask(&mut net, 10, 5 * FAST / 2);
    assert_eq!(net.hosts[0].replica.instance(), InstanceId(3));
    assert!(net.now.0 - from.0 <= 7 * LOOK + 3 * FAST, "it took {} µs", net.now.0 - from.0);
    assert!(stopped_for(&net, StopReason::SlowerThanABackup) >= 2, "f+1 have seen it");
    assert_eq!(net.said(c(0), "PANIC").len(), 0, "no client takes part");
}

#[test]
fn an_instance_that_is_no_better_than_a_backup_is_left_after_twenty_looks() {
    let mut net = measured(1_100, 3 * FAST);
    ask(&mut net, 18, 3 * FAST);
    assert_eq!(net.hosts[0].replica.instance(), InstanceId(2), "they have not looked often enough");
    // And four more before all have said that they are here.
    ask(&mut net, 3 + 4, 3 * FAST);
    assert_eq!(net.hosts[0].replica.instance(), InstanceId(3));
    assert!(stopped_for(&net, StopReason::SlowerThanABackup) >= 2);
    let mut net = measured(1_100, 3 * FAST);
    ask(&mut net, 50, 27 * FAST / 10);
    assert_eq!(net.hosts[0].replica.instance(), InstanceId(2), "it is better");
}

#[test]
fn nothing_is_expected_where_nobody_says_that_he_waits() {
    let mut net = measured(600, FAST);
    announce(&mut net, 0, 0, 0);
    net.pass(200 * LOOK);
    assert_eq!(net.hosts[0].replica.instance(), InstanceId(2), "all are content");
    announce(&mut net, 0, CLIENTS as u32, 1);
    net.pass(200 * LOOK);
    assert_eq!(net.hosts[0].replica.instance(), InstanceId(2), "who has said so is dead");
    for _ in 0..7 {
        announce(&mut net, 0, CLIENTS as u32, 1);
        net.pass(LOOK);
    }
    assert_eq!(net.hosts[0].replica.instance(), InstanceId(3), "and who says so now is not");
}

/// A machine speaks more rarely in a Backup, so it is not missed there so soon. Here another one waits for much all the
/// time: so no Backup is known that had as little to do as the instance after it.
#[test]
fn who_speaks_four_times_as_rarely_in_a_backup_counts_there_all_the_time() {
    let left = |looks: u64| {
        let mut net = net(3_000);
        while net.hosts[0].replica.instance() == InstanceId(1) {
            announce(&mut net, 1, 400, 1);
            ask(&mut net, looks, FAST);
        }
        ask(&mut net, 14, 5 * FAST / 2);
        stopped_for(&net, StopReason::SlowerThanABackup) > 0
    };
    assert!(!left(11));
    assert!(left(20), "and who says nothing for longer does not");
}

/// Whoever was too slow for a Backup is not there yet when the next instance begins, which needs it. Where an instance
/// was left for that the next Backup left it behind again, and so on.
#[test]
fn an_instance_is_not_left_before_all_are_there_or_may_be_silent() {
    let mut net = measured(600, FAST);
    net.lose(|frame| frame.from == r(3) && kind(&frame.message) == "PRESENT");
    let mut wait = |looks: usize| {
        for _ in 0..looks {
            announce(&mut net, 0, CLIENTS as u32, 1);
            net.pass(LOOK);
        }
        net.hosts[0].replica.instance()
    };
    assert_eq!(wait(8), InstanceId(2), "it may be on its way");
    assert_eq!(wait(8), InstanceId(3), "but not for ever");
}

/// Whom replica 0 alone has not heard of is missing for nobody else; and replica 0 need not hear that again.
#[test]
fn who_is_silent_already_when_an_instance_begins_is_not_waited_for() {
    let mut net = net(600);
    net.lose(|frame| frame.from == r(3) && frame.to == r(0) && kind(&frame.message) == "PRESENT");
    net.pass(12 * LOOK);
    ask(&mut net, 1_000, FAST);
    assert_eq!(net.hosts[0].replica.instance(), InstanceId(2), "the Backup comes to its end");
    // Until the others have said that they are here, and then three times two.
    for _ in 0..4 + 7 {
        announce(&mut net, 0, CLIENTS as u32, 1);
        net.pass(LOOK);
    }
    let is_slow = |notice: &Notice| matches!(notice, Notice::Stopped { reason: StopReason::SlowerThanABackup, .. });
    assert!(net.noticed(0, is_slow), "it sees that as soon as those who hear all");
}

/// The Backup before took long to begin, and then ended soon: nobody had time to say that he is here, nobody is silent.
#[test]
fn behind_a_backup_in_which_nobody_could_speak_all_are_waited_for() {
    let mut net = measured(600, FAST);
    let panic = panic(InstanceId(2), 0);
    net.lose(|frame| ["PRE-PREPARE", "PRESENT"].contains(&kind(&frame.message).as_str()));
    (0..2).for_each(|id| net.forge(c(0), r(id), panic.clone()));
    net.settle();
    net.pass(12 * LOOK);
    net.lose(|frame| kind(&frame.message) == "PRESENT");
    let has_begun = |notice: &Notice| matches!(notice, Notice::Begun { instance: InstanceId(3), .. });
    while !(0..4).all(|id| net.noticed(id, has_begun)) {
        net.pass(FAST);
    }
    while net.hosts[0].replica.instance() == InstanceId(3) {
        (0..CLIENTS).for_each(|session| net.submit(session, &Counter::add(1), false));
        net.settle();
        net.now.0 += FAST / 3;
    }
    assert_eq!(net.hosts[0].replica.instance(), InstanceId(4));
    net.lose(|frame| frame.from == r(3) && kind(&frame.message) == "PRESENT");
    for _ in 0..8 {
        announce(&mut net, 0, CLIENTS as u32, 1);
        net.pass(LOOK);
    }
    assert_eq!(net.hosts[0].replica.instance(), InstanceId(4), "it may be on its way");
}

/// Where nothing was logged so far nobody knows what is usual. One replica that stops then stops nobody, and nobody
/// waits for long.
#[test]
fn where_one_replica_has_stopped_at_the_beginning_the_others_stop_after_a_status_interval() {
    let mut net = measured(600, FAST);
    net.forge(c(0), r(3), panic(InstanceId(2), 0));
    net.settle();
    let mut wait = |looks: usize| {
        for _ in 0..looks {
            announce(&mut net, 0, CLIENTS as u32, 1);
            net.pass(LOOK);
        }
        stopped_for(&net, StopReason::LeftAlone)
    };
    assert_eq!(wait(3), 0, "some may be on their way");
    assert!(wait(3) >= 1);
}

/// The word of one replica is nothing to go by while nobody has asked for anything for long enough.
#[test]
fn where_nothing_waited_so_far_nothing_is_quiet() {
    let mut net = measured(600, FAST);
    net.forge(c(0), r(3), panic(InstanceId(2), 0));
    net.settle();
    announce(&mut net, 0, 0, 0);
    net.pass(6 * LOOK);
    announce(&mut net, 0, 1, 1);
    net.pass(LOOK);
    assert_eq!(stopped_for(&net, StopReason::LeftAlone), 0, "it has not waited for a status interval");
    for _ in 0..4 {
        announce(&mut net, 0, 1, 1);
        net.pass(LOOK);
    }
    assert!(stopped_for(&net, StopReason::LeftAlone) >= 1);
}

/// A client panics at one replica only: the others get nothing done without it, and need not wait to see how slow that
/// is. Where nothing waits, or something goes on, the word of one replica stops nobody.
#[test]
fn where_one_replica_has_stopped_and_nothing_goes_on_the_others_stop_at_once() {
    let panicked = || {
        let mut net = measured(600, FAST);
        ask(&mut net, 10, FAST);
        let panic = panic(net.hosts[0].replica.instance(), 0);
        net.forge(c(0), r(3), panic);
        net.settle();
        net
    };
    let mut net = panicked();
    announce(&mut net, 0, 0, 0);
    net.pass(5 * LOOK);
    assert_eq!(net.hosts[0].replica.instance(), InstanceId(2), "nothing waits");
    announce(&mut net, 0, CLIENTS as u32, 1);
    net.pass(LOOK / 2);
    assert_eq!(net.hosts[0].replica.instance(), InstanceId(3));
    assert!(stopped_for(&net, StopReason::LeftAlone) >= 1);
    let mut net = panicked();
    let quiet = |net: &mut Net<Counter>, session: usize| {
        net.submit(session, &Counter::add(1), false);
        announce(net, 0, CLIENTS as u32, 1);
        net.pass(LOOK / 6);
        net.hosts[0].replica.instance()
    };
    assert_eq!([0, 1, 2].map(|session| quiet(&mut net, session)), [InstanceId(2); 3], "they log what comes");
}

/// Otherwise a client that says in every Backup that much waits, and later that little does, takes every yardstick
/// away; and one that says nothing makes a Backup look better than it is.
#[test]
fn a_backup_is_measured_by_what_waits_in_its_pool() {
    let mut net = net(600);
    for instance in [1, 2] {
        let instance = InstanceId(instance);
        while net.hosts[0].replica.instance() == instance {
            (0..CLIENTS).for_each(|session| net.submit(session, &Counter::add(1), false));
            net.round();
            let proposals = core::mem::take(&mut net.in_flight);
            net.pass(FAST);
            net.in_flight.extend(proposals);
            net.settle();
            net.completed.clear();
            if instance == InstanceId(2) {
                break;
            }
        }
    }
    ask(&mut net, 10, 5 * FAST / 2);
    assert!(stopped_for(&net, StopReason::SlowerThanABackup) >= 2);
}

#[test]
fn abs_k22_who_says_that_much_waits_makes_nothing_fail_that_no_backup_has_done() {
    let mut net = net(40);
    for _ in 0..50 {
        ask(&mut net, 1, FAST);
        announce(&mut net, CLIENTS, u32::MAX, u64::MAX);
    }
    assert_eq!(stopped_for(&net, StopReason::SlowerThanABackup), 0, "the Backup was too short to be measured");
}

/// It also says so while the Backups run, and nothing later: of whose requests none are executed, nothing waits there.
#[test]
fn abs_k22_who_says_in_backups_that_much_waits_hides_nobody() {
    let mut net = net(3_000);
    let liar = ClientId { identity: OTHER_IDENTITY, session: 0 };
    while net.hosts[0].replica.instance() == InstanceId(1) {
        announce_of(&mut net, liar, u32::MAX, 1);
        ask(&mut net, 1, FAST);
    }
    announce_of(&mut net, liar, 0, 0);
    assert!(net.hosts[0].replica.report().rejections.is_empty(), "all of it is heard");
    ask(&mut net, 10, 20 * FAST);
    assert!(stopped_for(&net, StopReason::SlowerThanABackup) >= 2, "it is twenty times as slow");
}

/// For so many looks these clients ask, whose requests are on their way for eight times as long as replicas need.
fn ask_from_afar(net: &mut Net<Counter>, looks: u64, clients: usize) {
    let (until, instance) = (net.now.0 + looks * LOOK, net.hosts[0].replica.instance());
    while net.now.0 < until && net.hosts[0].replica.instance() == instance {
        ask_once(net, clients, 8 * FAST, FAST);
        net.completed.clear();
    }
}

/// What waits is what is under way as well, in a Backup too: with fewer of the same clients nothing is slow.
#[test]
fn where_clients_are_far_away_an_instance_is_not_left_when_fewer_ask() {
    let mut net = net(1_100);
    ask_from_afar(&mut net, 1_000, CLIENTS);
    assert_eq!(net.hosts[0].replica.instance(), InstanceId(2));
    ask_from_afar(&mut net, 100, 1);
    assert_eq!(net.hosts[0].replica.instance(), InstanceId(2), "it takes as long as it did");
}

/// For so many looks others are served fast, and a machine goes on saying that its request of this number waits.
fn leave_out(net: &mut Net<Counter>, looks: usize, timestamp: u64) {
    for _ in 0..looks {
        announce(net, CLIENTS, 1, timestamp);
        ask(net, 1, FAST / 4);
    }
}

#[test]
fn a_request_that_is_named_and_never_served_ends_an_instance_that_serves_others() {
    let mut net = measured(600, FAST);
    leave_out(&mut net, 4, 7);
    leave_out(&mut net, 4, 8);
    assert_eq!(net.hosts[0].replica.instance(), InstanceId(2), "neither was named for a status interval");
    leave_out(&mut net, 3, 8);
    assert!(stopped_for(&net, StopReason::LeftOut) >= 2);
    assert!(net.hosts[0].replica.instance() > InstanceId(2));
}

#[test]
fn a_request_that_is_named_and_was_served_is_not_left_out() {
    let mut net = measured(600, FAST);
    net.submit(CLIENTS, &Counter::add(1), false);
    let served = net.clients[CLIENTS].asked().unwrap().0;
    net.settle();
    net.completed.clear();
    leave_out(&mut net, 20, served);
    assert_eq!(stopped_for(&net, StopReason::LeftOut), 0);
}

#[test]
fn where_all_wait_for_long_nobody_is_left_out() {
    let mut net = measured(200, 9 * FAST);
    for _ in 0..20 {
        announce(&mut net, CLIENTS, 1, 7);
        ask(&mut net, 1, 9 * FAST);
    }
    assert!(stopped_for(&net, StopReason::LeftOut) >= 2, "five times in a look are more than eight times in two");
    let mut net = measured(200, 9 * FAST);
    for look in 0..20 {
        announce(&mut net, CLIENTS, 1, look / 5);
        ask(&mut net, 1, 9 * FAST);
    }
    assert_eq!(stopped_for(&net, StopReason::LeftOut), 0, "another one each time");
}

/// abs-P1 and Aardvark 5: otherwise each Backup would be as slow as its first primary wants, for as long as a view that
/// nothing is known of.
#[test]
fn a_backup_hands_on_what_it_expects_to_the_next_one() {
    let mut net = measured(1_100, 3 * FAST);
    (0..4).for_each(|id| {
        let message = SwitchMessage::Panic(Panic { client: client(0), timestamp: Timestamp(1) });
        net.forge(c(0), r(id), Message::Switch(Switch { instance: InstanceId(2), message }));
    });
    net.settle();
    assert_eq!(net.hosts[0].replica.instance(), InstanceId(3));
    let first = net.views();
    ask(&mut net, 10, 12 * FAST);
    assert!(net.views().iter().all(|view| *view > first[0]), "{:?}", net.views());
}

#[test]
fn feedback_is_heard_where_it_matters_and_of_its_own_machine_only() {
    let mut net = net(600);
    let said = |machine: ClientId, load: u32, oldest| {
        let message = SwitchMessage::Feedback(Feedback { machine, load, oldest });
        Message::Switch(Switch { instance: InstanceId(1), message })
    };
    let other = ClientId { identity: IdentityId(9), session: 0 };
    net.forge(c(0), r(1), said(other, 0, None));
    net.forge(c(0), r(1), said(client(0), 0, Some((0, Timestamp(1)))));
    net.forge(r(2), r(1), said(client(0), 0, None));
    net.settle();
    assert_eq!(net.rejected(1, c(0), Rejection::WrongSender), 1);
    assert_eq!(net.rejected(1, c(0), Rejection::Malformed), 1);
    let cluster = Cluster { protocol: Protocol::Aliph, ..net.cluster };
    let mut net: Net<Counter> = Net::of(cluster, 1, |_| Counter::default());
    net.forge(c(0), r(1), said(client(0), 0, None));
    net.settle();
    assert_eq!(net.rejected(1, c(0), Rejection::Unsolicited), 1);
}
