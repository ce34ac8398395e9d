//! Lies about a common coin: other bits, and shares that are none (ritas-A5, ritas-A6).

use crate::rng::Rng;
use bezant_core::auth::CoinShare;
use bezant_core::protocols::ritas::message::Statement;

/// Something else that could be said where this is said in a round with a common coin.
pub(super) fn other(rng: &mut Rng, statement: &Statement) -> Statement {
    match statement {
        Statement::Est(_) => Statement::Est(rng.coin()),
        Statement::Aux(_) => Statement::Aux(rng.coin()),
        Statement::Conf(_) => Statement::Conf(*rng.pick(&[Some(false), Some(true), None])),
        Statement::Share(share) => {
            let mut bytes = share.0;
            bytes[rng.below(CoinShare::BYTES as u64) as usize] ^= 1 << rng.below(8);
            Statement::Share(CoinShare(bytes))
        }
        other => other.clone(),
    }
}

/// Any of them.
pub(super) fn any(rng: &mut Rng) -> Statement {
    let share = CoinShare([rng.next() as u8; CoinShare::BYTES]);
    let kinds = [Statement::Est(true), Statement::Aux(true), Statement::Conf(None), Statement::Share(share)];
    let kind = rng.pick(&kinds).clone();
    other(rng, &kind)
}
