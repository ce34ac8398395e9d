//! What a run asks: requests with what is tried before them, one by one or several in a bundle.

use super::grammar::Grammar;
use crate::rng::Rng;
use bezant_core::service::{Agreed, Service};
use bezant_core::wire::Wire;
use bezant_sql::{Batch, Check, Dated, ErrorKind, Rehearsal, Request, Response, Rows, Sql, Statement};

/// A request of the stream.
#[derive(Debug)]
pub(super) struct Asked {
    /// What is asked, with what is tried before.
    pub(super) request: Request,
    pub(super) attempts: usize,
    pub(super) statements: Vec<Statement>,
}

impl Asked {
    fn new(checks: Vec<Check>, statements: Vec<Statement>) -> Self {
        let attempts = checks.len();
        let request = Request::Run(Batch { checks, statements: statements.clone(), ..Batch::default() });
        Self { request, attempts, statements }
    }
}

/// What comes next: a request, perhaps with something tried before it, or some of them in a bundle.
pub(super) fn draw(
    sql: &mut Sql,
    [luck, rng]: [&mut Rng; 2],
    [tries, grammar]: [&mut Grammar; 2],
    agreed: &Agreed,
) -> Vec<Asked> {
    match luck.below(8) {
        0..3 => (0..luck.between(2, 8)).map(|_| in_bundle(sql, luck, grammar, agreed)).collect(),
        what => {
            let checks = if what < 5 { tried(sql, luck, tries, agreed) } else { Vec::new() };
            let count = if rng.below(3) == 0 { rng.between(2, 4) } else { 1 };
            vec![Asked::new(checks, (0..count).map(|_| next(grammar)).collect())]
        }
    }
}

/// A request in a bundle. Most of them are about rows and would succeed, and some leave an attempt open, which ends
/// with them.
fn in_bundle(sql: &mut Sql, luck: &mut Rng, grammar: &mut Grammar, agreed: &Agreed) -> Asked {
    const TRIES: u32 = 6;
    let open = vec![mark(Statement::attempt()); usize::from(luck.below(6) == 0)];
    if luck.below(16) == 0 {
        return Asked::new(open, vec![next(grammar)]);
    }
    let mut statements = Vec::new();
    for _ in 0..TRIES {
        statements = vec![Statement::new(grammar.rows())];
        let batch = Batch { statements: statements.clone(), ..Batch::default() };
        let rehearsal = Request::Rehearse(Rehearsal::alone(Dated { time: 0, batch }));
        if let Ok(Response::Done(_)) = Response::from_bytes(sql.execute(&rehearsal.to_bytes(), agreed)) {
            break;
        }
    }
    Asked::new(open, statements)
}

/// A statement that may write. Where plain SQLite does not follow, tables are made anew as well.
pub(super) fn next(grammar: &mut Grammar) -> Statement {
    if !grammar.rebuilds() {
        return Statement::new(grammar.statement(false));
    }
    let [table, definition, columns, values] = grammar.rebuild();
    Statement::rebuild(table, definition, columns, values)
}

fn mark(statement: Statement) -> Check {
    Check { statement, digest: Rows::default().digest() }
}

/// What is tried before the statements of a request and undone, errors included, nested or not. One replica says what
/// comes of it; all others have to agree.
fn tried(sql: &mut Sql, rng: &mut Rng, grammar: &mut Grammar, agreed: &Agreed) -> Vec<Check> {
    let mut checks = vec![mark(Statement::attempt())];
    let mut open = 1;
    for _ in 0..rng.between(1, 5) {
        let statement = next(grammar);
        let batch = Batch { checks: checks.clone(), statements: vec![statement.clone()], ..Batch::default() };
        let answer = sql.execute(&Request::Rehearse(Rehearsal::alone(Dated { time: 0, batch })).to_bytes(), agreed);
        match Response::from_bytes(answer) {
            Ok(Response::Done(results)) => checks.push(Check { statement, digest: results[0].digest() }),
            Ok(Response::Failed(failure)) if !is_refusal(failure.error.kind) => {
                checks.push(Check { statement, digest: failure.error.digest() });
            }
            _ => {}
        }
        if rng.below(3) == 0 {
            let closes = open > 1 && rng.below(2) == 0;
            checks.push(mark(if closes { Statement::undo() } else { Statement::attempt() }));
            open = if closes { open - 1 } else { open + 1 };
        }
    }
    checks.extend((0..open).map(|_| mark(Statement::undo())));
    checks
}

/// Whether plain SQLite would not have said so.
pub(super) const fn is_refusal(kind: ErrorKind) -> bool {
    matches!(kind, ErrorKind::NotAllowed | ErrorKind::TooSlow | ErrorKind::TooLarge | ErrorKind::Mismatch)
}
