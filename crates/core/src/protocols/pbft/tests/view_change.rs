//! View changes: PBFT 7 to 10.

use super::forging::{batch, claim, commit, new_view, pre_prepare, request, signed_view_change, view_change};
use crate::auth::{Claimed, Signed};
use crate::checkpoint::Checkpoint;
use crate::cluster::Limits;
use crate::digest::Digest;
use crate::ids::{InstanceId, Principal, ReplicaId, Sequence, View};
use crate::notice::Notice;
use crate::protocols::pbft::{Ordering, PbftMessage, PbftRecord, Position, Status, ViewChange};
use crate::registry::{InstanceRecord, Message};
use crate::rejection::Rejection;
use crate::services::Counter;
use crate::testing::net::{Event, Frame, Net, done, kind, r};
use alloc::boxed::Box;
use alloc::vec::Vec;

#[test]
fn a_silent_primary_costs_one_view_and_no_request() {
    let mut net = Net::new(4, Limits::default());
    assert_eq!(net.add(1), done(1));
    net.isolate(&[0]);
    assert_eq!(net.add(1), None);
    net.pass(10_000_000);
    assert_eq!(net.completed.pop().map(|completed| completed.result), done(2));
    assert_eq!(net.views()[1..], [1; 3]);
    assert_eq!(net.add(1), done(3));
    net.heal();
    net.pass(2_000_000);
    assert_eq!(net.executed(), [3; 4]);
    assert_eq!(net.views(), [1; 4]);
}

/// A signature binds the signer, whoever passes the message on.
#[test]
fn a_view_change_that_is_not_sound_does_not_count() {
    let mut net = Net::new(4, Limits::default());
    net.isolate(&[0, 2, 3]);
    let window = net.cluster.window();
    let bad = [
        signed_view_change(&net, 2, 3, alloc::vec![claim(3, 1, Digest([1; 32]))], alloc::vec![]),
        signed_view_change(&net, 2, 3, alloc::vec![claim(0, window + 1, Digest([1; 32]))], alloc::vec![]),
        signed_view_change(&net, 2, 3, alloc::vec![], alloc::vec![claim(0, 0, Digest([1; 32]))]),
    ];
    let as_message = |signed| crate::testing::net::ordering(PbftMessage::ViewChange(Box::new(signed)));
    for signed in bad {
        net.forge(r(2), r(1), as_message(signed));
    }
    net.round();
    assert_eq!(net.rejected(1, r(2), Rejection::BadViewChange), 3);
    let own = signed_view_change(&net, 2, 3, Vec::new(), Vec::new());
    let stolen = Claimed::signed(own.claims().clone(), ReplicaId(3), own.signature());
    net.forge(r(2), r(1), as_message(stolen));
    net.round();
    assert_eq!(net.rejected(1, r(2), Rejection::BadSignature), 1);
    assert_eq!(net.views()[1], 0);
}

/// h and C: a VIEW-CHANGE proves the checkpoint that it starts from.
#[test]
fn a_view_change_must_prove_its_checkpoint() {
    let mut net = Net::new(4, Limits { checkpoint_interval: 4, ..Limits::default() });
    net.isolate(&[0, 2, 3]);
    let root = net.hosts[0].replica.report().stable_root;
    let stable = |instance, sequence, signers: &[u8]| {
        let value =
            Checkpoint { instance: InstanceId(instance), sequence: Sequence(sequence), ruled: Sequence(0), root };
        let signature = |id: &u8| (ReplicaId(*id), net.keyring(r(*id)).sign(value).signature());
        Claimed::certified(value, signers.iter().map(signature).collect())
    };
    let wrong = [stable(1, 4, &[0, 2]), stable(1, 4, &[]), stable(1, 0, &[0, 2, 3]), stable(2, 4, &[0, 2, 3])];
    let right = stable(1, 4, &[0, 2, 3]);
    let said = |net: &Net, stable| {
        let value = ViewChange { view: View(3), stable, prepared: Vec::new(), pre_prepared: Vec::new() };
        crate::testing::net::ordering(PbftMessage::ViewChange(Box::new(net.keyring(r(2)).sign(value).into())))
    };
    for (count, stable) in (1..).zip(wrong) {
        let message = said(&net, stable);
        net.forge(r(2), r(1), message);
        net.round();
        assert_eq!(net.rejected(1, r(2), Rejection::BadViewChange), count);
    }
    let message = said(&net, right);
    net.forge(r(2), r(1), message);
    net.round();
    assert_eq!(net.rejected(1, r(2), Rejection::BadViewChange), 4, "the right one is none of them");
}

/// A batch that is said to be prepared above a checkpoint that nobody has signed, where no numbers are left.
#[test]
fn a_view_change_from_the_last_of_all_numbers_is_refused() {
    let mut net = Net::new(4, Limits::default());
    let root = net.hosts[0].replica.report().stable_root;
    for (count, low) in (1..).zip([u64::MAX - 1, u64::MAX]) {
        let checkpoint = Checkpoint { instance: InstanceId(1), sequence: Sequence(low), ruled: Sequence(0), root };
        let stable = Claimed::certified(checkpoint, Vec::new());
        let prepared = alloc::vec![claim(0, u64::MAX, Digest([1; 32]))];
        let value = ViewChange { view: View(3), stable, prepared, pre_prepared: Vec::new() };
        let signed = net.keyring(r(2)).sign(value).into();
        net.forge(r(2), r(1), crate::testing::net::ordering(PbftMessage::ViewChange(Box::new(signed))));
        net.round();
        assert_eq!(net.rejected(1, r(2), Rejection::BadViewChange), count);
    }
    assert_eq!(net.add(1), done(1));
}

/// Of each replica the newest VIEW-CHANGE counts, in whatever order they arrive.
#[test]
fn an_older_view_change_does_not_replace_a_newer_one() {
    let mut net = Net::new(4, Limits::default());
    net.isolate(&[0, 2, 3]);
    for (signer, view) in [(2, 5), (2, 3), (3, 4)] {
        let message = view_change(&net, signer, view);
        net.forge(r(signer), r(1), message);
    }
    net.round();
    assert_eq!(net.views()[1], 4, "the smallest of 5 and 4");
}

/// COMMITs of view 0 are lost, and so is replica 0.
fn lose_primary_and_commits(net: &mut Net) {
    net.lose(|frame| match &frame.message {
        Message::Ordering(Ordering { message: PbftMessage::Commit(vote), .. }) if vote.view.0 == 0 => true,
        _ => [frame.from, frame.to].contains(&r(0)),
    });
}

/// What was executed tentatively at 2f+1 replicas, and so answered, survives the view.
#[test]
fn a_prepared_batch_keeps_its_place_in_the_next_view() {
    let mut net = Net::new(4, Limits::default());
    net.lose(|frame| kind(&frame.message) == "COMMIT");
    assert_eq!(net.add(1), done(1), "answered by tentative replies alone");
    lose_primary_and_commits(&mut net);
    assert_eq!(net.add(1), None);
    net.pass(10_000_000);
    assert_eq!(net.completed.pop().map(|completed| completed.result), done(2));
    assert!(net.views()[1..].iter().all(|view| *view > 0));
    net.heal();
    net.pass(3_000_000);
    assert_eq!(net.executed()[0], net.executed()[1]);
    assert_eq!(net.hosts[0].replica.report().history, net.hosts[1].replica.report().history);
}

/// prac-F27, the replay rule: a batch chosen by a new view was checked when it was fresh. However long ago that was, it
/// is not validated again.
#[test]
fn a_batch_that_a_new_view_chooses_is_never_validated_again() {
    let mut net = Net::new(4, Limits::default());
    net.lose(|frame| kind(&frame.message) == "COMMIT");
    assert_eq!(net.add(1), done(1));
    net.lose(|_| true);
    net.pass(net.cluster.limits.clock_skew_max.0 * 3);
    lose_primary_and_commits(&mut net);
    assert_eq!(net.add(1), None);
    net.pass(60_000_000);
    assert_eq!(net.completed.pop().map(|completed| completed.result), done(2));
    for at in 1..4 {
        assert!((0..4).all(|from| net.rejected(at, r(from), Rejection::BadAgreedValue) == 0));
    }
}

/// Tentative execution "may be rolled back if there is a view change". Replica 3 alone prepares a batch, and is not
/// heard in the view change: the new view does not know the batch, and replica 3 undoes it.
#[test]
fn a_tentative_execution_is_undone_when_the_new_view_chooses_otherwise() {
    let mut net = Net::new(4, Limits::default());
    assert_eq!(net.add(5), done(5));
    net.lose(|frame| kind(&frame.message) == "PREPARE" && frame.to != r(3));
    assert_eq!(net.add(1), None);
    assert_eq!(net.hosts[3].replica.estate().executed().0, 2, "executed tentatively");
    assert_eq!(net.executed(), [1; 4]);
    net.lose(|frame| match &frame.message {
        Message::Ordering(Ordering { message: PbftMessage::Prepare(vote), .. }) if vote.view.0 == 0 => true,
        _ => frame.from == r(3),
    });
    net.pass(4_000_000);
    assert!(net.noticed(3, |notice| matches!(notice, Notice::RolledBack { to } if to.0 == 1)));
    net.heal();
    net.pass(10_000_000);
    assert_eq!(net.completed.pop().map(|completed| completed.result), done(6), "executed once, in the new view");
    assert_eq!(net.add(1), done(7));
    net.pass(2_000_000);
    let histories: Vec<Digest> = net.hosts.iter().map(|host| host.replica.report().history).collect();
    assert!(histories.iter().all(|history| *history == histories[0]));
}

/// The VIEW-CHANGEs for view 1 as the replicas said them.
fn said_view_changes(net: &Net) -> Vec<Claimed<Signed<ViewChange>>> {
    (0..4)
        .filter_map(|id| match &net.said(r(id), "VIEW-CHANGE").first()?.message {
            Message::Ordering(Ordering { message: PbftMessage::ViewChange(signed), .. }) => Some((**signed).clone()),
            _ => None,
        })
        .collect()
}

/// "A backup accepts a new-view message for view v + 1 if it is signed properly, if the view-change messages it
/// contains are valid for view v + 1, and if the set is correct; it verifies the correctness by performing a
/// computation similar to the one used by the primary."
#[test]
fn a_new_view_that_does_not_follow_is_refused() {
    let mut net = Net::new(4, Limits::default());
    net.lose(|frame| kind(&frame.message) == "COMMIT");
    assert_eq!(net.add(1), done(1));
    net.lose(|frame| kind(&frame.message) == "NEW-VIEW" || frame.from == r(0) || frame.to == r(0));
    assert_eq!(net.add(1), None);
    net.pass(3_000_000);
    let changes = said_view_changes(&net);
    assert_eq!(changes.len(), 3);
    let right = changes[0].claims().prepared[0].digest;
    let refused = [
        (1, changes.clone(), alloc::vec![], Rejection::BadViewChange),
        (1, changes.clone(), alloc::vec![Digest([9; 32])], Rejection::BadViewChange),
        (1, changes.clone(), alloc::vec![right, right], Rejection::BadViewChange),
        (1, changes[..2].to_vec(), alloc::vec![right], Rejection::BadViewChange),
        (3, changes.clone(), alloc::vec![right], Rejection::WrongSender),
        (1, forged(&net, &changes), alloc::vec![right], Rejection::BadViewChange),
    ];
    for (signer, changes, chosen, reason) in refused {
        let before = net.rejected(2, r(signer), reason);
        let message = new_view(&net, signer, 1, changes, chosen);
        net.forge(r(signer), r(2), message);
        net.settle();
        assert_eq!(net.rejected(2, r(signer), reason), before + 1, "{reason}");
        assert!(net.hosts[2].replica.report().changing_view);
    }
    let message = new_view(&net, 1, 1, changes, alloc::vec![right]);
    net.forge(r(1), r(2), message);
    net.settle();
    assert!(!net.hosts[2].replica.report().changing_view, "the right one is accepted");
}

/// One of the VIEW-CHANGEs says more than its signer did, though nothing that matters to the choice.
fn forged(net: &Net, changes: &[Claimed<Signed<ViewChange>>]) -> Vec<Claimed<Signed<ViewChange>>> {
    let mut changes = changes.to_vec();
    let last = changes.last_mut().unwrap();
    last.claims_mut().pre_prepared.push(claim(0, 2, Digest([9; 32])));
    assert!(net.keyring(r(0)).verify_in_place(last).is_none());
    changes
}

/// "The backups multicast PREPARE for each chosen batch": the new view goes through the normal case again.
#[test]
fn chosen_batches_are_prepared_again_in_the_new_view() {
    let mut net = Net::new(4, Limits::default());
    net.lose(|frame| kind(&frame.message) == "COMMIT");
    assert_eq!(net.add(1), done(1));
    lose_primary_and_commits(&mut net);
    assert_eq!(net.add(1), None);
    net.pass(4_000_000);
    let in_view_1 = |event: &Event| match event {
        Event::Delivered(frame) => match &frame.message {
            Message::Ordering(Ordering { message: PbftMessage::Prepare(vote), .. }) => {
                vote.view.0 == 1 && vote.sequence.0 == 1
            }
            _ => false,
        },
        _ => false,
    };
    let mut senders: Vec<Principal> = Vec::new();
    for event in net.events.iter().filter(|event| in_view_1(event)) {
        if let Event::Delivered(frame) = event {
            senders.push(frame.from);
        }
    }
    senders.sort();
    senders.dedup();
    assert_eq!(senders, [r(2), r(3)], "the backups of view 1 that are there");
}

fn histories(net: &Net) -> Vec<Digest> {
    net.hosts.iter().map(|host| host.replica.report().history).collect()
}

/// The primary says one thing to replica 1 and another to the others. At most one of them prepares; it stays.
#[test]
fn an_equivocating_primary_cannot_make_two_batches_final() {
    let mut net = Net::with(4, 2, crate::cluster::ClientAuth::Hybrid, Limits::default());
    net.isolate(&[0]);
    let requests = [1, 2].map(|amount| request(&net, 1, amount, &Counter::add(amount)));
    let [one, two] = requests.map(|request| batch(net.now, alloc::vec![request]));
    net.forge(r(0), r(1), pre_prepare(0, 1, &one));
    net.forge(r(0), r(2), pre_prepare(0, 1, &two));
    net.forge(r(0), r(3), pre_prepare(0, 1, &two));
    net.settle();
    assert_eq!(net.said(r(2), "COMMIT").len(), 3, "two backups and the primary are enough to prepare");
    assert!(net.said(r(1), "COMMIT").is_empty());
    assert_eq!(net.add(10), None);
    net.pass(10_000_000);
    assert_eq!(net.completed.pop().map(|completed| completed.result), done(12), "2 + 10");
    assert_eq!(histories(&net)[1], histories(&net)[2]);
    assert_eq!(histories(&net)[1], histories(&net)[3]);
}

/// Three backups with three different batches: nothing prepared, so nothing was promised, and the view is cleared.
#[test]
fn what_did_not_prepare_is_void_in_the_next_view() {
    let mut net = Net::with(4, 2, crate::cluster::ClientAuth::Hybrid, Limits::default());
    net.isolate(&[0]);
    for id in 1..4 {
        let request = request(&net, 1, id, &Counter::add(id));
        let proposal = batch(net.now, alloc::vec![request]);
        net.forge(r(0), r(id as u8), pre_prepare(0, 1, &proposal));
    }
    net.settle();
    assert!((1..4).all(|id| net.said(r(id), "COMMIT").is_empty()));
    assert_eq!(net.add(10), None);
    net.pass(10_000_000);
    assert_eq!(net.completed.pop().map(|completed| completed.result), done(10));
}

/// "If the primary does not have the batch, it fetches it": no NEW-VIEW before every chosen batch is at hand.
#[test]
fn a_new_primary_fetches_the_chosen_batches_first() {
    let mut net = Net::new(4, Limits::default());
    net.lose(|frame| match kind(&frame.message).as_str() {
        "PRE-PREPARE" => frame.to == r(1),
        "COMMIT" => true,
        _ => false,
    });
    assert_eq!(net.add(1), done(1), "replicas 0, 2 and 3 prepared it");
    net.isolate(&[0]);
    assert_eq!(net.add(1), None);
    net.pass(10_000_000);
    assert_eq!(net.completed.pop().map(|completed| completed.result), done(2));
    assert_eq!(net.views()[1..], [1; 3]);
    let first = |what| net.sent.iter().position(|frame| frame.from == r(1) && kind(&frame.message) == what);
    assert!(first("FETCH-BATCH").is_some() && first("FETCH-BATCH") < first("NEW-VIEW"));
}

/// A replica that was away for more than a window is needed in the new view: the proof of the stable checkpoint in
/// NEW-VIEW moves its window, it votes for what follows, and fetches the state in the meantime.
#[test]
fn a_new_view_moves_the_window_of_a_replica_that_fell_behind() {
    let mut net = Net::new(4, Limits { checkpoint_interval: 4, ..Limits::default() });
    net.isolate(&[3]);
    for value in 1..=21 {
        assert_eq!(net.add(1), done(value));
    }
    let unreachable = |frame: &Frame| [frame.from, frame.to].contains(&r(0)) || kind(&frame.message) == "STABLE";
    net.lose(move |frame| unreachable(frame) || kind(&frame.message) == "FETCH-NODE");
    assert_eq!(net.add(1), None);
    net.pass(5_000_000);
    assert!(!net.said(r(3), "PREPARE").is_empty(), "it votes although its state is not there yet");
    let kept = net.hosts[3].replica.report().slots;
    let past = Position { sequence: Sequence(2), digest: Digest::ZERO };
    net.forge(r(1), r(3), crate::testing::net::ordering(PbftMessage::Decided(past)));
    net.round();
    assert_eq!(net.hosts[3].replica.report().slots, kept, "more than a window ago: nothing of it is kept");
    net.lose(unreachable);
    net.pass(10_000_000);
    assert_eq!(net.completed.pop().map(|completed| completed.result), done(22));
    assert!(net.noticed(3, |notice| matches!(notice, Notice::Transfer { done: true, .. })));
    net.pass(2_000_000);
    assert_eq!(net.executed()[3], net.executed()[1]);
}

/// f = 2: the first two primaries are silent, the third leads.
#[test]
fn f_silent_primaries_cost_f_views() {
    let mut net = Net::new(7, Limits::default());
    net.isolate(&[0, 1]);
    assert_eq!(net.add(1), None);
    net.pass(20_000_000);
    assert_eq!(net.completed.pop().map(|completed| completed.result), done(1));
    assert_eq!(net.views()[2..], [2; 5]);
    assert_eq!(net.add(1), done(2), "and the client knows the new primary");
}

/// A view is left once: what arrives late for it changes nothing.
#[test]
fn votes_of_a_past_view_are_refused() {
    let mut net = Net::new(4, Limits::default());
    net.isolate(&[0]);
    assert_eq!(net.add(1), None);
    net.pass(4_000_000);
    assert_eq!(net.views()[1..], [1; 3]);
    let proposal = batch(net.now, alloc::vec![request(&net, 0, 1, b"")]);
    net.forge(r(0), r(2), pre_prepare(0, 3, &proposal));
    net.forge(r(0), r(2), commit(0, 3, proposal.digest()));
    net.settle();
    assert_eq!(net.rejected(2, r(0), Rejection::WrongView), 2);
}

/// Whether a COMMIT of view 0.
fn commits_in_view_0(frame: &Frame) -> bool {
    matches!(&frame.message, Message::Ordering(Ordering { message: PbftMessage::Commit(vote), .. }) if vote.view.0 == 0)
}

/// A primary that lies helps one backup to commit and nobody else, and the client has its answer: nobody asks again.
/// The others learn from f+1 COMMITs that the batch is owed to them, and leave.
#[test]
fn what_one_replica_committed_all_will_although_no_client_asks() {
    let mut net = Net::new(4, Limits::default());
    net.lose(|frame| match kind(&frame.message).as_str() {
        "PRE-PREPARE" => frame.to == r(3),
        "COMMIT" => frame.to != r(1),
        _ => false,
    });
    assert_eq!(net.add(1), done(1), "answered by tentative replies");
    assert_eq!(net.executed(), [0, 1, 0, 0]);
    net.isolate(&[0]);
    net.pass(10_000_000);
    assert_eq!(net.executed()[1..], [1; 3]);
    assert_eq!(net.views()[1..], [1; 3]);
}

/// The same, but the second replica that prepared the batch has left the view: it still says that it prepared there.
#[test]
fn who_has_left_a_view_still_says_what_prepared_there() {
    let mut net = Net::new(4, Limits::default());
    net.lose(|frame| match kind(&frame.message).as_str() {
        "PRE-PREPARE" => frame.to == r(3),
        "COMMIT" => frame.to != r(1),
        _ => false,
    });
    assert_eq!(net.add(1), done(1));
    net.isolate(&[0, 2]);
    let waiting = request(&net, 0, net.now.0 + 1, &Counter::add(1));
    net.forge(crate::testing::net::c(0), r(2), Message::Request(waiting));
    net.pass(3_000_000);
    assert_eq!(net.views(), [0, 0, 1, 0]);
    net.isolate(&[0]);
    net.pass(10_000_000);
    assert_eq!(net.executed()[1..], [2; 3]);
}

/// The same in a later view: one replica has committed in view 0 and missed view 1. What NEW-VIEW chose is owed, even
/// if it cannot prepare any more.
#[test]
fn what_a_new_view_chose_is_watched() {
    let mut net = Net::new(4, Limits::default());
    net.lose(|frame| commits_in_view_0(frame) && frame.to != r(3));
    assert_eq!(net.add(1), done(1));
    assert_eq!(net.executed(), [0, 0, 0, 1]);
    net.lose(|frame| match &frame.message {
        _ if [frame.from, frame.to].contains(&r(0)) => true,
        Message::Ordering(Ordering { message: PbftMessage::NewView(signed), .. }) => {
            frame.to == r(3) && signed.claims().view.0 == 1
        }
        _ => frame.from == r(3) && commits_in_view_0(frame),
    });
    net.pass(3_000_000);
    assert_eq!(net.views()[1..3], [1; 2]);
    net.pass(10_000_000);
    assert_eq!(net.executed()[1..], [1; 3]);
    assert!(net.views()[1..].iter().all(|view| *view > 1));
}

/// Replica 3 hears a client and nobody else, and leaves the view.
fn leave_alone(net: &mut Net) {
    net.isolate(&[3]);
    let waiting = request(net, 0, net.now.0 + 1, &Counter::add(1));
    net.forge(crate::testing::net::c(0), r(3), Message::Request(waiting));
    net.pass(3_000_000);
    assert_eq!(net.views(), [0, 0, 0, 1]);
    net.heal();
}

/// A replica that has left its view alone must not vote in it any more. The primary begins anew for it; nobody else
/// notices, and the next crash costs no time-out.
#[test]
fn a_replica_that_left_alone_is_brought_back() {
    let mut net = Net::new(4, Limits::default());
    assert_eq!(net.add(1), done(1));
    leave_alone(&mut net);
    net.pass(8_000_000);
    assert_eq!(net.views(), [4; 4]);
    assert!(net.hosts.iter().all(|host| !host.replica.report().changing_view));
    net.isolate(&[2]);
    let result = net.add(1);
    assert!(result.is_some(), "at once");
}

/// What a liar says that it needs costs one short interruption in three time-outs, and never the primary.
#[test]
fn a_view_is_not_begun_anew_again_and_again() {
    let mut net = Net::new(4, Limits::default());
    net.isolate(&[3]);
    for _ in 0..60 {
        for id in 0..3 {
            let (view, sequence) = (View(net.views()[0] + 1), Sequence(0));
            let (stable, committed) = (sequence, sequence);
            let (begun, way) = (View(0), Digest::ZERO);
            let status =
                Status { view, changing: true, stable, committed, begun, way, abstaining: true, failing: false };
            net.forge(r(3), r(id), crate::testing::net::ordering(PbftMessage::Status(status)));
        }
        net.pass(1_000_000);
    }
    assert!(net.views()[..3].iter().all(|view| *view == net.views()[0] && view % 4 == 0 && *view <= 40));
    assert!(net.views()[0] >= 4);
}

/// Without its primary no view goes on, so nobody waits for a time-out when the primary says that it leaves.
#[test]
fn all_leave_with_the_primary() {
    let mut net = Net::new(4, Limits::default());
    net.isolate(&[0]);
    for id in 1..4 {
        let message = view_change(&net, 0, 1);
        net.forge(r(0), r(id), message);
    }
    net.settle();
    assert_eq!(net.views()[1..], [1; 3]);
    assert!(!net.hosts[1].replica.report().changing_view);
}

/// … but a primary that begins anew whenever it would have to order something is left for the next one.
#[test]
fn a_primary_does_not_put_off_its_end_by_beginning_anew() {
    let mut net = Net::new(4, Limits::default());
    net.isolate(&[0]);
    for id in 1..4 {
        let message = view_change(&net, 0, 4);
        net.forge(r(0), r(id), message);
    }
    net.settle();
    net.pass(3_500_000);
    assert_eq!(net.views()[1..], [0; 3], "the view is younger than two time-outs");
    net.pass(1_000_000);
    assert_eq!(net.views()[1..], [4; 3]);
    net.pass(2_500_000);
    assert_eq!(net.views()[1..], [5; 3], "nor by leaving without beginning anew");
}

/// Q tells what the last view chose, whether it could be accepted or not: in that view nothing else can have been.
#[test]
fn who_knows_what_a_view_chose_vouches_for_it() {
    let mut net = Net::new(4, Limits::default());
    net.lose(|frame| match kind(&frame.message).as_str() {
        "PRE-PREPARE" | "BATCH" => frame.to == r(3),
        kind => kind == "COMMIT",
    });
    assert_eq!(net.add(1), done(1), "replicas 0, 1 and 2 prepared it");
    net.lose(|frame| match kind(&frame.message).as_str() {
        "PRE-PREPARE" | "BATCH" => frame.to == r(3),
        _ => frame.from == r(0) || frame.to == r(0),
    });
    assert_eq!(net.add(1), None);
    net.pass(3_500_000);
    assert_eq!(net.views()[1..], [1; 3]);
    let after = leave_for(&mut net, 2);
    assert_eq!(after.prepared, []);
    assert_eq!(after.pre_prepared.len(), 1);
    assert_eq!((after.pre_prepared[0].sequence.0, after.pre_prepared[0].view.0), (1, 1));
}

/// Replicas 1 and 2 want another view; what replica 3 brings into it.
fn leave_for(net: &mut Net, view: u64) -> ViewChange {
    for from in [1, 2] {
        let message = view_change(net, from, view);
        net.forge(r(from), r(3), message);
    }
    net.round();
    match &net.said(r(3), "VIEW-CHANGE").last().unwrap().message {
        Message::Ordering(Ordering { message: PbftMessage::ViewChange(signed), .. }) => signed.claims().clone(),
        _ => unreachable!(),
    }
}

/// A view refutes what it did not choose, also for those who left it before they heard of it: else a replica that was
/// cut off would claim for ever what nobody else remembers, and no view could begin with its VIEW-CHANGE.
#[test]
fn who_missed_a_view_learns_how_it_began() {
    let mut net = Net::new(4, Limits::default());
    net.lose(|frame| kind(&frame.message) == "PREPARE" && frame.to != r(3));
    assert_eq!(net.add(1), None);
    net.lose(|frame| match &frame.message {
        Message::Ordering(Ordering { message: PbftMessage::Prepare(vote), .. }) if vote.view.0 == 0 => true,
        _ => [frame.from, frame.to].contains(&r(3)),
    });
    net.pass(4_000_000);
    assert_eq!(net.views(), [1, 1, 1, 0]);
    let before = leave_for(&mut net, 2);
    assert_eq!((before.view.0, before.prepared.len(), before.pre_prepared.len()), (2, 1, 1));
    net.lose(|frame| frame.to == r(3) && !matches!(kind(&frame.message).as_str(), "NEW-VIEW" | "STATUS"));
    net.pass(2_000_000);
    assert!(net.noticed(3, |notice| matches!(notice, Notice::ViewMissed { view } if view.0 == 1)));
    let after = leave_for(&mut net, 3);
    assert_eq!((after.view.0, after.prepared.len()), (3, 0));
    net.lose(|_| true);
    net.restart(3, false);
    let restarted = leave_for(&mut net, 5);
    assert_eq!(restarted.prepared.len(), 0, "a crash does not bring it back");
}

/// A liar says to have prepared what nobody has. The new view begins without its word.
#[test]
fn a_new_primary_does_without_a_claim_that_nobody_can_show() {
    let mut net = Net::new(4, Limits::default());
    net.isolate(&[0, 2, 3]);
    let lost = claim(0, 1, Digest([9; 32]));
    let changes = [
        signed_view_change(&net, 0, 1, alloc::vec![lost], alloc::vec![lost]),
        signed_view_change(&net, 2, 1, alloc::vec![], alloc::vec![lost]),
        signed_view_change(&net, 3, 1, alloc::vec![], alloc::vec![]),
    ];
    for signed in changes {
        let from = r(signed.signer().0);
        net.forge(from, r(1), crate::testing::net::ordering(PbftMessage::ViewChange(Box::new(signed))));
        net.round();
    }
    assert_eq!(net.views()[1], 1);
    assert!(!net.hosts[1].replica.report().changing_view);
}

/// The primary of view 1 lies: it begins its view in two ways, each of which follows from VIEW-CHANGEs. To r2 it says
/// that the batch which that has prepared is chosen, to r0 and r3 that nothing is. Then it is silent.
fn begin_in_two_ways() -> Net {
    let mut net = Net::new(4, Limits::default());
    net.lose(|frame| kind(&frame.message) == "PREPARE" && frame.to != r(2));
    assert_eq!(net.add(1), None);
    net.lose(|frame| match &frame.message {
        Message::Ordering(Ordering { message: PbftMessage::Prepare(vote), .. }) if vote.view.0 == 0 => true,
        _ => [frame.from, frame.to].contains(&r(1)),
    });
    net.pass(3_000_000);
    assert!([0, 2, 3].iter().all(|id| net.hosts[*id].replica.report().changing_view), "view 1 does not begin");
    let [from_0, from_2, from_3]: [Claimed<Signed<ViewChange>>; 3] = [0, 2, 3].map(|id| {
        let said = net.said(r(id), "VIEW-CHANGE");
        match &said.last().unwrap().message {
            Message::Ordering(Ordering { message: PbftMessage::ViewChange(signed), .. }) => (**signed).clone(),
            _ => unreachable!(),
        }
    });
    assert_eq!(
        (from_0.claims().prepared.len(), from_2.claims().prepared.len(), from_3.claims().prepared.len()),
        (0, 1, 0)
    );
    let digest = from_2.claims().prepared[0].digest;
    let lie = signed_view_change(&net, 1, 1, Vec::new(), Vec::new());
    let one = new_view(&net, 1, 1, alloc::vec![lie.clone(), from_2, from_3.clone()], alloc::vec![digest]);
    let other = new_view(&net, 1, 1, alloc::vec![from_0, lie, from_3], Vec::new());
    net.forge(r(1), r(2), one);
    net.forge(r(1), r(0), other.clone());
    net.forge(r(1), r(3), other);
    net.settle();
    assert!([0, 2, 3].iter().all(|id| !net.hosts[*id].replica.report().changing_view));
    net
}

/// If r2 went on claiming its batch, and the others had forgotten that they accepted it, no choice would be total.
#[test]
fn a_view_that_began_in_two_ways_does_not_stop_those_after_it() {
    let mut net = begin_in_two_ways();
    net.pass(60_000_000);
    assert_eq!(net.completed.pop().map(|completed| completed.result), done(1), "{:?}", net.views());
    assert!(net.rejected(2, r(1), Rejection::Equivocation) > 0);
    assert!([0, 3].iter().all(|id| net.rejected(2, r(*id), Rejection::Equivocation) == 0));
}

/// All ways in which a view began are remembered.
#[test]
fn a_crash_makes_nobody_forget_a_way_in_which_a_view_began() {
    let mut net = begin_in_two_ways();
    let claims = |net: &mut Net, view: u64| {
        for from in [0, 3] {
            let message = view_change(net, from, view);
            net.forge(r(from), r(2), message);
        }
        net.round();
        match &net.said(r(2), "VIEW-CHANGE").last().unwrap().message {
            Message::Ordering(Ordering { message: PbftMessage::ViewChange(signed), .. }) => signed.claims().clone(),
            _ => unreachable!(),
        }
    };
    net.lose(|frame| frame.to != r(2) || kind(&frame.message) != "NEW-VIEW");
    let way = net.hosts[0].log.iter().rev().find_map(|record| match &record.record {
        InstanceRecord::Pbft(PbftRecord::NewView(signed)) => Some(signed.clone()),
        _ => None,
    });
    let said = claims(&mut net, 2);
    assert_eq!((said.prepared.len(), said.pre_prepared.len()), (1, 1));
    net.forge(r(0), r(2), crate::testing::net::ordering(PbftMessage::NewView(way.unwrap())));
    net.round();
    let said = claims(&mut net, 3);
    assert_eq!((said.prepared.len(), said.pre_prepared[0].view.0), (0, 1), "it was accepted there, and may be claimed");
    net.restart(2, false);
    let said = claims(&mut net, 5);
    assert_eq!((said.prepared.len(), said.pre_prepared[0].view.0), (0, 1));
}
