//! Who was refused lately, by address: for an operator, who has to find the machine with the wrong file or key.

use super::{LinkRefusal, Port};
use std::collections::BTreeMap;
use std::net::IpAddr;

/// Addresses that are remembered. Those that were refused least recently give way.
pub const REFUSED_ADDRESSES_MAX: usize = 64;

/// What was refused from one address.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Refused {
    /// How many connections, since the address is remembered.
    pub count: u64,
    /// Why the last one was.
    pub reason: LinkRefusal,
    /// At which port.
    pub port: Port,
    /// When: the number of that refusal among all.
    last: u64,
}

/// See the [module](self). Holds [`REFUSED_ADDRESSES_MAX`] addresses at most, whoever connects.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Refusals {
    total: u64,
    by_address: BTreeMap<IpAddr, Refused>,
}

impl Refusals {
    /// Counts one.
    pub fn add(&mut self, address: IpAddr, port: Port, reason: LinkRefusal) {
        // One machine is one address, whichever family its packets came by.
        let address = address.to_canonical();
        self.total += 1;
        let count = self.by_address.get(&address).map_or(0, |known| known.count) + 1;
        self.by_address.insert(address, Refused { count, reason, port, last: self.total });
        if self.by_address.len() > REFUSED_ADDRESSES_MAX
            && let Some((&oldest, _)) = self.by_address.iter().min_by_key(|(_, refused)| refused.last)
        {
            self.by_address.remove(&oldest);
        }
    }

    /// Those that are remembered.
    pub fn iter(&self) -> impl Iterator<Item = (IpAddr, Refused)> + '_ {
        self.by_address.iter().map(|(address, refused)| (*address, *refused))
    }

    /// What is remembered of one.
    pub fn of(&self, address: IpAddr) -> Option<Refused> {
        self.by_address.get(&address.to_canonical()).copied()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::net::{Ipv4Addr, Ipv6Addr};

    fn address(number: u32) -> IpAddr {
        Ipv4Addr::from_bits(number).into()
    }

    #[test]
    fn however_many_come_the_latest_are_remembered() {
        let mut refusals = Refusals::default();
        for number in 0..1_000 {
            refusals.add(address(number), Port::Clients, LinkRefusal::UnknownIdentity);
            refusals.add(address(7), Port::Replicas, LinkRefusal::Version);
        }
        assert_eq!(refusals.iter().count(), REFUSED_ADDRESSES_MAX);
        let often = refusals.of(address(7)).unwrap();
        assert_eq!((often.count, often.reason, often.port), (1_001, LinkRefusal::Version, Port::Replicas));
        assert!(refusals.of(address(999)).is_some() && refusals.of(address(900)).is_none());
    }

    #[test]
    fn an_address_of_either_family_is_one() {
        let mut refusals = Refusals::default();
        refusals.add(address(1), Port::Clients, LinkRefusal::BadProof);
        let mapped: Ipv6Addr = Ipv4Addr::from_bits(1).to_ipv6_mapped();
        refusals.add(mapped.into(), Port::Clients, LinkRefusal::BadProof);
        assert_eq!(refusals.of(address(1)).unwrap().count, 2);
    }
}
