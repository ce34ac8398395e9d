//! How a simulated liar is heard.

use crate::byzantine::Voice;
use crate::checks::Event;
use crate::network::ProcessId;
use crate::stage::{Occurrence, Stage};
use bezant_core::auth::Keyring;
use bezant_core::ids::Principal;
use bezant_core::protocols::pbft::{Ordering, PbftMessage};
use bezant_core::registry::Message;
use bytes::Bytes;

/// The voice of one process.
pub(super) struct Speech<'a> {
    pub(super) process: ProcessId,
    pub(super) keyring: &'a Keyring,
    pub(super) stage: &'a mut Stage,
}

impl Voice for Speech<'_> {
    fn say(&mut self, delay: u64, to: Principal, message: &Message) {
        let Self { process, keyring, stage } = self;
        if let Message::Ordering(Ordering { message, .. }) = message {
            let batch = match message {
                PbftMessage::PrePrepare(proposal) => Some(&proposal.batch),
                PbftMessage::Batch(batch) => Some(batch),
                _ => None,
            };
            if let Some(batch) = batch {
                stage.checks.see(stage.now, &Event::Batch(batch));
            }
        }
        let frame: Bytes = message.sealed(keyring, to).into();
        if delay == 0 {
            stage.post(*process, to, frame);
        } else {
            let at = stage.now + delay;
            stage.plan(at, Occurrence::Late { from: *process, to, frame });
        }
    }
}
