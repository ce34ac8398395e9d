//! What the laboratory is made of, as scripts for `ip` and `tc`. Nothing here touches the system.

use super::super::owner::Owner;
use super::names;
use bezant_core::ids::ReplicaId;
use bezant_node::config::{Address, PeerEntry};
use std::fmt::{self, Write};
use std::net::{Ipv4Addr, SocketAddr};

/// The namespace with a bridge for each LAN.
const SWITCH: &str = "switch";
/// The namespace of all clients.
const CLIENTS: &str = "clients";
/// The last byte of the clients' address; replica i has i + 1.
const CLIENTS_HOST: u8 = 254;
/// Bytes that may wait at the switch on their way from clients. Each client stands for a machine, where its requests
/// would wait until the link is free; a queue that drops them would starve some for seconds.
const FROM_CLIENTS: u64 = 64 << 20;
/// Where replicas listen: each has addresses of its own.
const PORTS: [u16; 3] = [4100, 4101, 4102];

/// The most replicas of which each pair may have a LAN: there are addresses for no more.
pub(super) const PAIRED_MAX: u8 = 22;

/// Which LANs there are, besides the administrators'.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in super::super) enum Lans {
    /// One for all.
    Shared,
    /// One for clients and one for replicas.
    Two,
    /// One for clients, and one for each pair of replicas.
    Peers,
}

impl Lans {
    /// As a report prints it, too: there the last is the number of LANs.
    pub(super) fn parse(text: &str) -> Result<Self, String> {
        match (text, text.parse::<u8>()) {
            ("1", _) => Ok(Self::Shared),
            ("2", _) => Ok(Self::Two),
            ("peers", _) | (_, Ok(3..)) => Ok(Self::Peers),
            _ => Err("it must be 1, 2 or `peers`".to_owned()),
        }
    }
}

impl fmt::Display for Lans {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str(match self {
            Self::Shared => "1",
            Self::Two => "2",
            Self::Peers => "peers",
        })
    }
}

/// Bits per second, as one of the units of `tc`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in super::super) struct Rate {
    pub(super) bits_per_s: u64,
}

impl Rate {
    /// The units, the largest first.
    const UNITS: [(&str, u64); 3] = [("gbit", 1_000_000_000), ("mbit", 1_000_000), ("kbit", 1_000)];
    const MIN: u64 = 1_000_000;
    const MAX: u64 = 10_000_000_000;

    /// A whole number and its unit, such as `10mbit`.
    pub(super) fn parse(text: &str) -> Result<Self, String> {
        let of_unit = |(unit, size): (&str, u64)| text.strip_suffix(unit)?.parse::<u64>().ok()?.checked_mul(size);
        match Self::UNITS.into_iter().find_map(of_unit) {
            Some(bits_per_s @ Self::MIN..=Self::MAX) => Ok(Self { bits_per_s }),
            Some(_) => Err("it must be from 1mbit to 10gbit".to_owned()),
            None => Err("a rate is a whole number with a unit, such as 10mbit, 100mbit or 1gbit".to_owned()),
        }
    }

    /// Half of it.
    pub(super) const fn halved(self) -> Self {
        Self { bits_per_s: self.bits_per_s / 2 }
    }

    /// Bytes that may leave at once: 1.28 ms of it, and never less than three full packets.
    const fn burst(self) -> u64 {
        let bytes = self.bits_per_s / 8 * 128 / 100_000;
        if bytes < 5_000 { 5_000 } else { bytes }
    }

    /// Bytes that may wait: 24 ms of it, and never less than some 40 full packets, for a smaller queue loses many.
    const fn limit(self) -> u64 {
        let bytes = self.bits_per_s / 8 * 24 / 1_000;
        if bytes < 60_000 { 60_000 } else { bytes }
    }
}

impl fmt::Display for Rate {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        let fits = |(_, size): &(&str, u64)| self.bits_per_s.is_multiple_of(*size);
        match Self::UNITS.into_iter().find(fits) {
            Some((unit, size)) => write!(out, "{}{unit}", self.bits_per_s / size),
            None => write!(out, "{}bit", self.bits_per_s),
        }
    }
}

/// A bridge and those who are on it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Lan {
    name: &'static str,
    /// What its interfaces are called at a node.
    device: &'static str,
    /// The third byte of its addresses.
    subnet: u8,
    is_shaped: bool,
    has_clients: bool,
    /// It is of these two replicas alone.
    pair: Option<[u8; 2]>,
}

const OF_CLIENTS: Lan =
    Lan { name: "clients", device: "eth-c", subnet: 0, is_shaped: true, has_clients: true, pair: None };
const OF_REPLICAS: Lan =
    Lan { name: "replicas", device: "eth-r", subnet: 1, is_shaped: true, has_clients: false, pair: None };
const SHARED: Lan = Lan { name: "shared", device: "eth-s", subnet: 0, is_shaped: true, has_clients: true, pair: None };
/// Asking replicas what they count must not disturb what is counted: it has wires of its own.
const ADMIN: Lan = Lan { name: "admin", device: "eth-a", subnet: 2, is_shaped: false, has_clients: true, pair: None };

impl Lan {
    /// That of two replicas, the lower one first.
    const fn of(low: u8, high: u8) -> Self {
        let before = high as u16 * (high as u16 - 1) / 2;
        Self { subnet: before as u8 + low, pair: Some([low, high]), ..OF_REPLICAS }
    }

    const fn address(&self, host: u8) -> Ipv4Addr {
        Ipv4Addr::new(10, if self.pair.is_some() { 78 } else { 77 }, self.subnet, host)
    }

    /// What its bridge is called.
    fn bridge(&self) -> String {
        self.pair.map_or_else(|| self.name.to_owned(), |[low, high]| format!("pair-{low}-{high}"))
    }

    /// What its interfaces are called at a node: at most 15 letters, as all of these.
    fn interface(&self) -> String {
        self.pair.map_or_else(|| self.device.to_owned(), |[low, high]| format!("eth-p{low}-{high}"))
    }

    fn has(&self, node: &Node) -> bool {
        match self.pair {
            Some(pair) => pair.iter().any(|replica| node.host == replica + 1),
            None => self.has_clients || node.is_shaped,
        }
    }
}

/// A namespace that is on some of the LANs.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Node {
    name: String,
    host: u8,
    /// Clients stand for many machines: what limits them is the other end.
    is_shaped: bool,
}

/// Who is where.
#[derive(Clone, Debug)]
pub(super) struct Plan {
    owner: Owner,
    replicas: u8,
    pub(super) lans: Lans,
    pub(super) rate: Rate,
}

/// One link whose bytes are counted: of a node, on a LAN, seen at this port of the switch.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Link {
    pub(super) node: String,
    pub(super) lan: &'static str,
    pub(super) port: String,
}

impl Plan {
    pub(super) const fn new(owner: Owner, replicas: u8, lans: Lans, rate: Rate) -> Self {
        Self { owner, replicas, lans, rate }
    }

    pub(super) fn switch(&self) -> String {
        self.owner.name(SWITCH)
    }

    pub(super) fn clients(&self) -> String {
        self.owner.name(CLIENTS)
    }

    pub(super) fn replica(&self, replica: u8) -> String {
        self.owner.name(&node(replica).name)
    }

    pub(super) fn existing(&self) -> Vec<String> {
        names::existing(self.owner)
    }

    /// Whether there are addresses for all.
    pub(super) fn fits(&self) -> bool {
        self.lans != Lans::Peers || self.replicas <= PAIRED_MAX
    }

    /// How many LANs are counted.
    pub(super) fn count(&self) -> u8 {
        self.all_lans().iter().filter(|lan| lan.is_shaped).count() as u8
    }

    /// The addresses of replicas 0 and 1 on a LAN that both are on.
    pub(super) fn two(&self) -> [Ipv4Addr; 2] {
        let lan = if self.lans == Lans::Peers { Lan::of(0, 1) } else { self.lan_of_replicas() };
        [0, 1].map(|replica| lan.address(node(replica).host))
    }

    /// The links of each replica that have addresses of their own.
    pub(super) fn peers(&self) -> Vec<Vec<PeerEntry>> {
        let entry = |me: u8, other: u8| {
            let [low, high] = [me.min(other), me.max(other)];
            let listens = SocketAddr::from((Lan::of(low, high).address(node(low).host), PORTS[0]));
            let dial = Address { host: listens.ip().to_string(), port: listens.port() };
            let (listen, dial) = if me == low { (Some(listens), None) } else { (None, Some(dial)) };
            PeerEntry { replica: ReplicaId(other), listen, dial }
        };
        let others = |me: u8| (0..self.replicas).filter(move |other| *other != me);
        let all = 0..if self.lans == Lans::Peers { self.replicas } else { 0 };
        all.map(|me| others(me).map(|other| entry(me, other)).collect()).collect()
    }

    /// Where replicas listen to replicas, to clients and to administrators.
    pub(super) fn addresses(&self) -> Vec<[Address; 3]> {
        let (of_clients, of_replicas) = (self.all_lans()[0], self.lan_of_replicas());
        let of_one = |replica| {
            let host = node(replica).host;
            let mut ports = PORTS.into_iter();
            [of_replicas, of_clients, ADMIN].map(|lan| Address {
                host: lan.address(host).to_string(),
                port: ports.next().expect("as many ports as addresses"),
            })
        };
        (0..self.replicas).map(of_one).collect()
    }

    /// Every link but those of administrators.
    pub(super) fn links(&self) -> Vec<Link> {
        let counted = self.wires().into_iter().filter(|(_, lan)| lan.is_shaped);
        counted.map(|(node, lan)| Link { port: port(&node, lan), node: node.name, lan: lan.name }).collect()
    }

    /// For `ip -batch`: the namespaces.
    pub(super) fn namespaces(&self) -> String {
        let nodes = self.nodes().into_iter().map(|node| self.owner.name(&node.name));
        std::iter::once(self.switch()).chain(nodes).map(|name| format!("netns add {name}\n")).collect()
    }

    /// For `ip -batch` in the switch: bridges, wires, and their ends here.
    ///
    /// TCP must not hand over several packets as one, for then headers would be missing in the counts; and nobody
    /// needs the IPv6 address that makes an interface talk by itself.
    pub(super) fn wiring(&self) -> String {
        let mut script = "link set lo up\n".to_owned();
        for lan in self.all_lans() {
            let name = lan.bridge();
            let _ = writeln!(script, "link add {name} type bridge mcast_snooping 0");
            let _ = writeln!(script, "link set {name} addrgenmode none\nlink set {name} up");
        }
        for (node, lan) in self.wires() {
            let (port, device, name) = (port(&node, lan), lan.interface(), self.owner.name(&node.name));
            let _ = writeln!(script, "link add {port} type veth peer name {device} netns {name}");
            let _ = writeln!(script, "link set {port} addrgenmode none\nlink set {port} gso_max_segs 1");
            let _ = writeln!(script, "link set {port} master {}\nlink set {port} up", lan.bridge());
        }
        script
    }

    /// For `ip -batch` in each node: the name of its namespace and the script.
    pub(super) fn interfaces(&self) -> Vec<(String, String)> {
        let of_node = |node: Node| {
            let mut script = "link set lo up\n".to_owned();
            for (_, lan) in self.wires().iter().filter(|(other, _)| *other == node) {
                let (device, address) = (lan.interface(), lan.address(node.host));
                let _ = writeln!(script, "link set {device} addrgenmode none\nlink set {device} gso_max_segs 1");
                let _ = writeln!(script, "addr add {address}/24 dev {device}\nlink set {device} up");
            }
            (self.owner.name(&node.name), script)
        };
        self.nodes().into_iter().map(of_node).collect()
    }

    /// For `tc -batch` in each namespace: the rate, at both ends of every link of a replica.
    pub(super) fn rates(&self) -> Vec<(String, String)> {
        let wires = self.wires();
        let shaped = || wires.iter().filter(|(node, lan)| node.is_shaped && lan.is_shaped);
        let waiting = |lan: &Lan| if lan.has_clients { FROM_CLIENTS } else { self.rate.limit() };
        let at_the_switch = shaped().map(|(node, lan)| self.limited(&port(node, *lan), waiting(lan))).collect();
        let at = |node: &Node| {
            let own = shaped().filter(|it| it.0 == *node);
            own.map(|it| self.limited(&it.1.interface(), self.rate.limit())).collect()
        };
        let at_nodes = self.nodes().into_iter().filter(|node| node.is_shaped);
        let at_nodes = at_nodes.map(|node| (self.owner.name(&node.name), at(&node)));
        std::iter::once((self.switch(), at_the_switch)).chain(at_nodes).collect()
    }

    /// For `ip -batch` in the switch: a replica's links but the administrators' are cut, or whole again.
    pub(super) fn cut(&self, replica: u8, is_cut: bool) -> String {
        let state = if is_cut { "down" } else { "up" };
        self.ports(replica).iter().map(|port| format!("link set {port} {state}\n")).collect()
    }

    /// For `tc -batch` in the switch and in a replica's namespace: its links with another rate.
    pub(super) fn changed(&self, replica: u8, rate: Rate) -> [(String, String); 2] {
        let other = Self { rate, ..self.clone() };
        let of_replica = |(namespace, script): (String, String)| {
            let ports = other.ports(replica);
            let is_own = |line: &&str| {
                namespace == self.replica(replica) || ports.iter().any(|port| line.contains(&format!(" dev {port} ")))
            };
            let script = script.lines().filter(is_own).map(|line| line.replace("qdisc add", "qdisc change") + "\n");
            (namespace.clone(), script.collect())
        };
        let mut rates = other.rates().into_iter();
        let mut take = |name: String| of_replica(rates.find(|(it, _)| *it == name).expect("every namespace has rates"));
        [take(self.switch()), take(self.replica(replica))]
    }

    /// The switch's ends of a replica's links, but for the administrators'.
    fn ports(&self, replica: u8) -> Vec<String> {
        let own = self.wires().into_iter().filter(|(it, lan)| *it == node(replica) && lan.is_shaped);
        own.map(|(node, lan)| port(&node, lan)).collect()
    }

    fn limited(&self, device: &str, limit: u64) -> String {
        let Rate { bits_per_s } = self.rate;
        let burst = self.rate.burst();
        format!("qdisc add dev {device} root tbf rate {bits_per_s}bit burst {burst} limit {limit}\n")
    }

    /// The clients' first, the administrators' last.
    fn all_lans(&self) -> Vec<Lan> {
        let pairs = || (1..self.replicas).flat_map(|high| (0..high).map(move |low| Lan::of(low, high)));
        match self.lans {
            Lans::Shared => vec![SHARED, ADMIN],
            Lans::Two => vec![OF_CLIENTS, OF_REPLICAS, ADMIN],
            Lans::Peers => [OF_CLIENTS].into_iter().chain(pairs()).chain([ADMIN]).collect(),
        }
    }

    /// Where all of them are; not counted if there are LANs for each pair, and nobody is dialled there.
    const fn lan_of_replicas(&self) -> Lan {
        match self.lans {
            Lans::Shared => SHARED,
            Lans::Two => OF_REPLICAS,
            Lans::Peers => ADMIN,
        }
    }

    fn nodes(&self) -> Vec<Node> {
        let clients = Node { name: CLIENTS.to_owned(), host: CLIENTS_HOST, is_shaped: false };
        (0..self.replicas).map(node).chain([clients]).collect()
    }

    /// Who is on which LAN.
    fn wires(&self) -> Vec<(Node, Lan)> {
        let on = |lan: Lan| self.nodes().into_iter().map(move |node| (node, lan));
        let is_there = |(node, lan): &(Node, Lan)| lan.has(node);
        self.all_lans().into_iter().flat_map(on).filter(is_there).collect()
    }
}

fn node(replica: u8) -> Node {
    Node { name: format!("replica-{replica}"), host: replica + 1, is_shaped: true }
}

/// What an end at the switch is called: at most 15 letters.
fn port(node: &Node, lan: Lan) -> String {
    format!("{}-{}", &lan.interface()[4..], node.host)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeSet;

    fn plan(lans: Lans) -> Plan {
        Plan::new(Owner::own().expect("tests run on Linux"), 4, lans, Rate { bits_per_s: 10_000_000 })
    }

    #[test]
    fn rates_are_read_as_they_are_written() {
        for text in ["10mbit", "100mbit", "1gbit", "1500kbit"] {
            assert_eq!(Rate::parse(text).map(|rate| rate.to_string()), Ok(text.to_owned()));
        }
        for text in ["", "mbit", "10", "10 mbit", "0mbit", "999kbit", "11gbit", "-1mbit", "99999999999999999999gbit"] {
            assert!(Rate::parse(text).is_err(), "{text}");
        }
        let rate = |text| Rate::parse(text).map(|rate| (rate.burst(), rate.limit()));
        assert_eq!(rate("10mbit"), Ok((5_000, 60_000)));
        assert_eq!(rate("100mbit"), Ok((16_000, 300_000)));
    }

    #[test]
    fn with_two_lans_replicas_have_a_link_on_each_and_clients_one() {
        let plan = plan(Lans::Two);
        let links = plan.links();
        let on = |lan| links.iter().filter(|link| link.lan == lan).map(|link| &*link.node).collect::<Vec<_>>();
        assert_eq!(on("replicas"), ["replica-0", "replica-1", "replica-2", "replica-3"]);
        assert_eq!(on("clients"), ["replica-0", "replica-1", "replica-2", "replica-3", "clients"]);
        assert_eq!(links.len(), 9);
        let [peer, client, admin] = &plan.addresses()[3];
        assert_eq!([&*peer.host, &*client.host, &*admin.host], ["10.77.1.4", "10.77.0.4", "10.77.2.4"]);
    }

    #[test]
    fn with_one_lan_all_share_it() {
        let plan = plan(Lans::Shared);
        assert!(plan.links().iter().all(|link| link.lan == "shared"));
        assert_eq!(plan.links().len(), 5);
        let [peer, client, _] = &plan.addresses()[0];
        assert_eq!((&*peer.host, &peer.host), ("10.77.0.1", &client.host));
        assert_ne!(peer.port, client.port);
    }

    #[test]
    fn each_pair_may_have_a_lan_of_its_own() {
        let plan = plan(Lans::Peers);
        assert_eq!((plan.count(), plan.links().len()), (7, 5 + 12));
        let addresses: BTreeSet<_> = plan.interfaces().iter().flat_map(|(_, script)| added(script)).collect();
        assert_eq!(addresses.len(), 5 + 12 + 5, "each end has one");
        let peers = plan.peers();
        for me in 0..4 {
            assert_eq!(peers[me].iter().map(|peer| usize::from(peer.replica.0)).collect::<Vec<_>>(), others(me));
            for peer in &peers[me] {
                let back = &peers[usize::from(peer.replica.0)];
                let back = back.iter().find(|back| usize::from(back.replica.0) == me).unwrap();
                let dials = peer.dial.as_ref().or(back.dial.as_ref()).map(Address::to_string);
                assert_eq!(dials, peer.listen.or(back.listen).map(|it| it.to_string()));
                assert_eq!(peer.dial.is_some(), back.listen.is_some(), "who does not listen dials");
            }
        }
        let most = |replicas| Plan { replicas, ..plan.clone() };
        assert!(most(PAIRED_MAX).fits() && !most(PAIRED_MAX + 1).fits());
        assert_eq!(most(PAIRED_MAX).count(), 232);
        for (node, lan) in most(PAIRED_MAX).wires() {
            let names = [lan.bridge(), lan.interface(), port(&node, lan)];
            assert!(names.iter().all(|name| name.len() <= 15), "{names:?}");
        }
        for (text, lans) in [("1", Lans::Shared), ("2", Lans::Two), ("peers", Lans::Peers), ("7", Lans::Peers)] {
            assert_eq!(Lans::parse(text), Ok(lans));
        }
        assert!(Lans::parse("0").is_err() && Lans::parse("each").is_err());
    }

    /// Whom a replica has a link with.
    fn others(me: usize) -> Vec<usize> {
        (0..4).filter(|other| *other != me).collect()
    }

    /// The addresses that a script adds.
    fn added(script: &str) -> Vec<String> {
        let of_line = |line: &str| Some(line.strip_prefix("addr add ")?.split(' ').next()?.to_owned());
        script.lines().filter_map(of_line).collect()
    }

    #[test]
    fn links_of_replicas_have_a_rate_at_both_ends_and_no_others() {
        for (lans, ends) in [(Lans::Two, 2 * 4 * 2), (Lans::Shared, 4 * 2), (Lans::Peers, 2 * (4 + 12))] {
            let rates: String = plan(lans).rates().into_iter().map(|(_, script)| script).collect();
            assert_eq!(rates.matches(" root tbf rate 10000000bit burst 5000 limit ").count(), ends);
            assert_eq!(rates.matches(" limit 67108864\n").count(), 4, "where requests wait for replicas");
            assert!(!rates.contains("eth-a") && !rates.contains("-254"), "{rates}");
        }
    }

    #[test]
    fn one_replicas_links_can_be_cut_or_slow() {
        let plan = plan(Lans::Two);
        assert_eq!(plan.cut(3, true), "link set c-4 down\nlink set r-4 down\n");
        let [(switch, at_switch), (own, at_replica)] = plan.changed(0, plan.rate.halved());
        assert_eq!([switch, own], [plan.switch(), plan.replica(0)]);
        let devices = |script: &str| script.matches("qdisc change dev ").count();
        assert_eq!((devices(&at_switch), devices(&at_replica)), (2, 2), "{at_switch}{at_replica}");
        assert_eq!((at_switch + &at_replica).matches("rate 5000000bit ").count(), 4);
    }

    #[test]
    fn every_end_of_a_wire_is_set_up() {
        let plan = plan(Lans::Two);
        let wires = plan.wires().len();
        assert_eq!(wires, 4 + 5 + 5);
        assert_eq!(plan.wiring().matches("type veth").count(), wires);
        let interfaces: String = plan.interfaces().into_iter().map(|(_, script)| script).collect();
        assert_eq!(interfaces.matches("addr add").count(), wires);
        assert_eq!((plan.wiring() + &interfaces).matches("gso_max_segs 1").count(), 2 * wires);
        assert_eq!(plan.namespaces().lines().count(), 6);
    }
}
