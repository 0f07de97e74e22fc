"""MCP servers as people run them, through the manager: a right, a wrong and an oversized argument.

`make test-rest` installs them once (tests/prepare.py); nothing is fetched here. `fetch` reads a
page of this machine, `git` a repository made for it.
"""

from __future__ import annotations

import contextlib
import json
import shutil
import subprocess
import threading
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest

from mcp_bridge import BadArguments, ServerConfig, ServerError, ServerManager
from mcp_bridge.protocol.tool_results import MAX_ARGUMENT_BYTES
from tests.e2e.mcp_servers import NODE, PYTHON, command

START_S = 60.0
"""A Python server imports for seconds where other things run as well."""
PAGE = "<html><body><h1>Bread</h1><p>It rises for two hours.</p></body></html>"
Arguments = Mapping[str, Any]


@dataclass(frozen=True)
class Place:
    """A folder, a repository in it, and a page on loopback."""

    folder: Path
    page: str

    @property
    def repository(self) -> str:
        return str(self.folder / "repository")

    @property
    def note(self) -> str:
        return str(self.folder / "note.txt")


@dataclass(frozen=True)
class Case:
    """`tool` with arguments that it takes and ones that it does not; `big` holds a long text."""

    tool: str
    right: Callable[[Place], Arguments]
    says: str
    wrong: Callable[[Place], Arguments]
    complains: str
    big: Callable[[Place, str], Arguments]
    tools: int
    args: Callable[[Place], tuple[str, ...]] = lambda place: ()
    env: Callable[[Place], Mapping[str, str]] = field(default=lambda place: {})


CASES: Mapping[str, Case] = {
    "filesystem": Case(
        tool="read_text_file",
        right=lambda at: {"path": at.note},
        says="Remember the milk.",
        wrong=lambda at: {"path": "/etc/passwd"},
        complains="Access denied",
        big=lambda at, text: {"path": at.note + text},
        tools=14,
        args=lambda at: (str(at.folder),),
    ),
    "everything": Case(
        tool="echo",
        right=lambda at: {"message": "hello"},
        says="Echo: hello",
        wrong=lambda at: {"message": 5},
        complains="expected string",
        big=lambda at, text: {"message": text},
        tools=15,
    ),
    "memory": Case(
        tool="create_entities",
        right=lambda at: {
            "entities": [{"name": "Ada", "entityType": "person", "observations": ["likes tea"]}]
        },
        says="likes tea",
        wrong=lambda at: {"entities": [{"name": "Ada"}]},
        complains="entityType",
        big=lambda at, text: {
            "entities": [{"name": "Big", "entityType": "book", "observations": [text]}]
        },
        tools=9,
        env=lambda at: {"MEMORY_FILE_PATH": str(at.folder / "memory.jsonl")},
    ),
    "sequential-thinking": Case(
        tool="sequentialthinking",
        right=lambda at: thought("first things first"),
        says='"thoughtNumber": 1',
        wrong=lambda at: {"thought": "and then?"},
        complains="thoughtNumber",
        big=lambda at, text: thought(text),
        tools=1,
    ),
    "time": Case(
        tool="get_current_time",
        right=lambda at: {"timezone": "Europe/Paris"},
        says="Europe/Paris",
        wrong=lambda at: {"timezone": "Mars/Olympus"},
        complains="Mars/Olympus",
        big=lambda at, text: {"timezone": text},
        tools=2,
    ),
    "git": Case(
        tool="git_log",
        right=lambda at: {"repo_path": at.repository},
        says="Bread, first try",
        wrong=lambda at: {"repo_path": str(at.folder / "nowhere")},
        complains="nowhere",
        big=lambda at, text: {"repo_path": at.repository + text},
        tools=12,
    ),
    "fetch": Case(
        tool="fetch",
        # Raw: to make it readable, the server would fetch packages of its own from npm.
        right=lambda at: {"url": at.page, "raw": True},
        says="It rises for two hours.",
        wrong=lambda at: {"url": "no address"},
        complains="",
        big=lambda at, text: {"url": at.page + "?" + text, "raw": True},
        tools=1,
        args=lambda at: ("--allow-private-ips",),  # the page is on loopback
    ),
    "sqlite": Case(
        tool="read_query",
        right=lambda at: {"query": "SELECT 6 * 7 AS answer"},
        says="'answer': 42",
        wrong=lambda at: {"query": "SELECT name FROM nowhere"},
        complains="no such table: nowhere",
        big=lambda at, text: {"query": f"SELECT length('{text}') AS size"},
        tools=6,
        args=lambda at: ("--db-path", str(at.folder / "data.db")),
    ),
}


def thought(words: str) -> Arguments:
    return {"thought": words, "nextThoughtNeeded": False, "thoughtNumber": 1, "totalThoughts": 1}


class Pages(BaseHTTPRequestHandler):
    def do_GET(self) -> None:
        found = not self.path.startswith("/robots.txt")
        body = PAGE.encode() if found else b""
        self.send_response(200 if found else 404)
        self.send_header("Content-Type", "text/html")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        with contextlib.suppress(OSError):
            self.wfile.write(body)

    def log_message(self, format: str, *args: object) -> None:
        pass


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Place]:
    folder = tmp_path_factory.mktemp("place").resolve()
    (folder / "note.txt").write_text("Remember the milk.")
    server = ThreadingHTTPServer(("127.0.0.1", 0), Pages)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    try:
        yield Place(folder, f"http://127.0.0.1:{server.server_port}/bread")
    finally:
        server.shutdown()
        server.server_close()


def make_repository(place: Place) -> None:
    if (git := shutil.which("git")) is None:
        pytest.skip("no git on PATH: its server needs the program")
    who = ["-c", "user.name=Ada", "-c", "user.email=ada@example.org"]
    message = ["--allow-empty", "--message", "Bread, first try"]
    for arguments in (["init", "--quiet"], [*who, "commit", "--quiet", *message]):
        at = ["-C", place.repository] if arguments[0] != "init" else []
        target = [place.repository] if arguments[0] == "init" else []
        subprocess.run([git, *at, *arguments, *target], check=True, timeout=START_S)


async def told(manager: ServerManager, tool: str, arguments: Arguments) -> tuple[bool, str]:
    """Whether the call went well, and the words of the result or of the refusal."""
    try:
        result = await manager.call_tool(tool, arguments)
    except ServerError as error:
        return False, str(error)
    said = result.value if isinstance(result.value, str) else json.dumps(result.value)
    return not result.is_error, said


@pytest.mark.parametrize("server", sorted([*PYTHON, *NODE]))
async def test_a_real_server_takes_a_right_a_wrong_and_an_oversized_argument(
    server: str, place: Place
) -> None:
    case, started_by = CASES[server], command(server)
    if started_by is None:
        pytest.skip("not installed; `python -m tests.prepare` does it, with Node from PyPI or PATH")
    if server == "git":
        make_repository(place)
    program, *args = started_by
    config = ServerConfig(
        server, command=program, args=(*args, *case.args(place)), env=case.env(place)
    )
    async with ServerManager(
        [config], connect_timeout_s=START_S, call_timeout_s=START_S
    ) as manager:
        assert manager.failed == {}
        tools = {tool.tool: tool.name for tool in await manager.list_tools()}
        assert len(tools) == case.tools
        tool = tools[case.tool]

        went_well, said = await told(manager, tool, case.right(place))
        assert went_well, said
        assert case.says in said

        went_well, said = await told(manager, tool, case.wrong(place))
        # The sqlite server tells of its errors as if they were results.
        assert not went_well or server == "sqlite"
        assert case.complains in said

        # One that is too large for us never leaves; one that is merely large is the server's to
        # judge, in an answer of bounded size; and after both it is there as before.
        with pytest.raises(BadArguments, match=f"at most {MAX_ARGUMENT_BYTES}"):
            await manager.call_tool(tool, case.big(place, "x" * MAX_ARGUMENT_BYTES))
        _, said = await told(manager, tool, case.big(place, "x" * (MAX_ARGUMENT_BYTES // 2)))
        assert len(said) < 70_000
        went_well, said = await told(manager, tool, case.right(place))
        assert went_well, said
        assert manager.failed == {}
