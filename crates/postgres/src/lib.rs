//! The PostgreSQL protocol in front of the replicated database.
pub mod database;
pub mod error;
pub mod wire;
