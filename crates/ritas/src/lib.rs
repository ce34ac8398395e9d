//! The C interface of the thesis (section 4.3): broadcasts and agreement between the processes of a group.
//!
//! `include/ritas.h` is made from this crate: from the second part of this page, and from what `types.rs`, `outcome.rs`
//! and `lib.rs` say. A test compares it.
//!
//! | file | what |
//! |---|---|
//! | `lib.rs` | the functions: bytes of C become values of Rust, and nothing else happens |
//! | `given.rs` | how they do: what a caller's pointers point to |
//! | `types.rs` | what crosses the boundary |
//! | `contexts.rs` | the contexts that there are, by number |
//! | `context.rs` | a process of a group, before it communicates and after that |
//! | `vector.rs` | a decision vector in a buffer |
//! | `outcome.rs` | how a call ended |
//!
//! Only the first two have unsafe code. What it relies on: pointers that a caller gives are null or point to as
//! much as the caller says, for as long as the call takes. A context is never read through its pointer, which is a
//! number. No panic crosses: one inside of a call becomes [`Code::Internal`].
//!
//! # For programs in C
//!
//! Bezant RITAS: broadcasts and agreement between n processes, of which f may be faulty in any way, n >= 3f + 1. No
//! leaders, no clocks, no signatures: nothing here depends on how fast the network is.
//!
//! The functions are those of section 4.3 of the thesis on RITAS (Moniz, 2007), and mean the same. What differs:
//!
//! - Lengths are size_t and identifiers uint64_t: a u_short ends at 65,535.
//! - Keys are pairs. The thesis has one secret for each two processes; here every process has a secret key, and all
//!   know the public ones. So a pair is made once, with ritas_keygen, and nobody else sees its secret half.
//! - Any number of threads may use a context. When it is destroyed, calls that wait fail with RITAS_CLOSED; so does
//!   every later call with it, for contexts are numbers that are never given twice. No function may be called in a
//!   signal handler, and no context be used in a process that was forked after ritas_init.
//! - The thesis has local coins only. Processes may toss a common one, whose keys somebody deals: ritas_coin_deal and
//!   ritas_set_coin. Then agreement takes a few rounds, whatever the network does. Shares of a coin are signatures.
//! - A multi-valued consensus that decides ⊥ says so: RITAS_BOTTOM.
//! - A buffer that is too short loses nothing: RITAS_TOO_SHORT. Call again with ritas_needed() bytes.
//! - Calls may have a time-out. One that has passed loses nothing either: call again, with the same identifier, and
//!   wait for the same result. What such a call proposes is not looked at.
//!
//! Identifiers of each kind, and of each broadcaster, begin at 0 and leave none out. All processes use the same one for
//! the same consensus. 64 of them may be under way, and 16 of vector consensuses: later ones wait for the first whose
//! result was not taken, of all that a process broadcasts too, itself included.
//!
//! A group lives in an epoch. It ends when a process has lost its memory: whoever crashed counts as one of the f until
//! all begin again in a later epoch. Never use an epoch twice: a process that begins again would contradict itself.
//!
//! A process that is destroyed answers nobody any more. It should be, when all the others have what they need.
//!
//! Functions return 1 or what is described if they succeed, and RITAS_FAILURE (-1) otherwise; then ritas_error()
//! says why. Null pointers are allowed where the length is 0.

#![allow(unsafe_code)]

mod context;
mod contexts;
mod given;
mod outcome;
mod types;
mod vector;

pub use outcome::Code;
pub use types::*;

use bezant_core::auth::{CoinKey, SecretKey};
use bezant_core::ids::{PublicKey, ReplicaId};
use bezant_core::protocols::ritas::group::{MESSAGE_BYTES_MAX, PROCESSES_MAX};
use bezant_node::group::{GroupHandle, Ordered};
use bezant_node::net::Channel;
use context::{Context, Setup};
use given::{Buffer, address, key, message, tell};
use outcome::Failure;
use std::ffi::{CStr, c_char, c_int};
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::time::Duration;

/// Its example in Rust is run as a test.
#[cfg(doctest)]
#[doc = include_str!("../../../docs/groups.md")]
struct Page;

const _: () = assert!(RITAS_MESSAGE_MAX == MESSAGE_BYTES_MAX && RITAS_PROCESSES_MAX == PROCESSES_MAX);
const _: () = assert!(RITAS_COIN_KEY_SIZE == CoinKey::BYTES);

/// Carries out a call, whatever happens in it, and remembers how it ended.
fn call(work: impl FnOnce() -> Result<isize, Failure>) -> isize {
    let done = catch_unwind(AssertUnwindSafe(work)).unwrap_or_else(|_| Err(Failure::internal()));
    outcome::remember(done.as_ref().err());
    done.unwrap_or(RITAS_FAILURE)
}

/// A call that has no length to return.
fn act(work: impl FnOnce() -> Result<(), Failure>) -> c_int {
    call(|| work().map(|()| 1)) as c_int
}

fn context(ctx: *mut Ritas) -> Result<Arc<Context>, Failure> {
    contexts::get(ctx.addr())
}

fn group(ctx: *mut Ritas) -> Result<Arc<GroupHandle>, Failure> {
    context(ctx)?.group()
}

fn member(pid: usize) -> Result<ReplicaId, Failure> {
    let missing = || Failure::new(Code::NoMember, "the group has no such process");
    u8::try_from(pid).map(ReplicaId).map_err(|_| missing())
}

/// Makes a key pair from the system's randomness. The secret half is for ritas_init of one process, and nobody else
/// may see it; the public one is for ritas_proc_add_ipv4 and ritas_proc_add_ipv6 of all. Returns 1.
///
/// # Safety
/// Pointers are null or point to a key's bytes, which may be written.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn ritas_keygen(
    secret: *mut [u8; RITAS_KEY_SIZE],
    public_key: *mut [u8; RITAS_KEY_SIZE],
) -> c_int {
    act(|| {
        if secret.is_null() || public_key.is_null() {
            return Err(Failure::invalid("a null pointer in place of a key"));
        }
        let (made, public) = context::key_pair()?;
        // SAFETY: not null, and the caller promises that they may be written.
        unsafe {
            secret.write(made.0);
            public_key.write(public.0);
        }
        Ok(())
    })
}

/// Deals a common coin to a group of n processes, of which f may be faulty, from the system's randomness. Writes n
/// secrets of RITAS_KEY_SIZE bytes, one after the other, by the number of their process: each is for ritas_set_coin of
/// that one, and nobody else may see it. Writes n public keys of RITAS_COIN_KEY_SIZE bytes: all are for ritas_set_coin
/// of all. There is room for secrets_s and public_keys_s bytes, at least so many. Whoever deals foresees every coin,
/// and so does whoever sees f + 1 of the secrets. Who decides besides when messages arrive can then keep agreement from
/// ending, but not make it wrong. So overwrite the secrets when they are where they belong. Returns 1.
///
/// # Safety
/// Pointers are null or point to so many bytes that may be written.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn ritas_coin_deal(
    n: usize,
    f: usize,
    secrets: *mut u8,
    secrets_s: usize,
    public_keys: *mut u8,
    public_keys_s: usize,
) -> c_int {
    act(|| {
        if secrets.is_null() || public_keys.is_null() {
            return Err(Failure::invalid("a null pointer in place of keys"));
        }
        let dealt = context::dealt(n, f)?;
        if secrets_s / RITAS_KEY_SIZE < dealt.len() || public_keys_s / RITAS_COIN_KEY_SIZE < dealt.len() {
            return Err(Failure::invalid("there is no room for the keys of n processes"));
        }
        for (pid, (secret, key)) in dealt.into_iter().enumerate() {
            // SAFETY: not null, there is room for n of them, and the caller promises that they may be written.
            unsafe {
                secrets.cast::<[u8; RITAS_KEY_SIZE]>().add(pid).write(secret.0);
                public_keys.cast::<[u8; RITAS_COIN_KEY_SIZE]>().add(pid).write(key.0);
            }
        }
        Ok(())
    })
}

/// Makes a context for process pid of a group of n processes, of which f may be faulty. Processes have the numbers 0 to
/// n - 1. It listens to this port on all addresses of the machine; if port is 0, to one that the system chooses.
/// Returns a null pointer if it fails, and writes why into errbuf, with a zero at its end; errbuf may be null.
///
/// # Safety
/// `secret` is null or a key's bytes; `errbuf` is null or has as many bytes as it should.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn ritas_init(
    pid: usize,
    n: usize,
    f: usize,
    port: u16,
    secret: *const [u8; RITAS_KEY_SIZE],
    errbuf: *mut [c_char; RITAS_ERRBUF_SIZE],
) -> *mut Ritas {
    let mut made = 0;
    call(|| {
        // SAFETY: as the caller promises.
        let secret = unsafe { key(secret) }.map(SecretKey);
        let number = secret.and_then(|secret| contexts::add(Context::new(pid, n, f, port, secret)?));
        // SAFETY: as the caller promises.
        made = number.inspect_err(|failure| unsafe { tell(errbuf, failure.message()) })?;
        Ok(1)
    });
    std::ptr::without_provenance_mut(made)
}

/// Destroys a context: leaves its group, and closes its port. Calls of other threads that wait fail with RITAS_CLOSED.
/// A context that was destroyed, and a null pointer, are left alone.
#[unsafe(no_mangle)]
pub extern "C" fn ritas_destroy(ctx: *mut Ritas) {
    act(|| {
        contexts::remove(ctx.addr());
        Ok(())
    });
}

/// The port that a context listens to, from 1 to 65,535.
#[unsafe(no_mangle)]
pub extern "C" fn ritas_port(ctx: *mut Ritas) -> c_int {
    call(|| Ok(context(ctx)?.port as isize)) as c_int
}

/// Says in which epoch the group is: 0 if it is not said. All processes have the same. Only before communication
/// begins. Returns 1.
#[unsafe(no_mangle)]
pub extern "C" fn ritas_set_epoch(ctx: *mut Ritas, epoch: u64) -> c_int {
    act(|| context(ctx)?.set(|setup: &mut Setup| setup.epoch = epoch))
}

/// Says what links run over, RITAS_TLS or RITAS_PLAIN: RITAS_TLS if it is not said. All processes have the same. Only
/// before communication begins. Returns 1.
#[unsafe(no_mangle)]
pub extern "C" fn ritas_set_channel(ctx: *mut Ritas, channel: c_int) -> c_int {
    act(|| {
        let channel = match channel {
            RITAS_TLS => Channel::Tls,
            RITAS_PLAIN => Channel::Plain,
            _ => return Err(Failure::invalid("there is no such channel")),
        };
        context(ctx)?.set(|setup: &mut Setup| setup.channel = channel)
    })
}

/// Has this process toss the common coin that ritas_coin_deal has dealt to its group: with its own secret, and with the
/// public keys of all n processes, one after the other, which are public_keys_s bytes. All processes of a group have
/// keys of one dealing, or none has any: who has others is not heard. They are good for every epoch. Only before
/// communication begins. Returns 1.
///
/// # Safety
/// `secret` is null or a secret's bytes; `public_keys` is null or has `public_keys_s` bytes.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn ritas_set_coin(
    ctx: *mut Ritas,
    secret: *const [u8; RITAS_KEY_SIZE],
    public_keys: *const u8,
    public_keys_s: usize,
) -> c_int {
    act(|| {
        // SAFETY: as the caller promises.
        let (secret, keys) = unsafe { (key(secret)?, message(public_keys, public_keys_s)?) };
        context(ctx)?.set_coin(SecretKey(secret), &keys)
    })
}

/// Says how long calls that begin from now on may wait, in milliseconds; 0 means for ever, as if it is not said.
/// Returns 1.
#[unsafe(no_mangle)]
pub extern "C" fn ritas_set_timeout(ctx: *mut Ritas, timeout_ms: u64) -> c_int {
    act(|| context(ctx)?.set_patience((timeout_ms > 0).then(|| Duration::from_millis(timeout_ms))))
}

/// Adds a process to the context: its number, its address such as "192.0.2.1", its port and its public key. All n are
/// added, this one too, before communication begins, which it does with the first broadcast, receipt or consensus.
/// Returns 1.
///
/// # Safety
/// `ip` is null or ends with a zero; `key` is null or a key's bytes.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn ritas_proc_add_ipv4(
    ctx: *mut Ritas,
    pid: usize,
    ip: *const c_char,
    port: u16,
    public_key: *const [u8; RITAS_KEY_SIZE],
) -> c_int {
    act(|| {
        // SAFETY: as the caller promises.
        let (ip, key): (Ipv4Addr, _) = unsafe { (address(ip)?, key(public_key)?) };
        context(ctx)?.add(pid, IpAddr::V4(ip), port, PublicKey(key))
    })
}

/// The same with an address such as "2001:db8::1".
///
/// # Safety
/// As for [`ritas_proc_add_ipv4`].
#[unsafe(no_mangle)]
pub unsafe extern "C" fn ritas_proc_add_ipv6(
    ctx: *mut Ritas,
    pid: usize,
    ip: *const c_char,
    port: u16,
    public_key: *const [u8; RITAS_KEY_SIZE],
) -> c_int {
    act(|| {
        // SAFETY: as the caller promises.
        let (ip, key): (Ipv6Addr, _) = unsafe { (address(ip)?, key(public_key)?) };
        context(ctx)?.add(pid, IpAddr::V6(ip), port, PublicKey(key))
    })
}

/// Broadcasts a message reliably, as broadcast rbid of this process: all correct processes receive the same message, or
/// none does; and they do receive it if this process is correct. Returns 1.
///
/// # Safety
/// `buf` is null or has `buf_s` bytes.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn ritas_rb_bcast(ctx: *mut Ritas, rbid: u64, buf: *const u8, buf_s: usize) -> c_int {
    // SAFETY: as the caller promises.
    act(|| Ok(group(ctx)?.reliable_broadcast(rbid, unsafe { message(buf, buf_s) }?)?))
}

/// Waits for broadcast rbid of process txid, and returns its length in bytes. Each is received once.
///
/// # Safety
/// `buf` is null or has `buf_s` bytes, which may be written.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn ritas_rb_recv(ctx: *mut Ritas, txid: usize, rbid: u64, buf: *mut u8, buf_s: usize) -> isize {
    call(|| {
        let (buffer, from) = (Buffer::new(buf, buf_s)?, member(txid)?);
        let received = group(ctx)?.reliable_receive_within(from, rbid, buf_s)?;
        // SAFETY: as the caller promises.
        Ok(unsafe { buffer.fill(&received) })
    })
}

/// Broadcasts a message by echo, as broadcast ebid of this process: no two correct processes receive different
/// messages. It costs less than ritas_rb_bcast, but if this process is faulty some may receive none. Returns 1.
///
/// # Safety
/// As for [`ritas_rb_bcast`].
#[unsafe(no_mangle)]
pub unsafe extern "C" fn ritas_eb_bcast(ctx: *mut Ritas, ebid: u64, buf: *const u8, buf_s: usize) -> c_int {
    // SAFETY: as the caller promises.
    act(|| Ok(group(ctx)?.echo_broadcast(ebid, unsafe { message(buf, buf_s) }?)?))
}

/// Waits for broadcast ebid by echo of process txid, and returns its length in bytes. Each is received once.
///
/// # Safety
/// As for [`ritas_rb_recv`].
#[unsafe(no_mangle)]
pub unsafe extern "C" fn ritas_eb_recv(ctx: *mut Ritas, txid: usize, ebid: u64, buf: *mut u8, buf_s: usize) -> isize {
    call(|| {
        let (buffer, from) = (Buffer::new(buf, buf_s)?, member(txid)?);
        let received = group(ctx)?.echo_receive_within(from, ebid, buf_s)?;
        // SAFETY: as the caller promises.
        Ok(unsafe { buffer.fill(&received) })
    })
}

/// Binary consensus bcid: proposes 0 or 1, waits for the decision and returns it, 0 or 1. A correct process has
/// proposed it.
#[unsafe(no_mangle)]
pub extern "C" fn ritas_bc(ctx: *mut Ritas, bcid: u64, proposal: c_int) -> c_int {
    call(|| match proposal {
        0 | 1 => Ok(isize::from(group(ctx)?.agree_on_bit(bcid, proposal == 1)?)),
        _ => Err(Failure::invalid("a binary consensus is about 0 or 1")),
    }) as c_int
}

/// Multi-valued consensus mvcid: proposes a value, waits for the decision and returns its length in bytes, or
/// RITAS_BOTTOM. If all correct processes propose the same, it is decided; a decision other than RITAS_BOTTOM is what a
/// correct process has proposed.
///
/// # Safety
/// `prop` is null or has `prop_s` bytes; `decision` is null or has `decision_s` bytes, which may be written.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn ritas_mvc(
    ctx: *mut Ritas,
    mvcid: u64,
    prop: *const u8,
    prop_s: usize,
    decision: *mut u8,
    decision_s: usize,
) -> isize {
    call(|| {
        let buffer = Buffer::new(decision, decision_s)?;
        // SAFETY: as the caller promises.
        let proposal = unsafe { message(prop, prop_s) }?;
        let decided = group(ctx)?.agree_within(mvcid, proposal, decision_s)?;
        // SAFETY: as the caller promises.
        Ok(decided.map_or(RITAS_BOTTOM, |decided| unsafe { buffer.fill(&decided) }))
    })
}

/// Vector consensus vcid: proposes a value, waits for the decision and returns its length in bytes. The decision has a
/// value or ⊥ for each process: n - f values at least, of which at least f + 1 are of correct processes. It takes
/// four bytes for each process besides the values; ritas_vector_extract reads it. A proposal has at most 4 MiB / n - 16
/// bytes, and RITAS_MESSAGE_MAX.
///
/// # Safety
/// As for [`ritas_mvc`].
#[unsafe(no_mangle)]
pub unsafe extern "C" fn ritas_vc(
    ctx: *mut Ritas,
    vcid: u64,
    prop: *const u8,
    prop_s: usize,
    decision: *mut u8,
    decision_s: usize,
) -> isize {
    call(|| {
        let buffer = Buffer::new(decision, decision_s)?;
        // SAFETY: as the caller promises.
        let proposal = unsafe { message(prop, prop_s) }?;
        let decided = group(ctx)?.agree_on_vector_within(vcid, proposal, decision_s, vector::size)?;
        // SAFETY: as the caller promises.
        Ok(unsafe { buffer.fill(&vector::encoded(&decided)) })
    })
}

/// Finds the values in a decision of ritas_vc. They are not copied: the vector points into the decision, and is good
/// for as long as that. Needs no context. Returns 1.
///
/// # Safety
/// `decision` is null or has `decision_s` bytes; `vector` is null or may be written.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn ritas_vector_extract(
    decision: *const u8,
    decision_s: usize,
    vector: *mut RitasVector,
) -> c_int {
    act(|| {
        let is_none = || Failure::invalid("this is no decision of a vector consensus");
        if vector.is_null() || decision.is_null() || decision_s > isize::MAX as usize {
            return Err(is_none());
        }
        // SAFETY: not null, and as the caller promises.
        let bytes = unsafe { std::slice::from_raw_parts(decision, decision_s) };
        let values = vector::extracted(bytes).ok_or_else(is_none)?;
        let none = RitasValue { data: std::ptr::null(), length: 0 };
        let mut made = RitasVector { count: values.len(), values: [none; RITAS_PROCESSES_MAX] };
        for (place, value) in made.values.iter_mut().zip(values) {
            *place = value.map_or(none, |value| RitasValue { data: value.as_ptr(), length: value.len() });
        }
        // SAFETY: not null, and the caller promises that it may be written.
        unsafe { vector.write(made) };
        Ok(())
    })
}

/// Broadcasts a message atomically: all correct processes receive the messages of all in one order, in which those of
/// each correct process come in the order in which it broadcast them. Returns 1.
///
/// # Safety
/// As for [`ritas_rb_bcast`].
#[unsafe(no_mangle)]
pub unsafe extern "C" fn ritas_ab_bcast(ctx: *mut Ritas, buf: *const u8, buf_s: usize) -> c_int {
    // SAFETY: as the caller promises.
    act(|| Ok(group(ctx)?.order(unsafe { message(buf, buf_s) }?)?))
}

/// Waits for the next message in the order, and returns its length in bytes. Its number and its sender go into abh,
/// which may be null. A process that does not receive takes no part in further rounds once 32 MiB wait.
///
/// # Safety
/// `buf` is null or has `buf_s` bytes, which may be written; `abh` is null or may be written.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn ritas_ab_recv(ctx: *mut Ritas, buf: *mut u8, buf_s: usize, abh: *mut RitasAbHeader) -> isize {
    call(|| {
        let buffer = Buffer::new(buf, buf_s)?;
        let Ordered { number, sender, message } = group(ctx)?.next_ordered_within(buf_s)?;
        if !abh.is_null() {
            // SAFETY: not null, and the caller promises that it may be written.
            unsafe { abh.write(RitasAbHeader { number, sender: usize::from(sender.0) }) };
        }
        // SAFETY: as the caller promises.
        Ok(unsafe { buffer.fill(&message) })
    })
}

/// How the last call of this thread ended: one of enum ritas_code. The functions from here on are no such calls.
#[unsafe(no_mangle)]
pub extern "C" fn ritas_error() -> c_int {
    outcome::code() as c_int
}

/// The same in words, in UTF-8. Good until the next call of this thread.
#[unsafe(no_mangle)]
pub extern "C" fn ritas_error_message() -> *const c_char {
    outcome::with_message(CStr::as_ptr).unwrap_or(c"".as_ptr())
}

/// With RITAS_TOO_SHORT: how many bytes the buffer must have.
#[unsafe(no_mangle)]
pub extern "C" fn ritas_needed() -> usize {
    outcome::needed()
}
