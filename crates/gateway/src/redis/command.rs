//! The commands that the gateway knows: one table, from which dispatch, the checks of the number of arguments and the
//! answers to `COMMAND` are made, so that they cannot disagree.

use super::reply::Reply;
use bytes::Bytes;

/// What a command does.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Verb {
    Append,
    Auth,
    Client,
    Command,
    DbSize,
    Decr,
    DecrBy,
    Del,
    Discard,
    Echo,
    Exec,
    Exists,
    Expire,
    ExpireAt,
    ExpireTime,
    Get,
    GetDel,
    GetEx,
    GetRange,
    GetSet,
    Hello,
    Incr,
    IncrBy,
    Info,
    Keys,
    MGet,
    MSet,
    MSetNx,
    Multi,
    PExpire,
    PExpireAt,
    PExpireTime,
    PSetEx,
    PTtl,
    Persist,
    Ping,
    Quit,
    Reset,
    Scan,
    Select,
    Set,
    SetEx,
    SetNx,
    SetRange,
    StrLen,
    Ttl,
    Type,
    Unwatch,
    Watch,
}

/// One row of the table.
#[derive(Debug)]
pub(crate) struct Entry {
    pub(crate) name: &'static str,
    pub(crate) verb: Verb,
    /// Number of arguments with the name; negative: at least so many.
    pub(crate) arity: i64,
    /// `readonly`, `write` or neither.
    flag: Option<&'static str>,
    /// Positions of keys: first, last (negative: from the end) and step; 0 if there are none.
    keys: (i64, i64, i64),
    summary: &'static str,
}

const fn entry(
    name: &'static str,
    verb: Verb,
    arity: i64,
    flag: Option<&'static str>,
    keys: (i64, i64, i64),
    summary: &'static str,
) -> Entry {
    Entry { name, verb, arity, flag, keys, summary }
}

const READ: Option<&str> = Some("readonly");
const WRITE: Option<&str> = Some("write");
const NONE: (i64, i64, i64) = (0, 0, 0);
const ONE: (i64, i64, i64) = (1, 1, 1);
const REST: (i64, i64, i64) = (1, -1, 1);

/// Every command, sorted by name.
pub(crate) const TABLE: &[Entry] = &[
    entry("append", Verb::Append, 3, WRITE, ONE, "Appends to the value of a key; returns its length"),
    entry("auth", Verb::Auth, -2, None, NONE, "Says the password"),
    entry("client", Verb::Client, -2, None, NONE, "Names and describes this connection"),
    entry("command", Verb::Command, -1, None, NONE, "Lists the commands of this gateway"),
    entry("dbsize", Verb::DbSize, 1, READ, NONE, "Returns the number of keys"),
    entry("decr", Verb::Decr, 2, WRITE, ONE, "Subtracts one from the number at a key"),
    entry("decrby", Verb::DecrBy, 3, WRITE, ONE, "Subtracts a number from the number at a key"),
    entry("del", Verb::Del, -2, WRITE, REST, "Deletes keys; returns how many there were"),
    entry("discard", Verb::Discard, 1, None, NONE, "Forgets the commands since MULTI"),
    entry("echo", Verb::Echo, 2, None, NONE, "Returns its argument"),
    entry("exec", Verb::Exec, 1, None, NONE, "Carries out the commands since MULTI, all at once"),
    entry("exists", Verb::Exists, -2, READ, REST, "Returns how many of the keys exist"),
    entry("expire", Verb::Expire, -3, WRITE, ONE, "Gives a key so many seconds to live"),
    entry("expireat", Verb::ExpireAt, -3, WRITE, ONE, "Says until which second a key lives"),
    entry("expiretime", Verb::ExpireTime, 2, READ, ONE, "Returns until which second a key lives"),
    entry("get", Verb::Get, 2, READ, ONE, "Returns the value of a key"),
    entry("getdel", Verb::GetDel, 2, WRITE, ONE, "Deletes a key; returns the value that it had"),
    entry("getex", Verb::GetEx, -2, WRITE, ONE, "Returns the value of a key, and says how long it lives"),
    entry("getrange", Verb::GetRange, 4, READ, ONE, "Returns a part of the value of a key"),
    entry("getset", Verb::GetSet, 3, WRITE, ONE, "Sets the value of a key; returns the one before"),
    entry("hello", Verb::Hello, -1, None, NONE, "Shakes hands and chooses the protocol version"),
    entry("incr", Verb::Incr, 2, WRITE, ONE, "Adds one to the number at a key"),
    entry("incrby", Verb::IncrBy, 3, WRITE, ONE, "Adds a number to the number at a key"),
    entry("info", Verb::Info, -1, None, NONE, "Describes the gateway"),
    entry("keys", Verb::Keys, 2, READ, NONE, "Returns all keys that match a pattern"),
    entry("mget", Verb::MGet, -2, READ, REST, "Returns the values of keys"),
    entry("mset", Verb::MSet, -3, WRITE, (1, -1, 2), "Sets the values of keys, all at once"),
    entry("msetnx", Verb::MSetNx, -3, WRITE, (1, -1, 2), "Sets the values of keys if none of them exists"),
    entry("multi", Verb::Multi, 1, None, NONE, "Begins a transaction"),
    entry("persist", Verb::Persist, 2, WRITE, ONE, "Has a key live for ever"),
    entry("pexpire", Verb::PExpire, -3, WRITE, ONE, "Gives a key so many milliseconds to live"),
    entry("pexpireat", Verb::PExpireAt, -3, WRITE, ONE, "Says until which millisecond a key lives"),
    entry("pexpiretime", Verb::PExpireTime, 2, READ, ONE, "Returns until which millisecond a key lives"),
    entry("ping", Verb::Ping, -1, None, NONE, "Returns PONG, or its argument"),
    entry("psetex", Verb::PSetEx, 4, WRITE, ONE, "Sets the value of a key for so many milliseconds"),
    entry("pttl", Verb::PTtl, 2, READ, ONE, "Returns how many milliseconds a key lives"),
    entry("quit", Verb::Quit, -1, None, NONE, "Closes the connection"),
    entry("reset", Verb::Reset, 1, None, NONE, "Makes the connection as new"),
    entry("scan", Verb::Scan, -2, READ, NONE, "Goes through the keys step by step"),
    entry("select", Verb::Select, 2, None, NONE, "Chooses the database: there is only 0"),
    entry("set", Verb::Set, -3, WRITE, ONE, "Sets the value of a key"),
    entry("setex", Verb::SetEx, 4, WRITE, ONE, "Sets the value of a key for so many seconds"),
    entry("setnx", Verb::SetNx, 3, WRITE, ONE, "Sets the value of a key if it does not exist"),
    entry("setrange", Verb::SetRange, 4, WRITE, ONE, "Writes into the value of a key; returns its length"),
    entry("strlen", Verb::StrLen, 2, READ, ONE, "Returns the length of the value of a key"),
    entry("ttl", Verb::Ttl, 2, READ, ONE, "Returns how many seconds a key lives"),
    entry("type", Verb::Type, 2, READ, ONE, "Returns string, or none if the key does not exist"),
    entry("unwatch", Verb::Unwatch, 1, None, NONE, "Forgets the watched keys"),
    entry("watch", Verb::Watch, -2, None, REST, "Has EXEC do nothing if one of the keys changes"),
];

/// The row of a command; the case of the name does not matter.
pub(crate) fn find(name: &[u8]) -> Option<&'static Entry> {
    TABLE.iter().find(|entry| name.eq_ignore_ascii_case(entry.name.as_bytes()))
}

/// Commands of Redis that read or write what is no string, sorted.
const OTHER_TYPES: &[&str] = &[
    "blmove",
    "blmpop",
    "blpop",
    "brpop",
    "brpoplpush",
    "bzmpop",
    "bzpopmax",
    "bzpopmin",
    "geoadd",
    "geodist",
    "geohash",
    "geopos",
    "geosearch",
    "hdel",
    "hexists",
    "hget",
    "hgetall",
    "hincrby",
    "hincrbyfloat",
    "hkeys",
    "hlen",
    "hmget",
    "hmset",
    "hrandfield",
    "hscan",
    "hset",
    "hsetnx",
    "hstrlen",
    "hvals",
    "lindex",
    "linsert",
    "llen",
    "lmove",
    "lmpop",
    "lpop",
    "lpos",
    "lpush",
    "lpushx",
    "lrange",
    "lrem",
    "lset",
    "ltrim",
    "pfadd",
    "pfcount",
    "pfmerge",
    "rpop",
    "rpoplpush",
    "rpush",
    "rpushx",
    "sadd",
    "scard",
    "sdiff",
    "sdiffstore",
    "sinter",
    "sintercard",
    "sinterstore",
    "sismember",
    "smembers",
    "smismember",
    "smove",
    "spop",
    "srandmember",
    "srem",
    "sscan",
    "sunion",
    "sunionstore",
    "xack",
    "xadd",
    "xdel",
    "xgroup",
    "xinfo",
    "xlen",
    "xrange",
    "xread",
    "xreadgroup",
    "xrevrange",
    "xtrim",
    "zadd",
    "zcard",
    "zcount",
    "zincrby",
    "zinter",
    "zlexcount",
    "zmpop",
    "zpopmax",
    "zpopmin",
    "zrange",
    "zrangebylex",
    "zrangebyscore",
    "zrank",
    "zrem",
    "zrevrange",
    "zrevrank",
    "zscan",
    "zscore",
    "zunion",
];

/// Finds the command and checks the number of its arguments.
pub(crate) fn resolve(arguments: &[Bytes]) -> Result<&'static Entry, Reply> {
    let Some(entry) = find(&arguments[0]) else { return Err(unknown(arguments)) };
    let count = arguments.len() as i64;
    let accepted = if entry.arity < 0 { count >= -entry.arity } else { count == entry.arity };
    // Pairs of keys and values; no more than one message to echo.
    let accepted = match entry.verb {
        Verb::MSet | Verb::MSetNx => accepted && count % 2 == 1,
        Verb::Ping => accepted && count <= 2,
        Verb::Auth => accepted && count <= 3,
        _ => accepted,
    };
    if accepted { Ok(entry) } else { Err(wrong_number(entry.name)) }
}

/// The error for too many or too few arguments.
pub(crate) fn wrong_number(name: &str) -> Reply {
    Reply::error(format!("wrong number of arguments for '{name}' command"))
}

/// The error of Redis for a command that it does not know, to the letter: clients look for the word "unknown". What
/// Redis would know is told why we do not.
fn unknown(arguments: &[Bytes]) -> Reply {
    const SHOWN_BYTES_MAX: usize = 128;
    let mut shown = String::new();
    for argument in &arguments[1..] {
        if shown.len() >= SHOWN_BYTES_MAX {
            break;
        }
        let room = SHOWN_BYTES_MAX - shown.len();
        shown.push_str(&format!("'{}' ", printable(argument, room)));
    }
    let name = printable(&arguments[0], SHOWN_BYTES_MAX);
    let lowercase = name.to_ascii_lowercase();
    if OTHER_TYPES.binary_search(&lowercase.as_str()).is_ok() {
        return Reply::error(format!("unknown command '{name}': values are strings here, and of no other type"));
    }
    Reply::error(format!("unknown command '{name}', with args beginning with: {shown}"))
}

/// The error for a sub-command that does not exist.
pub(crate) fn unknown_subcommand(command: &str, subcommand: &[u8]) -> Reply {
    Reply::error(format!("unknown subcommand '{}'. Try {command} HELP.", printable(subcommand, 128)))
}

fn printable(bytes: &[u8], bytes_max: usize) -> String {
    String::from_utf8_lossy(&bytes[..bytes.len().min(bytes_max)]).into_owned()
}

/// The answer to `COMMAND` and its sub-commands.
pub(crate) fn describe(arguments: &[Bytes]) -> Reply {
    let Some(subcommand) = arguments.get(1) else {
        return Reply::Array(TABLE.iter().map(information).collect());
    };
    let named = &arguments[2..];
    match subcommand.to_ascii_lowercase().as_slice() {
        b"count" => Reply::Integer(TABLE.len() as i64),
        b"list" => Reply::Array(TABLE.iter().map(|entry| Reply::text(entry.name)).collect()),
        b"info" if named.is_empty() => Reply::Array(TABLE.iter().map(information).collect()),
        b"info" => Reply::Array(named.iter().map(|name| find(name).map_or(Reply::Null, information)).collect()),
        b"docs" if named.is_empty() => Reply::Map(TABLE.iter().map(documentation).collect()),
        b"docs" => Reply::Map(named.iter().filter_map(|name| find(name)).map(documentation).collect()),
        _ => unknown_subcommand("COMMAND", subcommand),
    }
}

/// The ten fields that Redis 7 gives; those that mean nothing here are empty.
fn information(entry: &Entry) -> Reply {
    let (first, last, step) = entry.keys;
    let empty = || Reply::Array(Vec::new());
    Reply::Array(vec![
        Reply::text(entry.name),
        Reply::Integer(entry.arity),
        Reply::Array(entry.flag.map(Reply::Simple).into_iter().collect()),
        Reply::Integer(first),
        Reply::Integer(last),
        Reply::Integer(step),
        empty(),
        empty(),
        empty(),
        empty(),
    ])
}

fn documentation(entry: &Entry) -> (Reply, Reply) {
    let group = if entry.flag.is_some() { "generic" } else { "connection" };
    let fields = [("summary", entry.summary), ("since", "1.0.0"), ("group", group)];
    let fields = fields.map(|(name, value)| (Reply::text(name), Reply::text(value)));
    (Reply::text(entry.name), Reply::Map(fields.into()))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn arguments(words: &[&str]) -> Vec<Bytes> {
        words.iter().map(|word| Bytes::copy_from_slice(word.as_bytes())).collect()
    }

    #[test]
    fn the_table_is_sorted_so_that_a_name_stands_once() {
        assert!(TABLE.windows(2).all(|pair| pair[0].name < pair[1].name));
        assert!(OTHER_TYPES.windows(2).all(|pair| pair[0] < pair[1]));
        assert!(OTHER_TYPES.iter().all(|name| find(name.as_bytes()).is_none()));
    }

    #[test]
    fn unknown_commands_are_refused_in_the_words_of_redis() {
        let error = |words: &[&str]| match resolve(&arguments(words)) {
            Err(Reply::Error(text)) => text,
            other => panic!("{other:?}"),
        };
        assert_eq!(error(&["foo"]), "ERR unknown command 'foo', with args beginning with: ");
        assert_eq!(error(&["foo", "a", "b"]), "ERR unknown command 'foo', with args beginning with: 'a' 'b' ");
        let strings = "ERR unknown command 'LPUSH': values are strings here, and of no other type";
        assert_eq!(error(&["LPUSH", "a", "b"]), strings);
        let long = "x".repeat(300);
        let expected = format!("ERR unknown command 'Foo', with args beginning with: '{}' ", "x".repeat(128));
        assert_eq!(error(&["Foo", &long, "never shown"]), expected);
    }

    #[test]
    fn the_number_of_arguments_is_checked() {
        for wrong in [&["get"][..], &["GET", "a", "b"], &["mset", "a"], &["mset", "a", "b", "c"], &["ping", "a", "b"]] {
            let name = wrong[0].to_lowercase();
            assert_eq!(resolve(&arguments(wrong)).unwrap_err(), wrong_number(&name), "{wrong:?}");
        }
        assert_eq!(resolve(&arguments(&["gEt", "a"])).unwrap().verb, Verb::Get);
    }
}
