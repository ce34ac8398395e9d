//! Replies of the Redis protocol, in its second and its third version.

use bytes::Bytes;

/// The version of the protocol that a connection speaks: 2 until it says `HELLO 3`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Version {
    /// RESP2.
    #[default]
    Two,
    /// RESP3.
    Three,
}

/// One reply.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Reply {
    /// `+OK` and the like.
    Simple(&'static str),
    /// An error: its first word is its code.
    Error(String),
    /// A number.
    Integer(i64),
    /// Bytes.
    Bulk(Bytes),
    /// Text for people, of several lines.
    Text(String),
    /// Nothing there.
    Null,
    /// No list: what `EXEC` answers when a watched key was written.
    NullArray,
    /// A list.
    Array(Vec<Self>),
    /// Pairs; in RESP2 a flat list.
    Map(Vec<(Self, Self)>),
}

impl Reply {
    /// `+OK`.
    pub const OK: Self = Self::Simple("OK");

    /// An error with the general code.
    pub fn error(text: impl AsRef<str>) -> Self {
        Self::Error(format!("ERR {}", text.as_ref()))
    }

    /// A bulk string of text.
    pub fn text(text: impl Into<String>) -> Self {
        Self::Bulk(Bytes::from(text.into()))
    }

    /// Appends the bytes of this reply.
    pub fn write(&self, version: Version, out: &mut Vec<u8>) {
        match self {
            Self::Simple(text) => write_line(b'+', text, out),
            // An error is one line: whatever a client put into it must not start another.
            Self::Error(text) => write_line(b'-', &text.replace(['\r', '\n'], " "), out),
            Self::Integer(number) => write_line(b':', &number.to_string(), out),
            Self::Bulk(bytes) => write_bulk(b'$', &[bytes], out),
            Self::Text(text) if version == Version::Three => write_bulk(b'=', &[b"txt:", text.as_bytes()], out),
            Self::Text(text) => write_bulk(b'$', &[text.as_bytes()], out),
            Self::Null | Self::NullArray if version == Version::Three => out.extend_from_slice(b"_\r\n"),
            Self::Null => out.extend_from_slice(b"$-1\r\n"),
            Self::NullArray => out.extend_from_slice(b"*-1\r\n"),
            Self::Array(items) => {
                write_line(b'*', &items.len().to_string(), out);
                items.iter().for_each(|item| item.write(version, out));
            }
            Self::Map(pairs) => {
                match version {
                    Version::Two => write_line(b'*', &(2 * pairs.len()).to_string(), out),
                    Version::Three => write_line(b'%', &pairs.len().to_string(), out),
                }
                for (key, value) in pairs {
                    key.write(version, out);
                    value.write(version, out);
                }
            }
        }
    }
}

fn write_line(kind: u8, text: &str, out: &mut Vec<u8>) {
    out.push(kind);
    out.extend_from_slice(text.as_bytes());
    out.extend_from_slice(b"\r\n");
}

fn write_bulk(kind: u8, parts: &[&[u8]], out: &mut Vec<u8>) {
    let length: usize = parts.iter().map(|part| part.len()).sum();
    write_line(kind, &length.to_string(), out);
    parts.iter().for_each(|part| out.extend_from_slice(part));
    out.extend_from_slice(b"\r\n");
}

#[cfg(test)]
mod tests {
    use super::*;

    fn bytes(reply: &Reply, version: Version) -> String {
        let mut out = Vec::new();
        reply.write(version, &mut out);
        String::from_utf8(out).unwrap()
    }

    #[test]
    fn both_versions_byte_by_byte() {
        let cases = [
            (Reply::OK, "+OK\r\n", "+OK\r\n"),
            (Reply::error("a\r\nb"), "-ERR a  b\r\n", "-ERR a  b\r\n"),
            (Reply::Integer(-7), ":-7\r\n", ":-7\r\n"),
            (Reply::text("a\nb"), "$3\r\na\nb\r\n", "$3\r\na\nb\r\n"),
            (Reply::Text("hi".into()), "$2\r\nhi\r\n", "=6\r\ntxt:hi\r\n"),
            (Reply::Null, "$-1\r\n", "_\r\n"),
            (Reply::NullArray, "*-1\r\n", "_\r\n"),
            (Reply::Array(vec![Reply::Null, Reply::OK]), "*2\r\n$-1\r\n+OK\r\n", "*2\r\n_\r\n+OK\r\n"),
            (
                Reply::Map(vec![(Reply::text("k"), Reply::Integer(1))]),
                "*2\r\n$1\r\nk\r\n:1\r\n",
                "%1\r\n$1\r\nk\r\n:1\r\n",
            ),
        ];
        for (reply, two, three) in cases {
            assert_eq!(bytes(&reply, Version::Two), two);
            assert_eq!(bytes(&reply, Version::Three), three);
        }
    }
}
