"""BFCL's multi-turn conversations: what is said, the tools, the programs behind them, the checker.

All of it is out of the wheel of `bfcl-eval`, which Python imports as it is, as a zip: its programs
run in this process, on data of their own, and touch no file. Only conversations whose one program
is the file system are taken: their seventeen tools are nearly the same from one to the next, so a
server has most of the prompt in its cache.
"""

from __future__ import annotations

import ast
import importlib
import itertools
import json
import sys
import zipfile
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from caal_node.core.tool_spec import ToolSchema
from caal_node.reply_parser import ToolCall
from tests.bench.bfcl_data import json_rows, tool_of

CATEGORY: Final = "multi_turn_base"
PROGRAM: Final = "GorillaFileSystem"
TOOLS_FILE: Final = "bfcl_eval/data/multi_turn_func_doc/gorilla_file_system.json"
CHECKS: Final = "bfcl_eval.eval_checker.multi_turn_eval"
_numbers: Final = itertools.count()


@dataclass(frozen=True, slots=True)
class BfclConversation:
    id: str
    turns: tuple[str, ...]
    """What the person says in each."""
    tools: tuple[ToolSchema, ...]
    wanted: tuple[tuple[str, ...], ...]
    """The right calls of each turn, as Python would write them."""
    entry: Mapping[str, Any]
    """BFCL's own record, with the state at the beginning."""


def conversations(archive: Path, limit: int) -> list[BfclConversation]:
    """Return the first `limit` conversations with the file system alone."""
    with zipfile.ZipFile(archive) as data:
        entries = json_rows(data.read(f"bfcl_eval/data/BFCL_v4_{CATEGORY}.json"))
        answers = json_rows(data.read(f"bfcl_eval/data/possible_answer/BFCL_v4_{CATEGORY}.json"))
        functions = json_rows(data.read(TOOLS_FILE))
    wanted: dict[str, list[list[str]]] = {row["id"]: row["ground_truth"] for row in answers}
    fit = [entry for entry in entries if entry["involved_classes"] == [PROGRAM]]
    return [
        BfclConversation(
            entry["id"],
            tuple(" ".join(message["content"] for message in turn) for turn in entry["question"]),
            tuple(
                tool_of(function)
                for function in functions
                if function["name"] not in entry.get("excluded_function", ())
            ),
            tuple(tuple(calls) for calls in wanted[entry["id"]]),
            entry,
        )
        for entry in fit[:limit]
    ]


class BfclProgram:
    """The program of one conversation, at its beginning."""

    def __init__(self, archive: Path, conversation: BfclConversation) -> None:
        if str(archive) not in sys.path:
            sys.path.append(str(archive))
        self._conversation: Final = conversation
        self._name: Final = f"played_{next(_numbers)}"
        self._run: Final = importlib.import_module(
            f"{CHECKS}.multi_turn_utils"
        ).execute_multi_turn_func_call

    def run(self, call: str) -> str:
        """Run a call that `written` has written, and return its result or error."""
        entry = self._conversation.entry
        results, _ = self._run(
            [call], entry["initial_config"], entry["involved_classes"], self._name, entry["id"]
        )
        return str(results[0])


def written(call: ToolCall, tools: Sequence[ToolSchema]) -> str | None:
    """Return a call as BFCL's checker reads it; None where it cannot be one.

    The checker evaluates it, so only a tool's own name, names of arguments and literals are in it.
    """
    names = {tool["function"]["name"] for tool in tools}
    if call.name not in names or not all(key.isidentifier() for key in call.arguments):
        return None
    arguments = ", ".join(f"{key}={value!r}" for key, value in call.arguments.items())
    return f"{call.name}({arguments})"


def turns_right(
    archive: Path, conversation: BfclConversation, made: Sequence[Sequence[Sequence[str]]]
) -> int:
    """Return how many turns are right from the first one on, by BFCL's own checker.

    Args:
        archive: The wheel.
        conversation: All of its turns right is a conversation right.
        made: The calls of each turn, in steps.
    """
    if str(archive) not in sys.path:
        sys.path.append(str(archive))
    check = importlib.import_module(f"{CHECKS}.multi_turn_checker").multi_turn_checker
    for count in range(1, len(conversation.turns) + 1):
        # The checker keeps each program by the model's name: a new one begins at the beginning.
        verdict = check(
            [[list(step) for step in turn] for turn in made[:count]],
            [list(turn) for turn in conversation.wanted[:count]],
            dict(conversation.entry),
            CATEGORY,
            f"checked_{next(_numbers)}",
        )
        if not verdict["valid"]:
            return count - 1
    return len(conversation.turns)


def wanted_made(
    conversation: BfclConversation, turn: int, made: Sequence[Sequence[str]]
) -> tuple[int, int]:
    """Return how many of a turn's right calls were made in it, word for word, and how many are."""
    orders = {
        tool["function"]["name"]: list(tool["function"]["parameters"].get("properties", ()))
        for tool in conversation.tools
    }
    wanted = Counter(_plain(call, orders) for call in conversation.wanted[turn])
    calls = Counter(_plain(call, orders) for step in made for call in step)
    return (wanted & calls).total(), wanted.total()


def _plain(call: str, orders: Mapping[str, Sequence[str]]) -> str:
    """Return a call with all of its arguments named and in order."""
    node = ast.parse(call, mode="eval").body
    if not isinstance(node, ast.Call) or not isinstance(node.func, ast.Name):
        return call
    named = dict(zip(orders.get(node.func.id, ()), node.args, strict=False))
    named |= {keyword.arg or "": keyword.value for keyword in node.keywords}
    values = {name: ast.literal_eval(value) for name, value in named.items()}
    return f"{node.func.id} {json.dumps(values, sort_keys=True, default=str)}"
