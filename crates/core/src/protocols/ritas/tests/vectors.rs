//! ritas-F5: a liar's VECT that one process has, and others do not.

use super::*;
use crate::cluster::Vects;
use crate::protocols::ritas::message::Word;
use crate::wire::{Wire, encode_list};

const LIAR: ReplicaId = ReplicaId(3);

impl Group {
    /// Delivers what is on its way, in order, but for what is held up.
    fn deliver(&mut self, is_held: impl Fn(ReplicaId, Path) -> bool) {
        let is_free = |(_, to, packet): &(ReplicaId, ReplicaId, Packet)| match packet {
            Packet::Said(said) => !is_held(*to, said.path),
            Packet::Summary(_) => true,
        };
        while let Some(at) = self.packets.iter().position(is_free) {
            let (from, to, packet) = self.packets.remove(at);
            if to != LIAR {
                self.hear(to.0.into(), from, packet);
            }
        }
    }

    /// The liar says something to some.
    fn lie(&mut self, to: &[usize], path: Path, statements: &[Statement]) {
        for me in to {
            for statement in statements.iter().cloned() {
                self.hear(*me, LIAR, Packet::Said(Said { path, statement }));
            }
        }
    }
}

/// Process 0 sees INIT and VECT of the liar with its own value before those of others, and proposes 1. The two others
/// have only different INITs, and propose 0. The liar votes 1. What each of the correct has come to.
fn story(vects: Vects) -> Vec<Vec<Outcome>> {
    let mut group = Group::new(4, Variant { vects, ..Variant::default() }, Network::InOrder, 1);
    let root = Path::root(Layer::Multi, 0);
    let of_liar = |layer| root.child(layer, 0).by(LIAR);
    let word = Word::of(&value(0), false);

    // The liar's INIT is delivered at process 0 alone, and that is the first that it has.
    let init = of_liar(Layer::Init);
    let echo = Statement::Echo(word.clone());
    group.lie(&[0, 1], init, &[Statement::Initial(value(0)), echo.clone()]);
    group.lie(&[0], init, &[Statement::Ready(word.clone())]);
    group.deliver(|to, path| path == init && to == ReplicaId(2));
    let is_vect = |path: Path| path.parent().is_some_and(|at| at.last().layer() == Layer::Vect);
    for me in 0..3 {
        group.act(me, |stack, scope| stack.propose(scope, root, value(me as u8)));
    }
    group.deliver(|to, path| path == init && to == ReplicaId(2) || is_vect(path));
    group.deliver(|_, path| is_vect(path));

    // Its VECT has the ECHOs of the liar and of two others at process 0, and of two others elsewhere.
    let mut vect = Vec::new();
    Some(word.clone()).encode(&mut vect);
    encode_list(&[Some(word.clone()), None, None, Some(word)], &mut vect);
    let vect = Value(Bytes::from(vect));
    let echo = Statement::Echo(Word::of(&vect, false));
    group.lie(&[0, 1], of_liar(Layer::Vect), &[Statement::Initial(vect)]);
    group.lie(&[0], of_liar(Layer::Vect), &[echo]);
    // Votes wait until the liar's is there.
    let is_vote = |path: Path| path.parent().is_some_and(|at| at.last().layer() == Layer::Step);
    let is_others = |path: Path| ![0, u64::from(LIAR.0)].contains(&path.last().number());
    group.deliver(|to, path| is_vote(path) || to == ReplicaId(0) && is_vect(path) && is_others(path));
    let first = root.child(Layer::Binary, 0).child(Layer::Step, 0).by(LIAR);
    group.lie(&[0, 1, 2], first, &[Statement::Initial(Value(Bytes::from_static(&[1])))]);
    group.deliver(|_, path| is_vote(path) && path != first);

    // From here on nothing is held up, and the channel does what it can.
    group.silent = vec![LIAR];
    for _ in 0..20 {
        group.deliver(|_, _| false);
        for me in 0..3 {
            group.tick(me);
        }
    }
    (0..3).map(|me| group.results(me)).collect()
}

#[test]
fn f5_what_one_process_has_of_a_liar_all_come_to_have() {
    let results = story(Vects::Reliable);
    assert!(results.iter().all(|result| result.len() == 1 && *result == results[0]), "{results:?}");
}

/// The thesis' way: the story is one that counts.
#[test]
fn f5_by_echo_some_wait_for_ever_for_what_one_has() {
    let results = story(Vects::Echo);
    assert_eq!(results[0].len(), 1, "process 0 has decided");
    assert!(results[1].is_empty() && results[2].is_empty(), "{results:?}");
}
