"""A second model looks at what was found: where it answers something else, people hear that."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncGenerator
from pathlib import Path

import pytest
from livekit.agents import function_tool

from caal_node import effect
from caal_node.agent import CaalAgent
from caal_node.config.settings import Settings, load_settings
from caal_node.core.items import UserItem
from caal_node.core.prompt_files import sentence
from caal_node.grounding.ledger import CallState, Ledger, LedgerEntry
from caal_node.models.backends.base import BackendRequest, Chunk, TextChunk
from caal_node.models.llm import LLM
from caal_node.models.result_look import RESULT_CHARS, found_in, result_look_request
from caal_node.testing import AgentConversation, ScriptedCall, ScriptedModel
from caal_node.tools.second_opinion import ResultOpinion

CALL = ScriptedCall("find_opening", {"place": "library"})
ASKED = "when does the library open"
ANSWER = "The library is in Mill Lane."
DOUBT = sentence("result_doubted")


class Town(CaalAgent):
    def __init__(self, settings: Settings) -> None:
        super().__init__(settings=settings, tiers={}, warm=False, instructions="Help.")

    @function_tool
    @effect("read")
    async def find_opening(self, place: str) -> str:
        """Find when a place opens."""
        return '{"street": "Mill Lane"}'

    @function_tool
    async def post_letter(self, place: str) -> str:
        """Post a letter when the library opens."""
        return '{"ok": true}'


def looking(folder: Path, more: str = 'second_look_model = "same"') -> Settings:
    path = folder / "caal.toml"
    path.write_text(f"[tools]\nsecond_look_results = true\n{more}\n", encoding="utf-8")
    return load_settings({"CAAL_CUES": "off", "CAAL_NEEDLESS_CALLS": "off"}, path)


@pytest.mark.parametrize(
    ("answers", "heard"), [("no", f"{DOUBT} {ANSWER}"), ("yes", ANSWER), ("maybe", ANSWER)]
)
async def test_what_answers_something_else_is_told_as_that(
    tmp_path: Path, answers: str, heard: str
) -> None:
    model = ScriptedModel([CALL], f'{{"answers": "{answers}"}}', ANSWER)
    async with AgentConversation(Town(looking(tmp_path)), model) as talk:
        assert (await talk.say(ASKED)).text == heard
    call, look, answer = model.requests
    assert len(look.items) == 2
    assert answer.items[: len(call.items)] == call.items, "the answer's prompt goes on as ever"


async def test_one_turn_is_looked_at_once_however_many_rounds_it_has(tmp_path: Path) -> None:
    other = ScriptedCall("find_opening", {"place": "town library"})
    model = ScriptedModel([CALL], '{"answers": "no"}', [other], ANSWER)
    async with AgentConversation(Town(looking(tmp_path)), model) as talk:
        await talk.say(ASKED)
    assert model.replies_left == 0


async def test_without_the_setting_and_of_calls_that_change_something_nobody_is_asked(
    tmp_path: Path,
) -> None:
    model = ScriptedModel([CALL], ANSWER)
    async with AgentConversation(Town(Settings(cues=False, needless_calls="off")), model) as talk:
        assert (await talk.say(ASKED)).text == ANSWER
    posted = ScriptedModel([ScriptedCall("post_letter", {"place": "library"})], "I posted it.")
    async with AgentConversation(Town(looking(tmp_path)), posted) as talk:
        await talk.say("post the letter when the library opens")
    assert (model.replies_left, posted.replies_left) == (0, 0)


async def test_a_look_that_fails_is_no_doubt(tmp_path: Path) -> None:
    model = ScriptedModel([CALL], RuntimeError("broken"), ANSWER)
    async with AgentConversation(Town(looking(tmp_path)), model) as talk:
        assert (await talk.say(ASKED)).text == ANSWER


class _Late(ScriptedModel):
    """A model whose look answers no, but only once somebody has given up on it."""

    closed = False

    async def ask_beside(self, request: BackendRequest) -> AsyncGenerator[Chunk]:
        try:
            await asyncio.Event().wait()
            yield TextChunk('{"answers": "no"}')
        finally:
            self.closed = True


async def test_a_look_that_takes_too_long_is_ended_and_is_no_doubt() -> None:
    model: LLM = _Late()
    opinion = ResultOpinion(Settings(), lambda: "same", lambda: model, look_s=0.0)
    assert not await opinion.doubts((UserItem(ASKED),), Ledger(ASKED, (_entry(),)))
    assert isinstance(model, _Late)
    assert model.closed


def _entry(state: CallState = "done", result: str = '{"street": "Mill Lane"}') -> LedgerEntry:
    return LedgerEntry("c", "find_opening", {"place": "library"}, state, result, "read")


def test_nothing_is_looked_at_where_a_call_failed_or_found_nothing() -> None:
    assert found_in(Ledger(ASKED, (_entry(),)))
    assert not found_in(Ledger(ASKED, ()))
    assert not found_in(Ledger(ASKED, (_entry(), _entry("failed", "no"))))
    assert not found_in(Ledger(ASKED, (_entry(result="[]"),)))


def test_a_request_has_its_data_quoted_and_cut() -> None:
    entry = _entry(result="x" * 9_000)
    request = result_look_request((UserItem(f"{ASKED}<|im_end|>"),), [entry] * 40)
    said = request.items[-1]
    assert isinstance(said, UserItem)
    assert "<|im_end|>" not in said.text
    assert len(said.text) < 45 * RESULT_CHARS
    assert json.loads(said.text)["found"][0]["result"] == "x" * RESULT_CHARS


def test_a_policy_that_names_no_model_for_it_says_so(tmp_path: Path) -> None:
    (fault,) = looking(tmp_path, "").tools.faults
    assert "second_look_results" in fault
    assert "second_look_model" in fault
    assert "caal.toml, line 2" in fault
