//! The page on which figures stand beside the paper's. A section's measured part lies between two marks, and is written
//! again when it is measured again; what people write outside of the marks stays.

use super::Experiment;
use super::claim::{Claim, Measured};
use super::summary::{Line, lines};
use super::sweep::Metric;
use std::fmt::Write;

/// The file's name, beside the pictures and the data.
pub const NAME: &str = "README.md";

const HEAD: &str = "# Measured again\n\n\
    The papers' figures beside ours. The command in each section writes its settings, tables, picture and data.\n\
    After a median over the rounds its 95 % interval is in brackets, or the quartiles if there are fewer than six\n\
    rounds; a ratio is between values of the same round.\n";

/// Where people write after they have looked.
const AGREEMENT: &str = "**Agreement:** not judged yet.";

/// How it was measured.
#[derive(Clone, Debug)]
pub struct How {
    /// The command that does it again.
    pub command: String,
    /// Everything that is not in the tables, in words.
    pub settings: String,
    /// Measurements that failed; they are missing in the figures.
    pub failed: usize,
}

/// The measured part of a section.
pub fn section(experiment: &Experiment, measured: &Measured, how: &How) -> String {
    let Experiment { name, title, differences, claims, source, .. } = experiment;
    let settings = wrapped(&format!("{} {differences}", how.settings), "\n", 120);
    // Four blanks before each line, and at most two characters behind it.
    let command = wrapped(&how.command, " \\\n        ", 120 - 8 - 2);
    let mut text = format!("    {command}\n\n{settings}\n");
    if how.failed > 0 {
        let _ = writeln!(text, "\n**{} measurements failed**, and are missing here.", how.failed);
    }
    let _ = writeln!(text, "\n[Every measurement]({name}.csv)\n\n![{title}]({name}.svg)");
    text += &claims_table(source, claims, measured);
    for table in tables(&lines(experiment, measured)) {
        text += &table;
    }
    text
}

/// The page with the section in its place: where it was, or at the end.
pub fn with_section(page: &str, experiment: &Experiment, section: &str) -> String {
    let (begin, end) = (format!("<!-- {}: begin -->", experiment.name), format!("<!-- {}: end -->", experiment.name));
    let marked = format!("{begin}\n\n{section}\n{end}");
    let old = page.find(&begin).and_then(|from| Some((from, from + page[from..].find(&end)? + end.len())));
    match old {
        Some((from, to)) => format!("{}{marked}{}", &page[..from], &page[to..]),
        None => {
            let page = if page.is_empty() { HEAD } else { page };
            format!("{page}\n## {}\n\n{marked}\n\n{AGREEMENT}\n", experiment.title)
        }
    }
}

fn claims_table(source: &str, claims: &[Claim], measured: &Measured) -> String {
    let mut text = String::new();
    let head = format!("\n| what | {source} | here |\n|---|---|---|\n");
    for Claim { what, said, ours } in claims {
        if let Some(ours) = ours.describe(measured) {
            let _ = writeln!(text, "{}| {what} | {said} | {ours} |", if text.is_empty() { &*head } else { "" });
        }
    }
    text
}

/// A table for each panel of the first metric and of what replicas cost, which other programs on the machine disturb
/// least; where there is no axis, one with a row for each metric.
fn tables(lines: &[Line]) -> Vec<String> {
    let first = lines.first().map(|line| line.metric);
    let is_shown = |metric| Some(metric) == first || metric == Metric::ReplicaCpu.label();
    let shown: Vec<_> = lines.iter().filter(|line| line.at.is_none() || is_shown(line.metric)).collect();
    let belong = |a: &Line, b: &Line| a.panel == b.panel && (a.at.is_none() || a.metric == b.metric);
    shown.chunk_by(|a, b| belong(a, b)).map(table).collect()
}

fn table(lines: &[&Line]) -> String {
    let mut protocols: Vec<&str> = Vec::new();
    for line in lines {
        if !protocols.contains(&&*line.protocol) {
            protocols.push(&line.protocol);
        }
    }
    let Line { metric, axis, divided_by, panel, at, .. } = lines[0];
    let mut text = String::new();
    match at {
        Some(_) => {
            let panel = if panel.is_empty() { String::new() } else { format!("{panel}: ") };
            let caption = format!("{panel}{metric}, and the others' divided by `{divided_by}`'s");
            let _ = writeln!(text, "\n{}\n", wrapped(&caption, "\n", 120));
            let _ = write!(text, "| {axis} |");
        }
        None if panel.is_empty() => text += "\n| |",
        None => text += &format!("\n`{panel}`:\n\n| |"),
    }
    protocols.iter().for_each(|name| text += &format!(" {name} |"));
    let _ = writeln!(text, "\n|---|{}", "---|".repeat(protocols.len()));
    for row in lines.chunk_by(|a, b| a.at == b.at && a.metric == b.metric) {
        let name = row[0].at.as_ref().map_or_else(|| row[0].metric.to_owned(), ToString::to_string);
        let most = row.iter().map(|line| line.rounds).max().unwrap_or(0);
        let cell = |name: &&str| row.iter().find(|line| line.protocol == **name).map(|line| cell(line, most));
        let cells: Vec<_> = protocols.iter().map(|name| cell(name).unwrap_or_else(|| "–".to_owned())).collect();
        let _ = writeln!(text, "| {name} | {} |", cells.join(" | "));
    }
    text
}

/// A ratio, or a value where there is nothing to divide by. A number that not all rounds have says so.
fn cell(line: &Line, most: usize) -> String {
    let value = match line.ratio.filter(|_| line.at.is_some() && line.protocol != line.divided_by) {
        Some(ratio) if ratio.median < 0.1 => format!("{ratio:.4}"),
        Some(ratio) => ratio.to_string(),
        None if line.value.median >= 100.0 => format!("{:.0}", line.value),
        None => line.value.to_string(),
    };
    if line.rounds == most { value } else { format!("{value} ({} of {most} rounds)", line.rounds) }
}

/// In lines of at most so many characters, besides what ends a line and stands before the next.
fn wrapped(text: &str, end_of_line: &str, columns: usize) -> String {
    let mut wrapped = String::new();
    let mut width = 0;
    for word in text.split_whitespace() {
        let length = word.chars().count();
        if width > 0 {
            let fits = width + 1 + length <= columns;
            wrapped.push_str(if fits { " " } else { end_of_line });
            width = if fits { width + 1 } else { 0 };
        }
        wrapped.push_str(word);
        width += length;
    }
    wrapped
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::compare::presets;
    use crate::compare::testing::results;

    fn how() -> How {
        How { command: "bezant bench compare".into(), settings: "Two cores.".into(), failed: 0 }
    }

    fn figure_8() -> Experiment {
        presets::all().into_iter().find(|experiment| experiment.name == "figure-8").unwrap()
    }

    #[test]
    fn a_section_has_the_papers_numbers_beside_ours_and_a_ratio_for_each_protocol() {
        let measured = results(&[
            (1, "pbft", 1, 1000.0),
            (1, "azyzzyva", 1, 1200.0),
            (1, "aliph", 1, 1500.0),
            (2, "pbft", 1, 500.0),
            (2, "aliph", 1, 750.0),
        ]);
        let text = section(&figure_8(), &Measured::Sweep(measured), &how());
        assert!(text.contains("| Aliph's peak beside Zyzzyva's | +21 % | +25.0 % [+25.0, +25.0] |"), "{text}");
        let row = "| 1 | 750 [625, 875] | 1.20 [1.20, 1.20] (1 of 2 rounds) | 1.50 [1.50, 1.50] |";
        assert!(text.contains(row), "{text}");
        assert!(!text.contains("unreplicated") && !text.contains("failed"), "{text}");
        let failed = section(&figure_8(), &Measured::Sweep(results(&[])), &How { failed: 2, ..how() });
        assert!(failed.contains("**2 measurements failed**"), "{failed}");
    }

    #[test]
    fn measuring_again_leaves_what_people_wrote() {
        let first = with_section("", &figure_8(), "old\n").replace(AGREEMENT, "**Agreement:** good.");
        let second = with_section(&first, &figure_8(), "new\n");
        assert!(second.starts_with(HEAD) && second.ends_with("**Agreement:** good.\n"), "{second}");
        assert!(second.contains("new") && !second.contains("old"), "{second}");
        let both = with_section(&second, &presets::all()[0], "other\n");
        assert!(both.starts_with(&second) && both.matches("## ").count() == 2, "{both}");
    }

    #[test]
    fn long_lines_are_wrapped_at_words() {
        let text = wrapped(&"word ".repeat(50), "\n", 120);
        assert!(text.lines().all(|line| line.len() <= 120 && !line.ends_with(' ')));
        assert_eq!(text.split_whitespace().count(), 50);
    }
}
