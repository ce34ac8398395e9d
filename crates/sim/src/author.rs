//! Tries a service of one's own: alone ([`Author::examine`]), and in the simulator ([`Author::run`], [`Author::main`]).
//!
//! In the simulator the service rides beside the key-value store that the workload of every run is about: each request
//! carries an operation for both, and each answer what both say. So every check of the simulator goes on, and besides:
//!
//! | rule of `docs/service.md` | noticed by |
//! |---|---|
//! | same operation, same reply and same state | answers and checkpoints that differ: nobody is answered any more |
//! | pages are a function of the state, and load what was saved | roots that differ after rollbacks and transfers |
//! | nothing that a client sends may panic | a panic is a violation; some operations are spoiled on the way |
//! | a query answers what `execute` would | asked before each execution |
//! | the author's own invariant | asked after each operation and each load |

pub use crate::trial::{Author, OPERATION_BYTES_MAX, Trial};

use crate::arguments::Arguments;
use crate::options::ScenarioOptions;
use crate::rng::Rng;
use crate::runs::{RangeOptions, Summary, run_range};
use crate::store::ServiceKind;
use crate::trial::{Checked, execute, execute_many};
use bezant_core::digest::Digest;
use bezant_core::schedule::Protocol;
use bezant_core::service::{Agreed, Asker, Operation, PageNumber};
use bezant_core::time::Instant;
use bytes::Bytes;
use clap::Parser;
use std::collections::BTreeMap;
use std::fmt;
use std::ops::Range;
use std::process::ExitCode;

/// Operations that are undone at a time, less one.
const UNDONE_MAX: u64 = 8;
/// One operation in so many is followed by a checkpoint in [`Author::examine`].
const CHECKPOINT_IN: u64 = 16;
/// One operation in so many has others beside it, and at most so many.
const TOGETHER_IN: u64 = 8;
const TOGETHER_MAX: u64 = 6;

impl Author {
    /// Runs these seeds on all cores, each another cluster with other faults and liars. What was violated is in
    /// [`Summary::failures`].
    pub fn run(&self, protocol: Protocol, seeds: Range<u64>) -> Summary {
        let options = ScenarioOptions { protocol, service: ServiceKind::Own(*self), ..ScenarioOptions::default() };
        run_range(&options, seeds, &RangeOptions::default(), &|_| ())
    }

    /// The same, for a test.
    ///
    /// # Panics
    /// If something was violated: says what, and the command that repeats it.
    pub fn assert_holds(&self, protocol: Protocol, seeds: Range<u64>) {
        let Summary { failures, scenarios, answered, .. } = self.run(protocol, seeds);
        if let Some((options, verdict)) = failures.first() {
            let what: Vec<_> = verdict.violations.iter().map(|violation| violation.what.as_str()).collect();
            panic!("{} of {scenarios} runs violate something; repeat: {options}\n{}", failures.len(), what.join("\n"));
        }
        assert!(answered > 0, "nobody was answered");
    }

    /// What `bezant sim` does, from the arguments of the process, but for `--service`, `--saved` and `--layers`, which
    /// are not about this service.
    pub fn main(&self) -> ExitCode {
        #[derive(Parser)]
        struct Command {
            #[command(flatten)]
            arguments: Arguments,
        }
        match Command::parse().arguments.serving(ServiceKind::Own(*self)) {
            Ok(arguments) => arguments.run(),
            Err(why) => {
                eprintln!("error: {why}");
                ExitCode::from(2)
            }
        }
    }

    /// Tries the rules of `docs/service.md` on the service alone: two that execute the same, save at different moments,
    /// and one of which is given several operations together now and then, goes back and forth and is made anew from
    /// its pages.
    ///
    /// # Errors
    /// The first rule that is broken.
    ///
    /// # Panics
    /// If the service does, if [`Trial::operation`] draws too much, or without any operation.
    pub fn examine(&self, seed: u64, operations: u64) -> Result<(), Objection> {
        examine(self, seed, operations)
    }
}

/// What a service got wrong.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Objection {
    /// With which seed.
    pub seed: u64,
    /// After how many operations.
    pub operations: u64,
    /// What.
    pub what: String,
}

impl fmt::Display for Objection {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "seed {}, after {} operations: {}", self.seed, self.operations, self.what)
    }
}

/// Pages as they were saved last.
type Pages = BTreeMap<PageNumber, Bytes>;

/// A service and its pages.
struct Twin {
    service: Box<dyn Checked>,
    pages: Pages,
}

impl Twin {
    fn new(author: &Author) -> Self {
        Self { service: (author.make)(), pages: Pages::new() }
    }

    fn save(&mut self) {
        let pages = &mut self.pages;
        self.service.save(&mut |number, page| match page {
            Some(page) => drop(pages.insert(number, page)),
            None => drop(pages.remove(&number)),
        });
    }

    /// Executes an operation. Returns the reply, and a digest of what was written.
    fn execute(&mut self, operation: &[u8], agreed: &Agreed) -> Result<(Bytes, Digest), String> {
        Ok((execute(&mut *self.service, operation, agreed)?, self.service.take_written()))
    }

    /// Makes the state that of these pages, as after a rollback.
    fn load(&mut self, pages: &Pages) -> Result<(), String> {
        self.save();
        let numbers = self.pages.keys().chain(pages.keys());
        let changed: BTreeMap<_, _> = numbers
            .filter(|number| self.pages.get(*number) != pages.get(*number))
            .map(|number| (*number, pages.get(number).cloned()))
            .collect();
        self.service.load(&mut changed.into_iter()).map_err(|_| "it does not load what it has saved".to_owned())?;
        self.pages.clone_from(pages);
        // What is there when a state is loaded was not written.
        self.service.take_written();
        self.service.invariant()
    }
}

/// See [`Author::examine`].
fn examine(author: &Author, seed: u64, operations: u64) -> Result<(), Objection> {
    assert!(operations > 0, "there is nothing to examine without operations");
    let mut rng = Rng::stream(seed, author.name);
    let mut twins = [Twin::new(author), Twin::new(author)];
    // No state is loaded before one was saved.
    twins.iter_mut().for_each(Twin::save);
    let mut saved = (0, twins[0].pages.clone());
    for number in 1..=operations {
        let object = |what| Objection { seed, operations: number, what };
        let agreed = Agreed { time: Instant(number), asker: Asker::default(), ..Agreed::default() };
        let operation = author.draw(&mut rng);
        if rng.below(CHECKPOINT_IN) == 0 {
            let [steady, restless] = &mut twins;
            compare(steady, restless, author, &mut rng, &agreed).map_err(object)?;
            saved = (number, steady.pages.clone());
        }
        let [steady, restless] = &mut twins;
        if rng.below(TOGETHER_IN) == 0 {
            let others = (1..rng.between(2, TOGETHER_MAX)).map(|_| author.draw(&mut rng));
            let all: Vec<Bytes> = [operation].into_iter().chain(others.collect::<Vec<_>>()).collect();
            together(steady, restless, &all, &agreed).map_err(object)?;
        } else {
            let (first, wrote) = steady.execute(&operation, &agreed).map_err(object)?;
            let (second, also) = restless.execute(&operation, &agreed).map_err(object)?;
            if first != second {
                return Err(object(format!("two services answer {operation:?} by {first:?} and by {second:?}")));
            }
            if wrote != also {
                return Err(object(format!("two services say that {operation:?} wrote different things")));
            }
        }
        if rng.below(CHECKPOINT_IN) == 0 {
            twins[1].save();
        }
    }
    let object = |what| Objection { seed, operations: saved.0, what };
    twins[0].load(&saved.1).map_err(object)
}

/// Whether operations that one executes together are executed as the other does one by one.
fn together(steady: &mut Twin, restless: &mut Twin, operations: &[Bytes], agreed: &Agreed) -> Result<(), String> {
    let at = |(place, bytes): (usize, &Bytes)| {
        let seed = agreed.seed.at_place(place as u32);
        Operation { bytes: bytes.clone(), agreed: Agreed { seed, ..*agreed } }
    };
    let all: Vec<Operation> = operations.iter().enumerate().map(at).collect();
    let replies = execute_many(&mut *restless.service, &all)?;
    restless.service.take_written();
    for (Operation { bytes, agreed }, reply) in all.iter().zip(replies) {
        let (alone, _) = steady.execute(bytes, agreed)?;
        if alone != reply {
            return Err(format!("`execute_many` answers {bytes:?} by {reply:?}, and `execute` by {alone:?}"));
        }
    }
    Ok(())
}

/// Whether both have the same pages, also after one of them did something else and went back, and was made anew.
fn compare(
    steady: &mut Twin,
    restless: &mut Twin,
    author: &Author,
    rng: &mut Rng,
    agreed: &Agreed,
) -> Result<(), String> {
    steady.save();
    restless.save();
    let same = |steady: &Twin, restless: &Twin, when: &str| match steady.pages == restless.pages {
        true => Ok(()),
        false => Err(format!("two services of the same operations save different pages{when}")),
    };
    same(steady, restless, "")?;
    for _ in 0..rng.below(UNDONE_MAX) {
        execute(&mut *restless.service, &author.draw(rng), agreed)?;
    }
    restless.load(&steady.pages)?;
    if rng.coin() {
        *restless = Twin::new(author);
        restless.load(&steady.pages)?;
    }
    restless.save();
    same(steady, restless, " after `load`")
}

#[cfg(test)]
mod tests {
    use super::*;
    use bezant_core::service::{BadState, NotReadOnly, Service, one_by_one};
    use std::collections::BTreeSet;
    use std::sync::Mutex;

    /// Adds bytes up, and gets one thing wrong.
    #[derive(Debug, Default)]
    struct Sum<const WRONG: u8> {
        sum: u64,
        executed: u64,
        saves: u64,
    }

    const NOTHING: u8 = 0;
    const COUNTS_BESIDE_ITS_PAGES: u8 = 1;
    const QUERIES_OTHERWISE: u8 = 2;
    const PANICS: u8 = 3;
    const LOADS_NOTHING: u8 = 4;
    const GROWS_TOO_MUCH: u8 = 5;
    const EXECUTES_OTHERWISE_TOGETHER: u8 = 6;
    const WRITES_BESIDE_ITS_STATE: u8 = 7;
    const PANICS_TOGETHER: u8 = 8;
    const ONE_PAGE_ALWAYS: u8 = 9;

    impl<const WRONG: u8> Service for Sum<WRONG> {
        fn execute(&mut self, operation: &[u8], _agreed: &Agreed) -> Bytes {
            assert!(WRONG != PANICS || operation.len() == 3, "nonsense");
            self.sum += operation.iter().map(|byte| u64::from(*byte)).sum::<u64>();
            self.executed += 1;
            let counts = WRONG == COUNTS_BESIDE_ITS_PAGES && !operation.is_empty();
            let told = if counts { self.executed } else { self.sum };
            Bytes::copy_from_slice(&told.to_le_bytes())
        }

        fn execute_many(&mut self, operations: &[Operation]) -> Vec<Bytes> {
            assert!(WRONG != PANICS_TOGETHER || operations.len() == 1, "there are several");
            self.sum += u64::from(WRONG == EXECUTES_OTHERWISE_TOGETHER);
            one_by_one(self, operations)
        }

        fn run_max(&self) -> usize {
            8
        }

        fn take_written(&mut self) -> Digest {
            match WRONG {
                // What is saved is not a function of what was executed, nor is this.
                WRITES_BESIDE_ITS_STATE => Digest([self.saves as u8; 32]),
                _ => Digest::ZERO,
            }
        }

        fn query(&self, operation: &[u8], _asker: &Asker) -> Result<Bytes, NotReadOnly> {
            let is_read = operation.is_empty() || WRONG == QUERIES_OTHERWISE;
            is_read.then(|| Bytes::copy_from_slice(&self.sum.to_le_bytes())).ok_or(NotReadOnly)
        }

        fn save(&mut self, write: &mut dyn FnMut(PageNumber, Option<Bytes>)) {
            self.saves += 1;
            write(0, Some(Bytes::copy_from_slice(&self.sum.to_le_bytes())));
        }

        fn load(&mut self, pages: &mut dyn Iterator<Item = (PageNumber, Option<Bytes>)>) -> Result<(), BadState> {
            for (_, page) in pages.filter(|_| WRONG != LOADS_NOTHING) {
                if WRONG == ONE_PAGE_ALWAYS && page.is_none() {
                    return Err(BadState);
                }
                let page = page.map_or(Ok([0; 8]), |page| page.as_ref().try_into());
                self.sum = u64::from_le_bytes(page.map_err(|_| BadState)?);
            }
            Ok(())
        }
    }

    struct Trying<const WRONG: u8>;

    impl<const WRONG: u8> Trial for Trying<WRONG> {
        type Service = Sum<WRONG>;
        const NAME: &'static str = "sum";
        const COMMAND: &'static str = "sum sim";

        fn operation(rng: &mut Rng) -> Bytes {
            Bytes::copy_from_slice(&rng.next().to_le_bytes()[..3])
        }

        fn invariant(service: &Sum<WRONG>) -> Result<(), String> {
            if WRONG == GROWS_TOO_MUCH && service.sum > 2_000 { Err("it is too much".to_owned()) } else { Ok(()) }
        }
    }

    fn author<const WRONG: u8>() -> Author {
        Author::of::<Trying<WRONG>>()
    }

    fn examined<const WRONG: u8>() -> Result<(), String> {
        (0..20).try_for_each(|seed| author::<WRONG>().examine(seed, 200)).map_err(|objection| objection.what)
    }

    #[test]
    fn what_a_service_gets_wrong_is_found_without_a_cluster() {
        assert_eq!(examined::<NOTHING>(), Ok(()));
        assert!(examined::<COUNTS_BESIDE_ITS_PAGES>().is_err_and(|what| what.contains(" answer")));
        assert!(examined::<QUERIES_OTHERWISE>().is_err_and(|what| what.contains("a query for")));
        assert!(examined::<LOADS_NOTHING>().is_err_and(|what| what.contains("after `load`")));
        assert_eq!(examined::<GROWS_TOO_MUCH>(), Err("it is too much".to_owned()));
        assert!(examined::<EXECUTES_OTHERWISE_TOGETHER>().is_err_and(|what| what.contains("`execute_many` answers")));
        assert!(examined::<WRITES_BESIDE_ITS_STATE>().is_err_and(|what| what.contains("wrote different things")));
    }

    #[test]
    fn what_was_never_saved_is_not_loaded_in_a_short_examination() {
        (0..20).for_each(|seed| assert_eq!(author::<ONE_PAGE_ALWAYS>().examine(seed, 2), Ok(())));
    }

    /// What [`Drawing`] has drawn.
    static DRAWN: Mutex<Vec<u64>> = Mutex::new(Vec::new());

    struct Drawing;

    impl Trial for Drawing {
        type Service = Sum<NOTHING>;
        const NAME: &'static str = "drawing";
        const COMMAND: &'static str = "drawing sim";

        fn operation(rng: &mut Rng) -> Bytes {
            let drawn = rng.next();
            DRAWN.lock().expect("nobody panics").push(drawn);
            Bytes::copy_from_slice(&drawn.to_le_bytes()[..3])
        }
    }

    #[test]
    fn each_run_asks_for_something_else() {
        let asked_in = |seed| {
            Author::of::<Drawing>().run(Protocol::Pbft, seed..seed + 1);
            std::mem::take(&mut *DRAWN.lock().expect("nobody panics")).into_iter().collect::<BTreeSet<_>>()
        };
        let (first, second) = (asked_in(0), asked_in(1));
        assert!(!first.is_empty() && first.is_disjoint(&second));
    }

    #[test]
    fn what_is_about_another_service_is_refused() {
        #[derive(Parser)]
        struct Command {
            #[command(flatten)]
            arguments: Arguments,
        }
        let taken = |words: &[&str]| {
            let arguments = Command::parse_from([&["sum"], words].concat()).arguments;
            arguments.serving(ServiceKind::Own(author::<NOTHING>())).map(drop)
        };
        assert_eq!(taken(&["--seeds", "0..10", "--protocol", "aliph"]), Ok(()));
        for words in [&["--saved"][..], &["--layers"], &["--service", "sql"]] {
            assert!(taken(words).is_err_and(|why| why.starts_with(words[0])), "{words:?}");
        }
    }

    #[test]
    fn what_a_service_gets_wrong_is_found_in_the_simulator() {
        let violated = |author: Author, check: &str| {
            let failures = author.run(Protocol::Pbft, 0..40).failures;
            failures.iter().flat_map(|(_, verdict)| &verdict.violations).any(|violation| violation.check == check)
        };
        author::<NOTHING>().assert_holds(Protocol::Pbft, 0..40);
        assert!(violated(author::<COUNTS_BESIDE_ITS_PAGES>(), "contradiction"));
        assert!(violated(author::<QUERIES_OTHERWISE>(), "panic"));
        assert!(violated(author::<PANICS>(), "panic"));
        assert!(violated(author::<LOADS_NOTHING>(), "roots"));
        assert!(violated(author::<GROWS_TOO_MUCH>(), "panic"));
        assert!(violated(author::<PANICS_TOGETHER>(), "panic"));
    }

    #[test]
    fn a_report_says_the_authors_own_command() {
        let service = ServiceKind::Own(author::<NOTHING>());
        let text = ScenarioOptions { service, ..ScenarioOptions::default() }.to_string();
        assert_eq!(text, "sum sim --protocol pbft --f 1 --adversary all --seed 0");
    }
}
