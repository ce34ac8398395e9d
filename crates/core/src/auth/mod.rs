//! Who said this, and whom does that convince?
//!
//! Grades of trust, as types:
//!
//! | type | made by | convinces | may be embedded in a message |
//! |---|---|---|---|
//! | [`Claimed<F>`] | anybody: it is what comes from the wire | nobody, before it is checked | yes |
//! | [`Verified<T>`] | [`Keyring`] at the boundary, by a MAC | this replica, now | no: it has no encoding |
//! | [`Signed<T>`] | [`Keyring`], which signs it, or checks the signature | anyone | as a claim |
//! | [`Certificate<T>`] | a [tally](Certificate::tally) of equal `Signed<T>`, or [`Keyring`], which checks it | anyone, about a set | as a claim |
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
//!
//! Nor does a handler that forgets to check a signature: what it keeps is a fact, and what it hears is a claim.
//!
//! ```compile_fail,E0308
//! use bezant_core::auth::{Claimed, Signed};
//! fn keep(votes: &mut Vec<Signed<u64>>, heard: Claimed<Signed<u64>>) {
//!     votes.push(heard) // nobody has checked it
//! }
//! ```
//!
//! And nobody but the keyring makes one.
//!
//! ```compile_fail,E0451
//! use bezant_core::auth::{Signature, Signed};
//! use bezant_core::ids::ReplicaId;
//! fn forge(signature: Signature) -> Signed<u64> {
//!     Signed { value: 7, signer: ReplicaId(0), signature } // its fields are private
//! }
//! ```
//!
//! A fact has no encoding. Who passes it on makes a claim of it, which whoever hears it checks again; so does who
//! writes it to its own log, and is believed when it reads that.

mod coin;
mod keyring;
mod mac;
#[cfg(any(test, feature = "testing"))]
pub mod paper;
mod signature;
mod tree;
mod verified;

pub use coin::{CoinKey, CoinScheme, CoinShare, CommonCoin};
pub use keyring::{Counters, Keyring, PublicKeys};
pub use mac::{Authenticator, MacKey, Tag};
pub use signature::{Ed25519, SecretKey, Signature, Signer, Suite};
pub use tree::{LEAVES_MAX, PATH_MAX, TreeSignature};
pub use verified::{Certificate, Claimed, Signable, Signed, Verified};
