//! Backup: any total order as an abortable instance, as in the paper on Abstract.
//!
//! # What it is for
//! A total order decides on one sequence of batches; Backup makes a replicated service of it. It checks whether a
//! request was executed before, hands new ones to the order, executes what the order delivers, answers clients,
//! takes checkpoints, and fetches the state when the replica has fallen behind. With `k = ∞` it never aborts, and the
//! composition of that one instance is plain PBFT.
//!
//! # Steps
//! * Backup 1. A request that is already in the client table is answered from there; a new one goes to the order. One
//!   that must not be executed any more is answered like a read, so that nobody is told so by a batch that is undone
//!   ([`crate::client`], Client 10).
//! * Backup 2. A read-only request is answered from the state at once, or, while the last batch is tentative, as soon
//!   as it is final (pbft-F21); and not before everything that this replica helped to acknowledge is executed, be it
//!   again: after a restart, and also after a batch was undone. What has waited is answered by and by: at most
//!   [`READ_BYTES_AT_ONCE`] and one result in a step. The client needs 2f+1 equal answers *from the same position*.
//! * Backup 3. A batch is executed tentatively when the order says so, and answered as tentative; 2f+1 such answers of
//!   one view are as good as final ones, because at least f+1 correct replicas prepared the batch in that view.
//! * Backup 4. A batch delivered for good is executed, or confirmed if it was executed tentatively. If the order undoes
//!   a tentative batch, the state goes back to the last checkpoint and the final batches since are executed again.
//! * Backup 5. After every K-th batch the replica signs the Merkle root of its state (CHECKPOINT). 2f+1 equal roots
//!   make the checkpoint stable: the order forgets what is below, and the version before it is dropped. Votes that are
//!   lost are sent again when the order sees that somebody lacks them.
//! * Backup 6. A replica that learns of a stable checkpoint which it cannot reach by executing fetches the state, page
//!   by page, from all the others, and checks every page against the certified root.
//! * Backup 7. A replica whose own root differs from the one that f+1 others signed, each for the same position, says
//!   so. It takes the right state as soon as 2f+1 have signed that, or a ruling says which one it is: then it need not
//!   wait for 2f+1 signatures, which there may never be while f others are down. It executes again what follows.
//! * Backup 8. What replicas have executed otherwise, each in its own way, they find, refuse and undo:
//!   [`crate::dissent`].
//!
//! How a Backup with a finite k begins and ends: Backup 9 to 12, in `limited.rs`.
//!
//! # Why it is safe
//! Clients accept a result on 2f+1 equal replies, so at least f+1 correct replicas executed it at that position:
//! every later read quorum contains one of them. State ahead of one's own is accepted only under a certificate of 2f+1
//! signatures, at least f+1 of them from correct replicas. The client table is part of the state, so no request
//! takes effect twice, across view changes, restarts and transfers.
//!
//! *Backup 7 with f+1 signatures.* A correct replica signs a checkpoint only for batches that were delivered as final
//! and that it executed; these are the same at all correct replicas of the instance, and so is the state after them.
//! One of f+1 signers is correct. So the state that they signed is the right one if all correct replicas executed
//! identically, and a replica that has another one there is wrong: f liars never have a wrong one taken. If correct
//! replicas executed otherwise, there may be two such states. Which of them counts is ordered, and all take the same.
//! It is no certificate for anybody else: the stable checkpoint, the window, what is shown and what is written to disk
//! stay as they were until 2f+1 signed. The log still leads from the snapshot to where the replica was, so a crash
//! undoes the repair at worst. Whoever is overruled signs nothing before it has the right state.
//!
//! *It is live.* Say that f are down and others are wrong, which is more than f, but do not lie, and that f+1 correct
//! ones are left. All of these sign each checkpoint in the window, and say so again until it is stable; 2f+1 votes make
//! the ruling, and the wrong ones can have the state of a correct one. Theirs are the signatures that were missing,
//! there and at the checkpoint that the ruling makes.
//!
//! # Deviations from the paper
//! * Backup there wraps a whole protocol with its clients as a black box. Here it wraps the order only and does what
//!   every order would need again: execution, replies, checkpoints, transfer.
//! * abs-D12 (final deliveries only, no read-only path) matters when Backup aborts after k requests. With `k = ∞` there
//!   is no abort and both optimisations are safe. An instance with finite k orders its reads, and signs only what is
//!   final; why it may answer tentatively all the same is in `limited.rs`.
//!
//! # Cost
//! Per request one MAC to answer it. Per checkpoint one signature made and n−1 checked. Everything else is the order's.

mod checkpoints;
pub(crate) mod client;
mod dissent;
mod execution;
mod instance;
mod invariants;
mod limited;
mod message;
mod order;
#[cfg(test)]
mod paper_test;
mod state;
mod testimonies;

pub use execution::READ_BYTES_AT_ONCE;
pub use message::{BackupMessage, BackupTimer, Speaker, TransferTimer};
pub use state::Backup;
