"""The toolset `files`: lists, reads and makes files, in the owner's folders and nowhere else."""

from __future__ import annotations

import asyncio
import re
from collections.abc import Sequence
from datetime import datetime
from itertools import islice
from typing import Any, ClassVar, Final

from livekit.agents.llm import Tool, Toolset
from pydantic import Field

from caal_node.core.counted import counted
from caal_node.core.errors import ConfigError, InvalidArguments, ToolBroke
from caal_node.toolsets.base import ConfiguredToolset, ToolsetOptions, ToolsetServices, tool
from caal_node.toolsets.local_files.allowed_files import (
    AllowedFolders,
    AllowedPath,
    Folders,
    find_path,
    read_part,
)
from caal_node.toolsets.local_files.file_text import NoText

LISTED: Final = 50
"""Entries that are listed of one folder."""
_KB: Final = 1_000
_NAME_CHARS: Final = 80
_NO_NAME: Final = re.compile(r"[^\w .,()&'-]")
"""What the name of a file cannot have on some system, or would have to be quoted for."""


class FilesOptions(ToolsetOptions):
    folders: Folders = Field(
        min_length=1,
        max_length=32,
        description="The folders whose files may be read, separated by commas",
    )
    new_files: bool = Field(
        default=False, description="May new text files be made in them? Each asks for a yes"
    )


class Files(ConfiguredToolset):
    """See docs/toolsets.md."""

    NAME: ClassVar[str] = "files"
    SUMMARY: ClassVar[str] = "Lists and reads files in folders that you name, and nowhere else."
    Options = FilesOptions

    def __init__(
        self, options: FilesOptions | None = None, services: ToolsetServices | None = None
    ) -> None:
        super().__init__(options, services)
        self._folders: Final = AllowedFolders(self.options.folders)

    @property
    def tools(self) -> Sequence[Tool | Toolset]:
        """The tools, without `create_file` where the owner wants no new files."""
        given = super().tools
        return given if self.options.new_files else [t for t in given if t.id != "create_file"]

    async def check(self) -> str:
        """See `ConfiguredToolset.check`."""
        if missing := await asyncio.to_thread(lambda: self._folders.missing):
            raise ConfigError(f"{missing[0]}: there is no such folder; make it, or correct it.")
        files = await asyncio.to_thread(self._count)
        return f"{counted(files, 'file')} in {', '.join(self._folders.names)}"

    @tool("read")
    async def list_directory(self, folder: str = "") -> Any:
        """List the files and folders in a folder of this computer.

        Args:
            folder: its name; empty for all folders there are
        Example: which files are in the recipes folder -> {"folder": "recipes"}
        Example: what folders can you read -> {"folder": ""}
        """
        try:
            return await asyncio.to_thread(self._listing, folder)
        except OSError as error:
            raise ToolBroke("The folder cannot be read.") from error

    @tool("read")
    async def read_file(self, file: str, part: int = 1) -> Any:
        """Read what a file on this computer says.

        Args:
            file: its name or path
            part: 2 goes on where part 1 ends
        Example: read the pancake recipe -> {"file": "pancake recipe"}
        Example: open todo.txt -> {"file": "todo.txt"}
        """
        found = await asyncio.to_thread(lambda: find_path(self._folders, file, folder=False))
        try:
            read = await read_part(found, part)
        except (NoText, OSError) as error:
            why = str(error) if isinstance(error, NoText) else "it cannot be opened"
            raise ToolBroke(f"{found.shown} cannot be read: {why}.") from error
        if not 1 <= part <= read.parts:
            raise InvalidArguments(f"{found.shown} has {read.parts} part{'s' * (read.parts > 1)}.")
        shown: dict[str, Any] = {"file": found.shown, "text": read.text}
        if read.parts > 1:
            shown |= {"part": part, "parts": read.parts}
        return shown

    # Nothing is overwritten; it needs a yes all the same, as what destroys does.
    @tool("destructive")
    async def create_file(self, name: str, text: str, folder: str = "") -> Any:
        """Make a new text file on this computer.

        Args:
            name: what it is called
            text: what stands in it
            folder: where it is made; empty where there is one folder only
        Example: write a file ideas that says buy a boat -> {"name": "ideas", "text": "Buy a boat."}
        """
        file = _file_name(name)
        place = await asyncio.to_thread(self._place, folder)
        try:
            await asyncio.to_thread(_write_new, place, file, text)
        except FileExistsError:
            raise InvalidArguments(
                f"There is a file {file!r} already; nothing is overwritten. Take another name."
            ) from None
        except OSError as error:
            raise ToolBroke("The file cannot be made there.") from error
        return {"file": f"{place.shown}/{file}", "size": spoken_size(len(text.encode()))}

    def _place(self, folder: str) -> AllowedPath:
        if folder.strip():
            return find_path(self._folders, folder, folder=True)
        roots = self._folders.roots()
        if len(roots) != 1:
            names = ", ".join(root.shown for root in roots)
            raise InvalidArguments(f"folder: say in which: {names}.")
        return roots[0]

    def _listing(self, folder: str) -> Any:
        if not folder.strip():
            roots = self._folders.roots()
            if len(roots) != 1:
                return {"folders": [root.shown for root in roots]}
            place = roots[0]
        else:
            place = find_path(self._folders, folder, folder=True)
        inside = iter(self._folders.inside(place))
        rows = [self._row(each) for each in islice(inside, LISTED)]
        more = sum(1 for _ in inside)
        return {"folder": place.shown, "entries": rows} | ({"left_out": more} if more else {})

    def _row(self, path: AllowedPath) -> dict[str, str]:
        if path.is_folder:
            return {"name": path.name, "kind": "folder"}
        day = datetime.fromtimestamp(path.changed_ns / 1e9, self.services.timezone).date()
        return {
            "name": path.name,
            "kind": "file",
            "size": spoken_size(path.size),
            "changed": day.isoformat(),
        }

    def _count(self) -> int:
        return sum(1 for each in self._folders.walk() if not each.is_folder)


def _file_name(said: str) -> str:
    """Return the name of a text file: the words that were said, with an ending.

    Raises:
        InvalidArguments: it is empty, hidden, too long, or leads into another folder.
    """
    name = " ".join(said.split())
    if not name or name.startswith(".") or _NO_NAME.search(name) or len(name) > _NAME_CHARS:
        raise InvalidArguments(
            f"name: write up to {_NAME_CHARS} letters, numbers, blanks, dots and dashes."
        )
    return name if name.endswith((".txt", ".md")) else f"{name}.txt"


def _write_new(place: AllowedPath, name: str, text: str) -> None:
    with place.create(name) as file:
        file.write(text.encode("utf-8", "replace"))


def spoken_size(size: int) -> str:
    """Write a number of bytes as people say it: `800 bytes`, `12 kB`, `3.4 MB`."""
    if size < _KB:
        return f"{size} bytes"
    if size < _KB**2:
        return f"{round(size / _KB)} kB"
    return f"{size / _KB**2:.1f} MB" if size < _KB**3 else f"{size / _KB**3:.1f} GB"
