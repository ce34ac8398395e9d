//! `SET` and `SHOW`: what clients expect to be able to ask and say. Few of the settings mean anything here.

use crate::error::{PgError, sqlstate};
use crate::link::{Link, Provenance};
use std::collections::BTreeMap;

/// The version that clients are told: one whose catalog and words they know.
pub const SERVER_VERSION: &str = "15.0";
/// As `SHOW` and messages name the one database and its owner.
pub const DATABASE: &str = "bezant";

/// Settings that a connection may have changed or invented.
const CHANGED_MAX: usize = 128;
/// The longest value, in bytes.
const VALUE_BYTES_MAX: usize = 4_096;

/// The setting that every transaction begins with.
pub(crate) const READ_ONLY_BY_DEFAULT: &str = "default_transaction_read_only";

/// Settings and what they are if nobody changes them.
pub(crate) const DEFAULTS: &[(&str, &str)] = &[
    ("application_name", ""),
    ("bezant.provenance", "off"),
    ("bytea_output", "hex"),
    ("client_encoding", "UTF8"),
    ("client_min_messages", "notice"),
    ("DateStyle", "ISO, MDY"),
    ("default_transaction_isolation", "serializable"),
    (READ_ONLY_BY_DEFAULT, "off"),
    ("extra_float_digits", "1"),
    ("in_hot_standby", "off"),
    ("integer_datetimes", "on"),
    ("IntervalStyle", "postgres"),
    ("is_superuser", "off"),
    ("lock_timeout", "0"),
    ("max_identifier_length", "63"),
    ("max_index_keys", "32"),
    ("search_path", "public"),
    ("server_encoding", "UTF8"),
    ("server_version", SERVER_VERSION),
    ("server_version_num", "150000"),
    ("session_authorization", DATABASE),
    ("standard_conforming_strings", "on"),
    ("statement_timeout", "0"),
    ("TimeZone", "UTC"),
    ("transaction_isolation", "serializable"),
    ("transaction_read_only", "off"),
];

/// Those that a client is told when it connects and when they change.
pub(crate) const REPORTED: &[&str] = &[
    "application_name",
    "client_encoding",
    "DateStyle",
    READ_ONLY_BY_DEFAULT,
    "in_hot_standby",
    "integer_datetimes",
    "IntervalStyle",
    "is_superuser",
    "server_encoding",
    "server_version",
    "session_authorization",
    "standard_conforming_strings",
    "TimeZone",
];

/// Those that are as they are.
const FIXED: &[&str] = &[
    "bezant.sequence",
    "bezant.replicas",
    "client_encoding",
    "integer_datetimes",
    "is_superuser",
    "max_identifier_length",
    "max_index_keys",
    "server_encoding",
    "server_version",
    "server_version_num",
    "standard_conforming_strings",
];

/// The settings of one connection.
#[derive(Debug)]
pub(crate) struct Settings {
    changed: BTreeMap<String, String>,
    meant: Meant,
}

/// What every statement looks at, kept ready.
#[derive(Debug)]
struct Meant {
    zone: String,
    offset: i32,
    is_read_only: bool,
    shows_provenance: bool,
}

impl Default for Settings {
    fn default() -> Self {
        let changed = BTreeMap::new();
        let meant = Meant::of(&changed);
        Self { changed, meant }
    }
}

impl Meant {
    fn of(changed: &BTreeMap<String, String>) -> Self {
        let is = |name: &str| value(changed, name).unwrap_or_default();
        let zone = zone(is("timezone")).unwrap_or_else(|_| "UTC".into());
        Self {
            offset: offset(&zone),
            zone,
            is_read_only: is(READ_ONLY_BY_DEFAULT) == "on",
            shows_provenance: matches!(is("bezant.provenance"), "on" | "true" | "1"),
        }
    }
}

/// The value of a setting; `None`: there is no such setting.
fn value<'a>(changed: &'a BTreeMap<String, String>, name: &str) -> Option<&'a str> {
    let default = || DEFAULTS.iter().find(|(known, _)| known.eq_ignore_ascii_case(name)).map(|(_, value)| *value);
    changed.get(&name.to_ascii_lowercase()).map(String::as_str).or_else(default)
}

/// By how many seconds the clocks of a time zone, as [`zone`] says it, are before those of UTC.
fn offset(zone: &str) -> i32 {
    let Some((hours, minutes)) = zone.split_once(':') else { return 0 };
    let seconds = |text: &str, each: i32| text.trim_start_matches(['+', '-']).parse().unwrap_or(0) * each;
    let offset = seconds(hours, 3_600) + seconds(minutes, 60);
    if zone.starts_with('-') { -offset } else { offset }
}

impl Settings {
    /// The value of a setting; `None`: there is no such setting.
    pub(crate) fn get(&self, name: &str) -> Option<&str> {
        value(&self.changed, name)
    }

    /// Whether answers come with a notice about who vouched for them.
    pub(crate) const fn shows_provenance(&self) -> bool {
        self.meant.shows_provenance
    }

    /// Changes a setting.
    ///
    /// # Errors
    /// If it is as it is, or the value is too long, or there are too many.
    pub(crate) fn set(&mut self, name: &str, value: &str) -> Result<(), PgError> {
        let name = name.to_ascii_lowercase();
        if FIXED.contains(&name.as_str()) {
            return self.keep(&name, value);
        }
        if value.len() > VALUE_BYTES_MAX || name.len() > VALUE_BYTES_MAX {
            return Err(PgError::new(sqlstate::LIMIT, "the value of a setting is too long"));
        }
        if !self.changed.contains_key(&name) && self.changed.len() >= CHANGED_MAX {
            return Err(PgError::new(sqlstate::LIMIT, "too many settings"));
        }
        if value.eq_ignore_ascii_case("default") {
            self.changed.remove(&name);
        } else if name == "timezone" {
            zone(value)?;
            self.changed.insert(name, value.into());
        } else if name == READ_ONLY_BY_DEFAULT {
            let value = on_or_off(boolean(&name, value)?);
            self.changed.insert(name, value.into());
        } else {
            self.changed.insert(name, value.into());
        }
        self.meant = Meant::of(&self.changed);
        Ok(())
    }

    /// The time zone, as the replicas take it.
    pub(crate) fn zone(&self) -> &str {
        &self.meant.zone
    }

    /// By how many seconds the clocks of the time zone are before those of UTC.
    pub(crate) const fn offset(&self) -> i32 {
        self.meant.offset
    }

    /// Whether transactions only read unless they say otherwise.
    pub(crate) const fn is_read_only(&self) -> bool {
        self.meant.is_read_only
    }

    /// A setting that does not change may be set to what it is.
    fn keep(&self, name: &str, value: &str) -> Result<(), PgError> {
        let plain = |text: &str| text.replace(['-', '_', ' '], "").to_ascii_lowercase();
        let is = plain(self.get(name).unwrap_or_default());
        let same = match plain(value).as_str() {
            "default" => true,
            "unicode" | "utf8" | "'utf8'" => is == "utf8",
            "true" | "1" | "yes" => is == "on",
            other => is == other,
        };
        if same {
            return Ok(());
        }
        let text = format!("parameter \"{name}\" cannot be changed");
        Err(PgError::new("55P02", text).hint(format!("it is \"{}\"", self.get(name).unwrap_or_default())))
    }

    /// Takes changes back.
    pub(crate) fn reset(&mut self, name: Option<&str>) {
        match name {
            Some(name) => _ = self.changed.remove(&name.to_ascii_lowercase()),
            None => self.changed.clear(),
        }
        self.meant = Meant::of(&self.changed);
    }

    /// What SHOW shows: the heading and the lines.
    ///
    /// # Errors
    /// If there is no such setting.
    pub(crate) fn show(&self, name: &str, link: &Link) -> Result<String, PgError> {
        match name {
            "bezant.sequence" => Ok(link.last().map_or_else(|| "0".into(), |last| last.sequence.to_string())),
            "bezant.replicas" => Ok(link.last().map_or_else(String::new, Provenance::replicas)),
            _ => {
                let text = || format!("unrecognized configuration parameter \"{name}\"");
                self.get(name).map(Into::into).ok_or_else(|| PgError::new(sqlstate::NO_SETTING, text()))
            }
        }
    }
}

/// A time zone as the replicas take it: `UTC`, or how far its clocks are before UTC's, as in `+02:00`.
///
/// A number says that as one would think. With minutes or a name it is POSIX's form, which counts the other way:
/// `-02:00` and `<+02>-02` are both `+02:00`, in PostgreSQL as well.
///
/// # Errors
/// If it has another name: nobody here knows when its clocks change.
pub(crate) fn zone(text: &str) -> Result<String, PgError> {
    const UTC: [&str; 9] = ["utc", "gmt", "z", "zulu", "uct", "universal", "etc/utc", "etc/gmt", "greenwich"];
    let text = text.trim();
    if UTC.contains(&text.to_ascii_lowercase().as_str()) {
        return Ok("UTC".into());
    }
    let unknown = || {
        PgError::new(sqlstate::BAD_SETTING, format!("invalid value for parameter \"TimeZone\": \"{text}\""))
            .hint("only UTC and fixed offsets such as <+02>-02 are known here")
    };
    let name = match text.strip_prefix('<') {
        Some(rest) => rest.find('>').map_or(text.len(), |at| at + 2),
        None => text.find(|c: char| !c.is_ascii_alphabetic()).unwrap_or(text.len()),
    };
    let (name, offset) = text.split_at(name);
    let is_posix = !name.is_empty() || offset.contains(':');
    let (is_negative, rest) = match offset.strip_prefix(['+', '-']) {
        Some(rest) => (offset.starts_with('-'), rest),
        None => (false, offset),
    };
    let (hours, minutes) = rest.split_once(':').unwrap_or((rest, "0"));
    let number = |text: &str, max: u32| {
        let is_short = (1..=2).contains(&text.len()) && text.bytes().all(|byte| byte.is_ascii_digit());
        text.parse::<u32>().ok().filter(|number| is_short && *number <= max)
    };
    let (hours, minutes) = number(hours, 15).zip(number(minutes, 59)).ok_or_else(unknown)?;
    let sign = if is_negative == is_posix { '+' } else { '-' };
    Ok(if hours + minutes == 0 { "UTC".into() } else { format!("{sign}{hours:02}:{minutes:02}") })
}

/// Settings on the command line of a client: `-c name=value`, `-cname=value` or `--name=value`.
pub(crate) fn options(text: &str) -> impl Iterator<Item = (&str, &str)> {
    let words = text.split_whitespace();
    let named = words.filter_map(|word| word.trim_start_matches("--").trim_start_matches("-c").split_once('='));
    named.filter(|(name, _)| !name.is_empty())
}

/// A boolean as settings say it.
pub(crate) const fn on_or_off(is: bool) -> &'static str {
    if is { "on" } else { "off" }
}

/// What PostgreSQL takes for a boolean: the beginning of a word that is no other's.
///
/// # Errors
/// If it is none.
pub(crate) fn boolean(name: &str, value: &str) -> Result<bool, PgError> {
    const WORDS: [(&str, usize, bool); 8] = [
        ("true", 1, true),
        ("yes", 1, true),
        ("on", 2, true),
        ("1", 1, true),
        ("false", 1, false),
        ("no", 1, false),
        ("off", 2, false),
        ("0", 1, false),
    ];
    let value = value.to_ascii_lowercase();
    let word = WORDS.iter().find(|(word, least, _)| value.len() >= *least && word.starts_with(&value));
    let none = || PgError::new(sqlstate::BAD_SETTING, format!("parameter \"{name}\" requires a Boolean value"));
    word.map(|(.., is)| *is).ok_or_else(none)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn settings_are_what_they_were_set_to() {
        let mut settings = Settings::default();
        assert_eq!(settings.get("datestyle"), Some("ISO, MDY"));
        settings.set("Application_Name", "x").unwrap();
        assert_eq!(settings.get("application_name"), Some("x"));
        settings.set("my.own", "1").unwrap();
        settings.reset(None);
        assert_eq!(settings.get("my.own"), None);
        assert_eq!(settings.get("application_name"), Some(""));
        assert!(!settings.shows_provenance());
        settings.set("bezant.provenance", "on").unwrap();
        assert!(settings.shows_provenance());
    }

    #[test]
    fn what_is_fixed_may_be_set_to_what_it_is() {
        let mut settings = Settings::default();
        for (name, value) in [("client_encoding", "utf-8"), ("standard_conforming_strings", "on")] {
            settings.set(name, value).unwrap();
        }
        for (name, value) in
            [("client_encoding", "latin1"), ("standard_conforming_strings", "off"), ("server_version", "9")]
        {
            assert_eq!(settings.set(name, value).unwrap_err().sqlstate, "55P02");
        }
    }

    /// As PostgreSQL 15 takes them.
    #[test]
    fn time_zones_are_utc_or_fixed_offsets() {
        for (text, wanted) in [
            ("Etc/UTC", "UTC"),
            ("2", "+02:00"),
            ("-3", "-03:00"),
            ("+02:00", "-02:00"),
            ("-05:30", "+05:30"),
            ("<+02>-02", "+02:00"),
            ("GMT-02:00", "+02:00"),
            ("0", "UTC"),
        ] {
            assert_eq!(zone(text).as_deref(), Ok(wanted), "{text}");
        }
        for text in ["Europe/Berlin", "", "<", "+2:", "99", "CET", "+-2", "é"] {
            assert_eq!(zone(text).unwrap_err().sqlstate, "22023", "{text}");
        }
        let mut settings = Settings::default();
        settings.set("TimeZone", "-05:30").unwrap();
        assert_eq!((settings.get("timezone"), settings.zone()), (Some("-05:30"), "+05:30"));
        assert_eq!(settings.offset(), 5 * 3_600 + 30 * 60);
        assert_eq!(settings.set("timezone", "Europe/Berlin").unwrap_err().sqlstate, "22023");
        settings.reset(Some("timezone"));
        assert_eq!(settings.zone(), "UTC");
    }

    #[test]
    fn options_are_settings() {
        let found: Vec<_> = options("-c default_transaction_read_only=on --a.b=1 -cdatestyle=ISO -x =").collect();
        assert_eq!(found, [("default_transaction_read_only", "on"), ("a.b", "1"), ("datestyle", "ISO")]);
    }

    #[test]
    fn booleans_are_words_or_their_beginnings() {
        for (value, is) in [("ON", true), ("t", true), ("Yes", true), ("1", true), ("of", false), ("n", false)] {
            assert_eq!(boolean("x", value), Ok(is), "{value}");
        }
        for value in ["", "o", "maybe", "trueish", "2"] {
            assert_eq!(boolean("x", value).unwrap_err().sqlstate, "22023", "{value}");
        }
    }

    #[test]
    fn memory_is_bounded() {
        let mut settings = Settings::default();
        assert!(settings.set("a", &"x".repeat(VALUE_BYTES_MAX + 1)).is_err());
        let all: Result<Vec<()>, _> = (0..=CHANGED_MAX).map(|n| settings.set(&format!("a.{n}"), "x")).collect();
        assert!(all.is_err());
    }
}
