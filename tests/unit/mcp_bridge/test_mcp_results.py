"""From MCP content to one bounded value, straight or cut on the way in."""

from __future__ import annotations

import json
from base64 import b64encode
from collections.abc import Callable
from typing import Any
from urllib.parse import quote

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

from mcp_bridge.core.server_config import ServerConfig, ServerSecrets
from mcp_bridge.core.tools import ToolCallResult
from mcp_bridge.protocol.json_spans import drop_partial_escape, end_of_value, value_prefix
from mcp_bridge.protocol.messages import SECRET_MARGIN, truncate_answer
from mcp_bridge.protocol.tool_results import normalise


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


def whole(
    message: bytes, max_chars: int, redact: Callable[[str], str] = lambda text: text
) -> ToolCallResult:
    read = jsonrpc_message_adapter.validate_json(message, by_name=False)
    assert read.id == "an id"  # type: ignore[union-attr]
    result = CallToolResult.model_validate(read.result, by_name=False)  # type: ignore[union-attr]
    return normalise(result, max_chars, redact)


@given(RESULTS, st.integers(1, 400), st.integers(0, 30), st.booleans(), st.booleans())
@example({"content": [{"type": "text", "text": "ä" * 20 + "\ud83d\ude00"}]}, 21, 0, True, False)
@example({"content": [], "structuredContent": {"a": '"\\\n\x01' * 9}}, 21, 5, True, False)
def test_cutting_on_the_way_in_changes_no_result(
    result: dict[str, Any], max_chars: int, margin: int, escaped: bool, id_last: bool
) -> None:
    message: dict[str, Any] = {"jsonrpc": "2.0", "id": "an id", "result": result}
    if id_last:
        message["id"] = message.pop("id")
    line = json.dumps(message, ensure_ascii=escaped).encode("utf-8", "surrogatepass")
    try:
        expected = whole(line, max_chars)
    except ValueError:
        return  # lone surrogates are no JSON for the SDK either
    found = whole(truncate_answer(line, max_chars, margin), max_chars)
    assert (found.is_error, found.truncated) == (expected.is_error, expected.truncated)
    if not expected.truncated:
        assert found == expected
    else:
        # The size in the note is about right.
        kept = str(found.value).rpartition("\n[cut here")[0]
        assert len(kept) <= max_chars
        assert expected.value.rpartition("\n[cut here")[0] == kept


@given(JSON, st.integers(1, 80), st.sampled_from([None, 3]), st.booleans())
def test_the_head_of_a_value_is_what_it_would_be_written_as(
    value: Any, room: int, indent: int | None, escaped: bool
) -> None:
    text = json.dumps(value, indent=indent, ensure_ascii=escaped).encode(errors="replace")
    compact = json.dumps(json.loads(text), ensure_ascii=False, separators=(",", ":"))
    head, size = value_prefix(b"[" + text + b"]", 1, 1 + len(text), room)
    assert head == compact[:room]
    assert (size <= room) is (len(compact) <= room)
    if size <= room:
        assert size == len(compact)


def test_what_is_no_json_is_not_mended_by_cutting() -> None:
    start = b'{"jsonrpc": "2.0", "id": 1, "result": {"content": [], "structuredContent": '
    for broken in (b"[1 2]", b"[tr ue]", b'["\\q"]', b"[1,]", b'["a" "b"]', b"nul"):
        line = start + broken + b"}}"
        assert truncate_answer(line, 100) == line


@given(st.text(st.sampled_from('ab"\\\n\x01é\U0001f600u0'), max_size=40), st.integers(0, 60))
def test_a_cut_escape_is_left_out_and_a_whole_one_stays(text: str, at: int) -> None:
    written = json.dumps(text, ensure_ascii=False)
    cut = drop_partial_escape(written[:at])
    assert written[:at].startswith(cut)
    assert at - len(cut) <= 5 or at > len(written)
    if len(cut) < len(written):
        assert text.startswith(json.loads(f'{cut or chr(34)}"'))


@pytest.mark.parametrize("unit", ["你好", "\U0001f600", "éa", '"\\'])
@pytest.mark.parametrize("escaped", [True, False])
@pytest.mark.parametrize("structured", [True, False])
def test_what_fits_by_its_characters_comes_whole_in_every_script(
    unit: str, escaped: bool, structured: bool
) -> None:
    said = unit * (60_000 // len(json.dumps(unit, ensure_ascii=False)[1:-1]))
    value = {"t": said}
    result: dict[str, Any] = {"content": [], "structuredContent": value} if structured else {
        "content": [{"type": "text", "text": said}]
    }  # fmt: skip
    message = {"jsonrpc": "2.0", "id": "an id", "result": result}
    line = json.dumps(message, ensure_ascii=escaped, indent=2).encode()
    assert whole(truncate_answer(line, 65_536), 65_536) == ToolCallResult(
        value if structured else said
    )


@pytest.mark.parametrize("escaped", [True, False])
def test_what_is_cut_of_a_structure_is_text_and_no_escapes(escaped: bool) -> None:
    result: dict[str, Any] = {"content": [], "structuredContent": {"t": "你好\U0001f600" * 100_000}}
    message = {"jsonrpc": "2.0", "id": "an id", "result": result}
    line = json.dumps(message, ensure_ascii=escaped).encode()
    for max_chars in range(1000, 1004):
        found = whole(truncate_answer(line, max_chars), max_chars)
        kept, note = found.value.split("\n[cut here: ")
        assert kept == ('{"t":"' + "你好\U0001f600" * 400)[:max_chars]
        assert 0.999 < int(note.split()[3]) / 300_008 < 1.001


@pytest.mark.parametrize(
    ("blocks", "head"),
    [
        (["x" * 70_000], "xxx"),
        ([5] * 40_000, "5\n5\n5"),
        ([None, {"type": "text", "text": "x" * 70_000}], "null\nxxx"),
    ],
)
def test_large_answers_with_what_is_no_block_are_cut_as_others_are(
    blocks: list[Any], head: str
) -> None:
    message = {"jsonrpc": "2.0", "id": "an id", "result": {"content": blocks}}
    found = whole(truncate_answer(json.dumps(message).encode(), 5_000), 5_000)
    assert found.truncated
    assert found.value.startswith(head)


KEY = 'sk-"live"-0123456789abcdefgh-é'


@given(
    st.integers(-40, 5),
    st.sampled_from(["text", "structure", "blocks"]),
    st.sampled_from([0, 1, 200]),
    st.booleans(),
    st.sampled_from(["plain", "base64", "url"]),
)
def test_a_secret_across_the_cut_is_taken_out_whole(
    before: int, kind: str, more: int, escaped: bool, form: str
) -> None:
    forms = {"plain": KEY, "base64": b64encode(KEY.encode()).decode(), "url": quote(KEY)}
    secret, cap = forms[form], 8_000
    for place in (cap, cap + SECRET_MARGIN):
        # Those that stand before it are taken out, too, and what lay far behind the cut moves up.
        # All of them are whole: half of a secret is none, wherever it comes from.
        head = f"{secret} " * min(more, (place + before) // (len(secret) + 1))
        text = f"{head}{'x ' * place}"[: place + before] + secret + " and more" * 20_000
        content = [{"type": "text", "text": text}]
        if kind == "blocks":
            content = [{"type": "text", "text": "a"}, *content]
        result: dict[str, Any] = {"content": content}
        if kind == "structure":
            result = {"content": [], "structuredContent": {"t": text}}
        message = {"jsonrpc": "2.0", "id": "an id", "result": result}
        line = json.dumps(message, ensure_ascii=escaped).encode()
        config = ServerConfig(name="a", env={"TOKEN": KEY})
        found = whole(truncate_answer(line, cap), cap, ServerSecrets(config).redact_result)
        assert secret[:6] not in found.value
        assert json.dumps(secret, ensure_ascii=escaped)[1:7] not in found.value
        assert len(found.value.split("\n[cut here")[0]) <= cap
        assert found.truncated


def test_a_server_that_writes_the_mark_itself_gains_nothing() -> None:
    for margin in (-(10**9), 0, 10**9, True):
        mark = {"is_error": False, "size": 1, "margin": margin, "written": True}
        said = of(f"the {KEY} " * 10, _meta={"mcp_bridge/cut": mark})
        config = ServerConfig(name="a", env={"TOKEN": KEY})
        assert "live" not in normalise(said, 50, ServerSecrets(config).redact_result).value
        assert len(normalise(said, 50).value.split("\n[cut")[0]) <= 50


@given(st.binary(max_size=200) | JSON.map(lambda value: json.dumps(value).encode()))
def test_anything_else_comes_out_as_it_went_in(line: bytes) -> None:
    assert truncate_answer(line, 10) == line


@pytest.mark.parametrize("escaped", [True, False])
@pytest.mark.parametrize("unit", ["x", "\n", "ä", "\U0001f600", '"', "\\"])
def test_a_giant_string_is_cut_between_two_characters(unit: str, escaped: bool) -> None:
    block = {"type": "text", "text": unit * 400_000}
    message = {"jsonrpc": "2.0", "id": "an id", "result": {"content": [block]}}
    line = json.dumps(message, ensure_ascii=escaped).encode()
    for max_chars in (1000, 1001, 1003):
        result = whole(truncate_answer(line, max_chars), max_chars)
        assert result.value.startswith(unit * max_chars + "\n[cut here:")
        assert result.truncated


def test_a_giant_picture_is_a_note_and_the_words_beside_it_stay_whole() -> None:
    picture = {"type": "image", "data": "A" * 4_000_000, "mimeType": "image/png"}
    file = {"type": "resource", "resource": {"uri": "x:y", "blob": "A" * 400_000}}
    content = [{"type": "text", "text": "here"}, picture, file]
    line = json.dumps({"jsonrpc": "2.0", "id": "an id", "result": {"content": content}}).encode()
    result = whole(truncate_answer(line, 1000), 1000)
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
