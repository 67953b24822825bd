#!/usr/bin/env python3
"""Makes three small models up, as GGUF files, and computes their logits by itself in double precision.

    python3 make_tiny.py            writes llama.gguf, qwen3.gguf, gemma3.gguf, and their logits in .npy files
    python3 make_tiny.py --check    fails where they would be others

Written from the papers and the format's description, sharing nothing with adead. Weights are drawn, and stored as floats or in
blocks; what the blocks hold is what is computed with.

llama.gguf has byte pairs of GPT-2's kind, grouped heads, neighbouring pairs for positions, tied embeddings, blocks. qwen3.gguf has
SentencePiece's pairs, pairs of both halves, scaled positions with factors, norms of queries and keys, biases, a matrix of its own
for the head, floats. gemma3.gguf has windows in two of three layers, which hide the first block of keys from the last tokens, norms
behind attention and the feed-forward layers, a gate of the other kind, a head that is not width / heads wide.
"""

import math
import struct
import sys
from pathlib import Path

HERE = Path(__file__).parent

# The positions whose logits are kept, and the number of tokens, which goes beyond one block of 64 keys.
KEPT, LENGTH = [0, 1, 7, 62, 63, 64, 69], 70
# Those of the model with a window.
WINDOW_KEPT, WINDOW_LENGTH = [0, 23, 24, 64, 100, 119], 120


class Draw:
    """Numbers between -1 and 1, the same on every machine."""

    def __init__(self, seed):
        self.state = seed

    def __call__(self):
        self.state = (self.state * 6364136223846793005 + 1442695040888963407) % 2**64
        return (self.state >> 40) / 2**23 - 1


def f32(x):
    return struct.unpack("<f", struct.pack("<f", x))[0]


def f16(x):
    return struct.unpack("<e", struct.pack("<e", x))[0]


def half(x):
    return struct.pack("<e", x)


def blocks_of_floats(code):
    def stored(values):
        data = b"".join(struct.pack(code, value) for value in values)
        return data, [value for (value,) in struct.iter_unpack(code, data)]

    return 1, stored


def bf16(values):
    data = b"".join(struct.pack("<f", value)[2:] for value in values)
    return data, [struct.unpack("<f", b"\0\0" + data[i : i + 2])[0] for i in range(0, len(data), 2)]


def q8_0(values):
    scale = f16(max(map(abs, values)) / 127)
    codes = [max(-128, min(127, round(value / scale))) for value in values]
    return half(scale) + struct.pack("<32b", *codes), [code * scale for code in codes]


def nibbles(codes):
    return bytes(low | high << 4 for low, high in zip(codes[:16], codes[16:]))


def q4_0(values):
    scale = f16(max(map(abs, values)) / 7)
    codes = [max(0, min(15, round(value / scale) + 8)) for value in values]
    return half(scale) + nibbles(codes), [(code - 8) * scale for code in codes]


def q4_1(values):
    least = f16(min(values))
    scale = f16((max(values) - least) / 15)
    codes = [max(0, min(15, round((value - least) / scale))) for value in values]
    return half(scale) + half(least) + nibbles(codes), [code * scale + least for code in codes]


# ggml's numbers, values of a block, and how a block is stored.
KINDS = {
    "F32": (0, *blocks_of_floats("<f")),
    "F16": (1, *blocks_of_floats("<e")),
    "Q4_0": (2, 32, q4_0),
    "Q4_1": (3, 32, q4_1),
    "Q8_0": (8, 32, q8_0),
    "BF16": (30, 1, bf16),
}

# GPT-2's characters for bytes.
BYTES, NEXT = {}, 256
for byte in range(256):
    if 0x21 <= byte <= 0x7E or 0xA1 <= byte <= 0xAC or 0xAE <= byte <= 0xFF:
        BYTES[byte] = chr(byte)
    else:
        BYTES[byte] = chr(NEXT)
        NEXT += 1

MERGES = ["t h", "th e", "Ġ the", "i n", "Ġ f", "e r", "r y", "er ry", "Ġf erry", "Ġ c", "a m", "am e", "Ġc ame", "Ġ in", "Ċ Ċ",
          "Ġ Ġ", "ĠĠ ĠĠ", "Ã ¼", "ð Ł", "ðŁ Į", "1 2"]  # fmt: skip
CHATML = (
    "{% for message in messages %}{{'<|im_start|>' + message['role'] + '\\n' + message['content'] + '<|im_end|>' + '\\n'}}"
    "{% endfor %}{% if add_generation_prompt %}{{ '<|im_start|>assistant\\n' }}{% endif %}"
)
NORMAL, UNKNOWN, CONTROL, USER, BYTE = 1, 2, 3, 4, 6


def byte_pairs():
    tokens = [("<|endoftext|>", CONTROL), ("<|im_start|>", CONTROL), ("<|im_end|>", CONTROL), ("<tool>", USER)]
    tokens += [(char, NORMAL) for char in BYTES.values()]
    tokens += [(merge.replace(" ", ""), NORMAL) for merge in MERGES]
    return {
        "tokenizer.ggml.model": "gpt2",
        "tokenizer.ggml.pre": "smollm",
        "tokenizer.ggml.tokens": [text for text, _ in tokens],
        "tokenizer.ggml.token_type": [kind for _, kind in tokens],
        "tokenizer.ggml.merges": MERGES,
        "tokenizer.ggml.bos_token_id": 1,
        "tokenizer.ggml.eos_token_id": 2,
        "tokenizer.ggml.add_bos_token": False,
        "tokenizer.chat_template": CHATML,
    }


PIECES = ["▁t", "he", "▁the", "er", "in", "▁f", "ry", "▁ferry", "erry", "▁c", "am", "ame", "▁came", "▁in", "▁▁", "üb", "fe"]


def by_scores(space_prefix):
    tokens = [("<unk>", UNKNOWN, 0.0), ("<s>", CONTROL, 0.0), ("</s>", CONTROL, 0.0)]
    tokens += [(f"<0x{byte:02X}>", BYTE, 0.0) for byte in range(256)]
    tokens += [(piece, NORMAL, -float(i)) for i, piece in enumerate(PIECES)]
    letters = "▁abcdefghijklmnopqrstuvwxyzü.,!?"
    tokens += [(char, NORMAL, -float(len(PIECES) + i)) for i, char in enumerate(letters)]
    return {
        "tokenizer.ggml.model": "llama",
        "tokenizer.ggml.tokens": [text for text, _, _ in tokens],
        "tokenizer.ggml.token_type": [kind for _, kind, _ in tokens],
        "tokenizer.ggml.scores": [score for _, _, score in tokens],
        "tokenizer.ggml.bos_token_id": 1,
        "tokenizer.ggml.eos_token_id": 2,
        **({} if space_prefix else {"tokenizer.ggml.add_space_prefix": False}),
    }


class Model:
    """A model of these sizes and extras:

    interleaved: positions rotate neighbours; norms: of queries and keys; biases: of queries, keys and values; factors: positions
    are scaled; head: the head has a matrix of its own; gemma: the rules of that family, with windows.
    """

    def __init__(self, name, seed, vocabulary, sizes, kinds, extras):
        self.name, self.vocabulary, self.extras = name, vocabulary, extras
        self.layers, self.width, self.heads, self.kv_heads, self.size, self.hidden = sizes
        self.window, self.period = (24, 2) if "gemma" in extras else (None, None)
        self.kept, self.length = (WINDOW_KEPT, WINDOW_LENGTH) if self.window else (KEPT, LENGTH)
        self.words = len(vocabulary["tokenizer.ggml.tokens"])
        self.base, self.eps = 1e6 if self.window else 10000.0, f32(1e-5)
        self.tensors, draw = {}, Draw(seed)

        def add(tensor, shape, scale, middle=0.0, kind="F32"):
            number, block, stored = KINDS[kind]
            values = [middle + scale * draw() for _ in range(math.prod(shape))]
            if block == 1:
                data, kept = stored(values)
            else:
                parts = [stored(values[i : i + block]) for i in range(0, len(values), block)]
                data, kept = b"".join(part[0] for part in parts), [value for part in parts for value in part[1]]
            self.tensors[tensor] = (number, shape, data, kept)

        def linear(tensor, outputs, inputs, kind, bias=False):
            add(f"{tensor}.weight", [outputs, inputs], 1.5 / math.sqrt(inputs), kind=kind)
            if bias:
                add(f"{tensor}.bias", [outputs], 0.3)

        add("token_embd.weight", [self.words, self.width], 0.4, kind=kinds["words"])
        for i in range(self.layers):
            kind = kinds["layers"][i]
            add(f"blk.{i}.attn_norm.weight", [self.width], 0.3, 1.0)
            linear(f"blk.{i}.attn_q", self.heads * self.size, self.width, kind, "biases" in extras)
            linear(f"blk.{i}.attn_k", self.kv_heads * self.size, self.width, kind, "biases" in extras)
            linear(f"blk.{i}.attn_v", self.kv_heads * self.size, self.width, kind, "biases" in extras)
            if "norms" in extras:
                add(f"blk.{i}.attn_q_norm.weight", [self.size], 0.3, 1.0)
                add(f"blk.{i}.attn_k_norm.weight", [self.size], 0.3, 1.0)
            linear(f"blk.{i}.attn_output", self.width, self.heads * self.size, kind)
            add(f"blk.{i}.ffn_norm.weight", [self.width], 0.3, 1.0)
            linear(f"blk.{i}.ffn_gate", self.hidden, self.width, kind)
            linear(f"blk.{i}.ffn_up", self.hidden, self.width, kind)
            linear(f"blk.{i}.ffn_down", self.width, self.hidden, kind)
            if "gemma" in extras:
                add(f"blk.{i}.post_attention_norm.weight", [self.width], 0.3, 1.0)
                add(f"blk.{i}.post_ffw_norm.weight", [self.width], 0.3, 1.0)
        add("output_norm.weight", [self.width], 0.3, 1.0)
        if "head" in extras:
            linear("output", self.words, self.width, kinds["words"])
        if "factors" in extras:
            add("rope_freqs.weight", [self.size // 2], 0.5, 1.5)

    def file(self):
        name = self.name
        entries = {
            "general.architecture": name,
            f"{name}.block_count": self.layers,
            f"{name}.context_length": 256,
            f"{name}.embedding_length": self.width,
            f"{name}.feed_forward_length": self.hidden,
            f"{name}.attention.head_count": self.heads,
            f"{name}.attention.head_count_kv": self.kv_heads,
            f"{name}.attention.key_length": self.size,
            f"{name}.attention.layer_norm_rms_epsilon": self.eps,
            f"{name}.rope.freq_base": self.base,
            **({f"{name}.rope.scaling.type": "linear", f"{name}.rope.scaling.factor": 2.0} if "factors" in self.extras else {}),
            **({f"{name}.attention.sliding_window": self.window} if self.window else {}),
            **({f"{name}.attention.sliding_window_pattern": self.period} if self.window else {}),
            **self.vocabulary,
        }

        def string(text):
            return struct.pack("<Q", len(text.encode())) + text.encode()

        def value(item, listed=False):
            if isinstance(item, bool):
                return 7, struct.pack("<?", item)
            if isinstance(item, int):
                return (5, struct.pack("<i", item)) if listed else (4, struct.pack("<I", item))
            if isinstance(item, float):
                return 6, struct.pack("<f", item)
            if isinstance(item, str):
                return 8, string(item)
            parts = [value(part, listed=True) for part in item]
            return 9, struct.pack("<IQ", parts[0][0], len(parts)) + b"".join(data for _, data in parts)

        head = struct.pack("<4sIQQ", b"GGUF", 3, len(self.tensors), len(entries))
        for key, item in entries.items():
            kind, data = value(item)
            head += string(key) + struct.pack("<I", kind) + data
        body = b""
        for key, (number, shape, data, _) in self.tensors.items():
            head += string(key) + struct.pack(f"<I{len(shape)}QIQ", len(shape), *reversed(shape), number, len(body))
            body += data + b"\0" * (-len(data) % 32)
        return head + b"\0" * (-len(head) % 32) + body

    def values(self, name):
        return self.tensors[name][3]

    def linear(self, name, rows):
        inputs, weight = self.tensors[f"{name}.weight"][1][1], self.values(f"{name}.weight")
        bias = self.values(f"{name}.bias") if f"{name}.bias" in self.tensors else None
        weight = [weight[i : i + inputs] for i in range(0, len(weight), inputs)]
        result = [[math.fsum(map(float.__mul__, row, w)) for w in weight] for row in rows]
        return result if bias is None else [[a + b for a, b in zip(row, bias)] for row in result]

    def norm(self, name, row):
        scale = 1 / math.sqrt(math.fsum(x * x for x in row) / len(row) + self.eps)
        return [x * scale * w for x, w in zip(row, self.values(f"{name}.weight"))]

    def is_local(self, layer):
        return self.window is not None and (layer + 1) % self.period != 0

    def head(self, row, head, position, layer, part):
        """A head's values, normalised and rotated."""
        x, size = row[head * self.size : (head + 1) * self.size], self.size
        if "norms" in self.extras:
            x = self.norm(f"blk.{layer}.attn_{part}_norm", x)
        base = 10000.0 if self.is_local(layer) else self.base
        for i in range(size // 2):
            angle = position * base ** (-2 * i / size)
            if "factors" in self.extras:
                angle /= 2.0 * self.values("rope_freqs.weight")[i]
            a, b = (2 * i, 2 * i + 1) if "interleaved" in self.extras else (i, i + size // 2)
            cos, sin = math.cos(angle), math.sin(angle)
            x[a], x[b] = x[a] * cos - x[b] * sin, x[b] * cos + x[a] * sin
        return x

    def attention(self, i, rows):
        name = f"blk.{i}"
        q, k, v = (self.linear(f"{name}.attn_{part}", rows) for part in "qkv")
        keys = [[self.head(row, h, at, i, "k") for h in range(self.kv_heads)] for at, row in enumerate(k)]
        result = []
        for at, row in enumerate(q):
            seen = range(max(0, at + 1 - self.window) if self.is_local(i) else 0, at + 1)
            own = []
            for h in range(self.heads):
                query, kv = self.head(row, h, at, i, "q"), h // (self.heads // self.kv_heads)
                scores = [math.fsum(map(float.__mul__, query, keys[j][kv])) / math.sqrt(self.size) for j in seen]
                most = max(scores)
                shares = [math.exp(score - most) for score in scores]
                total = math.fsum(shares)
                part = [v[j][kv * self.size : (kv + 1) * self.size] for j in seen]
                own += [math.fsum(s * p[d] for s, p in zip(shares, part)) / total for d in range(self.size)]
            result.append(own)
        return self.linear(f"{name}.attn_output", result)

    def logits(self, tokens):
        def added(a, b):
            return [[p + q for p, q in zip(r, s)] for r, s in zip(a, b)]

        def gated(x):
            if "gemma" in self.extras:
                return 0.5 * x * (1 + math.tanh(math.sqrt(2 / math.pi) * (x + 0.044715 * x**3)))
            return x / (1 + math.exp(-x))

        def after(name, rows):
            return [self.norm(name, row) for row in rows] if "gemma" in self.extras else rows

        words = self.values("token_embd.weight")
        x = [words[token * self.width : (token + 1) * self.width] for token in tokens]
        if "gemma" in self.extras:
            x = [[value * math.sqrt(self.width) for value in row] for row in x]
        for i in range(self.layers):
            attended = self.attention(i, [self.norm(f"blk.{i}.attn_norm", row) for row in x])
            x = added(x, after(f"blk.{i}.post_attention_norm", attended))
            rows = [self.norm(f"blk.{i}.ffn_norm", row) for row in x]
            gate, up = self.linear(f"blk.{i}.ffn_gate", rows), self.linear(f"blk.{i}.ffn_up", rows)
            between = [[gated(g) * u for g, u in zip(r, s)] for r, s in zip(gate, up)]
            x = added(x, after(f"blk.{i}.post_ffw_norm", self.linear(f"blk.{i}.ffn_down", between)))
        rows = [self.norm("output_norm", x[at]) for at in self.kept]
        return self.linear("output" if "head" in self.extras else "token_embd", rows)

    def tokens(self):
        """The tokens whose logits are compared. The tests compute the same ones."""
        return [(7 + 31 * i + i * i) % self.words for i in range(self.length)]


def models():
    llama = Model("llama", 2026, byte_pairs(), (3, 64, 4, 2, 16, 96),
                  {"words": "Q8_0", "layers": ["Q4_1", "Q4_0", "Q8_0"]}, {"interleaved"})  # fmt: skip
    qwen3 = Model("qwen3", 2027, by_scores(True), (2, 32, 4, 2, 8, 48),
                  {"words": "F16", "layers": ["F32", "BF16"]}, {"norms", "biases", "factors", "head"})  # fmt: skip
    gemma3 = Model("gemma3", 2028, by_scores(False), (3, 32, 4, 1, 12, 48),
                   {"words": "F16", "layers": ["F16", "BF16", "F16"]}, {"norms", "gemma"})  # fmt: skip
    return llama, qwen3, gemma3


def files():
    written = {}
    for model in models():
        rows = model.logits(model.tokens())
        header = f"{{'descr': '<f4', 'fortran_order': False, 'shape': ({len(rows)}, {model.words}), }}".ljust(117) + "\n"
        values = [value for row in rows for value in row]
        start = b"\x93NUMPY\x01\x00" + struct.pack("<H", 118) + header.encode()
        written[f"{model.name}.gguf"] = model.file()
        written[f"{model.name}.npy"] = start + struct.pack(f"<{len(values)}f", *values)
    return written


def main():
    for name, contents in files().items():
        path = HERE / name
        if "--check" not in sys.argv[1:]:
            path.write_bytes(contents)
        elif path.read_bytes() != contents:
            sys.exit(f"{path} is not what make_tiny.py writes")
        print(f"{name}: {len(contents)} bytes")


if __name__ == "__main__":
    main()
