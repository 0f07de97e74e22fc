"""The first tier: the agent's own function tools, sent through the pipeline, and with them those
that LiveKit's toolsets, its MCP servers and the session bring.

LiveKit calls and validates them as it does all tools, and they end as they do in plain LiveKit.
What the pipeline adds is the owner's gates, a check of raw schemas, which LiveKit leaves out, JSON
in place of Python's repr, tool data, and an outcome. docs/livekit.md lists all that differs.
"""

# pyright: reportUnknownMemberType=false, reportUnknownArgumentType=false
# pyright: reportUnknownVariableType=false
# LiveKit leaves the types of its tools open, so they are half unknown.

from __future__ import annotations

import functools
import inspect
from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from itertools import islice
from typing import Any, Final, Protocol, TypeAlias, cast, get_type_hints

from livekit.agents import Agent, RunContext, ToolError
from livekit.agents.llm import (
    FunctionTool,
    RawFunctionTool,
    Tool,
    ToolContext,
    ToolResult,
    Toolset,
)
from livekit.agents.llm.utils import is_context_type

from caal_node.core.errors import ToolFailure
from caal_node.core.events import API_CALL
from caal_node.core.tool_spec import ToolSpec, examples_in, without_examples
from caal_node.tools.effects import CallTerms, declared_effect, terms_of
from caal_node.tools.pipeline import Pipeline, error_text
from caal_node.tools.remote_calls import RemoteTool, result_of, said
from caal_node.tools.source import VerbatimResult
from caal_node.tools.table import ToolTable, unlisted
from caal_node.tools.undo import UNDO

HANDOFF_MEMBERS: Final = 1_000
"""Members of a result among which an agent to hand over to is looked for: a list of a million
values would hold the event loop for longer than an audio frame."""
_CONTEXT: Final = "caal_run_context"
"""The keyword by which LiveKit passes the RunContext; no method has a parameter of that name."""

OwnTool: TypeAlias = FunctionTool[..., Any] | RawFunctionTool[..., Any]


class TableOwner(Protocol):
    """What has the agent's present table."""

    table: ToolTable


class OwnTools:
    """An agent's own function tools, and how LiveKit's calls of them run.

    Args:
        source: The agent's class name.
        tools: It owns the agent's table.
        bounded: Whether they are treated as remote tools are.
    """

    def __init__(
        self,
        source: str,
        pipeline: Pipeline,
        tools: TableOwner,
        *,
        bounded: bool,
    ) -> None:
        self._source: Final = source
        self._pipeline: Final = pipeline
        self._tools: Final = tools
        self._bounded: Final = bounded
        self.called_directly: Final[set[str]] = set()
        """Ids of calls by a program, whose results stay what they are: none becomes text."""
        self._guards: dict[OwnTool, OwnTool] = {}
        self._guests: dict[OwnTool, OwnTool] = {}
        self._specs: dict[OwnTool, ToolSpec] = {}

    def guarded(self, tools: Iterable[Tool | Toolset]) -> list[Tool | Toolset]:
        """Return `tools` with each function tool guarded; the rest as it is."""
        known, self._guards = self._guards, {}
        made: list[Tool | Toolset] = []
        for tool in tools:
            if isinstance(tool, (FunctionTool, RawFunctionTool)):
                # The same tool has the same guard each time: LiveKit tells them apart by identity.
                self._guards[tool] = known.get(tool) or self.guard(tool)
                made.append(self._guards[tool])
            else:
                made.append(tool)
        return made

    def guard_in(self, tools: list[Tool]) -> None:
        """Guard, in the very list that LiveKit gives to a node, what nothing guards yet.

        These are the function tools that toolsets and the session bring. LiveKit runs the calls of
        a turn by what its node leaves in this list; toolsets and session keep the tools they have,
        so that another agent of the same session runs them as ever.
        """
        known, self._guests = self._guests, {}
        for index, tool in enumerate(tools):
            if isinstance(tool, (FunctionTool, RawFunctionTool)) and not is_guarded(tool):
                tools[index] = self._guests[tool] = known.get(tool) or self.guard(tool)

    def guard(self, tool: OwnTool) -> OwnTool:
        """Return the same tool guarded, or as it is if it is already."""
        return tool if is_guarded(tool) else guarded(tool, functools.partial(self._run, tool))

    def specs(self, tools: Sequence[Tool | Toolset]) -> list[ToolSpec]:
        """Describe the function tools of `tools`, those of toolsets too, for the table.

        It takes 1.5 ms for each tool that is new, and may run in a thread.
        """
        functions = [original_of(tool) for tool in ToolContext(tools).function_tools.values()]
        known = self._specs
        # Two threads may describe the same tools; what each makes is equal.
        self._specs = {
            tool: known.get(tool) or spec_of(tool, self._source)
            for tool in cast("list[OwnTool]", functions)
        }
        return list(self._specs.values())

    async def _run(
        self,
        tool: OwnTool,
        name: str,
        call_id: str,
        arguments: Mapping[str, Any],
        execute: Callable[[], Awaitable[Any]],
        *,
        validate: bool,
        deadline: bool,
        context: RunContext[Any],
    ) -> Any:
        # One that has come after the table was made is in none.
        entry = self._tools.table.get(name) or unlisted(name, self._source, declared_effect(tool))
        call = entry, call_id, arguments, execute
        text = _never if call_id in self.called_directly else becomes_text
        try:
            terms = terms_of(tool)
            if tool is UNDO:
                value = await self._pipeline.undo(
                    entry, call_id, execute, becomes_text=text, context=context
                )
            elif self._bounded or terms is not None:
                deadline |= terms is not None
                value = await self._pipeline.run(
                    *call, validate=validate, deadline=deadline, becomes_text=text, context=context
                )
            else:
                value = await self._pipeline.run_own(
                    *call, validate=validate, deadline=deadline, becomes_text=text, context=context
                )
        except ToolFailure as failure:
            if call_id.startswith(API_CALL):
                raise ToolError(error_text(failure)) from failure
            value = result_of(failure, self._pipeline.redact)
        if isinstance(value, VerbatimResult) and not call_id.startswith(API_CALL):
            return said(value, context)
        return value


class RunOwn(Protocol):
    """Runs one call of an agent's own tool.

    Raises:
        ToolError: in the author's words, or with the error that the model is to read.
        Exception: what the tool raised; LiveKit logs it.
    """

    async def __call__(
        self,
        name: str,
        call_id: str,
        arguments: Mapping[str, Any],
        execute: Callable[[], Awaitable[Any]],
        *,
        validate: bool,
        deadline: bool,
        context: RunContext[Any],
    ) -> Any: ...


class _Guard:
    """What the two kinds of guarded tools have in common: they are equal to the tool inside.

    So `agent.tools.remove(tool)` and `tool in agent.tools` work with the tool that was given.
    """

    original: OwnTool

    def __eq__(self, other: object) -> bool:
        return self is other or original_of(other) is self.original

    def __hash__(self) -> int:
        return hash(self.original)


class _GuardedFunctionTool(_Guard, FunctionTool[..., Any]):
    pass


class _GuardedRawFunctionTool(_Guard, RawFunctionTool[..., Any]):
    pass


def original_of(tool: object) -> object:
    """Return the author's own tool for one that `guarded` made; any other one as it is."""
    return tool.original if isinstance(tool, _Guard) else tool


def is_guarded(tool: object) -> bool:
    """Say whether calls of a tool go through the pipeline."""
    return isinstance(tool, (_Guard, RemoteTool))


def guarded(tool: OwnTool, run: RunOwn) -> OwnTool:
    """Return the same tool, whose calls by LiveKit go through `run`.

    LiveKit passes the RunContext by a parameter that is added here, and that it shows to no model.
    Without one, somebody calls the tool as a plain function, and it is one.

    Raises:
        TypeError: a parameter has no type.
    """
    signature = inspect.signature(tool)
    parameters = list(signature.parameters.values())
    if parameters and parameters[-1].kind is inspect.Parameter.VAR_KEYWORD:
        return tool  # **kwargs has no schema; LiveKit refuses such a tool itself
    context_name = _context_parameter(tool, signature)
    raw = isinstance(tool, RawFunctionTool)
    for each in () if raw else parameters:
        if each.annotation is inspect.Parameter.empty:  # LiveKit: KeyError, in the first turn
            name = each.name
            raise TypeError(
                f"the tool {tool.info.name}: its parameter {name} has no type, "
                f"so no model can be told what to give; write {name}: str"
            )

    @functools.wraps(tool, updated=())
    async def guard(*args: Any, **kwargs: Any) -> Any:
        context: RunContext[Any] | None = kwargs.pop(_CONTEXT, None)
        if context is None:
            return await tool(*args, **kwargs)
        bound = signature.bind(*args, **kwargs).arguments
        arguments = {name: value for name, value in bound.items() if name != context_name}
        return await run(
            tool.info.name,
            context.function_call.call_id,
            arguments["raw_arguments"] if raw else arguments,
            lambda: _awaited(tool, tool(*args, **kwargs)),
            validate=raw,
            deadline=context_name is None,
            context=context,
        )

    extra = inspect.Parameter(
        _CONTEXT, inspect.Parameter.KEYWORD_ONLY, default=None, annotation=RunContext
    )
    guard.__signature__ = signature.replace(parameters=[*parameters, extra])  # type: ignore[attr-defined]
    guard.__annotations__ = {**tool.__annotations__, _CONTEXT: RunContext}
    made = (
        _GuardedRawFunctionTool(guard, tool.info)
        if isinstance(tool, RawFunctionTool)
        else _GuardedFunctionTool(guard, tool.info)
    )
    made.original = tool
    return made


def _context_parameter(tool: OwnTool, signature: inspect.Signature) -> str | None:
    """Return the name of the parameter that takes the RunContext, if there is one."""
    try:
        hints = get_type_hints(tool)
    except Exception:  # an annotation that only exists while type checking: LiveKit reports it
        return None
    for name in signature.parameters:
        if name in hints and is_context_type(hints[name], allow_subclasses=True):
            return name
    return None


def becomes_text(result: Any) -> bool:
    """Say whether `result` is to become text, as LiveKit would do, and do nothing more with it."""
    if isinstance(result, dict | list):
        return not _holds_an_agent(cast("dict[Any, Any] | list[Any]", result))
    return isinstance(result, (str, int, float, bool, VerbatimResult))


def _holds_an_agent(result: dict[Any, Any] | list[Any]) -> bool:
    members = cast("Iterable[Any]", result.values() if isinstance(result, dict) else result)
    return any(isinstance(each, (Agent, ToolResult)) for each in islice(members, HANDOFF_MEMBERS))


def spec_of(tool: OwnTool, source: str) -> ToolSpec:
    """Describe one of the agent's own tools for the table."""
    schema = ToolContext([tool]).parse_function_tools("openai", strict=False)[0]["function"]
    terms = terms_of(original_of(tool)) or CallTerms()
    return ToolSpec(
        tier="agent",
        source=terms.source or source,
        name=schema["name"],
        wanted=schema["name"],
        description=without_examples(schema.get("description") or ""),
        parameters=schema["parameters"],
        effect=declared_effect(original_of(tool)),
        examples=examples_in(inspect.getdoc(tool)),
        timeout_s=terms.timeout_s,
        remembered=terms.remembered,
        answers=terms.answers,
    )


async def _awaited(tool: OwnTool, running: Any) -> Any:
    if not inspect.isawaitable(running):
        raise TypeError(f"{tool.info.name} is a plain function; begin it with async def")
    return await running


def _never(value: Any) -> bool:
    return False
