//! `docs/coverage.md` names every message, every record of the log and every collection in the core, and nothing else:
//! whoever adds one says what covers it, or who can make it grow and up to what.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

/// What is said by variants of these travels, or is kept in the log.
const MESSAGES: [&str; 10] = [
    "Message",
    "PbftMessage",
    "TransferMessage",
    "SwitchMessage",
    "ResilientMessage",
    "PaceMessage",
    "CookieMessage",
    "RitasMessage",
    "Speech",
    "Statement",
];
const RECORDS: [&str; 5] = ["InstanceRecord", "HistoryRecord", "PbftRecord", "RitasRecord", "ResilientRecord"];
/// Parts of messages, in whose rows they are.
const PARTS: [&str; 3] = ["Entry", "Ruling", "Word"];
/// Whatever may hold more than one thing.
const COLLECTIONS: [&str; 5] = ["BTreeMap<", "BTreeSet<", "VecDeque<", "Vec<", "Tree"];

/// The source of a file without its tests, and its path below `src`.
struct Source {
    path: String,
    text: String,
}

fn sources() -> Vec<Source> {
    fn walk(folder: &Path, root: &Path, found: &mut Vec<Source>) {
        for entry in std::fs::read_dir(folder).unwrap() {
            let path = entry.unwrap().path();
            let name = path.strip_prefix(root).unwrap().display().to_string();
            if path.is_dir() {
                if !name.ends_with("tests") && name != "testing" {
                    walk(&path, root, found);
                }
            } else if name.ends_with(".rs") && !name.ends_with("tests.rs") {
                let text = std::fs::read_to_string(&path).unwrap();
                let text = text.split("#[cfg(test)]\nmod tests {").next().unwrap_or_default().to_string();
                found.push(Source { path: name.trim_start_matches("protocols/").to_string(), text });
            }
        }
    }
    let root = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("src");
    let mut found = Vec::new();
    walk(&root, &root, &mut found);
    found
}

/// The lines between one that begins an item and the brace that ends it.
fn body_of<'a>(text: &'a str, begins: &str) -> Option<Vec<&'a str>> {
    let mut lines = text.lines().skip_while(|line| !line.starts_with(begins));
    lines.next()?;
    Some(lines.take_while(|line| *line != "}").collect())
}

/// `Enum::Variant` of each variant.
fn variants(sources: &[Source], names: &[&str]) -> BTreeSet<String> {
    let mut found = BTreeSet::new();
    for name in names {
        // The one that is made of a table of its rows.
        let begins = if *name == "Message" { "messages! {".to_string() } else { format!("pub enum {name} {{") };
        let body = sources.iter().find_map(|source| body_of(&source.text, &begins));
        let body = body.unwrap_or_else(|| panic!("{name} is an enum of the core"));
        // What exists in tests only travels nowhere.
        let shipped = body.iter().enumerate().filter(|(at, _)| *at == 0 || body[at - 1].trim() != "#[cfg(test)]");
        for (_, line) in shipped {
            let line = line.trim_start_matches(|c: char| c.is_numeric() || " =>".contains(c));
            let variant: String = line.chars().take_while(|c| c.is_alphanumeric()).collect();
            if variant.starts_with(char::is_uppercase) {
                found.insert(format!("`{name}::{variant}`"));
            }
        }
    }
    found
}

/// The fields of a struct that hold more than one thing, if the line begins one.
fn fields_of(text: &str, line: &str) -> Vec<String> {
    let is_collection = |of: &str| COLLECTIONS.iter().any(|name| of.contains(name)) && !of.contains("&'a mut");
    let declared = line.strip_prefix("pub").unwrap_or(line);
    let declared =
        if declared.starts_with('(') { declared.split_once(") ").map_or("", |(_, rest)| rest) } else { declared };
    let Some(rest) = declared.trim_start().strip_prefix("struct ") else { return Vec::new() };
    let name: String = rest.chars().take_while(|c| c.is_alphanumeric()).collect();
    let travels = [format!("wire_struct!({name} "), format!("Wire for {name} "), format!("Wire for {name}<")];
    if travels.iter().any(|mark| text.contains(mark.as_str())) {
        return Vec::new();
    }
    if !line.ends_with('{') {
        return if is_collection(line) { vec![format!("{name}.0")] } else { Vec::new() };
    }
    let fields = body_of(text, line).unwrap_or_default().into_iter().filter_map(|line| {
        let line = line.strip_prefix("    ").filter(|line| !line.starts_with([' ', '/', '#']))?;
        let (field, of) = line.split_once(": ")?;
        is_collection(of).then(|| format!("{name}.{}", field.rsplit(' ').next().unwrap_or(field)))
    });
    fields.collect()
}

fn collections(sources: &[Source]) -> BTreeSet<String> {
    let mut found = BTreeSet::new();
    for Source { path, text } in sources {
        for field in text.lines().flat_map(|line| fields_of(text, line)) {
            found.insert(format!("`{path}` `{field}`"));
        }
    }
    found
}

/// The first cells of the tables below a heading.
fn named(page: &str, heading: &str) -> BTreeSet<String> {
    let section = page.split(&format!("\n## {heading}\n")).nth(1).unwrap_or_else(|| panic!("a section {heading}"));
    let section = section.split("\n## ").next().unwrap_or_default();
    let rows = section.lines().filter_map(|line| line.strip_prefix("| "));
    rows.map(|row| row.split(" |").next().unwrap_or_default().to_string())
        .filter(|cell| cell.starts_with('`'))
        .collect()
}

fn compare(page: &str, heading: &str, in_source: &BTreeSet<String>) {
    let in_page = named(page, heading);
    let missing: Vec<_> = in_source.difference(&in_page).collect();
    let stale: Vec<_> = in_page.difference(in_source).collect();
    assert!(
        missing.is_empty() && stale.is_empty(),
        "docs/coverage.md, {heading}: missing {missing:#?}, stale {stale:#?}"
    );
}

fn page() -> String {
    std::fs::read_to_string(concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/coverage.md")).unwrap()
}

#[test]
fn the_page_names_every_message_and_every_record() {
    let (sources, page) = (sources(), page());
    compare(&page, "Messages", &variants(&sources, &MESSAGES));
    compare(&page, "Records", &variants(&sources, &RECORDS));
    for source in &sources {
        for name in source.text.split("wire_enum!(").skip(1).filter_map(|rest| rest.split(' ').next()) {
            let is_known = [&MESSAGES[..], &RECORDS, &PARTS].concat().contains(&name) || name.starts_with("$");
            assert!(is_known || source.path == "wire.rs", "{name} in {}: a message, a record or a part?", source.path);
        }
    }
}

#[test]
fn the_page_names_every_collection() {
    let found = collections(&sources());
    assert!(found.len() > 100, "the source is read as it is written");
    compare(&page(), "Collections", &found);
}
