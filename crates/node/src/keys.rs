//! Secret key files: one line of 64 hexadecimal digits, readable by their owner only.

use bezant_core::auth::SecretKey;
use std::fmt;
use std::fs::{self, File, OpenOptions};
use std::io::{self, Read, Write};
use std::os::unix::fs::{MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use zeroize::Zeroizing;

/// Bytes of a key.
const KEY_BYTES: usize = 32;

/// Why a key file is not used, or not made. Each message says what to type.
#[derive(Debug)]
pub enum KeyError {
    /// There is no such file.
    Missing(PathBuf),
    /// There is a file already: a key is never overwritten.
    Exists(PathBuf),
    /// Others than the owner may read or change it.
    Exposed(PathBuf, u32),
    /// It is not 64 hexadecimal digits.
    Malformed(PathBuf),
    /// All its bytes are equal: a placeholder, not a key.
    Default(PathBuf),
    /// The file system, or the source of random bytes, says no.
    Io(PathBuf, io::Error),
}

impl fmt::Display for KeyError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Missing(path) => {
                let path = path.display();
                write!(f, "there is no key at {path}: make one with `bezant client-key new {path}`")
            }
            Self::Exists(path) => {
                write!(f, "{} exists: a key is never overwritten; choose another name", path.display())
            }
            Self::Exposed(path, mode) => {
                let path = path.display();
                write!(f, "{path} has mode {mode:o}, others can read or change it: type `chmod 600 {path}`, ")?;
                write!(f, "and make a new one if somebody may have read it")
            }
            Self::Malformed(path) => {
                let path = path.display();
                write!(f, "{path} is not a key (one line of 64 hexadecimal digits): ")?;
                write!(f, "restore it, or make another with `bezant client-key new FILE`")
            }
            Self::Default(path) => {
                let path = path.display();
                write!(f, "{path} holds a placeholder that everybody knows: ")?;
                write!(f, "delete it and make a key with `bezant client-key new {path}`")
            }
            Self::Io(path, error) => write!(f, "{}: {error}", path.display()),
        }
    }
}

impl std::error::Error for KeyError {}

/// A new random key.
///
/// # Errors
/// That of the operating system's source of random bytes.
pub fn generate() -> io::Result<SecretKey> {
    let mut bytes = Zeroizing::new([0; KEY_BYTES]);
    getrandom::fill(&mut *bytes).map_err(|error| io::Error::other(error.to_string()))?;
    Ok(SecretKey(*bytes))
}

/// Writes a key to a new file, for its owner only, and makes it durable.
///
/// # Errors
/// [`KeyError::Exists`]; [`KeyError::Io`].
pub fn save(path: &Path, key: &SecretKey) -> Result<(), KeyError> {
    let text = Zeroizing::new(format!("{}\n", to_hex(&key.0)));
    let folder = path.parent().filter(|folder| !folder.as_os_str().is_empty()).unwrap_or(Path::new("."));
    let write = || {
        let mut file = OpenOptions::new().write(true).create_new(true).mode(0o600).open(path)?;
        let written = file.write_all(text.as_bytes()).and_then(|()| file.sync_all());
        // A part of a key is of no use, and would be in the way of the next attempt.
        written.and_then(|()| File::open(folder)?.sync_all()).inspect_err(|_| drop(fs::remove_file(path)))
    };
    write().map_err(|error| match error.kind() {
        io::ErrorKind::AlreadyExists => KeyError::Exists(path.to_owned()),
        _ => KeyError::Io(path.to_owned(), error),
    })
}

/// Reads a key.
///
/// # Errors
/// [`KeyError`], unless the file is one that [`save`] could have written.
pub fn load(path: &Path) -> Result<SecretKey, KeyError> {
    let text = read_private(path, 2 * KEY_BYTES + 1)?;
    let key = std::str::from_utf8(&text)
        .ok()
        .and_then(|text| from_hex::<KEY_BYTES>(text.strip_suffix('\n').unwrap_or(text)))
        .map(SecretKey)
        .ok_or_else(|| KeyError::Malformed(path.to_owned()))?;
    if key.0.iter().all(|byte| *byte == key.0[0]) {
        return Err(KeyError::Default(path.to_owned()));
    }
    Ok(key)
}

/// What is in a file that nobody but its owner can read or change: one byte more than `max` if it is longer.
///
/// # Errors
/// [`KeyError`].
pub fn read_private(path: &Path, max: usize) -> Result<Zeroizing<Vec<u8>>, KeyError> {
    let io = |error: io::Error| match error.kind() {
        io::ErrorKind::NotFound => KeyError::Missing(path.to_owned()),
        _ => KeyError::Io(path.to_owned(), error),
    };
    // Looked at first: opening a pipe would wait for its writer.
    if !fs::metadata(path).map_err(io)?.is_file() {
        return Err(KeyError::Malformed(path.to_owned()));
    }
    let file = File::open(path).map_err(io)?;
    let mode = file.metadata().map_err(io)?.mode() & 0o777;
    if mode & 0o077 != 0 {
        return Err(KeyError::Exposed(path.to_owned(), mode));
    }
    let mut content = Zeroizing::new(Vec::with_capacity(max + 1));
    file.take(max as u64 + 1).read_to_end(&mut content).map_err(io)?;
    Ok(content)
}

/// Lower-case hexadecimal digits.
pub fn to_hex(bytes: &[u8]) -> String {
    const DIGITS: &[u8; 16] = b"0123456789abcdef";
    let digit = |nibble: u8| char::from(DIGITS[usize::from(nibble)]);
    bytes.iter().flat_map(|byte| [digit(byte >> 4), digit(byte & 15)]).collect()
}

/// Exactly `N` bytes in hexadecimal digits, or nothing.
pub fn from_hex<const N: usize>(text: &str) -> Option<[u8; N]> {
    if text.len() != 2 * N {
        return None;
    }
    let mut bytes = [0; N];
    for (byte, pair) in bytes.iter_mut().zip(text.as_bytes().chunks_exact(2)) {
        let digit = |at: usize| char::from(pair[at]).to_digit(16);
        *byte = (digit(0)? * 16 + digit(1)?) as u8;
    }
    Some(bytes)
}

/// Bytes in hexadecimal digits, however many, or nothing.
pub fn from_hex_any(text: &str) -> Option<Vec<u8>> {
    let pairs = text.as_bytes().chunks_exact(2);
    if !pairs.remainder().is_empty() {
        return None;
    }
    pairs.map(|pair| std::str::from_utf8(pair).ok().and_then(from_hex::<1>).map(|[byte]| byte)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::PermissionsExt;

    /// A path of its own, deleted at the end.
    struct Temporary(PathBuf);

    impl Temporary {
        fn new(name: &str) -> Self {
            Self(std::env::temp_dir().join(format!("bezant-key-test-{}-{name}", std::process::id())))
        }

        fn holding(name: &str, content: &str) -> Self {
            let file = Self::new(name);
            fs::write(&file.0, content).unwrap();
            fs::set_permissions(&file.0, fs::Permissions::from_mode(0o600)).unwrap();
            file
        }
    }

    impl Drop for Temporary {
        fn drop(&mut self) {
            let _ = fs::remove_file(&self.0);
        }
    }

    #[test]
    fn a_key_is_written_once_and_read_back() {
        let file = Temporary::new("round-trip");
        let key = generate().unwrap();
        save(&file.0, &key).unwrap();
        assert_eq!(load(&file.0).unwrap().0, key.0);
        assert!(matches!(save(&file.0, &key), Err(KeyError::Exists(_))));
        assert_eq!(fs::metadata(&file.0).unwrap().permissions().mode() & 0o777, 0o600);
    }

    #[test]
    fn what_is_not_a_private_random_key_is_refused_with_what_to_type() {
        let missing = Temporary::new("missing");
        assert!(load(&missing.0).unwrap_err().to_string().contains("bezant client-key new"));

        for (mode, refused) in [(0o640, true), (0o604, true), (0o620, true), (0o400, false)] {
            let exposed = Temporary::holding("exposed", &"1f".repeat(31));
            fs::set_permissions(&exposed.0, fs::Permissions::from_mode(mode)).unwrap();
            let error = load(&exposed.0).unwrap_err();
            assert_eq!(error.to_string().contains("chmod 600"), refused, "{mode:o}: {error}");
        }
        let long = "12".repeat(33);
        for text in ["", "12", "zz", long.as_str(), &"é".repeat(32), &format!("{}\n\n", "12".repeat(32))] {
            let malformed = Temporary::holding("malformed", text);
            assert!(matches!(load(&malformed.0), Err(KeyError::Malformed(_))), "{text:?}");
        }
        for byte in ["00", "ff", "42"] {
            let default = Temporary::holding("default", &byte.repeat(32));
            assert!(matches!(load(&default.0), Err(KeyError::Default(_))), "{byte}");
        }
        assert!(matches!(load(&std::env::temp_dir()), Err(KeyError::Malformed(_))));
    }

    #[test]
    fn hexadecimal_digits_there_and_back() {
        assert_eq!(to_hex(&[0, 0x1f, 0xff]), "001fff");
        assert_eq!(from_hex("001FfF"), Some([0, 0x1f, 0xff]));
        assert_eq!(from_hex::<2>("+1+2"), None);
        assert_eq!(from_hex_any("001fff"), Some(vec![0, 0x1f, 0xff]));
        assert_eq!([from_hex_any("0"), from_hex_any("0g"), from_hex_any("ää")], [None, None, None]);
    }
}
