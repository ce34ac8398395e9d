//! Lies about state (prac-A24): whoever fetches state from this replica gets bytes that differ a little, or the right
//! bytes for another question, or nothing.

use super::{Behaviour, Liar};
use bezant_core::checkpoint::TransferMessage;
use bezant_core::ids::Principal;
use bezant_core::registry::Message;
use bezant_core::wire::Wire;

#[derive(Debug)]
pub(super) struct LyingSnapshot;

/// The message with one byte changed, if it is still a message then.
fn corrupted(liar: &mut Liar<'_>, message: &TransferMessage) -> Option<TransferMessage> {
    let mut bytes = message.to_bytes();
    let at = liar.rng.below(bytes.len() as u64) as usize;
    bytes[at] ^= 1 << liar.rng.below(8);
    TransferMessage::from_bytes(bytes.into()).ok()
}

impl Behaviour for LyingSnapshot {
    fn send(&mut self, liar: &mut Liar<'_>, to: Principal, message: &Message) {
        let Message::Transfer(transfer) = message else { return liar.say(to, message) };
        match liar.rng.below(4) {
            0 => {}
            1 => liar.say(to, message),
            _ => {
                if let Some(lie) = corrupted(liar, transfer) {
                    liar.say(to, &Message::Transfer(lie));
                }
            }
        }
    }
}
