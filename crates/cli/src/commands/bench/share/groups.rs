//! Control groups of the system, of both versions: where they are, what they are told, and what they count.

use super::super::owner::Owner;
use bezant_perf::shares::Throttled;
use std::fs;
use std::path::{Path, PathBuf};

/// How a group is told what it may use.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Version {
    /// A hierarchy of its own for processors.
    One,
    /// One hierarchy for everything.
    Two,
}

/// Where groups can be made.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Hierarchy {
    version: Version,
    /// The group that this process is in at first.
    home: PathBuf,
    /// The group in which ours are made.
    base: PathBuf,
}

/// A mount of control groups.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Mount {
    version: Version,
    /// What of the hierarchy is seen there.
    root: String,
    place: PathBuf,
}

impl Hierarchy {
    /// The one that limits processors; else why there is none, in words.
    pub(super) fn find() -> Result<Self, String> {
        let read = |path: &str| fs::read_to_string(path).map_err(|error| format!("{path}: {error}"));
        let (mounts, own) = (mounts(&read("/proc/self/mountinfo")?), read("/proc/self/cgroup")?);
        let limits = |mount: &&Mount| match mount.version {
            Version::One => true,
            Version::Two => has_cpu(&mount.place.join("cgroup.controllers")),
        };
        let mount = mounts.iter().find(limits).ok_or("no control groups for processors are mounted")?;
        let home = home(mount, &own).filter(|home| home.is_dir()).unwrap_or_else(|| mount.place.clone());
        let base = match mount.version {
            Version::One => Some(home.clone()),
            // A group that has processes passes no controller on; those above it do, or nobody does.
            Version::Two => home
                .ancestors()
                .take_while(|above| above.starts_with(&mount.place))
                .find(|above| has_cpu(&above.join("cgroup.subtree_control")))
                .map(Path::to_owned),
        };
        let base = base.ok_or("no control group above this process passes the controller `cpu` on")?;
        Ok(Self { version: mount.version, home, base })
    }

    /// Where a group of this name is.
    pub(super) fn group(&self, name: &str) -> PathBuf {
        self.base.join(name)
    }

    /// Makes a group that may work for `quota_us` of every `period_us`, on all cores together.
    ///
    /// # Errors
    /// Which file refused what, in words.
    pub(super) fn make(&self, group: &Path, quota_us: u64, period_us: u64) -> Result<(), String> {
        fs::create_dir(group).map_err(|error| format!("{}: {error}", group.display()))?;
        match self.version {
            Version::One => {
                write(&group.join("cpu.cfs_period_us"), period_us)?;
                write(&group.join("cpu.cfs_quota_us"), quota_us)
            }
            Version::Two => write(&group.join("cpu.max"), format!("{quota_us} {period_us}")),
        }
    }

    /// Moves this process, with all its threads, into a group, or back to where it was.
    ///
    /// # Errors
    /// Which file refused, in words.
    pub(super) fn enter(&self, group: Option<&Path>) -> Result<(), String> {
        write(&procs(group.unwrap_or(&self.home)), std::process::id())
    }

    /// What a group has counted since it was made.
    ///
    /// # Errors
    /// Which file says something else, in words.
    pub(super) fn counted(&self, group: &Path) -> Result<Throttled, String> {
        let file = group.join("cpu.stat");
        let text = fs::read_to_string(&file).map_err(|error| format!("{}: {error}", file.display()))?;
        throttled(self.version, &text).ok_or_else(|| format!("{} is of another form", file.display()))
    }

    /// Groups of processes that have ended.
    pub(super) fn leftovers(&self) -> Vec<PathBuf> {
        let entries = fs::read_dir(&self.base).into_iter().flatten().flatten();
        let of_nobody = entries.filter(|entry| {
            let owner = entry.file_name().to_str().and_then(Owner::from_name);
            owner.is_some_and(|owner| !owner.is_alive())
        });
        of_nobody.map(|entry| entry.path()).collect()
    }
}

/// The file that processes are written to which are to be in a group.
pub(super) fn procs(group: &Path) -> PathBuf {
    group.join("cgroup.procs")
}

fn write(file: &Path, value: impl ToString) -> Result<(), String> {
    fs::write(file, value.to_string()).map_err(|error| format!("{}: {error}", file.display()))
}

fn has_cpu(file: &Path) -> bool {
    fs::read_to_string(file).is_ok_and(|text| text.split_whitespace().any(|word| word == "cpu"))
}

/// The mounts that may limit processors, from `/proc/self/mountinfo`: those of the first version come first, for where
/// there are both the second has no such controller.
fn mounts(text: &str) -> Vec<Mount> {
    let mount = |line: &str| {
        let (before, after) = line.split_once(" - ")?;
        let (mut before, mut after) = (before.split(' ').skip(3), after.split(' '));
        let (root, place) = (before.next()?.to_owned(), PathBuf::from(before.next()?));
        let version = match (after.next()?, after.nth(1)?) {
            ("cgroup", options) if options.split(',').any(|option| option == "cpu") => Version::One,
            ("cgroup2", _) => Version::Two,
            _ => return None,
        };
        Some(Mount { version, root, place })
    };
    let mut found: Vec<_> = text.lines().filter_map(mount).collect();
    found.sort_by_key(|mount| mount.version == Version::Two);
    found
}

/// Where the group of a process is, whose `/proc/…/cgroup` says this: lines of a number, controllers and a path.
fn home(mount: &Mount, own: &str) -> Option<PathBuf> {
    let path = own.lines().find_map(|line| {
        let mut words = line.splitn(3, ':').skip(1);
        let (controllers, path) = (words.next()?, words.next()?);
        let is_it = match mount.version {
            Version::One => controllers.split(',').any(|name| name == "cpu"),
            Version::Two => controllers.is_empty(),
        };
        is_it.then_some(path)
    })?;
    let below = Path::new(path).strip_prefix(&mount.root).ok()?;
    Some(mount.place.join(below))
}

fn throttled(version: Version, text: &str) -> Option<Throttled> {
    let count = |name: &str| {
        let mut lines = text.lines().filter_map(|line| line.split_once(' '));
        lines.find_map(|(what, count)| if what == name { count.parse::<u64>().ok() } else { None })
    };
    let waited_us = match version {
        Version::One => count("throttled_time")? / 1_000,
        Version::Two => count("throttled_usec")?,
    };
    Some(Throttled { periods: count("nr_periods")?, throttled: count("nr_throttled")?, waited_us })
}

#[cfg(test)]
mod tests {
    use super::*;

    const BOTH: &str = "30 23 0:26 / /sys/fs/cgroup/unified rw shared:10 - cgroup2 cgroup2 rw\n\
        31 23 0:27 / /sys/fs/cgroup/cpu,cpuacct rw shared:11 - cgroup cgroup rw,cpu,cpuacct\n\
        32 23 0:28 / /sys/fs/cgroup/cpuset rw shared:12 - cgroup cgroup rw,cpuset\n\
        33 23 8:1 / / rw - ext4 /dev/sda1 rw\n";

    #[test]
    fn the_first_version_is_taken_where_there_are_both() {
        let found = mounts(BOTH);
        let places: Vec<_> = found.iter().map(|mount| (mount.version, mount.place.to_str().unwrap())).collect();
        let expected = [(Version::One, "/sys/fs/cgroup/cpu,cpuacct"), (Version::Two, "/sys/fs/cgroup/unified")];
        assert_eq!(places, expected);
    }

    #[test]
    fn a_process_says_which_group_it_is_in() {
        let own = "9:name=systemd:/user\n3:cpuset:/\n2:cpu,cpuacct:/box/a\n0::/box/b\n";
        let [first, second] = [Version::One, Version::Two].map(|version| {
            let mount = Mount { version, root: "/".to_owned(), place: PathBuf::from("/groups") };
            home(&mount, own)
        });
        assert_eq!(first, Some(PathBuf::from("/groups/box/a")));
        assert_eq!(second, Some(PathBuf::from("/groups/box/b")));
        let inside = Mount { version: Version::One, root: "/box".to_owned(), place: PathBuf::from("/groups") };
        assert_eq!(home(&inside, own), Some(PathBuf::from("/groups/a")), "a container sees a part");
    }

    #[test]
    fn both_versions_count_the_same() {
        let first = "nr_periods 40\nnr_throttled 30\nthrottled_time 9000000\n";
        let second = "usage_usec 7\nnr_periods 40\nnr_throttled 30\nthrottled_usec 9000\n";
        let expected = Some(Throttled { periods: 40, throttled: 30, waited_us: 9_000 });
        assert_eq!(throttled(Version::One, first), expected);
        assert_eq!(throttled(Version::Two, second), expected);
        assert_eq!(throttled(Version::Two, first), None);
    }
}
