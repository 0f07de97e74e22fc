"""What a person types is kept for them alone, and what they begin to type is completed."""

from __future__ import annotations

import json
import os
import stat
from pathlib import Path

import pytest
from prompt_toolkit.application import create_app_session
from prompt_toolkit.completion import CompleteEvent
from prompt_toolkit.document import Document
from prompt_toolkit.history import InMemoryHistory
from prompt_toolkit.input import create_pipe_input
from prompt_toolkit.output import DummyOutput

from caal_node.cli import completion
from caal_node.cli.tools import resolve_tool
from caal_node.cli.typed_prompt import KEPT_BYTES, ChatCompleter, TypedPrompt, open_history
from caal_node.config.file import read_env_file, read_env_files
from caal_node.config.settings import load_settings
from caal_node.core.errors import ConfigError
from caal_node.tools.table import ToolTable
from tests.stand_ins.conversation import NOWHERE, weather_spec
from tests.stand_ins.stand_in_model import StandInModel

MAX_CHARS = 40


def test_history_is_its_users_alone_even_where_a_file_was_not(tmp_path: Path) -> None:
    path = tmp_path / "state" / "chat-history"
    path.parent.mkdir()
    path.write_text("\n# 2026\n+an old line\n")
    path.chmod(0o644)
    history = open_history(path, max_chars=MAX_CHARS)
    history.store_string("x" * 1_000)
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    again = open_history(path, max_chars=MAX_CHARS)
    assert list(again.load_history_strings()) == ["x" * MAX_CHARS, "an old line"]


def test_history_is_cut_to_its_last_lines(tmp_path: Path) -> None:
    path = tmp_path / "chat-history"
    path.write_text("".join(f"\n# 2026\n+line {n}\n" for n in range(60_000)))
    kept = list(open_history(path, max_chars=MAX_CHARS).load_history_strings())
    assert path.stat().st_size <= KEPT_BYTES
    assert kept[0] == "line 59999"
    assert kept == [f"line {n}" for n in range(59_999, 59_999 - len(kept), -1)]


@pytest.mark.parametrize("what", ["a folder", "a FIFO", "no folder above"])
def test_where_no_history_can_be_kept_the_chat_goes_on(tmp_path: Path, what: str) -> None:
    path = tmp_path / "chat-history"
    if what == "a folder":
        path.mkdir()
    elif what == "a FIFO":
        os.mkfifo(path)
    else:
        (tmp_path / "file").touch()
        path = tmp_path / "file" / "chat-history"
    assert isinstance(open_history(path, max_chars=MAX_CHARS), InMemoryHistory)


def test_a_history_that_vanishes_stops_nothing(tmp_path: Path) -> None:
    path = tmp_path / "state" / "chat-history"
    history = open_history(path, max_chars=MAX_CHARS)
    path.unlink()
    path.parent.rmdir()
    history.store_string("a line")
    assert list(history.load_history_strings()) == []


async def test_a_hidden_line_is_not_kept_and_others_are() -> None:
    history = InMemoryHistory()
    with create_pipe_input() as keys, create_app_session(input=keys, output=DummyOutput()):
        prompt = TypedPrompt(history, lambda _: ())
        for words, hidden in (("unlock it", False), ("1234", True), ("thanks", False)):
            keys.send_text(f"{words}\r")
            assert await prompt.line(hidden=hidden) == words
    assert history.get_strings() == ["unlock it", "thanks"]


@pytest.mark.parametrize(
    ("typed", "words"),
    [
        ("/", ["/tools", "/model"]),
        ("/mo", ["/model"]),
        ("/model ", ["qwen3:8b"]),
        ("/tools set", ["set_timer"]),
        ("please use set", ["set_timer"]),
        ("please ", []),
        ("", []),
        ("/unknown set", ["set_timer"]),
    ],
)
def test_a_word_is_completed_by_what_may_stand_there(typed: str, words: list[str]) -> None:
    known = {"": ["/tools", "/model"], "/model": ["qwen3:8b"]}
    completer = ChatCompleter(lambda command: known.get(command, ["set_timer"]))
    found = completer.get_completions(Document(typed), CompleteEvent())
    assert [each.text for each in found] == words


def test_tools_are_remembered_for_the_folder_they_were_listed_in(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("CAAL_STATE", str(tmp_path / "state"))
    for number in range(completion.FOLDERS + 2):
        folder = tmp_path / str(number)
        folder.mkdir()
        monkeypatch.chdir(folder)
        completion.keep_tools([f"tool_{number}", "other"])
    assert completion.tools("tool") == [f"tool_{completion.FOLDERS + 1}"]
    monkeypatch.chdir(tmp_path / "0")
    assert completion.tools("") == []  # the oldest are gone
    kept = tmp_path / "state" / completion.FILE_NAME
    assert stat.S_IMODE(kept.stat().st_mode) == 0o600
    for broken in ("{", "[]", json.dumps({str(Path.cwd()): 3})):
        kept.write_text(broken)
        assert completion.tools("") == []


async def test_models_are_those_of_the_settings_and_of_their_server() -> None:
    async with StandInModel(model="small:1b") as server:
        for api, base in (("ollama", ""), ("openai", server.openai_url)):
            env = {"OLLAMA_HOST": server.url, "CAAL_API": api, "CAAL_BASE_URL": base}
            settings = load_settings({**env, "CAAL_MODEL": "mine"}, NOWHERE)
            assert await completion.known_models(settings) == ["mine", "small:1b"]
            paths = [request.path for request in server.requests]
            assert paths[-1] == ("/api/tags" if api == "ollama" else "/v1/models")
    assert await completion.known_models(settings) == ["mine"]


def test_variables_of_a_file_stand_below_those_that_are_set(tmp_path: Path) -> None:
    path = tmp_path / ".env"
    path.write_text("# a comment\nCAAL_MODEL=theirs\nexport N8N_URL='http://n8n'\nEMPTY=\nBARE\n")
    env = {"CAAL_MODEL": "mine"}
    assert read_env_file(env, path) == ("N8N_URL",)
    assert env == {"CAAL_MODEL": "mine", "N8N_URL": "http://n8n"}
    assert read_env_file({}, tmp_path / "none") == ()
    path.write_bytes(b"A=\xff")
    with pytest.raises(ConfigError, match="UTF-8"):
        read_env_file({}, path)


def test_the_local_file_of_variables_wins_over_the_other(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    assert read_env_files({}) == {}
    (tmp_path / ".env").write_text("N8N_URL=http://n8n\nLIVEKIT_URL=ws://other\n")
    (tmp_path / ".env.local").write_text("LIVEKIT_URL=ws://here\nCAAL_MODEL=theirs\n")
    env = {"CAAL_MODEL": "mine"}
    assert read_env_files(env) == {
        Path(".env.local"): ("LIVEKIT_URL",),
        Path(".env"): ("N8N_URL",),
    }
    assert env == {"CAAL_MODEL": "mine", "LIVEKIT_URL": "ws://here", "N8N_URL": "http://n8n"}


@pytest.mark.parametrize(
    ("typed", "said"),
    [
        ("get_wether", "There is no tool named 'get_wether'. Did you mean get_weather? `caal-node"),
        ("get_rain", "There is no tool named 'get_rain'. `caal-node tools` lists all."),
    ],
)
def test_a_mistyped_tool_is_told_the_names_that_are_spelled_like_it(typed: str, said: str) -> None:
    names = ("get_weather", "delete_all_contacts", "slow_report")
    table = ToolTable(weather_spec(name=name) for name in names)
    with pytest.raises(ConfigError) as caught:
        resolve_tool(table, typed)
    assert str(caught.value).startswith(said)
