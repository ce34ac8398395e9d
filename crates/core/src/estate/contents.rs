//! What is in a version of the state, for those who read one without running a replica, and the version with which a
//! new cluster begins.

use super::{CLIENTS, Estate, MEMBERS, META, Meta, ORDER};
use crate::auth::PublicKeys;
use crate::checkpoint::Tree;
use crate::clients::ClientTable;
use crate::cluster::Cluster;
use crate::digest::Digest;
use crate::ids::Sequence;
use crate::service::{BadState, PageNumber, Service};
use crate::services::Null;
use crate::time::Instant;
use crate::wire::Wire;
use bytes::Bytes;

/// The state with which a new cluster begins that takes over a service from another one: the service's pages, and
/// nothing of its clients, its history or its clock, which belong to the old cluster.
///
/// # Errors
/// [`BadState`] if the service does not accept the pages.
pub fn genesis_of<S: Service>(cluster: &Cluster, service: S, old: &Tree) -> Result<Tree, BadState> {
    let mut estate = Estate::new(cluster, &PublicKeys::default(), service);
    let target = with_service_pages(&estate.tree, old);
    estate.restore(&target)?;
    Ok(target)
}

/// The state with which the successor of a cluster begins that was closed ([`crate::estate`], Closing 5): the same, but
/// the service is not asked, for it is the one that wrote the pages. `None` if this state is not that of a cluster that
/// was closed.
pub fn successor_of(cluster: &Cluster, old: &Tree) -> Option<Tree> {
    Summary::of(old)?.closed?;
    let estate = Estate::new(cluster, &PublicKeys::default(), Null::default());
    Some(with_service_pages(&estate.tree, old))
}

/// What a cluster has before its first request, with the service's pages of another one.
fn with_service_pages(fresh: &Tree, old: &Tree) -> Tree {
    let mut target = fresh.clone();
    for (number, page) in service_pages(old) {
        target.set(number, Some(page.clone()));
    }
    for (number, _) in service_pages(fresh).filter(|(number, _)| old.get(*number).is_none()) {
        target.set(number, None);
    }
    target.seal();
    target
}

/// What a version says about itself.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Summary {
    /// The last batch executed, as its instance counts.
    pub executed: Sequence,
    /// The hash chain over all requests executed.
    pub history: Digest,
    /// The agreed time of the last batch.
    pub time: Instant,
    /// Requests executed, over all instances.
    pub position: u64,
    /// Whether the instance that executed them ends here.
    pub is_end: bool,
    /// The position of the request that closed the cluster, if one did.
    pub closed: Option<u64>,
}

impl Summary {
    /// Of a version of the state.
    pub fn of(tree: &Tree) -> Option<Self> {
        let meta = Meta::from_bytes(tree.get(META)?.clone()).ok()?;
        let Meta { executed, history, time, position, last, .. } = meta;
        Some(Self { executed, history, time, position, is_end: position == last, closed: meta.closed() })
    }
}

/// The client table of a version of the state.
pub fn clients_of(cluster: &Cluster, tree: &Tree) -> Option<ClientTable> {
    let mut clients = ClientTable::new(cluster.limits.sessions_per_identity_max);
    let pages = tree.iter().filter(|(number, _)| (CLIENTS..MEMBERS).contains(number));
    clients.load(&mut pages.map(|(number, page)| (number - CLIENTS, Some(page.clone())))).ok()?;
    Some(clients)
}

/// The pages of the service in a version of the state.
pub fn service_pages(tree: &Tree) -> impl Iterator<Item = (PageNumber, &Bytes)> {
    tree.iter().take_while(|(number, _)| *number < CLIENTS)
}

/// What a page holds, for people: of the service, of the client table, or the rest.
pub const fn page_holder(number: PageNumber) -> &'static str {
    match number {
        ..CLIENTS => "service",
        CLIENTS..MEMBERS => "client table",
        MEMBERS..ORDER => "members",
        ORDER => "order",
        _ => "history",
    }
}
