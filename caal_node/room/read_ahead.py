"""Has the model's server read in advance what the next request will begin with.

While a person speaks, that is what they have said so far, which is then mostly read when they end:
on one slow core that is seconds of a long sentence, and more where an answer or a result in front
of it has not been read yet. After an answer it is a conversation that the next words cut: all that
is left of it has to be read anew. Each time one token is asked for, whose value nobody looks at.
There is one such request at a time, at most `READS_MOST` in a turn, and none beside a reply; the
turn's own request ends it.
"""

# pyright: reportUnknownMemberType=false, reportUnknownArgumentType=false
# pyright: reportUnknownVariableType=false, reportUnknownParameterType=false
# pyright: reportMissingTypeArgument=false
# LiveKit leaves the event types of its rooms, models and sessions open, so they are half unknown.

from __future__ import annotations

import asyncio
import logging
from typing import Any, Final, Protocol

from livekit.agents import AgentSession, ConversationItemAddedEvent, llm
from livekit.agents.utils import aio

from caal_node.core.errors import ModelError

logger = logging.getLogger("caal_node.room")

WORDS_STEP: Final = 4
"""New words after which it is worth to read again: a request has some 10 tokens beside them."""
READS_MOST: Final = 12
"""Requests for one turn's words: some 45 words, and whoever says more pauses on the way."""
NOT_YET_SAID: Final = "..."
"""It stands in the words' place until somebody speaks."""


class ReadsConversation(Protocol):
    """What can have a model's server read the conversation."""

    async def read(self, words: str) -> None:
        """Have it read with `words` at its end. It is cancelled where the words turn out to be
        others, and when they are asked about.

        Raises:
            ModelError: the server could not be asked.
        """
        ...

    def is_cut_behind(self, answer: str) -> bool:
        """Say whether the next words cut the conversation, which has `answer` at its end now."""
        ...


class ReadAhead:
    """What is read in advance in one session, until `aclose`; `reader` has it read."""

    def __init__(self, reader: ReadsConversation, session: AgentSession[Any]) -> None:
        self._reader: Final = reader
        self._session: Final = session
        self._segments: list[str] = []
        """What is settled of the turn's words."""
        self._heard = ""
        self._begun = ""
        """The words of the last request."""
        self._left = READS_MOST
        self._replying = False
        self._closed = False
        self._reading: asyncio.Task[None] | None = None
        session.on("conversation_item_added", self._added)

    def heard(self, text: str, *, is_final: bool) -> None:
        """Take a transcript of the words since the last final one."""
        self._heard = " ".join([*self._segments, text]).strip()
        if is_final:
            self._segments.append(text)
        self._go_on()

    def request_begins(self) -> None:
        """Leave the server to the turn's own request."""
        self._replying = True
        self._drop()

    def reply_over(self) -> None:
        self._replying = False

    async def aclose(self) -> None:
        self._closed = True
        self._session.off("conversation_item_added", self._added)
        if self._reading is not None:
            await aio.cancel_and_wait(self._reading)

    def _added(self, event: ConversationItemAddedEvent) -> None:
        """Begin anew where what was heard stands in the conversation now, and have what a cut
        leaves read behind an answer."""
        item = event.item
        if not isinstance(item, llm.ChatMessage):
            return
        answer = item.text_content or ""
        if item.role == "assistant" and self._is_free and self._reader.is_cut_behind(answer):
            self._begin(NOT_YET_SAID)
        if item.role != "user":
            return
        self._segments.clear()
        self._heard = self._begun = ""
        self._left = READS_MOST
        self._drop()

    def _drop(self) -> None:
        if self._reading is not None:
            self._reading.cancel()

    def _go_on(self) -> None:
        still_right = bool(self._begun) and self._heard.startswith(self._begun)
        if self._reading is not None:
            if not still_right:
                self._drop()
            return
        if not self._is_free or not self._left or not self._heard:
            return
        new = len(self._heard.split()) - len(self._begun.split())
        if still_right and new < WORDS_STEP:
            return
        self._begun = self._heard
        self._left -= 1
        self._begin(self._heard)

    @property
    def _is_free(self) -> bool:
        return not (self._closed or self._replying or self._reading is not None)

    def _begin(self, words: str) -> None:
        self._reading = asyncio.create_task(self._run(words), name="caal-read-ahead")
        self._reading.add_done_callback(self._ended)

    async def _run(self, words: str) -> None:
        try:
            await self._reader.read(words)
        except ModelError as error:
            logger.debug("nothing was read ahead: %s", type(error).__name__)
        except Exception:  # an extra, of which nobody awaits the result
            logger.exception("reading ahead failed")

    def _ended(self, _: asyncio.Task[None]) -> None:
        self._reading = None
        self._go_on()
