//! SQL in the demo on real data: a file of 32,000 rows from a Debian package is imported, and aggregates over it are
//! compared with what Python's reader of CSV and its SQLite make of the same file, while one replica is killed and
//! comes back, and another one lies. In the end all replicas must have one root, and the dump must load in Python's
//! SQLite.

use super::running::Conversation;
use super::scratch::Scratch;
use crate::failure::{Failure, Result, ensure};
use crate::process;
use crate::tools::REGISTRY;
use serde_json::Value;
use std::path::Path;
use std::time::{Duration, Instant};

const LOG: &str = "e2e-sql";
/// How long the import may take, and any one answer, with a replica down and another view to be found.
const IMPORT_MAX: Duration = Duration::from_secs(30);
const ANSWER_MAX: Duration = Duration::from_secs(20);
/// Writes after the last fault: more batches than lie between two checkpoints, so that roots can be compared.
const LAST_WRITES: usize = 200;
/// How long replicas may take to reach one root.
const CATCH_UP_MAX: Duration = Duration::from_secs(30);

/// What is asked, with one row or many in a fixed order.
const QUERIES: [&str; 4] = [
    "select count(*) as n, count(distinct \"Organization Name\") as names, sum(length(\"Organization Address\")) as l \
     from oui",
    "select \"Organization Name\" as name, count(*) as n from oui group by 1 order by n desc, name limit 20",
    "select substr(Assignment, 1, 2) as a, count(*) as n, min(\"Organization Name\") as first, max(Assignment) as last \
     from oui group by 1 order by 1",
    "select name, a, place from (select \"Organization Name\" as name, Assignment as a, row_number() over \
     (partition by \"Organization Name\" order by Assignment) as place from oui) where place % 250 = 0 \
     order by name, place",
];

/// Loads the file, or the dump, and prints the answer to each query as one line of JSON.
const REFEREE: &str = r#"
import csv, json, sqlite3, sys
source, queries = sys.argv[1], sys.argv[2:]
database = sqlite3.connect(":memory:")
if source.endswith(".csv"):
    rows = csv.reader(open(source, newline="", encoding="utf-8"))
    names = ", ".join('"%s" TEXT' % name for name in next(rows))
    database.execute("create table oui(%s)" % names)
    for row in rows:
        database.execute("insert into oui values (%s)" % ", ".join("?" * len(row)), row)
else:
    database.executescript(open(source, encoding="utf-8", newline="").read())
database.row_factory = sqlite3.Row
for query in queries:
    print(json.dumps([dict(row) for row in database.execute(query)]))
"#;

/// The whole story.
pub(crate) fn run(binary: &Path) -> Result<String> {
    let scratch = Scratch::new("sql")?;
    let expected = referee(REGISTRY)?;
    let mut demo = Demo(Conversation::start(LOG, &mut process::program(&binary.to_string_lossy(), &["demo"]))?);
    demo.0.say(".mode json")?;
    demo.answer("create table faults(n integer primary key, what text)", ANSWER_MAX)?;
    let start = Instant::now();
    demo.0.say(&format!(".import --csv {REGISTRY} oui"))?;
    let rows = &demo.answer("select count(*) as n from oui", IMPORT_MAX)?[0]["n"];
    let took = start.elapsed();
    let summary = format!("{rows} rows imported in {:.1} s ({:.0}/s)", took.as_secs_f64(), rate(rows, took));

    demo.check(&expected, "with all replicas")?;
    demo.order("kill 2", "killed")?;
    demo.note(1, "a crash")?;
    demo.check(&expected, "with replica 2 down")?;
    demo.order("restart 2", "running")?;
    demo.check(&expected, "with replica 2 back")?;
    demo.order("lie 3", "(`diff` names the row)")?;
    demo.note(2, "a lie")?;
    demo.check(&expected, "with replica 3 lying")?;
    demo.order("honest 3", "`diff` has one taken")?;
    for number in 0..LAST_WRITES {
        demo.note(10 + number, "a write")?;
    }
    let caught_up = demo.wait_for_one_root()?;
    let faults = demo.answer("select count(*) as n, sum(n) as s from faults", ANSWER_MAX)?;
    let sum: usize = (10..10 + LAST_WRITES).sum();
    ensure(faults == serde_json::json!([{ "n": LAST_WRITES + 2, "s": sum + 3 }]), || format!("faults: {faults}"))?;

    let dump = scratch.path().join("dump.sql");
    let dump = dump.to_string_lossy();
    demo.0.say(&format!(".output {dump}"))?;
    demo.0.say(".dump")?;
    demo.0.say(".output")?;
    demo.check(&expected, "after the dump")?;
    demo.0.say("quit")?;
    let status = demo.0.finish(ANSWER_MAX)?;
    ensure(status.success(), || format!("it ended with {status} although all went right"))?;
    ensure(referee(&dump)? == expected, || "the dump gives other answers than the file".into())?;
    Ok(format!(
        "{summary}; {} queries right in 5 situations; one root after {:.1} s",
        QUERIES.len(),
        caught_up.as_secs_f64()
    ))
}

fn rate(rows: &Value, took: Duration) -> f64 {
    rows.as_f64().unwrap_or_default() / took.as_secs_f64()
}

/// What an ordinary SQLite answers.
fn referee(source: &str) -> Result<Vec<Value>> {
    let arguments = [&["-c", REFEREE, source], &QUERIES[..]].concat();
    let output = process::output_of(&mut process::program("python3", &arguments))?;
    let answers = output.lines().map(serde_json::from_str).collect::<std::result::Result<Vec<Value>, _>>();
    answers.map_err(|error| Failure::new(format!("the referee's answer is no JSON: {error}")))
}

struct Demo(Conversation);

impl Demo {
    /// The answer to one statement.
    fn answer(&mut self, sql: &str, limit: Duration) -> Result<Value> {
        self.0.say(&format!("{sql};"))?;
        let line = self.0.hear(&format!("the answer to `{sql}`"), limit, |line| line.starts_with(['[', '{']))?;
        serde_json::from_str(&line).map_err(|error| Failure::new(format!("`{line}` is no JSON: {error}")))
    }

    /// Every answer must be the referee's.
    fn check(&mut self, expected: &[Value], when: &str) -> Result {
        for (sql, expected) in QUERIES.iter().zip(expected) {
            let answer = self.answer(sql, ANSWER_MAX).map_err(|failure| failure.during(when))?;
            ensure(answer == *expected, || format!("{when}: `{sql}` gives {answer} and not {expected}"))?;
        }
        Ok(())
    }

    /// Writes a row.
    fn note(&mut self, number: usize, what: &str) -> Result {
        let answer = self.answer(&format!("insert into faults values ({number}, '{what}')"), ANSWER_MAX)?;
        ensure(answer["changes"] == 1, || format!("writing row {number} gives {answer}"))
    }

    fn order(&mut self, line: &str, done: &str) -> Result {
        self.0.say(line)?;
        self.0.hear(&format!("the answer to `{line}`"), ANSWER_MAX, |line| line.ends_with(done)).map(drop)
    }

    /// Waits until all replicas report one root of what was written last.
    fn wait_for_one_root(&mut self) -> Result<Duration> {
        let start = Instant::now();
        loop {
            self.0.say("status --json")?;
            let line = self.0.hear("the status", ANSWER_MAX, |line| line.starts_with("{\"answering\""))?;
            let status: Value = serde_json::from_str(&line).unwrap_or_default();
            let replicas = status["replicas"].as_array().map_or(&[][..], Vec::as_slice);
            let one = replicas.windows(2).all(|pair| pair[0]["root"] == pair[1]["root"]);
            if replicas.len() == 4 && one && replicas[0]["stable"].as_u64() > Some(0) {
                return Ok(start.elapsed());
            }
            ensure(start.elapsed() < CATCH_UP_MAX, || format!("no common root: {status}"))?;
        }
    }
}
