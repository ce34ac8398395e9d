//! Real data: a word list from a Debian package, with accents, apostrophes and all.

use crate::failure::{Result, ensure};
use crate::tools::WORDS;
use std::collections::BTreeSet;

/// A key and the value it must have.
pub(super) type Pair = (String, String);

/// `count` words from all over the list, each with a value that no other has.
pub(super) fn pairs(count: usize) -> Result<Vec<Pair>> {
    let list = std::fs::read_to_string(WORDS)?;
    let words: BTreeSet<&str> = list.lines().filter(|word| !word.is_empty()).collect();
    ensure(words.len() >= count, || format!("{WORDS} has only {} words", words.len()))?;
    let step = words.len() / count;
    let chosen = words.into_iter().step_by(step).take(count).enumerate();
    Ok(chosen.map(|(number, word)| (word.to_string(), format!("{number} {word}"))).collect())
}
