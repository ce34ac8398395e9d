//! The code in `docs/service.md` is that of the examples.

/// Every block of code from "Running it" on stands in one of these files, word for word.
#[test]
fn the_page_shows_the_examples() {
    let (_, text) = include_str!("../../docs/service.md").split_once("\n## Running it\n").unwrap();
    let files = [
        include_str!("../src/bin/counter.rs"),
        include_str!("../src/lib.rs"),
        include_str!("../examples/simulate-ledger.rs"),
    ];
    let blocks: Vec<_> = text.split("```rust\n").skip(1).filter_map(|rest| rest.split("```").next()).collect();
    assert!(blocks.len() > 4);
    for block in blocks {
        assert!(files.iter().any(|file| file.contains(block)), "{block}");
    }
}
