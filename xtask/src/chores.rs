//! What every sub-command is called, takes, and is for.

/// A sub-command: its name, what it takes, and what it is for.
pub(crate) struct Chore {
    /// The word after `cargo xtask`.
    pub(crate) name: &'static str,
    /// What it takes.
    pub(crate) arguments: &'static str,
    pub(crate) purpose: &'static str,
}

/// Every sub-command. Documents that name another one are wrong, and `tidy` says so.
pub(crate) const CHORES: [Chore; 16] = [
    Chore {
        name: "verify",
        arguments: "[--list] [--lanes N] [--only STEP]...",
        purpose: "the one gate: every check, in order, until one fails",
    },
    Chore { name: "tidy", arguments: "", purpose: "the rules of docs/style.md that a program can check" },
    Chore {
        name: "tables",
        arguments: "[--write]",
        purpose: "the tables of documents that say what the sources know: checked, or written",
    },
    Chore {
        name: "measure",
        arguments: "[--all] [--circles | --floors] [--json]",
        purpose: "the sizes, circles and arrows of the core's sources, or of all crates'",
    },
    Chore {
        name: "instructions",
        arguments: "[--write] | [--protocol NAME]... [--auth MODE] [--f N] [--sessions N] [--bytes N] [--operations N]",
        purpose: "instructions that the core takes for an operation, by party (needs valgrind)",
    },
    Chore {
        name: "fuzz",
        arguments: "[--seconds N] [--target NAME]",
        purpose: "fuzz each target for N seconds (default 60)",
    },
    Chore {
        name: "sql-fuzz",
        arguments: "[--minutes N]",
        purpose: "compare the SQL service with itself and with plain SQLite for N minutes (default 10)",
    },
    Chore {
        name: "referee",
        arguments: "[--seconds N] [--seed N] [--binary PATH]",
        purpose: "compare the PostgreSQL gateway with a real PostgreSQL, a sample or for N seconds",
    },
    Chore {
        name: "ecosystem",
        arguments: "[TOOL]... [--binary PATH]",
        purpose: "run what others wrote for PostgreSQL against the gateway, and against PostgreSQL",
    },
    Chore {
        name: "spec",
        arguments: "",
        purpose: "explore the TLA+ models: the repaired ones hold, each without a repair is refuted",
    },
    Chore {
        name: "mutants",
        arguments: "[ARGUMENTS]",
        purpose: "remove one rule of the protocol at a time; a run or a test must notice each",
    },
    Chore {
        name: "soak",
        arguments: "[--minutes N]",
        purpose: "fresh simulator seeds for N minutes (default 60), for f = 1 and f = 2",
    },
    Chore {
        name: "e2e",
        arguments: "[NAME] [--binary PATH]",
        purpose: "the end-to-end tests of the real binary, all or one",
    },
    Chore {
        name: "package",
        arguments: "[--binary PATH] [--out FOLDER]",
        purpose: "a Debian package of a release build, or of a binary that is there",
    },
    Chore { name: "wheel", arguments: "", purpose: "the Python client for this machine, to target/wheel" },
    Chore {
        name: "advisories",
        arguments: "",
        purpose: "check dependencies against the RustSec advisories (needs to reach their database)",
    },
];
