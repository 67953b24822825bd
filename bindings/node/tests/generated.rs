//! Generates `operations.js`, `operations.d.ts` and the packages' descriptions from the core's tables and the workspace, and
//! compares. `ADEAD_BLESS=1` rewrites them.

use adead::contract::{Activation, BlockFormat};
use adead::dispatch::Family;
use adead::{DType, Op, Status, VERSION};
use std::collections::HashMap;
use std::fmt::Write;
use std::path::{Path, PathBuf};
use std::{env, fs};

fn here(path: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join(path)
}

/// Compares a file with its generated text, or writes it.
fn check(path: &str, expected: &str) {
    let file = here(path);
    if env::var_os("ADEAD_BLESS").is_some() {
        fs::create_dir_all(file.parent().unwrap()).unwrap();
        fs::write(&file, expected).unwrap();
    }
    let found = fs::read_to_string(&file).unwrap_or_default();
    assert!(found == expected, "{path} is out of date: run this test with ADEAD_BLESS=1");
}

/// `trans_a` as `transA`.
fn camel(name: &str) -> String {
    let mut words = name.split('_');
    let mut text = words.next().unwrap_or_default().to_string();
    for word in words {
        text += &word[..1].to_uppercase();
        text += &word[1..];
    }
    text
}

/// `matmul` as `Matmul`.
fn title(name: &str) -> String {
    name[..1].to_uppercase() + &name[1..]
}

/// A union of texts.
fn union(names: impl Iterator<Item = &'static str>) -> String {
    names.map(|name| format!("'{name}'")).collect::<Vec<_>>().join(" | ")
}

/// The TypeScript type of an attribute.
fn attribute_type(name: &str) -> &'static str {
    match name {
        "trans_a" | "trans_b" | "keepdim" | "causal" | "interleaved" => "boolean",
        "alpha" | "beta" | "eps" | "scale" | "min" | "max" | "k" => "number",
        "axis" => "number | 'all'",
        "perm" | "axes" | "start" | "stop" | "step" | "before" | "after" => "number[]",
        "dtype" => "DType",
        "form" => "'erf' | 'tanh'",
        "precision" => "'f32' | 'fixed24' | 'fixed16'",
        "format" => "BlockFormat",
        "activation" => "Activation",
        _ => panic!("attribute {name} has no type"),
    }
}

/// An operation's operands by how a method takes them.
struct Operands {
    required: Vec<String>,
    optional: Vec<String>,
    repeats: bool,
}

fn operands(op: Op) -> Operands {
    let (mut required, mut optional, mut repeats) = (Vec::new(), Vec::new(), false);
    for name in op.info().operands {
        match (name.strip_suffix('?'), name.strip_suffix('*')) {
            (Some(name), _) => optional.push(camel(name)),
            (_, Some(name)) => {
                repeats = true;
                required.push(camel(name));
            }
            _ => required.push(camel(name)),
        }
    }
    assert!(!repeats || required.len() == 1, "{op}: a repeated operand must be the only one");
    Operands { required, optional, repeats }
}

/// The methods of a pipeline that record an operation. `bias` is a sum that becomes part of a product, as in the core's chains.
fn recorded(op: Op) -> impl Iterator<Item = String> {
    std::iter::once(camel(op.name())).chain((op == Op::Add).then(|| "bias".to_string()))
}

/// Each operation's text in the op table and its row of docs/operations.md: operands, attributes, result.
fn documentation() -> HashMap<&'static str, String> {
    let table = fs::read_to_string(here("../../docs/operations.md")).unwrap();
    let mut all = HashMap::new();
    for &op in Op::ALL {
        let (name, comment) = (op.name(), op.about());
        let row = table.lines().find_map(|line| {
            let cells: Vec<&str> = line.split('|').map(str::trim).collect();
            match cells[..] {
                ["", names, operands, attributes, result, ""]
                    if names.split(' ').any(|one| one == format!("`{name}`")) =>
                {
                    Some((operands, attributes, result))
                }
                _ => None,
            }
        });
        let (operands, attributes, result) = row.expect(name);
        let attributes = if attributes == "–" { "none" } else { attributes };
        let mut attributes = attributes.to_string();
        op.info().attrs.iter().for_each(|attribute| attributes = attributes.replace(attribute, &camel(attribute)));
        let text = format!(
            "   * {comment}\n   *\n   * Operands: {operands}.\n   * Attributes: {attributes}.\n   * Result: {result}.\n"
        );
        all.insert(name, text);
    }
    all
}

const GENERATED: &str = "// Generated from the op table by `ADEAD_BLESS=1 cargo test -p adead-node`; don't edit.\n";

#[test]
fn methods_of_operations() {
    let (mut of_context, mut of_tensor, mut of_pipeline) = (String::new(), String::new(), String::new());
    for &op in Op::ALL {
        let (name, code) = (camel(op.name()), op as usize);
        let Operands { required, repeats, .. } = operands(op);
        let all = required.join(", ");
        // A repeated operand is an array.
        let behind_this = if repeats { &required[..] } else { &required[1..] };
        let others = behind_this.iter().map(|name| format!("{name}, ")).collect::<String>();
        let tail = std::iter::once("this").chain(behind_this.iter().map(String::as_str)).collect::<Vec<_>>().join(", ");
        write!(
            of_context,
            "    {name}({all}, options) {{\n      return run(this, {code}, options, {all})\n    }},\n    \
             async {name}Async({all}, options) {{\n      return runAsync(this, {code}, options, [{all}])\n    }},\n"
        )
        .unwrap();
        write!(
            of_tensor,
            "    {name}({others}options) {{\n      return run(null, {code}, options, {tail})\n    }},\n    \
             async {name}Async({others}options) {{\n      return runAsync(null, {code}, options, [{tail}])\n    }},\n"
        )
        .unwrap();
        for name in recorded(op) {
            write!(
                of_pipeline,
                "    {name}(...args) {{\n      pipelineRecord(this, {code}, args)\n      return this\n    }},\n"
            )
            .unwrap();
        }
    }
    let text = format!(
        "{GENERATED}'use strict'\n\n// The operations as methods: `run` takes the context (null: the default one), the \
         operation's number,\n// options, operands.\nmodule.exports = ({{ run, runAsync, pipelineRecord }}) => ({{\n  \
         context: {{\n{of_context}  }},\n  tensor: {{\n{of_tensor}  }},\n  pipeline: {{\n{of_pipeline}  }},\n}})\n"
    );
    check("operations.js", &text);
}

#[test]
fn types_of_operations() {
    let documentation = documentation();
    let mut text =
        GENERATED.to_string() + "import type { Value } from './native'\nimport type { Tensor } from './tensor'\n\n";
    let mut alias = |doc: &str, name: &str, names: String| {
        write!(text, "/** {doc} */\nexport type {name} =\n  | {}\n\n", names.replace(" | ", "\n  | ")).unwrap();
    };
    alias("An operation.", "OpName", union(Op::ALL.iter().map(|op| op.name())));
    alias("The type of a tensor's elements.", "DType", union(DType::ALL.into_iter().map(DType::name)));
    alias("Operations with similar costs.", "Family", union(Family::ALL.into_iter().map(Family::name)));
    alias(
        "The function after a matrix product.",
        "Activation",
        union(Activation::ALL.into_iter().map(Activation::name)),
    );
    alias(
        "How the elements of a quantised matrix are stored.",
        "BlockFormat",
        union(BlockFormat::ALL.into_iter().map(BlockFormat::name)),
    );
    let statuses = Status::ALL.iter().filter(|&&status| status != Status::Ok);
    alias("Why a call failed.", "StatusName", union(statuses.map(|status| status.name())));

    let mut attributes: Vec<&str> = Op::ALL.iter().flat_map(|op| op.info().attrs).copied().collect();
    attributes.sort_unstable();
    attributes.dedup();
    text += "/** The attributes of every operation. */\nexport interface Attributes {\n";
    for name in attributes {
        writeln!(text, "  {}?: {}", camel(name), attribute_type(name)).unwrap();
    }
    text += "}\n\n/** A signal that ends a promise, and its work if that has begun. */\nexport interface Abortable {\n";
    text += "  signal?: AbortSignal\n}\n";

    text += "\n/** An operand in a pipeline: a tensor, which is the same in each run, or a value of the pipeline. */\n";
    text += "export type Operand = Tensor | Value\n";

    let (mut of_context, mut of_tensor, mut of_pipeline) = (String::new(), String::new(), String::new());
    for &op in Op::ALL {
        let (table, name) = (op.name(), camel(op.name()));
        let Operands { required, optional, repeats } = operands(op);
        let options = if optional.is_empty() && op.info().attrs.is_empty() {
            String::new()
        } else {
            let options = title(&name) + "Options";
            let of = if optional.is_empty() { "" } else { "<T = Tensor>" };
            write!(text, "\n/** Options of `{name}`. */\nexport interface {options}{of} {{\n").unwrap();
            for operand in &optional {
                writeln!(text, "  {operand}?: T | null").unwrap();
            }
            for attribute in op.info().attrs {
                writeln!(text, "  {}?: {}", camel(attribute), attribute_type(attribute)).unwrap();
            }
            text += "}\n";
            options
        };
        let of = if repeats { "Tensor[]" } else { "Tensor" };
        let typed: Vec<String> = required.iter().map(|name| format!("{name}: {of}")).collect();
        let others = if repeats { &typed[..] } else { &typed[1..] };
        for (to, arguments) in [(&mut of_context, &typed[..]), (&mut of_tensor, others)] {
            let list = |options: &str| {
                let options = (!options.is_empty()).then(|| format!("options?: {options}"));
                arguments.iter().cloned().chain(options).collect::<Vec<_>>().join(", ")
            };
            let stoppable = if options.is_empty() { "Abortable".to_string() } else { format!("{options} & Abortable") };
            write!(
                to,
                "  /**\n{}   */\n  {name}({}): Tensor\n  /** `{name}` on another thread. */\n  {name}Async({}): \
                 Promise<Tensor>\n",
                documentation[table],
                list(&options),
                list(&stoppable)
            )
            .unwrap();
        }
        let of = if repeats { "Operand[]" } else { "Operand" };
        let typed: Vec<String> = required.iter().map(|name| format!("{name}: {of}")).collect();
        let options = options + if optional.is_empty() { "" } else { "<Operand>" };
        let options = (!options.is_empty()).then(|| format!("options?: {options}"));
        let list = |operands: &[String]| operands.iter().cloned().chain(options.clone()).collect::<Vec<_>>().join(", ");
        for method in recorded(op) {
            let (first, all) = (&required[0], list(&typed));
            if repeats {
                writeln!(of_pipeline, "  /** `{name}` of the previous result, if there is one, and of these. */")
                    .unwrap();
            } else {
                let others = list(&typed[1..]);
                write!(
                    of_pipeline,
                    "  /** `{name}` of the previous result. */\n  {method}({others}): this\n  /** `{name}` of `{first}`, for the \
                     first call. */\n"
                )
                .unwrap();
            }
            writeln!(of_pipeline, "  {method}({all}): this").unwrap();
        }
    }
    write!(text, "\n/** The operations of a `Context`. */\nexport interface ContextOperations {{\n{of_context}}}\n")
        .unwrap();
    write!(
        text,
        "\n/** The operations of a `Tensor`, on the default context. */\nexport interface TensorOperations {{\n{of_tensor}}}\n"
    )
    .unwrap();
    write!(
        text,
        "\n/** The operations of a `Pipeline`: each call takes the previous result. Only the first call names all operands. */\n\
         export interface PipelineOperations {{\n{of_pipeline}}}\n"
    )
    .unwrap();
    check("operations.d.ts", &text);
}

/// The platforms that a package with the module is made for: name, `os`, `cpu`, `libc`.
const PLATFORMS: [(&str, &str, &str, Option<&str>); 7] = [
    ("linux-x64-gnu", "linux", "x64", Some("glibc")),
    ("linux-x64-musl", "linux", "x64", Some("musl")),
    ("linux-arm64-gnu", "linux", "arm64", Some("glibc")),
    ("linux-arm64-musl", "linux", "arm64", Some("musl")),
    ("darwin-x64", "darwin", "x64", None),
    ("darwin-arm64", "darwin", "arm64", None),
    ("win32-x64-msvc", "win32", "x64", None),
];

const ENGINES: &str = ">=20";

/// A package for npm: one for all platforms, and for each platform one with the module.
struct Package {
    name: &'static str,
    /// The prefix of the name of a platform's package.
    scoped: &'static str,
    /// Relative to the project's root.
    folder: &'static str,
    description: String,
    keywords: &'static str,
    /// Exports other than `.`.
    subpaths: &'static str,
    files: &'static [&'static str],
}

#[test]
fn packages() {
    let adead = Package {
        name: "adead",
        scoped: "@adead/",
        folder: "bindings/node",
        description: description("bindings/rust"),
        keywords: r#""gpu", "compute", "tensor", "deterministic", "matmul""#,
        subpaths: r#"
    "./nn": {
      "import": { "types": "./nn/index.d.mts", "default": "./nn/index.mjs" },
      "require": { "types": "./nn/index.d.ts", "default": "./nn/index.js" }
    },"#,
        files: &[
            "index.js",
            "index.mjs",
            "index.d.ts",
            "index.d.mts",
            "errors.js",
            "load.js",
            "native.d.ts",
            "nn",
            "operations.js",
            "operations.d.ts",
            "overlap.js",
            "overlap.d.ts",
            "platform.js",
            "tensor.js",
            "tensor.d.ts",
        ],
    };
    let models = Package {
        name: "adead-models",
        scoped: "@adead/models-",
        folder: "models/node",
        description: description("models"),
        keywords: r#""embeddings", "sentence", "transformers", "deterministic", "gpu""#,
        subpaths: "",
        files: &[
            "index.js",
            "index.mjs",
            "index.d.ts",
            "index.d.mts",
            "errors.js",
            "gguf.js",
            "load.js",
            "options.js",
            "platform.js",
            "text.js",
            "train.js",
        ],
    };
    for package in [&adead, &models] {
        check_package(package);
    }
    // The code that finds the module differs only in names.
    let file = |name: &str| fs::read_to_string(here(name)).unwrap();
    check("../../models/node/platform.js", &file("platform.js"));
    check("../../models/node/errors.js", &file("errors.js"));
    let load = file("load.js").replace("adead.${", "adead-models.${").replace("@adead/", models.scoped);
    let load = load.replace("adead:", "adead-models:").replace("install adead ", "install adead-models ");
    check("../../models/node/load.js", &load);
}

fn check_package(package: &Package) {
    let Package { name: own, scoped, folder, description, keywords, subpaths, files } = package;
    // A published package lacks a file that the list forgets, and only a user would see it.
    for entry in fs::read_dir(here(&format!("../../{folder}"))).unwrap() {
        let name = entry.unwrap().file_name().into_string().unwrap();
        let source = [".js", ".mjs", ".ts", ".mts"].iter().any(|end| name.ends_with(end));
        assert!(!source || files.contains(&name.as_str()), "{folder}/{name} is not in the package's list of files");
    }
    // The script by which `npm install` of a checkout's folder builds the module.
    let script = if *folder == "bindings/node" { "scripts/build.mjs" } else { "../../bindings/node/scripts/build.mjs" };
    for (name, os, cpu, libc) in PLATFORMS {
        let libc = libc.map_or(String::new(), |libc| format!("\n  \"libc\": [\"{libc}\"],"));
        let text = format!(
            r#"{{
  "name": "{scoped}{name}",
  "version": "{VERSION}",
  "description": "The module of {own} for {name}",
  "license": "MIT",
  "repository": {{
    "type": "git",
    "url": "git+https://github.com/adead/adead.git",
    "directory": "{folder}"
  }},
  "main": "{own}.{name}.node",
  "files": ["{own}.{name}.node"],
  "os": ["{os}"],
  "cpu": ["{cpu}"],{libc}
  "engines": {{ "node": "{ENGINES}" }}
}}
"#
        );
        check(&format!("../../{folder}/npm/{name}/package.json"), &text);
    }
    let platforms: Vec<String> =
        PLATFORMS.iter().map(|(name, ..)| format!("    \"{scoped}{name}\": \"{VERSION}\"")).collect();
    let files: Vec<String> = files.iter().map(|file| format!("    \"{file}\"")).collect();
    let text = format!(
        r#"{{
  "name": "{own}",
  "version": "{VERSION}",
  "description": "{description}",
  "license": "MIT",
  "repository": {{
    "type": "git",
    "url": "git+https://github.com/adead/adead.git",
    "directory": "{folder}"
  }},
  "keywords": [{keywords}],
  "main": "index.js",
  "module": "index.mjs",
  "types": "index.d.ts",
  "exports": {{
    ".": {{
      "import": {{ "types": "./index.d.mts", "default": "./index.mjs" }},
      "require": {{ "types": "./index.d.ts", "default": "./index.js" }}
    }},{subpaths}
    "./package.json": "./package.json"
  }},
  "files": [
{}
  ],
  "engines": {{ "node": "{ENGINES}" }},
  "scripts": {{ "prepare": "node {script} {own}-node {own}" }},
  "optionalDependencies": {{
{}
  }}
}}
"#,
        files.join(",\n"),
        platforms.join(",\n")
    );
    check(&format!("../../{folder}/package.json"), &text);
}

/// Returns a crate's description.
fn description(folder: &str) -> String {
    let text = fs::read_to_string(here(&format!("../../{folder}/Cargo.toml"))).unwrap();
    let line = text.lines().find_map(|line| line.strip_prefix("description = \"")).unwrap();
    line.trim_end_matches('"').to_string()
}
