//! The tables of operations in docs/ are generated from the op table. This test compares them; `ADEAD_BLESS=1` rewrites them.

use adead_core::{Attrs, Family, Op, OpKind};
use std::path::Path;

/// Compares the lines of a table that begin with one of `first` with the expected ones, or writes them.
fn check(document: &str, first: impl Fn(&str) -> bool, expected: &[String]) {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../docs").join(document);
    let text = std::fs::read_to_string(&path).unwrap();
    let at = text.lines().position(&first).unwrap_or_else(|| panic!("docs/{document} has no table of operations"));
    let found: Vec<&str> = text.lines().skip(at).take_while(|line| first(line)).collect();
    if std::env::var_os("ADEAD_BLESS").is_some() {
        let lines = text.lines().map(String::from);
        let new = lines.clone().take(at).chain(expected.iter().cloned()).chain(lines.skip(at + found.len()));
        std::fs::write(&path, new.collect::<Vec<_>>().join("\n") + "\n").unwrap();
        return;
    }
    let bless = "ADEAD_BLESS=1 cargo test -p adead-core --test documents";
    for (found, expected) in found.iter().zip(expected) {
        assert_eq!(found, expected, "docs/{document}: {bless}");
    }
    assert_eq!(found.len(), expected.len(), "docs/{document}: {bless}");
}

/// The names in a row, "`add` `sub`"; none if the line is not a row.
fn names(line: &str) -> Vec<&str> {
    let first = line.strip_prefix("| ").and_then(|rest| rest.split(" | ").next()).unwrap_or_default();
    first.split(' ').filter_map(|name| name.strip_prefix('`')?.strip_suffix('`')).collect()
}

fn kind(line: &str) -> Option<OpKind> {
    names(line).first().and_then(|name| Op::from_name(name).ok()).map(Op::kind)
}

/// An attribute with its default, as the rows write it.
fn attribute(name: &str) -> String {
    let Attrs { alpha, min, max, .. } = Attrs::default();
    match name {
        "alpha" => format!("alpha ({alpha})"),
        "min" => format!("min ({min})"),
        "max" => format!("max ({max})"),
        "form" => "form (`erf`; or `tanh`)".into(),
        _ => panic!("{name} has no text: how do rows of docs/operations.md write its default?"),
    }
}

/// The rows for operations of a kind that take integers, or don't. Operations without attributes share one row.
fn rows(of: OpKind, integers: bool, operands: &str, result: &str) -> Vec<String> {
    let belongs = move |op: &&Op| op.kind() == of && op.takes_integers() == integers;
    let of = |plain: bool| Op::ALL.iter().filter(belongs).filter(move |op| op.info().attrs.is_empty() == plain);
    let plain: Vec<String> = of(true).map(|op| format!("`{op}`")).collect();
    let plain = (!plain.is_empty()).then(|| format!("| {} | {operands} | – | {result} |", plain.join(" ")));
    let others = of(false).map(|op| {
        let attributes: Vec<String> = op.info().attrs.iter().map(|name| attribute(name)).collect();
        format!("| `{op}` | {operands} | {} | {result} |", attributes.join(", "))
    });
    plain.into_iter().chain(others).collect()
}

#[test]
fn every_operation_has_a_row_with_its_attributes() {
    check(
        "operations.md",
        |line| matches!(kind(line), Some(OpKind::Unary | OpKind::Binary)),
        &[
            rows(OpKind::Binary, true, "a any, b any, of one dtype", "any, NumPy broadcasting"),
            rows(OpKind::Binary, false, "a f, b f", "f, NumPy broadcasting"),
            rows(OpKind::Unary, true, "x any", "any, same shape"),
            rows(OpKind::Unary, false, "x f", "f, same shape"),
        ]
        .concat(),
    );
    let text = std::fs::read_to_string(Path::new(env!("CARGO_MANIFEST_DIR")).join("../docs/operations.md")).unwrap();
    for op in Op::ALL {
        let row: Vec<&str> = text.lines().filter(|line| names(line).contains(&op.name())).collect();
        assert_eq!(row.len(), 1, "rows of {op} in docs/operations.md");
        for attribute in op.info().attrs {
            assert!(
                row[0].contains(&format!("{attribute} (")),
                "docs/operations.md: {op} has the attribute {attribute}"
            );
        }
    }
}

#[test]
fn opcodes_of_calls() {
    let rows: Vec<String> = Op::ALL.iter().map(|&op| format!("| {:08X} | `{op}` |", 0x40000 + op as u32)).collect();
    let is_row = |line: &str| line.starts_with("| 000400") && line.matches('|').count() == 3;
    check("program-format.md", is_row, &rows);
}

#[test]
fn families() {
    let text = include_str!("../../docs/dispatch.md");
    let bounds = |family: Family| {
        let row = text.lines().find(|line| line.starts_with(&format!("| `{family}` |")));
        let row = row.unwrap_or_else(|| panic!("docs/dispatch.md has no row for {family}"));
        row.split(" | ").nth(2).unwrap().trim_end_matches(" |").to_string()
    };
    let row = |&family: &Family| {
        let of: Vec<&str> = Op::ALL.iter().filter(|op| op.family() == family).map(|op| op.name()).collect();
        format!("| `{family}` | {} | {} |", of.join(", "), bounds(family))
    };
    let rows: Vec<String> = Family::ALL.iter().map(row).collect();
    let is_row = |line: &str| Family::ALL.iter().any(|family| line.starts_with(&format!("| `{family}` |")));
    check("dispatch.md", is_row, &rows);
}
