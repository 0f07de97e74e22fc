"""Where `caal-node up` serves its page: the link, the names it answers to, and how LiveKit is
reached."""

from __future__ import annotations

import socket
from pathlib import Path

import pytest

from caal_node.cli.up import PageAddress
from caal_node.core.errors import ConfigError
from caal_node.page.certificate import Certificate

PEM = Certificate(Path("page.pem"), Path("key.pem"))
LOCAL = "ws://127.0.0.1:7880"
LAN = "ws://192.168.1.5:7880"
CLOUD = "wss://home-1a2b.livekit.cloud"


@pytest.mark.parametrize(
    ("host", "certificate", "url", "answers_to"),
    [
        ("127.0.0.1", None, "http://127.0.0.1:8890", "127.0.0.1"),
        ("::1", None, "http://[::1]:8890", "[::1]"),
        ("localhost", PEM, "https://localhost:8890", "localhost"),
        ("0.0.0.0", PEM, "https://localhost:8890", "*"),  # noqa: S104 - nothing listens
        ("192.168.1.5", None, "http://192.168.1.5:8890", "*"),
    ],
)
def test_the_link_and_the_names_follow_the_address(
    host: str, certificate: Certificate | None, url: str, answers_to: str
) -> None:
    at = PageAddress(host, 8890, certificate)
    assert at.url == url
    assert answers_to in at.hosts
    assert ("*" in at.hosts) == at.is_for_others


@pytest.mark.parametrize(
    ("host", "certificate", "livekit_url", "passes_on"),
    [
        ("127.0.0.1", None, LOCAL, False),
        ("127.0.0.1", PEM, LOCAL, True),
        ("192.168.1.5", None, LOCAL, True),
        ("192.168.1.5", None, LAN, False),
        ("192.168.1.5", PEM, LAN, True),
        ("192.168.1.5", PEM, CLOUD, False),
        ("192.168.1.5", None, CLOUD, False),
    ],
)
def test_signalling_goes_through_the_page_where_a_browser_cannot_reach_livekit(
    host: str, certificate: Certificate | None, livekit_url: str, *, passes_on: bool
) -> None:
    assert PageAddress(host, 8890, certificate).passes_on(livekit_url) is passes_on


def test_a_key_alone_and_a_certificate_that_is_not_there_are_told_before_anything_starts(
    tmp_path: Path,
) -> None:
    with pytest.raises(ConfigError, match="--ssl-keyfile is given alone; give --ssl-certfile"):
        PageAddress.of("127.0.0.1", 8890, None, Path("key.pem"))
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    at = PageAddress.of("127.0.0.1", port, tmp_path / "page.pem", None)
    with pytest.raises(ConfigError, match=r"page\.pem: no such file"):
        at.require()
    PageAddress.of("127.0.0.1", port, None, None).require()
