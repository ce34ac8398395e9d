//! Who is compared: a protocol, how long its Backups last where that is not as usual, and what its clients are like.

use super::words::name;
use crate::commands::testnet::{AuthName, CoinName, parse_protocol};
use bezant_core::schedule::Quota;
use bezant_node::config::Protocol;
use clap::ValueEnum;
use std::fmt;

/// Its clients join.
const JOINED: &str = ":joined";
/// What stands before the way in which its clients prove who they are.
const AUTH: &str = ":auth=";
/// What stands before what its replicas toss.
const COIN: &str = ":coin=";
/// What stands between the protocol and the quota.
const QUOTA: &str = ":k=";
/// What doubles: k of the i-th Backup is this times its minimum.
const DOUBLING: &str = "2^i";

/// A protocol, with the quota of its Backups unless that is the usual one, its coin and its clients.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Contender {
    pub(super) protocol: Protocol,
    pub(super) quota: Option<Quota>,
    pub(super) coin: CoinName,
    /// As all others', if not given.
    pub(super) auth: Option<AuthName>,
    /// Whether its clients join, instead of being named by the cluster file.
    pub(super) joined: bool,
}

impl From<Protocol> for Contender {
    fn from(protocol: Protocol) -> Self {
        Self { protocol, quota: None, coin: CoinName::default(), auth: None, joined: false }
    }
}

/// As the command line has it.
impl fmt::Display for Contender {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.protocol {
            Protocol::Schedule(schedule) => write!(f, "[{schedule}]")?,
            named => named.fmt(f)?,
        }
        match self.quota {
            None | Some(Quota::Flattened { .. }) => {}
            Some(Quota::Fixed(k)) => write!(f, "{QUOTA}{k}")?,
            Some(Quota::Exponential { minimum: 1 }) => write!(f, "{QUOTA}{DOUBLING}")?,
            Some(Quota::Exponential { minimum }) => write!(f, "{QUOTA}{minimum}*{DOUBLING}")?,
        }
        if self.coin != CoinName::default() {
            write!(f, "{COIN}{}", name(self.coin))?;
        }
        if let Some(auth) = self.auth {
            write!(f, "{AUTH}{}", name(auth))?;
        }
        f.write_str(if self.joined { JOINED } else { "" })
    }
}

impl Contender {
    /// The same, with that coin.
    pub(super) fn tossing(self, coin: CoinName) -> Result<Self, String> {
        if coin == CoinName::Common && !self.protocol.has_ritas() {
            return Err(format!("only ritas and backup(ritas) toss coins, and not {}", self.protocol));
        }
        Ok(Self { coin, ..self })
    }

    /// The same, with clients that join.
    pub(super) fn joined(self) -> Result<Self, String> {
        if !self.protocol.is_one_order() {
            return Err(format!("clients join under pbft and aardvark only, and not under {}", self.protocol));
        }
        Ok(Self { joined: true, ..self })
    }
}

/// A name or a schedule, in brackets or not, and perhaps `:k=N`, `:k=2^i` or `:k=N*2^i`; then perhaps `:coin=` and what
/// replicas toss, `:auth=` and how clients prove who they are, and `:joined`, in this order.
pub(super) fn parse(text: &str) -> Result<Contender, String> {
    if let Some(text) = text.strip_suffix(JOINED) {
        return parse(text)?.joined();
    }
    if let Some((text, auth)) = text.rsplit_once(AUTH) {
        return Ok(Contender { auth: Some(AuthName::from_str(auth, false)?), ..parse(text)? });
    }
    if let Some((text, coin)) = text.rsplit_once(COIN) {
        return parse(text)?.tossing(CoinName::from_str(coin, false)?);
    }
    let (protocol, quota) = match text.rsplit_once(QUOTA) {
        Some((protocol, quota)) => (protocol, Some(parse_quota(quota)?)),
        None => (text, None),
    };
    let protocol = protocol.trim();
    let bare = protocol.strip_prefix('[').and_then(|rest| rest.strip_suffix(']'));
    let protocol = parse_protocol(bare.unwrap_or(protocol))?;
    Ok(Contender { quota, ..protocol.into() })
}

fn parse_quota(text: &str) -> Result<Quota, String> {
    let number = |text: &str| match text.parse() {
        Ok(k @ 1..) => Ok(k),
        _ => Err("k is a number such as 256, `2^i`, or a number times that, such as `256*2^i`".to_owned()),
    };
    match text.strip_suffix(DOUBLING) {
        None => number(text).map(Quota::Fixed),
        Some("") => Ok(Quota::Exponential { minimum: 1 }),
        Some(minimum) => number(minimum.strip_suffix('*').unwrap_or("")).map(|minimum| Quota::Exponential { minimum }),
    }
}

/// Several, from one word of the command line.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Contenders(pub(super) Vec<Contender>);

/// With commas between them; a schedule with several parts is in brackets.
pub(super) fn parse_list(text: &str) -> Result<Contenders, String> {
    let (mut depth, mut list, mut from) = (0_i32, Vec::new(), 0);
    for (at, letter) in text.char_indices() {
        match letter {
            '[' => depth += 1,
            ']' => depth -= 1,
            ',' if depth == 0 => {
                list.push(parse(&text[from..at])?);
                from = at + 1;
            }
            _ => {}
        }
    }
    list.push(parse(&text[from..])?);
    Ok(Contenders(list))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_shown_can_be_typed() {
        let text = "pbft,[zlight, chain, backup(pbft)],aliph:k=1,aliph:k=2^i,[chain, backup(pbft)]:k=256*2^i,\
            pbft:auth=signature:joined,aliph:k=1:auth=mac,ritas:coin=common:auth=mac";
        let Contenders(list) = parse_list(text).unwrap();
        assert_eq!(list.len(), 8);
        assert_eq!(list.iter().map(ToString::to_string).collect::<Vec<_>>().join(","), text);
        assert_eq!(list[2], Contender { quota: Some(Quota::Fixed(1)), ..Protocol::Aliph.into() });
        assert_eq!(list[3].quota, Some(Quota::Exponential { minimum: 1 }));
    }

    #[test]
    fn what_makes_no_sense_is_refused() {
        assert!(parse_list("pbft,,aliph").is_err());
        let without_brackets = parse_list("pbft,zlight, chain, backup(pbft)");
        assert_eq!(without_brackets.map(|Contenders(list)| list.len()), Ok(4), "each is one of its own");
        for quota in ["0", "x", "x*2^i", "22^i", "3*"] {
            assert!(parse(&format!("aliph:k={quota}")).is_err(), "{quota}");
        }
        assert!(parse("pbft:auth=password").is_err());
        assert!(parse("ritas:coin=edge").is_err());
        assert!(parse("pbft:coin=common").unwrap_err().contains("only ritas"));
        assert!(parse("aliph:joined").unwrap_err().contains("under pbft and aardvark only"));
        assert!(parse("[quorum, chain]").unwrap_err().contains("backup(pbft)"));
    }
}
