//! `cluster.toml`: who takes part, where, with which keys, and the bounds that all share.

use super::document::{Document, Section};
use super::reference::{CHANNELS, CLIENT_AUTHS, COINS, FileKind, LIMITS, PROTOCOLS, QUOTAS, VECTS};
use super::{Address, ConfigError, read};
use crate::coin;
use crate::keys::{from_hex, to_hex};
use bezant_core::auth::{CoinKey, Ed25519, PublicKeys, SecretKey, Suite};
use bezant_core::cluster::{ClientAuth, Cluster, Coin, Limits, Vects};
use bezant_core::compositions::objection;
use bezant_core::digest::Digest;
use bezant_core::ids::{IdentityId, PublicKey, ReplicaId};
use bezant_core::schedule::{Order, Part, Protocol, Quota, Schedule};
use std::collections::BTreeMap;
use std::fmt::Write;
use std::path::Path;

/// How links are protected.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Channel {
    /// TLS 1.3 with the keys of the cluster file.
    #[default]
    Tls,
    /// Not at all.
    Plain,
}

/// A replica as the others see it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ReplicaEntry {
    /// Its number.
    pub id: ReplicaId,
    /// Its key.
    pub public_key: PublicKey,
    /// Its key for common coins, where there are any.
    pub coin_key: Option<CoinKey>,
    /// Where replicas reach it.
    pub peer_address: Address,
    /// Where clients reach it.
    pub client_address: Address,
    /// Where it serves metrics and health.
    pub admin_address: Address,
}

/// Somebody who may send requests.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct IdentityEntry {
    /// Its number.
    pub id: IdentityId,
    /// What people call it.
    pub name: String,
    /// Its key.
    pub public_key: PublicKey,
}

/// The cluster's file. What [`ClusterConfig::load`] returns is consistent: ids are 0 to n−1, nothing is there twice,
/// every public key is a proper one.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ClusterConfig {
    /// Random bytes that no other cluster has.
    pub cluster_id: [u8; 16],
    /// What people call it.
    pub name: String,
    /// Replicas that may be faulty.
    pub f: usize,
    /// Which protocol orders requests.
    pub protocol: Protocol,
    /// How many requests a Backup answers before it hands on.
    pub quota: Quota,
    /// What RITAS tosses.
    pub coin: Coin,
    /// How RITAS broadcasts VECT.
    pub vects: Vects,
    /// How clients authenticate.
    pub client_auth: ClientAuth,
    /// How links are protected.
    pub channel: Channel,
    /// Whether clients may join that the file does not name.
    pub dynamic_clients: bool,
    /// The root of the state to begin with, if another cluster left one.
    pub genesis_root: Option<Digest>,
    /// The bounds.
    pub limits: Limits,
    /// By number.
    pub replicas: Vec<ReplicaEntry>,
    /// By number.
    pub identities: Vec<IdentityEntry>,
}

/// The value of a word, by its place in the list of words.
fn choose<T: Copy + Default>(section: &Section, key: &str, words: &[&str], values: &[T]) -> T {
    let place = section.text(key).and_then(|text| words.iter().position(|word| *word == text));
    place.map_or(T::default(), |place| values[place])
}

/// Backups that answer the fewest requests, where a flattened quota does not say how many.
pub const BACKUP_PATIENCE: u32 = 3;
const CLIENT_AUTH_VALUES: &[ClientAuth] = &[ClientAuth::Mac, ClientAuth::Hybrid, ClientAuth::Signature];
const CHANNEL_VALUES: &[Channel] = &[Channel::Tls, Channel::Plain];

impl ClusterConfig {
    /// Reads and checks a file.
    ///
    /// # Errors
    /// [`ConfigError`] with file and line.
    pub fn load(path: &Path) -> Result<Self, ConfigError> {
        let (file, text) = read(path)?;
        Self::parse(&file, &text)
    }

    /// Reads and checks the text of a file.
    ///
    /// # Errors
    /// [`ConfigError`] with the file's name as given, and the line.
    pub fn parse(file: &str, text: &str) -> Result<Self, ConfigError> {
        let document = Document::parse(file, FileKind::Cluster, text)?;
        let top = document.top();
        let limits = limits(&document)?;
        check_unique(&document)?;
        let replicas = replicas(&document)?;
        let mut identities: Vec<_> =
            document.all("identity").map(|section| identity(&document, section)).collect::<Result<_, _>>()?;
        identities.sort_by_key(|entry: &IdentityEntry| entry.id);
        let f = top.number("f").map_or((replicas.len() - 1) / 3, |f| f as usize);
        let protocol = protocol(&document)?;
        let config = Self {
            cluster_id: top.text("cluster_id").and_then(from_hex).expect("checked against the table"),
            name: top.text("name").unwrap_or("bezant").to_owned(),
            f,
            protocol,
            quota: quota(&document, protocol)?,
            coin: choose(top, "coin", COINS, Coin::ALL),
            vects: choose(top, "vect", VECTS, Vects::ALL),
            client_auth: choose(top, "client_auth", CLIENT_AUTHS, CLIENT_AUTH_VALUES),
            channel: choose(top, "channel", CHANNELS, CHANNEL_VALUES),
            dynamic_clients: top.flag("dynamic_clients").unwrap_or(false),
            genesis_root: top.text("genesis_root").and_then(from_hex).map(Digest),
            limits,
            replicas,
            identities,
        };
        if config.cluster_id == [0; 16] {
            return Err(document.error(top.line_of("cluster_id"), "`cluster_id` is a placeholder: use random bytes"));
        }
        config.cluster().map_err(|error| document.error(top.line_of("f"), error))?;
        if let Some((key, message)) = objection_to(&config.limits, config.dynamic_clients) {
            let line = document.all("limits").next().map_or(1, |section| section.line_of(key));
            return Err(document.error(line, message));
        }
        config.check_coin_keys(&document)?;
        if let Some(objection) = objection(&config.to_cluster()) {
            let key = match config.protocol {
                _ if config.dynamic_clients => "dynamic_clients",
                protocol if config.coin == Coin::Common && !protocol.has_ritas() => "coin",
                protocol if config.vects == Vects::Echo && !protocol.has_ritas() => "vect",
                Protocol::Schedule(_) => "schedule",
                _ => "protocol",
            };
            let message = format!("`{}`: {objection}", protocol_line(config.protocol));
            return Err(document.error(top.line_of(key), message));
        }
        if let Some(objection) = objection_to_macs(config.protocol, config.client_auth) {
            return Err(document.error(top.line_of("client_auth"), objection));
        }
        Ok(config)
    }

    fn cluster(&self) -> Result<Cluster, String> {
        let (n, limits) = (self.replicas.len(), self.limits.clone());
        let cluster = Cluster::new(self.cluster_id, n, self.f, self.client_auth, limits);
        let cluster =
            cluster.map_err(|error| error.to_string())?.with_protocol(self.protocol).with_genesis(self.genesis_root);
        let Self { quota, coin, vects, dynamic_clients, .. } = *self;
        Ok(Cluster { quota, coin, vects, dynamic_clients, ..cluster })
    }

    /// Whether each replica has a key for common coins, all of one dealing, if and only if there are such coins.
    fn check_coin_keys(&self, document: &Document) -> Result<(), ConfigError> {
        for section in document.all("replica") {
            let id = section.number("id").expect("required");
            match (self.coin, self.replicas[id as usize].coin_key) {
                (Coin::Local, Some(_)) => {
                    let message = "`coin_key` goes with `coin = \"common\"`";
                    return Err(document.error(section.line_of("coin_key"), message));
                }
                (Coin::Common, None) => {
                    let message = format!(
                        "replica {id} has no `coin_key`, and `coin` is \"common\": the keys of all replicas are dealt \
                         together, by `bezant testnet --coin common`"
                    );
                    return Err(document.error(section.line_of("id"), message));
                }
                (Coin::Common, Some(key)) if !coin::is_key(&key) => {
                    let message = "`coin_key` is no valid BLS12-381 key";
                    return Err(document.error(section.line_of("coin_key"), message));
                }
                _ => {}
            }
        }
        let replicas = self.to_cluster().replicas;
        if self.coin == Coin::Common && !coin::belong_together(&replicas, &self.coin_keys()) {
            let message = format!("the replicas' `coin_key` are not of one dealing for f = {}", replicas.faults());
            return Err(document.error(document.top().line_of("coin"), message));
        }
        Ok(())
    }

    /// Everybody's keys for common coins, if there are such coins.
    pub fn coin_keys(&self) -> Vec<CoinKey> {
        self.replicas.iter().filter_map(|replica| replica.coin_key).collect()
    }

    /// The parameters as the machines take them.
    ///
    /// # Panics
    /// If the fields were changed to what [`ClusterConfig::parse`] would have refused.
    pub fn to_cluster(&self) -> Cluster {
        self.cluster().expect("n and f were checked when the file was read")
    }

    /// Everybody's public keys.
    pub fn public_keys(&self) -> PublicKeys {
        PublicKeys {
            replicas: self.replicas.iter().map(|replica| replica.public_key).collect(),
            identities: self.identities.iter().map(|identity| (identity.id, identity.public_key)).collect(),
        }
    }

    /// The entry of a replica.
    pub fn replica(&self, id: ReplicaId) -> Option<&ReplicaEntry> {
        self.replicas.get(usize::from(id.0))
    }

    /// The identity that a public key belongs to.
    pub fn identity_of(&self, key: &PublicKey) -> Option<&IdentityEntry> {
        self.identities.iter().find(|identity| identity.public_key == *key)
    }

    /// The file that reads as this. Limits that have their default value are left out.
    pub fn to_toml(&self) -> String {
        let word = |words: &[&'static str], place: Option<usize>| words[place.expect("every value has a word")];
        let mut out = String::new();
        let mut line = |text: std::fmt::Arguments<'_>| writeln!(out, "{text}").expect("writing to a string");
        line(format_args!("# The same at every replica and client. `bezant config explain KEY` says what a key does."));
        line(format_args!("cluster_id = \"{}\"", to_hex(&self.cluster_id)));
        line(format_args!("name = {}", quoted(&self.name)));
        line(format_args!("f = {}", self.f));
        line(format_args!("{}", protocol_line(self.protocol)));
        if self.quota != self.protocol.quota() {
            line(format_args!("{}", quota_lines(self.quota)));
        }
        if self.coin != Coin::default() {
            line(format_args!("coin = \"{}\"", self.coin.label()));
        }
        if self.vects != Vects::default() {
            line(format_args!("vect = \"{}\"", self.vects.label()));
        }
        let place = CLIENT_AUTH_VALUES.iter().position(|value| *value == self.client_auth);
        line(format_args!("client_auth = \"{}\"", word(CLIENT_AUTHS, place)));
        let place = CHANNEL_VALUES.iter().position(|value| *value == self.channel);
        line(format_args!("channel = \"{}\"", word(CHANNELS, place)));
        if self.dynamic_clients {
            line(format_args!("dynamic_clients = true"));
        }
        if let Some(root) = self.genesis_root {
            line(format_args!("genesis_root = \"{}\"", to_hex(&root.0)));
        }
        let defaults = Limits::default();
        let changed: Vec<_> =
            LIMITS.iter().filter(|limit| (limit.get)(&self.limits) != (limit.get)(&defaults)).collect();
        if !changed.is_empty() {
            line(format_args!("\n[limits]"));
        }
        for limit in changed {
            line(format_args!("{} = {}", limit.name, (limit.get)(&self.limits)));
        }
        for replica in &self.replicas {
            line(format_args!("\n[[replica]]"));
            line(format_args!("id = {}", replica.id.0));
            line(format_args!("public_key = \"{}\"", to_hex(&replica.public_key.0)));
            if let Some(key) = replica.coin_key {
                line(format_args!("coin_key = \"{}\"", to_hex(&key.0)));
            }
            line(format_args!("peer_address = \"{}\"", replica.peer_address));
            line(format_args!("client_address = \"{}\"", replica.client_address));
            line(format_args!("admin_address = \"{}\"", replica.admin_address));
        }
        for identity in &self.identities {
            line(format_args!("\n[[identity]]"));
            line(format_args!("id = {}", identity.id.0));
            line(format_args!("name = {}", quoted(&identity.name)));
            line(format_args!("public_key = \"{}\"", to_hex(&identity.public_key.0)));
        }
        out
    }
}

/// The composition, as the file says it.
fn protocol_line(protocol: Protocol) -> String {
    match protocol {
        Protocol::Schedule(schedule) => {
            let parts: Vec<_> = schedule.parts().iter().map(|part| format!("\"{part}\"")).collect();
            format!("schedule = [{}]", parts.join(", "))
        }
        named => format!("protocol = \"{named}\""),
    }
}

fn quota_lines(quota: Quota) -> String {
    let (name, requests, patience) = match quota {
        Quota::Exponential { minimum } => ("exponential", minimum, None),
        Quota::Fixed(requests) => ("fixed", requests, None),
        Quota::Flattened { minimum, patience } => ("flattened", minimum, Some(patience)),
    };
    let patience = patience.map_or_else(String::new, |patience| format!("\nbackup_patience = {patience}"));
    format!("backup_quota = \"{name}\"\nbackup_requests = {requests}{patience}")
}

fn protocol(document: &Document) -> Result<Protocol, ConfigError> {
    let top = document.top();
    let Some(parts) = top.list("schedule") else { return Ok(choose(top, "protocol", PROTOCOLS, Protocol::ALL)) };
    let line = top.line_of("schedule");
    if top.text("protocol").is_some() {
        return Err(document.error(line, "`schedule` stands instead of `protocol`: give one of them"));
    }
    let parts: Result<Vec<_>, _> = parts.iter().map(|part| part.parse()).collect();
    let schedule = parts.and_then(|parts| Schedule::new(&parts));
    schedule.map(Protocol::Schedule).map_err(|error| document.error(line, format!("`schedule`: {error}")))
}

/// Requests and patience have the table's defaults where the file does not say them.
fn quota(document: &Document, protocol: Protocol) -> Result<Quota, ConfigError> {
    let top = document.top();
    let minimum = top.number("backup_requests").unwrap_or_else(|| protocol.quota().minimum());
    let patience = top.number("backup_patience");
    let name = top.text("backup_quota").unwrap_or(QUOTAS[0]);
    if patience.is_some() && name != "flattened" {
        let message = "`backup_patience` goes with `backup_quota = \"flattened\"`";
        return Err(document.error(top.line_of("backup_patience"), message));
    }
    Ok(match name {
        "fixed" => Quota::Fixed(minimum),
        "flattened" => {
            Quota::Flattened { minimum, patience: patience.map_or(BACKUP_PATIENCE, |patience| patience as u32) }
        }
        _ => Quota::Exponential { minimum },
    })
}

/// Text as TOML writes it.
pub(super) fn quoted(text: &str) -> String {
    format!("\"{}\"", text.replace('\\', "\\\\").replace('"', "\\\""))
}

fn limits(document: &Document) -> Result<Limits, ConfigError> {
    let mut limits = Limits::default();
    let Some(section) = document.all("limits").next() else { return Ok(limits) };
    for limit in LIMITS {
        if let Some(value) = section.number(limit.name) {
            (limit.set)(&mut limits, value);
        }
    }
    Ok(limits)
}

/// Why clients need signatures, if they do. Aardvark promises that no client takes a correct primary's view; with MACs
/// alone one can, by giving the primary other MACs than the backups ([`ClientAuth`]). In RITAS a request has to
/// convince every replica alike.
pub(super) fn objection_to_macs(protocol: Protocol, client_auth: ClientAuth) -> Option<&'static str> {
    let has = |order| protocol.schedule().parts().contains(&Part::Backup(order));
    let message = match () {
        () if has(Order::Aardvark) => {
            "aardvark needs clients that sign: set `client_auth` to \"hybrid\" or \"signature\""
        }
        () if has(Order::Ritas) => "ritas needs clients that sign: set `client_auth` to \"hybrid\" or \"signature\"",
        () => return None,
    };
    (client_auth == ClientAuth::Mac).then_some(message)
}

/// Which limits do not go with others: the key, and why. A faulty primary's clock may be off by `clock_skew_max`: with
/// shorter times it could keep everybody from joining, or make everybody stale (prac-F27).
pub(super) fn objection_to(limits: &Limits, dynamic_clients: bool) -> Option<(&'static str, String)> {
    if limits.view_timeout > limits.view_timeout_max {
        return Some(("view_timeout_ms", "`view_timeout_ms` must not exceed `view_timeout_max_ms`".to_owned()));
    }
    if limits.pending_bytes_max < limits.operation_bytes_max {
        let message = "`pending_bytes_max` must hold at least one operation of `operation_bytes_max`";
        return Some(("pending_bytes_max", message.to_owned()));
    }
    let spans =
        [("cookie_lifetime_ms", limits.cookie_lifetime), ("session_stale_after_ms", limits.session_stale_after)];
    let short = spans.into_iter().find(|(_, span)| dynamic_clients && span.0 < 2 * limits.clock_skew_max.0);
    short.map(|(name, _)| (name, format!("`{name}` must be at least twice `clock_skew_max_ms`")))
}

fn public_key(document: &Document, section: &Section) -> Result<PublicKey, ConfigError> {
    let bytes = section.text("public_key").and_then(from_hex).expect("checked against the table");
    // Any agreement with it shows whether it is a proper point; the result is of no interest.
    match Ed25519.agree(&SecretKey([1; 32]), &PublicKey(bytes)) {
        Some(_) => Ok(PublicKey(bytes)),
        None => Err(document.error(section.line_of("public_key"), "`public_key` is no valid Ed25519 key")),
    }
}

fn replicas(document: &Document) -> Result<Vec<ReplicaEntry>, ConfigError> {
    let mut entries = Vec::new();
    for section in document.all("replica") {
        let address = |key| section.text(key).and_then(|text| text.parse().ok()).expect("checked against the table");
        entries.push(ReplicaEntry {
            id: ReplicaId(section.number("id").expect("required") as u8),
            public_key: public_key(document, section)?,
            coin_key: section.text("coin_key").and_then(from_hex).map(CoinKey),
            peer_address: address("peer_address"),
            client_address: address("client_address"),
            admin_address: address("admin_address"),
        });
    }
    entries.sort_by_key(|entry| entry.id);
    let Some(last) = entries.last() else {
        return Err(document.error(1, "there is no [[replica]]: at least one is needed, four to survive a liar"));
    };
    if usize::from(last.id.0) + 1 != entries.len() {
        let last = last.id.0;
        let section = document.all("replica").find(|section| section.number("id") == Some(last.into()));
        let line = section.map_or(1, |section| section.line_of("id"));
        let message = format!("there is a replica {last}, but only {} replicas: ids are 0, 1, 2 …", entries.len());
        return Err(document.error(line, message));
    }
    Ok(entries)
}

fn identity(document: &Document, section: &Section) -> Result<IdentityEntry, ConfigError> {
    Ok(IdentityEntry {
        id: IdentityId(section.number("id").expect("required") as u32),
        name: section.text("name").expect("required").to_owned(),
        public_key: public_key(document, section)?,
    })
}

/// Ids, names, keys and addresses stand for one thing each.
fn check_unique(document: &Document) -> Result<(), ConfigError> {
    let mut seen: BTreeMap<(&str, String), usize> = BTreeMap::new();
    let mut check = |what: &'static str, value: String, line: usize| match seen.insert((what, value.clone()), line) {
        None => Ok(()),
        Some(first) => Err(document.error(line, format!("{what} {value} is there already, at line {first}"))),
    };
    for section in document.all("replica") {
        let id = section.number("id").expect("required");
        check("replica", id.to_string(), section.line_of("id"))?;
        for key in ["peer_address", "client_address", "admin_address"] {
            check("the address", section.text(key).expect("required").to_owned(), section.line_of(key))?;
        }
    }
    for section in document.all("identity") {
        let id = section.number("id").expect("required");
        check("identity", id.to_string(), section.line_of("id"))?;
        check("the identity's name", section.text("name").expect("required").to_owned(), section.line_of("name"))?;
    }
    for section in document.all("replica").chain(document.all("identity")) {
        let key = section.text("public_key").expect("required").to_ascii_lowercase();
        check("the public key", key, section.line_of("public_key"))?;
    }
    Ok(())
}
