"""`CaalAgent` is a LiveKit agent: a local model decides its turns, and cues announce its tools.

The node decides, LiveKit executes: `llm_node` yields calls as `delta.tool_calls`, LiveKit's
executor runs them once the speech is authorised and calls the node again with the results. So a
turn that preemptive generation throws away has run no tool, and LiveKit makes the history items,
events, spans and handoffs of every call, and applies mocks to it.
"""

# pyright: reportUnknownMemberType=false, reportUnknownArgumentType=false
# pyright: reportUnknownVariableType=false, reportUnknownParameterType=false
# pyright: reportMissingTypeArgument=false, reportUnknownLambdaType=false
# LiveKit leaves the event types of its rooms, models and sessions open, so they are half unknown.

from __future__ import annotations

import asyncio
import logging
from collections.abc import AsyncGenerator, AsyncIterable, Callable, Mapping, Sequence
from contextlib import AbstractAsyncContextManager, aclosing
from dataclasses import dataclass, replace
from itertools import chain
from typing import Any, ClassVar, Final, Literal

from livekit import rtc
from livekit.agents import Agent, FlushSentinel, ModelSettings, llm
from livekit.agents.llm.tool_context import get_fnc_tool_names
from livekit.agents.types import NOT_GIVEN

from caal_node.agent_options import given_options
from caal_node.answers.checked_reply import CheckedReply
from caal_node.config.settings import Settings, load_settings
from caal_node.config.switches import Switches
from caal_node.context.builder import MAX_TURNS
from caal_node.context.tool_data import ToolDataCache
from caal_node.control.listener import AgentTools, change_model
from caal_node.control.messages import (
    ModelReport,
    ModelRequest,
    ReloadReport,
    ReloadRequest,
    SwitchReport,
    SwitchRequest,
    compare_tables,
)
from caal_node.core.errors import ConfigError
from caal_node.core.events import TierName
from caal_node.core.items import Item, SystemItem, Turn, UserItem
from caal_node.core.paths import used_tools
from caal_node.core.prompt_files import sentence
from caal_node.core.tool_spec import Example, ToolSpec
from caal_node.language.hotwords import choices
from caal_node.models.chat_context import (
    ClockSteps,
    ItemsOfContext,
    known_failure,
    spoken_key,
    to_chat_ctx,
)
from caal_node.models.embedding import make_embedder
from caal_node.models.llm import LLM, SERVER_RUN
from caal_node.models.plugin_reply import as_heard
from caal_node.models.question import Question
from caal_node.models.strategies.base import TurnClock
from caal_node.network.rooms import enforce_with_rooms
from caal_node.prompt_builder import (
    PromptBuilder,
    budget_of,
    front_tokens,
    instructions_of,
    instructions_text,
)
from caal_node.redaction.outgoing import OutgoingRedaction
from caal_node.room.cue_player import CueSink
from caal_node.room.hooks import Hooks
from caal_node.session_services import OwnersListener, SessionServices
from caal_node.tools.call_middleware import CallMiddleware
from caal_node.tools.caller_of_call import AgentPlace
from caal_node.tools.direct_calls import DirectCalls
from caal_node.tools.middleware.policy_check import LOGGED, PolicyChecks
from caal_node.tools.middleware.standard import effective_middleware
from caal_node.tools.pipeline import TURN_S, Gates, Pipeline
from caal_node.tools.redaction import Redaction
from caal_node.tools.remote_toolset import RemoteToolset
from caal_node.tools.source import ToolProvider
from caal_node.tools.sources.configured import configured_tiers
from caal_node.tools.sources.methods import OwnTools, original_of
from caal_node.tools.table import ToolEntry, ToolTable
from caal_node.tools.tool_search import PromptHead, UsedTools
from caal_node.tools.undo import UNDO, undo_for
from caal_node.tools_on_demand import LIVEKITS_LIST, ToolsOnDemand
from caal_node.toolsets.base import ConfiguredToolset
from caal_node.toolsets.registry import configured_toolsets, refuse_names
from mcp_bridge import ServerStatus
from mcp_bridge.core.computing import computed

logger = logging.getLogger("caal_node")

NAMES_S: Final = 15.0
"""Seconds in which a toolset tells which names are said to it."""


class CaalAgent(Agent):
    """An agent with three tiers of tools: its own methods, n8n workflows and MCP servers.

    Args:
        instructions: The system prompt. None takes the one of the settings, or the built-in one.
        settings: The settings. None reads them from the environment and `caal.toml`. Their
            network holds for the whole process, beside that of other agents, and for good.
        tools: Function tools besides the methods of the class.
        tiers: Remote tiers by name, in place of those that the settings ask for.
        gates: The rules with which the pipeline allows, delays and redacts calls, in place of those
            of the settings.
        on_event: It is called with every event of the conversation, on the event loop. Like the
            hooks, it may be async: it is awaited before the next event, in order.
        hooks: Three callbacks for a simple front end.
        cue_sink: It plays the cues, in place of an audio track in the room.
        warm: Whether the model is loaded, and reads the prompt's head, before the first turn; None
            is yes.
        agent_options: Anything else that LiveKit's `Agent` takes.
    """

    own_tools: ClassVar[Literal["livekit", "bounded"]] = "livekit"
    """How the agent's own function tools run: as in plain LiveKit, or with the deadline, the short
    results and the order of remote ones."""
    speakable: ClassVar[bool] = True
    """Whether the model's text (`5 km/h`, tables, links) is made speakable. See docs/speech.md."""
    window_turns: ClassVar[int] = MAX_TURNS
    """Turns that a prompt has at most."""

    def __init__(
        self,
        *,
        instructions: str | None = None,
        settings: Settings | None = None,
        tools: Sequence[llm.Tool | llm.Toolset] | None = None,
        tiers: Mapping[TierName, ToolProvider] | None = None,
        gates: Gates | None = None,
        on_event: OwnersListener | None = None,
        hooks: Hooks | None = None,
        cue_sink: CueSink | None = None,
        warm: bool | None = None,
        **agent_options: Any,
    ) -> None:
        if self.own_tools not in ("livekit", "bounded"):
            raise ConfigError(f"{type(self).__name__}.own_tools: write 'livekit' or 'bounded'.")
        given = given_options()
        tiers = given.get("tiers") if tiers is None else tiers
        self.settings = settings or given.get("settings") or load_settings()
        self.switches = Switches(self.settings)
        """The cues and the checks that are on in this conversation."""
        enforce_with_rooms(self.settings.network)
        self.tool_data = ToolDataCache()
        self._clock_steps = ClockSteps()
        self._items_of = ItemsOfContext()
        self._turn_clock = TurnClock()
        self.reply_failure: Exception | None = None
        """Why the model's last reply failed, of which a person hears a sentence; else None."""
        gates = gates or Gates()
        middleware = effective_middleware(self.settings, gates.middleware, self.switches)
        gates = replace(gates, middleware=middleware)
        shapes = self.settings.redaction.secret_shapes
        redaction = Redaction(known=self.settings.secrets, shapes=shapes)
        outgoing = OutgoingRedaction(self.settings.redaction, redaction.known)
        self._pipeline = Pipeline(
            self.tool_data,
            gates=gates,
            redaction=redaction,
            outgoing=outgoing,
            timeout_s=self.settings.tool_timeout,
        )
        self.policies = PolicyChecks(self.middleware, AgentPlace(self))
        """What the policies in `middleware` say of the tools, without a call."""
        self._services = SessionServices(
            self,
            self._pipeline.outcomes,
            self._pipeline.open_calls,
            self._pipeline.events,
            outgoing,
            on_event=on_event or given.get("on_event"),
            hooks=hooks,
            cue_sink=cue_sink or given.get("cue_sink"),
            warm=given.get("warm", True) if warm is None else warm,
        )
        embedder = make_embedder(self.settings)
        self._remote = RemoteToolset(
            configured_tiers(self.settings) if tiers is None else tiers,
            self._pipeline,
            own=self,
            stay=self._services,
            head=PromptHead(
                front_tokens(self.settings, budget_of(self.settings, None), 0),
                self.settings.pinned_tools,
                self.policies,
            ),
            embedder=embedder,
            used=UsedTools(used_tools(type(self).__name__)),
        )
        self._prompt_builder = PromptBuilder(
            self.settings,
            self.tool_data,
            self,
            self.policies,
            ToolsOnDemand(
                self._remote,
                self.policies,
                self._services,
                switches=self.switches,
                window_turns=self.window_turns,
            ),
            switches=self.switches,
            window_turns=self.window_turns,
        )
        self._pipeline.prompts = self._prompt_builder
        self._own_tools = OwnTools(
            type(self).__name__,
            self._pipeline,
            self._remote,
            bounded=self.own_tools == "bounded",
        )
        direct = DirectCalls(self, self._remote, self._pipeline, self._own_tools)
        self.on_tools = AgentTools(self._remote, direct, self.policies, self._prompt_builder)
        """Answers the requests of the Tools API."""
        toolsets = configured_toolsets(
            self.settings,
            announcer=self._services.announcer,
            events=self._pipeline.events,
            embedder=embedder,
        )
        own = [*(tools or ()), *llm.find_function_tools(type(self))]
        refuse_names(toolsets, get_fnc_tool_names(own))
        for each in toolsets:
            self._pipeline.redaction.add(each)
        super().__init__(
            instructions=instructions_of(self.settings) if instructions is None else instructions,
            tools=[*(tools or ()), *toolsets, *undo_for([*own, *toolsets]), self._remote],
            **agent_options,
        )
        # LiveKit takes the node from the agent itself, whatever a class below makes of it.
        self.llm_node = self._with_guards(self.llm_node)
        # Of the instance too: with one of the class, LiveKit would begin speech to text anew at
        # each question, and lose the words that are under way.
        self.stt_node = self._services.hearing.of_node(self.stt_node)
        self.on_user_turn_completed = self._services.hearing.of_turn(self.on_user_turn_completed)

    def add_listener(self, listener: OwnersListener) -> None:
        """Call `listener` with every event, as `on_event` is, from the next session on."""
        self._services.add_listener(listener)

    async def listeners_done(self) -> None:
        """Wait until async listeners and hooks have ended. The conversation waits for none."""
        await self._services.listeners_done()

    @property
    def table(self) -> ToolTable:
        """Every tool of all tiers, by its exposed name, whether prompts show it or not."""
        return self._remote.table

    @property
    def head_entries(self) -> tuple[ToolEntry, ...]:
        """The tools that stand in front of every prompt. Where they are not all of the table, the
        first is the search, and the others of the table are told on demand."""
        return self._remote.head_entries

    @property
    def shown_entries(self) -> tuple[ToolEntry, ...]:
        """Those of `head_entries` that the model sees: no rule hides them, and its context has room
        for them."""
        shown = set(self._prompt_builder.in_front(*self._beginning()).names)
        return tuple(entry for entry in self.head_entries if entry.exposed in shown)

    @property
    def search(self) -> ToolEntry:
        """The tool by which the model finds those that are on demand. It is in no table."""
        return self._remote.search

    @property
    def middleware(self) -> list[CallMiddleware]:
        """The owner's rules about calls, outermost first. A change holds from the next call on."""
        return self._pipeline.middleware

    @property
    def failed(self) -> Mapping[str, str]:
        """The tool sources that could not be listed, each with the reason."""
        return self._remote.failed

    @property
    def servers(self) -> tuple[ServerStatus, ...]:
        """The status of every MCP server of the configuration."""
        return self._remote.servers

    @property
    def tools(self) -> list[llm.Tool | llm.Toolset]:
        """The agent's tools, as in any LiveKit agent, and the toolset of the remote tiers.

        When LiveKit calls the function tools of this list, they run through the pipeline.
        """
        return self._own_tools.guarded(super().tools)

    async def update_tools(self, tools: list[llm.Tool | llm.Toolset]) -> None:
        """Replace the agent's own tools, as in any LiveKit agent, and the table with them.

        The remote tiers stay, whether or not `tools` has their toolset.
        """
        originals: list[Any] = [original_of(tool) for tool in tools if tool is not self._remote]
        own = [tool for tool in originals if tool is not UNDO]
        own += undo_for(own)
        # First, so that a remote tool whose name is taken now has another one by then.
        await self._remote.refresh(await asyncio.to_thread(self._own_tools.specs, own))
        await super().update_tools([*own, self._remote])

    async def reload_tools(self) -> None:
        """Read the policy and list every tier again. The next turn has the new tools, and the
        history stays."""
        await self.policies.reload()
        await self._remote.reload()

    def cancel_calls(self) -> None:
        """Cancel every call of a tool under way, as somebody at a terminal wants with Ctrl-C."""
        self._pipeline.open_calls.cancel()

    async def warmed(self) -> None:
        """Wait until the model has read the prompt's head, or the attempt has failed."""
        await self._services.warmed.wait()

    async def close_tools(self) -> None:
        """Close every tool source. LiveKit does it when the agent leaves a session."""
        await self._remote.aclose()

    async def llm_node(
        self,
        chat_ctx: llm.ChatContext,
        tools: list[llm.Tool],
        model_settings: ModelSettings,
    ) -> AsyncGenerator[llm.ChatChunk | str | FlushSentinel]:
        if self._services.announcer.is_answer(chat_ctx):
            # Whoever has asked gets it. So the model sees that it is dealt with, too.
            yield sentence("passed_on")
            return
        self._clock_steps.follow(chat_ctx, self._chat_ctx, self.session.history)
        history = self._items_of.read(chat_ctx)
        turn = Turn(history)
        if turn.words is not None and turn.words.is_taken_back:
            yield sentence("taken_back")
            return
        rounds = turn.rounds
        has_time = self._turn_clock.lasts(history) < TURN_S
        may_call = has_time and rounds < self._max_rounds and model_settings.tool_choice != "none"
        complete = rounds == 0 and may_call and self.settings.detection == "complete"
        question, offered = await self._prompt_builder.next_question(
            history, tools, stream=not complete, may_call=may_call
        )
        self.reply_failure = None
        spoke, called = "", False
        reply = CheckedReply(
            question,
            history,
            checks=self.switches.checks,
            runs_here=not self.settings.server_runs_tools,
            model=_RoundsModel(self, self._services, chat_ctx, offered, model_settings),
            specs=self.table.specs,
            web_search=self._prompt_builder.web_search(question, offered),
            events=self._pipeline.events,
        )
        try:
            async with aclosing(reply.chunks()) as chunks:
                async for chunk in chunks:
                    if chunk.delta and chunk.delta.extra and SERVER_RUN in chunk.delta.extra:
                        self._services.note_server_run(chunk.delta.extra[SERVER_RUN])
                        continue
                    if chunk.delta and chunk.delta.tool_calls and spoke and not called:
                        self._services.note_interim(chunk.delta.tool_calls[0].call_id, spoke)
                        yield FlushSentinel()  # "Let me check." is heard before the tool runs
                    yield chunk
                    if chunk.delta:
                        # LiveKit runs no call of a round that may only speak.
                        called |= may_call and bool(chunk.delta.tool_calls)
                        spoke += chunk.delta.content or ""
        except Exception as error:
            if not (spoke or called) and self._prompt_builder.shorten(error, history, tools):
                async for piece in self.llm_node(chat_ctx, tools, model_settings):
                    yield piece
                return
            # Whatever it was, nobody may be left in silence; the next turn starts afresh.
            self.reply_failure = error
            if (known := known_failure(error)) is not None:  # its text says what to do
                logger.error("the model's reply failed: %s", known)
            else:
                logger.exception("the model's reply failed")
            self._services.note_reply_failed()
            yield " " + sentence(spoken_key(error)) if spoke else sentence(spoken_key(error))
            return
        finally:
            self._services.note_reply_over()
        if not (spoke or called):
            yield sentence("empty_reply")

    def make_userdata(self) -> Any:
        """Return what tools find as `context.userdata`; None for nothing. Override it.

        The commands (`chat`, `console`, `dev`, `start`) and `Conversation` ask for it once a
        session. A session of one's own is given it: `AgentSession(userdata=...)`.
        """
        return None

    @property
    def model(self) -> llm.LLM:
        """The model that this agent's turns ask: the agent's own, else the session's."""
        model = self.llm or self.session.llm
        if not isinstance(model, llm.LLM):
            raise TypeError("CaalAgent needs an llm.LLM, such as caal_node.LLM, on its session")
        return model

    @property
    def _max_rounds(self) -> int:
        """The rounds of tools in a turn: the settings', else LiveKit's, whose n steps are n + 1."""
        if "max_tool_rounds" in self.settings.model_fields_set:
            return self.settings.max_tool_rounds
        return self.session.options.max_tool_steps + 1

    def examples(self) -> Mapping[str, tuple[Example, ...]]:
        """Return example utterances by exposed name: the settings', else the author's."""
        return self._prompt_builder.examples()

    def first_question(self, words: str | None = None) -> Question:
        """Return the beginning of the next turn's prompt: the instructions, the tools and the
        conversation, with what a person says, if they have begun."""
        items, tools = self._beginning()
        if words is not None:
            items = (*items, UserItem(words))
        return self._prompt_builder.first_question(items, tools)

    def is_cut_behind(self, answer: str) -> bool:
        """Say whether the next words cut the conversation that the model reads, once it has
        `answer` at its end. What came between its last request and the answer is not counted."""
        return self._prompt_builder.is_cut_behind(answer)

    def choose_front(self, context: int | None) -> None:
        """Choose the tools that every prompt begins with, as a session does with its model.

        Args:
            context: The tokens that the model's server says it reads; None if it does not.
        """
        self._prompt_builder.choose_front(context, *self._beginning())

    def _beginning(self) -> tuple[Sequence[Item], list[llm.Tool]]:
        """Return the instructions with the conversation, and the tools that LiveKit is given."""
        tools = llm.ToolContext(self.tools).flatten()
        self._own_tools.guard_in(tools)
        items = self._items_of.read(self.chat_ctx)
        if not any(isinstance(item, SystemItem) for item in items):
            # LiveKit adds the instructions only once every toolset has been set up.
            items = (SystemItem(instructions_text(self.instructions)), *items)
        return items, tools

    async def on_reload(self, request: ReloadRequest) -> ReloadReport:
        """Reload for `/reload-tools`, then say each message, or that a tool is ready.

        Of a tool that was named and is not there nothing is said.
        """
        before = await computed(self.table.fingerprints)
        await self.reload_tools()
        known = self.table
        found: dict[str, str] = {}
        for announcement in request.announcements:
            words = announcement.message
            if announcement.tool_name is not None:
                if (entry := known.named(announcement.tool_name)) is None:
                    continue
                found[announcement.tool_name] = entry.exposed
                spoken = " ".join(entry.exposed.replace("_", " ").split())
                words = words or sentence("tool_ready").replace("{tool}", spoken)
            if words:
                self.session.say(words)
        faults = tuple(map(self._pipeline.redact, self.policies.faults[:LOGGED]))
        failed = [*self.failed, *(["policy"] if faults else [])]
        report = await computed(lambda: compare_tables(before, known.fingerprints(), failed))
        told = {"new": self._remote.new, "faults": faults, "found": found}
        return report.model_copy(update=told)

    async def on_model(self, request: ModelRequest) -> ModelReport:
        """Ask another model from the next reply on, as `/model` requests. The history stays.

        Raises:
            NotAllowed: The request names what the settings do not list; the old model stays.
            ModelError, ConfigError: The model cannot be used, and the old one stays.
        """
        report = await change_model(self.settings, request, self.model)
        self._services.rewarm()
        return report

    def on_switch(self, request: SwitchRequest) -> SwitchReport:
        """Switch cues and checks from the next sound and the next reply on.

        Raises:
            ConfigError: There is no such check, or there are no cues; nothing has changed.
        """
        self.switches.switch(request.cues, request.checks)
        return SwitchReport.model_validate(self.switches.as_json())

    async def tts_node(
        self, text: AsyncIterable[str], model_settings: ModelSettings
    ) -> AsyncGenerator[rtc.AudioFrame]:
        frames = Agent.default.tts_node(self, self._services.report_speech(text), model_settings)
        begins = True
        try:
            async for frame in frames:
                if begins:
                    await self._services.cue_over()
                    begins = False
                yield frame
        except Exception as error:
            self._services.note_speech_failed(error)
            raise

    async def transcription_node(
        self, text: AsyncIterable[Any], model_settings: ModelSettings
    ) -> AsyncGenerator[Any]:
        async for piece in self._services.report_transcript(text):
            yield piece

    def origin(self, tool: str) -> tuple[TierName, str]:
        """Return tier and source of a tool. A name outside the table is one of the agent's own."""
        if (entry := self.table.get(tool)) is None:
            return "agent", type(self).__name__
        return entry.spec.tier, entry.spec.source

    def _with_guards(self, node: Callable[..., Any]) -> Any:
        """Return a node to which LiveKit gives only tools whose calls go through the pipeline.

        LiveKit looks at the list of tools again once the node is called, and runs what is in it.
        """

        def guarding(
            chat_ctx: llm.ChatContext, tools: list[llm.Tool], model_settings: ModelSettings
        ) -> Any:
            self._own_tools.guard_in(tools)
            LIVEKITS_LIST.set(tools)
            return node(chat_ctx, tools, model_settings)

        return guarding

    async def spoken_names(self) -> list[str]:
        """Return names that are said to the tools: those of the toolsets, then allowed values."""
        toolsets = [each for each in super().tools if isinstance(each, ConfiguredToolset)]
        found = list[str]()
        for toolset in toolsets:
            try:
                async with asyncio.timeout(NAMES_S):
                    found += await toolset.spoken_names()
            except Exception as error:  # its tools report what is wrong
                logger.info("%s tells no names: %s", toolset.NAME, type(error).__name__)
        known = {each.NAME for each in toolsets}  # their choices are words such as "off"
        specs = self.table.specs.values()
        allowed = (choices(each.parameters) for each in specs if each.source not in known)
        return [*found, *await asyncio.to_thread(list, chain.from_iterable(allowed))]

    async def own_specs(self) -> list[ToolSpec]:
        """Describe every function tool that is not remote, whoever gave it to the agent."""
        own = [tool for tool in self.tools if tool is not self._remote]
        return await asyncio.to_thread(self._own_tools.specs, own)


@dataclass(frozen=True, slots=True)
class _RoundsModel:
    """The model, asked in one call of `llm_node` with what LiveKit gave that."""

    _agent: CaalAgent
    _services: SessionServices
    _chat_ctx: llm.ChatContext
    _tools: list[llm.Tool]
    _settings: ModelSettings

    @property
    def natively(self) -> bool:
        model = self._agent.model
        return not isinstance(model, LLM) or model.retry_policy.native

    def ask(self, question: Question) -> AbstractAsyncContextManager[AsyncIterable[llm.ChatChunk]]:
        agent = self._agent
        on_request = self._services.note_request()
        model, is_ours = agent.model, isinstance(agent.model, LLM)
        conn_options = agent.session.conn_options.llm_conn_options
        tool_choice = self._settings.tool_choice if question.may_call else "none"
        if question.once:
            conn_options, tool_choice = replace(conn_options, max_retry=0), "required"
        stream = model.chat(
            chat_ctx=self._chat_ctx if is_ours else to_chat_ctx(question.shown_items),
            tools=self._tools,
            tool_choice=tool_choice,
            conn_options=conn_options,
            extra_kwargs={"question": question, "on_request": on_request} if is_ours else NOT_GIVEN,
        )
        return stream if is_ours else as_heard(stream, question)
