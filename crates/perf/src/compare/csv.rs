//! Comma-separated values.

/// A protocol's name as a cell of comma-separated values: that of a schedule has commas.
pub(super) fn cell(name: &str) -> String {
    if name.contains(',') { format!("\"{name}\"") } else { name.to_owned() }
}
