//! The generator of the functions that a minimal build lacks. They have the signatures of their sources and return an
//! error.

use std::fmt::Write;

/// What a build that lacks something is, and how to build another one.
const MINIMAL: (&str, &str) = ("a minimal build", "without ADEAD_MINIMAL");
const PLAIN: (&str, &str) = ("a build", "with ADEAD_GRADIENTS");

/// Each source, the feature that it needs, and what a build without that feature says.
const LACKING: [(&str, &str, (&str, &str), &str); 12] = [
    ("compile", "compilers", MINIMAL, "no compilers"),
    ("flat", "flat", MINIMAL, "no matrices as numbers"),
    ("gradients", "autograd", PLAIN, "no gradients"),
    ("loader", "overlap", MINIMAL, "no batches"),
    ("log", "log", MINIMAL, "no messages"),
    ("module", "nn", MINIMAL, "no layers"),
    ("outcome", "programs", MINIMAL, "no programs"),
    ("overlap", "overlap", MINIMAL, "no batches"),
    ("profile", "profile", MINIMAL, "no profiler"),
    ("program", "programs", MINIMAL, "no programs"),
    ("random", "random", MINIMAL, "no random tensors"),
    ("safetensors", "nn", MINIMAL, "no layers"),
];

/// Types that every build has.
const KNOWN: [&str; 10] = ["i32", "i64", "u8", "u32", "u64", "f32", "f64", "usize", "c_char", "c_void"];

/// Generates bindings/c/src/without.rs. `source` returns the text of a source.
pub fn without(source: impl Fn(&str) -> String) -> String {
    let mut text = String::from(
        "//! The functions that a minimal build lacks: each says so.\n\n\
         // Generated from the sources of these functions by `ADEAD_BLESS=1 cargo test -p adead-c --test header`; don't edit.\n",
    );
    let mut features: Vec<String> = LACKING.map(|(_, feature, ..)| format!("feature = \"{feature}\"")).to_vec();
    features.dedup();
    write!(
        text,
        "\n#[cfg(not(all({})))]\n#[inline(never)]\n#[rustfmt::skip]\nfn lacks(build: &str, what: &str, how: &str) -> crate::status::adead_status {{\n    \
         use crate::pointers::fail;\n    \
         crate::status::guard(|| fail!(Unsupported, \"this is {{build}} of adead, which has {{what}}: build it {{how}}\"))\n\
         }}\n",
        features.join(", ")
    )
    .unwrap();
    let all = LACKING.map(|(name, ..)| source(name)).concat();
    for (name, feature, (build, how), what) in LACKING {
        write!(
            text,
            "\n/// As in `{name}.rs`.\n#[cfg(not(feature = \"{feature}\"))]\n#[rustfmt::skip]\nmod {name} {{\n    \
             use super::lacks;\n    use crate::status::adead_status;\n    \
             #[allow(unused_imports)]\n    use std::ffi::{{c_char, c_void}};\n\n    \
             fn without() -> adead_status {{\n        lacks(\"{build}\", \"{what}\", \"{how}\")\n    }}\n"
        )
        .unwrap();
        for exported in source(name).split("#[unsafe(no_mangle)]").skip(1) {
            let signature = exported.split_once(" fn ").unwrap().1.split_once('{').unwrap().0.trim_end();
            function(&mut text, &all, signature);
        }
        text.push_str("}\n");
    }
    text
}

fn function(to: &mut String, sources: &str, signature: &str) {
    let (name, rest) = signature.split_once('(').unwrap();
    let (parameters, result) = rest.rsplit_once(')').unwrap();
    let types = parameters.split(',').filter_map(|one| one.split_once(": "));
    let types: Vec<String> = types.map(|(_, given)| format!("_: {}", plain(sources, given.trim()))).collect();
    let (result, body) = match result.trim().trim_start_matches("-> ") {
        "" => (String::new(), ""),
        "adead_status" => (" -> adead_status".into(), "without()"),
        "usize" => (" -> usize".into(), "0"),
        pointer if pointer.starts_with("*mut ") => (" -> *mut c_void".into(), "std::ptr::null_mut()"),
        other => panic!("what does {name} return, which is {other}, in a build without it?"),
    };
    let head = format!("    pub extern \"C\" fn {name}({}){result}", types.join(", "));
    writeln!(to, "\n    #[unsafe(no_mangle)]\n{head} {{ {body} }}").unwrap();
}

/// Returns a parameter's type for a build without the source.
fn plain(sources: &str, given: &str) -> String {
    for pointer in ["*const ", "*mut "] {
        if let Some(rest) = given.strip_prefix(pointer) {
            let is_known = KNOWN.contains(&rest) || rest.starts_with('*');
            // A type that only the source defines can be any type here.
            return pointer.to_string() + &if is_known { plain(sources, rest) } else { "c_void".into() };
        }
    }
    if KNOWN.contains(&given) {
        return given.into();
    }
    if given == "adead_value" {
        return "u64".into();
    }
    if matches!(given, "adead_activation" | "adead_gelu_form" | "adead_block_format") {
        return "i32".into();
    }
    let alias = sources.split_once(&format!("pub type {given} =")).expect(given).1.trim_start();
    match alias.split(';').next().unwrap() {
        number if KNOWN.contains(&number) => number.into(),
        callback if callback.starts_with("Option<") => "*const c_void".into(),
        other => panic!("what is {given}, {other}, in a build without it?"),
    }
}
