//! The messages of COPY.

use super::Output;
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

impl Output {
    /// Rows of so many columns are waited for, as text.
    pub fn copy_in(&mut self, columns: usize) {
        self.copy(b'G', columns);
    }

    /// Rows of so many columns follow, as text.
    pub fn copy_out(&mut self, columns: usize) {
        self.copy(b'H', columns);
    }

    fn copy(&mut self, kind: u8, columns: usize) {
        self.message(kind, |out| {
            // All together, and each of them, are text.
            out.push(0);
            out.extend((columns as u16).to_be_bytes());
            out.extend(std::iter::repeat_n(0, 2 * columns));
        });
    }

    /// A line: `write` writes it.
    pub fn copy_data(&mut self, write: impl FnOnce(&mut Vec<u8>)) {
        self.message(b'd', write);
    }

    /// That were all lines.
    pub fn copy_done(&mut self) {
        self.bare(b'c');
    }
}
