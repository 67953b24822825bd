//! The generator of the functions that a minimal build lacks. They have the signatures of their sources and return an
//! error.

use std::fmt::Write;

/// Each source, the feature that it needs, and the name of what a build without that feature lacks.
const LACKING: [(&str, &str, &str); 10] = [
    ("flat", "flat", "no matrices as numbers"),
    ("gradients", "autograd", "no gradients"),
    ("loader", "overlap", "no batches"),
    ("log", "log", "no messages"),
    ("module", "nn", "no layers"),
    ("outcome", "programs", "no programs"),
    ("overlap", "overlap", "no batches"),
    ("profile", "profile", "no profiler"),
    ("program", "programs", "no programs"),
    ("safetensors", "nn", "no layers"),
];

/// Types that every build has.
const KNOWN: [&str; 10] = ["i32", "i64", "u8", "u32", "u64", "f32", "f64", "usize", "c_char", "c_void"];

/// Generates bindings/c/src/without.rs. `source` returns the text of a source.
pub fn without(source: impl Fn(&str) -> String) -> String {
    let mut text = String::from(
        "//! The functions that a minimal build lacks: each says so.\n\n\
         // Generated from the sources of these functions by `ADEAD_BLESS=1 cargo test -p adead-c --test header`; don't edit.\n",
    );
    let mut features: Vec<String> = LACKING.map(|(_, feature, _)| format!("feature = \"{feature}\"")).to_vec();
    features.dedup();
    write!(
        text,
        "\nuse crate::pointers::fail;\nuse crate::status::{{adead_status, guard}};\n\n\
         #[cfg(not(all({})))]\n#[inline(never)]\n#[rustfmt::skip]\nfn lacks(what: &str) -> adead_status {{\n    \
         guard(|| fail!(Unsupported, \"this is a minimal build of adead, which has {{what}}: build it without ADEAD_MINIMAL\"))\n\
         }}\n",
        features.join(", ")
    )
    .unwrap();
    let all = LACKING.map(|(name, ..)| source(name)).concat();
    for (name, feature, what) in LACKING {
        write!(
            text,
            "\n/// As in `{name}.rs`.\n#[cfg(not(feature = \"{feature}\"))]\n#[rustfmt::skip]\nmod {name} {{\n    \
             use super::{{adead_status, lacks}};\n    \
             #[allow(unused_imports)]\n    use std::ffi::{{c_char, c_void}};\n\n    \
             fn without() -> adead_status {{\n        lacks(\"{what}\")\n    }}\n"
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
