//! What those may cost who never say who they are: a part of a core that stays the same, however many they are.
//!
//! A connection that was closed before it said anything, or is turned away, costs a few system calls and no handshake,
//! and its door rests afterwards ([`super::accept`]): so there are only so many a second. Handshakes that fail cost far
//! more. They are counted at a price in time, and what is owed is paid off as time passes. There is an account for all
//! of them, and one for each address, each of which may run up [`CREDIT`]. When the first is overdrawn, those addresses
//! only are let in from which somebody has proved who it is; when the second is, that address is not.
//!
//! A handshake that ends well costs nothing here: any number of clients may come back at once.

use super::account::Account;
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

/// See the [module](self). Whatever comes, it holds [`ADDRESSES_MAX`] addresses of each kind.
#[derive(Debug, Default)]
pub(super) struct Debts {
    failed: Account,
    by_address: BTreeMap<IpAddr, Account>,
    known: BTreeMap<IpAddr, Instant>,
}

impl Debts {
    /// Whether somebody from this address may begin a handshake.
    pub(super) fn lets_in(&self, from: IpAddr, now: Instant) -> bool {
        let own = self.by_address.get(&from).is_some_and(|account| account.owes(now) > CREDIT);
        !own && (self.failed.owes(now) <= CREDIT || self.known.contains_key(&from))
    }

    /// A handshake ended, and nobody knows who it was.
    pub(super) fn failed(&mut self, from: IpAddr, now: Instant) {
        self.failed.charge(FAILED, now);
        self.by_address.entry(from).or_default().charge(FAILED_OF_ONE, now);
        forget_least(&mut self.by_address, |account| account.owes(now));
    }

    /// Somebody has proved who it is.
    pub(super) fn proved(&mut self, from: IpAddr, now: Instant) {
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
    use super::*;
    use std::net::Ipv4Addr;

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

    #[test]
    fn when_many_addresses_fail_the_known_ones_are_served() {
        let (mut debts, now) = (Debts::default(), Instant::now());
        debts.proved(address(7), now);
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
            debts.proved(address(number), now);
        }
        assert_eq!((debts.by_address.len(), debts.known.len()), (ADDRESSES_MAX, ADDRESSES_MAX));
        assert!(debts.known.contains_key(&address(9_999)));
    }
}
