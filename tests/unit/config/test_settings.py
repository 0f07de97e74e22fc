"""Settings: two sources, one of which wins, and errors that say where and what to write."""

from __future__ import annotations

import contextlib
import json
import re
from pathlib import Path
from urllib.parse import urlsplit

import pytest
from hypothesis import given
from hypothesis import strategies as st

from caal_node.agent import CaalAgent
from caal_node.cli.new_files import write_examples
from caal_node.config.file import REMOVED, read_env_file, unknown_variables, variable
from caal_node.config.setting_tables import Answers, Checks, Cues, Fallbacks, Trace
from caal_node.config.settings import FIELDS, Settings, hidden_lines, load_settings
from caal_node.config.switches import Switches
from caal_node.core.addresses import ModelReference
from caal_node.core.errors import ConfigError
from caal_node.core.tool_spec import Example

ENV_EXAMPLE = Path(__file__).parents[3] / ".env.example"


def write(folder: Path, text: str) -> Path:
    path = folder / "caal.toml"
    path.write_text(text, encoding="utf-8")
    return path


def refusal(env: dict[str, str], path: Path) -> str:
    with pytest.raises(ConfigError) as caught:
        load_settings(env, path)
    message = str(caught.value)
    assert "\n" not in message
    return message


def test_without_anything_set_the_defaults_hold(tmp_path: Path) -> None:
    settings = load_settings({}, tmp_path / "caal.toml")
    assert settings.model == "qwen3:8b"
    assert settings.ollama_host == "http://127.0.0.1:11434"
    assert settings.max_tool_rounds == 4
    assert settings.mcp_servers == Path("mcp_servers.json")
    assert settings.cues.on is True
    assert settings.think is False


def test_the_environment_wins_over_the_file(tmp_path: Path) -> None:
    path = write(tmp_path, 'model = "from-file"\nnum_ctx = 4096\n')
    settings = load_settings({"CAAL_MODEL": "from-env"}, path)
    assert (settings.model, settings.num_ctx) == ("from-env", 4096)


def test_an_empty_variable_leaves_the_file_in_force(tmp_path: Path) -> None:
    path = write(tmp_path, 'model = "from-file"\n')
    assert load_settings({"CAAL_MODEL": " "}, path).model == "from-file"


@pytest.mark.parametrize("key", ["num_ctx", "CAAL_NUM_CTX"])
def test_a_key_is_a_field_or_its_variable(tmp_path: Path, key: str) -> None:
    assert load_settings({}, write(tmp_path, f"{key} = 4096\n")).num_ctx == 4096


def test_every_setting_has_its_own_variable() -> None:
    assert variable("n8n_url") == "N8N_URL"
    assert variable("ollama_host") == "OLLAMA_HOST"
    assert variable("livekit_api_key") == "LIVEKIT_API_KEY"
    assert variable("control_token") == "CAAL_CONTROL_TOKEN"
    assert len({variable(name) for name in FIELDS}) == len(FIELDS)


def test_the_example_environment_names_every_setting_and_only_defaults(tmp_path: Path) -> None:
    text = ENV_EXAMPLE.read_text(encoding="utf-8")
    pairs = dict(re.findall(r"^(?:# )?([A-Z]\w+)=(.*)$", text, re.M))
    assert set(pairs) == {variable(name) for name in FIELDS} - {
        "CAAL_EXAMPLES",
        "CAAL_TOOLS",
        "CAAL_TOOLSETS",
    }
    assert load_settings(pairs, tmp_path / "none.toml") == Settings()


def test_the_file_that_init_writes_sets_nothing(tmp_path: Path) -> None:
    write_examples(tmp_path)
    env: dict[str, str] = {}
    assert read_env_file(env, tmp_path / ".env") == ()
    assert env == {}


def test_variables_that_override_a_line_of_the_file_are_found(tmp_path: Path) -> None:
    path = write(tmp_path, "num_ctx = 16384\ntool_tokens = 7\nthink = true\n")
    env = {"CAAL_NUM_CTX": "8192", "CAAL_TOOL_TOKENS": "9", "CAAL_THINK": ""}
    assert sorted(hidden_lines(env, path)) == [
        ("CAAL_NUM_CTX", f"{path}, line 1, num_ctx"),
        ("CAAL_TOOL_TOKENS", f"{path}, line 2, tool_tokens"),
    ]


VALUES = ("on", "off", "12", "4096", "bounded", "xml", "sounds/cue.wav", "ask,tell")
"""What may have been written for one removed setting or another."""


@pytest.mark.parametrize("name", REMOVED)
def test_a_removed_setting_is_refused_and_what_is_to_be_written_is_accepted(
    name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    (folder := tmp_path / "sounds").mkdir()
    for kind in ("tool", "agent", "error"):
        (folder / f"{kind}.wav").touch()
    accepted = 0
    for value in VALUES:
        in_words = refusal({variable(name): value}, tmp_path / "none.toml")
        assert in_words.startswith(f"{variable(name)} is not a setting any more; ")
        path = write(tmp_path, f"\n{name} = {value if value.isdecimal() else json.dumps(value)}\n")
        in_file = refusal({}, path)
        assert in_file.startswith(f"{path}, line 2, {name} is not a setting any more; ")
        assert_exists(in_words)
        if not (found := re.search(r"write ([A-Z_]+)=(.*?) instead", in_words)):
            assert in_file.partition("; ")[2] == in_words.partition("; ")[2]
            accepted += 1
            continue
        line = re.search("write (.*?) instead", in_file)
        assert line
        try:
            by_env = load_settings({found[1]: found[2]}, tmp_path / "none.toml")
        except ConfigError:
            continue  # the value was none for this setting
        accepted += 1
        assert by_env == load_settings({}, write(Path(), f"{line[1]}\n"))
    assert accepted


def assert_exists(message: str) -> None:
    """What a message names beside settings is an attribute of the agent, a key or a page."""
    if found := re.search(r"write (\w+) = .* into the class of your CaalAgent", message):
        assert hasattr(CaalAgent, found[1])
    if found := re.search(r"docs/\w+\.md", message):
        assert (ENV_EXAMPLE.parent / found[0]).is_file()
    if "mcp_servers.json" in message:
        assert '"new_tools"' in message


def test_the_number_of_settings_is_one_that_a_person_can_read() -> None:
    assert len(FIELDS) <= 46
    assert not set(FIELDS) & set(REMOVED)


def test_the_five_most_important_settings_come_first() -> None:
    named = re.findall(r"^(?:# )?([A-Z]\w+)=", ENV_EXAMPLE.read_text(encoding="utf-8"), re.M)
    first = ["CAAL_MODEL", "OLLAMA_HOST", "CAAL_BASE_URL", "CAAL_AGENT", "CAAL_MCP_SERVERS"]
    assert named[:6] == [*first, "N8N_URL"]  # two of them name the model's server


def test_an_empty_removed_variable_is_not_set(tmp_path: Path) -> None:
    assert load_settings({"CAAL_CUE_TOOL": ""}, tmp_path / "none.toml") == Settings()


def test_pinned_tools_are_globs_over_names() -> None:
    settings = load_settings({"CAAL_PINNED_TOOLS": "house__light_*, get_weather"})
    assert settings.pinned_tools == ("house__light_*", "get_weather")


@pytest.mark.parametrize(
    ("name", "text", "fix"),
    [
        ("CAAL_TOOL_TOKENS", "many", "write a whole number"),
        ("CAAL_PINNED_TOOLS", "the light", "write names of tools, or globs over them"),
        ("CAAL_PINNED_TOOLS", ",".join(["a"] * 101), "keep at most 100"),
        ("CAAL_MAX_TOOL_ROUNDS", "many", "write a whole number"),
        ("CAAL_MAX_TOOL_ROUNDS", "0", "write at least 1"),
        ("CAAL_API", "olama", "write 'ollama', 'openai', "),
        ("CAAL_EMBEDDING", "minlm", "write off, minilm, ollama:model or openai:model@url"),
        ("CAAL_EMBEDDING", "livekit:a", "write off, minilm, ollama:model or openai:model@url"),
        ("CAAL_EMBEDDING", "openai:a@ftp://b", "the address must begin with http:// or https://"),
        ("CAAL_DETECTION", "x", "write 'complete' or 'streamed'"),
        ("CAAL_CUES", "maybe", "write on, off, or a folder with tool.wav, agent.wav or error.wav"),
        ("CAAL_CUES", '{"agent_tool": []}', "the keys are on, words, done, folder, agent_tools"),
        ("CAAL_TRACE", '{"content": true}', "this is missing"),
        ("CAAL_TRACE", "{trace.jsonl", 'write a JSON object such as {"file": "trace.jsonl"'),
        ("CAAL_TOOL_CALLS", "{calls", 'write a JSON object such as {"by": "text", "calls": 8}'),
        ("CAAL_TOOL_CALLS", '{"calls": 0}', "write at least 1"),
        ("CAAL_FALLBACKS", "a b", "write a model's name"),
        ("CAAL_FALLBACKS", '{"after": 0}', "write more than 0"),
        ("CAAL_CHECKS", "claim", "write on, off, names of claims, facts, hedges"),
        ("CAAL_ROOM_SEES", "all", "write 'names', 'arguments' or 'everything'"),
        ("CAAL_TOOL_CALLS", "yaml", "'jsonl', 'xml' or 'markdown-json'"),
        ("CAAL_THINK", "much", "write on, off, low, medium or high"),
        ("CAAL_KEEP_ALIVE", "5 minutes", "write a duration such as 30m"),
        ("CAAL_TEMPERATURE", "nan", "write at most 2"),
        ("CAAL_TOOL_TIMEOUT", "inf", "write at most 600"),
        ("CAAL_STT", "whisper", "write local, none, or module:factory"),
        ("CAAL_AGENT", "my_agent.py", "write module:Class"),
        ("N8N_URL", "ftp://localhost", "the address must begin with http:// or https://"),
        ("N8N_URL", "local host", "the address has a space in it"),
        ("N8N_URL", "http://u:p@host", "leave user name and password out of the address"),
        ("LIVEKIT_URL", "http//x", "the address must begin with ws://"),
        ("OLLAMA_HOST", "host:99999", "check brackets and port"),
    ],
)
def test_a_wrong_variable_is_named_with_its_remedy(
    tmp_path: Path, name: str, text: str, fix: str
) -> None:
    message = refusal({name: text}, tmp_path / "none.toml")
    assert re.match(rf"{name}(, \w+)?: ", message)
    assert fix in message


@pytest.mark.parametrize(
    ("name", "text", "field", "address"),
    [
        ("OLLAMA_HOST", "box", "ollama_host", "http://box:11434"),
        ("N8N_URL", "localhost", "n8n_url", "http://localhost:5678"),
        ("N8N_URL", "n8n.example.com", "n8n_url", "https://n8n.example.com"),
        ("CAAL_BASE_URL", "gpu:8080/v1", "base_url", "http://gpu:8080/v1"),
        ("CAAL_MODEL_SERVERS", "gpu:8080/v1", "model_servers", ("http://gpu:8080/v1",)),
        ("LIVEKIT_URL", "localhost:7880", "livekit_url", "ws://localhost:7880"),
        ("LIVEKIT_URL", "mine.livekit.cloud", "livekit_url", "wss://mine.livekit.cloud"),
    ],
)
def test_an_address_may_be_written_without_its_scheme(
    tmp_path: Path, name: str, text: str, field: str, address: object
) -> None:
    assert getattr(load_settings({name: text}, tmp_path / "none.toml"), field) == address


@pytest.mark.parametrize(
    ("text", "line", "fix"),
    [
        ("\n\nnum_ctxx = 1\n", "line 3, num_ctxx", "Did you mean num_ctx?"),
        ("zebra = 1\n", "line 1, zebra", "Remove it."),
        ("# num_ctx = 5\nnum_ctx = [1]\n", "line 2, num_ctx", "write a whole number"),
        ("model = 7\n", "line 1, model", "write a text in quotes"),
        ("trace = 3\n", "line 1, trace", "write a table"),
        ("[trace]\nfile = 3\n", "line 2, trace, file", "write a file's path"),
        ("[tool_calls]\ncall = 3\n", "line 2, tool_calls, call", "the keys are replies, calls"),
        ("num_ctx = 1024\nCAAL_NUM_CTX = 2048\n", "line 2", "Remove one of the two."),
        ("model = \n", "line 1", "Fix that line."),
        ("examples = 3\n", "line 1, examples", "write a table"),
        ("[examples]\na = [{say = 'x'}]\nb = 3\n", "line 3, examples, b", "write a list such as"),
        ("[examples]\nb = [{sai = 'x', say = 'x'}]\n", "b.sai", "the keys are say and arguments"),
        ("[examples]\nb = [{arguments = {}}]\n", "line 2, examples, b.say", "this is missing"),
        ("[examples]\nb = [{say = ''}]\n", "b.say", "it is empty"),
        ("[examples]\nb = ['x']\n", "line 2, examples, b", "write a table such as"),
        (
            "[examples]\nb = [{say='x', arguments={d=1979-05-27}}]\n",
            "b.arguments.d",
            "write a text",
        ),
    ],
)
def test_a_wrong_line_is_named_with_its_remedy(
    tmp_path: Path, text: str, line: str, fix: str
) -> None:
    path = write(tmp_path, text)
    message = refusal({}, path)
    assert message.startswith(str(path))
    assert line in message
    assert fix in message


def test_a_file_that_is_not_utf8_is_named_with_its_line(tmp_path: Path) -> None:
    path = tmp_path / "caal.toml"
    path.write_bytes(b'model = "a"\ninstructions = "\xff"\n')
    assert "line 2: not UTF-8" in refusal({}, path)


def test_a_file_that_cannot_be_read_is_an_error_and_a_missing_one_is_not(tmp_path: Path) -> None:
    assert str(tmp_path) in refusal({}, tmp_path)
    assert load_settings({}, tmp_path / "absent.toml") == Settings()


def test_an_oversized_file_is_refused(tmp_path: Path) -> None:
    assert "larger than" in refusal({}, write(tmp_path, "#" * (1 << 20) + "\n"))


@pytest.mark.parametrize(
    "name", ["CAAL_API_KEY", "N8N_MCP_TOKEN", "N8N_API_KEY", "CAAL_CONTROL_TOKEN"]
)
def test_a_secret_is_in_no_repr_and_in_no_error(tmp_path: Path, name: str) -> None:
    path = tmp_path / "none.toml"
    assert "hunter2" not in repr(load_settings({name: "hunter2" * 3}, path))
    assert "hunter2" not in refusal({name: "hunter2 hunter2 hunter2"}, path)


@pytest.mark.parametrize(
    "name",
    ["control_token", "api_key", "livekit_api_secret", "n8n_mcp_token", "n8n_api_key"],
)
def test_a_secret_that_is_empty_in_the_file_is_refused(tmp_path: Path, name: str) -> None:
    message = refusal({}, write(tmp_path, f'\n{name} = ""\n'))
    assert f"caal.toml, line 2, {name}:" in message
    assert "it is empty" in message


@pytest.mark.parametrize("token", ["x", "fifteen-letters", "é" * 16])
def test_a_token_that_can_be_guessed_or_not_be_sent_is_refused(tmp_path: Path, token: str) -> None:
    message = refusal({"CAAL_CONTROL_TOKEN": token}, tmp_path / "none.toml")
    assert "make one with: openssl rand -hex 32" in message
    assert "does not fit" not in message


def test_the_servers_that_a_caller_may_name_are_those_that_the_owner_wrote(tmp_path: Path) -> None:
    env = {
        "OLLAMA_HOST": "box",
        "CAAL_FALLBACKS": "openai:m@http://gpu:8080/v1",
        "CAAL_MODEL_SERVERS": "https://far.example/v1, http://near:1",
    }
    settings = load_settings(env, tmp_path / "none.toml")
    for asked, listed in {
        "http://box:11434": "http://box:11434",
        "http://BOX:11434/v1/": "http://box:11434/v1",
        "http://gpu:8080/v1": "http://gpu:8080/v1",
        "https://far.example:443/v1": "https://far.example/v1",
        "http://near:1": "http://near:1",
        "http://near:1/v2": None,
        "http://near:1/v1?x=y": None,
        "http://near:1/v1#x": None,
        "http://near": None,
        "https://near:1": None,
        "http://near:1.evil.example": None,
        "http://169.254.169.254": None,
    }.items():
        try:
            found = settings.listed_server(asked)
        except ValueError:
            found = None
        assert found == listed, asked


@given(st.text(max_size=60))
def test_no_other_address_is_taken_for_a_listed_one(path: str) -> None:
    settings = Settings(model_servers=("http://near:1/v1",))
    for asked in (path, f"http://{path}", f"http://near:1{path}", f"http://{path}@near:1/v1"):
        with contextlib.suppress(ValueError):
            found = settings.listed_server(asked)
            assert found in (None, "http://127.0.0.1:11434", "http://127.0.0.1:11434/v1") or (
                urlsplit(asked.strip()).hostname,
                urlsplit(asked.strip()).path.rstrip("/"),
            ) in {("near", "/v1"), ("near", "/v1/v1")}


def test_a_secret_of_the_wrong_type_is_not_shown(tmp_path: Path) -> None:
    assert "271828" not in refusal({}, write(tmp_path, "control_token = 271828\n"))


def test_settings_cannot_be_changed() -> None:
    with pytest.raises(ValueError, match="frozen"):
        Settings().model = "other"  # type: ignore[misc] -- the point of the test


def test_paths_in_the_file_start_from_its_folder(tmp_path: Path) -> None:
    (tmp_path / "sounds").mkdir()
    (tmp_path / "sounds" / "agent.wav").touch()
    text = 'cues = "sounds"\nmcp_servers = "/etc/mcp.json"\n[trace]\nfile = "a"\n'
    path = write(tmp_path, text)
    settings = load_settings({}, path)
    assert settings.cues == Cues(folder=tmp_path / "sounds")
    assert settings.cues.files == {"agent": tmp_path / "sounds" / "agent.wav"}
    assert settings.mcp_servers == Path("/etc/mcp.json")
    assert settings.trace == Trace(file=tmp_path / "a")
    assert load_settings({"CAAL_TRACE": "b"}, path).trace == Trace(file=Path("b"))


def test_a_table_is_the_same_in_its_short_form_in_json_and_in_the_file(tmp_path: Path) -> None:
    none = tmp_path / "none.toml"
    short = load_settings({"CAAL_FALLBACKS": "a, b"}, none)
    whole = load_settings({"CAAL_FALLBACKS": '{"models": ["a", "b"]}'}, none)
    path = write(tmp_path, '[fallbacks]\nmodels = ["a", "b"]\n')
    assert short == whole == load_settings({}, path)
    assert short.fallbacks == Fallbacks(models=(ModelReference("a"), ModelReference("b")))
    assert load_settings({"CAAL_CUES": "off"}, none).cues == Cues(on=False)
    assert load_settings({}, write(tmp_path, "cues = false\n")).cues == Cues(on=False)


def test_examples_come_in_either_way_toml_writes_lists(tmp_path: Path) -> None:
    path = write(
        tmp_path,
        '[[examples.a]]\nsay = "one"\narguments = {n = 1}\n[[examples.b]]\nsay = "two"\n',
    )
    examples = load_settings({}, path).examples
    assert examples["a"] == (Example("one", {"n": 1}),)
    assert examples["b"] == (Example("two", {}),)


def test_lists_are_written_with_commas_in_the_environment(tmp_path: Path) -> None:
    settings = load_settings({"CAAL_PINNED_TOOLS": "ask, tell,"}, tmp_path / "none.toml")
    assert settings.pinned_tools == ("ask", "tell")


def test_seconds_and_durations_of_keep_alive_stay_apart(tmp_path: Path) -> None:
    path = tmp_path / "none.toml"
    assert load_settings({"CAAL_KEEP_ALIVE": "-1"}, path).keep_alive == -1
    assert load_settings({"CAAL_KEEP_ALIVE": "1h30m"}, path).keep_alive == "1h30m"


def test_the_models_address_is_the_base_url_or_ollamas(tmp_path: Path) -> None:
    assert Settings().model_address == "http://127.0.0.1:11434"
    assert Settings(api="openai").model_address == "http://127.0.0.1:11434/v1"
    other = Settings(api="openai", base_url="http://host:8080/v1/")
    assert other.model_address == "http://host:8080/v1"


@pytest.mark.parametrize("path", ["~nobody-of-that-name/x.md", "~0", "~\0/x"])
def test_an_unknown_users_home_folder_is_named(path: str) -> None:
    with pytest.raises(ConfigError, match=r"^CAAL_INSTRUCTIONS: '~.*' is nobody's home folder"):
        load_settings({"CAAL_INSTRUCTIONS": path}, Path("no-such-file.toml"))


def test_misspelt_variables_are_found_with_the_nearest_name() -> None:
    env = {"CAAL_MODLE": "x", "CAAL_MODEL": "y", "PATH": "/"}
    assert list(unknown_variables(env, FIELDS)) == [("CAAL_MODLE", "CAAL_MODEL")]


@pytest.mark.parametrize(
    ("name", "near"),
    [
        ("N8N_APIKEY", "N8N_API_KEY"),
        ("N8N_API", "N8N_API_KEY"),
        ("N8N_HOST", "N8N_URL"),
        ("OLLAMA_HOTS", "OLLAMA_HOST"),
        ("OLLAMA_MODEL", "CAAL_MODEL"),
        ("LIVEKIT_APIKEY", "LIVEKIT_API_KEY"),
    ],
)
def test_what_other_programs_call_a_setting_is_found_where_the_setting_is_not_set(
    name: str, near: str
) -> None:
    assert list(unknown_variables({name: "x"}, FIELDS)) == [(name, near)]
    assert not list(unknown_variables({name: "x", near: "y"}, FIELDS))


def test_variables_of_other_programs_are_theirs() -> None:
    names = ["N8N_PORT", "N8N_ENCRYPTION_KEY", "OLLAMA_ORIGINS", "OLLAMA_MODELS", "OLLAMA_DEBUG"]
    names += ["OLLAMA_KEEP_ALIVE", "OLLAMA_NUM_PARALLEL", "LIVEKIT_LOG_LEVEL", "LIVEKIT_KEYS"]
    assert not list(unknown_variables(dict.fromkeys(names, "x"), FIELDS))


@given(
    st.dictionaries(
        st.sampled_from([variable(f) for f in (*FIELDS, *REMOVED)]), st.text(max_size=40)
    )
)
def test_any_environment_gives_settings_or_one_line(env: dict[str, str]) -> None:
    message = ""
    try:
        load_settings(env, Path("no-such-file.toml"))
    except ConfigError as error:
        message = str(error)
    assert "\n" not in message


@pytest.fixture
def user_wide(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The user's folder for settings, while commands run in a folder of their own."""
    (here := tmp_path / "here").mkdir()
    (folder := tmp_path / "user").mkdir()
    monkeypatch.chdir(here)
    monkeypatch.setenv("CAAL_CONFIG", str(folder))
    return folder


def write_toml(folder: Path, text: str) -> None:
    (folder / "caal.toml").write_text(text, encoding="utf-8")
    (folder / "caal.toml").chmod(0o600)


def test_the_users_settings_hold_wherever_a_command_is_run(user_wide: Path) -> None:
    write_toml(user_wide, 'model = "theirs:1b"\nnum_ctx = 4096\ninstructions = "mine.md"\n')
    found = load_settings({})
    assert (found.model, found.num_ctx) == ("theirs:1b", 4096)
    assert found.instructions == user_wide / "mine.md"
    write_toml(Path(), 'model = "here:2b"\n')
    found = load_settings({"CAAL_NUM_CTX": "2048"})
    assert (found.model, found.num_ctx) == ("here:2b", 2048)


def test_the_users_mcp_servers_are_used_where_the_folder_has_none(user_wide: Path) -> None:
    assert load_settings({}).mcp_servers == Path("mcp_servers.json")
    (user_wide / "mcp_servers.json").write_text("{}", encoding="utf-8")
    assert load_settings({}).mcp_servers == user_wide / "mcp_servers.json"
    assert load_settings({"CAAL_MCP_SERVERS": "own.json"}).mcp_servers == Path("own.json")
    Path("mcp_servers.json").write_text("{}", encoding="utf-8")
    assert load_settings({}).mcp_servers == Path("mcp_servers.json")


def test_the_users_rules_about_tools_are_reloaded_from_their_own_file(user_wide: Path) -> None:
    write_toml(user_wide, '[tools]\nmode = "house"\n')
    assert load_settings({}).tools.source == user_wide / "caal.toml"


def test_a_mistake_in_the_users_file_names_that_file(user_wide: Path) -> None:
    write_toml(user_wide, 'num_ctx = "many"\n')
    with pytest.raises(ConfigError, match=re.escape(f"{user_wide / 'caal.toml'}, line 1, num_ctx")):
        load_settings({})


def test_a_file_that_is_named_is_read_alone(user_wide: Path, tmp_path: Path) -> None:
    write_toml(user_wide, 'model = "theirs:1b"\n')
    assert load_settings({}, tmp_path / "none.toml").model != "theirs:1b"


def test_cues_without_a_track_are_not_switched_on_and_nothing_else_is_either() -> None:
    switches = Switches(load_settings({"CAAL_CUES": "off", "CAAL_CHECKS": "-claims"}))
    with pytest.raises(ConfigError, match="set CAAL_CUES=on and start the agent again"):
        switches.switch(True, {"claims": True})
    assert switches.as_json()["cues"] is False
    assert not switches.checks.claims
    switches.switch(None, {"claims": True})
    assert switches.checks == Checks()


@pytest.mark.parametrize(
    ("value", "answers"),
    [
        ("always", Answers()),
        ("addressed", Answers("addressed")),
        ("addressed, Olly", Answers("addressed", ("Olly",))),
        ("Olly,hey Olly", Answers("named", ("Olly", "hey Olly"))),
        ("wake:hey_jarvis", Answers("woken", wake_word="hey_jarvis")),
    ],
)
def test_what_is_answered_is_a_mode_or_names(value: str, answers: Answers) -> None:
    assert load_settings({"CAAL_ANSWERS": value}).answers == answers


@pytest.mark.parametrize(
    "value",
    ["always,Olly", "always,addressed", "addressed,addressed", "!", "o" * 41, "ab," * 11, "wake:"],
)
def test_another_form_of_answers_is_told_with_all_forms(value: str) -> None:
    with pytest.raises(ConfigError, match=r"CAAL_ANSWERS.*write always, addressed, or up to 10"):
        load_settings({"CAAL_ANSWERS": value})
