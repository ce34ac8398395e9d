//! Linearizability of what honest clients saw, reads included.
//!
//! Wing and Gong's search with Lowe's memory: find an order of the calls that respects real time and in which every
//! answer is what the sequential store answers. Keys are independent, so each is searched alone. A call that nobody
//! knows the end of may have been executed at any time after it began, or never. A value that does not live for ever
//! may go at any time, but it goes once.
//!
//! The search would take for ever where many calls overlap and many have no known end, but for three rules:
//! * A call that fits, and says that it changed nothing, is taken at once: it can only stand in the way later.
//! * A value that no answer and no comparison names is as good as any other such value.
//! * Of two calls that do the same and answer the same, the one that began and ended first goes first: whoever has them
//!   the other way round may exchange them.
//!
//! Durability is part of it: the second phase ends with reads of every key, so that an acknowledged write that did not
//! survive a power cut leaves no order.

use super::{Check, Event};
use crate::workload::{Action, Answer, Held, Key};
use std::collections::{BTreeMap, BTreeSet};

/// A call as seen from outside.
#[derive(Clone, Debug)]
struct Call {
    action: Action,
    begin: u64,
    /// When it ended and what came of it.
    end: Option<(u64, Answer)>,
}

impl Call {
    /// Whether it left the store as it was, as its answer says.
    fn changed_nothing(&self) -> bool {
        self.end.is_some_and(|(_, answer)| self.action.is_read() || answer == Answer::Changed(false))
    }

    /// Whether it does and answers the same as another, and began and ended before.
    fn goes_before(&self, other: &Self) -> bool {
        let [mine, its] = [self, other].map(|call| call.end.map_or(u64::MAX, |(end, _)| end));
        let is_same = self.action == other.action && self.end.map(|it| it.1) == other.end.map(|it| it.1);
        is_same && self.begin < other.begin && mine <= its
    }
}

/// See the [module](self).
#[derive(Debug, Default)]
pub struct Linearizability {
    keys: BTreeMap<Key, BTreeMap<u64, Call>>,
    key_of: BTreeMap<u64, Key>,
    /// Events have an order that true time is too coarse for.
    events: u64,
}

/// Calls of one key that a search can tell apart; more are not drawn by any plan.
const CALLS_MAX: usize = 256;

/// Some of the calls of one key, by their numbers.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
struct Selection([u128; CALLS_MAX / 128]);

impl Selection {
    const fn has(self, index: usize) -> bool {
        self.0[index / 128] & 1 << (index % 128) != 0
    }

    #[must_use]
    const fn with(mut self, index: usize) -> Self {
        self.0[index / 128] |= 1 << (index % 128);
        self
    }

    fn has_all(self, of: Self) -> bool {
        self.0.iter().zip(of.0).all(|(here, there)| here & there == there)
    }
}

struct Search<'a> {
    /// In the order in which they began.
    calls: &'a [Call],
    /// All calls that have ended.
    ended: Selection,
    /// Of each call, those that do and answer the same and go before it.
    twins: Vec<Selection>,
    dead_ends: BTreeSet<(Selection, Option<Held>)>,
}

impl Search<'_> {
    /// Whether the calls not in `done` can follow a store that holds this.
    fn order_exists(&mut self, done: Selection, held: Option<Held>) -> bool {
        if done.has_all(self.ended) {
            return true;
        }
        if self.dead_ends.contains(&(done, held)) {
            return false;
        }
        let open = |index: &usize| !done.has(*index);
        let first_end = (0..self.calls.len())
            .filter(open)
            .filter_map(|index| self.calls[index].end.map(|(end, _)| end))
            .min()
            .unwrap_or(u64::MAX);
        let calls = self.calls;
        let is_first = |index: &usize| calls[*index].begin <= first_end && done.has_all(self.twins[*index]);
        let fits = |index: usize| {
            let (answer, next) = calls[index].action.apply(held);
            calls[index].end.is_none_or(|(_, seen)| seen == answer).then_some((index, next))
        };
        let next: Vec<_> = (0..calls.len()).filter(open).filter(is_first).filter_map(fits).collect();
        if let Some((index, _)) = next.iter().find(|(index, _)| calls[*index].changed_nothing()) {
            return self.order_exists(done.with(*index), held);
        }
        for (index, next) in next {
            if self.order_exists(done.with(index), next) {
                return true;
            }
        }
        if held.is_some_and(|held| held.mortal) && self.order_exists(done, None) {
            return true;
        }
        self.dead_ends.insert((done, held));
        false
    }
}

fn is_linearizable(calls: &[Call]) -> bool {
    let calls = &without_unnamed(calls)[..];
    let those = |of: &dyn Fn(&Call) -> bool| {
        let those = calls.iter().enumerate().filter(|(_, call)| of(call));
        those.fold(Selection::default(), |selection, (index, _)| selection.with(index))
    };
    let ended = those(&|call| call.end.is_some());
    let twins = calls.iter().map(|call| those(&|other| other.goes_before(call))).collect();
    Search { calls, ended, twins, dead_ends: BTreeSet::new() }.order_exists(Selection::default(), None)
}

/// The same calls with one value instead of all those that are only ever written.
fn without_unnamed(calls: &[Call]) -> Vec<Call> {
    const UNNAMED: u64 = u64::MAX;
    let mut named = BTreeSet::new();
    for Call { action, end, .. } in calls {
        match action {
            // Sums are of values that nobody names.
            Action::Increment => return calls.to_vec(),
            Action::CompareAndSet(Some(expected), _) => _ = named.insert(*expected),
            _ => {}
        }
        if let Some((_, Answer::Value(Some(value)))) = end {
            named.insert(*value);
        }
    }
    let is_named = |value: u64| if named.contains(&value) { value } else { UNNAMED };
    let without = |call: &Call| {
        let action = match call.action {
            Action::Set(value) => Action::Set(is_named(value)),
            // How long it lives does not matter here.
            Action::SetFor(value, _) => Action::SetFor(is_named(value), 0),
            Action::CompareAndSet(expected, value) => Action::CompareAndSet(expected, is_named(value)),
            same => same,
        };
        Call { action, ..*call }
    };
    calls.iter().map(without).collect()
}

impl Check for Linearizability {
    fn name(&self) -> &'static str {
        "linearizability"
    }

    fn see(&mut self, _at: u64, event: &Event<'_>) -> Result<(), String> {
        self.events += 1;
        match event {
            Event::Invoked { call, key, action } => {
                self.key_of.insert(*call, *key);
                let begun = Call { action: *action, begin: self.events, end: None };
                self.keys.entry(*key).or_default().insert(*call, begun);
            }
            // It must have had none.
            Event::Answered(call, Some(Answer::Refused)) => {
                self.key_of.get(call).and_then(|key| self.keys.get_mut(key)?.remove(call));
            }
            Event::Answered(call, Some(answer)) => {
                let known = self.key_of.get(call).and_then(|key| self.keys.get_mut(key)?.get_mut(call));
                known.expect("a call is invoked before it is answered").end = Some((self.events, *answer));
            }
            _ => {}
        }
        Ok(())
    }

    fn finish(&mut self) -> Result<(), String> {
        for (key, calls) in &self.keys {
            // A read that nobody saw the end of says nothing.
            let mut calls: Vec<Call> =
                calls.values().filter(|call| call.end.is_some() || !call.action.is_read()).cloned().collect();
            calls.sort_by_key(|call| call.begin);
            assert!(calls.len() <= CALLS_MAX, "plans are small, and not {} calls of a key", calls.len());
            if !is_linearizable(&calls) {
                let history: Vec<String> = calls.iter().map(describe).collect();
                return Err(format!("no order explains key {key}: {}", history.join("; ")));
            }
        }
        Ok(())
    }
}

fn describe(call: &Call) -> String {
    match call.end {
        Some((end, answer)) => format!("[{}–{end}] {:?} → {answer:?}", call.begin, call.action),
        None => format!("[{}–?] {:?}", call.begin, call.action),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::rng::Rng;

    fn call(begin: u64, end: u64, action: Action, answer: Answer) -> Call {
        Call { action, begin, end: Some((end, answer)) }
    }

    /// The same without any rule and without memory.
    fn plain_order_exists(calls: &[Call], held: Option<Held>) -> bool {
        let Some(first_end) = calls.iter().filter_map(|call| call.end.map(|(end, _)| end)).min() else { return true };
        let follows = |index: usize| {
            let (answer, next) = calls[index].action.apply(held);
            let fits = calls[index].begin < first_end && calls[index].end.is_none_or(|(_, seen)| seen == answer);
            fits && plain_order_exists(&[&calls[..index], &calls[index + 1..]].concat(), next)
        };
        (0..calls.len()).any(follows) || held.is_some_and(|held| held.mortal) && plain_order_exists(calls, None)
    }

    #[test]
    fn the_rules_change_no_verdict() {
        let mut rng = Rng::stream(1, "histories");
        let mut verdicts = [0; 2];
        for _ in 0..4_000 {
            let mut times: Vec<u64> = (0..12).collect();
            let calls = (0..6).map(|_| {
                let mut take = || times.remove(rng.below(times.len() as u64) as usize);
                let [begin, end] = [take(), take()];
                let value = rng.below(3);
                let (action, answers) = match rng.below(6) {
                    0 => (Action::Get, [Answer::Value(None), Answer::Value(Some(value))]),
                    1 => (Action::Set(value), [Answer::Done; 2]),
                    2 => (Action::SetFor(value, rng.below(2)), [Answer::Done; 2]),
                    3 => (Action::Delete, [false, true].map(Answer::Changed)),
                    4 => (Action::Life, [None, Some(rng.below(2) > 0)].map(Answer::Life)),
                    _ => {
                        let expected = (rng.below(2) > 0).then_some(rng.below(3));
                        (Action::CompareAndSet(expected, value), [false, true].map(Answer::Changed))
                    }
                };
                let answer = answers[rng.below(2) as usize];
                let is_known = action.is_read() || rng.below(3) > 0;
                Call { action, begin: begin.min(end), end: is_known.then_some((begin.max(end), answer)) }
            });
            let mut calls: Vec<Call> = calls.collect();
            calls.sort_by_key(|call| call.begin);
            let verdict = plain_order_exists(&calls, None);
            assert_eq!(is_linearizable(&calls), verdict, "{calls:?}");
            verdicts[usize::from(verdict)] += 1;
        }
        assert!(verdicts.iter().all(|count| *count > 400), "{verdicts:?}");
    }

    #[test]
    fn overlapping_calls_may_take_either_order() {
        let write = call(0, 10, Action::Set(1), Answer::Done);
        for seen in [None, Some(1)] {
            assert!(is_linearizable(&[write.clone(), call(5, 6, Action::Get, Answer::Value(seen))]));
        }
    }

    #[test]
    fn a_stale_read_and_a_lost_write_are_found() {
        let write = call(0, 1, Action::Set(1), Answer::Done);
        assert!(!is_linearizable(&[write.clone(), call(2, 3, Action::Get, Answer::Value(None))]));
        let first = call(2, 8, Action::Get, Answer::Value(Some(2)));
        let second = call(9, 10, Action::Get, Answer::Value(Some(1)));
        let unknown = Call { action: Action::Set(2), begin: 1, end: None };
        assert!(!is_linearizable(&[write, unknown, first, second]));
    }

    #[test]
    fn an_increment_executed_twice_is_found() {
        let add = |begin, sum| call(begin, begin + 1, Action::Increment, Answer::Sum(sum));
        assert!(is_linearizable(&[add(0, 1), add(2, 2)]));
        assert!(!is_linearizable(&[add(0, 1), add(2, 3)]));
    }

    #[test]
    fn a_call_without_an_end_may_count_or_not() {
        let unknown = Call { action: Action::Set(7), begin: 0, end: None };
        for seen in [None, Some(7)] {
            assert!(is_linearizable(&[unknown.clone(), call(50, 51, Action::Get, Answer::Value(seen))]));
        }
    }

    #[test]
    fn many_calls_that_overlap_are_searched_soon() {
        let writes = (0..60).map(|number| {
            let end = (number % 3 > 0).then_some((1_000 + number, Answer::Done));
            Call { action: Action::Set(number), begin: number, end }
        });
        let get = |begin, seen| call(begin, begin + 1, Action::Get, Answer::Value(seen));
        let history = |last: &[Call]| writes.clone().chain(last.iter().cloned()).collect::<Vec<_>>();
        // Nobody knows the end of number 30, which counts only once.
        assert!(is_linearizable(&history(&[get(2_000, Some(1)), get(2_002, Some(30))])));
        assert!(!is_linearizable(&history(&[get(2_000, Some(30)), get(2_002, Some(1))])));
        assert!(!is_linearizable(&history(&[get(2_000, Some(0)), get(2_002, Some(1)), get(2_004, Some(0))])));
    }

    #[test]
    fn a_key_may_have_as_many_calls_as_can_be_told_apart() {
        let add = |number| call(2 * number, 2 * number + 1, Action::Increment, Answer::Sum(number + 1));
        let mut calls: Vec<Call> = (0..CALLS_MAX as u64).map(add).collect();
        assert!(is_linearizable(&calls));
        calls.last_mut().unwrap().end = Some((u64::MAX, Answer::Sum(1)));
        assert!(!is_linearizable(&calls));
    }

    #[test]
    fn a_write_that_changes_nothing_may_be_needed_later() {
        let set = |begin, end, value| call(begin, end, Action::Set(value), Answer::Done);
        let delete = |begin| call(begin, begin + 1, Action::Delete, Answer::Changed(true));
        assert!(is_linearizable(&[set(0, 1, 1), set(2, 9, 2), delete(3), delete(5)]));
        assert!(!is_linearizable(&[set(0, 1, 1), set(2, 9, 2), delete(3), delete(5), delete(7)]));
    }

    #[test]
    fn a_value_that_may_go_goes_once() {
        let get = |begin, seen| call(begin, begin + 1, Action::Get, Answer::Value(seen));
        let mortal = call(0, 1, Action::SetFor(7, 5), Answer::Done);
        let lasting = call(0, 1, Action::Set(7), Answer::Done);
        for (set, life) in [(&mortal, true), (&lasting, false)] {
            assert!(is_linearizable(&[set.clone(), get(2, Some(7))]));
            assert_eq!(is_linearizable(&[set.clone(), get(2, Some(7)), get(4, None)]), life);
            assert!(!is_linearizable(&[set.clone(), get(2, None), get(4, Some(7))]), "it comes back");
            let is_mortal = call(2, 3, Action::Life, Answer::Life(Some(life)));
            let is_not = call(2, 3, Action::Life, Answer::Life(Some(!life)));
            assert_eq!([is_mortal, is_not].map(|call| is_linearizable(&[set.clone(), call])), [true, false]);
        }
    }
}
