"""Ways of asking for `small_models` that take the whole agent: its tools in front, or on demand.

A real `CaalAgent` holds each request as a conversation of its own in a session without a room, so
its prompt builder, its ranking, its search and the reading of its replies are those of a turn. Only
searches run; what else the model calls is what is scored, and ends the turn.
"""

from __future__ import annotations

import re
from collections.abc import AsyncGenerator, Callable, Mapping, Sequence
from contextlib import aclosing, asynccontextmanager
from typing import Any, Final

from livekit.agents import AgentSession, ModelSettings, TurnHandlingOptions, llm
from livekit.agents.voice.agent_session import SessionConnectOptions

from caal_node import CaalAgent
from caal_node.core.tool_spec import ToolSpec
from caal_node.models.llm import LLM
from caal_node.testing import ScriptedToolSource, plain_settings
from mcp_bridge import DISCOVER
from tests.bench.asked_ways import PATIENT, REPLY_TOKENS, Ask, Setting, arguments_of
from tests.bench.spoken_requests import Called, Heard, Requests
from tests.stand_ins import many_tools

AT_ONCE: Final = str(1 << 20)
"""A budget of tokens under which no tool is on demand."""
RIVALS: Final = re.compile(
    r"forecast|current_weather|weather_alerts|_light|thermostat|floor_heating|radiator|lock_door"
    r"|garage_door|garden_gate|event|appointment|meeting_room|send_mail|draft_mail|play_music"
    r"|playback|search_music|to_shopping|exchange_rate|stock_price|find_trains|departure_board"
    r"|write_note|append_note|dishwasher|paper_printer|radio_alarm|television|add_task|reminder"
)
"""Tools that would be as right for one of the sixty requests, or that make one answerable which is
to need none. They are not among the others, as nobody could say then what is right."""


def among(requests: Requests, count: int) -> tuple[ToolSpec, ...]:
    """Return `count` tools: those of the requests with their examples, spread among others."""
    specs = specs_of(requests)
    others = [
        ToolSpec("mcp", "home", tool.name, tool.name, tool.description or "", tool.input_schema)
        for tool in many_tools.tools()
        if not RIVALS.search(tool.name)
    ][: max(0, count - len(specs))]
    step = len(others) // len(specs)
    mixed: list[ToolSpec] = []
    for number, spec in enumerate(specs):
        mixed += [spec, *others[number * step : (number + 1) * step]]
    return (*mixed, *others[len(specs) * step :])


def specs_of(requests: Requests) -> tuple[ToolSpec, ...]:
    functions = [tool["function"] for tool in requests.tools]
    return tuple(
        ToolSpec(
            "mcp",
            "home",
            function["name"],
            function["name"],
            function["description"],
            function["parameters"],
            requests.examples[function["name"]],
        )
        for function in functions
    )


def in_front(count: int = 0) -> Callable[[Setting], Any]:
    """The agent with the requests' own tools, among `count` in all where that is more, all of them
    in front of the conversation."""
    return _agent(lambda requests: among(requests, count), CAAL_TOOL_TOKENS=AT_ONCE)


def on_demand(count: int) -> Callable[[Setting], Any]:
    """The agent with the same tools among others, told on demand within the default budget."""
    return _agent(lambda requests: among(requests, count))


def _agent(
    tools: Callable[[Requests], Sequence[ToolSpec]], **values: str
) -> Callable[[Setting], Any]:
    @asynccontextmanager
    async def opened(setting: Setting) -> AsyncGenerator[Ask]:
        model = LLM(backend=setting.backend, native_tools=None, max_tokens=REPLY_TOKENS)
        specs, searches = tools(setting.requests), list[int]()

        async def say(words: str, *, warm: bool) -> Heard:
            agent = FirstCalls(specs, plain_settings(**values), warm=warm)
            session: AgentSession[Any] = AgentSession(
                llm=model,
                vad=None,
                turn_handling=TurnHandlingOptions(turn_detection=None),
                conn_options=SessionConnectOptions(llm_conn_options=PATIENT),
            )
            await session.start(agent)
            try:
                if warm:
                    await agent.warmed()
                    return Heard((), "", 0.0, 0)
                began = setting.clock()
                await session.run(user_input=words)
                seconds = setting.clock() - began
            finally:
                await session.aclose()
            searches.append(agent.searches)
            return Heard(tuple(agent.calls), "".join(agent.spoken), seconds, agent.prompt_tokens)

        await say("", warm=True)
        # The backend is its owner's to close, so the model stays open here.
        yield lambda words: say(words, warm=False)
        stats = model.retry_policy.stats
        native = "natively" if stats.native else "by text"
        print(
            f"  is asked {native}; {dict(stats.signals)} {dict(stats.steps)}; "
            f"searched in {sum(map(bool, searches))} of {len(searches)} requests",
            flush=True,
        )

    return opened


class FirstCalls(CaalAgent):
    """Notes what its model calls, and lets only searches be run."""

    def __init__(self, specs: Sequence[ToolSpec], settings: Any, *, warm: bool) -> None:
        self.calls: list[Called] = []
        self.spoken: list[str] = []
        self.searches = 0
        self.prompt_tokens = 0
        """Of the first request."""
        super().__init__(
            settings=settings, tiers={"mcp": ScriptedToolSource(*specs, answer=_never)}, warm=warm
        )

    async def llm_node(
        self, chat_ctx: llm.ChatContext, tools: list[llm.Tool], model_settings: ModelSettings
    ) -> AsyncGenerator[Any]:
        async with aclosing(super().llm_node(chat_ctx, tools, model_settings)) as pieces:
            async for piece in pieces:
                if isinstance(piece, llm.ChatChunk) and not self._goes_on(piece):
                    continue
                if isinstance(piece, str):
                    self.spoken.append(piece)
                yield piece

    def _goes_on(self, chunk: llm.ChatChunk) -> bool:
        """Note what `chunk` holds; return whether LiveKit is to have it."""
        if chunk.usage is not None:
            self.prompt_tokens = self.prompt_tokens or chunk.usage.prompt_tokens
        if chunk.delta is None:
            return True
        self.spoken.append(chunk.delta.content or "")
        made = [call for call in chunk.delta.tool_calls if call.name != DISCOVER]
        self.searches += len(chunk.delta.tool_calls) - len(made)
        self.calls += [(call.name, arguments_of(call.arguments)) for call in made]
        return not made


async def _never(spec: ToolSpec, arguments: Mapping[str, Any]) -> Any:
    raise AssertionError(f"{spec.name} was run")
