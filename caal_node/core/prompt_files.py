"""The texts that a model or a person is given, from the files of `prompts/`.

They are files so that they can be translated and tuned without touching code. A placeholder is
`{name}`; other braces stay as they are, since prompts are full of JSON. All are read when this
module is imported: later there is an event loop, which no file may hold up.
"""

from __future__ import annotations

import tomllib
from importlib import resources
from pathlib import Path
from typing import Final

# In a wheel the folder lies inside the package; in a checkout it is beside it.
_PLACES: Final = (
    Path(str(resources.files("caal_node"))) / "prompts",
    Path(__file__).parents[2] / "prompts",
)
_TEXTS: Final = {
    path.name: path.read_text(encoding="utf-8").strip()
    for path in next(place for place in _PLACES if place.is_dir()).iterdir()
    if path.is_file()
}
_SENTENCES: Final[dict[str, str]] = tomllib.loads(_TEXTS["sentences.toml"])


def read(name: str) -> str:
    """The text of `prompts/<name>`, without the white space around it."""
    return _TEXTS[name]


def fill(name: str, **values: str) -> str:
    """`read(name)` with each `{key}` of `values` replaced."""
    text = read(name)
    for key, value in values.items():
        text = text.replace("{" + key + "}", value)
    return text


def sentence(key: str) -> str:
    """What a person hears when something did not work: `prompts/sentences.toml`, by key.

    An unknown key gives the general apology, so that a new error is never silent.
    """
    return _SENTENCES.get(key, _SENTENCES["went_wrong"])
