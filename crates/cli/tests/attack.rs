//! Every attack that a client can make, on real replicas: none costs others more than time.

mod support;

use support::database::Cluster;
use support::{Scratch, bezant, json_of, run};

/// What `bezant attack --kind` takes.
fn kinds() -> Vec<String> {
    let refused = run(&mut bezant(&["attack", "--kind", "nothing"]), "");
    let listed = refused.stderr.split("[possible values: ").nth(1).and_then(|rest| rest.split(']').next());
    listed.unwrap_or_else(|| panic!("{refused:?}")).split(", ").map(str::to_owned).collect()
}

#[test]
fn whatever_a_client_does_others_are_served() {
    let scratch = Scratch::new();
    let cluster = Cluster::start(&scratch, "net", &["--protocol", "r-aliph"]);
    cluster.sql("create table t(a)");
    let kinds = kinds();
    assert!(kinds.iter().any(|kind| kind == "feedback-lies"), "{kinds:?}");
    for (before, kind) in kinds.iter().enumerate() {
        let attack = ["attack", "--cluster", &cluster.file, "--kind", kind, "--seconds", "1"];
        let did = json_of(&attack);
        let count = ["attacks", "connections"].iter().find_map(|name| did[name].as_u64());
        assert!(count.is_some_and(|count| count > 0), "{kind}: {did}");
        cluster.sql("insert into t values (1)");
        let rows = cluster.sql("select count(*) from t");
        assert_eq!(rows, [[(before + 1).to_string()]], "after {kind}");
    }
}
