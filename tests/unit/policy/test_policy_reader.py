"""The `[tools]` table of caal.toml: what is wrong is told with line and fix, and not raised."""

from __future__ import annotations

import tomllib
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from caal_node.config.file import policy_in
from caal_node.config.settings import Settings, load_settings
from caal_node.core.errors import ConfigError
from caal_node.policy.places import Places
from caal_node.policy.policy import Policy
from caal_node.policy.reader import MAX_RULES, read_policy
from caal_node.policy.rule import Rule

WHOLE = """\
model = "some"

[tools]
mode = "open"  # for now
dry_run = true

[tools.effects]
"files__read_*" = "read"
wipe = 'destructive'

[[tools.rules]]
tools = [
  "unlock_*",
  "[tools.rules]",
]
tier = "mcp"
server = ["home", "office"]
effect = ["write", "destructive"]
annotation = "destructiveHint"
rooms = ["kitchen-*"]
participants = "ann"
origin = "room"
attributes = {role = "guest"}
then = "deny"

[[tools.rules]]
tools = ["send_*"]
then = "dry-run"
[tools.rules.attributes]
role = "child"
"""


def policy_of(text: str) -> Policy:
    return read_policy(tomllib.loads(text).get("tools", {}), Places("caal.toml", text))


def test_a_whole_table_is_read_with_its_lines() -> None:
    policy = policy_of(WHOLE)
    assert policy.faults == ()
    assert (policy.mode, policy.dry_run) == ("open", True)
    assert policy.effects == {"files__read_*": "read", "wipe": "destructive"}
    assert policy.lines == {
        "mode": "caal.toml, line 4",
        "dry_run": "caal.toml, line 5",
        "files__read_*": "caal.toml, line 8",
        "wipe": "caal.toml, line 9",
    }
    first, second = policy.rules
    assert first == Rule(
        "deny",
        tools=("unlock_*", "[tools.rules]"),
        tier=("mcp",),
        server=("home", "office"),
        effect=("write", "destructive"),
        annotation=("destructiveHint",),
        rooms=("kitchen-*",),
        participants=("ann",),
        origin=("room",),
        attributes={"role": "guest"},
        line="caal.toml, line 11",
    )
    assert (second.then, second.attributes) == ("dry_run", {"role": "child"})
    assert second.line == "caal.toml, line 26"


RULE = "[[tools.rules]]\n"


@pytest.mark.parametrize(
    ("text", "fault"),
    [
        ("tools = 3", "line 1, tools: write a table"),
        ("[tools]\nmod = 'open'", "line 2, tools.mod: there is no such key; did you mean mode?"),
        ("[tools]\nx = 1", "line 2, tools.x: there is no such key; the keys are mode, dry_run"),
        ("[tools]\nmode = 'closed'", "line 2, tools.mode: 'closed' does not fit; write house, op"),
        ("[tools]\ndry_run = 'yes'", "line 2, tools.dry_run: write true or false"),
        ("tools.mode = 3", "line 1, tools.mode: 3 does not fit; write house"),
        ("[tools.effects]\na = 'reed'", "line 2, tools.effects.a: 'reed' does not fit; write read"),
        ("[tools]\neffects = 1", "line 2, tools.effects: write a table"),
        ("[tools]\nrules = 1", "line 2, tools.rules: write [[tools.rules]] above each rule"),
        ("[tools]\nrules = [1]", "line 2, tools.rules: write a table, such as"),
        ("[[tools.limits]]\nper_our = 5", "line 2, tools.limits, per_our: there is no such key"),
        ("[tools]\nlimits = 5", "line 2, tools.limits: write each rule below"),
        (RULE + "tools = ['a']", "line 1, tools.rules: then is missing; write allow, deny"),
        (RULE + "then = 'forbid'", "line 2, tools.rules.then: 'forbid' does not fit; write allow"),
        (RULE + "then = 'dry_run'", "line 2, tools.rules.then: 'dry_run' does not fit; write"),
        (
            RULE + "tool = ['a']\nthen = 'deny'",
            "line 2, tools.rules.tool: there is no such key; did",
        ),
        (RULE + "tools = []\nthen = 'deny'", "line 2, tools.rules.tools: write a list of 1 to 64"),
        (RULE + "tools = [7]\nthen = 'deny'", "line 2, tools.rules.tools: write names in quotes"),
        (RULE + "tools = ''\nthen = 'deny'", "line 2, tools.rules.tools: write names in quotes"),
        (
            RULE + "then = 'deny'\ntier = 'mpc'",
            "line 3, tools.rules.tier: 'mpc' does not fit; write",
        ),
        (RULE + "then = 'deny'\norigin = 'app'", "line 3, tools.rules.origin: 'app' does not fit"),
        (
            RULE + "then = 'deny'\neffect = 1",
            "line 3, tools.rules.effect: 1 does not fit; write re",
        ),
        (RULE + "then = 'deny'\nattributes = 'a'", "line 3, tools.rules.attributes: write a tab"),
        (
            RULE + "tools = ['a']\nthen = 'deny'\n" + RULE + "tools = ['a']\nthen = 'allow'",
            "line 4, tools.rules: it contradicts caal.toml, line 1, which fits the same",
        ),
        (
            RULE + "tools = ['a*']\nthen = 'allow'\n" + RULE + "tools = ['ab']\nthen = 'deny'",
            "line 4, tools.rules: it is never reached, as caal.toml, line 1 fits all",
        ),
        (
            "[tools.effects]\n'a*' = 'read'\nab = 'destructive'",
            "line 3, tools.effects.ab: it is never reached, as caal.toml, line 2 fits all that",
        ),
    ],
)
def test_what_is_wrong_is_told_with_its_line_and_fix(text: str, fault: str) -> None:
    policy = policy_of(text)
    assert len(policy.faults) == 1, policy.faults
    assert policy.faults[0].startswith(f"caal.toml, {fault}")


def test_a_rule_of_an_inline_array_has_the_line_of_the_array() -> None:
    text = "[tools]\n\nrules = [\n  {tools = ['a'], then = 'deny'},\n  {then = 'no'},\n]\n"
    policy = policy_of(text)
    assert policy.rules[0].line == "caal.toml, line 3"
    assert policy.faults[0].startswith("caal.toml, line 3, tools.rules.then: 'no'")


def test_a_rule_that_says_the_same_once_more_is_a_warning() -> None:
    text = RULE + "tools = ['a*']\nthen = 'deny'\n" + RULE + "tools = ['ab']\nthen = 'deny'"
    policy = policy_of(text)
    assert policy.faults == ()
    assert policy.warnings == (
        "caal.toml, line 4, tools.rules: caal.toml, line 1 says the same of all that it fits; "
        "remove one",
    )


def test_limits_are_read_with_their_lines() -> None:
    policy = policy_of("[[tools.limits]]\ntools = ['send_*']\nper_hour = 5\n")
    assert policy.faults == ()
    (limit,) = policy.limits
    assert (limit.per_hour, limit.line) == (5, "caal.toml, line 1")


def test_too_many_rules_are_a_fault() -> None:
    text = "".join(f"{RULE}tools = ['a{n}']\nthen = 'deny'\n" for n in range(MAX_RULES + 1))
    policy = policy_of(text)
    assert len(policy.rules) == MAX_RULES
    assert policy.faults[0].endswith(f"tools.rules: keep at most {MAX_RULES}")


def test_text_of_several_lines_and_comments_hold_no_keys() -> None:
    text = '# [[tools.rules]]\nmodel = """\n[[tools.rules]]\n"""\n' + RULE + "then = 'deny'\n"
    assert policy_of(text).rules[0].line == "caal.toml, line 5"


VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner),
    max_leaves=8,
)
KEYS = st.sampled_from(
    [
        "tools",
        "then",
        "tier",
        "effect",
        "attributes",
        "rooms",
        "mode",
        "dry_run",
        "rules",
        "effects",
    ]
)


@given(st.dictionaries(KEYS, VALUES | st.lists(st.dictionaries(KEYS, VALUES), max_size=3)) | VALUES)
def test_whatever_the_table_holds_a_policy_comes_of_it(table: object) -> None:
    assert isinstance(read_policy(table, Places("tools")), Policy)


@given(st.text("[]tools.rules=\"'# \n{}", max_size=60))
def test_places_are_found_in_any_text(text: str) -> None:
    assert 1 <= Places("f", text).line("tools", "rules", 0, "then") <= text.count("\n") + 1


def test_a_faulty_table_stops_no_start_and_other_errors_do(tmp_path: Path) -> None:
    path = tmp_path / "caal.toml"
    path.write_text("model = 'm'\n[tools]\nmode = 'closed'\n", encoding="utf-8")
    settings = load_settings({}, path)
    assert settings.model == "m"
    assert settings.tools.faults[0].startswith(f"{path}, line 3, tools.mode")
    path.write_text("modl = 'm'\n[tools]\nmode = 'open'\n", encoding="utf-8")
    with pytest.raises(ConfigError, match="Did you mean model"):
        load_settings({}, path)
    assert policy_in(path).mode == "open"
    path.write_text("[tools\n", encoding="utf-8")
    with pytest.raises(ConfigError, match="line 1"):
        policy_in(path)


def test_without_a_file_the_policy_is_the_plain_one_and_knows_where_to_look(tmp_path: Path) -> None:
    settings = load_settings({}, tmp_path / "caal.toml")
    assert settings.tools == Policy() == Settings().tools
    assert settings.tools.source == tmp_path / "caal.toml"


def test_settings_in_code_take_the_same_table() -> None:
    assert Settings(tools={"mode": "read-only"}).tools.mode == "read-only"  # type: ignore[arg-type]
    broken = Settings(tools={"mode": "x"}).tools  # type: ignore[arg-type]
    assert broken.faults[0].startswith("tools, tools.mode: 'x' does not fit")


def test_the_second_look_is_read_with_its_line() -> None:
    policy = policy_of('[tools]\nsecond_look_model = "ollama:qwen3:8b"\n')
    assert policy.faults == ()
    assert policy.second_look_model == "ollama:qwen3:8b"
    assert policy.lines["second_look_model"] == "caal.toml, line 2"
    assert policy_of("").second_look_model == ""


@pytest.mark.parametrize(
    ("line", "fix"),
    [
        ('second_look = "writes"', "second_look_model alone has calls that change something"),
        ("second_look_results = true", "what was found is not judged any more"),
        ('second_look_model = "same"', "name another model than the agent's"),
        ('second_look_model = "two words"', "write a model's name"),
        ("second_look_model = 3", "write a model in quotes"),
        ('second_look_model = "embedded:some.gguf"', "name a model of a server"),
    ],
)
def test_a_wrong_second_look_is_a_fault_with_its_fix(line: str, fix: str) -> None:
    policy = policy_of(f"[tools]\n{line}\n")
    (fault,) = policy.faults
    assert fault.startswith("caal.toml, line 2, tools.second_look")
    assert fix in fault
