#!/usr/bin/env python3
"""Makes a small model up, in the files of a real one, and computes its embeddings by itself in double precision.

    python3 make_tiny.py            writes tiny/, tiny.txt, tiny_tokens.json and tiny.npy
    python3 make_tiny.py --check    fails where they would be others

Written from the papers and sentence-transformers' description, sharing nothing with adead: its own tokenizer, and arithmetic on
Python's floats. Weights are stored as f32, f16 and bf16; what they are rounded to is what is computed with.
"""

import json
import math
import struct
import sys
import unicodedata
from pathlib import Path

HERE = Path(__file__).parent
LAYERS, WIDTH, HEADS, HIDDEN, POSITIONS, MOST, EPS = 2, 32, 4, 48, 40, 24, 1e-12

SPECIAL = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]"]
LETTERS = "abcdefghijklmnopqrstuvwxyz"
WORDS = ["the", "ferry", "har", "##bour", "was", "quiet", "when", "came", "in", "ein", "schiff", "le", "port", "##ing", "港",
         "口", "и", "##и", "🌊"]  # fmt: skip
VOCABULARY = SPECIAL + list(LETTERS) + [f"##{c}" for c in LETTERS] + list("0123456789.,!?'-") + WORDS

SENTENCES = [
    "", " ", "a", "The ferry was quiet when the ferry came in.", "The harbour was quiet!", "harbours", "Ein Schiff, le port",
    "LE PORT É", "港口", "港 口 the 港", "🌊🌊 ferry", "unknown ☃ signs ß", "[MASK] ferry", "[SEP]", "the-ferry's in?",
    "tabs\tand\u00a0no-break spaces", "a\u0301e\u0301i\u0301", "x" * 99, "x" * 101, "й", "0123456789",
    "the ferry came in the port when the harbour was quiet", "the ferry came in the port when the harbour was quiet ferry port",
    "the ferry was in the port " * 3, "the ferry was in the port " * 20, "a b c d e f g h i j k l m n o p q r s t u v",
    "a b c d e f g h i j k l m n o p q r s t u v w",
    "zero\u200bwidth \ufeff and \ufffd", "ferry " * 22, "Ferry", "ferry", "FERRY",
]  # fmt: skip


class Draw:
    """Numbers between -1 and 1, the same on every machine."""

    def __init__(self, seed):
        self.state = seed

    def __call__(self):
        self.state = (self.state * 6364136223846793005 + 1442695040888963407) % 2**64
        return (self.state >> 40) / 2**23 - 1


def as_f32(x):
    return struct.unpack("<f", struct.pack("<f", x))[0]


def as_bf16(x):
    """Cut off, which is a bf16 as good as the nearest."""
    return struct.unpack("<f", struct.pack("<I", struct.unpack("<I", struct.pack("<f", x))[0] & 0xFFFF0000))[0]


def as_f16(x):
    return struct.unpack("<e", struct.pack("<e", x))[0]


STORED = {
    "F32": (as_f32, lambda x: struct.pack("<f", x)),
    "F16": (as_f16, lambda x: struct.pack("<e", x)),
    "BF16": (as_bf16, lambda x: struct.pack("<f", x)[2:]),
}


def tensors():
    """Name, dtype, shape, values."""
    draw, found = Draw(2026), {}

    def add(name, shape, scale, middle=0.0, dtype="F32"):
        values = [STORED[dtype][0](middle + scale * draw()) for _ in range(math.prod(shape))]
        found[name] = (dtype, shape, values)

    def linear(name, outputs, inputs, dtype="F32"):
        add(f"{name}.weight", [outputs, inputs], 1.5 / math.sqrt(inputs), dtype=dtype)
        add(f"{name}.bias", [outputs], 0.1)

    def norm(name):
        add(f"{name}.weight", [WIDTH], 0.3, 1.0)
        add(f"{name}.bias", [WIDTH], 0.1)

    add("embeddings.word_embeddings.weight", [len(VOCABULARY), WIDTH], 1.0, dtype="BF16")
    add("embeddings.position_embeddings.weight", [POSITIONS, WIDTH], 0.3)
    add("embeddings.token_type_embeddings.weight", [2, WIDTH], 0.2)
    norm("embeddings.LayerNorm")
    for i in range(LAYERS):
        for part in ("self.query", "self.key", "self.value", "output.dense"):
            linear(f"encoder.layer.{i}.attention.{part}", WIDTH, WIDTH)
        norm(f"encoder.layer.{i}.attention.output.LayerNorm")
        linear(f"encoder.layer.{i}.intermediate.dense", HIDDEN, WIDTH, "F16" if i else "F32")
        linear(f"encoder.layer.{i}.output.dense", WIDTH, HIDDEN)
        norm(f"encoder.layer.{i}.output.LayerNorm")
    return found


def safetensors(found):
    header, data = {"__metadata__": {"format": "pt"}}, b""
    for name, (dtype, shape, values) in found.items():
        part = b"".join(map(STORED[dtype][1], values))
        header[name] = {"dtype": dtype, "shape": shape, "data_offsets": [len(data), len(data) + len(part)]}
        data += part
    text = json.dumps(header, separators=(",", ":")).encode()
    text += b" " * (-len(text) % 8)
    return struct.pack("<Q", len(text)) + text + data


def clean(text):
    kept = []
    for c in text:
        if c in "\t\n\r" or unicodedata.category(c) == "Zs":
            kept.append(" ")
        elif ord(c) not in (0, 0xFFFD) and unicodedata.category(c) not in ("Cc", "Cf", "Cn", "Co"):
            kept.append(f" {c} " if 0x4E00 <= ord(c) <= 0x9FFF else c)
    apart = unicodedata.normalize("NFD", "".join(kept))
    return "".join(c for c in apart if unicodedata.category(c) != "Mn").lower()


def split(text):
    """Words, and each mark of punctuation by itself."""
    word = ""
    for c in text + " ":
        mark = c.isascii() and c.isprintable() and not c.isalnum() and c != " " or unicodedata.category(c).startswith("P")
        if c == " " or mark:
            if word:
                yield word
            word = ""
            if mark:
                yield c
        else:
            word += c


def pieces(word):
    if len(word) > 100:
        return ["[UNK]"]
    found, start = [], 0
    while start < len(word):
        for end in range(len(word), start, -1):
            piece = ("##" if start else "") + word[start:end]
            if piece in VOCABULARY:
                break
        else:
            return ["[UNK]"]
        found.append(piece)
        start = end
    return found


def tokens(sentence):
    found, rest = [], sentence
    while rest:
        at, special = min((rest.find(word), word) if word in rest else (len(rest), "") for word in SPECIAL)
        for word in split(clean(rest[:at])):
            found += pieces(word)
        if special:
            found.append(special)
        rest = rest[at + len(special):]
    return [VOCABULARY.index(token) for token in ["[CLS]", *found[: MOST - 2], "[SEP]"]]


class Model:
    def __init__(self, found):
        self.found = found

    def rows(self, name):
        _, (_, width), values = self.found[name]
        return [values[i : i + width] for i in range(0, len(values), width)]

    def vector(self, name):
        return self.found[name][2]

    def linear(self, name, x):
        weight, bias = self.rows(f"{name}.weight"), self.vector(f"{name}.bias")
        return [[math.fsum(a * b for a, b in zip(row, w)) + c for w, c in zip(weight, bias)] for row in x]

    def norm(self, name, x):
        weight, bias, result = self.vector(f"{name}.weight"), self.vector(f"{name}.bias"), []
        for row in x:
            mean = math.fsum(row) / len(row)
            spread = math.sqrt(math.fsum((value - mean) ** 2 for value in row) / len(row) + EPS)
            result.append([(value - mean) / spread * w + b for value, w, b in zip(row, weight, bias)])
        return result

    def attention(self, name, x):
        q, k, v = (self.linear(f"{name}.self.{part}", x) for part in ("query", "key", "value"))
        size, result = WIDTH // HEADS, [[] for _ in x]
        for head in range(HEADS):
            at = slice(head * size, (head + 1) * size)
            for row, own in zip(q, result):
                scores = [math.fsum(a * b for a, b in zip(row[at], key[at])) / math.sqrt(size) for key in k]
                most = max(scores)
                shares = [math.exp(score - most) for score in scores]
                total = math.fsum(shares)
                own += [math.fsum(s * value[at][d] for s, value in zip(shares, v)) / total for d in range(size)]
        return self.linear(f"{name}.output.dense", result)

    def embed(self, sentence):
        ids = tokens(sentence)
        words, places, kind = (self.rows(f"embeddings.{n}_embeddings.weight") for n in ("word", "position", "token_type"))
        x = [[math.fsum(parts) for parts in zip(words[word], kind[0], places[at])] for at, word in enumerate(ids)]
        x = self.norm("embeddings.LayerNorm", x)

        def added(a, b):
            return [[p + q for p, q in zip(r, s)] for r, s in zip(a, b)]

        for i in range(LAYERS):
            name = f"encoder.layer.{i}"
            x = self.norm(f"{name}.attention.output.LayerNorm", added(x, self.attention(f"{name}.attention", x)))
            hidden = [[h * 0.5 * (1 + math.erf(h / math.sqrt(2))) for h in row]
                      for row in self.linear(f"{name}.intermediate.dense", x)]  # fmt: skip
            x = self.norm(f"{name}.output.LayerNorm", added(x, self.linear(f"{name}.output.dense", hidden)))
        mean = [math.fsum(column) / len(x) for column in zip(*x)]
        length = max(math.sqrt(math.fsum(value * value for value in mean)), 1e-12)
        return [value / length for value in mean]


def tokenizer():
    special = [{"id": i, "content": word, "single_word": False, "lstrip": False, "rstrip": False, "normalized": False,
                "special": True} for i, word in enumerate(SPECIAL)]  # fmt: skip
    around = [{"SpecialToken": {"id": "[CLS]", "type_id": 0}}, {"Sequence": {"id": "A", "type_id": 0}},
              {"SpecialToken": {"id": "[SEP]", "type_id": 0}}]  # fmt: skip
    behind = [{"Sequence": {"id": "B", "type_id": 1}}, {"SpecialToken": {"id": "[SEP]", "type_id": 1}}]
    return {
        "version": "1.0",
        # The model's folder has its own limit, and padding is the encoder's: neither of these holds.
        "truncation": {"max_length": 8, "strategy": "LongestFirst", "stride": 0},
        "padding": {"strategy": {"Fixed": 8}, "direction": "Right", "pad_to_multiple_of": None, "pad_id": 0, "pad_type_id": 0,
                    "pad_token": "[PAD]"},
        "added_tokens": special,
        "normalizer": {"type": "BertNormalizer", "clean_text": True, "handle_chinese_chars": True, "strip_accents": None,
                       "lowercase": True},
        "pre_tokenizer": {"type": "BertPreTokenizer"},
        "post_processor": {"type": "TemplateProcessing", "single": around, "pair": around + behind, "special_tokens": {
            word: {"id": word, "ids": [VOCABULARY.index(word)], "tokens": [word]} for word in ("[CLS]", "[SEP]")}},
        "decoder": {"type": "WordPiece", "prefix": "##", "cleanup": True},
        "model": {"type": "WordPiece", "unk_token": "[UNK]", "continuing_subword_prefix": "##", "max_input_chars_per_word": 100,
                  "vocab": {word: i for i, word in enumerate(VOCABULARY)}},
    }  # fmt: skip


def files():
    assert len(set(VOCABULARY)) == len(VOCABULARY)
    found = tensors()
    config = {"model_type": "bert", "hidden_size": WIDTH, "num_hidden_layers": LAYERS, "num_attention_heads": HEADS,
              "intermediate_size": HIDDEN, "hidden_act": "gelu", "layer_norm_eps": EPS, "vocab_size": len(VOCABULARY),
              "max_position_embeddings": POSITIONS, "type_vocab_size": 2, "position_embedding_type": "absolute"}  # fmt: skip
    kinds = [("Transformer", ""), ("Pooling", "1_Pooling"), ("Normalize", "2_Normalize")]
    modules = [{"idx": i, "name": str(i), "path": path, "type": f"sentence_transformers.models.{kind}"}
               for i, (kind, path) in enumerate(kinds)]  # fmt: skip
    pooling = {"word_embedding_dimension": WIDTH, "pooling_mode_cls_token": False, "pooling_mode_mean_tokens": True,
               "pooling_mode_max_tokens": False, "pooling_mode_mean_sqrt_len_tokens": False}  # fmt: skip
    texts = {"tiny/config.json": config, "tiny/tokenizer.json": tokenizer(), "tiny/modules.json": modules,
             "tiny/sentence_bert_config.json": {"max_seq_length": MOST, "do_lower_case": False},
             "tiny/1_Pooling/config.json": pooling}  # fmt: skip
    written = {name: (json.dumps(value, ensure_ascii=False, indent=1) + "\n").encode() for name, value in texts.items()}
    written["tiny/model.safetensors"] = safetensors(found)
    written["tiny.txt"] = "".join(f"{sentence}\n" for sentence in SENTENCES).encode()
    written["tiny_tokens.json"] = (json.dumps([tokens(sentence) for sentence in SENTENCES]) + "\n").encode()
    header = f"{{'descr': '<f4', 'fortran_order': False, 'shape': ({len(SENTENCES)}, {WIDTH}), }}".ljust(117) + "\n"
    model = Model(found)
    values = [value for sentence in SENTENCES for value in model.embed(sentence)]
    start = b"\x93NUMPY\x01\x00" + struct.pack("<H", 118) + header.encode()
    written["tiny.npy"] = start + struct.pack(f"<{len(values)}f", *values)
    return written


def main():
    for name, contents in files().items():
        path = HERE / name
        if "--check" not in sys.argv[1:]:
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_bytes(contents)
        elif path.read_bytes() != contents:
            sys.exit(f"{path} is not what make_tiny.py writes")
    print(f"{len(SENTENCES)} sentences, {len(VOCABULARY)} words")


main()
