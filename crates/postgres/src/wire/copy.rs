//! What is sent to a client that brings rows, or gets them.

use super::Output;

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
