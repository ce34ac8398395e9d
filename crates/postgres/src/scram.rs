//! SCRAM-SHA-256, the server's side, without channel binding (RFC 5802 and RFC 7677).
//!
//! | who | says |
//! |---|---|
//! | client | `n,,n=user,r=NONCE`: the header of channel binding, a name, some random characters |
//! | server | `r=NONCE+OURS,s=SALT,i=4096` |
//! | client | `c=HEADER,r=NONCE+OURS,p=PROOF` |
//! | server | `v=SIGNATURE` |
//!
//! The name counts for nothing, as in PostgreSQL: the one of the connection's first message does. Bytes are bounded by
//! whoever reads them, see [`SASL_BYTES_MAX`](crate::wire::SASL_BYTES_MAX).

use bezant_gateway::password::ITERATIONS;
use bezant_gateway::{Password, base64};
use std::fmt;
use std::sync::Arc;

/// As clients name it.
pub(crate) const MECHANISM: &str = "SCRAM-SHA-256";
/// Random bytes in what the server adds to a nonce.
pub(crate) const NONCE_BYTES: usize = 18;

/// Why a client is not let in.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum ScramError {
    /// A message is none of this mechanism. What is wrong with it.
    Malformed(&'static str),
    /// It insists on binding the password to a channel.
    ChannelBinding,
    /// It wants to act as somebody else.
    AuthorizationIdentity,
    /// It needs an extension that is not known here.
    Extension,
    /// It does not know the password.
    WrongProof,
}

impl fmt::Display for ScramError {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Malformed(what) => write!(out, "malformed SCRAM message: {what}"),
            Self::ChannelBinding => out.write_str("there is no channel binding here"),
            Self::AuthorizationIdentity => out.write_str("there are no authorization identities here"),
            Self::Extension => out.write_str("the client requires an extension of SCRAM that is unknown here"),
            Self::WrongProof => out.write_str("wrong password"),
        }
    }
}

/// A client that has begun, and what it was asked.
pub(crate) struct Exchange {
    password: Arc<Password>,
    /// The header of channel binding, which the client must repeat.
    header: String,
    /// The rest of the client's first message.
    first: String,
    /// Both nonces.
    nonce: String,
}

impl Exchange {
    /// Takes a client's first message, and random bytes.
    ///
    /// # Errors
    /// [`ScramError`], but for a wrong password.
    pub(crate) fn begin(
        password: &Arc<Password>,
        message: &[u8],
        random: &[u8; NONCE_BYTES],
    ) -> Result<Self, ScramError> {
        Self::with_nonce(password, message, &base64::encode(random))
    }

    fn with_nonce(password: &Arc<Password>, message: &[u8], ours: &str) -> Result<Self, ScramError> {
        let message = text(message)?;
        let mut parts = message.splitn(3, ',');
        let (Some(flag), Some(identity), Some(first)) = (parts.next(), parts.next(), parts.next()) else {
            return Err(ScramError::Malformed("it has no header"));
        };
        match flag {
            // "y": the client could, and thinks that we cannot; it is right.
            "n" | "y" => {}
            _ if flag.starts_with("p=") => return Err(ScramError::ChannelBinding),
            _ => return Err(ScramError::Malformed("no such flag of channel binding")),
        }
        if !identity.is_empty() {
            return Err(match identity.strip_prefix("a=") {
                Some(_) => ScramError::AuthorizationIdentity,
                None => ScramError::Malformed("what stands for an authorization identity is none"),
            });
        }
        let mut attributes = first.split(',');
        match attributes.next().unwrap_or_default() {
            extension if extension.starts_with("m=") => return Err(ScramError::Extension),
            name if name.strip_prefix("n=").is_some_and(is_name) => {}
            _ => return Err(ScramError::Malformed("it has no user name")),
        }
        let theirs = attributes.next().and_then(|nonce| nonce.strip_prefix("r=")).filter(|nonce| is_nonce(nonce));
        let theirs = theirs.ok_or(ScramError::Malformed("it has no nonce"))?;
        if !attributes.all(is_attribute) {
            return Err(ScramError::Malformed("an extension is none"));
        }
        let header = format!("{flag},{identity},");
        Ok(Self { password: Arc::clone(password), header, first: first.into(), nonce: format!("{theirs}{ours}") })
    }

    /// What the client is asked.
    pub(crate) fn challenge(&self) -> String {
        format!("r={},s={},i={ITERATIONS}", self.nonce, base64::encode(self.password.salt()))
    }

    /// Takes the client's last message. Returns what shows it that it speaks with who knows the password, too.
    ///
    /// # Errors
    /// [`ScramError`].
    pub(crate) fn finish(self, message: &[u8]) -> Result<String, ScramError> {
        let message = text(message)?;
        let Some((before, proof)) = message.rsplit_once(",p=") else {
            return Err(ScramError::Malformed("it has no proof"));
        };
        let mut attributes = before.split(',');
        if attributes.next() != Some(&format!("c={}", base64::encode(self.header.as_bytes()))) {
            return Err(ScramError::Malformed("the header of channel binding is another one"));
        }
        if attributes.next() != Some(&format!("r={}", self.nonce)) {
            return Err(ScramError::Malformed("the nonce is another one"));
        }
        if !attributes.all(is_attribute) {
            return Err(ScramError::Malformed("an extension is none"));
        }
        let proof = base64::decode(proof).ok_or(ScramError::Malformed("the proof is not base64"))?;
        let conversation = format!("{},{},{before}", self.first, self.challenge());
        if !self.password.proves(conversation.as_bytes(), &proof) {
            return Err(ScramError::WrongProof);
        }
        Ok(format!("v={}", base64::encode(&self.password.signature(conversation.as_bytes()))))
    }
}

fn text(message: &[u8]) -> Result<&str, ScramError> {
    match std::str::from_utf8(message) {
        Ok(text) if !text.contains('\0') => Ok(text),
        _ => Err(ScramError::Malformed("it is no text")),
    }
}

/// A name stands with `=2C` for a comma and `=3D` for an equals sign.
fn is_name(name: &str) -> bool {
    name.split('=').skip(1).all(|after| after.starts_with("2C") || after.starts_with("3D"))
}

/// Printable, and no comma.
fn is_nonce(nonce: &str) -> bool {
    !nonce.is_empty() && nonce.bytes().all(|byte| byte.is_ascii_graphic() && byte != b',')
}

/// A letter, an equals sign, and a value.
fn is_attribute(attribute: &str) -> bool {
    matches!(attribute.as_bytes(), [letter, b'=', _, ..] if letter.is_ascii_alphabetic())
}

#[cfg(test)]
mod tests {
    use super::*;

    const FIRST: &str = "n,,n=user,r=rOprNGfwEbeRWgbNEkqO";
    const OURS: &str = "%hvYDpWUa2RaTCAfuxFIlj)hNlF$k0";
    const LAST: &str = "c=biws,r=rOprNGfwEbeRWgbNEkqO%hvYDpWUa2RaTCAfuxFIlj)hNlF$k0,\
        p=dHzbZapWIk4jUhN+Ute9ytag9zjfMHgsqmmiz7AndVQ=";

    fn begin(message: &str) -> Result<Exchange, ScramError> {
        let salt = base64::decode("W22ZaJ0SNY7soEsUEjb6gQ==").unwrap().try_into().unwrap();
        Exchange::with_nonce(&Arc::new(Password::new(b"pencil", salt).unwrap()), message.as_bytes(), OURS)
    }

    fn finish(message: &str) -> Result<String, ScramError> {
        begin(FIRST).unwrap().finish(message.as_bytes())
    }

    /// RFC 7677, section 3.
    #[test]
    fn the_example_of_the_standard() {
        assert_eq!(
            begin(FIRST).unwrap().challenge(),
            "r=rOprNGfwEbeRWgbNEkqO%hvYDpWUa2RaTCAfuxFIlj)hNlF$k0,s=W22ZaJ0SNY7soEsUEjb6gQ==,i=4096"
        );
        assert_eq!(finish(LAST).unwrap(), "v=6rriTRBi23WpRR/wtup+mMhUZUn/dB5nLTJRsjl95G4=");
    }

    #[test]
    fn first_messages_that_are_none_are_refused() {
        for good in ["n,,n=,r=a", "y,,n=a=2Cb=3Dc,r=a", "n,,n=user,r=a,x=1,y=2"] {
            assert!(begin(good).is_ok(), "{good}");
        }
        assert_eq!(begin("p=tls-unique,,n=user,r=a").err(), Some(ScramError::ChannelBinding));
        assert_eq!(begin("n,a=root,n=user,r=a").err(), Some(ScramError::AuthorizationIdentity));
        assert_eq!(begin("n,,m=ext,n=user,r=a").err(), Some(ScramError::Extension));
        for bad in [
            "",
            "n",
            "n,",
            "n,,",
            "x,,n=user,r=a",
            "N,,n=user,r=a",
            "n,b,n=user,r=a",
            "n,,user,r=a",
            "n,,n=user",
            "n,,n=user,r=",
            "n,,n=user,r=a b",
            "n,,n=user,r=ä",
            "n,,n=us=er,r=a",
            "n,,n=us=2c,r=a",
            "n,,n=user=,r=a",
            "n,,r=a,n=user",
            "n,,n=user,r=a,",
            "n,,n=user,r=a,x",
            "n,,n=user,r=a,x=",
            "n,,n=user,r=a,1=x",
            "n,,n=us\0er,r=a",
        ] {
            assert!(matches!(begin(bad).err(), Some(ScramError::Malformed(_))), "{bad:?}");
        }
    }

    #[test]
    fn last_messages_that_are_none_are_refused() {
        let nonce = "r=rOprNGfwEbeRWgbNEkqO%hvYDpWUa2RaTCAfuxFIlj)hNlF$k0";
        let proof = "p=dHzbZapWIk4jUhN+Ute9ytag9zjfMHgsqmmiz7AndVQ=";
        for bad in [
            "",
            "c=biws",
            proof,
            &format!("c=biws,{nonce}"),
            &format!("{nonce},c=biws,{proof}"),
            &format!("c=eSws,{nonce},{proof}"),
            &format!("c=biws,{nonce}x,{proof}"),
            &format!("c=biws,r=a,{proof}"),
            &format!("c=biws,{nonce},x,{proof}"),
            &format!("{LAST}="),
            &format!("{LAST},x=1"),
            &format!("{LAST} "),
            &format!("c=biws,{nonce},p="),
            &format!("c=biws,,{nonce},{proof}"),
        ] {
            let error = finish(bad).unwrap_err();
            let is_short = bad.ends_with(",p=") && error == ScramError::WrongProof;
            assert!(is_short || matches!(error, ScramError::Malformed(_)), "{bad:?}: {error:?}");
        }
    }

    #[test]
    fn proofs_that_prove_nothing_are_refused() {
        let mut other = LAST.to_owned();
        other.replace_range(other.len() - 5..other.len() - 4, "N");
        assert_eq!(finish(&other), Err(ScramError::WrongProof));
        // An extension that was added on the way is part of what was signed.
        assert_eq!(finish(&LAST.replace(",p=", ",x=1,p=")), Err(ScramError::WrongProof));
        assert_eq!(
            finish(&LAST.replace("dHzbZapWIk4jUhN+Ute9ytag9zjfMHgsqmmiz7AndVQ=", "AAAA")),
            Err(ScramError::WrongProof)
        );
    }
}
