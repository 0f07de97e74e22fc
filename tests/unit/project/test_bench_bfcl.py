"""BFCL's data is read as it is written, and a call is judged by its possible answers."""

from __future__ import annotations

import hashlib
import json
import zipfile
from pathlib import Path
from typing import Any

import pytest

from caal_node.config.settings import Settings
from caal_node.reply_parser import ToolCall
from tests.bench import bfcl, bfcl_data
from tests.bench.bfcl_data import Question, questions, tool_name, wheel
from tests.bench.bfcl_judge import right_call, right_name
from tests.bench.bfcl_ways import connect
from tests.stand_ins.stand_in_model import Call, StandInModel

ROW: dict[str, Any] = {
    "id": "simple_python_0",
    "question": [[{"role": "user", "content": "Area of a 3 by 4 field?"}]],
    "function": [
        {
            "name": "field.area",
            "description": "Area.",
            "parameters": {
                "type": "dict",
                "properties": {
                    "sides": {"type": "tuple", "items": {"type": "float"}},
                    "type": {"type": "string", "description": "a parameter named type"},
                    "shape": {"type": "dict", "properties": {"round": {"type": "boolean"}}},
                    "extra": {"type": "any"},
                },
                "required": ["sides"],
            },
        }
    ],
}
ANSWER = {
    "id": "simple_python_0",
    "ground_truth": [
        {
            "field.area": {
                "sides": [[3.0, 4.0]],
                "type": ["crop field", ""],
                "shape": ["", {"round": [False], "name": ["a", ""]}],
                "count": [2, ""],
            }
        }
    ],
}


@pytest.fixture
def archive(tmp_path: Path) -> Path:
    path = tmp_path / bfcl_data.WHEEL
    with zipfile.ZipFile(path, "w") as data:
        for folder, row in (("", ROW), ("possible_answer/", ANSWER)):
            text = json.dumps(row) + "\n"
            for name in ("simple_python", "multiple"):
                data.writestr(f"bfcl_eval/data/{folder}BFCL_v4_{name}.json", text)
        text = "\n".join(json.dumps({**ROW, "id": f"irrelevance_{n}"}) for n in range(3))
        data.writestr("bfcl_eval/data/BFCL_v4_irrelevance.json", text)
    return path


@pytest.fixture
def question(archive: Path) -> Question:
    return questions(archive, "simple")[0]


def test_schemas_become_json_schema_and_names_lose_their_dots(question: Question) -> None:
    function = question.tools[0]["function"]
    assert function["name"] == "field_area"
    assert function["parameters"] == {
        "type": "object",
        "properties": {
            "sides": {"type": "array", "items": {"type": "number"}},
            "type": {"type": "string", "description": "a parameter named type"},
            "shape": {"type": "object", "properties": {"round": {"type": "boolean"}}},
            "extra": {},
        },
        "required": ["sides"],
    }
    assert tool_name("a.b_c") == "a_b_c"


def test_irrelevance_has_no_right_call(archive: Path) -> None:
    asked = questions(archive, "irrelevance", 2)
    assert [q.id for q in asked] == ["irrelevance_0", "irrelevance_1"]
    assert right_call(asked[0], [])
    assert not right_call(asked[0], [ToolCall("field_area", {"sides": [3, 4]})])


@pytest.mark.parametrize(
    "arguments",
    [
        {"sides": [3, 4]},
        {"sides": [3.0, 4.0], "type": "Crop-Field"},
        {"sides": [3, 4], "shape": {"round": False}},
        {"sides": [3, 4], "shape": {"round": False, "name": "A"}, "count": 2},
    ],
)
def test_a_possible_answer_is_right(question: Question, arguments: dict[str, Any]) -> None:
    assert right_call(question, [ToolCall("field_area", arguments)])


@pytest.mark.parametrize(
    "arguments",
    [
        {},
        {"sides": [4, 3]},
        {"sides": "3, 4"},
        {"sides": [3, 4], "type": "meadow"},
        {"sides": [3, 4], "depth": 1},
        {"sides": [3, 4], "shape": {}},
        {"sides": [3, 4], "shape": {"round": 0}},
        {"sides": [3, 4], "count": 2.0},
    ],
)
def test_any_other_is_wrong(question: Question, arguments: dict[str, Any]) -> None:
    calls = [ToolCall("field_area", arguments)]
    assert right_name(question, calls)
    assert not right_call(question, calls)


def test_two_calls_or_another_function_are_wrong(question: Question) -> None:
    call = ToolCall("field_area", {"sides": [3, 4]})
    assert not right_name(question, [call, call])
    assert not right_name(question, [ToolCall("field", {"sides": [3, 4]})])
    assert not right_name(question, [])


def test_a_wheel_in_the_cache_is_used_only_where_its_digest_is_right(
    archive: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(bfcl_data, "SHA256", hashlib.sha256(archive.read_bytes()).hexdigest())
    assert wheel(archive.parent) == archive
    archive.write_bytes(b"cut short")

    def no_network(command: list[str], **_: Any) -> Any:
        assert "--no-deps" in command
        return type("Done", (), {"returncode": 1})

    monkeypatch.setattr(bfcl_data.subprocess, "run", no_network)
    with pytest.raises(SystemExit, match="check the network"):
        wheel(archive.parent)


async def test_both_ways_are_scored_over_the_wire(question: Question, tmp_path: Path) -> None:
    right = Call("field_area", {"sides": [3, 4]})
    file = tmp_path / "kept.jsonl"
    async with StandInModel([right], ["It is 12."], [right]) as server:
        settings = Settings(ollama_host=server.url, model=server.model, tool_calls="native")
        model = connect(settings)
        kept = bfcl.Kept(file)
        native = await bfcl.scored(model, "native", "simple", [question, question], kept)
        node = await bfcl.scored(model, "node", "simple", [question], kept)
        again = await bfcl.scored(model, "native", "simple", [question], bfcl.Kept(file))
        await model.aclose()
    assert [outcome.whole for outcome in native] == [True, False]
    assert [outcome.whole for outcome in node] == [True]
    assert native[0].prompt > 0
    assert not native[1].failed
    assert again == native[:1]
