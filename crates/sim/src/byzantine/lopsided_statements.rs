//! Statements of RITAS that reach some and not others (ritas-A2, ritas-A3). A VECT for half of the replicas, an ECHO or
//! a READY for one, a DECIDE for those who have decided; and votes that push the others apart.

use super::{Behaviour, Liar};
use crate::rng::Rng;
use bezant_core::ids::Principal;
use bezant_core::protocols::ritas::message::{Said, Statement};
use bezant_core::protocols::ritas::order::{Agreement, RitasMessage};
use bezant_core::protocols::ritas::path::{Layer, Path};
use bezant_core::protocols::ritas::statements::Statements;
use bezant_core::registry::Message;
use std::collections::BTreeMap;

#[derive(Debug)]
pub(super) struct LopsidedStatements {
    /// Statements that only some hear, per mille.
    often: u64,
    /// The layers of whose broadcasts it is lopsided; of all, if there is none.
    layer: Option<Layer>,
    /// Who hears the statements of one kind about an instance: a bit per replica.
    audience: BTreeMap<(Path, u8), u64>,
    /// Which bit all its votes are for, if it has a preference.
    pushes: Option<u8>,
}

/// Instances of which it remembers whom it tells.
const REMEMBERED_MAX: usize = 8_000;

impl LopsidedStatements {
    pub(super) fn new(rng: &mut Rng) -> Self {
        let layers = [Layer::Message, Layer::Proposal, Layer::Init, Layer::Vect, Layer::Step];
        let layer = rng.coin().then(|| *rng.pick(&layers));
        let pushes = rng.per_mille(400).then(|| rng.below(2) as u8);
        Self { often: rng.between(100, 1000), layer, audience: BTreeMap::new(), pushes }
    }

    fn hears(&mut self, rng: &mut Rng, n: u64, id: u8, said: &Said) -> bool {
        let of_layer = said.path.parent().map(|parent| parent.last().layer());
        if self.layer.is_some() && self.layer != of_layer {
            return true;
        }
        let kind = match said.statement {
            Statement::Initial(_) => 0,
            Statement::Echo(_) => 1,
            Statement::Ready(_) => 2,
            Statement::Decide(_) => 3,
            Statement::Est(bit) => 4 + u8::from(bit),
            Statement::Aux(_) => 6,
            Statement::Conf(_) => 7,
            Statement::Share(_) => 8,
            Statement::Want(_) | Statement::Body(_) => return true,
        };
        if self.audience.len() > REMEMBERED_MAX {
            self.audience.clear();
        }
        let often = self.often;
        let audience = self.audience.entry((said.path, kind)).or_insert_with(|| match rng.below(3) {
            _ if !rng.per_mille(often) => u64::MAX,
            0 => 1 << rng.below(n),
            1 => rng.next(),
            _ => 0,
        });
        *audience >> id & 1 == 1
    }
}

impl Behaviour for LopsidedStatements {
    fn send(&mut self, liar: &mut Liar<'_>, to: Principal, message: &Message) {
        let (Principal::Replica(id), Message::Agreement(Agreement { instance, message: said })) = (to, message) else {
            return liar.say(to, message);
        };
        let RitasMessage::Said(Statements(said)) = said else { return liar.say(to, message) };
        let n = liar.cluster.replicas.n() as u64;
        let mut told: Vec<Said> = said.iter().filter(|said| self.hears(liar.rng, n, id.0, said)).cloned().collect();
        if let Some(bit) = self.pushes {
            for Said { path, statement } in &mut told {
                if let (Some(_), Statement::Initial(value)) = (path.number(Layer::Step), statement) {
                    value.0 = vec![bit].into();
                }
            }
        }
        if !told.is_empty() {
            liar.agree(to, *instance, RitasMessage::Said(Statements(told)));
        }
    }
}
