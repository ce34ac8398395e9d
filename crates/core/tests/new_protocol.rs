//! `docs/new-protocol.md` names every place outside its own room that a new protocol touches. The protocol that shows
//! them is `protocols/sample.rs`, which exists in tests only: what it needs elsewhere stands behind `#[cfg(test)]`.

use std::collections::BTreeMap;
use std::path::Path;

/// How often the sample is named in each file of the core, but for its own and for tests.
fn places() -> BTreeMap<String, usize> {
    fn walk(folder: &Path, root: &Path, found: &mut BTreeMap<String, usize>) {
        for entry in std::fs::read_dir(folder).unwrap() {
            let path = entry.unwrap().path();
            let name = path.strip_prefix(root).unwrap().display().to_string();
            if path.is_dir() {
                if !name.ends_with("tests") {
                    walk(&path, root, found);
                }
            } else if name.ends_with(".rs") && name != "protocols/sample.rs" {
                let text = std::fs::read_to_string(&path).unwrap();
                let lines: Vec<_> = text.lines().map(str::trim).collect();
                let names = |pair: &&[&str]| pair[0] == "#[cfg(test)]" && pair[1].to_lowercase().contains("sample");
                let number = lines.windows(2).filter(names).count();
                if number > 0 {
                    found.insert(name, number);
                }
            }
        }
    }
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("src");
    let mut found = BTreeMap::new();
    walk(&root, &root, &mut found);
    found
}

#[test]
fn the_page_names_every_place() {
    let page = std::fs::read_to_string(concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/new-protocol.md")).unwrap();
    let rows = page.lines().filter_map(|line| line.strip_prefix("| `"));
    let named: BTreeMap<String, usize> = rows
        .filter_map(|row| {
            let (file, rest) = row.split_once("` | ")?;
            Some((file.to_string(), rest.split(' ').next()?.parse().ok()?))
        })
        .collect();
    assert_eq!(named, places(), "docs/new-protocol.md on the left, the code on the right");
}
