"""``TextGenerator`` on a small model of tests/text: bits, streams, chats, scores, errors, threads."""

import gc
import json
import math
import pathlib
import threading
import weakref

import adead
import numpy
import pytest

from adead_models import Generation, TextGenerator, TextStream

SHARED = pathlib.Path(__file__).resolve().parents[3] / "tests/text"
MODEL = SHARED / "llama.gguf"
TEXT = (SHARED / "answer.txt").read_bytes().decode("utf-8")
TOKENS = [int(token) for token in (SHARED / "answer.tokens").read_text().split()]
WARM = {
    "max_tokens": 60,
    "ignore_end": True,
    "temperature": 1.5,
    "top_k": 60,
    "top_p": 0.98,
    "min_p": 0.001,
    "repeat_penalty": 1.1,
    "repeat_last": 16,
    "seed": 42,
}
FERRY = "the ferry came in"


@pytest.fixture(scope="module")
def model():
    with TextGenerator(MODEL, "cpu", threads=2) as model:
        yield model


def test_every_language_has_this_answer(model):
    answer = model.generate("the ferry", **WARM)
    assert answer == Generation(TEXT, TOKENS, "max_tokens", len(model.tokenize("the ferry")))
    assert (model.device, model.context_length, model.vocabulary, model.width) == ("cpu", 256, 281, 64)
    assert model.has_chat_template and repr(model) == "TextGenerator(281 tokens, context length 256, cpu)"
    assert model.generate("the ferry", **{**WARM, "seed": 43}).tokens != TOKENS
    assert model.generate("the ferry", **{**WARM, "sequence": 1}).tokens != TOKENS


def test_several_texts_at_once_are_those_alone(model):
    answers = model.generate_batch(["the ferry", FERRY, "the ferry"], **WARM)
    assert answers[0] == model.generate("the ferry", **WARM)
    assert answers[1:] == [model.generate(text, **{**WARM, "sequence": i}) for i, text in ((1, FERRY), (2, "the ferry"))]
    assert model.generate_batch([]) == []
    with pytest.raises(TypeError, match="prompts is a str"):
        model.generate_batch("the ferry")
    with pytest.raises(adead.InvalidArgumentError, match="has a NUL"):
        model.generate_batch(["the ferry", "a\0b"])


@pytest.mark.parametrize("options", [{"chunk": 1}, {"threads": 1}, {"threads": 3, "chunk": 7}, {"map": True}])
def test_no_choice_changes_a_bit(options):
    with TextGenerator(str(MODEL), "cpu", **options) as other:
        assert other.generate("the ferry", **WARM).tokens == TOKENS


def test_a_stream_gives_the_text_in_pieces(model):
    stream = model.stream("the ferry", **WARM)
    assert isinstance(stream, TextStream) and stream.generation.finish is None
    first = next(stream)
    some = stream.generation
    assert first and TEXT.startswith(first) and some.text == first and some.finish is None
    assert some.tokens == TOKENS[: len(some.tokens)] and len(some.tokens) < 60
    pieces = [first, *stream]
    assert len(pieces) > 10 and all(pieces) and "".join(pieces) == TEXT
    assert stream.generation == model.generate("the ferry", **WARM)
    assert next(stream, None) is None
    stream.close()
    stream.close()
    assert list(stream) == []
    with pytest.raises(adead.InvalidArgumentError, match="the stream is closed"):
        stream.generation


def test_a_stream_may_be_left_and_outlives_its_generator():
    other = TextGenerator(MODEL, "cpu")
    with other.stream("the ferry", **WARM) as stream:
        first = next(stream)
        other.close()
        del other
        assert (first + "".join(stream)) == TEXT
    for piece in TextGenerator(MODEL, "cpu").stream("the ferry", **WARM):
        assert TEXT.startswith(piece)
        break


def test_stop_texts_end_the_text(model):
    stop = TEXT[12:15]
    for given in (stop, [stop], ("no such text", stop)):
        answer = model.generate("the ferry", **WARM, stop=given)
        assert (answer.text, answer.finish) == (TEXT[: TEXT.index(stop)], "stop")
        assert answer.tokens == TOKENS[: len(answer.tokens)]
    assert model.generate("the ferry", max_tokens=0) == Generation("", [], "max_tokens", 2)
    with TextGenerator(MODEL, "cpu", context_length=20) as short:
        assert short.generate(FERRY, **WARM).finish == "context_full"


def test_an_answer_is_json_that_the_schema_allows(model):
    schema = {"const": {"a": [1, None]}}
    for given in (schema, json.dumps(schema)):
        answer = model.generate("the ferry", **WARM, json_schema=given)
        assert (json.loads(answer.text), answer.finish) == (schema["const"], "end")
        assert "".join(model.stream("the ferry", **WARM, json_schema=given)) == answer.text
    assert isinstance(json.loads(model.generate("the ferry", **WARM, json_schema={"type": "integer"}).text), int)
    with pytest.raises(adead.InvalidArgumentError, match="json_schema: "):
        model.generate("the ferry", json_schema={"type": 3})


def test_chats(model):
    messages = [{"role": "system", "content": "be brief"}, {"role": "user", "content": FERRY}]
    prompt = f"<|im_start|>system\nbe brief<|im_end|>\n<|im_start|>user\n{FERRY}<|im_end|>\n<|im_start|>assistant\n"
    answer = model.chat(messages, **WARM)
    assert answer == model.generate(prompt, **WARM)
    assert "".join(model.chat_stream(messages, **WARM)) == answer.text
    with pytest.raises(adead.InvalidArgumentError, match="message 1 has no 'content'"):
        model.chat([messages[0], {"role": "user"}])
    with TextGenerator(SHARED / "qwen3.gguf", "cpu") as other:
        assert not other.has_chat_template
        with pytest.raises(adead.UnsupportedError, match="no chat template"):
            other.chat(messages)


def test_tokens_and_scores(model):
    tokens = model.tokenize(FERRY)
    assert len(tokens) > 2 and model.detokenize(tokens) == FERRY and model.detokenize([]) == "" and model.tokenize("") == []
    assert model.detokenize(numpy.array(tokens)) == FERRY
    logprobs = model.logprobs(tokens)
    assert logprobs.dtype == numpy.float32 and logprobs.shape == (len(tokens) - 1,) and (logprobs < 0).all()
    mean = sum(map(float, logprobs)) / len(logprobs)
    assert math.isclose(model.perplexity(FERRY), math.exp(-mean), rel_tol=1e-9)
    embedding = model.embed(FERRY)
    assert embedding.dtype == numpy.float32 and embedding.shape == (64,) and embedding.any()
    with TextGenerator(MODEL, "cpu", 1, chunk=2) as other:
        assert other.embed(FERRY).tobytes() == embedding.tobytes()
        assert other.logprobs(tokens).tobytes() == logprobs.tobytes()


def test_errors_have_the_classes_of_adead(model):
    with pytest.raises(adead.IoError, match="nowhere"):
        TextGenerator(SHARED / "nowhere")
    with pytest.raises(adead.InvalidArgumentError, match="make_tiny.py"):
        TextGenerator(SHARED / "make_tiny.py")
    with pytest.raises(adead.Error, match="tpu"):
        TextGenerator(MODEL, "tpu")
    for name in ("threads", "chunk", "context_length"):
        with pytest.raises(adead.InvalidArgumentError, match=f"{name} is 0; it must be from 1"):
            TextGenerator(MODEL, "cpu", **{name: 0})
    with pytest.raises(adead.InvalidArgumentError, match="a context length of 300"):
        TextGenerator(MODEL, "cpu", context_length=300)
    cases = [
        ("", {}, "the prompt has no tokens"),
        ("a\0b", {}, "NUL"),
        ("\ud800", {}, "can't be encoded as UTF-8"),
        ("x" * 300, {}, "the prompt has 300 tokens and the context length is 256"),
        ("a", {"temperature": -1}, "temperature is -1"),
        ("a", {"top_p": 1.5}, "top_p is 1.5"),
        ("a", {"max_tokens": -1}, "max_tokens is -1; it must be from 0"),
        ("a", {"seed": 1 << 64}, "seed is 18446744073709551616"),
        ("a", {"stop": ["a\0"]}, "NUL"),
    ]
    for prompt, options, text in cases:
        for call in (model.generate, model.stream):
            with pytest.raises(adead.InvalidArgumentError, match=text):
                call(prompt, **options)
    with pytest.raises(TypeError, match="unknown option 'heat'; known are max_tokens"):
        model.generate("a", heat=1)
    with pytest.raises(TypeError):
        model.generate("a", temperature="hot")
    with pytest.raises(TypeError, match="a text is int, not str"):
        model.generate(3)
    with pytest.raises(adead.InvalidArgumentError, match="token 1 is -1"):
        model.detokenize([1, -1])
    with pytest.raises(adead.InvalidArgumentError, match="token 999 is outside the vocabulary of 281"):
        model.logprobs([1, 999])
    with pytest.raises(adead.InvalidArgumentError, match="needs at least 2"):
        model.perplexity("")
    closed = TextGenerator(MODEL, "cpu")
    closed.close()
    closed.close()
    assert repr(closed) == "TextGenerator(closed)"
    for use in (lambda: closed.generate("a"), lambda: closed.width, closed.__enter__, lambda: closed.embed("a")):
        with pytest.raises(adead.InvalidArgumentError, match="the generator is closed"):
            use()


def test_progress_is_told_by_chunk_and_its_exceptions_are_raised():
    told = []
    with TextGenerator(MODEL, "cpu", chunk=4, progress=lambda *both: told.append(both)) as model:
        assert model.generate("abcdefghij", **WARM).prompt_tokens == 10
    assert told == [(4, 10), (8, 10), (10, 10)]

    def stops(computed, everything):
        raise KeyboardInterrupt

    with TextGenerator(MODEL, "cpu", chunk=4, progress=stops) as model, pytest.raises(KeyboardInterrupt):
        model.generate("abcdefghij", **WARM)


def test_threads_share_a_generator_and_a_stream(model):
    found = []

    def work():
        found.append(model.generate("the ferry", **WARM).text == TEXT)

    stream, pieces = model.stream("the ferry", **WARM), []
    threads = [threading.Thread(target=work) for _ in range(4)]
    threads += [threading.Thread(target=lambda: pieces.extend(stream)) for _ in range(2)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert found == [True] * 4 and len("".join(pieces)) == len(TEXT)


def test_generators_leave_no_memory_behind():
    model = TextGenerator(MODEL, "cpu", 1, progress=lambda *_: None)
    stream = model.stream("the ferry", **WARM)
    next(stream)
    gone = [weakref.ref(model._handle), weakref.ref(stream._handle)]
    del model, stream
    gc.collect()
    assert [one() for one in gone] == [None, None]
