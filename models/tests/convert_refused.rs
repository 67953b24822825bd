//! Folders and files that can't be converted: the error says what is wrong, with the numbers.

mod common;

use adead::Status;
use adead_models::convert::Conversion;
use adead_models::gguf::{Gguf, Header, Kind};
use common::convert::Folder;
use serde_json::{Value, json};
use std::fs;

/// Changes a field of a file of a folder, and returns the error.
fn with(folder: &str, file: &str, pointer: &str, to: Value) -> (Status, String) {
    let name = format!("{file}{}", pointer.replace('/', "-"));
    let folder = Folder::copy(&name, folder);
    folder.set(file, pointer, to);
    folder.refusal()
}

fn says(status: Status, found: (Status, String), text: &str) {
    assert!(found.0 == status && found.1.contains(text), "{found:?}\nlacks {text}");
}

#[test]
fn other_models_are_refused() {
    let llama = |pointer: &str, to: Value| with("llama-hf", "config.json", pointer, to);
    let gemma = |pointer: &str, to: Value| with("gemma3-hf", "config.json", pointer, to);
    let known = "LlamaForCausalLM, MistralForCausalLM, Qwen2ForCausalLM, Qwen3ForCausalLM, Gemma3ForCausalLM";
    let unsupported = |found, text: &str| says(Status::Unsupported, found, text);
    let invalid = |found, text: &str| says(Status::InvalidArgument, found, text);
    let text = format!("F/config.json: the architecture is 'MambaForCausalLM'; supported are {known}");
    unsupported(llama("/architectures", json!(["MambaForCausalLM"])), &text);
    invalid(
        llama("/architectures", json!(null)),
        &format!("'architectures' is missing; it must be a list of one of {known}"),
    );
    invalid(llama("/architectures", json!([])), "'architectures' is []; it must be");
    unsupported(
        llama("/quantization_config", json!({"quant_method": "gptq"})),
        "the weights are quantised ({\"quant_method\"",
    );
    unsupported(llama("/hidden_act", json!("gelu")), "'hidden_act' is 'gelu'; llama is supported with 'silu'");
    unsupported(gemma("/hidden_activation", json!("gelu")), "gemma3 is supported with 'gelu_pytorch_tanh'");
    unsupported(gemma("/query_pre_attn_scalar", json!(168)), "'query_pre_attn_scalar' is 168; 12 is supported");
    unsupported(gemma("/final_logit_softcapping", json!(30.0)), "'final_logit_softcapping' is 30; models without");
    unsupported(gemma("/use_bidirectional_attention", json!(true)), "attention sees what follows too");
    let types = json!(["full_attention", "sliding_attention", "full_attention"]);
    unsupported(
        gemma("/layer_types", types),
        "'layer_types' has 3 entries, not those of 3 layers of which the last of 1",
    );
    invalid(gemma("/sliding_window", json!(null)), "'sliding_window' is missing; it must be more than 0");
    unsupported(
        llama("/rope_scaling", json!({"rope_type": "yarn"})),
        "scaled by 'yarn'; supported are default, linear",
    );
    unsupported(llama("/partial_rotary_factor", json!(0.5)), "'partial_rotary_factor' is 0.5; 1 is supported");
    invalid(llama("/num_key_value_heads", json!(3)), "4 heads share 3 heads of keys");
    invalid(llama("/head_dim", json!(15)), "a head has 15 values; it must be an even number from 2");
    invalid(
        llama("/hidden_size", json!("wide")),
        "'hidden_size' is \"wide\"; it must be an integer from 0 to 2^32 - 1",
    );
    invalid(llama("/num_hidden_layers", json!(0)), "'num_hidden_layers' is 0; it must be an integer from 1");
    invalid(llama("/rms_norm_eps", json!(null)), "'rms_norm_eps' is missing; it must be a number");
    let heads = gemma("/head_dim", json!(null));
    invalid(heads, "'head_dim' is missing; it must be the number of a head's values");
}

#[test]
fn tensors_that_don_t_fit_are_refused() {
    let llama = |pointer: &str, to: Value| with("llama-hf", "config.json", pointer, to);
    let text = "the tensor 'model.layers.0.mlp.gate_proj.weight' is [96, 64]; by config.json it must be [95, 64]";
    says(Status::ShapeMismatch, llama("/intermediate_size", json!(95)), text);
    let text = "the tensor 'model.layers.3.self_attn.q_proj.weight' is not among the 29 tensors of its files";
    says(Status::InvalidArgument, llama("/num_hidden_layers", json!(4)), text);
    let text =
        "9 tensors of the folder have no place in the model, the first is 'model.layers.2.input_layernorm.weight'";
    says(Status::Unsupported, llama("/num_hidden_layers", json!(2)), text);
    let text = "the tensor 'lm_head.weight' is not among the 29 tensors";
    says(Status::InvalidArgument, llama("/tie_word_embeddings", json!(false)), text);

    let index = |pointer: &str, to: Value| with("llama-hf", "model.safetensors.index.json", pointer, to);
    let missing = index("/weight_map/model.norm.weight", json!("model-00003-of-00003.safetensors"));
    says(Status::Io, missing, "F/model-00003-of-00003.safetensors: ");
    let other = index("/weight_map/model.norm.weight", json!("model-00002-of-00002.safetensors"));
    says(
        Status::InvalidArgument,
        other,
        "the tensor 'model.norm.weight' is said to be in model-00002-of-00002.safetensors",
    );
    let outside = index("/weight_map/model.norm.weight", json!("../model.safetensors"));
    says(Status::InvalidArgument, outside, "is \"../model.safetensors\"; it must be the name of a file in the folder");
    let map = index("/weight_map", json!([]));
    says(Status::InvalidArgument, map, "'weight_map' is []; it must be an object");

    let folder = Folder::copy("fewer", "llama-hf");
    folder.change("model.safetensors.index.json", |value| {
        value["weight_map"].as_object_mut().unwrap().remove("model.norm.weight");
    });
    says(Status::InvalidArgument, folder.refusal(), "it names 28 tensors, and the files have 29");
    fs::remove_file(folder.path("model.safetensors.index.json")).unwrap();
    says(Status::Io, folder.refusal(), "F: it has neither model.safetensors nor model.safetensors.index.json");
}

#[test]
fn values_that_a_kind_can_t_hold_are_refused() {
    let folder = Folder::copy("nan", "gemma3-hf");
    let path = folder.path("model.safetensors");
    let mut bytes = fs::read(&path).unwrap();
    let start = 8 + u64::from_le_bytes(bytes[..8].try_into().unwrap()) as usize;
    // The first tensor is the table of words, [307, 32] of f16: value 5 of row 2 becomes NaN.
    bytes[start + 2 * (2 * 32 + 5)..][..2].copy_from_slice(&[0, 0x7e]);
    fs::write(&path, &bytes).unwrap();
    for kind in [Kind::F32, Kind::F16, Kind::BF16] {
        let error = folder.convert(Some(kind)).unwrap().write(Vec::new(), |_, _| Ok(())).unwrap_err();
        let text =
            format!("the tensor 'token_embd.weight': value 5 of row 2 is NaN; {kind} takes finite values it can hold");
        assert_eq!((error.status(), error.message()), (Status::InvalidArgument, text.as_str()));
    }
    let error = folder.convert(Some(Kind::Q4_0)).unwrap().write(Vec::new(), |_, _| Ok(())).unwrap_err();
    let text = "the tensor 'token_embd.weight': value 5 of row 2 is NaN; q4_0 takes finite values";
    assert_eq!(error.message(), text);
    // A value beyond f16, in a later part of a large tensor.
    let rows = (1 << 22) / 32 + 9;
    let mut values = vec![0u8; rows * 32 * 4];
    values[((rows - 1) * 32 + 3) * 4..][..4].copy_from_slice(&1e9f32.to_le_bytes());
    let gguf = || Gguf::from_bytes(one_tensor(&values, rows)).unwrap();
    let error = Conversion::from_gguf(gguf(), Kind::F16).unwrap().write(Vec::new(), |_, _| Ok(())).unwrap_err();
    let text =
        format!("the tensor 'a': value 3 of row {} is 1000000000; F16 takes finite values it can hold", rows - 1);
    assert_eq!(error.message(), text);
    let error = Conversion::from_gguf(gguf(), Kind::Q8_0).unwrap().write(Vec::new(), |_, _| Ok(())).unwrap_err();
    let text = format!("the tensor 'a': the block from value 0 of row {} on needs", rows - 1);
    assert!(error.message().starts_with(&text), "{error}");
    // What the caller says ends it.
    let closed = |_, _| Err(adead::Error::new(Status::Io, "closed"));
    let error = Conversion::from_gguf(gguf(), Kind::BF16).unwrap().write(Vec::new(), closed).unwrap_err();
    assert_eq!(error.message(), "closed");
}

/// A file with one tensor of f32.
fn one_tensor(values: &[u8], rows: usize) -> Vec<u8> {
    let mut header = Header::new();
    header.set("general.architecture", "llama").unwrap();
    header.tensor("a", &[rows, 32], Kind::F32).unwrap();
    let mut writer = header.begin(Vec::new()).unwrap();
    writer.write(values).unwrap();
    writer.finish().unwrap()
}

#[test]
fn other_tokenizers_are_refused() {
    let llama = |pointer: &str, to: Value| with("llama-hf", "tokenizer.json", pointer, to);
    let gemma = |pointer: &str, to: Value| with("gemma3-hf", "tokenizer.json", pointer, to);
    let unsupported = |found, text: &str| says(Status::Unsupported, found, text);
    let invalid = |found, text: &str| says(Status::InvalidArgument, found, text);
    unsupported(
        llama("/model/type", json!("Unigram")),
        "F/tokenizer.json: the tokenizer is of the type 'Unigram'; 'BPE'",
    );
    unsupported(llama("/model/end_of_word_suffix", json!("</w>")), "'model.end_of_word_suffix' is '</w>'");
    unsupported(
        llama("/model/ignore_merges", json!(true)),
        "'model.ignore_merges' is true, which the words of smollm don't",
    );
    unsupported(
        llama("/normalizer", json!({"type": "Lowercase"})),
        "the normalizer {\"type\":\"Lowercase\"}; supported",
    );
    let words = llama("/pre_tokenizer/pretokenizers/0", json!({"type": "Whitespace"}));
    unsupported(
        words,
        "divided by the pre-tokenizer {\"type\":\"Whitespace\"}; supported are the words of gpt-2, llama-bpe",
    );
    let pattern = json!({"type": "Split", "pattern": {"Regex": "\\d"}, "behavior": "Isolated", "invert": false});
    let unknown = llama("/pre_tokenizer/pretokenizers/0", pattern);
    unsupported(unknown, "text is divided into words by [\"\\\\d\",\"'s|'t|");
    unsupported(llama("/pre_tokenizer", json!(null)), "the pre-tokenizer ByteLevel is missing");
    invalid(llama("/model/merges/0", json!("th")), "merge 0 is \"th\"; it must be two texts without spaces");
    invalid(llama("/model/merges", json!(null)), "'model.merges' is missing; it must be a list");
    invalid(llama("/model/vocab/the", json!(281)), "the token 'the' has the id 281, and config.json counts 281 tokens");
    invalid(llama("/model/vocab/the", json!(7)), "have the id 7");
    invalid(llama("/added_tokens/0/content", json!("other")), "the tokens '<|endoftext|>' and 'other' have the id 0");
    invalid(llama("/added_tokens/0/id", json!(null)), "lacks a content or an id");
    unsupported(gemma("/normalizer", json!({"type": "NFKC"})), "text is changed by the normalizer {\"type\":\"NFKC\"}");
    unsupported(gemma("/normalizer", json!(null)), "text is changed by the pre-tokenizer");
    let divided = json!({"type": "Metaspace", "replacement": "▁", "prepend_scheme": "always"});
    unsupported(gemma("/pre_tokenizer", divided), "text is changed by the pre-tokenizer {\"");
    let settings = |pointer: &str, to: Value| with("llama-hf", "tokenizer_config.json", pointer, to);
    invalid(settings("/bos_token", json!("<bos>")), "'bos_token' is \"<bos>\"; it must be a token of tokenizer.json");
    invalid(settings("/eos_token", json!(7)), "'eos_token' is 7; it must be a token");
    invalid(settings("/chat_template", json!(7)), "'chat_template' is 7; it must be a text, or a list of named ones");
    let ids = with("llama-hf", "generation_config.json", "/eos_token_id", json!([2, 281]));
    invalid(ids, "'eos_token_id' is [2,281]; it must be ids from 0 to 280");
}

#[test]
fn steps_of_other_forms_are_read() {
    let note = |folder: &Folder| folder.convert(None).unwrap().notes().to_vec();
    let prefix = |folder: &Folder| {
        let gguf = common::convert::written(folder.convert(None).unwrap());
        gguf.require::<bool>("tokenizer.ggml.add_space_prefix").unwrap()
    };
    let folder = Folder::copy("forms", "gemma3-hf");
    assert!(!prefix(&folder));
    let replace = json!({"type": "Replace", "pattern": {"String": " "}, "content": "▁"});
    let steps = json!({"type": "Sequence", "normalizers": [{"type": "Prepend", "prepend": "▁"}, replace]});
    folder.set("tokenizer.json", "/normalizer", steps);
    assert!(prefix(&folder) && note(&folder).is_empty());
    folder.set("tokenizer.json", "/normalizer", json!(null));
    for (scheme, put, told) in [("never", false, 0), ("always", true, 0), ("first", true, 1)] {
        let step = json!({"type": "Metaspace", "replacement": "▁", "prepend_scheme": scheme, "split": false});
        folder.set("tokenizer.json", "/pre_tokenizer", step);
        assert_eq!((prefix(&folder), note(&folder).len()), (put, told), "{scheme}");
    }
    // Merges in an order that no scores give.
    folder.change("tokenizer.json", |value| {
        let merges = value["model"]["merges"].as_array_mut().unwrap();
        merges.push(merges[0].clone());
    });
    assert!(note(&folder)[1].contains("merges differ from those that scores give"), "{:?}", note(&folder));
    // An added token with ▁ is found in a text with spaces.
    let folder = Folder::copy("spaced", "gemma3-hf");
    let own = folder.convert(None).unwrap();
    let tokens = |plan| common::convert::model("spaced", plan).tokenize("the   ferry").unwrap();
    let before = tokens(own);
    let mut id = 0;
    folder.change("tokenizer.json", |value| {
        id = value["model"]["vocab"]["▁▁"].as_u64().unwrap();
        let added = json!({"id": id, "content": "▁▁", "special": false, "normalized": false});
        value["added_tokens"].as_array_mut().unwrap().push(added);
    });
    let gguf = common::convert::written(folder.convert(None).unwrap());
    assert_eq!(gguf.require::<Vec<&str>>("tokenizer.ggml.tokens").unwrap()[id as usize], "  ");
    assert_eq!(gguf.require::<Vec<i32>>("tokenizer.ggml.token_type").unwrap()[id as usize], 4);
    assert!(note(&folder).is_empty());
    assert_eq!(tokens(folder.convert(None).unwrap()), before);
    // Added tokens may look around them, or lie beyond the table.
    let folder = Folder::copy("added", "llama-hf");
    folder.change("tokenizer.json", |value| {
        let added = value["added_tokens"].as_array_mut().unwrap();
        added[3]["lstrip"] = json!(true);
        added[1]["special"] = json!(false);
        added.push(json!({"id": 281, "content": "<image>", "special": true}));
    });
    let notes = note(&folder);
    assert!(notes[0].starts_with("1 added tokens have ids beyond the model's 281 words"), "{notes:?}");
    assert!(notes[1].starts_with("1 added tokens, such as '<tool>', take white space"), "{notes:?}");
    // A token is special by its text too.
    let gguf = common::convert::written(folder.convert(None).unwrap());
    assert_eq!(gguf.require::<Vec<i32>>("tokenizer.ggml.token_type").unwrap()[..5], [3, 3, 3, 4, 1]);
}

#[test]
fn what_is_no_model_is_refused() {
    let folder = Folder::copy("none", "llama-hf");
    let file = folder.path("config.json");
    let error = Conversion::from_folder(&file, None).unwrap_err();
    assert!(error.message().ends_with("config.json: a model is a folder, and this is a file"), "{error}");
    fs::write(&file, "{").unwrap();
    says(Status::InvalidArgument, folder.refusal(), "F/config.json: not JSON: ");
    fs::write(&file, "[]").unwrap();
    says(Status::InvalidArgument, folder.refusal(), "F/config.json: it is [], not an object");
    fs::remove_file(&file).unwrap();
    says(Status::Io, folder.refusal(), "F/config.json: no such file; a model's folder has it");
    assert_eq!(Conversion::from_folder(folder.path("none"), None).unwrap_err().status(), Status::Io);
    // GGUF files of other models.
    let of = |architecture: &str, kind: Kind| {
        let mut header = Header::new();
        header.set("general.architecture", architecture).unwrap();
        header.tensor("a", &[2, 32], kind).unwrap();
        let mut writer = header.begin(Vec::new()).unwrap();
        writer.write(&vec![0; 64 / kind.block().unwrap() * kind.block_bytes().unwrap()]).unwrap();
        Gguf::from_bytes(writer.finish().unwrap()).unwrap()
    };
    let error = Conversion::from_gguf(of("mamba", Kind::F32), Kind::Q8_0).unwrap_err();
    let text = "the architecture is 'mamba'; supported are llama, qwen2, qwen3, gemma3";
    assert_eq!((error.status(), error.message()), (Status::Unsupported, text));
    let error = Conversion::from_gguf(of("llama", Kind::F32), Kind::Other(10)).unwrap_err();
    assert!(error.message().starts_with("values can't be stored as Q2_K; supported are F32, F16,"), "{error}");
    assert!(Conversion::from_gguf(of("llama", Kind::F32), Kind::Q8_0).is_ok());
}
