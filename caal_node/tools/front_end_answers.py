"""What a front end answers to a question of the agent's: a button, or a form.

It sends one JSON object as a text stream on `caal.confirm`, with the names of the question's event.
LiveKit vouches for who has sent it, and it counts from the person alone who is asked.

A form's message is `{"call_id": ..., "question_id": ..., "content": {...}}`, with the names of the
event `question_asked`. `content` has a value for each field's name, and is null for a refusal. A
choice is named by its place, as its value at the server may hold what nobody is to see.
"""

# pyright: reportUnknownMemberType=false, reportUnknownVariableType=false
# LiveKit leaves the types of its rooms and sessions open, so they are half unknown.

from __future__ import annotations

import asyncio
import json
import logging
from collections.abc import Callable, Mapping
from typing import Any, Final, TypeAlias, cast

from livekit import rtc
from livekit.agents import AgentSession

from caal_node.core.events import QuestionField
from caal_node.tools.spoken_question import MAX_READ_CHARS
from mcp_bridge.core.elicitation import Accepted, Answer, Declined, Field, Question, value_fits

logger = logging.getLogger("caal_node.tools")

TOPIC: Final = "caal.confirm"
"""The topic of the room's text streams by which a front end answers."""
ANSWER_S: Final = 5.0
"""Seconds for one answer's message to arrive."""


class FrontEndAnswers:
    """Takes a front end's messages for one question, from `open` to `aclose`.

    A room's topic has one taker at a time, so it is opened once its question is really asked.

    Args:
        room: None where the session has none; there is no front end then.
        person: The identity of the only participant who may answer.
        names: What a message has to give back of the question's event, so that it answers this
            question alone.
        max_chars: Characters of a message; a longer one counts nothing.
        take: It is called with each message, and returns whether that is an answer.
    """

    def __init__(
        self,
        room: rtc.Room | None,
        person: str,
        names: Mapping[str, str],
        max_chars: int,
        take: Callable[[Mapping[str, Any]], bool],
    ) -> None:
        self._room: Final = room
        self._person: Final = person
        self._names: Final = names
        self._max_chars: Final = max_chars
        self._take: Final = take
        self._reading: Final[set[asyncio.Task[None]]] = set()
        self._registered = False

    def open(self) -> None:
        """Take messages from now on."""
        if self._room is None or not self._person:
            return
        try:
            self._room.register_text_stream_handler(TOPIC, self._on_stream)
            self._registered = True
        except ValueError:
            logger.warning("the topic %s has a handler of the owner's; no answer is taken", TOPIC)

    async def aclose(self) -> None:
        """Take none any more, and end those that are being read."""
        if self._registered and self._room is not None:
            self._room.unregister_text_stream_handler(TOPIC)
            self._registered = False
        for task in self._reading:
            task.cancel()
        await asyncio.gather(*self._reading, return_exceptions=True)

    def _on_stream(self, reader: rtc.TextStreamReader, identity: str) -> None:
        if identity != self._person:
            logger.warning(
                "a question was answered by somebody who is not asked; it counts nothing"
            )
            return
        task = asyncio.create_task(self._read(reader), name="caal-confirm")
        self._reading.add(task)
        task.add_done_callback(self._reading.discard)

    async def _read(self, reader: rtc.TextStreamReader) -> None:
        text = ""
        try:
            async with asyncio.timeout(ANSWER_S):
                async for chunk in reader:
                    text += chunk
                    if len(text) > self._max_chars:
                        break
        except TimeoutError:
            pass
        message = message_of(text, self._names, self._max_chars)
        if message is None or not self._take(message):
            logger.warning("a front end's answer does not fit the question; it counts nothing")


def message_of(text: str, names: Mapping[str, str], max_chars: int) -> Mapping[str, Any] | None:
    """Return a front end's message to the question of these names; None where it is none."""
    try:
        message: object = json.loads(text) if len(text) <= max_chars else None
    except (ValueError, RecursionError):
        return None
    if not isinstance(message, dict):
        return None
    fields = cast("dict[str, Any]", message)
    return fields if all(fields.get(key) == value for key, value in names.items()) else None


def room_of(session: AgentSession[Any]) -> rtc.Room | None:
    """Return the session's room; None where it has none."""
    try:
        return session.room_io.room
    except RuntimeError:  # LiveKit raises it where the session has no room
        return None


# A server's question as a form: what it shows, and what it takes for an answer.

FieldValue: TypeAlias = str | int | float | bool | list[str]

FORM_CHARS: Final = 24_000
"""Characters of a form's message: eight fields are asked for at most, and a text has 2,000."""


def form_fields(question: Question) -> tuple[QuestionField, ...]:
    """Return the question's fields as a front end shows them."""
    return tuple(
        QuestionField(
            *(field.name, field.kind, field.title, field.description, field.required),
            default=_shown_default(field),
            choices=tuple(words for _, words in field.choices),
        )
        for field in question.fields
    )


def form_answer(question: Question, message: Mapping[str, Any]) -> Answer | None:
    """Return what a form's message answers; None where it does not fit the question.

    What is left out is the server's to choose; where the server wants a value of its field, that is
    the field's default.
    """
    content: object = message.get("content", "")
    if content is None:
        return Declined()
    if not isinstance(content, dict):
        return None
    given = cast("dict[str, object]", content)
    values: dict[str, FieldValue] = {}
    for field in question.fields:
        if (asked := given.pop(field.name, None)) is not None:
            value = _value(field, asked)
        elif field.required:
            value = _default(field)
        else:
            continue
        if value is None:
            return None
        values[field.name] = value
    return None if given else Accepted(values)


def _value(field: Field, given: object) -> FieldValue | None:
    """Return the field's value that a form gives; None where it gives none, as with words."""
    match field.kind:
        case "text":
            text = given.strip() if isinstance(given, str) else ""
            return text if 0 < len(text) <= MAX_READ_CHARS else None
        case "choice":
            return _chosen(field, given)
        case "choices":
            places = cast("list[object]", given) if isinstance(given, list) else []
            chosen = {_chosen(field, place): None for place in places[: len(field.choices)]}
            fits = 0 < len(places) == len(chosen) and None not in chosen
            return [value for value in chosen if value is not None] if fits else None
        case _:
            return cast("FieldValue", given) if value_fits(field, given) else None


def _chosen(field: Field, place: object) -> str | None:
    if not isinstance(place, int) or isinstance(place, bool):
        return None
    return field.choices[place][0] if 0 <= place < len(field.choices) else None


def _default(field: Field) -> FieldValue | None:
    """Return the server's default; None where it has none, or one that fits not its own field."""
    default = field.default
    if default is None or not value_fits(field, default):
        return None
    return None if isinstance(default, str) and len(default) > MAX_READ_CHARS else default


def _shown_default(field: Field) -> str | int | float | bool | tuple[int, ...] | None:
    default = _default(field)
    values = [value for value, _ in field.choices]
    if isinstance(default, list):
        return tuple(values.index(each) for each in default)
    return values.index(default) if field.kind == "choice" and default in values else default
