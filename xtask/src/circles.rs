//! Circles of files: files of one package that import each other, straight or through others. None of them can be read,
//! tested or moved without the rest.

use crate::finding::Finding;
use crate::imports::{Imports, Names};
use std::collections::{BTreeMap, BTreeSet};

/// The files of a circle.
pub(crate) type Circle = BTreeSet<String>;

/// Every circle, the largest first.
pub(crate) fn of(imports: &Imports) -> Vec<Circle> {
    let reached: BTreeMap<&str, BTreeSet<&str>> =
        imports.files.iter().map(|file| (file.as_str(), reachable(imports, file))).collect();
    let mut circles = BTreeSet::new();
    for (file, others) in &reached {
        let back = others.iter().filter(|other| reached[**other].contains(file));
        let circle: Circle = back.map(ToString::to_string).collect();
        if circle.len() > 1 {
            circles.insert(circle);
        }
    }
    let mut circles: Vec<Circle> = circles.into_iter().collect();
    circles.sort_by_key(|circle| std::cmp::Reverse(circle.len()));
    circles
}

/// What a file imports, and what that imports, and so on.
fn reachable<'a>(imports: &'a Imports, from: &str) -> BTreeSet<&'a str> {
    let mut reached = BTreeSet::new();
    let mut open: Vec<&str> = imports.of(from).map(|(to, _)| to).collect();
    while let Some(file) = open.pop() {
        if reached.insert(file) {
            open.extend(imports.of(file).map(|(to, _)| to));
        }
    }
    reached
}

/// The arrows that tie a circle, in order.
pub(crate) fn ties<'a>(
    imports: &'a Imports,
    circle: &'a Circle,
) -> impl Iterator<Item = (&'a str, &'a str, &'a Names)> {
    let inside = imports.arrows.iter().filter(|((from, to), _)| circle.contains(from) && circle.contains(to));
    inside.map(|((from, to), names)| (from.as_str(), to.as_str(), names))
}

/// One finding for each circle: its files, and the shortest way around it.
pub(crate) fn check(imports: &Imports) -> Vec<Finding> {
    of(imports).iter().map(|circle| finding(imports, circle)).collect()
}

fn finding(imports: &Imports, circle: &Circle) -> Finding {
    let around = circle.iter().filter_map(|file| way_around(imports, file));
    let way = around.min_by_key(Vec::len).unwrap_or_default();
    let arrows: Vec<String> = way
        .iter()
        .map(|(from, to)| format!("{from} takes {} from {to}", quoted(&imports.arrows[&(from.clone(), to.clone())])))
        .collect();
    let files: Vec<&str> = circle.iter().map(String::as_str).collect();
    let (path, line) = way.first().map_or(("", 1), |(from, to)| {
        let names = &imports.arrows[&(from.clone(), to.clone())];
        (from.as_str(), names.values().copied().min().unwrap_or(1))
    });
    let what = format!("{} files import each other ({}): {}", files.len(), files.join(", "), arrows.join(", "));
    Finding::new(path, line, what)
}

/// The shortest way from a file back to itself, arrow by arrow.
fn way_around(imports: &Imports, file: &str) -> Option<Vec<(String, String)>> {
    let mut before: BTreeMap<&str, &str> = BTreeMap::new();
    let mut open = std::collections::VecDeque::from([file]);
    while let Some(from) = open.pop_front() {
        for (to, _) in imports.of(from) {
            if !before.contains_key(to) {
                before.insert(to, from);
                open.push_back(to);
            }
        }
    }
    let mut way = Vec::new();
    let mut to = file;
    loop {
        let from = *before.get(to)?;
        way.insert(0, (from.to_string(), to.to_string()));
        if from == file {
            return Some(way);
        }
        to = from;
    }
}

/// Names for a message.
pub(crate) fn quoted(names: &Names) -> String {
    let quoted: Vec<String> = names.keys().map(|name| format!("`{name}`")).collect();
    quoted.join(", ")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn imports(arrows: &[(&str, &str)]) -> Imports {
        let mut imports = Imports::default();
        for (from, to) in arrows {
            imports.files.extend([from.to_string(), to.to_string()]);
            imports.arrows.insert((from.to_string(), to.to_string()), Names::from([("X".to_string(), 3)]));
        }
        imports
    }

    #[test]
    fn circles_are_found_whatever_leads_into_them() {
        let tree = [("a", "b"), ("b", "c"), ("c", "d"), ("d", "b"), ("e", "f"), ("f", "e"), ("d", "g")];
        let found = of(&imports(&tree));
        let expected: [&[&str]; 2] = [&["b", "c", "d"], &["e", "f"]];
        assert_eq!(found, expected.map(|files| files.iter().map(ToString::to_string).collect::<Circle>()));
        assert!(of(&imports(&[("a", "b"), ("a", "c"), ("b", "c")])).is_empty());
    }

    #[test]
    fn a_circle_is_told_by_the_shortest_way_around_it() {
        let imports = imports(&[("a", "b"), ("b", "c"), ("c", "a"), ("b", "a")]);
        assert_eq!(ties(&imports, &of(&imports)[0]).count(), 4);
        let what = "3 files import each other (a, b, c): a takes `X` from b, b takes `X` from a";
        assert_eq!(check(&imports), [Finding::new("a", 3, what)]);
    }
}
