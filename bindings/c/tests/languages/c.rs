//! The generator of C's functions for elementwise operations and reductions.

use adead_core::{Gives, Op, OpKind};
use std::fmt::Write;

/// Generates bindings/c/src/elementwise.rs.
pub fn elementwise() -> String {
    let mut text = String::from(
        "//! Elementwise operations.\n\n// Generated from the table of operations by `ADEAD_BLESS=1 cargo test -p adead-c --test header`; don't edit.\n\nuse crate::context::adead_context;\n\
         use crate::op::{run, run_guarded};\nuse crate::pointers::fail;\n\
         use crate::status::{adead_status, guard};\nuse crate::tensor::adead_tensor;\n\
         use adead_core::contract::GeluForm;\nuse adead_core::{Attrs, Op};\n\n\
         /// The form of gelu, one of `ADEAD_GELU_…`.\npub type adead_gelu_form = i32;\n",
    );
    let of = |kind: OpKind| Op::ALL.iter().filter(move |op| op.kind() == kind);
    for &op in of(OpKind::Binary).chain(of(OpKind::Comparison)).chain(of(OpKind::Unary)) {
        function(&mut text, op);
    }
    text
}

/// Generates bindings/c/src/reductions.rs.
pub fn reductions() -> String {
    let mut text = String::from(
        "//! Reductions.\n\n// Generated from the table of operations by `ADEAD_BLESS=1 cargo test -p adead-c --test header`; don't edit.\n\nuse crate::context::adead_context;\n\
         use crate::op::{run, run_guarded};\nuse crate::reduce::reduction;\nuse crate::status::{adead_status, guard};\n\
         use crate::tensor::{adead_dtype, adead_tensor};\nuse adead_core::{Attrs, Op};\n",
    );
    for &op in Op::ALL {
        if let Some(gives) = op.gives() {
            reduction(&mut text, op, gives);
        }
    }
    text
}

fn reduction(to: &mut String, op: Op, gives: Gives) {
    let about = op.about().replace(", i64.", ".");
    writeln!(to, "\n/// {about}").unwrap();
    writeln!(to, "///\n/// `axis` is one axis (negative ones count from the end) or `ADEAD_AXIS_ALL`. `keepdim` not 0 keeps it, with length 1.").unwrap();
    writeln!(
        to,
        "{}",
        match gives {
            Gives::Index => "/// `dtype` is the type of the index: i64, i32 or u32.",
            _ => "/// For several axes, set the attribute `axes` and call `adead_op_run`.",
        }
    )
    .unwrap();
    writeln!(to, "#[unsafe(no_mangle)]\npub unsafe extern \"C\" fn adead_tensor_{op}(").unwrap();
    to.push_str("    context: *const adead_context,\n    x: *const adead_tensor,\n    axis: i32,\n    keepdim: i32,\n");
    if gives == Gives::Index {
        to.push_str("    dtype: adead_dtype,\n");
    }
    to.push_str("    out: *mut *mut adead_tensor,\n) -> adead_status {\n");
    let safety = "// SAFETY: the caller vouches for the pointers.";
    if gives == Gives::Index {
        to.push_str("    guard(|| {\n");
        to.push_str(
            "        let attrs = Attrs { dtype: Some(crate::tensor::dtype(dtype)?), ..reduction(axis, keepdim) };\n",
        );
        writeln!(to, "        {safety}").unwrap();
        writeln!(to, "        unsafe {{ run(context, Op::{op:?}, &attrs, &[x], out) }}\n    }})\n}}").unwrap();
        return;
    }
    writeln!(to, "    {safety}").unwrap();
    writeln!(to, "    unsafe {{ run_guarded(context, Op::{op:?}, &reduction(axis, keepdim), &[x], out) }}\n}}")
        .unwrap();
}

/// Returns the C type of an attribute.
fn attribute_type(name: &str) -> &'static str {
    match name {
        "alpha" | "min" | "max" => "f32",
        "form" => "adead_gelu_form",
        _ => panic!("attribute {name} has no C type"),
    }
}

fn function(to: &mut String, op: Op) {
    let (name, about) = (op.name(), op.about().trim_end_matches('.'));
    let (what, more) =
        about.split_once("; ").map_or((about, String::new()), |(what, more)| (what, format!("; {more}")));
    let what = what.trim_end_matches(", element by element");
    match op.kind() {
        OpKind::Binary => writeln!(
            to,
            "\n/// {what}, element by element with NumPy's broadcasting{more}. Both have the same dtype: f32, f16 or bf16."
        ),
        OpKind::Comparison => writeln!(
            to,
            "\n/// {what}, element by element with NumPy's broadcasting{more}. Takes any dtype, the same for both. Returns bool."
        ),
        _ => writeln!(to, "\n/// {what}, element by element{more}."),
    }
    .unwrap();
    writeln!(to, "#[unsafe(no_mangle)]\npub unsafe extern \"C\" fn adead_tensor_{name}(").unwrap();
    writeln!(to, "    context: *const adead_context,").unwrap();
    for operand in op.info().operands {
        writeln!(to, "    {operand}: *const adead_tensor,").unwrap();
    }
    let attributes = op.info().attrs;
    for attribute in attributes {
        writeln!(to, "    {attribute}: {},", attribute_type(attribute)).unwrap();
    }
    writeln!(to, "    out: *mut *mut adead_tensor,\n) -> adead_status {{").unwrap();
    let operands = op.info().operands.join(", ");
    let attrs = match attributes {
        [] => "Attrs::DEFAULT".to_string(),
        named => format!("Attrs {{ {}, ..Attrs::default() }}", named.join(", ")),
    };
    let safety = "// SAFETY: the caller vouches for the pointers.";
    if !attributes.contains(&"form") {
        writeln!(to, "    {safety}").unwrap();
        writeln!(to, "    unsafe {{ run_guarded(context, Op::{op:?}, &{attrs}, &[{operands}], out) }}\n}}").unwrap();
        return;
    }
    writeln!(to, "    guard(|| {{").unwrap();
    to.push_str(
        "        let form = match [GeluForm::Erf, GeluForm::Tanh].into_iter().find(|&known| known as adead_gelu_form == form) {\n\
         \x20           Some(form) => form,\n\
         \x20           None => fail!(InvalidArgument, \"form is {form}; it must be one of ADEAD_GELU_…\"),\n\
         \x20       };\n",
    );
    writeln!(to, "        {safety}").unwrap();
    writeln!(to, "        unsafe {{ run(context, Op::{op:?}, &{attrs}, &[{operands}], out) }}\n    }})\n}}").unwrap();
}
