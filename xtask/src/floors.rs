//! The floors of the core: docs/architecture.md lists its rooms from top to bottom, and a file imports from its own
//! room or from one on a lower floor only.
//!
//! A room is a path below `crates/core/src`: a file, a folder, or a file and the folder of its name. The longest path
//! that fits is a file's room. `lib.rs` is in none: it only hands on.

use crate::circles::quoted;
use crate::files::Files;
use crate::finding::Finding;
use crate::imports::Imports;
use std::collections::BTreeMap;

/// The page with the plan.
const PAGE: &str = "docs/architecture.md";
/// The first line of the plan.
const TITLE: &str = "floors, top to bottom";
/// Where the rooms are.
const INSIDE: &str = "crates/core/src/";

/// The rooms, each with the line of the page where it is.
type Floors<'a> = BTreeMap<&'a str, usize>;

/// Everything that is not as the plan says.
pub(crate) fn check(files: &Files, imports: &Imports) -> Vec<Finding> {
    let (floors, mut findings) = read(files.get(PAGE).map_or("", String::as_str));
    findings.extend(strangers(&floors, imports));
    findings.extend(arrows(&floors, imports));
    findings
}

/// The arrows that lead to a room that is not below.
pub(crate) fn upwards(files: &Files, imports: &Imports) -> Vec<Finding> {
    arrows(&read(files.get(PAGE).map_or("", String::as_str)).0, imports)
}

/// The plan, and what is wrong with its words.
fn read(page: &str) -> (Floors<'_>, Vec<Finding>) {
    let (mut floors, mut findings) = (Floors::new(), Vec::new());
    let plan = page.lines().enumerate().skip_while(|(_, line)| *line != TITLE).skip(1);
    let mut floor = 0;
    for (index, line) in plan.take_while(|(_, line)| !line.starts_with("```")) {
        // A line that begins with a blank goes on with the floor above it.
        let goes_on = line.starts_with(' ');
        let (rooms, words) = if goes_on { (line, "") } else { line.split_once("  ").unwrap_or((line, "")) };
        floor = if goes_on { floor } else { index + 1 };
        if !goes_on && words.trim().is_empty() {
            findings.push(Finding::new(PAGE, index + 1, "two blanks and a few words follow the rooms of a floor"));
        }
        for room in rooms.split_whitespace() {
            if floors.insert(room, floor).is_some() {
                findings.push(Finding::new(PAGE, index + 1, format!("the room `{room}` is here for the second time")));
            }
        }
    }
    if floors.is_empty() {
        findings.push(Finding::new(PAGE, 1, format!("there is no plan that begins with `{TITLE}`")));
    }
    (floors, findings)
}

/// Files without a room, and rooms without a file.
fn strangers(floors: &Floors<'_>, imports: &Imports) -> Vec<Finding> {
    let homeless = imports.files.iter().filter(|file| !is_exempt(file) && room(floors, file).is_none());
    let advice = format!("no room of {PAGE} holds this file");
    let homeless = homeless.map(|file| Finding::new(file, 1, advice.clone()));
    let is_empty = |name: &str| imports.files.iter().all(|file| room(floors, file) != Some(name));
    let empty = floors.iter().filter(|(name, _)| is_empty(name));
    let empty = empty.map(|(name, line)| Finding::new(PAGE, *line, format!("no file is in the room `{name}`")));
    homeless.chain(empty).collect()
}

fn arrows(floors: &Floors<'_>, imports: &Imports) -> Vec<Finding> {
    let mut findings = Vec::new();
    for ((from, to), names) in &imports.arrows {
        let (Some(here), Some(there)) = (room(floors, from), room(floors, to)) else { continue };
        if is_exempt(from) || is_exempt(to) || here == there || floors[there] > floors[here] {
            continue;
        }
        let where_to = if floors[there] == floors[here] { "beside" } else { "above" };
        let line = names.values().copied().min().unwrap_or(1);
        let what = format!("takes {} from {to}: room `{there}` is {where_to} room `{here}`", quoted(names));
        findings.push(Finding::new(from, line, what));
    }
    findings
}

fn is_exempt(file: &str) -> bool {
    file.strip_prefix(INSIDE) == Some("lib.rs")
}

/// The room of a file.
fn room<'a>(floors: &Floors<'a>, file: &str) -> Option<&'a str> {
    let path = file.strip_prefix(INSIDE)?.strip_suffix(".rs")?;
    let holds = |room: &str| path.strip_prefix(room).is_some_and(|rest| rest.is_empty() || rest.starts_with('/'));
    floors.keys().copied().filter(|room| holds(room)).max_by_key(|room| room.len())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::imports::Names;

    const PLAN: &str =
        "# A\n\n```text\nfloors, top to bottom\ntop top/low  says hello\na b          beside\nlow  \n```\n";

    fn findings(page: &str, arrows: &[(&str, &str)], files: &[&str]) -> Vec<String> {
        let path = |name: &str| format!("{INSIDE}{name}.rs");
        let mut imports = Imports { files: files.iter().map(|name| path(name)).collect(), ..Imports::default() };
        for (from, to) in arrows {
            imports.arrows.insert((path(from), path(to)), Names::from([("X".to_string(), 7)]));
        }
        let files = Files::from([(PAGE.to_string(), page.to_string())]);
        check(&files, &imports).iter().map(ToString::to_string).collect()
    }

    const FILES: [&str; 7] = ["lib", "top/mod", "top/low/x", "a", "a/deep", "b/mod", "low"];

    #[test]
    fn arrows_go_down_or_stay_in_their_room() {
        let plan = PLAN.replace("low  \n", "low  the ground\n");
        let good = [("top/mod", "a/deep"), ("a", "a/deep"), ("a/deep", "a"), ("a", "low"), ("lib", "low")];
        assert_eq!(findings(&plan, &good, &FILES), [""; 0]);
        let bad = [("a", "b/mod"), ("low", "top/low/x"), ("top/mod", "top/low/x")];
        let found = findings(&plan, &bad, &FILES);
        let expected = [
            "a.rs:7: takes `X` from crates/core/src/b/mod.rs: room `b` is beside room `a`",
            "low.rs:7: takes `X` from crates/core/src/top/low/x.rs: room `top/low` is above room `low`",
            "top/mod.rs:7: takes `X` from crates/core/src/top/low/x.rs: room `top/low` is beside room `top`",
        ];
        assert_eq!(found, expected.map(|what| format!("{INSIDE}{what}")));
    }

    #[test]
    fn files_without_a_room_and_rooms_without_a_file_are_found() {
        let found = findings(PLAN, &[], &["lib", "top/mod", "top/low/x", "a", "alone", "low"]);
        let expected = [
            "docs/architecture.md:7: two blanks and a few words follow the rooms of a floor",
            "crates/core/src/alone.rs:1: no room of docs/architecture.md holds this file",
            "docs/architecture.md:6: no file is in the room `b`",
        ];
        assert_eq!(found, expected);
    }

    #[test]
    fn a_plan_is_there_once() {
        assert_eq!(
            findings("# A\n", &[], &[]),
            ["docs/architecture.md:1: there is no plan that begins with `floors, top to bottom`"]
        );
        let twice = "floors, top to bottom\na  one\na  two\n```\n";
        assert_eq!(findings(twice, &[], &["a"]), ["docs/architecture.md:3: the room `a` is here for the second time"]);
    }
}
