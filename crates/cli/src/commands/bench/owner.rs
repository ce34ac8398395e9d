//! Names of what a laboratory makes outside of this process. They say which process it was, so what a killed one left
//! behind can be removed.

use std::fs;

/// What the names of all laboratories begin with.
const PREFIX: &str = "bezant-lab-";

/// A process: its id, and when it started, for ids are used again.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Owner {
    process: u32,
    /// In clock ticks since the machine started.
    started: u64,
}

impl Owner {
    /// This process. `None` without `/proc`, where there are no laboratories either.
    pub(super) fn own() -> Option<Self> {
        Self::of(std::process::id())
    }

    /// `None` if no such process runs.
    fn of(process: u32) -> Option<Self> {
        let stat = fs::read_to_string(format!("/proc/{process}/stat")).ok()?;
        // The program's name is in parentheses, and may have some of its own. Behind it field 3 comes first.
        let started = stat.rsplit_once(')')?.1.split_whitespace().nth(22 - 3)?.parse().ok()?;
        Some(Self { process, started })
    }

    /// From the name of something; `None` if it is none of ours.
    pub(super) fn from_name(name: &str) -> Option<Self> {
        let mut words = name.strip_prefix(PREFIX)?.splitn(3, '-');
        let (process, started) = (words.next()?.parse().ok()?, words.next()?.parse().ok()?);
        words.next().map(|_| Self { process, started })
    }

    /// What its thing for a node is called.
    pub(super) fn name(self, node: &str) -> String {
        format!("{PREFIX}{}-{}-{node}", self.process, self.started)
    }

    pub(super) fn is_alive(self) -> bool {
        Self::of(self.process) == Some(self)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_says_whose_it_is() {
        let own = Owner::own().expect("tests run on Linux");
        let owner = Owner::from_name(&own.name("replica-0")).expect("it is one of ours");
        assert_eq!(owner, own);
        assert!(owner.is_alive());
        assert!(!Owner { started: owner.started + 1, ..owner }.is_alive(), "its id is another process's now");
        for other in ["lab-1-2-x", "bezant-lab-1-x", "bezant-lab-x-2-switch", "bezant-lab-1-2", "bezant-lab--1-2-x"] {
            assert_eq!(Owner::from_name(other), None, "{other}");
        }
    }
}
