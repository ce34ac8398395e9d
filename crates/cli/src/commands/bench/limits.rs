//! How many clients a benchmark may have, and requests under way.

use crate::commands::testnet::AuthName;
use crate::failure::{Failure, Result};
use bezant_core::joining::MEMBER_SESSIONS_MAX;

/// Sessions of one identity: what a cluster admits.
pub(super) const SESSIONS_MAX: u64 = 8192;
/// Clients that join: each has a thread here.
const JOINED_MAX: u64 = 512;

/// What those who join can do.
pub(super) fn check_joined(auth: AuthName, clients: u64, outstanding: u64) -> Result {
    if auth == AuthName::Mac {
        return Err(Failure::usage("who joins has to sign: choose --auth hybrid or signature."));
    }
    if clients > JOINED_MAX {
        return Err(Failure::usage(format!("{clients} clients that join are too many: at most {JOINED_MAX}.")));
    }
    if outstanding > MEMBER_SESSIONS_MAX as u64 {
        let text = format!("one that joined has at most {MEMBER_SESSIONS_MAX} requests under way, not {outstanding}.");
        return Err(Failure::usage(text));
    }
    Ok(())
}
