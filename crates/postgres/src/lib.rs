//! The PostgreSQL protocol in front of the replicated database.
//!
//! A gateway is a client: it collects the replicas' answers, believes what enough of them say, and then speaks plain
//! PostgreSQL. So it belongs beside the application, on its host. `docs/postgres.md` says what works.
//!
//! | question | file |
//! |---|---|
//! | What comes over the wire? | `wire.rs`; `server.rs` has the connections |
//! | Who wants no answer any more? | `cancel.rs` |
//! | Does the client know the password? | `scram.rs` |
//! | What does a message do? | `session.rs` |
//! | What can a statement ask for? | `plan.rs` |
//! | What does one ask for? | `understand.rs`, from the pieces that `tokens.rs` finds; `control.rs` for transactions |
//! | How does SQLite say it? | `translate`, by the types of what it is about; `translator.rs` knows the schema |
//! | What does COPY bring and take? | `copy.rs`; `session/copying.rs` has the conversation |
//! | How is it carried out? | `execute.rs`; `transaction.rs` has BEGIN and COMMIT |
//! | What are values called? | `types.rs`, `calendar.rs` |
//! | What do tools ask about the tables? | `catalog.rs` |

mod calendar;
mod cancel;
mod catalog;
mod control;
mod copy;
mod cursor;
mod database;
mod error;
mod execute;
mod link;
mod outcome;
mod plan;
mod prepared;
mod rewrite;
mod scram;
mod sequence;
mod server;
mod session;
mod settings;
mod tag;
mod tokens;
mod transaction;
mod translate;
mod translator;
mod types;
mod understand;
pub mod wire;

pub use cancel::Cancel;
pub use copy::{COPY_BYTES_MAX, COPY_ROWS_MAX};
pub use database::{Answer, CallFailure, Database};
pub use error::{PgError, sqlstate};
pub use server::{CONNECTIONS_MAX, STALLED_MAX, Server, serve};
pub use session::{PORTALS_MAX, PREPARED_BYTES_MAX, PREPARED_MAX};
pub use settings::{DATABASE, SERVER_VERSION};
