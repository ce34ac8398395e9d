//! Which operator or function is meant, by PostgreSQL's own rules (its manual, chapter "Type Conversion").

use super::casts::is_implicit;
use super::kinds::{Category, Type};

/// An operator or a function.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Signature {
    pub(crate) name: &'static str,
    pub(crate) inputs: &'static [Type],
    pub(crate) result: Type,
    /// How SQLite says it: `{0}`, `{1}` and so on are the operands.
    pub(crate) how: &'static str,
}

/// What was found.
#[derive(Debug)]
pub(crate) enum Found<'a> {
    One(&'a Signature),
    None,
    Many,
}

/// Chooses among candidates with as many inputs as there are actual ones.
pub(crate) fn resolve<'a>(candidates: Vec<&'a Signature>, actual: &[Type]) -> Found<'a> {
    let fits = |signature: &&Signature| signature.inputs.len() == actual.len();
    let mut left: Vec<&Signature> = candidates.into_iter().filter(fits).collect();
    if let Some(exact) = left.iter().find(|signature| signature.inputs == actual) {
        return Found::One(exact);
    }
    // One of two operands is not known: first as if it were of the other's type.
    if let [one, other] = *actual
        && (one == Type::Unknown) != (other == Type::Unknown)
    {
        let both = if one == Type::Unknown { [other; 2] } else { [one; 2] };
        if let Some(exact) = left.iter().find(|signature| signature.inputs == both) {
            return Found::One(exact);
        }
    }
    left.retain(|signature| actual.iter().zip(signature.inputs).all(|(from, to)| is_implicit(*from, *to)));
    keep_best(&mut left, |signature| count(signature, actual, |from, to| from == to));
    keep_best(&mut left, |signature| {
        count(signature, actual, |from, to| from == to || from != Type::Unknown && prefers(from, to))
    });
    if left.len() > 1 && actual.contains(&Type::Unknown) {
        by_category(&mut left, actual);
    }
    if left.len() > 1 {
        by_the_known(&mut left, actual);
    }
    match left[..] {
        [] => Found::None,
        [one] => Found::One(one),
        _ => Found::Many,
    }
}

fn prefers(from: Type, to: Type) -> bool {
    to.is_preferred() && to.category() == from.category()
}

fn count(signature: &Signature, actual: &[Type], matches: impl Fn(Type, Type) -> bool) -> usize {
    actual.iter().zip(signature.inputs).filter(|(from, to)| matches(**from, **to)).count()
}

fn keep_best(left: &mut Vec<&Signature>, score: impl Fn(&Signature) -> usize) {
    let best = left.iter().map(|signature| score(signature)).max().unwrap_or(0);
    left.retain(|signature| score(signature) == best);
}

/// What is not known is a string if that is possible, and otherwise of the only category that is.
fn by_category(left: &mut Vec<&Signature>, actual: &[Type]) {
    let unknown = || (0..actual.len()).filter(|at| actual[*at] == Type::Unknown);
    let mut chosen = Vec::new();
    for at in unknown() {
        let mut all = left.iter().map(|signature| signature.inputs[at].category());
        let first = all.next();
        let category = if left.iter().any(|signature| signature.inputs[at].is_string()) {
            Some(Category::String)
        } else {
            first.filter(|first| left.iter().all(|signature| signature.inputs[at].category() == *first))
        };
        let Some(category) = category else { return };
        let preferred = left
            .iter()
            .any(|signature| signature.inputs[at].category() == category && signature.inputs[at].is_preferred());
        chosen.push((at, category, preferred));
    }
    let kept: Vec<&Signature> = left
        .iter()
        .filter(|signature| {
            chosen.iter().all(|(at, category, preferred)| {
                let input = signature.inputs[*at];
                input.category() == *category && (!preferred || input.is_preferred())
            })
        })
        .copied()
        .collect();
    if !kept.is_empty() {
        *left = kept;
    }
}

/// If all known ones are of one type, the others are, too.
fn by_the_known(left: &mut Vec<&Signature>, actual: &[Type]) {
    let mut known = actual.iter().filter(|kind| **kind != Type::Unknown);
    let Some(first) = known.next() else { return };
    if known.any(|kind| kind != first) {
        return;
    }
    let takes = |signature: &&&Signature| signature.inputs.iter().all(|input| is_implicit(*first, *input));
    let kept: Vec<&Signature> = left.iter().filter(takes).copied().collect();
    if kept.len() == 1 {
        *left = kept;
    }
}

/// The one type of several values, as of the branches of a CASE or of a UNION; `None`: they have none.
pub(crate) fn common(kinds: &[Type]) -> Option<Type> {
    let mut known = kinds.iter().copied().filter(|kind| *kind != Type::Unknown);
    let Some(mut common) = known.next() else { return Some(Type::Text) };
    for next in known {
        if next == common {
            continue;
        }
        if common == Type::Any || next == Type::Any {
            common = Type::Any;
        } else if next.category() != common.category() {
            return None;
        } else if !common.is_preferred() && is_implicit(common, next) && !is_implicit(next, common) {
            common = next;
        }
    }
    Some(common)
}

#[cfg(test)]
mod tests {
    use super::*;
    use Type::*;

    #[test]
    fn one_type_is_found_for_all() {
        assert_eq!(common(&[Unknown, Unknown]), Some(Text));
        assert_eq!(common(&[Int4, Unknown, Numeric, Int2]), Some(Numeric));
        assert_eq!(common(&[Int4, Float8]), Some(Float8));
        assert_eq!(common(&[Date, Timestamptz]), Some(Timestamptz));
        assert_eq!(common(&[Int4, Text]), None);
        assert_eq!(common(&[Int4, Any]), Some(Any));
    }
}
