//! Just not slow enough (abs-K3): whoever orders holds back what it orders, a little longer each time, until the others
//! lose patience; then half as long, and so on. It finds by itself how slow a primary, head or entry may be. In RITAS,
//! where all order and none is waited for, it holds back all that it says, for a time-out in the end.

use super::{Behaviour, Liar};
use bezant_core::cluster::Cluster;
use bezant_core::ids::{InstanceId, Principal};
use bezant_core::protocols::pbft::{Ordering, PbftMessage};
use bezant_core::registry::Message;
use bezant_core::switching::{Switch, SwitchMessage};

/// The least that it grows by: so many of these are a time-out of a view.
const STEPS: u64 = 10_000;

#[derive(Debug, Default)]
pub(super) struct SlowByEpsilon {
    /// How long it holds back an order, in microseconds.
    delay: u64,
    /// Where it has ordered since the others lost patience: they lose it once, whoever is told of it and however often,
    /// and what becomes of another's turn is not its doing.
    orders_in: Option<InstanceId>,
}

/// Whether its own machine leaves a view, or an instance that need not end, for which the liar takes the blame.
fn leaves(message: &Message, cluster: &Cluster) -> bool {
    match message {
        Message::Ordering(Ordering { message: PbftMessage::ViewChange(_), .. }) => true,
        // Backups come to an end by themselves.
        Message::Switch(Switch { instance, message: SwitchMessage::Abort(_) }) => !cluster.part(*instance).is_backup(),
        _ => false,
    }
}

const fn orders(message: &Message) -> bool {
    matches!(
        message,
        Message::Ordering(Ordering { message: PbftMessage::PrePrepare(_), .. })
            | Message::Order(_)
            | Message::Chain(_)
            | Message::Ring(_)
            | Message::Agreement(_)
    )
}

impl Behaviour for SlowByEpsilon {
    fn send(&mut self, liar: &mut Liar<'_>, to: Principal, message: &Message) {
        let (is_order, instance) = (orders(message), message.instance());
        if leaves(message, liar.cluster) && self.orders_in.is_some() && self.orders_in == instance {
            self.delay /= 2;
            self.orders_in = None;
        }
        if is_order {
            self.orders_in = instance;
        }
        liar.say_later(if is_order { self.delay } else { 0 }, to, message);
    }

    fn tick(&mut self, liar: &mut Liar<'_>) {
        if self.orders_in.is_none() {
            return;
        }
        let timeout = liar.cluster.limits.view_timeout.0;
        self.delay = (self.delay + self.delay / 20 + timeout / STEPS).min(timeout);
    }
}
