//! The tables of one checkpoint, opened read-only by whoever has its pages: backups, exports, and reads at the level
//! `snapshot`, which a checkpoint's certificate proves.

use crate::pages::KV;
use crate::service::Sql;
use crate::unreadable::SnapshotError;
use crate::vfs::Disk;
use crate::{Request, Response};
use bezant_core::checkpoint::Tree;
use bezant_core::estate::service_pages;
use bezant_core::service::{NotReadOnly, PageNumber};
use bezant_core::wire::Wire;
use bytes::Bytes;
use std::io;
use std::sync::Arc;

/// First bytes of every SQLite database.
const MAGIC: &[u8] = b"SQLite format 3\0";

/// The tables of one version of the state. See the [module](self).
#[derive(Debug)]
pub struct Snapshot {
    disk: Arc<Disk>,
    sql: Sql,
}

impl Snapshot {
    /// Opens the tables in a version of the state. Nothing is copied: the pages are shared.
    ///
    /// # Errors
    /// [`SnapshotError`], whoever the pages came from.
    pub fn open(tree: &Tree) -> Result<Self, SnapshotError> {
        if !tree.get(0).is_some_and(|page| page.starts_with(MAGIC)) {
            return Err(SnapshotError::NoTables);
        }
        let disk = Arc::new(Disk::default());
        let pages = service_pages(tree).take_while(|(number, _)| *number < KV);
        if !disk.pages().install(&mut pages.map(|(number, page)| (number, Some(page.clone())))) {
            return Err(SnapshotError::Unreadable("a page is missing, or not of the right size".to_owned()));
        }
        let sql = Sql::over(Arc::clone(&disk))?;
        Ok(Self { disk, sql })
    }

    /// Answers a request that only reads, as the replicas would have at that checkpoint.
    ///
    /// # Errors
    /// [`NotReadOnly`] if it could change something, or asks for the time or for something random.
    ///
    /// # Panics
    /// If a page is not what SQLite wrote. The pages must be those of a checkpoint that is proved.
    pub fn query(&self, request: &Request) -> Result<Response, NotReadOnly> {
        let answer = self.sql.read(&request.to_bytes())?;
        Ok(Response::from_bytes(answer).expect("the service's own answer"))
    }

    /// Every table with its number of rows, in the order of their names.
    ///
    /// # Errors
    /// [`SnapshotError::Unreadable`].
    pub fn tables(&self) -> Result<Vec<(String, u64)>, SnapshotError> {
        self.sql.privileged(|connection| {
            let sql = "select name from sqlite_schema where type = 'table' and name not like 'sqlite_%' order by name";
            let mut statement = connection.prepare(sql)?;
            let names = statement.query_map([], |row| row.get::<_, String>(0))?.collect::<Result<Vec<_>, _>>()?;
            let count = |name: String| {
                let sql = format!("select count(*) from {}", quoted(&name));
                Ok((name, connection.query_row(&sql, [], |row| row.get::<_, i64>(0))? as u64))
            };
            names.into_iter().map(count).collect()
        })
    }

    /// Whatever of SQLite's own check of the file does not say "ok".
    ///
    /// # Errors
    /// [`SnapshotError::Unreadable`].
    pub fn complaints(&self) -> Result<Vec<String>, SnapshotError> {
        self.sql.privileged(|connection| {
            let mut statement = connection.prepare("pragma integrity_check")?;
            let lines = statement.query_map([], |row| row.get::<_, String>(0))?.collect::<Result<Vec<_>, _>>()?;
            Ok(lines.into_iter().filter(|line| line != "ok").collect())
        })
    }

    /// The connection, for those who look deeper.
    pub(crate) const fn sql(&self) -> &Sql {
        &self.sql
    }

    /// A page of the database file, by the number that it has in the state.
    pub(crate) fn page(&self, number: PageNumber) -> Option<Vec<u8>> {
        let mut page = vec![0; crate::PAGE_BYTES];
        let length = self.disk.pages().read(u64::from(number) * page.len() as u64, &mut page);
        (length == page.len()).then_some(page)
    }

    /// Calls `write` with each page in turn: together they are an ordinary database file.
    ///
    /// # Errors
    /// Those of `write`.
    pub fn write_file(&self, mut write: impl FnMut(&[u8]) -> io::Result<()>) -> io::Result<()> {
        let mut page = [0; crate::PAGE_BYTES];
        let bytes = self.disk.pages().bytes();
        for offset in (0..bytes).step_by(page.len()) {
            self.disk.pages().read(offset, &mut page);
            write(&page)?;
        }
        Ok(())
    }
}

/// A name as SQL takes it, whatever is in it.
pub(crate) fn quoted(name: &str) -> String {
    format!("\"{}\"", name.replace('"', "\"\""))
}

/// Keys and values that a state has, if it is one that has them; `whole` says whether the state has nothing else.
pub(crate) fn kv_pages(tree: &Tree, whole: bool) -> impl Iterator<Item = (u32, &Bytes)> {
    let first = if whole { 0 } else { KV };
    service_pages(tree).filter(move |(number, _)| *number >= first).map(move |(number, page)| (number - first, page))
}
