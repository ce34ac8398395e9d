//! The file of a Unix socket: made where there is none or a dead one, and taken away at the end.
//!
//! A gateway that was killed leaves its file behind, on which nobody listens. The next one replaces it, and nothing
//! else: neither a socket on which somebody listens nor a file of another kind. Two gateways that start at the same
//! moment could each take the other's new file for a dead one, so each holds a lock of the folder while it looks.

use crate::endpoint::Access;
use rustix::io::Errno;
use rustix::net::{self, AddressFamily, SocketAddrUnix, SocketFlags, SocketType};
use std::fs::{self, File, Metadata, Permissions, TryLockError};
use std::io::{self, ErrorKind};
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::{FileTypeExt, MetadataExt, PermissionsExt};
use std::os::unix::net::UnixListener;
use std::path::{Path, PathBuf};
use std::thread;
use std::time::{Duration, Instant};

/// The longest path of a socket, in bytes: what Linux has room for, and a zero behind it.
pub const PATH_BYTES_MAX: usize = 107;
/// How long to wait for others that look at the same folder. None of them takes a moment: whoever holds the lock for
/// longer is no gateway, and keeps nobody out.
const LOCK_MAX: Duration = Duration::from_secs(2);
/// Connections that may wait to be taken, as the standard library has it for TCP.
const BACKLOG: i32 = 128;

/// A socket's file, taken away when dropped if it still is the same.
#[derive(Debug)]
pub(crate) struct SocketFile {
    path: PathBuf,
    /// The device and the number of the file.
    identity: (u64, u64),
}

impl Drop for SocketFile {
    fn drop(&mut self) {
        if fs::symlink_metadata(&self.path).is_ok_and(|found| identity(&found) == self.identity) {
            let _ = fs::remove_file(&self.path);
        }
    }
}

fn identity(found: &Metadata) -> (u64, u64) {
    (found.dev(), found.ino())
}

/// Listens on a socket at this path.
///
/// # Errors
/// The path is too long; there is something that is no socket, or a socket on which somebody listens; or what the
/// system says.
pub(crate) fn listen(path: &Path, access: Access) -> io::Result<(UnixListener, SocketFile)> {
    let bytes = path.as_os_str().as_bytes().len();
    if bytes > PATH_BYTES_MAX {
        let why = format!("the path has {bytes} bytes, and that of a Unix socket at most {PATH_BYTES_MAX}");
        return Err(io::Error::new(ErrorKind::InvalidInput, why));
    }
    let _lock = lock(path)?;
    make_room(path)?;
    let socket = net::socket_with(AddressFamily::UNIX, SocketType::STREAM, SocketFlags::CLOEXEC, None)?;
    // The file gets the socket's own mode, as far as the umask allows.
    rustix::fs::fchmod(&socket, rustix::fs::Mode::from_raw_mode(access.mode()))?;
    net::bind(&socket, &SocketAddrUnix::new(path)?)?;
    let found = fs::symlink_metadata(path)?;
    let file = SocketFile { path: path.into(), identity: identity(&found) };
    // Nobody can connect before it listens, whatever the mode is until here.
    if found.mode() & 0o777 != access.mode() {
        fs::set_permissions(path, Permissions::from_mode(access.mode()))?;
    }
    net::listen(&socket, BACKLOG)?;
    Ok((socket.into(), file))
}

/// Keeps other gateways from looking at the path's folder at the same time.
fn lock(path: &Path) -> io::Result<File> {
    let folder = path.parent().filter(|folder| !folder.as_os_str().is_empty()).unwrap_or(Path::new("."));
    let named = |error: io::Error| io::Error::new(error.kind(), format!("{}: {error}", folder.display()));
    let opened = File::open(folder).map_err(named)?;
    let deadline = Instant::now() + LOCK_MAX;
    loop {
        match opened.try_lock() {
            Ok(()) => return Ok(opened),
            Err(TryLockError::WouldBlock) if Instant::now() < deadline => thread::sleep(Duration::from_millis(10)),
            Err(TryLockError::WouldBlock) => return Ok(opened),
            Err(TryLockError::Error(error)) => return Err(named(error)),
        }
    }
}

/// Removes a socket on which nobody listens any more.
fn make_room(path: &Path) -> io::Result<()> {
    let found = match fs::symlink_metadata(path) {
        Err(error) if error.kind() == ErrorKind::NotFound => return Ok(()),
        found => found?,
    };
    if !found.file_type().is_socket() {
        return Err(io::Error::new(ErrorKind::AlreadyExists, "there is something else, which is no socket"));
    }
    // A connection may have to wait for its turn; to know that there is a queue is enough.
    let flags = SocketFlags::CLOEXEC | SocketFlags::NONBLOCK;
    let socket = net::socket_with(AddressFamily::UNIX, SocketType::STREAM, flags, None)?;
    match net::connect(&socket, &SocketAddrUnix::new(path)?) {
        Err(Errno::CONNREFUSED) => fs::remove_file(path),
        Ok(()) | Err(Errno::AGAIN | Errno::INPROGRESS | Errno::PROTOTYPE) => {
            Err(io::Error::new(ErrorKind::AddrInUse, "somebody listens there already"))
        }
        Err(error) => {
            let error = io::Error::from(error);
            Err(io::Error::new(error.kind(), format!("somebody may listen there: {error}")))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::net::{UnixDatagram, UnixStream};

    /// A folder that goes away.
    struct Folder(PathBuf);

    impl Folder {
        fn new(name: &str) -> Self {
            let path = std::env::temp_dir().join(format!("bezant-unix-{name}-{}", std::process::id()));
            fs::create_dir(&path).unwrap();
            Self(path)
        }
    }

    impl Drop for Folder {
        fn drop(&mut self) {
            let _ = fs::remove_dir_all(&self.0);
        }
    }

    fn refusal(path: &Path) -> String {
        listen(path, Access::Owner).unwrap_err().to_string()
    }

    #[test]
    fn the_file_is_for_those_who_may_connect_and_goes_away_with_its_value() {
        let folder = Folder::new("mode");
        let path = folder.0.join("socket");
        for access in [Access::Owner, Access::Group] {
            let (listener, file) = listen(&path, access).unwrap();
            assert_eq!(fs::metadata(&path).unwrap().mode() & 0o777, access.mode());
            let _client = UnixStream::connect(&path).unwrap();
            listener.accept().unwrap();
            drop(file);
            assert!(!path.exists());
        }
    }

    #[test]
    fn a_socket_on_which_nobody_listens_any_more_is_replaced() {
        let folder = Folder::new("stale");
        let path = folder.0.join("socket");
        drop(UnixListener::bind(&path).unwrap());
        assert!(path.exists());
        let (_listener, _file) = listen(&path, Access::Owner).unwrap();
        UnixStream::connect(&path).unwrap();
    }

    #[test]
    fn one_on_which_somebody_listens_stays() {
        let folder = Folder::new("busy");
        let path = folder.0.join("socket");
        let (listener, file) = listen(&path, Access::Owner).unwrap();
        assert_eq!(refusal(&path), "somebody listens there already");
        // The first who asked still waits in the queue, which now has no more room.
        net::listen(&listener, 0).unwrap();
        assert_eq!(refusal(&path), "somebody listens there already");
        drop(file);
        let _other = UnixDatagram::bind(&path).unwrap();
        assert_eq!(refusal(&path), "somebody listens there already");
        assert!(path.exists());
    }

    #[test]
    fn what_is_no_socket_is_never_removed() {
        let folder = Folder::new("other");
        let path = folder.0.join("notes");
        fs::write(&path, "mine").unwrap();
        assert!(refusal(&path).contains("which is no socket"));
        assert_eq!(fs::read(&path).unwrap(), b"mine");
        let link = folder.0.join("link");
        drop(UnixListener::bind(folder.0.join("dead")).unwrap());
        std::os::unix::fs::symlink(folder.0.join("dead"), &link).unwrap();
        assert!(refusal(&link).contains("which is no socket"));
        assert!(refusal(&folder.0).contains("which is no socket"));
    }

    #[test]
    fn a_file_that_somebody_else_has_put_there_stays() {
        let folder = Folder::new("replaced");
        let path = folder.0.join("socket");
        let (_listener, file) = listen(&path, Access::Owner).unwrap();
        // Made before the other goes, so that it is not the same file again.
        fs::write(folder.0.join("new"), "mine").unwrap();
        fs::rename(folder.0.join("new"), &path).unwrap();
        drop(file);
        assert_eq!(fs::read(&path).unwrap(), b"mine");
    }

    #[test]
    fn a_path_that_is_too_long_and_a_folder_that_is_not_there_are_named() {
        let folder = Folder::new("long");
        let room = PATH_BYTES_MAX - folder.0.as_os_str().len() - 1;
        listen(&folder.0.join("x".repeat(room)), Access::Owner).unwrap();
        assert!(refusal(&folder.0.join("x".repeat(room + 1))).contains("has 108 bytes, and that of a Unix socket"));
        let missing = folder.0.join("missing");
        assert!(refusal(&missing.join("socket")).starts_with(&format!("{}: No such file", missing.display())));
    }
}
