"""What a model elsewhere reads: placeholders that stay the same, and that a call puts back."""

from __future__ import annotations

import json
from collections.abc import AsyncGenerator, Sequence
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from caal_node.config.settings import load_settings
from caal_node.core.items import AssistantItem, CallItem, Item, ResultItem, SystemItem, UserItem
from caal_node.models.backends.base import (
    BackendRequest,
    Capabilities,
    Chunk,
    Dialect,
    LearnsDialect,
    NativeCall,
    ReplyDone,
    TextChunk,
    Usage,
)
from caal_node.models.backends.redacting import LONG_CHARS, RedactingBackend, redacting
from caal_node.models.model_settings import backend_of, is_elsewhere
from caal_node.redaction.placeholders import MAX_PLACEHOLDERS, PromptRedaction, Restoring
from caal_node.redaction.settings import RedactionSettings

ANN, BOB = "ann@example.org", "bob@example.org"
KEY = "AKIA" + "IOSFODNN7EXAMPLE"
SETTINGS = RedactionSettings(personal=("email", "phone", "card"), paths=True)
DONE = ReplyDone("stop", Usage())


class Recorder:
    """A backend that keeps what it is asked, and answers with what it was given."""

    model, address = "far", "https://far.example"

    def __init__(self, *chunks: Chunk) -> None:
        self.chunks = chunks
        self.asked: list[BackendRequest] = []
        self.closed = False

    async def capabilities(self) -> Capabilities:
        return Capabilities(tools=True)

    async def ask(self, request: BackendRequest) -> AsyncGenerator[Chunk]:
        self.asked.append(request)
        for chunk in (*self.chunks, DONE):
            yield chunk

    async def aclose(self) -> None:
        self.closed = True


async def reply(items: Sequence[Item], *chunks: Chunk) -> list[Chunk]:
    far = redacting(Recorder(*chunks), PromptRedaction(SETTINGS))
    return [chunk async for chunk in far.ask(BackendRequest(tuple(items)))]


async def shown(
    *items: Item, settings: RedactionSettings = SETTINGS, **more: Any
) -> BackendRequest:
    backend = Recorder()
    request = BackendRequest(tuple(items), **more)
    async for _ in redacting(backend, PromptRedaction(settings)).ask(request):
        pass
    return backend.asked[0]


async def test_every_part_of_a_prompt_is_redacted() -> None:
    asked = await shown(
        SystemItem(f"You help Ann, {ANN}."),
        UserItem(f"Mail {BOB} and {ANN}."),
        CallItem("c1", "send_mail", json.dumps({"to": [BOB]})),
        ResultItem("c1", "send_mail", f'{{"to":"{BOB}","log":"/home/ann/mail.log","key":"{KEY}"}}'),
        AssistantItem(f"It went to {BOB}."),
        tools=({"type": "function", "function": {
            "name": "send_mail", "description": f"As {ANN}.",
            "parameters": {"type": "object", "properties": {
                "to": {"type": "string", "description": f"Such as {BOB}."},
                "title": {"type": "string", "enum": [ANN, "other"]},
            }},
        }},),
    )  # fmt: skip
    written = repr(asked)
    assert not any(secret in written for secret in (ANN, BOB, KEY, "/home/ann"))
    assert [getattr(item, "text", "") for item in asked.items] == [
        "You help Ann, [email 1].",
        "Mail [email 2] and [email 1].",
        "",
        "",
        "It went to [email 2].",
    ]
    assert asked.tools[0]["function"]["name"] == "send_mail"
    properties = asked.tools[0]["function"]["parameters"]["properties"]
    assert properties["title"]["enum"] == ["[email 1]", "other"]


async def test_a_call_and_speech_get_the_data_back_and_no_secret() -> None:
    chunks = (
        TextChunk("I mail [ema"),
        TextChunk("il 1] now, [not one] and *"),
        NativeCall("1", "send_mail", '{"to":"[email 1]","key":"***","file":"~/a.txt"}'),
    )
    items = [UserItem(f"Mail {ANN} the file /home/ann/a.txt with {KEY}")]
    got = await reply(items, *chunks)
    spoken = "".join(chunk.text for chunk in got if isinstance(chunk, TextChunk))
    assert spoken == f"I mail {ANN} now, [not one] and *"
    [call] = [chunk for chunk in got if isinstance(chunk, NativeCall)]
    assert json.loads(call.arguments) == {"to": ANN, "key": "***", "file": "/home/ann/a.txt"}
    assert got[-1] == DONE


async def test_only_what_is_in_the_prompt_at_hand_is_put_back() -> None:
    redaction = PromptRedaction(SETTINGS)
    backend = Recorder(NativeCall("1", "f", '{"to":"[email 1]"}'))
    first = RedactingBackend(backend, redaction)
    calls = [
        chunk.arguments
        for text in (f"to {ANN}", f"to {BOB}", "to her")
        async for chunk in first.ask(BackendRequest((UserItem(text),)))
        if isinstance(chunk, NativeCall)
    ]
    assert calls == [f'{{"to":"{ANN}"}}', '{"to":"[email 1]"}', '{"to":"[email 1]"}']


async def test_two_files_of_one_name_are_not_taken_for_each_other() -> None:
    items = [UserItem("/srv/a/notes.txt or /srv/b/notes.txt, and /srv/c/one.txt")]
    call = NativeCall("1", "read", '{"paths":["notes.txt","one.txt"]}')
    got = await reply(items, call)
    assert isinstance(got[0], NativeCall)
    assert json.loads(got[0].arguments) == {"paths": ["notes.txt", "/srv/c/one.txt"]}


async def test_a_number_in_a_calls_arguments_leaves_them_json() -> None:
    asked = await shown(
        CallItem("c1", "pay", '{"card": 4111111111111111, "n": 3, "x": [true, 1.5]}')
    )
    [item] = asked.items
    assert isinstance(item, CallItem)
    assert json.loads(item.arguments) == {"card": "[card 1]", "n": 3, "x": [True, 1.5]}


async def test_a_prompt_grows_at_its_end_alone() -> None:
    backend = Recorder()
    far = redacting(backend, PromptRedaction(SETTINGS))
    history: list[Item] = [SystemItem(f"For {ANN}.")]
    for number in range(30):
        history += [UserItem(f"Mail {number}@example.org, +47 22 33 44 {number + 10}"),
                    AssistantItem(f"Done for {ANN}.")]  # fmt: skip
        async for _ in far.ask(BackendRequest(tuple(history))):
            pass
    for before, after in zip(backend.asked, backend.asked[1:], strict=False):
        assert after.items[: len(before.items)] == before.items


async def test_what_holds_nothing_is_the_same_object() -> None:
    tools = ({"type": "function", "function": {"name": "f", "description": "It does it."}},)
    items = (SystemItem("Be kind."), UserItem("Hello."), CallItem("c", "f", "{}"))
    asked = await shown(*items, tools=tools)
    assert all(now is then for now, then in zip(asked.items, items, strict=True))
    assert asked.tools[0] is tools[0]


async def test_a_long_prompt_is_redacted_as_well(monkeypatch: pytest.MonkeyPatch) -> None:
    asked = await shown(UserItem(f"{'word ' * LONG_CHARS}{ANN}"))
    assert getattr(asked.items[0], "text", "").endswith("[email 1]")


def test_numbers_run_out_and_data_stays_hidden() -> None:
    redaction = PromptRedaction(SETTINGS)
    for number in range(MAX_PLACEHOLDERS):
        redaction.shown(f"n{number}@example.org")
    assert redaction.shown("late@example.org").text == "[email]"
    assert redaction.shown("n7@example.org").text == "[email 8]"


@given(st.lists(st.integers(1, 9), min_size=1, max_size=8))
def test_speech_is_whole_however_it_is_cut(cuts: list[int]) -> None:
    text = "To [email 1], [[email 2] or [email 3]; a[0] = [x"
    restoring = Restoring()
    redaction = PromptRedaction(SETTINGS)
    restoring.note(redaction.shown(f"{ANN} {BOB}"))
    at, turn, said = 0, 0, ""
    while at < len(text):
        size = cuts[turn % len(cuts)]
        said += restoring.feed(text[at : at + size])
        at, turn = at + size, turn + 1
    assert said + restoring.finish() == f"To {ANN}, [{BOB} or [email 3]; a[0] = [x"


@given(st.text(max_size=200))
def test_putting_back_undoes_hiding(text: str) -> None:
    redaction, restoring = (
        PromptRedaction(RedactionSettings(personal=("email", "phone"))),
        Restoring(),
    )
    whole = f"{text} {ANN} "
    assert restoring.text(restoring.note(redaction.shown(whole))) == whole


class Learning(Recorder):
    dialect = Dialect()


async def test_a_backend_stays_what_it_is_when_it_is_wrapped() -> None:
    plain, learning = Recorder(), Learning()
    assert not isinstance(redacting(plain, PromptRedaction(SETTINGS)), LearnsDialect)
    wrapped: Any = redacting(learning, PromptRedaction(SETTINGS))
    assert isinstance(wrapped, LearnsDialect)
    wrapped.dialect = known = Dialect()
    assert learning.dialect is known
    assert (wrapped.model, wrapped.address) == ("far", "https://far.example")
    assert (await wrapped.capabilities()).tools
    await wrapped.aclose()
    assert learning.closed


@pytest.mark.parametrize(
    ("variables", "elsewhere"),
    [
        ({}, False),
        ({"OLLAMA_HOST": "192.168.1.5"}, False),
        ({"OLLAMA_HOST": "gpu.lan:11434"}, False),
        ({"OLLAMA_HOST": "https://models.example.org"}, True),
        ({"CAAL_MODEL": "gpt-oss:120b-cloud"}, True),
        ({"CAAL_API": "openai", "CAAL_BASE_URL": "https://api.openai.com/v1"}, True),
        ({"CAAL_API": "openai", "CAAL_BASE_URL": "http://127.0.0.1:8080/v1"}, False),
        ({"CAAL_API": "anthropic", "CAAL_BASE_URL": "http://127.0.0.1:8080"}, True),
        ({"CAAL_API": "livekit", "CAAL_MODEL": "a:b"}, True),
        ({"CAAL_API": "embedded"}, False),
    ],
)
def test_which_models_are_elsewhere(variables: dict[str, str], elsewhere: bool) -> None:
    assert is_elsewhere(load_settings(variables, Path("no-such-caal.toml"))) is elsewhere


@pytest.mark.parametrize("local_models", [False, True])
async def test_a_local_model_reads_redacted_text_if_that_is_asked_for(local_models: bool) -> None:
    variables = {"CAAL_REDACTION": json.dumps({"local_models": local_models})}
    backend = backend_of(load_settings(variables, Path("no-such-caal.toml")), "test", {})
    assert isinstance(backend, RedactingBackend) is local_models
    await backend.aclose()
