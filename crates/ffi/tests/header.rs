//! The header against the library: a C program is compiled with it, and run with a cluster and without one.

use bezant_ffi::Code;
use bezant_node::config::{Address, Testnet, testnet};
use bezant_sql::Database;
use std::net::TcpListener;
use std::path::{Path, PathBuf};
use std::process::Command;

/// A folder that goes away with its value.
struct Scratch(PathBuf);

impl Scratch {
    fn new(name: &str) -> Self {
        let path = std::env::temp_dir().join(format!("bezant-ffi-{name}-{}", std::process::id()));
        std::fs::create_dir_all(&path).unwrap();
        Self(path)
    }
}

impl Drop for Scratch {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

/// The C program, compiled strictly.
fn compiled(folder: &Path) -> PathBuf {
    let here = Path::new(env!("CARGO_MANIFEST_DIR"));
    let program = folder.join("header");
    // Cargo puts the library beside the tests.
    let library = std::env::current_exe().unwrap().with_file_name("libbezant_ffi.so");
    let mut cc = Command::new("cc");
    cc.args(["-std=c99", "-pedantic", "-Wall", "-Wextra", "-Werror", "-o"]).arg(&program);
    cc.arg("-I").arg(here.join("include")).arg(here.join("tests/header.c")).arg(&library);
    cc.arg(format!("-Wl,-rpath,{}", library.parent().unwrap().display()));
    let output = cc.output().expect("a C compiler, which SQLite needs as well");
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    program
}

#[track_caller]
fn succeeds(program: &Path, cluster: &Path, service: &str) {
    let output = Command::new(program).arg(cluster).arg(service).output().unwrap();
    assert!(output.status.success(), "{} {}", output.status, String::from_utf8_lossy(&output.stdout));
}

#[test]
fn wrong_use_is_an_error_and_no_crash() {
    let scratch = Scratch::new("misuse");
    succeeds(&compiled(&scratch.0), Path::new("no/cluster.toml"), "none");
}

#[test]
fn keys_and_tables_from_c() {
    let scratch = Scratch::new("cluster");
    // Held together, so that all are different.
    let held: Vec<_> = (0..12).map(|_| TcpListener::bind("127.0.0.1:0").unwrap()).collect();
    let port = |at: usize| Address { host: "127.0.0.1".into(), port: held[at].local_addr().unwrap().port() };
    let addresses = (0..4).map(|id| [0, 1, 2].map(|which| port(3 * id + which))).collect();
    let net = scratch.0.join("net");
    testnet(&net, &Testnet { service: "sql".into(), addresses, ..Testnet::default() }).unwrap();
    drop(held);
    let host = |id| bezant_node::host(&net.join(format!("replica-{id}")), "sql", 1, Database::new()).unwrap();
    let replicas: Vec<_> = (0..4).map(host).collect();
    succeeds(&compiled(&scratch.0), &net.join("cluster.toml"), "sql");
    replicas.into_iter().for_each(|replica| replica.stop().unwrap());
}

#[test]
fn the_header_has_the_codes_of_the_library() {
    let header = std::fs::read_to_string(Path::new(env!("CARGO_MANIFEST_DIR")).join("include/bezant.h")).unwrap();
    let codes = [
        ("OK", Code::Ok),
        ("INVALID", Code::Invalid),
        ("OPEN", Code::Open),
        ("NOT_SENT", Code::NotSent),
        ("NOT_ADMITTED", Code::NotAdmitted),
        ("REFUSED", Code::Refused),
        ("NOT_READ_ONLY", Code::NotReadOnly),
        ("UNANSWERED", Code::Unanswered),
        ("UNKNOWN", Code::Unknown),
        ("TOO_LATE", Code::TooLate),
        ("CLOSED", Code::Closed),
        ("SQL", Code::Sql),
        ("SERVICE", Code::Service),
        ("FOREIGN", Code::Foreign),
        ("INTERNAL", Code::Internal),
    ];
    let (_, list) = header.split_once("enum bezant_code {").unwrap();
    let (list, _) = list.split_once("};").unwrap();
    let lines: Vec<_> = list.lines().filter(|line| line.contains(" = ")).map(str::trim).collect();
    let expected: Vec<_> = codes.iter().map(|(name, code)| format!("BEZANT_{name} = {}", *code as i32)).collect();
    assert_eq!(lines.iter().map(|line| line.trim_end_matches(',')).collect::<Vec<_>>(), expected);
}
