"""What a command is told to run: the agent of `--agent`, and the model of `--model`.

Without them it is CAAL_AGENT, else a plain CaalAgent, and CAAL_MODEL.
"""

# pyright: reportUnknownMemberType=false
# LiveKit leaves the event types of its models open, so they are half unknown.

from __future__ import annotations

import asyncio
import importlib
import inspect
import sys
from pathlib import Path
from typing import Any

from livekit.agents.llm import LLM

from caal_node.agent import CaalAgent
from caal_node.agent_options import options_given
from caal_node.config.settings import Settings
from caal_node.core.addresses import parse_reference, without_userinfo
from caal_node.core.errors import ConfigError


def chosen_agent(settings: Settings, name: str | None, **options: Any) -> CaalAgent:
    """Return an instance of `name`, which is written `module:Class`. Its `__init__` need not take
    the options.

    Raises:
        ConfigError: the module or the class is not there, is no CaalAgent, or takes no options.
    """
    agent = agent_class(name or settings.agent)
    options["settings"] = settings
    signature = inspect.signature(agent)
    taken = {key: options[key] for key in options if _takes(signature, key)}
    try:
        signature.bind(**taken)
    except TypeError as error:
        raise ConfigError(
            f"CAAL_AGENT: {name or settings.agent} cannot be made ({error}); give its __init__ "
            "no arguments without defaults"
        ) from error
    with options_given(**options):
        return agent(**taken)


def _takes(signature: inspect.Signature, key: str) -> bool:
    kinds = {each.kind for each in signature.parameters.values()}
    return key in signature.parameters or inspect.Parameter.VAR_KEYWORD in kinds


def brings_model(settings: Settings, name: str | None) -> bool:
    """Return whether the agent has a model of its own, so that the settings' is never asked.

    Only its `__init__` knows, so one is made and let go again. Call it before the event loop runs.

    Raises:
        ConfigError: as `chosen_agent`.
    """
    if agent_class(name or settings.agent) is CaalAgent:
        return False

    async def made() -> CaalAgent:
        return chosen_agent(settings, name)

    return has_own_model(asyncio.run(made()))


def has_own_model(agent: CaalAgent) -> bool:
    """Return whether `agent` asks a model of its own, and not its session's."""
    return isinstance(agent.llm, LLM)


def agent_class(name: str | None) -> type[CaalAgent]:
    """Import the class that is written `module:Class`; None is CaalAgent itself.

    Raises:
        ConfigError: the module or the class is not there, or is no CaalAgent.
    """
    if name is None:
        return CaalAgent
    module_name, _, class_name = name.partition(":")
    if (here := str(Path.cwd())) not in sys.path:
        sys.path.insert(0, here)  # one's own agent.py, beside caal.toml
    try:
        agent = getattr(importlib.import_module(module_name), class_name)
    except (ImportError, AttributeError) as error:
        raise ConfigError(
            f"CAAL_AGENT: there is no {class_name or 'class'} in {module_name} ({error}); "
            "write module:Class, importable from the working directory"
        ) from error
    if not (isinstance(agent, type) and issubclass(agent, CaalAgent)):
        raise ConfigError(f"CAAL_AGENT: {name} is not a subclass of caal_node.CaalAgent")
    return agent


def with_chosen_model(settings: Settings, model: str, where: str) -> Settings:
    """Return the settings of `model`, a name or `api:model@url`. `where` is who was given it.

    Raises:
        ConfigError: it cannot be read as a model.
    """
    try:
        return settings.with_model(parse_reference(model))
    except ValueError as error:
        raise ConfigError(f"{where} {without_userinfo(model)!r}: {error}") from None
