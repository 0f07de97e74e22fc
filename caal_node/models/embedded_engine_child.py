"""The process that holds the embedded engine: llama.cpp's server, until standard input ends.

`embedded_engine.EmbeddedEngine` runs it as a file, so it imports nothing of this project. It takes
its settings as one JSON argument, writes one JSON line (`{"address": "http://127.0.0.1:PORT"}` or
`{"error": "..."}`) and then nothing more to standard output; the engine's own words go to standard
error. The parent holds the other end of standard input, so the end of the parent, however it
comes, is the end of this process.
"""

from __future__ import annotations

import json
import os
import sys
from importlib import import_module
from typing import Any, TextIO

# llama.cpp's scale: 2 is warnings and errors. Prompts are only logged above 3.
VERBOSITY = 2


def main() -> None:
    answers = _private_stdout()
    settings: dict[str, Any] = json.loads(sys.argv[1])
    try:
        server = _serve(settings)
    except Exception as error:
        _say(answers, error=f"{type(error).__name__}: {error}")
        sys.exit(1)
    _say(answers, address=server.listening_address)
    sys.stdin.buffer.read()
    # The server's destructor waits for requests that still run; nobody is left to read them.
    os._exit(0)


def _serve(settings: dict[str, Any]) -> Any:
    llama: Any = import_module("xllamacpp")
    params = llama.CommonParams()
    params.model.path = settings["model"]
    params.model_alias = {settings["name"]}
    params.n_ctx = settings["ctx"]
    params.n_parallel = 1  # There is one conversation, which has the whole context and cache.
    params.cpuparams.n_threads = settings["threads"]
    params.cpuparams_batch.n_threads = settings["threads"]
    params.hostnames = ["127.0.0.1"]
    params.port = 0  # It takes a free one.
    params.use_jinja = True
    params.cache_prompt = True
    params.cache_ram_mib = settings["prompt_cache_mib"]
    if settings["states"]:
        params.slot_save_path = settings["states"]
    params.cors_origins = ""  # No web page may use it.
    params.ui = False
    params.verbosity = VERBOSITY
    return llama.Server(params)


def _private_stdout() -> TextIO:
    """Keep standard output for our one line. What a library prints goes to standard error."""
    sys.stdout.flush()
    answers = os.fdopen(os.dup(1), "w", encoding="utf-8")
    os.dup2(2, 1)
    return answers


def _say(answers: TextIO, **fields: str) -> None:
    answers.write(json.dumps(fields) + "\n")
    answers.flush()


if __name__ == "__main__":
    main()
