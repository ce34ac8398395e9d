//! The schema and the statements that were translated for it, for one connection.

use crate::error::PgError;
use crate::link::Link;
use crate::transaction::Transaction;
use crate::translate::{SCHEMA_SQL, Schema, Translation, translate};
use bezant_core::digest::{Digest, Domain};
use bezant_sql::{Batch, Dated, Rehearsal, Request, Rows, Statement};
use std::collections::BTreeMap;
use std::sync::Arc;

/// Translations that are kept.
const KEPT_MAX: usize = 512;
/// Bytes of their statements.
const KEPT_BYTES_MAX: usize = 4 << 20;

/// See the [module](self).
#[derive(Debug, Default)]
pub(crate) struct Translators {
    /// What the tables are for everybody, as of [`Link::schema`].
    common: Option<Arc<Schema>>,
    /// What they are for the transaction or the statements that change them just now.
    own: Own,
    /// By the statement, its parameters' types and the time zone.
    kept: BTreeMap<Digest, Arc<Translation>>,
    bytes: usize,
}

/// A schema that nobody else sees.
#[derive(Debug, Default)]
enum Own {
    /// There is none.
    #[default]
    None,
    /// There is, and it has to be asked for.
    Changed,
    Known(Arc<Schema>),
}

impl Translators {
    /// Forgets everything: the tables are others.
    pub(crate) fn forget(&mut self) {
        *self = Self::default();
    }

    /// A statement has changed the schema, for whoever is alone with it or for everybody.
    pub(crate) fn defined(&mut self, alone: bool) {
        if alone {
            self.own = Own::Changed;
        } else {
            self.forget();
        }
    }

    /// Some of those changes were taken back.
    pub(crate) fn forget_own(&mut self) {
        if !matches!(self.own, Own::None) {
            self.own = Own::Changed;
        }
    }

    /// Whoever was alone is no longer.
    pub(crate) fn end(&mut self) {
        if !matches!(self.own, Own::None) {
            self.forget();
        }
    }

    /// A statement in SQLite's words, as the tables are for the open transaction or for everybody.
    ///
    /// # Errors
    /// Those of the statement, as the tables are now and not as they were, and of the way to the replicas.
    pub(crate) fn translate(
        &mut self,
        sql: &str,
        types: &[u32],
        zone: &str,
        link: &mut Link,
        mut transaction: Option<&mut Transaction>,
    ) -> Result<Arc<Translation>, PgError> {
        if matches!(self.own, Own::None) {
            let has_begun = transaction.as_ref().is_some_and(|transaction| transaction.has_begun());
            let translation = self.by_common(sql, types, zone, link, has_begun);
            // Whatever is wrong with it is something that the client is told about the tables.
            if let (Err(_), Some(transaction)) = (&translation, transaction) {
                transaction.pin_schema();
            }
            return translation;
        }
        let mut look = |link: &mut Link| match &mut transaction {
            Some(transaction) => transaction.peek(link, Statement::new(SCHEMA_SQL)),
            None => Err(PgError::conflict()),
        };
        self.by_own(sql, types, zone, link, &mut look)
    }

    /// The same behind other statements of a batch, which may change the schema.
    ///
    /// # Errors
    /// Those of the statements and of the way to the replicas.
    pub(crate) fn translate_after(
        &mut self,
        sql: &str,
        zone: &str,
        link: &mut Link,
        before: &[Statement],
    ) -> Result<Arc<Translation>, PgError> {
        if matches!(self.own, Own::None) {
            return self.by_common(sql, &[], zone, link, false);
        }
        let mut look = |link: &mut Link| {
            let statements = before.iter().cloned().chain([Statement::new(SCHEMA_SQL)]).collect();
            let batch = Batch { statements, schema: link.schema, ..Batch::default() };
            last(link.results(&Request::Rehearse(Rehearsal::alone(Dated { time: 0, batch })))?)
        };
        self.by_own(sql, &[], zone, link, &mut look)
    }

    /// By the schema that nobody else sees. What is wrong with a statement is said by a fresh one only.
    fn by_own(
        &mut self,
        sql: &str,
        types: &[u32],
        zone: &str,
        link: &mut Link,
        look: &mut dyn FnMut(&mut Link) -> Result<Rows, PgError>,
    ) -> Result<Arc<Translation>, PgError> {
        if let Own::Known(schema) = &self.own
            && let Ok(translation) = translate(sql, schema, zone, types)
        {
            return Ok(Arc::new(translation));
        }
        let schema = Arc::new(Schema::of(&look(link)?));
        self.own = Own::Known(Arc::clone(&schema));
        translate(sql, &schema, zone, types).map(Arc::new)
    }

    fn by_common(
        &mut self,
        sql: &str,
        types: &[u32],
        zone: &str,
        link: &mut Link,
        has_begun: bool,
    ) -> Result<Arc<Translation>, PgError> {
        let is_fresh = self.common.is_none();
        let schema = self.common(link)?;
        let numbers: Vec<u8> = types.iter().flat_map(|number| number.to_le_bytes()).collect();
        let key = Digest::of_parts(Domain::Service, &[sql.as_bytes(), &numbers, zone.as_bytes()]);
        if let Some(kept) = self.kept.get(&key) {
            return Ok(Arc::clone(kept));
        }
        let translation = match translate(sql, &schema, zone, types) {
            Ok(translation) => Arc::new(translation),
            Err(error) if is_fresh => return Err(error),
            Err(error) => {
                let now = fetch(link)?;
                if now.version == schema.version {
                    return Err(error);
                }
                self.forget();
                if has_begun {
                    return Err(PgError::conflict());
                }
                link.schema = now.version;
                let translation = translate(sql, &now, zone, types);
                self.common = Some(Arc::new(now));
                Arc::new(translation?)
            }
        };
        self.bytes += translation.bytes();
        if self.kept.len() >= KEPT_MAX || self.bytes > KEPT_BYTES_MAX {
            self.kept.clear();
            self.bytes = translation.bytes();
        }
        self.kept.insert(key, Arc::clone(&translation));
        Ok(translation)
    }

    /// The schema for everybody; requests are for its version from here on.
    fn common(&mut self, link: &mut Link) -> Result<Arc<Schema>, PgError> {
        if let Some(schema) = &self.common {
            return Ok(Arc::clone(schema));
        }
        let schema = Arc::new(fetch(link)?);
        link.schema = schema.version;
        self.common = Some(Arc::clone(&schema));
        Ok(schema)
    }
}

/// The schema as it is for everybody now.
fn fetch(link: &mut Link) -> Result<Schema, PgError> {
    let rows = last(link.results(&Request::one(Statement::new(SCHEMA_SQL)))?)?;
    Ok(Schema::of(&rows))
}

fn last(mut results: Vec<Rows>) -> Result<Rows, PgError> {
    results.pop().ok_or_else(PgError::no_result)
}
