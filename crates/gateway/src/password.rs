//! What strangers do not know: one password for all who may come to a gateway.
//!
//! Only what SCRAM-SHA-256 lets a server keep of it stays in memory (RFC 5802, section 3): with these keys a client can
//! be checked, and nobody can log in elsewhere. Whether a password that came in the clear is the right one is found the
//! same way, which takes the time of [`ITERATIONS`] and says nothing about how much of it was right.

use ring::{digest, hmac, pbkdf2};
use std::fmt;
use std::num::NonZeroU32;
use subtle::ConstantTimeEq;

/// Bytes of a salt.
pub const SALT_BYTES: usize = 16;
/// How often a password is hashed: what RFC 7677 asks for at least, and what PostgreSQL does.
pub const ITERATIONS: NonZeroU32 = NonZeroU32::new(4_096).expect("more than none");
/// The longest password.
pub const PASSWORD_BYTES_MAX: usize = 512;

/// Bytes of SHA-256.
type Hash = [u8; digest::SHA256_OUTPUT_LEN];

/// Why a text is no password: it is empty, longer than [`PASSWORD_BYTES_MAX`], or has other characters than ASCII's
/// printable ones, of which not all clients make the same bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct NoPassword;

impl fmt::Display for NoPassword {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(out, "a password is 1 to {PASSWORD_BYTES_MAX} printable characters of ASCII")
    }
}

impl std::error::Error for NoPassword {}

/// See the [module](self).
pub struct Password {
    salt: [u8; SALT_BYTES],
    stored_key: Hash,
    server_key: hmac::Key,
}

impl fmt::Debug for Password {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str("Password(…)")
    }
}

impl Password {
    /// Takes what clients must know, and random bytes.
    ///
    /// # Errors
    /// [`NoPassword`]: it is none.
    pub fn new(text: &[u8], salt: [u8; SALT_BYTES]) -> Result<Self, NoPassword> {
        let is_printable = text.iter().all(|byte| (b' '..=b'~').contains(byte));
        if text.is_empty() || text.len() > PASSWORD_BYTES_MAX || !is_printable {
            return Err(NoPassword);
        }
        let salted = salted(text, &salt);
        let server_key = hmac::Key::new(hmac::HMAC_SHA256, hmac::sign(&salted, b"Server Key").as_ref());
        Ok(Self { salt, stored_key: stored_key(&salted), server_key })
    }

    /// Whether this is it.
    pub fn is(&self, text: &[u8]) -> bool {
        text.len() <= PASSWORD_BYTES_MAX && stored_key(&salted(text, &self.salt)).ct_eq(&self.stored_key).into()
    }

    /// What clients hash it with.
    pub const fn salt(&self) -> &[u8; SALT_BYTES] {
        &self.salt
    }

    /// Whether a SCRAM client's proof over its conversation shows that it knows the password.
    pub fn proves(&self, conversation: &[u8], proof: &[u8]) -> bool {
        let signature = hmac::sign(&hmac::Key::new(hmac::HMAC_SHA256, &self.stored_key), conversation);
        if proof.len() != signature.as_ref().len() {
            return false;
        }
        let client_key: Vec<u8> = proof.iter().zip(signature.as_ref()).map(|(proof, signed)| proof ^ signed).collect();
        hash(&client_key).ct_eq(&self.stored_key).into()
    }

    /// What shows the client that the server knows it, too.
    pub fn signature(&self, conversation: &[u8]) -> Hash {
        hmac::sign(&self.server_key, conversation).as_ref().try_into().expect("HMAC-SHA-256 is as long")
    }
}

fn salted(text: &[u8], salt: &[u8]) -> hmac::Key {
    let mut salted = Hash::default();
    pbkdf2::derive(pbkdf2::PBKDF2_HMAC_SHA256, ITERATIONS, salt, text, &mut salted);
    hmac::Key::new(hmac::HMAC_SHA256, &salted)
}

fn stored_key(salted: &hmac::Key) -> Hash {
    hash(hmac::sign(salted, b"Client Key").as_ref())
}

fn hash(bytes: &[u8]) -> Hash {
    digest::digest(&digest::SHA256, bytes).as_ref().try_into().expect("SHA-256 is as long")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_the_password_is_it() {
        let password = Password::new(b"correct horse", [7; SALT_BYTES]).unwrap();
        assert!(password.is(b"correct horse"));
        for other in [&b"correct hors"[..], b"correct horse ", b"Correct horse", b"", &[b'x'; 1_000]] {
            assert!(!password.is(other), "{other:?}");
        }
        assert_eq!(format!("{password:?}"), "Password(…)");
    }

    #[test]
    fn what_clients_would_write_differently_is_none() {
        for text in ["", "grün", "tab\t", "two\nlines", &"x".repeat(PASSWORD_BYTES_MAX + 1)] {
            assert_eq!(Password::new(text.as_bytes(), [0; SALT_BYTES]).err(), Some(NoPassword), "{text:?}");
        }
        assert!(Password::new("x".repeat(PASSWORD_BYTES_MAX).as_bytes(), [0; SALT_BYTES]).is_ok());
    }
}
