"""The line of somebody's own code that an exception came from, for a message of one line."""

from __future__ import annotations

import sysconfig
import traceback
from pathlib import Path
from typing import Final

_PACKAGE: Final = Path(__file__).parents[1]
_OTHERS: Final = (
    *(_PACKAGE.parent / name for name in ("caal_node", "mcp_bridge", "n8n")),
    *(Path(sysconfig.get_path(name)) for name in ("stdlib", "purelib", "platlib")),
)
"""Where no owner writes: our packages, Python's library and what is installed."""


def failing_line(error: BaseException) -> str:
    """Return `agent.py, line 41`, the innermost line outside of libraries; "" where there is none.

    A file below the working directory is named from there, another one by its whole path.
    """
    for frame in reversed(traceback.extract_tb(error.__traceback__)):
        file = Path(frame.filename)
        if file.is_file() and not any(map(file.is_relative_to, _OTHERS)):
            here = Path.cwd()
            shown = file.relative_to(here) if file.is_relative_to(here) else file
            return f"{shown}, line {frame.lineno}"
    return ""
