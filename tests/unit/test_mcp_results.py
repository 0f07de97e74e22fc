"""From MCP content to one bounded value, straight or cut on the way in."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from mcp_types import (
    AudioContent,
    BlobResourceContents,
    CallToolResult,
    EmbeddedResource,
    ImageContent,
    ResourceLink,
    TextContent,
    TextResourceContents,
    jsonrpc_message_adapter,
)

from mcp_bridge.results import normalise
from mcp_bridge.shrink import shrink
from mcp_bridge.spans import end_of_value
from mcp_bridge.tools import ToolCallResult


def of(*texts: str, **more: Any) -> CallToolResult:
    return CallToolResult(content=[TextContent(text=text) for text in texts], **more)


@pytest.mark.parametrize(
    ("texts", "value"),
    [
        (["plain"], "plain"),
        (['{"a": 1}'], {"a": 1}),
        ([' [1, "x"]\n'], [1, "x"]),
        (['{"a": 1}', '{"b": 2}'], [{"a": 1}, {"b": 2}]),
        (['{"a": 1}', "and words"], '{"a": 1}\nand words'),
        (["00491234"], "00491234"),
        (["1e5"], "1e5"),
        (["true"], "true"),
        (['{"a": NaN}'], '{"a": NaN}'),
        (['{"a": "\\ud800"}'], '{"a": "\\ud800"}'),
        (["{broken"], "{broken"),
        (["[" * 100_000], None),
        ([], ""),
    ],
)
def test_text_becomes_a_value_where_it_is_json(texts: list[str], value: Any) -> None:
    result = normalise(of(*texts), max_chars=200_000)
    assert result == ToolCallResult(texts[0] if value is None else value)


def test_structured_content_goes_before_text() -> None:
    assert normalise(of("words", structured_content={"a": [1]})).value == {"a": [1]}
    assert normalise(of("words", structured_content=None)).value == "words"


def test_an_error_gives_its_text() -> None:
    result = normalise(of("no such city", structured_content={"e": 1}, is_error=True))
    assert result == ToolCallResult("no such city", is_error=True)


def test_what_is_no_text_is_told_in_a_note() -> None:
    result = CallToolResult(
        content=[
            ImageContent(data="A" * 4000, mime_type="image/png"),
            AudioContent(data="A" * 400, mime_type="audio/wav"),
            ResourceLink(name="report", uri="file:///r.pdf"),
            EmbeddedResource(resource=TextResourceContents(uri="x:y", text="inside")),
            EmbeddedResource(resource=BlobResourceContents(uri="x:y", blob="A" * 8)),
        ]
    )
    assert normalise(result).value.splitlines() == [
        "[image image/png, 3.0 kB, not shown]",
        "[audio audio/wav, 0.3 kB, not shown]",
        "[link report: file:///r.pdf]",
        "inside",
        "[file, 0.0 kB, not shown]",
    ]


def test_long_text_and_long_structures_are_cut_with_a_note() -> None:
    text = normalise(of("x" * 50), max_chars=10)
    assert text == ToolCallResult("x" * 10 + "\n[cut here: 10 of about 50 characters]", False, True)
    structure = normalise(of(structured_content={"a": "y" * 50}), max_chars=10)
    assert structure.value.startswith('{"a":"yyyy\n[cut here: 10 of about')
    assert structure.truncated


JSON = st.recursive(
    st.none() | st.booleans() | st.integers(-(2**53), 2**53) | st.text(max_size=60),
    lambda inner: st.lists(inner, max_size=5) | st.dictionaries(st.text(), inner, max_size=5),
    max_leaves=15,
)
TEXT: st.SearchStrategy[Any] = st.fixed_dictionaries(
    {"type": st.just("text"), "text": st.text(max_size=300)}
)
RESOURCE: st.SearchStrategy[Any] = st.fixed_dictionaries(
    {"uri": st.just("x:y"), "text": st.text(max_size=300)}
)
BLOCKS: st.SearchStrategy[Any] = st.lists(
    st.one_of(
        TEXT,
        st.fixed_dictionaries(
            {"type": st.just("image"), "data": st.just("AAAA"), "mimeType": st.just("image/png")}
        ),
        st.fixed_dictionaries({"type": st.just("resource"), "resource": RESOURCE}),
    ),
    max_size=6,
)
RESULTS: st.SearchStrategy[Any] = st.fixed_dictionaries(
    {"content": BLOCKS},
    optional={"structuredContent": JSON, "isError": st.booleans(), "resultType": st.just("x")},
)


def whole(message: bytes, max_chars: int) -> ToolCallResult:
    read = jsonrpc_message_adapter.validate_json(message, by_name=False)
    assert read.id == "an id"  # type: ignore[union-attr]
    result = CallToolResult.model_validate(read.result, by_name=False)  # type: ignore[union-attr]
    return normalise(result, max_chars)


@given(RESULTS, st.integers(1, 400), st.booleans(), st.booleans())
@example({"content": [{"type": "text", "text": "ä" * 20 + "\ud83d\ude00"}]}, 21, True, False)
def test_cutting_on_the_way_in_changes_no_result(
    result: dict[str, Any], max_chars: int, escaped: bool, id_last: bool
) -> None:
    message: dict[str, Any] = {"jsonrpc": "2.0", "id": "an id", "result": result}
    if id_last:
        message["id"] = message.pop("id")
    line = json.dumps(message, ensure_ascii=escaped).encode("utf-8", "surrogatepass")
    try:
        expected = whole(line, max_chars)
    except ValueError:
        return  # lone surrogates are no JSON for the SDK either
    found = whole(shrink(line, max_chars), max_chars)
    assert found.is_error == expected.is_error
    if not expected.truncated and not found.truncated:
        assert found == expected
    else:
        # A structure's length is counted as sent, with its blanks; a text's as characters.
        kept = str(found.value).split("\n[cut here")[0]
        assert len(kept) <= max_chars
        if result.get("structuredContent") is None or found.is_error:
            assert found.truncated
            # Where the cut falls between two blocks, the line's end between them may be gone.
            assert expected.value.split("\n[cut here")[0] in (kept, f"{kept}\n")


@given(st.binary(max_size=200) | JSON.map(lambda value: json.dumps(value).encode()))
def test_anything_else_comes_out_as_it_went_in(line: bytes) -> None:
    assert shrink(line, 10) == line


@pytest.mark.parametrize("escaped", [True, False])
@pytest.mark.parametrize("unit", ["x", "\n", "ä", "\U0001f600", '"', "\\"])
def test_a_giant_string_is_cut_between_two_characters(unit: str, escaped: bool) -> None:
    block = {"type": "text", "text": unit * 400_000}
    message = {"jsonrpc": "2.0", "id": "an id", "result": {"content": [block]}}
    line = json.dumps(message, ensure_ascii=escaped).encode()
    for max_chars in (1000, 1001, 1003):
        result = whole(shrink(line, max_chars), max_chars)
        assert result.value.startswith(unit * max_chars + "\n[cut here:")
        assert result.truncated


def test_a_giant_picture_is_a_note_and_the_words_beside_it_stay_whole() -> None:
    picture = {"type": "image", "data": "A" * 4_000_000, "mimeType": "image/png"}
    file = {"type": "resource", "resource": {"uri": "x:y", "blob": "A" * 400_000}}
    content = [{"type": "text", "text": "here"}, picture, file]
    line = json.dumps({"jsonrpc": "2.0", "id": "an id", "result": {"content": content}}).encode()
    result = whole(shrink(line, 1000), 1000)
    assert result.value == (
        "here\n[image image/png, 3000.0 kB, not shown]\n[file, 300.0 kB, not shown]"
    )
    assert not result.truncated


@given(JSON, st.integers(0, 3), st.booleans())
def test_a_value_ends_where_the_parser_says(value: Any, deeper: int, escaped: bool) -> None:
    if deeper:
        value = [value, {"row": ']}\\"{['}] * 400
    for _ in range(deeper):
        value = {"rows": [value, "}"]}
    text = json.dumps(value, ensure_ascii=escaped).encode(errors="surrogatepass")
    assert end_of_value(text + b' , "more": []}', 0) == len(text)
