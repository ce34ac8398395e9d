//! While a replica is short of processor time, no client is read at more than a level.
//!
//! An identity may ask for whatever it likes, in the name of as many of its sessions as it likes, and all of that may
//! be in order. As long as a replica has time to spare that costs nobody anything. When it has none, what is read of
//! one client is not read of another, and whoever asks for most is served most. So clients are compared at every look
//! by what was read of them: bytes, and [`FRAME_BYTES`] for each frame.
//!
//! A *level* begins when there is no time to spare and somebody takes twice as much as others that together ask for
//! more than a trickle ([`QUIET_MIN`]). It begins below what the largest client had, falls by a quarter with every
//! look at which there is still no time to spare, and grows by an eighth when there is plenty. Everybody is read up to
//! the level, and whoever asks for less does not notice: max-min fairness. It stays above an eighth of what is read of
//! all, or half more than the mean where more than twelve ask for about equally much; and above [`LEVEL_MIN`]. It is
//! over when nobody was short of it for [`CALM`] looks.
//!
//! So a client that floods a replica which others would fill alone is left with an eighth at most, and beside many with
//! less. One that loads it beside others that ask for little keeps what these leave, less the little that is spare
//! then. Nobody is held for being alone, nor for being one of several that ask for equally much.
//!
//! A client is whoever holds a key, over any number of links, which take turns. Who holds several keys has a level for
//! each: the cluster file says who has one, and a service who may join. Bytes and frames stand for time: what a request
//! costs besides is for services to bound. And a level is a replica's own. What is not read fills the system's buffers,
//! and then the other side's, so that nothing is lost; whoever has read less than its primary asks for what it lacks.

use super::super::handshake::Peer;
use super::spare::{Processor, Spare};
use bezant_core::ids::Principal;
use std::collections::BTreeMap;
use std::time::{Duration, Instant};

/// What a frame costs besides its bytes, in bytes.
pub(super) const FRAME_BYTES: u64 = 1 << 10;
/// What clients that have less than half as much as the largest have together, at least, in a second: some 200 small
/// requests. Nobody is held for less.
const QUIET_MIN: u64 = 256 << 10;
/// The lowest level, in a second: some 500 small requests.
const LEVEL_MIN: u64 = 512 << 10;
/// The part of what is read of all that a level leaves to one beside few others, and beside however many.
const PART_OF_FEW: u64 = 8;
const PART_OF_MANY: u64 = 64;
/// What a client may have at once after it was quiet: of a second the part.
const BURST: u64 = 16;
/// Looks at which nobody was short, until a level is over: ten seconds.
const CALM: u32 = 40;
/// For how many looks a client stays loud that had more than half of the level: pauses do not make it another one.
const LOUD_FOR: u32 = 8;
/// Clients that are held to a level at a time: at each of so many looks, those that had more than half of the least
/// part.
const LOUD_MAX: usize = 2 * PART_OF_MANY as usize * LOUD_FOR as usize;
/// Between two turns of one client's links: of a second the part.
const TURN: u64 = 64;
/// How long a link is left alone, at most.
const REST_MAX: Duration = Duration::from_millis(250);

/// What may be read of a client that has more than half of the level.
#[derive(Clone, Copy, Debug)]
struct Bucket {
    /// What was taken too much of is made up for first.
    left: i64,
    filled: Instant,
    /// When the next of its links that has to wait has its turn.
    turn: Instant,
    /// Whether it had to wait since the last look.
    short: bool,
    /// Looks until it is no longer loud.
    looks: u32,
}

impl Bucket {
    fn new(level: u64, now: Instant) -> Self {
        Self { left: (level / BURST) as i64, filled: now, turn: now, short: false, looks: LOUD_FOR }
    }

    fn fill(&mut self, level: u64, now: Instant) {
        let micros = now.saturating_duration_since(self.filled).as_micros();
        let more = u128::from(level) * micros / 1_000_000;
        if more > 0 {
            self.filled = now;
            self.left = self.left.saturating_add(more as i64).min((level / BURST) as i64);
        }
    }

    /// Links take turns, so that each has one and none wakes the hub for nothing.
    fn wait(&mut self, level: u64, now: Instant) -> Option<Instant> {
        self.fill(level, now);
        let missing = u64::try_from(-self.left).ok()? + level / TURN;
        self.short = true;
        let turn = self.turn.max(now + Duration::from_micros(missing * 1_000_000 / level));
        self.turn = turn + Duration::from_micros(1_000_000 / TURN);
        Some(turn.min(now + REST_MAX))
    }
}

/// See the [module](self).
#[derive(Debug, Default)]
pub(super) struct Level {
    /// In a second. `None`: everybody is read up to what a pass has for them.
    level: Option<u64>,
    /// At most [`LOUD_MAX`].
    loud: BTreeMap<Principal, Bucket>,
    /// Looks at which nobody was short.
    calm: u32,
}

fn per_second(count: u64, elapsed: Duration) -> u64 {
    u64::try_from(u128::from(count) * 1_000_000 / elapsed.as_micros().max(1)).unwrap_or(u64::MAX)
}

impl Level {
    /// The level, if there is one.
    pub(super) const fn get(&self) -> Option<u64> {
        self.level
    }

    /// Holds some to a level, as if they had been loud at the last look.
    #[cfg(test)]
    pub(super) fn hold_for_test(&mut self, parties: &[Principal], level: u64, now: Instant) {
        self.level = Some(level);
        self.loud = parties.iter().map(|party| (*party, Bucket::new(level, now))).collect();
    }

    /// Until when nothing more is read of a link of this client, over which something has come.
    pub(super) fn wait(&mut self, peer: Peer, now: Instant) -> Option<Instant> {
        let level = self.level?;
        self.loud.get_mut(&peer.principal())?.wait(level, now)
    }

    /// So much was read of it. It owes no more than a second's worth.
    pub(super) fn take(&mut self, peer: Peer, cost: u64) {
        if let (Some(level), Some(bucket)) = (self.level, self.loud.get_mut(&peer.principal())) {
            bucket.left = bucket.left.saturating_sub_unsigned(cost).max(-(level as i64));
        }
    }

    /// Looks at what was read of each client in a time of which so much was spare.
    pub(super) fn look(&mut self, read: &BTreeMap<Principal, u64>, spare: Spare, elapsed: Duration, now: Instant) {
        let rates = || read.iter().map(|(party, cost)| (*party, per_second(*cost, elapsed)));
        let mut short = false;
        for bucket in self.loud.values_mut() {
            short |= std::mem::take(&mut bucket.short);
        }
        self.calm = if short { 0 } else { self.calm + 1 };
        let next = match (self.level, spare) {
            (None, Spare::None) => crowds(rates().map(|(_, rate)| rate)).map(less),
            (Some(_), _) if self.calm >= CALM => None,
            (Some(level), Spare::None) if short => Some(less(level)),
            (Some(level), Spare::Plenty) if short => Some(level + level / 8),
            (level, _) => level,
        };
        if self.level.is_none() {
            self.calm = 0;
        }
        self.level = next.map(|level| level.max(least(rates().map(|(_, rate)| rate))));
        let Some(level) = self.level else { return self.loud.clear() };
        self.loud.retain(|_, bucket| {
            bucket.looks -= 1;
            bucket.looks > 0
        });
        for (party, _) in rates().filter(|(_, rate)| *rate > level / 2) {
            self.loud.entry(party).or_insert_with(|| Bucket::new(level, now)).looks = LOUD_FOR;
        }
        assert!(self.loud.len() <= LOUD_MAX, "so many cannot have had so much of all");
    }
}

const fn less(level: u64) -> u64 {
    level / 4 * 3
}

/// How low a level may be where so much is read of each.
fn least(rates: impl Iterator<Item = u64>) -> u64 {
    let (all, squares) =
        rates.fold((0_u64, 0_u128), |(all, squares), rate| (all + rate, squares + u128::from(rate).pow(2)));
    // As many as would have so much of it if all who have something had the same.
    let equals = u128::from(all).pow(2) / squares.max(1);
    let part = u64::try_from(equals * 2 / 3).unwrap_or(u64::MAX).clamp(PART_OF_FEW, PART_OF_MANY);
    LEVEL_MIN.max(all / part)
}

/// What the largest has, if it crowds out others that have more than a trickle.
fn crowds(rates: impl Iterator<Item = u64> + Clone) -> Option<u64> {
    let most = rates.clone().max()?;
    let quiet: u64 = rates.filter(|rate| *rate < most / 2).sum();
    (quiet >= QUIET_MIN && most > LEVEL_MIN).then_some(most)
}

/// What a hub needs to read clients at a level.
#[derive(Debug)]
pub(super) struct Fairness {
    pub(super) level: Level,
    pub(super) processor: Processor,
    /// What was read of each client since the last look.
    pub(super) read: BTreeMap<Principal, u64>,
    pub(super) looked_at: Instant,
}

impl Fairness {
    pub(super) fn new() -> Self {
        let (level, processor, read) = Default::default();
        Self { level, processor, read, looked_at: Instant::now() }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use bezant_core::ids::IdentityId;

    const LOOK: Duration = Duration::from_millis(250);
    const MB: u64 = 1 << 20;

    fn peer(identity: u32) -> Peer {
        Peer::Client { identity: IdentityId(identity), first: 0, sessions: 1 }
    }

    /// Clients that ask for so much in a second, each by its number, of what a replica can do in a second.
    struct Load {
        level: Level,
        now: Instant,
        wanted: Vec<u64>,
        capacity: u64,
    }

    impl Load {
        fn new(wanted: &[u64], capacity: u64) -> Self {
            Self { level: Level::default(), now: Instant::now(), wanted: wanted.to_vec(), capacity }
        }

        /// Runs until the next look, in steps of 5 ms. What each had in a second.
        fn look(&mut self) -> Vec<u64> {
            let steps = 50;
            let mut had = vec![0; self.wanted.len()];
            for _ in 0..steps {
                self.now += LOOK / steps;
                for (party, had) in (0..).zip(&mut had) {
                    let wants = self.wanted[party as usize] / 4 / u64::from(steps);
                    if self.level.wait(peer(party), self.now).is_none() {
                        *had += wants;
                        self.level.take(peer(party), wants);
                    }
                }
            }
            let all = 4 * had.iter().sum::<u64>();
            let spare = match all {
                all if all > self.capacity => Spare::None,
                all if all > self.capacity / 4 * 3 => Spare::Some,
                _ => Spare::Plenty,
            };
            let read = (0..).zip(&had).map(|(party, had)| (peer(party).principal(), *had)).collect();
            self.level.look(&read, spare, LOOK, self.now);
            had.iter().map(|had| 4 * had).collect()
        }

        /// What each has in a second, after so many seconds.
        fn after(&mut self, seconds: u32) -> Vec<u64> {
            (0..4 * seconds - 1).for_each(|_| drop(self.look()));
            self.look()
        }
    }

    #[test]
    fn who_floods_is_left_with_an_eighth_and_the_others_notice_nothing() {
        let honest = [MB; 10];
        let mut load = Load::new(&[&honest[..], &[40 * MB]].concat(), 10 * MB);
        let had = load.after(10);
        assert!(had[..10].iter().all(|had| had * 100 > MB * 95), "{had:?}");
        assert!((MB..=2 * MB).contains(&had[10]), "{had:?}");
    }

    #[test]
    fn who_floods_beside_many_is_left_with_half_more_than_they_have() {
        let honest = [MB; 40];
        let mut load = Load::new(&[&honest[..], &[40 * MB]].concat(), 40 * MB);
        let had = load.after(10);
        assert!(had[..40].iter().all(|had| had * 100 > MB * 95), "{had:?}");
        assert!((MB..=5 * MB / 2).contains(&had[40]), "{had:?}");
    }

    #[test]
    fn who_asks_for_most_keeps_what_the_others_leave() {
        let mut load = Load::new(&[40 * MB, MB / 2], 10 * MB);
        let had: Vec<_> = (0..80).map(|_| load.look()).skip(40).collect();
        let of = |party: usize| had.iter().map(|had| had[party]).sum::<u64>() / had.len() as u64;
        assert!(of(0) > 7 * MB && of(0) < 11 * MB, "{} of 10 MB", of(0));
        assert!(of(1) * 100 > MB / 2 * 95, "{}", of(1));
    }

    #[test]
    fn nobody_is_held_who_is_alone_or_one_of_equals_or_beside_a_trickle() {
        for wanted in [&[40 * MB][..], &[20 * MB, 20 * MB, 15 * MB], &[40 * MB, QUIET_MIN / 2]] {
            let mut load = Load::new(wanted, 10 * MB);
            load.after(5);
            assert_eq!(load.level.get(), None, "{wanted:?}");
        }
        let mut load = Load::new(&[20 * MB, MB], 30 * MB);
        load.after(5);
        assert_eq!(load.level.get(), None, "there is time to spare");
    }

    #[test]
    fn a_level_ends_when_nobody_was_short_of_it() {
        let mut load = Load::new(&[40 * MB, MB, MB], 10 * MB);
        load.after(5);
        assert!(load.level.get().is_some());
        load.wanted[0] = 0;
        load.after(11);
        assert_eq!((load.level.get(), load.level.loud.len()), (None, 0));
    }

    #[test]
    fn no_more_are_held_than_there_is_room_for() {
        let mut load = Load::new(&[3 * MB; 40], 10 * MB);
        load.wanted[0] = 40 * MB;
        load.wanted[1..20].fill(MB / 4);
        load.after(5);
        assert!(load.level.get().is_some());
        assert!(load.level.loud.len() <= LOUD_MAX, "{}", load.level.loud.len());
    }
}
