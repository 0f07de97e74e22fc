"""Turns the address of a server as people write it into a URL that a client can use."""

from __future__ import annotations

import ipaddress
from urllib.parse import urlsplit


def is_loopback(url: str) -> bool:
    """Tells whether `url` is on this machine, by its name alone: nothing is looked up."""
    host = urlsplit(url).hostname or ""
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return host == "localhost" or host.endswith(".localhost")


def with_scheme(address: str, *, socket: bool = False) -> str:
    """Gives the URL of an address without a scheme: http:// on this machine, https:// elsewhere.

    That is ws:// and wss:// for a `socket`. What has a scheme stays as it is, and so does what is
    no address; whoever uses it says so.
    """
    text = address.strip()
    host = text.partition("/")[0]
    if not host or "://" in text or host.rstrip(":").lower() in ("http", "https", "ws", "wss"):
        return text
    plain, encrypted = ("ws", "wss") if socket else ("http", "https")
    try:
        return f"{plain if is_loopback(f'{plain}://{text}') else encrypted}://{text}"
    except ValueError:
        return text
