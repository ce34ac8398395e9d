//! States from which a log begins again.

use crate::checkpoint::{Evidence, Snapshot, Tree};
use crate::cluster::Cluster;
use crate::history::Log;
use crate::ids::{InstanceId, Sequence};
use crate::service::Service;
use crate::switching::{AbortHistory, Ledger, settle};

/// The instance that needs no proof.
pub(super) const FIRST: InstanceId = InstanceId(1);

/// Whether a log that begins with this snapshot says first which instance it is of. The first of all needs no proof,
/// but a log begins again in it with the entries above an anchor, unless it is a Backup.
pub(super) fn tells_its_opening(cluster: &Cluster, at: &Evidence) -> bool {
    cluster.protocol.hands_on() && (at.checkpoint().instance != FIRST || !cluster.part(FIRST).is_backup())
}

/// A state that no certificate of 2f+1 names: what follows in the log says why it may be taken.
pub(super) fn snapshot_at(instance: InstanceId, position: u64, tree: Tree) -> Snapshot {
    Snapshot { evidence: Evidence::reported(instance, position, tree.root()), tree }
}

/// The init history over a state that was fetched in the middle of it. All of it is executed, as it was when the
/// instance was opened: who does not know what is in its history would take it for new.
pub(super) fn reload<S: Service>(
    cluster: &Cluster,
    instance: InstanceId,
    history: &AbortHistory,
    ledger: &mut Ledger<S>,
) {
    let base = history.base().unwrap_or(history.anchor);
    ledger.estate.anchor_at(Sequence(base.position));
    let entries = ledger.log.find(&history.digests);
    ledger.log = Log::new(history.anchor);
    entries.into_iter().for_each(|entry| _ = ledger.log.push(entry));
    settle(cluster, instance, history, ledger);
}
