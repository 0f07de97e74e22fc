"""The words of one language, as `prompts/speakable.toml` gives them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True, slots=True)
class Currency:
    """Its names, and those of its hundredth, where it has one that people say."""

    one: str
    many: str
    cent: str = ""
    cents: str = ""


@dataclass(frozen=True, slots=True)
class Wording:
    """What is said for each written form. Made once, shared by every stream."""

    months: tuple[str, ...]
    magnitudes: frozenset[str]
    date_after: frozenset[str]
    phone_near: frozenset[str]
    range_not_after: frozenset[str]
    citation_not_after: frozenset[str]
    index_after: frozenset[str]
    text_fences: frozenset[str]
    spells_phone_numbers: bool
    phrases: Mapping[str, str]
    symbols: Mapping[str, str]
    units: Mapping[str, tuple[str, str]]
    """Unit -> its word after one, and after any other number."""
    units_apart: frozenset[str]
    """Units that are such only with a space before them."""
    per: Mapping[str, str]
    currencies: Mapping[str, Currency]
    shorthand: Mapping[str, str]
    math: Mapping[str, str]
    math_signs: Mapping[str, str]
    math_commands: Mapping[str, str]

    @staticmethod
    def of(table: Mapping[str, Any]) -> Wording:
        """From a parsed TOML file.

        Raises:
            ValueError: something is missing; the message names it.
        """
        try:
            math = dict(table["math"])
            signs, commands = math.pop("signs"), math.pop("commands")
            return Wording(
                months=tuple(table["months"]),
                magnitudes=frozenset(table["magnitudes"]),
                date_after=frozenset(table["date_after"]),
                phone_near=frozenset(table["phone_near"]),
                range_not_after=frozenset(table["range_not_after"]),
                citation_not_after=frozenset(table["citation_not_after"]),
                index_after=frozenset(table["index_after"]),
                text_fences=frozenset(table["text_fences"]),
                spells_phone_numbers=table["phone"] == "digits",
                phrases=dict(table["phrases"]),
                symbols=dict(table["symbols"]),
                units={unit: (one, many) for unit, (one, many) in table["units"].items()},
                units_apart=frozenset(table["apart"]["only"]),
                per=dict(table["per"]),
                currencies={sign: Currency(*names) for sign, names in table["currencies"].items()},
                shorthand=dict(table["shorthand"]),
                math=math,
                math_signs=dict(signs),
                math_commands=dict(commands),
            )
        except KeyError as missing:
            raise ValueError(f"the wording has no {missing}; see prompts/speakable.toml") from None

    def phrase(self, key: str, **values: str) -> str:
        """`phrases[key]` with each `{name}` of `values` replaced."""
        text = self.phrases[key]
        for name, value in values.items():
            text = text.replace("{" + name + "}", value)
        return text

    def unit(self, unit: str, number: str) -> str:
        """A known unit's word after `number`."""
        one, many = self.units[unit]
        return one if number == "1" else many
