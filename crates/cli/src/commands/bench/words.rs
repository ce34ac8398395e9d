//! The command line's words for values, and the values for words.

use clap::ValueEnum;

/// The word of the command line for a protocol, durability, channel or kind of authentication.
pub(super) fn name(value: impl ValueEnum) -> String {
    value.to_possible_value().expect("no value is hidden").get_name().to_owned()
}

/// The value that a word of the command line stands for.
pub(super) fn value<T: ValueEnum>(word: &str) -> T {
    T::from_str(word, false).expect("the suite and the figures use the command line's words")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::commands::testnet::{AuthName, ChannelName, DurabilityName};
    use bezant_perf::suite;

    #[test]
    fn every_word_of_the_suite_is_one_of_the_command_lines() {
        for point in suite::points() {
            let _: (DurabilityName, ChannelName, AuthName) =
                (value(point.durability), value(point.channel), value(point.auth));
        }
    }
}
