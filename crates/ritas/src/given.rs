//! What a caller's pointers point to, as values of Rust, and the other way round.

use crate::outcome::{Code, Failure};
use crate::types::{RITAS_ERRBUF_SIZE, RITAS_KEY_SIZE};
use bezant_core::protocols::ritas::group::MESSAGE_BYTES_MAX;
use bytes::Bytes;
use std::ffi::{CStr, c_char};
use std::str::FromStr;

/// What a caller's pointer points to, for a message.
///
/// # Safety
/// The pointer is null or points to so many bytes that nobody changes during the call.
pub(crate) unsafe fn message(data: *const u8, length: usize) -> Result<Bytes, Failure> {
    match (data.is_null(), length) {
        (_, 0) => Ok(Bytes::new()),
        (true, _) => Err(Failure::invalid("a null pointer with a length")),
        (false, _) if length > MESSAGE_BYTES_MAX => Err(Failure::new(Code::TooLong, "the value is too long")),
        // SAFETY: as the caller of this function promises.
        (false, _) => Ok(Bytes::copy_from_slice(unsafe { std::slice::from_raw_parts(data, length) })),
    }
}

/// Where a result goes.
pub(crate) struct Buffer {
    data: *mut u8,
    room: usize,
}

impl Buffer {
    /// Of what a caller says. Nothing is written yet.
    pub(crate) fn new(data: *mut u8, room: usize) -> Result<Self, Failure> {
        if data.is_null() && room > 0 {
            return Err(Failure::invalid("a null pointer with a length"));
        }
        Ok(Self { data, room })
    }

    /// How many bytes were written.
    ///
    /// # Safety
    /// The pointer is null or points to `room` bytes that may be written.
    pub(crate) unsafe fn fill(&self, bytes: &[u8]) -> isize {
        assert!(bytes.len() <= self.room, "what is too long was not taken");
        if !bytes.is_empty() {
            // SAFETY: there is room, so that the pointer is not null; the caller promises the rest.
            unsafe { std::ptr::copy_nonoverlapping(bytes.as_ptr(), self.data, bytes.len()) };
        }
        bytes.len() as isize
    }
}

/// # Safety
/// Null, or a key's bytes.
pub(crate) unsafe fn key(given: *const [u8; RITAS_KEY_SIZE]) -> Result<[u8; RITAS_KEY_SIZE], Failure> {
    // SAFETY: as the caller promises.
    unsafe { given.as_ref() }.copied().ok_or_else(|| Failure::invalid("a null pointer in place of a key"))
}

/// # Safety
/// Null, or a text with a zero at its end.
pub(crate) unsafe fn address<T: FromStr>(given: *const c_char) -> Result<T, Failure> {
    if given.is_null() {
        return Err(Failure::invalid("a null pointer in place of an address"));
    }
    // SAFETY: not null, and the caller promises that it ends with a zero.
    let text = unsafe { CStr::from_ptr(given) }.to_str().ok();
    text.and_then(|text| text.parse().ok()).ok_or_else(|| Failure::invalid("this is no address of this kind"))
}

/// # Safety
/// Null, or as many bytes as [`RITAS_ERRBUF_SIZE`] says.
pub(crate) unsafe fn tell(errbuf: *mut [c_char; RITAS_ERRBUF_SIZE], text: &str) {
    // SAFETY: as the caller promises.
    let Some(errbuf) = (unsafe { errbuf.as_mut() }) else { return };
    let end = (0..RITAS_ERRBUF_SIZE).rfind(|end| text.is_char_boundary(*end)).unwrap_or(0);
    let bytes = text.as_bytes()[..end.min(text.len())].iter().chain([&0]);
    errbuf.iter_mut().zip(bytes).for_each(|(place, byte)| *place = *byte as c_char);
}
