//! The Redis gateway over real sockets, in front of a store in this process.

use bezant_core::services::kv::{KvOperation, KvResult};
use bezant_gateway::redis::Server;
use bezant_gateway::tls::Tls;
use bezant_gateway::{Access, Door, Endpoint, Local, Password, Store, StoreError, base64};
use rustls::{ClientConfig, ClientConnection, StreamOwned};
use std::io::{ErrorKind, Read, Write};
use std::net::{Shutdown, SocketAddr, TcpStream};
use std::os::unix::net::UnixStream;
use std::process::{Command, Stdio};
use std::sync::Arc;
use std::time::Duration;

fn any_port() -> [Endpoint; 1] {
    [Endpoint::Tcp(SocketAddr::from(([127, 0, 0, 1], 0)))]
}

fn address(server: &Server) -> SocketAddr {
    server.endpoints()[0].address().unwrap()
}

fn start() -> Server {
    start_with(Arc::new(Local::default()))
}

fn start_with(store: Arc<dyn Store>) -> Server {
    Server::start(&any_port(), store, Door::default()).unwrap()
}

fn connect(server: &Server) -> TcpStream {
    let stream = TcpStream::connect(address(server)).unwrap();
    stream.set_read_timeout(Some(Duration::from_secs(10))).unwrap();
    stream
}

/// Sends `commands`, one a line, and returns all that the gateway says until it closes.
fn talk(server: &Server, commands: &str) -> String {
    let mut stream = connect(server);
    stream.write_all(commands.replace('\n', "\r\n").as_bytes()).unwrap();
    stream.shutdown(Shutdown::Write).unwrap();
    let mut replies = Vec::new();
    stream.read_to_end(&mut replies).unwrap();
    String::from_utf8(replies).unwrap().replace("\r\n", "\n")
}

#[track_caller]
fn assert_talk(commands: &str, expected: &str) {
    assert_eq!(talk(&start(), commands), expected);
}

/// A gateway whose clients must know "open sesame".
fn start_closed() -> Server {
    let password = Password::new(b"open sesame", [3; 16]).unwrap();
    let door = Door { password: Some(Arc::new(password)), tls: None };
    Server::start(&any_port(), Arc::new(Local::default()), door).unwrap()
}

#[test]
fn strangers_are_told_nothing() {
    let server = start_closed();
    let asked = "get a\nset a 1\nping\ninfo\ncommand\nfly\nclient id\nselect 0\nscan 0\n";
    assert_eq!(talk(&server, asked), "-NOAUTH Authentication required.\n".repeat(9));
    assert!(talk(&server, "hello 3\n").starts_with("-NOAUTH HELLO must be called with"));
    let wrong = "-WRONGPASS invalid username-password pair or user is disabled.\n";
    for attempt in ["auth x\n", "auth me 'open sesame'\n", "auth default 'open sesam'\n", "hello 3 auth default x\n"] {
        let get = format!("{attempt}get a\nquit\n");
        assert_eq!(talk(&server, &get), format!("{wrong}-NOAUTH Authentication required.\n+OK\n"), "{attempt}");
    }
    // Nobody guesses for long, nor without being counted.
    let guesses = "auth a\nhello 3 auth default b\nreset\nauth c\nauth 'open sesame'\nget a\n";
    assert_eq!(talk(&server, guesses), format!("{wrong}{wrong}+RESET\n{wrong}"));
    assert!(talk(&server, "auth 'open sesame'\ninfo\nquit\n").contains("acl_access_denied_auth:7"));
}

#[test]
fn whoever_says_the_password_is_served_until_it_resets() {
    let server = start_closed();
    let no = "-NOAUTH Authentication required.\n";
    for attempt in ["auth 'open sesame'\n", "AUTH default 'open sesame'\n"] {
        let said = talk(&server, &format!("{attempt}set a 1\nget a\nreset\nget a\n{attempt}get a\n"));
        assert_eq!(said, format!("+OK\n+OK\n$1\n1\n+RESET\n{no}+OK\n$1\n1\n"));
    }
    let hello = talk(&server, "hello 2 auth default 'open sesame' setname me\nclient getname\nget a\n");
    assert!(hello.starts_with("*14\n") && hello.ends_with("\n$2\nme\n$1\n1\n"), "{hello}");
}

#[test]
fn strangers_cannot_fill_the_memory() {
    let server = start_closed();
    let mut stream = connect(&server);
    stream.write_all(b"*2\r\n$4\r\nauth\r\n$1000000\r\n").unwrap();
    // The gateway may close before it has all of this.
    let _ = stream.write_all(&[b'x'; 200_000]);
    let mut reply = Vec::new();
    let _ = stream.read_to_end(&mut reply);
    assert!(reply.is_empty() || reply.starts_with(b"-ERR Protocol error: too much before"), "{reply:?}");
}

#[test]
#[ignore = "needs redis-tools"]
fn redis_cli_says_the_password() {
    let server = start_closed();
    let port = address(&server).port().to_string();
    let say = |password: &str| {
        let mut command = Command::new("redis-cli");
        command.args(["-p", &port, "set", "a", "1"]).env("REDISCLI_AUTH", password);
        String::from_utf8(command.output().unwrap().stdout).unwrap()
    };
    assert_eq!(say("open sesame"), "OK\n");
    assert!(say("open").contains("NOAUTH"));
}

fn pem(label: &str, bytes: &[u8]) -> String {
    format!("-----BEGIN {label}-----\n{}\n-----END {label}-----\n", base64::encode(bytes))
}

/// A gateway whose clients must encrypt, and its certificate.
fn start_encrypted(endpoints: &[Endpoint]) -> (Server, rcgen::Certificate) {
    let certified = rcgen::generate_simple_self_signed(["localhost".to_owned()]).unwrap();
    let tls = Tls::new(
        pem("CERTIFICATE", certified.cert.der()).as_bytes(),
        pem("PRIVATE KEY", &certified.signing_key.serialize_der()).as_bytes(),
    )
    .unwrap();
    let door = Door { password: None, tls: Some(tls) };
    let server = Server::start(endpoints, Arc::new(Local::default()), door).unwrap();
    (server, certified.cert)
}

/// A client that knows only this certificate.
fn encrypted(server: &Server, certificate: &rcgen::Certificate) -> StreamOwned<ClientConnection, TcpStream> {
    let mut roots = rustls::RootCertStore::empty();
    roots.add(certificate.der().clone()).unwrap();
    let config = ClientConfig::builder_with_provider(Arc::new(rustls::crypto::ring::default_provider()))
        .with_safe_default_protocol_versions()
        .unwrap()
        .with_root_certificates(roots)
        .with_no_client_auth();
    let client = ClientConnection::new(Arc::new(config), "localhost".try_into().unwrap()).unwrap();
    StreamOwned::new(client, connect(server))
}

#[test]
fn whoever_encrypts_is_served_and_nobody_else() {
    let (server, certificate) = start_encrypted(&any_port());
    assert!(!talk(&server, "set a 1\nget a\n").contains("OK"));
    let mut client = encrypted(&server, &certificate);
    client.write_all(b"set a 1\r\nget a\r\nquit\r\n").unwrap();
    let mut said = String::new();
    // To the end of TLS: an end without it would be an error.
    client.read_to_string(&mut said).unwrap();
    assert_eq!(said, "+OK\r\n$1\r\n1\r\n+OK\r\n");
}

#[test]
fn on_a_unix_socket_nobody_has_to_encrypt() {
    let path = std::env::temp_dir().join(format!("bezant-redis-{}", std::process::id()));
    let endpoint = Endpoint::Unix(path.clone(), Access::Owner);
    let (_server, _) = start_encrypted(&[endpoint]);
    let mut stream = UnixStream::connect(&path).unwrap();
    stream.write_all(b"set a 1\r\nclient list\r\nquit\r\n").unwrap();
    let mut said = String::new();
    stream.read_to_string(&mut said).unwrap();
    assert!(said.starts_with("+OK\r\n$") && said.contains(&format!(" addr={}:0 ", path.display())), "{said}");
}

#[test]
fn whoever_encrypts_may_send_all_before_it_reads() {
    let (server, certificate) = start_encrypted(&any_port());
    let mut client = encrypted(&server, &certificate);
    client
        .write_all(format!("*3\r\n$3\r\nset\r\n$1\r\na\r\n$100000\r\n{}\r\n", "x".repeat(100_000)).as_bytes())
        .unwrap();
    client.write_all(&b"get a\r\n".repeat(100)).unwrap();
    client.write_all(b"quit\r\n").unwrap();
    let mut said = Vec::new();
    client.read_to_end(&mut said).unwrap();
    assert_eq!(said.len(), 5 + 100 * (9 + 100_000 + 2) + 5);
}

#[test]
#[ignore = "needs redis-tools"]
fn redis_cli_encrypts() {
    let (server, _) = start_encrypted(&any_port());
    assert_eq!(tool("redis-cli", address(&server), &["--tls", "--insecure", "set", "a", "1"], "").trim(), "OK");
    let input: String = (0..50_000).map(|number| format!("SET key:{number} value:{number}\r\n")).collect();
    let report = tool("redis-cli", address(&server), &["--tls", "--insecure", "--pipe"], &input);
    assert!(report.contains("errors: 0, replies: 50000"), "{report}");
}

#[test]
fn values_are_set_read_and_deleted() {
    assert_talk("set a 1\nget a\nexists a b a\ndel a b\nget a\n", "+OK\n$1\n1\n:2\n:1\n$-1\n");
    assert_talk("mset a 1 b 2\nmget a x b\ndbsize\n", "+OK\n*3\n$1\n1\n$-1\n$1\n2\n:2\n");
}

#[test]
fn a_client_that_does_not_wait_reads_what_it_wrote() {
    assert_talk("set a 1\nset a 2\nget a\nset a 3\nget a\n", "+OK\n+OK\n$1\n2\n+OK\n$1\n3\n");
}

#[test]
fn set_takes_conditions() {
    assert_talk("set a 1 xx\nset a 1 nx\nset a 2 NX\nset a 3 XX\nget a\n", "$-1\n+OK\n$-1\n+OK\n$1\n3\n");
    assert_talk("set a 1 nx xx\nset a 1 foo\n", "-ERR syntax error\n-ERR syntax error\n");
}

#[test]
fn numbers_count_up_and_down() {
    assert_talk("incr n\nincrby n 10\ndecr n\ndecrby n 20\nget n\n", ":1\n:11\n:10\n:-10\n$3\n-10\n");
    let not_a_number = "-ERR value is not an integer or out of range\n";
    assert_talk("incrby n x\nset s x\nincr s\n", &format!("{not_a_number}+OK\n{not_a_number}"));
    assert_talk("decrby n -9223372036854775808\n", "-ERR decrement would overflow\n");
    assert_talk("set n 9223372036854775807\nincr n\n", "+OK\n-ERR increment or decrement would overflow\n");
}

#[test]
fn errors_are_those_of_redis() {
    assert_talk("foo a b\n", "-ERR unknown command 'foo', with args beginning with: 'a' 'b' \n");
    assert_talk("get\n", "-ERR wrong number of arguments for 'get' command\n");
    assert_talk("select 0\nselect 1\n", "+OK\n-ERR DB index is out of range\n");
    assert_talk("client foo\n", "-ERR unknown subcommand 'foo'. Try CLIENT HELP.\n");
    assert_talk("ping\n*1\n:1\n", "+PONG\n-ERR Protocol error: expected '$', got ':'\n");
}

/// A page from anywhere may have its reader's browser send commands here, in the body of a request.
#[test]
fn what_a_browser_sends_is_not_carried_out() {
    let server = start();
    let refused = "-ERR wrong number of arguments for 'get' command\n";
    for (head, said) in [("POST / HTTP/1.1\n", ""), ("GET / HTTP/1.1\n", refused), ("post x\n", "")] {
        let body = format!("{head}Host: 127.0.0.1:6379\nContent-Length: 9\n\nset a 1\n");
        let heard = talk(&server, &body);
        assert!(said.starts_with(&heard), "{heard}");
        let whole = body.replace("set a 1\n", "*3\n$3\nset\n$1\na\n$1\n1\n");
        assert!(said.starts_with(&talk(&server, &whole)));
    }
    assert_eq!(talk(&server, "set b 1\nhOST: x\nset c 1\n"), "", "nor what came just before it");
    assert_eq!(talk(&server, "dbsize\n"), ":0\n");
    assert!(talk(&server, "info stats\n").contains("closed_http_connections:7\n"));
}

#[test]
fn clients_shake_hands_in_both_versions() {
    assert_talk("hello 4\n", "-NOPROTO unsupported protocol version\n");
    assert_talk(
        "get a\nhello 3 auth me secret\n",
        "$-1\n-WRONGPASS invalid username-password pair or user is disabled.\n",
    );
    assert!(talk(&start(), "auth secret\n").starts_with("-ERR AUTH <password> called without any password configured"));
    let replies = talk(&start(), "get a\nhello 3 setname me\nget a\nclient getname\nreset\nclient getname\n");
    assert!(replies.starts_with("$-1\n%7\n$6\nserver\n$5\nredis\n"), "{replies}");
    assert!(replies.contains("$5\nproto\n:3\n"), "{replies}");
    assert!(replies.ends_with("_\n$2\nme\n+RESET\n$-1\n"), "{replies}");
    assert_talk("client setname a\nclient setinfo lib-name x\nclient getname\nquit\nping\n", "+OK\n+OK\n$1\na\n+OK\n");
}

#[test]
fn scans_find_every_key_once() {
    let server = start();
    let keys = 2_500;
    let fill: String = (0..keys).map(|number| format!("set key:{number:05} x\n")).collect();
    talk(&server, &format!("{fill}set other x\n"));
    let (mut cursor, mut found) = ("0".to_owned(), Vec::new());
    loop {
        let replies = talk(&server, &format!("scan {cursor} match key:* count 700\n"));
        let lines: Vec<_> = replies.lines().collect();
        cursor = lines[2].to_owned();
        found.extend(lines.iter().filter(|line| line.starts_with("key:")).map(|&line| line.to_owned()));
        if cursor == "0" {
            break;
        }
    }
    assert!(found.is_sorted());
    assert_eq!(found.len(), keys);
    assert_eq!(talk(&server, "keys key:0000?\n").lines().count(), 1 + 20);
    assert_eq!(talk(&server, "scan 12345\nscan x\nscan 0 count 0\n").lines().count(), 3);
}

#[test]
fn replies_of_any_size_wait_for_a_client_that_sends_first_and_reads_later() {
    let server = start();
    let value = "v".repeat(100_000);
    let mut stream = connect(&server);
    let count = 1_000;
    let gets = "get k\r\n".repeat(count);
    stream.write_all(format!("set k {}\r\n", &value[..60_000]).as_bytes()).unwrap();
    stream.write_all(gets.as_bytes()).unwrap();
    stream.write_all(b"quit\r\n").unwrap();
    std::thread::sleep(Duration::from_millis(300));
    let mut replies = Vec::new();
    stream.read_to_end(&mut replies).unwrap();
    assert_eq!(replies.len(), 5 + count * (8 + 60_000 + 2) + 5);
}

#[test]
fn bytes_that_come_one_at_a_time_are_understood() {
    let server = start();
    let mut stream = connect(&server);
    stream.set_nodelay(true).unwrap();
    for byte in b"*3\r\n$3\r\nSET\r\n$1\r\nk\r\n$1\r\nv\r\n*2\r\n$3\r\nGET\r\n$1\r\nk\r\n" {
        stream.write_all(&[*byte]).unwrap();
    }
    let mut replies = [0; 12];
    stream.read_exact(&mut replies).unwrap();
    assert_eq!(&replies, b"+OK\r\n$1\r\nv\r\n");
}

#[test]
fn more_clients_than_allowed_are_told_so() {
    let limit = rustix::process::getrlimit(rustix::process::Resource::Nofile);
    let raised = rustix::process::Rlimit { current: limit.maximum, ..limit };
    rustix::process::setrlimit(rustix::process::Resource::Nofile, raised).unwrap();
    let server = start();
    let mut clients: Vec<_> = (0..bezant_gateway::redis::server::CONNECTIONS_MAX).map(|_| connect(&server)).collect();
    // The last one is served, and so all before it were accepted.
    clients.last_mut().unwrap().write_all(b"ping\r\n").unwrap();
    clients.last_mut().unwrap().read_exact(&mut [0; 7]).unwrap();
    let mut refusal = String::new();
    connect(&server).read_to_string(&mut refusal).unwrap();
    assert_eq!(refusal, "-ERR max number of clients reached\r\n");
}

#[test]
fn a_closing_gateway_lets_go_of_its_clients_and_its_port() {
    let mut server = start();
    let address = address(&server);
    let mut idle = connect(&server);
    server.close();
    assert_eq!(idle.read(&mut [0; 1]).unwrap(), 0);
    assert_eq!(TcpStream::connect(address).unwrap_err().kind(), ErrorKind::ConnectionRefused);
}

/// Answers nothing but errors.
struct Broken(StoreError);

impl Store for Broken {
    fn call(&self, _: &KvOperation) -> Result<KvResult, StoreError> {
        Err(self.0.clone())
    }
}

#[test]
fn unknown_outcomes_are_told_apart_from_failures() {
    let unknown = start_with(Arc::new(Broken(StoreError::Unknown("request c1.0 t5".into()))));
    let try_again = "-TRYAGAIN outcome unknown: request c1.0 t5\n";
    assert_eq!(talk(&unknown, "set a 1\nget a\nmget a b\n"), try_again.repeat(3));
    let refused = start_with(Arc::new(Broken(StoreError::Refused("not admitted".into()))));
    assert_eq!(talk(&refused, "set a 1\nping\n"), "-ERR refused: not admitted\n+PONG\n");
}

#[test]
fn values_that_do_not_fit_into_one_result_come_all_the_same() {
    let server = start();
    let value = "v".repeat(60_000);
    let sets: String = (0..20).map(|number| format!("set {number} {value}\n")).collect();
    let all: Vec<_> = (0..20).map(|number| number.to_string()).collect();
    let replies = talk(&server, &format!("{sets}mget {0}\nexists {0}\n", all.join(" ")));
    assert_eq!(replies, format!("{}*20\n{}:20\n", "+OK\n".repeat(20), format!("$60000\n{value}\n").repeat(20)));
}

#[test]
fn keys_and_values_have_a_bound() {
    assert_talk(&format!("get {}\n", "k".repeat(4_097)), "-ERR a key is longer than 4096 bytes\n");
    let long = format!("*3\n$3\nset\n$1\nk\n$600000\n{}\n", "v".repeat(600_000));
    assert_talk(&long, "-ERR a value is longer than 524288 bytes\n");
}

/// Runs a program of redis-tools against the gateway.
fn tool(program: &str, address: SocketAddr, arguments: &[&str], input: &str) -> String {
    let port = address.port().to_string();
    let mut child = Command::new(program)
        .args(["-h", "127.0.0.1", "-p", &port])
        .args(arguments)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .expect("redis-tools must be installed: apt-get install redis-tools");
    let mut stdin = child.stdin.take().unwrap();
    let input = input.to_owned();
    let writer = std::thread::spawn(move || stdin.write_all(input.as_bytes()).unwrap());
    let output = child.wait_with_output().unwrap();
    writer.join().unwrap();
    assert!(output.status.success(), "{program}: {:?}", output.status);
    String::from_utf8(output.stdout).unwrap()
}

#[test]
#[ignore = "needs redis-tools"]
fn redis_cli_loads_a_hundred_thousand_keys_and_reads_them_back() {
    let server = start();
    let input: String = (0..100_000).map(|number| format!("SET key:{number} value:{number}\r\n")).collect();
    let report = tool("redis-cli", address(&server), &["--pipe"], &input);
    assert!(report.contains("errors: 0, replies: 100000"), "{report}");
    assert_eq!(tool("redis-cli", address(&server), &["dbsize"], "").trim(), "100000");
    assert_eq!(tool("redis-cli", address(&server), &["-3", "get", "key:99999"], "").trim(), "value:99999");
    assert_eq!(tool("redis-cli", address(&server), &["--scan", "--pattern", "key:9999*"], "").lines().count(), 11);
}

#[test]
#[ignore = "needs redis-tools"]
fn redis_benchmark_runs_its_tests_of_the_supported_commands() {
    let server = start();
    let arguments = ["-q", "-n", "2000", "-c", "20", "-P", "16", "-t", "ping,set,get,incr,mset"];
    let report = tool("redis-benchmark", address(&server), &arguments, "");
    for test in ["PING_INLINE", "PING_MBULK", "SET", "GET", "INCR", "MSET"] {
        assert!(report.contains(test), "{report}");
    }
}

#[test]
fn a_transaction_is_carried_out_as_one() {
    assert_talk(
        "multi\nset a 1\nincr a\nget a\nmget a b\nping\nexec\nget a\n",
        "+OK\n+QUEUED\n+QUEUED\n+QUEUED\n+QUEUED\n+QUEUED\n*5\n+OK\n:2\n$1\n2\n*2\n$1\n2\n$-1\n+PONG\n$1\n2\n",
    );
    // What fails when it is carried out, fails alone.
    let not_a_number = "-ERR value is not an integer or out of range\n";
    assert_talk(
        "multi\nset a x\nincr a\nset b 1 foo\nset c 1\nexec\nget c\n",
        &format!("+OK\n{}*4\n+OK\n{not_a_number}-ERR syntax error\n+OK\n$1\n1\n", "+QUEUED\n".repeat(4)),
    );
    assert_talk("multi\nexec\nexec\ndiscard\n", "+OK\n*0\n-ERR EXEC without MULTI\n-ERR DISCARD without MULTI\n");
    assert_talk("multi\nset a 1\ndiscard\nget a\n", "+OK\n+QUEUED\n+OK\n$-1\n");
    let nested = "-ERR MULTI calls can not be nested\n-ERR WATCH inside MULTI is not allowed\n";
    assert_talk("multi\nmulti\nwatch a\nset a 1\nexec\n", &format!("+OK\n{nested}+QUEUED\n*1\n+OK\n"));
    assert_talk("multi\nset a 1\nreset\nget a\nexec\n", "+OK\n+QUEUED\n+RESET\n$-1\n-ERR EXEC without MULTI\n");
}

#[test]
fn a_command_that_is_refused_breaks_its_transaction() {
    let abort = "-EXECABORT Transaction discarded because of previous errors.\n";
    for wrong in ["get", "fly", "keys *", "scan 0", &format!("get {}", "k".repeat(4_097))] {
        let said = talk(&start(), &format!("multi\nset a 1\n{wrong}\nset b 1\nexec\nmget a b\n"));
        let lines: Vec<_> = said.lines().collect();
        assert!(lines[2].starts_with("-ERR "), "{said}");
        assert!(said.ends_with(&format!("+QUEUED\n{abort}*2\n$-1\n$-1\n")), "{said}");
    }
    let value = "v".repeat(60_000);
    let sets: String = (0..20).map(|number| format!("set {number} {value}\n")).collect();
    let said = talk(&start(), &format!("multi\n{sets}exec\ndbsize\n"));
    assert!(said.contains("-ERR a transaction has at most ") && said.ends_with(&format!("{abort}:0\n")), "{said}");
}

#[test]
fn a_transaction_does_nothing_if_a_watched_key_changed() {
    let server = start();
    let ends = |server: &Server, before: &str, between: &str| {
        let mut stream = connect(server);
        stream.write_all(format!("{before}ping\n").replace('\n', "\r\n").as_bytes()).unwrap();
        let mut said = Vec::new();
        while !said.ends_with(b"PONG\r\n") {
            let mut byte = [0];
            stream.read_exact(&mut byte).unwrap();
            said.push(byte[0]);
        }
        talk(server, between);
        stream.write_all(b"multi\r\nset c 1\r\nexec\r\nquit\r\n").unwrap();
        let mut said = String::new();
        stream.read_to_string(&mut said).unwrap();
        said.replace("\r\n", "\n")
    };
    let (done, undone) = ("+OK\n+QUEUED\n*1\n+OK\n+OK\n", "+OK\n+QUEUED\n*-1\n+OK\n");
    assert_eq!(ends(&server, "watch a b\n", ""), done);
    assert_eq!(ends(&server, "watch a b\n", "set b 1\n"), undone, "it came");
    assert_eq!(ends(&server, "watch b\n", "set b 2\n"), undone, "it changed");
    assert_eq!(ends(&server, "watch b\n", "del b\n"), undone, "it went");
    assert_eq!(ends(&server, "watch b\nunwatch\n", "set b 3\n"), done);
    assert_eq!(ends(&server, "watch b\nmulti\ndiscard\n", "set b 4\n"), done);
    assert_eq!(ends(&server, "watch b\nset b 5\nwatch b\n", ""), undone, "whoever writes it");
    assert_eq!(ends(&server, "hello 3\nwatch b\n", "set b 6\n"), "+OK\n+QUEUED\n_\n+OK\n");
    assert_eq!(talk(&server, "watch b\nmulti\nexec\n"), "+OK\n+OK\n*0\n");
}

#[test]
fn a_watch_that_failed_lets_nothing_through() {
    let refused = start_with(Arc::new(Broken(StoreError::Refused("not admitted".into()))));
    let abort = "-EXECABORT Transaction discarded because of previous errors.\n";
    let said = talk(&refused, "watch a\nmulti\nset a 1\nexec\nmulti\nset a 1\nexec\n");
    let no = "-ERR refused: not admitted\n";
    assert_eq!(said, format!("{no}+OK\n+QUEUED\n{abort}+OK\n+QUEUED\n{no}"));
}

#[test]
fn a_write_returns_the_value_before() {
    assert_talk(
        "set a 1 get\nset a 2 nx get\nset a 3 GET XX\ngetset a 4\ngetdel a\ngetdel a\ngetset a 5\nget a\n",
        "$-1\n$1\n1\n$1\n1\n$1\n3\n$1\n4\n$-1\n$-1\n$1\n5\n",
    );
    assert_talk(
        "multi\nset a 1 get\ngetset a 2\ngetdel a\nsetnx a 3\nsetnx a 4\nstrlen a\nexec\n",
        &format!("+OK\n{}*6\n$-1\n$1\n1\n$1\n2\n:1\n:0\n:1\n", "+QUEUED\n".repeat(6)),
    );
}

#[test]
fn keys_are_set_only_if_none_is_there() {
    assert_talk("setnx a 1\nsetnx a 2\nget a\n", ":1\n:0\n$1\n1\n");
    assert_talk("msetnx a 1 b 2\nmsetnx b 3 c 4\nmget a b c\n", ":1\n:0\n*3\n$1\n1\n$1\n2\n$-1\n");
    assert_talk("msetnx a\n", "-ERR wrong number of arguments for 'msetnx' command\n");
    assert_talk("set a 1\ntype a\ntype b\n", "+OK\n+string\n+none\n");
}

#[test]
fn values_are_measured_cut_and_written_into() {
    assert_talk(
        "append a Hello\nappend a ' World'\nget a\nstrlen a\nstrlen b\n",
        ":5\n:11\n$11\nHello World\n:11\n:0\n",
    );
    assert_talk(
        "set a Hello\nsetrange a 1 ipp\nget a\nsetrange a 0 ''\nsetrange b 0 ''\nexists b\n",
        "+OK\n:5\n$5\nHippo\n:5\n:0\n:0\n",
    );
    assert_talk("setrange a 2 x\nget a\nsetrange a -1 x\n", ":3\n$3\n\0\0x\n-ERR offset is out of range\n");
    let too_large = "-ERR a value is longer than 524288 bytes\n-ERR the reply or the value is too large\n";
    assert_talk("setrange a 99999999999 x\nsetrange a 524288 x\n", too_large);
    let cuts = [
        ("0 3", "This"),
        ("-3 -1", "ing"),
        ("0 -1", "This is a string"),
        ("10 100", "string"),
        ("5 2", ""),
        ("-1 -3", ""),
        ("-100 0", "T"),
        ("-100 -99", "T"),
        ("16 20", ""),
        ("0 -17", "T"),
        ("-9223372036854775808 9223372036854775807", "This is a string"),
    ];
    let server = start();
    talk(&server, "set s 'This is a string'\nset empty ''\n");
    for (range, cut) in cuts {
        assert_eq!(talk(&server, &format!("getrange s {range}\n")), format!("${}\n{cut}\n", cut.len()), "{range}");
    }
    assert_eq!(talk(&server, "getrange empty 0 -1\ngetrange none 0 -1\n"), "$0\n\n$0\n\n");
}

#[test]
fn keys_live_as_long_as_they_are_told() {
    let transaction = "multi\nset a 1 ex 100\nttl a\npttl a\nexpire a 50 gt\nexpire a 200 gt nx\ngetex a px 7000\n\
        pttl a\npersist a\nttl a\nexec\n";
    let queued = "+QUEUED\n".repeat(9);
    let not_compatible = "-ERR NX and XX, GT or LT options at the same time are not compatible\n";
    assert_talk(
        transaction,
        &format!("+OK\n{queued}*9\n+OK\n:100\n:100000\n:0\n{not_compatible}$1\n1\n:7000\n:1\n:-1\n"),
    );
    let at = "set a 1 exat 4000000000 get\nset a 2 keepttl get\nappend a 3\nexpiretime a\npexpireat a 4000000000500\n\
        expiretime a\npexpiretime a\nset a 1\nexpiretime a\nttl b\n";
    let said = "$-1\n$1\n1\n:2\n:4000000000\n:1\n:4000000001\n:4000000000500\n+OK\n:-1\n:-2\n";
    assert_talk(at, said);
    assert_talk("setex a 10 1\nexpireat a 1\nexists a\nset a 1 pxat 1\nget a\n", "+OK\n:1\n:0\n+OK\n$-1\n");
}

#[test]
fn a_key_is_gone_when_its_time_is_over() {
    let server = start();
    assert_eq!(talk(&server, "psetex a 20 1\nset b 2 px 3600000\nmset c 3\n"), "+OK\n+OK\n+OK\n");
    std::thread::sleep(Duration::from_millis(30));
    assert_eq!(
        talk(&server, "dbsize\nkeys *\nmget a b c\nttl a\n"),
        ":2\n*2\n$1\nb\n$1\nc\n*3\n$-1\n$1\n2\n$1\n3\n:-2\n"
    );
    assert!(talk(&server, "info keyspace\n").ends_with("db0:keys=2,expires=1,avg_ttl=0\n\n"));
}

#[test]
fn times_that_mean_nothing_are_refused_as_redis_does() {
    let refused =
        |command: &str, why: &str| assert_talk(&format!("set a 1\n{command}\n"), &format!("+OK\n-ERR {why}\n"));
    for options in ["ex", "ex 1 px 1", "keepttl ex 1", "ex 1 keepttl", "persist", "ex x nx xx"] {
        refused(&format!("set a 1 {options}"), "syntax error");
    }
    for options in ["keepttl", "nx", "persist ex 1", "get"] {
        refused(&format!("getex a {options}"), "syntax error");
    }
    for (command, name) in [
        ("set a 1 ex 0", "set"),
        ("set a 1 px 9223372036854775807", "set"),
        ("set a 1 exat 9223372036854775807", "set"),
        ("SETEX a -1 1", "setex"),
        ("psetex a 0 1", "psetex"),
        ("getex a ex 0", "getex"),
        ("expire a -9223372036854775808", "expire"),
        ("pexpire a 9223372036854775807", "pexpire"),
        ("expireat a 9223372036854775807", "expireat"),
    ] {
        refused(command, &format!("invalid expire time in '{name}' command"));
    }
    refused("expire a 1 foo", "Unsupported option foo");
    refused("expire a 1 gt lt", "GT and LT options at the same time are not compatible");
    refused("expire a x", "value is not an integer or out of range");
}

#[test]
fn a_client_that_does_not_wait_sets_deadlines_in_its_order() {
    let sets: String = (0..2_000).map(|number| format!("setex k{} 100 {number}\n", number % 7)).collect();
    let replies = talk(&start(), &format!("{sets}get k0\nset k0 x\nttl k0\nexpire none 5\npersist k1\n"));
    assert_eq!(replies, format!("{}$4\n1995\n+OK\n:-1\n:0\n:1\n", "+OK\n".repeat(2_000)));
}
