//! Who sends what is of no use is read last, and little of it.
//!
//! Each party has an account for each [`Cause`], charged in time: what failed verification, what was of no use by
//! bytes, and what floods. There is a party for each replica, each client by its key, and one for all clients together.
//! An account may be overdrawn by [`CREDIT`]. Whoever overdraws one is in *quarantine* until all of them are paid off:
//! its links are read after everybody else's, up to a ration ([`RATION_BYTES`], [`RATION_FRAMES`] in
//! [`RATION_PERIOD`]), and nobody is woken for them before the next. What is not read fills the system's buffers, and
//! then the other side's. A ration of bad frames costs more than is paid off meanwhile, so that a quarantine lasts as
//! long as its cause, and no account owes more than [`DEBT_MAX`], so that it ends soon after. Nobody is cut off: who is
//! judged wrongly is late, and heard. A replica has a small ration ([`RATION_FRAMES_OF_REPLICA`]), as the others go on
//! without it: two votes for each of fifty batches a second.
//!
//! - **Failed verifications**: a correct sender gives no cause for any, so few are enough, and of a replica ten.
//! - **Useless bytes**: with [`FRAME_BYTES`] for each frame. Correct parties do send some: votes that are said again,
//!   requests that come too late or find no room. What is merely early or late costs a replica nothing, since the whole
//!   load comes to somebody who is behind like that. For a client each byte of use pays for [`USELESS_PER_USEFUL`]
//!   others, so that whoever is served, however slowly, does not owe anything for asking again.
//! - **Flood**: a replica's frames beyond [`EXCESS_RATIO`] times all else that came from anybody, or was sent to
//!   others, in the same time. Aardvark compares a replica's with what the others sent. That alone would be wrong here:
//!   in a ring all comes from one neighbour, and pages of state from whoever is asked for them. But what is of use
//!   leads to something that is sent, or follows from it; and what comes to a replica that is behind comes from several
//!   others. Bytes are not compared: one page may be a thousand times as long as what asks for it, and long frames cost
//!   little for each byte.
//! - **Signatures**: those that had to be checked for what a replica sent, beyond [`SIGNATURES_RATIO`] times those for
//!   what all other replicas did in the same time. Each takes as long as ten other messages, and none need be wrong:
//!   there is always a later view to leave for. What counts are statements that a correct replica signs when all do, as
//!   VIEW-CHANGEs and checkpoints, and not what it signs with each batch
//!   ([`bezant_core::auth::Signable::WITH_EACH_BATCH`]) or clients do.
//!
//! While the account of all clients is overdrawn, those only have the usual share that are *known good*: whom the
//! cluster file names, and strangers of whom something was accepted before, and lately; without a quarantine of their
//! own. So keys that cost nothing drown nobody else.

use super::super::handshake::Peer;
use super::super::worth::Worth;
use super::account::Account;
use bezant_core::ids::{Principal, PublicKey, ReplicaId};
use std::collections::BTreeMap;
use std::fmt;
use std::time::{Duration, Instant};

/// How far an account may be overdrawn.
const CREDIT: Duration = Duration::from_secs(10);
/// What an account owes at most: a quarantine ends so soon after its cause.
const DEBT_MAX: Duration = Duration::from_secs(20);
/// The price of a failed verification: 10 a second, and 100 at once.
const FAILED: Duration = Duration::from_millis(100);
/// Of a replica: one a second, and 10 at once.
const FAILED_OF_REPLICA: Duration = Duration::from_secs(1);
/// For all clients together: 100 a second, and 1,000 at once.
const FAILED_OF_ALL: Duration = Duration::from_millis(10);
/// Useless bytes that are free in a second; ten times as many at once.
const USELESS_BYTES: u32 = 1 << 20;
/// For all clients together: so many times as many.
const USELESS_OF_ALL: u32 = 4;
/// What a useless frame costs besides its bytes, in bytes: it was read, and its MAC checked.
const FRAME_BYTES: usize = 1 << 10;
/// Useless bytes of a client for which a useful one pays.
const USELESS_PER_USEFUL: u32 = 8;
/// The price of a frame beyond [`EXCESS_RATIO`]: 10,000 a second, and 100,000 at once. They take a twentieth of a core.
const EXCESS_FRAME: Duration = Duration::from_micros(100);
/// How many times all else the frames of one replica may be.
const EXCESS_RATIO: u64 = 20;
/// The price of a signature beyond [`SIGNATURES_RATIO`]: 100 a second, and 1,000 at once.
const SIGNATURE: Duration = Duration::from_millis(10);
/// How many times those of all other replicas the signatures of one may be.
const SIGNATURES_RATIO: u64 = 4;
/// What comes of a replica in quarantine costs so many times as much, and each frame of a flood counts so many times: a
/// ration of it is as much less than that of all clients, and still more than is paid off.
const GOES_ON: u32 = 16;
/// Clients with debts that are remembered, besides those that the cluster file names. Who owes least gives way, and
/// first of all whoever is not known.
pub(super) const DEBTORS_MAX: usize = 1024;
/// Strangers that are remembered because something of theirs was accepted. Who has been known for the shortest time
/// gives way: keys that cost nothing push out one another.
pub(super) const KNOWN_MAX: usize = 1024;
/// How long they are.
const KNOWN_FOR: Duration = Duration::from_secs(600);
/// How often that is noted anew.
const KNOWN_AGAIN: Duration = Duration::from_secs(1);
/// For how long a ration is: of each replica in quarantine, and of all such clients together.
const RATION_PERIOD: Duration = Duration::from_millis(10);
/// Bytes of a ration: 1.6 MB a second. A read may take a little more, and that is missing later.
const RATION_BYTES: i64 = 16 << 10;
/// Frames of a ration, for all clients: 1,600 a second.
const RATION_FRAMES: i64 = 16;
/// Of a replica: 100 a second.
const RATION_FRAMES_OF_REPLICA: i64 = 1;

/// Why somebody is in quarantine.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Cause {
    /// MACs, signatures and proofs that do not hold, and bytes that are no message.
    FailedVerifications,
    /// Frames that were rejected.
    UselessBytes,
    /// More frames than all else is in proportion to.
    Flood,
    /// More signatures than those of others are in proportion to.
    Signatures,
}

impl Cause {
    const ALL: [Self; 4] = [Self::FailedVerifications, Self::UselessBytes, Self::Flood, Self::Signatures];

    /// A stable name in snake case.
    pub const fn label(self) -> &'static str {
        match self {
            Self::FailedVerifications => "failed_verifications",
            Self::UselessBytes => "useless_bytes",
            Self::Flood => "flood",
            Self::Signatures => "signatures",
        }
    }
}

impl fmt::Display for Cause {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::FailedVerifications => "MACs, signatures or proofs that do not hold",
            Self::UselessBytes => "bytes that are of no use",
            Self::Flood => "more messages than all others together account for",
            Self::Signatures => "more signatures than all others together account for",
        })
    }
}

/// A party in quarantine.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Quarantine {
    /// Who; `None`: all clients that are not known good. An identity stands for all its sessions.
    pub party: Option<Principal>,
    /// Since when.
    pub since: Instant,
    /// Why.
    pub cause: Cause,
}

/// What may still be read of somebody.
#[derive(Clone, Copy, Debug, Default)]
struct Ration {
    /// When the next one is due.
    next: Option<Instant>,
    bytes: i64,
    frames: i64,
}

impl Ration {
    /// Bytes and frames that are left, of so many at a time. What was taken too much of is made up for first.
    fn left(&mut self, frames: i64, now: Instant) -> Option<(usize, usize)> {
        if self.next.is_none_or(|next| now >= next) {
            let periods = self.next.map_or(1, |next| 1 + (now - next).as_micros() / RATION_PERIOD.as_micros());
            let bytes = i64::try_from(periods).unwrap_or(i64::MAX).saturating_mul(RATION_BYTES);
            self.bytes = self.bytes.saturating_add(bytes).min(RATION_BYTES);
            self.frames = frames;
            self.next = Some(now + RATION_PERIOD);
        }
        let positive = |count: i64| usize::try_from(count).ok().filter(|count| *count > 0);
        Some((positive(self.bytes)?, positive(self.frames)?))
    }

    /// For how long there is nothing to be had.
    fn wait(&mut self, frames: i64, now: Instant) -> Duration {
        match self.left(frames, now) {
            Some(_) => Duration::ZERO,
            None => self.next.map_or(Duration::ZERO, |next| next.saturating_duration_since(now)),
        }
    }
}

/// What is known of one party.
#[derive(Clone, Copy, Debug, Default)]
struct Party {
    debts: [Account; Cause::ALL.len()],
    quarantine: Option<(Instant, Cause)>,
    ration: Ration,
}

impl Party {
    /// True if a quarantine begins with it.
    fn charge(&mut self, cause: Cause, price: Duration, now: Instant) -> bool {
        let account = &mut self.debts[cause as usize];
        account.charge_up_to(DEBT_MAX, price, now);
        let begins = self.quarantine.is_none() && account.owes(now) > CREDIT;
        if begins {
            self.quarantine = Some((now, cause));
        }
        begins
    }

    /// How many times what comes of a replica counts.
    const fn goes_on(&self) -> u32 {
        if self.quarantine.is_some() { GOES_ON } else { 1 }
    }

    fn owes(&self, now: Instant) -> Duration {
        self.debts.iter().map(|account| account.owes(now)).max().unwrap_or_default()
    }

    /// Ends a quarantine of which all is paid off.
    fn settle(&mut self, now: Instant) -> Option<Cause> {
        self.quarantine
            .take_if(|_| self.debts.iter().all(|account| account.owes(now).is_zero()))
            .map(|(_, cause)| cause)
    }
}

/// Whose quarantine began, or ended; `None`: that of all clients.
pub(super) type Change = (Option<Principal>, Cause);

/// See the [module](self). Holds the replicas and identities of the cluster file, [`DEBTORS_MAX`] clients besides and
/// [`KNOWN_MAX`] keys, whatever comes.
#[derive(Debug, Default)]
pub(super) struct Rations {
    /// Those that owe something.
    parties: BTreeMap<Principal, Party>,
    /// All clients together.
    clients: Party,
    known: BTreeMap<PublicKey, Known>,
}

/// A stranger of whom something was accepted.
#[derive(Clone, Copy, Debug)]
struct Known {
    /// First,
    since: Instant,
    /// and last, to a second.
    at: Instant,
}

impl Known {
    fn for_how_long(&self) -> Duration {
        self.at.saturating_duration_since(self.since)
    }
}

/// Frames of a ration of such a party.
fn ration_frames(peer: Peer) -> i64 {
    if peer.is_client() { RATION_FRAMES } else { RATION_FRAMES_OF_REPLICA }
}

fn price_of(bytes: usize) -> Duration {
    Duration::from_secs(1) * u32::try_from(bytes + FRAME_BYTES).unwrap_or(u32::MAX) / USELESS_BYTES
}

impl Rations {
    /// A frame of so many bytes came from somebody, and was worth so much. Returns whose quarantine begins.
    pub(super) fn judge(&mut self, peer: Peer, bytes: usize, worth: Worth, now: Instant) -> [Option<Change>; 2] {
        let (party, is_client) = (peer.principal(), peer.is_client());
        match worth {
            Worth::Useful if is_client => self.accepted(party, bytes, now),
            Worth::Useful | Worth::Untimely => {}
            Worth::Useless | Worth::Failed => return self.charge(party, bytes, worth, now),
        }
        [None; 2]
    }

    fn charge(&mut self, party: Principal, bytes: usize, worth: Worth, now: Instant) -> [Option<Change>; 2] {
        let (is_client, useless) = (party.is_client(), price_of(bytes));
        let costs = |failed, useless| {
            let failed = (worth == Worth::Failed).then_some((Cause::FailedVerifications, failed));
            failed.into_iter().chain([(Cause::UselessBytes, useless)])
        };
        let mut begun = [None; 2];
        let owner = self.parties.entry(party).or_default();
        let failed = if is_client { FAILED } else { FAILED_OF_REPLICA };
        let times = if is_client { 1 } else { owner.goes_on() };
        for (cause, price) in costs(failed, useless) {
            if owner.charge(cause, price * times, now) {
                begun[0] = Some((Some(party), cause));
            }
        }
        // Its own ration bounds what somebody in quarantine costs: others need not pay for that.
        let is_of_all = is_client && owner.quarantine.is_none();
        for (cause, price) in costs(FAILED_OF_ALL, useless / USELESS_OF_ALL).filter(|_| is_of_all) {
            if self.clients.charge(cause, price, now) {
                begun[1] = Some((None, cause));
            }
        }
        self.forget_debtor(now);
        begun
    }

    fn accepted(&mut self, party: Principal, bytes: usize, now: Instant) {
        if let Some(owner) = self.parties.get_mut(&party) {
            owner.debts[Cause::UselessBytes as usize].pay(price_of(bytes) * USELESS_PER_USEFUL);
        }
        let Principal::Key(key) = party else { return };
        match self.known.get_mut(&key) {
            Some(known) if now.saturating_duration_since(known.at) < KNOWN_AGAIN => {}
            Some(known) => known.at = now,
            // While all clients together are in quarantine anybody could make itself known.
            None if self.clients.quarantine.is_some() => {}
            None => {
                self.known.insert(key, Known { since: now, at: now });
                if self.known.len() > KNOWN_MAX
                    && let Some((&newest, _)) = self.known.iter().min_by_key(|(_, it)| (it.for_how_long(), it.at))
                {
                    self.known.remove(&newest);
                }
            }
        }
    }

    /// So many frames came from a replica since the last look, or signatures, and of all others so many.
    pub(super) fn compare(
        &mut self,
        replica: ReplicaId,
        cause: Cause,
        its: u64,
        others: u64,
        now: Instant,
    ) -> Option<Change> {
        let party = Principal::Replica(replica);
        let times = self.parties.get(&party).map_or(1, Party::goes_on);
        // What is left of a flood is no more than others send, and few sign more than a ration.
        let (its, ratio, price) = match cause {
            Cause::Flood => (its.saturating_mul(times.into()), EXCESS_RATIO, EXCESS_FRAME),
            _ => (its, SIGNATURES_RATIO, SIGNATURE),
        };
        let excess = its.saturating_sub(others.saturating_mul(ratio));
        if excess == 0 {
            return None;
        }
        let price = price * u32::try_from(excess).unwrap_or(u32::MAX).saturating_mul(times);
        let begins = self.parties.entry(party).or_default().charge(cause, price, now);
        begins.then_some((Some(party), cause))
    }

    /// Forgets whoever owes nothing. Returns whose quarantine is over.
    pub(super) fn settle(&mut self, now: Instant) -> Vec<Change> {
        let mut over = Vec::new();
        let mut end = |party, its: &mut Party| over.extend(its.settle(now).map(|cause| (party, cause)));
        self.parties.iter_mut().for_each(|(party, its)| end(Some(*party), its));
        end(None, &mut self.clients);
        self.parties.retain(|_, its| !its.owes(now).is_zero());
        self.known.retain(|_, it| now.saturating_duration_since(it.at) < KNOWN_FOR);
        over
    }

    /// Of those that anybody may be any number of.
    fn forget_debtor(&mut self, now: Instant) {
        if self.parties.len() <= DEBTORS_MAX {
            return;
        }
        let strangers = || self.parties.range(Principal::Key(PublicKey([0; 32]))..);
        let is_known = |party: &Principal| matches!(party, Principal::Key(key) if self.known.contains_key(key));
        if strangers().count() > DEBTORS_MAX
            && let Some((&least, _)) = strangers().min_by_key(|(party, its)| (is_known(party), its.owes(now)))
        {
            self.parties.remove(&least);
            // Or whoever has filled these places could go on under a key that is known.
            if let Principal::Key(key) = least {
                self.known.remove(&key);
            }
        }
    }

    /// Whether somebody is read last, and little.
    pub(super) fn is_rationed(&self, peer: Peer) -> bool {
        let is_unknown = |key| self.clients.quarantine.is_some() && !self.known.contains_key(&key);
        self.parties.get(&peer.principal()).is_some_and(|its| its.quarantine.is_some())
            || matches!(peer, Peer::Stranger(key) if is_unknown(key))
    }

    fn ration(&mut self, peer: Peer) -> Option<&mut Ration> {
        if peer.is_client() {
            return Some(&mut self.clients.ration);
        }
        self.parties.get_mut(&peer.principal()).map(|its| &mut its.ration)
    }

    /// Bytes and frames that may be read now of somebody who is rationed, if there are any left.
    pub(super) fn left(&mut self, peer: Peer, now: Instant) -> Option<(usize, usize)> {
        self.ration(peer)?.left(ration_frames(peer), now)
    }

    /// When there are more.
    pub(super) fn next(&mut self, peer: Peer) -> Option<Instant> {
        self.ration(peer)?.next
    }

    /// Whether there are any left for clients that are rationed.
    pub(super) fn has_left_for_clients(&mut self, now: Instant) -> bool {
        self.clients.ration.left(RATION_FRAMES, now).is_some()
    }

    /// How long it takes until there are.
    pub(super) fn wait(&mut self, peer: Peer, now: Instant) -> Duration {
        self.ration(peer).map_or(Duration::ZERO, |ration| ration.wait(ration_frames(peer), now))
    }

    /// So much was read.
    pub(super) fn take(&mut self, peer: Peer, bytes: usize, frames: usize) {
        if let Some(ration) = self.ration(peer) {
            ration.bytes -= bytes as i64;
            ration.frames -= frames as i64;
        }
    }

    /// All that are in quarantine: replicas first, then identities, strangers, and all clients together.
    pub(super) fn quarantined(&self) -> impl Iterator<Item = Quarantine> + '_ {
        let parties = self.parties.iter().map(|(party, its)| (Some(*party), its)).chain([(None, &self.clients)]);
        parties.filter_map(|(party, its)| its.quarantine.map(|(since, cause)| Quarantine { party, since, cause }))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use bezant_core::ids::IdentityId;

    const REPLICA: Peer = Peer::Replica(ReplicaId(3));
    const NAMED: Peer = Peer::Client { identity: IdentityId(7), first: 0, sessions: 1 };

    fn stranger(number: u32) -> Peer {
        let mut key = [0; 32];
        key[..4].copy_from_slice(&number.to_be_bytes());
        Peer::Stranger(PublicKey(key))
    }

    /// How many such frames it takes until somebody is in quarantine.
    fn until_rationed(rations: &mut Rations, peer: Peer, worth: Worth, now: Instant) -> usize {
        let mut judged = 0;
        while !rations.is_rationed(peer) && judged < 1_000_000 {
            rations.judge(peer, 100, worth, now);
            judged += 1;
        }
        judged
    }

    #[test]
    fn a_quarantine_begins_when_the_credit_is_used_up_and_ends_when_all_is_paid_off() {
        let (mut rations, begin) = (Rations::default(), Instant::now());
        assert_eq!(until_rationed(&mut Rations::default(), NAMED, Worth::Failed, begin), 101);
        assert_eq!(until_rationed(&mut rations, REPLICA, Worth::Failed, begin), 11);
        assert!(!rations.is_rationed(Peer::Replica(ReplicaId(2))) && !rations.is_rationed(NAMED));
        // However much follows, it owes no more than the most.
        for _ in 0..100_000 {
            rations.judge(REPLICA, 100, Worth::Failed, begin);
        }
        let just_before = begin + DEBT_MAX - Duration::from_millis(1);
        assert_eq!(rations.settle(just_before), []);
        assert_eq!(
            rations.quarantined().map(|it| (it.since, it.cause)).next(),
            Some((begin, Cause::FailedVerifications))
        );
        let over = rations.settle(begin + DEBT_MAX);
        assert_eq!(over, [(Some(REPLICA.principal()), Cause::FailedVerifications)]);
        assert!(!rations.is_rationed(REPLICA) && rations.parties.is_empty());
    }

    #[test]
    fn a_ration_of_what_is_of_no_use_is_never_paid_off() {
        for (peer, worth) in [(REPLICA, Worth::Useless), (REPLICA, Worth::Failed), (NAMED, Worth::Useless)] {
            let (mut rations, mut now) = (Rations::default(), Instant::now());
            until_rationed(&mut rations, peer, worth, now);
            let frames = ration_frames(peer) as usize;
            let frame = RATION_BYTES as usize / frames;
            for bytes in [60, frame, 10 * frame] {
                let mut came = 0;
                for _ in 0..60_000 {
                    now += Duration::from_millis(1);
                    while rations.left(peer, now).is_some() {
                        rations.take(peer, bytes, 1);
                        rations.judge(peer, bytes, worth, now);
                        came += 1;
                    }
                    assert_eq!(rations.settle(now), [], "{peer:?} {worth:?} {bytes}");
                }
                assert!(came <= 60 * 100 * frames, "{came} of {bytes} in a minute");
                assert!(came * bytes <= 61 * 1_640_000, "{came} of {bytes} in a minute");
            }
        }
    }

    #[test]
    fn who_is_early_or_late_or_asks_again_and_is_served_owes_nothing() {
        let (mut rations, now) = (Rations::default(), Instant::now());
        for _ in 0..100_000 {
            rations.judge(REPLICA, 100_000, Worth::Untimely, now);
            // It was refused seven times before there was room for it.
            for _ in 0..7 {
                rations.judge(NAMED, 9_000, Worth::Useless, now);
            }
            rations.judge(NAMED, 9_000, Worth::Useful, now);
        }
        assert_eq!(rations.quarantined().find(|it| it.party.is_some()), None);
        // Nor does anybody save up.
        let again = until_rationed(&mut rations, NAMED, Worth::Useless, now);
        assert!((9_000..11_000).contains(&again), "{again}");
    }

    #[test]
    fn while_all_clients_are_in_quarantine_the_known_ones_are_not() {
        let (mut rations, begin) = (Rations::default(), Instant::now());
        rations.judge(stranger(1), 100, Worth::Useful, begin);
        // Any number of keys, none of which fails often enough for a quarantine of its own.
        for number in 0..2_000 {
            rations.judge(stranger(100 + number), 100, Worth::Failed, begin);
        }
        let all = |rations: &Rations| rations.quarantined().map(|it| it.party).collect::<Vec<_>>();
        assert_eq!(all(&rations), [None]);
        rations.judge(stranger(2), 100, Worth::Useful, begin);
        assert!(rations.is_rationed(stranger(2)), "nobody makes itself known meanwhile");
        assert!(!rations.is_rationed(stranger(1)) && !rations.is_rationed(NAMED) && !rations.is_rationed(REPLICA));
        for _ in 0..101 {
            rations.judge(stranger(1), 100, Worth::Failed, begin);
            rations.judge(NAMED, 100, Worth::Failed, begin);
        }
        assert!(rations.is_rationed(stranger(1)) && rations.is_rationed(NAMED), "each has an account of its own");
        rations.settle(begin + DEBT_MAX);
        assert!(all(&rations).is_empty() && !rations.is_rationed(stranger(2)));
    }

    /// Keys cost nothing, and a first request no more: they push out one another.
    #[test]
    fn who_has_been_known_for_long_stays_known() {
        let (mut rations, begin) = (Rations::default(), Instant::now());
        let later = begin + 2 * KNOWN_AGAIN;
        for now in [begin, later] {
            rations.judge(stranger(1), 100, Worth::Useful, now);
        }
        rations.judge(stranger(1), 100, Worth::Useless, later);
        for number in 0..2 * KNOWN_MAX as u32 {
            rations.judge(stranger(100 + number), 100, Worth::Useful, later + KNOWN_AGAIN);
        }
        for number in 0..2 * DEBTORS_MAX as u32 {
            rations.judge(stranger(100_000 + number), 100, Worth::Failed, later + KNOWN_AGAIN);
        }
        assert!(rations.is_rationed(stranger(2)), "all clients are in quarantine");
        assert!(!rations.is_rationed(stranger(1)));
    }

    /// What comes in each quarter of a second from a replica, and from all others: whether a quarantine begins, and how
    /// many end.
    fn quarters(cause: Cause) -> impl FnMut(u64, u64) -> (bool, usize) {
        let (mut rations, mut now) = (Rations::default(), Instant::now());
        move |its, others| {
            now += Duration::from_millis(250);
            let begins = rations.compare(ReplicaId(3), cause, its, others, now).is_some();
            (begins, rations.settle(now).len())
        }
    }

    #[test]
    fn a_flood_is_out_of_proportion_and_a_load_is_not() {
        let mut quarter = quarters(Cause::Flood);
        for _ in 0..1_000 {
            // All comes from one neighbour and goes on to another; pages come as they are asked for; all is idle.
            assert_eq!([quarter(50_000, 50_000), quarter(9_000, 9_000), quarter(2_000, 0)], [(false, 0); 3]);
        }
        assert_eq!([quarter(60_000, 100), quarter(60_000, 100)], [(false, 0), (true, 0)]);
        for _ in 0..400 {
            assert_eq!(quarter(25, 3), (false, 0), "a ration of it is a flood still");
        }
        assert!((0..90).any(|_| quarter(3, 3) == (false, 1)));
    }

    /// Each is right, and of use: there is always a later view to leave for.
    #[test]
    fn who_signs_far_more_than_others_floods() {
        let mut quarter = quarters(Cause::Signatures);
        for _ in 0..1_000 {
            // Checkpoints of one batch each, votes for which all replicas send; views change; all is idle.
            assert_eq!([quarter(1_000, 3_000), quarter(12, 4), quarter(25, 0)], [(false, 0); 3]);
        }
        // Whoever comes back gives all that it has at once.
        assert_eq!([quarter(900, 0), quarter(100, 0), quarter(500, 10)], [(false, 0), (false, 0), (true, 0)]);
        for _ in 0..400 {
            assert_eq!(quarter(25, 4), (false, 0), "a ration of it is a flood still");
        }
        // What a correct replica goes on with is not held against it.
        assert!((0..90).any(|_| quarter(2, 1) == (false, 1)));
    }

    #[test]
    fn whoever_comes_few_are_remembered() {
        let (mut rations, now) = (Rations::default(), Instant::now());
        until_rationed(&mut rations, REPLICA, Worth::Failed, now);
        for number in 0..5_000 {
            rations.judge(stranger(number), 100, Worth::Useful, now + Duration::from_micros(number.into()));
        }
        until_rationed(&mut rations, stranger(77), Worth::Failed, now);
        for number in 5_000..10_000 {
            rations.judge(stranger(number), 100, Worth::Failed, now);
        }
        assert_eq!((rations.parties.len(), rations.known.len()), (DEBTORS_MAX + 1, KNOWN_MAX));
        assert!(rations.is_rationed(REPLICA) && rations.is_rationed(stranger(77)), "who owes least is forgotten");
    }
}
