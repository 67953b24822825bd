//! The steps of the contract's functions stand once, in `docs/contract.md`. From them come the scalar form, the form on vectors and
//! the one in GLSL, which CUDA's kernels include. `ADEAD_BLESS=1 cargo test -p adead-core --test steps` writes them.

mod infix;
mod parse;
mod vector;

use std::path::Path;

use infix::Form;
use parse::functions;

const ORIGIN: &str =
    "Generated from docs/contract.md by `ADEAD_BLESS=1 cargo test -p adead-core --test steps`; don't edit.";

fn scalar(page: &str) -> String {
    let functions =
        functions(page).iter().map(|f| "\n".to_string() + &infix::function(Form::Rust, f)).collect::<String>();
    format!(
        "//! The steps of the contract's functions on numbers. {ORIGIN}\n\n\
         use super::fmaz;\nuse super::functions::{{c, exponent, horner, mantissa, power, scale, upper}};\n{functions}"
    )
}

fn vectors(page: &str) -> String {
    let functions = functions(page).iter().map(|f| "\n".to_string() + &vector::function(f)).collect::<String>();
    format!(
        "//! The steps of the contract's functions on vectors. {ORIGIN}\n\n\
         // SAFETY, for every function here: a kernel calls it, so the instruction set of `S` is available.\n\
         #![allow(clippy::missing_safety_doc)]\n\n\
         use super::Simd;\n\
         use super::math::{{abs, c, exponent, horner, mantissa, neg, power, scale, scale_down, subnormal, upper}};\n{functions}"
    )
}

fn glsl(page: &str) -> String {
    let functions =
        functions(page).iter().map(|f| "\n".to_string() + &infix::function(Form::Glsl, f)).collect::<String>();
    format!("// The steps of the contract's functions. {ORIGIN}\n// CUDA's kernels include it too.\n{functions}")
}

#[test]
fn forms_are_what_the_page_says() {
    let core = Path::new(env!("CARGO_MANIFEST_DIR"));
    let page = std::fs::read_to_string(core.join("../docs/contract.md")).unwrap();
    let forms = [
        ("src/contract/steps.rs", scalar(&page)),
        ("src/hal/cpu/simd/steps.rs", vectors(&page)),
        ("kernels/vulkan/steps.glsl", glsl(&page)),
    ];
    for (file, expected) in forms {
        let path = core.join(file);
        if std::env::var_os("ADEAD_BLESS").is_some() {
            std::fs::write(&path, &expected).unwrap();
        }
        let found = std::fs::read_to_string(&path).unwrap_or_default();
        let line = expected.lines().zip(found.lines()).take_while(|(a, b)| a == b).count() + 1;
        assert!(found == expected, "{file} differs from docs/contract.md at line {line}: run with ADEAD_BLESS=1");
    }
}

/// What a form could compute otherwise is refused.
#[test]
fn unclear_steps_are_refused() {
    for (line, message) in [
        ("y = fmaz(x * x, x, x)", "name the arguments"),
        ("y = x / (x + 1)", "name the divisor"),
        ("y = x < 0 ? x - 1 : x", "name both values"),
        ("y = exact(x * x)", "with one product"),
        ("x = 1 + x", "has a value"),
        ("y = Horner(x; 3f800000)", "two numbers or more"),
        ("y = min(x, 1) + 1", "name `min`"),
        ("y = x + ", "a value is missing"),
        ("y = x 1", "too much"),
        ("y = 12z", "is no number"),
    ] {
        let page = format!("```steps\nf(x):\n    {line}\n    return x\n```\n");
        let refused = std::panic::catch_unwind(|| functions(&page).len());
        let error = refused.expect_err(line);
        let error = error.downcast_ref::<String>().unwrap();
        assert!(error.contains(message), "{line}: {error}");
    }
}
