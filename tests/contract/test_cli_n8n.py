"""`caal-node n8n check`, `n8n try` and `tools --explain`, as authors run them."""

from __future__ import annotations

import asyncio
import json
import re
from pathlib import Path
from typing import Any

import pytest

from caal_node.agent import CaalAgent
from caal_node.cli.n8n_check import check_files, check_instance
from caal_node.cli.n8n_try import MODELS_OWN, try_workflow
from caal_node.cli.tools import explanation, resolve_tool
from caal_node.config.settings import Settings, load_settings
from caal_node.core.errors import ConfigError
from caal_node.core.prompt_files import sentence
from tests.recorded_n8n import RecordedN8n

pytestmark = pytest.mark.long

SAMPLES = Path(__file__).parents[2] / "n8n" / "workflows"
HEADER = {"header": "x-recorded-key", "value": "recorded-header-value"}


def settings_of(recorded: RecordedN8n, **more: str) -> Settings:
    env = {"N8N_URL": recorded.base_url, "N8N_API_KEY": recorded.api_key, **more}
    return load_settings({**env, "CAAL_CUES": "off"}, Path("no-such-caal.toml"))


async def tried(
    capsys: pytest.CaptureFixture[str], name: str, *pairs: str, **more: str
) -> dict[str, Any]:
    async with RecordedN8n() as recorded:
        worked = await try_workflow(settings_of(recorded, **more), name, pairs, as_json=True)
    printed = json.loads(capsys.readouterr().out)
    assert printed["ok"] is worked
    return printed


async def test_try_shows_what_the_model_gets(capsys: pytest.CaptureFixture[str]) -> None:
    printed = await tried(capsys, "get_weather", "city=Paris", "days=3")
    assert printed["arguments"] == {"city": "Paris", "days": 3}
    assert json.loads(printed["model"])["forecast"] == "sunny"
    assert printed["person"] == MODELS_OWN


@pytest.mark.parametrize(
    ("name", "heard", "model", "fix"),
    [
        ("fails_last_node", "workflow_failed", "Upstream CRM said no", "fix its node Stop"),
        ("fails_handled", "workflow_refused", "unknown city", None),
        ("timeout_2s", "workflow_stopped", "took too long", "its own time limit"),
        ("secure_lookup", "workflow_locked", "refused this assistant", "configure them"),
        ("zero_items", "workflow_failed", "ended without a result", "always output data"),
    ],
)
async def test_try_shows_what_a_person_hears_of_a_failure(
    capsys: pytest.CaptureFixture[str], name: str, heard: str, model: str, fix: str | None
) -> None:
    printed = await tried(capsys, name, "city=x")
    assert printed["person"] == sentence(heard)
    assert model in printed["model"]
    assert (fix or "") in (printed["fix"] or "")


async def test_try_uses_the_configured_credentials(capsys: pytest.CaptureFixture[str]) -> None:
    auth = json.dumps({"secure_lookup": HEADER})
    printed = await tried(capsys, "secure_lookup", "id=1", N8N_AUTH=auth)
    assert json.loads(printed["model"])["id"] == "1"


async def test_try_tells_a_person_as_much(capsys: pytest.CaptureFixture[str]) -> None:
    async with RecordedN8n() as recorded:
        await try_workflow(settings_of(recorded), "get_weather", ["city=Oslo"], as_json=False)
    lines = capsys.readouterr().out.splitlines()
    assert lines[0].startswith("workflow 'get_weather': POST /webhook/get_weather")
    assert [line.split()[0] for line in lines[1:]] == ["call", "model", "person", "done"]


@pytest.mark.parametrize(
    ("name", "pairs", "words"),
    [
        ("get_wether", [], "Did you mean get_weather"),
        ("get_weather", ["Paris"], "'Paris': write an argument as key=value"),
    ],
)
async def test_a_wrong_word_is_told_with_its_fix(name: str, pairs: list[str], words: str) -> None:
    async with RecordedN8n() as recorded:
        with pytest.raises(ConfigError, match=words):
            await try_workflow(settings_of(recorded), name, pairs, as_json=False)


async def test_a_try_names_an_argument_that_no_parameter_takes(
    capsys: pytest.CaptureFixture[str],
) -> None:
    async with RecordedN8n() as recorded:
        await try_workflow(
            settings_of(recorded), "get_weather", ["city=Oslo", "dayz=3"], as_json=False
        )
    out = capsys.readouterr().out
    assert "dayz is not a parameter of get_weather; it has city, days" in out
    assert "city is not" not in out


async def test_a_copied_page_of_the_editor_is_no_address_and_the_address_is_said() -> None:
    async with RecordedN8n() as recorded:
        for page in ("home/workflows", "api/v1"):
            there = settings_of(recorded, N8N_URL=f"{recorded.base_url}/{page}")
            with pytest.raises(ConfigError, match=re.escape(f"alone ({recorded.base_url})")):
                await try_workflow(there, "get_weather", [], as_json=False)


def test_a_folder_is_checked_as_the_workflows_in_it(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(ConfigError, match=r"there is no \.json file in this folder"):
        check_files([tmp_path], as_json=False)
    assert check_files([SAMPLES], as_json=False)
    out = capsys.readouterr().out
    assert f"{len(list(SAMPLES.glob('*.json')))} workflows: 0 errors" in out


async def test_an_instance_is_checked_workflow_by_workflow(
    capsys: pytest.CaptureFixture[str],
) -> None:
    async with RecordedN8n() as recorded:
        assert not await check_instance(settings_of(recorded), as_json=True)
    printed = json.loads(capsys.readouterr().out)
    by_workflow = {(f["workflow"], f["level"]): f["message"] for f in printed["findings"]}
    assert printed["workflows"] == 29
    assert "takes 70 s" in by_workflow["very_slow", "warning"]
    assert "has no notes" in by_workflow["no_notes", "warning"]
    assert "answers before it has run" in by_workflow["fire_and_forget", "warning"]
    assert "path is an expression" in by_workflow["expr_path", "error"]
    assert ("get_weather", "error") not in by_workflow
    assert ("open_ticket_form", "error") not in by_workflow
    assert "open_ticket_form: it has no Webhook node that could be called" in printed["others"]


async def test_tools_are_shown_as_the_model_reads_them_under_the_names_they_have(
    capsys: pytest.CaptureFixture[str],
) -> None:
    async with RecordedN8n() as recorded:
        settings = settings_of(recorded)
        await check_instance(settings, as_json=True)
        as_json = json.loads(capsys.readouterr().out)["tools"]
        await check_instance(settings, as_json=False)
        text = capsys.readouterr().out
        agent = CaalAgent(settings=settings, warm=False)
        await agent.reload_tools()
        try:
            read = [dict(entry.schema["function"]) for entry in agent.table]
        finally:
            await agent.close_tools()
    assert as_json == read
    shown = re.findall(r"^  model    (.*)$", text, re.M)
    assert [json.loads(line) for line in shown] == read
    assert {tool["name"] for tool in read} >= {"Unicode_tool_v2", "multi_trigger_multi_a"}


async def test_an_advice_for_many_workflows_is_given_once(
    capsys: pytest.CaptureFixture[str],
) -> None:
    async with RecordedN8n() as recorded:
        await check_instance(settings_of(recorded), as_json=False)
    out = capsys.readouterr().out
    assert out.count("whoever can reach n8n can run it") == 1
    assert out.count("it has no example") == 1
    assert "\n3 of 30 tools: slow_report, secure_lookup, list_events\n" in out
    assert out.splitlines()[-1] == "29 workflows: 2 errors, 9 warnings, 4 pieces of advice"


def test_a_file_is_checked_without_any_n8n(
    capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    file = tmp_path / "clock.json"
    hook = {"name": "Webhook", "type": "n8n-nodes-base.webhook", "webhookId": "w"}
    parameters = {"httpMethod": "POST", "path": "clock", "responseMode": "onReceived"}
    file.write_text(json.dumps({"name": "clock", "nodes": [{**hook, "parameters": parameters}]}))
    assert not check_files([file], as_json=False)
    out = capsys.readouterr().out
    assert "warning  clock: it has no notes" in out
    assert '  model    {"name": "clock", "description": "clock"' in out
    assert "fix: open the Webhook node, Settings, Notes" in out
    assert out.splitlines()[-1] == "1 workflow: 0 errors, 2 warnings, 1 piece of advice"


@pytest.mark.parametrize(
    ("text", "words"),
    [("{oops", "not JSON"), ('{"a": 1}', "no workflow in it"), (None, "cannot be read")],
)
def test_a_file_that_is_no_workflow_is_told(tmp_path: Path, text: str | None, words: str) -> None:
    file = tmp_path / "x.json"
    if text is not None:
        file.write_text(text)
    with pytest.raises(ConfigError, match=words):
        check_files([file], as_json=False)


def test_a_broken_file_among_others_hides_none_of_them(
    capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    hook = {"name": "Webhook", "type": "n8n-nodes-base.webhook", "webhookId": "w"}
    good, broken = tmp_path / "clock.json", tmp_path / "broken.json"
    parameters = {"httpMethod": "POST", "path": "clock", "responseMode": "lastNode"}
    good.write_text(json.dumps({"name": "clock", "nodes": [{**hook, "parameters": parameters}]}))
    broken.write_text("{oops")
    assert not check_files([broken, good], as_json=False)
    out = capsys.readouterr().out
    assert '  model    {"name": "clock"' in out
    assert f"{broken}: not JSON" in out
    with pytest.raises(ConfigError, match="not JSON"):
        check_files([broken], as_json=False)


async def test_explain_tells_where_each_parameter_came_from() -> None:
    async with RecordedN8n() as recorded:
        agent = CaalAgent(settings=settings_of(recorded), warm=False)
        await agent.reload_tools()
        try:
            names = ("get_weather", "Convert_Units", "get_order", "typed_tool")
            shown = {name: explanation(agent.table.resolve(name)) for name in names}
            with pytest.raises(ConfigError, match="Did you mean get_order"):
                resolve_tool(agent.table, "get_ordr")
        finally:
            await agent.close_tools()
    printed = {n: {p["name"]: p["from"] for p in one["parameters"]} for n, one in shown.items()}
    assert set(printed["get_weather"].values()) == {"the parameters that the notes list"}
    assert set(printed["Convert_Units"].values()) == {"an @param line of the notes"}
    assert printed["get_order"] == {"orderId": "the webhook's path"}
    assert set(printed["typed_tool"].values()) == {
        "the inputs of the sibling Execute Workflow Trigger"
    }


async def test_the_command_line_takes_it_all(tmp_path: Path) -> None:
    async with RecordedN8n() as recorded:
        env = {
            "N8N_URL": recorded.base_url,
            "N8N_API_KEY": recorded.api_key,
            "CAAL_MCP_SERVERS": str(tmp_path / "none.json"),
        }
        outs = [
            await command(tmp_path, env, *words)
            for words in (
                ("n8n", "try", "get_weather", "city=Paris"),
                ("n8n", "check", "--instance"),
                ("n8n", "check"),
                ("tools", "--explain", "get_weather"),
            )
        ]
    assert [code for code, _ in outs] == [0, 1, 2, 0]
    assert '"high_c":21' in outs[0][1]
    assert "warnings" in outs[1][1]
    assert "the parameters that the notes list" in outs[3][1]


async def command(folder: Path, env: dict[str, str], *words: str) -> tuple[int, str]:
    import os
    import sys

    foreign = ("N8N_", "CAAL_")
    clean = {k: v for k, v in os.environ.items() if not k.startswith(foreign) or k == "CAAL_STATE"}
    wide = {"COLUMNS": "200"}
    process = await asyncio.create_subprocess_exec(
        *(sys.executable, "-m", "caal_node.cli", *words),
        cwd=folder,
        env={**clean, **wide, **env},
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.STDOUT,
    )
    async with asyncio.timeout(60):
        out, _ = await process.communicate()
    assert process.returncode is not None
    return process.returncode, out.decode()
