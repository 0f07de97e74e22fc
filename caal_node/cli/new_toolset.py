"""`caal-node tools new`: a package with a toolset that works, to be changed into one's own."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Final

from caal_node.core.errors import ConfigError
from caal_node.version import __version__

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
