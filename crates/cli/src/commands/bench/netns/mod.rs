//! The network laboratory: a cluster on links that have a rate, on one machine, which no packet leaves.
//!
//! A network namespace for each replica, one for the clients, and one for the switch, with a bridge for each LAN and a
//! veth pair for each link. Both ends of a replica's links have a token bucket (`tc tbf`), so that either direction has
//! the rate. Administrators have a LAN without a limit, which is not counted.
//!
//! Replicas are processes in their namespaces. The clients are threads of this process, which moves to theirs. Names
//! carry this process's id ([`super::owner`]): it removes them when it ends, in whichever way, and what a killed one
//! has left the next one removes.

mod counters;
mod names;
mod plan;
mod probe;
mod tools;

use super::owner::Owner;
use crate::failure::{Failure, Result};
use bezant_core::cluster::Limits;
use bezant_core::time::Duration;
use bezant_node::config::{Address, Testnet};
use bezant_perf::figures::Figures;
use bezant_perf::groups::{self, Ran, Setting};
use bezant_perf::laboratory::{Place, Setup, Snapshot};
use bezant_perf::network::Network;
use plan::{Lans, PAIRED_MAX, Plan, Rate};
use std::io;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// Gives a replica's links a rate.
fn set_rate(plan: &Plan, replica: u8, rate: Rate) -> Result {
    let scripts = plan.changed(replica, rate);
    scripts.iter().try_for_each(|(namespace, script)| tools::batch("tc", Some(namespace), script))
}

/// What the command line says about it.
#[derive(clap::Args)]
#[group(id = "network")]
pub(super) struct Arguments {
    /// Measure in a network of namespaces on this machine, whose links have a rate. Needs Linux, root and iproute2
    #[arg(long)]
    netns: bool,
    /// What each link of a replica carries in each direction, such as 10mbit or 1gbit
    #[arg(long, requires = "netns", default_value = "100mbit", value_parser = Rate::parse)]
    rate: Rate,
    /// 2: one LAN for clients and one for replicas; 1: a single one for all; peers: one for clients and one for each
    /// pair of replicas
    #[arg(long, requires = "netns", default_value = "2", value_parser = Lans::parse)]
    lans: Lans,
    /// How long clients wait for an answer before they suspect somebody; replicas wait four times as long [default:
    /// ten times what a leader needs to pass on all that is under way, and 500 at least]
    #[arg(long, value_name = "MS", requires = "netns", value_parser = clap::value_parser!(u64).range(1..=600_000))]
    patience: Option<u64>,
}

impl Arguments {
    /// Whether a laboratory is wanted.
    pub(super) const fn is_there(&self) -> bool {
        self.netns
    }
}

/// The laboratory, if there is one: a signal may remove it at any time.
#[derive(Clone, Default)]
pub(super) struct Laboratory(Arc<Mutex<Option<Built>>>);

/// What is there.
#[derive(Clone)]
struct Built {
    plan: Plan,
    setup: Setup,
}

impl Laboratory {
    fn lock(&self) -> MutexGuard<'_, Option<Built>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Builds it for so many replicas, if it is wanted, measures a link, and moves the calling thread to the clients.
    pub(super) fn build(&self, arguments: &Arguments, replicas: usize) -> Result {
        if !arguments.netns {
            return Ok(());
        }
        if !rustix::process::geteuid().is_root() {
            return Err(Failure::usage("--netns needs root, for it makes network namespaces: run it with sudo."));
        }
        let owner = Owner::own().ok_or_else(|| Failure::failed("--netns needs /proc."))?;
        // A link is measured between two.
        let plan = Plan::new(owner, replicas.max(2) as u8, arguments.lans, arguments.rate);
        if !plan.fits() {
            return Err(Failure::usage(format!("--lans peers has addresses for {PAIRED_MAX} replicas.")));
        }
        let links = plan.links().into_iter().map(|link| Place { node: link.node, lan: link.lan }).collect();
        let setup = Setup {
            lans: plan.count(),
            rate_bits_per_s: plan.rate.bits_per_s,
            link_goodput_bits_per_s: 0,
            client_retry_ms: arguments.patience,
            links,
        };
        eprintln!("network: {replicas} replicas, LANs: {}, {} for each link", plan.lans, plan.rate);
        {
            // Nobody can remove it while it is half built.
            let mut built = self.lock();
            *built = Some(Built { plan: plan.clone(), setup });
            clear_up()?;
            construct(&plan)?;
        }
        let [zero, one] = plan.two();
        let end = |replica, address| probe::End { namespace: plan.replica(replica), address };
        let goodput = probe::goodput([end(0, zero), end(1, one)])?;
        eprintln!("network: a link carries {:.3} Mbit/s of data in each direction", goodput as f64 / 1e6);
        self.with(|built| built.setup.link_goodput_bits_per_s = goodput)?;
        tools::enter(&plan.clients())
    }

    /// Removes it, if it is there. Processes that are in it should have ended.
    pub(super) fn remove(&self) {
        if let Some(Built { plan, .. }) = self.lock().take()
            && let Err(failure) = tools::remove(&plan.existing())
        {
            failure.report();
        }
    }

    /// The addresses that replicas have in it, and patience enough for so many bytes under way.
    pub(super) fn place(&self, options: Testnet, under_way_bytes: usize) -> Testnet {
        match &*self.lock() {
            None => options,
            Some(Built { plan, setup }) => {
                let mut addresses = plan.addresses();
                addresses.truncate(options.replicas);
                let mut peers = plan.peers();
                peers.truncate(options.replicas);
                peers.iter_mut().for_each(|links| links.retain(|link| usize::from(link.replica.0) < options.replicas));
                let client_retry = setup.client_retry_ms(options.replicas, under_way_bytes);
                let limits = patient(options.limits, Duration::from_millis(client_retry));
                Testnet { addresses, peers, limits, ..options }
            }
        }
    }

    /// The words before a replica's command line that start it in its namespace.
    pub(super) fn launchers(&self, replicas: usize) -> Vec<Vec<String>> {
        let launcher = |plan: &Plan, replica| {
            let words = ["ip", "netns", "exec"].map(str::to_owned);
            words.into_iter().chain([plan.replica(replica)]).collect()
        };
        let of_all = |built: &Built| (0..replicas as u8).map(|replica| launcher(&built.plan, replica)).collect();
        self.lock().as_ref().map(of_all).unwrap_or_default()
    }

    /// Cuts a replica's links, or makes them whole.
    pub(super) fn cut(&self, replica: u8, is_cut: bool) -> Result {
        let plan = self.plan()?;
        tools::batch("ip", Some(&plan.switch()), &plan.cut(replica, is_cut))
    }

    /// Halves the rate of a replica's links, or restores it.
    pub(super) fn slow(&self, replica: u8, is_slow: bool) -> Result {
        let plan = self.plan()?;
        set_rate(&plan, replica, if is_slow { plan.rate.halved() } else { plan.rate })
    }

    /// The words of the command line that build it; `None` outside of one.
    pub(super) fn words(&self) -> Option<String> {
        let built = self.lock();
        let Built { plan, setup } = built.as_ref()?;
        let patience = setup.client_retry_ms.map_or_else(String::new, |ms| format!(" --patience {ms}"));
        Some(format!("--netns --rate {} --lans {}{patience}", plan.rate, plan.lans))
    }

    fn plan(&self) -> Result<Plan> {
        let built = self.lock();
        let plan = built.as_ref().map(|built| built.plan.clone());
        plan.ok_or_else(|| Failure::usage("this takes a network of its own: add --netns."))
    }

    /// Measures a group, on links of this rate if it wants some.
    pub(in super::super) fn measure_group(&self, setting: &Setting) -> io::Result<Ran> {
        let places = setting.mbit.map_or_else(|| Ok(Vec::new()), |mbit| self.places(setting.n, mbit));
        let places = places.map_err(|failure| io::Error::other(failure.to_string()))?;
        groups::measure(setting, &places)
    }

    /// Where processes run, on links of so many Mbit/s.
    fn places(&self, processes: usize, mbit: u64) -> Result<Vec<groups::Place>> {
        let plan = self.plan()?;
        if plan.lans == Lans::Peers {
            return Err(Failure::usage("a process of a group has one address: leave out --lans peers."));
        }
        let rate = Rate { bits_per_s: mbit * 1_000_000 };
        (0..processes as u8).try_for_each(|replica| set_rate(&plan, replica, rate))?;
        let place = |(replica, [among_replicas, ..]): (u8, [Address; 3])| {
            let namespace = plan.replica(replica);
            let enter = move || tools::enter(&namespace).map_err(|failure| io::Error::other(failure.to_string()));
            let address = among_replicas.host.parse().expect("the plan has addresses of IPv4");
            groups::Place { address, enter: Box::new(enter) }
        };
        Ok((0..processes as u8).zip(plan.addresses()).map(place).collect())
    }

    /// What is counted now; `None` outside of a laboratory.
    pub(super) fn snapshot(&self) -> Result<Option<Snapshot>> {
        let built = self.lock().clone();
        built.map(|Built { plan, .. }| counters::snapshot(&plan.switch(), &plan.links())).transpose()
    }

    /// What to add to the figures of what happened between two snapshots.
    pub(super) fn network(&self, before: &Snapshot, after: &Snapshot, figures: &Figures) -> Result<Network> {
        self.with(|built| built.setup.network(before, after, figures))
    }

    fn with<T>(&self, act: impl FnOnce(&mut Built) -> T) -> Result<T> {
        self.lock().as_mut().map(act).ok_or_else(|| Failure::failed("interrupted."))
    }
}

/// Removes what killed processes have left behind, unless somebody else does so just now.
fn clear_up() -> Result {
    tools::remove(&names::leftovers()).or_else(|failure| match names::leftovers().is_empty() {
        true => Ok(()),
        false => Err(failure),
    })
}

/// Time-outs of links on which requests have to wait.
fn patient(limits: Limits, client_retry: Duration) -> Limits {
    let view_timeout = limits.view_timeout.max(Duration(4 * client_retry.0));
    let view_timeout_max = limits.view_timeout_max.max(view_timeout);
    Limits { client_retry, view_timeout, view_timeout_max, ..limits }
}

/// Everything, from namespaces to rates.
fn construct(plan: &Plan) -> Result {
    tools::batch("ip", None, &plan.namespaces())?;
    tools::batch("ip", Some(&plan.switch()), &plan.wiring())?;
    for (namespace, script) in plan.interfaces() {
        tools::batch("ip", Some(&namespace), &script)?;
    }
    for (namespace, script) in plan.rates() {
        tools::batch("tc", Some(&namespace), &script)?;
    }
    Ok(())
}
