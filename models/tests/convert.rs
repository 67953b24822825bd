//! Models of Hugging Face as GGUF files: the weights and tokens of the same models in GGUF files, and every kind of values.

mod common;

use adead::{BlockFormat, Error, Result, Status};
use adead_models::TextGenerator;
use adead_models::convert::{Conversion, Target};
use adead_models::gguf::{Gguf, Header, Kind, Value, quantize};
use adead_models::text::{GenerateOptions, Message, OpenOptions};
use common::convert::{Folder, hashes, model, written};
use common::{bits, text};
use serde_json::json;
use sha2::{Digest, Sha256};

const MODELS: [&str; 2] = ["llama", "gemma3"];

fn folder(name: &str) -> std::path::PathBuf {
    text(&format!("{name}-hf"))
}

fn of_folder(name: &str, kind: Kind) -> Conversion {
    Conversion::from_folder(folder(name), Some(kind.into())).unwrap()
}

fn open(name: &str) -> Gguf {
    Gguf::open(text(&format!("{name}.gguf"))).unwrap()
}

/// The values of a tensor as f32.
fn values(gguf: &Gguf, name: &str) -> Vec<f32> {
    let mut header = Header::new();
    header.set("general.architecture", "llama").unwrap();
    let info = gguf.tensor(name).unwrap();
    header.tensor(name, &[1, info.elements()], info.kind()).unwrap();
    let mut writer = header.begin(Vec::new()).unwrap();
    writer.write(gguf.bytes(info)).unwrap();
    let one = Gguf::from_bytes(writer.finish().unwrap()).unwrap();
    let whole = written(Conversion::from_gguf(one, Kind::F32).unwrap());
    let bytes = whole.bytes(&whole.tensors()[0]);
    bytes.chunks_exact(4).map(|float| f32::from_le_bytes(float.try_into().unwrap())).collect()
}

/// The model's file with all values as f32, made without a conversion of folders.
fn whole(name: &str) -> TextGenerator {
    let gguf = open(name);
    let mut header = Header::new();
    gguf.metadata().for_each(|(key, value)| header.set(key, value.clone()).unwrap());
    gguf.tensors().iter().for_each(|info| header.tensor(info.name(), info.dims(), Kind::F32).unwrap());
    let path = std::env::temp_dir().join(format!("adead-whole-{}-{name}.gguf", std::process::id()));
    let mut writer = header.begin(std::fs::File::create(&path).unwrap()).unwrap();
    for info in gguf.tensors() {
        let bytes: Vec<u8> = values(&gguf, info.name()).iter().flat_map(|value| value.to_le_bytes()).collect();
        writer.write(&bytes).unwrap();
    }
    writer.finish().unwrap();
    let model = TextGenerator::open(&path).unwrap();
    std::fs::remove_file(&path).unwrap();
    model
}

#[test]
fn tensors_are_those_of_the_oracle() {
    for name in MODELS {
        let plan = of_folder(name, Kind::F32);
        assert!(plan.notes().is_empty(), "{:?}", plan.notes());
        let gguf = written(plan);
        let expected = hashes(&folder(name).join("tensors.sha256"));
        let mut found: Vec<(String, String)> = gguf
            .tensors()
            .iter()
            .map(|info| {
                assert_eq!(info.kind(), Kind::F32);
                let hash = Sha256::digest(gguf.bytes(info));
                (info.name().to_owned(), hash.iter().map(|byte| format!("{byte:02x}")).collect())
            })
            .collect();
        found.sort();
        assert_eq!(found, expected, "{name}");
        let committed = open(name);
        for info in committed.tensors() {
            assert_eq!(gguf.tensor(info.name()).unwrap().dims(), info.dims(), "{name} {}", info.name());
        }
        // What the committed file says too is the same.
        for (key, value) in committed.metadata() {
            match key {
                // Those of tokens that no merge makes are not compared.
                "tokenizer.ggml.scores" => {}
                _ => assert!(gguf.value(key) == Some(value), "{name}: {key} is {:?}", gguf.value(key)),
            }
        }
    }
}

const TEXTS: [&str; 12] = [
    "the ferry",
    "the ferry came in, the ferry",
    " the  the   the\n\n the",
    "12 1212 x7",
    "grüße über fähren",
    "🌊 the 漢字",
    "<|im_start|>the<|im_end|>\n<tool>in",
    "<s>the</s> ferry",
    "\t\r\n \u{a0}x",
    "",
    " ",
    "it's THE Ferry's",
];

#[test]
fn models_have_the_same_bits_and_tokens() {
    for name in MODELS {
        let (expected, converted) = (whole(name), model(name, of_folder(name, Kind::F32)));
        let tokens: Vec<u32> = (0..70).map(|i| (7 + 31 * i + i * i) % expected.vocabulary() as u32).collect();
        assert!(bits(&converted.logits(&tokens).unwrap()) == bits(&expected.logits(&tokens).unwrap()), "{name}");
        assert_eq!(converted.context_length(), 256);
        for text in TEXTS {
            let ids = converted.tokenize(text).unwrap();
            assert_eq!(ids, expected.tokenize(text).unwrap(), "{name}: {text:?}");
            assert_eq!(converted.detokenize(&ids), expected.detokenize(&ids), "{name}: {text:?}");
        }
        assert_eq!(converted.has_chat_template(), name == "llama");
        let options = GenerateOptions { max_tokens: 20, ..GenerateOptions::default() };
        assert_eq!(
            converted.generate("the ferry", &options).unwrap(),
            expected.generate("the ferry", &options).unwrap(),
            "{name}"
        );
        if converted.has_chat_template() {
            let messages = [Message::user("the ferry")];
            assert_eq!(converted.tokenize_messages(&messages).unwrap(), expected.tokenize_messages(&messages).unwrap());
        }
    }
}

#[test]
fn every_kind_of_values_is_written() {
    let floats = written(of_folder("llama", Kind::F32));
    for kind in Kind::ALL {
        let plan = of_folder("llama", kind);
        let notes = plan.notes().to_vec();
        let gguf = written(plan);
        // Rows of 64 and 96 values: blocks of 256 don't divide them.
        let falls_back = kind.block() == Some(256);
        let expected = if falls_back { Kind::F16 } else { kind };
        assert_eq!(!notes.is_empty(), falls_back, "{notes:?}");
        if falls_back {
            let text = format!(
                "22 matrices have rows that {kind}'s blocks of 256 values don't divide: they are stored as F16;"
            );
            assert!(notes[0].starts_with(&text), "{notes:?}");
        }
        for info in gguf.tensors() {
            let vector = info.dims().len() == 1;
            assert_eq!(info.kind(), if vector { Kind::F32 } else { expected }, "{}", info.name());
            let format = BlockFormat::ALL.into_iter().find(|format| kind.to_string() == format.name().to_uppercase());
            if let (Some(format), false, false) = (format, vector, falls_back) {
                let bytes = quantize(&values(&floats, info.name()), format).unwrap();
                assert!(bytes == gguf.bytes(info), "{kind} {}", info.name());
            }
        }
        assert_eq!(
            gguf.optional::<u32>("general.quantization_version").unwrap(),
            (kind.block() > Some(1)).then_some(2)
        );
        // From a GGUF file of floats the same comes.
        let again = written(Conversion::from_gguf(written(of_folder("llama", Kind::F32)), kind).unwrap());
        for info in gguf.tensors() {
            let other = again.tensor(info.name()).unwrap();
            assert_eq!((other.kind(), other.dims()), (info.kind(), info.dims()));
            assert!(again.bytes(other) == gguf.bytes(info), "{kind} {}", info.name());
        }
        let metadata =
            |gguf: &Gguf| gguf.metadata().map(|(key, value)| (key.to_owned(), value.clone())).collect::<Vec<_>>();
        let sorted = |mut all: Vec<(String, Value)>| {
            all.sort_by(|a, b| a.0.cmp(&b.0));
            all
        };
        assert!(sorted(metadata(&gguf)) == sorted(metadata(&again)), "{kind}");
        let path = format!("kind-{kind}");
        assert!(model(&path, of_folder("llama", kind)).generate("the", &GenerateOptions::default()).is_ok());
    }
    // The folder's own kind, without another.
    let own = |name: &str| written(Conversion::from_folder(folder(name), None).unwrap());
    assert_eq!(own("llama").tensor("token_embd.weight").unwrap().kind(), Kind::F32);
    assert_eq!(own("gemma3").tensor("token_embd.weight").unwrap().kind(), Kind::BF16);
}

#[test]
fn blocks_are_converted_again() {
    let plan = Conversion::from_gguf(open("llama"), Kind::Q4_0).unwrap();
    assert_eq!(plan.source_bytes(), std::fs::metadata(text("llama.gguf")).unwrap().len());
    // Of 22 matrices, 7 are Q4_0 already.
    assert_eq!(plan.notes(), ["15 tensors are blocks already, and lose again: convert the model of floats if you can"]);
    let gguf = written(plan);
    let committed = open("llama");
    for info in committed.tensors() {
        let own = gguf.tensor(info.name()).unwrap();
        if info.kind() == own.kind() {
            assert!(committed.bytes(info) == gguf.bytes(own), "{}", info.name());
        } else {
            let bytes = quantize(&values(&committed, info.name()), BlockFormat::Q4_0).unwrap();
            assert!(bytes == gguf.bytes(own), "{}", info.name());
        }
    }
    assert_eq!(gguf.require::<u32>("general.file_type").unwrap(), 2);
    // Blocks in rows that others don't divide stay.
    let plan = Conversion::from_gguf(open("llama"), Kind::Q6_K).unwrap();
    let text = "22 matrices have rows that Q6_K's blocks of 256 values don't divide: they stay as they are;";
    assert!(plan.notes().len() == 1 && plan.notes()[0].starts_with(text), "{:?}", plan.notes());
    let gguf = written(plan);
    for info in committed.tensors() {
        assert!(committed.bytes(info) == gguf.bytes(gguf.tensor(info.name()).unwrap()), "{}", info.name());
    }
    // Other alignments stay.
    let mut header = Header::new();
    header.set("general.alignment", 128u32).unwrap();
    header.set("general.architecture", "qwen3").unwrap();
    header.tensor("a", &[2, 32], Kind::F16).unwrap();
    let mut writer = header.begin(Vec::new()).unwrap();
    writer.write(&[0; 128]).unwrap();
    let gguf = Gguf::from_bytes(writer.finish().unwrap()).unwrap();
    let gguf = written(Conversion::from_gguf(gguf, Kind::Q8_0).unwrap());
    assert_eq!((gguf.alignment(), gguf.tensors()[0].range().start % 128), (128, 0));
}

#[test]
fn positions_are_scaled() {
    let folder = Folder::copy("scaled", "llama-hf");
    let scaling = json!({"rope_type": "llama3", "factor": 8.0, "low_freq_factor": 1.0, "high_freq_factor": 4.0,
        "original_max_position_embeddings": 64});
    folder.set("config.json", "/rope_scaling", scaling);
    let gguf = written(folder.convert(Some(Kind::F16)).unwrap());
    let factors = values(&gguf, "rope_freqs.weight");
    // Pairs turn once in 6.3, 19.9, 62.8, 199 positions and more: a short wave, two between 16 and 64, long ones.
    assert_eq!((factors.len(), factors[0], factors[3], factors[7]), (8, 1.0, 8.0, 8.0));
    assert!(factors[1] > 1.0 && factors[1] < factors[2] && factors[2] < 8.0, "{factors:?}");
    assert_ne!(
        model("scaled", folder.convert(Some(Kind::F32)).unwrap()).logits(&[1, 2, 3]).unwrap(),
        model("plain", of_folder("llama", Kind::F32)).logits(&[1, 2, 3]).unwrap()
    );
    folder.set("config.json", "/rope_scaling", json!({"type": "linear", "factor": 2}));
    let gguf = written(folder.convert(None).unwrap());
    assert_eq!(gguf.require::<&str>("llama.rope.scaling.type").unwrap(), "linear");
    assert_eq!(gguf.require::<f32>("llama.rope.scaling.factor").unwrap(), 2.0);
    model("linear", folder.convert(None).unwrap());
}

#[test]
fn other_architectures_and_extras_are_mapped() {
    // Qwen 2: halves of heads stay, biases and a head of its own are there. Its tensors are those of llama's folder and more.
    let folder = Folder::copy("qwen2", "llama-hf");
    folder.set("config.json", "/architectures", json!(["Qwen2ForCausalLM"]));
    folder.set("config.json", "/tie_word_embeddings", json!(false));
    let layers: Vec<String> = (0..3).map(|layer| format!("model.layers.{layer}.self_attn")).collect();
    let mut extra: Vec<(String, Vec<usize>)> = vec![("lm_head.weight".into(), vec![281, 64])];
    for layer in &layers {
        extra.extend([("q", 64), ("k", 32), ("v", 32)].map(|(part, n)| (format!("{layer}.{part}_proj.bias"), vec![n])));
    }
    add_file(&folder, &extra);
    let gguf = written(folder.convert(Some(Kind::F32)).unwrap());
    assert_eq!(gguf.require::<&str>("general.architecture").unwrap(), "qwen2");
    assert_eq!(gguf.tensor("output.weight").unwrap().dims(), [281, 64]);
    assert_eq!(gguf.tensor("blk.2.attn_k.bias").unwrap().kind(), Kind::F32);
    let llama = written(of_folder("llama", Kind::F32));
    assert_ne!(values(&gguf, "blk.0.attn_q.weight"), values(&llama, "blk.0.attn_q.weight"));
    assert_eq!(values(&gguf, "blk.0.attn_v.weight"), values(&llama, "blk.0.attn_v.weight"));
    model("qwen2", folder.convert(Some(Kind::Q8_0)).unwrap());
    // With llama's rule, biases go to neighbours too.
    folder.set("config.json", "/architectures", json!(["LlamaForCausalLM"]));
    let gguf = written(folder.convert(Some(Kind::F32)).unwrap());
    let bias = values(&gguf, "blk.0.attn_q.bias");
    assert_eq!(bias[..4], [0.0, 8.0, 1.0, 9.0]);
    assert_eq!(values(&gguf, "blk.0.attn_v.bias")[..4], [0.0, 1.0, 2.0, 3.0]);
    // Mistral's window limits the context.
    folder.set("config.json", "/architectures", json!(["MistralForCausalLM"]));
    folder.set("config.json", "/sliding_window", json!(100));
    assert_eq!(model("mistral", folder.convert(None).unwrap()).context_length(), 100);
}

/// Adds a safetensors file of f32 that count up, with its tensors in the index.
fn add_file(folder: &Folder, tensors: &[(String, Vec<usize>)]) {
    let (mut header, mut data) = (serde_json::Map::new(), Vec::new());
    for (name, dims) in tensors {
        let (begin, count) = (data.len(), dims.iter().product::<usize>());
        data.extend((0..count).flat_map(|i| (i as f32).to_le_bytes()));
        header.insert(name.clone(), json!({"dtype": "F32", "shape": dims, "data_offsets": [begin, data.len()]}));
        folder.set("model.safetensors.index.json", &format!("/weight_map/{name}"), json!("extra.safetensors"));
    }
    let header = serde_json::Value::Object(header).to_string();
    let bytes = [&(header.len() as u64).to_le_bytes()[..], header.as_bytes(), &data].concat();
    std::fs::write(folder.path("extra.safetensors"), bytes).unwrap();
}

#[test]
fn special_tokens_come_from_several_files() {
    let folder = Folder::copy("special", "llama-hf");
    let id = |key: &str| {
        let gguf = written(folder.convert(None).unwrap());
        gguf.optional::<u32>(&format!("tokenizer.ggml.{key}_token_id")).unwrap()
    };
    assert_eq!([id("bos"), id("eos"), id("eot"), id("unknown"), id("padding")], [Some(1), Some(2), None, None, None]);
    // An end of no known text, and padding beyond the table.
    folder.set("generation_config.json", "/eos_token_id", json!([2, 3, 0, 5]));
    folder.set("config.json", "/pad_token_id", json!(-1));
    assert_eq!([id("eot"), id("eom"), id("padding")], [Some(3), Some(5), None]);
    folder.set("tokenizer_config.json", "/eos_token", json!("<tool>"));
    folder.set("tokenizer_config.json", "/pad_token", json!("<|endoftext|>"));
    folder.set("tokenizer_config.json", "/add_eos_token", json!(true));
    assert_eq!([id("eos"), id("padding")], [Some(3), Some(0)]);
    let gguf = written(folder.convert(None).unwrap());
    assert!(gguf.require::<bool>("tokenizer.ggml.add_eos_token").unwrap());
    assert!(!gguf.require::<bool>("tokenizer.ggml.add_bos_token").unwrap());
    // Templates with names, and one in a file of its own.
    let named = json!([{"name": "default", "template": "A"}, {"name": "tool_use", "template": "B"}]);
    folder.set("tokenizer_config.json", "/chat_template", named);
    let gguf = written(folder.convert(None).unwrap());
    assert_eq!(gguf.require::<&str>("tokenizer.chat_template").unwrap(), "A");
    assert_eq!(gguf.require::<&str>("tokenizer.chat_template.tool_use").unwrap(), "B");
    folder.set("tokenizer_config.json", "/chat_template", json!(null));
    std::fs::write(folder.path("chat_template.jinja"), "C").unwrap();
    let gguf = written(folder.convert(None).unwrap());
    assert_eq!(gguf.require::<&str>("tokenizer.chat_template").unwrap(), "C");
    // Words that the tokenizer lacks have a made-up text.
    folder.change("tokenizer.json", |value| {
        value["model"]["vocab"].as_object_mut().unwrap().remove("12");
        value["model"]["merges"].as_array_mut().unwrap().pop();
    });
    let gguf = written(folder.convert(None).unwrap());
    assert_eq!(*gguf.require::<Vec<&str>>("tokenizer.ggml.tokens").unwrap().last().unwrap(), "[PAD280]");
    assert_eq!(*gguf.require::<Vec<i32>>("tokenizer.ggml.token_type").unwrap().last().unwrap(), 5);
}

#[test]
fn a_file_appears_when_it_is_complete() {
    let place = Folder::copy("whole", "llama-hf");
    let path = place.path("new.gguf");
    let names = || std::fs::read_dir(&place.0).unwrap().map(|entry| entry.unwrap().file_name()).collect::<Vec<_>>();
    let before = names();
    let plan = |kind: Option<Kind>| Conversion::from_path(folder("llama"), kind.map(Kind::into)).unwrap();
    let stop = || Error::new(Status::NotReady, "enough");
    assert_eq!(plan(None).write_file(&path, |_, _| Err(stop())).unwrap_err().message(), "enough");
    assert_eq!(names(), before);
    plan(Some(Kind::F32)).write_file(&path, |_, _| Ok(())).unwrap();
    let bytes = of_folder("llama", Kind::F32).write(Vec::new(), |_, _| Ok(())).unwrap();
    assert!(std::fs::read(&path).unwrap() == bytes);
    // A file becomes another one, in its own place too.
    Conversion::from_path(&path, Some(Kind::Q8_0.into())).unwrap().write_file(&path, |_, _| Ok(())).unwrap();
    assert!(TextGenerator::open(&path).is_ok() && std::fs::read(&path).unwrap().len() < bytes.len());

    let refused = |result: Result<Conversion>| result.map(|_| ()).unwrap_err();
    assert_eq!(refused(Conversion::from_path(&path, None)).status(), Status::InvalidArgument);
    assert_eq!(refused(Conversion::from_path(place.path("nowhere"), None)).status(), Status::Io);
    let nowhere = plan(None).write_file(place.path("none/new.gguf"), |_, _| Ok(())).unwrap_err();
    assert!(nowhere.status() == Status::Io && nowhere.message().contains("new.gguf"), "{nowhere}");
    assert_eq!(plan(None).write_file(&place.0, |_, _| Ok(())).unwrap_err().status(), Status::Io);
}

#[test]
fn kinds_have_names() {
    for kind in Kind::ALL {
        assert_eq!(kind.to_string().parse::<Kind>().unwrap(), kind);
        assert_eq!(kind.to_string().to_lowercase().parse::<Kind>().unwrap(), kind);
    }
    let error = "q3_k".parse::<Kind>().unwrap_err();
    assert_eq!(error.status(), Status::InvalidArgument);
    assert!(error.message().contains("no kind of values 'q3_k': it must be one of f32, f16"), "{error}");
}

#[test]
fn a_mixture_has_more_bits_where_they_matter() {
    let plan = Conversion::from_folder(folder("llama"), Some(Target::Q4KM)).unwrap();
    let kind = |name: &str| plan.tensors().iter().find(|tensor| tensor.name() == name).unwrap().kind();
    // Rows of 64 values have blocks of 32.
    let words = plan.tensors().iter().find(|tensor| tensor.name() == "token_embd.weight").unwrap();
    assert_eq!((words.dims()[1], words.kind()), (64, Kind::Q8_0));
    assert_eq!(kind("blk.0.attn_q.weight"), Kind::Q5_0);
    assert_eq!(kind("blk.0.attn_norm.weight"), Kind::F32);
    assert!(plan.notes().iter().any(|note| note.contains("they are stored as Q5_0 and Q8_0")), "{:?}", plan.notes());
    let gguf = written(plan);
    assert_eq!(gguf.require::<u32>("general.file_type").unwrap(), 15);
    let model = TextGenerator::from_gguf(gguf, &OpenOptions::default()).unwrap();
    let whole = TextGenerator::from_gguf(written(of_folder("llama", Kind::F32)), &OpenOptions::default()).unwrap();
    let text = "the ferry came in";
    let (found, exact) = (model.perplexity(text).unwrap(), whole.perplexity(text).unwrap());
    assert!((found / exact - 1.0).abs() < 0.1, "{found} and {exact}");
    // From a file of floats the same, and blocks that do not fit stay.
    let again = Conversion::from_gguf(written(of_folder("llama", Kind::F32)), Target::Q5KM).unwrap();
    assert!(again.tensors().iter().any(|tensor| tensor.kind() == Kind::Q5_1));
    let blocks = Conversion::from_gguf(written(of_folder("llama", Kind::Q4_0)), Target::Q4KM).unwrap();
    assert!(blocks.tensors().iter().filter(|tensor| tensor.dims().len() > 1).all(|tensor| tensor.kind() == Kind::Q4_0));
}
