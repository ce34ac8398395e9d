//! `Q1`, the statement that once stopped clusters for good: SQLite draws the name of the sixth equal column at random,
//! so that every replica has another table, and they never agree on anything again. The SQL service refuses such names;
//! here it lets them through, so that the one thing that helps is the way out of a poison request
//! ([`bezant_core::dissent`]): `Q1` costs itself and not the cluster.
//!
//! SQLite has one generator for a whole process: four services in one process draw four names.

mod support;

use bezant_core::client::Completion;
use bezant_core::cluster::{ClientAuth, Cluster, Limits};
use bezant_core::digest::Digest;
use bezant_core::ids::InstanceId;
use bezant_core::message::Refusal;
use bezant_core::notice::Notice;
use bezant_core::schedule::Protocol;
use bezant_core::service::{Asker, Service};
use bezant_core::time::Duration;
use bezant_core::wire::Wire;
use bezant_sql::{Request, Response, Sql, Statement, Value};
use std::collections::BTreeSet;
use support::World;

const Q1: &str =
    "create table j as select t1.id, t2.id, t3.id, t4.id, t5.id, t6.id from a t1, a t2, a t3, a t4, a t5, a t6";

/// The columns of what `Q1` makes.
const COLUMNS: &str = "select name from pragma_table_info('j')";

/// Who asks for `Q1`, and who goes on.
const POISONER: usize = 0;
const BYSTANDER: usize = 1;

/// How long anything may take.
const PATIENCE: Duration = Duration::from_millis(120_000);

fn operation(sql: &str) -> Vec<u8> {
    Request::one(Statement::new(sql)).to_bytes()
}

/// What a replica has now.
fn rows(world: &World<Sql>, replica: usize, sql: &str) -> Vec<Vec<Value>> {
    let answer = world.replicas[replica].service().query(&operation(sql), &Asker::default()).expect("it is a read");
    match Response::from_bytes(answer) {
        Ok(Response::Done(mut results)) => results.remove(0).rows,
        other => panic!("{sql}: {other:?}"),
    }
}

/// Carries out a statement that nothing is wrong with.
fn carry_out(world: &mut World<Sql>, client: usize, sql: &str) {
    let before = world.completed[client].len();
    world.submit(client, operation(sql));
    let is_answered = world.until(PATIENCE, |world| world.completed[client].len() > before);
    assert!(is_answered, "{sql} is not answered: {:?}", world.replicas[0].report());
    let result = &world.completed[client][before].result;
    let Completion::Done(answer) = result else { panic!("{sql}: {result:?}") };
    assert!(matches!(Response::from_bytes(answer.clone()), Ok(Response::Done(_))), "{sql}: {answer:?}");
}

/// Asks for `Q1`, and waits until each replica has executed it. The columns that each then has.
fn poison(world: &mut World<Sql>) -> Vec<Vec<Vec<Value>>> {
    world.submit(POISONER, operation(Q1));
    let mut seen = vec![Vec::new(); world.replicas.len()];
    let all_have_it = world.until(PATIENCE, |world| {
        for (replica, columns) in seen.iter_mut().enumerate().filter(|(_, columns)| columns.is_empty()) {
            *columns = rows(world, replica, COLUMNS);
        }
        seen.iter().all(|columns| columns.len() == 6)
    });
    assert!(all_have_it, "not all execute Q1: {seen:?}");
    seen
}

/// The last checkpoint of which a replica is certain: in a Backup it is stable, elsewhere all have it.
fn certain(notices: &[Notice]) -> Option<(InstanceId, u64, Digest)> {
    notices.iter().rev().find_map(|notice| match *notice {
        Notice::Stable { instance, sequence, root } => Some((instance, sequence.0, root)),
        Notice::Anchored { instance, position, root } => Some((instance, position, root)),
        _ => None,
    })
}

/// Whether all are certain of the same state at the same checkpoint. None of them comes before `Q1`.
fn have_one_root(world: &World<Sql>) -> bool {
    let first = certain(&world.notices[0]);
    first.is_some() && world.notices.iter().all(|notices| certain(notices) == first)
}

fn q1_costs_itself_alone(protocol: Protocol, interval: u64) {
    let limits = Limits { checkpoint_interval: interval, history_interval: interval, ..Limits::default() };
    let cluster = Cluster::new([1; 16], 4, 1, ClientAuth::Hybrid, limits).expect("4 is 3 · 1 + 1");
    let mut world = World::new(cluster.with_protocol(protocol), 2, || Sql::new().with_drawn_names());
    carry_out(&mut world, POISONER, "create table a(id integer primary key)");
    carry_out(&mut world, POISONER, "insert into a values (1), (2)");
    carry_out(&mut world, BYSTANDER, "insert into a values (3)");
    assert!(world.notices.iter().all(|notices| certain(notices).is_none()), "{protocol}: a checkpoint before Q1");

    let drawn: BTreeSet<String> = poison(&mut world).iter().map(|columns| format!("{columns:?}")).collect();
    assert_eq!(drawn.len(), world.replicas.len(), "{protocol}: each replica has names of its own: {drawn:?}");

    for id in 4..24 {
        carry_out(&mut world, BYSTANDER, &format!("insert into a values ({id})"));
    }
    let is_answered = |world: &World<Sql>| world.completed[POISONER].len() == 3;
    assert!(world.until(PATIENCE, is_answered), "{protocol}: Q1 is not answered");
    assert_eq!(world.completed[POISONER][2].result, Completion::Refused(Refusal::Disputed), "{protocol}");
    assert!(world.until(PATIENCE, have_one_root), "{protocol}: they have no common checkpoint");
    let expected: Vec<Vec<Value>> = (1..24).map(|id| vec![Value::Integer(id)]).collect();
    for replica in 0..world.replicas.len() {
        assert!(rows(&world, replica, COLUMNS).is_empty(), "{protocol}: replica {replica} has j");
        assert_eq!(rows(&world, replica, "select id from a order by id"), expected, "{protocol}: replica {replica}");
        // Which `status` shows as `requests_disputed`.
        assert_eq!(world.replicas[replica].report().disputed.0, 1, "{protocol}: replica {replica}");
    }
}

/// What lives through `Q1`.
const PROTOCOLS: &[Protocol] =
    &[Protocol::Pbft, Protocol::Aliph, Protocol::Ring, Protocol::Quorum, Protocol::ZLight, Protocol::Chain];

/// With a checkpoint right after `Q1`, which cannot become stable, and with none for long, so that only what clients
/// ask again shows that something is wrong.
#[test]
fn q1_is_refused_and_the_cluster_lives() {
    for &protocol in PROTOCOLS {
        for interval in [4, 128] {
            q1_costs_itself_alone(protocol, interval);
        }
    }
}
