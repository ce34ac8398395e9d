//! Whom a replica reads last and little, in words. It says so itself, and may be the one that lies.

use super::state::words;
use serde_json::Value;

/// Quarantines of each replica that are shown; the others are counted.
const SHOWN_MAX: usize = 4;
/// Characters of a key that are shown.
const KEY_SHOWN: usize = 8;

/// A line for each, by a replica with this account.
pub(super) fn told(by: u8, account: &Value) -> String {
    let all = account["quarantined"].as_array().map_or(&[][..], Vec::as_slice);
    let mut text: String = all.iter().take(SHOWN_MAX).map(|quarantine| line(by, quarantine)).collect();
    if let Some(more @ 1..) = all.len().checked_sub(SHOWN_MAX) {
        text += &format!("Replica {by} holds {more} more in quarantine.\n");
    }
    text
}

fn line(by: u8, quarantine: &Value) -> String {
    let number = |name| quarantine[name].as_u64();
    let whom = match (number("replica"), number("client"), quarantine["key"].as_str()) {
        (Some(replica), ..) => format!("replica {replica}"),
        (_, Some(client), _) => format!("client {client}"),
        (.., Some(key)) => format!("the client {}", words(&key.chars().take(KEY_SHOWN).collect::<String>())),
        (None, None, None) => "all clients that nobody knows".to_owned(),
    };
    let seconds = number("for_ms").unwrap_or(0) / 1_000;
    let why = words(quarantine["text"].as_str().unwrap_or("it does not say why"));
    format!("Replica {by} has held {whom} in quarantine for {seconds} s: {why}.\n")
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn it_is_told_who_holds_whom_and_why() {
        let of = |replica: Option<u8>, client: Option<u8>, key: Option<&str>| {
            json!({ "replica": replica, "client": client, "key": key, "for_ms": 12_345, "cause": "flood",
                "text": "too\u{1b}much" })
        };
        let key = "0123456789abcdef";
        let all = [of(Some(3), None, None), of(None, Some(7), None), of(None, None, Some(key)), of(None, None, None)];
        let text = told(1, &json!({ "quarantined": all }));
        assert!(text.starts_with("Replica 1 has held replica 3 in quarantine for 12 s: too"), "{text}");
        for whom in ["client 7", "the client 01234567", "all clients that nobody knows"] {
            assert!(text.contains(&format!("held {whom} in quarantine")), "{text}");
        }
        assert_eq!(text.lines().count(), 4);
        assert!(!text.contains('\u{1b}'), "a liar does not write to the terminal");
        let many = told(1, &json!({ "quarantined": vec![of(Some(3), None, None); 9] }));
        assert!(many.ends_with("Replica 1 holds 5 more in quarantine.\n"));
        assert_eq!(told(1, &json!({})), "");
    }
}
