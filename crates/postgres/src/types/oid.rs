//! Numbers of types, as every PostgreSQL has them.

pub(crate) const BOOL: u32 = 16;
pub(crate) const BYTEA: u32 = 17;
pub(crate) const CHAR: u32 = 18;
pub(crate) const NAME: u32 = 19;
pub(crate) const INT8: u32 = 20;
pub(crate) const INT2: u32 = 21;
pub(crate) const INT4: u32 = 23;
pub(crate) const TEXT: u32 = 25;
pub(crate) const OID: u32 = 26;
pub(crate) const JSON: u32 = 114;
pub(crate) const TEXTS: u32 = 1009;
pub(crate) const INT8S: u32 = 1016;
pub(crate) const FLOAT4: u32 = 700;
pub(crate) const FLOAT8: u32 = 701;
pub(crate) const UNKNOWN: u32 = 705;
pub(crate) const BPCHAR: u32 = 1042;
pub(crate) const VARCHAR: u32 = 1043;
pub(crate) const DATE: u32 = 1082;
pub(crate) const TIME: u32 = 1083;
pub(crate) const TIMESTAMP: u32 = 1114;
pub(crate) const TIMESTAMPTZ: u32 = 1184;
pub(crate) const INTERVAL: u32 = 1186;
pub(crate) const NUMERIC: u32 = 1700;
pub(crate) const UUID: u32 = 2950;
pub(crate) const JSONB: u32 = 3802;
