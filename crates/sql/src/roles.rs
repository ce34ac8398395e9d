//! Who may do what: the table `bezant_members`, which says it by public key.
//!
//! A key that the cluster file names is an administrator's unless the table says otherwise. A key that it does not name
//! may join only if the table has a row for it, or one for `*`.

use bezant_core::ids::PublicKey;
use rusqlite::{Connection, OptionalExtension};
use std::collections::BTreeMap;

/// The table.
pub(crate) const MEMBERS: &str = "bezant_members";

/// What a new database contains. A key has one form, so that what is said of it is found: who is named in the cluster
/// file, and not found here, is an administrator.
pub(crate) const GENESIS: &str = "create table bezant_members(
    public_key text primary key
        check (public_key = '*' or length(public_key) = 64 and public_key not glob '*[^0-9a-f]*'),
    role text not null check (role in ('reader', 'writer', 'admin')),
    name text
) without rowid";

const ROLE: &str = "select role from bezant_members where public_key = ?1";

/// What is said about every key that joined and has no row of its own.
const EVERYBODY: &str = "*";

/// Roles that are kept in memory.
const KNOWN_MAX: usize = 4_096;

/// What a client may do.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Role {
    /// Nothing: it has lost its row since it joined.
    None,
    /// Read.
    Reader,
    /// Read and write rows, and change the schema.
    Writer,
    /// Everything, the system's tables included.
    Admin,
}

impl Role {
    fn named(name: &str) -> Self {
        match name {
            "admin" => Self::Admin,
            "writer" => Self::Writer,
            "reader" => Self::Reader,
            _ => Self::None,
        }
    }
}

/// Roles that were asked for since the table changed last.
#[derive(Debug, Default)]
pub(crate) struct Roles(BTreeMap<(PublicKey, bool), Role>);

impl Roles {
    /// The role of a key, which joined or is named in the cluster file.
    pub(crate) fn of(&mut self, connection: &Connection, key: PublicKey, joined: bool) -> rusqlite::Result<Role> {
        if let Some(role) = self.0.get(&(key, joined)) {
            return Ok(*role);
        }
        let row = |key: &str| connection.prepare_cached(ROLE)?.query_row([key], |row| row.get(0)).optional();
        let own: Option<String> = row(&hex(key))?;
        let role = match own {
            Some(role) => Role::named(&role),
            None if joined => row(EVERYBODY)?.map_or(Role::None, |role: String| Role::named(&role)),
            None => Role::Admin,
        };
        if self.0.len() >= KNOWN_MAX {
            self.0.clear();
        }
        self.0.insert((key, joined), role);
        Ok(role)
    }

    /// The table may have changed.
    pub(crate) fn forget(&mut self) {
        self.0.clear();
    }
}

fn hex(key: PublicKey) -> String {
    key.0.iter().map(|byte| format!("{byte:02x}")).collect()
}
