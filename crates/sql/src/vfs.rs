//! SQLite's file system, reduced to one database in memory and the temporary files of long sorts.
//!
//! There is no journal file (SQLite keeps its rollback journal in memory), no lock (one connection), no sync (our
//! log is the durable copy) and no clock but the agreed one: `date('now')`, CURRENT_TIMESTAMP and all other functions
//! of date and time ask the file system for the time, wherever they stand, in defaults, triggers or views.
//!
//! This module and `meter.rs` are the only ones with unsafe code, which a C interface cannot do without. What it
//! relies on:
//! * SQLite calls [`METHODS`] with files that [`open`] made, and with nothing after [`close`];
//! * a [`Vfs`] outlives its connection ([`crate::connection`] sees to it), and with it the [`Disk`] of its files.

#![allow(unsafe_code)]

use crate::moment::Moment;
use crate::pages::{Pages, PagesError};
use rusqlite::ffi;
use std::ffi::{CStr, CString, c_char, c_int, c_void};
use std::fmt;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// Bytes that all temporary files of a connection may have together; a sort that needs more is refused.
pub(crate) const TEMPORARY_BYTES_MAX: u64 = 128 << 20;

/// The longest name of a file, in bytes: SQLite's own.
const PATH_BYTES_MAX: c_int = 512;

/// 1970-01-01 in milliseconds of the Julian day, which SQLite counts in.
const EPOCH_JULIAN_MILLISECONDS: i64 = 210_866_760_000_000;

const MILLISECONDS_PER_DAY: f64 = 86_400_000.0;

/// What a [`Vfs`] gives access to.
#[derive(Debug, Default)]
pub(crate) struct Disk {
    pages: Mutex<Pages>,
    temporary_bytes: AtomicU64,
    /// The agreed values of the request under way.
    pub(crate) moment: Moment,
}

impl Disk {
    /// A disk with a file on it.
    pub(crate) fn over(pages: Pages) -> Self {
        Self { pages: Mutex::new(pages), ..Self::default() }
    }

    /// The database file.
    pub(crate) fn pages(&self) -> MutexGuard<'_, Pages> {
        self.pages.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// A file system registered with SQLite, until it is dropped.
pub(crate) struct Vfs {
    registered: *mut ffi::sqlite3_vfs,
    name: CString,
    _disk: Arc<Disk>,
}

// SAFETY: the registration is touched by SQLite only, under its own lock or in calls on the one connection.
unsafe impl Send for Vfs {}

impl fmt::Debug for Vfs {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(out, "Vfs({:?})", self.name)
    }
}

impl Vfs {
    /// Registers a file system of its own for each database: its name is never used again.
    pub(crate) fn register(disk: Arc<Disk>) -> Self {
        static REGISTERED: AtomicU64 = AtomicU64::new(0);
        let number = REGISTERED.fetch_add(1, Ordering::Relaxed);
        let name = CString::new(format!("bezant-{number}")).expect("no zero byte in it");
        let vfs = ffi::sqlite3_vfs {
            iVersion: 2,
            szOsFile: size_of::<File>() as c_int,
            mxPathname: PATH_BYTES_MAX,
            pNext: std::ptr::null_mut(),
            zName: name.as_ptr(),
            pAppData: Arc::as_ptr(&disk).cast_mut().cast(),
            xOpen: Some(open),
            xDelete: Some(delete),
            xAccess: Some(access),
            xFullPathname: Some(full_pathname),
            xDlOpen: None,
            xDlError: None,
            xDlSym: None,
            xDlClose: None,
            xRandomness: Some(randomness),
            xSleep: Some(sleep),
            xCurrentTime: Some(current_time),
            xGetLastError: Some(last_error),
            xCurrentTimeInt64: Some(current_time_int64),
            xSetSystemCall: None,
            xGetSystemCall: None,
            xNextSystemCall: None,
        };
        let registered = Box::into_raw(Box::new(vfs));
        // SAFETY: the structure and its name stay where they are until `drop` has taken them back.
        let code = unsafe { ffi::sqlite3_vfs_register(registered, 0) };
        assert_eq!(code, ffi::SQLITE_OK, "SQLite has started");
        Self { registered, name, _disk: disk }
    }

    /// Its name.
    pub(crate) fn name(&self) -> &CStr {
        &self.name
    }
}

impl Drop for Vfs {
    fn drop(&mut self) {
        // SAFETY: it was registered once and made by `Box::into_raw`; its connection is closed.
        unsafe {
            ffi::sqlite3_vfs_unregister(self.registered);
            drop(Box::from_raw(self.registered));
        }
    }
}

/// What SQLite has of an open file: it allocates the bytes and looks at `base` only.
#[repr(C)]
struct File {
    base: ffi::sqlite3_file,
    disk: *const Disk,
    /// `None`: the database itself.
    temporary: Option<Vec<u8>>,
}

static METHODS: ffi::sqlite3_io_methods = ffi::sqlite3_io_methods {
    iVersion: 1,
    xClose: Some(close),
    xRead: Some(read),
    xWrite: Some(write),
    xTruncate: Some(truncate),
    xSync: Some(sync),
    xFileSize: Some(file_size),
    xLock: Some(lock),
    xUnlock: Some(lock),
    xCheckReservedLock: Some(check_reserved_lock),
    xFileControl: Some(file_control),
    xSectorSize: Some(sector_size),
    xDeviceCharacteristics: Some(device_characteristics),
    xShmMap: None,
    xShmLock: None,
    xShmBarrier: None,
    xShmUnmap: None,
    xFetch: None,
    xUnfetch: None,
};

/// # Safety
/// `vfs` is one that [`Vfs::register`] made.
unsafe fn disk<'a>(vfs: *mut ffi::sqlite3_vfs) -> &'a Disk {
    // SAFETY: the vfs holds a reference to its disk for as long as it is registered.
    unsafe { &*(*vfs).pAppData.cast::<Disk>() }
}

/// # Safety
/// `file` is one that [`open`] made and [`close`] has not seen; nobody else uses it meanwhile.
unsafe fn opened<'a>(file: *mut ffi::sqlite3_file) -> (&'a mut File, &'a Disk) {
    // SAFETY: as the caller promises; the disk outlives the connection.
    unsafe {
        let file = &mut *file.cast::<File>();
        let disk = file.disk;
        (file, &*disk)
    }
}

unsafe extern "C" fn open(
    vfs: *mut ffi::sqlite3_vfs,
    _name: ffi::sqlite3_filename,
    file: *mut ffi::sqlite3_file,
    flags: c_int,
    flags_out: *mut c_int,
) -> c_int {
    const TEMPORARY: c_int = ffi::SQLITE_OPEN_TEMP_DB
        | ffi::SQLITE_OPEN_TRANSIENT_DB
        | ffi::SQLITE_OPEN_TEMP_JOURNAL
        | ffi::SQLITE_OPEN_SUBJOURNAL;
    let temporary = match flags {
        _ if flags & ffi::SQLITE_OPEN_MAIN_DB != 0 => None,
        _ if flags & TEMPORARY != 0 => Some(Vec::new()),
        // Journals are kept in memory; there is nothing to find in a file.
        _ => {
            // SAFETY: SQLite gives room for a file; without methods it is not closed.
            unsafe { (*file).pMethods = std::ptr::null() };
            return ffi::SQLITE_CANTOPEN;
        }
    };
    // SAFETY: SQLite gives `szOsFile` bytes for the file, and the vfs is ours.
    unsafe {
        let base = ffi::sqlite3_file { pMethods: &raw const METHODS };
        file.cast::<File>().write(File { base, disk: disk(vfs), temporary });
        if !flags_out.is_null() {
            *flags_out = flags;
        }
    }
    ffi::SQLITE_OK
}

unsafe extern "C" fn close(file: *mut ffi::sqlite3_file) -> c_int {
    // SAFETY: the file is ours, and SQLite does not use it again.
    unsafe {
        let (opened, disk) = opened(file);
        disk.temporary_bytes.fetch_sub(opened.temporary.as_ref().map_or(0, Vec::len) as u64, Ordering::Relaxed);
        std::ptr::drop_in_place(file.cast::<File>());
    }
    ffi::SQLITE_OK
}

unsafe extern "C" fn read(
    file: *mut ffi::sqlite3_file,
    into: *mut c_void,
    amount: c_int,
    offset: ffi::sqlite3_int64,
) -> c_int {
    // SAFETY: the file is ours, and SQLite gives room for `amount` bytes.
    let (opened, disk, into) = unsafe {
        let (opened, disk) = opened(file);
        (opened, disk, std::slice::from_raw_parts_mut(into.cast::<u8>(), amount as usize))
    };
    let done = match &opened.temporary {
        None => disk.pages().read(offset as u64, into),
        Some(bytes) => {
            let there = bytes.get(offset as usize..).unwrap_or_default();
            let length = there.len().min(into.len());
            into[..length].copy_from_slice(&there[..length]);
            into[length..].fill(0);
            length
        }
    };
    if done == into.len() { ffi::SQLITE_OK } else { ffi::SQLITE_IOERR_SHORT_READ }
}

unsafe extern "C" fn write(
    file: *mut ffi::sqlite3_file,
    from: *const c_void,
    amount: c_int,
    offset: ffi::sqlite3_int64,
) -> c_int {
    // SAFETY: the file is ours, and SQLite gives `amount` bytes.
    let (opened, disk, from) = unsafe {
        let (opened, disk) = opened(file);
        (opened, disk, std::slice::from_raw_parts(from.cast::<u8>(), amount as usize))
    };
    match &mut opened.temporary {
        None => code_of(disk.pages().write(offset as u64, from)),
        Some(bytes) => {
            let end = offset as usize + from.len();
            let code = resize(disk, bytes, end.max(bytes.len()));
            if code == ffi::SQLITE_OK {
                bytes[offset as usize..end].copy_from_slice(from);
            }
            code
        }
    }
}

/// Makes a temporary file so long, if all of them together may be.
fn resize(disk: &Disk, bytes: &mut Vec<u8>, length: usize) -> c_int {
    let others = disk.temporary_bytes.load(Ordering::Relaxed) - bytes.len() as u64;
    if others + length as u64 > TEMPORARY_BYTES_MAX {
        return ffi::SQLITE_FULL;
    }
    disk.temporary_bytes.store(others + length as u64, Ordering::Relaxed);
    bytes.resize(length, 0);
    ffi::SQLITE_OK
}

const fn code_of(result: Result<(), PagesError>) -> c_int {
    match result {
        Ok(()) => ffi::SQLITE_OK,
        Err(PagesError::TooLarge) => ffi::SQLITE_FULL,
        Err(PagesError::Ragged) => ffi::SQLITE_IOERR_TRUNCATE,
    }
}

unsafe extern "C" fn truncate(file: *mut ffi::sqlite3_file, size: ffi::sqlite3_int64) -> c_int {
    // SAFETY: the file is ours.
    let (opened, disk) = unsafe { opened(file) };
    match &mut opened.temporary {
        None => code_of(disk.pages().truncate(size as u64)),
        Some(bytes) => resize(disk, bytes, size as usize),
    }
}

unsafe extern "C" fn sync(_file: *mut ffi::sqlite3_file, _flags: c_int) -> c_int {
    ffi::SQLITE_OK
}

unsafe extern "C" fn file_size(file: *mut ffi::sqlite3_file, size: *mut ffi::sqlite3_int64) -> c_int {
    // SAFETY: the file is ours, and SQLite gives room for the size.
    unsafe {
        let (opened, disk) = opened(file);
        *size = opened.temporary.as_ref().map_or_else(|| disk.pages().bytes(), |bytes| bytes.len() as u64) as i64;
    }
    ffi::SQLITE_OK
}

unsafe extern "C" fn lock(_file: *mut ffi::sqlite3_file, _level: c_int) -> c_int {
    ffi::SQLITE_OK
}

unsafe extern "C" fn check_reserved_lock(_file: *mut ffi::sqlite3_file, locked: *mut c_int) -> c_int {
    // SAFETY: SQLite gives room for the answer.
    unsafe { *locked = 0 };
    ffi::SQLITE_OK
}

unsafe extern "C" fn file_control(_file: *mut ffi::sqlite3_file, _code: c_int, _argument: *mut c_void) -> c_int {
    ffi::SQLITE_NOTFOUND
}

unsafe extern "C" fn sector_size(_file: *mut ffi::sqlite3_file) -> c_int {
    crate::pages::PAGE_BYTES as c_int
}

unsafe extern "C" fn device_characteristics(_file: *mut ffi::sqlite3_file) -> c_int {
    ffi::SQLITE_IOCAP_ATOMIC
        | ffi::SQLITE_IOCAP_SAFE_APPEND
        | ffi::SQLITE_IOCAP_SEQUENTIAL
        | ffi::SQLITE_IOCAP_POWERSAFE_OVERWRITE
}

unsafe extern "C" fn delete(_vfs: *mut ffi::sqlite3_vfs, _name: *const c_char, _sync: c_int) -> c_int {
    ffi::SQLITE_OK
}

unsafe extern "C" fn access(
    _vfs: *mut ffi::sqlite3_vfs,
    _name: *const c_char,
    _flags: c_int,
    exists: *mut c_int,
) -> c_int {
    // SAFETY: SQLite gives room for the answer.
    unsafe { *exists = 0 };
    ffi::SQLITE_OK
}

unsafe extern "C" fn full_pathname(
    _vfs: *mut ffi::sqlite3_vfs,
    name: *const c_char,
    room: c_int,
    full: *mut c_char,
) -> c_int {
    // SAFETY: the name ends with a zero byte, and SQLite gives `room` bytes for the full one.
    unsafe {
        let bytes = CStr::from_ptr(name).to_bytes_with_nul();
        if bytes.len() > room as usize {
            return ffi::SQLITE_CANTOPEN;
        }
        std::ptr::copy_nonoverlapping(bytes.as_ptr().cast(), full, bytes.len());
    }
    ffi::SQLITE_OK
}

/// Nothing that SQLite asks randomness of a file system for may show in results (prac-F31): zeros.
unsafe extern "C" fn randomness(_vfs: *mut ffi::sqlite3_vfs, amount: c_int, into: *mut c_char) -> c_int {
    // SAFETY: SQLite gives room for `amount` bytes.
    unsafe { std::ptr::write_bytes(into, 0, amount as usize) };
    amount
}

unsafe extern "C" fn sleep(_vfs: *mut ffi::sqlite3_vfs, _microseconds: c_int) -> c_int {
    0
}

unsafe extern "C" fn current_time(vfs: *mut ffi::sqlite3_vfs, days: *mut f64) -> c_int {
    // SAFETY: the vfs is ours, and SQLite gives room for the answer.
    unsafe { *days = julian_milliseconds(disk(vfs)) as f64 / MILLISECONDS_PER_DAY };
    ffi::SQLITE_OK
}

unsafe extern "C" fn current_time_int64(vfs: *mut ffi::sqlite3_vfs, milliseconds: *mut ffi::sqlite3_int64) -> c_int {
    // SAFETY: the vfs is ours, and SQLite gives room for the answer.
    unsafe { *milliseconds = julian_milliseconds(disk(vfs)) };
    ffi::SQLITE_OK
}

fn julian_milliseconds(disk: &Disk) -> i64 {
    EPOCH_JULIAN_MILLISECONDS + (disk.moment.read_clock() / 1_000) as i64
}

unsafe extern "C" fn last_error(_vfs: *mut ffi::sqlite3_vfs, _room: c_int, _text: *mut c_char) -> c_int {
    0
}

/// The rowid of the last insert is the connection's, and what a statement sees of it is the request's (prac-F35).
pub(crate) fn set_last_insert_rowid(connection: &rusqlite::Connection, rowid: i64) {
    // SAFETY: the handle is that of an open connection, used on this thread only.
    unsafe { ffi::sqlite3_set_last_insert_rowid(connection.handle(), rowid) };
}

/// Bytes of memory that a connection has for the pages in its cache.
pub(crate) fn cache_bytes(connection: &rusqlite::Connection) -> u64 {
    status(connection, ffi::SQLITE_DBSTATUS_CACHE_USED)
}

/// Bytes of memory that a connection has for its statements and its schema. To find out it looks at each of them.
pub(crate) fn statement_bytes(connection: &rusqlite::Connection) -> u64 {
    status(connection, ffi::SQLITE_DBSTATUS_STMT_USED) + status(connection, ffi::SQLITE_DBSTATUS_SCHEMA_USED)
}

fn status(connection: &rusqlite::Connection, what: c_int) -> u64 {
    let (mut now, mut most): (c_int, c_int) = (0, 0);
    // SAFETY: the handle is that of an open connection, used on this thread only; both numbers have room.
    unsafe { ffi::sqlite3_db_status(connection.handle(), what, &raw mut now, &raw mut most, 0) };
    u64::try_from(now).unwrap_or(u64::MAX)
}
