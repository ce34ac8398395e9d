//! What clients say about their password.

use super::{SASL_BYTES_MAX, WireError, take_frame, text, value_of};
use bytes::{Bytes, BytesMut};

/// What a client that was asked for a password says; `None`: it is not complete.
///
/// # Errors
/// [`WireError`]; the connection is beyond repair.
pub fn read_sasl(input: &mut BytesMut) -> Result<Option<Bytes>, WireError> {
    match input.first() {
        None => Ok(None),
        Some(b'p') => take_frame(input, 1, SASL_BYTES_MAX),
        Some(&kind) => Err(WireError::UnknownKind(kind)),
    }
}

/// A mechanism, and the first message in it, out of the first thing that a client says about its password.
///
/// # Errors
/// [`WireError`].
pub fn sasl_choice(mut body: Bytes) -> Result<(String, Bytes), WireError> {
    let mechanism = text(&mut body)?;
    let message = value_of(&mut body)?.unwrap_or_default();
    if body.is_empty() { Ok((mechanism, message)) } else { Err(WireError::Length) }
}
