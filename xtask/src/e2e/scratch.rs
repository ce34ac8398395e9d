//! A folder for the files of one test.

use crate::failure::Result;
use std::path::{Path, PathBuf};

/// A folder of our own that goes away with its value.
pub(super) struct Scratch(PathBuf);

impl Scratch {
    pub(super) fn new(name: &str) -> Result<Self> {
        let path = std::env::temp_dir().join(format!("bezant-{name}-{}", std::process::id()));
        std::fs::create_dir_all(&path)?;
        Ok(Self(path))
    }

    pub(super) fn path(&self) -> &Path {
        &self.0
    }
}

impl Drop for Scratch {
    fn drop(&mut self) {
        // Nothing depends on it; the system clears its temporary folder in the end.
        std::fs::remove_dir_all(&self.0).ok();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_scratch_folder_goes_away() {
        let scratch = Scratch::new("scratch-test").expect("a temporary folder");
        let path = scratch.path().to_path_buf();
        assert!(path.is_dir());
        drop(scratch);
        assert!(!path.exists());
    }
}
