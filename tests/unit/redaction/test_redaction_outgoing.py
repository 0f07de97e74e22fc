"""What leaves a conversation for good is redacted: events, and whatever anybody logs."""

from __future__ import annotations

import asyncio
import io
import json
import logging
from collections.abc import Iterator
from contextlib import redirect_stderr
from typing import Any

import pytest
from livekit.agents import AgentSession, llm

from caal_node.agent import CaalAgent
from caal_node.core.events import Decision, Spoken, ToolCallEnded, ToolCallStarted, UserSaid
from caal_node.redaction.log_filter import _RecordsOfAllLoggers, logs_redacted
from caal_node.redaction.outgoing import MAX_CHARS, OutgoingRedaction
from caal_node.redaction.settings import RedactionSettings
from caal_node.testing import ScriptedModel, plain_settings
from caal_node.tools.source import ToolListing, ToolSource

pytestmark = pytest.mark.usefixtures("guarded_process")
SECRET = "correct-horse"  # noqa: S105 - it opens nothing
KEY = "AKIA" + "IOSFODNN7EXAMPLE"
REDACTION = OutgoingRedaction(
    RedactionSettings(personal=("email",), paths=True), lambda text: text.replace(SECRET, "***")
)


def test_an_event_is_redacted_in_its_words_and_arguments() -> None:
    arguments = {"password": "hunter", "to": ["ann@example.org"], KEY: {"n": 1, "x": SECRET}}
    event = ToolCallStarted("c1", "send_mail", "n8n", "n8n", arguments)
    told = REDACTION.record(event)
    assert told.arguments == {"password": "***", "to": ["[email]"], "***": {"n": 1, "x": "***"}}
    assert (told.call_id, told.tool) == ("c1", "send_mail")
    refused = Decision("own", "refused", f"mail to ann@example.org with {SECRET}", 0.1)
    ended = REDACTION.record(ToolCallEnded("c1", "send_mail", "n8n", "refused", 1, (refused,)))
    assert ended.decisions[0].line == "mail to [email] with ***"
    assert REDACTION.record(Spoken(f"It is {SECRET}.")) == Spoken("It is ***.")


@pytest.mark.parametrize(
    "event",
    [
        UserSaid("What is the weather?"),
        ToolCallStarted("c1", "get_weather", "n8n", "n8n", {"city": "Oslo", "days": [1, 2]}),
        ToolCallEnded("c1", "get_weather", "n8n", "ok", 12),
    ],
)
def test_an_event_in_which_nothing_is_found_is_the_same_one(event: Any) -> None:
    assert REDACTION.record(event) is event


@pytest.mark.parametrize(
    "first", ["next page", "password: abcd", "password", f"{SECRET[:4]}", KEY[:9]]
)
@pytest.mark.parametrize(
    "second", ["token=abcdefg1", "password=hunter", "=hunter2", SECRET[4:], KEY]
)
def test_a_text_of_an_event_is_redacted_as_it_is_alone(first: str, second: str) -> None:
    told = REDACTION.record(ToolCallStarted("c1", "f", "n8n", "n8n", {"a": first, "b": [second]}))
    assert told.arguments == {"a": REDACTION.text(first), "b": [REDACTION.text(second)]}


def test_a_long_text_is_cut_and_a_deep_value_ends() -> None:
    assert len(REDACTION.text("a " * MAX_CHARS)) == MAX_CHARS + 1
    deep: dict[str, Any] = {}
    deep["again"] = deep
    assert "***" in json.dumps(REDACTION.value(deep))


@pytest.fixture
def log() -> Iterator[tuple[logging.Logger, io.StringIO]]:
    written = io.StringIO()
    handler = logging.StreamHandler(written)
    handler.setFormatter(
        logging.Formatter("%(name)s %(message)s %(detail)s", defaults={"detail": ""})
    )
    logger = logging.getLogger("livekit.agents.some_plugin")
    logging.getLogger().addHandler(handler)
    yield logger, written
    logging.getLogger().removeHandler(handler)


def test_a_handler_that_comes_later_gets_redacted_records_too() -> None:
    written, console = io.StringIO(), io.StringIO()
    late = logging.StreamHandler(written)
    late.setFormatter(logging.Formatter("%(message)s %(detail)s"))
    logger = logging.getLogger("some_program.of_the_owner")
    logger.propagate = False
    with logs_redacted(REDACTION):
        logger.addHandler(late)
        logger.error("no %s", KEY, extra={"detail": SECRET})
        logger.removeHandler(late)
        with redirect_stderr(console):  # Python's own last resort, where there is no handler
            logger.error("still no %s", KEY)
    assert written.getvalue() == "no *** ***\n"
    assert KEY not in console.getvalue()


def test_a_record_is_redacted_once_however_many_handlers_and_packages_are_there(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    looked: list[str] = []

    def by_value(text: str) -> str:
        looked.append(text)
        return text

    redaction = OutgoingRedaction(RedactionSettings(), by_value)
    logger = logging.getLogger("livekit.some_plugin")
    handlers = [logging.StreamHandler(io.StringIO()) for _ in range(3)]
    for handler in handlers:
        logger.addHandler(handler)
    with logs_redacted(REDACTION):
        ours: Any = logging.Logger.callHandlers

        def theirs(logger: logging.Logger, record: logging.LogRecord) -> None:
            ours(logger, record)

        # Another package does as Sentry's does.
        monkeypatch.setattr(logging.Logger, "callHandlers", theirs)
        with logs_redacted(redaction):
            logger.error("hello")
    for handler in handlers:
        logger.removeHandler(handler)
    assert looked == ["hello"]


def test_a_record_of_any_logger_is_redacted(log: tuple[logging.Logger, io.StringIO]) -> None:
    logger, written = log
    with logs_redacted(REDACTION):
        logger.error("no %s for %s", KEY, {"key": SECRET}, extra={"detail": f"at /home/a/{SECRET}"})
        try:
            raise ValueError(f"refused {SECRET} of ann@example.org")
        except ValueError:
            logger.exception("it failed")
    text = written.getvalue()
    assert not any(secret in text for secret in (KEY, SECRET, "ann@", "/home/a"))
    assert "no *** for {'key': '***'} at ~/***" in text
    assert "ValueError: refused *** of [email]" in text


def test_two_rooms_of_one_process_each_redact_their_own(
    log: tuple[logging.Logger, io.StringIO],
) -> None:
    logger, written = log
    other = OutgoingRedaction(RedactionSettings(), lambda text: text.replace("staple", "***"))
    with logs_redacted(REDACTION), logs_redacted(other):
        try:
            raise ValueError(f"{SECRET} and staple")
        except ValueError:
            logger.exception("%s and staple", SECRET)
    assert written.getvalue().count("*** and ***") == 2


def test_after_the_conversation_records_are_as_before(
    log: tuple[logging.Logger, io.StringIO],
) -> None:
    logger, written = log
    with logs_redacted(REDACTION):
        pass
    logger.error("said %s", SECRET)
    assert SECRET in written.getvalue()


def test_a_record_without_secrets_keeps_its_arguments(
    caplog: pytest.LogCaptureFixture,
) -> None:
    with logs_redacted(REDACTION):
        logging.getLogger("caal_node").warning("took %d ms", 12)
    assert caplog.records[0].args == (12,)


def test_a_record_that_cannot_be_redacted_says_nothing(
    log: tuple[logging.Logger, io.StringIO],
) -> None:
    logger, written = log
    with logs_redacted(REDACTION):
        logger.error("%d " + SECRET, "no number")
    assert (
        written.getvalue().strip() == "livekit.agents.some_plugin a record was left out (TypeError)"
    )


class LateSource(ToolSource):
    """A source whose end takes long, and which logs a key at the end of it."""

    async def discover(self) -> ToolListing:
        return ToolListing(())

    async def call(self, *_: Any) -> None:
        raise AssertionError

    async def aclose(self) -> None:
        await log_late("a source")


class LateToolset(llm.Toolset):
    """A toolset that LiveKit closes, which does the same."""

    @property
    def tools(self) -> list[Any]:
        return []

    async def aclose(self) -> None:
        await log_late(self.id)


async def log_late(who: str) -> None:
    for _ in range(500):  # rounds of the loop, in which all else is over
        await asyncio.sleep(0)
    logging.getLogger("a.library").warning("%s leaves %s", who, SECRET)


async def test_logs_are_redacted_until_everything_of_a_session_is_closed(
    caplog: pytest.LogCaptureFixture,
) -> None:
    settings = plain_settings(CAAL_API_KEY=SECRET)
    agent = CaalAgent(
        settings=settings,
        tiers={"n8n": LateSource()},
        tools=[LateToolset(id="the agent's")],
        warm=False,
    )
    late = LateToolset(id="the session's")
    session = AgentSession[None](llm=ScriptedModel(), tools=[late], vad=None)
    await session.start(agent)
    await session.aclose()
    said = [each.getMessage() for each in caplog.records if each.name == "a.library"]
    left = [f"{who} leaves ***" for who in ("a source", "the agent's", "the session's")]
    assert sorted(said) == left
    await log_late("nobody")
    assert caplog.records[-1].getMessage() == f"nobody leaves {SECRET}", "and no longer"


def test_without_the_guard_of_the_process_only_own_loggers_redact(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr("caal_node.redaction.log_filter._RECORDS", _RecordsOfAllLoggers())
    own, other = logging.getLogger("caal_node.own"), logging.getLogger("another")
    with logs_redacted(REDACTION):
        own.warning("own %s", SECRET)
        other.warning("other %s", SECRET)
    own.warning("after %s", SECRET)
    assert caplog.messages == ["own ***", f"other {SECRET}", f"after {SECRET}"]
