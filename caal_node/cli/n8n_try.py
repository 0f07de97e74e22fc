"""One workflow, run as the agent would run it, with both ends shown."""

from __future__ import annotations

import json
import time
from collections.abc import Mapping, Sequence
from typing import Any

from rich.console import Console

import n8n
from caal_node.cli.explain import resolved
from caal_node.config.settings import Settings
from caal_node.context.tool_data import ToolDataCache
from caal_node.core.errors import ConfigError, InvalidArguments, ToolFailure
from caal_node.core.prompt_files import sentence
from caal_node.tools.pipeline import Pipeline, error_text
from caal_node.tools.source import VerbatimResult
from caal_node.tools.sources.configured import n8n_tier
from caal_node.tools.table import ToolEntry, ToolTable

MODELS_OWN = "(what the model makes of that)"


async def try_workflow(
    settings: Settings, name: str, pairs: Sequence[str], *, as_json: bool
) -> bool:
    """Whether the call worked.

    Raises:
        ConfigError: n8n cannot be asked, there is no such tool, or an argument is not `key=value`.
    """
    console = Console(highlight=False, stderr=as_json, soft_wrap=True)
    tier = n8n_tier(settings)
    try:
        listing = await tier.discover()
        if listing.failed:
            raise ConfigError(next(iter(listing.failed.values())))
        entry = resolved(ToolTable(listing.specs), name)
        arguments = _arguments(pairs, entry)
        for fact in entry.spec.facts:
            console.print(fact, style="dim", markup=False)
        console.print(f"call     {name} {_line(arguments)}", markup=False)
        words: list[str] = []

        def told(progress: n8n.Progress) -> None:
            said = f"         still runs: {progress.elapsed_s:.0f} of {progress.deadline_s:.0f} s"
            said += f", {progress.step}" if progress.step else ""
            console.print(said, style="dim", markup=False)

        async def call() -> Any:
            value = await tier.call(entry.spec, arguments, on_progress=told)
            if isinstance(value, VerbatimResult):
                words.append(value.words)
                return value.value
            return value

        began = time.perf_counter()
        worked, mend = True, None
        try:
            pipeline = Pipeline(ToolDataCache(), timeout_s=settings.tool_timeout)
            line = await pipeline.run(entry, "try", arguments, call)
            heard = words[0] if words else MODELS_OWN
        except ToolFailure as failure:
            worked, line = False, error_text(failure)
            again = isinstance(failure, InvalidArguments)
            heard = failure.words or (MODELS_OWN if again else sentence(failure.spoken))
            cause = failure.__cause__
            mend = cause.mend if isinstance(cause, n8n.N8nError) else None
        took_ms = round((time.perf_counter() - began) * 1000)
    finally:
        await tier.aclose()
    if as_json:
        shown = {"tool": name, "arguments": arguments, "ok": worked, "model": line}
        shown |= {"person": heard, "mend": mend, "duration_ms": took_ms}
        print(json.dumps(shown, ensure_ascii=False))
        return worked
    console.print(f"model    {line}", markup=False)
    console.print(f"person   {heard}", markup=False)
    if mend:
        console.print(f"mend     {mend}", markup=False)
    console.print(f"{'done' if worked else 'failed'} in {took_ms} ms", markup=False)
    return worked


def _arguments(pairs: Sequence[str], entry: ToolEntry) -> dict[str, Any]:
    """`city=Paris days=3` -> values of the types that the tool's schema says."""
    properties: Mapping[str, Any] = entry.spec.parameters.get("properties", {})
    found: dict[str, Any] = {}
    for pair in pairs:
        key, equals, value = pair.partition("=")
        if not (key and equals):
            raise ConfigError(f"{pair!r}: write an argument as key=value.")
        found[key] = n8n.typed(value, properties.get(key, {}))
    return found


def _line(arguments: Mapping[str, Any]) -> str:
    return json.dumps(arguments, ensure_ascii=False)
