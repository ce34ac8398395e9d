//! Linearizability of what honest clients saw, reads included.
//!
//! Wing and Gong's search with Lowe's memory: find an order of the calls that respects real time and in which every
//! answer is what the sequential store answers. Keys are independent, so each is searched alone. A call that nobody
//! knows the end of may have been executed at any time after it began, or never. A value that does not live for ever
//! may go at any time, but it goes once.
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

/// See the [module](self).
#[derive(Debug, Default)]
pub struct Linearizability {
    keys: BTreeMap<Key, BTreeMap<u64, Call>>,
    key_of: BTreeMap<u64, Key>,
    /// Events have an order that true time is too coarse for.
    events: u64,
}

/// Calls of one key that a search can hold in its mask; more are not drawn by any plan.
const CALLS_MAX: usize = 128;

struct Search<'a> {
    /// In the order in which they began.
    calls: &'a [Call],
    /// All calls that have ended.
    ended: u128,
    dead_ends: BTreeSet<(u128, Option<Held>)>,
}

impl Search<'_> {
    /// Whether the calls not in `done` can follow a store that holds this.
    fn order_exists(&mut self, done: u128, held: Option<Held>) -> bool {
        if done & self.ended == self.ended {
            return true;
        }
        if self.dead_ends.contains(&(done, held)) {
            return false;
        }
        let open = |index: &usize| done & (1 << index) == 0;
        let first_end = (0..self.calls.len())
            .filter(open)
            .filter_map(|index| self.calls[index].end.map(|(end, _)| end))
            .min()
            .unwrap_or(u64::MAX);
        for index in (0..self.calls.len()).filter(open) {
            let call = &self.calls[index];
            if call.begin > first_end {
                break;
            }
            let (answer, next) = call.action.apply(held);
            if call.end.is_none_or(|(_, seen)| seen == answer) && self.order_exists(done | 1 << index, next) {
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
    let ended = calls.iter().enumerate().filter(|(_, call)| call.end.is_some());
    let ended = ended.fold(0, |mask, (index, _)| mask | 1 << index);
    Search { calls, ended, dead_ends: BTreeSet::new() }.order_exists(0, None)
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
            assert!(calls.len() <= CALLS_MAX, "plans are small");
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

    fn call(begin: u64, end: u64, action: Action, answer: Answer) -> Call {
        Call { action, begin, end: Some((end, answer)) }
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
