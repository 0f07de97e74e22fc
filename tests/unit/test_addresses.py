"""Addresses as people write them."""

from __future__ import annotations

import contextlib
from urllib.parse import urlsplit

import pytest
from hypothesis import given
from hypothesis import strategies as st

from caal_node.core.addresses import ollama_url, server_url


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


def test_a_server_needs_scheme_and_host() -> None:
    assert server_url("http://h:1/", ("http",)) == "http://h:1"
    with pytest.raises(ValueError, match="begin with"):
        server_url("h:1", ("http",))
    with pytest.raises(ValueError, match="no host"):
        server_url("http:///x", ("http",))


@given(st.text(max_size=60))
def test_any_text_is_an_address_or_refused_in_words(text: str) -> None:
    with contextlib.suppress(ValueError):
        url = ollama_url(text)
        assert urlsplit(url).port is not None
        again = ollama_url(url)
        assert again == url
