"""Makes the names that models call: `server__tool`, `^[A-Za-z0-9_-]{1,64}$`, the same every time.

A name depends on the configured servers and on its own server's list alone, never on which other
servers happen to be up; so a name cannot change its meaning while a conversation goes on. No two
prefixes begin alike up to `__` (`a__` and `a__b__` would: `a` + `b__c` is `a__b` + `c`), hence
tools of two servers never meet. Nothing is ever read back out of a name.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterable, Sequence
from typing import Final

SEPARATOR: Final = "__"
NAME_MAX: Final = 64
"""The bound of OpenAI's and Ollama's function names, in characters."""
PREFIX_MAX: Final = 30
"""The characters of the server's part. It leaves 32 for the tool's, which says more to a model."""
_HASH_CHARS: Final = 6
_NOT_ALLOWED: Final = re.compile(r"[^A-Za-z0-9_-]+")


def server_prefixes(servers: Iterable[str]) -> dict[str, str]:
    """Gives for each server its part of the exposed names.

    A name that is allowed and meets no other stays as it is; where two meet, the longer one is
    changed, whatever the order.
    """
    taken: dict[str, str] = {}
    for server in sorted(set(servers), key=lambda name: (_clean(name) != name, len(name), name)):
        wanted = _clean(server)
        prefix = wanted if len(wanted) <= PREFIX_MAX else _hashed(wanted, server, PREFIX_MAX)
        salt = 0
        while any(_collide(prefix, other) for other in taken.values()):
            plain = re.sub("_+", "_", wanted).strip("_")
            prefix = _hashed(plain, f"{server}\0{salt}", PREFIX_MAX)
            salt += 1
        taken[server] = prefix
    return taken


def exposed_names(prefix: str, tools: Sequence[str]) -> dict[str, str]:
    """Gives for each of one server's tools its exposed name, in the server's order."""
    room = NAME_MAX - len(prefix) - len(SEPARATOR)
    names: dict[str, str] = {}
    taken: set[str] = set()
    # Names that can stay as they are come first: they are the ones people write down.
    for tool in sorted(dict.fromkeys(tools), key=lambda tool: _clean(tool) != tool):
        wanted = _clean(tool)
        part = wanted if len(wanted) <= room else _hashed(wanted, tool, room)
        salt = 0
        while part in taken:
            part = _hashed(wanted, f"{tool}\0{salt}", room)
            salt += 1
        names[tool] = part
        taken.add(part)
    return {tool: f"{prefix}{SEPARATOR}{names[tool]}" for tool in dict.fromkeys(tools)}


def _collide(one: str, other: str) -> bool:
    one, other = one + SEPARATOR, other + SEPARATOR
    return one.startswith(other) or other.startswith(one)


def _clean(name: str) -> str:
    return _NOT_ALLOWED.sub("_", name) or "_"


def _hashed(wanted: str, whole: str, room: int) -> str:
    digest = hashlib.sha256(whole.encode(errors="surrogatepass")).hexdigest()[:_HASH_CHARS]
    return f"{wanted[: room - 1 - _HASH_CHARS]}_{digest}"
