"""A webhook's reply becomes a value or an error, and arguments become a request."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable
from dataclasses import replace
from typing import Any, TypeVar

import httpx2
import pytest
from hypothesis import given
from hypothesis import strategies as st

from n8n.calls.call import BasicAuth, HeaderAuth, JwtAuth, auth_headers, build_request, call_webhook
from n8n.calls.results import (
    MAX_ERROR_CHARS,
    MAX_SPOKEN_CHARS,
    PAGE_CHARS,
    CallResult,
    read_reply,
    text_of_html,
)
from n8n.core.errors import N8nError
from n8n.core.http import HttpResponse
from n8n.core.json_values import CONTAINERS_MAX, LONG_BYTES, parse_json
from n8n.core.workflow_tool import WorkflowTool

T = TypeVar("T")
TOOL = WorkflowTool(
    name="lights",
    workflow_id="w1",
    node_id="n1",
    version_id=None,
    title="Lights",
    description="",
    full_description="",
    input_schema={"type": "object"},
    examples=(),
    method="POST",
    path="lights",
    response_mode="lastNode",
    auth_kind="none",
)
json_values = st.recursive(
    st.none()
    | st.booleans()
    | st.integers()
    | st.floats(allow_nan=False, allow_infinity=False)
    # Category Cs: halves of surrogate pairs, which a workflow may send escaped.
    | st.text()
    | st.text(st.characters(categories=["Cs", "Ll"])),
    lambda v: st.lists(v, max_size=4) | st.dictionaries(st.text(), v, max_size=4),
)
JSON_TYPE = "application/json; charset=utf-8"


def reply(
    body: bytes | str, status: int = 200, kind: str = JSON_TYPE, truncated: bool = False
) -> HttpResponse:
    raw = body.encode() if isinstance(body, str) else body
    return HttpResponse(status, {"content-type": kind} if kind else {}, raw, truncated)


def outcome(made: Callable[[], T]) -> T | N8nError:
    try:
        return made()
    except N8nError as e:
        return e


@pytest.mark.parametrize(
    ("body", "kind", "got", "value"),
    [
        ('{"a":1}', JSON_TYPE, "object", {"a": 1}),
        ("[1,2]", JSON_TYPE, "array", [1, 2]),
        ('"hello"', JSON_TYPE, "text", "hello"),
        ("7", JSON_TYPE, "scalar", 7),
        ("It is sunny.", "text/html; charset=utf-8", "text", "It is sunny."),
        (
            "<html><head><title>t</title></head><body><h1>Sunny</h1><script>x()</script>"
            "<p>21 &deg;C</p></body></html>",
            "text/html",
            "text",
            "Sunny\n21 °C",
        ),
        ("plain", "", "text", "plain"),
        ("{broken", JSON_TYPE, "text", "{broken"),
        ("NaN", JSON_TYPE, "text", "NaN"),
        (b"\x89PNG", "image/png", "binary", {"status": "file", "type": "image/png", "bytes": 4}),
    ],
)
def test_each_kind_of_reply_is_a_value(body: Any, kind: str, got: str, value: Any) -> None:
    result = read_reply(TOOL, reply(body, kind=kind))
    assert (result.kind, result.value, result.truncated) == (got, value, False)


def test_an_empty_reply_is_a_success_only_where_the_author_made_it_so() -> None:
    assert read_reply(TOOL, reply("")).value["status"] == "unknown"
    assert read_reply(replace(TOOL, answers_nothing=True), reply("")).value["status"] == "done"


def test_a_workflow_that_answers_at_once_has_only_started() -> None:
    started = replace(TOOL, response_mode="onReceived")
    result = read_reply(started, reply('{"message":"Workflow was started"}'))
    assert (result.kind, result.value["status"], result.spoken) == ("started", "started", None)


def test_a_field_is_spoken_only_when_the_author_asked() -> None:
    body = json.dumps({"message": " Done. ", "n": 1})
    assert read_reply(TOOL, reply(body)).spoken is None
    asked = replace(TOOL, spoken_field="message")
    assert read_reply(asked, reply(body)).spoken == "Done."
    assert read_reply(asked, reply('{"message": 3}')).spoken is None
    long = read_reply(asked, reply(json.dumps({"message": "x" * 9999}))).spoken
    assert long is not None
    assert len(long) == MAX_SPOKEN_CHARS


def test_of_a_cut_array_the_complete_items_are_kept() -> None:
    result = read_reply(TOOL, reply('[{"a":1}, {"a":2}, {"a":', truncated=True))
    assert (result.kind, result.value, result.truncated) == ("array", [{"a": 1}, {"a": 2}], True)


@pytest.mark.parametrize("body", ["[1, 12", "[1, 12.", "[1, 12e", "[1, tru", '[1, "tru'])
def test_an_item_that_may_go_on_is_not_complete(body: str) -> None:
    assert read_reply(TOOL, reply(body, truncated=True)).value == [1]


def test_of_an_array_without_a_complete_item_the_beginning_is_text() -> None:
    body = json.dumps(["x" * (2 * LONG_BYTES)])[:-9]
    result = read_reply(TOOL, reply(body, truncated=True))
    assert (result.kind, result.value, result.truncated) == ("text", body, True)


@given(
    st.lists(
        st.floats(allow_nan=False, allow_infinity=False)
        | st.dictionaries(st.text(max_size=3), st.integers(), max_size=3),
        max_size=9,
    ),
    st.integers(1, 300),
)
def test_of_a_cut_array_only_items_that_were_sent_are_kept(items: list[Any], end: int) -> None:
    result = read_reply(TOOL, reply(json.dumps(items)[:end], truncated=True))
    assert result.kind == "text" or result.value == items[: len(result.value)]


def test_a_cut_array_is_read_no_further_than_it_is_shown() -> None:
    body = json.dumps([{"n": n, "pad": "x" * 90} for n in range(9_000)])
    result = read_reply(TOOL, reply(body, truncated=True))
    assert result.truncated
    assert len(json.dumps(result.value)) <= LONG_BYTES
    assert result.value[-1]["n"] == len(result.value) - 1


LONG = " " * LONG_BYTES
"""White space that makes any JSON long."""


@given(json_values)
def test_a_long_text_is_read_like_a_short_one(value: Any) -> None:
    text = json.dumps(value)
    assert parse_json(text + LONG) == parse_json(text)


@pytest.mark.parametrize("text", ["NaN", "[1e999]", '{"a":', "[1] 2", '["\\ud83d", Infinity]'])
def test_a_long_text_that_is_no_json_is_refused_like_a_short_one(text: str) -> None:
    for each in (text, text + LONG):
        with pytest.raises(ValueError, match=r"not JSON|too large|Expecting|Extra"):
            parse_json(each)


def test_a_long_text_of_too_many_values_is_refused_before_it_is_read() -> None:
    most = "[" + "[]," * (CONTAINERS_MAX - 2) + "1]"
    assert len(parse_json(most)) == CONTAINERS_MAX - 1
    with pytest.raises(ValueError, match="too many values"):
        parse_json(f"[[{most}]]")


async def test_other_tasks_go_on_while_a_long_reply_is_read() -> None:
    rows = [{"n": n} for n in range(80_000)]
    turns = 0

    async def count_turns() -> None:
        nonlocal turns
        while True:
            await asyncio.sleep(0.002)
            turns += 1

    counting = asyncio.create_task(count_turns())
    result = await called(json.dumps(rows, separators=(",", ":")).encode())
    counting.cancel()
    assert (result.kind, result.value, result.truncated) == ("array", rows, False)
    assert turns >= 5, "the event loop stood still"


async def test_an_array_of_four_mebibytes_is_cut_and_says_so() -> None:
    body = json.dumps([{"n": n, "pad": "x" * 90} for n in range(40_000)]).encode()
    assert len(body) > 4 * 1024 * 1024
    result = await called(body)
    assert (result.kind, result.truncated) == ("array", True)
    assert [row["n"] for row in result.value] == list(range(len(result.value)))
    assert 0 < len(result.value) < 40_000


async def called(body: bytes) -> CallResult:
    def answer(_: httpx2.Request) -> httpx2.Response:
        return httpx2.Response(200, content=body, headers={"content-type": JSON_TYPE})

    async with httpx2.AsyncClient(transport=httpx2.MockTransport(answer)) as client:
        return await call_webhook(client, "http://n8n.test", TOOL, {}, headers={}, timeout_s=10)


def test_a_cut_object_is_the_beginning_as_text() -> None:
    result = read_reply(TOOL, reply('{"a": "xx', truncated=True))
    assert (result.kind, result.value, result.truncated) == ("text", '{"a": "xx', True)


@pytest.mark.parametrize(
    ("status", "body", "kind"),
    [
        (302, "", "redirected"),
        (400, '{"error":"no such lamp"}', "rejected"),
        (403, '{"error":"not you"}', "rejected"),
        (429, "", "rate_limited"),
        (502, "<html><body>Bad Gateway</body></html>", "workflow_failed"),
    ],
)
def test_each_refusal_has_its_kind(status: int, body: str, kind: str) -> None:
    with pytest.raises(N8nError) as caught:
        read_reply(TOOL, reply(body, status))
    assert caught.value.kind == kind
    assert caught.value.status == status


def test_an_authors_own_error_reaches_the_model_without_the_stack() -> None:
    body = json.dumps({"error": "no such lamp", "stacktrace": "Error\n at /n8n/x.ts", "code": 7})
    with pytest.raises(N8nError) as caught:
        read_reply(TOOL, reply(body, 404))
    assert str(caught.value) == 'lights refused the call (404): {"error":"no such lamp"}'


def test_no_stack_is_told_whichever_field_it_hides_in() -> None:
    body = json.dumps({"error": {"a": 1}, "reason": "jam\n    at Object.<anonymous> (x.ts:3)"})
    with pytest.raises(N8nError) as caught:
        read_reply(TOOL, reply(body, 500))
    assert str(caught.value) == (
        'lights failed while it was running ({"error":{"a":1},"reason":"jam"}).'
    )


@given(
    st.integers(200, 599),
    st.binary(max_size=200) | st.text(max_size=200).map(str.encode),
    st.sampled_from([JSON_TYPE, "text/html", "text/plain", "", "image/png", "application/xml"]),
    st.booleans(),
)
def test_any_reply_is_a_json_value_or_a_short_error(
    status: int, body: bytes, kind: str, truncated: bool
) -> None:
    got = outcome(lambda: read_reply(TOOL, reply(body, status, kind, truncated)))
    if isinstance(got, N8nError):
        assert len(str(got).splitlines()) == 1
        assert len(str(got)) < MAX_ERROR_CHARS + 80
    else:
        json.dumps(got.value, allow_nan=False, ensure_ascii=False).encode()


def test_arguments_go_to_path_query_and_body() -> None:
    tool = replace(TOOL, path="rooms/:room/lights", locations={"room": "path", "dry": "query"})
    request = build_request(tool, {"room": "a/b ?", "dry": True, "on": [1], "gone": None})
    assert request.path == "rooms/a%2Fb%20%3F/lights"
    assert request.query == {"dry": "true"}
    assert json.loads(request.body or b"") == {"on": [1]}


def test_a_get_has_no_body() -> None:
    request = build_request(replace(TOOL, method="GET"), {"n": 3, "deep": {"a": 1}})
    assert request.body is None
    assert request.query == {"n": "3", "deep": '{"a": 1}'}


@pytest.mark.parametrize("value", ["", "..", None, "."])
def test_a_path_argument_cannot_leave_its_place(value: str | None) -> None:
    with pytest.raises(N8nError, match="needs the argument 'room'"):
        build_request(replace(TOOL, path="rooms/:room"), {"room": value})


@pytest.mark.parametrize(
    "arguments", [{"x": object()}, {"x": float("nan")}, {"x": "y" * 2_000_000}, {"x": "\ud800"}]
)
def test_arguments_that_cannot_be_sent_are_invalid(arguments: dict[str, Any]) -> None:
    with pytest.raises(N8nError) as caught:
        build_request(TOOL, arguments)
    assert caught.value.kind == "invalid_arguments"


@given(st.dictionaries(st.text(max_size=8), st.text(max_size=30) | st.integers(), max_size=4))
def test_every_path_and_query_is_fit_for_a_url(arguments: dict[str, Any]) -> None:
    tool = replace(TOOL, method="GET", path="a b/:x")
    request = outcome(lambda: build_request(tool, {"x": "y", **arguments}))
    if isinstance(request, N8nError):
        assert request.kind == "invalid_arguments"
    else:
        assert request.path.isascii()
        assert request.path.count("/") == 1
        assert all(value.encode() is not None for value in request.query.values())


def test_credentials_are_found_by_path_name_or_workflow_and_do_not_show() -> None:
    tool = replace(TOOL, auth_kind="header")
    by_path = {"lights": HeaderAuth("x-key", "s3cret"), "w1": JwtAuth("t0ken")}
    assert auth_headers(tool, by_path) == {"x-key": "s3cret"}
    assert auth_headers(tool, {"w1": BasicAuth("u", "p")}) == {"Authorization": "Basic dTpw"}
    assert auth_headers(TOOL, by_path) == {}
    assert "s3cret" not in repr(by_path)
    assert "t0ken" not in repr(by_path)


HTML_PIECES = (
    *(
        "<",
        ">",
        "</",
        "<a ",
        "b=",
        '"',
        "'",
        "&",
        "&#",
        "&lt;",
        ";",
        "x",
        " ",
        "\n",
        "\0",
        "\ud800",
    ),
    *("<!--", "-->", "<![CDATA[", "]]>", "<?", "<p>", "</p>", "<div>", "<br>", "<table>", "<td>"),
    *("<script>", "</script>", "<plaintext>", "<textarea>", "<template>", "<svg>", "<select>"),
)


@given(st.lists(st.sampled_from(HTML_PIECES), max_size=40).map("".join) | st.text(max_size=60))
def test_any_page_becomes_text_that_can_be_sent_on(page: str) -> None:
    text = text_of_html(page)
    assert "\0" not in text or text == page
    if text != page:
        assert text.encode().decode() == text
        assert all(line == " ".join(line.split()) != "" for line in text.split("\n")) or not text


@pytest.mark.parametrize(
    ("page", "text"),
    [
        ("<p>one<p>two<br>three", "one\ntwo\nthree"),
        ("<head><title>t</title></head>x<script>y()</script><!-- z -->", "x"),
        ("<script>never ends", ""),
        ("<a href='never ends", ""),
        ("<plaintext><b>", "<b>"),
        ("5 < 6 &amp; 7", "5 < 6 & 7"),
        ("<!-- -->", ""),
        ("<?php x ?>y", "y"),
        ("<div>" * 100_000 + "too deep", ""),
        ("<p>head</p>" + " " * PAGE_CHARS + "too far", "head"),
    ],
)
def test_the_words_of_a_page_are_kept(page: str, text: str) -> None:
    assert text_of_html(page) == text


def test_a_page_without_words_tells_as_little_as_no_answer() -> None:
    assert read_reply(TOOL, reply("<a " * 1_000, kind="text/html")).kind == "empty"


def test_a_packed_answer_is_refused_and_the_owner_told() -> None:
    packed = HttpResponse(200, {"content-encoding": "gzip", "content-type": JSON_TYPE}, b"", False)
    with pytest.raises(N8nError, match=r"packed \(gzip\).* do not call it again") as caught:
        read_reply(TOOL, packed)
    assert "compression" in str(caught.value.fix)
