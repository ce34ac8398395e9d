//! `node.toml`: what one replica does in its own way.

use super::document::Document;
use super::reference::{DURABILITIES, FileKind, LOG_FORMATS};
use super::{Address, ConfigError, read};
use bezant_core::ids::ReplicaId;
use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};

/// What happens before a replica speaks.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Durability {
    /// What it says is on the disk.
    #[default]
    Sync,
    /// Nothing. For benchmarks.
    Memory,
}

/// What is replicated where the file does not say it.
pub(super) const SERVICE_DEFAULT: &str = "sql";

/// Where the secret key for common coins is, where the file does not say it.
pub(super) const COIN_KEY: &str = "coin.key";

/// How log messages are shown.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum LogFormat {
    /// For people on a terminal, for machines otherwise.
    #[default]
    Auto,
    /// For people.
    Text,
    /// For machines.
    Json,
}

/// A link with another replica over addresses of its own.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PeerEntry {
    /// Which replica.
    pub replica: ReplicaId,
    /// Where to listen for it alone; it has a higher number.
    pub listen: Option<SocketAddr>,
    /// Where to dial it; it has a lower number.
    pub dial: Option<Address>,
}

impl PeerEntry {
    /// As it stands in `node.toml`.
    pub(super) fn to_toml(&self) -> String {
        let mut text = format!("\n[[peer]]\nreplica = {}\n", self.replica.0);
        let addresses =
            [("listen", self.listen.map(|it| it.to_string())), ("dial", self.dial.as_ref().map(Address::to_string))];
        for (key, address) in addresses {
            text += &address.map_or_else(String::new, |address| format!("{key} = \"{address}\"\n"));
        }
        text
    }
}

/// One replica's settings. Paths are absolute, or relative to the working directory as the file's own path was.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NodeConfig {
    /// Which replica this is.
    pub replica: ReplicaId,
    /// The cluster's file.
    pub cluster: PathBuf,
    /// The secret key's file.
    pub key: PathBuf,
    /// The file of the secret key for common coins: read where the cluster has them.
    pub coin_key: PathBuf,
    /// Where log and snapshots are.
    pub directory: PathBuf,
    /// What is durable before the replica speaks.
    pub durability: Durability,
    /// What is replicated: the name under which a program serves it, see [`host`](crate::host()).
    pub service: String,
    /// The least important messages that are shown: `error`, `warn`, `info`, `debug` or `trace`.
    pub log_level: String,
    /// How they are shown.
    pub log_format: LogFormat,
    /// Where to listen for replicas, if not at the address in the cluster's file.
    pub listen_peers: Option<SocketAddr>,
    /// Where to listen for clients, likewise.
    pub listen_clients: Option<SocketAddr>,
    /// Where to serve metrics and health, likewise.
    pub listen_admin: Option<SocketAddr>,
    /// Whether the admin port shows the state.
    pub serve_state: bool,
    /// Links over addresses of their own, by number.
    pub peers: Vec<PeerEntry>,
}

impl NodeConfig {
    /// Reads and checks a file.
    ///
    /// # Errors
    /// [`ConfigError`] with file and line.
    pub fn load(path: &Path) -> Result<Self, ConfigError> {
        let (file, text) = read(path)?;
        Self::parse(&file, &text, path.parent().unwrap_or(Path::new("")))
    }

    /// Reads and checks the text of a file that stands in `directory`.
    ///
    /// # Errors
    /// [`ConfigError`] with the file's name as given, and the line.
    pub fn parse(file: &str, text: &str, directory: &Path) -> Result<Self, ConfigError> {
        let document = Document::parse(file, FileKind::Node, text)?;
        let top = document.top();
        let path = |key, default: &str| directory.join(top.text(key).unwrap_or(default));
        let place = |key, words: &[&str]| {
            top.text(key).and_then(|text| words.iter().position(|word| *word == text)).unwrap_or(0)
        };
        let listen = |key| top.text(key).and_then(|text| text.parse().ok());
        let replica = ReplicaId(top.number("replica").expect("required") as u8);
        let peers = peers(&document, replica)?;
        Ok(Self {
            replica,
            cluster: path("cluster", "../cluster.toml"),
            key: path("key", "key"),
            coin_key: path("coin_key", COIN_KEY),
            directory: path("directory", "."),
            durability: [Durability::Sync, Durability::Memory][place("durability", DURABILITIES)],
            service: top.text("service").unwrap_or(SERVICE_DEFAULT).to_owned(),
            log_level: top.text("log_level").unwrap_or("info").to_owned(),
            log_format: [LogFormat::Auto, LogFormat::Text, LogFormat::Json][place("log_format", LOG_FORMATS)],
            listen_peers: listen("listen_peers"),
            listen_clients: listen("listen_clients"),
            listen_admin: listen("listen_admin"),
            serve_state: top.flag("serve_state").unwrap_or(true),
            peers,
        })
    }

    /// Whether every replica of whom the file has something to say is one of so many.
    ///
    /// # Errors
    /// [`ConfigError`] that names the first that is not.
    pub fn check_peers(&self, file: &Path, replicas: usize) -> Result<(), ConfigError> {
        match self.peers.iter().find(|peer| usize::from(peer.replica.0) >= replicas) {
            None => Ok(()),
            Some(peer) => {
                let message = format!("[[peer]] names replica {}, and cluster.toml has {replicas}", peer.replica.0);
                Err(ConfigError { file: file.display().to_string(), line: None, message })
            }
        }
    }
}

/// What is said of single links.
fn peers(document: &Document, me: ReplicaId) -> Result<Vec<PeerEntry>, ConfigError> {
    let mut peers = BTreeMap::new();
    for section in document.all("peer") {
        let replica = ReplicaId(section.number("replica").expect("required") as u8);
        let listen = section.text("listen").and_then(|text| text.parse().ok());
        let dial = section.text("dial").and_then(|text| text.parse().ok());
        let number = replica.0;
        let wrong = match (&listen, &dial) {
            _ if replica == me => Some(("replica", format!("replica {number} is this one"))),
            (None, None) => Some(("replica", "neither `listen` nor `dial` is given".to_owned())),
            (Some(_), _) if replica < me => {
                Some(("listen", format!("replica {number} has a lower number: it is dialled, give `dial`")))
            }
            (_, Some(_)) if replica > me => {
                Some(("dial", format!("replica {number} has a higher number: it dials, give `listen`")))
            }
            _ => None,
        };
        if let Some((key, why)) = wrong {
            return Err(document.error(section.line_of(key), why));
        }
        if peers.insert(replica, PeerEntry { replica, listen, dial }).is_some() {
            return Err(document.error(section.line_of("replica"), format!("replica {number} has two [[peer]]")));
        }
    }
    Ok(peers.into_values().collect())
}
