"""Reading the file of servers: three spellings, one meaning; errors that say where and how."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from mcp_bridge import (
    BridgeError,
    ConfigError,
    ServerConfig,
    ServerManager,
    load_servers,
    parse_servers,
)
from mcp_bridge.config.document import DocumentSyntaxError, parse_json
from mcp_bridge.core.server_config import ServerSecrets
from tests.stand_ins.server_faults import fault_in

NAMES = st.text(st.characters(codec="utf-8", exclude_categories=("Cc", "Cs")), min_size=1).filter(
    lambda name: name.strip() and not name.startswith("//")
)
KEPT = (
    "note",
    "description",
    "icon",
    "gallery",
    "version",
    "autoApprove",
    "alwaysAllow",
    "_x",
    "$x",
)
"""Keys that other programs keep beside servers, and that people may name a server."""
WORDS = st.text(st.characters(codec="ascii", categories=("L", "N")), min_size=1, max_size=8)
LOCAL = st.fixed_dictionaries(
    {"command": WORDS.map("x-{}".format)},
    optional={
        "args": st.lists(WORDS, max_size=3),
        "env": st.dictionaries(WORDS.map("X_{}_ID".format), WORDS, max_size=2),
        "cwd": WORDS,
        "timeout": st.floats(0.1, 100),
        "enabled": st.booleans(),
        "icon": WORDS,
    },
)
REMOTE = st.fixed_dictionaries(
    {"url": WORDS.map(lambda word: f"https://{word}.example/mcp")},
    optional={
        "transport": st.sampled_from(["http", "sse", "streamable_http", "streamableHttp"]),
        "token": WORDS,
        "connect_timeout": st.integers(1, 60),
    },
)
SERVERS = st.dictionaries(
    st.sampled_from(KEPT) | NAMES.filter(lambda name: name not in ("servers", "mcpServers")),
    st.one_of(LOCAL, REMOTE),
    max_size=4,
)


def read(text: str, **environ: str) -> tuple[ServerConfig, ...]:
    return parse_servers(text, file="servers.json", environ=environ)


def complaint(text: str, **environ: str) -> str:
    said = fault_in(text, environ=environ)
    assert said
    assert "\n" not in said
    return said


def meaning(text: str) -> list[ServerConfig]:
    """What a file says, wherever in it that stands. Of what is wrong, the fix has no place."""
    return [replace(config, fault=config.fault.rpartition("; ")[2]) for config in read(text)]


@given(SERVERS)
@example({"note": {"command": "x-0", "args": ["SH"]}})
def test_the_three_spellings_mean_the_same(servers: dict[str, Any]) -> None:
    ours = meaning(json.dumps(servers))
    assert [config.name for config in ours] == list(servers)
    assert meaning(json.dumps({"mcpServers": servers, "globalShortcut": "x"})) == ours
    listed = [{"name": name, **entry} for name, entry in servers.items()]
    assert meaning(json.dumps({"servers": listed})) == ours
    if servers:
        assert meaning(json.dumps({"servers": servers}, indent=3)) == ours


JSON = st.recursive(
    st.none()
    | st.booleans()
    | st.integers()
    | st.floats(allow_nan=False, allow_infinity=False)
    | st.text(),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(), inner, max_size=4),
    max_leaves=20,
)


@given(JSON, st.sampled_from([None, 0, 2]))
def test_json_is_read_as_the_standard_library_reads_it(value: Any, indent: int | None) -> None:
    assert parse_json(json.dumps(value, indent=indent)).value == value
    assert parse_json(json.dumps(value, ensure_ascii=False)).value == value


@given(st.text(st.sampled_from('{}[]",:\\/*\n 1aetrufalsn'), max_size=40))
def test_broken_json_is_refused_with_a_line_or_read_like_json(text: str) -> None:
    try:
        value = parse_json(text).value
    except DocumentSyntaxError as error:
        line = error.line
    else:
        line = 1
        assert "/" in text or json.loads(text) == value
    assert 1 <= line <= text.count("\n") + 1


@given(JSON)
def test_whatever_is_in_the_file_is_read_or_refused_in_one_line(value: Any) -> None:
    said = "servers.json:1: "
    try:
        read(json.dumps({"mcpServers": {"a": value}}))
    except ConfigError as error:
        said = str(error)
    assert said.startswith("servers.json:1: ")
    assert "\n" not in said


def test_every_line_is_known() -> None:
    document = parse_json('{\n "a": [\n  1,\n  {"b":\n 2}],\n\n "c": {}\n}')
    assert {path: document.line(path) for path in document.lines} == {
        (): 1, ("a",): 2, ("a", 0): 3, ("a", 1): 4, ("a", 1, "b"): 4, ("c",): 7,
    }  # fmt: skip
    assert document.line(("a", 1, "nothing", 5)) == 4


def test_comments_may_stand_anywhere() -> None:
    text = '// top\n{ /* a */ "time": { // b\n "command": "clock" /* c\n d */, "//": "remark" } }'
    (config,) = read(text)
    assert config == ServerConfig(name="time", command="clock")


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ('{"mcpServers": {"a": {"command": 5}}}', "mcpServers.a.command: is a number; write a"),
        ('{"a": {}}', 'a: has neither "command" nor "url"; add one'),
        ('{"a": {"command": "x", "url": "http://x"}}', 'has both "command" and "url"; keep one'),
        ('{"a": {"command": "x", "token": "t"}}', 'a.token: belongs to a server with "url"'),
        ('{"a": {"url": "http://x", "args": []}}', 'a.args: belongs to a server with "command"'),
        ('{"a": {"url": "ftp://x"}}', "a.url: is no http:// or https:// address"),
        ('{"a": {"url": "http://x:port/"}}', "a.url: is no http:// or https:// address"),
        ('{"a": {"url": "somewhere else"}}', "a.url: is no http:// or https:// address"),
        ('{"a": {"url": "https:x"}}', "a.url: is no http:// or https:// address"),
        ('{"a": {"url": "http://x", "transport": "xy"}}', "'xy' is not known; use stdio, http"),
        ('{"a": {"url": "http://x", "type": "stdio"}}', "'stdio' does not go with \"url\""),
        ('{"a": {"command": "x", "timeout": true}}', "a.timeout: is no number of seconds"),
        ('{"a": {"command": "x", "enabled": "no"}}', "a.enabled: is a text; write true or false"),
        ('{"a": {"command": "x", "args": "-v"}}', "a.args: is a text; write a list"),
        ('{"a": {"command": "x\\u0000"}}', "a.command: holds a NUL character"),
        ('{"a": {"command": " "}}', "a.command: is empty"),
        ('{"a": {"url": "http://x", "headers": {"X": "a\\nb"}}}', "a.headers.X: is no HTTP header"),
        (
            '{"a": {"url": "https://x", "authorization_servers": ["login.home"]}}',
            "a.authorization_servers.0: is no origin; write one such as https://login.home",
        ),
        (
            '{"a": {"url": "https://x", "authorization_servers": ["https://login.home/realm"]}}',
            "a.authorization_servers.0: is no origin",
        ),
        (
            '{"a": {"url": "https://x", "authorization_servers": ["http://login.home"]}}',
            "a.authorization_servers.0: goes over the network unencrypted; use https://",
        ),
        ('{"a": {"url": "http://x", "token": ""}}', "a.token: is empty"),
        ('{"a": {"command": "x", "auto_enable": "if_match"}}', 'a: lacks "enable_if"; add'),
        ('{"a": {"command": "x", "examples": {"t": [{}]}}}', 'a.examples.t.0: lacks "say"'),
        ('{"mcpServers": {},\n"b": {"command": "x"}}',
         'servers.json:2: b: is a server beside "mcpServers"; move it in there'),
        ('{"mcpServers": {}, "note": {"url": "http://x"}}', 'note: is a server beside'),
        ('{"servers": {"a": {"command": "x"}},\n "b": {"command": 5}}',
         'servers.json:2: b: is a server beside "servers"; move it in there'),
        ('{"servers": [], "b": {"url": "http://x"}}', 'b: is a server beside "servers"'),
        ('{"mcpServers": {}, "servers": {"command": "x"}}', "servers: is a server beside"),
        ('{"note": {"command": 5}}', "note.command: is a number; write a text"),
        ('{"servers": [{"command": "x"}]}', 'servers.0: lacks "name"; add one'),
        ('{"servers": [{"name": "a", "command": "x"},\n{"name": "a", "command": "y"}]}',
         "servers.json:2: servers.1: the server 'a' stands in line 1 already; rename one"),
        ('{"a": {"command": "x"},\n "a": {"command": "y"}}',
         "servers.json:2: a: the server 'a' stands in line 1 already; rename one"),
        ('{"a": {"command": "x",\n "command": "y"}}', ":2: a.command: stands in line 1 already"),
        ('{"a": {"comand": "x"}}', 'has neither "command" nor "url"; rename "comand" to "command"'),
        ('{"a": {"command": "x", "timeout": 3600001}}', "a.timeout: is over 3600 seconds; write"),
        ('{"a": {"command": "x", "env": {"P": [80]}}}', "a.env.P: is a list; write a text"),
        ('{"a": {"command": ["x", "-v"]}}',
         'a.command: is a list; write the program as a text, and the rest in "args"'),
        ('{"a": {"cmd": "x"}}', 'has neither "command" nor "url"; rename "cmd" to "command"'),
        ('{"a": {"environment": {}, "command": "x", "args": 5}}', "a.args: is a number; write"),
        ('{"a": {"serverUrl": "ftp://x"}}', "a.serverUrl: is no http:// or https:// address"),
        ('{"a": \n{"command": "x"}', "servers.json:2: expected ',' or '}'"),
        ('{"a": \'x\'}', "expecting value; fix the JSON here"),
        ('{"a": NaN}', "NaN is not JSON"),
        ('{"a": "x', "unterminated string"),
        ("", "the file ends too early"),
        ("{} {}", "something follows the end"),
        ("[" * 5000, "nested deeper than 64 levels"),
        ('{"a\\nb": {}}', 'servers.json:1: a?b: has neither'),
        ("[]", "(top): is a list; write an object"),
    ],
)  # fmt: skip
def test_a_fault_is_named_with_line_key_and_fix(text: str, said: str) -> None:
    assert said in complaint(text)


def test_variables_come_from_the_environment() -> None:
    text = """{"a": {"command": "${BIN:-notes}", "args": ["-k=${KEY}"], "env": {"KEY": "${KEY}"}},
               "b": {"url": "https://${HOST}/mcp", "token": "${KEY}"}}"""
    a, b = read(text, KEY="s3cret!", HOST="x.example")
    assert (a.command, a.args, dict(a.env)) == ("notes", ("-k=s3cret!",), {"KEY": "s3cret!"})
    assert (b.url, dict(b.headers)) == (
        "https://x.example/mcp",
        {"Authorization": "Bearer s3cret!"},
    )
    assert "${KEY} is not set; set it, or write ${KEY:-fallback}" in complaint(text, HOST="x")


def test_a_variable_may_be_spelled_as_other_programs_spell_it() -> None:
    text = """{"a": {"url": "https://x/mcp", "token": "${env:KEY}",
               "headers": {"X-Zone": "${env:ZONE:-UTC}"}}}"""
    (config,) = read(text, KEY="s3cret!")
    assert dict(config.headers) == {"X-Zone": "UTC", "Authorization": "Bearer s3cret!"}
    assert ServerSecrets(config).redact_result("s3cret!") == "***"
    assert "a.token: ${env:KEY} is not set; set it, or write ${env:KEY:-fall" in complaint(text)


def test_what_only_looks_like_a_variable_stays() -> None:
    args = ["$HOME", "$", "$$", "{x}", "$1{", "$${NAME}", "$$${NAME:-a}", "$${", "a}b"]
    (config,) = read(json.dumps({"a": {"command": "x", "args": args}}))
    kept = ["$HOME", "$", "$$", "{x}", "$1{", "${NAME}", "$${NAME:-a}", "${", "a}b"]
    assert config.args == tuple(kept)


FOREIGN = ("${input:tok}", "${workspaceRoots}", "${config:a.b}", "${//}", "${}", "${1}", "${!A}",
           "${A:?b}", "${A-b}", "${ A }", "${env:}", "${env:A.B}", "${A:-${B}}", "a${", "${A",
)  # fmt: skip
PLACES: dict[str, dict[str, Any]] = {
    "command": {"command": "%"},
    "args.1": {"command": "x", "args": ["a", "%"]},
    "env.E": {"command": "x", "env": {"E": "%"}},
    "cwd": {"command": "x", "cwd": "%"},
    "url": {"url": "https://h/%"},
    "headers.X-H": {"url": "https://h/", "headers": {"X-H": "%"}},
    "token": {"url": "https://h/", "token": "%"},
}


@pytest.mark.parametrize("key", PLACES)
@pytest.mark.parametrize("form", FOREIGN)
def test_a_form_of_another_program_is_refused_and_never_sent_as_it_stands(
    key: str, form: str
) -> None:
    text = json.dumps({"a": PLACES[key]}, indent=1).replace("%", f"x{form}y")
    line = next(n for n, one in enumerate(text.splitlines(), 1) if form in one)
    said = complaint(text)
    assert said.startswith(f"servers.json:{line}: a.{key}: ")
    assert "${NAME}" in said or "set it, or write ${" in said


def test_a_password_with_a_brace_in_it_is_not_repeated_and_has_its_fix() -> None:
    said = complaint('{"a": {"url": "https://h/", "token": "hun${ter2%!}x"}}')
    assert "ter2" not in said
    assert '$${ for the two characters "${"' in said
    (config,) = read('{"a": {"url": "https://h/", "token": "hun$${ter2%!}x"}}')
    assert config.headers["Authorization"] == "Bearer hun${ter2%!}x"


@given(st.text(st.sampled_from("${}:-eEnv A1"), max_size=16))
def test_no_text_keeps_a_variable_that_was_not_filled_in(text: str) -> None:
    (config,) = read(json.dumps({"a": {"command": "x", "args": [text]}}), A1="-", env="-")
    if config.fault:
        assert "${" in text
        return
    if "$${" not in text:
        assert "${" not in config.args[0]
    if "${" not in text:
        assert config.args[0] == text


def test_a_server_that_is_off_needs_no_variable() -> None:
    for off in ('"enabled": false', '"disabled": true', '"auto_enable": "never"'):
        (config,) = read(f'{{"a": {{"url": "${{NOWHERE}}", {off}}}}}')
        assert not config.enabled
        assert not read(f'{{"a": {{"url": "https://${{input:x}}", {off}}}}}')[0].enabled
        assert read(f'{{"a": {{"url": "wss://${{X}}", {off}}}}}')[0].transport == "websocket"


def test_null_stands_for_not_set() -> None:
    assert read('{"a": {"command": "x", "url": null, "token": null}}')[0].command == "x"


def test_a_server_may_be_named_servers() -> None:
    assert [config.name for config in read('{"servers": {"command": "x"}}')] == ["servers"]


@pytest.mark.parametrize("name", KEPT)
def test_a_key_of_another_program_is_passed_over_where_it_is_no_server(name: str) -> None:
    for kept in ("words", 5, None, ["x"], {"a": 1}, {"command": None}):
        for context in ("{%s}", '{"mcpServers": {%s}}', '{"servers": {%s}}'):
            text = context % f'"a": {{"command": "x"}}, {json.dumps(name)}: {json.dumps(kept)}'
            assert [config.name for config in read(text)] == ["a"]


def test_a_remark_may_hold_a_server_that_somebody_took_out() -> None:
    out = '"//b": {"command": "y", "token": "nonsense"}'
    for text in (
        f'{{"a": {{"command": "x"}}, {out}}}',
        f'{{"mcpServers": {{"a": {{"command": "x"}}, {out}}}, {out}}}',
        f'{{"servers": {{"a": {{"command": "x"}}}}, {out}}}',
    ):
        assert [config.name for config in read(text)] == ["a"]


def test_what_is_no_server_may_stand_beside_the_group() -> None:
    text = """{"mcpServers": {"a": {"command": "x"}}, "servers": {}, "inputs": [{"id": "tok"}],
               "preferences": {"url": {"shown": true}}, "version": "1"}"""
    assert [config.name for config in read(text)] == ["a"]


def test_a_tool_with_examples_may_have_any_name() -> None:
    text = '{"a": {"command": "x", "examples": {"note": [{"say": "hi"}], "//t": 1, "_x": "y"}}}'
    assert list(read(text)[0].examples) == ["note"]


def test_examples_come_with_the_server() -> None:
    text = '{"a": {"command": "x", "examples": {"t": [{"say": "hi", "arguments": {"n": 1}}]}}}'
    (example,) = read(text)[0].examples["t"]
    assert (example.say, dict(example.arguments)) == ("hi", {"n": 1})


def test_secrets_are_hidden_by_value_and_never_shown_by_repr() -> None:
    text = """{"a": {"command": "x", "args": ["--key=${KEY}"], "env": {"TOKEN": "literal-token"}},
               "b": {"url": "https://h/?k=${KEY}", "token": "${KEY}"}}"""
    for config in read(text, KEY="s3cret!"):
        assert "s3cret!" not in repr(config)
        assert "literal-token" not in repr(config)
        assert config.redact("the key s3cret! failed") == "the key *** failed"
    assert read(text, KEY="s3cret!")[0].redact("literal-token") == "***"


def test_files_that_cannot_be_read_are_told_in_one_line(tmp_path: Path) -> None:
    missing = tmp_path / "none.json"
    assert load_servers(missing, missing_ok=True) == ()
    with pytest.raises(ConfigError, match="there is no such file; create it, or fix the path"):
        load_servers(missing)
    with pytest.raises(BridgeError, match="cannot be read"):
        load_servers(tmp_path, missing_ok=True)
    latin = tmp_path / "latin.json"
    latin.write_bytes(b'{\n"a": "\xe4"}')
    with pytest.raises(ConfigError, match=r"latin\.json:2: is not UTF-8"):
        load_servers(latin)
    huge = tmp_path / "huge.json"
    huge.write_bytes(b" " * (1024 * 1024 + 1))
    with pytest.raises(ConfigError, match="is over 1048576 bytes"):
        load_servers(huge)
    marked = tmp_path / "marked.json"
    marked.write_bytes(b'\xef\xbb\xbf{"a": {"command": "x"}}')
    assert load_servers(marked)[0].command == "x"


def test_the_example_file_is_read_whole(tmp_path: Path) -> None:
    example = Path(__file__).parents[3] / "mcp_servers.json.example"
    json.loads(example.read_text())  # other programs read it too
    copy = tmp_path / "mcp_servers.json"
    copy.write_bytes(example.read_bytes())
    copy.chmod(0o600)
    configs = load_servers(copy, environ={"DOCS_TOKEN": "t0ken-value"})
    assert len(configs) >= 3
    assert {config.transport for config in configs} == {"stdio", "http", "sse", "websocket"}
    assert any(config.examples for config in configs)


def test_a_wrong_entry_costs_its_own_server_and_no_other() -> None:
    text = """{"a": {"command": "x"},
      "b": {"comand": "x"},
      "c": 5,
      "d": {"url": "https://x/mcp", "token": "${NOWHERE}"},
      "e": {"command": "bash"},
      "": {"command": "x"},
      "a": {"command": "y"},
      "f": {"url": "https://x/mcp"}}"""
    found = {config.name: config for config in read(text)}
    assert len(found) == 7  # of what stands twice there is one
    assert [name for name in found if not found[name].fault] == ["f"]
    assert all(fault.startswith("servers.json:") for one in found.values() if (fault := one.fault))
    listed = read('{"servers": [{"command": "x"}, {"name": "b", "command": "y"}]}')
    assert [one.name for one in listed] == ["server 1", "b"]
    assert [bool(one.fault) for one in listed] == [True, False]


def test_a_wrong_entry_that_is_switched_off_stays_off() -> None:
    (config,) = read('{"a": {"command": 5, "enabled": false}}')
    assert not config.enabled
    assert not config.fault
    assert "a.command: is a number" in config.remarks[0]


def test_a_key_that_nobody_knows_is_passed_over_with_a_word() -> None:
    text = """{"a": {"command": "x", "timeot": 5,
      "headersHelper": "y", "autoApprove": ["t"], "note": "n"}}"""
    (config,) = read(text)
    assert not config.fault
    assert config.remarks == (
        'servers.json:1: a.timeot: is not known here, and is passed over; did you mean "timeout"?',
        "servers.json:2: a.headersHelper: is not known here, and is passed over",
    )


async def test_a_server_with_a_wrong_entry_is_down_until_it_is_mended() -> None:
    wrong = '{"a": {"command": "x", "args": "-v"}, "b": {"command": "x", "enabled": false}}'
    async with ServerManager(read(wrong)) as manager:
        assert manager.failed == {
            "a": "servers.json:1: a.args: is a text; write a list in brackets"
        }
        assert [status.state for status in manager.servers] == ["down", "off"]
        report = await manager.reload(read('{"b": {"command": "x", "enabled": false}}'))
        assert not report.failed


def test_a_server_elsewhere_whose_entry_is_wrong_is_no_program_here() -> None:
    text = '{"mcpServers": {"house": {"url": "http://h:1/mcp", "headers": {"A": "${GONE}"}}}}'
    (server,) = parse_servers(text, environ={})
    assert server.fault
    assert server.transport == "http"
