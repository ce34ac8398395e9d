//! The key-value service against a plain map, and its pages against its state.

use super::*;
use crate::checkpoint::Tree;
use alloc::vec;
use proptest::prelude::*;

type Model = BTreeMap<Bytes, Bytes>;

fn bytes(text: &str) -> Bytes {
    Bytes::copy_from_slice(text.as_bytes())
}

fn execute(kv: &mut Kv, operation: &KvOperation) -> KvResult {
    let encoded = operation.to_bytes();
    let query = kv.query(&encoded, &Asker::default());
    let result = kv.execute(&encoded, &Agreed::default());
    match query {
        Ok(answer) => assert_eq!(answer, result, "a query answers what the ordered operation would"),
        Err(NotReadOnly) => assert!(!operation.is_read_only()),
    }
    KvResult::from_bytes(result).unwrap()
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

/// What the operation means, in the plainest words.
fn model(map: &mut Model, operation: &KvOperation) -> KvResult {
    match operation.clone() {
        KvOperation::Get { key } => KvResult::Value(map.get(&key).cloned()),
        KvOperation::MultiGet { keys } => KvResult::Values(keys.iter().map(|key| map.get(key).cloned()).collect()),
        KvOperation::Range { from, inclusive, limit, keys_only, .. } => {
            let mut entries: Vec<_> = map
                .iter()
                .filter(|(key, _)| if inclusive { **key >= from } else { **key > from })
                .map(|(key, value)| (key.clone(), if keys_only { Bytes::new() } else { value.clone() }))
                .collect();
            let more = entries.len() > limit as usize;
            entries.truncate(limit as usize);
            KvResult::Range { entries, more }
        }
        KvOperation::Count => KvResult::Count(map.len() as u64),
        KvOperation::Exists { keys } => {
            KvResult::Count(keys.iter().filter(|key| map.contains_key(*key)).count() as u64)
        }
        KvOperation::Set { key, value, condition } => {
            let write = match condition {
                Condition::Always => true,
                Condition::Absent => !map.contains_key(&key),
                Condition::Present => map.contains_key(&key),
            };
            if write {
                map.insert(key, value);
            }
            if write { KvResult::Done } else { KvResult::NotDone }
        }
        KvOperation::MultiSet { entries } => {
            map.extend(entries);
            KvResult::Done
        }
        KvOperation::Delete { keys } => {
            KvResult::Count(keys.iter().filter(|key| map.remove(*key).is_some()).count() as u64)
        }
        KvOperation::CompareAndSet { key, expected, value } => {
            if map.get(&key) != expected.as_ref() {
                return KvResult::NotDone;
            }
            match value {
                Some(value) => map.insert(key, value),
                None => map.remove(&key),
            };
            KvResult::Done
        }
        KvOperation::Increment { key, by } => {
            let old = map.get(&key).map_or("0", |value| core::str::from_utf8(value).unwrap()).to_string();
            let Some(number) = old.parse::<i64>().ok().filter(|number| number.to_string() == old) else {
                return KvResult::NotAnInteger;
            };
            let Some(sum) = number.checked_add(by) else { return KvResult::Overflow };
            map.insert(key, bytes(&sum.to_string()));
            KvResult::Integer(sum)
        }
        KvOperation::Splice { key, offset, bytes } => model_splice(map, key, offset, &bytes),
        KvOperation::Transaction { conditions, operations } => {
            if conditions.iter().any(|(key, expected)| map.get(key) != expected.as_ref()) {
                return KvResult::NotDone;
            }
            KvResult::Transaction(operations.iter().map(|part| model(map, part)).collect())
        }
    }
}

fn model_splice(map: &mut Model, key: Bytes, offset: Option<u32>, bytes: &[u8]) -> KvResult {
    let mut value = map.get(&key).map(|value| value.to_vec()).unwrap_or_default();
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
    map.insert(key, value.into());
    KvResult::Integer(length)
}

fn any_key() -> impl Strategy<Value = Bytes> {
    "[ab]{0,3}".prop_map(|key| bytes(&key))
}

fn any_value() -> impl Strategy<Value = Bytes> {
    prop_oneof!["[xy]{0,2}", "[0-9]{1,2}", Just(i64::MAX.to_string())].prop_map(|value| bytes(&value))
}

fn any_operation() -> impl Strategy<Value = KvOperation> {
    let keys = || proptest::collection::vec(any_key(), 0..4);
    let optional = || proptest::option::of(any_value());
    let condition = prop_oneof![Just(Condition::Always), Just(Condition::Absent), Just(Condition::Present)];
    let range = (any_key(), any::<bool>(), 0u32..6, any::<bool>()).prop_map(|(from, inclusive, limit, keys_only)| {
        KvOperation::Range { from, inclusive, limit, bytes: u32::MAX, keys_only }
    });
    prop_oneof![
        any_key().prop_map(|key| KvOperation::Get { key }),
        keys().prop_map(|keys| KvOperation::MultiGet { keys }),
        range,
        Just(KvOperation::Count),
        (any_key(), any_value(), condition).prop_map(|(key, value, condition)| KvOperation::Set {
            key,
            value,
            condition
        }),
        proptest::collection::vec((any_key(), any_value()), 0..4).prop_map(|entries| KvOperation::MultiSet { entries }),
        keys().prop_map(|keys| KvOperation::Exists { keys }),
        keys().prop_map(|keys| KvOperation::Delete { keys }),
        (any_key(), optional(), optional()).prop_map(|(key, expected, value)| KvOperation::CompareAndSet {
            key,
            expected,
            value
        }),
        (any_key(), -3i64..100).prop_map(|(key, by)| KvOperation::Increment { key, by }),
        (any_key(), proptest::option::of(0u32..6), any_value()).prop_map(|(key, offset, bytes)| KvOperation::Splice {
            key,
            offset,
            bytes
        }),
    ]
}

fn any_transaction() -> impl Strategy<Value = KvOperation> {
    let conditions = proptest::collection::vec((any_key(), proptest::option::of(any_value())), 0..2);
    let part = any_operation().prop_filter("no range", |part| !matches!(part, KvOperation::Range { .. }));
    (conditions, proptest::collection::vec(part, 0..5))
        .prop_map(|(conditions, operations)| KvOperation::Transaction { conditions, operations })
}

fn operations() -> impl Strategy<Value = Vec<KvOperation>> {
    proptest::collection::vec(prop_oneof![3 => any_operation(), 1 => any_transaction()], 0..50)
}

proptest! {
    #[test]
    fn behaves_like_a_map(operations in operations()) {
        let (mut kv, mut map) = (Kv::new(), Model::new());
        for operation in &operations {
            prop_assert_eq!(execute(&mut kv, operation), model(&mut map, operation), "{:?}", operation);
        }
        prop_assert!(kv.keys.iter().map(|key| (key, kv.get(key).unwrap())).eq(&map));
        prop_assert_eq!(kv.bytes, map.iter().map(|(key, value)| entry_bytes(key, value) as u64).sum::<u64>());
    }

    #[test]
    fn pages_are_a_function_of_the_entries(first in operations(), second in operations()) {
        let (mut kv, mut tree) = (Kv::new(), Tree::new());
        for operation in &first {
            execute(&mut kv, operation);
        }
        let early = checkpoint(&mut kv, &mut tree);
        kv.take_written();
        let original = kv.clone();
        prop_assert_eq!(&from_tree(&early), &original, "loaded from pages");

        // Execute ahead, and roll back.
        for operation in &second {
            execute(&mut kv, operation);
        }
        let late = checkpoint(&mut kv, &mut tree);
        kv.take_written();
        kv.load(&mut early.changed(&late).into_iter()).unwrap();
        prop_assert_eq!(&kv, &original, "rolled back");
        kv.save(&mut |_, _| panic!("what was loaded is saved"));

        // Another replica, with other checkpoints in between, reaches the same root.
        let (mut other, mut other_tree, mut tree) = (from_tree(&early), early.clone(), early);
        for operation in &second {
            execute(&mut kv, operation);
            execute(&mut other, operation);
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
