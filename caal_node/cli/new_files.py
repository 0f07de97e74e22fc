"""The files that one begins with: `caal-node init` writes an agent's, `tools new` a toolset's."""

from __future__ import annotations

import os
import re
from importlib.util import find_spec
from pathlib import Path
from typing import Final

import caal_node
from caal_node import __version__
from caal_node.core.errors import ConfigError

# `caal-node init`: the files that an agent of one's own begins with.

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


# `caal-node tools new`: a package with a toolset that works, to be changed into one's own.

_NAME: Final = re.compile(r"[a-z][a-z0-9]*(_[a-z0-9]+)*")

PROJECT: Final = """\
[build-system]
requires = ["hatchling"]
build-backend = "hatchling.build"

[project]
name = "@dashed@"
version = "0.1.0"
description = "@Class@: tools for caal-node."
requires-python = ">=3.11"
dependencies = ["caal-node>=@version@"]

[project.optional-dependencies]
test = ["pytest>=8", "pytest-asyncio>=0.24"]

[tool.pytest.ini_options]
asyncio_default_fixture_loop_scope = "function"

[project.entry-points."caal_node.tools"]
@name@ = "@name@:@Class@"

[tool.hatch.build.targets.wheel]
only-include = ["@name@.py"]
"""
MODULE: Final = '''\
"""@Class@: says where things are kept, from a plain text file such as `drill: in the attic`."""

from __future__ import annotations

import asyncio
from pathlib import Path

from caal_node.core.errors import ToolUnavailable
from caal_node.tools.source import VerbatimResult
from caal_node.toolsets.base import ConfiguredToolset, OptionPath, ToolsetOptions, tool
from pydantic import Field


class @Class@Options(ToolsetOptions):
    """The keys of `[toolsets.@name@]` in caal.toml. Each description is asked by `tools add`."""

    file: OptionPath = Field(default=Path("things.txt"), description="The file of your things")


class @Class@(ConfiguredToolset):
    NAME = "@name@"
    SUMMARY = "Says where things are kept."
    Options = @Class@Options

    async def check(self) -> str:
        """Try what the options name; `tools add` and `doctor` print the sentence."""
        return f"things in {self.options.file}: {len(await self._things())}"

    # "read", "write" or "destructive": what a call may do at worst, for the owner's policy.
    @tool("read")
    async def find_thing(self, name: str) -> VerbatimResult | dict[str, str]:
        """Say where a thing is kept at home.

        Example: where is the drill -> {"name": "drill"}

        Args:
            name: The thing, in one or two words.
        """
        things = await self._things()
        place = things.get(name.casefold())
        if place is None:
            return {"found": "nothing", "known": ", ".join(sorted(things))}  # the model says it
        return VerbatimResult({"thing": name, "place": place}, f"The {name} is {place}.")

    async def _things(self) -> dict[str, str]:
        # In a thread, as a disk may be slow, and all rooms of the process would wait for it.
        try:
            text = await asyncio.to_thread(self.options.file.read_text, encoding="utf-8")
        except OSError as error:
            failure = ToolUnavailable(f"{self.options.file}: {error.strerror}.")
            failure.words = "I can't read the list of your things."
            raise failure from error
        pairs = (line.partition(":")[::2] for line in text.splitlines() if ":" in line)
        return {name.strip().casefold(): place.strip() for name, place in pairs}
'''
TEST: Final = '''\
"""Run with: python -m pytest"""

from pathlib import Path

import pytest
from caal_node import CaalAgent
from caal_node.core.errors import ToolUnavailable
from caal_node.testing import AgentConversation, ScriptedCall, ScriptedModel, plain_settings

from @name@ import @Class@, @Class@Options


@pytest.fixture
def toolset(tmp_path: Path) -> @Class@:
    (tmp_path / "things.txt").write_text("drill: in the attic\\n")
    return @Class@(@Class@Options(file=tmp_path / "things.txt"))


@pytest.mark.asyncio
async def test_it_says_where_a_thing_is(toolset: @Class@) -> None:
    result = await toolset.find_thing(name="Drill")
    assert result.words == "The Drill is in the attic."


@pytest.mark.asyncio
async def test_a_thing_that_nobody_knows_is_told_as_that(toolset: @Class@) -> None:
    assert (await toolset.find_thing(name="saw"))["found"] == "nothing"


@pytest.mark.asyncio
async def test_a_file_that_is_gone_is_said(toolset: @Class@) -> None:
    toolset.options.file.unlink()
    with pytest.raises(ToolUnavailable):
        await toolset.find_thing(name="drill")


@pytest.mark.asyncio
async def test_an_agent_that_has_it_says_the_answer(toolset: @Class@) -> None:
    model = ScriptedModel([ScriptedCall("find_thing", {"name": "drill"})])
    agent = CaalAgent(instructions="", settings=plain_settings(), tiers={}, tools=[toolset])
    async with AgentConversation(agent, model) as conversation:
        turn = await conversation.say("where is the drill")
    assert turn.text == "The drill is in the attic."
'''
THINGS: Final = "drill: in the attic\n"
NEXT: Final = """Next, in {folder}:
  install it       pip install -e '.[test]'
  try its test     python -m pytest
  turn it on       caal-node tools add {name}
  talk to it       caal-node chat"""


def write_toolset(name: str, folder: Path) -> None:
    """Write the package into `folder`, and say what to do next.

    Raises:
        ConfigError: the name cannot be a module's, or the folder has such files already.
    """
    if not _NAME.fullmatch(name):
        raise ConfigError(f"{name}: write small letters, digits and _, such as book_shelf")
    words = {
        "name": name,
        "dashed": name.replace("_", "-"),
        "Class": "".join(part.capitalize() for part in name.split("_")),
        "version": __version__,
    }
    files = {"pyproject.toml": PROJECT, f"{name}.py": MODULE, f"test_{name}.py": TEST}
    files["things.txt"] = THINGS  # so that it can be turned on and asked at once
    try:
        folder.mkdir(parents=True, exist_ok=True)
        for file in files:
            if (folder / file).exists():
                raise ConfigError(f"{folder / file} exists already; name another folder")
        for file, text in files.items():
            filled = re.sub(r"@(\w+)@", lambda match: words[match[1]], text)
            (folder / file).write_text(filled, encoding="utf-8")
            print(f"{folder / file} written")
    except OSError as error:
        raise ConfigError(f"{folder}: {error.strerror}; name one that you may write") from error
    print(NEXT.format(folder=folder, name=name))
