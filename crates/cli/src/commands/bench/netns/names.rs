//! Names of network namespaces that say which process made them, so that what a killed one left behind can be removed.

use std::fs;

/// Where `ip` keeps namespaces that have a name.
const FOLDER: &str = "/run/netns";
/// What the names of all laboratories begin with.
const PREFIX: &str = "bezant-lab-";

/// A process: its id, and when it started, for ids are used again.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Owner {
    process: u32,
    /// In clock ticks since the machine started.
    started: u64,
}

impl Owner {
    /// `None` if no such process runs.
    fn of(process: u32) -> Option<Self> {
        let stat = fs::read_to_string(format!("/proc/{process}/stat")).ok()?;
        // The program's name is in parentheses, and may have some of its own. Behind it field 3 comes first.
        let started = stat.rsplit_once(')')?.1.split_whitespace().nth(22 - 3)?.parse().ok()?;
        Some(Self { process, started })
    }

    /// From the name of a namespace; `None` if it is none of ours.
    fn from_name(name: &str) -> Option<Self> {
        let mut words = name.strip_prefix(PREFIX)?.splitn(3, '-');
        let (process, started) = (words.next()?.parse().ok()?, words.next()?.parse().ok()?);
        words.next().map(|_| Self { process, started })
    }

    fn is_alive(self) -> bool {
        Self::of(self.process) == Some(self)
    }
}

/// The names of one laboratory.
#[derive(Clone, Debug)]
pub(super) struct Names {
    owner: Owner,
}

impl Names {
    /// Those of this process. `None` without `/proc`, where there are no namespaces either.
    pub(super) fn own() -> Option<Self> {
        Owner::of(std::process::id()).map(|owner| Self { owner })
    }

    pub(super) fn of(&self, node: &str) -> String {
        format!("{PREFIX}{}-{}-{node}", self.owner.process, self.owner.started)
    }

    /// Namespaces of this laboratory that are there now.
    pub(super) fn existing(&self) -> Vec<String> {
        all().into_iter().filter(|name| Owner::from_name(name) == Some(self.owner)).collect()
    }
}

/// What processes that ended without removing it left behind.
pub(super) fn leftovers() -> Vec<String> {
    all().into_iter().filter(|name| Owner::from_name(name).is_some_and(|owner| !owner.is_alive())).collect()
}

/// The file that stands for a namespace.
pub(super) fn path(name: &str) -> String {
    format!("{FOLDER}/{name}")
}

/// The folder is there once a namespace was.
fn all() -> Vec<String> {
    let entries = fs::read_dir(FOLDER).into_iter().flatten().flatten();
    entries.filter_map(|entry| entry.file_name().into_string().ok()).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_says_whose_it_is() {
        let names = Names::own().expect("tests run on Linux");
        let owner = Owner::from_name(&names.of("replica-0")).expect("it is one of ours");
        assert_eq!(owner, names.owner);
        assert!(owner.is_alive());
        assert!(!Owner { started: owner.started + 1, ..owner }.is_alive(), "its id is another process's now");
        for other in ["lab-1-2-x", "bezant-lab-1-x", "bezant-lab-x-2-switch", "bezant-lab-1-2", "bezant-lab--1-2-x"] {
            assert_eq!(Owner::from_name(other), None, "{other}");
        }
    }
}
