"""Doctor and tools say how the model is asked, and why."""

from __future__ import annotations

import asyncio
import json
import sys
from collections.abc import Mapping
from pathlib import Path

import pytest

from caal_node.cli.checks import Finding
from caal_node.cli.checks.model import check_call_strategy
from caal_node.cli.tools import list_tools
from caal_node.config.settings import Settings
from caal_node.core.addresses import ModelReference
from caal_node.evaluation.store import EvaluationStore, Identity, Mark, Outcome, Validation
from caal_node.evaluation.suites import SUITES, Asking
from tests.stand_ins.mcp_events import RAW
from tests.stand_ins.stand_in_model import Call, StandInModel


@pytest.fixture(autouse=True)
def own_state(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CAAL_STATE", str(tmp_path))


async def keep(
    server: StandInModel, asking: Asking, *, mark: Mark = "right", digest: str = ""
) -> None:
    found = Validation(
        *(server.model, "ollama", server.url),
        identity=Identity("ollama", "0.17.4", digest or server.model),
        at="2026-01-05T12:00:00+00:00",
        full=False,
        node_version="0.1.0",
        native_offered=True,
        outcomes=tuple(Outcome(suite.name, asking, "case", mark, "", 1, 1, 1) for suite in SUITES),
    )
    await asyncio.to_thread(EvaluationStore().add, found)


async def looked(settings: Settings) -> Finding:
    found = await check_call_strategy(settings)
    return found[0]


def of(server: StandInModel, **more: object) -> Settings:
    return Settings(ollama_host=server.url, model=server.model, **more)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("reply", "way"),
    [
        ([Call("get_weather", {"city": "Oslo"})], "its server's own tool calls"),
        (["It is cold."], "the text protocol"),
    ],
)
async def test_doctor_asks_the_sample_request_where_nothing_was_found(
    reply: list[Call | str], way: str
) -> None:
    async with StandInModel(reply) as server:
        check = await looked(of(server))
    assert check.status == "ok"
    assert check.found.startswith(way)
    assert "never validated" in check.found
    assert check.fix == "Run: caal-node validate stand-in"


async def test_doctor_says_when_it_was_validated_and_asks_nothing() -> None:
    async with StandInModel() as server:
        await keep(server, "text")
        check = await looked(of(server))
        assert server.chats == []
    assert check.status == "ok"
    assert "the text protocol: validated, 7 of 7 right on 2026-01-05" in check.found
    assert check.fix == ""


async def test_doctor_warns_of_a_finding_that_is_stale_or_bad() -> None:
    async with StandInModel([Call("get_weather", {"city": "Oslo"})]) as server:
        await keep(server, "text", digest="sha256:old")
        check = await looked(of(server))
        assert (check.status, check.fix) == ("warn", "Run: caal-node validate stand-in")
        assert "the model has changed since" in check.found
        await keep(server, "text", mark="wrong")
        check = await looked(of(server))
        assert check.status == "warn"
        assert "did not pass" in check.fix


async def test_doctor_says_what_is_configured() -> None:
    async with StandInModel() as server:
        check = await looked(of(server, tool_calls="text"))
        assert check.found == "the text protocol: configured (CAAL_TOOL_CALLS)"
        check = await looked(of(server, api="completions"))
        assert "the completions API takes no tools" in check.found
        assert server.chats == []


async def test_doctor_tells_each_fallback() -> None:
    async with StandInModel() as server:
        await keep(server, "native", mark="wrong")
        others = (ModelReference("stand-in"), ModelReference("other"))
        found = await check_call_strategy(of(server, tool_calls="text", fallbacks=others))
    assert [(c.name, c.status) for c in found[1:]] == [
        ("fallback stand-in", "warn"),
        ("fallback other", "ok"),
    ]


async def test_doctor_goes_on_where_nobody_answers() -> None:
    check = await looked(Settings(ollama_host="127.0.0.1:9"))
    assert check.status == "warn"
    assert "no model server answers" in check.found


async def test_tools_says_how_they_are_asked_for(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    async with StandInModel() as server:
        await list_tools(of(server), None, as_json=True)
        shown = json.loads(capsys.readouterr().out)
        assert shown["way_of_asking"] == {
            "model": "stand-in",
            "asking": None,
            "why": "never validated",
        }
        await keep(server, "text")
        await list_tools(of(server), None, as_json=False)
        printed = " ".join(capsys.readouterr().out.split())
        assert "stand-in is asked for them: the text protocol (validated, 7 of 7" in printed
        assert server.chats == []


@pytest.fixture
def three_servers(tmp_path: Path) -> Mapping[str, object]:
    """One that runs, one that is not there, one that is off."""
    entry = {"command": sys.executable, "args": ["-S", "-E", str(RAW)], "connect_timeout": 60}
    servers = {
        "raw": entry,
        "gone": {"command": "no-such-program"},
        "later": {**entry, "auto_enable": "never"},
    }
    (tmp_path / "mcp_servers.json").write_text(json.dumps(servers))
    return servers


async def test_tools_shows_each_server(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    three_servers: Mapping[str, object],
) -> None:
    monkeypatch.chdir(tmp_path)
    async with StandInModel() as server:
        await list_tools(of(server), None, as_json=True)
        shown = {row["name"]: row for row in json.loads(capsys.readouterr().out)["servers"]}
        await list_tools(of(server), None, as_json=False)
        printed = capsys.readouterr().out
    assert [shown[name]["state"] for name in three_servers] == ["ready", "down", "off"]
    assert (shown["raw"]["transport"], shown["raw"]["tools"]) == ("stdio", 4)
    assert shown["raw"]["connect_ms"] > 0
    assert "install it" in shown["gone"]["error"]
    assert all(word in printed for word in ("MCP server", "raw", "ready", "gone", "down", "off"))
    assert printed.count("was not found") == 1
