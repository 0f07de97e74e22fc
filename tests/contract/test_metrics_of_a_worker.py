"""What Prometheus reads: of a turn, of a job's process at the worker's /metrics, and of the control
API."""

from __future__ import annotations

import asyncio
import json
import re
import sys
from pathlib import Path

import httpx2
import pytest
from livekit.agents.telemetry.http_server import HttpServer
from prometheus_client import REGISTRY
from pydantic import SecretStr

from caal_node.config.settings import Settings
from caal_node.control.app import make_app
from caal_node.telemetry.metrics import session_metrics
from tests.stand_ins.conversation import conversation
from tests.stand_ins.fake_rooms import FakeRooms
from tests.stand_ins.mcp_conversation import WITH_CUES, CueAgent
from tests.stand_ins.stand_in_model import Call, StandInModel

TOKEN = "-".join(["a", "long", "random", "token"])
BEARER = {"Authorization": f"Bearer {TOKEN}"}
DASHBOARD = Path(__file__).parents[2] / "docs" / "grafana-dashboard.json"
A_JOB = """
from caal_node.core.events import ToolCallEnded, TurnEnded
from caal_node.telemetry.metrics import session_metrics
tell = session_metrics()
tell(ToolCallEnded("c1", "lights", "mcp", "timeout", 20_000))
tell(TurnEnded(1, 2, 900))
"""


def value(name: str, **labels: str) -> float:
    return REGISTRY.get_sample_value(name, labels) or 0.0


async def test_a_turn_is_counted_once() -> None:
    session_metrics()
    names = ("caal_turns_total", "caal_model_first_token_seconds_count")
    before = [value(name) for name in names]
    calls = value("caal_tool_calls_total", tier="n8n", outcome="ok")
    requests = value("caal_model_requests_total", outcome="ok")
    cues = value("caal_cues_total", kind="tool")
    turn = ([Call("get_weather", {"city": "Paris"})], ["Sunny."])
    async with (
        StandInModel(*turn) as server,
        conversation(server, agent=CueAgent, env=WITH_CUES) as talk,
    ):
        await talk.ask("weather in Paris?")
    assert [value(name) for name in names] == [before[0] + 1, before[1] + 2]
    assert value("caal_tool_calls_total", tier="n8n", outcome="ok") == calls + 1
    assert value("caal_model_requests_total", outcome="ok") == requests + 2
    assert value("caal_cues_total", kind="tool") == cues + 1


async def test_the_workers_metrics_have_those_of_its_jobs(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A room's process inherits PROMETHEUS_MULTIPROC_DIR, and LiveKit's worker reads the folder."""
    monkeypatch.setenv("PROMETHEUS_MULTIPROC_DIR", str(tmp_path))
    for _ in range(2):
        job = await asyncio.create_subprocess_exec(sys.executable, "-c", A_JOB)
        assert await job.wait() == 0
    server = HttpServer("127.0.0.1", 0)
    await server.start()
    try:
        async with httpx2.AsyncClient() as http:
            text = (await http.get(f"http://127.0.0.1:{server.port}/metrics")).text
    finally:
        await server.aclose()
    assert 'caal_tool_calls_total{outcome="timeout",tier="mcp"} 2.0' in text
    assert 'caal_tool_call_duration_seconds_sum{tier="mcp"} 40.0' in text
    assert "caal_turns_total 2.0" in text


async def test_the_control_api_counts_its_requests_for_those_with_the_token() -> None:
    app = make_app(Settings(control_token=SecretStr(TOKEN)), FakeRooms({"kitchen": ["agent"]}))
    transport = httpx2.ASGITransport(app=app, raise_app_exceptions=False)
    async with httpx2.AsyncClient(transport=transport, base_url="http://control") as http:
        assert (await http.get("/metrics")).status_code == 401
        assert (await http.get("/health")).status_code == 200
        assert (await http.post("/model", headers=BEARER)).status_code == 422
        for name in ("a", "b", "c"):
            assert (await http.get(f"/no/{name}")).status_code == 404
        answer = await http.get("/metrics", headers=BEARER)
    assert answer.headers["content-type"].startswith("text/plain")
    counted = {
        line for line in answer.text.splitlines() if line.startswith("caal_control_requests_total")
    }
    assert counted == {
        'caal_control_requests_total{path="/metrics",status="401"} 1.0',
        'caal_control_requests_total{path="/health",status="200"} 1.0',
        'caal_control_requests_total{path="/model",status="422"} 1.0',
        'caal_control_requests_total{path="other",status="404"} 3.0',
    }


def test_the_dashboard_shows_metrics_that_there_are() -> None:
    session_metrics()
    known = {sample.name for family in REGISTRY.collect() for sample in family.samples}
    known |= {"caal_control_requests_total", "caal_control_request_duration_seconds_bucket"}
    dashboard = json.loads(DASHBOARD.read_text(encoding="utf-8"))
    asked = [target["expr"] for panel in dashboard["panels"] for target in panel["targets"]]
    named = {name for expr in asked for name in re.findall(r"\bcaal_\w+", expr)}
    assert named <= known
    counted = {name for name in known if name.startswith("caal_") and name.endswith("_total")}
    assert counted <= named, "every counter is shown somewhere"
    assert len({panel["id"] for panel in dashboard["panels"]}) == len(dashboard["panels"])
