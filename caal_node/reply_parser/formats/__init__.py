"""The dialects in which models write calls, one file a family.

Every module here is loaded, and the `Format` objects in its `FORMATS` are known from then on:
a new dialect is a file. No two may share an opener.
"""

from __future__ import annotations

import importlib
import pkgutil
from functools import cache

from caal_node.reply_parser.format import Format


@cache
def formats() -> tuple[Format, ...]:
    """All dialects, in the order of their files' names.

    Raises:
        ValueError: two of them claim the same opener.
    """
    found: list[Format] = []
    for module in sorted(pkgutil.iter_modules(__path__), key=lambda m: m.name):
        found.extend(importlib.import_module(f"{__name__}.{module.name}").FORMATS)
    owners: dict[str, str] = {}
    for dialect in found:
        for opener in dialect.openers:
            if owners.setdefault(opener, dialect.name) != dialect.name:
                raise ValueError(f"{opener!r} opens both {owners[opener]!r} and {dialect.name!r}")
    return tuple(found)
