"""The chat server of docs/chat-server.md, in a process of its own: answers, streams, requests at the same time, errors."""

import concurrent.futures
import contextlib
import hashlib
import http.client
import json
import pathlib
import re
import struct
import subprocess
import sys

import pytest

from adead_models import TextGenerator

ROOT = pathlib.Path(__file__).resolve().parents[3]
MODEL = ROOT / "tests/text/llama.gguf"
MESSAGES = [{"role": "system", "content": "be brief"}, {"role": "user", "content": "the ferry came in"}]
WARM = {"max_tokens": 40, "temperature": 1.5, "top_p": 0.98, "seed": 42}
CHAT = "/v1/chat/completions"


@contextlib.contextmanager
def serving(*options):
    """Starts the server on a free port, and yields the port."""
    command = [sys.executable, ROOT / "models/python/examples/chat_server.py", MODEL, "--device", "cpu", "--port", "0", *options]
    with subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True) as process:
        try:
            told = ""
            # The server tells its port once it accepts requests. The loop ends if it fails before.
            for line in process.stderr:
                told += line
                if found := re.search(r"running on http://127\.0\.0\.1:(\d+)", line):
                    yield int(found[1])
                    return
            pytest.fail(f"the server ended: {told}")
        finally:
            process.kill()


@pytest.fixture(scope="module")
def port():
    with serving("--threads", "2") as port:
        yield port


def ask(port, method, path, body=None):
    """Sends a request. Returns the status and the body of the response."""
    with contextlib.closing(http.client.HTTPConnection("127.0.0.1", port)) as connection:
        text = body if body is None or isinstance(body, str) else json.dumps(body)
        connection.request(method, path, text, {"Content-Type": "application/json"})
        response = connection.getresponse()
        return response.status, response.read().decode("utf-8")


def complete(port, **options):
    status, text = ask(port, "POST", CHAT, {"messages": MESSAGES, **options})
    assert status == 200, text
    return json.loads(text)


def streamed(port, **options):
    """Returns the chunks of a stream, whose last event is [DONE]."""
    status, text = ask(port, "POST", CHAT, {"messages": MESSAGES, "stream": True, **options})
    assert status == 200 and text.endswith("\n\n"), text
    *events, done = [event.removeprefix("data: ") for event in text.removesuffix("\n\n").split("\n\n")]
    assert done == "[DONE]"
    return [json.loads(event) for event in events]


def test_an_answer_is_the_generators(port):
    with TextGenerator(MODEL, "cpu") as model:
        expected = model.chat(MESSAGES, **WARM)
        count, prompt = len(expected.tokens), expected.prompt_tokens
        answer = complete(port, model="llama", **WARM)
        assert (answer["object"], answer["model"]) == ("chat.completion", "llama") and answer["id"].startswith("chatcmpl-")
        assert answer["usage"] == {"prompt_tokens": prompt, "completion_tokens": count, "total_tokens": prompt + count}
        assert answer["sha256"] == hashlib.sha256(struct.pack(f"<{count}I", *expected.tokens)).hexdigest()
        (choice,) = answer["choices"]
        assert choice == {"index": 0, "message": {"role": "assistant", "content": expected.text}, "finish_reason": "length"}
        stop = expected.text[5:8]
        (choice,) = complete(port, **WARM, stop=[stop])["choices"]
        assert (choice["message"]["content"], choice["finish_reason"]) == (expected.text[: expected.text.index(stop)], "stop")
        # OpenAI's defaults, and its newer name of max_tokens.
        defaults = {"temperature": 1, "top_p": 1, "seed": 0, "stop": None}
        assert complete(port, max_completion_tokens=9)["sha256"] == complete(port, max_tokens=9, **defaults)["sha256"]


def test_a_stream_has_the_same_text_in_pieces(port):
    whole = complete(port, **WARM)
    chunks = streamed(port, **WARM)
    assert len({chunk["id"] for chunk in chunks}) == 1 and {chunk["object"] for chunk in chunks} == {"chat.completion.chunk"}
    choices = [chunk["choices"][0] for chunk in chunks]
    assert choices[0]["delta"] == {"role": "assistant"} and len(choices) > 4
    assert "".join(choice["delta"].get("content", "") for choice in choices) == whole["choices"][0]["message"]["content"]
    assert [choice["finish_reason"] for choice in choices] == [None] * (len(choices) - 1) + ["length"]
    assert (chunks[-1]["usage"], chunks[-1]["sha256"]) == (whole["usage"], whole["sha256"])


def test_requests_at_the_same_time_give_the_texts_of_one_after_the_other(port):
    def text(seed):
        if seed % 2:
            return "".join(chunk["choices"][0]["delta"].get("content", "") for chunk in streamed(port, **{**WARM, "seed": seed}))
        return complete(port, **{**WARM, "seed": seed})["choices"][0]["message"]["content"]

    alone = [text(seed) for seed in range(4)]
    assert len(set(alone)) == 4
    with concurrent.futures.ThreadPoolExecutor(4) as threads:
        assert list(threads.map(text, range(4))) == alone


def test_another_server_gives_the_same_hash(port):
    with serving("--threads", "1") as other:
        assert complete(other, **WARM)["sha256"] == complete(port, **WARM)["sha256"]


def test_the_model_is_listed(port):
    status, text = ask(port, "GET", "/v1/models")
    assert status == 200
    assert json.loads(text) == {"object": "list", "data": [{"id": "llama", "object": "model", "created": 0, "owned_by": "adead"}]}


@pytest.mark.parametrize(
    ("body", "message"),
    [
        ("{", "JSON decode error"),
        ([], "body: Input should be a valid dictionary"),
        ({}, "body.messages: Field required"),
        ({"messages": []}, "body.messages: List should have at least 1 item"),
        ({"messages": [{"role": "user"}]}, "message 0 has no 'content'"),
        ({"messages": [{"role": "user", "content": 3}]}, "body.messages.0.content: Input should be a valid string"),
        ({"messages": MESSAGES, "n": 2}, "body.n: Extra inputs are not permitted"),
        ({"messages": MESSAGES, "max_tokens": "many"}, "body.max_tokens: Input should be a valid integer"),
        ({"messages": MESSAGES, "temperature": -1}, "temperature is -1"),
        ({"messages": MESSAGES, "seed": 1 << 64}, "seed is 18446744073709551616"),
        ({"messages": [{"role": "user", "content": "x" * 300}]}, "the context length is 256"),
    ],
)
def test_malformed_requests_are_400(port, body, message):
    for stream in (False, True):
        given = {**body, "stream": stream} if isinstance(body, dict) else body
        status, text = ask(port, "POST", CHAT, given)
        error = json.loads(text)["error"]
        assert status == 400 and message in error["message"] and error["type"] == "invalid_request_error"


def test_unknown_paths_and_models_are_404(port):
    for method, path, body, code, message in (
        ("GET", "/v1/nowhere", None, 404, "GET /v1/nowhere: Not Found"),
        ("POST", CHAT, {"messages": MESSAGES, "model": "gpt"}, 404, "there is no model 'gpt': use 'llama'"),
        ("GET", CHAT, None, 405, "Method Not Allowed"),
    ):
        status, text = ask(port, method, path, body)
        assert status == code and message in json.loads(text)["error"]["message"]


def test_a_model_without_a_chat_template_is_refused():
    command = [sys.executable, ROOT / "models/python/examples/chat_server.py", ROOT / "tests/text/qwen3.gguf", "--device", "cpu"]
    done = subprocess.run(command, check=False, capture_output=True, text=True)
    assert done.returncode == 2 and "qwen3.gguf has no chat template" in done.stderr
