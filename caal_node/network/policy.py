"""Judges which addresses may be connected to, and which names may be looked up. It does no I/O.

A policy is written as words with commas between them:

    any                     no limit
    local                   this machine: 127.0.0.0/8 and ::1
    lan                     this machine and private networks (RFC 1918, ULA, link-local)
    192.168.7.0/24, ::1     ranges and addresses
    nas, mirror.example     names: what they resolve to may be connected to

An address may be connected to where one word allows it. Unix sockets are of this machine, and are
always allowed.
"""

from __future__ import annotations

import ipaddress
import re
from collections.abc import Iterable
from dataclasses import dataclass
from functools import lru_cache
from ipaddress import IPv4Address, IPv4Network, IPv6Address, IPv6Network
from typing import Final, TypeAlias

from caal_node.core.addresses import is_of_this_network

Address: TypeAlias = IPv4Address | IPv6Address
Network: TypeAlias = IPv4Network | IPv6Network

WORDS_MAX: Final = 64
"""Words of a policy. Each is compared with each new address."""
SHOWN_CHARS: Final = 80
"""Characters of a policy that messages quote."""
_LOCAL: Final = (ipaddress.ip_network("127.0.0.0/8"), ipaddress.ip_network("::1"))
_PRIVATE: Final = tuple(
    map(
        ipaddress.ip_network,
        (
            "10.0.0.0/8",
            "172.16.0.0/12",
            "192.168.0.0/16",
            "169.254.0.0/16",
            "fc00::/7",
            "fe80::/10",
        ),
    )
)
_METADATA: Final = tuple(
    map(ipaddress.ip_network, ("169.254.169.254", "169.254.170.0/24", "fd00:ec2::/32"))
)
"""Addresses at which clouds hand a machine its credentials. They look private, and `lan` leaves
them out; a range that the owner writes holds them."""
_IPV6_INTERNET: Final = ipaddress.IPv6Network("2000::/3")
"""All that is assigned there."""
_NAT64: Final = ipaddress.IPv6Network("64:ff9b::/96")
"""An IPv4 address in its last 32 bits (RFC 6052), for networks that have only IPv6."""
_THIS_MACHINE: Final = frozenset(
    ("localhost", "localhost.localdomain", "ip6-localhost", "ip6-loopback")
)
_NAME: Final = re.compile(r"(?!-)[a-z0-9_-]{1,63}(?<!-)(\.(?!-)[a-z0-9_-]{1,63}(?<!-))*")
_PART: Final = re.compile(r"0[xX][0-9a-fA-F]+|0[0-7]*|[1-9][0-9]*")


@dataclass(frozen=True, slots=True)
class NetworkPolicy:
    """What one setting allows; `text` is that setting."""

    text: str = "any"
    ranges: tuple[Network, ...] = ()
    names: frozenset[str] = frozenset()
    """Names that the owner lists, in lower case and as DNS has them."""
    lan: bool = False
    """Whether private networks, and lookups of names that can only be theirs, are allowed."""

    @property
    def shown(self) -> str:
        """The beginning of `text`, for messages."""
        return self.text if len(self.text) <= SHOWN_CHARS else f"{self.text[:SHOWN_CHARS]}..."

    @property
    def is_open(self) -> bool:
        """Whether there is no limit."""
        return self.text == "any"

    def allows(self, address: Address, found_by: Iterable[str] = ()) -> bool:
        """Return whether `address` may be connected to.

        Args:
            found_by: The names that have led to it. A listed one allows it. A public name may
                lead to public addresses alone: whoever answers for it could else point it at a
                machine of this network.
        """
        if self.is_open:
            return True
        address = plain(address)
        if any(address in network for network in self.ranges):
            return True
        if self.lan and _is_private(address):
            return True
        return any(
            name in self.names and (is_of_this_network(name) or is_public(address))
            for name in found_by
        )

    def allows_lookup(self, name: str, kept_here: frozenset[str] = frozenset()) -> bool:
        """Return whether a resolver may be asked for `name`. To ask leaves the machine, too.

        Args:
            kept_here: Names that this machine knows by itself (its hosts file).
        """
        if self.is_open or address_of(name) is not None:
            return True
        name = canonical_name(name)
        known = name in _THIS_MACHINE or name.endswith(".localhost") or name in kept_here
        return known or name in self.names or (self.lan and is_of_this_network(name))


def parse_policy(words: str | Iterable[str]) -> NetworkPolicy:
    """Return the policy of a text with commas, or of a list of words.

    Raises:
        ValueError: A word is none of those above; the message says which, and what to write.
    """
    parts = words.split(",") if isinstance(words, str) else list(words)
    given = list(dict.fromkeys(part.strip().lower() for part in parts if part.strip()))
    if not given:
        raise ValueError("write any, local, lan, or addresses, ranges and names with commas")
    if len(given) > WORDS_MAX:
        raise ValueError(f"keep at most {WORDS_MAX} words; write ranges such as 10.0.0.0/8")
    if "any" in given:
        if len(given) > 1:
            raise ValueError("any allows everything; write it alone, or leave it out")
        return NetworkPolicy()
    ranges: list[Network] = []
    names: set[str] = set()
    for word in given:
        if word in ("local", "lan"):
            ranges += _LOCAL
        elif (network := _network(word)) is not None:
            ranges.append(network)
        else:
            names.add(_name(word))
    return NetworkPolicy(
        ",".join(given), tuple(dict.fromkeys(ranges)), frozenset(names), "lan" in given
    )


def _network(word: str) -> Network | None:
    """Raises: ValueError: it begins as a range, and is none."""
    text = word.removeprefix("[").removesuffix("]")
    try:
        network = ipaddress.ip_network(text, strict=False)
    except ValueError:
        if "/" in word or ":" in word or re.fullmatch(r"[\d.]+", word):
            raise ValueError(
                f"{word!r} is not an address or range; write one such as 192.168.7.0/24, "
                "without scheme and port"
            ) from None
        return None
    if isinstance(network, IPv6Network) and network.network_address.ipv4_mapped is not None:
        raise ValueError(f"{word!r} stands for IPv4 addresses; write them as 192.168.7.0/24")
    return network


def _name(word: str) -> str:
    name = canonical_name(word)
    if len(name) > 253 or not _NAME.fullmatch(name):
        raise ValueError(f"{word!r} is not a host name; write one such as nas.lan, without scheme")
    return name


def canonical_name(name: str) -> str:
    """Return a host name as DNS has it: in ASCII and lower case, without the dot at its end."""
    try:
        ascii_name = name.encode("idna").decode("ascii")
    except UnicodeError:  # an empty or a long part: no DNS name, and equal to none
        ascii_name = name
    return ascii_name.lower().rstrip(".")


@lru_cache(maxsize=1024)
def address_of(text: str) -> Address | None:
    """Return the address that a resolver reads in `text` without asking anybody; None for a name.

    Besides the usual forms these are `127.1`, `0x7f.0.0.1` and `2130706433`, and an IPv6 address
    with a zone.
    """
    try:
        return ipaddress.ip_address(text)
    except ValueError:
        return _from_numbers(text)


def _from_numbers(text: str) -> IPv4Address | None:
    """Read one to four numbers, as C's `inet_aton` does: the last fills what remains."""
    parts = text.split(".")
    if len(parts) > 4 or not all(map(_PART.fullmatch, parts)) or len(text) > 64:
        return None
    *first, last = [int(part, _base(part)) for part in parts]
    if any(number > 0xFF for number in first) or last >= 1 << 8 * (4 - len(first)):
        return None
    whole = last
    for place, number in enumerate(first):
        whole |= number << 8 * (3 - place)
    return IPv4Address(whole)


def _base(number: str) -> int:
    if number[:2] in ("0x", "0X"):
        return 16
    return 8 if number[0] == "0" else 10


def plain(address: Address) -> Address:
    """Return the address that a connection to `address` ends at.

    An IPv6 address that stands for an IPv4 one is that one, and the listening addresses (0.0.0.0,
    ::) are this machine.
    """
    if isinstance(address, IPv6Address):
        if address.ipv4_mapped is not None:
            return plain(address.ipv4_mapped)
        return IPv6Address(1) if int(address) == 0 else address
    return IPv4Address("127.0.0.1") if int(address) == 0 else address


def _is_private(address: Address) -> bool:
    if any(address in network for network in _METADATA):
        return False
    return any(address in network for network in _PRIVATE)


def is_public(address: Address) -> bool:
    """Return whether `address` is one of the public Internet and nothing else."""
    if isinstance(address, IPv6Address):
        if address in _NAT64:
            return is_public(IPv4Address(int(address) & 0xFFFF_FFFF))
        if address not in _IPV6_INTERNET or address.sixtofour or address.teredo:
            return False
    return address.is_global and not address.is_multicast
