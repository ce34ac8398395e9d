//! The key-value service against a plain map, and its pages against its state.

use super::deadline::SWEPT_MAX;
use super::store::{SPLICED_BYTES_MAX, parse_integer};
use super::*;
use crate::checkpoint::Tree;
use crate::digest::Digest;
use crate::service::{Agreed, Asker, BadState, NotReadOnly, PAGE_BYTES_MAX, Service};
use crate::services::kv::bucket::{BUCKET_OVERHEAD, DEADLINE_OVERHEAD, ENTRY_OVERHEAD, bucket_of, entry_bytes};
use crate::time::Instant;
use crate::wire::Wire;
use alloc::collections::{BTreeMap, BTreeSet};
use alloc::string::ToString;
use alloc::vec;
use alloc::vec::Vec;
use bytes::Bytes;
use proptest::prelude::*;

/// Values with deadlines.
type Model = BTreeMap<Bytes, (Bytes, Option<u64>)>;

fn bytes(text: &str) -> Bytes {
    Bytes::copy_from_slice(text.as_bytes())
}

fn agreed(now_ms: u64) -> Agreed {
    Agreed { time: Instant(now_ms * 1_000), ..Agreed::default() }
}

fn execute_at(kv: &mut Kv, operation: &KvOperation, now_ms: u64) -> KvResult {
    let as_of = KvOperation::AsOf { now_ms, operation: operation.clone().into() };
    let question = if matches!(operation, KvOperation::AsOf { .. }) { operation } else { &as_of };
    let query = kv.query(&question.to_bytes(), &Asker::default());
    let is_due = kv.first_deadline(operation).is_some_and(|deadline| deadline <= now_ms);
    let result = kv.execute(&operation.to_bytes(), &agreed(now_ms));
    match query {
        Ok(answer) => assert_eq!(answer, result, "a query answers what the ordered operation would"),
        Err(NotReadOnly) => assert!(!operation.is_query() || is_due),
    }
    KvResult::from_bytes(result).unwrap()
}

fn execute(kv: &mut Kv, operation: &KvOperation) -> KvResult {
    execute_at(kv, operation, 0)
}

fn set(key: &str, value: &str) -> KvOperation {
    KvOperation::Set { key: bytes(key), value: bytes(value), condition: Condition::Always }
}

fn get(key: &str) -> KvOperation {
    KvOperation::Get { key: bytes(key) }
}

/// Saves into the tree and gives the version.
fn checkpoint(kv: &mut Kv, tree: &mut Tree) -> Tree {
    kv.save(&mut |number, content| tree.set(number, content));
    tree.seal();
    tree.clone()
}

fn from_tree(tree: &Tree) -> Kv {
    let mut kv = Kv::new();
    kv.load(&mut tree.iter().map(|(number, content)| (number, Some(content.clone())))).unwrap();
    kv
}

/// What an operation means after what is due is gone, in the plainest words.
fn model(map: &mut Model, operation: &KvOperation, now: u64) -> KvResult {
    let lasting = |value: Bytes| (value, None);
    let get = |map: &Model, key: &Bytes| map.get(key).map(|(value, _)| value.clone());
    match operation.clone() {
        KvOperation::Get { key } => KvResult::Value(get(map, &key)),
        KvOperation::MultiGet { keys } => KvResult::Values(keys.iter().map(|key| get(map, key)).collect()),
        KvOperation::Range { from, inclusive, limit, keys_only, .. } => {
            let mut entries: Vec<_> = map
                .iter()
                .filter(|(key, _)| if inclusive { **key >= from } else { **key > from })
                .map(|(key, (value, _))| (key.clone(), if keys_only { Bytes::new() } else { value.clone() }))
                .collect();
            let more = entries.len() > limit as usize;
            entries.truncate(limit as usize);
            KvResult::Range { entries, more }
        }
        KvOperation::Count => KvResult::Count(map.len() as u64),
        KvOperation::CountDeadlines => {
            KvResult::Count(map.values().filter(|(_, deadline)| deadline.is_some()).count() as u64)
        }
        KvOperation::Exists { keys } => {
            KvResult::Count(keys.iter().filter(|key| map.contains_key(*key)).count() as u64)
        }
        KvOperation::Set { key, value, condition } => model_set(map, key, lasting(value), condition),
        KvOperation::SetUntil { key, value, condition, until } => {
            let kept = map.get(&key).and_then(|(_, deadline)| *deadline);
            let deadline = until.map_or(kept, |until| Some(model_deadline(until, now)));
            let done = model_set(map, key, (value, deadline), condition);
            remove_due(map, now);
            done
        }
        KvOperation::MultiSet { entries } => {
            map.extend(entries.into_iter().map(|(key, value)| (key, lasting(value))));
            KvResult::Done
        }
        KvOperation::Delete { keys } => {
            KvResult::Count(keys.iter().filter(|key| map.remove(*key).is_some()).count() as u64)
        }
        KvOperation::CompareAndSet { key, expected, value } => {
            if get(map, &key) != expected {
                return KvResult::NotDone;
            }
            match value {
                Some(value) => map.insert(key, lasting(value)),
                None => map.remove(&key),
            };
            KvResult::Done
        }
        KvOperation::Increment { key, by } => model_increment(map, key, by),
        KvOperation::Splice { key, offset, bytes } => model_splice(map, key, offset, &bytes),
        KvOperation::Transaction { conditions, operations } => {
            if conditions.iter().any(|(key, expected)| get(map, key) != *expected) {
                return KvResult::NotDone;
            }
            KvResult::Transaction(operations.iter().map(|part| model(map, part, now)).collect())
        }
        KvOperation::Expire { key, until, condition } => model_expire(map, &key, until, condition, now),
        KvOperation::Persist { key } => match map.get_mut(&key).and_then(|(_, deadline)| deadline.take()) {
            Some(_) => KvResult::Done,
            None => KvResult::NotDone,
        },
        KvOperation::Deadline { key } => match map.get(&key) {
            Some((_, deadline_ms)) => KvResult::Deadline { now_ms: now, deadline_ms: *deadline_ms },
            None => KvResult::NotDone,
        },
        KvOperation::AsOf { operation, .. } => model(map, &operation, now),
    }
}

fn model_increment(map: &mut Model, key: Bytes, by: i64) -> KvResult {
    let (old, deadline) = map.get(&key).cloned().unwrap_or((bytes("0"), None));
    let old = core::str::from_utf8(&old).unwrap();
    let Some(number) = old.parse::<i64>().ok().filter(|number| number.to_string() == old) else {
        return KvResult::NotAnInteger;
    };
    let Some(sum) = number.checked_add(by) else { return KvResult::Overflow };
    map.insert(key, (bytes(&sum.to_string()), deadline));
    KvResult::Integer(sum)
}

fn remove_due(map: &mut Model, now: u64) {
    map.retain(|_, (_, deadline)| deadline.is_none_or(|deadline| deadline > now));
}

fn model_deadline(until: Until, now: u64) -> u64 {
    let deadline = match until {
        Until::In(span) => i128::from(now) + i128::from(span),
        Until::At(deadline) => i128::from(deadline),
    };
    deadline.clamp(0, i128::from(i64::MAX)) as u64
}

fn model_set(map: &mut Model, key: Bytes, entry: (Bytes, Option<u64>), condition: Condition) -> KvResult {
    let write = match condition {
        Condition::Always => true,
        Condition::Absent => !map.contains_key(&key),
        Condition::Present => map.contains_key(&key),
    };
    if write {
        map.insert(key, entry);
    }
    if write { KvResult::Done } else { KvResult::NotDone }
}

fn model_expire(map: &mut Model, key: &Bytes, until: Until, condition: DeadlineCondition, now: u64) -> KvResult {
    let Some((_, deadline)) = map.get_mut(key) else { return KvResult::NotDone };
    let (old, new) = (deadline.unwrap_or(u64::MAX), model_deadline(until, now));
    let done = match condition {
        DeadlineCondition::Always => true,
        DeadlineCondition::Absent => old == u64::MAX,
        DeadlineCondition::Present => old < u64::MAX,
        DeadlineCondition::Later => old < new,
        DeadlineCondition::Earlier => new < old,
        DeadlineCondition::PresentEarlier => new < old && old < u64::MAX,
    };
    if !done {
        return KvResult::NotDone;
    }
    *deadline = Some(new);
    remove_due(map, now);
    KvResult::Done
}

fn model_splice(map: &mut Model, key: Bytes, offset: Option<u32>, bytes: &[u8]) -> KvResult {
    let (value, deadline) = map.get(&key).cloned().unwrap_or_default();
    let mut value = value.to_vec();
    match offset {
        None => value.extend_from_slice(bytes),
        Some(_) if bytes.is_empty() => return KvResult::Integer(value.len() as i64),
        Some(offset) => {
            for (place, byte) in (offset as usize..).zip(bytes) {
                value.resize(value.len().max(place + 1), 0);
                value[place] = *byte;
            }
        }
    }
    let length = value.len() as i64;
    map.insert(key, (value.into(), deadline));
    KvResult::Integer(length)
}

fn any_key() -> impl Strategy<Value = Bytes> {
    "[ab]{0,3}".prop_map(|key| bytes(&key))
}

fn any_value() -> impl Strategy<Value = Bytes> {
    prop_oneof!["[xy]{0,2}", "[0-9]{1,2}", Just(i64::MAX.to_string())].prop_map(|value| bytes(&value))
}

fn any_condition() -> impl Strategy<Value = Condition> {
    prop_oneof![Just(Condition::Always), Just(Condition::Absent), Just(Condition::Present)]
}

fn any_operation() -> impl Strategy<Value = KvOperation> {
    prop_oneof![3 => any_timeless_operation(), 2 => any_timed_operation()]
}

fn any_timeless_operation() -> impl Strategy<Value = KvOperation> {
    let keys = || proptest::collection::vec(any_key(), 0..4);
    let optional = || proptest::option::of(any_value());
    let range = (any_key(), any::<bool>(), 0u32..6, any::<bool>()).prop_map(|(from, inclusive, limit, keys_only)| {
        KvOperation::Range { from, inclusive, limit, bytes: u32::MAX, keys_only }
    });
    let set = (any_key(), any_value(), any_condition());
    let entries = proptest::collection::vec((any_key(), any_value()), 0..4);
    let compare = (any_key(), optional(), optional());
    let splice = (any_key(), proptest::option::of(0u32..6), any_value());
    prop_oneof![
        any_key().prop_map(|key| KvOperation::Get { key }),
        keys().prop_map(|keys| KvOperation::MultiGet { keys }),
        range,
        Just(KvOperation::Count),
        set.prop_map(|(key, value, condition)| KvOperation::Set { key, value, condition }),
        entries.prop_map(|entries| KvOperation::MultiSet { entries }),
        keys().prop_map(|keys| KvOperation::Exists { keys }),
        keys().prop_map(|keys| KvOperation::Delete { keys }),
        compare.prop_map(|(key, expected, value)| KvOperation::CompareAndSet { key, expected, value }),
        (any_key(), -3i64..100).prop_map(|(key, by)| KvOperation::Increment { key, by }),
        splice.prop_map(|(key, offset, bytes)| KvOperation::Splice { key, offset, bytes }),
    ]
}

/// Deadlines that come soon, or at the ends of time.
fn any_until() -> impl Strategy<Value = Until> {
    let near = prop_oneof![8 => -2i64..20, 1 => Just(i64::MIN), 1 => Just(i64::MAX)];
    let at = prop_oneof![8 => NOW as i64 - 2..NOW as i64 + 60, 1 => Just(i64::MIN), 1 => Just(i64::MAX)];
    prop_oneof![near.prop_map(Until::In), at.prop_map(Until::At)]
}

fn any_timed_operation() -> impl Strategy<Value = KvOperation> {
    let set = (any_key(), any_value(), any_condition(), proptest::option::of(any_until()));
    let condition = prop_oneof![
        3 => Just(DeadlineCondition::Always),
        1 => Just(DeadlineCondition::Absent),
        1 => Just(DeadlineCondition::Present),
        1 => Just(DeadlineCondition::Later),
        1 => Just(DeadlineCondition::Earlier),
        1 => Just(DeadlineCondition::PresentEarlier),
    ];
    let expire = (any_key(), any_until(), condition);
    prop_oneof![
        3 => set.prop_map(|(key, value, condition, until)| KvOperation::SetUntil { key, value, condition, until }),
        3 => expire.prop_map(|(key, until, condition)| KvOperation::Expire { key, until, condition }),
        1 => any_key().prop_map(|key| KvOperation::Persist { key }),
        2 => any_key().prop_map(|key| KvOperation::Deadline { key }),
        1 => Just(KvOperation::CountDeadlines),
    ]
}

fn any_transaction() -> impl Strategy<Value = KvOperation> {
    let conditions = proptest::collection::vec((any_key(), proptest::option::of(any_value())), 0..2);
    let part = any_operation().prop_filter("no range", |part| !matches!(part, KvOperation::Range { .. }));
    (conditions, proptest::collection::vec(part, 0..5))
        .prop_map(|(conditions, operations)| KvOperation::Transaction { conditions, operations })
}

/// When the agreed time begins.
const NOW: u64 = 1_000;

/// Operations, and how much later than the one before each is.
fn operations() -> impl Strategy<Value = Vec<(KvOperation, u64)>> {
    let operation = prop_oneof![3 => any_operation(), 1 => any_transaction()];
    proptest::collection::vec((operation, prop_oneof![Just(0), 0u64..12]), 0..50)
}

/// Executes them, and says what time it is then.
fn execute_all(kv: &mut Kv, operations: &[(KvOperation, u64)], mut now: u64) -> u64 {
    for (operation, later) in operations {
        now += later;
        execute_at(kv, operation, now);
    }
    now
}

proptest! {
    #[test]
    fn behaves_like_a_map(operations in operations()) {
        let (mut kv, mut map, mut now) = (Kv::new(), Model::new(), NOW);
        for (operation, later) in &operations {
            now += later;
            remove_due(&mut map, now);
            prop_assert_eq!(execute_at(&mut kv, operation, now), model(&mut map, operation, now), "{:?}", operation);
        }
        let entry = |key| kv.entry(key).map(|entry| (entry.value.clone(), entry.deadline_ms)).unwrap();
        prop_assert!(kv.keys.iter().map(|key| (key.clone(), entry(key))).eq(map.clone()));
        let due = map.iter().filter_map(|(key, (_, deadline))| Some(((*deadline)?, key.clone())));
        prop_assert_eq!(&kv.due, &due.collect());
        let bytes = |(key, (value, deadline)): (&Bytes, &(Bytes, Option<u64>))| {
            entry_bytes(key, value) + deadline.map_or(0, |_| DEADLINE_OVERHEAD)
        };
        prop_assert_eq!(kv.bytes, map.iter().map(bytes).sum::<usize>() as u64);
    }

    #[test]
    fn pages_are_a_function_of_the_entries(first in operations(), second in operations()) {
        let (mut kv, mut tree) = (Kv::new(), Tree::new());
        let now = execute_all(&mut kv, &first, NOW);
        let early = checkpoint(&mut kv, &mut tree);
        kv.take_written();
        let original = kv.clone();
        prop_assert_eq!(&from_tree(&early), &original, "loaded from pages");

        // Execute ahead, and roll back.
        execute_all(&mut kv, &second, now);
        let late = checkpoint(&mut kv, &mut tree);
        kv.take_written();
        kv.load(&mut early.changed(&late).into_iter()).unwrap();
        prop_assert_eq!(&kv, &original, "rolled back");
        kv.save(&mut |_, _| panic!("what was loaded is saved"));

        // Another replica, with other checkpoints in between, reaches the same root and answers the same.
        let (mut other, mut other_tree, mut tree) = (from_tree(&early), early.clone(), early);
        let mut now = now;
        for (operation, later) in &second {
            now += later;
            prop_assert_eq!(execute_at(&mut kv, operation, now), execute_at(&mut other, operation, now));
            checkpoint(&mut other, &mut other_tree);
        }
        prop_assert_eq!(checkpoint(&mut kv, &mut tree).root(), other_tree.root());
        prop_assert_eq!(kv, other);
    }

    #[test]
    fn garbage_is_answered(operation in proptest::collection::vec(any::<u8>(), 0..40)) {
        let mut kv = Kv::new();
        let result = kv.execute(&operation, &Agreed::default());
        prop_assert!(KvResult::from_bytes(result).is_ok());
    }
}

#[test]
fn integers_are_redis_integers() {
    for (text, number) in [("0", Some(0)), ("-7", Some(-7)), ("9223372036854775807", Some(i64::MAX))] {
        assert_eq!(parse_integer(text.as_bytes()), number);
    }
    for text in ["", "+1", "01", "-0", " 1", "1 ", "1.0", "9223372036854775808", "x", "\u{0661}"] {
        assert_eq!(parse_integer(text.as_bytes()), None, "{text:?}");
    }
}

#[test]
fn a_full_bucket_refuses_a_multi_set_as_a_whole_and_takes_it_when_there_is_room() {
    let mut kv = Kv::new();
    let value = Bytes::from(vec![b'v'; VALUE_BYTES_MAX]);
    let mut keys = (0..).map(|i: u32| bytes(&i.to_string())).filter(|key| bucket_of(key) == 7);
    let (first, second, third) = (keys.next().unwrap(), keys.next().unwrap(), keys.next().unwrap());
    let elsewhere = bytes("elsewhere");
    assert_ne!(bucket_of(&elsewhere), 7);
    let write = |key: &Bytes| KvOperation::Set { key: key.clone(), value: value.clone(), condition: Condition::Always };
    assert_eq!(execute(&mut kv, &write(&first)), KvResult::Done);
    let both =
        KvOperation::MultiSet { entries: vec![(elsewhere.clone(), bytes("x")), (second.clone(), value.clone())] };
    let before = kv.clone();
    assert_eq!(execute(&mut kv, &both), KvResult::Full, "two values and their keys exceed a page");
    assert_eq!(kv, before);
    let small = KvOperation::Set { key: third, value: bytes("x"), condition: Condition::Always };
    assert_eq!(execute(&mut kv, &small), KvResult::Done, "the bucket still takes what fits");
    assert_eq!(execute(&mut kv, &write(&first)), KvResult::Done, "a value may be replaced");
    let delete = KvOperation::Delete { keys: vec![first] };
    assert_eq!(execute(&mut kv, &delete), KvResult::Count(1));
    assert_eq!(execute(&mut kv, &both), KvResult::Done);
    checkpoint(&mut kv, &mut Tree::new());
}

#[test]
fn a_full_service_refuses() {
    let mut kv = Kv::new();
    kv.bytes = TOTAL_BYTES_MAX - entry_bytes(b"k", b"v") as u64;
    assert_eq!(execute(&mut kv, &set("k", "vv")), KvResult::Full);
    assert_eq!(execute(&mut kv, &set("k", "v")), KvResult::Done);
    assert_eq!(execute(&mut kv, &set("", "")), KvResult::Full);
    assert_eq!(execute(&mut kv, &set("k", "w")), KvResult::Done, "a value may be replaced");
}

#[test]
fn results_are_bounded() {
    let mut kv = Kv::new();
    let value = Bytes::from(vec![b'v'; RESULT_BYTES_MAX / 2]);
    for key in ["a", "b", "c"] {
        let operation = KvOperation::Set { key: bytes(key), value: value.clone(), condition: Condition::Always };
        assert_eq!(execute(&mut kv, &operation), KvResult::Done);
    }
    let keys = vec![bytes("a"), bytes("b")];
    assert_eq!(execute(&mut kv, &KvOperation::MultiGet { keys }), KvResult::TooLarge);
    let range = |from: &str, bytes: u32| KvOperation::Range {
        from: Bytes::copy_from_slice(from.as_bytes()),
        inclusive: false,
        limit: 10,
        bytes,
        keys_only: false,
    };
    for budget in [0, u32::MAX] {
        let KvResult::Range { entries, more } = execute(&mut kv, &range("", budget)) else { panic!("a range") };
        assert_eq!((entries.len(), more), (1, true), "one fits, or is given although it does not");
    }
    let KvResult::Range { entries, more } = execute(&mut kv, &range("b", 0)) else { panic!("a range") };
    assert_eq!((entries.len(), more), (1, false));
}

#[test]
fn pages_that_nobody_saved_are_refused() {
    let mut kv = Kv::new();
    execute(&mut kv, &set("key", "value"));
    let mut saved = Vec::new();
    kv.save(&mut |number, content| saved.push((number, content)));
    let [(number, Some(page))] = saved.as_slice() else { panic!("one page") };
    let load = |number, page: Option<Bytes>| Kv::new().load(&mut [(number, page)].into_iter());
    assert_eq!(load(*number, Some(page.clone())), Ok(()));
    assert_eq!(load((number + 1) % BUCKETS, Some(page.clone())), Err(BadState), "another bucket's");
    assert_eq!(load(BUCKETS, None), Err(BadState));
    assert_eq!(load(*number, Some(page.slice(1..))), Err(BadState));
    assert_eq!(load(*number, Some(Bytes::from_static(&[0; 4]))), Err(BadState), "an empty bucket has no page");
    assert_eq!(execute(&mut kv, &get("key")), KvResult::Value(Some(bytes("value"))));
}

#[test]
fn the_root_of_known_entries_never_changes() {
    let (mut kv, mut tree) = (Kv::new(), Tree::new());
    for i in 0..100 {
        execute(&mut kv, &set(&alloc::format!("key{i}"), &alloc::format!("value{i}")));
    }
    assert_eq!(
        checkpoint(&mut kv, &mut tree).root().to_string(),
        "d5db26c0d5821f8da49ff9abaf947b41a1dcfcf21eb16dc4b8b7095547710c28"
    );
}

#[test]
fn an_empty_value_is_not_what_was_removed() {
    let (mut one, mut other) = (Kv::new(), Kv::new());
    for kv in [&mut one, &mut other] {
        execute(kv, &set("k", "v"));
        kv.take_written();
    }
    execute(&mut one, &set("k", ""));
    execute(&mut other, &KvOperation::Delete { keys: vec![bytes("k")] });
    assert_ne!(one.take_written(), other.take_written());
}

#[test]
fn a_transaction_is_done_but_for_what_fails_in_it_or_not_at_all() {
    let mut kv = Kv::new();
    let increment = |key: &str| KvOperation::Increment { key: bytes(key), by: 1 };
    let transaction = |conditions, operations| KvOperation::Transaction { conditions, operations };
    let parts = vec![set("text", "x"), increment("text"), increment("n"), get("n"), get("none")];
    let done = KvResult::Transaction(vec![
        KvResult::Done,
        KvResult::NotAnInteger,
        KvResult::Integer(1),
        KvResult::Value(Some(bytes("1"))),
        KvResult::Value(None),
    ]);
    let absent = vec![(bytes("text"), None)];
    assert_eq!(execute(&mut kv, &transaction(absent.clone(), parts.clone())), done);
    assert_ne!(kv.take_written(), Digest::ZERO);
    let before = kv.clone();
    assert_eq!(execute(&mut kv, &transaction(absent, parts)), KvResult::NotDone);
    assert_eq!(kv, before);
    assert_eq!(kv.take_written(), Digest::ZERO);
    let same = vec![(bytes("text"), Some(bytes("x"))), (bytes("none"), None)];
    assert_eq!(execute(&mut kv, &transaction(same, vec![])), KvResult::Transaction(vec![]));
}

#[test]
fn the_answers_of_a_transaction_are_bounded_together() {
    let mut kv = Kv::new();
    let value = Bytes::from(vec![b'v'; RESULT_BYTES_MAX / 2 - ENTRY_OVERHEAD]);
    let write = KvOperation::Set { key: bytes("k"), value: value.clone(), condition: Condition::Always };
    let parts = vec![write, get("k"), get("k"), get("k"), set("after", "x")];
    let read = KvResult::Value(Some(value));
    let results = vec![KvResult::Done, read.clone(), read, KvResult::TooLarge, KvResult::Done];
    let transaction = KvOperation::Transaction { conditions: vec![], operations: parts };
    assert_eq!(execute(&mut kv, &transaction), KvResult::Transaction(results));
}

#[test]
fn splices_are_bounded_alone_and_in_a_transaction() {
    let mut kv = Kv::new();
    let splice = |offset, text: &str| KvOperation::Splice { key: bytes("k"), offset, bytes: bytes(text) };
    let last = VALUE_BYTES_MAX as u32 - 1;
    assert_eq!(execute(&mut kv, &splice(Some(last), "xy")), KvResult::TooLarge);
    assert_eq!(execute(&mut kv, &splice(Some(u32::MAX), "x")), KvResult::TooLarge);
    assert_eq!(kv, Kv::new());
    assert_eq!(execute(&mut kv, &splice(Some(last), "x")), KvResult::Integer(VALUE_BYTES_MAX as i64));
    assert_eq!(execute(&mut kv, &splice(None, "x")), KvResult::TooLarge);
    let room = SPLICED_BYTES_MAX / VALUE_BYTES_MAX;
    let operations = vec![splice(Some(0), "x"); room + 1];
    let result = execute(&mut kv, &KvOperation::Transaction { conditions: vec![], operations });
    let mut results = vec![KvResult::Integer(VALUE_BYTES_MAX as i64); room];
    results.push(KvResult::TooLarge);
    assert_eq!(result, KvResult::Transaction(results));
}

fn set_until(key: &str, deadline: i64) -> KvOperation {
    let (condition, until) = (Condition::Always, Some(Until::At(deadline)));
    KvOperation::SetUntil { key: bytes(key), value: bytes("v"), condition, until }
}

#[test]
fn a_page_without_deadlines_is_what_it_was_and_one_with_them_has_one_form() {
    let page = |operation: &KvOperation| {
        let (mut kv, mut saved) = (Kv::new(), Vec::new());
        execute(&mut kv, operation);
        kv.save(&mut |number, content| saved.push((number, content)));
        let [(number, Some(page))] = saved.as_slice() else { panic!("one page") };
        (*number, page.to_vec())
    };
    let ((number, plain), (same, timed)) = (page(&set("k", "v")), page(&set_until("k", 7)));
    assert_eq!(number, same);
    assert_eq!(plain, b"\x01\0\0\0\x01\0\0\0k\x01\0\0\0v");
    let deadlines = |count: u32, places: &[u32]| {
        let listed = places.iter().flat_map(|place| (*place, 7u64).to_bytes());
        plain.iter().copied().chain(count.to_le_bytes()).chain(listed).collect::<Vec<u8>>()
    };
    assert_eq!(timed, deadlines(1, &[0]));
    let load = |page: Vec<u8>| Kv::new().load(&mut [(number, Some(page.into()))].into_iter());
    assert_eq!(load(timed), Ok(()));
    for (count, places) in [(0, &[][..]), (1, &[1]), (2, &[0]), (2, &[0, 0]), (1, &[0, 0]), (u32::MAX, &[0])] {
        assert_eq!(load(deadlines(count, places)), Err(BadState), "{count} {places:?}");
    }
}

#[test]
fn who_has_seen_a_key_gone_does_not_see_it_again() {
    let mut kv = Kv::new();
    let count = SWEPT_MAX + 20;
    for i in 0..count {
        execute_at(&mut kv, &set_until(&alloc::format!("{i:03}"), 10 + i as i64), 1);
    }
    let last = alloc::format!("{:03}", count - 1);
    let as_of = |now_ms, key: &str| KvOperation::AsOf { now_ms, operation: get(key).into() }.to_bytes();
    let query = |kv: &Kv, operation: &[u8]| kv.query(operation, &Asker::default());
    let there: Bytes = KvResult::Value(Some(bytes("v"))).to_bytes().into();
    assert_eq!(query(&kv, &as_of(20, &last)), Ok(there.clone()), "its deadline is ahead");
    assert_eq!(query(&kv, &as_of(1_000, &last)), Err(NotReadOnly), "only in order can it be removed");
    assert_eq!(query(&kv, &get(&last).to_bytes()), Ok(there), "who gives no time sees what was executed last");

    // More are due at once than one operation removes: what it names is gone all the same, everywhere.
    assert_eq!(execute_at(&mut kv, &get(&last), 1_000), KvResult::Value(None));
    assert_eq!(kv.keys.len(), count - SWEPT_MAX - 1);
    let gone: Bytes = KvResult::Value(None).to_bytes().into();
    assert_eq!(query(&kv, &as_of(1, &last)), Ok(gone.clone()), "a clock that is slow does not bring it back");
    assert_eq!(query(&kv, &get(&last).to_bytes()), Ok(gone));
    assert_ne!(kv.take_written(), Digest::ZERO, "it was written, by a read");

    // Who asks for all keys is shown none that is due.
    assert_eq!(execute_at(&mut kv, &KvOperation::Count, 1_000), KvResult::Count(0));
    assert_eq!((kv.bytes, kv.due.len()), (0, 0));
}

#[test]
fn a_bucket_has_room_for_its_deadlines_or_refuses_them() {
    let mut kv = Kv::new();
    let mut keys = (0..).map(|i: u32| bytes(&i.to_string())).filter(|key| bucket_of(key) == 7);
    let (first, second) = (keys.next().unwrap(), keys.next().unwrap());
    let value = |length: usize| Bytes::from(vec![b'v'; length]);
    let left = PAGE_BYTES_MAX - BUCKET_OVERHEAD - entry_bytes(&first, &value(VALUE_BYTES_MAX));
    let rest = value(left - entry_bytes(&second, b"") - DEADLINE_OVERHEAD);
    let entries = vec![(first.clone(), value(VALUE_BYTES_MAX)), (second.clone(), rest)];
    assert_eq!(execute(&mut kv, &KvOperation::MultiSet { entries }), KvResult::Done);
    let expire = |key: &Bytes, span: i64| {
        let (until, condition) = (Until::In(span), DeadlineCondition::Always);
        KvOperation::Expire { key: key.clone(), until, condition }
    };
    assert_eq!(execute(&mut kv, &expire(&first, 9)), KvResult::Done);
    assert_eq!(execute(&mut kv, &expire(&second, 9)), KvResult::Full);
    assert_eq!(execute(&mut kv, &expire(&first, 8)), KvResult::Done, "a deadline may be replaced");
    checkpoint(&mut kv, &mut Tree::new());
    assert_eq!(execute(&mut kv, &KvOperation::Persist { key: first }), KvResult::Done);
    assert_eq!(execute(&mut kv, &expire(&second, 9)), KvResult::Done);
    assert_eq!(execute_at(&mut kv, &KvOperation::Count, 9), KvResult::Count(1));
}

#[test]
fn another_deadline_is_another_write() {
    let mut digests = BTreeSet::new();
    for deadline in [None, Some(Until::At(8)), Some(Until::At(9))] {
        let mut kv = Kv::new();
        let set =
            KvOperation::SetUntil { key: bytes("k"), value: bytes("v"), condition: Condition::Always, until: deadline };
        execute(&mut kv, &set);
        assert!(digests.insert(kv.take_written()));
        if let Some(until) = deadline {
            let condition = DeadlineCondition::Always;
            execute(&mut kv, &KvOperation::Expire { key: bytes("k"), until, condition });
            assert!(digests.insert(kv.take_written()));
        }
    }
}
