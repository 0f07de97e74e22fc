"""What an agent asks its model: its tools in one order, and as much of the conversation as fits."""

# pyright: reportUnknownMemberType=false, reportUnknownArgumentType=false
# pyright: reportUnknownVariableType=false, reportUnknownParameterType=false
# pyright: reportMissingTypeArgument=false
# LiveKit leaves the types of its tools open, so they are half unknown.

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Final

from livekit.agents import llm

from caal_node.config.settings import Settings
from caal_node.context.builder import ContextBuilder
from caal_node.context.prompt_tools import PromptTools
from caal_node.context.tool_data import ToolDataCache
from caal_node.core.errors import ModelContextFull
from caal_node.core.items import Item
from caal_node.core.tool_spec import Example
from caal_node.models.chat_context import to_schemas
from caal_node.models.livekit_errors import spoken_key
from caal_node.models.llm import LLM
from caal_node.models.question import Question
from caal_node.tools.table import ToolTable


class PromptBuilder:
    """Builds the questions of one conversation.

    It asks for the table and the model each time, since both may change in mid-conversation.
    """

    def __init__(
        self,
        settings: Settings,
        data: ToolDataCache,
        table: Callable[[], ToolTable],
        model: Callable[[], llm.LLM],
    ) -> None:
        self._settings: Final = settings
        self._table: Final = table
        self._model: Final = model
        self._context: Final = ContextBuilder(
            max_turns=settings.window_turns, max_tokens=settings.window_tokens, data=data
        )
        self._last: tuple[ToolTable, tuple[llm.Tool, ...], PromptTools] | None = None

    def in_order(self, tools: Sequence[llm.Tool]) -> list[llm.Tool]:
        """`tools` tier by tier, as the table has them; those it does not know come last."""
        position = {entry.exposed: n for n, entry in enumerate(self._table())}
        return sorted(tools, key=lambda tool: position.get(tool.id, len(position)))

    def examples(self) -> Mapping[str, tuple[Example, ...]]:
        """Example utterances by exposed name: the settings' own, else those of the author."""
        return {**self._table().prompt_tools.examples, **self._configured_examples()}

    def question(
        self,
        history: Sequence[Item],
        tools: Sequence[llm.Tool],
        *,
        stream: bool = True,
        may_call: bool = True,
    ) -> Question:
        """What to ask the model now: what of `history` fits, beside `tools`."""
        shown = self._prompt_tools(tools)
        items = self._context.build(history, self._tokens(shown))
        return Question(items, shown, stream=stream, may_call=may_call)

    def shorten(self, error: Exception, history: Sequence[Item], tools: Sequence[llm.Tool]) -> bool:
        """Whether `error` is a full context, and the next `question` leaves something out."""
        return spoken_key(error) == ModelContextFull.spoken and self._context.tighten(
            history, self._tokens(self._prompt_tools(tools))
        )

    def _prompt_tools(self, tools: Sequence[llm.Tool]) -> PromptTools:
        """What the prompt shows of `tools`, made once for as long as table and tools stay."""
        table, given = self._table(), tuple(tools)
        if self._last is None or self._last[0] is not table or self._last[1] != given:
            known = table.prompt_tools.only({tool.id for tool in tools})
            unlisted = to_schemas(tool for tool in tools if tool.id not in table)
            examples = {**known.examples, **self._configured_examples()}
            self._last = table, given, PromptTools((*known.schemas, *unlisted), examples)
        return self._last[2]

    def _configured_examples(self) -> Mapping[str, tuple[Example, ...]]:
        given = self._settings.examples
        return {
            name: tuple(found) for name, found in given.items() if found and name in self._table()
        }

    def _tokens(self, tools: PromptTools) -> int:
        """Estimated tokens of what stands before the conversation: schemas, and examples."""
        model = self._model()
        if isinstance(model, LLM) and model.retry_policy.native:
            return tools.schema_tokens  # examples are shown only where calls are asked for by text
        return tools.schema_tokens + tools.example_tokens
