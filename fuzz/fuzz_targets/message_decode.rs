//! Bytes to a message: never a panic, and what decodes has one encoding, the bytes that it came from.
#![no_main]

use bezant_core::registry::Message;
use bezant_core::wire::Wire;
use bytes::Bytes;
use libfuzzer_sys::fuzz_target;

fuzz_target!(|data: &[u8]| {
    if let Ok(message) = Message::from_bytes(Bytes::copy_from_slice(data)) {
        assert_eq!(message.to_bytes(), data, "two encodings of one message: {message:?}");
    }
});
