//! Something that goes wrong while a cluster is measured, from its beginning to its end.

use super::attacker::{self, Attack, LIAR};
use super::measure::Bench;
use super::words::value;
use crate::commands::demo::cluster::wait_until_up;
use crate::failure::Result;
use crate::liar::Lie;
use bezant_perf::compare::fault::{Culprit, Fault};
use std::path::Path;

/// What is wrong, so that it can be ended.
pub(super) enum Wrong {
    /// The last replica's machine or links.
    Machine(Fault, u8),
    /// A client, and the replica that is in league with it, if one is.
    Client(Attack, Option<u8>),
    /// A replica.
    Replica(u8, Lie),
}

/// Who lies, of so many replicas, if it is one of them.
pub(super) fn liar(fault: Fault, replicas: usize) -> Option<u8> {
    match fault.culprit() {
        Culprit::Machine | Culprit::Client => None,
        Culprit::First => Some(LIAR),
        Culprit::Last => Some(replicas as u8 - 1),
    }
}

impl Bench {
    /// Lets a fault begin on a cluster with so many replicas.
    pub(super) fn begin(&self, fault: Fault, replicas: usize, file: &Path) -> Result<Wrong> {
        let last = replicas as u8 - 1;
        if let Some(liar) = liar(fault, replicas) {
            let lie: Lie = value(fault.name());
            self.running.with(|cluster| cluster.have_lie(liar, lie))?;
            return Ok(Wrong::Replica(liar, lie));
        }
        match fault {
            Fault::Stop => self.running.with(|cluster| cluster.pause(last))?,
            Fault::Kill => self.running.with(|cluster| cluster.kill(last))?,
            Fault::Cut => self.running.laboratory.cut(last, true)?,
            Fault::Slow => self.running.laboratory.slow(last, true)?,
            client => {
                let accomplice = (client == Fault::WithholdBody).then_some(LIAR);
                if let Some(replica) = accomplice {
                    self.running.with(|cluster| cluster.have_lie(replica, value(client.name())))?;
                }
                return Ok(Wrong::Client(self.attack(value(client.name()), file, None)?, accomplice));
            }
        }
        Ok(Wrong::Machine(fault, last))
    }

    /// Lets it end.
    ///
    /// # Errors
    /// It was an attack that did nothing, or cannot be ended.
    pub(super) fn end(&self, wrong: Wrong) -> Result {
        let (fault, replica) = match wrong {
            Wrong::Client(attack, accomplice) => {
                attack.end()?;
                // Whether it was asked for a body is the others' affair.
                let honest = |replica| self.running.with(|cluster| cluster.have_honest(replica)).map(drop);
                return accomplice.map_or(Ok(()), honest);
            }
            Wrong::Replica(replica, lie) => {
                return self.running.with(|cluster| attacker::end_lie(cluster, replica, lie)).map(drop);
            }
            Wrong::Machine(fault, replica) => (fault, replica),
        };
        match fault {
            Fault::Kill => {
                let address = self.running.with(|cluster| cluster.restart(replica))?;
                wait_until_up(replica, address, || Ok(()))
            }
            Fault::Cut => self.running.laboratory.cut(replica, false),
            Fault::Slow => self.running.laboratory.slow(replica, false),
            _ => self.running.with(|cluster| cluster.resume(replica)),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::commands::attack::Kind;
    use clap::ValueEnum;

    #[test]
    fn every_attack_is_one_of_the_command_line() {
        for fault in Fault::ALL {
            let (is_client, is_replica) =
                (Kind::from_str(fault.name(), false).is_ok(), Lie::from_str(fault.name(), false).is_ok());
            match fault.culprit() {
                Culprit::Machine => assert_eq!(liar(fault, 4), None, "{fault:?}"),
                Culprit::Client => assert!(is_client && (is_replica || fault != Fault::WithholdBody), "{fault:?}"),
                Culprit::First => assert!(is_replica && liar(fault, 4) == Some(0), "{fault:?}"),
                Culprit::Last => assert!(is_replica && liar(fault, 4) == Some(3), "{fault:?}"),
            }
        }
    }
}
