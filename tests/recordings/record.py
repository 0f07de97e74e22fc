"""Record real replies: `python -m tests.recordings.record GGUF`.

One file an exchange: the request's path and body, the status, the content type, and the reply's
bytes as text. Times, ids and the like are whatever the server gave; the tests compare shapes.
"""

from __future__ import annotations

import json
import re
import sys
from pathlib import Path
from typing import Any, Final

import httpx2

from tests.stand_ins import llama_server, ollama_server
from tests.stand_ins.ollama_server import QWEN_TEMPLATE

HERE: Final = Path(__file__).parent
TOOL: Final = {
    "type": "function",
    "function": {
        "name": "get_time",
        "description": "The time in a time zone",
        "parameters": {
            "type": "object",
            "properties": {"tz": {"type": "string"}},
            "required": ["tz"],
        },
    },
}
HI: Final = [{"role": "user", "content": "Say hi."}]
CALL: Final = [{"role": "user", "content": "What time is it in Tokyo?"}]
SCHEMA: Final = {
    "type": "object",
    "properties": {"say": {"const": "hi"}},
    "required": ["say"],
    "additionalProperties": False,
}


# These weights write `<tool_call>` as a control token, which no server shows to its own parser.
# With other marks in the template the same model's calls are seen.
LLAMA_TAG: Final = ("tool_call>", "call>")
FENCED: Final = QWEN_TEMPLATE.replace("<tool_call>", "```json").replace("</tool_call>", "```")


def record(server: str, name: str, url: str, path: str, body: dict[str, Any] | None) -> None:
    with httpx2.Client(timeout=300, trust_env=False) as client:
        reply = client.get(url + path) if body is None else client.post(url + path, json=body)
    recorded = {
        "path": path,
        "request": body if len(str(body)) < 4000 else "too long to keep",
        "status": reply.status_code,
        "content_type": reply.headers.get("content-type", "").partition(";")[0],
        "reply": reply.text.splitlines(),
    }
    # Only the weights' name: folders differ from machine to machine.
    text = re.sub(r"/[^\s\"]*/([^/\s\"]+\.gguf)", r"\1", json.dumps(recorded, indent=1))
    (HERE / server).mkdir(exist_ok=True)
    (HERE / server / f"{name}.json").write_text(text + "\n", encoding="utf-8")


def record_ollama(gguf: Path, home: Path) -> None:
    binary = ollama_server.find_ollama()
    assert binary is not None
    with ollama_server.running(binary, home) as server:
        server.create("with-tools", gguf)
        server.create("without-tools", gguf, template=None)
        server.create("fenced-calls", gguf, FENCED)
        # One thread: two that wait for each other on a busy machine take a hundred times as long.
        options = {"num_ctx": 2048, "temperature": 0, "num_predict": 40, "num_thread": 1}
        common = {"model": "with-tools", "think": False, "options": options}

        def chat(name: str, **body: Any) -> None:
            record("ollama", name, server.url, "/api/chat", {**common, **body})

        chat("text_streamed", messages=HI, stream=True)
        chat("text_whole", messages=HI, stream=False)
        chat("length_streamed", messages=HI, options={**options, "num_predict": 3}, stream=True)
        chat("leak_whole", messages=CALL, tools=[TOOL], stream=False)
        fenced: dict[str, Any] = {"model": "fenced-calls", "messages": CALL, "tools": [TOOL]}
        chat("call_streamed", **fenced, stream=True)
        chat("call_whole", **fenced, stream=False)
        chat("schema_whole", messages=HI, format=SCHEMA, stream=False)
        chat("load", messages=[], stream=False)
        chat("refused_missing", messages=HI, model="nope")
        chat("refused_tools", messages=HI, tools=[TOOL], model="without-tools")
        chat("refused_think", messages=HI, think=True)
        long = [{"role": "user", "content": "word " * 4000}]
        chat("refused_length", messages=long, truncate=False, stream=True)
        v1 = {"model": "with-tools", "messages": HI, "max_tokens": 3, "temperature": 0}
        v1["stream"] = True
        usage = {"stream_options": {"include_usage": True}}
        record("ollama", "v1_streamed", server.url, "/v1/chat/completions", {**v1, **usage})
        record("ollama", "v1_models", server.url, "/v1/models", None)
        record("ollama", "v1_missing", server.url, "/v1/chat/completions", {**v1, "model": "nope"})


def record_llama(gguf: Path) -> None:
    common = {"model": "any", "temperature": 0, "max_tokens": 40}
    usage = {"stream_options": {"include_usage": True}}
    with llama_server.running(gguf) as url:

        def chat(name: str, **body: Any) -> None:
            record("llama", name, url, "/v1/chat/completions", {**common, **body})

        form = {"name": "reply", "strict": True, "schema": SCHEMA}
        chat("text_streamed", messages=HI, stream=True, **usage)
        chat("text_whole", messages=HI, stream=False)
        chat("length_streamed", messages=HI, stream=True, **{**usage, "max_tokens": 3})
        chat("leak_whole", messages=CALL, tools=[TOOL], stream=False)
        chat(
            "schema_whole",
            messages=HI,
            stream=False,
            response_format={"type": "json_schema", "json_schema": form},
        )
        long = [{"role": "user", "content": "word " * 6000}]
        chat("refused_length", messages=long, stream=True)
        record("llama", "models", url, "/v1/models", None)
        prompt = {"prompt": "User: Hi\nAssistant:", "max_tokens": 3, "temperature": 0}
        streamed = {**prompt, "stream": True, **usage}
        record("llama", "completion_streamed", url, "/v1/completions", streamed)
        record("llama", "completion_whole", url, "/v1/completions", {**prompt, "stream": False})
        with httpx2.Client(trust_env=False) as client:
            template = client.get(f"{url}/props").json()["chat_template"]
    with llama_server.running(gguf, chat_template=template.replace(*LLAMA_TAG)) as url:
        for name, stream in (("call_streamed", True), ("call_whole", False)):
            body = {**common, "messages": CALL, "tools": [TOOL], "stream": stream}
            body |= usage if stream else {}
            record("llama", name, url, "/v1/chat/completions", body)


if __name__ == "__main__":
    weights = Path(sys.argv[1])
    record_ollama(weights, HERE.parents[1] / ".cache" / "ollama")
    record_llama(weights)
