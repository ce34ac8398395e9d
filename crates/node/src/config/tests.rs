//! What is refused, with which words; what is written reads as it was meant; the documentation is up to date.

use super::reference::{FileKind, Kind, keys};
use super::*;
use bezant_core::cluster::{ClientAuth, Coin, Vects};
use bezant_core::ids::ReplicaId;
use bezant_core::schedule::{Protocol, Quota};
use bezant_core::time::Duration;
use std::fmt::Write;
use std::path::PathBuf;
use std::sync::atomic::{AtomicU64, Ordering};

/// A directory of its own, deleted at the end.
struct Directory(PathBuf);

impl Directory {
    fn new() -> Self {
        static NEXT: AtomicU64 = AtomicU64::new(0);
        let number = NEXT.fetch_add(1, Ordering::Relaxed);
        Self(std::env::temp_dir().join(format!("bezant-config-test-{}-{number}", std::process::id())))
    }
}

impl Drop for Directory {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

fn options() -> Testnet {
    let log = crate::log::Options { allocation_bytes: 256, reserve_bytes: 0, ..Default::default() };
    Testnet { log, ..Testnet::default() }
}

/// A good file to be spoiled.
fn good() -> String {
    let directory = Directory::new();
    testnet(&directory.0, &options()).unwrap().to_toml()
}

fn refused(text: &str) -> String {
    ClusterConfig::parse("cluster.toml", text).unwrap_err().to_string()
}

#[test]
fn a_testnet_is_complete_and_reads_as_it_was_meant() {
    let directory = Directory::new();
    let mut options = Testnet { replicas: 7, base_port: 5000, client_auth: ClientAuth::Mac, ..options() };
    options.service = "my-own_1".to_owned();
    options.limits.view_timeout = Duration::from_millis(700);
    let written = testnet(&directory.0, &options).unwrap();
    let read = ClusterConfig::load(&directory.0.join("cluster.toml")).unwrap();
    assert_eq!(read, written);
    let cluster = read.to_cluster();
    assert_eq!(
        (cluster.replicas.n(), cluster.replicas.faults(), cluster.limits.view_timeout),
        (7, 2, Duration::from_millis(700))
    );
    assert_eq!(read.replica(ReplicaId(3)).unwrap().admin_address.to_string(), "127.0.0.1:5032");
    for id in cluster.replicas.iter() {
        let home = directory.0.join(format!("replica-{}", id.0));
        let node = NodeConfig::load(&home.join("node.toml")).unwrap();
        assert_eq!((node.replica, node.service.as_str(), node.durability), (id, "my-own_1", Durability::Sync));
        assert_eq!(ClusterConfig::load(&node.cluster).unwrap(), read);
        let secret = crate::keys::load(&node.key).unwrap();
        let me = bezant_core::ids::Principal::Replica(id);
        let suite = &bezant_core::auth::Ed25519;
        assert!(bezant_core::auth::Keyring::new(suite, &cluster, me, secret, read.public_keys()).is_some());
        let identity = crate::log::Identity { cluster: cluster.digest(), replica: id };
        let recovered = crate::log::open(&node.directory, &identity, &options.log).unwrap();
        assert!(recovered.records.is_empty() && !recovered.lost_log);
    }
    let client = crate::keys::load(&directory.0.join("client.key")).unwrap();
    let public = bezant_core::auth::Suite::public(&bezant_core::auth::Ed25519, &client);
    assert_eq!(read.identity_of(&public).unwrap().name, "client");
    assert!(matches!(testnet(&directory.0, &options), Err(TestnetError::NotEmpty(_))));
}

#[test]
fn a_testnet_that_cannot_be_is_refused_before_anything_is_written() {
    let directory = Directory::new();
    for (options, why) in [
        (Testnet { replicas: 3, f: Some(1), ..options() }, "4 are needed"),
        (Testnet { replicas: 65, ..options() }, "at most 64"),
        (Testnet { replicas: 0, ..options() }, "0 replicas"),
        (Testnet { base_port: 65_520, ..options() }, "not a port"),
        (Testnet { host: "0.0.0.0".to_owned(), ..options() }, "every address"),
        (Testnet { name: "two\nlines".to_owned(), ..options() }, "must be text of"),
        (Testnet { coin: Coin::Common, ..options() }, "only ritas tosses coins"),
        (Testnet { protocol: Protocol::Aardvark, client_auth: ClientAuth::Mac, ..options() }, "clients that sign"),
    ] {
        let error = testnet(&directory.0, &options).unwrap_err().to_string();
        assert!(error.contains(why), "{error}");
        assert!(!directory.0.exists());
    }
}

/// Secrets for their owners only, public keys for everybody, all of one dealing.
#[test]
fn the_keys_of_a_common_coin_are_dealt_together() {
    use std::os::unix::fs::PermissionsExt;
    let directory = Directory::new();
    let options = Testnet { protocol: Protocol::Ritas, coin: Coin::Common, ..options() };
    let written = testnet(&directory.0, &options).unwrap();
    let read = ClusterConfig::load(&directory.0.join("cluster.toml")).unwrap();
    assert_eq!((&read, read.to_cluster().coin, read.coin_keys().len()), (&written, Coin::Common, 4));
    let suite = &bezant_core::auth::Ed25519;
    for id in read.to_cluster().replicas.iter() {
        let home = directory.0.join(format!("replica-{}", id.0));
        let node = NodeConfig::load(&home.join("node.toml")).unwrap();
        assert_eq!(std::fs::metadata(&node.coin_key).unwrap().permissions().mode() & 0o777, 0o600);
        let [secret, coin] = [&node.key, &node.coin_key].map(|path| crate::keys::load(path).unwrap());
        let me = bezant_core::ids::Principal::Replica(id);
        let keyring =
            bezant_core::auth::Keyring::new(suite, &read.to_cluster(), me, secret.clone(), read.public_keys()).unwrap();
        let with = |coin| keyring.clone().with_coin(&crate::coin::Bls, coin, read.coin_keys());
        assert!(with(coin).is_some() && with(secret).is_none());
    }
    let text = written.to_toml();
    let key = |id: usize| text.lines().filter(|line| line.starts_with("coin_key")).nth(id).unwrap().to_owned();
    let without = text.replace(&format!("{}\n", key(2)), "");
    assert!(refused(&without).contains("replica 2 has no `coin_key`"), "{}", refused(&without));
    assert!(refused(&text.replace("coin = \"common\"\n", "")).contains("goes with `coin = \"common\"`"));
    assert!(refused(&text.replace(&key(2), &key(1))).contains("not of one dealing"));
    let broken = format!("coin_key = \"{}\"", "07".repeat(96));
    assert!(refused(&text.replace(&key(2), &broken)).contains("no valid BLS12-381 key"));
    let pbft = refused(&text.replace("protocol = \"ritas\"", "protocol = \"pbft\""));
    assert!(pbft.contains("only ritas tosses coins") && pbft.contains("cluster.toml:"), "{pbft}");
}

/// It is for measurements: whoever wants it writes it into the file of a cluster that is there.
#[test]
fn vects_by_echo_broadcast_are_said_by_hand() {
    let directory = Directory::new();
    let ritas = testnet(&directory.0, &Testnet { protocol: Protocol::Ritas, ..options() }).unwrap();
    assert_eq!(ritas.vects, Vects::Reliable);
    let echo = ritas.to_toml().replace("client_auth", "vect = \"echo\"\nclient_auth");
    let config = ClusterConfig::parse("cluster.toml", &echo).unwrap();
    assert_eq!((config.to_cluster().vects, config.to_toml()), (Vects::Echo, echo.clone()));
    assert_ne!(config.to_cluster().digest(), ritas.to_cluster().digest(), "replicas that differ in it do not connect");
    let pbft = refused(&echo.replace("protocol = \"ritas\"", "protocol = \"pbft\""));
    assert!(pbft.contains("only ritas has VECTs") && pbft.contains("cluster.toml:"), "{pbft}");
}

#[test]
fn an_unknown_key_is_refused_with_line_and_suggestion() {
    let good = good();
    let with = |key: &str| refused(&good.replace("[[identity]]", &format!("{key}\n[[identity]]")));
    let line = 1 + good.lines().position(|line| line == "[[identity]]").unwrap();
    assert_eq!(
        with("[limits]\nview_timout_ms = 5"),
        format!("cluster.toml:{}: unknown key `view_timout_ms` in [limits]: did you mean `view_timeout_ms`?", line + 1)
    );
    assert!(with("[limit]").contains("unknown key `limit`: did you mean `limits`?"));
    assert!(with("protocol = \"pbft\"").contains("it stands at the top of the file"));
    assert!(with("[limits]\nxyzzyxyzzyxyzzy = 1").contains("bezant config explain"));
    assert!(refused(&good.replace("name = \"bezant\"", "nam = \"bezant\"")).contains("did you mean `name`?"));
    assert!(refused(&format!("view_timeout_ms = 5\n{good}")).contains("it stands in [limits]"));
    let node = NodeConfig::parse("node.toml", "replica = 0\n\ndurabilty = \"sync\"", Path::new(""));
    let error = node.unwrap_err().to_string();
    assert_eq!(error, "node.toml:3: unknown key `durabilty`: did you mean `durability`?");
}

#[test]
fn a_value_out_of_range_is_refused_with_the_range() {
    let good = good();
    let limit = |value: &str| refused(&format!("{good}\n[limits]\nview_timeout_ms = {value}"));
    let range = "`limits.view_timeout_ms` must be a number from 10 to 3600000 (milliseconds); ";
    assert!(limit("9").contains(&format!("{range}it is 9")), "{}", limit("9"));
    assert!(limit("-1").contains(range) && limit("99999999999999999999").contains(range));
    assert!(limit("\"5\"").contains("it is of type string") && limit("1.5").contains("it is of type float"));
    assert!(limit("40000").contains("must not exceed"), "{}", limit("40000"));
    let with = |from: &str, to: &str| refused(&good.replacen(from, to, 1));
    assert!(with("hybrid", "hybird").contains("did you mean \"hybrid\"?"));
    assert!(with("cluster_id = \"", "cluster_id = \"0").contains("32 hexadecimal digits; it is text of 33"));
    assert!(with("127.0.0.1:4110", "0.0.0.0:4110").contains("every address of this machine"));
    assert!(with("f = 1", "f = 2").contains("7 are needed"));
    assert!(with("f = 1", "f = 22").contains("from 0 to 21"));
    assert!(with("pbft", "unreplicated").contains("exactly one replica"));
}

const NAMED: &str = "protocol = \"pbft\"";

#[test]
fn a_schedule_of_ones_own_is_read_and_written() {
    let text = good().replace(NAMED, "schedule = [\"zlight\", \"chain\", \"backup(pbft)\"]");
    let config = ClusterConfig::parse("cluster.toml", &text).unwrap();
    assert_eq!(config.protocol, Protocol::Schedule("zlight, chain, backup(pbft)".parse().unwrap()));
    assert!(config.to_toml().contains("schedule = [\"zlight\", \"chain\", \"backup(pbft)\"]"));
    assert_eq!(ClusterConfig::parse("cluster.toml", &config.to_toml()).unwrap(), config);
}

#[test]
fn a_schedule_that_cannot_be_is_refused_with_the_reason() {
    let with = |line: &str| refused(&good().replace(NAMED, line));
    assert!(with("schedule = [\"quorum\", \"chain\"]").contains("nothing commits while a replica is down"));
    assert!(with("schedule = []").contains("at least one part"));
    assert!(
        with("schedule = [\"raft\"]").contains("there are quorum zlight chain ring-fast ring-resilient backup(pbft)")
    );
    assert!(with("schedule = [\"ring-fast\", \"chain\"]").contains("needs a backup(pbft) or a ring-resilient"));
    assert!(with("schedule = \"chain\"").contains("must be a list"));
    assert!(with("schedule = [1]").contains("something else"));
    let both = with("protocol = \"aliph\"\nschedule = [\"backup(pbft)\"]");
    assert!(both.contains("instead of `protocol`"), "{both}");
    let unsigned = good().replace(NAMED, "schedule = [\"backup(aardvark)\"]").replace("\"hybrid\"", "\"mac\"");
    let unsigned = refused(&unsigned);
    assert!(unsigned.contains("aardvark needs clients that sign"), "{unsigned}");
    let long = with("schedule = [\"chain\", \"quorum\", \"chain\", \"quorum\", \"chain\", \"backup(pbft)\"]");
    assert!(long.contains("\"backup(pbft)\"]`: histories grow too long"), "{long}");
}

#[test]
fn quotas_are_read_and_written() {
    let with = |lines: &str| good().replace(NAMED, &format!("protocol = \"aliph\"\n{lines}"));
    let quota = |lines: &str| {
        let config = ClusterConfig::parse("cluster.toml", &with(lines)).unwrap();
        assert_eq!(ClusterConfig::parse("cluster.toml", &config.to_toml()).unwrap(), config);
        assert_eq!(config.to_cluster().quota, config.quota);
        config.quota
    };
    assert_eq!(quota(""), Quota::default());
    let robust = good().replace(NAMED, "protocol = \"r-aliph\"");
    let robust = ClusterConfig::parse("cluster.toml", &robust).unwrap();
    assert_eq!(robust.quota, Quota::Exponential { minimum: 4_096 });
    assert_eq!(ClusterConfig::parse("cluster.toml", &robust.to_toml()).unwrap(), robust);
    assert_eq!(quota("backup_quota = \"fixed\"\nbackup_requests = 1"), Quota::Fixed(1));
    assert_eq!(quota("backup_requests = 8"), Quota::Exponential { minimum: 8 });
    assert_eq!(quota("backup_quota = \"flattened\""), Quota::Flattened { minimum: 256, patience: 3 });
    assert_eq!(
        quota("backup_quota = \"flattened\"\nbackup_patience = 9"),
        Quota::Flattened { minimum: 256, patience: 9 }
    );
    assert!(refused(&with("backup_patience = 9")).contains("goes with `backup_quota = \"flattened\"`"));
    assert!(refused(&with("backup_quota = \"flatened\"")).contains("did you mean \"flattened\"?"));
    for (key, value) in [("backup_requests", "256"), ("backup_patience", "3"), ("backup_quota", "\"exponential\"")] {
        let key = keys().iter().find(|known| known.name == key).unwrap();
        assert_eq!(key.default.as_deref(), Some(value), "{}", key.name);
    }
}

#[test]
fn dynamic_clients_are_read_and_written_and_refused_where_they_cannot_be() {
    let with = |lines: &str| good().replace(NAMED, lines);
    let text = with("protocol = \"pbft\"\ndynamic_clients = true");
    let config = ClusterConfig::parse("cluster.toml", &text).unwrap();
    assert!(config.to_cluster().dynamic_clients);
    assert_eq!(ClusterConfig::parse("cluster.toml", &config.to_toml()).unwrap(), config);
    assert!(!ClusterConfig::parse("cluster.toml", &good()).unwrap().dynamic_clients);
    let aliph = refused(&with("protocol = \"aliph\"\ndynamic_clients = true"));
    assert!(aliph.contains("other parts let nobody join"), "{aliph}");
    assert!(refused(&text.replace("hybrid", "mac")).contains("requests that are signed"));
    assert!(refused(&text.replace("true", "\"yes\"")).contains("must be true or false"));
    let limits = |line: &str| text.replacen("[[replica]]", &format!("[limits]\n{line}\n[[replica]]"), 1);
    assert!(refused(&limits("cookie_lifetime_ms = 19_999")).contains("at least twice `clock_skew_max_ms`"));
    assert!(ClusterConfig::parse("cluster.toml", &limits("cookie_lifetime_ms = 20_000")).is_ok());
    assert!(refused(&good().replacen("\nid = 0\nname", "\nid = 2147483648\nname", 1)).contains("from 0 to 2147483647"));
}

#[test]
fn what_is_missing_or_there_twice_is_refused() {
    let good = good();
    let with = |from: &str, to: &str| refused(&good.replacen(from, to, 1));
    assert!(with("cluster_id", "#").contains("`cluster_id` is missing"));
    assert!(with("client_address", "#").contains("`replica.client_address` is missing"));
    assert!(with("127.0.0.1:4111", "127.0.0.1:4110").contains("the address 127.0.0.1:4110 is there already, at line"));
    assert!(with("id = 3", "id = 2").contains("replica 2 is there already"));
    assert!(with("id = 3", "id = 5").contains("there is a replica 5, but only 4 replicas"));
    assert!(with("name = \"bezant\"", "name = \"bezant\"\nname = \"x\"").contains("cluster.toml:"));
    let keys: Vec<_> = good.lines().filter_map(|line| line.strip_prefix("public_key = ")).collect();
    assert!(with(keys[4], keys[1]).contains("the public key"), "a client's key must not be a replica's");
    assert!(with(keys[1], &format!("\"{}\"", "00".repeat(32))).contains("no valid Ed25519 key"));
    assert!(refused(&format!("cluster_id = \"{}\"", "01".repeat(16))).contains("there is no [[replica]]"));
    assert!(with(&good.lines().nth(1).unwrap()[14..46], &"0".repeat(32)).contains("placeholder"));
    assert!(NodeConfig::parse("node.toml", "", Path::new("")).unwrap_err().message.contains("`replica` is missing"));
}

#[test]
fn sections_are_written_as_they_should_be() {
    let good = good();
    assert!(refused(&good.replace("[[identity]]", "[identity]")).contains("write `identity` as [[identity]]"));
    assert!(refused(&format!("{good}\n[[limits]]\nview_timeout_ms = 50")).contains("write `limits` as [limits]"));
    assert!(refused("= 5").contains("cluster.toml:1:"));
    assert!(refused("replica = [1, {}]").contains("write `replica` as [[replica]]"));
    assert!(refused("replica = 1").contains("replica"), "{}", refused("replica = 1"));
    assert!(refused(&"#".repeat(2 << 20)).contains("larger than"));
}

/// Whatever stands in a file: it is refused with a line, or it means what it says.
#[test]
fn any_file_is_refused_or_reads_as_it_is_written() {
    let good = good();
    let mut state = 11u64;
    let mut random = |bound: usize| {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (state >> 33) as usize % bound
    };
    let pieces = ["\"", "[", "]", "=", "\n", "-1", "0x7f", "{}", "true", "'", "\u{0}", "é", "[[replica]]\n", "f = 0\n"];
    for _ in 0..400 {
        let mut text = good.clone();
        for _ in 0..=random(3) {
            let at = random(text.len());
            match random(3) {
                0 => text.insert_str(at, pieces[random(pieces.len())]),
                1 => drop(text.drain(at..(at + 1 + random(20)).min(text.len()))),
                _ => text.truncate(at.max(1)),
            }
            if !text.is_ascii() || text.is_empty() {
                break;
            }
        }
        match ClusterConfig::parse("cluster.toml", &text) {
            Ok(config) => assert_eq!(ClusterConfig::parse("cluster.toml", &config.to_toml()).unwrap(), config),
            Err(error) => assert!(error.line.is_some() && !error.message.is_empty(), "{error}"),
        }
    }
}

#[test]
fn quotes_in_names_survive() {
    let mut config = ClusterConfig::parse("cluster.toml", &good()).unwrap();
    config.name = "a \"b\" \\ c ü".to_owned();
    assert_eq!(ClusterConfig::parse("cluster.toml", &config.to_toml()).unwrap(), config);
}

#[test]
fn node_settings_and_their_defaults() {
    let node = NodeConfig::parse("node.toml", "replica = 2", Path::new("here")).unwrap();
    assert_eq!((node.durability, node.log_format), Default::default());
    assert_eq!((node.cluster.as_path(), node.service.as_str()), (Path::new("here/../cluster.toml"), "sql"));
    let text = "replica = 2\nkey = \"/etc/key\"\ndurability = \"memory\"\nlisten_peers = \"0.0.0.0:7\"";
    let node = NodeConfig::parse("node.toml", text, Path::new("here")).unwrap();
    assert_eq!((node.key.as_path(), node.durability), (Path::new("/etc/key"), Durability::Memory));
    assert_eq!(node.listen_peers, Some("0.0.0.0:7".parse().unwrap()));
}

#[test]
fn links_over_addresses_of_their_own() {
    let parse = |text: &str| NodeConfig::parse("node.toml", &format!("replica = 2\n{text}"), Path::new("here"));
    assert_eq!(parse("").unwrap().peers, []);
    let text = "[[peer]]\nreplica = 3\nlisten = \"10.0.3.2:7\"\n[[peer]]\nreplica = 0\ndial = \"r0.lan:7\"";
    let node = parse(text).unwrap();
    let [lower, higher] = &node.peers[..] else { panic!("{:?}", node.peers) };
    assert_eq!((lower.replica, lower.listen, lower.dial.clone()), (ReplicaId(0), None, "r0.lan:7".parse().ok()));
    assert_eq!((higher.replica, higher.listen), (ReplicaId(3), "10.0.3.2:7".parse().ok()));
    assert!(node.check_peers(Path::new("node.toml"), 4).is_ok());
    let error = node.check_peers(Path::new("node.toml"), 3).unwrap_err();
    assert_eq!(error.to_string(), "node.toml: [[peer]] names replica 3, and cluster.toml has 3");
    for (text, line, said) in [
        ("[[peer]]\nreplica = 2\nlisten = \"10.0.0.1:7\"", 3, "is this one"),
        ("[[peer]]\nreplica = 3", 3, "neither `listen` nor `dial`"),
        ("[[peer]]\nreplica = 1\nlisten = \"10.0.0.1:7\"", 4, "give `dial`"),
        ("[[peer]]\nreplica = 3\ndial = \"10.0.0.1:7\"", 4, "give `listen`"),
        ("[[peer]]\nreplica = 3\nlisten = \"10.0.0.1:7\"\n[[peer]]\nreplica = 3\nlisten = \"10.0.0.1:8\"", 6, "two"),
        ("[[peer]]\nlisten = \"10.0.0.1:7\"", 2, "`peer.replica` is missing"),
        ("[[peer]]\nreplica = 3\nlisten = \"somewhere:7\"", 4, "is not an IP address"),
    ] {
        let error = parse(text).unwrap_err();
        assert_eq!(error.line, Some(line), "{error}");
        assert!(error.message.contains(said), "{error}");
    }
}

const DOCUMENTATION_HEAD: &str = "# Configuration

<!-- Written from the table of keys in crates/node/src/config/reference.rs; a test compares. After a change:
     BEZANT_WRITE_DOCS=1 cargo test -p bezant-node documentation -->

Two files, both TOML. `cluster.toml` is the same at every replica and client; `node.toml` is one replica's own.
`bezant testnet` writes both. An unknown key or a value out of range is an error that names file and line.
`bezant config explain KEY` prints one entry of this page.
";

/// The page that stands in `docs/configuration.md`.
fn documentation() -> String {
    let mut page = String::from(DOCUMENTATION_HEAD);
    for (kind, title) in [(FileKind::Cluster, "cluster.toml"), (FileKind::Node, "node.toml")] {
        write!(page, "\n## {title}\n").unwrap();
        let mut section = None;
        for key in keys().iter().filter(|key| key.file == kind) {
            let (name, short) = key.split();
            if section != Some(name) {
                section = Some(name);
                match name {
                    "" => {}
                    "limits" => page.push_str("\n### [limits]\n\nAll optional.\n"),
                    name => write!(page, "\n### [[{name}]]\n\nOnce for each.\n").unwrap(),
                }
                page.push_str("\n| key | value | default | meaning |\n|---|---|---|---|\n");
            }
            let default = match (&key.default, key.kind) {
                (None, _) => "must be given".to_owned(),
                (Some(default), Kind::Number { .. }) if default.parse::<u64>().is_ok() => format!("`{default}`"),
                (Some(default), _) if default.starts_with('"') => format!("`{default}`"),
                (Some(default), _) => default.clone(),
            };
            writeln!(page, "| `{short}` | {} | {default} | {} |", key.kind, key.about).unwrap();
        }
    }
    page
}

#[test]
fn documentation_is_up_to_date() {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/configuration.md");
    if std::env::var_os("BEZANT_WRITE_DOCS").is_some() {
        std::fs::write(&path, documentation()).unwrap();
    }
    let written = std::fs::read_to_string(&path).unwrap();
    assert!(written == documentation(), "run: BEZANT_WRITE_DOCS=1 cargo test -p bezant-node documentation");
}
