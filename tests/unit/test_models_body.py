"""A request's body as JSON, and how long it holds the loop."""

from __future__ import annotations

import asyncio
import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from caal_node.models.backends.request_body import BREATHE_BYTES, SLICE_CHARS, encode

scalars = (
    st.none()
    | st.booleans()
    | st.integers()
    | st.floats(allow_nan=False, allow_infinity=False)
    | st.text(alphabet=st.characters(exclude_categories=["Cs"]))
)
values: st.SearchStrategy[Any] = st.recursive(
    scalars, lambda v: st.lists(v, max_size=4) | st.dictionaries(st.text('abc"é'), v, max_size=4)
)


@given(st.dictionaries(st.text("xyz"), values, max_size=4))
async def test_it_is_what_the_standard_encoder_writes(body: dict[str, Any]) -> None:
    expected = json.dumps(body, ensure_ascii=False, separators=(",", ":"))
    assert await encode(body) == expected.encode()


def times(text: str, count: int) -> str:
    return text * count


stretched: st.SearchStrategy[Any] = st.builds(
    times, st.text('é"\\\n☕𝄞x', max_size=6), st.integers(0, 30_000)
)
members = st.dictionaries(st.text('abc"é') | st.integers() | st.booleans(), values | stretched)
listed = st.lists(members | values | stretched | st.tuples(stretched, values), max_size=5)


@given(st.dictionaries(st.sampled_from(["messages", "tools", "model"]), listed | stretched))
async def test_tools_and_messages_of_any_length_are_what_the_standard_encoder_writes(
    body: dict[str, Any],
) -> None:
    expected = json.dumps(body, ensure_ascii=False, separators=(",", ":"))
    assert await encode(body) == expected.encode()


LONG: list[dict[Any, Any]] = [
    {"content": "x" * (SLICE_CHARS + 1)},
    {"content": ["x" * 1_000] * 1_000},
    {"content": list(range(100_000))},
    {"x" * 1_000 + str(n): {} for n in range(100)},
    dict.fromkeys(range(1_000), "x" * 100),
]


@pytest.mark.parametrize("long", LONG)
async def test_no_call_of_the_encoder_gets_a_long_value(
    long: dict[Any, Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    short = {"role": "user", "content": "hi"}
    body: dict[str, Any] = {"messages": [short, long]}
    written: list[str] = []
    dumps = json.dumps

    def noted(value: Any, **options: Any) -> str:
        written.append(dumps(value, **options))
        return written[-1]

    monkeypatch.setattr(json, "dumps", noted)
    sent = await encode(body)
    assert json.loads(sent) == json.loads(dumps(body))
    assert max(map(len, written)) <= SLICE_CHARS + 2, "an encoder's call cannot be broken off"
    assert dumps(short, separators=(",", ":")) in written, "the short one is whole"


async def test_a_long_string_is_cut_only_on_the_way() -> None:
    text = 'é"\\\n☕𝄞' * SLICE_CHARS
    assert json.loads(await encode({"messages": [{"content": text}]})) == {
        "messages": [{"content": text}]
    }


async def test_half_a_surrogate_pair_does_not_break_the_body() -> None:
    assert json.loads(await encode({"a": "x\ud800y"})) == {"a": "x?y"}


async def test_numbers_that_json_does_not_have_are_refused() -> None:
    with pytest.raises(ValueError, match="JSON"):
        await encode({"a": float("inf")})


async def test_a_long_body_lets_the_loop_run() -> None:
    turns = 0

    async def count() -> None:
        nonlocal turns
        while True:
            turns += 1
            await asyncio.sleep(0)

    counter = asyncio.create_task(count())
    body = await encode({"messages": [{"content": "x" * (8 * BREATHE_BYTES)}]})
    counter.cancel()
    assert len(body) > 8 * BREATHE_BYTES
    assert turns >= 8
