//! Where a request's MAC is not enough (pbft-F20): in the modes with signatures always, and in the other one for a
//! while after a view has failed.

use super::replica::{Ctx, Pbft};
use crate::cluster::ClientAuth;
use crate::ids::{ClientId, IdentityId};
use crate::message::{Request, Vouched};
use crate::rejection::Rejection;
use crate::time::Duration;
use alloc::vec::Vec;

/// For how many view time-outs after a view failed signatures are asked for in every mode: one more failed view in so
/// many costs little.
pub(super) const CAREFUL_TIMEOUTS: u64 = 32;

impl Pbft {
    /// Whether a request's MAC is not enough for it to be ordered. A view that failed may have done so because the MACs
    /// of a client hold for some and not for others (pbft-F20); whoever asks again signs, and for a while after that
    /// ([`crate::client`]), so signatures can be asked for until that is a while ago.
    pub(super) fn demands_signatures(&self, context: &Ctx<'_>) -> bool {
        context.cluster.client_auth != ClientAuth::Mac || context.now < self.careful_until
    }

    /// The view has failed: from now on only what is signed is ordered, or watched, for a while.
    pub(super) fn be_careful(&mut self, context: &mut Ctx<'_>) {
        let view_timeout = context.cluster.limits.view_timeout.0;
        self.careful_until = context.now + Duration(view_timeout.saturating_mul(CAREFUL_TIMEOUTS));
        let watched: Vec<ClientId> = self.pool.iter_watched().map(|request| request.client).collect();
        for client in watched.into_iter().filter(|client| client.identity != IdentityId::SYSTEM) {
            self.verify_waiting(context, client);
        }
    }

    /// The same when others have left the view. Where nobody waits they have done so for something else.
    pub(super) fn be_careful_if_somebody_waits(&mut self, context: &mut Ctx<'_>) {
        if self.pool.oldest_watched().is_some() {
            self.be_careful(context);
        }
    }

    /// Checks the signature of the client's waiting request, where there has to be one, and drops the request if it
    /// does not hold. Whether the request still waits.
    pub(super) fn verify_waiting(&mut self, context: &mut Ctx<'_>, client: ClientId) -> bool {
        let signed = self.demands_signatures(context);
        let Some(request) = self.pool.get_mut(client) else { return false };
        if !signed {
            return true;
        }
        Request::vouch_signatures(core::iter::once(&mut *request), context.cluster, context.keyring);
        let holds = request.vouched == Vouched::Signature;
        if !holds {
            self.pool.remove(client);
            context.reject(context.me, Rejection::UnauthenticRequest);
        }
        holds
    }
}
