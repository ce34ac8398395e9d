//! The options of a sub-command.

use crate::failure::{Failure, Result};

/// The `--name value` pairs of a sub-command.
pub(crate) struct Options<'a>(Vec<(&'a str, &'a str)>);

impl<'a> Options<'a> {
    /// Takes pairs whose names are all in `known`.
    pub(crate) fn parse(arguments: &'a [String], known: &[&str]) -> Result<Self> {
        let mut pairs = Vec::new();
        let mut words = arguments.iter();
        while let Some(name) = words.next() {
            if !known.contains(&name.as_str()) {
                return Err(Failure::new(format!("unknown argument `{name}`")));
            }
            let value = words.next().ok_or_else(|| Failure::new(format!("`{name}` needs a value")))?;
            pairs.push((name.as_str(), value.as_str()));
        }
        Ok(Self(pairs))
    }

    /// Every value given under this name, in order.
    pub(crate) fn all(&self, name: &str) -> Vec<&'a str> {
        self.0.iter().filter(|(given, _)| *given == name).map(|(_, value)| *value).collect()
    }

    /// The last value given under this name.
    pub(crate) fn text(&self, name: &str) -> Option<&'a str> {
        self.all(name).pop()
    }

    /// The same as a whole number.
    pub(crate) fn number(&self, name: &str, default: u64) -> Result<u64> {
        let Some(text) = self.text(name) else { return Ok(default) };
        text.parse().map_err(|_| Failure::new(format!("`{name} {text}`: not a whole number")))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn words(text: &str) -> Vec<String> {
        text.split_whitespace().map(String::from).collect()
    }

    #[test]
    fn options_take_known_pairs_only() {
        let given = words("--only fmt --only tidy");
        assert_eq!(Options::parse(&given, &["--only"]).expect("known").all("--only"), ["fmt", "tidy"]);
        assert!(Options::parse(&given, &[]).is_err());
        assert!(Options::parse(&words("--only"), &["--only"]).is_err());
    }

    #[test]
    fn numbers_are_checked() {
        let given = words("--seconds 7");
        let options = Options::parse(&given, &["--seconds"]).expect("known");
        assert_eq!(options.number("--seconds", 60).expect("a number"), 7);
        assert_eq!(options.number("--minutes", 60).expect("the default"), 60);
        let given = words("--seconds soon");
        assert!(Options::parse(&given, &["--seconds"]).expect("known").number("--seconds", 60).is_err());
    }
}
