//! Key patterns as in Redis: `*`, `?`, `[abc]`, `[^a-z]` and `\` before any byte.

/// Whether the whole of `text` matches `pattern`. Takes at most |pattern| · |text| steps, whatever the pattern.
pub(crate) fn matches(pattern: &[u8], text: &[u8]) -> bool {
    let (mut at, mut position) = (0, 0);
    // Where to go on if what follows the latest star does not match: the star takes one byte more.
    let mut star = None;
    while position < text.len() {
        if pattern.get(at) == Some(&b'*') {
            at += 1;
            star = Some((at, position));
        } else if let Some(length) = match_one(&pattern[at..], text[position]) {
            at += length;
            position += 1;
        } else if let Some((after_star, taken)) = star {
            at = after_star;
            position = taken + 1;
            star = Some((after_star, position));
        } else {
            return false;
        }
    }
    pattern[at..].iter().all(|&byte| byte == b'*')
}

/// The bytes that every match begins with.
pub(crate) fn literal_prefix(pattern: &[u8]) -> &[u8] {
    let end = pattern.iter().position(|byte| matches!(byte, b'*' | b'?' | b'[' | b'\\'));
    &pattern[..end.unwrap_or(pattern.len())]
}

/// How many bytes of the pattern speak about `byte`, if they accept it.
fn match_one(pattern: &[u8], byte: u8) -> Option<usize> {
    let (accepted, length) = match pattern {
        [] => return None,
        [b'?', ..] => (true, 1),
        [b'[', set @ ..] => {
            let (accepted, length) = match_set(set, byte);
            (accepted, 1 + length)
        }
        [b'\\', escaped, ..] => (*escaped == byte, 2),
        [literal, ..] => (*literal == byte, 1),
    };
    accepted.then_some(length)
}

/// What stands between `[` and `]`: whether it accepts `byte`, and its length with the `]`. A set without an end
/// reaches to the end of the pattern.
fn match_set(set: &[u8], byte: u8) -> (bool, usize) {
    let negated = set.first() == Some(&b'^');
    let mut at = usize::from(negated);
    let mut found = false;
    loop {
        let (low, high, length) = match &set[at..] {
            [] => return (found != negated, at),
            [b']', ..] => return (found != negated, at + 1),
            [b'\\', escaped, ..] => (*escaped, *escaped, 2),
            [low, b'-', high, ..] => (*low.min(high), *low.max(high), 3),
            [one, ..] => (*one, *one, 1),
        };
        found |= (low..=high).contains(&byte);
        at += length;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn patterns_of_the_redis_manual() {
        let yes = [
            ("*", ""),
            ("*", "anything"),
            ("h?llo", "hxllo"),
            ("h*llo", "heeeello"),
            ("h[ae]llo", "hallo"),
            ("h[^e]llo", "hallo"),
            ("h[a-b]llo", "hbllo"),
            ("h[b-a]llo", "hallo"),
            ("a\\*b", "a*b"),
            ("a[\\]]b", "a]b"),
            ("*a*b*", "xxaxxbxx"),
            ("[abc", "c"),
            ("\\", "\\"),
        ];
        let no = [("", "a"), ("h?llo", "hllo"), ("h[^e]llo", "hello"), ("a\\*b", "axb"), ("*a", "ab"), ("ab", "a")];
        for (pattern, text) in yes {
            assert!(matches(pattern.as_bytes(), text.as_bytes()), "{pattern} {text}");
        }
        for (pattern, text) in no {
            assert!(!matches(pattern.as_bytes(), text.as_bytes()), "{pattern} {text}");
        }
    }

    #[test]
    fn many_stars_take_no_longer() {
        let pattern = b"*a".repeat(500);
        assert!(!matches(&pattern, &[b'a'; 20_000].map(|_| b'b')));
    }

    proptest! {
        #[test]
        fn whatever_matches_begins_with_the_literal_prefix(pattern in "[ab*?\\[\\]^\\\\-]{0,8}", text in "[ab]{0,8}") {
            if matches(pattern.as_bytes(), text.as_bytes()) {
                prop_assert!(text.as_bytes().starts_with(literal_prefix(pattern.as_bytes())));
            }
        }
    }
}
