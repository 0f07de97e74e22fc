"""Judges the addresses that a server may be reached at: encrypted, or on this machine."""

from __future__ import annotations

import ipaddress
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final
from urllib.parse import urljoin, urlsplit

from mcp_bridge.core.server_config import Allowance, is_loopback

# What speaks against an entry of the configuration, and the word that lets it pass.


@dataclass(frozen=True, slots=True)
class Finding:
    """One objection to an entry, and how to fix it."""

    key: str
    """The key of the entry: `command`, `args`, `env.NODE_OPTIONS`, `url`."""
    reason: str
    fix: str
    allowance: Allowance

    def __str__(self) -> str:
        return f'{self.reason}; {self.fix}, or write "allow": ["{self.allowance}"]'


def in_one_sentence(findings: Sequence[Finding]) -> str:
    """Says all that is asked for at once, so that nobody fixes one thing to meet the next."""
    if len(findings) == 1:
        return str(findings[0])
    first, *others = findings
    reasons = [first.reason, *(f"{one.key} {one.reason}" for one in others)]
    words = ", ".join(f'"{word}"' for word in dict.fromkeys(one.allowance for one in findings))
    return f'{"; ".join(reasons)}; fix these, or write "allow": [{words}]'


_PLAIN: Final = {"http": "https", "ws": "wss"}
_PORTS: Final = {"http": 80, "https": 443, "ws": 80, "wss": 443}
_IPV6_INTERNET: Final = ipaddress.IPv6Network("2000::/3")
"""All that is assigned there. The rest is for links, sites, groups and translation."""
_NAT64: Final = ipaddress.IPv6Network("64:ff9b::/96")
"""An IPv4 address in its last 32 bits (RFC 6052), for networks that have only IPv6."""
_KEPT: Final = (ipaddress.ip_network("192.0.0.0/24"), ipaddress.ip_network("3fff::/20"))
"""Kept by IANA; older Pythons take them for ordinary ones."""


def plain_text(url: str) -> Finding | None:
    """Objects to an address where anyone on the way could read and change what is sent."""
    scheme = urlsplit(url).scheme
    if scheme not in _PLAIN or is_loopback(url):
        return None
    reason = f"{scheme}:// goes over the network unencrypted"
    return Finding("url", reason, f"use {_PLAIN[scheme]}://", "http")


def is_public(host: str) -> bool:
    """Tells whether `host` is the number of an address in the public internet.

    This machine, private networks, links, carriers' networks (100.64.0.0/10), groups and whatever
    is kept for a purpose are not.
    """
    try:
        address = ipaddress.ip_address(host)
    except ValueError:
        return False
    if isinstance(address, ipaddress.IPv6Address):
        if address in _NAT64:
            return is_public(str(ipaddress.IPv4Address(int(address) & 0xFFFF_FFFF)))
        if address not in _IPV6_INTERNET or address.sixtofour or address.teredo:
            return False
    kept = any(address in network for network in _KEPT)
    return address.is_global and not address.is_multicast and not kept


def same_origin(url: str, location: str) -> bool:
    """Tells whether a redirect from `url` to `location` stays with one server, as encrypted."""
    try:
        return origin_of(url) == origin_of(urljoin(url, location))
    except ValueError:
        return False


def origin_of(url: str) -> tuple[str, str, int]:
    """Gives scheme, host and port. Raises: ValueError, where it is no address."""
    parts = urlsplit(url)
    return parts.scheme, parts.hostname or "", parts.port or _PORTS.get(parts.scheme, 0)
