"""Builds what an agent asks its model: tools in one order, and the conversation that fits."""

# pyright: reportUnknownMemberType=false, reportUnknownArgumentType=false
# pyright: reportUnknownVariableType=false, reportUnknownParameterType=false
# pyright: reportMissingTypeArgument=false
# LiveKit leaves the types of its tools open, so they are half unknown.

from __future__ import annotations

import logging
from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import partial
from itertools import takewhile
from typing import Final, Protocol

from livekit.agents import llm
from livekit.agents.llm.chat_context import Instructions

from caal_node.config.settings import Settings
from caal_node.config.switches import Switches
from caal_node.context.builder import MAX_TURNS, ContextBuilder
from caal_node.context.token_estimate import PromptTools, items_tokens
from caal_node.context.tool_data import ToolDataCache
from caal_node.context.window import FIXED_STEP, WINDOW_SHARE, ContextBudget, budget, fitting
from caal_node.core.errors import ConfigError, ModelContextFull
from caal_node.core.items import Item, SystemItem, ToolsItem, WindowItem
from caal_node.core.prompt_files import read
from caal_node.core.tool_spec import Example, ToolSchema
from caal_node.grounding.references import Reference, references_in
from caal_node.models.chat_context import spoken_key, to_schemas
from caal_node.models.llm import LLM
from caal_node.models.question import Question
from caal_node.models.strategies.carried_call import CARRIER_TOKENS
from caal_node.tools.middleware.policy_check import PolicyChecks
from caal_node.tools.sources.methods import is_guarded
from caal_node.tools.table import ToolEntry, ToolTable, unlisted
from caal_node.tools_on_demand import LIVEKITS_LIST, ToolsOnDemand
from mcp_bridge import DISCOVER
from mcp_bridge.core.files import read_capped

# How much a model's server reads, and what to say where the tools do not fit into it.

NAMES_SHOWN: Final = 5
"""Names of tools in a message."""


def budget_of(settings: Settings, told: int | None) -> ContextBudget:
    """Return the budget of the settings' model, whose server reads `told` tokens if it says so.

    CAAL_NUM_CTX narrows it where its owner has written it.
    """
    return budget(
        told=told,
        num_ctx=settings.num_ctx if "num_ctx" in settings.model_fields_set else None,
        default=settings.num_ctx,
    )


def front_tokens(settings: Settings, shared: ContextBudget, head: int) -> int:
    """Return the estimated tokens that all tools may have together and stand in front of the
    conversation, with `head` tokens of instructions. Where they have more, they are on demand."""
    return shared.front(head) if settings.tool_tokens is None else settings.tool_tokens


def too_many_tools(
    settings: Settings, shared: ContextBudget, tools: int, head: int, left_out: Sequence[str]
) -> tuple[str, str]:
    """Return what is wrong and how to fix it, where `tools` tokens of tools do not fit beside
    `head` tokens of instructions and a conversation, so that those of `left_out` are not offered.
    """
    names = ", ".join(left_out[:NAMES_SHOWN])
    more = f" and {len(left_out) - NAMES_SHOWN} more" if len(left_out) > NAMES_SHOWN else ""
    found = (
        f"about {tools} tokens of tools do not fit beside a conversation into the {shared.context} "
        f"tokens that the model reads; left out: {names}{more}"
    )
    needed = shared.context_for(tools, head)
    narrowed = "num_ctx" in settings.model_fields_set or not shared.told
    raised = (
        f"set CAAL_NUM_CTX={needed}"
        if settings.api == "ollama" or narrowed
        else f"start the model's server with a context of {needed} tokens"
    )
    return found, f"{raised}, pin fewer tools, or lower CAAL_TOOL_TOKENS to have more on demand"


logger = logging.getLogger("caal_node")


class AskingAgent(Protocol):
    """What is asked for: an agent's tools and model, both of which may change at any time."""

    @property
    def table(self) -> ToolTable: ...

    @property
    def model(self) -> llm.LLM: ...


class PromptBuilder:
    """Builds the questions of one conversation."""

    def __init__(
        self,
        settings: Settings,
        data: ToolDataCache,
        agent: AskingAgent,
        policies: PolicyChecks | None = None,
        on_demand: ToolsOnDemand | None = None,
        *,
        switches: Switches | None = None,
        window_turns: int = MAX_TURNS,
    ) -> None:
        """Without `on_demand` all tools stand in front of the conversation. Without `switches` the
        checks are as the settings have them.

        `policies` say which tools the model is not to see; only a reload may change their answer.
        """
        self._on_demand: Final = on_demand
        self._policies: Final = policies
        self._settings: Final = settings
        self._switches: Final = switches or Switches(settings)
        self._data: Final = data
        self._agent: Final = agent
        self._context: Final = ContextBuilder(
            window_turns, int(settings.num_ctx * WINDOW_SHARE), data
        )
        self._is_native = False
        """Whether the model is asked with its server's own tool calls."""
        self._told_context: int | None = None
        """The tokens that the model's server says it reads."""
        self._shared = budget_of(settings, None)
        """How they are shared out."""
        self._offered: tuple[PromptTools, int, PromptTools] | None = None
        self._settled: tuple[ToolTable, ContextBudget] | None = None
        """For which table and context it is settled whether tools are on demand."""
        self._examples: tuple[ToolTable, Mapping[str, tuple[Example, ...]]] | None = None
        self._seen: (
            tuple[ToolTable, tuple[llm.Tool, ...], tuple[object, ...] | None, list[llm.Tool]] | None
        ) = None
        """The tools that the model sees of those that were given, by a state of the policies."""
        self._last: tuple[ToolTable, tuple[llm.Tool, ...], PromptTools] | None = None

    def offered(self, tools: Sequence[llm.Tool]) -> list[llm.Tool]:
        """Return those of `tools` that the model sees, as the table has them, tier by tier.

        Those that the table does not know come last.
        """
        table, given = self._agent.table, tuple(tools)
        state = self._policies and self._policies.state
        if self._seen is None or self._seen[0] is not table or self._seen[1:3] != (given, state):
            position = {entry.exposed: index for index, entry in enumerate(table)}
            # LiveKit's toolsets may bring tools that the table does not know.
            seen = [
                tool
                for tool in given
                if not self._is_hidden(table.get(tool.id) or unlisted(tool.id, ""), tool)
            ]
            seen.sort(key=lambda tool: position.get(tool.id, len(position)))
            self._seen = table, given, state, seen
        return list(self._seen[3])

    def _is_hidden(self, entry: ToolEntry, tool: llm.Tool) -> bool:
        """Say whether the model is not to see a tool, as nobody may call it here.

        A tool that a class below has added to the list of its node is run by LiveKit itself. Such
        a one is hidden too where a rule could not stop it: in a dry run, and where a call would
        need a yes.
        """
        if self._policies is None or is_guarded(tool):
            return self._policies is not None and self._policies.hide(entry)
        return (
            self._settings.dry_run
            or self._policies.hide(entry)
            or not self._policies.lets_run(entry)
        )

    @property
    def left_out(self) -> frozenset[str]:
        """The tools for which the last question's context had no room."""
        if self._offered is None:
            return frozenset()
        given, _, fitting_ones = self._offered
        return frozenset(given.names).difference(fitting_ones.names)

    @property
    def shown(self) -> PromptTools:
        """The tools of the last question, as far as they stand in front of a conversation."""
        return self._offered[2] if self._offered is not None else PromptTools()

    def examples(self) -> Mapping[str, tuple[Example, ...]]:
        """Return example utterances by exposed name: the settings', else the author's."""
        table = self._agent.table
        if self._examples is None or self._examples[0] is not table:
            found = {**table.prompt_tools.examples, **self._configured_examples()}
            self._examples = table, found
        return self._examples[1]

    async def next_question(
        self, history: Sequence[Item], tools: list[llm.Tool], *, stream: bool, may_call: bool
    ) -> tuple[Question, list[llm.Tool]]:
        """Build the next question, with what may be run in reply to it.

        The model is told of tools that its person's newest words may need. They are added to
        LiveKit's own list, which is `tools` unless a class below has given another one.
        """
        self._look_at_model()
        offered = self.offered(tools)
        front = self._front(history, offered)
        if self._on_demand is not None and front is not None:
            await self._on_demand.look_at(history, front)
        question = self._question(history, offered, front, stream=stream, may_call=may_call)
        if self._on_demand is not None and question.head is not None:
            offered = self._on_demand.function_tools(question.tools, offered)
            livekits = LIVEKITS_LIST.get(tools)
            livekits += [tool for tool in offered if tool not in livekits]
        return question, offered

    def first_question(self, items: Sequence[Item], tools: Sequence[llm.Tool]) -> Question:
        """Build what every question begins with. Of tools on demand it has a few, as samples."""
        offered = self.offered(tools)
        question = self.question(items, offered)
        if self._on_demand is None or question.head is None or self._is_native:
            return question
        samples = self._on_demand.samples(offered, question.head, self.examples())
        return replace(question, tools=samples)

    def is_cut_behind(self, answer: str) -> bool:
        """Say whether what is said next cuts the conversation, once it has `answer` at its end."""
        return self._context.is_cut_behind(answer)

    def web_search(self, question: Question, tools: Sequence[llm.Tool]) -> Sequence[ToolSchema]:
        """Return the tools among which the web's is, for replies that cannot know an answer."""
        if self._on_demand is None or question.head is None:
            return question.tools.schemas
        return self._on_demand.web_search(tools)

    def question(self, history: Sequence[Item], tools: Sequence[llm.Tool]) -> Question:
        """Build a streamed question from `tools`, as `offered` returns them, and as much of
        `history` as fits beside them."""
        self._look_at_model()
        return self._question(history, tools, self._front(history, tools))

    def _question(
        self,
        history: Sequence[Item],
        tools: Sequence[llm.Tool],
        front: PromptTools | None,
        *,
        stream: bool = True,
        may_call: bool = True,
    ) -> Question:
        """Build the next question from `tools` and as much of `history` as fits beside them.

        Args:
            tools: Those that LiveKit has, as `offered` returns them.
            front: Those in front of the conversation, as `_front` returns them.
            stream: Whether the reply is heard while it is being written. It is in any case where
                nothing can be called, as nothing has to be detected there.
            may_call: Whether calls may be made.
        """
        if self._on_demand is None or front is None:
            shown = at_hand = self._fitting(self._prompt_tools(tools), history)
            items = self._context.build(history, self._tokens(shown))
        else:
            build = partial(self._context.build, history, self._front_tokens(front))
            offer = self._on_demand.offer(tools, {} if self._is_native else self.examples())
            items = self._on_demand.window(history, offer, front, lambda told: build(told=told))
            at_hand = self._on_demand.at_hand(items, tools, front, self.examples())
        return Question(
            items,
            at_hand,
            front,
            stream=stream or not at_hand,
            may_call=may_call,
            limits=self._settings.tool_calls,
            judges_calls=self._switches.checks.needless_calls,
            references=self._references(items),
        )

    def _front(self, history: Sequence[Item], tools: Sequence[llm.Tool]) -> PromptTools | None:
        """Return the tools that stand in front of a conversation which is told of the others.

        None: all of them stand there.
        """
        self._settle_front(history, tools)
        if self._on_demand is None or not self._on_demand.is_on:
            return None
        return self._fitting(self._on_demand.front(tools, self.examples()), history)

    def in_front(self, history: Sequence[Item], tools: Sequence[llm.Tool]) -> PromptTools:
        """Return the tools in front of a conversation, as far as the model sees them."""
        offered = self.offered(tools)
        front = self._front(history, offered)
        return self._fitting(self._prompt_tools(offered), history) if front is None else front

    def choose_front(
        self, told: int | None, history: Sequence[Item], tools: Sequence[llm.Tool]
    ) -> None:
        """Choose the tools in front of a conversation for a model whose server reads `told` tokens.

        A conversation does so by itself, with its own model.
        """
        self._told_context, self._shared = told, budget_of(self._settings, told)
        self._settle_front(history, self.offered(tools))

    def _settle_front(self, history: Sequence[Item], tools: Sequence[llm.Tool]) -> None:
        """Settle which tools stand in front of the conversation, once for a table and a context.

        Where the model's context has no room for all, tools are put on demand.
        """
        on_demand, table, shared = self._on_demand, self._agent.table, self._shared
        if on_demand is None or self._settled == (table, shared):
            return
        head = _fixed_tokens(history)
        if self._settled is None or self._settled[1] != shared:
            on_demand.allow(front_tokens(self._settings, shared, head))
        self._settled = table, shared
        given, most = self._prompt_tools(tools), shared.tools(head)
        if not on_demand.is_on and self._tokens(given) > most:
            on_demand.shorten(min(most, given.schema_tokens - 1))

    def _references(self, items: Sequence[WindowItem]) -> tuple[Reference, ...]:
        if not self._switches.checks.references:
            return ()
        said = [item for item in items if not isinstance(item, ToolsItem)]
        return references_in(said, self._data)

    def shorten(self, error: Exception, history: Sequence[Item], tools: Sequence[llm.Tool]) -> bool:
        """Return whether `error` is a full context and the next `question` can leave more out."""
        if spoken_key(error) != ModelContextFull.spoken:
            return False
        self._look_at_model()
        asked, tools = self._offered, self.offered(tools)
        front = self._front(history, tools)
        shown = front or self._fitting(self._prompt_tools(tools), history)
        if asked is not None and asked[2].names != shown.names:
            return True  # The server has told its context since.
        if self._on_demand is None or front is None:
            return self._context.tighten(history, self._tokens(shown))
        return self._context.tighten(history, self._front_tokens(front), self._on_demand.told)

    def _look_at_model(self) -> None:
        """Note what the agent's model is like now. It is the same throughout a question."""
        model = self._agent.model
        stats = model.retry_policy.stats if isinstance(model, LLM) else None
        self._is_native = stats is not None and stats.native
        known = stats and stats.capabilities
        told = known and known.context_tokens
        if told != self._told_context:
            self._told_context, self._shared = told, budget_of(self._settings, told)
        self._context.share(self._shared)
        self._context.calibrate(stats and stats.truncation.most)

    def _fitting(self, tools: PromptTools, history: Sequence[Item]) -> PromptTools:
        """Return as many of `tools` as the model's context has room for beside the talk."""
        shared, head = self._shared, _fixed_tokens(history)
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
        table, given = self._agent.table, tuple(tools)
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
            if examples and name in self._agent.table
        }

    def _tokens(self, tools: PromptTools) -> int:
        """Estimate the tokens in front of the conversation: those of schemas and examples."""
        # Examples are shown only where calls are asked for by text.
        return tools.schema_tokens + (0 if self._is_native else tools.example_tokens)

    def _front_tokens(self, front: PromptTools) -> int:
        """Estimate the tokens in front of a conversation that is told of tools."""
        return self._tokens(front) + (CARRIER_TOKENS if self._is_native else 0)


def _fixed_tokens(history: Sequence[Item]) -> int:
    """Estimate the tokens of the instructions that a conversation begins with.

    It is rounded up, as instructions that hold the time of day must not change what is offered.
    """
    tokens = items_tokens([*takewhile(lambda item: isinstance(item, SystemItem), history)])
    return -(-tokens // FIXED_STEP) * FIXED_STEP


# The system prompt that the settings name.

INSTRUCTIONS_MAX_BYTES: Final = 256 * 1024
"""More than any context holds."""


def instructions_of(settings: Settings) -> str:
    """Return the text of the file CAAL_INSTRUCTIONS, or the built-in prompt.

    Raises:
        ConfigError: The file cannot be read.
    """
    if (path := settings.instructions) is None:
        return read("system.md")
    try:
        return read_capped(path, INSTRUCTIONS_MAX_BYTES).decode().strip()
    except (OSError, ValueError) as error:
        why = getattr(error, "strerror", None) or type(error).__name__
        raise ConfigError(
            f"CAAL_INSTRUCTIONS: {path} cannot be read ({why}); "
            f"name a UTF-8 text file of at most {INSTRUCTIONS_MAX_BYTES // 1024} KiB, or unset it"
        ) from error


def instructions_text(instructions: str | Instructions) -> str:
    """Render instructions as LiveKit does for a spoken turn."""
    if isinstance(instructions, str):
        return instructions
    return instructions.render_static(modality="audio")
