//! Commands whose answers must be those of Redis, to the letter: what `redis-cli` shows of each, at the gateway and at
//! a `redis-server`.

use super::ports::free_ports;
use super::redis::Redis;
use super::running::Running;
use crate::failure::{Result, ensure};
use crate::process::{self, wait_until};
use std::path::Path;
use std::thread;
use std::time::Duration;

/// How long a server may take to start.
const START_MAX: Duration = Duration::from_secs(10);

/// In this order on one connection: what is typed, and what is shown. They leave no key behind.
const DIALOGUE: &[(&str, &str)] = &[
    ("SET e2e:a 1", "OK"),
    ("SET e2e:a 2 GET", "\"1\""),
    ("SET e2e:a 3 NX GET", "\"2\""),
    ("SETNX e2e:a 4", "(integer) 0"),
    ("GETSET e2e:a 5", "\"2\""),
    ("APPEND e2e:a 0", "(integer) 2"),
    ("STRLEN e2e:a", "(integer) 2"),
    ("SETRANGE e2e:b 2 xy", "(integer) 4"),
    ("GET e2e:b", r#""\x00\x00xy""#),
    ("GETRANGE e2e:b -2 -1", "\"xy\""),
    ("GETRANGE e2e:none 0 -1", "\"\""),
    ("TYPE e2e:a", "string"),
    ("TYPE e2e:none", "none"),
    ("MSETNX e2e:a 1 e2e:c 1", "(integer) 0"),
    ("MULTI", "OK"),
    ("INCR e2e:a", "QUEUED"),
    ("INCR e2e:b", "QUEUED"),
    ("GETDEL e2e:b", "QUEUED"),
    ("SET e2e:c 1 FOO", "QUEUED"),
    (
        "EXEC",
        "1) (integer) 51\n2) (error) ERR value is not an integer or out of range\n3) \"\\x00\\x00xy\"\n\
         4) (error) ERR syntax error",
    ),
    ("MULTI", "OK"),
    ("SET e2e:a 6", "QUEUED"),
    ("GET", "(error) ERR wrong number of arguments for 'get' command"),
    ("EXEC", "(error) EXECABORT Transaction discarded because of previous errors."),
    ("WATCH e2e:a", "OK"),
    ("SET e2e:a 7", "OK"),
    ("MULTI", "OK"),
    ("SET e2e:a 8", "QUEUED"),
    ("EXEC", "(nil)"),
    ("WATCH e2e:a", "OK"),
    ("UNWATCH", "OK"),
    ("EXEC", "(error) ERR EXEC without MULTI"),
    ("DISCARD", "(error) ERR DISCARD without MULTI"),
    ("MULTI", "OK"),
    ("GET e2e:a", "QUEUED"),
    ("DISCARD", "OK"),
    ("GETDEL e2e:a", "\"7\""),
    ("EXISTS e2e:a e2e:b e2e:c", "(integer) 0"),
];

/// The same about how long keys live. Times from now on are looked at in transactions: within one no time goes by.
const DEADLINES: &[(&str, &str)] = &[
    ("SET e2e:a 1 EXAT 4000000000", "OK"),
    ("EXPIRETIME e2e:a", "(integer) 4000000000"),
    ("SET e2e:a 2 KEEPTTL XX GET", "\"1\""),
    ("PEXPIRETIME e2e:a", "(integer) 4000000000000"),
    ("SET e2e:a 5 NX PX 1", "(nil)"),
    ("INCRBY e2e:a 40", "(integer) 42"),
    ("APPEND e2e:a 0", "(integer) 3"),
    ("SETRANGE e2e:a 0 1", "(integer) 3"),
    ("EXPIRETIME e2e:a", "(integer) 4000000000"),
    ("GETSET e2e:a 3", "\"120\""),
    ("TTL e2e:a", "(integer) -1"),
    ("PTTL e2e:none", "(integer) -2"),
    ("SET e2e:a 1 EX 0", "(error) ERR invalid expire time in 'set' command"),
    ("SET e2e:a 1 EX abc", "(error) ERR value is not an integer or out of range"),
    ("SET e2e:a 1 EX", "(error) ERR syntax error"),
    ("SET e2e:a 1 EX 1 PX 1", "(error) ERR syntax error"),
    ("SET e2e:a 1 KEEPTTL EX 1", "(error) ERR syntax error"),
    ("SET e2e:a 1 EX abc FOO", "(error) ERR syntax error"),
    ("SET e2e:a 1 PX 9223372036854775807", "(error) ERR invalid expire time in 'set' command"),
    ("SET e2e:a 1 EXAT 9223372036854775807", "(error) ERR invalid expire time in 'set' command"),
    ("SET e2e:a 1 PXAT 9223372036854775807", "OK"),
    ("PEXPIRETIME e2e:a", "(integer) 9223372036854775807"),
    ("SET e2e:a 1 PXAT 1", "OK"),
    ("GET e2e:a", "(nil)"),
    ("SETEX e2e:a 0 v", "(error) ERR invalid expire time in 'setex' command"),
    ("PSETEX e2e:a -1 v", "(error) ERR invalid expire time in 'psetex' command"),
    ("SETEX e2e:a 1", "(error) ERR wrong number of arguments for 'setex' command"),
    ("SETEX e2e:a 100000 v", "OK"),
    ("GETEX e2e:a PERSIST", "\"v\""),
    ("PERSIST e2e:a", "(integer) 0"),
    ("GETEX e2e:a EXAT 4000000000", "\"v\""),
    ("GETEX e2e:a", "\"v\""),
    ("EXPIRETIME e2e:a", "(integer) 4000000000"),
    ("GETEX e2e:a EX 0", "(error) ERR invalid expire time in 'getex' command"),
    ("GETEX e2e:a KEEPTTL", "(error) ERR syntax error"),
    ("GETEX e2e:a PERSIST EX 1", "(error) ERR syntax error"),
    ("GETEX e2e:none EX 1", "(nil)"),
    ("GETEX e2e:a PXAT 1", "\"v\""),
    ("EXPIRE e2e:a 100", "(integer) 0"),
    ("SET e2e:a v", "OK"),
    ("EXPIREAT e2e:a 4000000000 XX", "(integer) 0"),
    ("EXPIREAT e2e:a 4000000000 GT", "(integer) 0"),
    ("EXPIREAT e2e:a 4000000000 LT", "(integer) 1"),
    ("EXPIREAT e2e:a 4000000000 NX", "(integer) 0"),
    ("EXPIREAT e2e:a 4000000001 GT", "(integer) 1"),
    ("EXPIREAT e2e:a 4000000002 LT", "(integer) 0"),
    ("EXPIREAT e2e:a 4000000000 XX LT", "(integer) 1"),
    ("PEXPIREAT e2e:a 4000000002500 XX GT", "(integer) 1"),
    ("EXPIRETIME e2e:a", "(integer) 4000000003"),
    ("EXPIRE e2e:a 9 NX XX", "(error) ERR NX and XX, GT or LT options at the same time are not compatible"),
    ("EXPIRE e2e:a 9 GT LT", "(error) ERR GT and LT options at the same time are not compatible"),
    ("EXPIRE e2e:a 9 Foo", "(error) ERR Unsupported option Foo"),
    ("EXPIRE e2e:a x", "(error) ERR value is not an integer or out of range"),
    ("EXPIRE e2e:a -9223372036854775808", "(error) ERR invalid expire time in 'expire' command"),
    ("PEXPIRE e2e:a 9223372036854775807", "(error) ERR invalid expire time in 'pexpire' command"),
    ("EXPIREAT e2e:none 9223372036854775807", "(error) ERR invalid expire time in 'expireat' command"),
    ("PERSIST e2e:a", "(integer) 1"),
    ("PEXPIREAT e2e:a -9223372036854775808", "(integer) 1"),
    ("EXISTS e2e:a", "(integer) 0"),
    ("MSET e2e:a 1 e2e:b 2", "OK"),
    ("EXPIRE e2e:a -1", "(integer) 1"),
    ("EXPIREAT e2e:b 4000000000", "(integer) 1"),
    ("MSET e2e:b 3", "OK"),
    ("EXPIRETIME e2e:b", "(integer) -1"),
    ("MULTI", "OK"),
    ("SET e2e:a 1 EX 100", "QUEUED"),
    ("TTL e2e:a", "QUEUED"),
    ("PTTL e2e:a", "QUEUED"),
    ("EXPIRE e2e:a 200 GT", "QUEUED"),
    ("GETEX e2e:a PX 7499", "QUEUED"),
    ("TTL e2e:a", "QUEUED"),
    ("SET e2e:a 1 EX 0", "QUEUED"),
    ("PEXPIRE e2e:a 0", "QUEUED"),
    ("TTL e2e:a", "QUEUED"),
    (
        "EXEC",
        "1) OK\n2) (integer) 100\n3) (integer) 100000\n4) (integer) 1\n5) \"1\"\n6) (integer) 7\n\
         7) (error) ERR invalid expire time in 'set' command\n8) (integer) 1\n9) (integer) -2",
    ),
    ("DEL e2e:b", "(integer) 1"),
    // They are read when their time is over.
    ("SET e2e:a 1 PX 700", "OK"),
    ("PSETEX e2e:b 700 2", "OK"),
    ("SETEX e2e:c 1 3", "OK"),
    ("SET e2e:d 4", "OK"),
];

/// How long after [`DEADLINES`] its last keys are gone.
const GONE: Duration = Duration::from_millis(1_500);

/// What is there then.
const AFTERWARDS: &[(&str, &str)] = &[
    ("GET e2e:a", "(nil)"),
    ("MGET e2e:b e2e:d", "1) (nil)\n2) \"4\""),
    ("TTL e2e:c", "(integer) -2"),
    ("PERSIST e2e:a", "(integer) 0"),
    ("SETNX e2e:b 5", "(integer) 1"),
    ("TTL e2e:b", "(integer) -1"),
    ("KEYS e2e:[acd]", "1) \"e2e:d\""),
    ("DEL e2e:a e2e:b e2e:c e2e:d", "(integer) 2"),
];

/// Has the dialogues with a gateway, and with Redis itself.
pub(super) fn check(gateway: Redis, log: &str, folder: &Path) -> Result<()> {
    let redis = Redis { port: free_ports(1)? };
    let port = redis.port.to_string();
    let arguments = ["--bind", "127.0.0.1", "--port", &port, "--save", "", "--appendonly", "no"];
    let _server = Running::start(log, &mut process::program("redis-server", &arguments))?;
    wait_until("redis-server answers", START_MAX, || redis.is_up())?;
    let both = |lines| {
        dialogue("the gateway", gateway, lines, folder)?;
        dialogue("redis-server", redis, lines, folder)
    };
    both(DIALOGUE)?;
    both(DEADLINES)?;
    thread::sleep(GONE);
    both(AFTERWARDS)
}

fn dialogue(who: &str, redis: Redis, dialogue: &[(&str, &str)], folder: &Path) -> Result {
    let commands: String = dialogue.iter().map(|(command, _)| format!("{command}\n")).collect();
    let wanted: String = dialogue.iter().map(|(_, answer)| format!("{answer}\n")).collect();
    let shown = redis.type_in(&commands, folder)?;
    // redis-cli puts an empty line behind some errors.
    let (shown, wanted) = (lines(&shown), lines(&wanted));
    let differs = shown.iter().zip(&wanted).find(|(shown, wanted)| shown != wanted);
    ensure(differs.is_none(), || format!("{who} differs, (shown, wanted) is {differs:?}"))?;
    ensure(shown.len() == wanted.len(), || format!("{who} showed {} lines of {}", shown.len(), wanted.len()))
}

fn lines(text: &str) -> Vec<&str> {
    text.lines().filter(|line| !line.is_empty()).collect()
}
