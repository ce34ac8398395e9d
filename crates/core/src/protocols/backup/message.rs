//! What a Backup says and waits for, besides its order.

use crate::auth::{Claimed, Signed};
use crate::checkpoint::{Checkpoint, TransferMessage};
use crate::dissent::Testimony;
use crate::ids::InstanceId;
use crate::protocols::total_order;
use crate::protocols::total_order::TotalOrder;
use alloc::boxed::Box;

/// A machine that a Backup over this order may be a part of.
pub trait Speaker<O: TotalOrder>:
    total_order::Speaker<
        O,
        Outgoing: From<Box<Claimed<Signed<Checkpoint>>>> + From<Box<Claimed<Signed<Testimony>>>>,
        Timer: From<TransferTimer>,
    >
{
}

impl<O, M> Speaker<O> for M
where
    O: TotalOrder,
    M: total_order::Speaker<
            O,
            Outgoing: From<Box<Claimed<Signed<Checkpoint>>>> + From<Box<Claimed<Signed<Testimony>>>>,
            Timer: From<TransferTimer>,
        >,
{
}

/// What the replicas of a Backup say to one another.
#[derive(Debug)]
pub enum BackupMessage<T> {
    /// A vote on a state.
    Checkpoint(Box<Claimed<Signed<Checkpoint>>>),
    /// What a replica's requests did.
    Testimony(Box<Claimed<Signed<Testimony>>>),
    /// A piece of a state, or a request for one.
    Transfer(TransferMessage),
    /// What the order says, in the instance named.
    Order(InstanceId, T),
}

/// The timers of a Backup.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum BackupTimer<T> {
    /// State transfer: begin, or ask again.
    Transfer,
    /// An init history: ask again for what is missing.
    Opening,
    /// Of the order.
    Order(T),
}

/// State transfer: begin, or ask again.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct TransferTimer;
