"""A request's body as JSON, and how long it holds the loop."""

from __future__ import annotations

import asyncio
import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from caal_node.models.body import BREATHE_BYTES, SLICE_CHARS, encode

scalars = (
    st.none()
    | st.booleans()
    | st.integers()
    | st.floats(allow_nan=False, allow_infinity=False)
    | st.text(alphabet=st.characters(exclude_categories=["Cs"]))
)
values = st.recursive(
    scalars, lambda v: st.lists(v, max_size=4) | st.dictionaries(st.text('abc"é'), v, max_size=4)
)


@given(st.dictionaries(st.text("xyz"), values, max_size=4))
async def test_it_is_what_the_standard_encoder_writes(body: dict[str, Any]) -> None:
    expected = json.dumps(body, ensure_ascii=False, separators=(",", ":"))
    assert await encode(body) == expected.encode()


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
