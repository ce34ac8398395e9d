//! Why something that a peer or a client said was not accepted. Typed, counted, shown in `status`; never a panic.

use crate::auth::PublicKeys;
use crate::ids::{IdentityId, Principal, ReplicaId};
use crate::wire::WireError;
use alloc::collections::BTreeMap;
use alloc::vec::Vec;
use core::{fmt, mem};

macro_rules! rejections {
    ($($(#[$doc:meta])* $name:ident => $label:literal),* $(,)?) => {
        /// The reasons. The label is the metric's and the log's name for it.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
        pub enum Rejection {
            $($(#[$doc])* $name,)*
        }

        impl Rejection {
            /// Every reason, for documentation and metrics.
            pub const ALL: &'static [Self] = &[$(Self::$name),*];

            /// A stable name in snake case.
            pub const fn label(self) -> &'static str {
                match self { $(Self::$name => $label),* }
            }
        }
    };
}

rejections! {
    /// The bytes are not a message.
    Malformed => "malformed",
    /// The MAC is not the sender's.
    BadMac => "bad_mac",
    /// A signature is not the signer's.
    BadSignature => "bad_signature",
    /// A request whose MAC entry and signature both fail.
    UnauthenticRequest => "unauthentic_request",
    /// An identity that the cluster does not admit.
    UnknownIdentity => "unknown_identity",
    /// The sender may not send this kind of message, or speaks for somebody else.
    WrongSender => "wrong_sender",
    /// For another instance of the composition.
    WrongInstance => "wrong_instance",
    /// For a view that is over, or not begun.
    WrongView => "wrong_view",
    /// A sequence number outside the window above the stable checkpoint.
    OutsideWindow => "outside_window",
    /// A second, different statement where only one is allowed: proof of a fault at the sender.
    Equivocation => "equivocation",
    /// The same vote again.
    Duplicate => "duplicate",
    /// A client's request older than one already executed.
    StaleTimestamp => "stale_timestamp",
    /// A batch that breaks a bound, or names a request twice.
    BadBatch => "bad_batch",
    /// A client's second operation under one number. Whoever passes one of them on cannot know of the other.
    ReusedTimestamp => "reused_timestamp",
    /// An operation longer than `operation_bytes_max`.
    TooLarge => "too_large",
    /// Agreed time or seed that a fresh proposal must not have (prac-F27).
    BadAgreedValue => "bad_agreed_value",
    /// A view change or new view that does not follow from what it carries.
    BadViewChange => "bad_view_change",
    /// A checkpoint or certificate that does not prove what it claims.
    BadCertificate => "bad_certificate",
    /// A page or node of state that does not have the digest it should have.
    BadPage => "bad_page",
    /// Nobody asked for it.
    Unsolicited => "unsolicited",
    /// A request for another entry of a ring than the one that its client asks.
    WrongEntry => "wrong_entry",
    /// A queue that is full: named in `Limits`.
    Overload => "overload",
    /// A digest in a reply, a batch or a body that is not that of its content.
    DigestMismatch => "digest_mismatch",
    /// A share of a common coin that is not its sender's.
    BadShare => "bad_share",
}

impl Rejection {
    /// Whether a correct replica never gives cause for it: then it is evidence of a fault, not of bad timing. All of
    /// these are about what its sender has sealed or signed itself. Bytes that are no message, and a MAC that is not
    /// the sender's, are none of that: whatever is on the way may have changed them.
    pub const fn is_blame(self) -> bool {
        matches!(
            self,
            Self::BadSignature
                | Self::Equivocation
                | Self::BadBatch
                | Self::BadViewChange
                | Self::BadCertificate
                | Self::BadPage
                | Self::DigestMismatch
                | Self::BadShare
        )
    }
}

impl fmt::Display for Rejection {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.label())
    }
}

impl From<WireError> for Rejection {
    fn from(_: WireError) -> Self {
        Self::Malformed
    }
}

/// How often each reason occurred.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct RejectionCounts(BTreeMap<Rejection, u64>);

impl RejectionCounts {
    /// Counts one more.
    pub fn add(&mut self, rejection: Rejection) {
        *self.0.entry(rejection).or_default() += 1;
    }

    /// Reasons that occurred, with their counts.
    pub fn iter(&self) -> impl Iterator<Item = (Rejection, u64)> + '_ {
        self.0.iter().map(|(&rejection, &count)| (rejection, count))
    }

    /// How often this reason occurred.
    pub fn of(&self, rejection: Rejection) -> u64 {
        self.0.get(&rejection).copied().unwrap_or(0)
    }
}

/// Under whom things are counted. A session is a number that its client chooses, so there is one account for all
/// sessions of an identity; and one for all clients that the cluster file does not name: whoever may join has as many
/// keys as it likes, and a liar can make up identities.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Account {
    /// A replica.
    Replica(ReplicaId),
    /// The sessions of an identity that the cluster file names.
    Clients(IdentityId),
    /// All other clients.
    Others,
}

impl Account {
    /// Where what somebody said is counted.
    pub fn of(party: Principal, keys: &PublicKeys) -> Self {
        match party {
            Principal::Replica(replica) => Self::Replica(replica),
            Principal::Client(client) if keys.identities.contains_key(&client.identity) => {
                Self::Clients(client.identity)
            }
            Principal::Client(_) | Principal::Key(_) => Self::Others,
        }
    }
}

/// Accounts and reasons that are kept until the host takes them.
pub const RECENT_MAX: usize = 64;

/// What was not accepted, by account: no more of them than the cluster file names parties, and one.
#[derive(Clone, Debug, Default)]
pub struct Rejections {
    counts: BTreeMap<Account, RejectionCounts>,
    /// What was rejected since the host took it last, each account and reason once; the first [`RECENT_MAX`].
    recent: Vec<(Account, Rejection)>,
}

impl Rejections {
    /// Counts one more.
    pub fn add(&mut self, from: Principal, keys: &PublicKeys, reason: Rejection) {
        let account = Account::of(from, keys);
        self.counts.entry(account).or_default().add(reason);
        if self.recent.len() < RECENT_MAX && !self.recent.contains(&(account, reason)) {
            self.recent.push((account, reason));
        }
    }

    /// What was rejected since this was asked last, for a host that wants to know what came of one frame. Each account
    /// and reason once, and no more than [`RECENT_MAX`].
    pub fn take_recent(&mut self) -> Vec<(Account, Rejection)> {
        mem::take(&mut self.recent)
    }

    /// What is true between steps.
    pub(crate) fn check_invariants(&self, keys: &PublicKeys) {
        assert!(self.recent.len() <= RECENT_MAX, "what the host does not take is bounded");
        assert!(self.counts.len() <= keys.replicas.len() + keys.identities.len() + 1, "one account for each party");
        let is_known = |account: &Account| match account {
            Account::Replica(id) => usize::from(id.0) < keys.replicas.len(),
            Account::Clients(identity) => keys.identities.contains_key(identity),
            Account::Others => true,
        };
        assert!(self.counts.keys().all(is_known), "whoever the cluster file does not name shares an account");
        assert!(self.counts.values().all(|counts| counts.iter().next().is_some()), "an account has something on it");
    }

    /// Every account with something on it.
    pub fn iter(&self) -> impl Iterator<Item = (Account, &RejectionCounts)> {
        self.counts.iter().map(|(account, counts)| (*account, counts))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_host_that_takes_nothing_costs_no_memory() {
        let keys = PublicKeys { replicas: Vec::new(), identities: BTreeMap::new() };
        let mut rejections = Rejections::default();
        for number in 0..100 {
            for reason in Rejection::ALL {
                rejections.add(Principal::Replica(ReplicaId(number)), &keys, *reason);
            }
        }
        let recent = rejections.take_recent();
        assert_eq!((recent.len(), recent[1]), (RECENT_MAX, (Account::Replica(ReplicaId(0)), Rejection::ALL[1])));
        assert!(rejections.take_recent().is_empty());
    }

    /// What anybody on the way can bring about, or a client, blames no replica.
    #[test]
    fn who_has_sealed_nothing_is_not_blamed() {
        use Rejection::{BadMac, Malformed, ReusedTimestamp, TooLarge, UnauthenticRequest};
        assert!(
            [BadMac, Malformed, ReusedTimestamp, TooLarge, UnauthenticRequest].iter().all(|reason| !reason.is_blame())
        );
        assert!(Rejection::Equivocation.is_blame() && Rejection::BadSignature.is_blame());
    }
}
