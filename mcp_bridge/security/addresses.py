"""Judges the addresses that a server may be reached at: encrypted, or on this machine."""

from __future__ import annotations

import ipaddress
from typing import Final
from urllib.parse import urljoin, urlsplit

from mcp_bridge.security.finding import Finding

_PLAIN: Final = {"http": "https", "ws": "wss"}
_PORTS: Final = {"http": 80, "https": 443, "ws": 80, "wss": 443}


def is_loopback(url: str) -> bool:
    """Tells whether `url` is on this machine, by its name alone: nothing is looked up."""
    host = urlsplit(url).hostname or ""
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return host == "localhost" or host.endswith(".localhost")


def plain_text(url: str) -> Finding | None:
    """Objects to an address where anyone on the way could read and change what is sent."""
    scheme = urlsplit(url).scheme
    if scheme not in _PLAIN or is_loopback(url):
        return None
    reason = f"{scheme}:// goes over the network unencrypted"
    return Finding("url", reason, f"use {_PLAIN[scheme]}://", "http")


def same_origin(url: str, location: str) -> bool:
    """Tells whether a redirect from `url` to `location` stays with one server, as encrypted."""
    try:
        return _origin(url) == _origin(urljoin(url, location))
    except ValueError:
        return False


def _origin(url: str) -> tuple[str, str, int]:
    parts = urlsplit(url)
    return parts.scheme, parts.hostname or "", parts.port or _PORTS.get(parts.scheme, 0)
