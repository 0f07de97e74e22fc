"""Judges the addresses that a server may be reached at: encrypted, or on this machine."""

from __future__ import annotations

import ipaddress
from typing import Final
from urllib.parse import urljoin, urlsplit

from mcp_bridge.core.addresses import is_loopback
from mcp_bridge.security.finding import Finding

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
