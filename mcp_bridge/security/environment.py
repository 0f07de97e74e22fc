"""Environment variables that make another program run other code than its own.

What a server inherits from this process is a short list (HOME, LOGNAME, PATH, SHELL, TERM, USER;
on Windows the system's own), so none of these comes from the host with another value than the
user's own. They could come from the configuration, where they would run code beside a command
that looks harmless.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import Final

from mcp_bridge.security.environment_table import HARMLESS, LOADERS

_LOADER: Final = re.compile(
    "|".join(re.escape(name).replace(r"\*", ".*") for name in LOADERS), re.DOTALL
)


def loads_code(names: Iterable[str]) -> list[str]:
    """Those of `names` that a server may not be given. Case does not count: npm's are read so."""
    return [
        name
        for name in names
        if name.upper() not in HARMLESS and _LOADER.fullmatch(name.upper()) is not None
    ]
