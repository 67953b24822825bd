//! Checks the table of rooms in `docs/architecture.md`: a room of `core/src` uses only the rooms that its row lists, every file
//! is in a room, every room has a file, and uses form no cycle.
//!
//! A room is a module with its contents: `hal/cpu` is `hal::cpu`. If several rows fit a file, it belongs to the longest. A use is
//! a path that begins with `crate`, `super`, `self`, or a module of the file. Code that is compiled only for tests may use
//! anything, and anything may use a room that "all may use".

use std::collections::{BTreeMap, BTreeSet};
use std::{fs, path::Path};

/// A row of the table.
#[derive(Debug, Default)]
struct Room {
    modules: Vec<Vec<String>>,
    uses: Vec<String>,
    /// Whether all rooms may use it.
    base: bool,
}

/// The names between backticks.
fn quoted(cell: &str) -> Vec<String> {
    cell.split('`').skip(1).step_by(2).map(String::from).collect()
}

/// The rows, by name, of the table whose head begins with `| room |`.
fn table(text: &str, faults: &mut Vec<String>) -> BTreeMap<String, Room> {
    let mut rooms = BTreeMap::new();
    let lines = text.lines().skip_while(|line| !line.starts_with("| room |")).skip(2);
    for line in lines.take_while(|line| line.starts_with('|')) {
        let cells: Vec<&str> = line.split('|').collect();
        let [_, names, _, uses, _] = cells[..] else {
            faults.push(format!("a row has three columns: {line}"));
            continue;
        };
        let (names, base) = (quoted(names), uses.contains("all may use"));
        let Some(first) = names.first() else {
            faults.push(format!("a row names no module: {line}"));
            continue;
        };
        let modules = names.iter().map(|name| module(name)).collect();
        if rooms.insert(first.clone(), Room { modules, uses: quoted(uses), base }).is_some() {
            faults.push(format!("{line}: a row is there twice"));
        }
    }
    rooms
}

/// The words and signs of a source, without comments, strings, character literals and lifetimes. `::` is one sign.
fn tokens(text: &str) -> Vec<&str> {
    let bytes = text.as_bytes();
    let is_word = |byte: u8| byte.is_ascii_alphanumeric() || byte == b'_' || byte >= 0x80;
    let (mut found, mut i) = (Vec::new(), 0);
    while i < bytes.len() {
        let (rest, start) = (&text[i..], i);
        if rest.starts_with("//") {
            i += rest.find('\n').unwrap_or(rest.len());
        } else if rest.starts_with("/*") {
            let mut depth = 0;
            loop {
                match &bytes[i..bytes.len().min(i + 2)] {
                    b"/*" => (depth, i) = (depth + 1, i + 2),
                    b"*/" => (depth, i) = (depth - 1, i + 2),
                    [] => break,
                    _ => i += 1,
                }
                if depth == 0 {
                    break;
                }
            }
        } else if bytes[i] == b'"' {
            i += 1;
            while i < bytes.len() && bytes[i] != b'"' {
                i += if bytes[i] == b'\\' { 2 } else { 1 };
            }
            i += 1;
        } else if bytes[i] == b'\'' {
            // A character literal ends with a quote, a lifetime does not.
            let inside = rest[1..].chars().next().map_or(0, char::len_utf8);
            if rest[1..].starts_with('\\') {
                i += 3 + rest[3..].find('\'').unwrap_or(0) + 1;
            } else if rest[1 + inside..].starts_with('\'') {
                i += inside + 2;
            } else {
                i += 1;
                while i < bytes.len() && is_word(bytes[i]) {
                    i += 1;
                }
            }
        } else if is_word(bytes[i]) {
            while i < bytes.len() && is_word(bytes[i]) {
                i += 1;
            }
            let hashes = text[i..].bytes().take_while(|&byte| byte == b'#').count();
            if matches!(&text[start..i], "r" | "br" | "cr") && text[i + hashes..].starts_with('"') {
                let end = format!("\"{}", "#".repeat(hashes));
                let inside = i + hashes + 1;
                i = text[inside..].find(&end).map_or(text.len(), |at| inside + at + end.len());
            } else {
                found.push(&text[start..i]);
            }
        } else {
            i += if rest.starts_with("::") { 2 } else { 1 };
            if !bytes[start].is_ascii_whitespace() {
                found.push(&text[start..i]);
            }
        }
    }
    found
}

/// The module of a file: `["hal", "cpu"]` of `hal/cpu/mod.rs`.
fn module(path: &str) -> Vec<String> {
    let path = path.strip_suffix(".rs").unwrap_or(path);
    let path = path.strip_suffix("/mod").unwrap_or(path);
    if path == "lib" { Vec::new() } else { path.split('/').map(String::from).collect() }
}

/// The position after the item or field that begins at `i`.
fn behind(tokens: &[&str], mut i: usize) -> usize {
    while tokens.get(i) == Some(&"#") {
        i = closing(tokens, i + 1) + 1;
    }
    while matches!(tokens.get(i), Some(&"pub" | &"unsafe" | &"async" | &"extern")) {
        i += 1;
        if tokens.get(i) == Some(&"(") {
            i = closing(tokens, i) + 1;
        }
    }
    const BLOCKS: [&str; 12] =
        ["fn", "mod", "impl", "struct", "enum", "trait", "if", "for", "while", "loop", "match", "macro_rules"];
    let block = tokens.get(i).is_some_and(|token| BLOCKS.contains(token) || *token == "{");
    let item = block || matches!(tokens.get(i), Some(&"use" | &"const" | &"static" | &"type" | &"let"));
    while i < tokens.len() {
        match tokens[i] {
            "{" if block => return closing(tokens, i) + 1,
            "(" | "[" | "{" => i = closing(tokens, i),
            ";" => return i + 1,
            "," if !item => return i + 1,
            "}" => return i,
            _ => {}
        }
        i += 1;
    }
    i
}

/// The bracket that closes the one at `i`.
fn closing(tokens: &[&str], i: usize) -> usize {
    let mut depth = 0;
    for (at, token) in tokens.iter().enumerate().skip(i) {
        match *token {
            "(" | "[" | "{" => depth += 1,
            ")" | "]" | "}" => depth -= 1,
            _ => {}
        }
        if depth == 0 {
            return at;
        }
    }
    tokens.len().saturating_sub(1)
}

/// Collects the paths that begin with `prefix` and continue at `i`; a group has several. Returns the position after them.
fn paths(tokens: &[&str], mut i: usize, prefix: &[String], found: &mut Vec<Vec<String>>) -> usize {
    match tokens.get(i) {
        Some(&"{") => {
            let end = closing(tokens, i);
            i += 1;
            while i < end {
                i = paths(tokens, i, prefix, found);
                while i < end && tokens[i] != "," {
                    i += 1;
                }
                i += 1;
            }
            return end + 1;
        }
        Some(&("self" | "*")) => found.push(prefix.to_vec()),
        Some(&"super") => {
            let parent = &prefix[..prefix.len().saturating_sub(1)];
            if tokens.get(i + 1) == Some(&"::") {
                return paths(tokens, i + 2, parent, found);
            }
            found.push(parent.to_vec());
        }
        Some(&word) => {
            let path = [prefix, &[word.to_string()]].concat();
            if tokens.get(i + 1) == Some(&"::") && tokens.get(i + 2) != Some(&"<") {
                return paths(tokens, i + 2, &path, found);
            }
            found.push(path);
        }
        None => {}
    }
    i + 1
}

/// The paths that a source uses, and the modules that it declares only for tests.
#[derive(Default)]
struct Said {
    uses: Vec<Vec<String>>,
    tests: Vec<Vec<String>>,
}

fn said(path: &str, text: &str, modules: &BTreeSet<Vec<String>>) -> Said {
    let (tokens, mut said) = (tokens(text), Said::default());
    // Modules declared inline, each with the position of its closing bracket.
    let (mut here, mut inside, mut i) = (module(path), Vec::<usize>::new(), 0);
    while i < tokens.len() {
        if inside.last().is_some_and(|&end| i >= end) {
            inside.pop();
            here.pop();
        }
        let before = if i == 0 { "" } else { tokens[i - 1] };
        let next = |n: usize| tokens.get(i + n).copied().unwrap_or_default();
        let is_test = matches!(tokens[i..], ["#", "[", "cfg", "(", "test", ")", ..])
            || matches!(tokens[i..], ["#", "[", "cfg", "(", "all", "(", "test", ..]);
        if is_test {
            let item = closing(&tokens, i + 1) + 1;
            let end = behind(&tokens, item);
            if let Some(at) = (item..end).find(|&at| tokens[at] == "mod" && tokens.get(at + 2) == Some(&";")) {
                said.tests.push([&here[..], &[tokens[at + 1].to_string()]].concat());
            }
            i = end;
        } else if tokens[i] == "mod" && next(2) == "{" {
            here.push(next(1).to_string());
            inside.push(closing(&tokens, i + 2));
            i += 3;
        } else if next(1) == "::" && before != "::" && before != "in" {
            let parent = |path: &[String]| path[..path.len().saturating_sub(1)].to_vec();
            let own = [&here[..], &[tokens[i].to_string()]].concat();
            let prefix = match tokens[i] {
                "crate" => Vec::new(),
                "super" => parent(&here),
                "self" => here.clone(),
                _ if modules.contains(&own) => own,
                _ => {
                    i += 1;
                    continue;
                }
            };
            i = paths(&tokens, i + 2, &prefix, &mut said.uses);
        } else {
            i += 1;
        }
    }
    said
}

/// All errors in a table and sources. Each source has its path from the source folder.
fn faults(document: &str, files: &[(String, String)]) -> Vec<String> {
    let mut faults = Vec::new();
    let rooms = table(document, &mut faults);
    let modules: BTreeSet<_> = files.iter().map(|(path, _)| module(path)).collect();
    let parsed: Vec<_> = files.iter().map(|(path, text)| (path, said(path, text, &modules))).collect();
    let tests: Vec<&Vec<String>> = parsed.iter().flat_map(|(_, said)| &said.tests).collect();
    let room_of = |used: &[String]| {
        let longest = |room: &Room| room.modules.iter().filter(|module| used.starts_with(module)).map(Vec::len).max();
        rooms.iter().filter_map(|(name, room)| Some((longest(room)?, name))).max().map(|(_, name)| name)
    };
    // A name that lib.rs re-exports counts as a use of its module.
    let root = parsed.iter().find(|(path, _)| *path == "lib.rs");
    let again =
        |name: &str| root.and_then(|(_, said)| said.uses.iter().find(|path| path.last().is_some_and(|l| l == name)));
    for (path, said) in &parsed {
        let own = module(path);
        if *path == "lib.rs" || tests.iter().any(|test| own.starts_with(test)) {
            continue;
        }
        let Some(from) = room_of(&own) else {
            faults.push(format!("{path} is in no room of the table"));
            continue;
        };
        for used in &said.uses {
            let used = match used.first().filter(|_| !modules.contains(&used[..1])) {
                Some(name) => again(name).unwrap_or(used),
                None => used,
            };
            let depth = (1..=used.len()).rev().find(|&n| modules.contains(&used[..n]));
            let Some(to) = depth.and_then(|n| room_of(&used[..n])) else { continue };
            if to != from && !rooms[to].base && !rooms[from].uses.contains(to) {
                faults.push(format!("{path} uses {}: the row of {from} does not name {to}", used.join("::")));
            }
        }
    }
    for (name, room) in &rooms {
        let gone = room.modules.iter().filter(|module| !modules.contains(*module));
        faults.extend(gone.map(|module| format!("{} has a row and is not there", module.join("/"))));
        let unknown = room.uses.iter().filter(|used| !rooms.contains_key(*used));
        faults.extend(unknown.map(|used| format!("the row of {name} names {used}, which is no room")));
        let mut reached = BTreeSet::new();
        let mut next: Vec<&String> = room.uses.iter().collect();
        while let Some(room) = next.pop() {
            if reached.insert(room) {
                next.extend(rooms.get(room).iter().flat_map(|room| &room.uses));
            }
        }
        if reached.contains(name) {
            faults.push(format!("the row of {name} leads back to {name}"));
        }
    }
    faults
}

/// The sources of a folder.
fn read(root: &Path, folder: &Path, files: &mut Vec<(String, String)>) {
    for entry in fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            read(root, &path, files);
        } else if path.extension().is_some_and(|extension| extension == "rs") {
            let name = path.strip_prefix(root).unwrap().to_str().unwrap().replace('\\', "/");
            files.push((name, fs::read_to_string(&path).unwrap()));
        }
    }
}

#[test]
fn every_use_is_one_that_the_table_allows() {
    let crate_folder = Path::new(env!("CARGO_MANIFEST_DIR"));
    let document = fs::read_to_string(crate_folder.join("../docs/architecture.md")).unwrap();
    let (source, mut files) = (crate_folder.join("src"), Vec::new());
    read(&source, &source, &mut files);
    let faults = faults(&document, &files);
    assert!(faults.is_empty(), "{} faults:\n{}", faults.len(), faults.join("\n"));
}

#[test]
fn what_is_wrong_is_found() {
    const HEAD: &str = "text\n\n| room | what is inside | what it may use |\n|---|---|---|\n";
    let rows = |rows: &str| format!("{HEAD}{rows}\n\n| other | table |\n");
    let good = rows(
        "| `a` | x | nothing |\n| `b`, `bb` | x | `a` (part) |\n| `b/c` | x | `b` |\n| `e` | x | nothing; all may use it |",
    );
    let of = |document: &str, changed: &str, text: &str| {
        let lib = "pub mod a; pub mod b; mod e; pub use b::c::{Thing, Other as Named}; pub const N: usize = 1;";
        let sources =
            [("lib.rs", lib), ("a.rs", ""), ("b/mod.rs", "mod c;"), ("bb.rs", ""), ("b/c.rs", ""), ("e.rs", "")];
        let mut files: Vec<_> = sources.map(|(path, text)| (path.to_string(), text.to_string())).into();
        files.retain(|(path, _)| path != changed);
        files.push((changed.into(), text.into()));
        faults(document, &files)
    };
    let fine = |path: &str, text: &str| assert_eq!(of(&good, path, text), Vec::<String>::new(), "{text}");
    let wrong = |path: &str, text: &str, part: &str| {
        let found = of(&good, path, text);
        assert!(found.len() == 1 && found[0].contains(part), "{text}: {found:?}");
    };
    fine(
        "b/mod.rs",
        "mod c; use crate::{a::{X, Y}, e::Z}; use super::bb::W; fn f() { crate::a::x::<u8>(); crate::N; }",
    );
    fine(
        "a.rs",
        "// crate::b::X\n/* /* */ super::b */ const A: &str = \"crate::b\"; const B: &str = r#\"\"crate::b\"#;",
    );
    fine(
        "a.rs",
        "fn f<'a>(c: char) -> bool { c == '\"' || c == '\\'' || c == '\\u{1f}' } /// [`crate::b`]\n struct S;",
    );
    fine(
        "a.rs",
        "#[cfg(test)] mod tests { use super::*; use crate::b::X; } #[cfg(all(test, unix))] use crate::b::{Y};",
    );
    fine(
        "a.rs",
        "mod own { use super::super::e::X; use super::Z; pub(in crate::b) struct S; } struct T { #[cfg(test)] x: crate::b::X, }",
    );
    wrong("a.rs", "use crate::b::X;", "the row of a does not name b");
    wrong("a.rs", "use crate::{e::X, b::{Y as V}, N};", "uses b::Y");
    wrong("a.rs", "use crate::b::{self};", "does not name b");
    wrong("a.rs", "use super::{e::X, b::*};", "does not name b");
    wrong("a.rs", "use super::b::X;", "does not name b");
    wrong("a.rs", "mod own { fn f() { super::super::b::f(); } }", "does not name b");
    wrong("a.rs", "fn f() { let x = 'x'; crate::bb::f::<u8>(\"\") }", "does not name b");
    wrong("a.rs", "use crate::Thing;", "does not name b/c");
    wrong("a.rs", "#[cfg(test)] mod tests {} #[cfg(test)] const A: u8 = 1; use crate::b::X;", "does not name b");
    wrong("a.rs", "struct T { #[cfg(test)] x: u8, y: crate::b::X }", "does not name b");
    wrong("b/mod.rs", "mod c; pub use c::X;", "the row of b does not name b/c");
    wrong("d.rs", "", "d.rs is in no room");
    wrong("a.rs", "#[cfg(any(test, unix))] mod x { use crate::b::X; }", "does not name b");
    let with = |rows_of: &str| of(&rows(rows_of), "e.rs", "");
    let has = |found: Vec<String>, part: &str| assert!(found.iter().any(|fault| fault.contains(part)), "{found:?}");
    has(with("| `a` | x | `b` |\n| `b` | x | `a` |"), "the row of a leads back to a");
    has(with("| `z` | x | nothing |"), "z has a row and is not there");
    has(with("| `a` | x | `q` |"), "names q, which is no room");
    has(with("| `a` | x |"), "a row has three columns");
    has(with("| a | x | nothing |"), "a row names no module");
    has(with("| `a` | x | nothing |\n| `a` | x | nothing |"), "a row is there twice");
    has(of("no table", "e.rs", ""), "a.rs is in no room");
}
