//! What checks see, and what a check is.

use super::Holdings;
use crate::workload::{Action, Answer, Key};
use bezant_core::auth::{Claimed, Signed};
use bezant_core::batch::Batch;
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
    Learned(ReplicaId, &'a Claimed<Signed<NewView>>),
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
    Healed {
        /// How much longer a frame takes at most than it would on a good network, in microseconds.
        delay: u64,
    },
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
