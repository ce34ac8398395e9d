//! The one table of all keys: it drives checking, `bezant config explain`, suggestions and `docs/configuration.md`.

use bezant_core::cluster::{Coin, Limits, Vects};
use bezant_core::ids::IdentityId;
use bezant_core::members::MEMBERS_MAX;
use bezant_core::replicas::REPLICAS_MAX;
use bezant_core::schedule::PARTS_MAX;
use bezant_core::time::Duration;
use bezant_core::wire::FRAME_BYTES_MAX;
use std::fmt;
use std::sync::LazyLock;

/// Which file a key stands in.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FileKind {
    /// `cluster.toml`: the same at every replica and client.
    Cluster,
    /// `node.toml`: one replica's own settings.
    Node,
}

impl fmt::Display for FileKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Cluster => "cluster.toml",
            Self::Node => "node.toml",
        })
    }
}

/// What a value may be.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// A whole number.
    Number {
        /// The smallest.
        min: u64,
        /// The largest.
        max: u64,
        /// Of what.
        unit: &'static str,
    },
    /// Text of 1 to so many characters, without control characters.
    Text(usize),
    /// A word of 1 to so many of a-z, 0-9, `-` and `_`.
    Word(usize),
    /// One of these words.
    Choice(&'static [&'static str]),
    /// So many bytes in hexadecimal digits.
    Hex(usize),
    /// Host and port that others connect to.
    Address,
    /// IP address and port to listen on; a wildcard is allowed.
    Listen,
    /// A path; a relative one starts at the file's directory.
    Path,
    /// A list of the parts of a composition.
    Schedule,
    /// Yes or no.
    Flag,
}

impl Kind {
    /// Whether a text is of this kind, as far as that can be said without reading it as an address.
    pub(crate) fn accepts(&self, text: &str) -> bool {
        match self {
            Self::Number { .. } | Self::Schedule | Self::Flag => false,
            Self::Text(max) => (1..=*max).contains(&text.chars().count()) && !text.chars().any(char::is_control),
            Self::Word(max) => {
                let fits = |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit() || b"-_".contains(&byte);
                (1..=*max).contains(&text.len()) && text.bytes().all(fits)
            }
            Self::Choice(words) => words.contains(&text),
            Self::Hex(bytes) => text.len() == 2 * bytes && text.bytes().all(|digit| digit.is_ascii_hexdigit()),
            Self::Address | Self::Listen => true,
            Self::Path => !text.is_empty() && !text.contains('\0'),
        }
    }
}

/// Words to choose from, as the documentation shows them.
fn words(words: &[&str]) -> String {
    let words: Vec<_> = words.iter().map(|word| format!("\"{word}\"")).collect();
    words.join(" or ")
}

impl fmt::Display for Kind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Number { min, max, unit } => write!(f, "a number from {min} to {max} ({unit})"),
            Self::Text(max) => write!(f, "text of 1 to {max} characters"),
            Self::Word(max) => write!(f, "a word of 1 to {max} of a-z, 0-9, `-` and `_`"),
            Self::Choice(choices) => f.write_str(&words(choices)),
            Self::Hex(bytes) => write!(f, "{} hexadecimal digits", 2 * bytes),
            Self::Address => f.write_str("\"host:port\" under which others reach it"),
            Self::Listen => f.write_str("\"ip:port\" to listen on"),
            Self::Path => f.write_str("a path, relative to this file"),
            Self::Flag => f.write_str("true or false"),
            Self::Schedule => write!(f, "a list of 1 to {PARTS_MAX} of {}", words(PARTS)),
        }
    }
}

/// A key.
#[derive(Clone, Debug)]
pub struct Key {
    /// Which file it stands in.
    pub file: FileKind,
    /// With its section, e.g. `limits.view_timeout_ms`.
    pub name: String,
    /// What it may be.
    pub kind: Kind,
    /// What it is if it is not given; `None`: it must be given.
    pub default: Option<String>,
    /// What it does, in a sentence or two.
    pub about: &'static str,
    explanation: String,
}

impl Key {
    fn new(file: FileKind, name: &str, kind: Kind, default: Option<String>, about: &'static str) -> Self {
        let default_text = default.as_deref().unwrap_or("none, it must be given");
        let explanation = format!("{name} ({file})\n  {about}\n  value:   {kind}\n  default: {default_text}\n");
        Self { file, name: name.to_owned(), kind, default, about, explanation }
    }

    /// The section, empty for keys at the top, and the name within it.
    pub fn split(&self) -> (&str, &str) {
        self.name.split_once('.').unwrap_or(("", &self.name))
    }
}

/// A bound of the cluster: how it is written in the file, and its place in [`Limits`].
pub(super) struct Limit {
    pub(super) name: &'static str,
    unit: &'static str,
    min: u64,
    max: u64,
    about: &'static str,
    pub(super) get: fn(&Limits) -> u64,
    pub(super) set: fn(&mut Limits, u64),
}

/// One limit and a value that it may have, as `name=value` on a command line.
#[derive(Clone, Copy, Debug)]
pub struct LimitSetting {
    place: usize,
    value: u64,
}

impl LimitSetting {
    /// Sets it.
    pub fn apply(self, limits: &mut Limits) {
        (LIMITS[self.place].set)(limits, self.value);
    }
}

impl std::str::FromStr for LimitSetting {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let (name, value) = text.split_once('=').ok_or("write NAME=VALUE")?;
        let place = LIMITS.iter().position(|limit| limit.name == name).ok_or_else(|| {
            let names: Vec<_> = LIMITS.iter().map(|limit| limit.name).collect();
            format!("there is no limit `{name}`; there are {}", names.join(", "))
        })?;
        let Limit { unit, min, max, .. } = LIMITS[place];
        let value = value.parse().ok().filter(|value| (min..=max).contains(value));
        let value = value.ok_or_else(|| format!("`{name}` is a number from {min} to {max} ({unit})"))?;
        Ok(Self { place, value })
    }
}

macro_rules! limit {
    ($field:ident, count $unit:literal, $min:expr, $max:expr, $about:literal) => {
        Limit {
            name: stringify!($field),
            unit: $unit,
            min: $min,
            max: $max,
            about: $about,
            get: |limits| limits.$field as u64,
            set: |limits, value| limits.$field = value as _,
        }
    };
    ($field:ident, time $name:literal, $min:expr, $max:expr, $about:literal) => {
        Limit {
            name: $name,
            unit: "milliseconds",
            min: $min,
            max: $max,
            about: $about,
            get: |limits| limits.$field.0 / 1_000,
            set: |limits, value| limits.$field = Duration::from_millis(value),
        }
    };
}

const MIB: u64 = 1 << 20;
const HOUR_MS: u64 = 3_600_000;
/// A frame holds a batch and what describes it.
const BATCH_BYTES_MAX: u64 = FRAME_BYTES_MAX as u64 / 2;

/// The limits, in the order of [`Limits`].
#[rustfmt::skip]
pub(super) const LIMITS: &[Limit] = &[
    limit!(checkpoint_interval, count "batches", 1, 65_536,
        "Batches between two checkpoints. Twice as many may be in flight above a stable one."),
    limit!(history_interval, count "requests", 1, 65_536,
        "Requests between two checkpoints of quorum, zlight and chain. At most three times as many are in their log."),
    limit!(batch_requests_max, count "requests", 1, 16_384, "Most requests in a batch, or operations."),
    limit!(batch_bytes_max, count "bytes", 1, BATCH_BYTES_MAX,
        "Most bytes of operations in a batch. A single request may exceed it alone."),
    limit!(batches_in_flight_max, count "batches", 1, 1_024,
        "Batches that the primary keeps in flight, none smaller than the one before, before it lets the next grow."),
    limit!(operation_bytes_max, count "bytes", 64, BATCH_BYTES_MAX, "Most bytes of one operation."),
    limit!(inline_bytes_max, count "bytes", 0, BATCH_BYTES_MAX,
        "Operations larger than this travel from the client to every replica; only their digest is ordered."),
    limit!(pending_requests_max, count "requests", 1, 1_048_576,
        "Requests waiting to be ordered, over all clients. When there are so many, the identity with the most gives \
         way."),
    limit!(pending_bytes_max, count "bytes", 65_536, 16_384 * MIB,
        "Bytes of operations waiting to be ordered, over all clients; as many again of reads that wait."),
    limit!(pending_reads_max, count "requests", 1, 1_048_576,
        "Read-only requests waiting for a state without tentative changes."),
    limit!(sessions_per_identity_max, count "sessions", 1, 1_048_576,
        "Sessions of one identity in the replicated client table."),
    limit!(members_max, count "clients", 1, MEMBERS_MAX as u64,
        "For `dynamic_clients`: clients that have joined, and those that have just left."),
    limit!(session_stale_after, time "session_stale_after_ms", 1_000, 24 * HOUR_MS,
        "For `dynamic_clients`: how long a session must be unused before another client may have its place. Only when \
         all places are taken."),
    limit!(takeover_interval, time "takeover_interval_ms", 0, HOUR_MS,
        "For `dynamic_clients`: how long a key keeps its session before it may join again and so end it."),
    limit!(cookie_lifetime, time "cookie_lifetime_ms", 1_000, HOUR_MS,
        "For `dynamic_clients`: how much time a client may take to join, and for how long its leaving is remembered."),
    limit!(view_timeout, time "view_timeout_ms", 10, HOUR_MS,
        "How long a backup waits for its oldest pending request before it asks for a new view."),
    limit!(view_timeout_max, time "view_timeout_max_ms", 10, HOUR_MS,
        "The most that `view_timeout_ms` grows to by doubling. It falls back as soon as there is progress."),
    limit!(status_interval, time "status_interval_ms", 1, HOUR_MS,
        "How often a replica that makes no progress says what it has and lacks."),
    limit!(clock_skew_max, time "clock_skew_max_ms", 1, HOUR_MS,
        "How far the primary's clock may be from a backup's when a fresh batch is proposed."),
    limit!(agreed_time_step_max, time "agreed_time_step_max_ms", 1, 24 * HOUR_MS,
        "The most by which one batch may move the agreed time forward."),
    limit!(log_bytes_per_snapshot, count "bytes", 65_536, 65_536 * MIB,
        "Bytes of log after which a snapshot is written and the log cut."),
    limit!(ring_slow_after, time "ring_slow_after_ms", 1, HOUR_MS,
        "For `ring-fast`: how long a batch may take around the ring before `status` calls the ring slow; it must also \
         take twice as long as its hops should."),
    limit!(ring_stop_after, time "ring_stop_after_ms", 0, HOUR_MS,
        "For `ring-fast`: from when on a ring that is slow beyond doubt is left for the next instance. 0: never. Not \
         for rings with links of unlike length."),
    limit!(client_retry, time "client_retry_ms", 1, HOUR_MS,
        "How long a client waits for replies before it sends its request to every replica."),
    limit!(transfer_requests_max, count "pages", 1, 4_096, "Pages that a recovering replica asks for at once."),
];

/// What people call something.
pub(super) const NAME: Kind = Kind::Text(64);
/// What a program calls the service that it serves; with its version it fits into a `ServiceBuild`.
pub(crate) const SERVICE: Kind = Kind::Word(28);
const REPLICA: Kind = Kind::Number { min: 0, max: REPLICAS_MAX as u64 - 1, unit: "replica" };
const F: Kind = Kind::Number { min: 0, max: (REPLICAS_MAX as u64 - 1) / 3, unit: "replicas" };
const QUOTA: Kind = Kind::Number { min: 1, max: 1 << 20, unit: "requests" };
const PATIENCE: Kind = Kind::Number { min: 0, max: 64, unit: "times" };
const IDENTITY: Kind = Kind::Number { min: 0, max: IdentityId::PINNED_MAX.0 as u64, unit: "identity" };

pub(super) const PROTOCOLS: &[&str] =
    &["pbft", "aardvark", "ritas", "quorum", "zlight", "chain", "azyzzyva", "aliph", "r-aliph", "ring", "unreplicated"];
pub(super) const PARTS: &[&str] =
    &["quorum", "zlight", "chain", "ring-fast", "ring-resilient", "backup(pbft)", "backup(aardvark)", "backup(ritas)"];
pub(super) const QUOTAS: &[&str] = &["exponential", "fixed", "flattened"];
pub(super) const CLIENT_AUTHS: &[&str] = &["mac", "hybrid", "signature"];
pub(super) const COINS: &[&str] = &[Coin::Local.label(), Coin::Common.label()];
pub(super) const VECTS: &[&str] = &[Vects::Reliable.label(), Vects::Echo.label()];
pub(super) const CHANNELS: &[&str] = &["tls", "plain"];
pub(super) const DURABILITIES: &[&str] = &["sync", "memory"];
pub(super) const LOG_LEVELS: &[&str] = &["error", "warn", "info", "debug", "trace"];
pub(super) const LOG_FORMATS: &[&str] = &["auto", "text", "json"];

type Row = (&'static str, Kind, Option<&'static str>, &'static str);

/// Name, value, default, meaning.
#[rustfmt::skip]
const CLUSTER: &[Row] = &[
    ("cluster_id", Kind::Hex(16), None,
        "Random bytes that no other cluster has. Every key, MAC and signature is bound to them."),
    ("name", NAME, Some("\"bezant\""), "What people call the cluster. Shown, and used for nothing else."),
    ("f", F, Some("the most that the number of replicas allows"),
        "How many replicas may lie, crash or be taken over at the same time: 3·f + 1 replicas are needed."),
    ("protocol", Kind::Choice(PROTOCOLS), Some("\"pbft\""),
        "The protocol that orders requests. \"aardvark\" is PBFT whose primaries have to be as fast as those before \
         them. \"ritas\" goes on however slow the network is, and is slower where it is not. \
         \"quorum\", \"zlight\" (or \"azyzzyva\") and \"chain\" hand over to PBFT \
         for a while whenever something is wrong; \"aliph\" is quorum at low load, then chain, then PBFT; \
         \"r-aliph\" is aardvark, quorum and chain, and leaves what is slower than aardvark; \"ring\", \
         for big requests, has a mode of its own instead of PBFT. \
         \"unreplicated\" is one server without any protection, as a yardstick."),
    ("schedule", Kind::Schedule, Some("as `protocol` says"),
        "Your own composition instead of a `protocol`: the parts follow one another in this order, and then again from \
         the start. One of them must be \"backup(pbft)\", \"backup(aardvark)\", \"backup(ritas)\" or \
         \"ring-resilient\", which go on when a replica is down."),
    ("backup_quota", Kind::Choice(QUOTAS), Some("\"exponential\""),
        "How many requests a \"backup(pbft)\" or \"ring-resilient\" answers before the next part has its turn. \
         \"fixed\": always `backup_requests`. \"exponential\": twice as many each time, and again few after some \
         time. \"flattened\": the same, but the first `backup_patience` times do not double."),
    ("backup_requests", QUOTA, Some("256"),
        "The fewest requests that such a part answers. Where a \"backup(aardvark)\" measures the other parts it has to \
         last: there it is 4096 if you do not say it."),
    ("backup_patience", PATIENCE, Some("3"), "For `backup_quota = \"flattened\"`: how often the fewest are enough."),
    ("client_auth", Kind::Choice(CLIENT_AUTHS), Some("\"hybrid\""),
        "How clients prove who they are. \"hybrid\": MACs for speed and a signature, so that a client with partly \
         valid MACs costs nobody a view. \"mac\": as published, for comparison; not with aardvark. \
         \"signature\": all replicas check it."),
    ("coin", Kind::Choice(COINS), Some("\"local\""),
        "What \"ritas\" and \"backup(ritas)\" toss where replicas do not agree. \"local\": each its own coin. \
         \"common\": all the same one, so that agreement takes a few rounds whatever the network does. Its keys are \
         dealt by `bezant testnet --coin common`: whoever saw them all can foresee the coins, and so delay the \
         cluster; it cannot make it disagree."),
    ("vect", Kind::Choice(VECTS), Some("\"reliable\""),
        "How \"ritas\" and \"backup(ritas)\" broadcast the VECTs of multi-valued consensus. \"reliable\": so that all \
         get the same. \"echo\": as published, which is cheaper; but one liar can keep the cluster waiting for ever. \
         That is for measurements: `bezant testnet` does not write it."),
    ("dynamic_clients", Kind::Flag, Some("false"),
        "Whether clients may join that this file does not name: whoever has a key and this file, if the service \
         agrees. Goes with `protocol = \"pbft\"` and with a \
         `schedule` of \"backup(pbft)\" alone."),
    ("genesis_root", Kind::Hex(32), Some("an empty state"),
        "The Merkle root of the state that the cluster began with. `bezant backup restore` and `renew` write it, and \
         the state itself as genesis.bin for every replica."),
    ("channel", Kind::Choice(CHANNELS), Some("\"tls\""),
        "How links are protected. \"plain\" encrypts nothing: for benchmarks on one machine."),
];

#[rustfmt::skip]
const MEMBERS: &[Row] = &[
    ("replica.id", REPLICA, None, "The replica's number: 0, 1, 2 and so on, without gaps."),
    ("replica.public_key", Kind::Hex(32), None, "The public key that belongs to its secret key."),
    ("replica.coin_key", Kind::Hex(96), Some("none; it must be given where `coin` is \"common\""),
        "The public key that belongs to its secret key for common coins."),
    ("replica.peer_address", Kind::Address, None, "Where the other replicas reach it."),
    ("replica.client_address", Kind::Address, None, "Where clients reach it."),
    ("replica.admin_address", Kind::Address, None,
        "Where it serves /metrics, /livez, /readyz and /status, and the state itself to whoever asks: for operators. \
         See `serve_state`. It answers under IP addresses, `localhost` and the host of this key: no other name in \
         `Host:` is taken, so that a web page cannot read it through its reader's browser."),
    ("identity.id", IDENTITY, None, "The identity's number. Never give it to another key later."),
    ("identity.name", NAME, None, "What people call it."),
    ("identity.public_key", Kind::Hex(32), None, "The public key whose owner may send requests."),
];

#[rustfmt::skip]
const NODE: &[Row] = &[
    ("replica", REPLICA, None, "Which replica of cluster.toml this is."),
    ("cluster", Kind::Path, Some("\"../cluster.toml\""), "The cluster's file."),
    ("key", Kind::Path, Some("\"key\""), "The secret key. The file must be readable by its owner only."),
    ("coin_key", Kind::Path, Some("\"coin.key\""),
        "The secret key for common coins, where the cluster has them. The file must be readable by its owner only."),
    ("directory", Kind::Path, Some("\".\""), "Where log and snapshots are. One directory for one replica."),
    ("durability", Kind::Choice(DURABILITIES), Some("\"sync\""),
        "\"sync\": whatever the replica says was on the disk before. \"memory\": nothing survives the process, so that \
         a restarted replica counts as faulty; for benchmarks."),
    ("service", SERVICE, Some("\"sql\""),
        "What is replicated, the same at every replica. `bezant replica` serves \"sql\": SQL tables with a key-value \
         store beside them, \"kv\": the key-value store alone, \"null\": an empty service for benchmarks, and \
         \"counter\": the example of the documentation. Every other name is of a program of your own."),
    ("log_level", Kind::Choice(LOG_LEVELS), Some("\"info\""), "The least important messages that are shown."),
    ("log_format", Kind::Choice(LOG_FORMATS), Some("\"auto\""),
        "How messages are shown: for people, for machines, or as fits: text on a terminal, JSON otherwise."),
    ("listen_peers", Kind::Listen, Some("the replica's `peer_address`"), "Where to listen for the other replicas."),
    ("listen_clients", Kind::Listen, Some("the replica's `client_address`"), "Where to listen for clients."),
    ("listen_admin", Kind::Listen, Some("the replica's `admin_address`"), "Where to serve metrics and health."),
    ("serve_state", Kind::Flag, Some("true"),
        "Whether backups, exports, comparisons and reads of checkpoints may be had at the admin port, which asks \
         nobody who they are. Without it that port shows no data."),
    ("peer.replica", REPLICA, None,
        "Another replica, with which this one has a link over a network of its own, so that a flood from elsewhere \
         does not fill it."),
    ("peer.listen", Kind::Listen, Some("as for all others"),
        "Where to listen for that replica alone, if it has a higher number: it dials. It is refused elsewhere, and \
         must say where it dials."),
    ("peer.dial", Kind::Address, Some("its `peer_address`"), "Where to dial that replica, if it has a lower number."),
];

fn row(file: FileKind, (name, kind, default, about): &Row) -> Key {
    Key::new(file, name, *kind, default.map(str::to_owned), about)
}

static KEYS: LazyLock<Vec<Key>> = LazyLock::new(|| {
    let defaults = Limits::default();
    let limit = |limit: &Limit| {
        let kind = Kind::Number { min: limit.min, max: limit.max, unit: limit.unit };
        let default = Some((limit.get)(&defaults).to_string());
        Key::new(FileKind::Cluster, &format!("limits.{}", limit.name), kind, default, limit.about)
    };
    let cluster = CLUSTER.iter().map(|entry| row(FileKind::Cluster, entry));
    let members = MEMBERS.iter().map(|entry| row(FileKind::Cluster, entry));
    let node = NODE.iter().map(|entry| row(FileKind::Node, entry));
    cluster.chain(LIMITS.iter().map(limit)).chain(members).chain(node).collect()
});

/// Every key, in the order in which the files show them.
pub fn keys() -> &'static [Key] {
    &KEYS
}

/// What a key does, its values and its default. The section may be left out: of several keys with one name the first
/// is explained.
pub fn explain(name: &str) -> Option<&'static str> {
    let exact = KEYS.iter().find(|key| key.name == name);
    exact.or_else(|| KEYS.iter().find(|key| key.split().1 == name)).map(|key| key.explanation.as_str())
}

/// The name among `names` that `name` was probably meant to be.
pub fn nearest<'a>(name: &str, names: impl Iterator<Item = &'a str>) -> Option<&'a str> {
    let (distance, nearest) = names.map(|known| (edit_distance(name, known), known)).min()?;
    (distance <= name.chars().count().max(3) / 2).then_some(nearest)
}

/// Insertions, deletions and substitutions that make one of the other.
fn edit_distance(a: &str, b: &str) -> usize {
    let b: Vec<char> = b.chars().collect();
    let mut row: Vec<usize> = (0..=b.len()).collect();
    for (i, x) in a.chars().enumerate() {
        let mut diagonal = std::mem::replace(&mut row[0], i + 1);
        for (j, y) in b.iter().enumerate() {
            let substituted = diagonal + usize::from(x != *y);
            diagonal = row[j + 1];
            row[j + 1] = substituted.min(diagonal + 1).min(row[j] + 1);
        }
    }
    row[b.len()]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_limit_is_set_by_name_and_within_its_range() {
        let mut limits = Limits::default();
        "checkpoint_interval=64".parse::<LimitSetting>().unwrap().apply(&mut limits);
        "view_timeout_ms=10".parse::<LimitSetting>().unwrap().apply(&mut limits);
        assert_eq!((limits.checkpoint_interval, limits.view_timeout), (64, Duration::from_millis(10)));
        for (text, said) in [
            ("checkpoint_interval", "NAME=VALUE"),
            ("checkpoint=1", "there is no limit `checkpoint`"),
            ("checkpoint_interval=0", "from 1 to 65536 (batches)"),
            ("view_timeout_ms=soon", "from 10 to 3600000 (milliseconds)"),
        ] {
            let error = text.parse::<LimitSetting>().unwrap_err();
            assert!(error.contains(said), "{error}");
        }
    }

    #[test]
    fn limits_survive_being_written_and_read() {
        let defaults = Limits::default();
        let mut limits = Limits::default();
        for limit in LIMITS {
            let default = (limit.get)(&defaults);
            assert!((limit.min..=limit.max).contains(&default), "{}", limit.name);
            (limit.set)(&mut limits, default);
            let written = |value| {
                let mut limits = Limits::default();
                (limit.set)(&mut limits, value);
                (limit.get)(&limits)
            };
            assert_eq!((written(limit.min), written(limit.max)), (limit.min, limit.max), "{}", limit.name);
        }
        assert_eq!(limits, defaults);
    }

    #[test]
    fn names_are_unique_and_node_files_small() {
        for key in keys() {
            let same = keys().iter().filter(|other| other.file == key.file && other.name == key.name);
            assert_eq!(same.count(), 1, "{}", key.name);
        }
        assert!(keys().iter().filter(|key| key.file == FileKind::Node).count() < 20);
    }

    #[test]
    fn what_was_meant_is_found() {
        let names = || keys().iter().map(|key| key.split().1);
        assert_eq!(nearest("view_timout_ms", names()), Some("view_timeout_ms"));
        assert_eq!(nearest("durabilty", names()), Some("durability"));
        assert_eq!(nearest("xyzzy-plugh-xyzzy", names()), None);
        assert_eq!(edit_distance("kitten", "sitting"), 3);
        assert!(explain("view_timeout_ms").unwrap().contains("default: 2000"));
        assert!(explain("nonsense").is_none());
    }
}
