"""`caal-node n8n try`: a workflow is run as the agent would run it, and both its ends are shown."""

from __future__ import annotations

import json
import time
from collections.abc import Iterator, Mapping, Sequence
from functools import partial
from typing import Any, Final

from rich.console import Console

import n8n
from caal_node.cli.tools import resolve_tool, typed_arguments
from caal_node.config.settings import Settings
from caal_node.context.tool_data import ToolDataCache
from caal_node.core.errors import ConfigError, InvalidArguments, ToolFailure
from caal_node.core.prompt_files import sentence
from caal_node.tools.pipeline import Pipeline, error_text
from caal_node.tools.redaction import Redaction
from caal_node.tools.source import VerbatimResult
from caal_node.tools.sources.configured import n8n_tier
from caal_node.tools.table import ToolEntry, ToolTable

MODELS_OWN: Final = "(what the model makes of that)"
"""This is printed where the person hears the model's own words."""


def _unknown(entry: ToolEntry, arguments: Mapping[str, Any]) -> Iterator[str]:
    """Yield a line for each argument that no parameter takes; the webhook gets it all the same."""
    schema = entry.spec.parameters
    known = list(schema.get("properties", {}))
    if schema.get("additionalProperties"):
        return
    for key in arguments:
        if key not in known:
            has = f"it has {', '.join(known)}" if known else "it takes none"
            yield f"{key} is not a parameter of {entry.exposed}; {has}"


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
        arguments = typed_arguments(pairs, entry)
        for fact in entry.spec.facts:
            console.print(fact, style="dim", markup=False)
        as_text = json.dumps(arguments, ensure_ascii=False)
        console.print(f"call     {name} {as_text}", markup=False)
        for line in _unknown(entry, arguments):
            console.print(f"         {line}", style="yellow", markup=False)

        def print_progress(progress: n8n.Progress) -> None:
            line = f"         still runs: {progress.elapsed_s:.0f} of {progress.deadline_s:.0f} s"
            line += f", {progress.step}" if progress.step else ""
            console.print(line, style="dim", markup=False)

        began = time.perf_counter()
        worked, fix = True, None
        try:
            redaction = Redaction(tier, settings)
            pipeline = Pipeline(
                ToolDataCache(), redaction=redaction, timeout_s=settings.tool_timeout
            )
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
            fix = cause.fix if isinstance(cause, n8n.N8nError) else None
        took_ms = round((time.perf_counter() - began) * 1000)
    finally:
        await tier.aclose()
    if as_json:
        report = {"tool": name, "arguments": arguments, "ok": worked, "model": for_model}
        report |= {"person": heard, "fix": fix, "duration_ms": took_ms}
        print(json.dumps(report, ensure_ascii=False))
        return worked
    console.print(f"model    {for_model}", markup=False)
    console.print(f"person   {heard}", markup=False)
    if fix:
        console.print(f"fix     {fix}", markup=False)
    console.print(f"{'done' if worked else 'failed'} in {took_ms} ms", markup=False)
    return worked
