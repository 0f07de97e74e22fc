"""A stand-in's answers as a model without a fault would give them to the validation's cases.

async with StandInModel(answer=PerfectModel()) as server: ...
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import Any, Final

from caal_node.evaluation.suites import ABSENT, SUITES, Case, ExpectedCall, ExpectedCalls
from tests.stand_ins.stand_in_model import Asked, Call, Reply

SPEECH: Final = "Certainly, I am glad to say that."
"""Long enough to be told from speech that is short by itself."""
_CASES: Final[tuple[Case, ...]] = tuple(case for suite in SUITES for case in suite.cases)


@dataclass(frozen=True)
class PerfectModel:
    """`native` False: it writes its calls as JSON in a code fence where tools are offered."""

    native: bool = True
    text: bool = True
    """False: asked by text it says something in place of the call."""

    def __call__(self, asked: Asked) -> Reply:
        body = asked.json
        if asked.json.get("options", {}).get("num_predict") == 1:
            return ["."]  # a warm-up
        case = case_of(body)
        if case is None or isinstance(case.right, ExpectedCalls):
            calls = _calls(case)
            if body.get("tools"):
                return calls if self.native else [_fenced(calls)]
            if self.text:
                return [json.dumps({"calls": [_call(call) for call in calls]})]
            return [json.dumps({"say": SPEECH})]
        words = case.right.words
        said = f"{SPEECH} {words[0]}." if words else SPEECH
        return [said if body.get("tools") else json.dumps({"say": said})]


def case_of(body: dict[str, Any]) -> Case | None:
    """The case that a request is of: the one whose person's words come last in the prompt."""
    said = [str(message["content"]) for message in body["messages"] if message["role"] == "user"]
    for words in reversed(said):
        for case in _CASES:
            if any(getattr(item, "text", None) == words for item in case.said[-1:]) or (
                len(case.said) > 1 and getattr(case.said[0], "text", None) == words
            ):
                if len(case.said) == 1 and "observation" in said[-1]:
                    continue
                return case
    return None


def _calls(case: Case | None) -> list[Call]:
    if case is None:  # the sample request before a session
        return [Call("get_weather", {"city": "Oslo"})]
    assert isinstance(case.right, ExpectedCalls)
    return [Call(calling.tool, _arguments(calling)) for calling in case.right.wanted]


def _arguments(calling: ExpectedCall) -> dict[str, Any]:
    first = {name: values[0] for name, values in calling.arguments.items()}
    return {name: value for name, value in first.items() if value is not ABSENT}


def _call(call: Call) -> dict[str, Any]:
    return {"name": call.name, "arguments": call.arguments}


def _fenced(calls: list[Call]) -> str:
    return "\n".join(f"```json\n{json.dumps(_call(call))}\n```" for call in calls)
