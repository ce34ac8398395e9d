//! Comparisons of protocols: what a paper measured, measured again side by side on one machine.
//!
//! Protocols take turns (A B A B …), so that a machine that gets slower for a while does not favour one of them. What
//! counts is the ratio within one round, its median over the rounds, and how far apart the rounds are.
//!
//! | question | module |
//! |---|---|
//! | which experiments are there, and what did the papers find? | [`presets`], [`robust`], [`practicality`], [`ring`], [`ring_links`], [`ritas`], [`down`] |
//! | which settings are measured, and what came of it? | [`sweep`] |
//! | what happens over time, with a replica down or clients coming and going? | [`course`] |
//! | what may be wrong meanwhile? | [`fault`] |
//! | what does a group do without a service? | [`groups`] |
//! | what does an attack cost? | [`attacks`] |
//! | how long does a switch take? | [`switching`] |
//! | what does the paper say that we can check? | [`claim`] |
//! | what was measured in several sittings? | [`record`] |
//! | what came out, in lines? | [`summary`] |
//! | how is it drawn? | [`picture`], by means of [`chart`](crate::chart) |
//! | how is it written down? | [`page`] |

pub mod attacks;
pub mod claim;
pub mod course;
mod csv;
mod down;
pub mod fault;
pub mod groups;
pub mod page;
pub mod picture;
mod practicality;
pub mod presets;
pub mod record;
mod ring;
mod ring_links;
mod ritas;
mod robust;
pub mod summary;
pub mod sweep;
pub mod switching;
mod terms;
#[cfg(test)]
pub(crate) mod testing;

use attacks::Attacks;
use claim::Claim;
use course::{Course, Event};
use fault::{Culprit, Fault};
use groups::Groups;
use sweep::Sweep;
use switching::Switching;

/// One figure or table of a paper, to be measured again.
#[derive(Clone, Debug)]
pub struct Experiment {
    /// As on the command line, and the name of its files.
    pub name: String,
    /// What it shows.
    pub title: String,
    /// By name. The first one is what the others are divided by.
    pub protocols: Vec<String>,
    /// What is measured.
    pub kind: Kind,
    /// What others found, or we want.
    pub claims: Vec<Claim>,
    /// Where the claims come from: a column's head.
    pub source: &'static str,
    /// How our experiment differs from the paper's, in sentences; empty if in nothing but the machine.
    pub differences: String,
}

impl Experiment {
    /// Replicas of its greatest cluster.
    pub fn replicas_max(&self) -> usize {
        let f = match &self.kind {
            Kind::Groups(groups) => return groups.processes_max(),
            Kind::Sweep(sweep) => sweep.points.iter().map(|point| point.f).max().unwrap_or(0),
            Kind::Course(course) => course.f,
            Kind::Switching(switching) => switching.f,
            Kind::Attacks(attacks) => attacks.f,
        };
        3 * usize::from(f) + 1
    }
}

/// The kinds of experiment.
#[derive(Clone, Debug)]
pub enum Kind {
    /// A steady load at each of several points.
    Sweep(Sweep),
    /// Throughput over time while something happens.
    Course(Course),
    /// The time that a switch takes.
    Switching(Switching),
    /// Throughput before and under attacks.
    Attacks(Attacks),
    /// What processes do without a service.
    Groups(Groups),
}

impl Kind {
    /// Whether a client attacks in it, beside those that are measured.
    pub fn has_attacker(&self) -> bool {
        let is_client = |fault: &Fault| fault.culprit() == Culprit::Client;
        match self {
            Self::Course(Course { event: Event::Outage { fault, .. }, .. }) => is_client(fault),
            Self::Sweep(_) | Self::Course(_) | Self::Groups(_) => false,
            Self::Switching(switching) => switching.attacks.iter().flatten().any(is_client),
            Self::Attacks(attacks) => attacks.attacks.iter().any(is_client),
        }
    }
}
