//! The figures for programs: everything that the tables say, and each circle and arrow; behind a name is the line.

use super::figures::{Counts, Figures, LONGEST, per_thousand};
use crate::finding::Finding;
use crate::imports::Names;
use serde_json::{Value, json};

/// The packages, each with the arrows that break its floors if it has floors.
pub(super) fn text<'a>(packages: impl Iterator<Item = (&'a Figures, Option<Vec<Finding>>)>) -> String {
    let packages: Vec<Value> = packages.map(|(figures, upwards)| package(figures, upwards)).collect();
    format!("{:#}", Value::from(packages))
}

fn package(figures: &Figures, upwards: Option<Vec<Finding>>) -> Value {
    let modules = figures.modules.iter().map(|(name, one)| (name.clone(), counts(one)));
    let upwards = upwards.map(|arrows| arrows.iter().map(ToString::to_string).collect::<Vec<_>>());
    json!({
        "package": figures.folder,
        "total": counts(&figures.total()),
        "modules": modules.collect::<serde_json::Map<_, _>>(),
        "circles": figures.circles,
        "arrows": figures.imports.arrows.iter().map(arrow).collect::<Vec<_>>(),
        "arrows_upwards": upwards,
        "longest_files": longest(&figures.files),
        "longest_functions": longest(&figures.functions),
    })
}

fn arrow(((from, to), names): (&(String, String), &Names)) -> Value {
    json!({"from": from, "to": to, "names": names})
}

fn longest(list: &[(usize, String)]) -> Vec<Value> {
    list.iter().take(LONGEST).map(|(lines, name)| json!({"name": name, "lines": lines})).collect()
}

fn counts(counts: &Counts) -> Value {
    json!({
        "files": counts.files,
        "lines": counts.lines,
        "docs": counts.docs,
        "comments_inside_bodies": counts.comments,
        "asserts": counts.asserts,
        "asserts_per_1000_lines": per_thousand(counts.asserts, counts.lines),
        "expects": counts.expects,
        "expects_per_1000_lines": per_thousand(counts.expects, counts.lines),
    })
}
