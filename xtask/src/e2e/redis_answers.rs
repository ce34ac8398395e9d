//! Commands whose answers must be those of Redis, to the letter: what `redis-cli` shows of each, at the gateway and at
//! a `redis-server`.

use super::free_ports;
use super::redis::Redis;
use super::running::Running;
use crate::failure::{Result, ensure};
use crate::process::{self, wait_until};
use std::path::Path;
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

/// Has the dialogue with a gateway, and with Redis itself.
pub(super) fn check(gateway: Redis, log: &str, folder: &Path) -> Result<()> {
    dialogue("the gateway", gateway, folder)?;
    let redis = Redis { port: free_ports(1)? };
    let port = redis.port.to_string();
    let arguments = ["--bind", "127.0.0.1", "--port", &port, "--save", "", "--appendonly", "no"];
    let _server = Running::start(log, &mut process::program("redis-server", &arguments))?;
    wait_until("redis-server answers", START_MAX, || redis.is_up())?;
    dialogue("redis-server", redis, folder)
}

fn dialogue(who: &str, redis: Redis, folder: &Path) -> Result {
    let commands: String = DIALOGUE.iter().map(|(command, _)| format!("{command}\n")).collect();
    let wanted: String = DIALOGUE.iter().map(|(_, answer)| format!("{answer}\n")).collect();
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
