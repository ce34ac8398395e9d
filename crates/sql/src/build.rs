//! Which SQLite this is: what all replicas must have alike.

use bezant_core::digest::{Digest, Domain};
use rusqlite::Connection;

/// Grows with every change after which the same requests give other results or pages.
const SERVICE_VERSION: u32 = 6;

/// Bytes of the digest that are shown.
const SHOWN: usize = 6;

/// The version of SQLite, and a digest of its source, its compile options, the processor and this service's version: a
/// few words of ASCII. Replicas compare them when they connect.
///
/// # Panics
/// If SQLite has no memory.
pub fn build() -> String {
    let connection = Connection::open_in_memory().expect("SQLite has memory");
    let text = |sql: &str| connection.query_row(sql, [], |row| row.get(0)).expect("SQLite knows itself");
    let (version, source): (String, String) = (text("select sqlite_version()"), text("select sqlite_source_id()"));
    let options: String = text("select group_concat(compile_options, ' ') from pragma_compile_options");
    let parts = [source.as_bytes(), options.as_bytes(), std::env::consts::ARCH.as_bytes()];
    let digest = Digest::of_parts(Domain::Service, &[&parts.concat(), &SERVICE_VERSION.to_le_bytes()]);
    let shown: String = digest.0[..SHOWN].iter().map(|byte| format!("{byte:02x}")).collect();
    format!("SQLite {version} build {shown}")
}

#[cfg(test)]
mod tests {
    use super::*;

    /// What the results would depend on is not compiled in; see `.cargo/config.toml`.
    #[test]
    fn the_build_is_ours() {
        let connection = Connection::open_in_memory().unwrap();
        let query = "select group_concat(compile_options, ' ') from pragma_compile_options";
        let options: String = connection.query_row(query, [], |row| row.get(0)).unwrap();
        for wanted in ["OMIT_LOAD_EXTENSION", "OMIT_LOCALTIME", "MAX_WORKER_THREADS=0", "SECURE_DELETE", "DQS=0"] {
            assert!(options.contains(wanted), "{wanted} is not among {options}");
        }
        for unwanted in ["FTS3", "FTS5", "RTREE", "SOUNDEX", "DBSTAT", "ENABLE_LOAD_EXTENSION"] {
            assert!(!options.contains(unwanted), "{unwanted} is among {options}");
        }
        assert!(build().starts_with("SQLite 3.54.1 build ") && build().len() <= 40, "{}", build());
    }
}
