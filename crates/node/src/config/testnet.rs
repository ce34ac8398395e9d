//! Writes the files of a new cluster: one directory to copy to each host, and a client's key.

use super::fresh::{check, new_coin_keys, new_id, new_key, write, write_all, write_cluster, write_home};
use super::node::{COIN_KEY, SERVICE_DEFAULT};
use super::reference::{DURABILITIES, NAME, SERVICE};
use super::{
    Address, Channel, ClusterConfig, Durability, IdentityEntry, PeerEntry, Protocol, ReplicaEntry, TestnetError,
};
use crate::{keys, log};
use bezant_core::checkpoint::Tree;
use bezant_core::cluster::{ClientAuth, Cluster, Coin, Limits, Vects};
use bezant_core::ids::{IdentityId, ReplicaId};
use bezant_core::schedule::Quota;
use std::path::Path;

/// The distance between the ports of one replica and the next.
const PORTS_PER_REPLICA: u16 = 10;

/// What kind of cluster.
#[derive(Clone, Debug)]
pub struct Testnet {
    /// How many replicas.
    pub replicas: usize,
    /// How many of them may be faulty; `None`: as many as possible.
    pub f: Option<usize>,
    /// Replica i listens at `base_port + 10·i`, and at the two ports after that.
    pub base_port: u16,
    /// Where all replicas run: an IP address or a name.
    pub host: String,
    /// Where each replica listens to replicas, to clients and to administrators. Empty: at `host` and `base_port`.
    pub addresses: Vec<[Address; 3]>,
    /// The links of each replica that have addresses of their own. Empty: none has.
    pub peers: Vec<Vec<PeerEntry>>,
    /// What people call the cluster.
    pub name: String,
    /// Which protocol.
    pub protocol: Protocol,
    /// How many requests its Backups answer, where it has several parts; `None`: as [`Protocol::quota`] says.
    pub quota: Option<Quota>,
    /// What RITAS tosses. The keys of a common coin are dealt here: who sees this process can foresee it.
    pub coin: Coin,
    /// How clients authenticate.
    pub client_auth: ClientAuth,
    /// How links are protected.
    pub channel: Channel,
    /// Whether clients may join that the cluster file does not name.
    pub dynamic_clients: bool,
    /// What is durable before a replica speaks.
    pub durability: Durability,
    /// What is replicated: the name under which a program serves it, a word of 1 to 28 of a-z, 0-9, `-` and `_`.
    pub service: String,
    /// The bounds.
    pub limits: Limits,
    /// How the logs are created.
    pub log: log::Options,
    /// The state to begin with, sealed, if another cluster left one.
    pub genesis: Option<Tree>,
}

impl Default for Testnet {
    fn default() -> Self {
        Self {
            replicas: 4,
            f: None,
            base_port: 4100,
            host: "127.0.0.1".to_owned(),
            addresses: Vec::new(),
            peers: Vec::new(),
            name: "bezant".to_owned(),
            protocol: Protocol::default(),
            quota: None,
            coin: Coin::default(),
            client_auth: ClientAuth::default(),
            channel: Channel::default(),
            dynamic_clients: false,
            durability: Durability::default(),
            service: SERVICE_DEFAULT.to_owned(),
            limits: Limits::default(),
            log: log::Options::default(),
            genesis: None,
        }
    }
}

/// Writes `cluster.toml`, `client.key` and, for each replica, `replica-<i>/` with `node.toml`, `key`, a log, and
/// `coin.key` where the cluster tosses a common coin.
///
/// # Errors
/// [`TestnetError`]. Nothing is written if the directory is not empty or the numbers make no cluster, and nothing is
/// left after another error.
pub fn testnet(directory: &Path, options: &Testnet) -> Result<ClusterConfig, TestnetError> {
    let f = options.f.unwrap_or(options.replicas.saturating_sub(1) / 3);
    let cluster_id = new_id().map_err(|error| TestnetError::Io(directory.to_owned(), error))?;
    let cluster = Cluster::new(cluster_id, options.replicas, f, options.client_auth, options.limits.clone())
        .map_err(TestnetError::Cluster)?
        .with_protocol(options.protocol)
        .with_genesis(options.genesis.as_ref().map(Tree::root));
    let quota = options.quota.unwrap_or_else(|| options.protocol.quota());
    let cluster = Cluster { quota, coin: options.coin, dynamic_clients: options.dynamic_clients, ..cluster };
    check(&cluster)?;
    if !NAME.accepts(&options.name) {
        return Err(TestnetError::Name);
    }
    if !SERVICE.accepts(&options.service) {
        return Err(TestnetError::Service);
    }
    let addresses: Vec<_> = cluster.replicas.iter().map(|id| addresses(options, id)).collect::<Result<_, _>>()?;
    let mut config = ClusterConfig {
        cluster_id,
        name: options.name.clone(),
        f,
        protocol: options.protocol,
        quota,
        coin: options.coin,
        vects: Vects::default(),
        client_auth: options.client_auth,
        channel: options.channel,
        dynamic_clients: options.dynamic_clients,
        genesis_root: cluster.genesis,
        limits: options.limits.clone(),
        replicas: Vec::new(),
        identities: Vec::new(),
    };
    let mut coin_keys = new_coin_keys(&cluster).map_err(|error| TestnetError::Io(directory.to_owned(), error))?;
    write_all(directory, || {
        for (id, [peer_address, client_address, admin_address]) in cluster.replicas.iter().zip(addresses) {
            let home = write_home(directory, &cluster, id, &options.log, options.genesis.as_ref())?;
            let public_key = new_key(&home.join("key"))?;
            write(&home.join("node.toml"), &node_file(options, id))?;
            let coin_key = coin_keys.next();
            if let Some((secret, _)) = &coin_key {
                keys::save(&home.join(COIN_KEY), secret).map_err(TestnetError::Key)?;
            }
            let coin_key = coin_key.map(|(_, public)| public);
            let entry = ReplicaEntry { id, public_key, coin_key, peer_address, client_address, admin_address };
            config.replicas.push(entry);
        }
        let public_key = new_key(&directory.join("client.key"))?;
        config.identities.push(IdentityEntry { id: IdentityId(0), name: "client".to_owned(), public_key });
        write_cluster(directory, &config)
    })?;
    Ok(config)
}

/// Peers, clients, admin.
fn addresses(options: &Testnet, id: ReplicaId) -> Result<[Address; 3], TestnetError> {
    if !options.addresses.is_empty() {
        let given = options.addresses.get(usize::from(id.0)).cloned();
        return given.ok_or_else(|| TestnetError::Address(format!("replica {}: it has no address", id.0)));
    }
    let first = u32::from(options.base_port) + u32::from(PORTS_PER_REPLICA) * u32::from(id.0);
    let address = |offset| {
        let text = match options.host.contains(':') {
            true => format!("[{}]:{}", options.host, first + offset),
            false => format!("{}:{}", options.host, first + offset),
        };
        text.parse::<Address>().map_err(|why| TestnetError::Address(format!("replica {}: {why}", id.0)))
    };
    Ok([address(0)?, address(1)?, address(2)?])
}

fn node_file(options: &Testnet, id: ReplicaId) -> String {
    let durability = DURABILITIES[options.durability as usize];
    let service = &options.service;
    let mut file = format!(
        "# This replica's own settings. `bezant config explain KEY` says what a key does.\n\
         replica = {}\ncluster = \"../cluster.toml\"\nkey = \"key\"\ndirectory = \".\"\n\
         durability = \"{durability}\"\nservice = \"{service}\"\n",
        id.0
    );
    for peer in options.peers.get(usize::from(id.0)).into_iter().flatten() {
        file += &peer.to_toml();
    }
    file
}
