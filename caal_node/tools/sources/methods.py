"""The first tier: the agent's own `@function_tool` methods, sent through the pipeline.

LiveKit calls and validates them as it does all tools. What the pipeline adds is a check of raw
schemas, which LiveKit leaves out, a deadline, one compact line for the model in place of Python's
repr, tool data, and an outcome. A method that takes a `RunContext` has no deadline: it may hold a
whole conversation of its own.
"""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable, Iterable
from typing import Any, Final, Protocol, TypeAlias, cast, get_type_hints

from livekit.agents import Agent, RunContext, StopResponse, ToolError
from livekit.agents.llm import FunctionTool, RawFunctionTool, ToolContext, ToolResult
from livekit.agents.llm.utils import is_context_type

from caal_node.core.errors import ToolBroke
from caal_node.core.tool_spec import ToolSpec, examples_in, without_examples

_CONTEXT: Final = "caal_run_context"
"""The keyword by which LiveKit passes the RunContext; no method has a parameter of that name."""

OwnTool: TypeAlias = FunctionTool[..., Any] | RawFunctionTool[..., Any]


class MethodRunner(Protocol):
    """An agent that runs calls of its methods through its pipeline."""

    async def run_method(self, *args: Any, **options: Any) -> Any:
        """See `CaalAgent.run_method`."""
        ...


class _Stopped:
    """Carries a StopResponse out of the pipeline, which would take it for a failure."""

    def __init__(self, stop: StopResponse) -> None:
        self.stop = stop


def guarded(tool: OwnTool, runner: Callable[[Any], MethodRunner]) -> OwnTool:
    """Return the same tool, run through the pipeline of `runner(first argument)`.

    The first argument of a method is its agent.
    """
    func: Callable[..., Any] = tool._func  # pyright: ignore[reportPrivateUsage]  # no public way
    signature = inspect.signature(func)
    context_name = _context_parameter(func, signature)
    raw = isinstance(tool, RawFunctionTool)

    @functools.wraps(func)
    async def guard(*args: Any, **kwargs: Any) -> Any:
        context: RunContext[Any] = kwargs.pop(_CONTEXT)
        call = context.function_call

        async def method() -> Any:
            try:
                return await func(*args, **kwargs)
            except StopResponse as stop:
                return _Stopped(stop)
            except ToolError as error:
                # The author's own words for the model.
                raise ToolBroke(error.message) from error

        bound = signature.bind(*args, **kwargs).arguments
        arguments = {k: v for k, v in bound.items() if k not in ("self", context_name)}
        if raw:
            arguments = arguments["raw_arguments"]
        result = await runner(args[0] if args else None).run_method(
            tool.info.name,
            call.call_id,
            arguments,
            method,
            validate=raw,
            deadline=context_name is None,
        )
        if isinstance(result, _Stopped):
            raise result.stop
        return result

    extra = inspect.Parameter(_CONTEXT, inspect.Parameter.KEYWORD_ONLY, annotation=RunContext)
    parameters = list(signature.parameters.values())
    if parameters and parameters[-1].kind is inspect.Parameter.VAR_KEYWORD:
        return tool  # **kwargs has no schema; LiveKit refuses such a tool itself
    guard.__signature__ = signature.replace(parameters=[*parameters, extra])  # type: ignore[attr-defined]
    guard.__annotations__ = {**func.__annotations__, _CONTEXT: RunContext}
    if isinstance(tool, RawFunctionTool):
        return RawFunctionTool(guard, tool.info)
    return FunctionTool(guard, tool.info)


def _context_parameter(func: Callable[..., Any], signature: inspect.Signature) -> str | None:
    """Return the name of the parameter that takes the RunContext, if there is one."""
    try:
        hints = get_type_hints(func)
    except Exception:  # an annotation that only exists while type checking: LiveKit reports it
        return None
    for name in signature.parameters:
        if name in hints and is_context_type(hints[name], allow_subclasses=True):
            return name
    return None


def becomes_text(result: Any) -> bool:
    """Say whether LiveKit would turn `result` into text, and do nothing more with it."""
    if isinstance(result, dict | list):
        return not _holds_an_agent(cast("dict[Any, Any] | list[Any]", result))
    return isinstance(result, (str, int, float, bool))


def _holds_an_agent(result: dict[Any, Any] | list[Any]) -> bool:
    members = cast("Iterable[Any]", result.values() if isinstance(result, dict) else result)
    # Each type is asked once: a list of 50,000 records would hold the event loop for 9 ms.
    return any(issubclass(kind, (Agent, ToolResult)) for kind in set(map(type, members)))


def spec_of(tool: OwnTool, source: str) -> ToolSpec:
    """Describe one of the agent's own tools for the table."""
    schema = ToolContext([tool]).parse_function_tools("openai", strict=False)[0]["function"]
    return ToolSpec(
        tier="agent",
        source=source,
        name=schema["name"],
        wanted=schema["name"],
        description=without_examples(schema.get("description") or ""),
        parameters=schema["parameters"],
        examples=examples_in(inspect.getdoc(tool)),
    )
