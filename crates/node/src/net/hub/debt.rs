//! What those may cost who never say who they are: a part of a core that stays the same, however many they are.
//!
//! A connection that was closed before it said anything, or is turned away, costs a few system calls and no handshake,
//! and its door rests afterwards ([`super::accept`]): so there are only so many a second. Handshakes that fail cost far
//! more. They are counted at a price in time, and what is owed is paid off as time passes. There is an account for all
//! of them, and one for each address, each of which may run up [`CREDIT`]. When the first is overdrawn, those addresses
//! only are let in from which somebody has proved who it is; when the second is, that address is not, and what still
//! fails from there is not counted among all: one address never closes the doors to others.
//!
//! A handshake that ends well costs nothing here: any number of clients may come back at once.

use super::super::handshake::Peer;
use super::account::Account;
use bezant_core::ids::ReplicaId;
use std::collections::BTreeMap;
use std::net::IpAddr;
use std::time::{Duration, Instant};

/// How far an account may be overdrawn.
const CREDIT: Duration = Duration::from_secs(1);
/// The price of a failed handshake among all: 100 a second.
const FAILED: Duration = Duration::from_millis(10);
/// That of a failed handshake among those of its address: 50 a second.
const FAILED_OF_ONE: Duration = Duration::from_millis(20);
/// Addresses with debts, and known ones, that are remembered. Those that owe least, and that were seen least recently,
/// give way.
pub(super) const ADDRESSES_MAX: usize = 256;

/// See the [module](self). Whatever comes, it holds [`ADDRESSES_MAX`] addresses of each kind, and one of each replica.
#[derive(Debug, Default)]
pub(super) struct Debts {
    failed: Account,
    by_address: BTreeMap<IpAddr, Account>,
    known: BTreeMap<IpAddr, Instant>,
    /// Where each replica came from last.
    replicas: BTreeMap<ReplicaId, IpAddr>,
}

impl Debts {
    /// Whether somebody from this address may begin a handshake.
    pub(super) fn lets_in(&self, from: IpAddr, now: Instant) -> bool {
        let own = self.by_address.get(&from).is_some_and(|account| account.owes(now) > CREDIT);
        let is_known = || self.known.contains_key(&from) || self.replicas.values().any(|replica| *replica == from);
        !own && (self.failed.owes(now) <= CREDIT || is_known())
    }

    /// A handshake ended, and nobody knows who it was. Many may have begun before the first of them ended: what comes
    /// of an address that is overdrawn it pays alone.
    pub(super) fn failed(&mut self, from: IpAddr, now: Instant) {
        let own = self.by_address.entry(from).or_default();
        if own.owes(now) <= CREDIT {
            self.failed.charge(FAILED, now);
        }
        own.charge(FAILED_OF_ONE, now);
        forget_least(&mut self.by_address, |account| account.owes(now));
    }

    /// Somebody has proved who it is.
    pub(super) fn proved(&mut self, who: Peer, from: IpAddr, now: Instant) {
        if let Peer::Replica(replica) = who {
            self.replicas.insert(replica, from);
            return;
        }
        self.known.insert(from, now);
        forget_least(&mut self.known, |at| *at);
    }
}

fn forget_least<T, O: Ord>(addresses: &mut BTreeMap<IpAddr, T>, measure: impl Fn(&T) -> O) {
    if addresses.len() > ADDRESSES_MAX
        && let Some((&least, _)) = addresses.iter().min_by_key(|(_, what)| measure(what))
    {
        addresses.remove(&least);
    }
}

#[cfg(test)]
mod tests {
    use super::super::super::UNAUTHENTICATED_MAX;
    use super::*;
    use bezant_core::ids::IdentityId;
    use std::net::Ipv4Addr;

    const CLIENT: Peer = Peer::Client { identity: IdentityId(0), first: 0, sessions: 1 };

    fn address(number: u32) -> IpAddr {
        Ipv4Addr::from_bits(number).into()
    }

    /// How many handshakes from an address may fail in so many seconds, if it tries all the time.
    fn failures(debts: &mut Debts, from: u32, seconds: u64, begin: Instant) -> usize {
        let tries = (0..seconds * 1_000).map(|ms| begin + Duration::from_millis(ms));
        let fails = |now: &Instant| {
            let in_time = debts.lets_in(address(from), *now);
            if in_time {
                debts.failed(address(from), *now);
            }
            in_time
        };
        tries.filter(fails).count()
    }

    #[test]
    fn one_address_costs_so_much_and_no_more() {
        let (mut debts, begin) = (Debts::default(), Instant::now());
        let most = failures(&mut debts, 1, 10, begin);
        assert!((500..=560).contains(&most), "{most}");
        let later = begin + Duration::from_secs(10);
        assert!(!debts.lets_in(address(1), later - Duration::from_millis(1)));
        assert!(debts.lets_in(address(2), later), "others do not pay for it");
        assert!(debts.lets_in(address(1), later + Duration::from_secs(1)), "debts are paid off");
    }

    /// As many as may wait at a port, all of which were let in before any failed.
    #[test]
    fn one_address_that_fails_at_many_doors_at_once_closes_none_to_others() {
        let (mut debts, now) = (Debts::default(), Instant::now());
        (0..3 * UNAUTHENTICATED_MAX).for_each(|_| debts.failed(address(1), now));
        assert!(debts.lets_in(address(2), now) && !debts.lets_in(address(1), now));
    }

    /// However many clients have come since.
    #[test]
    fn where_a_replica_came_from_is_remembered() {
        let (mut debts, now) = (Debts::default(), Instant::now());
        debts.proved(Peer::Replica(ReplicaId(2)), address(7), now);
        (100..1_000).for_each(|from| debts.proved(CLIENT, address(from), now));
        (1_000..2_000).for_each(|from| debts.failed(address(from), now));
        assert!(debts.lets_in(address(7), now) && !debts.lets_in(address(8), now));
    }

    #[test]
    fn when_many_addresses_fail_the_known_ones_are_served() {
        let (mut debts, now) = (Debts::default(), Instant::now());
        debts.proved(CLIENT, address(7), now);
        let failed = (100..1_000).take_while(|&from| {
            let let_in = debts.lets_in(address(from), now);
            debts.failed(address(from), now);
            let_in
        });
        assert_eq!(failed.count(), 101);
        assert!(!debts.lets_in(address(8), now) && debts.lets_in(address(7), now));
    }

    #[test]
    fn whoever_comes_few_addresses_are_remembered() {
        let (mut debts, begin) = (Debts::default(), Instant::now());
        for number in 0..10_000 {
            let now = begin + Duration::from_micros(number.into());
            debts.failed(address(number), now);
            debts.proved(CLIENT, address(number), now);
        }
        assert_eq!((debts.by_address.len(), debts.known.len()), (ADDRESSES_MAX, ADDRESSES_MAX));
        assert!(debts.known.contains_key(&address(9_999)));
    }
}
