"""Answers OpenAI's chat completions requests over HTTP, with a language model in a GGUF file."""

import argparse
import hashlib
import json
import struct
import time
import uuid
from collections.abc import Iterator
from itertools import chain
from pathlib import Path
from typing import Any, cast

import adead
import uvicorn
from adead_models import Options, TextGenerator, TextStream
from fastapi import FastAPI, Request, Response
from fastapi.exceptions import RequestValidationError
from fastapi.responses import JSONResponse, StreamingResponse
from pydantic import AliasChoices, BaseModel, ConfigDict, Field
from starlette.exceptions import HTTPException

parser = argparse.ArgumentParser(description=__doc__)
parser.add_argument("model", type=Path, help="a GGUF file with a chat template")
parser.add_argument("--device", help="the device that computes, such as cpu, cuda or vulkan")
parser.add_argument("--threads", type=int, help="the number of CPU threads")
parser.add_argument("--port", type=int, default=8000, help="the TCP port; 0 takes a free one")
arguments = parser.parse_args()
model = TextGenerator(arguments.model, arguments.device, arguments.threads)
if not model.has_chat_template:
    parser.error(f"{arguments.model} has no chat template")
name: str = arguments.model.stem
app = FastAPI()


class ChatRequest(BaseModel):
    model_config = ConfigDict(extra="forbid")  # ignoring an option would give another answer than the client asked for
    messages: list[dict[str, str]] = Field(min_length=1)
    model: str | None = None
    stream: bool | None = None
    # The other fields are options of TextGenerator.
    max_tokens: int | None = Field(None, validation_alias=AliasChoices("max_tokens", "max_completion_tokens"))
    temperature: float | None = None
    top_p: float | None = None
    seed: int | None = None
    stop: str | list[str] | None = None


@app.post("/v1/chat/completions")
def chat(request: ChatRequest) -> Response:
    # FastAPI calls this function in a thread for each request, so requests compute at the same time.
    if request.model not in (None, name):
        raise HTTPException(404, f"there is no model '{request.model}': use '{name}'")
    options = {"temperature": 1.0} | request.model_dump(exclude={"messages", "model", "stream"}, exclude_none=True)
    stream = model.chat_stream(request.messages, **cast(Options, options))
    common = {"id": f"chatcmpl-{uuid.uuid4().hex}", "created": int(time.time()), "model": name}
    if request.stream:
        return StreamingResponse(events(stream, common | {"object": "chat.completion.chunk"}), media_type="text/event-stream")
    message = {"role": "assistant", "content": "".join(stream)}
    return JSONResponse(common | {"object": "chat.completion"} | ending(stream, message=message))


def events(stream: TextStream, common: dict[str, Any]) -> Iterator[str]:
    for delta in chain([{"role": "assistant"}], ({"content": piece} for piece in stream)):
        choices = [{"index": 0, "delta": delta, "finish_reason": None}]
        yield f"data: {json.dumps(common | {'choices': choices})}\n\n"
    yield f"data: {json.dumps(common | ending(stream, delta={}))}\n\ndata: [DONE]\n\n"


def ending(stream: TextStream, **choice: dict[str, str]) -> dict[str, Any]:
    answer = stream.generation
    prompt, count = answer.prompt_tokens, len(answer.tokens)
    return {
        "choices": [{"index": 0, "finish_reason": "stop" if answer.finish in ("end", "stop") else "length", **choice}],
        "usage": {"prompt_tokens": prompt, "completion_tokens": count, "total_tokens": prompt + count},
        # Not in OpenAI's interface: the hash that `adead generate` prints.
        "sha256": hashlib.sha256(struct.pack(f"<{count}I", *answer.tokens)).hexdigest(),
    }


@app.get("/v1/models")
def models() -> dict[str, Any]:
    return {"object": "list", "data": [{"id": name, "object": "model", "created": 0, "owned_by": "adead"}]}


@app.exception_handler(HTTPException)
@app.exception_handler(RequestValidationError)
@app.exception_handler(adead.InvalidArgumentError)
def refuse(request: Request, error: Exception) -> JSONResponse:
    text, status = str(error), 400
    if isinstance(error, RequestValidationError):
        text = "; ".join(f"{'.'.join(map(str, fault['loc']))}: {fault['msg']}" for fault in error.errors())
    elif isinstance(error, HTTPException):
        text, status = f"{request.method} {request.url.path}: {error.detail}", error.status_code
    return JSONResponse({"error": {"message": text, "type": "invalid_request_error"}}, status)


uvicorn.run(app, port=arguments.port)
