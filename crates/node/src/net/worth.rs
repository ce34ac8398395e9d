//! What a frame was worth to the machine, judged by what it rejected: what the sender is charged for it.

use bezant_core::rejection::Rejection;

/// From the best to the worst.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Worth {
    /// Nothing was rejected.
    Useful,
    /// A correct sender may be the cause, however often: it, or this replica, is behind.
    Untimely,
    /// Of no use. A correct sender gives cause for it now and then.
    Useless,
    /// It is not what its sender says that it is. A correct sender never gives cause for it.
    Failed,
}

impl Worth {
    /// Of a frame of which this was rejected, under the sender's own account. What somebody else is to blame for is not
    /// held against whoever passes it on.
    pub fn of(rejected: impl Iterator<Item = Rejection>, is_client: bool) -> Self {
        rejected.map(|reason| Self::of_one(reason, is_client)).max().unwrap_or(Self::Useful)
    }

    /// A replica cannot know of what the clients' MACs say to others, what they have said to others, or how far others
    /// are. A client asks again when it is not answered, and those are few bytes for each that is of use.
    const fn of_one(reason: Rejection, is_client: bool) -> Self {
        match reason {
            Rejection::Malformed
            | Rejection::BadMac
            | Rejection::BadSignature
            | Rejection::Equivocation
            | Rejection::BadBatch
            | Rejection::BadViewChange
            | Rejection::BadCertificate
            | Rejection::BadPage
            | Rejection::DigestMismatch
            | Rejection::BadShare => Self::Failed,
            Rejection::UnauthenticRequest => {
                if is_client {
                    Self::Failed
                } else {
                    Self::Untimely
                }
            }
            Rejection::UnknownIdentity
            | Rejection::WrongSender
            | Rejection::BadAgreedValue
            | Rejection::Duplicate
            | Rejection::TooLarge => Self::Useless,
            Rejection::WrongInstance
            | Rejection::WrongView
            | Rejection::OutsideWindow
            | Rejection::StaleTimestamp
            | Rejection::ReusedTimestamp
            | Rejection::Unsolicited
            | Rejection::WrongEntry
            | Rejection::Overload => {
                if is_client {
                    Self::Useless
                } else {
                    Self::Untimely
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_a_correct_replica_never_does_has_failed() {
        for reason in Rejection::ALL.iter().filter(|reason| reason.is_blame()) {
            assert_eq!(Worth::of_one(*reason, false), Worth::Failed, "{reason}");
        }
    }

    #[test]
    fn a_frame_is_worth_what_the_worst_of_it_is_worth() {
        use Rejection::{BadMac, Duplicate, OutsideWindow, UnauthenticRequest};
        assert_eq!(Worth::of([].into_iter(), false), Worth::Useful);
        assert_eq!(Worth::of([OutsideWindow].into_iter(), false), Worth::Untimely);
        assert_eq!(Worth::of([BadMac, OutsideWindow, Duplicate].into_iter(), false), Worth::Failed);
        assert_eq!(Worth::of([UnauthenticRequest].into_iter(), false), Worth::Untimely, "it is a client's");
        assert_eq!(Worth::of([UnauthenticRequest, OutsideWindow].into_iter(), true), Worth::Failed);
    }
}
