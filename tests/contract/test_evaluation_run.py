"""`caal-node validate` over the real wire: what is tried, what is found, what is kept."""

from __future__ import annotations

import asyncio
import json
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from caal_node.cli.validate import expectations, run_validate, validate
from caal_node.config.settings import Settings
from caal_node.core.errors import ConfigError, ModelError, ModelMissing, ModelUnreachable
from caal_node.evaluation.model_profiles import identify
from caal_node.evaluation.run import FAILURES_IN_A_ROW
from caal_node.evaluation.store import EvaluationStore, Identity, Validation, ValidationRecord
from caal_node.evaluation.suites import SUITES, WAYS
from tests.stand_ins import stand_in_model
from tests.stand_ins.perfect_model import PerfectModel, case_of
from tests.stand_ins.stand_in_model import Asked, Break, Call, Refuse, Reply, StandInModel, Think

pytestmark = pytest.mark.long


@pytest.fixture(autouse=True)
def plausible_prompts(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    # A server that counts 120 tokens for these prompts would look as if it had cut them.
    monkeypatch.setattr(stand_in_model, "PROMPT_TOKENS", 1500)
    monkeypatch.setenv("CAAL_STATE", str(tmp_path))


def settings(server: StandInModel, **more: object) -> Settings:
    return Settings(ollama_host=server.url, model=server.model, **more)  # type: ignore[arg-type]


async def kept(server: StandInModel, api: str = "ollama") -> list[ValidationRecord]:
    return await asyncio.to_thread(EvaluationStore().of, api, server.model)


async def found(server: StandInModel, *, full: bool = False, **more: object) -> Validation:
    steps: list[tuple[int, int]] = []
    result = await validate(
        settings(server, **more),
        full=full,
        on_step=lambda done, total, _: steps.append((done, total)),
    )
    shown = [done for done, _ in steps]
    assert shown == sorted(shown)
    assert set(shown) == set(range(len(result.outcomes) + 1))
    assert {total for _, total in steps} == {len(result.outcomes)}
    return result


@pytest.mark.parametrize("full", [False, True])
async def test_a_model_without_fault_passes_every_case_in_both_ways(full: bool) -> None:
    async with StandInModel(answer=PerfectModel()) as server:
        result = await found(server, full=full)
    assert [o for o in result.outcomes if o.mark != "right"] == []
    cases = sum(len(suite.chosen(full=full)) for suite in SUITES)
    by_text_alone = len(SUITES[-1].chosen(full=full))
    assert len(result.outcomes) == 2 * cases - by_text_alone
    assert (result.passed, result.asking) == (True, "native")
    assert result.identity == Identity("ollama", "0.17.4", server.model)


async def test_a_model_whose_calls_come_as_text_is_to_be_asked_by_text() -> None:
    async with StandInModel(answer=PerfectModel(native=False)) as server:
        result = await found(server)
    assert (result.passed, result.asking) == (True, "text")
    assert (
        result.tally("tool_call", "native").corrected == result.tally("tool_call", "native").total
    )
    assert "tool_call" in result.missed("native")


async def test_a_model_that_only_calls_natively_is_to_be_asked_natively() -> None:
    async with StandInModel(answer=PerfectModel(text=False)) as server:
        result = await found(server)
    assert (result.passed, result.asking) == (True, "native")
    assert result.tally("tool_call", "text").right == 0


async def test_a_model_without_tools_is_asked_by_text_alone() -> None:
    async with StandInModel(answer=PerfectModel(), capabilities=["completion"]) as server:
        result = await found(server)
        assert not any(asked.json.get("tools") for asked in server.chats)
    assert (result.native_offered, result.passed, result.asking) == (False, True, "text")
    assert result.total("native").total == 0


async def test_a_model_that_never_calls_fails() -> None:
    async with StandInModel(answer=lambda _: ["I am only here to talk to you."]) as server:
        result = await found(server)
    assert not result.passed
    assert "tool_call" in result.missed(result.asking)


async def test_a_model_that_thinks_is_told_to_for_the_cases_of_thinking() -> None:
    def answer(asked: Asked) -> Reply:
        said = PerfectModel()(asked)
        return [Think("Let me see."), *said] if asked.json["think"] else said

    can = ["completion", "tools", "thinking"]
    async with StandInModel(answer=answer, capabilities=can) as server:
        result = await found(server)
        told = [case_of(a.json) for a in server.chats if a.json["think"]]
    assert told
    assert all(case is not None and case.think for case in told)
    assert result.tally("reasoning", "native").passed


async def test_a_piece_of_a_call_that_is_spoken_is_found() -> None:
    def answer(asked: Asked) -> Reply:
        case = case_of(asked.json)
        thinks = case is not None and case.think
        return ['The "arguments": are two and two, so 4.'] if thinks else PerfectModel()(asked)

    async with StandInModel(answer=answer) as server:
        result = await found(server)
    assert not result.tally("reasoning", "native").passed


async def test_wrong_conclusions_are_not_right_however_clean_they_are() -> None:
    def answer(asked: Asked) -> Reply:
        case = case_of(asked.json)
        if case is None or not case.think:
            return PerfectModel()(asked)
        said = "It is forty two, on a Friday."
        return [said if asked.json.get("tools") else json.dumps({"say": said})]

    async with StandInModel(answer=answer) as server:
        result = await found(server, full=True)
    assert {result.tally("reasoning", way).right for way in WAYS} == {0}


async def test_words_behind_a_call_are_found_and_may_be_a_servers_own_run() -> None:
    def answer(asked: Asked) -> Reply:
        said = PerfectModel()(asked)
        made = any(isinstance(step, Call) for step in said)
        return [*said, "It is done."] if made and asked.json["stream"] else said

    async with StandInModel(answer=answer) as server:
        result = await found(server, api="openai", base_url=server.openai_url)
    behind = {o.case for o in result.outcomes if o.behind_call}
    assert "Set a timer for six minutes." in behind
    assert "CAAL_TOOL_CALLS=server" in "\n".join(expectations(result))
    assert [o for o in result.outcomes if o.mark != "right"] == []  # Nobody hears the words.


async def test_one_reply_that_breaks_off_costs_one_case() -> None:
    broken: list[Asked] = []

    def answer(asked: Asked) -> Reply:
        case = case_of(asked.json)
        if case is not None and "Helsinki" in case.name and asked.json.get("tools"):
            broken.append(asked)
            return [Break("out of memory")]
        return PerfectModel()(asked)

    async with StandInModel(answer=answer) as server:
        result = await found(server)
    assert broken
    wrong = [o for o in result.outcomes if o.mark != "right"]
    assert {o.case for o in wrong} == {"What will the weather be like in Helsinki?"}
    assert result.passed


async def test_a_server_that_breaks_time_after_time_ends_the_run() -> None:
    def answer(asked: Asked) -> Reply:
        return [Refuse(503, "overloaded")]

    async with StandInModel(answer=answer) as server:
        with pytest.raises(ModelError, match="busy"):
            await run_validate(settings(server))  # the settings' own model
        assert len(server.chats) <= FAILURES_IN_A_ROW * 3
    assert await kept(server) == []


async def test_a_refused_key_ends_the_run_at_once() -> None:
    async with StandInModel(answer=lambda _: [Refuse(401, "no")]) as server:
        with pytest.raises(ModelError, match="CAAL_API_KEY"):
            await found(server)
        assert len(server.chats) == 2  # the warm-up, and the first case


async def test_nobody_there_and_no_such_model_are_told_with_their_fix() -> None:
    nobody = Settings(ollama_host="127.0.0.1:9")
    with pytest.raises(ModelUnreachable, match="ollama serve"):
        await run_validate(nobody, "m")
    async with StandInModel() as server:
        with pytest.raises(ModelMissing, match="ollama pull other"):
            await run_validate(settings(server), "other")
        with pytest.raises(ConfigError, match="MODEL"):
            await run_validate(settings(server), "")


async def test_the_result_is_printed_written_and_kept(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    report = tmp_path / "report.md"
    async with StandInModel(answer=PerfectModel(native=False)) as server:
        code = await run_validate(settings(server), server.model, as_json=True, report=report)
    assert code == 0
    shown = json.loads(capsys.readouterr().out)
    assert (shown["passed"], shown["asking"], shown["server"]) == (True, "text", "ollama")
    assert "One request at a time is done (4 of 4 right)." in shown["by_voice"]
    assert "# stand-in" in report.read_text(encoding="utf-8")
    [record] = await kept(server)
    assert (record.passed, record.asking, record.address) == (True, "text", server.url)


async def test_a_store_that_cannot_be_used_is_told_before_the_model_is_asked(
    tmp_path: Path,
) -> None:
    (tmp_path / "validations.db").write_bytes(b"nothing of a database" * 30)
    async with StandInModel(answer=PerfectModel()) as server:
        with pytest.raises(ConfigError, match=r"validations\.db"):
            await run_validate(settings(server), server.model)
        assert server.requests == []


async def test_a_report_that_cannot_be_written_loses_nothing(tmp_path: Path) -> None:
    async with StandInModel(answer=PerfectModel()) as server:
        with pytest.raises(ConfigError, match="--report"):
            await run_validate(
                settings(server), server.model, report=tmp_path / "none" / "report.md"
            )
    assert len(await kept(server)) == 1


async def test_a_store_that_fails_at_the_end_does_not_cost_the_report(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def full_disk(self: EvaluationStore, validation: Validation) -> None:
        raise ConfigError(f"{self.path}: the disk is full")

    monkeypatch.setattr(EvaluationStore, "add", full_disk)
    report = tmp_path / "report.md"
    async with StandInModel(answer=PerfectModel()) as server:
        with pytest.raises(ConfigError, match="disk is full"):
            await run_validate(settings(server), server.model, report=report)
    assert report.is_file()


async def test_another_api_and_address_may_stand_in_the_models_name() -> None:
    async with StandInModel(answer=PerfectModel(), llama=True) as server:
        name = f"openai:{server.model}@{server.openai_url}"
        assert await run_validate(Settings(), name) == 0
    [record] = await kept(server, "openai")
    assert record.identity.server == "llama.cpp"


async def test_a_server_is_known_by_what_it_tells() -> None:
    async with StandInModel(llama=True) as server:
        by_v1 = Settings(api="openai", base_url=server.openai_url, model="any")
        found = await identify(by_v1)
        assert (found.server, found.version) == ("llama.cpp", "")
        assert re.fullmatch(r"stand-in\.gguf:[0-9a-f]{12}", found.digest)
    async with StandInModel() as server:
        # Ollama's own pages tell more than its copy of OpenAI's.
        by_v1 = Settings(api="openai", base_url=server.openai_url, model=server.model)
        assert (await identify(by_v1)).server == "ollama"
        assert (await identify(by_v1)) == await identify(settings(server))


async def test_the_command_exits_with_one_for_a_model_that_does_not_pass(tmp_path: Path) -> None:
    async with StandInModel(answer=lambda _: ["I am only here to talk to you."]) as server:
        done = await asyncio.to_thread(
            subprocess.run,
            [sys.executable, "-m", "caal_node.cli", "validate", server.model, "--json"],
            cwd=tmp_path,
            env={**os.environ, "OLLAMA_HOST": server.url, "CAAL_STATE": str(tmp_path)},
            capture_output=True,
            text=True,
            timeout=90,
            check=False,
        )
    assert done.returncode == 1, done.stderr
    assert json.loads(done.stdout)["passed"] is False
    assert (tmp_path / "validations.db").is_file()
