//! What a replica writes down when it finds that its state was not the one that others signed.
//!
//! The comparison may take a while, so that a thread of its own does it: the replica's loop hands over two versions of
//! the state, which share their pages with the present one.

use crate::commands::backup::utc;
use bezant_core::cluster::ReplicaId;
use bezant_core::replica::Divergence;
use bezant_core::wire::Wire;
use bezant_node::divergence::Archive;
use bezant_node::keys::to_hex;
use bezant_sql::{Comparison, Difference, Place, compare};
use serde_json::{Value, json};
use std::sync::Arc;
use std::sync::mpsc::{SyncSender, sync_channel};
use std::time::SystemTime;

/// Divergences that may wait to be written down; more of them are only logged.
const WAITING_MAX: usize = 4;
/// Pages whose content is kept.
const PAGES_MAX: usize = 128;

/// Takes divergences.
#[derive(Clone, Debug)]
pub(crate) struct Recorder(SyncSender<Box<Divergence>>, Arc<Archive>);

impl Recorder {
    /// One for this replica, with the thread that writes.
    ///
    /// # Errors
    /// If the system gives no thread.
    pub(crate) fn start(replica: ReplicaId, archive: Arc<Archive>) -> std::io::Result<Self> {
        let (sender, receiver) = sync_channel::<Box<Divergence>>(WAITING_MAX);
        let writer = Arc::clone(&archive);
        std::thread::Builder::new().name("evidence".to_owned()).spawn(move || {
            for divergence in receiver {
                if let Err(error) = writer.add(record(replica, &divergence)) {
                    tracing::error!(event = "divergence-not-recorded", %error, "no record could be written");
                }
                writer.settle();
            }
        })?;
        Ok(Self(sender, archive))
    }

    /// Has one written down.
    pub(crate) fn take(&self, divergence: &Divergence) {
        self.1.announce();
        if self.0.try_send(Box::new(divergence.clone())).is_err() {
            self.1.settle();
            tracing::error!(event = "divergence-not-recorded", "too many at once");
        }
    }
}

fn record(replica: ReplicaId, divergence: &Divergence) -> Value {
    let Divergence { sequence, mine, certificate, agreed, since, replayed } = divergence;
    let now = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default();
    let now = now.as_micros() as u64;
    let mut fields = json!({
        "replica": replica.0,
        "time": utc(now),
        "time_us": now,
        "instance": certificate.value.instance.0,
        "sequence": sequence.0,
        "repaired_at": certificate.value.sequence.0,
        "since": since.map(|since| since.0),
        "mine": to_hex(&mine.root().0),
        "agreed": to_hex(&agreed.root().0),
        "certificate": to_hex(&certificate.to_bytes()),
        "replayed": replayed.map(|root| to_hex(&root.0)),
        "cause": cause(divergence),
    });
    let page = |number| {
        let content = |tree: &bezant_core::checkpoint::Tree| tree.get(number).map(|content| to_hex(content));
        json!({ "number": number, "mine": content(mine), "agreed": content(agreed) })
    };
    let comparison = compare(mine, agreed);
    let pages: Vec<_> = comparison.pages.iter().take(PAGES_MAX).map(|(number, _)| page(*number)).collect();
    describe(&comparison, &mut fields);
    fields["pages"] = Value::Array(pages);
    fields
}

/// What can be said about why, from executing the requests again.
fn cause(divergence: &Divergence) -> &'static str {
    match divergence.replayed {
        Some(root) if root == divergence.agreed.root() => "beside the requests",
        Some(root) if root == divergence.mine.root() => "a request, always",
        Some(_) => "a request, at random",
        None => "unknown",
    }
}

/// Adds where two states differ.
pub(crate) fn describe(comparison: &Comparison, fields: &mut Value) {
    let place = |number: u32, what: &str| json!({ "number": number, "holds": what });
    fields["places"] =
        comparison.pages.iter().take(PAGES_MAX).map(|(number, what)| place(*number, what)).collect::<Vec<_>>().into();
    fields["pages_different"] = comparison.pages.len().into();
    fields["differences"] = comparison.differences.iter().map(difference).collect::<Vec<_>>().into();
    fields["more"] = comparison.more.into();
}

fn difference(difference: &Difference) -> Value {
    let Difference { place, mine, agreed } = difference;
    let mut fields = match place {
        Place::Value { table, row, column } => json!({ "table": table, "row": row, "column": column }),
        Place::Row { table, row } => json!({ "table": table, "row": row }),
        Place::Key(key) => json!({ "key": key }),
        Place::Unreadable => json!({}),
    };
    fields["mine"] = json!(mine);
    fields["agreed"] = json!(agreed);
    fields
}
