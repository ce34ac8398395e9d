//! The rules of docs/style.md that a program can check. A rule that nobody checks is a wish.
//!
//! | file | rule |
//! |---|---|
//! | `text` | lines ≤ 120 columns, no trailing blanks, no machine's paths, no marks of unfinished work |
//! | `size` | functions ≤ 70 lines, files ≤ 500 lines without their tests, as a ratchet |
//! | `modules` | every Rust file begins with `//!` and belongs to a crate; every dependency has its reasons in a decision |
//! | `links` | every link and every page that a comment mentions exists; every page is in its index |
//! | `labels` | every label that cites a paper is defined in `docs/papers`; every step that is cited is one of the core |
//! | `commands` | every command in a document exists |
//! | `imports` | no circles of files, and the core imports downwards only |
//! | [`tables`] | tables that say what the sources know say it |

pub(crate) mod commands;
mod imports;
mod labels;
mod links;
mod modules;
mod size;
mod text;

use crate::failure::Result;
use crate::{files, finding, tables};

/// Checks every rule that needs nothing but the files.
pub(crate) fn check() -> Result<String> {
    let files = files::read()?;
    let mut findings = text::check(&files);
    findings.extend(size::check(&files));
    findings.extend(modules::check(&files));
    findings.extend(links::check(&files));
    findings.extend(labels::check(&files));
    findings.extend(commands::check_chores(&files));
    findings.extend(imports::check(&files));
    findings.extend(tables::check(&files));
    finding::report(findings)?;
    Ok(format!("{} files", files.len()))
}
