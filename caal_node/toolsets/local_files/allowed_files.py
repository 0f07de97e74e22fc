"""Reads and makes files in the folders that the owner names, and nothing beside them.

A link is followed first, and what it leads to is judged. The file is then opened along the judged
path, folder by folder and without following anything, so that a link which is put there meanwhile
leads nowhere. What lies outside is refused in the same words whether it exists or not. Hidden
files and folders, whose names begin with a full stop, are as good as outside: that is where keys
and programs' own files are kept.
"""

from __future__ import annotations

import asyncio
import errno
import importlib.util
import json
import os
import re
import stat
from collections.abc import Generator, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any, BinaryIO, Final, TypeAlias

from pydantic import BeforeValidator

from caal_node.core.errors import ConfigError, InvalidArguments, ToolRefused
from caal_node.models.child_process import AT_ONCE_BYTES, TooMuchSaid, answer_of
from caal_node.policy.heard_words import stem
from caal_node.toolsets.base import OptionPath
from caal_node.toolsets.local_files.file_text import (
    MAX_FILE_BYTES,
    MAX_TEXT_BYTES,
    PASSAGES,
    PDF,
    NoText,
    Passage,
    answer,
    spoken_title,
    too_large,
)
from mcp_bridge.core.files import open_regular

# The folders and what is in them.

MAX_ENTRIES: Final = 20_000
"""Files and folders that are looked at in one walk: a large household's, in half a second."""
MAX_DEPTH: Final = 24
_ONE_BY_ONE: Final = os.open in os.supports_dir_fd and hasattr(os, "O_NOFOLLOW")
"""Whether the system can open a file from an open folder; Windows cannot."""
_FOLDER_FLAGS: Final = os.O_RDONLY | getattr(os, "O_DIRECTORY", 0) | getattr(os, "O_NOFOLLOW", 0)
_FILE_FLAGS: Final = (
    os.O_RDONLY
    | getattr(os, "O_NOFOLLOW", 0)
    | getattr(os, "O_NONBLOCK", 0)  # a FIFO would wait for its other end
    | getattr(os, "O_NOCTTY", 0)
)
_NEW_FILE_FLAGS: Final = os.O_WRONLY | os.O_CREAT | os.O_EXCL | getattr(os, "O_NOFOLLOW", 0)


@dataclass(frozen=True, slots=True)
class AllowedPath:
    """A file or folder that may be read. Only `AllowedFolders` makes one."""

    shown: str
    """How it is called: the folder's name and the way from there, `recipes/cakes/apple.md`."""
    real: Path
    """Where it is, without any link on the way."""
    root: Path
    """The owner's folder in which it is, without any link on the way."""
    size: int
    """Bytes."""
    changed_ns: int
    """The time of its last change, in nanoseconds since 1970."""
    is_folder: bool = False

    @property
    def name(self) -> str:
        return self.shown.rpartition("/")[2]

    def open(self) -> BinaryIO:
        """Open the file to be read, along the path that was judged.

        Raises:
            OSError: It is gone, it is no regular file, or its path has become another one.
        """
        if not _ONE_BY_ONE:
            return open_regular(self.real)
        *folders, last = self.real.relative_to(self.root).parts
        with _opened(self.root, folders) as handle:
            file = os.open(last, _FILE_FLAGS, dir_fd=handle)
        if not stat.S_ISREG(os.fstat(file).st_mode):
            os.close(file)
            raise OSError(errno.EINVAL, "it is no file that can be read", self.shown)
        return os.fdopen(file, "rb")

    def create(self, name: str) -> BinaryIO:
        """Make a file in the folder that its owner alone may read, along the judged path.

        Raises:
            FileExistsError: There is something of that name already.
            OSError: The folder is gone or cannot be written, or its path has become another one.
        """
        if not _ONE_BY_ONE:
            return (self.real / name).open("xb")
        with _opened(self.root, self.real.relative_to(self.root).parts) as handle:
            return os.fdopen(os.open(name, _NEW_FILE_FLAGS, 0o600, dir_fd=handle), "wb")


@contextmanager
def _opened(root: Path, folders: Sequence[str]) -> Generator[int]:
    """Give a handle of the last folder, opened one by one, and close it."""
    handle = os.open(root, os.O_RDONLY | getattr(os, "O_DIRECTORY", 0))
    try:
        for folder in folders:
            inner = os.open(folder, _FOLDER_FLAGS, dir_fd=handle)
            os.close(handle)
            handle = inner
        yield handle
    finally:
        os.close(handle)


class AllowedFolders:
    """The folders of one toolset. Every method blocks, so it belongs in a thread."""

    def __init__(self, folders: Sequence[Path]) -> None:
        self._folders: Final = dict(zip(_names(folders), folders, strict=True))

    @property
    def names(self) -> tuple[str, ...]:
        """What the folders are called: by their last part, and where two share it by two parts."""
        return tuple(self._folders)

    @property
    def missing(self) -> tuple[Path, ...]:
        """The folders that are not there, or are no folders."""
        return tuple(path for path in self._folders.values() if not path.is_dir())

    def at(self, path: str) -> AllowedPath | None:
        """Return what is at `path`, which is absolute, begins with a folder's name, or starts in a
        folder. None: nothing is there.

        Raises:
            ToolRefused: It leads out of the folders, or to something hidden.
        """
        given = Path(path)
        if given.is_absolute():
            tried = [(self._shown(given), given)]
        else:
            tried = [
                (f"{name}/{given.as_posix()}", at / given) for name, at in self._folders.items()
            ]
            first, *rest = given.parts or ("",)
            named = [name for name in self._folders if name.casefold() == first.casefold()]
            inner = [
                ("/".join((name, *rest)), self._folders[name].joinpath(*rest)) for name in named
            ]
            tried = [*inner, *tried]
        judged = [(shown, self._judge(candidate)) for shown, candidate in tried]
        for shown, found in judged:
            if found is not None and (entry := _entry(shown, *found)) is not None:
                return entry
        if any(found is None for _, found in judged):
            raise ToolRefused("This is not in the folders that may be read.")
        return None

    def inside(self, folder: AllowedPath) -> Iterator[AllowedPath]:
        """Yield what a folder holds and may be shown, by name. Raises OSError if it is gone."""
        with os.scandir(folder.real) as entries:
            names = sorted(entry.name for entry in entries if not entry.name.startswith("."))
        for name in names:
            found = self._judge(folder.real / name)
            entry = found and _entry(f"{folder.shown}/{name}", *found)
            if entry:
                yield entry

    def roots(self) -> list[AllowedPath]:
        """Return the folders themselves, those that are there."""
        found = [(name, Path(os.path.realpath(path))) for name, path in self._folders.items()]
        entries = [_entry(name, real, real) for name, real in found]
        return [entry for entry in entries if entry is not None and entry.is_folder]

    def walk(self) -> Iterator[AllowedPath]:
        """Yield every file, each once, and every folder, in the folders and below."""
        waiting = [(root, 0) for root in reversed(self.roots())]
        seen: set[Path] = set()
        left = MAX_ENTRIES
        while waiting and left:
            folder, depth = waiting.pop()
            if folder.real in seen:
                continue  # two links, or a ring of them
            seen.add(folder.real)
            yield folder
            inner: list[tuple[AllowedPath, int]] = []
            try:
                for entry in self.inside(folder):
                    if (left := left - 1) <= 0:
                        return
                    if entry.is_folder:
                        inner.append((entry, depth + 1))
                    elif entry.real not in seen:
                        seen.add(entry.real)
                        yield entry
            except OSError:  # it went meanwhile, or may not be read
                continue
            if depth < MAX_DEPTH:
                waiting += reversed(inner)

    def _judge(self, path: Path) -> tuple[Path, Path] | None:
        """Return the real path and the folder that it is in; None if it is in none."""
        try:
            real = Path(os.path.realpath(path))
        except (OSError, ValueError):  # a NUL, or a name that no system has
            return None
        homes = [Path(os.path.realpath(folder)) for folder in self._folders.values()]
        for home in sorted(homes, key=lambda each: -len(each.parts)):
            if real.is_relative_to(home):
                hidden = any(part.startswith(".") for part in real.relative_to(home).parts)
                return None if hidden else (real, home)
        return None

    def _shown(self, path: Path) -> str:
        for name, folder in self._folders.items():
            if path.is_relative_to(folder):
                return "/".join((name, *path.relative_to(folder).parts))
        return path.name


def _entry(shown: str, real: Path, root: Path) -> AllowedPath | None:
    try:
        facts = real.lstat()  # it has no link any more; one that has come since is none of ours
    except (OSError, ValueError):
        return None
    is_folder = stat.S_ISDIR(facts.st_mode)
    if not (is_folder or stat.S_ISREG(facts.st_mode)):
        return None
    shown = shown.removesuffix("/.").rstrip("/")
    return AllowedPath(shown, real, root, facts.st_size, facts.st_mtime_ns, is_folder)


def _names(folders: Sequence[Path]) -> list[str]:
    whole = [Path(os.path.abspath(folder)) for folder in folders]  # noqa: PTH100 - keeps links
    last = [each.name or "folder" for each in whole]
    names: list[str] = []
    for path, name in zip(whole, last, strict=True):
        wanted = name if last.count(name) == 1 else f"{path.parent.name} {name}".strip()
        number = 2
        while wanted in names:
            wanted, number = f"{name} {number}", number + 1
        names.append(wanted)
    return names


# Finds a file or a folder by what a person calls it: "the pancake recipe", "recipes/pancakes.md".
#
# A path is taken as it is. Else the words are compared with the names of all files in the allowed
# folders, without endings and marks.

MAX_CHARS: Final = 1_000
"""Characters of what a file is called."""
MAX_NAMED: Final = 8
"""Names that a message for the model lists."""
_WORD: Final = re.compile(r"[^\W_]+")
_SMALL: Final = frozenset(
    """a about an called document file folder for from in list md my named note of on open our pdf
    please read show text that the this to txt what which with your""".split()  # noqa: SIM905 - a list of words reads better as words
)


def find_path(folders: AllowedFolders, said: str, *, folder: bool) -> AllowedPath:
    """Return the one file, or folder, that a person means. It reads the disk.

    Raises:
        InvalidArguments: There is none, or there are several; the message names those.
        ToolRefused: It is outside of the allowed folders.
    """
    path = said.strip().strip("\"'`")
    kind = "folder" if folder else "file"
    if not path or len(path) > MAX_CHARS or "\0" in path:
        raise InvalidArguments(f"Say which {kind}.")
    found = folders.at(path)
    if found is not None and found.is_folder is folder:
        return found
    named = _named(path, [each for each in folders.walk() if each.is_folder is folder])
    if len(named) == 1:
        return named[0]
    if not named:
        raise InvalidArguments(f"There is no {kind} {path!r}; list_directory shows what there is.")
    names = ", ".join(each.shown for each in named[:MAX_NAMED])
    raise InvalidArguments(f"Several {kind}s may be meant; ask which, or take one of: {names}.")


def _named(said: str, paths: Sequence[AllowedPath]) -> list[AllowedPath]:
    """Return the paths that the words fit: those called just so, else those that have them all, and
    one of them in the name itself."""
    wanted = _words(said)
    own = [(each, _words(spoken_title(each.name))) for each in paths]
    just_so = [each for each, words in own if words == wanted]
    some = [each for each, words in own if words & wanted and wanted <= _words(each.shown)]
    return (just_so or some) if wanted else []


def _words(text: str) -> frozenset[str]:
    found = _WORD.findall(text.casefold())
    return frozenset(stem(word) for word in found if word not in _SMALL)


# The option of a toolset that takes folders: a list, or a line with commas as it is typed.


def _parts(value: Any) -> Any:
    if isinstance(value, str):
        return [part.strip() for part in value.split(",") if part.strip()]
    return value


Folders: TypeAlias = Annotated[tuple[OptionPath, ...], BeforeValidator(_parts)]


# Reads one allowed file, whichever kind it is: a short text here, all else in a child process.

READ_S: Final = 60.0
"""Seconds for one file: a PDF of 300 pages takes ten on a slow core."""
MAX_OUTPUT_BYTES: Final = 8 << 20
_CHILD: Final = "caal_node.toolsets.local_files.file_text"


@dataclass(frozen=True, slots=True)
class DocumentPassages:
    """What a document is called, and all that it says."""

    title: str
    passages: tuple[Passage, ...]


@dataclass(frozen=True, slots=True)
class FilePart:
    """A part of a file's text; "" where it has fewer parts."""

    text: str
    parts: int


def require_pypdf() -> None:
    """Say whether PDFs can be read. It looks on the disk.

    Raises:
        ConfigError: The library is missing.
    """
    if importlib.util.find_spec("pypdf") is None:
        raise ConfigError('to read PDFs, run: pip install "caal-node[documents]".')


async def read_passages(file: AllowedPath) -> DocumentPassages:
    """Read a text, Markdown or PDF file, cut into passages.

    Raises:
        NoText: It has no text that could be read.
        OSError: It is gone, or may not be read.
    """
    title, *rows = await _read(file, PASSAGES)
    return DocumentPassages(str(title), tuple(Passage(str(row[0]), str(row[1])) for row in rows))


async def read_part(file: AllowedPath, number: int) -> FilePart:
    """Read the part of such a file that has this number, from 1. It raises the same."""
    text, parts = await _read(file, str(min(max(number, 0), MAX_TEXT_BYTES)))
    return FilePart(str(text), int(parts))


async def _read(file: AllowedPath, wanted: str) -> list[Any]:
    is_pdf = file.name.lower().endswith(PDF)
    most = MAX_FILE_BYTES if is_pdf else MAX_TEXT_BYTES
    if file.size > most:
        raise too_large(most)
    handle = await asyncio.to_thread(file.open)
    try:
        if not is_pdf and file.size <= AT_ONCE_BYTES:
            return await asyncio.to_thread(_here, handle, file, wanted)
        output = await answer_of(
            _CHILD, (file.name, wanted), handle, deadline_s=READ_S, max_bytes=MAX_OUTPUT_BYTES
        )
    except TimeoutError:
        raise NoText(f"it takes longer than {READ_S:.0f} s to read") from None
    except TooMuchSaid:
        raise NoText("it has too much text") from None
    finally:
        await asyncio.to_thread(handle.close)
    return await asyncio.to_thread(_parsed, output)


def _here(handle: BinaryIO, file: AllowedPath, wanted: str) -> list[Any]:
    return list(answer(handle.read(AT_ONCE_BYTES), file.name, wanted))


def _parsed(output: bytes) -> list[Any]:
    # Line by line, as one step of C for all of it would hold the event loop.
    try:
        lines: list[Any] = [json.loads(line) for line in output.splitlines()]
    except ValueError:
        lines = []
    match lines:
        case []:
            raise NoText("it is damaged, or too large to read")
        case [{"fault": why}, *_]:
            raise NoText(str(why))
        case _:
            return lines
