//! The header against what is made from the sources of this crate. `BEZANT_WRITE_DOCS=1` writes it anew.

use std::fmt::Write;
use std::path::Path;

/// Types of Rust, and what C calls them.
const TYPES: [(&str, &str); 11] = [
    ("u8", "uint8_t"),
    ("u16", "uint16_t"),
    ("u64", "uint64_t"),
    ("usize", "size_t"),
    ("isize", "ptrdiff_t"),
    ("c_int", "int"),
    ("c_char", "char"),
    ("Ritas", "ritas_t"),
    ("RitasAbHeader", "ritas_ab_header_t"),
    ("RitasValue", "ritas_value_t"),
    ("RitasVector", "ritas_vector_t"),
];
const COLUMNS_MAX: usize = 100;

const BEGINNING: &str = "#ifndef RITAS_H
#define RITAS_H

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern \"C\" {
#endif
";
const END: &str = "
#ifdef __cplusplus
}
#endif

#endif
";

fn named(rust: &str) -> &'static str {
    TYPES.iter().find(|(name, _)| *name == rust).unwrap_or_else(|| panic!("C has no name for {rust}")).1
}

/// A parameter or a member, as C declares it.
fn declared(name: &str, rust: &str) -> String {
    if let Some((element, count)) = rust.strip_prefix('[').and_then(|array| array.strip_suffix(']')?.split_once("; ")) {
        return format!("{} {name}[{count}]", named(element));
    }
    match (rust.strip_prefix("*const "), rust.strip_prefix("*mut ")) {
        (Some(array), _) if array.starts_with('[') => format!("const {}", declared(name, array)),
        (_, Some(array)) if array.starts_with('[') => declared(name, array),
        (Some(of), _) => format!("const {} *{name}", named(of)),
        (_, Some(of)) => format!("{} *{name}", named(of)),
        _ => format!("{} {name}", named(rust)),
    }
}

/// A comment, without what only a reader of Rust wants to know.
fn comment(lines: &[String], indent: &str) -> String {
    let end = lines.iter().position(|line| line == "# Safety").unwrap_or(lines.len());
    let mut text = lines[..end].join("\n").trim().replace(['`', '[', ']'], "");
    assert!(!text.contains("*/"));
    text = text.replace('\n', &format!("\n{indent} * ")).replace(" * \n", " *\n");
    format!("{indent}/* {text} */\n")
}

/// `TooShort` as `TOO_SHORT`.
fn shouted(name: &str) -> String {
    let mut shouted = String::new();
    for (at, letter) in name.char_indices() {
        if at > 0 && letter.is_uppercase() {
            shouted.push('_');
        }
        shouted.extend(letter.to_uppercase());
    }
    shouted
}

/// `pub unsafe extern "C" fn …` as a prototype.
fn prototype(signature: &str) -> String {
    let (_, signature) = signature.split_once("fn ").unwrap();
    let (name, rest) = signature.split_once('(').unwrap();
    let (parameters, result) = rest.split_once(')').unwrap();
    let parameters: Vec<String> = parameters
        .split(',')
        .filter_map(|parameter| parameter.trim().split_once(": "))
        .map(|(name, rust)| declared(name, rust))
        .collect();
    let result = match result.trim().strip_prefix("-> ") {
        None => format!("void {name}("),
        Some(pointer) if pointer.starts_with('*') => format!("{}(", declared(name, pointer)),
        Some(rust) => format!("{} {name}(", named(rust)),
    };
    let list = if parameters.is_empty() { "void".to_owned() } else { parameters.join(", ") };
    let line = format!("{result}{list});\n");
    if line.len() <= COLUMNS_MAX { line } else { format!("{result}\n    {});\n", parameters.join(",\n    ")) }
}

/// The members of a structure or an enumeration, which end with a brace of their own.
fn members<'a>(lines: &mut impl Iterator<Item = &'a str>, member: impl Fn(&str, &str, &str) -> String) -> String {
    let (mut made, mut about) = (String::new(), Vec::new());
    for line in lines.by_ref().take_while(|line| *line != "}").map(str::trim) {
        if let Some(words) = line.strip_prefix("///") {
            about.push(words.trim().to_owned());
        } else {
            let (name, value) = line.trim_end_matches(',').split_once([':', '=']).unwrap();
            made += &member(&comment(&about, "    "), name.trim_start_matches("pub ").trim(), value.trim());
            about.clear();
        }
    }
    made
}

/// All that a source says about the interface.
fn items(source: &str) -> String {
    let (mut made, mut about, mut lines) = (String::new(), Vec::new(), source.lines());
    while let Some(line) = lines.next() {
        let words: Vec<&str> = line.split(' ').collect();
        match words[..] {
            ["///", ..] => {
                about.push(line[3..].trim().to_owned());
                continue;
            }
            [attribute, ..] if attribute.starts_with("#[") => continue,
            ["pub", "const", name, _, "=", value] => {
                let value = value.trim_end_matches(';');
                let value = if value.starts_with('-') { format!("({value})") } else { value.to_owned() };
                let name = name.trim_end_matches(':');
                write!(made, "\n{}#define {name} {value}\n", comment(&about, "")).unwrap();
            }
            ["pub", "struct", "Ritas", "{"] => {
                assert_eq!(members(&mut lines, |_, _, _| String::new()), "");
                write!(made, "\n{}typedef struct ritas ritas_t;\n", comment(&about, "")).unwrap();
            }
            ["pub", "struct", name, "{"] => {
                let name = named(name);
                let inside = members(&mut lines, |about, name, rust| format!("{about}    {};\n", declared(name, rust)));
                write!(made, "\n{}typedef struct {name} {{\n{inside}}} {name};\n", comment(&about, "")).unwrap();
            }
            ["pub", "enum", "Code", "{"] => {
                let one =
                    |about: &str, name: &str, value: &str| format!("{about}    RITAS_{} = {value},\n", shouted(name));
                let inside = members(&mut lines, one);
                let inside = inside.trim_end_matches(",\n");
                write!(made, "\n{}enum ritas_code {{\n{inside}\n}};\n", comment(&about, "")).unwrap();
            }
            ["pub", "unsafe", "extern", ..] | ["pub", "extern", ..] => {
                let mut signature = line.to_owned();
                while !signature.ends_with('{') {
                    signature += lines.next().unwrap().trim();
                }
                write!(made, "\n{}{}", comment(&about, ""), prototype(signature.trim_end_matches('{'))).unwrap();
            }
            _ => {}
        }
        about.clear();
    }
    made
}

/// What the crate's page says to programs in C.
fn introduction(source: &str) -> String {
    let lines = source.lines().map_while(|line| line.strip_prefix("//!"));
    let lines: Vec<String> = lines.map(|line| line.strip_prefix(' ').unwrap_or(line).to_owned()).collect();
    let from = lines.iter().position(|line| line == "# For programs in C").unwrap();
    comment(&lines[from + 1..], "")
}

#[test]
fn the_header_is_what_the_sources_say() {
    let here = Path::new(env!("CARGO_MANIFEST_DIR"));
    let source = |name: &str| std::fs::read_to_string(here.join("src").join(name)).unwrap();
    let made = [source("types.rs"), source("outcome.rs"), source("lib.rs")].map(|source| items(&source));
    let made = format!("{}{BEGINNING}{}{END}", introduction(&source("lib.rs")), made.concat());
    for function in source("lib.rs").split("#[unsafe(no_mangle)]").skip(1) {
        let name = function.split_once("fn ").unwrap().1.split_once('(').unwrap().0;
        assert!(made.contains(&format!("{name}(")), "{name}");
    }
    assert!(made.lines().all(|line| line.chars().count() <= 120), "a comment is too long with its end");
    let header = here.join("include/ritas.h");
    if std::env::var_os("BEZANT_WRITE_DOCS").is_some() {
        std::fs::write(&header, &made).unwrap();
    }
    let found = std::fs::read_to_string(&header).unwrap_or_default();
    assert!(found == made, "{}: BEZANT_WRITE_DOCS=1 cargo test -p bezant-ritas --test header", header.display());
}
