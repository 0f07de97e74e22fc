"""Reading a reply, in pieces or whole."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from caal_node.reply_parser.events import Event, Reply, summarise
from caal_node.reply_parser.scanner import ReplyScanner


class ReplyParser:
    """Reads one reply as it streams.

    tools: OpenAI-style schemas; without any, every name is allowed.
    in_thinking: the prompt left a think block open, so the reply begins inside it.
    id_prefix: what call ids begin with; they are numbered from 1, so a conversation that needs
        ids of its own for every reply gives a prefix of its own for each.
    """

    def __init__(
        self,
        tools: Sequence[Mapping[str, Any]],
        *,
        in_thinking: bool = False,
        id_prefix: str = "call_",
    ) -> None:
        scanner = ReplyScanner(tools, in_thinking=in_thinking, id_prefix=id_prefix)
        self._context = scanner.context
        self._steps = scanner.steps()
        self._finished = False

    def feed(self, chunk: str) -> list[Event]:
        """Take the next piece of the reply, and return the events that it made certain."""
        if self._finished or not chunk:
            return []
        self._context.cursor.append(chunk)
        next(self._steps, None)
        return self._context.events.take()

    def finish(self) -> list[Event]:
        """End the reply, and return the events that are left. Later chunks are not read."""
        if self._finished:
            return []
        self._finished = True
        self._context.cursor.closed = True
        next(self._steps, None)
        return self._context.events.take()


def parse_reply(
    text: str, tools: Sequence[Mapping[str, Any]], *, in_thinking: bool = False
) -> Reply:
    """Return what a whole reply means. The arguments are those of `ReplyParser`."""
    parser = ReplyParser(tools, in_thinking=in_thinking)
    return summarise([*parser.feed(text), *parser.finish()])
