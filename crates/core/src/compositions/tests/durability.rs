//! Replicas that restart from their logs are the ones that crashed, also when the log has begun again with a snapshot.

use super::conformance::{protocols, trouble};
use super::run::Run;
use crate::cluster::InstanceId;
use crate::replica::{InstanceRecord, LogRecord};
use alloc::collections::BTreeSet;

/// Orders hold, everything is served, and who has reported reports the same for ever: across restarts, from logs that
/// begin again at every opportunity.
#[test]
fn who_restarts_from_a_short_log_has_forgotten_nothing() {
    let mut begun = BTreeSet::new();
    for protocol in protocols() {
        for seed in 0..4 {
            let mut run = Run::with_short_logs(protocol, 4, 3, 2_000 + seed, 600);
            trouble(&mut run, 60, |run| {
                if run.random.once_in(8) {
                    let id = run.random.below(4);
                    let first = run.net.hosts[id].log.first();
                    if let Some(LogRecord { instance, record: InstanceRecord::Begun((proof, _)) }) = first {
                        begun.insert((*instance > InstanceId(1), proof.is_some()));
                    }
                    run.net.restart(id, false);
                }
            });
            run.finish();
            run.check();
        }
    }
    assert_eq!(begun, BTreeSet::from([(false, false), (true, true)]), "the first instance, and later ones");
}
