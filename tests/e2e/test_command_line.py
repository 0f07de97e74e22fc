"""The command line as a person runs it: processes, typed lines, exit codes."""

from __future__ import annotations

import json
import re
import subprocess
import sys
from functools import partial
from pathlib import Path

import pytest

from caal_node import __version__
from tests.stand_ins.stand_in_model import Call, StandInModel
from tests.stand_ins.terminal import clean_environment

RUN_S = 90


HELP = ("-h", "--help")
BOX = re.compile("[\u2500-\u257f]")
OWN_COMMANDS = (
    *(
        (),
        ("init",),
        ("chat",),
        ("control",),
        ("up",),
        ("page",),
        ("reload",),
        ("model",),
        ("say",),
        ("tools",),
        ("doctor",),
        ("validate",),
        ("login",),
    ),
    *(("download-files",), ("demo",), ("n8n",), ("n8n", "check"), ("n8n", "try"), ("mcp",)),
    *(("mcp", "import"), ("mcp", "inputs"), ("policy",), ("policy", "try"), ("trace",)),
    *(("health",), ("schema",)),
)
LONG = f"Start a timer{' that is told of at length' * 6}."


def run(
    *args: str, folder: Path, typed: str = "", module: str = "caal_node.cli", **env: str
) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-m", module, *args],
        input=typed,
        cwd=folder,
        env=clean_environment(**env),
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


async def test_a_chat_that_is_a_dry_run_calls_nothing_and_says_so(tmp_path: Path) -> None:
    import asyncio

    (tmp_path / "my_agent.py").write_text(
        "from livekit.agents import function_tool\n"
        "from caal_node import CaalAgent\n"
        "class Kitchen(CaalAgent):\n"
        "    @function_tool\n"
        "    async def light_oven(self, degrees: int) -> str:\n"
        "        '''Light the oven.'''\n"
        "        open('lit', 'w').close()\n"
        "        return 'lit'\n",
        encoding="utf-8",
    )

    def answer(asked: object) -> list[object]:
        warms = asked.json.get("options", {}).get("num_predict") == 1  # type: ignore[attr-defined]
        return ["."] if warms else [Call("light_oven", {"degrees": 200})]

    async with StandInModel(answer=answer) as server:  # type: ignore[arg-type]
        done = await asyncio.to_thread(
            run,
            "chat",
            "--dry-run",
            folder=tmp_path,
            typed="light the oven\n",
            OLLAMA_HOST=server.url,
            CAAL_MODEL=server.model,
            CAAL_AGENT="my_agent:Kitchen",
        )
    assert done.returncode == 0, done.stderr
    assert "dry_run is on: no tool is called" in done.stdout
    assert "I would have used light oven: degrees 200." in done.stdout
    assert not (tmp_path / "lit").exists()


async def test_chat_in_a_pipe_takes_the_next_line_for_the_answer(tmp_path: Path) -> None:
    import asyncio

    (tmp_path / "my_agent.py").write_text(
        "from livekit.agents import function_tool\n"
        "from caal_node import CaalAgent, effect\n"
        "class Kitchen(CaalAgent):\n"
        "    @function_tool\n"
        "    @effect('destructive')\n"
        "    async def wipe(self, shelf: str) -> str:\n"
        "        '''Wipe a shelf.'''\n"
        "        return 'wiped'\n",
        encoding="utf-8",
    )

    def answer(asked: object) -> list[object]:
        last = asked.json["messages"][-1]  # type: ignore[attr-defined]
        return ["It is clean."] if last["role"] == "tool" else [Call("wipe", {"shelf": "top"})]

    async with StandInModel(answer=answer) as server:  # type: ignore[arg-type]
        done = await asyncio.to_thread(
            run,
            *("chat", "--json"),
            folder=tmp_path,
            typed="wipe the top shelf\nyes please\nand again\n",
            OLLAMA_HOST=server.url,
            CAAL_MODEL=server.model,
            CAAL_TOOL_CALLS="native",
            CAAL_AGENT="my_agent:Kitchen",
        )
    assert done.returncode == 0, done.stderr
    events = [json.loads(line) for line in done.stdout.splitlines()]
    asked = [event for event in events if event["type"] == "confirmation_asked"]
    assert [event["words"] for event in asked] == ["Shall I wipe: shelf top?"] * 2
    answers = [event["answer"] for event in events if event["type"] == "confirmation_ended"]
    assert answers == ["yes", "cancelled"], "the input's end is no yes"
    ended = [event["outcome"] for event in events if event["type"] == "tool_call_ended"]
    assert ended[0] == "ok"
    assert "ok" not in ended[1:]


@pytest.mark.parametrize(
    ("command", "env", "part"),
    [
        ("chat", {"CAAL_DETECTION": "sometimes"}, "CAAL_DETECTION"),
        ("chat", {"OLLAMA_HOST": "ftp://x"}, "OLLAMA_HOST"),
        ("chat", {"CAAL_AGENT": "nowhere:Agent"}, "CAAL_AGENT"),
        ("tools", {"CAAL_CUES": "missing"}, "tool.wav"),
    ],
)
def test_a_wrong_setting_is_one_line_that_names_it(
    tmp_path: Path, command: str, env: dict[str, str], part: str
) -> None:
    done = run(command, folder=tmp_path, **env)
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


@pytest.mark.parametrize("options", [["--json"], [], ["--verbose"]])
def test_a_missing_model_server_is_one_line_with_the_fix(
    tmp_path: Path, options: list[str]
) -> None:
    done = run("chat", *options, folder=tmp_path, typed="hello\n", OLLAMA_HOST="127.0.0.1:9")
    assert done.returncode == 1
    assert done.stdout == ""
    (line,) = done.stderr.strip().splitlines()
    assert "ollama serve" in line


NOBODY = "127.0.0.1:9"


@pytest.mark.parametrize(
    ("command", "part"),
    [
        (("validate", "qwen3:8b"), "ollama serve"),
        (("n8n", "check", "--instance"), "check N8N_URL"),
        (("n8n", "try", "lamp"), "check N8N_URL"),
        (("login", "notes"), "start it, or fix the url"),
        (("console",), "run: caal-node chat"),
        (("control",), "CAAL_CONTROL_TOKEN"),
    ],
    ids=lambda given: " ".join(given) if isinstance(given, tuple) else "",
)
def test_a_command_that_cannot_go_on_is_one_line_with_the_fix(
    tmp_path: Path, command: tuple[str, ...], part: str
) -> None:
    env = dead_servers(tmp_path)
    done = run(*command, folder=tmp_path, **env)
    assert done.returncode == 1
    assert done.stdout == ""
    (line,) = done.stderr.strip().splitlines()
    assert part in line


def test_what_is_left_is_listed_and_each_dead_server_is_named(tmp_path: Path) -> None:
    env = dead_servers(tmp_path)
    done = run("tools", folder=tmp_path, **env)
    assert (done.returncode, done.stderr) == (0, "")
    lines = done.stdout.splitlines()
    assert lines[0].startswith("There are no tools: ")
    assert any(line.startswith("notes\tdown") and "fix the url" in line for line in lines)
    assert any(line.startswith("no tools from n8n: ") and "N8N_URL" in line for line in lines)
    done = run("doctor", folder=tmp_path, **env)
    assert (done.returncode, done.stderr) == (1, "")
    failed = [line.split("\t") for line in done.stdout.splitlines() if line.startswith("fail")]
    assert {"model server", "livekit", "n8n", "mcp notes"} <= {name for _, name, *_ in failed}
    assert all(fix for *_, fix in failed)


def dead_servers(folder: Path) -> dict[str, str]:
    servers = {"notes": {"url": f"http://{NOBODY}/mcp"}}
    (folder / "mcp_servers.json").write_text(json.dumps(servers), encoding="utf-8")
    return {
        "OLLAMA_HOST": NOBODY,
        "N8N_URL": NOBODY,
        "N8N_API_KEY": "key",
        "LIVEKIT_URL": f"ws://{NOBODY}",
        "LIVEKIT_API_KEY": "devkey",
        "LIVEKIT_API_SECRET": "secret",
    }


async def test_a_model_server_that_goes_ends_a_chat_over_a_pipe(tmp_path: Path) -> None:
    import asyncio

    server = StandInModel(answer=lambda _: ["Here I am."])
    async with server:
        chat = await asyncio.create_subprocess_exec(
            *(sys.executable, "-m", "caal_node", "chat", "--json"),
            cwd=tmp_path,
            env=clean_environment(OLLAMA_HOST=server.url, CAAL_MODEL=server.model),
            stdin=asyncio.subprocess.PIPE,
            stdout=asyncio.subprocess.PIPE,
            stderr=asyncio.subprocess.PIPE,
        )
        assert chat.stdin is not None
        assert chat.stdout is not None
        chat.stdin.write(b"hello\n")
        while b"turn_ended" not in await asyncio.wait_for(chat.stdout.readline(), RUN_S):
            pass
    said, errors = await asyncio.wait_for(chat.communicate(b"hello again\nand again\n"), RUN_S)
    assert chat.returncode == 1
    types = [json.loads(line)["type"] for line in said.splitlines()]
    assert types == ["user", "cue", "speech", "speech", "turn_ended"]
    (line,) = errors.decode().strip().splitlines()
    assert "ollama serve" in line


def test_a_pipe_gets_whole_lines_without_escape_codes(tmp_path: Path) -> None:
    (tmp_path / "my_agent.py").write_text(
        "from livekit.agents import function_tool\n"
        "from caal_node import CaalAgent\n"
        "class Kitchen(CaalAgent):\n"
        "    @function_tool\n"
        "    async def set_timer(self, minutes: float) -> str:\n"
        f"        '''{LONG}'''\n"
        "        return 'started'\n",
        encoding="utf-8",
    )
    done = run("tools", folder=tmp_path, CAAL_AGENT="my_agent:Kitchen")
    assert f"set_timer\tagent\tKitchen\t{LONG}" in done.stdout.splitlines()
    assert "\x1b" not in done.stdout + done.stderr
    done = run("tools", "--explain", "set_timer", folder=tmp_path, CAAL_AGENT="my_agent:Kitchen")
    assert LONG in done.stdout.splitlines()
    assert "\x1b" not in done.stdout + done.stderr


def test_tools_on_demand_are_listed_and_explained(tmp_path: Path) -> None:
    servers = {"time": {"command": sys.executable, "args": ["-m", "mcp_server_time"]}}
    (tmp_path / "mcp_servers.json").write_text(json.dumps(servers), encoding="utf-8")
    done = run("tools", "--json", folder=tmp_path, CAAL_TOOL_TOKENS="1")
    listed = {tool["name"]: tool["offered"] for tool in json.loads(done.stdout)["tools"]}
    assert listed.pop("mcp_discover") is True
    assert listed
    assert not any(listed.values())
    for name in listed:
        done = run("tools", "--explain", name, folder=tmp_path, CAAL_TOOL_TOKENS="1")
        assert done.returncode == 0, done.stderr
        assert name in done.stdout
    done = run("tools", folder=tmp_path, CAAL_TOOL_TOKENS="1", CAAL_PINNED_TOOLS="*_current_*")
    told = {
        line.split("\t")[0]: line.split("\t")[3]
        for line in done.stdout.splitlines()
        if "\tmcp\t" in line
    }
    assert told == {
        "mcp_discover": "in every prompt",
        "time__get_current_time": "in every prompt",
        "time__convert_time": "on demand",
    }


def test_the_bridge_tells_its_version_and_its_help(tmp_path: Path) -> None:
    run_bridge = partial(run, module="mcp_bridge.serve", folder=tmp_path)
    assert run_bridge("--version").stdout == f"mcp-bridge {__version__}\n"
    for command in ([], ["serve"], ["unit"]):
        short, long = (run_bridge(*command, each) for each in HELP)
        assert short.returncode == 0
        assert short.stdout == long.stdout
    done = run_bridge("serve", "--tls-key", "key.pem", "--", "true", FORCE_COLOR="1", NO_COLOR="1")
    assert done.stderr.strip() == "mcp-bridge: --tls-key goes with --tls-cert; give both"


def test_the_bridge_is_a_command_of_ours_as_well(tmp_path: Path) -> None:
    done = run("mcp", "serve", "-h", folder=tmp_path)
    assert "Usage: caal-node mcp serve [OPTIONS] {command}..." in done.stdout
    done = run("mcp", "serve", "--port", "0", "--tls-key", "k", "--", "x", "-h", folder=tmp_path)
    assert done.returncode == 1
    assert done.stderr.strip() == "caal-node: --tls-key goes with --tls-cert; give both"
    assert "mcp serve --token-file" in run("mcp", "unit", folder=tmp_path).stdout


def test_help_in_a_pipe_is_whole_lines_without_boxes(tmp_path: Path) -> None:
    helps = [run(*command, "--help", folder=tmp_path).stdout for command in OWN_COMMANDS]
    bridge = partial(run, module="mcp_bridge.serve", folder=tmp_path)
    helps += [bridge(*command, "--help").stdout for command in ((), ("serve",), ("unit",))]
    for text in helps:
        assert "--help" in text
        assert not BOX.search(text)
        assert "\x1b" not in text
    told = "Talk to the agent by typing; a turn a line from stdin where that is no terminal."
    assert re.search(rf"^  chat +{re.escape(told)}$", helps[0], re.MULTILINE)
    listed = re.search(r"^Commands:\n(.*)", helps[0], re.MULTILINE | re.DOTALL)
    assert listed is not None
    named = [line.split()[0] for line in listed[1].splitlines()]
    known = {command[0] for command in OWN_COMMANDS if command}
    assert set(named) == known | {"start", "dev", "console"}  # those are LiveKit's


@pytest.mark.parametrize("command", ["start", "dev", "console"])
def test_livekits_help_in_a_pipe_breaks_no_line(tmp_path: Path, command: str) -> None:
    done = run(command, "--help", folder=tmp_path)
    assert "\x1b" not in done.stdout
    (line,) = [line for line in done.stdout.splitlines() if "--log-level" in line]
    assert "[env var: LIVEKIT_LOG_LEVEL]" in line


def test_wrong_usage_in_a_pipe_is_told_without_boxes(tmp_path: Path) -> None:
    for command in (("nothing",), ("tools", "remove"), ("n8n", "check")):
        done = run(*command, folder=tmp_path)
        assert done.returncode == 2
        assert "Error: " in done.stderr
        assert not BOX.search(done.stderr)


@pytest.mark.parametrize("module", ["caal_node", "caal_node.cli"])
def test_the_version_and_the_help_are_told(tmp_path: Path, module: str) -> None:
    assert run("--version", folder=tmp_path, module=module).stdout == f"caal-node {__version__}\n"
    for command in ([], ["chat"], ["n8n", "check"]):
        short, long = (run(*command, each, folder=tmp_path, module=module) for each in HELP)
        assert short.returncode == 0
        assert short.stdout == long.stdout
        assert " ".join(["Usage: caal-node", *command]) in short.stdout


def test_a_file_of_variables_is_read_and_told_by_doctor_alone(tmp_path: Path) -> None:
    (tmp_path / ".env").write_text('export CAAL_DETECTION="sometimes" # often\nCAAL_MODEL=\n')
    done = run("tools", folder=tmp_path, CAAL_MODEL="own")
    assert done.stderr.startswith("caal-node: CAAL_DETECTION: 'sometimes'")
    told, wrong = run("doctor", folder=tmp_path, CAAL_MODEL="own").stderr.strip().splitlines()
    assert told == "caal-node: .env sets CAAL_DETECTION"
    assert "CAAL_DETECTION: 'sometimes'" in wrong
    assert run("tools", folder=tmp_path, CAAL_DETECTION="streamed").returncode == 0
    (tmp_path / ".env").chmod(0o666)
    done = run("tools", folder=tmp_path)
    assert done.returncode == 1
    assert "chmod go-w" in done.stderr


def _asked(server: StandInModel) -> list[str]:
    return [request.json["messages"][-1]["content"] for request in server.chats]


async def test_chat_asks_the_model_that_is_named(tmp_path: Path) -> None:
    import asyncio

    async with StandInModel(answer=lambda _: ["Here I am."], model="other") as server:
        told = f"ollama:other@{server.url}"
        done = await asyncio.to_thread(
            run, "chat", "--model", told, "--json", folder=tmp_path, typed="hello\n"
        )
        assert '"text":"Here I am."' in done.stdout
        greetings = _asked(server).count("hello")
        done = await asyncio.to_thread(
            run, "chat", "where are you", "--model", told, folder=tmp_path, typed="hello\n"
        )
        assert done.returncode == 0
        assert done.stdout.count("Here I am.") == 1
        asked = _asked(server)
        assert "where are you" in asked
        # A slow first sample makes the turn two requests. A question leaves the input alone.
        assert asked.count("hello") == greetings >= 1
    done = run("chat", "--model", "two words", folder=tmp_path)
    assert done.returncode == 1
    assert "--model" in done.stderr


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
