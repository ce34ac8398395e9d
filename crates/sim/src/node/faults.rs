//! What happens to a replica's process and disk: crashes at any effect, syncs that fail, rot, old copies.

use super::Node;
use crate::schedule::{Outage, Ruin};
use crate::stage::{Occurrence, Stage};
use bezant_core::machine::hold_back::{HoldBack, Leaving};

impl Node {
    /// Plans a crash after so many more effects.
    pub fn plan_crash(&mut self, stage: &mut Stage, effects: u64, outage: Outage) {
        if self.machine.is_none() {
            return;
        }
        if effects == 0 {
            self.power_off(stage, outage);
        } else {
            self.crash = Some((effects, outage));
        }
    }

    /// Lets the next sync fail; the replica is then down for so long.
    pub const fn plan_failed_sync(&mut self, down: u64) {
        self.sync_fails = Some(down);
    }

    /// Forgets what was planned.
    pub const fn spare(&mut self) {
        self.crash = None;
        self.sync_fails = None;
    }

    /// A durable record becomes unreadable.
    pub fn rot(&mut self, stage: &mut Stage) {
        if self.disk.rot(&mut self.rng) {
            stage.note(self.process, 10, || "has a record that rots".into());
        }
    }

    /// Its disk is copied.
    pub fn copy_disk(&mut self, stage: &mut Stage) {
        self.disk.copy();
        stage.note(self.process, 11, || "has its disk copied".into());
    }

    /// Stops at once, and comes back as the outage says.
    pub fn power_off(&mut self, stage: &mut Stage, outage: Outage) {
        self.retired |= outage.down.is_none();
        if self.machine.take().is_none() {
            return;
        }
        stage.note(self.process, 5, || match outage.ruin {
            Ruin::Nothing => "stops".into(),
            Ruin::Lost => "loses its disk".into(),
            Ruin::PutBack => "stops; its disk is put back".into(),
        });
        self.disk.crash(&mut self.rng);
        match outage.ruin {
            Ruin::Nothing => self.tell_what_survived(stage),
            Ruin::Lost => self.lose_disk(stage),
            Ruin::PutBack => {
                self.disk.put_back();
                self.counts.old_disks += 1;
            }
        }
        self.life += 1;
        self.timers.clear();
        self.hold_back = HoldBack::default();
        self.spare();
        self.pass_planned = false;
        if let Some(down) = outage.down {
            stage.plan(stage.now + down, Occurrence::Restart(self.process));
        }
    }

    /// What rests on records that a crash left on the disk, although nobody was told that they are there: the replica
    /// will find them again, and say nothing of it.
    fn tell_what_survived(&mut self, stage: &mut Stage) {
        self.hold_back.durable_to(self.disk.durable());
        while let Some(leaving) = self.hold_back.release() {
            if let Leaving::Notice(notice) = leaving {
                self.noticed(stage, &notice);
            }
        }
    }
}
