"""Discovery on the wire: the recorded n8n by both of its APIs, and everything that goes wrong."""

from __future__ import annotations

import json
from collections.abc import AsyncGenerator, Callable
from contextlib import asynccontextmanager
from typing import Any

import pytest

from n8n import Discovery, N8nError, N8nTools, WorkflowTool
from n8n.core.http import KEPT_FOR_LISTING, RateLimiter
from tests.recorded_n8n import RecordedN8n
from tests.recorded_n8n.loopback import LoopbackRequest, LoopbackResponse, LoopbackServer


def by_id(found: Discovery) -> dict[tuple[str, str], WorkflowTool]:
    return {(tool.workflow_id, tool.node_id): tool for tool in found.tools}


def named(found: Discovery) -> dict[str, WorkflowTool]:
    return {tool.name: tool for tool in found.tools}


def reasons(found: Discovery) -> dict[str, str]:
    return {skipped.title: skipped.reason for skipped in found.skipped}


def by_rest(recorded: RecordedN8n, **more: Any) -> N8nTools:
    return N8nTools(recorded.base_url, api_key=recorded.api_key, **more)


def by_mcp(recorded: RecordedN8n, **more: Any) -> N8nTools:
    return N8nTools(recorded.base_url, mcp_token=recorded.mcp_token, **more)


@asynccontextmanager
async def server(answer: Callable[[LoopbackRequest], LoopbackResponse]) -> AsyncGenerator[str]:
    async def handle(request: LoopbackRequest) -> LoopbackResponse:
        return answer(request)

    loopback = LoopbackServer(handle)
    try:
        yield f"http://127.0.0.1:{await loopback.start(0)}"
    finally:
        await loopback.aclose()


def copies(number: int) -> list[dict[str, Any]]:
    def one(i: int) -> dict[str, Any]:
        node = {
            "id": f"n{i}",
            "name": "Webhook",
            "type": "n8n-nodes-base.webhook",
            "webhookId": f"h{i}",
            "notes": f"Does {i}. Parameters: city (required).",
            "parameters": {"httpMethod": "POST", "path": f"p{i}", "responseMode": "lastNode"},
        }
        return {
            "id": f"w{i}",
            "name": f"copy {i}",
            "createdAt": f"2026-01-01T00:00:{i:06d}Z",
            "updatedAt": "2026",
            "versionId": "v",
            "activeVersionId": "v",
            "nodes": [node],
        }

    return [one(i) for i in range(number)]


async def test_the_public_api_lists_all_in_one_request() -> None:
    async with RecordedN8n() as recorded, by_rest(recorded) as n:
        first = await n.discover()
        again = await n.discover()
        listed = [seen for seen in recorded.requests if seen.path == "/api/v1/workflows"]
    assert (first.source, len(first.tools)) == ("rest", 30)
    assert first.notices == ()
    assert [t.name for t in first.tools] == sorted(t.name for t in first.tools)
    assert len(listed) == 2
    # Workflows that tell nothing of their inputs are looked at for pinned data, each version once.
    assert (first.requests, again.requests) == (5, 1)
    assert again.tools == first.tools


async def test_pinned_data_is_asked_for_where_nothing_else_tells_inputs() -> None:
    quiet, loud = copies(2)
    for workflow, notes in ((quiet, ""), (loud, "Does it. Parameters: x.")):
        workflow["nodes"][0]["notes"] = notes
        code = {"id": "c", "name": "Code", "type": "n8n-nodes-base.code"}
        workflow["nodes"].append({**code, "parameters": {"jsCode": "return $input.all()"}})
        workflow["pinData"] = {"Webhook": [{"json": {"body": {"city": "Oslo"}}}]}
    async with RecordedN8n(active=[]) as recorded, by_rest(recorded) as n:
        recorded.instance.add(quiet)
        recorded.instance.add(loud)
        tools = named(await n.discover())
        asked = [seen.path for seen in recorded.requests]
    assert tools["copy_0"].origins == {"city": "pinned"}
    assert tools["copy_1"].origins == {"x": "prose"}
    assert asked == ["/api/v1/workflows", "/api/v1/workflows/w0"]
    assert "Oslo" not in str(tools)


async def test_both_apis_tell_the_same_of_a_workflow() -> None:
    async with RecordedN8n() as recorded:
        async with by_rest(recorded) as n:
            rest = by_id(await n.discover())
        async with by_mcp(recorded) as n:
            found = await n.discover()
    mcp = by_id(found)
    assert found.source == "mcp"
    assert len(mcp) == 26
    # What the listing's snapshot of the MCP server does not have was not recorded there.
    assert mcp == {key: rest[key] for key in mcp}


@pytest.mark.parametrize("connect", [by_rest, by_mcp])
async def test_a_tool_is_made_of_the_published_version_not_the_draft(
    connect: Callable[[RecordedN8n], N8nTools],
) -> None:
    async with RecordedN8n() as recorded, connect(recorded) as n:
        echo = named(await n.discover())["echo"]
    assert (echo.path, echo.description) == ("echo", "Echo the raw request.")


async def test_method_path_auth_and_response_mode_come_from_the_webhook() -> None:
    async with RecordedN8n() as recorded, by_rest(recorded) as n:
        tools = named(await n.discover())
    order = tools["get_order"]
    assert (order.method, order.path) == (
        "GET",
        "2261997c-dafe-5e37-9d9f-e97428b77a44/orders/:orderId",
    )
    assert tools["Convert_Units"].path == "units/convert"
    kinds = {n: tools[n].auth_kind for n in ("secure_lookup", "basic_lookup", "jwt_lookup", "echo")}
    assert list(kinds.values()) == ["header", "basic", "jwt", "none"]
    assert tools["fire_and_forget"].response_mode == "onReceived"
    assert tools["no_data"].answers_nothing
    assert tools["multi_method"].method == "GET", "its output for POST leads nowhere"


async def test_of_two_workflows_with_one_name_the_older_keeps_it() -> None:
    async with RecordedN8n() as recorded, by_rest(recorded) as n:
        tools = named(await n.discover())
    assert tools["get_weather"].path == "get_weather"
    (other,) = (t for name, t in tools.items() if name.startswith("get_weather_"))
    assert other.path == "get_weather_2"


@pytest.mark.parametrize("connect", [by_rest, by_mcp])
async def test_what_is_no_tool_is_listed_with_its_reason(
    connect: Callable[[RecordedN8n], N8nTools],
) -> None:
    async with RecordedN8n() as recorded, connect(recorded) as n:
        found = await n.discover()
    told = reasons(found)
    assert told["hidden_one"] == "not_available_in_mcp"
    assert told["open_ticket_form"] == "no_webhook"
    if found.source == "mcp":
        assert told["draft_only"] == "inactive"
    else:
        assert told["expr_path"] == "path_is_an_expression"
    assert not {"hidden_one", "draft_only", "expr_path"} & named(found).keys()


async def test_a_workflow_that_is_switched_on_appears_and_no_other_name_changes() -> None:
    async with RecordedN8n(active=["get_weather", "echo"]) as recorded, by_rest(recorded) as n:
        before = named(await n.discover())
        recorded.activate("list_events")
        recorded.deactivate("echo")
        after = named(await n.discover())
    assert before.keys() == {"get_weather", "echo"}
    assert after.keys() == {"get_weather", "list_events"}
    assert after["get_weather"] == before["get_weather"]


async def test_only_names_of_the_last_discovery_can_be_called() -> None:
    async with RecordedN8n(active=["get_weather", "echo"]) as recorded, by_rest(recorded) as n:
        with pytest.raises(N8nError, match="no workflow named 'echo'"):
            await n.call("echo", {})
        await n.discover()
        await n.call("echo", {})
        recorded.deactivate("echo")
        await n.discover()
        with pytest.raises(N8nError) as caught:
            await n.call("get_wether", {})
        seen = len(recorded.requests)
        with pytest.raises(N8nError, match="no workflow named"):
            await n.call("echo", {})
        assert len(recorded.requests) == seen
    assert caught.value.kind == "unknown_tool"
    assert "Did you mean get_weather?" in str(caught.value)


async def test_five_hundred_workflows_come_in_pages_of_fifty() -> None:
    async with RecordedN8n(active=[]) as recorded, by_rest(recorded) as n:
        for workflow in copies(500):
            recorded.instance.add(workflow)
        found = await n.discover()
    assert (found.requests, len(found.tools)) == (10, 500)


async def test_more_than_mcp_lists_at_once_is_looked_for_in_other_orders_and_said() -> None:
    async with RecordedN8n(active=[]) as recorded, by_mcp(recorded) as n:
        for workflow in copies(260):
            recorded.instance.add(workflow)
        found = await n.discover()
    assert len(found.tools) + list(reasons(found).values()).count("rate_limited") == 260
    assert found.notices[0].startswith("n8n lists only 200 workflows at once through MCP")


async def test_the_limit_of_the_mcp_server_is_kept_and_the_next_look_goes_on_from_there() -> None:
    now = 0.0
    limiter = RateLimiter(clock=lambda: now)
    async with RecordedN8n(active=[]) as recorded, by_mcp(recorded, rate_limiter=limiter) as n:
        for workflow in copies(150):
            recorded.instance.add(workflow)
        first = await n.discover()
        assert len(recorded.requests) == 100 - KEPT_FOR_LISTING
        assert "Workflows that were not read" in first.notices[0]
        early = await n.discover()  # one listing is left for it, and no details
        assert {t.name for t in early.tools} == {t.name for t in first.tools}
        assert len(recorded.requests) <= 100
        now = 300.0
        last = await n.discover()
    assert (len(first.tools), len(last.tools)) == (91, 150)
    assert all(t in last.tools for t in first.tools)


async def test_five_hundred_workflows_by_mcp_are_as_many_as_the_limit_allows() -> None:
    async with RecordedN8n(active=[]) as recorded, by_mcp(recorded) as n:
        for workflow in copies(500):
            recorded.instance.add(workflow)
        found = await n.discover()
        assert len(recorded.requests) <= 100
    assert len(found.tools) == 100 - KEPT_FOR_LISTING - 4
    assert len(found.notices) == 2


async def test_a_version_that_the_list_lacks_is_asked_for_once() -> None:
    (listed,) = copies(1)
    listed |= {
        "active": True,
        "versionId": "draft",
        "activeVersionId": "live",
        "activeVersion": None,
    }
    live = [{**listed["nodes"][0], "notes": "Live. Parameters: x."}]
    asked: list[str] = []

    def answer(request: LoopbackRequest) -> LoopbackResponse:
        asked.append(request.path)
        told = {"data": [listed]} if request.path.endswith("/workflows") else {"nodes": live}
        return LoopbackResponse(
            200, json.dumps(told).encode(), (("content-type", "application/json"),)
        )

    async with server(answer) as url, N8nTools(url, api_key="key") as n:
        found = await n.discover()
        assert (await n.discover()).tools == found.tools
    assert [t.description for t in found.tools] == ["Live."]
    assert asked == ["/api/v1/workflows", "/api/v1/workflows/w0/live", "/api/v1/workflows"]


async def test_a_version_that_cannot_be_had_is_no_tool() -> None:
    (listed,) = copies(1)
    listed |= {
        "active": True,
        "versionId": "draft",
        "activeVersionId": "live",
        "activeVersion": None,
    }

    def answer(request: LoopbackRequest) -> LoopbackResponse:
        if not request.path.endswith("/workflows"):
            return LoopbackResponse(404)
        body = json.dumps({"data": [listed]}).encode()
        return LoopbackResponse(200, body, (("content-type", "application/json"),))

    async with server(answer) as url, N8nTools(url, api_key="key") as n:
        assert reasons(await n.discover()) == {"copy 0": "unpublished"}


async def test_a_short_rate_limit_is_waited_for() -> None:
    async with RecordedN8n() as recorded, by_mcp(recorded) as n:
        recorded.mcp.limit(3, retry_after_s=0)
        found = await n.discover()
    assert len(found.tools) == 26
    assert found.requests == 28  # one answer in between was 429


async def test_a_long_rate_limit_is_told_at_once() -> None:
    async with RecordedN8n() as recorded, by_mcp(recorded) as n:
        recorded.mcp.limit(0, retry_after_s=290)
        with pytest.raises(N8nError, match="no more requests for 290 s") as caught:
            await n.discover()
    assert caught.value.kind == "rate_limited"
    assert caught.value.retry_after_s == 290


async def test_details_that_a_rate_limit_hides_are_listed_and_nothing_more_is_asked() -> None:
    async with RecordedN8n() as recorded, by_mcp(recorded) as n:
        recorded.mcp.limit(4, retry_after_s=290)
        found = await n.discover()
        assert len(recorded.requests) < 20
    assert 0 < len(found.tools) <= 10
    assert list(reasons(found).values()).count("rate_limited") >= 10


async def test_while_rate_limited_a_known_workflow_stays_as_it_was() -> None:
    async with RecordedN8n() as recorded, by_mcp(recorded) as n:
        first = await n.discover()
        recorded.mcp.limit(1, retry_after_s=290)
        again = await n.discover()
    assert again.tools == first.tools
    assert "as last seen" in again.notices[0]


@pytest.mark.parametrize(
    ("credentials", "kind", "fix"),
    [
        ({"api_key": "wrong"}, "unauthorized", "n8n refused N8N_API_KEY: make a new one"),
        ({"mcp_token": "wrong"}, "unauthorized", "n8n refused N8N_MCP_TOKEN: make a new one"),
        ({}, "config", "needs N8N_API_KEY"),
        ({"api_key": "", "mcp_token": ""}, "config", "needs N8N_API_KEY"),
    ],
)
async def test_a_refused_credential_is_one_line_with_its_fix(
    credentials: dict[str, str], kind: str, fix: str
) -> None:
    async with RecordedN8n() as recorded, N8nTools(recorded.base_url, **credentials) as n:
        with pytest.raises(N8nError, match=fix) as caught:
            await n.discover()
    assert caught.value.kind == kind
    assert "\n" not in str(caught.value)
    assert "wrong" not in str(caught.value)


async def test_a_key_that_may_not_read_workflows_is_told_what_it_lacks() -> None:
    async def forbid(_: LoopbackRequest) -> LoopbackResponse:
        return LoopbackResponse(
            403, b'{"message":"Forbidden"}', (("content-type", "application/json"),)
        )

    server = LoopbackServer(forbid)
    try:
        url = f"http://127.0.0.1:{await server.start(0)}"
        async with N8nTools(url, api_key="narrow") as n:
            with pytest.raises(N8nError, match="give it workflow:list, workflow:read") as caught:
                await n.discover()
    finally:
        await server.aclose()
    assert (caught.value.kind, caught.value.status) == ("unauthorized", 403)


async def test_an_mcp_server_that_is_off_says_where_to_turn_it_on() -> None:
    async with RecordedN8n() as recorded, by_mcp(recorded) as n:
        recorded.mcp.enabled = False
        with pytest.raises(N8nError, match="is switched off: turn it on in Settings") as caught:
            await n.discover()
    assert caught.value.kind == "disabled"


async def test_mcp_steps_in_for_a_key_that_is_refused() -> None:
    async with RecordedN8n() as recorded:
        n = N8nTools(recorded.base_url, mcp_token=recorded.mcp_token, api_key="old")
        async with n:
            found = await n.discover()
    assert found.source == "mcp"
    assert "n8n refused N8N_API_KEY" in found.notices[0]


async def test_a_dead_host_is_unreachable_and_the_former_tools_stay() -> None:
    async with RecordedN8n() as recorded:
        n = by_rest(recorded)
        await n.discover()
    with pytest.raises(N8nError, match="check N8N_URL and that n8n is running") as caught:
        await n.discover()
    assert caught.value.kind == "unreachable"
    assert len(n.tools) == 30
    await n.aclose()


async def test_an_instance_that_does_not_answer_times_out() -> None:
    async with RecordedN8n() as recorded, by_rest(recorded, discovery_timeout_s=0.05) as n:
        with (
            recorded.hold("/api/v1/workflows"),
            pytest.raises(N8nError, match="did not answer in time") as caught,
        ):
            await n.discover()
    assert caught.value.kind == "timeout"


@pytest.mark.parametrize(
    ("reply", "kind", "words"),
    [
        (LoopbackResponse(200, b"<html>Welcome</html>"), "protocol", "does not answer like n8n"),
        (LoopbackResponse(200, b'{"data": 7}'), "protocol", "no list of workflows"),
        (LoopbackResponse(200, b"[" * 100_000), "protocol", "does not answer like n8n"),
        (LoopbackResponse(404), "disabled", "has no public API"),
        (LoopbackResponse(503), "protocol", "status 503"),
        (
            LoopbackResponse(301, b"", (("location", "https://n8n.example/api"),)),
            "protocol",
            "redirects to https://n8n.example/api",
        ),
    ],
)
async def test_a_server_that_is_no_n8n_is_told_apart(
    reply: LoopbackResponse, kind: str, words: str
) -> None:
    async with server(lambda _: reply) as url, N8nTools(url, api_key="key") as n:
        with pytest.raises(N8nError, match=words) as caught:
            await n.discover()
    assert caught.value.kind == kind


async def test_an_mcp_answer_without_a_result_is_no_n8n() -> None:
    error = {"jsonrpc": "2.0", "id": 1, "error": {"code": -32601, "message": "Method not found"}}
    answer = LoopbackResponse(
        200, json.dumps(error).encode(), (("content-type", "application/json"),)
    )
    async with server(lambda _: answer) as url, N8nTools(url, "token") as n:
        with pytest.raises(N8nError, match="Method not found"):
            await n.discover()


async def test_one_workflow_with_strange_details_does_not_cost_the_others() -> None:
    preview = {"active": True, "availableInMCP": True}
    listed = {"data": [{"id": "a", "name": "A", **preview}, {"id": "b", "name": "B", **preview}]}
    good = {"id": "b", "name": "B", "active": True, "nodes": copies(1)[0]["nodes"]}

    def answer(request: LoopbackRequest) -> LoopbackResponse:
        call = json.loads(request.body)["params"]
        if call["name"] == "search_workflows":
            told: dict[str, Any] = listed
        else:
            told = {"workflow": good if call["arguments"]["workflowId"] == "b" else None}
        # The shape of n8n 1.121: text alone.
        content = {"content": [{"type": "text", "text": json.dumps(told)}]}
        message = json.dumps({"jsonrpc": "2.0", "id": 1, "result": content})
        return LoopbackResponse(200, message.encode(), (("content-type", "application/json"),))

    async with server(answer) as url, N8nTools(url, "token") as n:
        found = await n.discover()
    assert [t.name for t in found.tools] == ["B"]
    assert reasons(found) == {"A": "unreadable"}


async def test_a_password_in_the_address_is_used_and_not_shown() -> None:
    async with RecordedN8n() as recorded:
        url = recorded.base_url.replace("://", "://user:s3cret@")
        n = N8nTools(url, api_key=recorded.api_key)
        await n.discover()
        assert recorded.requests[0].headers["authorization"].startswith("Basic ")
    with pytest.raises(N8nError, match=r"cannot be reached at http://127\.0") as caught:
        await n.discover()
    assert "s3cret" not in str(caught.value)
    await n.aclose()


@pytest.mark.parametrize("url", ["", "http//n8n", "ftp://x", "http://", "http://x:99999"])
def test_an_address_that_is_none_is_refused_at_once(url: str) -> None:
    with pytest.raises(N8nError, match=r"^N8N_URL .*address") as caught:
        N8nTools(url)
    assert caught.value.kind == "config"


async def test_the_address_of_the_mcp_server_is_taken_for_its_instance() -> None:
    async with RecordedN8n() as recorded:
        url = f"{recorded.base_url.partition('://')[2]}/mcp-server/http/"
        async with N8nTools(url, mcp_token=recorded.mcp_token) as n:
            assert len((await n.discover()).tools) == 26
