"""Spoken forms of what is written in signs and digits: formulas, amounts, money, telephone numbers,
dates and times.

`prompts/speakable.toml` gives the words of one language for them.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Final, Literal, NamedTuple

from pydantic import AliasPath, BaseModel, ConfigDict, Field

from caal_node.tts_text.output_buffer import PendingAmount, PrecedingText


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


# Formulas, in LaTeX or plain.

FORMULA_CHARS: Final = 300
"""A formula longer than this cannot be followed by ear, and is not waited for."""
_DEPTH: Final = 12
"""Braces that are nested deeper than this are left out."""
_TOKEN: Final = re.compile(
    r"\\(?P<command>[A-Za-z]+)\*?|\\(?P<escaped>.)|(?P<number>\d+(?:[.,]\d+)*)|(?P<word>[^\W\d_]+)"
    r"|(?P<sign>\S)|\s+",
    re.DOTALL,
)
_SILENT_COMMANDS: Final = re.compile(
    "left|right|big|Big|bigg|Bigg|quad|qquad|displaystyle|textstyle|limits|begin|end|mathrm|"
    "mathbf|mathit|mathbb|mathcal|text|textbf|operatorname|boxed|hat|bar|vec|overline|underline"
)
"""Commands of which only the content is said."""


def spoken_formula(formula: str, forms: SpokenForms) -> str:
    """Return what is said for a formula: "E equals mc squared" for `E = mc^2`.

    It never raises: an unknown command is said by its name.
    """
    return _FormulaParser(formula, forms).parse()


class _FormulaParser:
    def __init__(self, formula: str, forms: SpokenForms) -> None:
        found = _TOKEN.finditer(formula[: 2 * FORMULA_CHARS])
        self._tokens = [m for m in found if not m[0].isspace()]
        self._at = 0
        self._forms = forms

    def parse(self) -> str:
        return self._words_until(None, 0)

    def _words_until(self, closer: str | None, depth: int) -> str:
        words: list[str] = []
        while self._at < len(self._tokens):
            if self._tokens[self._at][0] == closer:
                self._at += 1
                break
            words.append(self._next(depth))
        return " ".join(filter(None, words))

    def _next(self, depth: int) -> str:
        token = self._tokens[self._at]
        self._at += 1
        math = self._forms.math
        if command := token["command"]:
            return self._command(command, depth)
        if token["escaped"]:
            return math.signs.get(token["escaped"], "")
        match token[0]:
            case "{":
                return self._words_until("}", depth + 1) if depth < _DEPTH else ""
            case "}" | "&" | "$":
                return ""
            case "^":
                return self._power(self._argument(depth))
            case "_":
                return math.below.replace("{inner}", self._argument(depth))
            case "²":
                return math.squared
            case "³":
                return math.cubed
            case "!":
                return math.factorial
            case sign:
                return math.signs.get(sign, "" if sign in "()[]|" else sign)

    def _command(self, command: str, depth: int) -> str:
        math = self._forms.math
        if command in ("frac", "dfrac", "tfrac"):
            top, bottom = self._argument(depth), self._argument(depth)
            return math.fraction.replace("{top}", top).replace("{bottom}", bottom)
        if command == "sqrt":
            return math.root.replace("{inner}", self._argument(depth))
        if _SILENT_COMMANDS.fullmatch(command):
            return ""
        return math.commands.get(command, command)

    def _argument(self, depth: int) -> str:
        """Return the words of the next token or group, which a power or a root applies to."""
        if self._at >= len(self._tokens) or depth >= _DEPTH:
            return ""
        return self._next(depth + 1)

    def _power(self, inner: str) -> str:
        math = self._forms.math
        if inner in ("2", "3"):
            return math.squared if inner == "2" else math.cubed
        if inner == math.commands.get("circ"):
            return inner
        return math.power.replace("{inner}", inner)


# Amounts, money, telephone numbers, dates and times.

NUMBER: Final = r"(?:\d{1,3}(?:,\d{3})+(?:\.\d+)?|\d+(?:\.\d+)?)"
_AMOUNT: Final = re.compile(
    rf"(?=.*\Z)(?P<sign>>=|<=|[<>≤≥~≈±+\-−]?)(?P<a>{NUMBER})(?:(?P<dash>[-–—])(?P<b>{NUMBER}))?"
    r"(?P<unit>[^\d\s].*)?"
)
_MONEY: Final = re.compile(
    rf"(?P<sign>[<>~≈+\-−]?)(?P<coin>[$€£¥₹])(?P<a>{NUMBER})(?:[-–](?P<coin2>[$€£¥₹])?(?P<b>{NUMBER}))?"
    r"(?P<short>[A-Za-z]{1,2})?(?:/(?P<per>[A-Za-z]+))?"
)
_SIGNS: Final = {
    "+": "plus", "-": "minus", "−": "minus", "±": "plus_minus", "~": "about", "≈": "about",
    "<": "less", ">": "more", "≤": "at_most", "<=": "at_most", "≥": "at_least", ">=": "at_least",
}  # fmt: skip
_HASH_NUMBER: Final = re.compile(r"#(\d{1,6})")

PHONE_SO_FAR: Final = re.compile(r"[+(]?[\d() .\-]*")
PHONE_CHARS: Final = 24
"""A telephone number has at most 15 digits (E.164); the rest is punctuation."""
_PHONE: Final = re.compile(
    r"\+\d{1,3}[ .-]?(?:\(\d{1,4}\)[ .-]?)?\d{2,4}(?:[ .-]?\d{2,4}){1,4}"
    r"|(?:1[ .-])?\(\d{3}\) ?\d{3}[ .-]\d{4}"
    r"|(?:1[ .-])?\d{3}([-. ])\d{3}\1\d{4}"
    r"|(?P<short>\d{3}-\d{4})"
)

_ISO_DATE: Final = re.compile(
    r"(?P<year>\d{4})-(?P<month>\d\d)-(?P<day>\d\d)"
    r"(?:[Tt](?P<hour>\d\d):(?P<minute>\d\d)(?::(?P<second>\d\d)(?:[.,]\d+)?)?"
    r"(?P<zone>[Zz]|[+-]\d\d(?::?\d\d)?)?)?"
)
_SLASHED_DATE: Final = re.compile(r"(\d{1,2})/(\d{1,2})(?:/(\d{4}))?")
_TIME_RANGE: Final = re.compile(
    r"(\d{1,2}:\d\d(?:[ap]m)?|\d{1,2}[ap]m)[-–](\d{1,2}:\d\d(?:[ap]m)?|\d{1,2}[ap]m)", re.IGNORECASE
)


def spoken_phone_number(
    run: str, preceding: PrecedingText, forms: SpokenForms
) -> tuple[int, str] | None:
    """Return the length and the words of the telephone number that `run` begins with."""
    match = _PHONE.match(run)
    if match is None or run[match.end() :][:1].isdigit():
        return None
    if re.match(r"[-.]\d", run[match.end() :]) or len(re.sub(r"\D", "", match[0])) > 15:
        return None
    spaced = match[0][0].isdigit() and " " in match[0]
    if (match["short"] or spaced) and not forms.phone_near & set(preceding.words):
        return None
    if forms.phone != "digits":
        return match.end(), match[0]
    groups = [" ".join(group) for group in re.findall(r"\d+", match[0])]
    plus = forms.phrases["plus"] + " " if match[0].startswith("+") else ""
    return match.end(), plus + ", ".join(groups)


def spoken_amount(
    word: str, preceding: PrecedingText, forms: SpokenForms
) -> tuple[str, str | None] | None:
    """Return what is said for an amount, and the number that a unit after it would belong to."""
    if number := _HASH_NUMBER.fullmatch(word):
        return forms.phrase("number", number=number[1]), None
    amount = _AMOUNT.fullmatch(word)
    if amount is None:
        return None
    sign, a, b, unit = amount["sign"], amount["a"], amount["b"], amount["unit"]
    if (unit_word := _unit_word(unit, b or a, forms)) is None:
        return _two_amounts(word, preceding, forms)
    said = a
    if b:
        if not _is_range(a, b, amount["dash"], preceding, forms) or sign not in ("", "~", "≈"):
            return None
        said = forms.phrase("range", low=a, high=b)
    if sign:
        said = f"{forms.phrases[_SIGNS[sign]]} {said}"
    return (f"{said} {unit_word}", None) if unit_word else (said, b or a)


def _unit_word(unit: str | None, number: str, forms: SpokenForms) -> str | None:
    """Return the word of an attached unit, "" without one, or None for what is no unit."""
    if unit is None:
        return ""
    if unit in forms.units:
        return None if unit in forms.units_apart else forms.unit(unit, number)
    if unit.startswith("/") and unit[1:] in forms.per:
        return forms.phrase("per", unit=forms.per[unit[1:]])
    return None


def _two_amounts(
    word: str, preceding: PrecedingText, forms: SpokenForms
) -> tuple[str, None] | None:
    """Return what is said for two amounts with a slash between them: `20°C/68°F`."""
    one, slash, other = word.partition("/")
    if not slash or not other[:1].isdigit() or other.isdigit():
        return None
    first, second = spoken_amount(one, preceding, forms), spoken_amount(other, preceding, forms)
    if first is None or second is None or first[1] or second[1]:
        return None
    return f"{first[0]}, {second[0]}", None


def _is_range(a: str, b: str, dash: str, preceding: PrecedingText, forms: SpokenForms) -> bool:
    padded = any(len(n) > 1 and n[0] == "0" and n[1] != "." for n in (a, b))
    if padded or float(a.replace(",", "")) >= float(b.replace(",", "")):
        return False
    if dash != "-":
        return True
    if len(a) == 3 and len(b) == 4:
        return False  # such as 555-1234, which is most likely a telephone number
    return preceding.word not in forms.range_not_after


def spoken_money(word: str, forms: SpokenForms) -> PendingAmount | str | None:
    """Return what is said for an amount of money, or None for what is none.

    A PendingAmount is returned where a magnitude may follow, as in "$5 million".
    """
    money = _MONEY.fullmatch(word)
    if money is None or (money["coin2"] or money["coin"]) != money["coin"]:
        return None
    a, b, short, per = money["a"], money["b"], money["short"], money["per"]
    if (short and short not in forms.shorthand) or (per and per not in forms.per):
        return None
    if b and float(b.replace(",", "")) <= float(a.replace(",", "")):
        return None
    coins = forms.currencies[money["coin"]]
    sign = f"{forms.phrases[_SIGNS[money['sign']]]} " if money["sign"] else ""
    amount = sign + (forms.phrase("range", low=a, high=b) if b else a)
    tail = " " + forms.phrase("per", unit=forms.per[per]) if per else ""
    if short:
        return f"{amount} {forms.shorthand[short]} {coins.many}{tail}"
    plain = f"{amount} {coins.many}" if b else sign + _whole_and_cents(a, coins, forms)
    return plain + tail if per else PendingAmount(plain, amount, coins.many)


def _whole_and_cents(amount: str, coins: Currency, forms: SpokenForms) -> str:
    whole, _, part = amount.partition(".")
    if len(part) != 2 or not coins.cents:
        return f"{amount} {coins.one if amount == '1' else coins.many}"
    notes = f"{whole} {coins.one if whole == '1' else coins.many}"
    if part == "00":
        return notes
    cents = f"{int(part)} {coins.cent if part == '01' else coins.cents}"
    return cents if whole == "0" else forms.phrase("cents", whole=notes, cents=cents)


def spoken_date(word: str, preceding: PrecedingText, forms: SpokenForms) -> str | None:
    """Return what is said for a date or a range of times.

    None is returned for anything else, and for a date that could mean two days. A time such as
    `8:00 PM` is no matter of this function: it is spoken well as it is written.
    """
    if iso := _ISO_DATE.fullmatch(word):
        return _spoken_iso_date(iso, forms)
    if times := _TIME_RANGE.fullmatch(word):
        return forms.phrase("range", low=times[1], high=times[2])
    if slashed := _SLASHED_DATE.fullmatch(word):
        a, b, year = int(slashed[1]), int(slashed[2]), slashed[3] or ""
        if not year and (preceding.word not in forms.date_after or b <= 12):
            return None
        if a <= 12 < b or (a == b and year):
            return _spoken_day(year, a, b, forms)
        if b <= 12 < a and year:
            return _spoken_day(year, b, a, forms)
    return None


def _spoken_iso_date(iso: re.Match[str], forms: SpokenForms) -> str | None:
    date = _spoken_day(iso["year"], int(iso["month"]), int(iso["day"]), forms)
    if date is None or iso["hour"] is None:
        return date
    hour, minute = int(iso["hour"]), int(iso["minute"])
    if hour > 24 or minute > 59:
        return None
    clock = f"{hour}:{iso['minute']}"
    if iso["second"] not in (None, "00"):
        clock += f":{iso['second']}"
    if zone := _spoken_zone(iso["zone"] or "", forms):
        clock += f" {zone}"
    return forms.phrase("time", date=date, time=clock)


def _spoken_zone(zone: str, forms: SpokenForms) -> str:
    if not zone:
        return ""
    hours = int(zone[1:3] or 0)
    minutes = int(zone[3:].strip(":") or 0)
    if not (hours or minutes):
        return forms.phrases["zone"]
    offset = f"{hours}:{minutes:02}" if minutes else str(hours)
    return forms.phrase("zone_plus" if zone[0] == "+" else "zone_minus", offset=offset)


def _spoken_day(year: str, month: int, day: int, forms: SpokenForms) -> str | None:
    if not (1 <= month <= 12 and 1 <= day <= 31):
        return None
    name = forms.months[month - 1]
    if not year:
        return forms.phrase("day", month=name, day=str(day))
    return forms.phrase("date", month=name, day=str(day), year=year)
