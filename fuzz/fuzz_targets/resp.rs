//! Bytes from a Redis client: never a panic, and how the network cuts them into pieces makes no difference. The first
//! byte says how large the pieces are.
#![no_main]

use bezant_gateway::redis::parser::{Arguments, Parser, ProtocolError};
use bytes::BytesMut;
use libfuzzer_sys::fuzz_target;

/// Every command in bytes that arrive in pieces of this size, and how it ended.
fn commands(data: &[u8], piece: usize) -> (Vec<Arguments>, Option<ProtocolError>) {
    let (mut parser, mut buffer, mut found) = (Parser::new(), BytesMut::new(), Vec::new());
    for piece in data.chunks(piece) {
        buffer.extend_from_slice(piece);
        loop {
            match parser.parse(&mut buffer) {
                Ok(Some(arguments)) => found.push(arguments),
                Ok(None) => break,
                Err(error) => return (found, Some(error)),
            }
        }
    }
    (found, None)
}

fuzz_target!(|data: &[u8]| {
    let Some((&piece, data)) = data.split_first() else { return };
    let whole = commands(data, usize::MAX);
    assert!(whole.0.iter().all(|arguments| !arguments.is_empty()));
    assert_eq!(commands(data, usize::from(piece).max(1)), whole);
});
