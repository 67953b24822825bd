//! include/adead/models.h is what these sources say: generated here, compared, and rewritten with `ADEAD_BLESS=1`.

use cbindgen::{Builder, Config, DocumentationStyle, Language, Style};
use std::path::Path;
use std::{env, fs};

/// The sources in the order of the header.
const SOURCES: &[&str] = &["version", "options", "encoder", "stream"];

const CONSTANTS: &str = "
/// The device decides how many sentences a batch has.
#define ADEAD_BATCH_AUTO ((size_t)-1)

/// The defaults of adead_encode_options.
#define ADEAD_ENCODE_OPTIONS_INIT { sizeof(adead_encode_options), ADEAD_BATCH_AUTO, -1 }

/// An adead_sentence_stream without its functions.
#define ADEAD_SENTENCE_STREAM_INIT { sizeof(adead_sentence_stream), NULL, NULL, NULL, NULL }
";

fn header() -> String {
    let comment: String =
        include_str!("preamble.txt").lines().map(|line| format!(" * {line}").trim_end().to_string() + "\n").collect();
    let mut config = Config {
        language: Language::C,
        cpp_compat: true,
        usize_is_size_t: true,
        header: Some(format!("/*\n{comment} */")),
        include_guard: Some("ADEAD_MODELS_H".into()),
        no_includes: true,
        after_includes: Some(format!("\n#include <adead.h>\n{CONSTANTS}")),
        documentation_style: DocumentationStyle::Cxx,
        style: Style::Type,
        line_length: 120,
        tab_width: 2,
        ..Config::default()
    };
    config.function.prefix = Some("ADEAD_API".into());
    // adead.h has it.
    config.export.exclude = vec!["adead_status".into()];
    let mut builder = Builder::new().with_config(config);
    for name in SOURCES {
        builder = builder.with_src(Path::new(env!("CARGO_MANIFEST_DIR")).join(format!("src/{name}.rs")));
    }
    let mut text = Vec::new();
    builder.generate().unwrap().write(&mut text);
    let text = String::from_utf8(text).unwrap();
    assert!(text.is_ascii(), "compilers that take sources for another encoding than UTF-8 warn of comments else");
    text
}

#[test]
fn the_header_is_up_to_date() {
    let (path, expected) = (Path::new(env!("CARGO_MANIFEST_DIR")).join("../../include/adead/models.h"), header());
    if env::var_os("ADEAD_BLESS").is_some() {
        fs::write(&path, &expected).unwrap();
    }
    let found = fs::read_to_string(&path).unwrap_or_default();
    let first = expected.lines().zip(found.lines()).find(|(expected, found)| expected != found);
    let again = "ADEAD_BLESS=1 cargo test -p adead-models-c --test header";
    assert!(found == expected, "include/adead/models.h is out of date, first at {first:?}: {again}");
}

#[test]
fn every_source_with_functions_is_read() {
    for entry in fs::read_dir(Path::new(env!("CARGO_MANIFEST_DIR")).join("src")).unwrap() {
        let path = entry.unwrap().path();
        let functions = fs::read_to_string(&path).unwrap().contains("pub unsafe extern \"C\" fn adead_");
        let name = path.file_stem().unwrap().to_str().unwrap();
        assert!(!functions || SOURCES.contains(&name), "{name}.rs is not in SOURCES");
    }
}
