"""`caal-node init`: the files that an agent of one's own begins with."""

from __future__ import annotations

import os
from importlib.util import find_spec
from pathlib import Path
from typing import Final

import caal_node
from caal_node.core.errors import ConfigError

_PACKAGE: Final = Path(caal_node.__file__).parent
# In a wheel the folder lies inside the package; in a checkout the files are beside it.
_EXAMPLES: Final = next(
    folder
    for folder in (_PACKAGE / "examples", _PACKAGE.parent)
    if (folder / ".env.example").exists()
)
_WRITTEN: Final = {".env": ".env.example", "mcp_servers.json.example": "mcp_servers.json.example"}
"""What is written, by what it is made of."""
_SCHEMA: Final = "./mcp_bridge/mcp_servers.schema.json"
"""As a checkout has it."""
_OWNER_ONLY: Final = 0o600
"""These files will hold keys."""
_NEXT: Final = """Next:
  settings         .env (each default is a comment; remove the # to change one)
  MCP servers      copy what you need of mcp_servers.json.example to mcp_servers.json,
                   or what other programs here use: caal-node mcp import
  check it         caal-node doctor
  talk to it       caal-node chat"""


def write_examples(folder: Path) -> None:
    """Write the files into `folder`, which is made if need be, and say what to do next.

    A file that is there stays as it is.

    Raises:
        ConfigError: The folder cannot be written.
    """
    try:
        folder.mkdir(parents=True, exist_ok=True)
        for name, source in _WRITTEN.items():
            text = (_EXAMPLES / source).read_text(encoding="utf-8")
            print(_write(folder / name, text.replace(_SCHEMA, _schema())))
    except OSError as error:
        raise ConfigError(
            f"{folder}: {error.strerror}; name a folder that you may write"
        ) from error
    print(_NEXT)


def _schema() -> str:
    """Return where this installation has the schema of the servers' file, for editors."""
    package = find_spec("mcp_bridge")  # importing it takes a second
    if package is None or package.origin is None:
        return _SCHEMA
    return Path(package.origin).with_name(Path(_SCHEMA).name).as_uri()


def _write(path: Path, text: str) -> str:
    try:
        handle = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, _OWNER_ONLY)
    except FileExistsError:
        return f"{path} exists already; not changed"
    with os.fdopen(handle, "w", encoding="utf-8") as file:
        file.write(text)
    return f"{path} written"
