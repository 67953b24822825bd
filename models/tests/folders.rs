//! Folders that are no model, or not one that is supported: what is wrong is said, and where.

mod common;

use adead::Status;
use adead_models::SentenceEncoder;
use common::{cpu, shared};
use std::fs;
use std::path::{Path, PathBuf};

/// A copy of the small model that a test may spoil.
fn copy(name: &str) -> PathBuf {
    let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join(format!("{name}-{}", std::process::id()));
    let _ = fs::remove_dir_all(&folder);
    fs::create_dir_all(folder.join("1_Pooling")).unwrap();
    for file in FILES {
        fs::copy(shared("tiny").join(file), folder.join(file)).unwrap();
    }
    folder
}

const FILES: [&str; 6] = [
    "config.json",
    "tokenizer.json",
    "model.safetensors",
    "modules.json",
    "sentence_bert_config.json",
    "1_Pooling/config.json",
];

/// Why a folder can't be opened.
fn refused(folder: &Path) -> (Status, String) {
    let error = SentenceEncoder::open(folder, &cpu(1)).expect_err("it is refused");
    (error.status(), error.message().into())
}

#[test]
fn a_folder_that_lacks_a_file_is_refused_by_its_name() {
    let folder = copy("lacks");
    for file in ["config.json", "tokenizer.json", "model.safetensors", "1_Pooling/config.json"] {
        let kept = fs::read(folder.join(file)).unwrap();
        fs::remove_file(folder.join(file)).unwrap();
        let (status, text) = refused(&folder);
        assert_eq!(status, Status::Io);
        assert!(text.starts_with(folder.join(file).to_str().unwrap()), "{text}");
        fs::write(folder.join(file), kept).unwrap();
    }
    assert_eq!(refused(&folder.join("nowhere")).0, Status::Io);
    assert_eq!(refused(&folder.join("config.json")).0, Status::InvalidArgument);
    // Without a limit of its own a model takes as many tokens as it has positions; without modules it is not normalised.
    fs::remove_file(folder.join("sentence_bert_config.json")).unwrap();
    fs::remove_file(folder.join("modules.json")).unwrap();
    let encoder = SentenceEncoder::open(&folder, &cpu(1)).unwrap();
    let rows = encoder.encode(&["ferry"]).unwrap();
    let length = rows.values().iter().map(|value| value * value).sum::<f32>().sqrt();
    assert!(encoder.max_tokens() == 40 && !(0.99..1.01).contains(&length), "{encoder:?} {length}");
    fs::remove_dir_all(folder).unwrap();
}

#[test]
fn a_file_that_is_malformed_or_does_not_fit_is_refused_with_the_reason() {
    let folder = copy("spoiled");
    let cases: &[(&str, &str, &str, Status, &str)] = &[
        ("config.json", "\"bert\"", "\"t5\"", Status::Unsupported, "'t5'"),
        ("config.json", "\"absolute\"", "\"relative_key\"", Status::Unsupported, "'relative_key'"),
        ("config.json", "\"gelu\"", "\"mish\"", Status::Unsupported, "'mish'"),
        ("config.json", "\"num_attention_heads\": 4", "\"num_attention_heads\": 5", Status::InvalidArgument, "5 heads"),
        ("config.json", "\"hidden_size\": 32,", "", Status::InvalidArgument, "hidden_size"),
        ("config.json", "}", "", Status::InvalidArgument, "EOF"),
        (
            "config.json",
            "\"intermediate_size\": 48",
            "\"intermediate_size\": 64",
            Status::ShapeMismatch,
            "the tensor 'encoder.layer.0.intermediate.dense.weight' is [48, 32]; it must be [64, 32]",
        ),
        (
            "config.json",
            "\"num_hidden_layers\": 2",
            "\"num_hidden_layers\": 3",
            Status::InvalidArgument,
            "the tensor 'encoder.layer.2.",
        ),
        (
            "config.json",
            "\"num_hidden_layers\": 2",
            "\"num_hidden_layers\": 1",
            Status::InvalidArgument,
            "a layer 1 and the model's configuration 1",
        ),
        ("config.json", "\"vocab_size\": 92", "\"vocab_size\": 91", Status::InvalidArgument, "a token 91"),
        ("sentence_bert_config.json", "24", "41", Status::InvalidArgument, "max_seq_length is 41"),
        ("sentence_bert_config.json", "24", "2", Status::InvalidArgument, "max_seq_length is 2"),
        ("modules.json", "models.Normalize", "models.Dense", Status::Unsupported, "\"Dense\""),
        (
            "1_Pooling/config.json",
            "\"pooling_mode_max_tokens\": false",
            "\"pooling_mode_max_tokens\": true",
            Status::Unsupported,
            "pooled",
        ),
        ("tokenizer.json", "\"vocab\"", "\"vocabulary\"", Status::InvalidArgument, "tokenizer.json"),
    ];
    for (file, from, to, status, part) in cases {
        let whole = fs::read_to_string(folder.join(file)).unwrap();
        assert!(whole.contains(from), "{file}: {from}");
        fs::write(folder.join(file), whole.replacen(from, to, 1)).unwrap();
        println!("{file}: {from} -> {to}");
        let (found, text) = refused(&folder);
        assert!(found == *status && text.contains(part), "{file}: {from} -> {to}: {found} {text}");
        fs::write(folder.join(file), whole).unwrap();
    }
    // A tokenizer that puts nothing around a sentence has no token for an empty one.
    let whole = fs::read_to_string(folder.join("tokenizer.json")).unwrap();
    let (before, rest) = whole.split_once("\"post_processor\"").unwrap();
    let (_, after) = rest.split_once("\"decoder\"").unwrap();
    fs::write(folder.join("tokenizer.json"), format!("{before}\"post_processor\": null, \"decoder\"{after}")).unwrap();
    let (status, text) = refused(&folder);
    assert!(status == Status::Unsupported && text.contains("an empty sentence has no token"), "{text}");
    fs::write(folder.join("tokenizer.json"), whole).unwrap();
    let weights = fs::read(folder.join("model.safetensors")).unwrap();
    for length in [0, 7, 100, weights.len() - 1] {
        fs::write(folder.join("model.safetensors"), &weights[..length]).unwrap();
        let (status, text) = refused(&folder);
        assert!(matches!(status, Status::InvalidArgument | Status::Io), "{length}: {text}");
        assert!(text.contains("model.safetensors"), "{length}: {text}");
    }
    fs::remove_dir_all(folder).unwrap();
}
