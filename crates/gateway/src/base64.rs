//! Base64 as SASL wants it (RFC 4648, section 4): padded, and only the one form that an encoder gives.

const DIGITS: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";

/// Bytes as text.
pub fn encode(bytes: &[u8]) -> String {
    let mut text = String::with_capacity(bytes.len().div_ceil(3) * 4);
    for group in bytes.chunks(3) {
        let bits = (0..3).fold(0, |bits, at| bits << 8 | u32::from(group.get(at).copied().unwrap_or(0)));
        let digits = (0..4).map(|at| char::from(DIGITS[(bits >> (18 - 6 * at)) as usize & 63]));
        text.extend(digits.take(group.len() + 1));
        text.extend(std::iter::repeat_n('=', 3 - group.len()));
    }
    text
}

/// Text as bytes; `None`: no encoder gave it.
pub fn decode(text: &str) -> Option<Vec<u8>> {
    let mut bytes = Vec::with_capacity(text.len() / 4 * 3);
    for group in text.trim_end_matches('=').as_bytes().chunks(4) {
        let digits: Option<Vec<_>> = group.iter().map(|byte| DIGITS.iter().position(|digit| digit == byte)).collect();
        let bits = digits?.into_iter().chain(std::iter::repeat(0)).take(4).fold(0, |bits, digit| bits << 6 | digit);
        bytes.extend(&(bits as u32).to_be_bytes()[1..][..group.len() * 3 / 4]);
    }
    // Neither other padding nor bits that stand for nothing.
    (encode(&bytes) == text).then_some(bytes)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_encoded_is_decoded() {
        for (text, encoded) in [
            ("", ""),
            ("f", "Zg=="),
            ("fo", "Zm8="),
            ("foo", "Zm9v"),
            ("foob", "Zm9vYg=="),
            ("fooba", "Zm9vYmE="),
            ("foobar", "Zm9vYmFy"),
        ] {
            assert_eq!((encode(text.as_bytes()).as_str(), decode(encoded)), (encoded, Some(text.into())));
        }
        let all: Vec<u8> = (0..=255).collect();
        assert_eq!(decode(&encode(&all)), Some(all));
    }

    #[test]
    fn nothing_else_is() {
        for text in ["Z", "Zg", "Zg=", "Zh==", "Zg===", "Zm9=", "Z g=", "Zg==Zg==", "====", "Zm9v\n", "Zm-v", "Zé"] {
            assert_eq!(decode(text), None, "{text:?}");
        }
    }
}
