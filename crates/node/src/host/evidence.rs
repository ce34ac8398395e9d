//! What a replica writes down when it finds that its state was not the one that others signed.
//!
//! The comparison may take a while, so that a thread of its own does it: the replica's loop hands over two versions of
//! the state, which share their pages with the present one.

use crate::divergence::{Archive, utc};
use crate::keys::to_hex;
use bezant_core::checkpoint::Tree;
use bezant_core::estate::page_holder;
use bezant_core::ids::ReplicaId;
use bezant_core::notice::Divergence;
use bezant_core::service::PageNumber;
use bezant_core::wire::Wire;
use serde_json::{Value, json};
use std::sync::Arc;
use std::sync::mpsc::{SyncSender, sync_channel};
use std::time::SystemTime;

/// Divergences that may wait to be written down; more of them are only logged.
const WAITING_MAX: usize = 4;
/// Pages whose content is kept.
const PAGES_MAX: usize = 128;

/// Adds to a record, in the words of a service, where the state that a replica had differs from the one that others
/// signed: `places`, `pages_different`, `differences` and `more`, as [`describe_pages`] does.
pub type Describe = fn(mine: &Tree, agreed: &Tree, fields: &mut Value);

/// Takes divergences.
#[derive(Clone, Debug)]
pub(super) struct Recorder(SyncSender<Box<Divergence>>, Arc<Archive>);

impl Recorder {
    /// One for this replica, with the thread that writes.
    ///
    /// # Errors
    /// If the system gives no thread.
    pub(super) fn start(replica: ReplicaId, archive: Arc<Archive>, describe: Describe) -> std::io::Result<Self> {
        let (sender, receiver) = sync_channel::<Box<Divergence>>(WAITING_MAX);
        let writer = Arc::clone(&archive);
        std::thread::Builder::new().name("evidence".to_owned()).spawn(move || {
            for divergence in receiver {
                if let Err(error) = writer.add(record(replica, &divergence, describe)) {
                    tracing::error!(event = "divergence-not-recorded", %error, "no record could be written");
                }
                writer.settle();
            }
        })?;
        Ok(Self(sender, archive))
    }

    /// Has one written down.
    pub(super) fn take(&self, divergence: &Divergence) {
        self.1.announce();
        if self.0.try_send(Box::new(divergence.clone())).is_err() {
            self.1.settle();
            tracing::error!(event = "divergence-not-recorded", "too many at once");
        }
    }
}

fn record(replica: ReplicaId, divergence: &Divergence, describe: Describe) -> Value {
    let Divergence { sequence, mine, evidence, agreed, since, replayed } = divergence;
    let now = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default();
    let now = now.as_micros() as u64;
    let mut fields = json!({
        "replica": replica.0,
        "time": utc(now),
        "time_us": now,
        "instance": evidence.checkpoint().instance.0,
        "sequence": sequence.0,
        "repaired_at": evidence.checkpoint().sequence.0,
        "since": since.map(|since| since.0),
        "mine": to_hex(&mine.root().0),
        "agreed": to_hex(&agreed.root().0),
        "certificate": to_hex(&evidence.claim().to_bytes()),
        "replayed": replayed.map(|root| to_hex(&root.0)),
        "cause": cause(divergence),
    });
    let page = |number: PageNumber| {
        let content = |tree: &Tree| tree.get(number).map(|content| to_hex(content));
        json!({ "number": number, "mine": content(mine), "agreed": content(agreed) })
    };
    let pages: Vec<_> = numbers(mine, agreed).into_iter().take(PAGES_MAX).map(page).collect();
    describe(mine, agreed, &mut fields);
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

fn numbers(mine: &Tree, agreed: &Tree) -> Vec<PageNumber> {
    mine.changed(agreed).into_iter().map(|(number, _)| number).collect()
}

/// What can be said of any service: which pages differ.
pub fn describe_pages(mine: &Tree, agreed: &Tree, fields: &mut Value) {
    let numbers = numbers(mine, agreed);
    let place = |number: &PageNumber| json!({ "number": number, "holds": page_holder(*number) });
    fields["places"] = numbers.iter().take(PAGES_MAX).map(place).collect();
    fields["pages_different"] = numbers.len().into();
    fields["differences"] = json!([]);
    fields["more"] = false.into();
}
