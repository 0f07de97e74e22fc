"""Doctor: every kind of fault is found, named, and comes with its fix."""

from __future__ import annotations

import asyncio
import json
import sys
import wave
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import httpx2
import pytest
from pydantic import SecretStr

from caal_node.cli import doctor
from caal_node.cli.checks import (
    Check,
    Finding,
    fail,
    in_thread,
    local,
    ok,
    one_line,
    run_check,
    warn,
)
from caal_node.cli.checks.model import (
    CRASH_HINT,
    SHARED_HINT,
    SLOTS_HINT,
    check_model,
    check_second_look,
)
from caal_node.cli.checks.room_and_sound import check_livekit
from caal_node.cli.checks.tools import check_mcp, check_n8n
from caal_node.cli.doctor import run_checks
from caal_node.config.setting_tables import Answers, Cues
from caal_node.config.settings import Settings
from caal_node.control.room_agents import LiveKitRooms
from caal_node.policy.policy import Policy
from tests.stand_ins import virtual_loop

Handler = Callable[[httpx2.Request], httpx2.Response]
OLLAMA: dict[str, Any] = {
    "/api/version": {"version": "0.17.4"},
    "/api/tags": {"models": [{"name": "qwen3:8b"}, {"name": "llama3.2:latest"}]},
    "/api/show": {
        "capabilities": ["completion", "tools", "thinking"],
        "model_info": {"general.architecture": "qwen3", "qwen3.context_length": 40960},
    },
}


def serving(answers: dict[str, Any]) -> Handler:
    def handle(request: httpx2.Request) -> httpx2.Response:
        answer = answers.get(request.url.path)
        if isinstance(answer, Exception):
            raise answer
        if isinstance(answer, httpx2.Response):
            return answer
        return httpx2.Response(404) if answer is None else httpx2.Response(200, json=answer)

    return handle


def model(answers: dict[str, Any] | Handler, **settings: Any) -> Sequence[Finding]:
    handler = answers if callable(answers) else serving(answers)
    return asyncio.run(check_model(Settings(**settings), httpx2.MockTransport(handler)))


def only(checks: Sequence[Finding], status: str) -> Finding:
    [check] = [check for check in checks if check.status == status]
    return check


def test_a_server_and_model_in_order_are_told_with_what_they_can() -> None:
    server, found = model(OLLAMA)
    assert (server.status, found.status) == ("ok", "ok")
    assert "0.17.4" in server.found
    assert "tools, thinking" in found.found


@pytest.mark.parametrize(
    ("variables", "status", "fix"),
    [
        ({}, "ok", SHARED_HINT),
        ({"MULTIUSER_CACHE": "1"}, "ok", ""),
        ({"MULTIUSER_CACHE": "1", "NUM_PARALLEL": "1"}, "ok", ""),
        ({"MULTIUSER_CACHE": "1", "NUM_PARALLEL": "8"}, "warn", CRASH_HINT),
        ({"MULTIUSER_CACHE": "1", "NUM_PARALLEL": "8", "NEW_ENGINE": "1"}, "ok", ""),
    ],
)
def test_sharing_one_ollama_is_hinted_at_until_it_is_seen_to(
    monkeypatch: pytest.MonkeyPatch, variables: dict[str, str], status: str, fix: str
) -> None:
    for name in ("MULTIUSER_CACHE", "NUM_PARALLEL", "NEW_ENGINE"):
        monkeypatch.delenv(f"OLLAMA_{name}", raising=False)
    for name, value in variables.items():
        monkeypatch.setenv(f"OLLAMA_{name}", value)
    server = model(OLLAMA)[0]
    assert (server.status, server.fix) == (status, fix)


@pytest.mark.parametrize(
    ("props", "found", "fix"),
    [
        ({"total_slots": 1}, "slots: 1", SLOTS_HINT),
        ({"total_slots": 4}, "slots: 4", ""),
        ({"total_slots": None}, "openai API", ""),
        (httpx2.Response(501), "openai API", ""),
    ],
)
def test_the_slots_of_llama_cpp_are_told(props: Any, found: str, fix: str) -> None:
    listed = {"data": [{"id": "a", "owned_by": "llamacpp"}]}
    served = {"/v1/models": listed, "/props": props}
    server = model(served, api="openai", base_url="http://127.0.0.1:8080/v1", model="a")[0]
    assert found in server.found
    assert server.fix == fix


def test_the_latest_tag_may_be_left_out() -> None:
    assert model(OLLAMA, model="llama3.2")[1].status == "ok"


UNUSABLE: list[tuple[dict[str, Any], dict[str, Any], str, str]] = [
    ({"/api/version": httpx2.ConnectError("no")}, {}, "nothing answers", "ollama serve"),
    ({"/api/version": httpx2.ReadTimeout("no")}, {}, "within 5 s", "OLLAMA_HOST"),
    ({"/api/version": httpx2.Response(401)}, {}, "refuses the key", "CAAL_API_KEY"),
    ({"/api/version": httpx2.Response(200, text="hello")}, {}, "not Ollama", "CAAL_API=openai"),
    ({"/api/version": {"error": "x"}}, {}, "not Ollama", "CAAL_API=openai"),
    ({}, {}, "not Ollama", "CAAL_API=openai"),
    (OLLAMA, {"model": "qwen3:7b"}, "has qwen3:8b", "pull qwen3:7b, or set CAAL_MODEL to qwen"),
    (OLLAMA | {"/api/tags": {"models": []}}, {}, "none at all", "Run: ollama pull qwen3:8b."),
    (
        OLLAMA | {"/api/show": {"capabilities": ["embedding"]}},
        {},
        "cannot chat",
        "Set CAAL_MODEL to a chat model",
    ),
    ({"/v1/models": httpx2.ConnectError("no")}, {"api": "openai"}, "nothing answers", "Start"),
    ({}, {"api": "openai"}, "no list of models", "ends with /v1"),
    (
        {"/v1/models": {"data": [{"id": "a"}, {"id": "b"}]}},
        {"api": "openai"},
        "has a, b",
        "Set CAAL_MODEL",
    ),
]


@pytest.mark.parametrize(("answers", "settings", "found", "fix"), UNUSABLE)
def test_a_model_that_cannot_be_used_fails(
    answers: dict[str, Any], settings: dict[str, Any], found: str, fix: str
) -> None:
    check = only(model(answers, **settings), "fail")
    assert found in check.found
    assert fix in check.fix


@pytest.mark.parametrize(
    ("model_info", "settings", "found", "fix"),
    [
        ({"capabilities": ["completion"]}, {}, "no tool calling", "plain text"),
        ({"capabilities": ["completion", "tools"]}, {"think": True}, "cannot think", "THINK=off"),
        (
            OLLAMA["/api/show"],
            {"num_ctx": 65536},
            "made for 40960 tokens",
            "CAAL_NUM_CTX=40960",
        ),
    ],
)
def test_a_model_that_is_used_against_its_make_is_warned_of(
    model_info: dict[str, Any], settings: dict[str, Any], found: str, fix: str
) -> None:
    check = only(model(OLLAMA | {"/api/show": model_info}, **settings), "warn")
    assert found in check.found
    assert fix in check.fix


def test_an_openai_server_of_one_model_takes_any_name() -> None:
    listed = {"/v1/models": {"data": [{"id": "local.gguf"}]}}
    assert "CAAL_MODEL=local.gguf" in only(model(listed, api="openai"), "warn").fix
    assert [c.status for c in model(listed, api="openai", model="local.gguf")] == ["ok", "ok"]


def test_the_key_is_sent_and_never_told() -> None:
    sent: list[str] = []

    def handle(request: httpx2.Request) -> httpx2.Response:
        sent.append(request.headers["authorization"])
        return httpx2.Response(403)

    checks = model(handle, api_key=SecretStr("hunter2"))
    assert sent == ["Bearer hunter2"]
    assert "hunter2" not in repr(checks)


@pytest.mark.parametrize(
    ("settings", "status", "found", "fix"),
    [
        ({}, "ok", "not set", "chat and console need no"),
        ({"livekit_url": "ws://127.0.0.1:7880"}, "fail", "LIVEKIT_API_SECRET", "LIVEKIT_URL, "),
    ],
)
async def test_livekits_settings_come_together(
    settings: dict[str, Any], status: str, found: str, fix: str
) -> None:
    [check] = await check_livekit(Settings(**settings))
    assert check.status == status
    assert found in check.found
    assert fix in check.fix


@pytest.mark.parametrize(
    ("url", "secret", "status"),
    [
        ("ws://127.0.0.1:7880", "secret", "ok"),
        ("ws://box:7880", "secret", "warn"),
        ("ws://box:7880", "s" * 32, "ok"),
    ],
)
async def test_a_livekit_secret_that_can_be_guessed_from_elsewhere_is_warned_of(
    url: str, secret: str, status: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def live(_: LiveKitRooms, name: str | None = None) -> Sequence[str]:
        return []

    monkeypatch.setattr(LiveKitRooms, "live", live)
    settings = Settings(
        livekit_url=url, livekit_api_key="key", livekit_api_secret=SecretStr(secret)
    )
    server, control = await check_livekit(settings)
    assert server.status == status
    assert (status == "ok") or "openssl rand -hex 32" in server.fix
    assert "no CAAL_CONTROL_TOKEN" in control.found


async def test_an_open_session_host_is_warned_of(monkeypatch: pytest.MonkeyPatch) -> None:
    async def live(_: LiveKitRooms, name: str | None = None) -> Sequence[str]:
        return []

    monkeypatch.setattr(LiveKitRooms, "live", live)
    settings = Settings(
        livekit_url="ws://127.0.0.1:7880",
        livekit_api_key="key",
        livekit_api_secret=SecretStr("secret"),
    )
    assert len(await check_livekit(settings)) == 2
    *_, host = await check_livekit(settings.model_copy(update={"room_sees": "everything"}))
    assert (host.name, host.status) == ("session host", "warn")
    assert "everyone in a room" in host.found


async def state(folder: Path, monkeypatch: pytest.MonkeyPatch) -> Finding:
    monkeypatch.setenv("CAAL_STATE", str(folder))
    [finding] = await local.check_state(Settings())
    return finding


async def test_the_folder_for_state_is_looked_at(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = tmp_path / "state"
    assert (await state(folder, monkeypatch)).found == f"{folder}, not made yet"
    (tmp_path / "file").write_text("")
    wrong = await state(tmp_path / "file" / "below", monkeypatch)
    assert wrong.status == "fail"
    assert f"Move {tmp_path / 'file'} away" in wrong.fix
    folder.mkdir(mode=0o700)
    assert await state(folder, monkeypatch) == ok("state", str(folder))
    monkeypatch.setattr(local, "FREE_BYTES", 1 << 62)
    full = await state(folder, monkeypatch)
    assert (full.status, full.fix) == ("warn", "Make room on that disk.")


@pytest.mark.skipif(sys.platform == "win32", reason="Windows keeps no mode like these")
@pytest.mark.parametrize(
    ("mode", "status", "fix"), [(0o750, "warn", "chmod 700"), (0o757, "fail", "chmod go-w")]
)
def test_a_folder_for_state_that_others_open_is_told_with_its_fix(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, mode: int, status: str, fix: str
) -> None:
    tmp_path.chmod(mode)
    found = asyncio.run(state(tmp_path, monkeypatch))
    assert (found.status, found.fix) == (status, f"Run: {fix} {tmp_path}")


async def test_an_n8n_token_without_an_address_fails() -> None:
    [check] = await check_n8n(Settings(n8n_api_key=SecretStr("k")))
    assert (check.status, check.fix) == ("fail", "Set N8N_URL.")
    [check] = await check_n8n(Settings())
    assert check.status == "ok"


async def test_a_broken_file_of_mcp_servers_fails_with_its_line(tmp_path: Path) -> None:
    path = tmp_path / "mcp_servers.json"
    path.write_text('{"mcpServers": {\n  "time": {"comand": "x"}\n}}', encoding="utf-8")
    [check] = await check_mcp(Settings(mcp_servers=path))
    assert check.status == "fail"
    assert "mcp_servers.json:2" in check.found + check.fix


async def test_a_missing_command_fails_and_names_its_server(tmp_path: Path) -> None:
    path = tmp_path / "mcp_servers.json"
    servers = {"files": {"command": "no-such-command-here"}}
    path.write_text(json.dumps({"mcpServers": servers}), encoding="utf-8")
    [check] = await check_mcp(Settings(mcp_servers=path))
    assert (check.name, check.status) == ("mcp files", "fail")
    assert "no-such-command-here" in check.found
    assert check.fix


async def test_a_cue_that_cannot_be_read_fails_and_names_its_variable(tmp_path: Path) -> None:
    bad, good = tmp_path / "error.wav", tmp_path / "tool.wav"
    bad.write_bytes(b"RIFF")
    with wave.open(str(good), "wb") as file:
        file.setparams((1, 2, 48_000, 0, "NONE", ""))
        file.writeframes(b"\x10\x00" * 4800)
    checks = await local.check_cues(Settings(cues=Cues(folder=tmp_path)))
    [check] = checks
    assert check.status == "fail"
    assert f"CAAL_CUES: {bad}" in check.found
    assert "PCM" in check.fix
    [check] = await local.check_cues(Settings(cues=Cues(on=False, folder=tmp_path)))
    assert check.found == "off"
    bad.unlink()
    [check] = await local.check_cues(Settings(cues=Cues(folder=tmp_path)))
    assert check.status == "ok"
    [check] = await local.check_cues(Settings(cues=Cues(on=False)))
    assert check.found == "off"


async def test_misspelt_variables_are_warned_of(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CAAL_MODLE", "x")
    found = [c for c in await local.check_settings(Settings()) if "CAAL_MODLE" in c.found]
    assert [c.fix for c in found] == ["Did you mean CAAL_MODEL?"]


async def test_a_variable_that_overrides_a_line_of_the_file_is_warned_of(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "caal.toml").write_text("num_ctx = 16384\n")
    assert not [c for c in await local.check_settings(Settings()) if "overrides" in c.found]
    monkeypatch.setenv("CAAL_NUM_CTX", "8192")
    [check] = [c for c in await local.check_settings(Settings()) if "overrides" in c.found]
    assert check.status == "warn"
    assert check.found == "CAAL_NUM_CTX overrides caal.toml, line 1, num_ctx"
    assert check.fix == "Remove that line, or unset CAAL_NUM_CTX."


def nothing(_: object) -> None:
    return None


def something(_: object) -> object:
    return object()


async def test_speech_that_is_not_installed_or_not_fetched_fails_with_the_command(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    rooms = Settings(livekit_url="ws://127.0.0.1:7880")
    monkeypatch.setattr(local, "find_spec", nothing)
    [remark] = await local.check_stt(Settings())
    assert (remark.status, "chat needs no speech" in remark.found) == ("warn", True)
    [check] = await local.check_stt(rooms)
    assert check.status == "fail"
    assert "caal-node[local-speech]" in check.fix
    assert "CAAL_STT=none" in check.fix

    monkeypatch.setattr(local, "find_spec", something)
    monkeypatch.setattr("caal_node.weights.present", nothing)
    [check] = await local.check_tts(rooms)
    assert check.status == "fail"
    assert check.fix == "Run: caal-node download-files"


async def test_a_wake_word_that_cannot_be_heard_is_told(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "pymicro_wakeword", None)
    found = await local.check_stt(Settings(stt="none", answers=Answers("woken", wake_word="alexa")))
    assert [(each.name, each.status) for each in found] == [("stt", "ok"), ("wake-word", "fail")]
    assert "pip install 'caal-node[wake-word]'" in f"{found[1].found} {found[1].fix}"


async def test_speech_of_ones_own_is_made_and_its_fault_told(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "voice_without_card.py").write_text("def broken(): raise OSError('no card')\n")
    monkeypatch.setattr(sys, "path", [str(tmp_path), *sys.path])
    [check] = await local.check_tts(Settings(tts="voice_without_card:broken"))
    assert check.status == "fail"
    assert "no card" in check.found
    [check] = await local.check_tts(Settings(tts="no_such_voice:make"))
    assert check.status == "fail"
    assert "no_such_voice" in check.found
    [check] = await local.check_vad(Settings(vad="none"))
    assert check.status == "ok"


def test_a_check_that_hangs_or_breaks_is_a_finding_of_its_own() -> None:
    async def hangs(_: Settings) -> Sequence[Finding]:
        await asyncio.sleep(3600)
        return []

    async def breaks(_: Settings) -> Sequence[Finding]:
        raise KeyError("x")

    async def story() -> None:
        slow, broken = await asyncio.gather(
            run_check(Check("slow", hangs, 5), Settings()),
            run_check(Check("broken", breaks, 5), Settings()),
        )
        assert "within 5 s" in only(slow, "fail").found
        assert "KeyError" in only(broken, "fail").found
        assert asyncio.get_running_loop().time() == pytest.approx(5)

    virtual_loop.run(story())


async def test_work_in_a_thread_gives_its_result_or_its_error() -> None:
    def broken() -> None:
        raise ValueError("x")

    assert await in_thread(lambda: 3) == 3
    with pytest.raises(ValueError, match="x"):
        await in_thread(broken)


def finding(*checks: Finding) -> list[Check]:
    async def look(_: Settings) -> Sequence[Finding]:
        return checks

    return [Check("x", look, 5)]


async def test_findings_come_in_the_order_of_the_checks() -> None:
    first, second, own = ok("a", "1"), warn("b", "2", "3"), fail("c", "4", "5")
    side_by_side = [*finding(first, second), *finding(second)]
    assert await run_checks(Settings(), side_by_side, finding(own)) == [first, second, second, own]


@pytest.mark.parametrize(
    ("check", "code"),
    [(ok("a", "b"), 0), (warn("a", "b", "c"), 0), (fail("a", "[red]b[/]", "c"), 1)],
)
async def test_only_a_failure_makes_the_exit_code_1(
    check: Finding, code: int, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    async def checked(_: Settings) -> list[Finding]:
        return [check]

    monkeypatch.setattr(doctor, "run_checks", checked)
    assert await doctor.run_doctor(Settings(), as_json=True) == code
    printed = json.loads(capsys.readouterr().out)
    assert printed["ok"] is (code == 0)
    [row] = printed["checks"]
    assert row == {"name": "a", "status": check.status, "found": check.found, "fix": check.fix}
    assert await doctor.run_doctor(Settings()) == code
    assert check.found in capsys.readouterr().out


async def test_failures_come_last_with_a_summary_below(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    async def checked(_: Settings) -> list[Finding]:
        return [fail("a", "broken", "c"), ok("b", "fine"), warn("c", "odd", "d"), ok("e", "well")]

    monkeypatch.setattr(doctor, "run_checks", checked)
    await doctor.run_doctor(Settings())
    *rows, summary = capsys.readouterr().out.strip().splitlines()
    found = [word for row in rows for word in ("fine", "well", "odd", "broken") if word in row]
    assert found == ["fine", "well", "odd", "broken"]
    assert summary == "2 ok, 1 warn, 1 fail"


def test_a_finding_is_one_short_line_without_control_characters() -> None:
    assert one_line("a\x1b[31m\n b\t" + "c" * 900).startswith("a [31m b ccc")
    assert len(one_line("c" * 900)) < 310


SCRIPT = "#!/usr/bin/python3\nimport sys\nfrom {} import main\nsys.exit(main())\n"


@pytest.mark.parametrize(
    ("text", "status"),
    [
        (SCRIPT.format("their_bridge.cli"), ["warn"]),
        (SCRIPT.format("caal_node.own_packages"), []),
        ('#!/bin/sh\nexec caal-node mcp "$@"\n', []),
        ("MZ\0a program\0", []),
        (None, []),
    ],
)
def test_a_command_of_another_distribution_in_the_place_of_ours_is_told(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, text: str | None, status: list[str]
) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    if text is not None:
        (tmp_path / "mcp-bridge").write_text(text)
        (tmp_path / "mcp-bridge").chmod(0o755)
    found = asyncio.run(local.check_bridge_command(Settings()))
    assert [finding.status for finding in found] == status
    for finding in found:
        assert str(tmp_path / "mcp-bridge") in finding.found
        assert "caal-node mcp serve" in finding.fix


def second_look(reference: str) -> Sequence[Finding]:
    settings = Settings(tools=Policy(second_look_model=reference))
    transport = httpx2.MockTransport(serving(OLLAMA))
    return asyncio.run(check_second_look(settings, transport))


def test_a_model_for_the_second_look_that_is_not_there_is_named_with_what_follows() -> None:
    (found,) = second_look("ollama:judge:3b")
    assert found.status == "fail"
    assert "judge:3b is not on the server" in found.found
    assert "calls run without a second look" in found.found
    assert "ollama pull judge:3b" in found.fix
    assert "second_look_model in [tools]" in found.fix


def test_a_second_look_in_order_is_told_and_none_is_not() -> None:
    assert second_look("") == []
    (found,) = second_look("ollama:qwen3:8b")
    assert found.status == "ok"
    assert "qwen3:8b" in found.found
