//! A frame from a peer: never a panic. The first byte says who sent it, and whether it is given a MAC that fits, so
//! that what is checked behind the MAC is reached as well.
#![no_main]

use bezant_core::auth::{SecretKey, Suite};
use bezant_core::ids::{Principal, ReplicaId};
use bezant_core::registry::Message;
use bezant_core::wire::Wire;
use bezant_fuzz::{CLIENT, Credulous, four, keyring};
use bytes::Bytes;
use libfuzzer_sys::fuzz_target;

const RECEIVER: Principal = Principal::Replica(ReplicaId(0));

fuzz_target!(|data: &[u8]| {
    let Some((&choice, body)) = data.split_first() else { return };
    let open = choice & 4 != 0;
    let cluster = if open { four().with_dynamic_clients() } else { four() };
    let from = match (choice & 1, open) {
        (0, _) => Principal::Replica(ReplicaId(1)),
        (_, false) => Principal::Client(CLIENT),
        (_, true) => Principal::Key(Credulous.public(&SecretKey([200; 32]))),
    };
    let body = Bytes::copy_from_slice(body);
    let frame = match Message::from_bytes(body.clone()) {
        Ok(message) if choice & 2 == 0 => Bytes::from(message.sealed(&keyring(&Credulous, &cluster, from), RECEIVER)),
        _ => body,
    };
    if let Ok(incoming) = Message::open(frame, from, &cluster, &keyring(&Credulous, &cluster, RECEIVER)) {
        assert_eq!(incoming.from, from);
    }
});
