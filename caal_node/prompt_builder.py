"""What an agent's model is shown: its tools in one order, and as much of the talk as fits."""

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
from caal_node.context.token_estimate import text_tokens, tools_tokens
from caal_node.context.tool_data import ToolDataCache
from caal_node.core.errors import ModelContextFull
from caal_node.core.items import Item
from caal_node.core.tool_spec import Example
from caal_node.models.chat_context import to_chat_ctx, to_schemas
from caal_node.models.livekit_errors import spoken_key
from caal_node.models.llm import LLM
from caal_node.tools.table import ToolTable


class PromptBuilder:
    """Of one conversation. The table and the model are asked for each time: both may change."""

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

    def tools(self, tools: Sequence[llm.Tool]) -> list[llm.Tool]:
        """Tier by tier, as the table has them; what it does not know comes last, as it came."""
        place = {entry.exposed: n for n, entry in enumerate(self._table())}
        return sorted(tools, key=lambda tool: place.get(tool.id, len(place)))

    def examples(self) -> Mapping[str, tuple[Example, ...]]:
        """Example utterances by exposed name: the settings' own, else those of the author."""
        return {
            entry.exposed: self._settings.examples.get(entry.exposed) or entry.spec.examples
            for entry in self._table()
        }

    def history(self, history: Sequence[Item], tools: Sequence[llm.Tool]) -> llm.ChatContext:
        """What of the talk is shown beside `tools`."""
        return to_chat_ctx(self._context.build(history, self._head_tokens(tools)))

    def less(self, error: Exception, history: Sequence[Item], tools: Sequence[llm.Tool]) -> bool:
        """Whether `error` is a context too full, and the next `history` leaves something out."""
        return spoken_key(error) == ModelContextFull.spoken and self._context.tighten(
            history, self._head_tokens(tools)
        )

    def _head_tokens(self, tools: Sequence[llm.Tool]) -> int:
        """Estimated tokens of what stands before the conversation: schemas, and examples."""
        model, examples = self._model(), self.examples()
        if isinstance(model, LLM) and model.ladder.native:
            examples = {}  # shown only where calls are asked for by text
        shown = (str(e) for found in examples.values() for e in found)
        return tools_tokens(to_schemas(tools)) + sum(map(text_tokens, shown))
