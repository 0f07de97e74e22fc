"""`caal-node chat` on a real terminal: keys typed, the screen read."""

from __future__ import annotations

import json
import os
import re
import stat
import sys
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest

from tests.stand_ins.stand_in_model import Asked, Call, Hang, Refuse, Reply, StandInModel
from tests.stand_ins.terminal import COLUMNS, CTRL_C, CTRL_D, LEFT, TAB, UP, Terminal

AGENT = """
import asyncio
from livekit.agents import function_tool
from caal_node import CaalAgent

class Kitchen(CaalAgent):
    @function_tool
    async def set_timer(self, minutes: float) -> str:
        '''Start a timer.'''
        return "started"

    @function_tool
    async def take_long(self) -> str:
        '''Take very long.'''
        await asyncio.sleep(3600)
        return "done"
"""
COLOUR = re.compile(rb"\x1b\[(?:[0-9;]*;)?(?:3[0-9]|9[0-7])(?:;[0-9;]*)?m")


def answer(asked: Asked) -> Reply:
    """Do what the last words ask for."""
    last = asked.json["messages"][-1]
    said = last["content"]
    if last["role"] == "tool":
        return ["The tool is done."]
    if "hang" in said:
        return ["Well, ", Hang()]
    if "slowly" in said:
        return ["The first sentence is here. ", "The second one is. ", "And the ", Hang()]
    if "fail" in said:
        return [Refuse(500, "out of memory")]
    if "long" in said:
        return [Call("take_long")]
    if "timer" in said:
        return [Call("set_timer", {"minutes": 5})]
    if "hello" in said:
        return [f"You said {said}."]
    return [Call("set_timer", {"minutes": 1})]  # the sample request of the first session


@pytest.fixture
async def model() -> AsyncIterator[StandInModel]:
    async with StandInModel(answer=answer) as server:
        yield server


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "my_agent.py").write_text(AGENT, encoding="utf-8")
    return tmp_path


def chat(
    model: StandInModel, folder: Path, *args: str, columns: int = COLUMNS, **env: str
) -> Terminal:
    given = {"OLLAMA_HOST": model.url, "CAAL_MODEL": model.model, "CAAL_AGENT": "my_agent:Kitchen"}
    return Terminal(["chat", *args], folder=folder, columns=columns, **given | env)


async def test_a_line_is_edited_and_comes_back_with_the_history(
    model: StandInModel, folder: Path
) -> None:
    with chat(model, folder) as terminal:
        await terminal.shows("2 tools")
        await terminal.asks()
        terminal.types("hello therX" + LEFT)
        await terminal.asks("hello therX")
        terminal.types("e\x1b[3~\r")  # Delete takes the X away
        await terminal.shows("You said hello there.")
        await terminal.asks()
        terminal.types(CTRL_D)
        assert await terminal.exit_code() == 0
    kept = folder / "chat-history"
    assert stat.S_IMODE(kept.stat().st_mode) == 0o600
    with chat(model, folder) as terminal:
        await terminal.asks()
        terminal.types(UP)
        await terminal.asks("hello there")


async def test_ctrl_c_ends_the_turn_and_once_more_the_program(
    model: StandInModel, folder: Path
) -> None:
    with chat(model, folder) as terminal:
        await terminal.asks()
        terminal.types("please hang\r")
        await terminal.shows("the model answers 0:00:01")  # it moves
        terminal.types(CTRL_C)
        await terminal.shows("Stopped.")
        await model.client_gone()
        await terminal.asks()
        terminal.types("hello again\r")
        await terminal.shows("You said hello again.")
        terminal.types("please take long\r")
        await terminal.shows("tool     take_long")
        terminal.types(CTRL_C)
        await terminal.shows("cancelled take_long")
        await terminal.asks()
        terminal.types(CTRL_C)
        assert await terminal.exit_code() == 130


async def test_ctrl_c_at_the_prompt_says_how_to_end(model: StandInModel, folder: Path) -> None:
    with chat(model, folder) as terminal:
        await terminal.asks()
        terminal.types("some words" + CTRL_C)
        await terminal.shows("Ctrl-C once more ends the chat.")
        await terminal.asks()
        terminal.types(CTRL_C)
        assert await terminal.exit_code() == 130


async def test_commands_show_tools_and_change_the_model(model: StandInModel, folder: Path) -> None:
    with chat(model, folder) as terminal:
        await terminal.asks()
        terminal.types("/help\r")
        await terminal.shows("/reload")
        terminal.types("/tools\r")
        await terminal.shows("Take very long.")
        terminal.types("/tools set_timer\r")
        await terminal.shows("set_timer (agent, Kitchen)")
        terminal.types("/tools set_timr\r")
        await terminal.shows("Did you mean set_timer")
        terminal.types("/reload\r")
        await terminal.shows("2 tools; as before")
        terminal.types("/model nobody\r")
        await terminal.shows("ollama pull nobody")
        async with StandInModel(["I am the other one."], model="other") as other:
            other.replace(["I am the other one."])
            terminal.types(f"/model ollama:other@{other.url}\r")
            await terminal.shows("other answers from now on")
            assert [asked for asked in other.requests if asked.path == "/api/show"]
        terminal.types("/nothing\r")
        await terminal.shows("there is no /nothing")
        terminal.types("/exit\r")
        assert await terminal.exit_code() == 0


async def test_names_of_commands_models_and_tools_are_completed(
    model: StandInModel, folder: Path
) -> None:
    with chat(model, folder) as terminal:
        await terminal.asks()
        for begun, whole in (
            ("/re", "/reload"),
            ("/model st", "/model stand-in"),
            ("/tools ta", "/tools take_long"),
            ("please set_", "please set_timer"),
        ):
            terminal.types(begun + TAB)
            await terminal.asks(whole)
            terminal.types("\x15")  # Ctrl-U
            await terminal.asks()


async def test_a_chat_survives_that_its_models_server_goes_away(
    model: StandInModel, folder: Path
) -> None:
    with chat(model, folder) as terminal:
        await terminal.asks()
        terminal.types("hello\r")
        await terminal.shows("You said hello.")
        await terminal.asks()
        await model.__aexit__()
        terminal.types("hello again\r")
        await terminal.shows("nothing answers at")
        await terminal.asks()
        async with StandInModel(answer=answer) as back:
            terminal.types(f"/model ollama:{back.model}@{back.url}\r")
            await terminal.shows("answers from now on")
            terminal.types("hello once more\r")
            await terminal.shows("You said hello once more.")
            assert "You said hello." in str(back.chats[-1].json["messages"])
        assert b"Traceback" not in terminal.written


async def test_clear_begins_a_new_conversation(model: StandInModel, folder: Path) -> None:
    with chat(model, folder) as terminal:
        await terminal.asks()
        terminal.types("hello first\r")
        await terminal.shows("You said hello first.")
        await terminal.asks()
        terminal.types("/clear\r")
        terminal.types("hello second\r")
        await terminal.shows("You said hello second.")
        assert "hello first" not in str(model.chats[-1].json["messages"])
        terminal.types("/exit\r")
        assert await terminal.exit_code() == 0


async def test_any_word_for_it_ends_the_chat(model: StandInModel, folder: Path) -> None:
    for word in ("exit", "quit", "/bye", "/quit"):
        with chat(model, folder) as terminal:
            await terminal.asks()
            terminal.types(f"{word}\r")
            assert await terminal.exit_code() == 0


async def test_a_reply_that_fails_is_told_and_the_chat_goes_on(
    model: StandInModel, folder: Path
) -> None:
    with chat(model, folder) as terminal:
        await terminal.asks()
        for _ in range(5):  # LiveKit would give up after four
            terminal.types("please fail\r")
            await terminal.shows("the model's reply failed")
            await terminal.asks()
        terminal.types("hello\r")
        await terminal.shows("You said hello.")
        assert b"Traceback" not in terminal.written


async def test_fallbacks_that_all_fail_are_one_line_with_the_setting(folder: Path) -> None:
    def answer(asked: Asked) -> list[Any]:
        return [Refuse(503, "busy") if asked.json["model"] == "other" else Hang()]

    async with StandInModel(answer=answer) as model:
        with chat(
            model,
            folder,
            CAAL_FALLBACKS=json.dumps({"models": [f"other@{model.url}"], "after": 1}),
        ) as terminal:
            await terminal.asks()
            for words in ("please go", "please go on"):  # LiveKit says more the second time
                terminal.types(f"{words}\r")
                await terminal.shows(f"> {words}")
                await terminal.asks()
            text = "".join(terminal.lines)
            assert text.count("has 1 s to begin one") == 2
            assert "Traceback" not in text
            assert "ERROR" not in text


@pytest.mark.parametrize(("env", "coloured"), [({}, True), ({"NO_COLOR": "1"}, False)])
async def test_colours_are_left_out_where_nobody_wants_them(
    model: StandInModel, folder: Path, env: dict[str, str], coloured: bool
) -> None:
    with chat(model, folder, **env) as terminal:
        await terminal.asks()
        terminal.types("start a timer\r")
        await terminal.shows("The tool is done.")
        terminal.types("please fail\r")
        await terminal.shows("the model's reply failed")
        assert bool(COLOUR.search(terminal.written)) is coloured


async def test_ctrl_c_ends_the_wait_for_a_server_that_is_being_downloaded(tmp_path: Path) -> None:
    runner = tmp_path / "npx"
    runner.write_text(f"#!{sys.executable}\nimport time\ntime.sleep(3600)\n", encoding="utf-8")
    runner.chmod(0o755)
    file = tmp_path / "mcp_servers.json"
    file.write_text(json.dumps({"clock": {"command": "npx", "args": ["-y", "some-clock"]}}))
    path = f"{tmp_path}{os.pathsep}{os.environ['PATH']}"
    with Terminal(["tools"], folder=tmp_path, PATH=path, CAAL_CACHE=str(tmp_path)) as terminal:
        await terminal.shows("looking for tools 0:00:0")
        await terminal.shows("clock: still starting")
        await terminal.shows("waiting for clock 0:00:0")
        terminal.types(CTRL_C)
        assert await terminal.exit_code() == 130
        assert b"Traceback" not in terminal.written


async def test_a_variable_that_is_no_setting_is_told_before_the_first_line(
    model: StandInModel, folder: Path
) -> None:
    with chat(model, folder, CAAL_MODLE="x") as terminal:
        await terminal.shows("CAAL_MODLE is not a setting; did you mean CAAL_MODEL?")
        await terminal.asks()


async def test_on_a_narrow_terminal_no_word_of_an_answer_is_broken(
    model: StandInModel, folder: Path
) -> None:
    said = "hello and some unremarkable considerations concerning narrow terminals"
    with chat(model, folder, columns=40) as terminal:
        await terminal.asks()
        terminal.types(f"{said}\r")
        await terminal.shows("turn ")
        await terminal.asks()
        shown = " ".join(terminal.lines).partition("says")[2].split()
        assert " ".join(shown).startswith(f"You said {said}.")


async def test_the_first_sentence_is_there_while_the_model_writes_the_next(
    model: StandInModel, folder: Path
) -> None:
    with chat(model, folder) as terminal:
        await terminal.asks()
        terminal.types("tell me slowly\r")
        await terminal.shows("The first sentence is here.")


async def test_a_server_that_says_nothing_holds_up_no_chat(
    model: StandInModel, folder: Path
) -> None:
    program = folder / "silent.py"
    program.write_text("import time\ntime.sleep(3600)\n", encoding="utf-8")
    silent = {"command": sys.executable, "args": [str(program)]}
    (folder / "mcp_servers.json").write_text(json.dumps({"silent": silent}), encoding="utf-8")
    with chat(model, folder) as terminal:
        await terminal.shows("no tools from silent: is not ready yet; its tools come as soon as")
        await terminal.asks()
        terminal.types("hello there\r")
        await terminal.shows("You said hello there.")


@pytest.mark.parametrize(
    "command",
    [
        ["--help"],
        ["doctor"],
        ["tools"],
        ["validate", "--help"],
        ["validate", "nobody"],
        ["n8n", "check"],
        ["n8n", "check", "flow.json"],
        ["mcp", "import"],
        ["console", "--help"],
        ["start"],
        ["nothing"],
    ],
    ids=" ".join,
)
async def test_no_command_has_colours_where_nobody_wants_them(
    tmp_path: Path, command: list[str]
) -> None:
    (tmp_path / "flow.json").write_text('{"name": "flow", "nodes": [], "connections": {}}')
    given: dict[str, Any] = {"OLLAMA_HOST": "127.0.0.1:9", "NO_COLOR": "1"}
    with Terminal(command, folder=tmp_path, **given) as terminal:
        await terminal.exit_code()
        assert any(terminal.lines)
        assert not COLOUR.search(terminal.written)


async def test_the_bridge_has_no_colours_either(tmp_path: Path) -> None:
    for command in (["--help"], ["serve"]):
        with Terminal(
            command, folder=tmp_path, module="mcp_bridge.serve", NO_COLOR="1"
        ) as terminal:
            await terminal.exit_code()
            assert "Usage" in "\n".join(terminal.lines)
            assert not COLOUR.search(terminal.written)


async def test_help_on_a_terminal_has_its_boxes_and_colours(tmp_path: Path) -> None:
    with Terminal(["--help"], folder=tmp_path) as terminal:
        assert await terminal.exit_code() == 0
        assert "─ Commands ─" in "\n".join(terminal.lines)
        assert COLOUR.search(terminal.written)


async def test_a_wrong_setting_has_no_colour_either(folder: Path) -> None:
    given: dict[str, Any] = {"CAAL_DETECTION": "sometimes", "NO_COLOR": "1"}
    with Terminal(["chat"], folder=folder, **given) as terminal:
        assert await terminal.exit_code() == 1
        assert "CAAL_DETECTION" in terminal.lines[0]
        assert b"\x1b[" not in terminal.written
