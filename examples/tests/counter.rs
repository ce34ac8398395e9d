//! The counter as its user meets it: four processes, one of which crashes and comes back.

mod support;

use support::Cluster;

#[test]
fn counts_over_a_crash() {
    let mut cluster = Cluster::start(env!("CARGO_BIN_EXE_counter"));
    let file = cluster.file();
    assert_eq!(cluster.succeeds(&["add", &file, "40"]), "40");
    // The first primary.
    cluster.kill(0);
    assert_eq!(cluster.succeeds(&["add", &file, "2"]), "42");
    cluster.restart(0);
    // Without the one that comes back there would not be enough.
    cluster.stop(3);
    assert_eq!(cluster.succeeds(&["read", &file]), "42");
    assert_eq!(cluster.succeeds(&["add", &file, "0"]), "42");
}

#[test]
fn what_an_author_gets_wrong_is_said_clearly() {
    let cluster = Cluster::start(env!("CARGO_BIN_EXE_counter"));
    let replica = cluster.text("replica-0");
    assert!(cluster.fails(&["replica", &replica]).contains("in use"), "the folder of a replica that runs");
    assert!(cluster.fails(&["replica", &cluster.text("")]).contains("give that of one replica, as"));
    assert!(cluster.fails(&["replica", &cluster.text("replica-9")]).contains("node.toml: cannot be read"));
    assert!(cluster.fails(&["read", &cluster.text("cluster.tom")]).contains("cluster.tom: cannot be read"));
    let node = std::fs::read_to_string(format!("{replica}/node.toml")).unwrap();
    std::fs::write(format!("{replica}/node.toml"), node.replace("\"counter\"", "\"ledger\"")).unwrap();
    let said = cluster.fails(&["replica", &replica]);
    assert!(said.contains("node.toml says `service = \"ledger\"`, and this program serves \"counter\""), "{said}");
    assert!(cluster.fails(&["sum"]).contains("counter new DIR"));
}

#[test]
fn a_demo_is_one_process_with_all_replicas() {
    let mut cluster = Cluster::demo(env!("CARGO_BIN_EXE_counter"));
    assert_eq!(cluster.succeeds(&["add", &cluster.file(), "7"]), "7");
    cluster.stop(0);
}
