//! Bytes to a record of the log: never a panic, and what decodes has one encoding.
#![no_main]

use bezant_core::registry::LogRecord;
use bezant_core::wire::Wire;
use bytes::Bytes;
use libfuzzer_sys::fuzz_target;

fuzz_target!(|data: &[u8]| {
    if let Ok(record) = LogRecord::from_bytes(Bytes::copy_from_slice(data)) {
        assert_eq!(record.to_bytes(), data, "two encodings of one record: {record:?}");
    }
});
