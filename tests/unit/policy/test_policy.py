"""Judging calls: each gets an answer, by the first rule that fits, whose line is named."""

from __future__ import annotations

import re
import time
from dataclasses import replace
from fnmatch import fnmatchcase

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from caal_node.core.events import TierName
from caal_node.core.tool_spec import EFFECTS, Caller, ToolSpec
from caal_node.policy.places import Places
from caal_node.policy.policy import MODES, Policy, open_to_anybody, taken_names, unused_globs
from caal_node.policy.reader import read_policy
from caal_node.policy.rule import ACTIONS, AnyOf, Rule, covers
from caal_node.tools.table import ToolTable

TEXTS = st.text("ab_*?[]!-", max_size=6)
GLOBS = st.lists(st.text("ab*?", min_size=1, max_size=4) | TEXTS.filter(bool), max_size=2)
NAMES = st.text("ab", max_size=4)


def spec(
    name: str = "unlock_door", effect: object = "write", tier: object = "mcp", source: str = "home"
) -> ToolSpec:
    return ToolSpec(tier, source, name, name, "", {}, effect=effect)  # type: ignore[arg-type]


def words(*known: str) -> st.SearchStrategy[list[str]]:
    return st.lists(st.sampled_from(known), unique=True, max_size=2)


FEW_RULES = st.lists(
    st.builds(
        Rule,
        st.sampled_from(ACTIONS),
        tools=st.sampled_from([[], ["a*"], ["b"], ["*b"]]),
        participants=st.sampled_from([[], ["a"], ["?"]]),
        origin=st.sampled_from([[], ["api"]]),
    ),
    max_size=6,
)
"""Rules of which most calls fit several."""
RULES = st.builds(
    Rule,
    st.sampled_from(ACTIONS),
    tools=GLOBS,
    tier=words("agent", "n8n", "mcp"),
    server=GLOBS,
    effect=words(*EFFECTS),
    annotation=GLOBS,
    rooms=GLOBS,
    participants=GLOBS,
    origin=words("room", "terminal", "api"),
    attributes=st.dictionaries(st.sampled_from(["role", "age"]), st.sampled_from(["a*", "b"])),
)
POLICIES = st.builds(
    Policy,
    FEW_RULES | st.lists(RULES, max_size=5),
    st.sampled_from(MODES),
    st.dictionaries(TEXTS.filter(bool), st.sampled_from(EFFECTS), max_size=3),
    st.booleans(),
    st.sampled_from([(), ("caal.toml, line 1: x",)]),
)
CALLERS = st.builds(
    Caller,
    st.sampled_from(["room", "terminal", "api"]),
    NAMES,
    NAMES,
    st.dictionaries(st.sampled_from(["role", "age"]), NAMES),
)
SPECS = st.builds(
    spec, NAMES, st.sampled_from(EFFECTS), st.sampled_from(["agent", "n8n", "mcp"]), NAMES
)


@given(POLICIES, TEXTS, SPECS, CALLERS)
def test_every_call_gets_one_answer_with_its_line(
    policy: Policy, exposed: str, tool: ToolSpec, caller: Caller
) -> None:
    judged = policy.judge(exposed, tool, caller)
    assert judged.action in ACTIONS
    assert judged.line
    assert judged.effect in EFFECTS
    assert policy.judge(exposed, tool, caller) == judged, "a tool that is remembered"


@given(POLICIES, TEXTS, SPECS, CALLERS, RULES)
def test_a_later_rule_changes_nothing_that_an_earlier_one_decides(
    policy: Policy, exposed: str, tool: ToolSpec, caller: Caller, later: Rule
) -> None:
    before = policy.judge(exposed, tool, caller)
    longer = replace(policy, rules=[*policy.rules, later])
    after = longer.judge(exposed, tool, caller)
    if before.by_rule:
        assert (after.action, after.line) == (before.action, before.line)
    elif not after.by_rule:
        assert after.action == before.action


def fits(rule: Rule, exposed: str, tool: ToolSpec, effect: str, caller: Caller) -> bool:
    """The same question, answered as slowly and plainly as can be."""
    asked = (
        (rule.tools, [exposed] if rule.then == "allow" else tool.known_as(exposed)),
        (rule.server, [tool.source]),
        (rule.annotation, tool.annotations),
        (rule.rooms, [caller.room]),
        (rule.participants, [caller.participant]),
    )
    words = ((rule.tier, tool.tier), (rule.effect, effect), (rule.origin, caller.origin))
    return (
        all(not globs or any(fnmatchcase(t, g) for g in globs for t in ts) for globs, ts in asked)
        and all(not known or word in known for known, word in words)
        and all(
            name in caller.attributes and fnmatchcase(caller.attributes[name], glob)
            for name, glob in rule.attributes.items()
        )
    )


@given(FEW_RULES | st.lists(RULES, max_size=6), NAMES, SPECS, CALLERS)
def test_the_first_rule_that_fits_decides(
    rules: list[Rule], exposed: str, tool: ToolSpec, caller: Caller
) -> None:
    rules = [replace(rule, line=str(number)) for number, rule in enumerate(rules)]
    judged = Policy(rules, "open").judge(exposed, tool, caller)
    first = next((r for r in rules if fits(r, exposed, tool, tool.effect, caller)), None)
    if first is None:
        assert (judged.action, judged.by_rule) == ("allow", False)
    else:
        assert (judged.action, judged.line) == (first.then, first.line)


@given(RULES, RULES, TEXTS, SPECS, CALLERS)
def test_what_a_covering_rule_misses_no_covered_one_fits(
    wide: Rule, narrow: Rule, exposed: str, tool: ToolSpec, caller: Caller
) -> None:
    tool = replace(tool, wanted=exposed)  # as its name is while no other tool takes it
    if wide.covers(narrow) and fits(narrow, exposed, tool, tool.effect, caller):
        assert fits(wide, exposed, tool, tool.effect, caller)


@given(TEXTS, TEXTS, TEXTS)
def test_a_glob_that_covers_another_fits_all_that_it_fits(
    wide: str, narrow: str, text: str
) -> None:
    if covers(wide, narrow) and fnmatchcase(text, narrow):
        assert fnmatchcase(text, wide)


@given(TEXTS, st.lists(TEXTS, min_size=1, max_size=3))
@example("[", ["["])
def test_globs_fit_as_the_shells_do(text: str, globs: list[str]) -> None:
    assert AnyOf(globs).fits(text) == any(fnmatchcase(text, glob) for glob in globs)


@pytest.mark.parametrize(
    ("wide", "narrow", "covered"),
    [
        ("*", "anything", True),
        ("unlock_*", "unlock_door", True),
        ("unlock_*", "unlock_*_door", True),
        ("unlock_*", "*", False),
        ("*_door", "unlock_*", False),
        ("*a*", "*a*b", True),
        ("file[12]", "file1", True),
        ("file?", "file[12]", True),
        ("file1", "file?", False),
        ("a", "A", False),
    ],
)
def test_one_glob_covers_another(wide: str, narrow: str, covered: bool) -> None:
    assert covers(wide, narrow) is covered


@given(POLICIES, TEXTS, SPECS, CALLERS)
def test_what_is_hidden_in_a_room_is_denied_to_each_caller_there(
    policy: Policy, exposed: str, tool: ToolSpec, caller: Caller
) -> None:
    if policy.denied_to_all(exposed, tool, caller.origin, caller.room):
        assert policy.judge(exposed, tool, caller).action == "deny"


def test_a_rule_about_persons_hides_nothing_and_one_about_the_room_does() -> None:
    guests = Rule("deny", tools=["unlock_*"], attributes={"role": "guest"})
    nursery = Rule("deny", tools=["unlock_*"], rooms=["nursery-*"])
    policy = Policy([guests, nursery])
    assert not policy.denied_to_all("unlock_door", spec(), "room", "kitchen-1")
    assert policy.denied_to_all("unlock_door", spec(), "room", "nursery-1")
    owner = Rule("allow", tools=["unlock_*"], participants=["owner"])
    policy = Policy([owner, nursery])
    assert not policy.denied_to_all("unlock_door", spec(), "room", "nursery-1")


@pytest.mark.parametrize(
    ("mode", "effect", "action"),
    [
        ("house", "read", "allow"),
        ("house", "write", "allow"),
        ("house", "destructive", "confirm"),
        ("open", "destructive", "allow"),
        ("read-only", "read", "allow"),
        ("read-only", "write", "deny"),
        ("read-only", "destructive", "deny"),
    ],
)
def test_where_no_rule_fits_the_mode_decides(mode: str, effect: str, action: str) -> None:
    judged = Policy(mode=mode).judge("x", spec(effect=effect), Caller())  # type: ignore[arg-type]
    assert (judged.action, judged.line) == (action, f"mode {mode}: {effect}")


def test_a_guest_may_ask_for_the_weather_and_not_unlock_the_door() -> None:
    policy = Policy([Rule("deny", tools=["unlock_*"], attributes={"role": "guest"})])
    guest = Caller("room", "hall", "bob", {"role": "guest"})
    owner = Caller("room", "hall", "ann", {"role": "owner"})
    assert policy.judge("unlock_door", spec(), guest).action == "deny"
    assert policy.judge("unlock_door", spec(), guest).is_personal
    assert policy.judge("get_weather", spec("get_weather", "read"), guest).action == "allow"
    assert policy.judge("unlock_door", spec(), owner).action == "allow"


def test_the_owner_has_the_last_word_on_what_a_tool_may_do() -> None:
    policy = Policy(effects={"unlock_shed": "write", "unlock_*": "destructive"})
    assert policy.judge("unlock_door", spec(), Caller()).action == "confirm"
    assert policy.judge("unlock_shed", spec(effect="destructive"), Caller()).action == "allow"


def test_in_a_dry_run_nothing_runs_and_what_is_denied_stays_denied() -> None:
    policy = Policy([Rule("deny", tools=["unlock_*"])], dry_run=True)
    actions = {
        name: policy.judge(name, spec(name, effect), Caller()).action
        for name, effect in (("get_x", "read"), ("wipe", "destructive"), ("unlock_door", "write"))
    }
    assert actions == {"get_x": "dry_run", "wipe": "dry_run", "unlock_door": "deny"}


def test_with_a_fault_nothing_but_reading_is_allowed_and_readable_rules_still_hold() -> None:
    policy = Policy(
        [Rule("deny", tools=["get_diary"]), Rule("allow", tools=["*"])],
        effects={"wipe": "read"},
        faults=("caal.toml, line 3: x",),
    )
    for effect in ("write", "destructive"):
        judged = policy.judge("wipe", spec("wipe", effect), Caller())
        assert (judged.action, judged.line) == ("deny", "caal.toml, line 3: x")
    assert policy.judge("get_time", spec("get_time", "read"), Caller()).action == "allow"
    assert policy.judge("get_diary", spec("get_diary", "read"), Caller()).action == "deny"
    assert not policy.denied_to_all("wipe", spec("wipe"), "room", "hall")


def test_a_rule_in_code_says_what_is_wrong_with_it() -> None:
    with pytest.raises(ValueError, match=re.escape('write a list, such as ["unlock_*"]')):
        Rule("deny", tools="unlock_*")
    with pytest.raises(ValueError, match="allow, deny, confirm"):
        Rule("forbid")  # type: ignore[arg-type]
    with pytest.raises(ValueError, match="house, open"):
        Policy(mode="closed")  # type: ignore[arg-type]


def test_globs_that_fit_no_tool_are_named_with_their_line() -> None:
    rule = Rule("deny", tools=["unlok_*", "unlock_*"], server=["hme"], line="caal.toml, line 7")
    policy = Policy([rule], effects={"files__*": "read"}, lines={"files__*": "caal.toml, line 3"})
    assert list(unused_globs(policy, [("unlock_door", spec())])) == [
        "caal.toml, line 3: no tool is named files__*; fix the name, or remove it",
        "caal.toml, line 7: no tool is named unlok_*; fix the name, or remove it",
        "caal.toml, line 7: no server is named hme; fix the name, or remove it",
    ]


def test_a_tool_whose_name_another_one_takes_stays_forbidden_and_keeps_its_effect() -> None:
    workflow = ToolSpec("n8n", "n8n", "x", "home__unlock_door", "", {})
    of_server = ToolSpec("mcp", "home", "a", "home__a", "", {}, own_name="unlock_door")
    for door in (spec("home__unlock_door"), of_server):
        exposed = [entry.exposed for entry in ToolTable([workflow, door])][1]
        assert exposed != "home__unlock_door"
        for action in ("deny", "confirm", "dry_run"):
            rule = Rule(action, tools=["home__unlock_door"])
            assert Policy([rule], "open").judge(exposed, door, Caller()).action == action
            assert Policy([rule], "open").denied_to_all(exposed, door, "room", "") is (
                action == "deny"
            )
        allowed = Policy([Rule("allow", tools=["home__unlock_door"])], "read-only")
        assert allowed.judge(exposed, door, Caller()).action == "deny"
        known = Policy(effects={"home__unlock_door": "destructive"})
        assert known.judge(exposed, door, Caller()).action == "confirm"


def test_a_name_in_the_rules_that_two_tools_want_is_reported() -> None:
    table = ToolTable([ToolSpec("n8n", "n8n", "x", "unlock_door", "", {}), spec()])
    tools = [(entry.exposed, entry.spec) for entry in table]
    policy = Policy([Rule("allow", tools=["unlock_door"], line="caal.toml, line 7")])
    (told,) = taken_names(policy, tools)
    assert told == (
        "caal.toml, line 7: unlock_door is a tool of n8n now, and the one of home is called "
        f"{tools[1][0]}; write a rule for each, with its server"
    )
    assert not list(taken_names(policy, tools[:1]))
    assert not list(taken_names(Policy([Rule("deny", tools=["unlock_*"])]), tools))


def test_what_anybody_may_change_is_what_no_rule_speaks_of() -> None:
    tools = [(name, spec(name, effect)) for name, effect in TOOLS]
    assert open_to_anybody(Policy(), tools) == ["set_timer", "send_mail"]
    assert open_to_anybody(Policy(mode="open"), tools) == ["set_timer", "send_mail", "wipe"]
    assert open_to_anybody(Policy(mode="read-only"), tools) == []
    meant = Rule("allow", tools=["set_timer"], line="line 1")
    ours = Rule("allow", participants=["ann"], line="line 2")
    nobody = Rule("deny", tools=["send_*"], line="line 3")
    assert open_to_anybody(Policy([meant, ours, nobody]), tools) == []
    everything = Rule("allow", line="line 1")
    assert open_to_anybody(Policy([everything]), tools) == ["set_timer", "send_mail", "wipe"]


TOOLS = (
    ("get_time", "read"),
    ("set_timer", "write"),
    ("send_mail", "write"),
    ("wipe", "destructive"),
)


def test_a_hundred_rules_over_five_hundred_tools_are_judged_in_microseconds() -> None:
    rules = [
        Rule("deny", tools=[f"server_{n}__*"], rooms=[f"room-{n}-*"], attributes={"role": "guest"})
        for n in range(100)
    ]
    policy = Policy(rules)
    tools = [spec(f"server_{n % 100}__tool_{n}") for n in range(500)]
    caller = Caller("room", "room-7-x", "ann", {"role": "guest"})
    for tool in tools:
        policy.judge(tool.wanted, tool, caller)
    began = time.thread_time()
    for tool in tools:
        policy.judge(tool.wanted, tool, caller)
    assert (time.thread_time() - began) / len(tools) < 0.000_2, "ten times of what it takes"


@pytest.mark.parametrize(
    ("policy", "traced"),
    [
        (Policy(), {"n8n", "mcp"}),
        (Policy(outside="all"), {"agent", "n8n", "mcp"}),
        (Policy(outside="off"), set[str]()),
        (Policy(mode="open"), set[str]()),
        (Policy([Rule("allow", tools=["light"])]), set[str]()),
        (Policy([Rule("allow", tools=["other"])]), {"n8n", "mcp"}),
    ],
)
def test_whose_calls_are_traced_is_the_owners_choice(policy: Policy, traced: set[str]) -> None:
    tiers: tuple[TierName, ...] = ("agent", "n8n", "mcp")
    found = set[str]()
    for tier in tiers:
        spec = ToolSpec(tier, "home", "light", "light", "", {"type": "object"})
        if policy.traces(tier, policy.judge("light", spec, Caller())):
            found.add(tier)
    assert found == traced


def test_a_word_that_is_none_takes_every_tools_words_with_care() -> None:
    read = read_policy({"outside": "none"}, Places("caal.toml", 'outside = "none"\n'))
    assert read.outside == "all"
    assert "write remote, all or off" in read.faults[0]
