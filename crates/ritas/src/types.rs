//! What crosses the boundary, with the layout of C.

/// Bytes of a key, secret or public.
pub const RITAS_KEY_SIZE: usize = 32;
/// Bytes of a public key for common coins. Secrets have as many as those of other keys.
pub const RITAS_COIN_KEY_SIZE: usize = 96;
/// Bytes of the longest message that ritas_init may write, with the zero at its end.
pub const RITAS_ERRBUF_SIZE: usize = 256;
/// Processes of the largest group.
pub const RITAS_PROCESSES_MAX: usize = 32;
/// Bytes of the longest message, proposal or broadcast.
pub const RITAS_MESSAGE_MAX: usize = 1048576;
/// What a failed call returns; ritas_error says why.
pub const RITAS_FAILURE: isize = -1;
/// What ritas_mvc returns when it decides ⊥: there is no value that enough processes have proposed.
pub const RITAS_BOTTOM: isize = -2;
/// Links are encrypted (TLS 1.3). All processes of a group have the same setting.
pub const RITAS_TLS: i32 = 0;
/// Links are not encrypted. Messages have a MAC all the same.
pub const RITAS_PLAIN: i32 = 1;

/// A process in a group. Nothing is behind the pointer that a program could read.
#[repr(C)]
#[derive(Debug)]
pub struct Ritas {
    _opaque: [u8; 0],
}

/// What is known of a message of the atomic broadcast besides its bytes.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct RitasAbHeader {
    /// Its place in the order, from 0: the same at all correct processes.
    pub number: u64,
    /// The process that has sent it.
    pub sender: usize,
}

/// What a process has proposed to a vector consensus.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct RitasValue {
    /// Where it begins, in the decision that was given to ritas_vector_extract; a null pointer if it is ⊥.
    pub data: *const u8,
    /// How many bytes.
    pub length: usize,
}

/// A decision vector.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct RitasVector {
    /// How many processes the group has.
    pub count: usize,
    /// The value of each process, by its number; ⊥ above them.
    pub values: [RitasValue; RITAS_PROCESSES_MAX],
}
