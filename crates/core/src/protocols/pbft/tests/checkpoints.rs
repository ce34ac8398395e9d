//! Checkpoints, garbage, state transfer, and replicas that were left out.

use crate::auth::Claimed;
use crate::auth::paper::Paper;
use crate::checkpoint::Checkpoint;
use crate::cluster::{ClientAuth, Limits};
use crate::digest::Digest;
use crate::ids::{ReplicaId, Sequence};
use crate::notice::Notice;
use crate::protocols::pbft::{PbftMessage, Position};
use crate::registry::Message;
use crate::rejection::Rejection;
use crate::service::{Asker, Service};
use crate::services::Counter;
use crate::testing::damaged::Damaged;
use crate::testing::net::{Frame, INSTANCE, Net, done, kind, r};
use alloc::boxed::Box;
use alloc::vec::Vec;

fn every_4() -> Limits {
    Limits { checkpoint_interval: 4, ..Limits::default() }
}

/// "… a proof of 2f + 1 checkpoint messages with the same digest": without it, the window does not move.
#[test]
fn without_a_stable_checkpoint_the_window_ends() {
    let mut net = Net::new(4, every_4());
    net.lose(|frame| kind(&frame.message) == "CHECKPOINT");
    for value in 1..=6 {
        assert_eq!(net.add(1), done(value));
    }
    assert_eq!(net.add(1), None, "h + 2K = 8, and the last two are for rulings");
    assert_eq!(net.executed(), [6; 4]);
}

/// The CHECKPOINTs of a full window are lost, then one replica stops: STATUS brings them again, from the f+1 others
/// too, or nothing would ever be ordered again.
#[test]
fn lost_checkpoint_votes_are_said_again() {
    let mut net = Net::new(4, every_4());
    net.lose(|frame| kind(&frame.message) == "CHECKPOINT");
    for value in 1..=6 {
        assert_eq!(net.add(1), done(value));
    }
    net.isolate(&[3]);
    net.pass(5_000_000);
    assert_eq!(net.add(1), done(7));
    let stable: Vec<u64> = net.hosts.iter().map(|host| host.replica.report().stable.0).collect();
    assert_eq!(stable, [4, 4, 4, 0]);
}

#[test]
fn a_replica_that_missed_everything_fetches_the_state() {
    let mut net = Net::new(4, every_4());
    net.isolate(&[3]);
    for value in 1..=21 {
        assert_eq!(net.add(1), done(value));
    }
    assert_eq!(net.hosts[0].replica.report().stable.0, 20);
    net.heal();
    net.pass(5_000_000);
    assert_eq!(net.executed(), [21; 4]);
    assert_eq!(net.hosts[3].replica.report().history, net.hosts[0].replica.report().history);
    assert!(net.noticed(3, |notice| matches!(notice, Notice::Transfer { done: true, .. })));
}

/// pbft-F21: the primary leaves replica 3 out of everything. It learns what is decided from f+1 others, without a view
/// change and before the next checkpoint.
#[test]
fn a_replica_that_is_left_out_catches_up_from_what_others_decided() {
    let mut net = Net::new(4, Limits::default());
    net.lose(|frame| {
        let ordering = matches!(kind(&frame.message).as_str(), "PRE-PREPARE" | "PREPARE" | "COMMIT" | "REQUEST");
        frame.to == r(3) && (ordering || frame.from == r(0))
    });
    for value in 1..=3 {
        assert_eq!(net.add(1), done(value));
    }
    assert_eq!(net.executed(), [3, 3, 3, 0]);
    net.pass(3_000_000);
    assert_eq!(net.executed(), [3; 4]);
    assert!(!net.said(r(1), "DECIDED").is_empty() && !net.said(r(2), "DECIDED").is_empty());
    assert_eq!(net.views(), [0; 4]);
}

/// f+1 must say so: one liar decides nothing.
#[test]
fn one_replica_that_calls_something_decided_is_not_believed() {
    let mut net = Net::new(4, Limits::default());
    let lie = Position { sequence: Sequence(1), digest: crate::batch::Batch::null().digest() };
    for _ in 0..5 {
        net.forge(r(2), r(3), crate::testing::net::ordering(PbftMessage::Decided(lie)));
    }
    net.settle();
    assert_eq!(net.executed()[3], 0);
    assert_eq!(net.add(1), done(1));
    assert_eq!(net.executed(), [1; 4]);
}

/// A wrong root is outvoted, and its signer is known by its signature.
#[test]
fn a_checkpoint_with_a_wrong_root_is_outvoted_and_the_liar_blamed() {
    let mut net = Net::new(4, every_4());
    net.lose(|frame| kind(&frame.message) == "CHECKPOINT" && frame.from == r(3));
    for value in 1..=3 {
        assert_eq!(net.add(1), done(value));
    }
    let root = Digest([6; 32]);
    let lie = Checkpoint { instance: INSTANCE, sequence: Sequence(4), ruled: Sequence(0), root };
    let lie = Message::Checkpoint(Box::new(net.keyring(r(3)).sign(lie).into()));
    for to in 0..3 {
        net.forge(r(3), r(to), lie.clone());
    }
    net.settle();
    assert_eq!(net.add(1), done(4));
    let blamed = Notice::Suspicion { replica: ReplicaId(3), reason: Rejection::BadCertificate };
    for id in 0..3 {
        let report = net.hosts[id].replica.report();
        assert_eq!(report.stable.0, 4);
        assert_ne!(report.stable_root, root);
        assert!(net.noticed(id, |notice| *notice == blamed));
        assert!(report.suspicions.contains(&(ReplicaId(3), Rejection::BadCertificate, 1)));
    }
}

/// STABLE is believed for its proof alone.
#[test]
fn a_stable_checkpoint_without_its_proof_is_refused() {
    let mut net = Net::new(4, every_4());
    let value = Checkpoint { instance: INSTANCE, sequence: Sequence(4), ruled: Sequence(0), root: Digest([6; 32]) };
    let proof = |net: &Net, signers: [u8; 2]| {
        let mine = |id: u8| (ReplicaId(id), net.keyring(r(id)).sign(value).signature());
        let mut signatures = signers.map(mine).to_vec();
        // The third signature is another replica's.
        signatures.push((ReplicaId(3), signatures[0].1));
        Claimed::certified(value, signatures)
    };
    for signers in [[0, 1], [0, 2]] {
        let stable = Box::new(proof(&net, signers));
        net.forge(r(2), r(1), crate::testing::net::ordering(PbftMessage::Stable(stable)));
    }
    net.settle();
    net.pass(2_000_000);
    assert_eq!(net.rejected(1, r(2), Rejection::BadCertificate), 2);
    assert!(!net.noticed(1, |notice| matches!(notice, Notice::Transfer { .. })));
}

/// Two right roots and a wrong one are not three equal ones.
#[test]
fn unequal_roots_do_not_add_up() {
    let mut net = Net::new(4, every_4());
    net.lose(|frame| kind(&frame.message) == "CHECKPOINT" && [r(2), r(3)].contains(&frame.from));
    let lie = Checkpoint { instance: INSTANCE, sequence: Sequence(4), ruled: Sequence(0), root: Digest([6; 32]) };
    let lie = Message::Checkpoint(Box::new(net.keyring(r(3)).sign(lie).into()));
    net.forge(r(3), r(0), lie);
    for value in 1..=4 {
        assert_eq!(net.add(1), done(value));
    }
    assert_eq!(net.hosts[0].replica.report().stable.0, 0);
    assert_eq!(net.hosts[2].replica.report().stable.0, 4, "it has its own, which 0 and 1 share");
}

#[test]
fn a_replica_whose_state_diverged_repairs_itself() {
    let damaged = |id| if id == 2 { Damaged::at(1) } else { Damaged::default() };
    let mut net = Net::serving(4, 1, ClientAuth::Hybrid, every_4(), damaged);
    for value in 1..=4 {
        assert_eq!(net.add(1), done(value), "three right answers outvote a wrong one");
    }
    net.settle();
    net.pass(2_000_000);
    assert!(net.noticed(2, |notice| matches!(notice, Notice::Diverged { sequence: Sequence(4), .. })));
    assert!(net.noticed(2, |notice| matches!(notice, Notice::Transfer { done: true, .. })));
    let others = net.hosts[0].replica.report().stable_root;
    // The damage is no request's doing: executed again they give what the others have.
    assert!(net.noticed(2, |notice| match notice {
        Notice::Repaired(found) => {
            let roots = (found.agreed.root(), found.replayed);
            found.sequence == Sequence(4)
                && found.since == Some(Sequence(0))
                && roots == (others, Some(others))
                && found.mine.changed(&found.agreed).first().is_some_and(|(number, _)| *number == 0)
        }
        _ => false,
    }));
    net.isolate(&[3]);
    assert_eq!(net.add(1), done(5), "its answer is needed, and right");
}

/// Whether a replica has noticed that its state is not that of the others.
fn doubts(net: &Net<Damaged>, at: usize) -> usize {
    net.hosts[at].notices.iter().filter(|(_, notice)| matches!(notice, Notice::Diverged { .. })).count()
}

/// How long an addition may take where something is repaired first, in tenths of a second.
const PATIENCE: usize = 100;

/// With one replica down nobody ever certifies a checkpoint against the wrong one: it learns from f+1 others, goes back
/// to what they signed, and signs again.
#[test]
fn a_replica_that_differs_from_f_plus_1_repairs_itself_without_a_certificate() {
    let damaged = |id| if id == 3 { Damaged::at(1) } else { Damaged::default() };
    let mut net = Net::serving(4, 1, ClientAuth::Hybrid, every_4(), damaged);
    for value in 1..=3 {
        assert_eq!(net.add(1), done(value));
    }
    net.isolate(&[1]);
    for value in 4..=21 {
        assert_eq!(net.add_within(PATIENCE, 0, 1), done(value), "two right ones and this one");
    }
    let report = |id: usize| net.hosts[id].replica.report();
    assert!(report(0).stable.0 >= 20);
    assert_eq!([0, 2, 3].map(|id| (report(id).stable, report(id).history)), [(report(0).stable, report(0).history); 3]);
    assert_eq!(report(3).differs, None);
    assert_eq!([0, 2, 3].map(|id| doubts(&net, id)), [0, 0, 1], "said once");
    assert!(net.noticed(3, |notice| matches!(notice, Notice::Repaired(found) if found.sequence == Sequence(4))));
}

/// The window is full, and two of five have signed other roots in it, each more than one: they sign again when
/// they have repaired themselves, and that counts, or nothing would ever be ordered again.
#[test]
fn what_is_signed_again_after_a_repair_counts() {
    let damaged = |id| if id >= 5 { Damaged::at(1) } else { Damaged::default() };
    let mut net = Net::serving(7, 1, ClientAuth::Hybrid, every_4(), damaged);
    net.lose(|frame| kind(&frame.message) == "CHECKPOINT");
    for value in 1..=6 {
        assert_eq!(net.add(1), done(value));
    }
    assert!([5, 6].iter().all(|id| net.hosts[*id].replica.report().differs.is_none()), "nobody has told them");
    for (liar, byte) in [(5, 6), (6, 7), (5, 8), (6, 9)] {
        let lie =
            Checkpoint { instance: INSTANCE, sequence: Sequence(4), ruled: Sequence(0), root: Digest([byte; 32]) };
        let lie = Message::Checkpoint(Box::new(net.keyring(r(liar)).sign(lie).into()));
        [0, 3, 4, 5, 6].into_iter().filter(|to| *to != liar).for_each(|to| net.forge(r(liar), r(to), lie.clone()));
    }
    net.settle();
    net.isolate(&[1, 2]);
    assert_eq!(net.add_within(PATIENCE, 0, 1), done(7));
    net.pass(1_000_000);
    let stable = [0, 3, 4, 5, 6].map(|id| net.hosts[id].replica.report().stable.0);
    assert!(stable[0] >= 4 && stable == [stable[0]; 5], "{stable:?}");
}

#[test]
fn a_state_that_differs_is_reported_until_it_is_repaired() {
    let damaged = |id| if id == 3 { Damaged::at(1) } else { Damaged::default() };
    let mut net = Net::serving(4, 1, ClientAuth::Hybrid, every_4(), damaged);
    for value in 1..=3 {
        assert_eq!(net.add(1), done(value));
    }
    let is_state = |frame: &Frame| ["NODE", "PAGE"].contains(&&*kind(&frame.message));
    net.lose(move |frame| frame.from == r(1) || frame.to == r(1) || is_state(frame));
    net.submit(0, &Counter::add(1), false);
    net.pass(5_000_000);
    let differs = |net: &Net<Damaged>| [0, 2, 3].map(|id| net.hosts[id].replica.report().differs);
    assert_eq!(differs(&net), [None, None, Some(Sequence(4))]);
    net.isolate(&[1]);
    for _ in 0..200 {
        net.pass(100_000);
    }
    assert_eq!(differs(&net), [None; 3]);
    assert_eq!(net.completed.pop().map(|completed| completed.result), done(4));
}

/// Two of seven are down, and two are wrong. What the other three signed is no proof for anybody: nothing is stable,
/// shown or written to disk for it, before the two have signed it as well.
#[test]
fn what_f_plus_1_signed_repairs_and_proves_nothing() {
    let damaged = |id| if id >= 5 { Damaged::at(1) } else { Damaged::default() };
    let mut net = Net::serving(7, 1, ClientAuth::Hybrid, every_4(), damaged);
    for value in 1..=3 {
        assert_eq!(net.add(1), done(value));
    }
    let is_down = |frame: &Frame| [r(1), r(2)].iter().any(|down| frame.from == *down || frame.to == *down);
    net.lose(move |frame| {
        is_down(frame) || matches!(&frame.message, Message::Checkpoint(vote) if vote.claims().ruled > Sequence(0))
    });
    assert_eq!(net.add_within(PATIENCE, 0, 1), done(4));
    let sum = |net: &Net<Damaged>| net.hosts[6].replica.service().query(Counter::READ, &Asker::default());
    assert_eq!((sum(&net), doubts(&net, 6)), (Ok(4u64.to_le_bytes().to_vec().into()), 1));
    let replica = &net.hosts[6].replica;
    assert_eq!((replica.report().stable.0, replica.report().differs), (0, None));
    assert!(replica.certain_checkpoint(None).is_none() && net.hosts[6].is_without_snapshot());
    assert!(net.sent.iter().all(|frame| kind(&frame.message) != "STABLE"));
    net.restart(6, false);
    net.isolate(&[1, 2]);
    assert_eq!(net.add_within(PATIENCE, 0, 1), done(5));
    net.pass(5_000_000);
    assert!(net.hosts[6].replica.report().stable.0 >= 4);
}

/// What is about the first checkpoint, or proves it.
fn is_of_the_first(frame: &Frame) -> bool {
    match &frame.message {
        Message::Checkpoint(vote) => vote.claims().sequence == Sequence(4),
        message => kind(message) == "STABLE",
    }
}

/// Two of seven are down, and what follows a ruling does not arrive.
fn are_two_down(frame: &Frame) -> bool {
    let is_down = [r(1), r(2)].iter().any(|down| frame.from == *down || frame.to == *down);
    is_down || matches!(&frame.message, Message::Checkpoint(vote) if vote.claims().ruled > Sequence(0))
}

/// Two were given the state at one checkpoint, for which f+1 had signed, and the last of them has not heard that an
/// older one is stable. It has no state there any more.
fn with_two_repaired() -> Net<Damaged> {
    let damaged = |id| if id >= 5 { Damaged::at(5) } else { Damaged::default() };
    let mut net = Net::serving(7, 1, ClientAuth::Hybrid, every_4(), damaged);
    net.lose(|frame| frame.to == r(6) && is_of_the_first(frame));
    for value in 1..=7 {
        assert_eq!(net.add(1), done(value));
    }
    net.lose(|frame| are_two_down(frame) || frame.to == r(6) && is_of_the_first(frame));
    assert_eq!(net.add_within(PATIENCE, 0, 1), done(8));
    assert!(net.noticed(6, |notice| matches!(notice, Notice::Repaired(found) if found.sequence == Sequence(8))));
    assert_eq!(stable_of_those_up(&net), [4, 4, 4, 0]);
    net
}

fn stable_of_those_up(net: &Net<Damaged>) -> [u64; 4] {
    [0, 3, 4, 6].map(|id| net.hosts[id].replica.report().stable.0)
}

/// All others are beyond that, and testify from it: so it fetches it.
#[test]
fn an_older_checkpoint_that_is_stable_counts_after_a_repair() {
    let mut net = with_two_repaired();
    net.lose(are_two_down);
    net.pass(10_000_000);
    assert_eq!(stable_of_those_up(&net), [4; 4]);
    net.isolate(&[1, 2]);
    net.pass(10_000_000);
    let after = stable_of_those_up(&net);
    assert!(after[0] >= 8 && after == [after[0]; 4], "{after:?}");
}

/// The proof of that older checkpoint comes after one of a newer checkpoint, to which the replica has not come. The
/// others may keep nothing that is as old.
#[test]
fn an_older_proof_does_not_take_the_place_of_a_newer_one() {
    let mut net = with_two_repaired();
    let report = net.hosts[0].replica.report();
    let older =
        Checkpoint { instance: INSTANCE, sequence: report.stable, ruled: Sequence(0), root: report.stable_root };
    let newer = Checkpoint { sequence: Sequence(12), root: Digest([12; 32]), ..older };
    for checkpoint in [newer, older] {
        for signer in 0..5 {
            let vote = Message::Checkpoint(Box::new(net.keyring(r(signer)).sign(checkpoint).into()));
            net.forge(r(0), r(6), vote);
        }
        net.round();
    }
    assert_eq!(net.hosts[6].replica.report().transfer.map(|(target, _)| target), Some(newer.sequence));
}

/// The state is right again at the next checkpoint, before the right one of the last is here: that must not be gone
/// back to.
#[test]
fn what_is_right_again_is_not_replaced_by_something_older() {
    let damaged = |id| if id == 3 { Damaged::for_a_while(1, 6) } else { Damaged::default() };
    let mut net = Net::serving(4, 1, ClientAuth::Hybrid, every_4(), damaged);
    net.lose(|frame| ["NODE", "PAGE"].contains(&&*kind(&frame.message)));
    for value in 1..=7 {
        assert_eq!(net.add(1), done(value));
    }
    assert_eq!(net.hosts[3].replica.report().differs, Some(Sequence(4)));
    assert_eq!(net.add(1), done(8));
    net.heal();
    net.pass(5_000_000);
    let report = net.hosts[3].replica.report();
    assert_eq!((report.differs, report.transfer, report.stable.0), (None, None, 8));
    assert!(!net.noticed(3, |notice| matches!(notice, Notice::Repaired(_))));
}

/// f liars who sign another root each, or twice, or the same: nobody doubts itself.
#[test]
fn f_liars_make_nobody_doubt_its_state() {
    let mut net = Net::serving(7, 1, ClientAuth::Hybrid, every_4(), |_| Damaged::default());
    let value =
        |byte| Checkpoint { instance: INSTANCE, sequence: Sequence(4), ruled: Sequence(0), root: Digest([byte; 32]) };
    net.lose(|frame| kind(&frame.message) == "CHECKPOINT" && [r(5), r(6)].contains(&frame.from));
    for round in [3, 4] {
        for _ in 0..3 - round % 3 {
            net.add(1);
        }
        for (liar, byte) in [(5, 6), (5, 7), (6, 6), (6, 7), (6, 8)] {
            let lie = Message::Checkpoint(Box::new(net.keyring(r(liar)).sign(value(byte)).into()));
            (0..5).for_each(|to| net.forge(r(liar), r(to), lie.clone()));
        }
        net.settle();
    }
    net.pass(2_000_000);
    assert_eq!([0, 1, 2, 3, 4].map(|id| doubts(&net, id)), [0; 5]);
    assert_eq!([0, 1, 2, 3, 4].map(|id| net.hosts[id].replica.report().stable.0), [4; 5]);
}

#[test]
fn a_replica_that_executes_otherwise_is_told_from_one_that_was_altered() {
    let other = |id| if id == 2 { Damaged::always() } else { Damaged::default() };
    let mut net = Net::serving(4, 1, ClientAuth::Hybrid, every_4(), other);
    for value in 1..=8 {
        assert_eq!(net.add(1), done(value));
    }
    net.settle();
    net.pass(2_000_000);
    let found = |sequence, since| {
        net.noticed(2, |notice| match notice {
            Notice::Repaired(found) => {
                (found.sequence, found.since, found.replayed) == (sequence, Some(since), Some(found.mine.root()))
            }
            _ => false,
        })
    };
    assert!(found(Sequence(4), Sequence(0)), "each time");
    assert!(found(Sequence(8), Sequence(4)), "each time");
}

/// What third parties are shown is what 2f+1 signed, with its pages.
#[test]
fn every_replica_shows_the_stable_checkpoint_with_its_proof() {
    let mut net = Net::new(4, every_4());
    assert!(net.hosts[0].replica.certain_checkpoint(None).is_none());
    for value in 1..=5 {
        assert_eq!(net.add(1), done(value));
    }
    net.settle();
    for host in &net.hosts {
        let shown = host.replica.certain_checkpoint(None).unwrap();
        assert_eq!((shown.sequence(), shown.is_consistent()), (Sequence(4), true));
        let (keys, cluster) = (host.replica.keyring().keys(), host.replica.cluster());
        let mut claim = shown.evidence.claim();
        assert!(keys.verify_certificate(&Paper, cluster, claim.clone(), cluster.replicas.strong()).is_some());
        claim.claims_mut().sequence = Sequence(8);
        assert!(keys.verify_certificate(&Paper, cluster, claim, 1).is_none());
        let checkpoint = shown.evidence.checkpoint();
        assert!(host.replica.certain_checkpoint(Some(checkpoint)).is_none());
        assert_eq!(host.replica.newest_checkpoint().evidence.checkpoint(), checkpoint);
    }
}
