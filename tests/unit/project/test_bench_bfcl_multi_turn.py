"""BFCL's conversations are played on BFCL's own program, and judged turn by turn by its checker."""

from __future__ import annotations

import json
import sys
import zipfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from caal_node.config.settings import Settings
from caal_node.reply_parser import ToolCall
from tests.bench import bfcl_multi_turn
from tests.bench.bfcl_conversations import (
    BfclConversation,
    BfclProgram,
    conversations,
    turns_right,
    wanted_made,
    written,
)
from tests.bench.bfcl_ways import connect
from tests.stand_ins.stand_in_model import Call, StandInModel

PROGRAM = """
state = {}

def execute_multi_turn_func_call(func_call_list, initial_config, involved_classes, name, entry):
    log = state.setdefault(name, [])
    log.extend(func_call_list)
    return [f"{len(log)} done" for _ in func_call_list], log
"""
CHECKER = """
def multi_turn_checker(made, wanted, entry, category, name):
    return {"valid": [sum(map(len, turn)) for turn in made] == list(map(len, wanted))}
"""
ENTRY: dict[str, Any] = {
    "id": "multi_turn_base_7",
    "question": [
        [{"role": "user", "content": "Go to docs."}],
        [{"role": "user", "content": "List it, then go back."}],
    ],
    "initial_config": {},
    "involved_classes": ["GorillaFileSystem"],
    "excluded_function": ["rm"],
}
OTHER = {**ENTRY, "id": "multi_turn_base_8", "involved_classes": ["TradingBot"]}
ANSWER = {"id": ENTRY["id"], "ground_truth": [["cd('docs')"], ["ls(a=True)", "cd(folder='..')"]]}


def function(name: str, **properties: str) -> dict[str, Any]:
    kinds = {key: {"type": kind} for key, kind in properties.items()}
    return {"name": name, "description": name, "parameters": {"type": "dict", "properties": kinds}}


@pytest.fixture
def archive(tmp_path: Path) -> Iterator[Path]:
    path = tmp_path / "wheel.whl"
    checks = "bfcl_eval/eval_checker/multi_turn_eval"
    functions = (function("cd", folder="string"), function("ls", a="boolean"), function("rm"))
    files = {
        "bfcl_eval/data/BFCL_v4_multi_turn_base.json": (OTHER, ENTRY),
        "bfcl_eval/data/possible_answer/BFCL_v4_multi_turn_base.json": (ANSWER,),
        "bfcl_eval/data/multi_turn_func_doc/gorilla_file_system.json": functions,
    }
    with zipfile.ZipFile(path, "w") as data:
        for name, rows in files.items():
            data.writestr(name, "\n".join(map(json.dumps, rows)))
        for folder in ("bfcl_eval", "bfcl_eval/eval_checker", checks):
            data.writestr(f"{folder}/__init__.py", "")
        data.writestr(f"{checks}/multi_turn_utils.py", PROGRAM)
        data.writestr(f"{checks}/multi_turn_checker.py", CHECKER)
    before = list(sys.path)
    yield path
    sys.path[:] = before
    for name in [name for name in sys.modules if name.split(".")[0] == "bfcl_eval"]:
        del sys.modules[name]


@pytest.fixture
def conversation(archive: Path) -> BfclConversation:
    (found,) = conversations(archive, 5)
    return found


def test_a_conversation_is_read_with_its_turns_tools_and_right_calls(
    conversation: BfclConversation,
) -> None:
    assert conversation.turns == ("Go to docs.", "List it, then go back.")
    assert [tool["function"]["name"] for tool in conversation.tools] == ["cd", "ls"]
    assert conversation.wanted == (("cd('docs')",), ("ls(a=True)", "cd(folder='..')"))


def test_a_call_is_written_with_literals_alone(conversation: BfclConversation) -> None:
    tools = conversation.tools
    assert written(ToolCall("cd", {"folder": "a'b"}), tools) == 'cd(folder="a\'b")'
    assert written(ToolCall("eval", {"folder": "a"}), tools) is None
    assert written(ToolCall("cd", {"x=1) or print(": "a"}), tools) is None


def test_turns_are_counted_up_to_the_first_wrong_one(
    archive: Path, conversation: BfclConversation
) -> None:
    right = [[list(calls)] for calls in conversation.wanted]
    assert turns_right(archive, conversation, right) == 2
    assert turns_right(archive, conversation, [right[0], [["ls(a=True)"]]]) == 1
    assert turns_right(archive, conversation, [[], right[1]]) == 0


def test_right_calls_are_found_however_their_arguments_are_written(
    conversation: BfclConversation,
) -> None:
    assert wanted_made(conversation, 0, [["cd(folder='docs')"]]) == (1, 1)
    assert wanted_made(conversation, 1, [["ls(True)"], ["cd(folder='docs')"]]) == (1, 2)
    assert wanted_made(conversation, 1, []) == (0, 2)


@pytest.mark.parametrize("way", ["native", "node"])
async def test_a_turn_goes_on_until_no_call_is_made(
    archive: Path, conversation: BfclConversation, way: bfcl_multi_turn.Way, tmp_path: Path
) -> None:
    replies = (
        [Call("cd", {"folder": "docs"})],
        ["You are in docs."],
        [Call("ls", {"a": True})],
        [Call("cd", {"folder": ".."})],
        ["Done."],
    )
    async with StandInModel(*replies) as server:
        settings = Settings(ollama_host=server.url, model=server.model, tool_calls="native")
        model = connect(settings)
        program = BfclProgram(archive, conversation)
        played = await bfcl_multi_turn.played(model, way, conversation, program)
        await model.aclose()
        shown = [m["content"] for m in server.chats[-1].json["messages"] if m["role"] == "tool"]
    assert played.calls == [[["cd(folder='docs')"]], [["ls(a=True)"], ["cd(folder='..')"]]]
    assert (played.asked, played.failed) == (5, 0)
    assert shown == ["1 done", "2 done", "3 done"], "results of one program, in order"
    row = bfcl_multi_turn.row(archive, way, [(conversation, played)])
    assert row[:6] == (way, 1, 1, 1, "2 of 2", "3 of 3")
    file = tmp_path / "kept.jsonl"
    bfcl_multi_turn.KeptConversations(file).keep(played, "m", way, conversation.id)
    assert bfcl_multi_turn.KeptConversations(file).get("m", way, conversation.id) == played
