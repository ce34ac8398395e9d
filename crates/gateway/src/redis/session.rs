//! One connection's commands, turned into operations of the replicated service and back into replies.
//!
//! Commands that a client sent without waiting are collected and carried out together, see [`super::batch`], in their
//! order. Whatever has an effect on the connection itself (`HELLO`) or needs several operations (`SCAN`) first sends
//! off what came before it.

use super::auth::Admission;
use super::batch::{BATCH_OPERATIONS_MAX, Batch};
use super::command::{self, Verb};
use super::output::Output;
use super::parser::Arguments;
use super::reply::{Reply, Version};
use super::shared::Shared;
use super::transaction::{self, Exec, Item, Transaction};
use super::translate::{check_sizes, translate};
use super::{info, scan};
use crate::endpoint::Endpoint;
use bezant_core::services::kv::KvOperation;
use bytes::Bytes;
use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

/// How a reply is made.
#[derive(Debug)]
enum Pending {
    /// To a command.
    One(Item),
    /// To a command, out of the result of one transaction.
    Atomic(Item),
    /// To `EXEC`, out of the result of one operation.
    Exec(Vec<Item>),
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
    /// As `CLIENT LIST` shows it: on a Unix socket its path and port 0, as Redis has it.
    peer: String,
    name: Bytes,
    pub(crate) admission: Admission,
    batch: Batch,
    pending: Vec<Pending>,
    transaction: Transaction,
}

impl Session {
    pub(crate) fn new(shared: Arc<Shared>, peer: &Endpoint) -> Self {
        static NEXT: AtomicU64 = AtomicU64::new(1);
        let admission = Admission::new(shared.door.password.clone());
        Self {
            shared,
            admission,
            id: NEXT.fetch_add(1, Ordering::Relaxed),
            peer: match peer {
                Endpoint::Tcp(address) => address.to_string(),
                Endpoint::Unix(path, _) => format!("{}:0", path.display()),
            },
            name: Bytes::new(),
            batch: Batch::default(),
            pending: Vec::new(),
            transaction: Transaction::default(),
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
                self.transaction.break_off();
                self.ready(refusal);
                return Ok(Flow::Continue);
            }
        };
        let flow = self.carry_out(verb, arguments, out)?;
        if self.batch.is_full() || self.pending.len() >= BATCH_OPERATIONS_MAX {
            self.flush(out)?;
        }
        Ok(flow)
    }

    fn carry_out(&mut self, verb: Verb, arguments: &Arguments, out: &mut Output) -> io::Result<Flow> {
        match verb {
            Verb::Multi => {
                let reply = self.transaction.multi();
                self.ready(reply);
            }
            Verb::Discard => {
                let reply = self.transaction.discard();
                self.ready(reply);
            }
            Verb::Exec => self.exec(),
            Verb::Watch => {
                self.flush(out)?;
                let reply = self.transaction.watch(&*self.shared.store, &arguments[1..]);
                self.ready(reply);
            }
            _ if self.transaction.is_open() && !matches!(verb, Verb::Quit | Verb::Reset) => {
                let reply = self.transaction.queue(verb, arguments);
                self.ready(reply);
            }
            Verb::Unwatch => {
                let reply = self.transaction.unwatch();
                self.ready(reply);
            }
            Verb::Ping | Verb::Echo | Verb::Select => self.ready(transaction::immediate(verb, arguments)),
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
        Ok(Flow::Continue)
    }

    fn ready(&mut self, reply: Reply) {
        self.pending.push(Pending::One(Item::Ready(reply)));
    }

    fn exec(&mut self) {
        match self.transaction.exec() {
            Exec::Ready(reply) => self.ready(reply),
            Exec::Call(operation, bytes, items) => {
                self.pending.push(Pending::Exec(items));
                self.batch.extend(vec![operation], bytes);
            }
        }
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
                self.transaction = Transaction::default();
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
        let item = Item::Results(operations.len(), shape);
        if shape.is_atomic() {
            self.pending.push(Pending::Atomic(item));
            self.batch.extend(vec![KvOperation::Transaction { conditions: Vec::new(), operations }], bytes);
        } else {
            self.pending.push(Pending::One(item));
            self.batch.extend(operations, bytes);
        }
    }

    /// Carries out what is waiting and writes its replies.
    pub(crate) fn flush(&mut self, out: &mut Output) -> io::Result<()> {
        let store = &*self.shared.store;
        for pending in self.pending.drain(..) {
            let reply = match pending {
                Pending::One(Item::Ready(reply)) => reply,
                Pending::One(Item::Results(count, shape)) => {
                    shape.reply((0..count).map(|_| self.batch.next_result(store)))
                }
                Pending::Atomic(item) => match transaction::reply(vec![item], self.batch.next_result(store)) {
                    Reply::Array(mut replies) => replies.pop().expect("one reply for one item"),
                    error => error,
                },
                Pending::Exec(items) => transaction::reply(items, self.batch.next_result(store)),
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
