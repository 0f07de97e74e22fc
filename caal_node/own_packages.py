"""Makes sure that `mcp_bridge` and `n8n` are the packages of this distribution.

Other distributions install packages of these names too. So a wheel keeps ours in a folder of its
own, and nothing else of the environment finds them there: nobody overwrites anybody's files. A
process that imports caal_node gets ours under these names from then on, and is told what it cannot
import beside it.
"""

from __future__ import annotations

import importlib
import logging
import sys
from importlib.util import find_spec
from pathlib import Path
from typing import Final

logger = logging.getLogger("caal_node")

NAMES: Final = ("mcp_bridge", "n8n")
_HERE: Final = Path(__file__).resolve().parent
FOLDER: Final = next(
    folder for folder in (_HERE / "packages", _HERE.parent) if (folder / NAMES[0]).is_dir()
)
"""Where ours are: within the package in a wheel, beside it in a checkout."""


def claim_names() -> None:
    """Import ours under their names, where another package would be found first.

    Raises:
        ImportError: another one was imported before.
    """
    for name in NAMES:
        if (found := _place(name)) == FOLDER / name:
            continue
        if name in sys.modules:
            raise ImportError(
                f"caal_node has a package of its own under the name {name}, and {found} was "
                "imported before it; import caal_node first, or use that one in another process"
            )
        sys.path.insert(0, str(FOLDER))
        try:
            importlib.import_module(name)
        finally:
            sys.path.remove(str(FOLDER))
        if found is not None:
            logger.warning("%s is caal_node's here; %s is for other processes", name, found)


def bridge_command() -> None:
    """Be the command `mcp-bridge`, with our package of that name."""
    from mcp_bridge.serve.cli import main

    main()


def _place(name: str) -> Path | None:
    """The folder of the package that `import` gives under this name."""
    spec = find_spec(name)
    if spec is None or spec.origin is None:
        return None
    return Path(spec.origin).resolve().parent
