"""Builds what an agent asks its model: tools in one order, and the conversation that fits."""

# pyright: reportUnknownMemberType=false, reportUnknownArgumentType=false
# pyright: reportUnknownVariableType=false, reportUnknownParameterType=false
# pyright: reportMissingTypeArgument=false
# LiveKit leaves the types of its tools open, so they are half unknown.

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping, Sequence
from itertools import takewhile
from typing import Final

from livekit.agents import llm

from caal_node.config.settings import Settings
from caal_node.context.budget import fitting
from caal_node.context.builder import FIXED_STEP, ContextBuilder
from caal_node.context.prompt_tools import PromptTools
from caal_node.context.token_estimate import items_tokens
from caal_node.context.tool_data import ToolDataCache
from caal_node.core.errors import ModelContextFull
from caal_node.core.items import Item, SystemItem
from caal_node.core.tool_spec import Example
from caal_node.grounding.references import Reference, references_in
from caal_node.models.chat_context import spoken_key, to_schemas
from caal_node.models.context_budget import budget_of, too_many_tools
from caal_node.models.llm import LLM
from caal_node.models.model_settings import text_limits
from caal_node.models.question import Question
from caal_node.tools.table import ToolEntry, ToolTable, unlisted
from mcp_bridge import DISCOVER

logger = logging.getLogger("caal_node")


class PromptBuilder:
    """Builds the questions of one conversation.

    It fetches the table and the model each time, since both may change during a conversation.
    """

    def __init__(
        self,
        settings: Settings,
        data: ToolDataCache,
        table: Callable[[], ToolTable],
        model: Callable[[], llm.LLM],
        hides: Callable[[ToolEntry, llm.Tool], bool] | None = None,
    ) -> None:
        """`hides` says which tools the model is not to see; only a reload may change its answer."""
        self._hides: Final = hides or _hides_none
        self._settings: Final = settings
        self._data: Final = data
        self._table: Final = table
        self._model: Final = model
        self._context: Final = ContextBuilder(
            max_turns=settings.window_turns, max_tokens=settings.window_tokens, data=data
        )
        self._offered: tuple[PromptTools, int, PromptTools] | None = None
        self._last: tuple[ToolTable, tuple[llm.Tool, ...], PromptTools] | None = None

    def offered(self, tools: Sequence[llm.Tool]) -> list[llm.Tool]:
        """Return those of `tools` that the model sees, as the table has them, tier by tier.

        Those that the table does not know come last.
        """
        table = self._table()
        position = {entry.exposed: index for index, entry in enumerate(table)}
        # LiveKit's toolsets may bring tools that the table does not know.
        seen = [
            tool
            for tool in tools
            if not self._hides(table.get(tool.id) or unlisted(tool.id, ""), tool)
        ]
        return sorted(seen, key=lambda tool: position.get(tool.id, len(position)))

    @property
    def left_out(self) -> frozenset[str]:
        """The tools for which the last question's context had no room."""
        if self._offered is None:
            return frozenset()
        given, _, fitting_ones = self._offered
        return frozenset(given.names).difference(fitting_ones.names)

    def examples(self) -> Mapping[str, tuple[Example, ...]]:
        """Return example utterances by exposed name: the settings', else the author's."""
        return {**self._table().prompt_tools.examples, **self._configured_examples()}

    def question(
        self,
        history: Sequence[Item],
        tools: Sequence[llm.Tool],
        *,
        stream: bool = True,
        may_call: bool = True,
    ) -> Question:
        """Build the next question from `tools` and as much of `history` as fits beside them."""
        prompt_tools = self._fitting(self._prompt_tools(tools), history)
        items = self._context.build(history, self._tokens(prompt_tools))
        return Question(
            items,
            prompt_tools,
            stream=stream,
            may_call=may_call,
            limits=text_limits(self._settings),
            judges_calls=self._settings.needless_calls == "ask",
            references=self._references(items),
        )

    def _references(self, items: Sequence[Item]) -> tuple[Reference, ...]:
        return () if self._settings.references == "off" else references_in(items, self._data)

    def shorten(self, error: Exception, history: Sequence[Item], tools: Sequence[llm.Tool]) -> bool:
        """Return whether `error` is a full context and the next `question` can leave more out."""
        if spoken_key(error) != ModelContextFull.spoken:
            return False
        asked, offered = self._offered, self._fitting(self._prompt_tools(tools), history)
        if asked is not None and asked[2].names != offered.names:
            return True  # The server has told its context since.
        return self._context.tighten(history, self._tokens(offered))

    def _fitting(self, tools: PromptTools, history: Sequence[Item]) -> PromptTools:
        """Return as many of `tools` as the model's context has room for beside the talk."""
        model = self._model()
        known = model.retry_policy.stats.capabilities if isinstance(model, LLM) else None
        shared = budget_of(self._settings, known.context_tokens if known else None)
        self._context.share(shared)
        head = items_tokens(takewhile(lambda item: isinstance(item, SystemItem), history))
        # In steps, as instructions that hold the time of day must not change what is offered.
        head = -(-head // FIXED_STEP) * FIXED_STEP
        most = shared.tools(head)
        if self._offered is None or self._offered[:2] != (tools, most):
            offered = fitting(tools, most, self._tokens, DISCOVER)
            if left_out := [name for name in tools.names if name not in offered.names]:
                size = self._tokens(tools)
                told = too_many_tools(self._settings, shared, size, head, left_out)
                logger.warning("%s; %s", *told)
            self._offered = tools, most, offered
        return self._offered[2]

    def _prompt_tools(self, tools: Sequence[llm.Tool]) -> PromptTools:
        """Return the prompt's form of `tools`, made once for as long as table and tools stay."""
        table, given = self._table(), tuple(tools)
        if self._last is None or self._last[0] is not table or self._last[1] != given:
            known = table.prompt_tools.only({tool.id for tool in tools})
            unlisted = to_schemas(tool for tool in tools if tool.id not in table)
            examples = {**known.examples, **self._configured_examples()}
            self._last = table, given, PromptTools((*known.schemas, *unlisted), examples)
        return self._last[2]

    def _configured_examples(self) -> Mapping[str, tuple[Example, ...]]:
        return {
            name: tuple(examples)
            for name, examples in self._settings.examples.items()
            if examples and name in self._table()
        }

    def _tokens(self, tools: PromptTools) -> int:
        """Estimate the tokens in front of the conversation: those of schemas and examples."""
        model = self._model()
        if isinstance(model, LLM) and model.retry_policy.native:
            return tools.schema_tokens  # examples are shown only where calls are asked for by text
        return tools.schema_tokens + tools.example_tokens


def _hides_none(entry: ToolEntry, tool: llm.Tool) -> bool:
    return False
