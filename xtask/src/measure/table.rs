//! The figures of a package as a page that a person reads.

use super::figures::{Counts, Figures, LONGEST, per_thousand};
use crate::circles::{self, Circle, quoted};
use crate::finding::Finding;
use crate::imports::Imports;

/// The page of one package. `upwards` are the arrows that break its floors, if it has floors.
pub(super) fn page(figures: &Figures, upwards: Option<&[Finding]>) -> String {
    let total = figures.total();
    let in_circles: usize = figures.circles.iter().map(Circle::len).sum();
    let mut rows = vec![
        ("files", total.files.to_string()),
        ("lines", total.lines.to_string()),
        ("lines of docs", total.docs.to_string()),
        ("comment lines inside bodies", total.comments.to_string()),
        ("circles of files", format!("{} of {in_circles} files", figures.circles.len())),
    ];
    rows.extend(upwards.map(|upwards| ("arrows upwards", upwards.len().to_string())));
    let mut text = format!("{}/src, without tests\n\n", figures.folder);
    for (what, value) in rows {
        text += &format!("  {what:<28} {value}\n");
    }
    text += &list("longest files", &figures.files);
    text += &list("longest functions", &figures.functions);
    text + &modules(figures)
}

fn list(title: &str, longest: &[(usize, String)]) -> String {
    let mut text = format!("\n  {title}\n");
    for (lines, name) in longest.iter().take(LONGEST) {
        text += &format!("  {lines:>6}  {name}\n");
    }
    text
}

fn modules(figures: &Figures) -> String {
    let head = ["files", "lines", "docs", "comments", "asserts", "per 1,000", "expects", "per 1,000"];
    let head: String = head.iter().map(|word| format!("{word:>11}")).collect();
    let mut text = format!("\n  {:<16}{head}\n", "module");
    for (name, counts) in &figures.modules {
        text += &row(name, counts);
    }
    text + &row("all", &figures.total())
}

fn row(name: &str, counts: &Counts) -> String {
    let whole = [counts.files, counts.lines, counts.docs, counts.comments];
    let whole: String = whole.iter().map(|count| format!("{count:>11}")).collect();
    let rated = [counts.asserts, counts.expects];
    let rated: String =
        rated.iter().map(|count| format!("{count:>11}{:>11.1}", per_thousand(*count, counts.lines))).collect();
    format!("  {name:<16}{whole}{rated}\n")
}

/// Each circle of a package with the arrows that tie it.
pub(super) fn circles(figures: &Figures) -> String {
    let mut text = format!("{}/src: {} circles of files\n", figures.folder, figures.circles.len());
    for circle in &figures.circles {
        text += &format!("\n  {} files\n{}", circle.len(), ties(&figures.imports, circle));
    }
    text
}

fn ties(imports: &Imports, circle: &Circle) -> String {
    let line = |(from, to, names)| format!("    {from} -> {to}  {}\n", quoted(names));
    circles::ties(imports, circle).map(line).collect()
}
