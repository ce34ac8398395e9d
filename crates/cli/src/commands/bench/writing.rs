//! Files that benchmarks write.

use crate::failure::{Failure, Result};
use std::path::Path;

pub(super) fn write(path: &Path, text: &str) -> Result {
    std::fs::write(path, text).map_err(|error| cannot_write(path, &error))
}

pub(super) fn cannot_write(path: &Path, error: &std::io::Error) -> Failure {
    Failure::failed(format!("cannot write {}: {error}.", path.display()))
}
