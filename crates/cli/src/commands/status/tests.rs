//! What is said of replicas, and when the cluster is called healthy or stuck.

use super::*;

fn overview(lying: bool, suspected_by: &[u8]) -> Overview {
    let row = |replica| Row {
        member: Member { replica, admin: Some(([127, 0, 0, 1], 1).into()) },
        account: Ok(json!({ "report": { "view": 2, "stable_root": "0123456789abcdef" }, "ready": true })),
        lying: lying && replica == 3,
        differed: 0,
        suspected_by: if replica == 2 { suspected_by.iter().copied().collect() } else { BTreeSet::new() },
        lag: None,
    };
    let replicas = Replicas::of(4).unwrap();
    Overview { rows: (0..4).map(row).collect(), replicas, answering: Some(true), obstacle: None }
}

fn at_fault(overview: &Overview) -> Vec<u8> {
    overview.at_fault().map(|row| row.member.replica).collect()
}

#[test]
fn a_liar_is_named() {
    assert!(overview(false, &[]).is_healthy());
    let lied = overview(true, &[]);
    assert_eq!((at_fault(&lied), lied.is_healthy()), (vec![3], false));
    assert!(lied.show(false).contains("replica 3 is at fault: its answers differ"));
    assert!(lied.show(true).contains("\"at_fault\":[3]"));
}

/// How many may lie is what the cluster's file says, and not the most that so many replicas could tolerate.
#[test]
fn more_replicas_do_not_mean_more_liars() {
    let mut ten = overview(false, &[]);
    ten.replicas = Replicas::new(10, 1).unwrap();
    assert!(ten.show(false).contains("n = 10: the answers stay right while at most 1 lie or crash."));
    ten.rows[2].suspected_by = BTreeSet::from([0, 1]);
    assert_eq!(at_fault(&ten), [2]);
}

#[test]
fn a_slow_ring_is_shown_when_more_than_f_say_so() {
    let slow = |replicas: &[u8], alarm: &Value| {
        let mut overview = overview(false, &[]);
        for row in overview.rows.iter_mut().filter(|row| replicas.contains(&row.member.replica)) {
            row.account.as_mut().unwrap()["report"]["ring_alarm"] = alarm.clone();
        }
        overview.slow_ring()
    };
    let named = json!({ "beyond_doubt": false, "from": 1, "to": 2, "hop_us": 80_000 });
    assert_eq!(slow(&[3], &named), "");
    assert!(slow(&[0, 3], &named).contains("from replica 1 to 2 it takes 80.0 ms"));
    let nobody = json!({ "beyond_doubt": true, "from": null, "to": null, "hop_us": null });
    assert!(slow(&[0, 1, 2], &nobody).contains("no hop is longer than the others"));
    assert_eq!(slow(&[0, 1, 2], &Value::Null), "");
}

#[test]
fn a_state_that_is_not_repaired_yet_is_shown() {
    let mut differs = overview(false, &[]);
    assert!(!differs.show(false).contains("differs"));
    differs.rows[3].account.as_mut().unwrap()["report"]["state_differs_at"] = json!(128);
    let text = differs.show(false);
    assert!(text.contains("replica 3, repairing: its state differs from that of f + 1 others at 128, and is not"));
    assert!(text.contains("3        repairing  "), "{text}");
    assert_eq!(differs.json()["replicas"][3]["state"], "repairing");
    assert!(!differs.is_healthy(), "whatever it says of itself");
    assert_eq!(differs.json()["replicas"][3]["state_differs_at"], 128);
    assert_eq!(differs.json()["replicas"][2]["state_differs_at"], json!(null));
}

#[test]
fn one_replica_alone_cannot_have_another_condemned() {
    assert_eq!(at_fault(&overview(false, &[0])), [0; 0]);
    let condemned = overview(false, &[0, 1]);
    assert_eq!(at_fault(&condemned), [2]);
    assert!(condemned.is_healthy(), "it may have been earlier");
}

#[test]
fn where_nothing_can_be_written_it_says_so() {
    let with = |change: &dyn Fn(usize, &mut Row)| {
        let mut overview = overview(false, &[]);
        overview.rows.iter_mut().enumerate().for_each(|(number, row)| change(number, row));
        overview.obstacle = overview.find_obstacle();
        overview
    };
    let behind = |executed: u64, replicas: usize| {
        with(&move |number, row| {
            let executed = if number < replicas { executed } else { 256 };
            let report = json!({ "instance": 1, "executed": executed, "stable": 256 });
            row.account = Ok(json!({ "ready": true, "checkpoint_interval": 128, "report": report }));
        })
    };
    assert_eq!(behind(383, 4).obstacle, None, "none has come to the next checkpoint");
    assert_eq!(behind(384, 2).obstacle, None, "two may be ahead");
    let differ = behind(384, 3);
    assert_eq!(differ.obstacle, Some(Obstacle::Checkpoint(1, 256)));
    assert!(!differ.is_healthy() && differ.json()["stuck"].is_string());
    assert!(differ.show(false).contains("nothing can be written: 3 of 4 replicas have come to a checkpoint after"));

    let out = |count: usize, account: &dyn Fn() -> std::result::Result<Value, String>| {
        with(&|number, row| {
            if number < count {
                row.account = account();
            }
        })
        .obstacle
    };
    let changing = || Ok(json!({ "ready": false, "report": {} }));
    assert_eq!((out(1, &changing), out(2, &changing)), (None, Some(Obstacle::TooFew)));
    assert_eq!(out(2, &|| Err(admin::NOT_RUNNING.to_owned())), Some(Obstacle::TooFew));
    assert_eq!(out(4, &|| Err("no answer".to_owned())), None, "an admin port may be out of reach");

    let mut silent = overview(false, &[]);
    silent.answering = Some(false);
    assert_eq!(silent.find_obstacle(), Some(Obstacle::Silent));
    assert_eq!(overview(false, &[]).json()["stuck"], Value::Null);
}

#[test]
fn a_closed_cluster_is_told_of_if_f_plus_1_replicas_say_so() {
    let closed = |replicas: &[usize], position: u64| {
        let mut overview = overview(false, &[]);
        for replica in replicas {
            overview.rows[*replica].account.as_mut().unwrap()["report"]["closed"] = json!(position);
        }
        overview.obstacle = overview.find_obstacle();
        overview
    };
    assert_eq!(closed(&[3], 7).obstacle, None, "one may lie");
    let two = closed(&[1, 3], 7);
    assert_eq!((two.obstacle, two.may_pass(), two.is_healthy()), (Some(Obstacle::Closed(7)), false, false));
    assert!(two.show(false).contains("nothing can be written: the cluster is closed since request 7, for good."));
    assert_eq!((two.json()["closed"].clone(), two.json()["replicas"][3]["closed"].clone()), (json!(7), json!(7)));
    let mut differ = closed(&[1], 7);
    differ.rows[2].account.as_mut().unwrap()["report"]["closed"] = json!(8);
    assert_eq!(differ.closed(), None);
}

#[test]
fn disputed_requests_are_told_if_f_plus_1_replicas_know_of_them() {
    let mut overview = overview(false, &[]);
    let say = |replica: usize, count: u64, overview: &mut Overview| {
        let report = &mut overview.rows[replica].account.as_mut().unwrap()["report"];
        (report["requests_disputed"], report["last_disputed"]) = (json!(count), json!(70 + count));
        overview.show(false)
    };
    assert!(!say(0, 9, &mut overview).contains("refused because"), "one may lie");
    assert!(say(1, 1, &mut overview).contains("One request was refused because"));
    assert!(
        say(2, 2, &mut overview).contains("2 requests were refused because")
            && say(2, 2, &mut overview).contains("last at position 72")
    );
}

#[test]
fn one_that_stays_behind_is_told_from_one_that_is_a_moment_late() {
    let at = |places: [(u64, u64); 4], part: &str| {
        let mut overview = overview(false, &[]);
        for (row, (instance, executed)) in overview.rows.iter_mut().zip(places) {
            let report = json!({ "instance": instance, "executed": executed, "stable": executed, "part": part });
            row.account = Ok(json!({ "ready": true, "checkpoint_interval": 128, "report": report }));
        }
        overview.find_lags();
        overview
    };
    let lagging = |overview: &Overview| overview.rows.iter().filter(|row| row.lag.is_some()).count();
    let late = at([(1, 800), (1, 800), (1, 800), (1, 544)], "");
    assert_eq!((lagging(&late), late.may_pass()), (0, false), "the window is as long");
    let behind = at([(1, 801), (1, 801), (1, 801), (1, 544)], "");
    assert!(behind.may_pass() && !behind.is_healthy());
    assert!(behind.show(false).contains("replica 3, behind: it takes part, but is 257 batches behind f + 1 others."));
    assert_eq!(behind.json()["replicas"][3]["state"], "behind");
    assert_eq!(lagging(&at([(1, 99_999), (1, 800), (1, 800), (1, 800)], "")), 0, "one may lie");
    assert_eq!(lagging(&at([(2, 9_000), (2, 9_000), (2, 9_000), (2, 1)], "chain")), 0, "these count requests");
    assert_eq!(lagging(&at([(2, 1), (2, 1), (2, 1), (1, 9)], "chain")), 1);

    assert_eq!(lagging(&at([(1, 801), (1, 801), (1, 801), (1, 544)], "").lasting_since(&late)), 0, "it passed");
    assert_eq!(lagging(&at([(1, 801), (1, 801), (1, 801), (1, 544)], "").lasting_since(&behind)), 1, "it stays");
}
