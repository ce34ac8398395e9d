//! Every way through two instances, on the real code: Quorum, in which two clients race, then Chain, in which a third
//! one joins them; four replicas, one of them a liar.
//!
//! All combinations are tried of
//!
//! * what each correct replica logs in Quorum: nothing, either request, or both in either order;
//! * what the liar reports: any of that, something else to everybody;
//! * which provable history each replica begins Chain with, the liar included: one for all, or one up to some place
//!   and another from there on, where the chain has to break;
//! * what the liar does in Chain: what it should, nothing, or abs-S1: it passes on every batch as if it followed the
//!   history of its successor.
//!
//! Then everybody stops, and whatever 2f+1 reports of Chain are put together, with any lie, the history that they prove
//! has all that committed in either instance. Messages arrive in rounds; their interleavings are the simulator's.
//! That makes 2,778 cases for each of the liar's two places, 345,197 messages, and 10 s of processor time in all. The
//! mutants s1-chain-binds-history, s1-inherited-is-answered-when-shared, s5-service-is-rolled-back and
//! abort-history-is-longest do not survive it.
//! The two clients are alike, so that one of two mirror images is left out; so is what a liar does in a chain that
//! breaks before it comes to it.

extern crate std;

use super::run::Run;
use super::script::Report;
use crate::auth::Claimed;
use crate::digest::Digest;
use crate::history::LogEntry;
use crate::ids::{InstanceId, Principal, ReplicaId};
use crate::protocols::chain::Topology;
use crate::registry::Message;
use crate::schedule::Protocol;
use crate::testing::net::{Frame, c, r};
use alloc::collections::BTreeMap;
use alloc::vec::Vec;

const QUORUM: InstanceId = InstanceId(1);
const CHAIN: InstanceId = InstanceId(2);

/// What a replica may log in Quorum: the clients' requests in this order.
const LOGS: [&[u32]; 5] = [&[], &[0], &[1], &[0, 1], &[1, 0]];
/// The same with the clients exchanged.
const MIRRORED: [usize; 5] = [0, 2, 1, 4, 3];

#[derive(Clone, Copy, Debug)]
enum Conduct {
    Proper,
    Silent,
    Forging,
}

/// Two clients ask; each replica logs what it is told to; clients hear all answers and nobody hears them panic.
fn quorum(logs: [usize; 4]) -> Run {
    let mut run = Run::new(Protocol::Aliph, 4, 3, 1);
    run.invoke(0);
    run.invoke(1);
    let requests = core::mem::take(&mut run.net.in_flight);
    for (id, log) in (0..).zip(logs) {
        for session in LOGS[log] {
            let request = requests.iter().find(|frame| frame.from == c(*session) && frame.to == r(id));
            run.deliver(request.unwrap().clone());
        }
    }
    run.round();
    run.net.in_flight.clear();
    run
}

/// Every history that 2f+1 reports prove, with these reports: those of the correct replicas and any one of the lies.
/// Whatever committed is in all of them.
fn provable(run: &Run, correct: &BTreeMap<u8, Report>, lies: &[Report]) -> Vec<[Report; 3]> {
    let all: Vec<&Report> = correct.values().collect();
    // Who was told that a later instance runs before it stopped has said nothing.
    let mut sets: Vec<[&Report; 3]> = Vec::new();
    if let [one, two, three] = all[..] {
        sets.push([one, two, three]);
    }
    for (at, one) in all.iter().enumerate() {
        for other in &all[at + 1..] {
            sets.extend(lies.iter().map(|lie| [*one, *other, lie]));
        }
    }
    let end = |set: &[&Report; 3]| {
        let history = run.proved(*set);
        (history.position, history.history())
    };
    let proved: BTreeMap<(u64, Digest), _> = sets.into_iter().map(|set| (end(&set), set.map(Clone::clone))).collect();
    proved.into_values().collect()
}

/// The liar's batch as if it followed the history of the next place.
pub(super) fn forged(run: &Run, liar: u8, frame: &Frame) -> Option<Message> {
    let (Message::Chain(message), Principal::Replica(next)) = (&frame.message, frame.to) else { return None };
    if frame.from != r(liar) {
        return None;
    }
    let topology = Topology::new(run.net.cluster.replicas, ReplicaId(0));
    let place = topology.place(ReplicaId(liar));
    let mut message = message.clone();
    let begin = run.net.hosts[next.0 as usize].replica.estate();
    message.first = begin.position() + 1;
    let entries = message.requests.iter().map(|request| LogEntry::new(message.proposal.clone(), request.clone()));
    message.history = entries.fold(begin.history(), |history, entry| history.chain(entry.digest()));
    let statement = message.statement(&topology, place);
    for (at, (maker, receiver)) in topology.carried(place).enumerate() {
        if maker == place {
            message.tags[at] = run.net.keyring(r(liar)).tag(Principal::Replica(topology.at(receiver)), &statement);
        }
    }
    Some(Message::Chain(message))
}

/// Chain: all clients are told of it, and ask again what Quorum did not answer, or something new.
fn chain(mut run: Run, liar: u8, conduct: Conduct) -> Run {
    if matches!(conduct, Conduct::Silent) {
        run.net.lose(move |frame| frame.from == r(liar));
        run.net.in_flight.retain(|frame| frame.from != r(liar));
    }
    settle(&mut run, liar, conduct);
    for session in 0..3 {
        run.redirect(session, CHAIN);
    }
    for session in 0..3 {
        run.invoke(session);
    }
    settle(&mut run, liar, conduct);
    run
}

fn settle(run: &mut Run, liar: u8, conduct: Conduct) {
    while !run.net.in_flight.is_empty() {
        if matches!(conduct, Conduct::Forging) {
            for frame in core::mem::take(&mut run.net.in_flight) {
                match forged(run, liar, &frame) {
                    Some(message) => run.net.forge(frame.from, frame.to, message),
                    None => run.net.in_flight.push(frame),
                }
            }
        }
        run.round();
    }
}

/// Everybody stops in Chain, and whatever is made of the reports has what committed.
fn check_chain(mut run: Run, liar: u8) {
    let mut correct = run.stop(CHAIN);
    correct.remove(&liar);
    // Nobody here looks at the signatures of these.
    let lies: Vec<_> = correct
        .values()
        .map(|report| Claimed::signed(report.claims().clone(), ReplicaId(liar), report.signature()))
        .collect();
    provable(&run, &correct, &lies);
    run.check();
}

/// What was explored.
#[derive(Default)]
struct Tally {
    cases: usize,
    messages: usize,
    in_quorum: usize,
    in_chain: usize,
}

/// All cases in which these are the logs of the correct replicas.
fn explore_from(liar: u8, logs: [usize; 3], lies: &[Report], tally: &mut Tally) {
    let at = usize::from(liar);
    let mut all = logs.to_vec();
    // In Quorum the liar answers like the first correct replica, which is what a commit needs.
    all.insert(at, logs[0]);
    let run = quorum(all.try_into().unwrap());
    let mut correct = run.clone().stop(QUORUM);
    correct.remove(&liar);
    let proved = provable(&run, &correct, lies);
    tally.in_quorum += run.commits.len();
    for choice in 0..proved.len().pow(4) {
        let begin: [usize; 4] = core::array::from_fn(|id| choice / proved.len().pow(id as u32) % proved.len());
        if begin.windows(2).filter(|pair| pair[0] != pair[1]).count() > 1 {
            continue;
        }
        let mut begun = run.clone();
        begun.begin(begin.map(|history| proved[history].each_ref()));
        for conduct in [Conduct::Proper, Conduct::Silent, Conduct::Forging] {
            let matters = match conduct {
                Conduct::Proper => true,
                // A chain that would break anyway breaks no further.
                Conduct::Silent => begin.iter().all(|history| *history == begin[0]),
                // It needs the batch that it forges, and is honest if its successor has the same history.
                Conduct::Forging => begin[at] == begin[at - 1] && begin[at] != begin[at + 1],
            };
            if !matters {
                continue;
            }
            let run = chain(begun.clone(), liar, conduct);
            tally.cases += 1;
            tally.messages += run.net.sent.len();
            tally.in_chain += run.commits.iter().filter(|commit| commit.instance == CHAIN).count();
            check_chain(run, liar);
        }
    }
}

fn explore(liar: u8) {
    let lies: Vec<Report> = (0..LOGS.len()).map(|log| quorum([log; 4]).stop(QUORUM).remove(&liar).unwrap()).collect();
    let mut tally = Tally::default();
    for code in 0..LOGS.len().pow(3) {
        let logs = [code / 25, code / 5 % 5, code % 5];
        if logs.map(|log| MIRRORED[log]) >= logs {
            explore_from(liar, logs, &lies, &mut tally);
        }
    }
    let Tally { cases, messages, in_quorum, in_chain } = tally;
    std::println!(
        "liar r{liar}: {cases} cases, {messages} messages; {in_quorum} commits in Quorum, {in_chain} in Chain, all kept"
    );
    assert!(cases > 100 && in_quorum > 0 && in_chain > 0);
}

#[test]
fn a_liar_in_the_second_place_loses_nothing() {
    explore(1);
}

#[test]
fn a_liar_in_the_third_place_loses_nothing() {
    explore(2);
}
