"""`caal-node tools --make-examples`, as a person runs it, on a stand-in model."""

from __future__ import annotations

import asyncio
import json
import os
import sys
from pathlib import Path
from typing import Any

from livekit.agents import function_tool

from caal_node.agent import CaalAgent
from tests.stand_in_model import Refuse, StandInModel

ROOT = Path(__file__).parents[2]


class Kitchen(CaalAgent):
    @function_tool
    async def set_timer(self, minutes: float) -> str:
        """Start a timer."""
        return f"{minutes}"

    @function_tool
    async def stop_timer(self) -> str:
        """Stop the timer.

        Example: stop that beeping -> {}
        """
        return "stopped"


async def tools(server: StandInModel, folder: Path, *options: str) -> tuple[int, str, str]:
    process = await asyncio.create_subprocess_exec(
        *(sys.executable, "-m", "caal_node.cli", "tools", *options),
        cwd=folder,
        env={
            **os.environ,
            "PYTHONPATH": str(ROOT),
            "OLLAMA_HOST": server.url,
            "CAAL_MODEL": server.model,
            "CAAL_AGENT": "tests.contract.test_make_examples:Kitchen",
            "CAAL_STATE": str(folder / "state"),
        },
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.PIPE,
    )
    async with asyncio.timeout(60):
        out, err = await process.communicate()
    assert process.returncode is not None
    return process.returncode, out.decode(), err.decode()


async def test_tools_without_examples_are_given_some_once(tmp_path: Path) -> None:
    rows: list[Any] = [
        {"say": "ten minutes please", "arguments": {"minutes": 10}},
        {"say": "a timer", "arguments": {"minutes": 3}},
    ]
    async with StandInModel([json.dumps({"examples": rows})]) as server:
        code, out, err = await tools(server, tmp_path, "--make-examples", "--json")
        assert code == 0, err
        assert "set_timer: ten minutes please" in err
        assert "1 tools have examples now, 0 still have none" in err
        assert json.loads(out)["tools"], "the list follows"
        (asked,) = server.chats
        assert "set_timer" in asked.json["messages"][-1]["content"]
        assert asked.json["format"]["required"] == ["examples"]
        kept = await asyncio.to_thread((tmp_path / "state" / "examples.json").read_text)
        (row,) = json.loads(kept).values()
        assert row == {"tool": "set_timer", "examples": rows[:1]}
        code, _, err = await tools(server, tmp_path, "--make-examples")
        assert code == 0, err
        assert len(server.chats) == 1, "what has examples is not asked for again"


async def test_a_model_that_writes_nothing_of_use_is_told(tmp_path: Path) -> None:
    async with StandInModel([Refuse(500, "no")]) as server:
        code, _, err = await tools(server, tmp_path, "--make-examples")
        assert code == 0
        assert "0 tools have examples now, 1 still have none" in err
        assert not (tmp_path / "state" / "examples.json").exists()
