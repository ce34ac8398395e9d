//! Who said this, and whom does that convince?
//!
//! Three grades of trust, as types:
//!
//! | type | made by | convinces | may be embedded in a message |
//! |---|---|---|---|
//! | [`Verified<T>`] | [`Keyring`] at the boundary, by a MAC | this replica, now | no: it has no encoding |
//! | [`Signed<T>`] | the signer | anyone | yes |
//! | [`Certificate<T>`] | a tally of equal `Signed<T>` | anyone, about a set | yes |
//!
//! Taking a MAC for evidence that a third party would accept is the classic mistake of Byzantine protocols; here it
//! does not compile.
//!
//! ```compile_fail
//! use bezant_core::{auth::Verified, wire::Wire};
//! fn embed<T: Wire>(_evidence: T) {}
//! fn relay(vote: Verified<u64>) {
//!     embed(vote) // a MAC convinces its receiver only
//! }
//! ```

mod keyring;
mod mac;
mod signature;
mod verified;

pub use keyring::{Counters, Keyring, PublicKeys};
pub use mac::{Authenticator, MacKey, Tag};
pub use signature::{Ed25519, SecretKey, Signature, Signer, Suite};
pub use verified::{Certificate, Signable, Signed, Verified};
