"""Whether a model answers, asked before a conversation begins: doctor's sentence where none does.

Where no server runs at all, a small model in a process of this node's own is offered.
"""

from __future__ import annotations

import asyncio
import sys
from typing import Final

import typer
from rich.console import Console

from caal_node import weights
from caal_node.cli.checks import Check, Finding, run_check
from caal_node.cli.checks.model import SERVER, check_model
from caal_node.cli.chosen_agent import brings_model
from caal_node.cli.output import console
from caal_node.config.settings import EMBEDDED_MODEL, Settings
from caal_node.core.errors import ConfigError
from caal_node.models.embedded_engine import require_engine
from caal_node.weights.gguf import ensure_gguf

CHECK: Final = Check(SERVER, check_model, 15)
"""Seconds for a few small requests, as doctor allows them."""
EMBED: Final = "Without a server: set CAAL_API=embedded, and a small model runs in this node."
INSTALL: Final = "First install it: pip install 'caal-node[embedded]'."


def ready_settings(settings: Settings, agent: str | None = None) -> Settings:
    """Return the settings of a model that answers: these, or the embedded engine's.

    `agent` is who is asked for, `module:Class`; None is the settings' own. One that brings its own
    model leaves the settings' unasked, so it may be anything.

    The engine is offered, at a terminal alone, where nothing answers at the model's address. What
    the engine lacks of its own model is fetched, with progress on standard error. Call it before
    the event loop runs.

    Raises:
        ConfigError: no model answers, or the agent cannot be made; its text is one line, and says
            what to do.
    """
    if brings_model(settings, agent):
        return settings
    if settings.api != "embedded":
        problem = asyncio.run(model_problem(settings))
        if problem is None:
            return settings
        if problem.name != SERVER:
            raise ConfigError(sentence(problem))
        try:
            require_engine()
        except ConfigError:  # what is not there is not offered
            raise ConfigError(f"{sentence(problem)} {EMBED} {INSTALL}") from None
        if not _accepts_engine(problem):
            raise ConfigError(f"{sentence(problem)} {EMBED}")
        chosen = {"api": "embedded", "model": EMBEDDED_MODEL, "base_url": None, "fallbacks": ()}
        settings = settings.model_copy(update=chosen)
    require_engine()
    ensure_gguf(settings.model, console=Console(stderr=True))
    return settings


async def model_problem(settings: Settings) -> Finding | None:
    """Return what keeps the model and every fallback from answering, as doctor finds it.

    None means that one of them can be asked.
    """
    models = (settings, *map(settings.with_model, settings.fallbacks.models))
    found = await asyncio.gather(*(run_check(CHECK, model) for model in models))
    failed = [next((each for each in one if each.status == "fail"), None) for one in found]
    return failed[0] if all(failed) else None


def sentence(problem: Finding) -> str:
    """Return a finding and its fix in one line."""
    return f"{problem.name}: {problem.found}. {problem.fix}".strip()


def _accepts_engine(problem: Finding) -> bool:
    if not (sys.stdin.isatty() and sys.stderr.isatty()):
        return False
    weight = weights.QWEN_CODER_05B
    cost = "it is here" if weights.present(weight) else f"{weight.size / 1e6:,.0f} MB, fetched once"
    console(stderr=True).print(sentence(problem), markup=False)  # no word is broken
    return typer.confirm(f"Use {weight.title} instead ({cost})?", err=True)
