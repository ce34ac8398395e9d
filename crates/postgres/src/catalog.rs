//! stub
use crate::error::PgError;
use crate::tokens::Token;
use bezant_sql::{Column, Rows, Value};

pub(crate) const SCHEMA_SQL: &str =
    "select type, name, tbl_name, sql from sqlite_schema where sql is not null order by rowid";

pub(crate) struct Catalog;
impl Catalog {
    pub(crate) fn new() -> Self {
        Self
    }
}
impl Catalog {
    pub(crate) fn query(&self, _schema: &Rows, _user: &str, _sql: &str, _values: &[Value]) -> Result<Rows, PgError> {
        Ok(Rows::default())
    }
    pub(crate) fn describe(&self, _schema: &Rows, _user: &str, _sql: &str) -> Result<(Vec<Column>, usize), PgError> {
        Ok((vec![], 0))
    }
}
pub(crate) fn is_about(_t: &[Token<'_>]) -> bool {
    false
}
pub(crate) fn for_catalog(sql: &str) -> String {
    sql.into()
}
