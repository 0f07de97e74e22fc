"""The texts that a model or a person is given, read from `prompts/`.

They are files so that they can be translated and tuned without touching code. A placeholder is
`{name}`; other braces stay as they are, since prompts are full of JSON.
"""

from __future__ import annotations

import functools
import tomllib
from importlib import resources
from pathlib import Path
from typing import Final

# In a wheel the folder lies inside the package; in a checkout it is beside it.
_PLACES: Final = (
    Path(str(resources.files("caal_node"))) / "prompts",
    Path(__file__).parent.parent / "prompts",
)


@functools.cache
def read(name: str) -> str:
    """The text of `prompts/<name>`, without the white space around it."""
    for place in _PLACES:
        if (path := place / name).is_file():
            return path.read_text(encoding="utf-8").strip()
    raise FileNotFoundError(f"prompts/{name} is not in this installation")


def fill(name: str, **values: str) -> str:
    """`read(name)` with each `{key}` of `values` replaced."""
    text = read(name)
    for key, value in values.items():
        text = text.replace("{" + key + "}", value)
    return text


@functools.cache
def _sentences() -> dict[str, str]:
    return tomllib.loads(read("sentences.toml"))


def sentence(key: str) -> str:
    """What a person hears when something did not work: `prompts/sentences.toml`, by key.

    An unknown key gives the general apology, so that a new error is never silent.
    """
    known = _sentences()
    return known.get(key, known["went_wrong"])
