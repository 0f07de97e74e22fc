"""The formats in which models write tool calls, one file for each way of writing them.

Every module in this folder is loaded, and the `CallFormat` objects in its `FORMATS` are known from
then on: adding a format means adding a file. No two formats may share an opener. `inkling.py` is a
short example of a format with a reader of its own; those in `blocks.py` need only their markers.
"""

from __future__ import annotations

import importlib
import pkgutil
from typing import Final

from caal_node.reply_parser.markers import MarkerTable
from caal_node.reply_parser.parse_context import CallFormat


def _load() -> tuple[CallFormat, ...]:
    """Return all formats, in the order of their files' names.

    Raises:
        ValueError: two of them claim the same opener.
    """
    found: list[CallFormat] = []
    for module in sorted(pkgutil.iter_modules(__path__), key=lambda m: m.name):
        found.extend(importlib.import_module(f"{__name__}.{module.name}").FORMATS)
    owners: dict[str, str] = {}
    for each in found:
        for opener in each.openers:
            if owners.setdefault(opener, each.name) != each.name:
                raise ValueError(f"{opener!r} opens both {owners[opener]!r} and {each.name!r}")
    return tuple(found)


FORMATS: Final = _load()
FORMAT_BY_OPENER: Final[dict[str, CallFormat]] = {
    opener: each for each in FORMATS if not each.at_line for opener in each.openers
}
"""The format of every opener that counts wherever it stands."""
FORMAT_BY_LINE_OPENER: Final[dict[str, CallFormat]] = {
    opener: each for each in FORMATS if each.at_line for opener in each.openers
}
"""The format of every opener that counts at the beginning of a line only."""
MARKERS: Final = MarkerTable(
    openers=frozenset(FORMAT_BY_OPENER),
    tentative=frozenset(opener for opener, each in FORMAT_BY_OPENER.items() if each.tentative),
    turn_openers=frozenset(opener for opener, each in FORMAT_BY_OPENER.items() if each.turn),
    strays=frozenset(
        marker
        for each in FORMATS
        for marker in (*each.strays, *(() if each.tentative else each.closers))
    ),
)
"""The markers of all formats. It is made at import, as compiling its patterns takes longer than a
running session may stand still."""
