"""The control API keeps to its own OpenAPI document, whatever it is sent."""

from __future__ import annotations

import asyncio
import contextlib
import itertools
import socket
import threading
from collections.abc import Iterator
from typing import Any, get_args

import httpx2
import uvicorn
from pydantic import SecretStr

from caal_node.config.settings import Settings
from caal_node.control.app import make_app
from caal_node.control.messages import (
    CallAnswer,
    CallFailure,
    FailureKind,
    FindAnswer,
    FindTools,
    ListAnswer,
    ListTools,
    ToolsAnswer,
    ToolsRequest,
    ToolSummary,
)
from caal_node.core.events import Announced, AnswerTo, NotSaid, Priority
from tests.stand_ins.agent_rooms import AgentRooms
from tests.stand_ins.api_fuzz import fuzz

TOKEN = "-".join(["a", "long", "random", "token"])
KINDS: tuple[FailureKind, ...] = (
    "unknown_tool",
    "refused",
    "needs_confirmation",
    "timeout",
    "unavailable",
    "tool_error",
    "error",
)
"""Without `invalid_arguments`: whether arguments fit is the tool's to say, not the document's."""
ENDS = itertools.cycle([*KINDS, None, None])
TOOL = ToolSummary(
    name="get_weather",
    tier="n8n",
    server="n8n",
    tool="get_weather",
    description="Weather of a city.",
    input_schema={"type": "object"},
    offered=True,
)
BECAME = itertools.cycle(
    [
        Announced("said"),
        *(Announced("not_said", reason) for reason in get_args(NotSaid)),
    ]
)
ANSWERED = itertools.cycle([Announced("answered", answer="yes"), Announced("silence")])
START_S = 20.0


async def every_answer(request: ToolsRequest) -> ToolsAnswer:
    """A stand-in agent, whose calls end in every way in turn."""
    match request:
        case ListTools():
            return ListAnswer(tools=[TOOL], failed={"files": "is down"})
        case FindTools(patterns=patterns):
            return FindAnswer(found=len(patterns), tools=[TOOL])
        case call:
            if (kind := next(ENDS)) is not None:
                return CallFailure(kind=kind, message="no", valid_names=["x"])
            return CallAnswer(
                name=call.name,
                tier="mcp",
                server="files",
                call_id="api_1",
                duration_ms=1,
                result=call.arguments,
                truncated=False,
            )


@contextlib.contextmanager
def served(app: Any) -> Iterator[str]:
    """`app` on a port of its own, in a thread with a loop of its own."""
    with socket.socket() as listening:
        listening.bind(("127.0.0.1", 0))
        listening.listen()
        server = uvicorn.Server(uvicorn.Config(app, log_config=None))
        thread = threading.Thread(target=server.run, args=([listening],), daemon=True)
        thread.start()
        try:
            yield f"http://127.0.0.1:{listening.getsockname()[1]}"
        finally:
            server.should_exit = True
            thread.join(START_S)


async def every_way(_: str, priority: Priority, answer: AnswerTo) -> Announced:
    return next(ANSWERED if answer == "caller" and priority != "low" else BECAME)


def test_every_path_answers_as_it_is_described() -> None:
    rooms = AgentRooms(every_answer, on_say=every_way)
    app = make_app(Settings(control_token=SecretStr(TOKEN)), rooms)
    with served(app) as url:
        counts = fuzz(url, TOKEN, examples=12)
    statuses = {status for _, status in counts}
    assert {200, 403, 404, 422, 502, 503, 504} <= statuses
    assert {label for label, status in counts if status == 200} == {
        "GET /health",
        "GET /api/tools",
        "POST /api/tools",
        "POST /api/tools/search",
        "POST /reload-tools",
        "POST /say",
        "POST /announce",
        "GET /events",
    }
    # An agent in memory has no model to change; that path's own answers are in its own tests.
    assert ("POST /model", 502) in counts


async def test_the_document_describes_every_path_with_answers_errors_and_examples() -> None:
    app = make_app(Settings(control_token=SecretStr(TOKEN)), AgentRooms(every_answer))
    async with httpx2.AsyncClient(
        transport=httpx2.ASGITransport(app=app), base_url="http://control"
    ) as http:
        bearer = {"Authorization": f"Bearer {TOKEN}"}
        described = (await http.get("/api/openapi.json", headers=bearer)).json()
    paths = {
        (method.upper(), path): operation
        for path, operations in described["paths"].items()
        for method, operation in operations.items()
    }
    assert set(paths) == {
        ("GET", "/health"),
        ("GET", "/api/tools"),
        ("POST", "/api/tools"),
        ("POST", "/api/tools/search"),
        ("POST", "/reload-tools"),
        ("POST", "/model"),
        ("POST", "/say"),
        ("POST", "/announce"),
        ("GET", "/events"),
    }
    for (method, path), operation in paths.items():
        assert operation["summary"]
        assert operation["description"]
        if path == "/health":
            continue
        assert operation["security"] == [{"HTTPBearer": []}]
        assert {"200", "401", "404", "409", "422", "502", "503", "504"} <= set(
            operation["responses"]
        )
        error = operation["responses"]["401"]["content"]["application/json"]["schema"]
        assert error == {"$ref": "#/components/schemas/ErrorResponse"}
        if method == "POST":
            body = operation["requestBody"]["content"]["application/json"]["schema"]
            assert body["examples"]
    assert asyncio.get_running_loop()  # the document is made without a room's being asked
