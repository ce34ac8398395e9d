//! One seed decides everything: here it is turned into the plain data of a run.
//!
//! Swarm testing: besides the sizes of things, every seed decides which features it has at all, because a run in
//! which everything happens hides what happens only when little else does. Each part draws from a stream of its own,
//! and nothing is drawn less because a feature is off, so that [`Feature`]s can be switched off one by one when a
//! failing run is shrunk.

use crate::byzantine::{Adversary, Asynchrony, Cast, Choice};
use crate::clock::Clock;
use crate::disk::DiskProfile;
use crate::feature::Feature;
use crate::network::{Cut, PROCESSES_MAX, Profile};
use crate::options::ScenarioOptions;
use crate::rng::Rng;
use crate::schedule::{self, Ambush, Fault};
use crate::size::{self, Size};
use crate::store::{Dissent, ServiceKind};
use crate::workload::Plan;
use bezant_core::cluster::{ClientAuth, Coin, Limits};
use bezant_core::ids::ReplicaId;
use bezant_core::schedule::{Order, Part, Protocol, Quota};
use bezant_core::time::Duration;
use std::collections::BTreeSet;

/// Everything about a run, as plain data.
#[derive(Clone, Debug)]
pub struct Scenario {
    /// Where it came from.
    pub seed: u64,
    /// The features that it has.
    pub features: BTreeSet<Feature>,
    /// How big it is.
    pub size: Size,
    /// What runs.
    pub protocol: Protocol,
    /// What is replicated.
    pub service: ServiceKind,
    /// Replicas.
    pub n: usize,
    /// Faults tolerated.
    pub f: usize,
    /// How clients authenticate.
    pub client_auth: ClientAuth,
    /// What RITAS tosses.
    pub coin: Coin,
    /// How long Backups last.
    pub quota: Quota,
    /// Small bounds, so that every edge is met within a few dozen requests.
    pub limits: Limits,
    /// What the liars do; `None`: everybody is honest.
    pub adversary: Option<Adversary>,
    /// What each of them does.
    pub cast: Cast,
    /// The Byzantine replicas: at most f, less those that lose their disks. One whose disk is put back is among them.
    pub liars: BTreeSet<ReplicaId>,
    /// Links.
    pub network: Profile,
    /// Disks.
    pub disk: DiskProfile,
    /// One clock per process, replicas first.
    pub clocks: Vec<Clock>,
    /// Microseconds that a replica gathers inputs before the pass ends; 0: every input is a pass of its own.
    pub pass: u64,
    /// Microseconds that requests of one identity wait for one another, to be signed together; `None`: each client
    /// signs for itself.
    pub client_pass: Option<u64>,
    /// What the clients do.
    pub plan: Plan,
    /// The faults of the first phase, by time.
    pub faults: Vec<(u64, Fault)>,
    /// The faults of the first phase that wait for a moment.
    pub ambushes: Vec<Ambush>,
    /// Microseconds of the first phase.
    pub safety: u64,
    /// Most microseconds that the second phase may take.
    pub liveness: u64,
    /// Replicas that stay dead in the second phase, liars among them.
    pub outsiders: BTreeSet<ReplicaId>,
}

/// Time for a state transfer from silent liars, in microseconds: its time-outs do not scale with the limits.
const TRANSFER: u64 = 60_000_000;

/// The longest wait for others' requests, as a part of `Limits::client_retry`.
const CLIENT_PASS_PARTS: u64 = 8;

/// How much longer the first phase of a run is in which instances are measured.
const BUSY_TIMES: u64 = 8;

impl Scenario {
    /// Draws the run that the options name.
    pub fn draw(options: &ScenarioOptions) -> Self {
        let seed = options.seed;
        let size = options.size.unwrap_or_else(|| Size::of(seed));
        let may_be_calm = matches!(options.adversary, Choice::All | Choice::Nobody);
        let calm = may_be_calm && size.is_calm(seed, options.protocol);
        let (n, f) = options.replicas();
        let features = draw_features(options, size, calm);
        let has = |feature| features.contains(&feature);

        let strangers = has(Feature::DynamicClients);
        let adversary = draw_adversary(options, size, calm, &has);
        let is_busy = is_busy(options, calm, adversary);
        let mut places: Vec<ReplicaId> = (0..n as u8).map(ReplicaId).collect();
        Rng::stream(seed, "places").shuffle(&mut places);
        let (liars, amnesiac) = draw_faulty(&places, f, adversary, &has);
        let cast = Cast::draw(options, size, adversary, &liars).crowding(seed, calm);

        let network = draw_network(seed, &has);
        let disk = draw_disk(seed, &has);
        let limits = size.members(seed, draw_members(seed, size.clocks(draw_limits(seed, &network, &disk))));
        let clocks = draw_clocks(seed, has(Feature::Clocks));
        let mut rng = Rng::stream(seed, "phases");
        let times = if is_busy { BUSY_TIMES } else { 1 };
        let safety = times * limits.view_timeout.0 * size.spans(rng.between(6, 24));
        let pass = rng.between(1, 2 * network.delay_min + 1) * u64::from(has(Feature::Passes));
        let limits = if has(Feature::SmallLimits) { size::small_limits(seed, options.service, limits) } else { limits };
        let patient = |limits| size::calm_limits((seed, options.protocol), (n, f), &network, &disk, pass, limits);
        let limits = if calm { patient(limits) } else { limits };
        let spare = f - liars.len() - usize::from(amnesiac.is_some());
        let outsiders = draw_outsiders(seed, &places[n - 1 - spare..n - 1], &liars, &has);
        let plan = draw_plan(seed, size, safety, &limits, &has);
        let plan = if is_busy { plan.busy() } else { plan }.with_requests_max(options.requests);
        let patience = limits.view_timeout.0;
        let blackout = schedule::draw_blackout(seed, safety, patience, &has);
        let safety = safety + blackout.map_or(0, |(_, span)| span);
        let put_back = liars.first().copied().filter(|_| has(Feature::OldDisk) && has(Feature::Crashes));
        let places = schedule::Places { n, liars: &liars, amnesiac, put_back };
        let mut faults = size.faults(seed, patience, schedule::draw(seed, safety, patience, &places, &has));
        faults.extend(schedule::draw_unrest(seed, safety, limits.client_retry.0, n, &has));
        faults.extend(blackout.map(|(at, span)| (at, Fault::Cut(Cut::All, span))));
        faults.sort_by_key(|(at, _)| *at);
        let drawn = Self {
            seed,
            size,
            protocol: options.protocol,
            service: options.service,
            n,
            f,
            client_auth: draw_auth((seed, calm), options.protocol, adversary, cast.client, strangers),
            coin: draw_coin(options),
            quota: draw_quota(seed, has(Feature::Unrest), is_busy),
            adversary,
            cast,
            network,
            disk,
            clocks,
            pass,
            client_pass: draw_client_pass(seed, &limits, has(Feature::SharedSignatures)),
            faults,
            ambushes: schedule::draw_ambushes(seed, patience, n, &has),
            safety,
            liveness: longest_second_phase(&plan, &limits, adversary),
            plan,
            outsiders,
            features,
            limits,
            liars,
        };
        drawn.without_what_uses_up_places(options.adversary)
    }
}

impl Scenario {
    /// Where requests are disputed, a liar that testifies falsely may use up the few places for rulings that small
    /// windows have (see [`bezant_core::dissent`]): they meet only where it is asked for by name. The smallest window
    /// has one place, which a single request that is disputed twice uses up.
    fn without_what_uses_up_places(mut self, choice: Choice) -> Self {
        let testifies = |parts: &Vec<Adversary>| parts.contains(&Adversary::FalseTestimony);
        let meets_liar = matches!(choice, Choice::All) && self.cast.replicas.values().any(testifies);
        if meets_liar || self.limits.checkpoint_interval < 2 {
            self.features.remove(&Feature::Dissent);
        }
        self
    }

    /// How a replica executes some requests otherwise than others do, if it does.
    pub fn dissent_of(&self, replica: ReplicaId) -> Option<Dissent> {
        self.features.contains(&Feature::Dissent).then(|| Dissent::draw(self.seed, replica))
    }

    /// Whether a client names requests as waiting that nobody can serve, where replicas judge by that: it can have an
    /// instance left as often as it likes (what liars can do, in [`bezant_core::compositions::robust`]).
    fn names_in_vain(&self) -> bool {
        match self.adversary {
            Some(Adversary::FeedbackLies) => true,
            Some(Adversary::PartialMacs | Adversary::LopsidedClient) => self.protocol.is_robust(),
            _ => false,
        }
    }

    /// Whether nothing but clients may be wrong, and no message takes longer than what the time-outs of Ring allow for:
    /// 4n + f hops, with a sync at each, in twice the time after which a client repeats itself.
    pub fn is_calm(&self) -> bool {
        let Profile { delay_min, jitter, loss, reordering, rate, .. } = self.network;
        let hop = delay_min + jitter + self.disk.sync_max + self.pass;
        self.faults.is_empty()
            && self.ambushes.is_empty()
            && self.liars.is_empty()
            && self.outsiders.is_empty()
            && !self.features.contains(&Feature::Clocks)
            && !self.features.contains(&Feature::Dissent)
            && (loss, reordering, rate) == (0, false, 0)
            && self.adversary.is_none_or(Adversary::is_a_client)
            && !self.names_in_vain()
            && (4 * self.n + self.f) as u64 * hop <= 2 * self.limits.client_retry.0
    }
}

/// What RITAS tosses: where nobody says it, a common coin in one seed of four.
fn draw_coin(options: &ScenarioOptions) -> Coin {
    let is_common = || options.protocol.has_ritas() && Rng::stream(options.seed, "coin").below(4) == 0;
    options.coin.unwrap_or_else(|| if is_common() { Coin::Common } else { Coin::Local })
}

/// Who lies, if anybody does.
fn draw_adversary(
    options: &ScenarioOptions,
    size: Size,
    calm: bool,
    has: &impl Fn(Feature) -> bool,
) -> Option<Adversary> {
    let ScenarioOptions { seed, protocol, adversary, .. } = *options;
    let strangers = has(Feature::DynamicClients);
    match calm {
        true => adversary.resolve_calm(seed, size, protocol, strangers),
        false => adversary.resolve(seed, size, protocol, strangers, has(Feature::Partings)),
    }
}

/// Whether there is so much to do that what Backups and Quorum are worth can be measured: where nobody lies.
fn is_busy(options: &ScenarioOptions, calm: bool, adversary: Option<Adversary>) -> bool {
    let protocol = options.protocol;
    calm && adversary.is_none() && protocol.is_robust() && protocol.schedule().parts().contains(&Part::Quorum)
}

/// The features that a run has: each in about half of them, unless something speaks against it.
fn draw_features(options: &ScenarioOptions, size: Size, calm: bool) -> BTreeSet<Feature> {
    let mut rng = Rng::stream(options.seed, "features");
    let mut drawn: BTreeSet<Feature> = Feature::ALL.iter().copied().filter(|_| rng.coin()).collect();
    if matches!(options.adversary, Choice::Only(adversary) if adversary.needs_strangers()) {
        drawn.insert(Feature::DynamicClients);
    }
    // One server alone tolerates nothing and keeps nothing: it must not stop.
    let stops = [Feature::PowerCut, Feature::Crashes, Feature::FailedSyncs];
    let spared = |feature| match feature {
        Feature::DynamicClients => !options.protocol.lets_clients_join(),
        Feature::Expiry => options.service == ServiceKind::Sql,
        feature => options.protocol == Protocol::Unreplicated && stops.contains(&feature),
    };
    // They cost more than others, and a run without them may get further.
    let spared_partings = Rng::stream(options.seed, "partings at all").below(4) > 0;
    let spared_closing = Rng::stream(options.seed, "closing at all").below(4) > 0;
    let spared_dissent = Rng::stream(options.seed, "dissent at all").below(4) > 0 || !options.protocol.orders_by_pbft();
    // Who is undone as it joins is nobody: that changes what of a history is executed, which runs are checked for.
    let spared_dissent = spared_dissent || drawn.contains(&Feature::DynamicClients);
    drawn.retain(|feature| {
        let unfit = *feature == Feature::Partings && spared_partings
            || *feature == Feature::Dissent && spared_dissent
            || *feature == Feature::Closing && spared_closing
            || calm && feature.is_noise()
            || size == Size::First && feature.is_later();
        !unfit && !spared(*feature) && !options.without.contains(feature)
    });
    drawn
}

/// Who stays dead in the second phase, of those that may.
fn draw_outsiders(
    seed: u64,
    spare: &[ReplicaId],
    liars: &BTreeSet<ReplicaId>,
    has: &impl Fn(Feature) -> bool,
) -> BTreeSet<ReplicaId> {
    let liars_leave = has(Feature::Partings) && Rng::stream(seed, "liars leave").below(4) > 0;
    let correct = spare.iter().filter(|_| has(Feature::Outsiders));
    correct.chain(liars.iter().filter(|_| liars_leave)).copied().collect()
}

fn draw_clocks(seed: u64, differ: bool) -> Vec<Clock> {
    let mut rng = Rng::stream(seed, "clocks");
    let drawn = (0..PROCESSES_MAX).map(|_| Clock::draw(&mut rng, 40_000, 200));
    drawn.map(|clock| if differ { clock } else { Clock::default() }).collect()
}

fn draw_plan(seed: u64, size: Size, safety: u64, limits: &Limits, has: &impl Fn(Feature) -> bool) -> Plan {
    let plan = size.plan(Plan::draw(seed, safety, limits, has));
    // Who has logged what differs most while much is under way.
    let hurry = if has(Feature::Partings) { 8 } else { 1 };
    let plan = Plan { think: plan.think / hurry, ..plan };
    // An identity with more sessions than it may have.
    let crowded = has(Feature::SmallLimits) && Rng::stream(seed, "crowd").coin();
    if crowded { Plan { identities: 1, ..plan } } else { plan }
}

/// Message delays in which a request is answered, however they are distributed: a round of agreement has thirty or so,
/// and there may be several.
const DELAYS_PER_REQUEST: u64 = 400;

/// The longest that the second phase may take, in microseconds.
fn longest_second_phase(plan: &Plan, limits: &Limits, adversary: Option<Adversary>) -> u64 {
    let is_slow = adversary == Some(Adversary::Asynchrony);
    let slow = u64::from(is_slow) * Asynchrony::most(limits.view_timeout_max.0);
    TRANSFER
        + slow * DELAYS_PER_REQUEST * (plan.requests_total() + 1)
        + 120 * limits.view_timeout_max.0
        + 4 * plan.requests_total() * limits.view_timeout.0
        + plan.strangers * longest_turn(limits)
}

/// The longest that those who may not join yet wait for somebody's place after its last use, in microseconds. Places
/// are few: they may have to take turns. A faulty primary may let the agreed time lag behind.
fn longest_turn(limits: &Limits) -> u64 {
    limits.session_stale_after.0.max(2 * limits.cookie_lifetime.0) + 2 * limits.clock_skew_max.0
}

/// No more than a client's patience allows for: most of that is for those who answer.
fn draw_client_pass(seed: u64, limits: &Limits, is_shared: bool) -> Option<u64> {
    let span = Rng::stream(seed, "client pass").between(1, limits.client_retry.0 / CLIENT_PASS_PARTS);
    is_shared.then_some(span)
}

/// Short Backups, so that a run sees many instances. Where instances are to fail one after the other, they often end at
/// once. Where they are to be measured, one that is long enough for that.
fn draw_quota(seed: u64, unrest: bool, is_busy: bool) -> Quota {
    let mut rng = Rng::stream(seed, "quota");
    if is_busy {
        return Quota::Fixed(rng.between(60, 100));
    }
    let k = rng.between(1, 6);
    if unrest && Rng::stream(seed, "end at once").coin() {
        return Quota::Fixed(1);
    }
    *rng.pick(&[Quota::Fixed(k), Quota::Exponential { minimum: k }, Quota::Flattened { minimum: k, patience: 2 }])
}

/// The Byzantine replicas, and the one that loses its disk or a record of it: at most f together.
fn draw_faulty(
    places: &[ReplicaId],
    f: usize,
    adversary: Option<Adversary>,
    has: &impl Fn(Feature) -> bool,
) -> (BTreeSet<ReplicaId>, Option<ReplicaId>) {
    let forgets = has(Feature::Crashes) && (has(Feature::LostDisk) || has(Feature::Rot));
    let amnesiac = places.last().copied().filter(|_| forgets && f > 0);
    let budget = f - usize::from(amnesiac.is_some());
    let corrupts = adversary.is_some_and(Adversary::corrupts_replicas);
    // An adversary that was asked for comes before the lost disk.
    let (amnesiac, budget) = if corrupts && budget == 0 { (None, f) } else { (amnesiac, budget) };
    let liars = if corrupts {
        budget
    } else {
        // An old disk needs no adversary: an honest replica that speaks from it is a liar.
        budget.min(usize::from(has(Feature::OldDisk) && has(Feature::Crashes)))
    };
    (places[..liars.min(places.len())].iter().copied().collect(), amnesiac)
}

fn draw_auth(
    (seed, calm): (u64, bool),
    protocol: Protocol,
    adversary: Option<Adversary>,
    client: Option<Adversary>,
    strangers: bool,
) -> ClientAuth {
    let drawn = *Rng::stream(seed, "auth").pick(&[ClientAuth::Hybrid, ClientAuth::Signature, ClientAuth::Mac]);
    // Plain MACs give way to a proof that is valid for the primary only (pbft-F20), whoever spoils it. That costs a
    // view now and then, so it is tried now and then, and never where no view may be lost.
    let spoils = client.is_some() || adversary == Some(Adversary::Tamper);
    let is_tried = !calm && Rng::stream(seed, "spoilt MACs").per_mille(250);
    // Where every request has to convince everybody there are no plain MACs.
    let signs = protocol.schedule().parts().contains(&Part::Backup(Order::Ritas));
    if drawn == ClientAuth::Mac && (signs || strangers || spoils && !is_tried) { ClientAuth::Hybrid } else { drawn }
}

fn draw_network(seed: u64, has: &impl Fn(Feature) -> bool) -> Profile {
    let mut rng = Rng::stream(seed, "links");
    let drawn = Profile {
        delay_min: rng.between(50, 800),
        jitter: rng.between(0, 3_000),
        loss: rng.between(1, 150),
        duplication: rng.between(1, 150),
        reordering: true,
        rate: rng.between(200, 4_000),
    };
    Profile {
        loss: if has(Feature::Loss) { drawn.loss } else { 0 },
        duplication: if has(Feature::Duplication) { drawn.duplication } else { 0 },
        reordering: has(Feature::Reordering),
        rate: if has(Feature::Rate) { drawn.rate } else { 0 },
        ..drawn
    }
}

fn draw_disk(seed: u64, has: &impl Fn(Feature) -> bool) -> DiskProfile {
    let mut rng = Rng::stream(seed, "disks");
    let slow = DiskProfile { sync_min: 100, sync_max: rng.between(500, 5_000), snapshot: rng.between(1_000, 40_000) };
    if has(Feature::SlowDisk) { slow } else { DiskProfile { sync_min: 1, sync_max: 50, snapshot: 500 } }
}

/// Few places for members, short times: evictions, takeovers and old cookies are met within a run.
fn draw_members(seed: u64, limits: Limits) -> Limits {
    let mut rng = Rng::stream(seed, "members");
    let patience = limits.view_timeout.0;
    Limits {
        members_max: rng.between(2, 5) as usize,
        session_stale_after: Duration(200_000 + patience * rng.between(4, 20)),
        takeover_interval: Duration(limits.client_retry.0 * rng.between(2, 8)),
        cookie_lifetime: Duration(2 * limits.clock_skew_max.0 + patience * rng.between(2, 8)),
        ..limits
    }
}

fn draw_limits(seed: u64, network: &Profile, disk: &DiskProfile) -> Limits {
    let mut rng = Rng::stream(seed, "limits");
    // A round trip with a sync at both ends, several times over: time-outs shorter than that only measure themselves.
    let round = 2 * (network.delay_min + network.jitter + disk.sync_max) + 1_000;
    let view_timeout = Duration(round * rng.between(6, 20));
    Limits {
        checkpoint_interval: rng.between(4, 8),
        batch_requests_max: rng.between(1, 8) as usize,
        batches_in_flight_max: rng.between(1, 4),
        inline_bytes_max: *rng.pick(&[40, 64, 1024]),
        operation_bytes_max: 4096,
        batch_bytes_max: *rng.pick(&[128, 1024, 1 << 16]),
        pending_requests_max: rng.between(16, 64) as usize,
        pending_reads_max: rng.between(16, 64) as usize,
        view_timeout,
        view_timeout_max: Duration(view_timeout.0 * rng.between(2, 8)),
        status_interval: Duration(round * rng.between(1, 4)),
        client_retry: Duration(round * rng.between(2, 8)),
        log_bytes_per_snapshot: *rng.pick(&[1_000, 8_000, 1 << 30]),
        transfer_requests_max: rng.between(1, 8) as usize,
        ring_slow_after: Duration(2 * round),
        ring_stop_after: Duration(Rng::stream(seed, "slow rings").below(2) * 3 * round),
        history_interval: Rng::stream(seed, "history").between(3, 9),
        ..Limits::default()
    }
}
