"""A real Ollama on a port of its own, with models made from a GGUF file."""

from __future__ import annotations

import contextlib
import os
import shutil
import socket
import subprocess
import tempfile
import time
import urllib.request
from collections.abc import Generator
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Final

from caal_node.weights import cache

READY_DEADLINE_S: Final = 20.0
STOP_DEADLINE_S: Final = 10.0
CREATE_DEADLINE_S: Final = 120.0
"""Reading, hashing and copying half a gigabyte: 2 s on an SSD."""
_POLL_S: Final = 0.05

QWEN_TEMPLATE: Final = """\
{{- if or .System .Tools }}<|im_start|>system
{{ .System }}
{{- if .Tools }}

# Tools

You may call one or more functions to assist with the user query.

You are provided with function signatures within <tools></tools> XML tags:
<tools>
{{- range .Tools }}
{"type": "function", "function": {{ .Function }}}
{{- end }}
</tools>

For each function call, return a json object with function name and arguments \
within <tool_call></tool_call> XML tags:
<tool_call>
{"name": <function-name>, "arguments": <args-json-object>}
</tool_call>
{{- end }}<|im_end|>
{{ end }}
{{- range .Messages }}
{{- if eq .Role "user" }}<|im_start|>user
{{ .Content }}<|im_end|>
{{ else if eq .Role "assistant" }}<|im_start|>assistant
{{ .Content }}
{{- if .ToolCalls }}
<tool_call>
{{- range $i, $call := .ToolCalls }}{{ if $i }}
</tool_call>
<tool_call>{{ end }}
{"name": "{{ $call.Function.Name }}", "arguments": {{ $call.Function.Arguments }}}
{{- end }}
</tool_call>
{{- end }}<|im_end|>
{{ else if eq .Role "tool" }}<|im_start|>user
<tool_response>
{{ .Content }}
</tool_response><|im_end|>
{{ end }}
{{- end }}<|im_start|>assistant
"""
"""Qwen 2.5's own format of tools, calls and results. As in most of Ollama's library, every system
message ends up in the one at the head (`.System`). Ollama takes the text after `if .ToolCalls` for
the mark that begins a call."""


class OllamaDied(Exception):
    """The server ended, or did not answer in time; the message holds the end of its log."""


@dataclass(frozen=True, slots=True)
class Ollama:
    """A running server. `home` is where it keeps everything, keys and models."""

    url: str
    binary: Path
    home: Path
    environment: dict[str, str]

    def create(self, name: str, gguf: Path, template: str | None = QWEN_TEMPLATE) -> str:
        """A model from `gguf`, or its like from an earlier run. Returns `name`.

        Without a template Ollama 0.17 reports `completion` alone and prompts with raw text: the
        everyday case of a model that cannot call tools.

        Raises:
            OllamaDied: it could not be made.
        """
        lines = [f"FROM {gguf.resolve()}"]
        if template is not None:
            lines.append(f'TEMPLATE """{template}"""')
        modelfile = self.home / f"Modelfile.{name}"
        modelfile.write_text("\n".join(lines) + "\n", encoding="utf-8")
        done = subprocess.run(
            [self.binary, "create", name, "-f", modelfile],
            env=self.environment,
            capture_output=True,
            text=True,
            timeout=CREATE_DEADLINE_S,
            check=False,
        )
        if done.returncode != 0:
            raise OllamaDied(f"ollama create {name} failed:\n{done.stderr[-2000:]}")
        return name


def find_ollama() -> Path | None:
    """`ollama` on PATH, else what .ci/build-ollama left in the cache, else Go's own bin.

    None in tests that run as if there were none (`tests/bare`).
    """
    if os.environ.get("TESTS_WITHOUT_OLLAMA"):
        return None
    if (on_path := shutil.which("ollama")) is not None:
        return Path(on_path)
    if built := sorted(cache.binaries().glob("ollama-*")):
        return built[-1]
    folders = [Path(os.environ["GOBIN"])] if os.environ.get("GOBIN") else []
    ours = [folder / "ollama" for folder in (*folders, Path.home() / "go" / "bin")]
    return next((path for path in ours if os.access(path, os.X_OK)), None)


@contextlib.contextmanager
def running(
    binary: Path, home: Path, *, log_file: Path | None = None, **settings: str
) -> Generator[Ollama]:
    """Start the server with everything it writes under `home`; stop it at the end.

    `settings` are further OLLAMA_* variables. Its words go to `log_file`, if one is given.

    Raises:
        OllamaDied: it ended, or did not answer in READY_DEADLINE_S.
    """
    home.mkdir(parents=True, exist_ok=True)
    address = f"127.0.0.1:{_free_port()}"
    environment = {
        **{key: value for key, value in os.environ.items() if not key.startswith("OLLAMA_")},
        "HOME": str(home),
        "OLLAMA_HOST": address,
        "OLLAMA_MODELS": str(home / "models"),
        "OLLAMA_KEEP_ALIVE": "10m",
        **settings,
    }
    with log_file.open("w+b") if log_file else tempfile.TemporaryFile() as log:
        server = subprocess.Popen(
            [binary, "serve"], env=environment, stdout=log, stderr=subprocess.STDOUT
        )
        try:
            _wait_until_ready(server, f"http://{address}/api/version", log)
            yield Ollama(f"http://{address}", binary, home, environment)
        finally:
            server.terminate()  # it ends its models' runners, too
            try:
                server.wait(STOP_DEADLINE_S)
            except subprocess.TimeoutExpired:
                server.kill()
                server.wait()


def _free_port() -> int:
    with socket.socket() as held:
        held.bind(("127.0.0.1", 0))
        return held.getsockname()[1]


def _wait_until_ready(server: subprocess.Popen[bytes], url: str, log: IO[bytes]) -> None:
    direct = urllib.request.build_opener(urllib.request.ProxyHandler({}))
    deadline = time.monotonic() + READY_DEADLINE_S
    while server.poll() is None and time.monotonic() < deadline:
        with contextlib.suppress(OSError), direct.open(url, timeout=1):
            return
        # Another process's progress: there is nothing to wait on but the time.
        time.sleep(_POLL_S)
    log.seek(0)
    tail = log.read()[-2000:].decode(errors="replace")
    raise OllamaDied(f"ollama serve did not start (exit code {server.poll()}):\n{tail}")
