//! What must be true of every run. One file a property; each sees every event and says what is wrong at once, or at
//! the end. Only correct replicas are held to anything: a Byzantine one owes us nothing.

mod agreement;
mod contradiction;
mod holdings;
mod inheritance;
mod lasso;
mod linearizability;
mod memory;
mod needless;
mod roots;
mod sessions;
mod table;
mod validity;

pub use agreement::Agreement;
pub use contradiction::Contradiction;
pub use holdings::{Held, Holdings};
pub use inheritance::Inheritance;
pub use lasso::Lasso;
pub use linearizability::Linearizability;
pub use memory::Memory;
pub use needless::Needless;
pub use roots::Roots;
pub use validity::Validity;

use crate::evidence::Watch;
use crate::workload::{Action, Answer, Key};
use bezant_core::auth::Signed;
use bezant_core::batch::Batch;
use bezant_core::cluster::Cluster;
use bezant_core::digest::Digest;
use bezant_core::ids::{InstanceId, ReplicaId};
use bezant_core::message::Request;
use bezant_core::notice::{Notice, Report};
use bezant_core::protocols::pbft::NewView;
use bezant_core::registry::{LogRecord, Message};

/// Something that a check may care about.
#[derive(Debug)]
pub enum Event<'a> {
    /// A client, honest or not, made this request.
    Issued(&'a Request),
    /// The content of a batch was seen, on a link or in a log, of anybody.
    Batch(&'a Batch),
    /// A correct replica writes down how a view began.
    Learned(ReplicaId, &'a Signed<NewView>),
    /// A correct replica let this message leave.
    Said(ReplicaId, &'a Message),
    /// A correct replica said this of itself.
    Noticed(ReplicaId, &'a Notice),
    /// A correct replica's view of itself, now and then.
    Reported(ReplicaId, &'a Report),
    /// All that a correct replica holds, now and then.
    Holds(ReplicaId, &'a Holdings),
    /// A correct replica starts again from its disk, with this log.
    Restarted(ReplicaId, &'a [LogRecord]),
    /// A correct replica has lost its disk; until it votes again it counts as faulty.
    Forgot(ReplicaId),
    /// An honest client begins a call.
    Invoked {
        /// The call's number.
        call: u64,
        /// Where.
        key: Key,
        /// What.
        action: Action,
    },
    /// An honest client asks again for a call that ended without an answer.
    AskedAgain(u64),
    /// An honest client accepted an answer that names a history.
    Committed {
        /// The instance that answered.
        instance: InstanceId,
        /// The history's digest at the answer's position.
        history: Digest,
    },
    /// A call ended, with `None` if nobody knows whether it was executed.
    Answered(u64, Option<Answer>),
    /// The second phase begins: from here on there must be progress.
    Healed,
}

/// A property that did not hold.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Violation {
    /// The check's name.
    pub check: &'static str,
    /// True time, in microseconds since the run began.
    pub at: u64,
    /// What is wrong, for a person.
    pub what: String,
}

/// A property.
pub trait Check {
    /// A word for it.
    fn name(&self) -> &'static str;

    /// Takes one event, at this true time.
    ///
    /// # Errors
    /// What is wrong.
    fn see(&mut self, at: u64, event: &Event<'_>) -> Result<(), String>;

    /// The run is over.
    ///
    /// # Errors
    /// What is wrong.
    fn finish(&mut self) -> Result<(), String> {
        Ok(())
    }
}

/// All checks of a run and what they found.
pub struct Checks {
    checks: Vec<Box<dyn Check>>,
    /// What they found. Each check speaks once: what follows a first violation is noise.
    pub violations: Vec<Violation>,
    /// Counts what the run meets.
    pub watch: Watch,
    /// Whether correct replicas may execute a request otherwise.
    pub dissent: bool,
    /// Whether a client has asked to close the cluster.
    pub closing: bool,
    /// The position that it was answered with.
    pub closed: Option<u64>,
}

impl Checks {
    /// Every check there is, for so many identities of clients and correct replicas, and a run in which nothing but
    /// clients may be wrong if it is calm. With `dissent` correct replicas may execute a request otherwise; then those
    /// who lie may give an answer and testify against it, so that it is taken back (see [`bezant_core::dissent`]).
    pub fn new(
        cluster: &Cluster,
        identities: usize,
        correct: usize,
        is_calm: bool,
        dissent: bool,
        liars: bool,
    ) -> Self {
        let mut checks: Vec<Box<dyn Check>> = vec![
            Box::new(Agreement::default()),
            Box::new(Validity::new(cluster)),
            Box::new(Contradiction::new(dissent)),
            Box::new(Inheritance::default()),
            Box::new(Roots::new(dissent)),
            Box::new(Memory::new(cluster, identities, dissent)),
            Box::new(Lasso::new(cluster, correct)),
            Box::new(Needless::new(cluster, is_calm)),
        ];
        if !(dissent && liars) {
            checks.push(Box::new(Linearizability::default()));
        }
        let (violations, watch) = (Vec::new(), Watch::new(cluster));
        Self { checks, violations, watch, dissent, closing: false, closed: None }
    }

    /// Shows an event to every check.
    pub fn see(&mut self, at: u64, event: &Event<'_>) {
        self.watch.see(event);
        for check in &mut self.checks {
            if let Err(what) = check.see(at, event) {
                report(&mut self.violations, check.name(), at, what);
            }
        }
    }

    /// Says that the run is over.
    pub fn finish(&mut self, at: u64) {
        for check in &mut self.checks {
            if let Err(what) = check.finish() {
                report(&mut self.violations, check.name(), at, what);
            }
        }
    }

    /// Adds something that the world itself found.
    pub fn fail(&mut self, check: &'static str, at: u64, what: String) {
        report(&mut self.violations, check, at, what);
    }
}

fn report(violations: &mut Vec<Violation>, check: &'static str, at: u64, what: String) {
    if !violations.iter().any(|violation| violation.check == check) {
        violations.push(Violation { check, at, what });
    }
}
