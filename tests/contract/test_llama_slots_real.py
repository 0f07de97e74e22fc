"""Two rooms on a real llama.cpp server, turn by turn in turn."""

from __future__ import annotations

from pathlib import Path

import pytest

from caal_node.core.items import AssistantItem, Item, SystemItem, UserItem
from caal_node.models.backends.base import BackendRequest, ReplyDone, Usage
from caal_node.models.backends.openai import OpenAIBackend
from caal_node.models.llm import LLM
from caal_node.models.question import Question
from tests.stand_ins import llama_server

pytestmark = pytest.mark.model

HEAD = SystemItem("You are a voice assistant of a house with many rooms. " * 12)


async def read(model: LLM, items: tuple[Item, ...]) -> Usage:
    async for chunk in model.backend.ask(BackendRequest(items, stream=False, max_tokens=1)):
        if isinstance(chunk, ReplyDone):
            return chunk.usage
    raise AssertionError("a reply has an end")


async def evaluated(address: str) -> tuple[list[int], list[int | None]]:
    """The tokens that each room's second turn has the server read, and the rooms' slots."""
    models = [LLM(backend=OpenAIBackend("any", base_url=address), native_tools=True) for _ in "ab"]
    talks: list[tuple[Item, ...]] = [(HEAD,), (HEAD,)]
    found: list[int] = []
    try:
        for model in models:
            await model.warm(Question((HEAD,)))
        for turn in ("What is the weather like?", "And tomorrow?"):
            for room, model in enumerate(models):
                words = UserItem(f"In room {room} they ask: {turn}")
                usage = await read(model, (*talks[room], words))
                found.append(usage.prompt - usage.cached)
                answer = AssistantItem("It stays dry, with a light wind from the west, all day.")
                talks[room] = (*talks[room], words, answer)
        backends = [model.backend for model in models]
        slots = [b._slot.use().get("id_slot") for b in backends if isinstance(b, OpenAIBackend)]  # pyright: ignore[reportPrivateUsage]
    finally:
        for model in models:
            await model.aclose()
    return found[2:], slots


async def test_two_rooms_keep_their_conversations_apart(gguf: Path) -> None:
    pytest.importorskip("xllamacpp", reason="no xllamacpp: pip install 'caal-node[embedded]'")
    with llama_server.running(gguf, context_tokens=2048, slots=2) as address:
        seconds, slots = await evaluated(address)
    assert slots == [0, 1]
    # An answer of 13 tokens and a question of 11, with the template's marks; the turns before them
    # are 40 tokens more.
    assert all(tokens < 45 for tokens in seconds), seconds


async def test_a_server_that_empties_its_slots_chooses_itself(gguf: Path) -> None:
    pytest.importorskip("xllamacpp", reason="no xllamacpp: pip install 'caal-node[embedded]'")
    with llama_server.running(gguf, context_tokens=1024, slots=2, unified=True) as address:
        seconds, slots = await evaluated(address)
    assert slots == [None, None]
    # The rooms' own words are read again, but not what they have in common.
    assert all(tokens < 90 for tokens in seconds), seconds
