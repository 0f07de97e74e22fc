"""Turns the address of an instance as people write it into a URL that a client can use."""

from __future__ import annotations

import ipaddress
from typing import Final
from urllib.parse import urlsplit

PORT: Final = 5678
"""Where n8n listens unless it is told otherwise."""
MCP_PATH: Final = "/mcp-server/http"
"""Where an instance has its own MCP server."""
_SCHEMES: Final = ("http", "https")
_LOCAL_ENDINGS: Final = (".local", ".localhost", ".lan", ".home", ".internal", ".home.arpa")
"""Names that end so are of one network alone."""


def instance_url(text: str) -> str:
    """Return the http(s) URL of an instance, with no slash at its end.

    People may leave out the scheme: `localhost:5678` gets http://, and a public name without a port
    https://, since keys go there. A host of one's own network gets n8n's port where it has none.
    The address that n8n shows for its MCP server is taken for the instance's.

    Raises:
        ValueError: This is no such address; the message says why, without the address.
    """
    text = text.strip().rstrip("/").removesuffix(MCP_PATH)
    has_scheme = "://" in text
    if not has_scheme and text.partition("/")[0].rstrip(":") in _SCHEMES:
        raise _wrong_scheme()  # such as http//host
    try:
        parts = urlsplit(text if has_scheme else f"http://{text}")
        port = parts.port  # the parser checks it only here
    except ValueError:
        raise ValueError("this is no address; check brackets and port (1 to 65535)") from None
    if parts.scheme not in _SCHEMES:
        raise _wrong_scheme()
    if not parts.hostname or port == 0:
        raise ValueError("this is no address; write e.g. localhost:5678, or a URL")
    if any(char.isspace() for char in text):
        raise ValueError("the address has a space in it")
    if not has_scheme and port is None:
        if _is_of_this_network(parts.hostname):
            parts = parts._replace(netloc=f"{parts.netloc.rstrip(':')}:{PORT}")
        else:
            parts = parts._replace(scheme="https")
    return parts.geturl().rstrip("/")


def _wrong_scheme() -> ValueError:
    return ValueError("the address must begin with http:// or https://")


def _is_of_this_network(host: str) -> bool:
    """Return whether a name or an address cannot be one of the public Internet's."""
    try:
        return not ipaddress.ip_address(host).is_global
    except ValueError:
        return "." not in host.rstrip(".") or host.endswith(_LOCAL_ENDINGS)
