//! The simulator: one seed decides everything, and everything runs on one thread, in one order.
//!
//! It drives the machines of `bezant-core`, exactly those that the runtime drives, through a world of unreliable
//! links, disks and clocks, with up to f replicas and a client that lie. Two phases: in the first anything may fail;
//! then n−f correct replicas are healed, the liars go on, and everything that clients ask for must be done.
//!
//! | question | module |
//! |---|---|
//! | which run? | [`options`], [`arguments`] |
//! | what does a seed decide? | [`scenario`], [`feature`], [`size`](mod@size), [`schedule`], [`workload`] |
//! | who carries out what machines ask for? | [`node`], [`caller`], [`disk`], [`network`], [`clock`] |
//! | in which order do things happen? | [`stage`], [`world`], [`moments`] |
//! | who lies, and how? | [`byzantine`] |
//! | what must be true? | [`checks`] |
//! | what happened? | [`runs`], [`trace`], [`evidence`], [`shrink`](mod@shrink) |
//! | do the layers of RITAS hold alone? | [`group`] |
//! | does it hold for my service? | [`author`], [`trial`] |
//! | would we notice? | [`mutants`], [`seeds`] |

pub mod arguments;
pub mod author;
pub mod byzantine;
pub mod caller;
pub mod checks;
pub mod clock;
pub mod command;
pub mod disk;
pub mod evidence;
pub mod feature;
pub mod group;
pub mod moments;
pub mod mutants;
pub mod network;
pub mod node;
pub mod options;
pub mod panics;
pub mod paper_coin;
pub mod passes;
mod report;
pub mod rng;
pub mod runs;
pub mod scenario;
pub mod schedule;
pub mod seeds;
pub mod shrink;
pub mod size;
pub mod sql_fuzz;
pub mod stage;
pub mod store;

pub mod trace;
pub mod trial;
pub mod workload;
pub mod world;
