"""A command imports only what it needs: LiveKit takes two seconds to load, the MCP SDK one."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parents[3]
NO_API = ["--api", "http://127.0.0.1:1"]
COMMANDS = [
    ["--help"],
    ["mcp", "import", "--dry-run"],
    ["mcp", "inputs", "servers.json"],
    ["trace", "trace.jsonl"],
    ["say", "kitchen", "Dinner is ready.", *NO_API],
    ["reload", *NO_API],
    ["n8n", "check", str(ROOT / "n8n/workflows/laundry.json")],
]
SERVERS = {"mcpServers": {"clock": {"command": "uvx", "args": ["mcp-server-time"]}}}
SPANS: dict[str, Any] = {"resourceSpans": [{"scopeSpans": [{"spans": []}]}]}


def printed(code: str, folder: Path) -> Any:
    """Return what a new process gives for the name `found` after `code`, run in `folder`."""
    environ = {**os.environ, "PYTHONPATH": str(ROOT), "CAAL_CONTROL_TOKEN": "t" * 32}
    ended = subprocess.run(
        [sys.executable, "-c", f"import json, sys\n{code}\nprint(json.dumps(found))"],
        cwd=folder,
        env=environ,
        capture_output=True,
        text=True,
        timeout=120,
        check=True,
    )
    return json.loads(ended.stdout.splitlines()[-1])


def test_commands_without_an_agent_load_no_livekit(tmp_path: Path) -> None:
    (tmp_path / "servers.json").write_text(json.dumps(SERVERS))
    (tmp_path / "trace.jsonl").write_text(json.dumps(SPANS))
    code = f"""
from caal_node.cli import main
found = {{}}
for arguments in {COMMANDS!r}:
    sys.argv[1:] = arguments
    try:
        main()
    except SystemExit:
        pass
    heavy = {{"livekit", "mcp", "numpy", "fastapi"}} & set(sys.modules)
    found[" ".join(arguments)] = sorted(heavy)
"""
    assert printed(code, tmp_path) == {" ".join(arguments): [] for arguments in COMMANDS}


def test_help_and_the_completion_of_toolsets_read_no_settings(tmp_path: Path) -> None:
    code = """
from caal_node.cli import app, completion
completion.toolsets("w")
found = "caal_node.config.settings" in sys.modules
"""
    assert printed(code, tmp_path) is False


def test_toolsets_load_no_mcp_sdk_and_a_chat_no_line_editor(tmp_path: Path) -> None:
    code = """
import caal_node.cli.schema
caal_node.cli.schema.print_schema()
found = ["mcp" in sys.modules]
import caal_node.cli.chat
found.append("prompt_toolkit" in sys.modules)
"""
    assert printed(code, tmp_path) == [False, False]
