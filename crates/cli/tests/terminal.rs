//! Prompts on a real terminal: what is pasted, typed ahead and interrupted.
#![cfg(target_os = "linux")]

mod support;

use support::Scratch;
use support::terminal::Terminal;

/// What README.md tells people to try.
fn block_of_the_readme() -> String {
    let readme = include_str!("../../../README.md");
    let block = readme.split_once("At the prompt of the demo:\n\n```text\n").unwrap().1.split_once("```").unwrap().0;
    assert!(block.ends_with("quit\n") && block.lines().count() > 6, "{block}");
    block.to_owned()
}

/// What shows that each line of the block was carried out, in order.
fn expect_outcomes(demo: &mut Terminal) {
    for outcome in ["2 rows changed", "replica 2 killed", "1 row changed", "replica 2 running", "replica 3 lying"] {
        demo.expect(outcome);
    }
    for name in ["Earth", "Mars", "Jupiter", "at fault"] {
        demo.expect(name);
    }
    assert_eq!(demo.end(), Some(0), "{}", demo.text);
    assert!(!demo.text.contains("...>") && !demo.text.contains("bezant: "), "{}", demo.text);
}

#[test]
fn a_pasted_block_is_carried_out_line_by_line() {
    let scratch = Scratch::new();
    let mut demo = Terminal::start(&scratch, &["demo"]);
    demo.expect("bezant> ");
    demo.press(&block_of_the_readme().replace('\n', "\r"));
    expect_outcomes(&mut demo);
}

/// A terminal says where pasted text begins and ends; the end of its last line ends the line.
#[test]
fn a_paste_in_brackets_is_carried_out_line_by_line() {
    let scratch = Scratch::new();
    let mut demo = Terminal::start(&scratch, &["demo"]);
    demo.expect("bezant> ");
    demo.press(&format!("\x1b[200~{}\x1b[201~", block_of_the_readme().replace('\n', "\r")));
    expect_outcomes(&mut demo);
}

/// Before there is a prompt, and while a replica comes back, the terminal is not the editor's.
#[test]
fn what_is_typed_while_a_command_runs_is_carried_out_after_it() {
    let scratch = Scratch::new();
    let mut demo = Terminal::start(&scratch, &["demo"]);
    demo.press("set early bird\rkill 2\rrest");
    demo.expect("replica 2 killed");
    demo.expect("bezant> ");
    demo.press("art 2\r");
    demo.press("get early\rset color blue\rget col");
    demo.expect("replica 2 running");
    for shown in ["bird", "ok", "get col"] {
        demo.expect(shown);
    }
    demo.press("or\rquit\r");
    demo.expect("blue");
    assert_eq!(demo.end(), Some(0), "{}", demo.text);
}
