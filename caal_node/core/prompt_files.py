"""Reads the texts for models and people from the files of `prompts/`.

They are files so that they can be translated and tuned without touching code. A placeholder is
`{name}`; other braces stay as they are, since prompts are full of JSON. All files are read when
this module is imported, because later an event loop runs, which must not wait for a file.
"""

from __future__ import annotations

import tomllib
from importlib import resources
from pathlib import Path
from typing import Final

# In a wheel the folder lies inside the package; in a checkout it is beside it.
_FOLDERS: Final = (
    Path(str(resources.files("caal_node"))) / "prompts",
    Path(__file__).parents[2] / "prompts",
)
_TEXTS: Final = {
    path.name: path.read_text(encoding="utf-8").strip()
    for path in next(folder for folder in _FOLDERS if folder.is_dir()).iterdir()
    if path.is_file()
}
_SENTENCES: Final[dict[str, str]] = tomllib.loads(_TEXTS["sentences.toml"])


def read(name: str) -> str:
    """Return the text of `prompts/<name>`, without the white space around it."""
    return _TEXTS[name]


def fill(name: str, **values: str) -> str:
    """Return `read(name)` with each `{key}` of `values` replaced."""
    text = read(name)
    for key, value in values.items():
        text = text.replace("{" + key + "}", value)
    return text


def sentence(key: str) -> str:
    """Return the sentence that a person hears, by its key in `prompts/sentences.toml`.

    An unknown key gives the general apology, so that a new error is never silent.
    """
    return _SENTENCES.get(key, _SENTENCES["went_wrong"])
