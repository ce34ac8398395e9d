//! What the admin port answers, to whom, and that it cannot be held up.

use super::*;
use crate::net::{Cause, LinkRefusal};
use bezant_core::ids::{IdentityId, Principal, Sequence, View};
use bezant_core::notice::{Alarm, Pace, Suspect};
use bezant_core::rejection::{Account, Rejection, RejectionCounts};
use std::collections::BTreeSet;
use std::fmt::Write as _;
use std::io::{Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::path::Path;
use std::sync::Arc;

/// A board, and where a replica would publish.
#[derive(Clone)]
struct Show {
    board: Arc<Board>,
    published: Arc<Mutex<Published>>,
}

impl Show {
    fn publish(&self, published: Published) {
        *self.published.lock().unwrap() = published;
    }
}

fn board() -> Show {
    let info = Info {
        cluster_name: "a \"name\"".to_owned(),
        cluster: Digest([0xab; 32]),
        replica: ReplicaId(2),
        service: ServiceBuild::new("counter 1"),
        n: 4,
        f: 1,
        checkpoint_interval: 128,
        host: "r2.example".to_owned(),
        version: "1.2.3",
    };
    let published = Arc::<Mutex<Published>>::default();
    let source = Arc::clone(&published);
    Show { board: Arc::new(Board::new(info, move || source.lock().unwrap().clone())), published }
}

fn published() -> Published {
    let mut counts = RejectionCounts::default();
    counts.add(Rejection::BadMac);
    let suspect = Suspect { from: ReplicaId(1), to: ReplicaId(2), took: bezant_core::time::Duration(80_000) };
    let report = Report {
        protocol: "pbft".to_owned(),
        view: View(7),
        primary: ReplicaId(3),
        executed: Sequence(120),
        rejections: vec![
            (Account::Replica(ReplicaId(1)), counts.clone()),
            (Account::Clients(IdentityId(1)), counts.clone()),
            (Account::Others, counts),
        ],
        suspicions: vec![(ReplicaId(1), Rejection::Equivocation, 5)],
        ring_alarm: Some(Alarm { pace: Pace::Slow, suspect: Some(suspect) }),
        ..Report::default()
    };
    let runtime =
        RuntimeMetrics { client_bytes_in: 99, quarantined_peers: 1, cpu_us: 1_500_000, ..RuntimeMetrics::default() };
    let connected = vec![ReplicaId(0), ReplicaId(3)];
    let refused = vec![(ReplicaId(1), CloseReason::Refused(LinkRefusal::ForeignCluster))];
    let (party, cause) = (Some(Principal::Replica(ReplicaId(1))), Cause::FailedVerifications);
    let quarantined = vec![Quarantine { party, since: Instant::now(), cause }];
    Published { report, runtime, log: None, connected, refused, quarantined, updated: Some(Instant::now()) }
}

fn start(show: &Show) -> AdminServer {
    serve(TcpListener::bind("127.0.0.1:0").unwrap(), Arc::clone(&show.board)).unwrap()
}

fn connect(address: SocketAddr) -> TcpStream {
    let stream = TcpStream::connect(address).unwrap();
    stream.set_read_timeout(Some(Duration::from_secs(20))).unwrap();
    stream
}

/// Everything that the server says to these bytes.
fn exchange(address: SocketAddr, request: &[u8]) -> String {
    let mut stream = connect(address);
    // The server may have closed it already: then there is an answer, or none.
    let _ = stream.write_all(request);
    let mut answer = Vec::new();
    let _ = stream.read_to_end(&mut answer);
    String::from_utf8_lossy(&answer).into_owned()
}

fn fetch(server: &AdminServer, path: &str) -> (u16, String) {
    let answer = exchange(server.address(), format!("GET {path} HTTP/1.1\r\nHost: localhost\r\n\r\n").as_bytes());
    let (head, body) = answer.split_once("\r\n\r\n").unwrap();
    (head[9..12].parse().unwrap(), body.to_owned())
}

#[test]
fn metrics_are_prometheus_text() {
    let show = board();
    show.publish(published());
    let server = start(&show);
    let (code, text) = fetch(&server, "/metrics");
    assert_eq!(code, 200);
    for line in [
        "# TYPE bezant_replica_view_number gauge",
        "bezant_replica_view_number 7",
        "bezant_replica_rejections_total{sender=\"client\",reason=\"bad_mac\"} 2",
        "bezant_replica_rejections_total{sender=\"replica-1\",reason=\"bad_mac\"} 1",
        "bezant_replica_suspicions_total{replica=\"1\",reason=\"equivocation\"} 5",
        "bezant_replica_slow_ring_flag{from=\"1\",to=\"2\"} 1",
        "bezant_net_received_bytes_total{peer=\"client\"} 99",
        "bezant_net_quarantined_peers{peer=\"replica\"} 1",
        "bezant_process_cpu_seconds_total 1.5",
    ] {
        assert!(text.lines().any(|found| found == line), "{line} is not in\n{text}");
    }
    assert!(text.contains("cluster=\"a \\\"name\\\"\""), "labels are escaped");
}

#[test]
fn names_follow_the_rule() {
    for metric in METRICS {
        assert!(metric.name.split('_').count() >= 3 && metric.name.starts_with("bezant_"), "{metric:?}");
        assert_eq!(metric.name.ends_with("_total"), metric.kind == MetricKind::Counter, "{metric:?}");
        assert_eq!(METRICS.iter().filter(|other| other.name == metric.name).count(), 1, "{metric:?}");
    }
}

#[test]
fn health_says_why() {
    let show = board();
    let server = start(&show);
    assert_eq!(fetch(&server, "/livez"), (200, "ok\n".to_owned()));
    assert_eq!(fetch(&server, "/readyz").0, 503, "not before it has started");

    show.publish(published());
    assert_eq!(fetch(&server, "/readyz"), (200, "ok\n".to_owned()));
    let all = "[+]loop ok\n[+]log ok\n[+]peers ok\n[+]view ok\n[+]transfer ok\n[+]votes ok\n[+]state ok\n";
    assert_eq!(fetch(&server, "/readyz?verbose"), (200, all.to_owned()));

    let mut bad = published();
    bad.report.changing_view = true;
    bad.report.abstaining = true;
    bad.report.differs = Some(Sequence(384));
    bad.report.transfer = Some((Sequence(512), 40));
    bad.log = Some(Stall::Full("no space left".to_owned()));
    bad.connected.pop();
    show.publish(bad.clone());
    let expected = "[+]loop ok\n[-]log full, waiting for space: no space left\n\
        [-]peers connected with 1 of 3, 2 are needed\n[-]view changing to view 7\n\
        [-]transfer running towards batch 512: 40 pages and nodes received\n[-]votes abstaining after a lost log\n\
        [-]state differs from that of f+1 others at 384, not repaired yet\n";
    assert_eq!(fetch(&server, "/readyz"), (503, expected.to_owned()));
    assert_eq!(fetch(&server, "/livez").0, 200, "a full disk is no reason to restart");

    bad.log = Some(Stall::Broken("I/O error".to_owned()));
    show.publish(bad.clone());
    assert_eq!(fetch(&server, "/livez").0, 503);
    bad.log = None;
    bad.updated = Instant::now().checked_sub(Duration::from_secs(60));
    show.publish(bad);
    assert_eq!(fetch(&server, "/livez?verbose"), (503, "[-]loop has not reported for 60 s\n[+]log ok\n".to_owned()));
}

#[test]
fn status_is_json() {
    let show = board();
    show.publish(published());
    let (code, text) = fetch(&start(&show), "/status");
    let status: Value = serde_json::from_str(&text).unwrap();
    assert_eq!(code, 200);
    assert_eq!(status["replica"], 2);
    assert_eq!(status["ready"], true);
    let quarantine = &status["quarantined"][0];
    assert_eq!((&quarantine["replica"], &quarantine["cause"]), (&1.into(), &"failed_verifications".into()));
    assert_eq!(status["checkpoint_interval"], 128);
    assert_eq!(status["report"]["executed"], 120);
    assert_eq!(status["report"]["stable_root"], "0".repeat(64));
    assert_eq!(status["report"]["suspicions"][0]["reason"], "equivocation");
    let alarm = serde_json::json!({ "beyond_doubt": false, "from": 1, "to": 2, "hop_us": 80_000 });
    assert_eq!(status["report"]["ring_alarm"], alarm);
    assert_eq!(status["runtime"]["client_bytes_in"], 99);
    assert_eq!(
        (&status["refused"][0]["replica"], &status["refused"][0]["reason"]),
        (&1.into(), &"foreign_cluster".into())
    );
    assert_eq!((&status["log_full"], &status["log_failure"]), (&false.into(), &Value::Null));
}

#[test]
fn bad_requests_do_no_harm() {
    let server = start(&board());
    let say = |request: &[u8]| exchange(server.address(), request);
    assert_eq!(fetch(&server, "/secret").0, 404);
    assert!(say(b"POST /status HTTP/1.1\r\nContent-Length: 3\r\n\r\nabc").starts_with("HTTP/1.1 405"));
    assert!(say(format!("GET /{} HTTP/1.1\r\n\r\n", "x".repeat(100_000)).as_bytes()).starts_with("HTTP/1.1 431"));
    assert!(say(b"GET / HTTP/2.0\r\n\r\n").starts_with("HTTP/1.1 505"));
    assert!(say(b"\xff\xfe / HTTP/1.1\r\n\r\n").starts_with("HTTP/1.1 400"));
    assert!(say(b"\r\n\r\n").starts_with("HTTP/1.1 400"));
    let noise: Vec<u8> = (0..20_000u32).map(|i| (i.wrapping_mul(2_654_435_761) >> 13) as u8).collect();
    assert!(!say(&noise).contains(" 200 "));
    let head = say(b"HEAD /livez HTTP/1.1\r\n\r\n");
    assert!(head.starts_with("HTTP/1.1 200 OK\r\n") && head.ends_with("\r\n\r\n"), "{head}");
    assert_eq!(fetch(&server, "/").0, 200);
}

#[test]
fn a_page_that_rebinds_its_name_learns_nothing() {
    let show = board();
    show.publish(published());
    let server = start(&show);
    let status = |fields: &str| {
        let request = format!("GET /status HTTP/1.1\r\n{fields}\r\n");
        exchange(server.address(), request.as_bytes())[9..12].to_owned()
    };
    for own in ["", "Host: localhost:1\r\n", "host:  127.0.0.1 \r\n", "HOST: [::1]:2\r\n", "Host: R2.example:3\r\n"] {
        assert_eq!(status(own), "200", "{own}");
    }
    for foreign in ["Host: evil.example\r\n", "Host: evil.example:9100\r\n", "host:evil.example\r\n", "Host:\r\n"] {
        assert_eq!(status(foreign), "421", "{foreign}");
    }
    assert_eq!(status("Host: localhost\r\nHost: evil.example\r\n"), "400");
    assert!(fetch(&server, "/metrics").1.contains("\nbezant_admin_foreign_requests_total 4\n"));
}

#[test]
fn a_request_may_come_byte_by_byte() {
    let server = start(&board());
    let mut stream = connect(server.address());
    stream.set_nodelay(true).unwrap();
    for byte in b"GET /livez HTTP/1.1\r\n\r\n" {
        stream.write_all(&[*byte]).unwrap();
        std::thread::sleep(Duration::from_millis(2));
    }
    let mut answer = String::new();
    stream.read_to_string(&mut answer).unwrap();
    assert!(answer.ends_with("\r\n\r\nok\n"), "{answer}");
}

/// Asks for health and is answered at once.
fn is_answered_at_once(server: &AdminServer) -> bool {
    ["/livez", "/readyz"].into_iter().all(|path| {
        let start = Instant::now();
        let answer = exchange(server.address(), format!("GET {path} HTTP/1.1\r\n\r\n").as_bytes());
        answer.contains(" 200 ") && start.elapsed() < Duration::from_secs(1)
    })
}

#[test]
fn clients_that_say_nothing_do_not_keep_others_out() {
    let show = board();
    show.publish(published());
    let server = start(&show);
    let silent: Vec<_> = (0..100)
        .map(|_| {
            let mut stream = connect(server.address());
            stream.write_all(b"GET /status HTTP/1.1\r\nHost:").unwrap();
            stream
        })
        .collect();
    assert!(is_answered_at_once(&server));
    drop(silent);
}

#[test]
fn clients_that_read_nothing_do_not_keep_others_out() {
    // Answers that no socket's buffer swallows.
    let mut large = published();
    large.report.protocol = "x".repeat(8 << 20);
    let show = board();
    show.publish(large);
    let server = start(&show);
    let unread: Vec<_> = (0..40)
        .map(|_| {
            let mut stream = connect(server.address());
            stream.write_all(b"GET /status HTTP/1.1\r\n\r\n").unwrap();
            stream
        })
        .collect();
    // By then all of them have come as far as they can.
    assert_eq!(fetch(&server, "/status").0, 503);
    assert!(is_answered_at_once(&server));
    drop(unread);
}

#[test]
fn a_client_that_never_stops_talking_is_cut_off() {
    let server = start(&board());
    let mut stream = connect(server.address());
    stream.set_write_timeout(Some(Duration::from_secs(20))).unwrap();
    stream.write_all(b"GET / HTTP/1.1\r\n\r\n").unwrap();
    let block = [b'x'; 1 << 16];
    assert!((0..10_000).any(|_| stream.write_all(&block).is_err()), "hundreds of megabytes were swallowed");
    assert_eq!(fetch(&server, "/livez").0, 200);
}

#[test]
fn it_ends_when_dropped() {
    let server = start(&board());
    let address = server.address();
    let open = connect(address);
    drop(server);
    drop(open);
    TcpListener::bind(address).unwrap();
}

const DOCUMENTATION_HEAD: &str = "# Metrics

<!-- Written from the table in crates/node/src/admin/metrics.rs; a test compares. After a change:
     BEZANT_WRITE_DOCS=1 cargo test -p bezant-node documentation -->

Every replica serves these at `/metrics` on its admin port, in the Prometheus text format. Names are
`bezant_<area>_<what>_<unit>`; counters count since the start of the process and end in `_total`; values that are 0
or 1 end in `_flag`.

| name | type | meaning |
|---|---|---|
";

/// The page that stands in `docs/metrics.md`.
fn documentation() -> String {
    let mut page = String::from(DOCUMENTATION_HEAD);
    for metric in METRICS {
        writeln!(page, "| `{}` | {} | {} |", metric.name, metric.kind.label(), metric.help).unwrap();
    }
    page.push_str("\nReasons of rejections and suspicions:");
    for reason in Rejection::ALL {
        write!(page, " `{}`", reason.label()).unwrap();
    }
    page.push_str(".\n");
    page
}

#[test]
fn documentation_is_up_to_date() {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/metrics.md");
    if std::env::var_os("BEZANT_WRITE_DOCS").is_some() {
        std::fs::write(&path, documentation()).unwrap();
    }
    let written = std::fs::read_to_string(&path).unwrap();
    assert!(written == documentation(), "run: BEZANT_WRITE_DOCS=1 cargo test -p bezant-node documentation");
}

/// The metrics that a file names.
fn named(text: &str) -> BTreeSet<&str> {
    let words = text.split(|c: char| !c.is_ascii_alphanumeric() && c != '_');
    words.filter(|word| word.starts_with("bezant_")).collect()
}

#[test]
fn alerts_and_dashboard_name_metrics_that_exist() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let read = |file: &str| std::fs::read_to_string(root.join(file)).unwrap();
    let page = read("docs/metrics.md");
    for (file, least) in [("deploy/prometheus/rules.yml", 12), ("deploy/grafana/bezant.json", 20)] {
        let text = read(file);
        let named = named(&text);
        assert!(named.len() >= least, "{file}: {named:?}");
        for name in named {
            assert!(METRICS.iter().any(|metric| metric.name == name), "{file} names {name}");
            assert!(page.contains(&format!("| `{name}` |")), "{name} is not in docs/metrics.md");
        }
    }
    let dashboard: Value = serde_json::from_str(&read("deploy/grafana/bezant.json")).unwrap();
    let panels = dashboard["panels"].as_array().unwrap();
    let expression = |target: &Value| target["expr"].as_str().unwrap().to_owned();
    for panel in panels {
        let expressions: Vec<_> = panel["targets"].as_array().unwrap().iter().map(expression).collect();
        assert!(expressions.iter().all(|text| text.contains("$job")), "{}: {expressions:?}", panel["title"]);
    }
}
