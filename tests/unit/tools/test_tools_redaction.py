"""Secrets that the process knows, found by value in whatever a tool gives."""

from __future__ import annotations

import base64
import json
from types import SimpleNamespace
from typing import Any
from urllib.parse import quote

import pytest
from hypothesis import given
from hypothesis import strategies as st
from livekit.agents import ToolError

from caal_node.config.settings import Settings
from caal_node.context.tool_data import ToolDataCache
from caal_node.core.errors import ToolBroke
from caal_node.core.tool_spec import ToolSpec
from caal_node.tools.pipeline import (
    ERROR_CHARS,
    OWN_ERROR_CHARS,
    RESULT_CHARS,
    Pipeline,
    error_text,
)
from caal_node.tools.redaction import Redaction
from caal_node.tools.table import ToolTable
from n8n.calls.call import BasicAuth, JwtSecretAuth, secrets_of

SECRET = "swordfish/47+äb"  # noqa: S105 - it opens nothing
FORMS = (
    SECRET,
    json.dumps(SECRET)[1:-1],
    quote(SECRET),
    quote(SECRET, safe=""),
    SECRET.encode().hex(),
)
ENTRY = next(iter(ToolTable([ToolSpec("agent", "a", "f", "f", "Does it.", {"type": "object"})])))


def redaction() -> Redaction:
    return Redaction(SimpleNamespace(secrets=[SECRET]))


@pytest.mark.parametrize("form", FORMS)
def test_every_form_is_found_in_texts_and_in_values(form: str) -> None:
    assert form not in redaction().text(f"key={form}; next")
    value = {"a": [f"<{form}>"], form: 1}
    assert form not in str(redaction().value(value))


@pytest.mark.parametrize("before", ["", "x", "xy", "me:", "user:"])
def test_base64_of_it_is_found_wherever_it_begins(before: str) -> None:
    for encode in (base64.b64encode, base64.urlsafe_b64encode):
        coded = encode(f"{before}{SECRET}yz".encode()).decode()
        found = redaction().text(coded)
        assert "***" in found
        assert len(found) < len(coded) * 2 / 3


@given(
    st.recursive(
        st.none() | st.integers() | st.text(max_size=9),
        lambda inner: st.lists(inner) | st.dictionaries(st.text(max_size=9), inner),
    )
)
def test_a_value_without_secrets_is_the_same_value(value: Any) -> None:
    assert redaction().value(value) is value


def test_a_value_that_contains_itself_comes_to_an_end() -> None:
    value: dict[str, Any] = {"said": "nothing"}
    value["self"] = value
    assert redaction().value(value) is value
    value["said"] = SECRET
    assert redaction().value(value)["said"] == "***"


@given(st.integers(0, 2_000))
def test_no_secret_is_cut_apart_at_the_end_of_a_beginning(at: int) -> None:
    text = f"{'.' * at}{SECRET * 200}"
    told = redaction().beginning(text, 1_000)
    assert set(told) <= {".", "*"}
    assert len(told) <= 1_000 + len(SECRET) * 20


def test_a_secret_that_becomes_known_later_is_found_from_then_on() -> None:
    known: list[str] = []
    found = Redaction(SimpleNamespace(secrets=known))
    assert found.text(SECRET) == SECRET
    known.append(SECRET)
    assert found.text(SECRET) == "***"


async def test_a_result_is_redacted_before_it_is_cut_and_in_the_tool_data() -> None:
    data = ToolDataCache()
    pipeline = Pipeline(data, redaction=redaction())

    async def leak() -> Any:
        return [f"{n} {SECRET} and more of it" for n in range(2_000)]

    line = await pipeline.run(ENTRY, "c1", {}, leak)
    assert "***" in line
    assert len(line) <= RESULT_CHARS
    shown = line + data.render(["c1"])
    assert not any(SECRET[:length] in shown for length in range(5, len(SECRET)))


async def test_an_error_is_redacted_for_whoever_is_told_of_it() -> None:
    pipeline = Pipeline(ToolDataCache(), redaction=redaction())

    async def fail() -> Any:
        error = ToolBroke(f"401 for {SECRET} {'x' * 100_000}")
        error.words = f"The key {SECRET} is wrong."
        raise error

    with pytest.raises(ToolBroke) as raised:
        await pipeline.run(ENTRY, "c1", {}, fail)
    assert str(raised.value).startswith("401 for *** x")
    assert len(str(raised.value)) <= ERROR_CHARS
    assert SECRET not in error_text(raised.value)
    assert raised.value.words == "The key *** is wrong."


async def test_a_tool_error_of_megabytes_is_cut_before_it_is_searched() -> None:
    searched: list[int] = []

    class Counting(Redaction):
        def beginning(self, text: str, max_chars: int) -> str:
            searched.append(max_chars)
            return super().beginning(text, max_chars)

        def text(self, text: str) -> str:
            raise AssertionError("all of it")

    pipeline = Pipeline(ToolDataCache(), redaction=Counting(SimpleNamespace(secrets=[SECRET])))

    async def fail() -> Any:
        raise ToolError(f"No: {SECRET} " + "x" * 2_000_000)

    with pytest.raises(ToolError) as raised:
        await pipeline.run_own(ENTRY, "c1", {}, fail, validate=True, becomes_text=lambda _: True)
    assert raised.value.message.startswith("No: *** x")
    assert len(raised.value.message) <= OWN_ERROR_CHARS
    assert max(searched) == OWN_ERROR_CHARS


def test_every_secret_of_the_settings_is_known() -> None:
    values = {"api_key": "key-one", "livekit_api_secret": "room-one", "n8n_api_key": "n8n-one"}
    settings = Settings.model_validate(values)
    assert set(settings.secrets) == set(values.values())


def test_a_short_password_is_found_in_the_header_that_carries_it() -> None:
    auth = BasicAuth("me", "hunter2")
    sent = auth.headers()["Authorization"]
    assert Redaction(SimpleNamespace(secrets=secrets_of(auth))).text(sent) == "Basic ***"
    assert secrets_of(JwtSecretAuth("a-passphrase")) == ("a-passphrase",)
