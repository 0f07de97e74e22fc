"""Messages as they were sent: halves of pairs are replaced, and whole ones stay as they are."""

from __future__ import annotations

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st
from mcp_types import JSONRPCError, JSONRPCResponse

from mcp_bridge.protocol.messages import read_message, replace_lone_surrogates

# All characters, halves of surrogate pairs and backslashes more often than others.
_texts = st.text(st.characters() | st.characters(categories=["Cs"]) | st.sampled_from("\\ud83d"))


@given(_texts, st.booleans())
def test_only_halves_of_pairs_are_replaced(text: str, escaped: bool) -> None:
    sent = json.dumps(text, ensure_ascii=escaped).encode(errors="surrogatepass")
    # Halves that stand beside each other are a pair to whoever reads the JSON.
    meant = json.loads(sent.decode(errors="surrogatepass"))
    whole = "".join("\ufffd" if "\ud800" <= char <= "\udfff" else char for char in meant)
    read = json.loads(replace_lone_surrogates(sent))
    if escaped:
        assert read == whole
    else:  # as bytes, a half is up to three that are no UTF-8
        assert read.replace("\ufffd", "") == whole.replace("\ufffd", "")


async def test_an_answer_that_is_no_json_becomes_an_error_under_its_id() -> None:
    message = await read_message(b'{"jsonrpc": "2.0", "id": 7, "result": {"a": nope}}', 100)
    assert isinstance(message, JSONRPCError)
    assert (message.id, message.error.message) == (7, "its answer is not JSON that can be read")


@pytest.mark.parametrize("text", [b"Welcome!", b"{", b"[1, 2]", b'{"id": 3}'])
async def test_what_is_no_answer_at_all_is_passed_over(text: bytes) -> None:
    assert await read_message(text, 100) is None


async def test_a_large_answer_with_half_a_pair_is_read_and_cut() -> None:
    text = json.dumps({"content": [{"type": "text", "text": "\ud83d" + "x" * 200_000}]})
    sent = b'{"jsonrpc": "2.0", "id": 1, "result": ' + text.encode() + b"}"
    message = await read_message(sent, 1_000)
    assert isinstance(message, JSONRPCResponse)
    (block,) = message.result["content"]
    assert block["text"].startswith("\ufffdxxx")
    assert len(block["text"]) < 6_000
