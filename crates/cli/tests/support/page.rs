//! Pages of the documentation, whose commands are tests.

use std::fs;
use std::path::Path;

/// What stands in the blocks of a page in `docs` that are in this language, in order.
pub fn blocks(page: &str, language: &str) -> Vec<String> {
    let file = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs").join(page);
    let text = fs::read_to_string(file).unwrap();
    let (mut blocks, mut inside) = (Vec::new(), false);
    for line in text.lines() {
        if let Some(named) = line.strip_prefix("```") {
            inside = named == language;
            if inside {
                blocks.push(String::new());
            }
        } else if let (true, Some(block)) = (inside, blocks.last_mut()) {
            *block += &format!("{line}\n");
        }
    }
    blocks
}

/// The search path on which the program that is tested comes first.
pub fn search_path() -> String {
    let programs = Path::new(env!("CARGO_BIN_EXE_bezant")).parent().unwrap();
    format!("{}:{}", programs.display(), std::env::var("PATH").unwrap())
}
