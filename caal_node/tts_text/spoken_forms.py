"""The words of one language for written forms, as `prompts/speakable.toml` gives them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Literal, NamedTuple

from pydantic import AliasPath, BaseModel, ConfigDict, Field


class Currency(NamedTuple):
    """The names of a currency, and of its hundredth where people use one."""

    one: str
    many: str
    cent: str = ""
    cents: str = ""


class MathForms(BaseModel):
    """What is said for the parts of a formula; `{inner}`, `{top}` and `{bottom}` are filled in."""

    model_config = ConfigDict(frozen=True)

    squared: str
    cubed: str
    power: str
    below: str
    fraction: str
    root: str
    factorial: str
    signs: Mapping[str, str]
    commands: Mapping[str, str]
    """Maps a LaTeX command, without its backslash, to its words."""


class SpokenForms(BaseModel):
    """What is said for each written form. It is made once and shared by every stream.

    Validating a parsed TOML file raises pydantic's ValidationError, which names what is missing.
    """

    model_config = ConfigDict(frozen=True)

    months: tuple[str, ...]
    magnitudes: frozenset[str]
    date_after: frozenset[str]
    phone_near: frozenset[str]
    range_not_after: frozenset[str]
    citation_not_after: frozenset[str]
    index_after: frozenset[str]
    text_fences: frozenset[str]
    phone: Literal["digits", "written"]
    phrases: Mapping[str, str]
    symbols: Mapping[str, str]
    units: Mapping[str, tuple[str, str]]
    """Maps a unit to its word after the number one, and after any other number."""
    units_apart: frozenset[str] = Field(validation_alias=AliasPath("apart", "only"))
    """Units that are read as such only with a space before them."""
    per: Mapping[str, str]
    currencies: Mapping[str, Currency]
    shorthand: Mapping[str, str]
    math: MathForms

    def phrase(self, key: str, **values: str) -> str:
        """Return `phrases[key]` with each `{name}` of `values` filled in."""
        text = self.phrases[key]
        for name, value in values.items():
            text = text.replace("{" + name + "}", value)
        return text

    def unit(self, unit: str, number: str) -> str:
        """Return the word of a known unit after `number`."""
        one, many = self.units[unit]
        return one if number == "1" else many
