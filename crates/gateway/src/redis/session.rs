//! One connection's commands, turned into operations of the replicated service and back into replies.
//!
//! Commands that a client sent without waiting are collected and carried out together, see [`super::batch`], in their
//! order. Whatever has an effect on the connection itself (`HELLO`) or needs several operations (`SCAN`) first sends
//! off what came before it.

use super::auth::Admission;
use super::batch::{BATCH_OPERATIONS_MAX, Batch};
use super::command::{self, Verb};
use super::info::{self, Statistics};
use super::output::Output;
use super::parser::Arguments;
use super::reply::{Reply, Version};
use super::scan::{self, Cursors};
use crate::door::Door;
use crate::store::{Store, StoreError};
use bezant_core::services::kv::{Condition, KEY_BYTES_MAX, KvOperation, KvResult, VALUE_BYTES_MAX};
use bytes::Bytes;
use std::io;
use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

/// Most bytes in the reply to one command.
const REPLY_BYTES_MAX: usize = 64 << 20;

/// Most bytes of keys and values that one command writes: they must fit into one operation.
const WRITE_BYTES_MAX: usize = 768 << 10;

/// What the connections of a gateway share.
pub(crate) struct Shared {
    pub(crate) store: Arc<dyn Store>,
    pub(crate) door: Door,
    pub(crate) cursors: Cursors,
    pub(crate) statistics: Statistics,
}

/// How a reply is made.
#[derive(Debug)]
enum Pending {
    /// Without the service.
    Ready(Reply),
    /// Out of the results of this many operations.
    Results(usize, Shape),
}

/// How the results of a command become its reply.
#[derive(Clone, Copy, Debug)]
enum Shape {
    /// The reply to the only result.
    Single,
    /// All of them.
    List,
}

/// Whether the connection goes on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Flow {
    Continue,
    Close,
}

/// The state of one connection.
pub(crate) struct Session {
    shared: Arc<Shared>,
    id: u64,
    peer: SocketAddr,
    name: Bytes,
    pub(crate) admission: Admission,
    batch: Batch,
    pending: Vec<Pending>,
}

impl Session {
    pub(crate) fn new(shared: Arc<Shared>, peer: SocketAddr) -> Self {
        static NEXT: AtomicU64 = AtomicU64::new(1);
        let admission = Admission::new(shared.door.password.clone());
        Self {
            shared,
            admission,
            id: NEXT.fetch_add(1, Ordering::Relaxed),
            peer,
            name: Bytes::new(),
            batch: Batch::default(),
            pending: Vec::new(),
        }
    }

    /// Takes one command. Its reply is written now or at a later [`Self::flush`], in the order of the commands.
    pub(crate) fn handle(&mut self, arguments: &Arguments, out: &mut Output) -> io::Result<Flow> {
        if is_http(&arguments[0]) {
            self.shared.statistics.http.fetch_add(1, Ordering::Relaxed);
            return Ok(Flow::Close);
        }
        self.shared.statistics.commands.fetch_add(1, Ordering::Relaxed);
        let resolved = command::resolve(arguments).map(|entry| entry.verb);
        let opens = matches!(resolved, Ok(Verb::Auth | Verb::Hello | Verb::Quit | Verb::Reset));
        if !opens && !self.admission.is_known() {
            out.reply(&Reply::Error("NOAUTH Authentication required.".into()))?;
            return Ok(Flow::Continue);
        }
        let verb = match resolved {
            Ok(verb) => verb,
            Err(refusal) => {
                self.ready(refusal);
                return Ok(Flow::Continue);
            }
        };
        match verb {
            Verb::Ping if arguments.len() == 1 => self.ready(Reply::Simple("PONG")),
            Verb::Ping | Verb::Echo => self.ready(Reply::Bulk(arguments[1].clone())),
            Verb::Select => self.ready(select(&arguments[1])),
            Verb::Client => {
                let reply = self.client(arguments, out.version);
                self.ready(reply);
            }
            Verb::Auth
            | Verb::Hello
            | Verb::Reset
            | Verb::Quit
            | Verb::Scan
            | Verb::Keys
            | Verb::Info
            | Verb::Command => {
                self.flush(out)?;
                let before = self.admission.wrong();
                let reply = self.alone(verb, arguments, &mut out.version);
                let wrong = u64::from(self.admission.wrong() - before);
                self.shared.statistics.wrong_passwords.fetch_add(wrong, Ordering::Relaxed);
                out.reply(&reply)?;
                if verb == Verb::Quit || self.admission.has_guessed() {
                    return Ok(Flow::Close);
                }
            }
            _ => self.prepare(verb, arguments),
        }
        if self.batch.is_full() || self.pending.len() >= BATCH_OPERATIONS_MAX {
            self.flush(out)?;
        }
        Ok(Flow::Continue)
    }

    fn ready(&mut self, reply: Reply) {
        self.pending.push(Pending::Ready(reply));
    }

    /// A command that is carried out by itself.
    fn alone(&mut self, verb: Verb, arguments: &Arguments, version: &mut Version) -> Reply {
        match verb {
            Verb::Auth => self.admission.auth(&arguments[1..]),
            Verb::Hello => self.hello(arguments, version),
            Verb::Scan => scan::scan(&*self.shared.store, &self.shared.cursors, arguments),
            Verb::Keys => scan::keys(&*self.shared.store, &arguments[1]),
            Verb::Command => command::describe(arguments),
            Verb::Info => info::info(&self.shared, &arguments[1..]),
            Verb::Reset => {
                (*version, self.name) = (Version::Two, Bytes::new());
                self.admission.forget();
                Reply::Simple("RESET")
            }
            _ => Reply::OK,
        }
    }

    /// A command that becomes operations.
    fn prepare(&mut self, verb: Verb, arguments: &Arguments) {
        let bytes = arguments.iter().map(Bytes::len).sum();
        let translated = translate(verb, arguments);
        let checked = translated.and_then(|(operations, shape)| {
            check_sizes(&operations, bytes)?;
            Ok((operations, shape))
        });
        let (operations, shape) = match checked {
            Ok(checked) => checked,
            Err(refusal) => return self.ready(refusal),
        };
        self.pending.push(Pending::Results(operations.len(), shape));
        self.batch.extend(operations, bytes);
    }

    /// Carries out what is waiting and writes its replies.
    pub(crate) fn flush(&mut self, out: &mut Output) -> io::Result<()> {
        let store = &*self.shared.store;
        for pending in self.pending.drain(..) {
            let reply = match pending {
                Pending::Ready(reply) => reply,
                Pending::Results(count, shape) => shape.reply((0..count).map(|_| self.batch.next_result(store))),
            };
            out.reply(&reply)?;
        }
        Ok(())
    }

    /// `HELLO [version [AUTH user password] [SETNAME name]]`.
    fn hello(&mut self, arguments: &Arguments, current: &mut Version) -> Reply {
        let version = match arguments.get(1).map(AsRef::as_ref) {
            None => *current,
            Some(b"2") => Version::Two,
            Some(b"3") => Version::Three,
            Some(_) => return Reply::Error("NOPROTO unsupported protocol version".into()),
        };
        let mut name = self.name.clone();
        let mut options = arguments.get(2..).unwrap_or_default();
        while let [option, rest @ ..] = options {
            options = match (option.to_ascii_uppercase().as_slice(), rest) {
                (b"SETNAME", [wanted, rest @ ..]) if is_client_name(wanted) => {
                    name = wanted.clone();
                    rest
                }
                (b"SETNAME", [_, ..]) => return bad_client_name(),
                (b"AUTH", [_, _, after @ ..]) => match self.admission.auth(&rest[..2]) {
                    Reply::Error(why) => return Reply::Error(why),
                    _ => after,
                },
                _ => return Reply::error("syntax error in HELLO"),
            };
        }
        if !self.admission.is_known() {
            return Reply::Error(NO_HELLO.into());
        }
        (*current, self.name) = (version, name);
        Reply::Map(vec![
            (Reply::text("server"), Reply::text("redis")),
            (Reply::text("version"), Reply::text(info::REDIS_VERSION)),
            (Reply::text("proto"), Reply::Integer(if version == Version::Three { 3 } else { 2 })),
            (Reply::text("id"), Reply::Integer(self.id as i64)),
            (Reply::text("mode"), Reply::text("standalone")),
            (Reply::text("role"), Reply::text("master")),
            (Reply::text("modules"), Reply::Array(Vec::new())),
        ])
    }

    /// `CLIENT …`: this connection's name and number. It knows of no other connection.
    fn client(&mut self, arguments: &Arguments, version: Version) -> Reply {
        let subcommand = arguments[1].to_ascii_lowercase();
        match (subcommand.as_slice(), &arguments[2..]) {
            (b"id", []) => Reply::Integer(self.id as i64),
            (b"getname", []) if self.name.is_empty() => Reply::Null,
            (b"getname", []) => Reply::Bulk(self.name.clone()),
            (b"setname", [name]) if is_client_name(name) => {
                self.name = name.clone();
                Reply::OK
            }
            (b"setname", [_]) => bad_client_name(),
            (b"setinfo", [attribute, _]) => match attribute.to_ascii_lowercase().as_slice() {
                b"lib-name" | b"lib-ver" => Reply::OK,
                _ => Reply::error("Unrecognized option for CLIENT SETINFO: use LIB-NAME or LIB-VER"),
            },
            (b"list" | b"info", []) => {
                let resp = if version == Version::Three { 3 } else { 2 };
                let name = String::from_utf8_lossy(&self.name);
                Reply::Text(format!("id={} addr={} name={name} db=0 resp={resp}\n", self.id, self.peer))
            }
            (b"id" | b"getname" | b"setname" | b"setinfo" | b"list" | b"info", _) => {
                command::wrong_number(&format!("client|{}", String::from_utf8_lossy(&subcommand)))
            }
            _ => command::unknown_subcommand("CLIENT", &arguments[1]),
        }
    }
}

/// As Redis words it: clients look for the first word.
const NO_HELLO: &str = "NOAUTH HELLO must be called with the client already authenticated, otherwise the HELLO <proto> \
    AUTH <user> <pass> option can be used to authenticate the client and select the RESP protocol version at the same \
    time";

/// Whether this is how a browser's request begins, or how it goes on, and no command. A page from anywhere may have its
/// reader's browser send a request to this port, with commands in its body: nothing of it is carried out, nor what came
/// before it and still waits. Redis closes the connection as well.
fn is_http(name: &[u8]) -> bool {
    name.eq_ignore_ascii_case(b"POST") || name.eq_ignore_ascii_case(b"Host:")
}

/// Names are shown in one line with others: no spaces, nothing unprintable.
fn is_client_name(name: &[u8]) -> bool {
    name.iter().all(u8::is_ascii_graphic)
}

fn bad_client_name() -> Reply {
    Reply::error("Client names cannot contain spaces, newlines or special characters.")
}

fn select(index: &[u8]) -> Reply {
    match parse_integer(index) {
        Ok(0) => Reply::OK,
        Ok(_) => Reply::error("DB index is out of range"),
        Err(refusal) => refusal,
    }
}

/// A decimal number as Redis takes it.
pub(crate) fn parse_integer(text: &[u8]) -> Result<i64, Reply> {
    let number = std::str::from_utf8(text).ok().and_then(|text| text.parse().ok());
    number.ok_or_else(not_an_integer)
}

fn not_an_integer() -> Reply {
    Reply::error("value is not an integer or out of range")
}

/// The operations of a command, and how their results become its reply.
fn translate(verb: Verb, arguments: &Arguments) -> Result<(Vec<KvOperation>, Shape), Reply> {
    let single = |operation| Ok((vec![operation], Shape::Single));
    let gets = || arguments[1..].iter().map(|key| KvOperation::Get { key: key.clone() }).collect();
    let increment = |by| single(KvOperation::Increment { key: arguments[1].clone(), by });
    match verb {
        Verb::Get => Ok((gets(), Shape::Single)),
        Verb::MGet => Ok((gets(), Shape::List)),
        Verb::Exists => single(KvOperation::Exists { keys: arguments[1..].to_vec() }),
        Verb::Set => single(set(arguments)?),
        Verb::MSet => {
            let entries = arguments[1..].chunks_exact(2).map(|pair| (pair[0].clone(), pair[1].clone()));
            single(KvOperation::MultiSet { entries: entries.collect() })
        }
        Verb::Del => single(KvOperation::Delete { keys: arguments[1..].to_vec() }),
        Verb::Incr => increment(1),
        Verb::Decr => increment(-1),
        Verb::IncrBy => increment(parse_integer(&arguments[2])?),
        Verb::DecrBy => match parse_integer(&arguments[2])?.checked_neg() {
            Some(by) => increment(by),
            None => Err(Reply::error("decrement would overflow")),
        },
        _ => single(KvOperation::Count),
    }
}

/// Refuses keys and values that the service does not take, and writes that would not fit into one operation.
fn check_sizes(operations: &[KvOperation], bytes: usize) -> Result<(), Reply> {
    let is_key = |key: &Bytes| key.len() <= KEY_BYTES_MAX;
    let is_value = |value: &Bytes| value.len() <= VALUE_BYTES_MAX;
    for operation in operations {
        let (keys_fit, values_fit) = match operation {
            KvOperation::Get { key } | KvOperation::Increment { key, .. } => (is_key(key), true),
            KvOperation::Set { key, value, .. } => (is_key(key), is_value(value)),
            KvOperation::Delete { keys } | KvOperation::Exists { keys } => (keys.iter().all(is_key), true),
            KvOperation::MultiSet { entries } => {
                (entries.iter().all(|(key, _)| is_key(key)), entries.iter().all(|(_, value)| is_value(value)))
            }
            _ => (true, true),
        };
        if !keys_fit {
            return Err(Reply::error(format!("a key is longer than {KEY_BYTES_MAX} bytes")));
        }
        if !values_fit {
            return Err(Reply::error(format!("a value is longer than {VALUE_BYTES_MAX} bytes")));
        }
        if !operation.is_read_only() && bytes > WRITE_BYTES_MAX {
            return Err(Reply::error(format!("one command may write at most {WRITE_BYTES_MAX} bytes")));
        }
    }
    Ok(())
}

/// `SET key value [NX | XX]`.
fn set(arguments: &Arguments) -> Result<KvOperation, Reply> {
    let mut condition = Condition::Always;
    for option in &arguments[3..] {
        let option = option.to_ascii_uppercase();
        condition = match (option.as_slice(), condition) {
            (b"NX", Condition::Always) => Condition::Absent,
            (b"XX", Condition::Always) => Condition::Present,
            (b"EX" | b"PX" | b"EXAT" | b"PXAT" | b"KEEPTTL" | b"GET", _) => {
                let option = String::from_utf8_lossy(&option);
                return Err(Reply::error(format!("SET option {option} is not supported here: only NX and XX are")));
            }
            _ => return Err(Reply::error("syntax error")),
        };
    }
    Ok(KvOperation::Set { key: arguments[1].clone(), value: arguments[2].clone(), condition })
}

impl Shape {
    /// The reply to a command out of the results of its operations.
    fn reply(self, results: impl Iterator<Item = Result<KvResult, StoreError>>) -> Reply {
        let mut replies = Vec::new();
        let mut error = None;
        let mut bytes = 0;
        for reply in results.map(reply_to_one) {
            bytes += if let Reply::Bulk(value) = &reply { value.len() } else { 0 };
            match reply {
                // What went wrong with one key went wrong with the command. The other results are taken all the same.
                Reply::Error(_) => error = error.or(Some(reply)),
                _ if bytes <= REPLY_BYTES_MAX => replies.push(reply),
                _ => error = error.or_else(|| Some(Reply::error("the reply is too large: ask for fewer keys"))),
            }
        }
        if let Some(error) = error {
            return error;
        }
        match self {
            Self::Single => replies.pop().expect("a command of this shape has one operation"),
            Self::List => Reply::Array(replies),
        }
    }
}

fn reply_to_one(result: Result<KvResult, StoreError>) -> Reply {
    match result {
        Ok(KvResult::Done) => Reply::OK,
        Ok(KvResult::NotDone) => Reply::Null,
        Ok(KvResult::Value(value)) => value.map_or(Reply::Null, Reply::Bulk),
        Ok(KvResult::Integer(number)) => Reply::Integer(number),
        Ok(KvResult::Count(count)) => Reply::Integer(count as i64),
        Ok(KvResult::NotAnInteger) => not_an_integer(),
        Ok(KvResult::Overflow) => Reply::error("increment or decrement would overflow"),
        Ok(KvResult::Full) => Reply::Error("OOM the service has no room for this key and value".into()),
        Ok(other) => unexpected(&other),
        Err(error) => error_reply(&error),
    }
}

pub(crate) fn unexpected(result: &KvResult) -> Reply {
    Reply::error(format!("the service answered {result:?}"))
}

/// An unknown outcome has a code of its own: the client must not take it for a failure.
pub(crate) fn error_reply(error: &StoreError) -> Reply {
    match error {
        StoreError::Refused(_) => Reply::error(error.to_string()),
        StoreError::Unknown(_) => Reply::Error(format!("TRYAGAIN {error}")),
    }
}
