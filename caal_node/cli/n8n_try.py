"""`caal-node n8n try`: one workflow is run as the agent would run it, and both ends are shown."""

from __future__ import annotations

import json
import time
from collections.abc import Mapping, Sequence
from functools import partial
from typing import Any

from rich.console import Console

import n8n
from caal_node.cli.tools import resolve_tool
from caal_node.config.settings import Settings
from caal_node.context.tool_data import ToolDataCache
from caal_node.core.errors import ConfigError, InvalidArguments, ToolFailure
from caal_node.core.prompt_files import sentence
from caal_node.tools.pipeline import Pipeline, error_text
from caal_node.tools.source import VerbatimResult
from caal_node.tools.sources.configured import n8n_tier
from caal_node.tools.table import ToolEntry, ToolTable

MODELS_OWN = "(what the model makes of that)"
"""This is printed where the person hears the model's own words."""


async def try_workflow(
    settings: Settings, name: str, pairs: Sequence[str], *, as_json: bool
) -> bool:
    """Call the workflow and print what came of it; return whether the call worked.

    Raises:
        ConfigError: n8n cannot be asked, there is no such tool, or an argument is not `key=value`.
    """
    console = Console(highlight=False, stderr=as_json, soft_wrap=True)
    tier = n8n_tier(settings)
    try:
        listing = await tier.discover()
        if listing.failed:
            raise ConfigError(next(iter(listing.failed.values())))
        entry = resolve_tool(ToolTable(listing.specs), name)
        arguments = _arguments(pairs, entry)
        for fact in entry.spec.facts:
            console.print(fact, style="dim", markup=False)
        as_text = json.dumps(arguments, ensure_ascii=False)
        console.print(f"call     {name} {as_text}", markup=False)

        def print_progress(progress: n8n.Progress) -> None:
            line = f"         still runs: {progress.elapsed_s:.0f} of {progress.deadline_s:.0f} s"
            line += f", {progress.step}" if progress.step else ""
            console.print(line, style="dim", markup=False)

        began = time.perf_counter()
        worked, mend = True, None
        try:
            pipeline = Pipeline(ToolDataCache(), timeout_s=settings.tool_timeout)
            result = await pipeline.run(
                *(entry, "try", arguments),
                partial(tier.call, entry.spec, arguments, on_progress=print_progress),
            )
            verbatim = isinstance(result, VerbatimResult)
            for_model = result.value if verbatim else result
            heard = result.words if verbatim else MODELS_OWN
        except ToolFailure as failure:
            worked, for_model = False, error_text(failure)
            model_asks_again = isinstance(failure, InvalidArguments)
            heard = failure.words or (MODELS_OWN if model_asks_again else sentence(failure.spoken))
            cause = failure.__cause__
            mend = cause.mend if isinstance(cause, n8n.N8nError) else None
        took_ms = round((time.perf_counter() - began) * 1000)
    finally:
        await tier.aclose()
    if as_json:
        report = {"tool": name, "arguments": arguments, "ok": worked, "model": for_model}
        report |= {"person": heard, "mend": mend, "duration_ms": took_ms}
        print(json.dumps(report, ensure_ascii=False))
        return worked
    console.print(f"model    {for_model}", markup=False)
    console.print(f"person   {heard}", markup=False)
    if mend:
        console.print(f"mend     {mend}", markup=False)
    console.print(f"{'done' if worked else 'failed'} in {took_ms} ms", markup=False)
    return worked


def _arguments(pairs: Sequence[str], entry: ToolEntry) -> dict[str, Any]:
    """Turn `city=Paris days=3` into values of the types that the tool's schema says."""
    properties: Mapping[str, Any] = entry.spec.parameters.get("properties", {})
    found: dict[str, Any] = {}
    for pair in pairs:
        key, equals, value = pair.partition("=")
        if not (key and equals):
            raise ConfigError(f"{pair!r}: write an argument as key=value.")
        found[key] = n8n.typed(value, properties.get(key, {}))
    return found
