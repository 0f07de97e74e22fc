"""Addresses as people write them."""

from __future__ import annotations

import contextlib
import os
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import pytest
from hypothesis import given
from hypothesis import strategies as st

from caal_node.cli.chosen_agent import with_chosen_model
from caal_node.config.settings import Settings, load_settings
from caal_node.core.addresses import ollama_url, server_url
from caal_node.core.errors import ConfigError
from caal_node.models.embedding import ServerEmbedder
from caal_node.models.llm import LLM
from mcp_bridge import ServerConfig
from mcp_bridge.core.server_config import with_scheme
from n8n import N8nError, N8nTools
from n8n.core.http import instance_url


@pytest.mark.parametrize(
    ("written", "url"),
    [
        ("", "http://127.0.0.1:11434"),
        ("example.com", "http://example.com:11434"),
        ("example.com:1234", "http://example.com:1234"),
        (":1234", "http://127.0.0.1:1234"),
        (" http://example.com ", "http://example.com:80"),
        ("https://example.com", "https://example.com:443"),
        ("https://example.com/ollama/", "https://example.com:443/ollama"),
        ("example.com:56789/", "http://example.com:56789"),
        ("0.0.0.0", "http://127.0.0.1:11434"),  # noqa: S104 -- nothing is bound here
        ("0.0.0.0:9000", "http://127.0.0.1:9000"),
        ("[::1]", "http://[::1]:11434"),
        ("[::1]:1337", "http://[::1]:1337"),
        ("::1", "http://[::1]:11434"),
        ("[::]:1337", "http://[::1]:1337"),
        ("ollama.com", "https://ollama.com:443"),
    ],
)
def test_a_host_is_read_as_ollama_reads_it(written: str, url: str) -> None:
    assert ollama_url(written) == url
    assert ollama_url(url) == url


@pytest.mark.parametrize(
    "written", ["host:port", "host:70000", "ftp://host", "a b", "[::1", "u:p@host"]
)
def test_what_is_no_address_is_refused(written: str) -> None:
    with pytest.raises(ValueError, match=r"address|port"):
        ollama_url(written)


HTTP, ROOM = ("http", "https"), ("ws", "wss", "http", "https")


@pytest.mark.parametrize(
    ("written", "url"),
    [
        ("http://h:1/", "http://h:1"),
        ("localhost:5678", "http://localhost:5678"),
        ("localhost", "http://localhost:5678"),
        ("127.0.0.1/n8n/", "http://127.0.0.1:5678/n8n"),
        ("192.168.1.7", "http://192.168.1.7:5678"),
        ("[::1]", "http://[::1]:5678"),
        ("nas.local", "http://nas.local:5678"),
        ("n8n", "http://n8n:5678"),
        ("n8n.example.com", "https://n8n.example.com"),
        ("n8n.example.com:5678", "http://n8n.example.com:5678"),
        ("n8n.example.com/base/", "https://n8n.example.com/base"),
    ],
)
def test_a_server_may_be_written_without_its_scheme(written: str, url: str) -> None:
    assert server_url(written, HTTP, 5678) == url
    assert server_url(url, HTTP, 5678) == url
    assert N8nTools(written).base_url == url


def test_a_room_server_without_a_scheme_is_asked_by_websocket() -> None:
    assert server_url("localhost", ROOM, 7880) == "ws://localhost:7880"
    assert server_url("mine.livekit.cloud", ROOM, 7880) == "wss://mine.livekit.cloud"
    assert server_url("localhost/v1", HTTP) == "http://localhost/v1"


@pytest.mark.parametrize("written", ["http//h", "https:h", "ftp://h", "http:///x", "", "h:port"])
def test_what_is_no_server_is_refused(written: str) -> None:
    with pytest.raises(ValueError, match=r"begin with|no host|no address"):
        server_url(written, HTTP)
    with pytest.raises(N8nError, match=r"^N8N_URL .*(begin with|no address)"):
        N8nTools(written)


@given(st.from_regex(r"[a-z0-9.\[\]:-]{1,20}(/[a-z]*)?", fullmatch=True))
def test_an_n8n_without_its_scheme_is_found_as_every_other_server(text: str) -> None:
    try:
        expected = server_url(text, HTTP, 5678)
    except ValueError:
        expected = None
    try:
        found = instance_url(text)
    except ValueError:
        found = None
    assert found == expected or (found is None and ":0" in text)  # no n8n listens at port 0


@pytest.mark.parametrize(
    ("written", "url", "socket"),
    [
        ("localhost:8000/mcp", "http://localhost:8000/mcp", "ws://localhost:8000/mcp"),
        (" 127.0.0.1:1 ", "http://127.0.0.1:1", "ws://127.0.0.1:1"),
        ("[::1]:1/mcp", "http://[::1]:1/mcp", "ws://[::1]:1/mcp"),
        ("mcp.example.com/mcp", "https://mcp.example.com/mcp", "wss://mcp.example.com/mcp"),
        ("nas:8000", "https://nas:8000", "wss://nas:8000"),
        ("http://nas:8000", "http://nas:8000", "http://nas:8000"),
        ("http//nas", "http//nas", "http//nas"),
        ("[::1", "[::1", "[::1"),
        ("", "", ""),
    ],
)
def test_an_mcp_server_elsewhere_is_asked_encrypted(written: str, url: str, socket: str) -> None:
    assert ServerConfig("s", "http", url=written).url == url
    assert ServerConfig("s", "websocket", url=written).url == socket
    assert with_scheme(url) == url


@given(st.text(max_size=60))
def test_any_text_is_an_mcp_server_s_address_once_for_all(text: str) -> None:
    assert with_scheme(with_scheme(text)) == with_scheme(text)


@pytest.mark.parametrize(
    ("api", "url"), [("openai", "http://localhost:8080"), ("ollama", "http://localhost:8080")]
)
def test_a_program_may_leave_out_the_scheme_too(api: Any, url: str) -> None:
    embedder = ServerEmbedder("small", api=api, base_url="localhost:8080")
    assert embedder.name == f"{api}:small@{url}"
    with pytest.raises(ConfigError, match="CAAL_EMBEDDING: the address must begin with"):
        ServerEmbedder("small", api=api, base_url="ftp://localhost")
    assert LLM(model="small", api=api, base_url="localhost:8080").backend.address == url


@given(st.text(max_size=60))
def test_any_text_is_a_server_or_refused_in_words(text: str) -> None:
    with contextlib.suppress(ValueError):
        url = server_url(text, HTTP, 5678)
        assert server_url(url, HTTP, 5678) == url


@given(st.text(max_size=60))
def test_any_text_is_an_address_or_refused_in_words(text: str) -> None:
    with contextlib.suppress(ValueError):
        url = ollama_url(text)
        assert urlsplit(url).port is not None
        again = ollama_url(url)
        assert again == url


ADDRESSES = (
    "OLLAMA_HOST",
    "CAAL_BASE_URL",
    "N8N_URL",
    "LIVEKIT_URL",
    "CAAL_FALLBACKS",
    "CAAL_MODEL_SERVERS",
    "CAAL_EMBEDDING",
)


@pytest.mark.parametrize("setting", ADDRESSES)
@pytest.mark.parametrize("before", ["http://me:", "ftp://me:", "me:", "openai:x@http://me:"])
@given(st.text("p4s/:@, '\"\\?#[", max_size=8), st.sampled_from(["host", "host:99999999", "h/x@y"]))
def test_no_refused_address_is_quoted_with_its_password(
    setting: str, before: str, chars: str, host: str
) -> None:
    password = f"Zq7{chars}Zq8"
    with pytest.raises(ConfigError) as refused:
        load_settings({setting: f"{before}{password}@{host}"}, Path(os.devnull))
    assert "Zq7" not in str(refused.value)
    assert "Zq8" not in str(refused.value)


@given(st.text("p4s/:@, ", max_size=8))
def test_no_refused_model_or_workflow_server_is_quoted_with_its_password(chars: str) -> None:
    address = f"http://me:Zq7{chars}Zq8@host"
    with pytest.raises(ConfigError) as refused:
        with_chosen_model(Settings(), f"openai:x@{address}", "MODEL")
    assert "Zq" not in str(refused.value)
    with pytest.raises(N8nError) as at_n8n:
        N8nTools(f"ftp://me:Zq7{chars}Zq8@host")
    assert "Zq" not in str(at_n8n.value)
