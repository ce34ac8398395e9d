//! What a client that brings rows sends.

use bytes::Bytes;

/// Part of what a client brings.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Copying {
    /// Bytes of lines, cut anywhere.
    Data(Bytes),
    /// That was all.
    Done,
    /// Nothing of it counts, and why.
    Fail(String),
}

/// The message of this kind. What follows a text that ends is ignored, as is the body of one that has none.
pub(super) fn read(kind: u8, body: Bytes) -> Copying {
    match kind {
        b'd' => Copying::Data(body),
        b'c' => Copying::Done,
        _ => {
            let why = body.split(|byte| *byte == 0).next().unwrap_or_default();
            Copying::Fail(String::from_utf8_lossy(why).into_owned())
        }
    }
}
