"""Results of a shard: embeddings or texts, their hash, and the difference of two results."""

import hashlib
import struct
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Protocol

import numpy
import numpy.typing

from ._extras import extra


class Result(Protocol):
    """What a model computed for the rows of a shard, in their order."""

    def __len__(self) -> int: ...

    def sha256(self) -> str:
        """Returns the hash, in hexadecimal."""
        ...

    def columns(self) -> dict[str, Any]:
        """Returns Arrow arrays by the names of their columns."""
        ...

    def difference(self, other: Any) -> str:
        """Says how many rows differ from another result of the same shard, which comes first, and by how much."""
        ...


@dataclass(frozen=True)
class Embeddings:
    """Rows of f32. The hash is that of their bytes, little endian, as of ``adead embed``."""

    rows: numpy.typing.NDArray[numpy.float32]

    def __len__(self) -> int:
        return len(self.rows)

    def sha256(self) -> str:
        return hashlib.sha256(self._bytes().tobytes()).hexdigest()

    def _bytes(self) -> "numpy.typing.NDArray[numpy.float32]":
        return numpy.ascontiguousarray(self.rows, "<f4")

    def columns(self) -> dict[str, Any]:
        pa = extra("pyarrow", "cluster")
        return {"embedding": pa.FixedSizeListArray.from_arrays(pa.array(self.rows.reshape(-1)), self.rows.shape[1])}

    @staticmethod
    def of(table: Any) -> "Embeddings":
        """Reads the rows of an output file."""
        column = table.column("embedding").combine_chunks()
        width: int = column.type.list_size
        values = column.flatten().to_numpy(zero_copy_only=False).astype(numpy.float32, copy=False)
        return Embeddings(values.reshape(len(column), width))

    def difference(self, other: "Embeddings") -> str:
        if self.rows.shape != other.rows.shape:
            return f"embeddings {list(self.rows.shape)} and {list(other.rows.shape)}"
        # Bits, as -0 equals 0 and no NaN equals itself.
        unequal = (self._bytes().view(numpy.uint32) != other._bytes().view(numpy.uint32)).any(axis=1)
        which = numpy.flatnonzero(unequal)
        if not len(which):
            return "no row differs"
        most = float(numpy.abs(self.rows - other.rows).max())
        return f"{len(which)} of {len(self.rows)} rows differ, row {which[0]} of the shard first, by at most {most:.3g}"


@dataclass(frozen=True)
class Texts:
    """Generated texts. The hash is that of each row's text, finish and tokens, in this order.

    A text and a finish are their length in bytes, then UTF-8; tokens are their number, then u32 each. Lengths and numbers are u64.
    All is little endian.
    """

    texts: Sequence[str]
    tokens: Sequence[Sequence[int]]
    finishes: Sequence[str]

    def __len__(self) -> int:
        return len(self.texts)

    def sha256(self) -> str:
        hashed = hashlib.sha256()
        for text, tokens, finish in zip(self.texts, self.tokens, self.finishes, strict=True):
            hashed.update(_with_length(text) + _with_length(finish) + struct.pack(f"<Q{len(tokens)}I", len(tokens), *tokens))
        return hashed.hexdigest()

    def columns(self) -> dict[str, Any]:
        pa = extra("pyarrow", "cluster")
        return {
            "text": pa.array(self.texts, pa.string()),
            "tokens": pa.array(self.tokens, pa.list_(pa.uint32())),
            "finish": pa.array(self.finishes, pa.string()),
        }

    @staticmethod
    def of(table: Any) -> "Texts":
        """Reads the texts of an output file."""
        return Texts(*(table.column(name).to_pylist() for name in ("text", "tokens", "finish")))

    def difference(self, other: "Texts") -> str:
        if len(self) != len(other):
            return f"{len(self)} and {len(other)} rows"
        ours = zip(self.texts, map(list, self.tokens), self.finishes)
        theirs = zip(other.texts, map(list, other.tokens), other.finishes)
        which = [number for number, (one, two) in enumerate(zip(ours, theirs)) if one != two]
        if not which:
            return "no row differs"
        first = which[0]
        return (
            f"{len(which)} of {len(self)} rows differ, row {first} of the shard first, "
            f"with {self.texts[first][:40]!r} and {other.texts[first][:40]!r}"
        )


def hash_of_texts(texts: Sequence[str]) -> str:
    """Returns the hash of a shard's input: for each text its length in bytes, u64 little endian, then UTF-8."""
    hashed = hashlib.sha256()
    for text in texts:
        hashed.update(_with_length(text))
    return hashed.hexdigest()


def _with_length(text: str) -> bytes:
    encoded = text.encode("utf-8")
    return struct.pack("<Q", len(encoded)) + encoded
