//! How much processor time a replica has to spare, as the system's scheduler sees it.
//!
//! A thread that is ready to run and waits for a processor has none to spare, whether others run on that processor or a
//! quota is used up. How long it waits for something to do would not tell: while it is held back it cannot wait.

use std::fs;
use std::time::Duration;

/// What the scheduler counts of the calling thread.
const COUNTED: &str = "/proc/thread-self/schedstat";

/// How much of its time a replica has to spare.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Spare {
    None,
    Some,
    Plenty,
}

/// For how long a thread has run, and for how long it was ready to.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Counted {
    ran: Duration,
    waited: Duration,
}

impl Counted {
    fn parse(text: &str) -> Option<Self> {
        let mut words = text.split(' ').map(|word| word.parse().map(Duration::from_nanos));
        Some(Self { ran: words.next()?.ok()?, waited: words.next()?.ok()? })
    }

    /// None is left to whoever wanted nine tenths of the time, or half of it, and waited longer than it ran.
    fn spare(self, elapsed: Duration) -> Spare {
        let wanted = self.ran + self.waited;
        if wanted >= elapsed * 9 / 10 || wanted >= elapsed / 2 && self.waited >= self.ran {
            Spare::None
        } else if wanted < elapsed * 3 / 4 && self.waited < self.ran / 2 {
            Spare::Plenty
        } else {
            Spare::Some
        }
    }
}

/// What was counted as of the last look.
#[derive(Debug, Default)]
pub(super) struct Processor(Counted);

impl Processor {
    /// How much of the time since the last look was spare. Where the system does not say, all of it was.
    pub(super) fn look(&mut self, elapsed: Duration) -> Spare {
        let Some(counted) = fs::read_to_string(COUNTED).ok().and_then(|text| Counted::parse(&text)) else {
            return Spare::Plenty;
        };
        let before = std::mem::replace(&mut self.0, counted);
        let of = |now: Duration, before| now.saturating_sub(before);
        Counted { ran: of(counted.ran, before.ran), waited: of(counted.waited, before.waited) }.spare(elapsed)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::time::Instant;

    #[test]
    fn a_thread_that_waits_longer_than_it_runs_has_nothing_to_spare() {
        let ms = Duration::from_millis;
        let spare = |ran, waited| Counted { ran: ms(ran), waited: ms(waited) }.spare(ms(250));
        assert_eq!(spare(50, 150), Spare::None, "a fifth of a processor, used up");
        assert_eq!(spare(240, 0), Spare::None, "a processor of its own");
        assert_eq!(spare(100, 90), Spare::Some);
        assert_eq!(spare(30, 35), Spare::Some, "it is late, and has little to do");
        assert_eq!(spare(100, 20), Spare::Plenty);
        assert_eq!(spare(1, 0), Spare::Plenty);
    }

    #[test]
    fn what_the_system_counts_of_this_thread_is_read() {
        let counted = || Counted::parse(&fs::read_to_string(COUNTED).unwrap()).unwrap();
        let begin = Instant::now();
        while counted().ran < Duration::from_millis(5) {
            assert!(begin.elapsed() < Duration::from_secs(10), "{:?}", counted());
        }
        assert_eq!(Counted::parse("12 34 5\n").unwrap().waited, Duration::from_nanos(34));
        assert_eq!(Counted::parse("no numbers"), None);
    }
}
