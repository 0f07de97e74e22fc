"""A command runs the agent of `--agent`, else of CAAL_AGENT, else a plain CaalAgent."""

from __future__ import annotations

import importlib
import inspect
import sys
from pathlib import Path
from typing import Any

from caal_node.agent import CaalAgent
from caal_node.config.settings import Settings
from caal_node.core.errors import ConfigError


def chosen_agent(settings: Settings, name: str | None, **options: Any) -> CaalAgent:
    """Return an instance of `name`, which is written `module:Class`.

    Raises:
        ConfigError: the module or the class is not there, is no CaalAgent, or takes no options.
    """
    name = name or settings.agent
    if name is None:
        return CaalAgent(settings=settings, **options)
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
    try:
        inspect.signature(agent).bind(settings=settings, **options)
    except TypeError as error:
        raise ConfigError(
            f"CAAL_AGENT: {name} cannot be made ({error}); give its __init__ **options, "
            "and pass them on to super().__init__"
        ) from error
    return agent(settings=settings, **options)
