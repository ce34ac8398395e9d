//! Which file plays which adversary.

use super::{
    Adversary, Behaviour, ClientBehaviour, abort_equivocation, bogus_proof, censor, chain_substitute, client_flood,
    complainer, cross_instance, different_proofs, equivocate, exclude, false_tail, false_testimony, far_statements,
    feedback_lies, fickle_primary, join_flood, lopsided_client, lopsided_statements, low_load_forgery, lying_snapshot,
    malformed, many_sessions, member_replay, mutate, nobodys_requests, odd_client, odd_paths, panic_storm,
    partial_macs, presence_lies, processing_delay, references, replay, replica_flood, ring_forger,
    selective_checkpoint, session_flood, silent, skewed_time, slow, slow_by_epsilon, slow_hop, split_order,
    spoilt_macs, takeover, two_faced, unasked_bodies, view_change_liar, withhold_body, wrong_checkpoint, wrong_reply,
};
use crate::rng::Rng;
use bezant_core::ids::ReplicaId;
use std::collections::BTreeSet;

/// The mind of a lying replica; `None` where the honest machine does it (twins).
pub(super) fn behaviour(adversary: Adversary, rng: &mut Rng) -> Option<Box<dyn Behaviour>> {
    Some(match adversary {
        Adversary::Equivocate => Box::new(equivocate::Equivocate::new(rng)),
        Adversary::Silent => Box::new(silent::Silent::new(rng)),
        Adversary::Slow => Box::new(slow::Slow::new(rng)),
        Adversary::WrongReply => Box::new(wrong_reply::WrongReply::new(rng)),
        Adversary::WrongCheckpoint => Box::new(wrong_checkpoint::WrongCheckpoint),
        Adversary::LyingSnapshot => Box::new(lying_snapshot::LyingSnapshot),
        Adversary::WithholdBody => Box::new(withhold_body::WithholdBody),
        Adversary::ViewChangeLiar => Box::new(view_change_liar::ViewChangeLiar::new(rng)),
        Adversary::Replay => Box::new(replay::Replay::default()),
        Adversary::ReplicaFlood => Box::new(replica_flood::ReplicaFlood::default()),
        Adversary::Exclude => Box::new(exclude::Exclude::default()),
        Adversary::SkewedTime => Box::new(skewed_time::SkewedTime::new(rng)),
        Adversary::Mutate => Box::new(mutate::Mutate::new(rng)),
        Adversary::Reword => Box::new(mutate::Mutate::rewording(rng)),
        Adversary::ExtremeNumbers => Box::new(mutate::Mutate::with_numbers_at_the_ends(rng)),
        Adversary::UnaskedBodies => Box::new(unasked_bodies::UnaskedBodies::new(rng)),
        Adversary::DifferentProofs => Box::new(different_proofs::DifferentProofs::new(rng)),
        Adversary::AbortEquivocation => Box::new(abort_equivocation::AbortEquivocation::new(rng)),
        Adversary::ChainSubstitute => Box::new(chain_substitute::ChainSubstitute::new(rng)),
        Adversary::SelectiveCheckpoint => Box::new(selective_checkpoint::SelectiveCheckpoint::new(rng)),
        Adversary::SplitOrder => Box::new(split_order::SplitOrder::new(rng)),
        Adversary::SpoiltMacs => Box::new(spoilt_macs::SpoiltMacs::new(rng)),
        Adversary::FalseTail => Box::new(false_tail::FalseTail::new(rng)),
        Adversary::CrossInstance => Box::new(cross_instance::CrossInstance::default()),
        Adversary::BogusProof => Box::new(bogus_proof::BogusProof::default()),
        Adversary::LowLoadForgery => Box::new(low_load_forgery::LowLoadForgery::new(rng)),
        Adversary::RingForger => Box::new(ring_forger::RingForger::new(rng)),
        Adversary::SlowHop => Box::new(slow_hop::SlowHop::new(rng)),
        Adversary::MemberReplay => Box::new(member_replay::MemberReplay::default()),
        Adversary::References => Box::new(references::References::new(rng)),
        Adversary::FicklePrimary => Box::new(fickle_primary::FicklePrimary::new(rng)),
        Adversary::NobodysRequests => Box::new(nobodys_requests::NobodysRequests::new(rng)),
        Adversary::Complainer => Box::new(complainer::Complainer),
        Adversary::Censor => Box::new(censor::Censor::new(rng)),
        Adversary::ProcessingDelay => Box::new(processing_delay::ProcessingDelay),
        Adversary::PresenceLies => Box::new(presence_lies::PresenceLies::new(rng)),
        Adversary::SlowByEpsilon => Box::new(slow_by_epsilon::SlowByEpsilon::default()),
        Adversary::TwoFaced => Box::new(two_faced::TwoFaced::new(rng)),
        Adversary::LopsidedStatements => Box::new(lopsided_statements::LopsidedStatements::new(rng)),
        Adversary::FarStatements => Box::new(far_statements::FarStatements::default()),
        Adversary::FalseTestimony => Box::new(false_testimony::FalseTestimony::default()),
        Adversary::Twins
        | Adversary::PartialMacs
        | Adversary::Tamper
        | Adversary::Echo
        | Adversary::Asynchrony
        | Adversary::ManySessions
        | Adversary::OddClient
        | Adversary::OddPaths
        | Adversary::PanicStorm
        | Adversary::LopsidedClient
        | Adversary::JoinFlood
        | Adversary::Takeover
        | Adversary::SessionFlood
        | Adversary::FeedbackLies
        | Adversary::ClientFlood
        | Adversary::Malformed => return None,
    })
}

/// The mind of a lying client.
pub(super) fn client_behaviour(
    adversary: Adversary,
    rng: &mut Rng,
    liars: &BTreeSet<ReplicaId>,
) -> Option<Box<dyn ClientBehaviour>> {
    match adversary {
        Adversary::PartialMacs => Some(Box::new(partial_macs::PartialMacs::new(rng))),
        Adversary::WithholdBody => Some(Box::new(withhold_body::ToLiarsOnly::new(liars))),
        Adversary::ManySessions => Some(Box::new(many_sessions::ManySessions::new(rng))),
        Adversary::OddClient => Some(Box::new(odd_client::OddClient::new(rng))),
        Adversary::OddPaths => Some(Box::new(odd_paths::OddPaths::new(rng))),
        Adversary::PanicStorm => Some(Box::new(panic_storm::PanicStorm)),
        Adversary::LopsidedClient => Some(Box::new(lopsided_client::LopsidedClient::new(rng))),
        Adversary::JoinFlood => Some(Box::new(join_flood::JoinFlood::default())),
        Adversary::Takeover => Some(Box::new(takeover::Takeover)),
        Adversary::References => Some(Box::new(references::ForReferences::new(rng, liars))),
        Adversary::SessionFlood => Some(Box::new(session_flood::SessionFlood::new(rng))),
        Adversary::FeedbackLies => Some(Box::new(feedback_lies::FeedbackLies::new(rng))),
        Adversary::ClientFlood => Some(Box::new(client_flood::ClientFlood::new(rng))),
        Adversary::Malformed => Some(Box::new(malformed::Malformed)),
        _ => None,
    }
}
