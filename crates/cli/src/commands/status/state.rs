//! What state a replica is in: one for each cause, with a sentence that says why and one that says what to do.

use crate::member::UNRESOLVED;
use crate::{admin, output};
use serde_json::{Value, json};

/// Most characters of a replica's own words that are shown: it may lie, and it may be long.
const WORDS_SHOWN_MAX: usize = 200;

/// One for each cause that asks for something else of the operator. Where several are true the first one counts, but
/// for `Lying`, which comes before whatever such a replica says about itself, unless it knows that its state is wrong.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum State {
    /// Its admin port does not answer.
    Unreachable,
    /// Its process runs, and its loop does not.
    Hanging,
    /// A write or an fsync of its log failed.
    LogBroken,
    /// Its log waits for space.
    LogFull,
    /// It reads its log, or fetches the state from others.
    Recovering,
    /// Its state is not that of the others, and is being replaced.
    Repairing,
    /// It answers otherwise than the others.
    Lying,
    /// It lost its log and does not vote.
    Abstaining,
    /// It has no link with enough others.
    CutOff,
    /// It waits for a new view.
    ChangingView,
    /// It says that it is not ready, and not why in words that this program knows.
    NotReady,
    /// It takes part, far behind the others.
    Behind,
    /// None of these.
    Healthy,
}

impl State {
    /// In a word or two, for people.
    pub(super) const fn words(self) -> &'static str {
        match self {
            Self::Unreachable => "unreachable",
            Self::Hanging => "hanging",
            Self::LogBroken => "log broken",
            Self::LogFull => "log full",
            Self::Recovering => "recovering",
            Self::Repairing => "repairing",
            Self::Lying => "lying",
            Self::Abstaining => "abstaining",
            Self::CutOff => "cut off",
            Self::ChangingView => "changing view",
            Self::NotReady => "not ready",
            Self::Behind => "behind",
            Self::Healthy => "healthy",
        }
    }

    /// The stable name in JSON: the same words, with underscores.
    pub(super) fn label(self) -> String {
        self.words().replace(' ', "_")
    }
}

/// A state with its reason and what to do about it: whole sentences without the full stop, empty for `Healthy`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Condition {
    pub(super) state: State,
    pub(super) why: String,
    pub(super) advice: &'static str,
}

impl Condition {
    fn new(state: State, why: impl Into<String>, advice: &'static str) -> Self {
        Self { state, why: why.into(), advice }
    }

    /// Of a replica with this account, or none; `lag`: how far it is behind, in words, if that lasts.
    pub(super) fn of(account: &Result<Value, String>, lying: bool, lag: Option<&str>) -> Self {
        let account = match account {
            Ok(account) => account,
            Err(error) => return unreachable(error),
        };
        let differs = account["report"]["state_differs_at"].as_u64();
        if let (None, true) = (differs, lying) {
            let why = "its answers differ from those of the others, just now";
            return Self::new(State::Lying, why, "Stop it, and find out who has been at its machine or its program");
        }
        let healthy = Self::new(State::Healthy, "", "");
        host(account)
            .or_else(|| differs.map(repairing))
            .or_else(|| replica(account))
            .or_else(|| not_ready(account))
            .or_else(|| lag.map(behind))
            .unwrap_or(healthy)
    }
}

fn unreachable(error: &str) -> Condition {
    if error == admin::NOT_RUNNING {
        let advice = "Start its process; if it does not stay, its log says why";
        return Condition::new(State::Unreachable, "nobody listens at its admin port", advice);
    }
    if error == UNRESOLVED {
        let advice = "Look after the name service, or the replica's addresses in cluster.toml";
        return Condition::new(State::Unreachable, error, advice);
    }
    let why = format!("its admin port gives no account: {}", words(error));
    Condition::new(State::Unreachable, why, "Look after its machine, and the network to it")
}

/// What is wrong with its process, its disk and its links.
fn host(account: &Value) -> Option<Condition> {
    if failing(account, "loop").is_some() {
        return Some(match account["age_ms"].as_u64() {
            None => {
                let why = "it has started, and reads its log";
                Condition::new(State::Recovering, why, "Wait: a long log takes its time")
            }
            Some(age) => {
                let why = format!("its process runs, but its loop has been silent for {} s", age / 1_000);
                Condition::new(State::Hanging, why, "Restart it, and keep its log for a report")
            }
        });
    }
    let failure = account["log_failure"].as_str()?;
    let (why, full) = (words(failure), account["log_full"] == json!(true));
    Some(if full {
        let why = format!("its disk is full, and it says nothing until it can write: {why}");
        Condition::new(State::LogFull, why, "Make room on that disk: it goes on by itself")
    } else {
        let why = format!("its disk failed: {why}");
        Condition::new(State::LogBroken, why, "Look after that disk, then restart the replica")
    })
}

fn repairing(at: u64) -> Condition {
    let why = format!("its state differs from that of f + 1 others at {at}, and is not replaced yet");
    Condition::new(State::Repairing, why, "It repairs itself at the next checkpoint; `bezant diff` shows what differs")
}

/// What the protocol is about to put right.
fn replica(account: &Value) -> Option<Condition> {
    let report = &account["report"];
    let is = |name: &str| report[name] == json!(true);
    let transfer = &report["transfer"];
    if is("abstaining") {
        let why = "it lost its log, and does not vote until it is past all that it may have said";
        let advice = "Wait: it votes again by itself; until then it counts as one of the f faulty replicas";
        Some(Condition::new(State::Abstaining, why, advice))
    } else if let (Some(target), Some(received)) = (transfer["target"].as_u64(), transfer["received"].as_u64()) {
        let why = format!("it fetches the state at batch {target} from the others, {received} pages and nodes so far");
        Some(Condition::new(State::Recovering, why, "Wait: it takes part again by itself"))
    } else if let Some(peers) = failing(account, "peers") {
        Some(cut_off(account, peers))
    } else if is("changing_view") {
        let why =
            format!("it has left the primary before, and waits for view {}", report["view"].as_u64().unwrap_or(0));
        let advice = "Wait some seconds; if it stays so, look which other replicas are not healthy";
        Some(Condition::new(State::ChangingView, why, advice))
    } else {
        None
    }
}

/// With the reason of one link that was refused, if one was: they are usually the same.
fn cut_off(account: &Value, peers: &str) -> Condition {
    let refused = &account["refused"][0];
    let (why, advice) = match (refused["replica"].as_u64(), refused["text"].as_str()) {
        (Some(replica), Some(text)) => (
            format!("it is {}, and has no link with replica {replica}: {}", words(peers), words(text)),
            "Make its files and its program those of the others: its log says more",
        ),
        _ => (
            format!("it is {}", words(peers)),
            "Start the others, or look after the network between them; its log tells of links refused",
        ),
    };
    Condition::new(State::CutOff, why, advice)
}

fn not_ready(account: &Value) -> Option<Condition> {
    if account["ready"] == json!(true) {
        return None;
    }
    let reason = account["not_ready"].get(0).and_then(Value::as_str).unwrap_or("it does not say why");
    let advice = "Ask its admin port for /readyz?verbose, and look into its log";
    Some(Condition::new(State::NotReady, format!("it says that it is not ready: {}", words(reason)), advice))
}

fn behind(lag: &str) -> Condition {
    let advice = "It catches up by itself; if it stays so, look after its machine, its disk and its links";
    Condition::new(State::Behind, format!("it takes part, but is {lag} behind f + 1 others"), advice)
}

/// Why the check of this name fails, if it does.
fn failing<'a>(account: &'a Value, check: &str) -> Option<&'a str> {
    let reasons = account["not_ready"].as_array()?.iter().filter_map(Value::as_str);
    reasons.filter_map(|reason| reason.strip_prefix(check)?.strip_prefix(' ')).next()
}

/// A replica's own words, fit for a terminal.
pub(super) fn words(said: &str) -> String {
    let shown: String = said.chars().take(WORDS_SHOWN_MAX).collect();
    output::printable(shown.as_bytes())
}

#[cfg(test)]
mod tests {
    use super::*;

    /// An account with these reasons not to be ready, and these fields in its report.
    fn account(not_ready: &[&str], report: Value) -> Value {
        json!({ "ready": not_ready.is_empty(), "not_ready": not_ready, "age_ms": 20, "log_full": false,
            "log_failure": null, "report": report })
    }

    fn state(account: &Value) -> State {
        Condition::of(&Ok(account.clone()), false, None).state
    }

    #[test]
    fn each_cause_has_a_state_and_a_reason() {
        let transfer = json!({ "transfer": { "target": 512, "received": 40 } });
        let mut refused = account(&["peers connected with 0 of 3, 2 are needed"], json!({}));
        refused["refused"] = json!([{ "replica": 1, "reason": "version", "text": "we refused it: another version" }]);
        let changing = json!({ "changing_view": true, "view": 7 });
        let mut starting = account(&["loop starting", "peers connected with 0 of 3, 2 are needed"], json!({}));
        starting["age_ms"] = Value::Null;
        let mut hanging = account(&["loop has not reported for 60 s"], json!({}));
        hanging["age_ms"] = json!(60_000);
        let mut full = account(&["log full, waiting for space: /a"], json!({}));
        (full["log_failure"], full["log_full"]) = (json!("/a: no space left"), json!(true));
        let mut broken = full.clone();
        broken["log_full"] = json!(false);
        let peers = &["peers connected with 1 of 3, 2 are needed"];
        for (account, expected, said) in [
            (account(&[], json!({})), State::Healthy, ""),
            (starting, State::Recovering, "reads its log"),
            (account(&["transfer running"], transfer), State::Recovering, "batch 512 from the others, 40 pages"),
            (hanging, State::Hanging, "60 s"),
            (full, State::LogFull, "/a: no space left"),
            (broken, State::LogBroken, "failed"),
            (account(&["state differs"], json!({ "state_differs_at": 384 })), State::Repairing, "at 384"),
            (account(&["votes abstaining"], json!({ "abstaining": true })), State::Abstaining, "lost its log"),
            (account(peers, json!({})), State::CutOff, "connected with 1 of 3"),
            (refused, State::CutOff, "no link with replica 1: we refused it: another version"),
            (account(&["view changing to view 7"], changing), State::ChangingView, "view 7"),
            (account(&["fuel is low"], json!({})), State::NotReady, "fuel is low"),
        ] {
            let condition = Condition::of(&Ok(account), false, None);
            assert_eq!(condition.state, expected, "{condition:?}");
            assert!(condition.why.contains(said), "{condition:?}");
            assert_eq!(condition.advice.is_empty(), expected == State::Healthy, "{condition:?}");
        }
    }

    #[test]
    fn what_a_replica_does_counts_more_than_what_it_says() {
        let well = Ok(account(&[], json!({})));
        assert_eq!(Condition::of(&well, true, None).state, State::Lying);
        assert_eq!(Condition::of(&well, false, Some("300 batches")).state, State::Behind);
        let wrong = Ok(account(&["state differs"], json!({ "state_differs_at": 1 })));
        assert_eq!(Condition::of(&wrong, true, None).state, State::Repairing, "that is why it answers otherwise");
        let refused = Condition::of(&Err(admin::NOT_RUNNING.to_owned()), false, None);
        assert_eq!((refused.state, refused.advice.starts_with("Start")), (State::Unreachable, true));
        let unresolved = Condition::of(&Err(UNRESOLVED.to_owned()), false, None);
        assert_eq!((unresolved.state, &*unresolved.why), (State::Unreachable, UNRESOLVED));
    }

    #[test]
    fn whatever_a_replica_answers_is_one_line() {
        let liar = account(&[&format!("\x1b[2J\n{}", "x".repeat(10_000))], json!({ "transfer": [], "view": {} }));
        let condition = Condition::of(&Ok(liar), false, None);
        assert_eq!(condition.state, State::NotReady);
        assert!(!condition.why.contains(char::is_control) && condition.why.len() < 2 * WORDS_SHOWN_MAX);
        assert_eq!(state(&json!([])), State::NotReady);
        assert_eq!(State::LogFull.label(), "log_full");
    }
}
