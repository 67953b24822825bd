#!/usr/bin/env python3
"""Writes two of the small models of make_tiny.py as folders of Hugging Face: the same weights, by the other names and in the other order.

    python3 make_folders.py            writes the folders llama-hf and gemma3-hf
    python3 make_folders.py --check    fails where they would be others

tensors.sha256 of a folder has the hashes of the tensors of a GGUF file with f32 alone. llama-hf has its weights in two files with an
index, as f32. gemma3-hf has one file, with weights in the types of gemma3.gguf, and norms that lack 1.
"""

import hashlib
import json
import struct
import sys

from make_tiny import BYTE, CHATML, CONTROL, HERE, NORMAL, UNKNOWN, models

TYPES = {0: "F32", 1: "F16", 30: "BF16"}

LAYER = {
    "attn_norm": "input_layernorm",
    "attn_q": "self_attn.q_proj",
    "attn_k": "self_attn.k_proj",
    "attn_v": "self_attn.v_proj",
    "attn_q_norm": "self_attn.q_norm",
    "attn_k_norm": "self_attn.k_norm",
    "attn_output": "self_attn.o_proj",
    "ffn_norm": "post_attention_layernorm",
    "ffn_gate": "mlp.gate_proj",
    "ffn_up": "mlp.up_proj",
    "ffn_down": "mlp.down_proj",
}
GEMMA = {
    "ffn_norm": "pre_feedforward_layernorm",
    "post_attention_norm": "post_attention_layernorm",
    "post_ffw_norm": "post_feedforward_layernorm",
}


def renamed(model, name):
    whole = {"token_embd.weight": "model.embed_tokens.weight", "output_norm.weight": "model.norm.weight"}
    if name in whole:
        return whole[name]
    _, layer, part, end = name.split(".")
    names = {**LAYER, **(GEMMA if "gemma" in model.extras else {})}
    return f"model.layers.{layer}.{names[part]}.{end}"


def floats(values):
    return struct.pack(f"<{len(values)}f", *values)


def halves(model, name, values):
    """Rows of queries and keys in the order of Hugging Face: a head's even rows before its odd ones."""
    if "interleaved" not in model.extras or not name.endswith(("attn_q.weight", "attn_k.weight")):
        return values
    rows = [values[i : i + model.width] for i in range(0, len(values), model.width)]
    heads = [rows[i : i + model.size] for i in range(0, len(rows), model.size)]
    return [value for head in heads for row in head[0::2] + head[1::2] for value in row]


def tensors(model):
    """By Hugging Face's names: type, shape, bytes."""
    found = {}
    for name, (number, shape, data, kept) in model.tensors.items():
        if "gemma" in model.extras and name.endswith("norm.weight"):
            number, data = 0, floats([value - 1 for value in kept])
            assert struct.unpack(f"<{len(kept)}f", data) == tuple(value - 1 for value in kept)
        elif number not in TYPES:
            number, data = 0, floats(halves(model, name, kept))
        found[renamed(model, name)] = (TYPES[number], shape, data)
    return found


def safetensors(parts):
    header, at = {"__metadata__": {"format": "pt"}}, 0
    for name, (kind, shape, data) in parts.items():
        header[name] = {"dtype": kind, "shape": shape, "data_offsets": [at, at + len(data)]}
        at += len(data)
    text = json.dumps(header, separators=(",", ":")).encode()
    text += b" " * (-len(text) % 8)
    return struct.pack("<Q", len(text)) + text + b"".join(data for _, _, data in parts.values())


def weights(model, files):
    """The tensors in so many files."""
    found = tensors(model)
    if files == 1:
        return {"model.safetensors": safetensors(found)}
    names, written, index = sorted(found), {}, {}
    for number in range(files):
        own = names[number::files]
        file = f"model-{number + 1:05}-of-{files:05}.safetensors"
        written[file] = safetensors({name: found[name] for name in own})
        index.update({name: file for name in own})
    total = sum(len(data) for _, _, data in found.values())
    index = {"metadata": {"total_size": total}, "weight_map": index}
    return {**written, "model.safetensors.index.json": text_of(index)}


def text_of(value):
    return (json.dumps(value, ensure_ascii=False, indent=1) + "\n").encode()


def sizes(model):
    return {
        "hidden_size": model.width,
        "num_hidden_layers": model.layers,
        "num_attention_heads": model.heads,
        "num_key_value_heads": model.kv_heads,
        "head_dim": model.size,
        "intermediate_size": model.hidden,
        "vocab_size": model.words,
        "max_position_embeddings": 256,
        "rms_norm_eps": 1e-05,
        "rope_theta": model.base,
        "tie_word_embeddings": True,
    }


def llama_config(model):
    return {
        "architectures": ["LlamaForCausalLM"],
        "model_type": "llama",
        "hidden_act": "silu",
        "attention_bias": False,
        "rope_scaling": None,
        "bos_token_id": 1,
        "eos_token_id": 2,
        "torch_dtype": "float32",
        **sizes(model),
    }


def gemma_config(model):
    kinds = ["sliding_attention" if model.is_local(layer) else "full_attention" for layer in range(model.layers)]
    return {
        "architectures": ["Gemma3ForCausalLM"],
        "model_type": "gemma3_text",
        "hidden_activation": "gelu_pytorch_tanh",
        "query_pre_attn_scalar": model.size,
        "attn_logit_softcapping": None,
        "final_logit_softcapping": None,
        "rope_local_base_freq": 10000.0,
        "sliding_window": model.window,
        "layer_types": kinds,
        "bos_token_id": 1,
        "eos_token_id": [2],
        "dtype": "bfloat16",
        **sizes(model),
    }


def added(vocabulary):
    texts, kinds = vocabulary["tokenizer.ggml.tokens"], vocabulary["tokenizer.ggml.token_type"]
    flags = {"single_word": False, "lstrip": False, "rstrip": False, "normalized": False}
    return [
        {"id": i, "content": text, **flags, "special": kind in (CONTROL, UNKNOWN)}
        for i, (text, kind) in enumerate(zip(texts, kinds))
        if kind not in (NORMAL, BYTE)
    ]


def ids(vocabulary):
    return {text: i for i, text in enumerate(vocabulary["tokenizer.ggml.tokens"])}


def byte_pairs(vocabulary):
    """A tokenizer of GPT-2's kind, with a token for each digit."""
    levels = {"type": "ByteLevel", "add_prefix_space": False, "trim_offsets": True, "use_regex": True}
    return {
        "version": "1.0",
        "added_tokens": added(vocabulary),
        "normalizer": None,
        "pre_tokenizer": {"type": "Sequence", "pretokenizers": [{"type": "Digits", "individual_digits": True}, levels]},
        "post_processor": None,
        "decoder": levels,
        "model": {
            "type": "BPE",
            "dropout": None,
            "unk_token": None,
            "continuing_subword_prefix": None,
            "end_of_word_suffix": None,
            "fuse_unk": False,
            "byte_fallback": False,
            "ignore_merges": False,
            "vocab": ids(vocabulary),
            "merges": vocabulary["tokenizer.ggml.merges"],
        },
    }


def sentence_pieces(vocabulary):
    """A tokenizer of SentencePiece's kind, with the merges that its scores mean."""
    known, merges = ids(vocabulary), []
    scores, kinds = vocabulary["tokenizer.ggml.scores"], vocabulary["tokenizer.ggml.token_type"]
    for text, i in known.items():
        if kinds[i] == NORMAL:
            pairs = [(text[:at], text[at:]) for at in range(1, len(text)) if text[:at] in known and text[at:] in known]
            merges += [(-scores[i], known[a], known[b], [a, b]) for a, b in pairs]
    first = {"SpecialToken": {"id": "<s>", "type_id": 0}}
    whole, other = ({"Sequence": {"id": part, "type_id": 0}} for part in "AB")
    special = {"<s>": {"id": "<s>", "ids": [1], "tokens": ["<s>"]}}
    template = {"single": [first, whole], "pair": [first, whole, other], "special_tokens": special}
    return {
        "version": "1.0",
        "added_tokens": added(vocabulary),
        "normalizer": {"type": "Replace", "pattern": {"String": " "}, "content": "▁"},
        "pre_tokenizer": {"type": "Split", "pattern": {"String": " "}, "behavior": "MergedWithPrevious", "invert": False},
        "post_processor": {"type": "TemplateProcessing", **template},
        "decoder": None,
        "model": {
            "type": "BPE",
            "unk_token": "<unk>",
            "fuse_unk": True,
            "byte_fallback": True,
            "vocab": known,
            "merges": [pair for *_, pair in sorted(merges)],
        },
    }


def files():
    llama, _, gemma3 = models()
    folders = {
        "llama-hf": {
            "config.json": text_of(llama_config(llama)),
            "generation_config.json": text_of({"eos_token_id": [2, 0], "do_sample": True}),
            "tokenizer.json": text_of(byte_pairs(llama.vocabulary)),
            "tokenizer_config.json": text_of(
                {"bos_token": "<|im_start|>", "eos_token": {"content": "<|im_end|>"}, "chat_template": CHATML}
            ),
            **weights(llama, 2),
        },
        "gemma3-hf": {
            "config.json": text_of(gemma_config(gemma3)),
            "tokenizer.json": text_of(sentence_pieces(gemma3.vocabulary)),
            **weights(gemma3, 1),
        },
    }
    for model, folder in ((llama, "llama-hf"), (gemma3, "gemma3-hf")):
        lines = [f"{hashlib.sha256(floats(kept)).hexdigest()}  {name}\n" for name, (*_, kept) in model.tensors.items()]
        folders[folder]["tensors.sha256"] = "".join(sorted(lines, key=lambda line: line[66:])).encode()
    return {f"{folder}/{name}": data for folder, own in folders.items() for name, data in own.items()}


def main():
    for name, contents in files().items():
        path = HERE / name
        if "--check" not in sys.argv[1:]:
            path.parent.mkdir(exist_ok=True)
            path.write_bytes(contents)
        elif path.read_bytes() != contents:
            sys.exit(f"{path} is not what make_folders.py writes")
        print(f"{name}: {len(contents)} bytes")


if __name__ == "__main__":
    main()
