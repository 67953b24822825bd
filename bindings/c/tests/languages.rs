//! Generates the C interface's facts for other languages (numbers of enums, operations with their operands and attributes) from
//! include/adead.h and the core's table, and compares. `ADEAD_BLESS=1` rewrites the files.

use adead_core::Op;
use std::fmt::Write;
use std::path::{Path, PathBuf};
use std::{env, fs};

#[path = "languages/cpp.rs"]
mod cpp;
#[path = "languages/zig.rs"]
mod zig;

/// One of the header's enums.
struct Enum {
    /// `adead_gelu_form`.
    c_type: String,
    /// `the form of gelu.`
    about: String,
    /// The prefix of all its constants: `ADEAD_GELU_`.
    prefix: String,
    /// The rest of each constant's name in small letters, and its comment.
    values: Vec<(String, String)>,
}

impl Enum {
    /// `GeluForm`.
    fn name(&self) -> String {
        match self.c_type.strip_prefix("adead_").unwrap() {
            "dtype" => "DType".into(),
            name => name.split('_').map(capital).collect(),
        }
    }
}

/// An operand or attribute of an operation.
#[derive(Clone, Copy, PartialEq)]
enum Kind {
    Flag,
    Number,
    Integer,
    Axes,
    /// A word: the value of this enum.
    Word(&'static str),
}

/// How an attribute is set from text: [`adead_core::Attrs::set`].
fn kind(attribute: &str) -> Kind {
    match attribute {
        "trans_a" | "trans_b" | "keepdim" | "causal" | "interleaved" => Kind::Flag,
        "alpha" | "beta" | "eps" | "scale" | "min" | "max" => Kind::Number,
        "axis" | "k" => Kind::Integer,
        "perm" | "axes" | "start" | "stop" | "step" | "before" | "after" => Kind::Axes,
        "dtype" => Kind::Word("DType"),
        "form" => Kind::Word("GeluForm"),
        "activation" => Kind::Word("Activation"),
        "precision" => Kind::Word("Precision"),
        "format" => Kind::Word("BlockFormat"),
        _ => panic!("what kind of attribute is {attribute}?"),
    }
}

#[derive(Clone)]
struct Operation {
    op: Op,
    about: String,
    required: Vec<&'static str>,
    optional: Vec<&'static str>,
    /// Any number of operands instead.
    repeated: bool,
}

impl Operation {
    /// All operands, in order, and whether each is optional.
    fn operands(&self) -> Vec<(&'static str, bool)> {
        self.op.info().operands.iter().map(|name| (name.trim_end_matches(['?', '*']), name.ends_with('?'))).collect()
    }

    fn attributes(&self) -> Vec<(&'static str, Kind)> {
        self.op.info().attrs.iter().map(|&name| (name, kind(name))).collect()
    }

    fn has_options(&self) -> bool {
        !self.optional.is_empty() || !self.op.info().attrs.is_empty()
    }

    /// `SoftmaxOptions`.
    fn options(&self) -> String {
        format!("{}Options", self.op.name().split('_').map(capital).collect::<String>())
    }
}

fn capital(word: &str) -> String {
    word[..1].to_uppercase() + &word[1..]
}

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

fn enums() -> Vec<Enum> {
    let header = fs::read_to_string(root().join("include/adead.h")).unwrap();
    let mut found = Vec::new();
    for part in header.split("// adead_").skip(1) {
        let Some((title, rest)) = part.split_once("\nenum {\n") else { continue };
        let (name, about) = title.split_once(": ").unwrap();
        let body = rest.split_once("\n};").unwrap().0;
        let (mut values, mut comment) = (Vec::new(), String::new());
        for line in body.lines().map(str::trim) {
            match line.strip_prefix("/// ") {
                Some(text) => comment = text.to_string(),
                None => values.push((line.split(' ').next().unwrap().to_string(), std::mem::take(&mut comment))),
            }
        }
        let mut length = values[0].0.len();
        for (name, _) in &values {
            length = name.bytes().zip(values[0].0.bytes()).take(length).take_while(|(a, b)| a == b).count();
        }
        let prefix = values[0].0[..length].rsplit_once('_').unwrap().0.to_string() + "_";
        for (name, _) in &mut values {
            *name = name[prefix.len()..].to_lowercase();
        }
        found.push(Enum { c_type: format!("adead_{name}"), about: about.to_string(), prefix, values });
    }
    found
}

fn operations(enums: &[Enum]) -> Vec<Operation> {
    // The header's comments, which are ASCII.
    let comments = &enums.iter().find(|found| found.c_type == "adead_op").unwrap().values;
    let operation = |(&op, (name, about)): (&Op, &(String, String))| {
        assert_eq!(name, op.name());
        let operands = op.info().operands;
        let of = |optional: bool| operands.iter().filter(move |name| name.ends_with('?') == optional);
        let bare = |name: &&'static str| name.trim_end_matches(['?', '*']);
        Operation {
            op,
            about: about.clone(),
            required: of(false).map(bare).collect(),
            optional: of(true).map(bare).collect(),
            repeated: operands.iter().any(|name| name.ends_with('*')),
        }
    };
    assert_eq!(comments.len(), Op::ALL.len());
    Op::ALL.iter().zip(comments).map(operation).collect()
}

/// The line that every generated file begins with.
const NOTE: &str = "Generated from include/adead.h and the table of operations by\n\
    // `ADEAD_BLESS=1 cargo test -p adead-c --test languages`; don't edit.";

#[test]
fn what_other_languages_have_is_up_to_date() {
    let enums = enums();
    let operations = operations(&enums);
    let context = fs::read_to_string(root().join("bindings/zig/src/context.zig")).unwrap();
    assert_eq!(
        enums.len(),
        16,
        "an enum more or less than there was: look at what is generated, then change this number"
    );
    for (path, expected) in [
        ("include/adead/enums.hpp", cpp::enums(&enums)),
        ("include/adead/options.hpp", cpp::options(&operations)),
        ("include/adead/operations.hpp", cpp::operations(&operations)),
        ("include/adead/pipeline.hpp", cpp::pipeline(&operations)),
        ("bindings/cpp/tests/typed.hpp", cpp::typed(&operations)),
        ("bindings/zig/src/enums.zig", zig::enums(&enums)),
        ("bindings/zig/src/operations.zig", zig::operations(&operations)),
        ("bindings/zig/src/context.zig", zig::context(&context, &operations)),
        ("bindings/zig/tests/typed.zig", zig::typed(&operations)),
    ] {
        let path = root().join(path);
        if env::var_os("ADEAD_BLESS").is_some() {
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(&path, &expected).unwrap();
        }
        let found = fs::read_to_string(&path).unwrap_or_default();
        let first = expected.lines().zip(found.lines()).find(|(expected, found)| expected != found);
        assert!(
            found == expected,
            "{} is out of date, first at {first:?}: ADEAD_BLESS=1 cargo test -p adead-c --test languages",
            path.display()
        );
    }
}
