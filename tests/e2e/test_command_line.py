"""The command line as a person runs it: processes, typed lines, exit codes."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.stand_in_model import Call, StandInModel

RUN_S = 90


def run(*args: str, folder: Path, typed: str = "", **env: str) -> subprocess.CompletedProcess[str]:
    foreign = ("CAAL_", "N8N_", "OLLAMA_")
    clean = {k: v for k, v in os.environ.items() if not k.startswith(foreign) or k == "CAAL_STATE"}
    return subprocess.run(
        [sys.executable, "-m", "caal_node.cli", *args],
        input=typed,
        cwd=folder,
        env={**clean, **env},
        capture_output=True,
        text=True,
        timeout=RUN_S,
        check=False,
    )


async def test_chat_prints_an_event_a_line_and_nothing_else(tmp_path: Path) -> None:
    import asyncio

    (tmp_path / "my_agent.py").write_text(
        "from livekit.agents import function_tool\n"
        "from caal_node import CaalAgent\n"
        "class Kitchen(CaalAgent):\n"
        "    @function_tool\n"
        "    async def set_timer(self, minutes: float) -> str:\n"
        "        '''Start a timer.'''\n"
        "        return 'started'\n",
        encoding="utf-8",
    )

    def answer(asked: object) -> list[object]:
        body = asked.json  # type: ignore[attr-defined]
        last = body["messages"][-1]
        if body.get("options", {}).get("num_predict") == 1:
            return ["."]
        if last["role"] == "tool":
            return ["Your timer runs."]
        if "Oslo" in last["content"]:
            return [Call("get_weather", {"city": "Oslo"})]
        return [Call("set_timer", {"minutes": 5})]

    async with StandInModel(answer=answer) as server:  # type: ignore[arg-type]
        done = await asyncio.to_thread(
            run,
            "chat",
            "--json",
            folder=tmp_path,
            typed="five minutes please\n",
            OLLAMA_HOST=server.url,
            CAAL_MODEL=server.model,
            CAAL_AGENT="my_agent:Kitchen",
        )
    assert done.returncode == 0, done.stderr
    events = [json.loads(line) for line in done.stdout.splitlines()]
    assert [e["type"] for e in events] == [
        "user",
        "tool_call_started",
        "cue",
        "tool_call_ended",
        "speech",
        "turn_ended",
    ]
    assert events[1]["arguments"] == {"minutes": 5}
    assert events[3]["outcome"] == "ok"
    assert events[4]["text"] == "Your timer runs."


@pytest.mark.parametrize(
    ("env", "part"),
    [
        ({"CAAL_DETECTION": "sometimes"}, "CAAL_DETECTION"),
        ({"OLLAMA_HOST": "ftp://x"}, "OLLAMA_HOST"),
        ({"CAAL_AGENT": "nowhere:Agent"}, "CAAL_AGENT"),
        ({"CAAL_CUE_TOOL": "missing.wav"}, "missing.wav"),
    ],
)
def test_a_wrong_setting_is_one_line_that_names_it(
    tmp_path: Path, env: dict[str, str], part: str
) -> None:
    done = run("chat", folder=tmp_path, **env)
    assert done.returncode == 1
    (line,) = done.stderr.strip().splitlines()
    assert part in line


def test_a_broken_file_of_servers_is_told_and_stops_nothing(tmp_path: Path) -> None:
    (tmp_path / "mcp_servers.json").write_text('{\n  "time": {"comand": "x"}\n}', encoding="utf-8")
    done = run("tools", "--json", folder=tmp_path)
    assert done.returncode == 0, done.stderr
    listed = json.loads(done.stdout)
    (reason,) = listed["failed"].values()
    assert "mcp_servers.json:2" in reason
    assert "comand" in reason


def test_a_missing_model_server_is_an_apology_and_no_crash(tmp_path: Path) -> None:
    done = run("chat", "--json", folder=tmp_path, typed="hello\n", OLLAMA_HOST="127.0.0.1:9")
    assert done.returncode == 0, done.stderr
    spoken = [e["text"] for e in map(json.loads, done.stdout.splitlines()) if e["type"] == "speech"]
    assert " ".join(spoken).startswith("Sorry")


def test_help_names_every_command(tmp_path: Path) -> None:
    done = run("--help", folder=tmp_path)
    for command in (
        "chat",
        "start",
        "dev",
        "console",
        "control",
        "tools",
        "doctor",
        "validate",
        "demo",
    ):
        assert command in done.stdout
