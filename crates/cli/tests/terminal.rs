//! Prompts on a real terminal: what is pasted, typed ahead and interrupted.
#![cfg(target_os = "linux")]

mod support;

use support::terminal::Terminal;
use support::{Running, Scratch, bezant, run, spawn, testnet, testnet_with, wait_until};

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

/// Presses Ctrl-C twice, and looks for what is left.
fn interrupt(scratch: &Scratch, mut demo: Terminal) -> Option<i32> {
    let session = demo.process.0.id();
    demo.press("\x03\x03");
    let code = demo.end();
    // Replicas have a process group of their own, but are in the session still.
    assert_eq!(processes_of(session), Vec::<String>::new(), "{}", demo.text);
    let left: Vec<_> = scratch.path().read_dir().unwrap().map(|entry| entry.unwrap().file_name()).collect();
    assert!(left.iter().all(|name| name == ".local"), "{left:?}\n{}", demo.text);
    assert!(!demo.text.contains("by itself"), "{}", demo.text);
    code
}

/// The processes of a session that have not ended.
fn processes_of(session: u32) -> Vec<String> {
    let all = std::fs::read_dir("/proc").unwrap().filter_map(Result::ok);
    let states = all.filter_map(|process| std::fs::read_to_string(process.path().join("stat")).ok());
    states
        .filter(|state| {
            // After the name: state, parent, group, session.
            let fields: Vec<_> = state.rsplit(')').next().unwrap_or_default().split_whitespace().collect();
            fields.first() != Some(&"Z") && fields.get(3) == Some(&session.to_string().as_str())
        })
        .collect()
}

#[test]
fn ctrl_c_while_the_demo_starts_leaves_nothing() {
    // Before there are files, while they are made, and while the replicas start.
    for entries in [0, 1, 5] {
        let scratch = Scratch::new();
        let demo = Terminal::start(&scratch, &["demo"]);
        wait_until("the start", || entries_below(scratch.path()) >= entries);
        let code = interrupt(&scratch, demo);
        assert!(code == Some(130) || code.is_none(), "{code:?}");
    }
}

/// Files and folders at any depth, as far as they are there when they are looked at.
fn entries_below(folder: &std::path::Path) -> usize {
    let Ok(entries) = folder.read_dir() else { return 0 };
    entries.filter_map(Result::ok).map(|entry| 1 + entries_below(&entry.path())).sum()
}

#[test]
fn ctrl_c_at_the_prompt_leaves_nothing() {
    let scratch = Scratch::new();
    let mut demo = Terminal::start(&scratch, &["demo"]);
    demo.expect("bezant> ");
    demo.press("kill 1\r");
    demo.expect("replica 1 killed");
    demo.expect("bezant> ");
    interrupt(&scratch, demo);
}

#[test]
fn ctrl_c_while_a_command_runs_leaves_nothing() {
    let scratch = Scratch::new();
    let mut demo = Terminal::start(&scratch, &["demo"]);
    demo.expect("bezant> ");
    demo.press("restart 2\r");
    demo.expect("[?2004l");
    demo.wait_for_command();
    // It may be at its end already.
    let code = interrupt(&scratch, demo);
    assert!(matches!(code, Some(0 | 130)), "{code:?}");
}

#[test]
fn ctrl_c_while_nobody_can_answer_leaves_nothing() {
    let scratch = Scratch::new();
    let mut demo = Terminal::start(&scratch, &["demo"]);
    demo.expect("bezant> ");
    demo.press("kill 1\rkill 2\rset a 1\r");
    demo.expect("replica 2 killed");
    demo.expect("set a 1");
    demo.expect("[?2004l");
    demo.wait_for_command();
    assert_eq!(interrupt(&scratch, demo), Some(130));
}

#[test]
fn ctrl_z_stops_at_the_prompt_and_it_goes_on_there() {
    let scratch = Scratch::new();
    testnet(&scratch, "net", 4);
    let cluster = scratch.join("net/cluster.toml");
    let mut shell = Terminal::start(&scratch, &["kv", "--cluster", &cluster]);
    shell.expect("kv> ");
    shell.press("\x1a");
    let stat = format!("/proc/{}/stat", shell.process.0.id());
    wait_until("stopping", || std::fs::read_to_string(&stat).unwrap().contains(") T "));
    // What has the terminal now gets whole lines.
    shell.wait_for_command();
    shell.process.signal(rustix::process::Signal::CONT);
    shell.press("quit\r");
    assert_eq!(shell.end(), Some(0), "{}", shell.text);
}

#[test]
fn help_shows_arguments_and_lies() {
    let scratch = Scratch::new();
    let mut demo = Terminal::start(&scratch, &["demo", "--protocol", "unreplicated"]);
    demo.expect("bezant> ");
    demo.press("help\rquit\r");
    for line in
        ["get KEY ", "set KEY VALUE [--if-absent]", "del KEYS...", "incr KEY [BY]", "kill REPLICA", "lie REPLICA"]
    {
        demo.expect(line);
    }
    demo.expect("(`diff` names the row)");
    demo.end();
}

/// Presses Ctrl-C twice while an answer is waited for, and waits for the prompt. What was not sent by then is said
/// again.
fn interrupt_command(shell: &mut Terminal, line: &str, told: &str, prompt: &str) {
    loop {
        shell.press(&format!("{line}\r"));
        shell.expect("[?2004l");
        shell.wait_for_command();
        let before = shell.text.len();
        shell.press("\x03\x03");
        shell.expect("interrupted");
        shell.expect(prompt);
        let said = &shell.text[before..];
        if !said.contains("before it was sent") {
            assert!(said.contains(told), "{said}");
            return;
        }
    }
}

/// The replicas are not there, so that no answer comes before the deadline.
#[test]
fn an_interrupted_write_says_that_its_outcome_is_unknown() {
    let scratch = Scratch::new();
    testnet(&scratch, "net", 4);
    let script = scratch.join("script.sql");
    std::fs::write(&script, "insert into t values (1);\ninsert into t values (2);\n").unwrap();
    let cluster = scratch.join("net/cluster.toml");
    let mut shell = Terminal::start(&scratch, &["sql", "--cluster", &cluster]);
    let read = ["select 1;", "nothing has changed"];
    // What follows in the same line, or in the same file, is not done.
    let two = ["insert into t values (1); delete from t;", "outcome unknown"];
    let file = [&format!(".read {script}"), "outcome unknown"];
    shell.expect("sql> ");
    for [line, told] in [read, two, file] {
        interrupt_command(&mut shell, line, told, "sql> ");
    }
    assert!(shell.text.contains("read before you write again"), "{}", shell.text);
    shell.press("quit\r");
    assert_eq!(shell.end(), Some(3), "{}", shell.text);
    assert_eq!(shell.text.matches("outcome unknown").count(), 2, "{}", shell.text);
}

#[test]
fn an_interrupted_key_value_write_says_that_its_outcome_is_unknown() {
    let scratch = Scratch::new();
    testnet(&scratch, "net", 4);
    let cluster = scratch.join("net/cluster.toml");
    let mut shell = Terminal::start(&scratch, &["kv", "--cluster", &cluster]);
    shell.expect("kv> ");
    interrupt_command(&mut shell, "set a 1", "outcome unknown: interrupted", "kv> ");
    assert!(shell.text.contains("read before you write again"), "{}", shell.text);
    shell.press("quit\r");
    assert_eq!(shell.end(), Some(3), "{}", shell.text);
}

#[test]
fn results_are_boxes_on_a_terminal_and_lines_elsewhere() {
    let scratch = Scratch::new();
    testnet_with(&scratch, "net", 1, &["--protocol", "unreplicated"]);
    let (cluster, dir) = (scratch.join("net/cluster.toml"), scratch.join("net/replica-0"));
    let _replica = Running(spawn(&mut bezant(&["replica", "--dir", &dir])));
    let arguments = ["sql", "--cluster", &cluster, "select 1 as one, 2 as two"];
    let piped = run(&mut bezant(&arguments), "");
    assert_eq!((piped.code, piped.stdout.as_str()), (Some(0), "1|2\n"), "{piped:?}");
    let mut terminal = Terminal::start(&scratch, &arguments);
    terminal.expect("│ one │ two │");
    assert_eq!(terminal.end(), Some(0));
}

#[test]
fn a_cluster_without_tolerance_is_asked_about() {
    let scratch = Scratch::new();
    let dir = scratch.join("net");
    for (answer, code) in [("", 1), ("no", 1), ("y", 0)] {
        assert!(!scratch.path().join("net").exists());
        let mut terminal = Terminal::start(&scratch, &["testnet", "--dir", &dir, "--replicas", "3"]);
        terminal.expect("none of them may lie or crash");
        terminal.expect("[y/N] ");
        terminal.press(&format!("{answer}\r"));
        assert_eq!(terminal.end(), Some(code), "{}", terminal.text);
    }
    assert!(scratch.path().join("net/cluster.toml").exists());
}
