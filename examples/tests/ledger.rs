//! The ledger as its users meet it: four processes, one of which crashes between two transfers.

mod support;

use support::Cluster;

#[test]
fn money_survives_a_crash_and_is_not_made() {
    let mut cluster = Cluster::start(env!("CARGO_BIN_EXE_ledger"));
    let file = cluster.file();
    assert_eq!(cluster.succeeds(&["open", &file, "1"]), "1000000");
    assert_eq!(cluster.succeeds(&["open", &file, "2"]), "0");
    assert_eq!(cluster.succeeds(&["transfer", &file, "1", "2", "30"]), "999970");
    // The first primary.
    cluster.kill(0);
    assert_eq!(cluster.succeeds(&["transfer", &file, "2", "1", "10"]), "20");
    assert_eq!(cluster.fails(&["transfer", &file, "2", "1", "21"]).trim(), "refused: there are only 20");
    assert_eq!(cluster.fails(&["open", &file, "2"]).trim(), "refused: there is such an account already");
    cluster.restart(0);
    // Without the one that comes back there would not be enough.
    cluster.stop(3);
    assert_eq!(cluster.succeeds(&["balance", &file, "1"]), "999980");
    assert_eq!(cluster.succeeds(&["balance", &file, "2"]), "20");
    assert_eq!(cluster.fails(&["balance", &file, "3"]).trim(), "refused: there is no such account");
}
