"""Turns server addresses as people write them into URLs that a client can use."""

from __future__ import annotations

import ipaddress
import re
import typing
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final, Literal, TypeAlias
from urllib.parse import SplitResult, urlsplit

# Reads a model in one word: `qwen3:8b`, `openai:local`, `ollama:llama3.2@http://box:11434`.
#
# The form is `[API:]MODEL[@URL]`. The text before the first colon is an API only where it names one
# (`qwen3:8b` has none), and the text behind an `@` is the address only where it has a scheme.

Api: TypeAlias = Literal[
    "ollama", "openai", "completions", "livekit", "embedded", "anthropic", "google"
]
_WITH_URL: Final = re.compile(r"(?=.*\Z)(.*?)@(\w+://.*|[\w.-]+:\d{1,5}(?:/.*)?)")
"""A name may hold an `@` too, so an address without a scheme is known by its port."""
CLOUD: Final[Mapping[Api, str]] = {
    "anthropic": "https://api.anthropic.com",
    "google": "https://generativelanguage.googleapis.com",
}
"""Services whose models LiveKit's own plugins ask, with the address of each."""
APIS: Final[tuple[Api, ...]] = typing.get_args(Api)


@dataclass(frozen=True, slots=True)
class ModelReference:
    """A model, its API and its address; None stands for the settings' own API or address."""

    model: str
    api: Api | None = None
    base_url: str | None = None

    def __str__(self) -> str:
        api = f"{self.api}:" if self.api else ""
        return f"{api}{self.model}" + (f"@{self.base_url}" if self.base_url else "")


def parse_reference(text: str) -> ModelReference:
    """Read a reference.

    Raises:
        ValueError: This is no reference; the message says why in plain words.
    """
    rest, base_url = text.strip(), None
    if match := _WITH_URL.fullmatch(rest):
        rest, base_url = match.groups()
    start, colon, name = rest.partition(":")
    api: Api | None = next((known for known in APIS if colon and start == known), None)
    model = name if api else rest
    if not model or any(char.isspace() for char in model):
        raise ValueError("write a model's name, or api:model@url such as ollama:qwen3:8b")
    if base_url is not None:
        base_url = (
            ollama_url(base_url) if api == "ollama" else server_url(base_url, ("http", "https"))
        )
    return ModelReference(model, api, base_url)


OLLAMA_PORT: Final = 11434
LIVEKIT_PORT: Final = 7880
_LOCAL_ENDINGS: Final = (".local", ".localhost", ".lan", ".home", ".internal", ".home.arpa")
"""Names that end so are of one network alone."""
_SCHEMES: Final = ("http", "https", "ws", "wss")
_DEFAULT_PORTS: Final = {"http": 80, "https": 443}


def ollama_url(host: str) -> str:
    """Return the URL that Ollama itself reads from OLLAMA_HOST: `host`, `host:port`, or a URL.

    Without a scheme the port is 11434; with one it is that scheme's own. A listening address
    (0.0.0.0, ::), which people share between server and clients, becomes the loopback.

    Raises:
        ValueError: This is no address; the message says why in plain words.
    """
    text = host.strip()
    if text == "ollama.com":
        return "https://ollama.com:443"
    has_scheme = "://" in text
    if not has_scheme and text.count(":") > 1 and not text.startswith("["):
        text = f"[{text}]"  # an IPv6 address without brackets has no port
    parts = _split(text if has_scheme else f"http://{text}", ("http", "https"))
    name = _loopback(parts.hostname or "127.0.0.1")
    port = parts.port or (_DEFAULT_PORTS[parts.scheme] if has_scheme else OLLAMA_PORT)
    host_part = f"[{name}]" if ":" in name else name
    return f"{parts.scheme}://{host_part}:{port}{parts.path.rstrip('/')}"


def server_url(text: str, schemes: tuple[str, ...], port: int | None = None) -> str:
    """Return a URL with one of `schemes` and no slash at its end; people may leave out the scheme.

    Then `localhost:8000` gets the first scheme, and a public name without a port the second, which
    is the encrypted one: keys go there. A host of one's own network gets `port` where it has none.

    Raises:
        ValueError: This is no such URL; the message says why in plain words.
    """
    text, has_scheme = text.strip(), "://" in text
    if not has_scheme and text.partition("/")[0].rstrip(":") in _SCHEMES:
        raise _wrong_scheme(schemes)  # such as http//host
    parts = _split(text if has_scheme else f"{schemes[0]}://{text}", schemes)
    if not parts.hostname:
        raise ValueError(f"the address has no host; write e.g. {schemes[0]}://127.0.0.1:8000")
    if not has_scheme and parts.port is None:
        if not is_of_this_network(parts.hostname):
            parts = parts._replace(scheme=schemes[1])
        elif port is not None:
            parts = parts._replace(netloc=f"{parts.netloc.rstrip(':')}:{port}")
    return parts.geturl().rstrip("/")


def without_userinfo(text: str) -> str:
    """Return an address as messages may quote it: without user name and password.

    A password may hold anything, so all before the last `@` goes, but for the scheme.
    """
    if "@" not in text:
        return text
    scheme, mark, _ = text.partition("://")
    return f"{scheme if mark else ''}{mark}***@{text.rpartition('@')[2]}"


def canonical_url(url: str) -> str:
    """Write a URL so that two of one server and path are equal: case, port and last slash.

    Raises:
        ValueError: This is no such URL.
    """
    parts = _split(url.strip(), ("http", "https"))
    port = parts.port or _DEFAULT_PORTS[parts.scheme]
    rest = parts._replace(scheme="", netloc="", path=parts.path.rstrip("/")).geturl()
    return f"{parts.scheme}://{parts.hostname}:{port}{rest}"


def is_loopback(host: str) -> bool:
    """Return whether `host`, a name or an address without port, is this machine alone."""
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return host == "localhost"


def is_of_this_network(host: str) -> bool:
    """Return whether a name or an address cannot be one of the public Internet's."""
    try:
        return not ipaddress.ip_address(host).is_global
    except ValueError:
        return "." not in host.rstrip(".") or host.endswith(_LOCAL_ENDINGS)


def _wrong_scheme(schemes: tuple[str, ...]) -> ValueError:
    return ValueError(f"the address must begin with {' or '.join(f'{s}://' for s in schemes)}")


def _split(text: str, schemes: tuple[str, ...]) -> SplitResult:
    try:
        parts = urlsplit(text)
        _ = parts.port  # the parser checks the port only when it is read
    except ValueError as error:
        raise ValueError("this is no address; check brackets and port (0 to 65535)") from error
    if parts.scheme not in schemes:
        raise _wrong_scheme(schemes)
    if parts.username is not None or parts.password is not None:
        # Addresses are shown to people and written to logs; secrets have settings of their own.
        raise ValueError("leave user name and password out of the address")
    if any(char.isspace() for char in text):
        raise ValueError("the address has a space in it")
    return parts


def _loopback(name: str) -> str:
    try:
        address = ipaddress.ip_address(name)
    except ValueError:
        return name
    if address.is_unspecified:
        return "127.0.0.1" if address.version == 4 else "::1"
    return str(address)
