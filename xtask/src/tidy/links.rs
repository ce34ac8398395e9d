//! Documents that point somewhere must point at something, and a page that no index names is not found.

use crate::files::Files;
use crate::finding::Finding;
use crate::process;
use std::collections::BTreeMap;

/// Checks all links and mentions.
pub(super) fn check(files: &Files) -> Vec<Finding> {
    let mut findings = mentions(files);
    for (path, text) in files.iter().filter(|(path, _)| path.ends_with(".md")) {
        for (line, target) in links(text) {
            if let Some(what) = broken(path, &target, files) {
                findings.push(Finding::new(path, line, what));
            }
        }
    }
    findings.extend(unindexed(files));
    findings
}

/// The lines of a document outside of code blocks, with code spans blanked out; lines count from 1.
pub(super) fn prose(text: &str) -> impl Iterator<Item = (usize, String)> {
    let mut fenced = false;
    text.lines().enumerate().filter_map(move |(index, line)| {
        let fence = line.trim_start().starts_with("```");
        fenced ^= fence;
        let spans = line.split('`').enumerate();
        let plain = spans.map(|(odd, part)| if odd % 2 == 0 { part } else { "code" });
        (!fenced && !fence).then(|| (index + 1, plain.collect()))
    })
}

/// Every target of an inline link or a link definition.
fn links(text: &str) -> Vec<(usize, String)> {
    let mut found = Vec::new();
    for (number, line) in prose(text) {
        for (at, _) in line.match_indices("](") {
            let target = line[at + 2..].split([')', ' ']).next().unwrap_or_default();
            found.push((number, target.to_string()));
        }
        if line.starts_with('[')
            && let Some((_, target)) = line.split_once("]: ")
        {
            found.push((number, target.trim().to_string()));
        }
    }
    found
}

/// What is wrong with a link, if anything is. Addresses elsewhere are not visited.
fn broken(from: &str, target: &str, files: &Files) -> Option<String> {
    if target.contains("://") || target.starts_with("mailto:") {
        return None;
    }
    let (path, anchor) = target.split_once('#').unwrap_or((target, ""));
    let path = if path.is_empty() { from.to_string() } else { resolve(from, path) };
    if !exists(&path, files) {
        return Some(format!("link to `{path}`, which does not exist"));
    }
    let headings = files.get(&path).filter(|_| path.ends_with(".md")).map(|text| anchors(text))?;
    (!anchor.is_empty() && !headings.contains_key(anchor))
        .then(|| format!("link to `#{anchor}`, but `{path}` has no such heading"))
}

fn exists(path: &str, files: &Files) -> bool {
    files.contains_key(path)
        || files.keys().any(|file| file.strip_prefix(path).is_some_and(|rest| path.is_empty() || rest.starts_with('/')))
        || (!path.contains("..") && process::root().join(path).is_file())
}

/// A path that is relative to a file's folder, from the root.
fn resolve(from: &str, path: &str) -> String {
    let mut parts: Vec<&str> = from.split('/').collect();
    parts.pop();
    for part in path.split('/') {
        match part {
            "" | "." => {}
            ".." if parts.last().is_some_and(|last| *last != "..") => _ = parts.pop(),
            _ => parts.push(part),
        }
    }
    parts.join("/")
}

/// The anchors of a document's headings, as the usual renderers make them.
fn anchors(text: &str) -> BTreeMap<String, usize> {
    let mut seen = BTreeMap::new();
    let mut fenced = false;
    for line in text.lines() {
        fenced ^= line.starts_with("```");
        let title = line.trim_start_matches('#');
        if fenced || title.len() == line.len() || !title.starts_with(' ') {
            continue;
        }
        let kept = title.trim().chars().filter(|c| c.is_alphanumeric() || matches!(c, ' ' | '-' | '_'));
        let slug = kept.collect::<String>().to_lowercase().replace(' ', "-");
        let count: usize = *seen.get(&slug).unwrap_or(&0);
        let unique = if count == 0 { slug.clone() } else { format!("{slug}-{count}") };
        seen.insert(slug, count + 1);
        seen.entry(unique).or_insert(1);
    }
    seen
}

/// Pages that a comment of a program names, or a document under their path from the root.
fn mentions(files: &Files) -> Vec<Finding> {
    let mut findings = Vec::new();
    for (path, text) in files {
        let document = path.ends_with(".md");
        if !document && !path.ends_with(".rs") {
            continue;
        }
        for (index, line) in text.lines().enumerate() {
            if !document && !line.trim_start().starts_with("//") {
                continue;
            }
            // What a document links was checked before.
            let shown = line.replace("](", "](./");
            let pages = shown.split(|c: char| !c.is_alphanumeric() && !"/-_.".contains(c));
            let pages = pages.map(|page| page.trim_end_matches('.'));
            let from_root = |page: &&str| match page.rsplit_once('.') {
                Some((_, "md")) => page.starts_with("docs/") || (!document && page.contains('/')),
                Some((_, "rs")) => document && (page.starts_with("crates/") || page.starts_with("xtask/")),
                _ => false,
            };
            for page in pages.filter(from_root).filter(|page| !files.contains_key(*page)) {
                findings.push(Finding::new(path, index + 1, format!("mentions `{page}`, which does not exist")));
            }
        }
    }
    findings
}

/// Pages under `docs/` that the README of their folder does not link.
fn unindexed(files: &Files) -> Vec<Finding> {
    let pages = files.keys().filter(|path| path.starts_with("docs/") && path.ends_with(".md"));
    pages
        .filter_map(|page| {
            let (folder, name) = page.rsplit_once('/')?;
            let index = format!("{folder}/README.md");
            let listed = files.get(&index).is_some_and(|text| links(text).iter().any(|(_, target)| target == name));
            (name != "README.md" && !listed)
                .then(|| Finding::new(page, 1, format!("`{index}` does not link this page")))
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn documents(texts: &[(&str, &str)]) -> Files {
        texts.iter().map(|(path, text)| ((*path).into(), (*text).into())).collect()
    }

    #[test]
    fn links_to_nowhere_are_found() {
        let files = documents(&[
            ("A.md", "[b](sub/b.md#two-words) [c](c.md) [w](https://example.invalid) `[d](d.md)`\n[e]: e.md\n"),
            ("sub/b.md", "# Two `words`\n[up](../A.md) [here](#two-words) [there](#three) [root](../sub)\n"),
        ]);
        let found: Vec<_> = check(&files).into_iter().map(|finding| (finding.path, finding.line)).collect();
        let expected = [("A.md", 1), ("A.md", 2), ("sub/b.md", 2)];
        assert_eq!(found, expected.map(|(path, line)| (path.to_string(), line)));
    }

    #[test]
    fn equal_headings_have_numbered_anchors() {
        let found = anchors("# A b\n## A b\n```\n# not one\n```\n#nor this\n");
        assert_eq!(found.keys().collect::<Vec<_>>(), ["a-b", "a-b-1"]);
    }

    #[test]
    fn mentions_of_missing_pages_are_found() {
        let files = documents(&[
            ("a.rs", "//! See `docs/gone.md`.\nlet page = \"docs/gone.md\";\n    // Or notes/gone.md, not gone.md.\n"),
            ("A.md", "As docs/gone.md says, and sub/gone.md does not.\n"),
            ("B.md", "It is in `crates/gone.rs`, not in `gone.rs`.\n"),
        ]);
        assert_eq!(check(&files).len(), 4);
    }

    #[test]
    fn pages_that_no_index_links_are_found() {
        let index = ("docs/README.md", "[a](a.md)\n");
        let files = documents(&[index, ("docs/a.md", ""), ("docs/b.md", "")]);
        let found = check(&files);
        assert_eq!(found.len(), 1);
        assert_eq!(found[0].path, "docs/b.md");
    }
}
