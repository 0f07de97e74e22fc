"""This check says how the model is asked for tool calls, and why, and how its fallbacks are."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from typing import Final

from caal_node.cli.checks.check import Finding, ok, warn
from caal_node.config.settings import Settings
from caal_node.core.errors import CaalError
from caal_node.evaluation.strategy_choice import StrategyChoice, Validity, choose
from caal_node.factories import make_llm
from caal_node.models.model_preparation import probe

CALL_STRATEGY: Final = "way of asking"
SAMPLE_S: Final = 30.0
"""A small question to a model that is loaded takes a second or two."""


async def check_call_strategy(settings: Settings) -> Sequence[Finding]:
    choice = await choose(settings)
    found = [await _configured_model(settings, choice)]
    for reference in settings.fallbacks:
        other = settings.with_model(reference)
        found.append(_fallback_model(str(reference), settings, (await choose(other)).validity))
    return found


async def _configured_model(settings: Settings, choice: StrategyChoice) -> Finding:
    command = f"caal-node validate {settings.model}"
    found, state = f"{choice.words}: {choice.why}", choice.validity.state
    if state == "failed":
        return warn(
            CALL_STRATEGY, found, f"It did not pass; choose another model, or see: {command}"
        )
    if choice.asking is None:
        try:
            found = f"{await _sample_request(settings)} ({choice.why})"
        except (CaalError, TimeoutError) as error:
            why = str(error) or f"no answer to a sample request in {SAMPLE_S:g} s"
            return warn(
                CALL_STRATEGY, f"not found out: {why}", "See what is said of the model above."
            )
    if state == "stale":
        return warn(CALL_STRATEGY, found, f"Run: {command}")
    return ok(CALL_STRATEGY, found, f"Run: {command}" if state == "untried" else "")


async def _sample_request(settings: Settings) -> str:
    """Ask the model as a session does when it begins, and return what that shows.

    Raises:
        CaalError, TimeoutError: the model could not be asked.
    """
    model = make_llm(settings)
    try:
        async with asyncio.timeout(SAMPLE_S):
            native = (await probe(model.backend)).native
    finally:
        await model.aclose()
    return (
        "its server's own tool calls: it answered a sample request with one"
        if native
        else "the text protocol: it answered a sample request without a structured call"
    )


def _fallback_model(name: str, settings: Settings, validity: Validity) -> Finding:
    part = f"fallback {name}"
    if why := validity.unfit(only_validated=settings.use_only_validated_fallbacks):
        return warn(part, f"left out: {why}", f"Run: caal-node validate {name}")
    return ok(part, validity.why)
