"""Makes an object from the text `module:factory`."""

from __future__ import annotations

import sys
from importlib import import_module
from pathlib import Path
from typing import TypeVar

from caal_node.core.errors import ConfigError

T = TypeVar("T")


def call_factory(spec: str, kind: type[T], setting: str, *, words: str = "") -> T:
    """Import `module`, call `factory()` and return the object that it makes.

    A module in the current folder is found too, as with `python -m`. `words` lists, for the error
    message, what else the setting may be.

    Raises:
        ConfigError: The message names `setting`, what is wrong with it and how to correct it.
    """
    module_name, colon, name = spec.partition(":")
    if not (module_name and colon and name):
        raise ConfigError(f"{setting}={spec!r}: write {words}module:factory")
    if (here := str(Path.cwd())) not in sys.path:
        sys.path.append(here)
    try:
        factory = getattr(import_module(module_name), name)
    except ImportError as error:
        raise ConfigError(
            f"{setting}: cannot import {module_name!r} ({error}); install it or fix the name"
        ) from error
    except AttributeError as error:
        raise ConfigError(f"{setting}: {module_name!r} has no {name!r}; fix the name") from error
    if not callable(factory):
        raise ConfigError(f"{setting}: {spec!r} is not a function; name one without arguments")
    try:
        made = factory()
    except Exception as error:
        raise ConfigError(
            f"{setting}: {spec!r} failed ({type(error).__name__}: {error}); fix it"
        ) from error
    if not isinstance(made, kind):
        raise ConfigError(
            f"{setting}: {spec!r} gave a {type(made).__name__}, not a LiveKit {kind.__name__}"
        )
    return made
