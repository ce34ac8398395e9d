//! Lines of a shell, split into words.

/// Splits a line at white space; a `#` at the start of a word begins a comment. Single or double quotes keep white
/// space; within double quotes, and outside of  quotes, a backslash keeps the character after it.
pub(crate) fn split(line: &str) -> Result<Vec<String>, &'static str> {
    let mut words = Vec::new();
    let mut word: Option<String> = None;
    let mut quote = None;
    let mut characters = line.chars();
    while let Some(character) = characters.next() {
        match (quote, character) {
            (None, '"' | '\'') => {
                quote = Some(character);
                word.get_or_insert_default();
            }
            (Some(open), _) if open == character => quote = None,
            (None | Some('"'), '\\') => {
                let escaped = characters.next().ok_or("a backslash at the end of the line")?;
                word.get_or_insert_default().push(escaped);
            }
            (None, '#') if word.is_none() => break,
            (None, _) if character.is_whitespace() => words.extend(word.take()),
            _ => word.get_or_insert_default().push(character),
        }
    }
    if quote.is_some() {
        return Err("a quote is not closed");
    }
    words.extend(word);
    Ok(words)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn quotes_and_backslashes_keep_spaces() {
        assert_eq!(split("  set a  b ").unwrap(), ["set", "a", "b"]);
        assert_eq!(split(r#"set "a b" 'c "d' e\ f """#).unwrap(), ["set", "a b", "c \"d", "e f", ""]);
        assert_eq!(split("").unwrap(), [""; 0]);
        assert_eq!(split("kill 2 # gone").unwrap(), ["kill", "2"]);
        assert_eq!(split("set a#b '#c'").unwrap(), ["set", "a#b", "#c"]);
        assert!(split("a 'b").is_err());
        assert!(split("a \\").is_err());
    }
}
