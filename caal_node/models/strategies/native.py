"""The native strategy: the server's own tool calls. Calls that leak into text are read as well."""

from __future__ import annotations

from caal_node.core.items import Item, UserItem
from caal_node.core.prompt_files import read
from caal_node.models.backends.base import BackendRequest, Chunk, NativeCall
from caal_node.models.question import Question
from caal_node.models.strategies.base import ReplyReader, StrategyName
from caal_node.reply_parser import Event
from caal_node.reply_parser.call_builder import CallBuilder, OpenCall
from caal_node.reply_parser.tool_index import ToolIndex


class NativeStrategy:
    """Sends the tools' schemas to the server, and takes the structured calls that come back."""

    name: StrategyName = "native"

    def request(self, question: Question) -> BackendRequest:
        items: tuple[Item, ...] = question.items
        if not question.may_call:
            # It is a person's turn, since templates move late instructions to the prompt's prefix.
            items = (*items, UserItem(read("last_round.md")))
        return BackendRequest(
            items,
            tools=question.tools.schemas if question.may_call else (),
            stream=question.stream,
            max_tokens=question.max_tokens,
        )

    def reader(self, question: Question) -> ReplyReader:
        return _NativeReader(question)


class _NativeReader(ReplyReader):
    def __init__(self, question: Question) -> None:
        super().__init__(question, in_thinking=question.in_thinking)
        self._events: list[Event] = []
        self._calls = CallBuilder(
            ToolIndex.from_schemas(question.tools.schemas), self._events.append, "native_"
        )

    def feed(self, chunk: Chunk) -> list[Event]:
        if not isinstance(chunk, NativeCall):
            return super().feed(chunk)
        self._leave_thinking()  # The call is the reply, and the text before it stays unspoken.
        OpenCall(self._calls, chunk.name).end_json(chunk.arguments or "{}")
        events = list(self._events)
        self._events.clear()
        return events
