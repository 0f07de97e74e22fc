"""What travels to an agent and back is read as it was written, and a reload names what changed."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from caal_node.control.messages import (
    AGENT_REQUEST,
    AgentAnswer,
    AgentRequest,
    Announcement,
    CallFailure,
    CallTool,
    FindTools,
    ListAnswer,
    ListTools,
    ModelReport,
    ModelRequest,
    ReloadReport,
    ReloadRequest,
    SayReport,
    SayRequest,
    compare_tables,
    read_answer,
    write_answer,
)

tables = st.dictionaries(st.text(min_size=1, max_size=8), st.sampled_from("ab"), max_size=12)


def test_names_are_added_removed_or_changed_by_their_fingerprint() -> None:
    old, new = {"a": "1", "b": "1", "c": "1"}, {"b": "2", "c": "1", "d": "1"}
    assert compare_tables(old, new, ["n8n"]) == ReloadReport(
        tool_count=3, added=("d",), removed=("a",), changed=("b",), failed=("n8n",)
    )


@given(tables, tables)
def test_the_old_table_and_the_report_give_the_new_names(
    old: dict[str, str], new: dict[str, str]
) -> None:
    found = compare_tables(old, new)
    assert (old.keys() - set(found.removed)) | set(found.added) == new.keys()
    assert found.tool_count == len(new)
    assert all(old[name] != new[name] for name in found.changed)
    assert compare_tables(new, new) == ReloadReport(tool_count=len(new))


@pytest.mark.parametrize(
    "request_",
    [
        ReloadRequest(),
        ReloadRequest(announcements=(Announcement(tool_name="get_weather", message="It is new."),)),
        ModelRequest(model="m"),
        ModelRequest(model="m", api="openai", base_url="http://127.0.0.1:8080/v1"),
        SayRequest(text="Dinner is ready."),
        SayRequest(text="Tea?", priority="urgent", answer="caller"),
        ListTools(),
        FindTools(patterns=("a", "*b*"), limit=3),
        CallTool(name="get_weather", arguments={"city": None}),
    ],
    ids=repr,
)
def test_a_request_is_read_back(request_: AgentRequest) -> None:
    assert AGENT_REQUEST.validate_json(request_.model_dump_json()) == request_


@pytest.mark.parametrize(
    "answer",
    [
        ReloadReport(tool_count=2, added=("a",), failed=("n8n",), found={"A": "a"}),
        ModelReport(model="m", api="ollama"),
        SayReport(status="not_said", reason="no_pause"),
        SayReport(status="answered", words="Yes."),
        ListAnswer(tools=[], failed={"n8n": "is down"}),
        CallFailure(kind="refused", message="not at night"),
    ],
    ids=repr,
)
def test_an_answer_is_read_back(answer: AgentAnswer) -> None:
    assert read_answer(write_answer(answer)) == answer


@pytest.mark.parametrize(
    "text",
    [
        "",
        "{}",
        '{"ask": "sing"}',
        '{"ask": "model"}',
        '{"ask": "reload", "command": "sh"}',
        '{"ask": "reload", "announcements": [{}, {}, {}, {}, {}, {}, {}, {}, {}]}',
        '{"answer": "reload"}',
        '{"answer": "reload", "tool_count": 3, "added": "abc"}',
        '{"answer": "reload", "tool_count": 3, "added": [1]}',
        '{"answer": "reload", "tool_count": "many"}',
    ],
)
def test_what_is_no_message_is_not_read_as_one(text: str) -> None:
    with pytest.raises(ValueError, match="validation error"):
        AGENT_REQUEST.validate_json(text)
    with pytest.raises(ValueError, match="validation error"):
        read_answer(text)
