"""Real model servers for the whole run: started once, and only when a test asks for one."""

from __future__ import annotations

import os
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest

from caal_node.weights import present
from caal_node.weights.fetch import QWEN_CODER_05B
from tests.stand_ins import llama_server, ollama_server

_CACHE = Path(__file__).parents[1] / ".cache" / "ollama"


@dataclass(frozen=True, slots=True)
class OllamaModels:
    """A real Ollama and its models: one that can be offered tools (as Go prints them, in the
    format of most of Ollama's library), the same with tools as JSON, and one without tools."""

    url: str
    with_tools: str
    with_readable_tools: str
    without_tools: str


@pytest.fixture(scope="session")
def gguf() -> Path:
    """The small model's weights: $CAAL_TEST_GGUF, else those in the project's cache."""
    if named := os.environ.get("CAAL_TEST_GGUF"):
        if not Path(named).is_file():
            pytest.fail(f"CAAL_TEST_GGUF: there is no file {named}")
        return Path(named)
    if (path := present(QWEN_CODER_05B)) is None:
        pytest.skip(f"no weights: run python -m caal_node.weights {QWEN_CODER_05B.key}")
    return path


@pytest.fixture(scope="session")
def ollama(gguf: Path) -> Iterator[OllamaModels]:
    """A real Ollama."""
    if (binary := ollama_server.find_ollama()) is None:
        pytest.skip("no ollama on PATH or in Go's bin; .ci/run says how one is built")
    readable = ollama_server.QWEN_TEMPLATE.replace("{{ .Function }}", "{{ json .Function }}")
    with ollama_server.running(binary, _CACHE) as server:
        yield OllamaModels(
            server.url,
            with_tools=server.create("caal-test-tools", gguf),
            with_readable_tools=server.create("caal-test-json", gguf, readable),
            without_tools=server.create("caal-test-plain", gguf, template=None),
        )


@pytest.fixture(scope="session")
def llama(gguf: Path) -> Iterator[str]:
    """A real llama.cpp server's address, without `/v1`."""
    pytest.importorskip("xllamacpp", reason="no xllamacpp: pip install 'caal-node[embedded]'")
    with llama_server.running(gguf) as address:
        yield address
