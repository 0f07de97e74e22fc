"""Secrets are seeded wherever a program has some; every output is then searched for them."""

from __future__ import annotations

import asyncio
import base64
import io
import json
import logging
import os
import subprocess
import sys
from collections.abc import Awaitable, Mapping
from contextlib import ExitStack
from pathlib import Path
from typing import Any
from urllib.parse import quote

import pytest
from livekit.agents import ToolError, function_tool
from livekit.agents.cli.log import JsonFormatter

from caal_node.agent import CaalAgent
from caal_node.cli.doctor import run_doctor
from caal_node.cli.n8n_check import check_instance
from caal_node.cli.n8n_try import try_workflow
from caal_node.cli.tools import list_tools
from caal_node.config.settings import Settings, load_settings
from caal_node.control.messages import CallTool, ListTools
from caal_node.core.events import ToolCallEnded, to_json
from caal_node.factories import make_llm
from caal_node.room.front_end import Transcript
from caal_node.telemetry.turn_times import read_trace, turns_of
from caal_node.testing import AgentConversation
from tests.recorded_n8n import RecordedN8n
from tests.recorded_n8n.loopback import LoopbackRequest, LoopbackResponse
from tests.recorded_n8n.public_api import API_KEY
from tests.stand_ins.recorded_spans import kept_provider
from tests.stand_ins.stand_in_model import Asked, Call, StandInModel
from tests.stand_ins.terminal import clean_environment

HOSTILE = Path(__file__).parents[1] / "stand_ins" / "hostile_mcp_server.py"
RUN_S = 120
pytestmark = [pytest.mark.long, pytest.mark.usefixtures("guarded_process")]

# None of these opens anything. Those of the first group are known by their value.
SETTINGS = {
    "LIVEKIT_API_SECRET": "room-secret-7f-of-every-room",
    "CAAL_API_KEY": "model-key-94f1-b5aa",
    "CAAL_CONTROL_TOKEN": "control-token-0c7e-51",
    "N8N_API_KEY": API_KEY,
}
MCP_TOKEN, MCP_HEADER, MCP_QUERY = "mcp-env-token-a0a0", "mcp-header-key-b1b1", "mcp-query-key-c2c2"
WEBHOOK = "webhook-credential/d3+d3"
BY_VALUE = (*SETTINGS.values(), MCP_TOKEN, MCP_HEADER, MCP_QUERY, WEBHOOK)
# Those of the second are known by their shape alone, whoever brings them.
PEM_BODY = "MIIEowIBAAKCAQEAx0" + "Qq7" * 12
PEM = f"-----BEGIN PRIVATE KEY-----\n{PEM_BODY}\n{PEM_BODY[::-1]}\n-----END PRIVATE KEY-----"
TOKEN = "ghp_" + "a1B2c3D4" * 5
URL_PASSWORD = "url-password-e4"  # noqa: S105
URL = f"postgres://app:{URL_PASSWORD}@db.example/main"
BY_SHAPE = (PEM_BODY, PEM_BODY[::-1], TOKEN, URL_PASSWORD)


def written(secret: str) -> list[str]:
    """The ways in which programs write a secret."""
    coded = base64.b64encode(secret.encode()).decode().rstrip("=")[:-1]
    return [secret, json.dumps(secret)[1:-1], quote(secret, safe=""), coded, secret.encode().hex()]


def leaks(outputs: Mapping[str, str]) -> list[str]:
    return [
        f"{place}: {text[max(0, text.find(form) - 100) :][: 100 + len(form)]}"
        for place, text in outputs.items()
        for secret in (*BY_VALUE, *BY_SHAPE)
        for form in written(secret)
        if form in text
    ]


class EchoingN8n(RecordedN8n):
    """Its webhook says what it was sent, as a workflow does that returns its whole item."""

    def __init__(self) -> None:
        super().__init__(active=["secure_lookup"])

    async def _answer_webhook(self, request: LoopbackRequest, path: str) -> LoopbackResponse:
        body = json.dumps({"headers": dict(request.headers), "again": WEBHOOK})
        return LoopbackResponse(200, body.encode(), (("content-type", "application/json"),))


AGENT = f'''
import os
from pathlib import Path
from livekit.agents import ToolError, function_tool
from caal_node import CaalAgent

class Leaky(CaalAgent):
    """Its methods tell what they know."""

    @function_tool
    async def environment(self) -> dict:
        """Show the environment."""
        return dict(os.environ)

    @function_tool
    async def read_key(self) -> str:
        """Read a file."""
        return Path("id_rsa").read_text() + {URL!r}

    @function_tool
    async def refuse(self) -> str:
        """Fail."""
        raise ToolError("403 with " + os.environ["CAAL_API_KEY"] + {f" at {URL} by {TOKEN}"!r})

    @function_tool
    async def crash(self, note: str) -> str:
        """Fail in another way."""
        raise ValueError(os.environ["LIVEKIT_API_SECRET"] + {TOKEN!r} + note)
'''


class Leaky(CaalAgent):
    """The same, for a conversation in this process."""

    @function_tool
    async def environment(self) -> dict[str, str]:
        """Show the environment."""
        return dict(os.environ)

    @function_tool
    async def read_key(self) -> str:
        """Read a file."""
        return f"{PEM}\n{URL}"

    @function_tool
    async def refuse(self) -> str:
        """Fail."""
        raise ToolError(f"403 with {SETTINGS['CAAL_API_KEY']} at {URL} by {TOKEN}")

    @function_tool
    async def crash(self, note: str) -> str:
        """Fail in another way."""
        raise ValueError(f"{SETTINGS['LIVEKIT_API_SECRET']} {TOKEN} {note}")


TURNS: tuple[tuple[str, Mapping[str, Any]], ...] = (
    ("environment", {}),
    ("read_key", {}),
    ("refuse", {}),
    ("crash", {"note": f"{TOKEN} {SETTINGS['CAAL_CONTROL_TOKEN']}"}),
    ("secure_lookup", {"id": "7"}),
    ("mine__show", {"say": f"{MCP_TOKEN} {TOKEN}"}),
)
SPEECH = (
    f"It is {SETTINGS['LIVEKIT_API_SECRET']}. The key is {TOKEN}!\n{PEM}\nAt {URL}. That is all."
)


def answer(asked: Asked) -> list[Any]:
    """Call the tool that the person names, and repeat every secret behind its result."""
    messages = asked.json.get("messages") or [{"role": "user", "content": ""}]
    last = messages[-1]
    if last["role"] == "user":
        for name, arguments in TURNS:
            if f"do {name}" in last["content"]:
                return [Call(name, dict(arguments), id=name)]
    return [SPEECH]


def words(name: str) -> str:
    return f"do {name}, with {TOKEN} and {SETTINGS['N8N_API_KEY']}"


def home(folder: Path, server: StandInModel, instance: EchoingN8n) -> dict[str, str]:
    """Write the files of an owner to `folder`, and return the variables."""
    (folder / "tools.json").write_text(
        json.dumps([{"name": "show", "description": "Shows.", "inputSchema": {"type": "object"}}])
    )
    servers = {
        "mine": {
            "command": sys.executable,
            "args": ["-I", "-S", str(HOSTILE), str(folder / "tools.json")],
            "env": {"OWN_TOKEN": MCP_TOKEN},
            "allow": ["eval"],
        },
        "far": {
            "url": f"http://127.0.0.1:9/mcp?api_key={MCP_QUERY}",
            "headers": {"Authorization": f"Bearer {MCP_HEADER}"},
        },
    }
    config = folder / "mcp_servers.json"
    config.write_text(json.dumps(servers), encoding="utf-8")
    config.chmod(0o600)
    (folder / "id_rsa").write_text(PEM, encoding="utf-8")
    (folder / "leaky.py").write_text(AGENT, encoding="utf-8")
    return {
        **SETTINGS,
        "OLLAMA_HOST": server.url,
        "CAAL_MODEL": server.model,
        "CAAL_TOOL_CALLS": "native",
        "CAAL_MCP_SERVERS": str(config),
        "CAAL_CUES": "off",
        "N8N_URL": instance.base_url,
        "N8N_API_KEY": SETTINGS["N8N_API_KEY"],
        "N8N_AUTH": json.dumps({"secure_lookup": {"header": "x-recorded-key", "value": WEBHOOK}}),
        "CAAL_TRACE": str(folder / "trace.jsonl"),
    }


@pytest.fixture
def log() -> Any:
    """Everything that is logged, with all fields, as LiveKit's worker writes it."""
    text = io.StringIO()
    handler = logging.StreamHandler(text)
    handler.setFormatter(JsonFormatter("%(asctime)s %(levelname)s %(name)s %(message)s"))
    root = logging.getLogger()
    names = ("", "caal_node", "livekit", "livekit.agents", "mcp_bridge", "n8n")
    levels = {name: logging.getLogger(name).level for name in names}
    for name in names:
        logging.getLogger(name).setLevel(logging.DEBUG)
    root.addHandler(handler)
    yield text
    root.removeHandler(handler)
    for name, level in levels.items():
        logging.getLogger(name).setLevel(level)


@pytest.mark.parametrize("whole", [False, True])
async def test_of_a_conversation_no_output_holds_a_secret(
    whole: bool, tmp_path: Path, log: io.StringIO, monkeypatch: pytest.MonkeyPatch
) -> None:
    traced = ExitStack()
    async with StandInModel(answer=answer) as server, EchoingN8n() as instance:
        variables = home(tmp_path, server, instance)
        for name, value in SETTINGS.items():
            monkeypatch.setenv(name, value)
        settings: Settings = load_settings(
            {
                **variables,
                "CAAL_TRACE": json.dumps({"file": variables["CAAL_TRACE"], "content": whole}),
            },
            tmp_path / "no-such-caal.toml",
        )
        traced.enter_context(kept_provider())
        agent = Leaky(settings=settings, warm=False)
        room: list[str] = []

        async def send(message: str) -> None:
            room.append(message)

        transcript = Transcript(send, show_arguments=True)
        agent.add_listener(transcript)
        model = make_llm(settings)
        async with AgentConversation(agent, model, turn_s=60) as talk:
            offered = {entry.exposed for entry in agent.table}
            assert {name for name, _ in TURNS} <= offered
            turns = [await talk.say(words(name)) for name, _ in TURNS]
            answers = [
                (await agent.on_tools(CallTool(name=name, arguments=dict(arguments))))
                for name, arguments in TURNS
            ]
            catalogue = await agent.on_tools(ListTools())
            calls = [event.call_id for event in talk.events_of(ToolCallEnded)]
            captions = [
                str(item.text_content)
                for item in talk.history
                if item.type == "message" and item.role == "assistant"
            ]
            outputs = {
                "events": "".join(map(to_json, talk.events)),
                "turns": repr(turns),
                "tool data": agent.tool_data.render(calls),
                "the Tools API": "".join(each.model_dump_json() for each in answers),
                "its catalogue": catalogue.model_dump_json(),
                "captions": "".join(captions),
                "failures": repr(agent.failed) + repr(agent.servers),
            }
        await transcript.aclose()
        await model.aclose()
    traced.close()
    trace = (tmp_path / "trace.jsonl").read_text(encoding="utf-8")
    outputs |= {"the room": "".join(room), "logs": log.getvalue(), "the trace": trace}
    assert leaks(outputs) == []
    # That all of it was there to be found:
    ended = [event.tool for event in talk.events_of(ToolCallEnded)]
    assert ended == [name for name, _ in TURNS] * 2, "in the conversation, then over the API"
    assert all("That is all." in turn.text for turn in turns)
    assert len(captions) == len(TURNS)
    assert all(len(text) > 100 for text in outputs.values())
    assert "ValueError" in outputs["logs"]
    assert ("That is all." in trace) is whole
    read = next(body for body in (asked.json for asked in reversed(server.chats)))
    results = json.dumps([each for each in read["messages"] if each["role"] == "tool"])
    assert leaks({"results that the model reads": results}) == []


async def test_chat_prints_no_secret(tmp_path: Path) -> None:
    async with StandInModel(answer=answer) as server, EchoingN8n() as instance:
        variables = home(tmp_path, server, instance)
        done = await asyncio.to_thread(
            subprocess.run,
            [sys.executable, "-m", "caal_node.cli", "chat", "--agent", "leaky:Leaky", "--json",
             "--verbose"],
            input="".join(f"{words(name)}\n" for name, _ in TURNS),
            cwd=tmp_path,
            env=clean_environment(**variables),
            capture_output=True,
            text=True,
            timeout=RUN_S,
            check=False,
        )  # fmt: skip
    trace = (tmp_path / "trace.jsonl").read_text(encoding="utf-8")
    assert leaks({"stdout": done.stdout, "stderr": done.stderr, "the trace": trace}) == []
    assert done.stdout.count('"type":"turn_ended"') == len(TURNS)
    assert "ValueError" in done.stderr
    assert len(turns_of(read_trace(tmp_path / "trace.jsonl"))) == len(TURNS)


async def test_no_command_about_tools_prints_a_secret(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    outputs: dict[str, str] = {}
    traced = ExitStack()
    traced.enter_context(kept_provider())

    async def printed(name: str, command: Awaitable[object]) -> None:
        await command
        outputs[name] = "".join(capsys.readouterr())

    async with StandInModel(answer=answer) as server, EchoingN8n() as instance:
        variables = home(tmp_path, server, instance)
        settings = load_settings(variables, tmp_path / "no-such-caal.toml")
        for as_json in (False, True):
            form = "as JSON" if as_json else "as text"
            await printed(f"tools {form}", list_tools(settings, None, as_json=as_json))
            await printed(f"doctor {form}", run_doctor(settings, as_json=as_json))
            tried = try_workflow(settings, "secure_lookup", ["id=7"], as_json=as_json)
            await printed(f"n8n try {form}", tried)
        await printed("n8n check", check_instance(settings, as_json=False))
    traced.close()
    assert leaks(outputs) == []
    assert "mine__show" in outputs["tools as JSON"]
    assert "far" in outputs["doctor as text"]
    assert "x-recorded-key" in outputs["n8n try as text"]
    assert all(len(text) > 50 for text in outputs.values())


def test_the_search_finds_a_secret_in_each_of_its_forms() -> None:
    for secret in (*BY_VALUE, *BY_SHAPE):
        for form in written(secret):
            assert leaks({"here": f"<{form}>"})
