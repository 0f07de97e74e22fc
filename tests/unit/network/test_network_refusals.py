"""A refusal on its way to people and models: out of the errors of clients, into plain words."""

from __future__ import annotations

import asyncio
import json
import socket
from pathlib import Path
from typing import Any

import httpx2
import pytest
from livekit.agents import ToolError

from caal_node.cli.checks import Finding
from caal_node.cli.checks.network import check_network
from caal_node.config.mcp_file import load_mcp_servers
from caal_node.config.settings import Settings, load_settings
from caal_node.context.tool_data import ToolDataCache
from caal_node.core.errors import (
    CaalError,
    ModelOutside,
    ToolBroke,
    ToolOutside,
    ToolUnavailable,
)
from caal_node.core.prompt_files import sentence
from caal_node.core.tool_spec import ToolSpec
from caal_node.models.backends.http_transport import HttpTransport, TransportDeadlines
from caal_node.models.chat_context import as_api_error, spoken_key
from caal_node.network.guard import refusal, refusal_in, refusal_words
from caal_node.network.policy import parse_policy
from caal_node.network.rooms import outside
from caal_node.tools.pipeline import Pipeline, error_text
from caal_node.tools.table import ToolEntry, ToolTable
from caal_node.weights.gguf import NeededWeight
from mcp_bridge.core.errors import why_not_permitted

LOCAL = parse_policy("local")
SAYS = "CAAL_NETWORK=local does not allow this connection"
POLICIES = "caal_node.network.guard._guard.policies"
NOWHERE = Path("no-such-file")


def caused(error: Exception, cause: BaseException) -> Exception:
    error.__cause__ = cause
    return error


def always(_: object) -> bool:
    return True


def entry() -> ToolEntry:
    spec = ToolSpec("mcp", "far", "search", "search", "Search.", {"type": "object"})
    return ToolTable([spec]).resolve("search")


# Out of the errors of clients.


def test_a_refusal_is_an_error_of_ours_and_of_the_system() -> None:
    error = refusal(LOCAL)
    assert isinstance(error, CaalError)
    assert isinstance(error, PermissionError)
    assert str(error) == f"[Errno 13] {SAYS}"


@pytest.mark.parametrize(
    "error",
    [
        refusal(LOCAL),
        caused(httpx2.ConnectError("All connection attempts failed"), refusal(LOCAL)),
        caused(RuntimeError(), ExceptionGroup("both", [OSError("a"), refusal(LOCAL)])),
        OSError(f"Multiple exceptions: [Errno 111] no, [Errno 13] {SAYS}"),
        caused(ToolUnavailable("x"), RuntimeError(f"far: may not be connected to ({SAYS}); fix")),
    ],
)
def test_a_refusal_is_found_behind_the_errors_of_a_client(error: Exception) -> None:
    assert refusal_in(error) == SAYS


@pytest.mark.parametrize(
    "error",
    [
        None,
        PermissionError(13, "Permission denied"),
        RuntimeError("set CAAL_NETWORK=local"),
        RuntimeError("this server does not allow this connection"),
        httpx2.ConnectError("refused"),
    ],
)
def test_other_failures_are_no_refusals(error: Exception | None) -> None:
    assert refusal_in(error) is None


def test_errors_that_cause_each_other_are_looked_at_once() -> None:
    first, second = RuntimeError("first"), RuntimeError("second")
    first.__cause__, second.__cause__ = second, first
    assert refusal_in(first) is None
    assert why_not_permitted(first) == ""


def test_the_bridge_tells_what_the_system_says_against_a_connection() -> None:
    find = why_not_permitted
    group = ExceptionGroup("both", [OSError("other"), refusal(LOCAL)])
    assert find(caused(httpx2.ConnectError("failed"), group)) == SAYS
    assert find(caused(httpx2.ConnectError("x"), PermissionError(1, "Not permitted"))) == (
        "Not permitted"
    )
    assert find(httpx2.ConnectError("nobody answers")) == ""


def test_the_words_of_a_refusal_are_found_in_another_programs_output() -> None:
    assert refusal_words(f"Traceback ...\nConnectError: [Errno 13] {SAYS}\n") == SAYS
    assert refusal_words("ERROR: no such package") is None


# Into words for models and people.


@pytest.mark.parametrize(
    "error",
    [
        caused(RuntimeError("broke"), refusal(LOCAL)),
        caused(ToolUnavailable("far is down"), refusal(LOCAL)),
        ToolUnavailable(f"far: may not be connected to at http://far ({SAYS}); allow it"),
    ],
)
@pytest.mark.parametrize("own", [False, True])
async def test_a_tool_that_wants_out_is_refused_and_the_person_hears_why(
    error: Exception, own: bool
) -> None:
    async def execute() -> Any:
        raise error

    pipeline = Pipeline(ToolDataCache())
    options: dict[str, Any] = {"validate": False, "becomes_text": always}
    run = pipeline.run_own if own else pipeline.run
    with pytest.raises(ToolOutside) as caught:
        await run(entry(), "1", {}, execute, **options)
    told = json.loads(error_text(caught.value))
    assert told["error"] == "refused"
    assert SAYS in told["message"]
    assert told["say"] == sentence("tool_outside")
    report = pipeline.outcomes.take("1")
    assert report is not None
    assert report.outcome == "refused"


async def test_a_tool_that_fails_otherwise_fails_as_before() -> None:
    async def execute() -> Any:
        raise RuntimeError("broke")

    async def says() -> Any:
        raise caused(ToolError("in the author's words"), refusal(LOCAL))

    pipeline = Pipeline(ToolDataCache())
    with pytest.raises(ToolBroke):
        await pipeline.run(entry(), "1", {}, execute)
    with pytest.raises(ToolError, match="author's words"):
        await pipeline.run(entry(), "2", {}, says)


async def test_a_model_outside_is_not_asked_again_and_the_person_hears_why(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    transport = HttpTransport(
        "http://far.example",
        model="m",
        api_key=None,
        deadlines=TransportDeadlines(),
        start="start it",
        fix="bring it",
    )
    error = caused(httpx2.ConnectError("All connection attempts failed"), refusal(LOCAL))

    def refuse(_: httpx2.Request) -> httpx2.Response:
        raise error

    client = httpx2.AsyncClient(transport=httpx2.MockTransport(refuse))
    monkeypatch.setattr(transport, "_client", client)
    with pytest.raises(ModelOutside, match=r"http://far\.example") as caught:
        await transport.fetch("GET", "/")
    await transport.aclose()
    assert SAYS in str(caught.value)
    assert not as_api_error(caught.value).retryable
    assert sentence(spoken_key(caught.value)) == sentence("model_outside")


# What cannot be seen is judged before, or told.


def resolver(monkeypatch: pytest.MonkeyPatch, **answers: list[str]) -> None:
    def look_up(host: str, *_: Any, **__: Any) -> list[Any]:
        if host not in answers:
            raise socket.gaierror(-2, "not known")
        return [(None, None, None, "", (address, 0)) for address in answers[host]]

    monkeypatch.setattr(socket, "getaddrinfo", look_up)


@pytest.mark.parametrize(
    ("policy", "url", "why"),
    [
        ("any", "http://example.com", None),
        ("local", "ws://127.0.0.1:7880", None),
        ("local", "ws://[::1]:7880", None),
        ("local", "ws://192.0.2.1:7880", "192.0.2.1 is outside"),
        ("local", "wss://example.com", "the name example.com may not be looked up"),
        ("lan", "http://both", "both leads to 192.0.2.9, which is outside"),
        ("lan", "http://nas", None),
        ("local,nas", "http://nas", None),
        ("local", "http://nas", "the name nas may not be looked up"),
    ],
)
def test_an_address_is_judged_by_all_that_its_name_leads_to(
    monkeypatch: pytest.MonkeyPatch, policy: str, url: str, why: str | None
) -> None:
    resolver(monkeypatch, nas=["192.168.1.2"], both=["192.168.1.3", "192.0.2.9"])
    monkeypatch.setattr("caal_node.network.rooms.names_kept_here", frozenset)
    assert outside(parse_policy(policy), url) == why


def test_the_processes_of_mcp_servers_are_told_to_fetch_nothing_and_are_named(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    path = tmp_path / "mcp_servers.json"
    path.write_text('{"mcpServers": {"time": {"command": "uvx", "args": ["mcp-server-time"]}}}')
    assert not load_mcp_servers(path)[0].offline
    monkeypatch.setattr(POLICIES, (LOCAL,))
    assert load_mcp_servers(path)[0].offline
    load_mcp_servers(path)
    told = [line for line in caplog.messages if "CAAL_NETWORK does not hold time" in line]
    assert len(told) == 1


# The setting, and what doctor says of it.


def doctor(folder: Path, **given: str) -> list[Finding]:
    parts = {"CAAL_STT": "none", "CAAL_TTS": "none", "CAAL_MCP_SERVERS": str(folder / "m.json")}
    return list(asyncio.run(check_network(load_settings(parts | given, NOWHERE))))


def test_a_setting_of_the_file_may_be_a_list(tmp_path: Path) -> None:
    path = tmp_path / "caal.toml"
    path.write_text('network = ["local", "10.0.0.0/8"]\n')
    assert load_settings({}, path).network == parse_policy("local,10.0.0.0/8")
    assert Settings().network.is_open


def test_doctor_names_each_address_that_would_be_refused(tmp_path: Path) -> None:
    (tmp_path / "m.json").write_text(
        '{"mcpServers": {"far": {"url": "https://mcp.example.com/mcp"},'
        ' "off": {"url": "https://off.example.com/mcp", "enabled": false},'
        ' "own": {"command": "uvx", "args": ["mcp-server-time"]}}}'
    )
    found = doctor(
        tmp_path,
        CAAL_NETWORK="local",
        OLLAMA_HOST="http://127.0.0.1:11434",
        CAAL_MODEL="gpt-oss:120b-cloud",
        CAAL_FALLBACKS="openai:other@http://192.0.2.7/v1",
        CAAL_MODEL_SERVERS="http://192.0.2.8:8080",
        CAAL_EMBEDDING="ollama:e@http://192.0.2.9:11434",
        N8N_URL="http://192.0.2.10:5678",
        LIVEKIT_URL="wss://project.livekit.cloud",
    )
    failed = {finding.name: finding for finding in found if finding.status == "fail"}
    assert set(failed) == {
        "network",  # the model in Ollama's cloud
        "network model other",
        "network model server",
        "network embedding",
        "network n8n",
        "network livekit",
        "network mcp far",
    }
    assert "Ollama's cloud" in failed["network"].found
    assert "CAAL_FALLBACKS" in failed["network model other"].fix
    assert "unset N8N_URL" in failed["network n8n"].fix
    warned = [finding.found for finding in found if finding.status == "warn"]
    assert any(text.startswith("own: a process of its own") for text in warned)


def test_doctor_says_that_weights_cannot_be_fetched_and_proxies_are_not_used(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("CAAL_CACHE", str(tmp_path / "cache"))
    monkeypatch.setenv("HTTPS_PROXY", "http://127.0.0.1:3128")
    monkeypatch.setattr("caal_node.cli.checks.network.needed", needed_weights)
    found = doctor(tmp_path, CAAL_NETWORK="local")
    assert any("cannot be fetched" in finding.found for finding in found)
    assert any("download-files" in finding.fix for finding in found)
    assert any("proxies for https are not used" in finding.found for finding in found)


def needed_weights(_: Settings) -> list[NeededWeight]:
    return [NeededWeight("some/model/file.gguf", "CAAL_API=embedded", "json", "embedded")]


def test_without_a_limit_doctor_has_one_line(tmp_path: Path) -> None:
    (finding,) = doctor(tmp_path)
    assert (finding.status, finding.found) == ("ok", "not limited")
