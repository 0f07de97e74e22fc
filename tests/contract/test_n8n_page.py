"""docs/n8n.md, word for word: its settings, its commands, its notes and its workflow.

The commands run against the replay, and against N8N_TEST_URL where that is set, as `make test-n8n`
does.
"""

from __future__ import annotations

import asyncio
import json
import os
import re
import sys
from collections.abc import AsyncGenerator, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass
from importlib import resources
from pathlib import Path
from typing import Any

import pytest
from livekit import rtc

from caal_node.agent import CaalAgent
from caal_node.config.settings import load_settings
from caal_node.control.listener import ControlListener
from mcp_bridge import load_servers
from n8n import check, read_credentials
from n8n.notes.parser import parse_notes
from tests.real_n8n.author import author
from tests.recorded_n8n import RecordedN8n
from tests.stand_ins.control_process import control_process
from tests.stand_ins.livekit_server import LiveKit
from tests.stand_ins.stand_in_model import Call, StandInModel

pytestmark = pytest.mark.long

PAGE = (Path(__file__).parents[2] / "docs" / "n8n.md").read_text(encoding="utf-8")
TOOL = "get_forecast"
TOKEN = "-".join(["a", "long", "random", "token"])
RUN_S = 120.0
_BLOCK = re.compile(r"^( *)```(\w*)\n(.*?)^\1```$", re.MULTILINE | re.DOTALL)
BLOCKS = [
    (language, re.sub(rf"^{indent}", "", body, flags=re.MULTILINE))
    for indent, language, body in _BLOCK.findall(PAGE)
]
RESPONDS = {
    "Using 'Respond to Webhook' Node": "responseNode",
    "When Last Node Finishes": "lastNode",
}
"""n8n's own words for what the editor calls so."""


def block(language: str, holding: str) -> str:
    """The only block of the page in that language with these words in it."""
    (found,) = [body for of, body in BLOCKS if of == language and holding in body]
    return found


def step(beginning: str) -> str:
    """The text of one of the page's steps, up to the next one."""
    (found,) = re.findall(rf"^\d\. \*\*{beginning}.*?(?=^\d\. \*\*|^Then)", PAGE, re.M | re.S)
    return found


def words(text: str) -> list[str]:
    """What stands in backticks."""
    return re.findall(r"`([^`\n]+)`", text)


def workflow_of_the_page() -> dict[str, Any]:
    """The workflow that an author has who follows the steps."""
    method, path, responds, *_ = words(step("Begin with a Webhook node"))
    (read,) = words(step("Read the parameters"))
    answer = block("json", "forecast").strip()
    assert read in answer
    webhook = {
        "id": "page-webhook",
        "name": "Webhook",
        "type": "n8n-nodes-base.webhook",
        "typeVersion": 2.1,
        "position": [0, 0],
        "webhookId": "webhook-of-the-page",
        "parameters": {"httpMethod": method, "path": path, "responseMode": RESPONDS[responds]},
        "notes": block("", "Example: what's").strip(),
    }
    respond = {
        "id": "page-respond",
        "name": "Answer",
        "type": "n8n-nodes-base.respondToWebhook",
        "typeVersion": 1.5,
        "position": [220, 0],
        "parameters": {"respondWith": "json", "responseBody": f"={answer}"},
    }
    return {
        "name": words(step("Name it"))[0],
        "nodes": [webhook, respond],
        "connections": {"Webhook": {"main": [[{"node": "Answer", "type": "main", "index": 0}]]}},
        "settings": {"executionOrder": "v1", "availableInMCP": True},
    }


@dataclass(frozen=True, slots=True)
class Shell:
    """A folder in which the page's commands are typed, and an n8n with the page's workflow."""

    folder: Path
    n8n: str
    """Host and port alone: the page leaves out the scheme too."""
    api_key: str

    async def run(self, commands: str, typed: str = "", **env: str) -> tuple[int, str]:
        """Type lines of the page, and return the exit status and all that is printed."""
        for name in ("export N8N_URL=localhost:5678", "export N8N_API_KEY=..."):
            commands = commands.replace(name, "true")
        foreign = ("N8N_", "CAAL_", "LIVEKIT_")
        known = {k: v for k, v in os.environ.items() if not k.startswith(foreign)}
        known |= {k: v for k, v in os.environ.items() if k == "CAAL_STATE"}
        ours = {"N8N_URL": self.n8n, "N8N_API_KEY": self.api_key, "COLUMNS": "200"}
        path = f"{self.folder / 'bin'}{os.pathsep}{os.environ['PATH']}"
        process = await asyncio.create_subprocess_exec(
            *("bash", "-c", commands),
            cwd=self.folder,
            env={**known, **ours, "PATH": path, **env},
            stdin=asyncio.subprocess.PIPE,
            stdout=asyncio.subprocess.PIPE,
            stderr=asyncio.subprocess.STDOUT,
        )
        async with asyncio.timeout(RUN_S):
            out, _ = await process.communicate(typed.encode())
        assert process.returncode is not None
        return process.returncode, out.decode()


@asynccontextmanager
async def shell(folder: Path) -> AsyncGenerator[Shell]:
    (folder / "bin").mkdir()
    command = folder / "bin" / "caal-node"
    command.write_text(f'#!/bin/sh\nexec "{sys.executable}" -m caal_node.cli "$@"\n')
    command.chmod(0o755)
    made = workflow_of_the_page()
    (folder / f"{made['name']}.json").write_text(json.dumps(made))
    if url := os.environ.get("N8N_TEST_URL"):
        async with author() as writer:
            await writer.publish(made)
            yield Shell(folder, url.partition("://")[2], os.environ["N8N_TEST_API_KEY"])
        return
    async with RecordedN8n() as recorded:
        # Its recorded webhook answers; the name and the notes are those of the page.
        recorded.instance.publish("get_weather", notes=made["nodes"][0]["notes"])
        recorded.instance.rename("get_weather", made["name"])
        yield Shell(folder, recorded.base_url.partition("://")[2], recorded.api_key)


async def test_the_settings_of_the_page_connect(tmp_path: Path) -> None:
    async with shell(tmp_path) as typing:
        status, out = await typing.run(block("sh", "caal-node doctor"))
    assert status == 0
    assert re.search(rf"^.*n8n.*{re.escape(typing.n8n)}", out, re.M), out
    assert TOOL in out


async def test_the_workflow_of_the_page_has_nothing_worse_than_advice(tmp_path: Path) -> None:
    async with shell(tmp_path) as typing:
        status, out = await typing.run(block("sh", "n8n check get_forecast.json"))
    assert status == 0
    (shown,) = re.findall(r"^  model    (.*)$", out, re.M)
    tool = json.loads(shown)
    assert tool["name"] == TOOL
    assert tool["description"] == "Get the weather forecast for a city."
    assert tool["parameters"]["properties"]["days"] == {
        "type": "integer",
        "minimum": 1,
        "maximum": 7,
        "default": 1,
    }
    assert '  example  what\'s the weather in Paris -> {"city": "Paris"}' in out
    assert "1 workflow: 0 errors, 0 warnings" in out


async def test_the_workflow_of_the_page_is_tried_as_the_page_says(tmp_path: Path) -> None:
    async with shell(tmp_path) as typing:
        status, out = await typing.run(block("sh", "n8n try"))
    assert status == 0
    assert f'{{"name": "{TOOL}", ' in out
    assert out.count("whoever can reach n8n can run it") == 1
    assert "the parameters that the notes list" in out
    (answer,) = re.findall(r"^model    (.*)$", out, re.M)
    assert json.loads(answer)["city"] == "Paris"
    assert json.loads(answer)["forecast"] == "sunny"
    assert "\nperson   (what the model makes of that)\n" in out


async def test_the_workflow_of_the_page_can_be_spoken_to(tmp_path: Path) -> None:
    (command,) = re.findall(r"^Then speak to it: `(.*)`\.$", PAGE, re.M)
    said = "It will be sunny in Paris."

    def answer(asked: Any) -> list[Any]:
        last = asked.json["messages"][-1]
        if last["role"] == "tool":
            return [said]
        is_asked = last["role"] == "user" and "Paris" in str(last["content"])
        return [Call(TOOL, {"city": "Paris"}, id="c1")] if is_asked else ["."]

    async with shell(tmp_path) as typing, StandInModel(answer=answer) as model:
        model.prompt_tokens = 20_000  # it says that it has read the whole prompt
        status, out = await typing.run(
            command,
            "what's the weather in Paris?\n",
            CAAL_API="openai",
            CAAL_BASE_URL=model.openai_url,
            CAAL_MODEL=model.model,
            CAAL_TOOL_CALLS="native",
        )
        (result,) = [m for m in model.chats[-1].json["messages"] if m["role"] == "tool"]
    assert status == 0, out
    assert said in out
    assert json.loads(result["content"])["forecast"] == "sunny"


@pytest.mark.livekit
async def test_a_live_room_takes_the_workflow_of_the_page(tmp_path: Path, livekit: LiveKit) -> None:
    room, here = "the-page", rtc.Room()
    command = block("sh", "curl").strip()
    async with shell(tmp_path) as typing, control_process(livekit, TOKEN) as address:
        env = {"N8N_URL": typing.n8n, "N8N_API_KEY": typing.api_key, "CAAL_CUES": "off"}
        agent = SilentAgent(
            settings=load_settings(env, tmp_path / "caal.toml"), tiers=None, warm=False
        )
        control = ControlListener(
            here, on_reload=agent.on_reload, api_key=livekit.key, api_secret=livekit.secret
        )
        await here.connect(livekit.url, livekit.token(room, "agent", agent=True))
        try:
            # One server has the whole run's rooms, so this one is named.
            named = command.replace("localhost:8889", address.partition("://")[2]).replace(
                "-d '{", f'-sS -d \'{{"room_name": "{room}", '
            )
            status, out = await typing.run(named, CAAL_CONTROL_TOKEN=TOKEN)
        finally:
            await control.aclose()
            await here.disconnect()
            await agent.close_tools()
    assert status == 0, out
    answer = json.loads(out)
    assert answer["found"] is True, answer
    assert TOOL in answer["added"]
    assert agent.silent.said == ["I can use a new tool now: get forecast."]


class SilentSession:
    """A session without a room, which keeps what it would say."""

    def __init__(self) -> None:
        self.said: list[str] = []

    @property
    def room_io(self) -> Any:
        raise RuntimeError("there is no room")

    def say(self, text: str) -> None:
        self.said.append(text)


class SilentAgent(CaalAgent):
    """An agent whose session is silent."""

    silent = SilentSession()

    @property
    def session(self) -> Any:
        return self.silent


def test_the_notes_of_the_page_all_say_the_same() -> None:
    section = PAGE[PAGE.index("### Notes, in full") : PAGE.index("English, German")]
    texts = [body for _, _, body in _BLOCK.findall(section)]
    assert len(texts) >= 7
    for text in texts:
        notes = parse_notes(text)
        assert notes.problems == (), text
        assert {n: (dict(p.schema), p.required) for n, p in notes.parameters.items()} == {
            "city": ({"type": "string", "description": "which city"}, True),
            "days": ({"type": "integer", "default": 1}, False),
        }, text


def test_each_line_of_the_page_does_what_the_page_says() -> None:
    lines = re.findall(r"^\| `((?:Example|Speak|Takes): [^`]+)` \|", PAGE, re.M)
    notes = parse_notes("\n".join(lines))
    assert [(e.utterance, dict(e.arguments)) for e in notes.examples] == [
        ("words", {"name": "value"})
    ]
    assert (notes.spoken_field, notes.takes_s, notes.problems) == ("message", 40, ())


def test_names_are_made_as_the_page_says() -> None:
    ((title, name),) = re.findall(r"`([^`]+)` is called `([^`]+)`", PAGE)
    made = workflow_of_the_page()
    assert [tool.name for tool in check([{**made, "name": title}]).tools] == [name]
    (pair,) = re.findall(r"put behind the name: `([^`]+)` and `([^`]+)`", PAGE)
    title = pair[0].partition("_")[0]
    hook = made["nodes"][0]
    hooks: list[Mapping[str, Any]] = [
        {**hook, "id": name, "name": name, "webhookId": name}
        | {"parameters": {**hook["parameters"], "path": name.removeprefix(f"{title}_")}}
        for name in pair
    ]
    found = check([{"id": "w", "name": title, "nodes": hooks, "connections": {}}])
    assert [tool.name for tool in found.tools] == list(pair)
    twice = [{**made, "id": str(n), "createdAt": f"202{n}"} for n in (5, 4)]
    newer, older = (tool.name for tool in check(twice).tools)
    assert older == TOOL
    assert re.fullmatch(rf"{TOOL}_\w{{6}}", newer)


def test_the_credentials_of_the_page_are_read(tmp_path: Path) -> None:
    file = tmp_path / "caal.toml"
    file.write_text(block("toml", "n8n_auth").removeprefix("# caal.toml\n"))
    file.chmod(0o600)
    names = re.findall(r"\$\{(\w+)\}", block("toml", "n8n_auth"))
    secrets = {name: f"secret of {name}, of enough bytes" for name in names}
    settings = load_settings({}, file)
    auth = {
        path: {key: value.get_secret_value() for key, value in each.items()}
        for path, each in settings.n8n_auth.items()
    }
    assert read_credentials(auth, secrets).keys() == {"door_code", "ledger", "vault", "archive"}
    (line,) = re.findall(r"`N8N_AUTH=(\{.*?\})`", PAGE)
    in_environment = load_settings({"N8N_AUTH": line}, tmp_path / "none.toml")
    assert in_environment.n8n_auth.keys() == {"door_code"}


def test_the_server_trigger_of_the_page_is_an_mcp_server(tmp_path: Path) -> None:
    file = tmp_path / "mcp_servers.json"
    file.write_text(block("json", "mcpServers").replace("<path>", "house"))
    file.chmod(0o600)
    (server,) = load_servers(file)
    assert server.name == "house"


def test_the_page_names_every_sample() -> None:
    section = PAGE[PAGE.index("## Samples") : PAGE.index("## Reload")]
    samples = {entry.name for entry in (resources.files("n8n") / "workflows").iterdir()}
    assert set(re.findall(r"^\| `(\w+\.json)` \|", section, re.M)) == samples
