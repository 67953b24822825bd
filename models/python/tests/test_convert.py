"""``convert`` on the small models of tests/text: bytes, progress, errors."""

import hashlib
import pathlib
import warnings

import adead
import pytest

from adead_models import ConversionWarning, TextGenerator, convert

SHARED = pathlib.Path(__file__).resolve().parents[3] / "tests/text"


def test_a_folder_becomes_a_model(tmp_path):
    seen = []
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConversionWarning)
        convert(SHARED / "llama-hf", tmp_path / "q8.gguf", "q8_0", progress=lambda written, all: seen.append((written, all)))
        convert(str(SHARED / "llama-hf"), str(tmp_path / "again.gguf"), "q8_0")
    first, second = ((tmp_path / name).read_bytes() for name in ("q8.gguf", "again.gguf"))
    assert hashlib.sha256(first).digest() == hashlib.sha256(second).digest()
    assert seen and seen[-1][0] == seen[-1][1] and seen == sorted(seen)
    with TextGenerator(tmp_path / "q8.gguf", "cpu") as model:
        assert model.generate("the ferry", max_tokens=5).tokens


def test_what_progress_raises_ends_it(tmp_path):
    def stops(_written, _all):
        raise KeyError("enough")

    with warnings.catch_warnings(), pytest.raises(KeyError, match="enough"):
        warnings.simplefilter("ignore", ConversionWarning)
        convert(SHARED / "llama-hf", tmp_path / "m.gguf", "q8_0", progress=stops)
    assert not (tmp_path / "m.gguf").exists()


def test_what_is_wrong_is_said(tmp_path):
    with pytest.raises(adead.InvalidArgumentError, match="no kind of values 'q3_k'"):
        convert(SHARED / "llama-hf", tmp_path / "m.gguf", "q3_k")
    with pytest.raises(adead.IoError, match="no such file or folder"):
        convert(SHARED / "nowhere", tmp_path / "m.gguf", "q8_0")
    with pytest.raises(adead.InvalidArgumentError, match="name one, such as q8_0"):
        convert(SHARED / "llama.gguf", tmp_path / "m.gguf")
    assert not list(tmp_path.iterdir())
