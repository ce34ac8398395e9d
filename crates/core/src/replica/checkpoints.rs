//! Checkpoints as others may read them: what is certain, with what proves it, and what this replica merely has.
//!
//! | in | what is certain | what proves it to a third party |
//! |---|---|---|
//! | a Backup, alone or of a composition | the stable checkpoint | its 2f+1 signatures, which every replica has |
//! | Quorum, ZLight, Chain, Ring | the anchor: all n said the same, or f+1 abort reports fix it | f+1 signatures, one from each replica that is asked |
//! | the resilient ring | the anchor: 2f+1 signed it | the same |
//! | one unreplicated server | its newest version | its own signature |
//!
//! What is certain here is shown as [`Evidence::Certified`], what this replica merely has as [`Evidence::Own`].
//!
//! f+1 signatures are enough in every row: one signer is correct, and a correct replica signs a state only when it has
//! it for good. Anchors are not signed by the protocols, which need no third party, but here, when one is shown.

use super::Replica;
use crate::auth::Certificate;
use crate::checkpoint::{Checkpoint, Evidence, Snapshot, Tree};
use crate::ids::Sequence;
use crate::machine::{Input, Machine, Outbox};
use crate::schedule::Ending;
use crate::service::Service;
use crate::switching::Certainty;
use crate::time::Instant;

impl<S: Service> Replica<S> {
    /// The newest checkpoint that is certain, with the signatures that this replica has for it. `None` before the first
    /// one, while an instance begins, or if it is the one that is `known`.
    pub fn certain_checkpoint(&self, known: Option<&Checkpoint>) -> Option<Snapshot> {
        let ledger = self.composite.ledger();
        let (value, certificate) = match self.composite.running().open()?.certainty() {
            Certainty::Certified(evidence) => {
                let certificate = evidence.certificate()?;
                (*certificate.value(), Some(certificate))
            }
            Certainty::Anchor => {
                let anchor = ledger.log.anchor();
                let (sequence, root) = (Sequence(anchor.position), anchor.root);
                (Checkpoint { instance: self.instance(), sequence, ruled: Sequence(0), root }, None)
            }
            Certainty::Newest => (*self.newest_checkpoint().evidence.checkpoint(), None),
        };
        if value.sequence == Sequence(0) || known == Some(&value) {
            return None;
        }
        let tree = ledger.estate.version(value.sequence).filter(|tree| tree.root() == value.root)?.clone();
        let own = || Certificate::tally([self.keyring.sign(value)], 1);
        Some(Snapshot { evidence: Evidence::Certified(certificate.cloned().unwrap_or_else(own)), tree })
    }

    /// The state as far as this replica can come by itself, and no further: executes what its log has, undoes what is
    /// not final, and ends. For those who look into the folder of a stopped replica.
    pub fn into_state(mut self) -> Tree {
        // What it would say is not said.
        self.step(Instant(0), Input::Start, &mut Outbox::new());
        let lags = match self.cluster.part(self.instance()).ending() {
            Ending::Shared => self.composite.running().open().is_some(),
            Ending::Agreed | Ending::Certified | Ending::Never => false,
        };
        let mut ledger = self.composite.halt_running(&self.cluster);
        if lags {
            ledger.catch_up(&self.cluster, |_, _, _| ());
        }
        ledger.estate.checkpoint();
        ledger.estate.newest_version().clone()
    }

    /// What this replica has at its newest checkpoint, certain or not, without a signature.
    pub fn newest_checkpoint(&self) -> Snapshot {
        let (sequence, tree) = self.composite.ledger().estate.newest();
        let value = Checkpoint { instance: self.instance(), sequence, ruled: Sequence(0), root: tree.root() };
        Snapshot { evidence: Evidence::Own(value), tree: tree.clone() }
    }
}
