//! Real links on loopback.

use super::*;
use crate::coin;
use crate::net::Channel;
use bezant_core::auth::{Ed25519, SecretKey, Suite};
use bezant_core::ids::PublicKey;
use bezant_core::protocols::ritas::group::{GroupMessage, Speech};
use bezant_core::protocols::ritas::message::{Statement, VALUE_BYTES_MAX, Value};
use bezant_core::protocols::ritas::vector_consensus::Vector;
use bezant_core::replicas::Replicas;
use bezant_core::wire::Wire;
use std::net::{Ipv4Addr, SocketAddr, TcpListener};

fn settings(n: usize, epochs: &[u64]) -> Vec<GroupSettings> {
    let listeners: Vec<TcpListener> = (0..n).map(|_| TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).unwrap()).collect();
    let secret = |of: usize| SecretKey([of as u8 + 1; 32]);
    let member = |(of, listener): (usize, &TcpListener)| -> (SocketAddr, PublicKey) {
        (listener.local_addr().unwrap(), Ed25519.public(&secret(of)))
    };
    let members: Vec<_> = listeners.iter().enumerate().map(member).collect();
    let of = |(me, listener)| {
        let settings = GroupSettings::new(members.clone(), (n - 1) / 3, ReplicaId(me as u8), secret(me), listener);
        let interval = Duration::from_millis(20);
        GroupSettings { epoch: epochs[me % epochs.len()], channel: Channel::Plain, interval, ..settings }
    };
    listeners.into_iter().enumerate().map(of).collect()
}

/// The same settings with keys for a common coin.
fn dealt(mut settings: Vec<GroupSettings>) -> Vec<GroupSettings> {
    let dealt = coin::deal(&Replicas::of(settings.len()).unwrap()).unwrap();
    let keys: Vec<_> = dealt.iter().map(|(_, key)| *key).collect();
    for (settings, (secret, _)) in settings.iter_mut().zip(dealt) {
        settings.coin = Some(DealtCoin { secret, keys: keys.clone() });
    }
    settings
}

fn text(text: &str) -> Bytes {
    Bytes::copy_from_slice(text.as_bytes())
}

/// Every process on a thread of its own does this.
fn each<T: Send>(groups: &[GroupHandle], act: impl Fn(usize, &GroupHandle) -> T + Sync) -> Vec<T> {
    std::thread::scope(|scope| {
        let act = &act;
        let threads: Vec<_> =
            groups.iter().enumerate().map(|(me, group)| scope.spawn(move || act(me, group))).collect();
        threads.into_iter().map(|thread| thread.join().unwrap()).collect()
    })
}

#[test]
fn four_processes_broadcast_and_agree() {
    let groups: Vec<GroupHandle> = settings(4, &[1]).into_iter().map(|it| GroupHandle::start(it).unwrap()).collect();
    groups.iter().for_each(|group| group.set_patience(Some(Duration::from_secs(20))));
    let found = each(&groups, |me, group| {
        let own = text(&format!("of {me}"));
        group.reliable_broadcast(0, own.clone()).unwrap();
        group.echo_broadcast(0, own.clone()).unwrap();
        for of in 0..4 {
            let expected = text(&format!("of {of}"));
            assert_eq!(group.reliable_receive(ReplicaId(of), 0), Ok(expected.clone()));
            assert_eq!(group.echo_receive(ReplicaId(of), 0), Ok(expected));
        }
        assert_eq!(group.agree_on_bit(0, true), Ok(true));
        assert_eq!(group.agree(0, text("the same")), Ok(Some(text("the same"))));
        let vector = group.agree_on_vector(0, own.clone()).unwrap();
        (0..10).for_each(|_| group.order(own.clone()).unwrap());
        let ordered: Vec<Ordered> = (0..40).map(|_| group.next_ordered().unwrap()).collect();
        (vector, ordered)
    });
    assert!(found.iter().all(|it| *it == found[0]));
    assert_eq!(groups[0].reliable_broadcast(0, text("again")), Err(Problem::Used));
    assert_eq!(groups[0].reliable_receive(ReplicaId(4), 0), Err(Problem::NoMember));
    let long = Bytes::from(vec![0; MESSAGE_BYTES_MAX + 1]);
    assert_eq!(groups[0].order(long), Err(Problem::TooLong));
}

/// All of them propose what the first round's coin, which is no toss, does not show: so one is tossed.
#[test]
fn four_processes_toss_a_common_coin() {
    let mut settings = dealt(settings(4, &[1]));
    let (told, shares) = std::sync::mpsc::channel();
    for settings in &mut settings {
        let told = told.clone();
        settings.witness = Witness::new(move |message: &mut GroupMessage| {
            let Speech::Said(statements) = &message.speech else { return };
            let shares = statements.0.iter().filter(|said| matches!(said.statement, Statement::Share(_)));
            shares.for_each(|_| told.send(()).unwrap());
        });
    }
    let groups: Vec<GroupHandle> = settings.into_iter().map(|it| GroupHandle::start(it).unwrap()).collect();
    groups.iter().for_each(|group| group.set_patience(Some(Duration::from_secs(20))));
    let found = each(&groups, |me, group| {
        assert_eq!(group.agree_on_bit(0, false), Ok(false));
        assert_eq!(group.agree(0, text("the same")), Ok(Some(text("the same"))));
        let bits: Vec<_> = (1..9).map(|number| group.agree_on_bit(number, me % 2 == 0).unwrap()).collect();
        (0..10).for_each(|_| group.order(text(&format!("of {me}"))).unwrap());
        let ordered: Vec<Ordered> = (0..40).map(|_| group.next_ordered().unwrap()).collect();
        (bits, ordered)
    });
    assert!(found.iter().all(|it| *it == found[0]));
    assert!(shares.try_recv().is_ok(), "somebody has tossed it");
}

/// What is said with one coin means nothing with another.
#[test]
fn a_coin_is_of_one_run_and_of_one_dealing() {
    let [one, other] = [dealt(settings(4, &[1])), dealt(settings(4, &[1]))];
    let later = GroupSettings { coin: one[0].coin.clone(), ..settings(4, &[2]).remove(0) };
    let coin = |of: &GroupSettings| of.common_coin(&of.keyring().unwrap()).unwrap();
    let share = coin(&one[1]).share(b"a toss");
    assert!(coin(&one[0]).verify(ReplicaId(1), b"a toss", &share));
    assert!(!coin(&later).verify(ReplicaId(1), b"a toss", &share), "another epoch");
    assert!(!coin(&other[0]).verify(ReplicaId(1), b"a toss", &share), "other keys");
    let [with, other] = [&one[0], &other[0]].map(|it| it.keyring().unwrap().cluster());
    let without = settings(4, &[1])[0].keyring().unwrap().cluster();
    assert!(with != without && with != other, "they do not hear each other");
}

#[test]
fn a_coin_that_was_dealt_to_others_is_refused() {
    let [mut one, other] = [dealt(settings(4, &[1])), dealt(settings(4, &[1]))];
    let [mine, theirs] = [&one[0], &one[1]].map(|it| it.coin.clone().unwrap());
    let mut mixed = mine.clone();
    mixed.keys[3] = other[3].coin.as_ref().unwrap().keys[3];
    let few = DealtCoin { keys: mine.keys[..3].to_vec(), ..mine };
    let mut settings = one.remove(0);
    for coin in [theirs, mixed, few] {
        settings.coin = Some(coin);
        assert_eq!(settings.keyring().err(), Some(SettingsError::Coin(ReplicaId(0))));
    }
    let error = GroupHandle::start(settings).unwrap_err();
    assert_eq!(error.kind(), io::ErrorKind::InvalidInput);
    assert!(error.to_string().contains("common coins of process 0"), "{error}");
}

/// Who is of another run is no member; and a call that cannot be answered says why.
#[test]
fn two_runs_do_not_mix_and_patience_ends() {
    let groups: Vec<GroupHandle> =
        settings(4, &[1, 1, 2, 2]).into_iter().map(|it| GroupHandle::start(it).unwrap()).collect();
    groups[0].set_patience(Some(Duration::from_millis(700)));
    groups[0].reliable_broadcast(0, text("alone")).unwrap();
    let missing = vec![ReplicaId(2), ReplicaId(3)];
    assert_eq!(groups[0].reliable_receive(ReplicaId(0), 0), Err(Problem::TimedOut(missing)));
}

/// Calls that wait when the group is left end.
#[test]
fn who_waits_learns_that_the_group_was_left() {
    let group = GroupHandle::start(settings(4, &[1]).remove(0)).unwrap();
    let shared = group.shared.clone();
    let waiting = std::thread::spawn(move || shared.wait(|inbox| inbox.bits.remove(&0)));
    std::thread::sleep(Duration::from_millis(50));
    drop(group);
    assert_eq!(waiting.join().unwrap(), Err(Problem::Closed));
}

#[test]
fn settings_that_do_not_fit_are_refused() {
    let mut few = settings(4, &[1]).remove(0);
    few.f = 2;
    assert!(GroupHandle::start(few).is_err());
    let mut other = settings(4, &[1]).remove(0);
    other.secret = SecretKey([9; 32]);
    let error = GroupHandle::start(other).unwrap_err();
    assert!(error.to_string().contains("does not belong"), "{error}");
}

/// A vector is a value, so that all of its values together have to fit into one.
#[test]
fn what_does_not_fit_into_a_vector_is_refused() {
    let mut settings = settings(5, &[1]);
    let group = GroupHandle::start(settings.remove(0)).unwrap();
    group.set_patience(Some(Duration::from_millis(50)));
    let propose = |bytes: usize| group.agree_on_vector(0, vec![7; bytes].into());
    assert_eq!(propose(group.vector_value_bytes_max() + 1), Err(Problem::TooLong));
    assert!(matches!(propose(group.vector_value_bytes_max()), Err(Problem::TimedOut(_))));
    let values = Vector(vec![Some(Value(vec![7; group.vector_value_bytes_max()].into())); 5]);
    assert!(values.to_bytes().len() <= VALUE_BYTES_MAX);
    assert_eq!(group.reliable_broadcast(1 << 56, text("far")), Err(Problem::NoNumber));
}

/// What there is no room for stays, and so does what a call was not patient enough for.
#[test]
fn a_call_may_be_made_again_for_its_result() {
    let mut groups: Vec<GroupHandle> = Vec::new();
    let mut settings = settings(4, &[1]);
    groups.extend(settings.drain(..2).map(|it| GroupHandle::start(it).unwrap()));
    groups.iter().for_each(|group| group.set_patience(Some(Duration::from_millis(50))));
    for group in &groups {
        assert!(matches!(group.agree(0, text("the same")), Err(Problem::TimedOut(_))));
    }
    groups.extend(settings.drain(..).map(|it| GroupHandle::start(it).unwrap()));
    groups.iter().for_each(|group| group.set_patience(Some(Duration::from_secs(20))));
    each(&groups, |me, group| {
        let proposal = text(if me < 2 { "another" } else { "the same" });
        assert_eq!(group.agree_within(0, proposal.clone(), 7), Err(Problem::TooShort(8)));
        assert_eq!(group.agree_within(0, proposal.clone(), 8), Ok(Some(text("the same"))));
        assert_eq!(group.agree(0, proposal), Err(Problem::Used));
        group.order(text("one")).unwrap();
        assert_eq!(group.next_ordered_within(2), Err(Problem::TooShort(3)));
        assert_eq!(group.next_ordered_within(3).unwrap().number, 0);
    });
}

#[test]
fn who_waits_learns_that_another_thread_has_left() {
    let group = GroupHandle::start(settings(4, &[1]).remove(0)).unwrap();
    std::thread::scope(|scope| {
        let waiting = scope.spawn(|| group.next_ordered());
        std::thread::sleep(Duration::from_millis(50));
        group.leave();
        assert_eq!(waiting.join().unwrap(), Err(Problem::Closed));
    });
    assert_eq!(group.order(text("late")), Err(Problem::Closed));
}

/// What was called for before a process leaves is said.
#[test]
fn who_leaves_has_said_what_it_was_called_for() {
    let groups: Vec<GroupHandle> = settings(4, &[1]).into_iter().map(|it| GroupHandle::start(it).unwrap()).collect();
    groups.iter().for_each(|group| group.set_patience(Some(Duration::from_secs(20))));
    each(&groups, |_, group| assert_eq!(group.agree_on_bit(0, true), Ok(true)));
    let last = Bytes::from(vec![7; MESSAGE_BYTES_MAX]);
    groups[0].reliable_broadcast(0, last.clone()).unwrap();
    groups[0].leave();
    each(&groups[1..], |_, group| assert_eq!(group.reliable_receive(ReplicaId(0), 0), Ok(last.clone())));
}

/// Nobody needs to call in order: what is called too early waits, and keeps nothing else waiting.
#[test]
fn calls_of_many_threads_come_in_any_order() {
    let groups: Vec<GroupHandle> = settings(4, &[1]).into_iter().map(|it| GroupHandle::start(it).unwrap()).collect();
    groups.iter().for_each(|group| group.set_patience(Some(Duration::from_secs(5))));
    each(&groups, |_, group| {
        std::thread::scope(|scope| {
            for number in (0..100).rev() {
                scope.spawn(move || assert_eq!(group.agree_on_bit(number, true), Ok(true)));
                std::thread::sleep(Duration::from_millis(1));
            }
        });
    });
}
