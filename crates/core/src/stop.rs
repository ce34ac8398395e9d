//! Why an instance stops, and why the next one follows.

use core::fmt;

macro_rules! reasons {
    ($($(#[$doc:meta])* $name:ident => $label:literal, $words:literal;)*) => {
        /// Why a replica stops in an instance.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
        pub enum StopReason {
            $($(#[$doc])* $name,)*
        }

        impl StopReason {
            /// Every reason.
            pub const ALL: &'static [Self] = &[$(Self::$name),*];

            /// A stable name in snake case.
            pub const fn label(self) -> &'static str {
                match self { $(Self::$name => $label),* }
            }

            /// In words, for people.
            pub const fn words(self) -> &'static str {
                match self { $(Self::$name => $words),* }
            }
        }
    };
}

reasons! {
    /// A client said PANIC.
    Panicked => "panicked", "a client panicked";
    /// A client asked with a signature and was not served in time.
    Unserved => "unserved", "a client that panicked was not served";
    /// f + 1 others have stopped: one of them is correct.
    OthersStopped => "others_stopped", "f+1 replicas have stopped";
    /// Quorum would serve so few clients better.
    LowLoad => "low_load", "at most one client for two seconds";
    /// More clients ask at the same time than Quorum is good for.
    Crowded => "crowded", "too many clients for Quorum";
    /// A timestamp further ahead than clocks may differ.
    Future => "future", "a request from the future";
    /// Somebody before this replica, or what is between, is faulty.
    BadMac => "bad_mac", "a predecessor's MAC is bad";
    /// What comes with a batch does not lead where its sender says.
    OtherHistory => "other_history", "the predecessor has another history";
    /// The same, before anything was ordered.
    OtherBeginning => "other_beginning", "the predecessor began with another history";
    /// Equal requests, executed, came to different results.
    OtherResults => "other_results", "the predecessor has other results";
    /// As [`Self::OtherHistory`], of a sequencer.
    OtherHistoryOfSequencer => "other_history_of_sequencer", "the sequencer has another history";
    /// As [`Self::OtherResults`], of a sequencer.
    OtherResultsOfSequencer => "other_results_of_sequencer", "the sequencer has other results";
    /// A head has ordered what no client vouches for.
    Unauthentic => "unauthentic", "a request that is not its client's";
    /// A head has proposed a time that is too far from this clock.
    AgreedTime => "agreed_time", "agreed time too far from this clock";
    /// A head has ordered what the history has already, or what may not stand there.
    Unloggable => "unloggable", "a request that may not be logged";
    /// A head has ordered nothing.
    Empty => "empty", "a batch of nothing";
    /// The ring is slow beyond doubt, and the operator wants it left then.
    Slow => "slow", "the ring is slow";
    /// A request has waited too long, and nothing was executed.
    RequestWaited => "request_waited", "a request waited too long";
    /// The sequencer has not begun.
    InitNotOrdered => "init_not_ordered", "the init history was not ordered";
    /// What is logged has not been committed in time.
    Uncommitted => "uncommitted", "what is logged was not committed";
    /// Others are served, and one request is not.
    PassedOver => "passed_over", "the sequencer passes a request over";
    /// A Backup would have executed more (Robust 4).
    SlowerThanABackup => "slower_than_a_backup", "it is slower than a Backup";
    /// There is far more to do than any Backup had that was measured (Robust 4).
    Unmeasured => "unmeasured", "no Backup was measured with so much to do";
    /// Others are served, and one request is not (Robust 5).
    LeftOut => "left_out", "a request is left out";
    /// Another replica has stopped, and nothing is logged any more (Robust 7).
    LeftAlone => "left_alone", "a replica has stopped, and nothing goes on";
    /// It needs all replicas (Presence 3).
    SomebodyMissing => "somebody_missing", "a replica is missing";
    /// A client asks again and again for what it was answered.
    Doubted => "doubted", "a client is not content with its answers";
    /// It was to come to its end here, and has.
    QuotaDone => "quota_done", "its quota is done";
    /// It has executed its quota, and 2f + 1 do not sign one state.
    QuotaWithoutCheckpoint => "quota_without_checkpoint", "its quota is done, without a checkpoint";
    /// A Backup has come to its end.
    RequestsDone => "requests_done", "k requests are done";
}

impl fmt::Display for StopReason {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.words())
    }
}

/// Why a replica left the instance before the one that runs.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum SwitchReason {
    /// There was none before.
    #[default]
    First,
    /// f + 1 had stopped because there was hardly any load.
    LittleLoad,
    /// Others were further.
    Behind,
    /// It was a Backup, and had come to its end.
    BackupDone,
    /// The others had stopped.
    OthersStopped,
    /// This replica had stopped.
    Stopped(StopReason),
}

impl SwitchReason {
    /// In words, for people; empty if there was no instance before.
    pub const fn words(self) -> &'static str {
        match self {
            Self::First => "",
            Self::LittleLoad => "hardly any load",
            Self::Behind => "this replica was behind",
            Self::BackupDone => "the backup had answered its requests",
            Self::OthersStopped => "the others had stopped",
            Self::Stopped(reason) => reason.words(),
        }
    }
}

impl fmt::Display for SwitchReason {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.words())
    }
}
