//! One switch: a cluster that is in Quorum, a history, perhaps somebody who attacks, and a client that panics.

use super::fault;
use super::measure::{Bench, Subject};
use crate::failure::{Failure, Result};
use crate::files;
use crate::member::Member;
use bezant_core::ids::{InstanceId, ReplicaId};
use bezant_node::config::ClusterConfig;
use bezant_perf::compare::fault::Fault;
use bezant_perf::switching::{self, History, Took};
use std::time::{Duration, Instant};
use std::{io, thread};

/// How long it may take until a replica's report says what it has done.
const REPORTED_MAX: Duration = Duration::from_secs(2);
/// How often is looked.
const REPORTED_POLL: Duration = Duration::from_millis(20);
/// How long an attack has been under way before a switch is measured: long enough for a client to connect.
const ATTACKED: Duration = Duration::from_millis(500);

impl Bench {
    /// How long a cluster that is started for it takes to leave Quorum, perhaps while something is wrong.
    pub(super) fn measure_switch(&self, subject: &Subject, history: History, fault: Option<Fault>) -> Result<Took> {
        self.with_own(subject, |file| {
            let config = ClusterConfig::load(file).map_err(Failure::usage)?;
            let options = files::client_options(&config, &file.with_file_name("client.key"), 1, subject.clients)?;
            let replicas = subject.replicas().0;
            let liar = fault.and_then(|fault| fault::liar(fault, replicas)).map(ReplicaId);
            let mut wrong = None;
            let mut begin = || {
                let Some(fault) = fault else { return Ok(()) };
                wrong = Some(self.begin(fault, replicas, file)?);
                thread::sleep(ATTACKED);
                still_in(InstanceId(1), &files::members(&config))
            };
            let begin = || begin().map_err(|failure: Failure| io::Error::other(failure.to_string()));
            let took = switching::measure(&options, history, liar, begin);
            let took = took.map_err(|error| Failure::failed(format!("{error}.")))?;
            if history.lacking > subject.replicas().1 {
                has_all(history.requests, liar, &files::members(&config))?;
            }
            wrong.map_or(Ok(()), |wrong| self.end(wrong))?;
            Ok(took)
        })
    }
}

/// Whether no replica has gone on to another instance.
fn still_in(instance: InstanceId, members: &[Member]) -> Result {
    for member in members {
        let status = member.account().map_err(Failure::failed)?;
        if status["report"]["instance"].as_u64() != Some(instance.0) {
            return Err(Failure::failed(format!("replica {} went on before anybody panicked", member.replica)));
        }
    }
    Ok(())
}

/// Whether all that was in the history has been handed on to those who are honest, once they say so.
fn has_all(requests: usize, liar: Option<ReplicaId>, members: &[Member]) -> Result {
    let deadline = Instant::now() + REPORTED_MAX;
    for member in members.iter().filter(|member| Some(ReplicaId(member.replica)) != liar) {
        let position = || member.account().map(|status| status["report"]["position"].as_u64().unwrap_or(0));
        while position().map_err(Failure::failed)? < requests as u64 {
            if Instant::now() > deadline {
                return Err(Failure::failed(format!("replica {} was not handed the history", member.replica)));
            }
            thread::sleep(REPORTED_POLL);
        }
    }
    Ok(())
}
