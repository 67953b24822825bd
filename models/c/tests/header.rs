//! Generates include/adead/models.h from these sources and compares it; `ADEAD_BLESS=1` rewrites it.

use cbindgen::{Builder, Config, DocumentationStyle, Language, Style};
use std::path::Path;
use std::{env, fs};

/// The sources in the order of the header.
const SOURCES: &[&str] = &[
    "version",
    "options",
    "encoder",
    "stream",
    "text_options",
    "generator",
    "generation",
    "text_stream",
    "scores",
    "blocks",
    "conversion",
    "trainer",
    "transport",
    "job",
];

const CONSTANTS: &str = "
/// The batch size that suits the device.
#define ADEAD_BATCH_AUTO ((size_t)-1)

/// The defaults of adead_encode_options.
#define ADEAD_ENCODE_OPTIONS_INIT { sizeof(adead_encode_options), ADEAD_BATCH_AUTO, -1 }

/// An adead_sentence_stream without callbacks.
#define ADEAD_SENTENCE_STREAM_INIT { sizeof(adead_sentence_stream), NULL, NULL, NULL, NULL }

/// The defaults of adead_text_options.
#define ADEAD_TEXT_OPTIONS_INIT { sizeof(adead_text_options), NULL, 0, 0, 0, 0, NULL, NULL }

/// The defaults of adead_generate_options.
#define ADEAD_GENERATE_OPTIONS_INIT { sizeof(adead_generate_options), 512, NULL, 0, 0, 0.0f, 0, 1.0f, 0.0f, 1.0f, 64, 0, 0, NULL }

/// The defaults of adead_convert_options.
#define ADEAD_CONVERT_OPTIONS_INIT { sizeof(adead_convert_options), NULL, NULL, NULL, NULL }

/// The defaults of adead_train_options.
#define ADEAD_TRAIN_OPTIONS_INIT { sizeof(adead_train_options), 0, 0, NULL, 300.0, NULL, NULL }

// adead_finish: why a text ended.
enum {
  /// No reason yet: the stream has more text, or the caller ended it.
  ADEAD_FINISH_NONE = 0,
  /// The model ended it.
  ADEAD_FINISH_END = 1,
  /// A stop text was generated.
  ADEAD_FINISH_STOP = 2,
  /// The text has `max_tokens` tokens.
  ADEAD_FINISH_MAX_TOKENS = 3,
  /// The sequence has as many tokens as the context length.
  ADEAD_FINISH_CONTEXT_FULL = 4
};
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
    config.export.exclude = vec!["adead_status".into(), "adead_block_format".into(), "adead_dtype".into()];
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
