//! Generates include/adead.h from these sources and compares. `ADEAD_BLESS=1` rewrites it.

use adead_c::{ADEAD_BACKEND_AUTO, ADEAD_BACKEND_CPU, ADEAD_BACKEND_CUDA, ADEAD_BACKEND_VULKAN};
use adead_core::contract::{Activation, BlockFormat, GeluForm, Precision};
use adead_core::hal::{ContractLevel, DeviceKind, Priority};
use adead_core::hardware::Mode;
use adead_core::profile::Activity;
use adead_core::program::{Direction, Format, RunOptions};
use adead_core::{Attrs, DType, Family, Op, Status};
use cbindgen::{Builder, Config, DocumentationStyle, Language, Style};
use std::fmt::{Debug, Write};
use std::path::{Path, PathBuf};
use std::{env, fs};

#[path = "languages/c.rs"]
mod c;
#[path = "languages/without.rs"]
mod without;

/// The sources, in the order of the header.
const SOURCES: &[&str] = &[
    "status",
    "interrupt",
    "simple",
    "hardware",
    "../support/src/context",
    "context",
    "gpu",
    "buffer",
    "kernel",
    "compile",
    "event",
    "stream",
    "tensor",
    "random",
    "op",
    "dispatch",
    "chain",
    "gradients",
    "elementwise",
    "matrix",
    "packed",
    "safetensors",
    "module",
    "reductions",
    "reduce",
    "moves",
    "program",
    "outcome",
    "memory",
    "layout",
    "flat",
    "overlap",
    "loader",
    "profile",
    "log",
];

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

fn core_source(path: &str) -> String {
    fs::read_to_string(root().join("core/src").join(path)).unwrap()
}

/// Writes the constants of one of the core's enums: numbers from the values, comments from the source.
fn constants<T: Copy + Debug>(to: &mut String, prefix: &str, source: &str, values: &[T], number: impl Fn(T) -> i64) {
    let row = |&value: &T| {
        let variant = format!("{value:?}");
        let at = source
            .lines()
            .position(|line| line.trim_start().strip_prefix(&variant).is_some_and(|rest| rest.starts_with([' ', ','])));
        let comments: Vec<&str> = source.lines().take(at.expect(&variant)).collect();
        let lines =
            comments.iter().rev().take_while(|line| !line.trim().ends_with([',', ';', '{'])).collect::<Vec<_>>();
        let text: Vec<&str> =
            lines.iter().rev().filter_map(|line| line.trim().strip_prefix("///")).map(str::trim).collect();
        assert!(!text.is_empty(), "{variant} has no comment");
        (screaming(&variant), text.join(" ").replace(['[', ']'], ""), number(value))
    };
    listed(to, prefix, values.iter().map(row));
}

/// Writes an enum from names without their prefix, comments and numbers.
fn listed(to: &mut String, prefix: &str, rows: impl Iterator<Item = (String, String, i64)>) {
    writeln!(to, "enum {{").unwrap();
    for (name, text, number) in rows {
        writeln!(to, "  /// {text}\n  {prefix}_{name} = {number},").unwrap();
    }
    // The last item has no comma, because C++98 allows none.
    to.truncate(to.trim_end_matches(",\n").len());
    writeln!(to, "\n}};\n").unwrap();
}

/// `InvalidArgument` to `INVALID_ARGUMENT`.
fn screaming(name: &str) -> String {
    let mut text = String::new();
    for (i, c) in name.char_indices() {
        let after_lower = i > 0 && name.as_bytes()[i - 1].is_ascii_lowercase();
        if c.is_ascii_uppercase() && after_lower {
            text.push('_');
        }
        text.push(c.to_ascii_uppercase());
    }
    text
}

fn all_constants() -> String {
    let mut text = String::from(
        "\n#ifndef ADEAD_API\n/// A build may define a prefix for all declarations.\n#define ADEAD_API\n#endif\n\n",
    );
    let to = &mut text;
    to.push_str("// adead_status: the result of a call. The numbers never change.\n");
    constants(to, "ADEAD", &core_source("error.rs"), Status::ALL, |status| status as i64);
    to.push_str("// The backend of the simple API.\nenum {\n");
    for (name, number, text) in [
        ("AUTO", ADEAD_BACKEND_AUTO, "The best device, or the one in the environment variable ADEAD_DEVICE."),
        ("CPU", ADEAD_BACKEND_CPU, "The CPU."),
        ("CUDA", ADEAD_BACKEND_CUDA, "A CUDA GPU."),
        ("VULKAN", ADEAD_BACKEND_VULKAN, "A Vulkan GPU."),
    ] {
        writeln!(to, "  /// {text}\n  ADEAD_BACKEND_{name} = {number}{}", if name == "VULKAN" { "" } else { "," })
            .unwrap();
    }
    to.push_str("};\n\n");
    to.push_str("// adead_dtype: the type of elements.\n");
    constants(to, "ADEAD_DTYPE", &core_source("dtype.rs"), &DType::ALL, |dtype| dtype as i64);
    to.push_str("// adead_op: the operations. The numbers never change; new ones come last.\n");
    let rows = Op::ALL.iter().map(|op| (screaming(op.name()), op.about().replace(['[', ']'], ""), *op as i64));
    listed(to, "ADEAD_OP", rows);
    let enum_text =
        |path: &str, name: &str| core_source(path).split_once(&format!("pub enum {name} ")).unwrap().1.to_string();
    to.push_str("// adead_activation: the function after a matrix product.\n");
    constants(
        to,
        "ADEAD_ACTIVATION",
        &enum_text("contract/functions.rs", "Activation"),
        &Activation::ALL,
        |activation| activation as i64,
    );
    to.push_str("// Instead of a precision: the context's default, see adead_context_set_precision.\n");
    to.push_str("#define ADEAD_PRECISION_DEFAULT (-1)\n\n");
    to.push_str("// adead_precision: the precision of a matrix product.\n");
    let precisions = enum_text("contract/fixed.rs", "Precision");
    constants(to, "ADEAD_PRECISION", &precisions, &Precision::ALL, |precision| precision as i64);
    to.push_str("// adead_block_format: how the elements of a quantised matrix are stored.\n");
    let formats = enum_text("contract/blocks.rs", "BlockFormat");
    constants(to, "ADEAD_BLOCK_FORMAT", &formats, &BlockFormat::ALL, |format| format as i64);
    to.push_str("// adead_gelu_form: the form of gelu.\n");
    constants(
        to,
        "ADEAD_GELU",
        &enum_text("contract/functions.rs", "GeluForm"),
        &[GeluForm::Erf, GeluForm::Tanh],
        |form| form as i64,
    );
    to.push_str("// adead_priority: the priority of a stream.\n");
    let priorities = [Priority::Normal, Priority::High];
    constants(to, "ADEAD_PRIORITY", &enum_text("hal/mod.rs", "Priority"), &priorities, |priority| priority as i64);
    to.push_str("// adead_contract_level: how a device keeps the arithmetic contract.\n");
    let levels = [ContractLevel::Native, ContractLevel::Emulated];
    constants(to, "ADEAD_CONTRACT", &enum_text("hal/mod.rs", "ContractLevel"), &levels, |level| level as i64);
    to.push_str("// adead_device_kind: the kind of a device.\n");
    let kinds =
        [DeviceKind::Cpu, DeviceKind::Discrete, DeviceKind::Integrated, DeviceKind::Virtual, DeviceKind::Software];
    constants(to, "ADEAD_KIND", &enum_text("hal/mod.rs", "DeviceKind"), &kinds, |kind| kind as i64);
    to.push_str("// adead_mode: where work should run.\n");
    let modes = [Mode::Cpu, Mode::Hybrid, Mode::Gpu];
    constants(to, "ADEAD_MODE", &enum_text("machine.rs", "Mode"), &modes, |mode| mode as i64);

    to.push_str("// adead_family: operations with similar costs.\n");
    let families = enum_text("family.rs", "Family");
    constants(to, "ADEAD_FAMILY", &families, &Family::ALL, |family| family as i64);

    to.push_str("/// Waits without a time limit.\n#define ADEAD_FOREVER ((uint64_t)-1)\n\n");

    to.push_str("/// Instead of a value of a chain: an optional operand is absent.\n");
    to.push_str("#define ADEAD_NO_VALUE ((adead_value)-1)\n\n");

    to.push_str("/// No threshold: the cost model decides.\n#define ADEAD_NO_THRESHOLD ((size_t)-1)\n\n");

    to.push_str("// adead_format: the format of a program.\n");
    let formats = [Format::Adead, Format::Agpu, Format::Hex, Format::Ahyb, Format::Text];
    constants(to, "ADEAD_FORMAT", &enum_text("program/mod.rs", "Format"), &formats, |format| format as i64);
    to.push_str("// adead_direction: the direction of a slot's contents.\n");
    let directions = [Direction::In, Direction::Out, Direction::Both];
    constants(to, "ADEAD_DIRECTION", &enum_text("program/slots.rs", "Direction"), &directions, |way| way as i64);

    to.push_str("// adead_activity: the kind of work in a profile.\n");
    let activities = enum_text("profile/record.rs", "Activity");
    constants(to, "ADEAD_ACTIVITY", &activities, &Activity::ALL, |activity| activity as i64);

    to.push_str("// adead_log_level: the severity of a message.\nenum {\n");
    for (number, (name, text)) in [
        ("OFF", "Nothing."),
        ("ERROR", "Something was lost, such as a device."),
        ("WARN", "Something can't be used or is ignored, and why."),
        ("INFO", "Devices that were found and opened."),
        ("DEBUG", "Everything read, compiled or set."),
        ("TRACE", "The steps of single calls."),
    ]
    .into_iter()
    .enumerate()
    {
        writeln!(to, "  /// {text}\n  ADEAD_LOG_{name} = {number}{}", if name == "TRACE" { "" } else { "," }).unwrap();
    }
    to.push_str("};\n\n");

    let Attrs { alpha, beta, scale, .. } = Attrs::default();
    let initial = |to: &mut String, name: &str, values: &str| {
        let (lower, upper) = (format!("adead_{name}_options"), name.to_uppercase());
        writeln!(to, "/// The defaults of {lower}.").unwrap();
        writeln!(to, "#define ADEAD_{upper}_OPTIONS_INIT {{ sizeof({lower}), {values} }}\n").unwrap();
    };
    initial(to, "context", "NULL, 0, ADEAD_PRECISION_F32");
    initial(
        to,
        "matmul",
        &format!("0, 0, {alpha:?}f, {beta:?}f, NULL, NULL, ADEAD_ACTIVATION_NONE, ADEAD_PRECISION_DEFAULT"),
    );
    initial(to, "attention", &format!("NULL, 0, {scale:?}f, ADEAD_PRECISION_DEFAULT"));
    initial(to, "module", "ADEAD_MODULE_LINEAR, ADEAD_ACTIVATION_GELU_ERF, 0, 0, 0, 0, 0, 0, NULL, 1e-12f, 0");
    initial(to, "forward", "NULL, NULL, 0, ADEAD_ACTIVATION_NONE, 0");
    initial(to, "run", &format!("(size_t){}, 0, 0", RunOptions::default().memory_limit));
    text
}

fn header() -> String {
    let sources = Path::new(env!("CARGO_MANIFEST_DIR")).join("src");
    let comment: String =
        include_str!("preamble.txt").lines().map(|line| format!(" * {line}").trim_end().to_string() + "\n").collect();
    let mut config = Config {
        language: Language::C,
        cpp_compat: true,
        usize_is_size_t: true,
        header: Some(format!("/*\n{comment} */")),
        include_guard: Some("ADEAD_H".into()),
        no_includes: true,
        sys_includes: vec!["stddef.h".into(), "stdint.h".into()],
        after_includes: Some(all_constants()),
        documentation_style: DocumentationStyle::Cxx,
        style: Style::Type,
        line_length: 120,
        tab_width: 2,
        ..Config::default()
    };
    config.function.prefix = Some("ADEAD_API".into());
    config.export.exclude = ["AUTO", "CPU", "CUDA", "VULKAN"].map(|name| format!("ADEAD_BACKEND_{name}")).to_vec();
    config.export.exclude.extend(["ADEAD_NO_THRESHOLD", "ADEAD_NO_VALUE", "ADEAD_FOREVER"].map(String::from));
    let mut builder = Builder::new().with_config(config);
    for name in SOURCES {
        builder = builder.with_src(sources.join(format!("{name}.rs")));
    }
    let mut text = Vec::new();
    builder.generate().unwrap().write(&mut text);
    ascii(&String::from_utf8(text).unwrap())
}

/// Replaces non-ASCII characters: compilers that assume another encoding than UTF-8 warn about them in comments.
fn ascii(text: &str) -> String {
    let mut ascii = text.to_string();
    for (from, to) in [("·", "*"), ("…", "..."), ("−", "-"), ("²", "^2"), ("≤", "<="), ("≥", ">="), ("×", "x")]
    {
        ascii = ascii.replace(from, to);
    }
    let other: String = ascii.chars().filter(|c| !c.is_ascii()).collect();
    assert!(other.is_empty(), "the header has {other}");
    ascii
}

/// Compares a file with its generated text, or writes it.
fn check(path: &str, expected: &str) {
    let file = root().join(path);
    if env::var_os("ADEAD_BLESS").is_some() {
        fs::create_dir_all(file.parent().unwrap()).unwrap();
        fs::write(&file, expected).unwrap();
    }
    let found = fs::read_to_string(&file).unwrap_or_default();
    let first = expected.lines().zip(found.lines()).find(|(expected, found)| expected != found);
    assert!(
        found == expected,
        "{path} is out of date, first at {first:?}: ADEAD_BLESS=1 cargo test -p adead-c --test header"
    );
}

#[test]
fn the_functions_of_operations_and_the_header_are_up_to_date() {
    check("bindings/c/src/elementwise.rs", &c::elementwise());
    check("bindings/c/src/reductions.rs", &c::reductions());
    let source = |name: &str| fs::read_to_string(root().join(format!("bindings/c/src/{name}.rs"))).unwrap();
    check("bindings/c/src/without.rs", &without::without(source));
    check("include/adead.h", &header());
}

#[test]
fn every_operation_has_its_function_and_every_source_is_read() {
    let header = header();
    for op in Op::ALL {
        assert!(header.contains(&format!(" adead_tensor_{op}(")), "{op} has no function");
    }
    for entry in fs::read_dir(Path::new(env!("CARGO_MANIFEST_DIR")).join("src")).unwrap() {
        let path = entry.unwrap().path();
        let text = fs::read_to_string(&path).unwrap();
        let name = path.file_stem().unwrap().to_str().unwrap();
        let generated = name == "without";
        let read = generated || !text.contains("extern \"C\"") || SOURCES.contains(&name);
        assert!(read, "{name}.rs is not in SOURCES");
    }
}
