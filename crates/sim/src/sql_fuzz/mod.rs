//! `cargo xtask sql-fuzz`: the SQL service against plain SQLite, and against itself.
//!
//! One seed makes a stream of requests. Several replicas of the service execute it, and each lives otherwise: one has a
//! small cache, one answers reads between requests and rehearses transactions, one executes what is undone again, one
//! crashes and starts from its last checkpoint and the requests since. Some requests begin with attempts, which are
//! undone. Some come as the operations of a bundle; one more replica executes all of them one by one. After each
//! request all answers are equal to the byte, and what was written is, and now and then all pages are. What a
//! transaction gives that is rehearsed step by step is what all of it gives at once. In half of the runs no statement
//! uses time or randomness; then plain SQLite of the same build executes the stream as well, without the attempts, and
//! rows, counts and errors are its own (prac-I8).

mod grammar;
mod stream;

use crate::rng::Rng;
use bezant_core::digest::{Digest, Domain};
use bezant_core::service::{Agreed, Asker, Operation, PageNumber, Seed, Service, one_by_one};
use bezant_core::time::Instant;
use bezant_core::wire::Wire;
use bezant_sql::{Batch, Check, Dated, Limits, Rehearsal, Request, Response, Rows, Sql, Statement, Value};
use bytes::Bytes;
use grammar::Grammar;
use rusqlite::{Connection, params_from_iter};
use std::collections::BTreeMap;
use std::path::PathBuf;
use stream::{draw, is_refusal, next};

/// Requests of one run.
const REQUESTS: u64 = 120;
/// Requests between two comparisons of all pages.
const CHECKPOINT: u64 = 10;
/// The largest cache, and a small one, in KiB.
const CACHES: [u32; 2] = [8 << 10, 40];

/// How a replica lives.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Life {
    /// Nothing happens.
    Quiet,
    /// It has a small cache, and reads between requests.
    Reads,
    /// It executes other requests and undoes them.
    Undoes,
    /// It starts again from its last checkpoint and executes what came since.
    Crashes,
    /// It executes the operations of a bundle one by one, so that it gives the same and its pages are others.
    Apart,
}

/// A replica of the service.
#[derive(Debug)]
struct Replica {
    life: Life,
    limits: Limits,
    sql: Sql,
    /// What it last saved, and what it executed since.
    pages: BTreeMap<PageNumber, Bytes>,
    since: Vec<(Vec<Bytes>, Agreed)>,
    /// A transaction that it rehearses.
    rehearsed: Rehearsed,
}

/// A transaction that one replica is asked to rehearse step by step, and what was shown of it.
#[derive(Clone, Debug, Default)]
struct Rehearsed {
    number: u64,
    held: Digest,
    shown: Vec<Check>,
    /// How many steps gave what the whole gave.
    compared: u64,
}

impl Rehearsed {
    fn ask(
        &self,
        sql: &Sql,
        transaction: u64,
        held: Digest,
        checks: &[Check],
        statement: &Statement,
    ) -> Option<Response> {
        let name = |number: u64| Digest::of(Domain::Trace, &number.to_le_bytes());
        let (transaction, after) = (name(transaction), name(self.number.wrapping_sub(1)));
        let batch = Batch { checks: checks.to_vec(), statements: vec![statement.clone()], ..Batch::default() };
        let rehearsal = Rehearsal { transaction, after, held, lasts: true, dated: Dated { time: 0, batch } };
        let answer = sql.query(&Request::Rehearse(rehearsal).to_bytes(), &Asker::default());
        answer.ok().map(|answer| Response::from_bytes(answer).expect("a response"))
    }

    /// One more statement. If nothing was ordered since the transaction began, it gives what all of it gives at once,
    /// unless that is too much.
    fn step(&mut self, sql: &Sql, statement: Statement, is_whole: bool) -> Result<(), String> {
        let answer = self.ask(sql, self.number, self.held, &[], &statement);
        let result = match &answer {
            Some(Response::Done(results)) => &results[0],
            Some(Response::NotHeld) if self.held != Digest::ZERO => {
                self.begin();
                return Ok(());
            }
            Some(Response::Failed(_)) | None => return Ok(()),
            other => return Err(format!("a step of a transaction gives {other:?}")),
        };
        if is_whole {
            match self.ask(sql, u64::MAX, Digest::ZERO, &self.shown, &statement) {
                whole if whole == answer => self.compared += 1,
                None => {}
                Some(Response::Failed(failure)) if is_refusal(failure.error.kind) => {}
                whole => return Err(format!("{statement:?} gives {answer:?}, and {whole:?} after {:#?}", self.shown)),
            }
        }
        self.held = Rehearsal::chain(self.held, &statement, result.digest());
        self.shown.push(Check { statement, digest: result.digest() });
        Ok(())
    }

    fn begin(&mut self) {
        *self = Self { number: self.number + 1, compared: self.compared, ..Self::default() };
    }

    /// Goes on with a transaction, and then with one from its beginning, one statement after the other.
    fn live(&mut self, sql: &Sql, rng: &mut Rng, grammar: &mut Grammar) -> Result<(), String> {
        self.step(sql, next(grammar), false)?;
        if rng.below(4) == 0 {
            self.begin();
            for _ in 0..rng.between(2, 6) {
                let reads = rng.below(3) == 0;
                let statement = if reads { Statement::new(grammar.statement(true)) } else { next(grammar) };
                self.step(sql, statement, true)?;
            }
        }
        Ok(())
    }
}

impl Replica {
    fn new(life: Life, limits: Limits) -> Self {
        let sql = Self::open(life, limits);
        let mut replica =
            Self { life, limits, sql, pages: BTreeMap::new(), since: Vec::new(), rehearsed: Rehearsed::default() };
        replica.save();
        replica
    }

    fn open(life: Life, limits: Limits) -> Sql {
        Sql::with_cache(CACHES[usize::from(life == Life::Reads)]).with_limits(limits)
    }

    fn save(&mut self) {
        let pages = &mut self.pages;
        self.sql.save(&mut |number, page| match page {
            Some(page) => _ = pages.insert(number, page),
            None => _ = pages.remove(&number),
        });
        self.since.clear();
    }

    fn root(&mut self) -> Digest {
        self.save();
        let digest =
            |(number, page): (&PageNumber, &Bytes)| Digest::of_parts(Domain::Page, &[&number.to_le_bytes(), page]).0;
        Digest::of(Domain::Node, &self.pages.iter().flat_map(digest).collect::<Vec<u8>>())
    }

    /// Transactions that changed something, as page 1 counts them.
    fn transactions(&mut self) -> u32 {
        self.save();
        self.pages.get(&0).map_or(0, |page| u32::from_be_bytes([page[24], page[25], page[26], page[27]]))
    }

    /// The answers, and what was written.
    fn execute(&mut self, operations: &[Bytes], agreed: &Agreed) -> (Vec<Bytes>, Digest) {
        self.since.push((operations.to_vec(), *agreed));
        // As a replica does with what is there when a state was loaded.
        self.sql.take_written();
        let answers = self.carry_out(operations, agreed);
        (answers, self.sql.take_written())
    }

    fn carry_out(&mut self, operations: &[Bytes], agreed: &Agreed) -> Vec<Bytes> {
        match operations {
            [operation] => vec![self.sql.execute(operation, agreed)],
            _ if self.life == Life::Apart => one_by_one(&mut self.sql, &Operation::of_bundle(operations, agreed)),
            _ => self.sql.execute_many(&Operation::of_bundle(operations, agreed)),
        }
    }

    /// What happens to it between two requests.
    fn live(&mut self, rng: &mut Rng, grammar: &mut Grammar, agreed: &Agreed) -> Result<(), String> {
        match self.life {
            Life::Quiet | Life::Apart => {}
            Life::Reads => {
                let request = Request::one(Statement::new(grammar.statement(true)));
                // Whatever it says: it may not leave a trace.
                _ = self.sql.query(&request.to_bytes(), &Asker::default());
                self.rehearsed.live(&self.sql, rng, grammar)?;
            }
            Life::Undoes if rng.below(4) == 0 => {
                self.save();
                let request = Request::one(next(grammar));
                self.sql.execute(&request.to_bytes(), agreed);
                let mut changed = BTreeMap::new();
                self.sql.save(&mut |number, _| _ = changed.insert(number, self.pages.get(&number).cloned()));
                if !changed.is_empty() {
                    self.sql.load(&mut changed.into_iter()).expect("its own pages");
                }
            }
            Life::Crashes if rng.below(12) == 0 => {
                self.sql = Self::open(self.life, self.limits);
                self.sql.save(&mut |_, _| ());
                let mut pages = self.pages.iter().map(|(number, page)| (*number, Some(page.clone())));
                self.sql.load(&mut pages).expect("its own pages");
                for (operations, agreed) in self.since.clone() {
                    self.carry_out(&operations, &agreed);
                }
            }
            Life::Undoes | Life::Crashes => {}
        }
        Ok(())
    }
}

/// Half of the runs have limits that many of their statements reach.
fn limits(rng: &mut Rng) -> Limits {
    match rng.below(4) {
        0 => Limits { steps: rng.between(100, 10_000), ..Limits::default() },
        1 => Limits { memory: rng.between(5 << 10, 40 << 10), ..Limits::default() },
        _ => Limits::default(),
    }
}

/// Runs one seed.
///
/// # Errors
/// What differed, with the requests.
pub fn run(seed: u64) -> Result<Counts, String> {
    let mut rng = Rng::stream(seed, "lives");
    let limits = limits(&mut rng);
    let agreed = seed % 2 == 1;
    let mut grammar = Grammar::new(seed, agreed);
    let mut others = Grammar::new(seed ^ 1 << 63, agreed);
    let (mut luck, mut tries) = (Rng::stream(seed, "attempts"), Grammar::new(seed ^ 1 << 62, agreed));
    let mut replicas = [Life::Quiet, Life::Reads, Life::Undoes, Life::Crashes].map(|life| Replica::new(life, limits));
    let mut apart = Replica::new(Life::Apart, limits);
    let mut plain = if agreed { None } else { Some(Plain::new(seed)?) };
    let mut counts = Counts::default();
    for number in 1..=REQUESTS {
        let agreed = Agreed {
            time: Instant(1_790_000_000_000_000 + number * 1_234_567),
            seed: Seed::new(Digest::of(Domain::Trace, &seed.to_le_bytes()), number),
            ..Agreed::default()
        };
        let dice = [&mut luck, &mut rng];
        let asked = draw(&mut replicas[0].sql, dice, [&mut tries, &mut grammar], &agreed);
        let operations: Vec<Bytes> = asked.iter().map(|asked| asked.request.to_bytes().into()).collect();
        let differs = |what: &str| format!("seed {seed}, request {number}: {what}\n  {asked:#?}");
        let answers = replicas.each_mut().map(|replica| replica.execute(&operations, &agreed));
        let shown = |answers: &[Bytes]| -> Vec<_> {
            answers.iter().map(|answer| Response::from_bytes(answer.clone())).collect()
        };
        if let Some(odd) = answers.iter().position(|answer| *answer != answers[0]) {
            let shown = [0, odd].map(|which| (shown(&answers[which].0), answers[which].1));
            return Err(differs(&format!("{:?} answers or writes otherwise: {shown:?}", replicas[odd].life)));
        }
        let (answers, _) = &answers[0];
        let (one_by_one, _) = apart.execute(&operations, &agreed);
        if one_by_one != *answers {
            let [together, apart] = [answers, &one_by_one].map(|answers| shown(answers));
            return Err(differs(&format!("together they give {together:?}, and one by one {apart:?}")));
        }
        counts.bundles += u64::from(asked.len() > 1);
        for (asked, answer) in asked.iter().zip(answers) {
            let answer = Response::from_bytes(answer.clone()).map_err(|error| differs(&error.to_string()))?;
            counts.add(&answer);
            if matches!(answer, Response::Conflict(_)) {
                return Err(differs("what was tried gave something else"));
            }
            // What was refused here changed nothing, and must not change anything there. So did an attempt that ended
            // the whole transaction.
            let refused = matches!(&answer, Response::Failed(failure)
                if is_refusal(failure.error.kind) || (failure.statement as usize) < asked.attempts);
            if let Some(plain) = plain.as_mut().filter(|_| !refused) {
                compare(&answer, &plain.execute(&asked.statements)?).map_err(|what| differs(&what))?;
            }
        }
        for replica in &mut replicas {
            replica.live(&mut rng, &mut others, &agreed).map_err(|what| differs(&what))?;
        }
        if number.is_multiple_of(CHECKPOINT) {
            let roots = replicas.each_mut().map(Replica::root);
            if let Some(odd) = roots.iter().position(|root| *root != roots[0]) {
                return Err(differs(&format!("{:?} has other pages", replicas[odd].life)));
            }
            apart.save();
        }
    }
    counts.spared = u64::from(apart.transactions() - replicas[0].transactions());
    counts.steps = replicas.iter().map(|replica| replica.rehearsed.compared).sum();
    Ok(counts)
}

/// How requests ended: what never happens is not tested.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Counts {
    /// Executed.
    pub done: u64,
    /// Failed as SQLite says.
    pub failed: u64,
    /// Not allowed here.
    pub refused: u64,
    /// Rows in results.
    pub rows: u64,
    /// Several of them that came in one bundle.
    pub bundles: u64,
    /// Transactions that were spared, because several operations were executed in one.
    pub spared: u64,
    /// Steps of rehearsed transactions that gave what all of it gave at once.
    pub steps: u64,
}

impl Counts {
    fn add(&mut self, answer: &Response) {
        match answer {
            Response::Done(results) => {
                self.done += 1;
                self.rows += results.iter().map(|result| result.rows.len() as u64).sum::<u64>();
            }
            Response::Failed(failure) if is_refusal(failure.error.kind) => self.refused += 1,
            _ => self.failed += 1,
        }
    }

    /// Adds another run's.
    pub const fn merge(&mut self, other: &Self) {
        self.done += other.done;
        self.failed += other.failed;
        self.refused += other.refused;
        self.rows += other.rows;
        self.steps += other.steps;
        self.bundles += other.bundles;
        self.spared += other.spared;
    }
}

/// SQLite as it comes, with a file, but for what our tables are given: foreign keys, recursive triggers.
struct Plain {
    file: PathBuf,
    /// `None` only while it is opened anew.
    connection: Option<Connection>,
}

/// Beginnings of statements that change the schema.
const SCHEMA: [&str; 5] = ["create", "drop", "alter", "analyze", "reindex"];

impl Plain {
    fn new(seed: u64) -> Result<Self, String> {
        let file = std::env::temp_dir().join(format!("bezant-sql-fuzz-{}-{seed}.sqlite", std::process::id()));
        let mut plain = Self { file, connection: None };
        plain.open().map_err(|error| error.to_string())?;
        Ok(plain)
    }

    fn open(&mut self) -> rusqlite::Result<()> {
        self.connection = None;
        let connection = Connection::open(&self.file)?;
        connection.execute_batch(
            "pragma synchronous = off; pragma foreign_keys = on; pragma recursive_triggers = on;
             pragma trusted_schema = off",
        )?;
        self.connection = Some(connection);
        Ok(())
    }

    /// A batch in a transaction: results, or the message of the error. After a change of the schema the file is opened
    /// anew, as the service does: the order of rows that nothing orders depends on plans, and plans on that.
    fn execute(&mut self, statements: &[Statement]) -> Result<Result<Vec<Rows>, String>, String> {
        let connection = self.connection.as_ref().expect("it is open between batches");
        let run = || {
            connection.execute_batch("begin")?;
            let results = statements.iter().map(|statement| one(connection, &statement.sql));
            let results: Vec<Rows> = results.collect::<rusqlite::Result<_>>()?;
            connection.execute_batch("commit")?;
            Ok(results)
        };
        let result = run().map_err(|error: rusqlite::Error| match error {
            rusqlite::Error::SqliteFailure(_, Some(message)) => message,
            rusqlite::Error::SqlInputError { msg, .. } => msg,
            other => other.to_string(),
        });
        if !connection.is_autocommit() {
            connection.execute_batch("rollback").map_err(|error| error.to_string())?;
        }
        if statements.iter().any(|statement| SCHEMA.iter().any(|word| statement.sql.starts_with(word))) {
            self.open().map_err(|error| error.to_string())?;
        }
        Ok(result)
    }
}

impl Drop for Plain {
    fn drop(&mut self) {
        self.connection = None;
        // Nobody misses it; a journal that a failure left behind is of no use either.
        let _ = std::fs::remove_file(&self.file);
    }
}

fn one(connection: &Connection, sql: &str) -> rusqlite::Result<Rows> {
    let mut statement = connection.prepare(sql)?;
    let width = statement.column_count();
    let mut rows = Vec::new();
    let mut cursor = statement.query(params_from_iter([0_i64; 0]))?;
    while let Some(row) = cursor.next()? {
        let value = |column| {
            let value = Value::try_from(row.get_ref(column)?);
            Ok(value.expect("the service refuses results that are not UTF-8, and such a batch is not executed here"))
        };
        rows.push((0..width).map(value).collect::<rusqlite::Result<_>>()?);
    }
    Ok(Rows { rows, ..Rows::default() })
}

/// Whether the service answered what plain SQLite did.
fn compare(ours: &Response, theirs: &Result<Vec<Rows>, String>) -> Result<(), String> {
    match (ours, theirs) {
        (Response::Done(ours), Ok(theirs)) => {
            let rows = |results: &[Rows]| results.iter().map(|result| result.rows.clone()).collect::<Vec<_>>();
            if rows(ours) == rows(theirs) {
                return Ok(());
            }
            Err(format!("other rows than plain SQLite: {:?} instead of {:?}", rows(ours), rows(theirs)))
        }
        (Response::Failed(failure), Err(message)) if failure.error.message == message[..] => Ok(()),
        (ours, theirs) => Err(format!("plain SQLite says {theirs:?}, not {ours:?}")),
    }
}
