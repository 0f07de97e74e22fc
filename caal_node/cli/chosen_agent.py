"""What a command is told to run: the agent of `--agent`, and the model of `--model`.

Without them it is CAAL_AGENT, else a plain CaalAgent, and CAAL_MODEL.
"""

# pyright: reportUnknownMemberType=false, reportUnknownVariableType=false
# LiveKit leaves the event types of its models open, so they are half unknown.

from __future__ import annotations

import asyncio
import importlib
import inspect
import sys
from difflib import get_close_matches
from pathlib import Path
from types import ModuleType
from typing import Any, Final

from livekit.agents.llm import LLM

from caal_node.agent import CaalAgent
from caal_node.agent_options import options_given
from caal_node.config.settings import Settings
from caal_node.core.addresses import parse_reference, without_userinfo
from caal_node.core.errors import ConfigError, ModelError, failing_line
from caal_node.factories import make_llm
from caal_node.models.llm import LLM as OurLLM

_SETTING: Final = "CAAL_AGENT"
_OPTION: Final = "--agent"
CONTEXT_S: Final = 10.0
"""Seconds for a model's server to say how much it reads."""


def chosen_agent(settings: Settings, name: str | None, **options: Any) -> CaalAgent:
    """Return an instance of `name`, which is written `module:Class`. Its `__init__` need not take
    the options.

    Raises:
        ConfigError: the module or the class is not there, is no CaalAgent, or cannot be made.
    """
    where = _OPTION if name else _SETTING
    name = name or settings.agent
    agent = agent_class(name, where)
    options["settings"] = settings
    signature = inspect.signature(agent)
    taken = {key: options[key] for key in options if _takes(signature, key)}
    try:
        signature.bind(**taken)
    except TypeError as error:
        raise ConfigError(
            f"{where}: {name} cannot be made ({error}); give its __init__ "
            "no arguments without defaults"
        ) from error
    try:
        with options_given(**options):
            made = agent(**taken)
        if not hasattr(made, "_llm"):  # what LiveKit's own __init__ sets
            raise ConfigError(
                f"{where}: the __init__ of {name} does not call its parent's; "
                "begin it with super().__init__()"
            )
        made.tools  # noqa: B018 - a tool that LiveKit cannot describe is found here
    except ConfigError:
        raise
    except Exception as error:  # whatever the owner's own lines raise
        raise ConfigError(
            f"{where}: {name} cannot be made ({_failure(error)}); fix that line"
        ) from error
    return made


def _takes(signature: inspect.Signature, key: str) -> bool:
    kinds = {each.kind for each in signature.parameters.values()}
    return key in signature.parameters or inspect.Parameter.VAR_KEYWORD in kinds


def brings_model(settings: Settings, name: str | None) -> bool:
    """Return whether the agent has a model of its own, so that the settings' is never asked.

    Only its `__init__` knows, so one is made and let go again. Call it before the event loop runs.

    Raises:
        ConfigError: as `chosen_agent`.
    """
    if not (name or settings.agent):
        return False

    async def made() -> CaalAgent:
        return chosen_agent(settings, name)

    return has_own_model(asyncio.run(made()))


def has_own_model(agent: CaalAgent) -> bool:
    """Return whether `agent` asks a model of its own, and not its session's."""
    return isinstance(agent.llm, LLM)


async def choose_front(agent: CaalAgent) -> int | None:
    """Have the agent choose the tools that every prompt begins with, as its next session will.

    Returns the tokens that its model's server says it reads; None if it does not say it in time.
    """
    told: int | None = None
    try:
        model = agent.llm if has_own_model(agent) else make_llm(agent.settings)
        # An embedded model reads CAAL_NUM_CTX, and would have to be loaded to say so.
        if isinstance(model, OurLLM) and model.provider != "embedded":
            try:
                async with asyncio.timeout(CONTEXT_S):
                    told = (await model.backend.capabilities()).context_tokens
            finally:
                await model.aclose()
    except (ModelError, ConfigError, TimeoutError):
        pass  # `caal-node doctor` says what is wrong with the model
    agent.choose_front(told)
    return told


def agent_class(name: str | None, where: str = _SETTING) -> type[CaalAgent]:
    """Import the class that is written `module:Class`; None is CaalAgent itself.

    Args:
        where: What holds the name, for the error: CAAL_AGENT or --agent.

    Raises:
        ConfigError: the module or the class is not there, or is no CaalAgent.
    """
    if name is None:
        return CaalAgent
    module_name, _, class_name = name.partition(":")
    if (path := Path(module_name)).name != module_name or path.suffix == ".py":
        fix = f"write {path.name.removesuffix('.py')}:{class_name or 'Class'}"
        if path.parent != Path():
            fix += f", and run this in {path.parent}"
        raise ConfigError(f"{where}: {name} names a file, where a module belongs; {fix}")
    if (here := str(Path.cwd())) not in sys.path:
        sys.path.insert(0, here)  # one's own agent.py, beside caal.toml
    module = _imported(module_name, where)
    agent = getattr(module, class_name, None) if class_name else None
    if agent is None:
        lacks = f"{module_name} has no class {class_name}" if class_name else "it names no class"
        raise ConfigError(f"{where}: {lacks}; {_which(module, class_name)}")
    if not isinstance(agent, type):
        raise ConfigError(f"{where}: {name} is not a class; {_which(module, '')}")
    if not issubclass(agent, CaalAgent):
        raise ConfigError(
            f"{where}: {name} is not a subclass of caal_node.CaalAgent; "
            f"write class {class_name}(CaalAgent)"
        )
    return agent


def _imported(module_name: str, where: str) -> ModuleType:
    try:
        return importlib.import_module(module_name)
    except ModuleNotFoundError as error:
        if error.name is None or not f"{module_name}.".startswith(f"{error.name}."):
            fix = f"install it, or fix that import ({_failure(error)})"
            raise ConfigError(
                f"{where}: {module_name} imports {error.name}, which is not there; {fix}"
            ) from error
        near = get_close_matches(module_name, [file.stem for file in Path.cwd().glob("*.py")])
        fix = f"did you mean {near[0]}?" if near else "write module:Class"
        raise ConfigError(
            f"{where}: there is no module {module_name} in {Path.cwd()}; {fix}"
        ) from error
    except SystemExit as error:
        raise ConfigError(
            f"{where}: importing {module_name} ended the program; "
            'put what starts it under if __name__ == "__main__":'
        ) from error
    except Exception as error:  # whatever the owner's own lines raise
        raise ConfigError(
            f"{where}: {module_name} cannot be imported ({_failure(error)}); fix that line"
        ) from error


def _which(module: ModuleType, class_name: str) -> str:
    """Return what to write in place of a class that `module` has not."""
    classes = [
        name
        for name, value in vars(module).items()
        if isinstance(value, type) and issubclass(value, CaalAgent) and value is not CaalAgent
    ]
    if not classes:
        return f"write module:Class, and a class {class_name or 'of yours'}(CaalAgent) in it"
    named = get_close_matches(class_name, classes, n=1, cutoff=0.75) or classes
    return "write " + " or ".join(f"{module.__name__}:{name}" for name in named)


def _failure(error: Exception) -> str:
    """Return what an error of the owner's code says, with the owner's last line before it."""
    said = f"{type(error).__name__}: {error}"
    if isinstance(error, SyntaxError):  # says its own line
        return said
    line = failing_line(error)
    return f"{line}: {said}" if line else said


def with_chosen_model(settings: Settings, model: str, where: str) -> Settings:
    """Return the settings of `model`, a name or `api:model@url`. `where` is who was given it.

    Raises:
        ConfigError: it cannot be read as a model.
    """
    try:
        return settings.with_model(parse_reference(model))
    except ValueError as error:
        raise ConfigError(f"{where} {without_userinfo(model)!r}: {error}") from None
