"""Amounts: units, ranges, signs, money, telephone numbers."""

from __future__ import annotations

import re
from typing import Final

from caal_node.tts_text.output_buffer import Before, Owed
from caal_node.tts_text.spoken_forms import Currency, Wording

NUMBER: Final = r"(?:\d{1,3}(?:,\d{3})+(?:\.\d+)?|\d+(?:\.\d+)?)"
_AMOUNT: Final = re.compile(
    rf"(?P<sign>>=|<=|[<>≤≥~≈±+\-−]?)(?P<a>{NUMBER})(?:(?P<dash>[-–—])(?P<b>{NUMBER}))?"
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


def phone(run: str, before: Before, wording: Wording) -> tuple[int, str] | None:
    """Length and digits of the telephone number at the beginning of `run`."""
    match = _PHONE.match(run)
    if match is None or run[match.end() :][:1].isdigit():
        return None
    if re.match(r"[-.]\d", run[match.end() :]) or len(re.sub(r"\D", "", match[0])) > 15:
        return None
    spaced = match[0][0].isdigit() and " " in match[0]
    if (match["short"] or spaced) and not wording.phone_near & set(before.words):
        return None
    if not wording.spells_phone_numbers:
        return match.end(), match[0]
    groups = [" ".join(group) for group in re.findall(r"\d+", match[0])]
    plus = wording.phrases["plus"] + " " if match[0].startswith("+") else ""
    return match.end(), plus + ", ".join(groups)


def spoken_amount(core: str, before: Before, wording: Wording) -> tuple[str, str | None] | None:
    """What is said for `core`, and the number that a unit in the next word would belong to."""
    if number := _HASH_NUMBER.fullmatch(core):
        return wording.phrase("number", number=number[1]), None
    amount = _AMOUNT.fullmatch(core)
    if amount is None:
        return None
    sign, a, b, unit = amount["sign"], amount["a"], amount["b"], amount["unit"]
    if (noun := _noun(unit, b or a, wording)) is None:
        return _both(core, before, wording)
    said = a
    if b:
        if not _is_range(a, b, amount["dash"], before, wording) or sign not in ("", "~", "≈"):
            return None
        said = wording.phrase("range", low=a, high=b)
    if sign:
        said = f"{wording.phrases[_SIGNS[sign]]} {said}"
    return (f"{said} {noun}", None) if noun else (said, b or a)


def _noun(unit: str | None, number: str, wording: Wording) -> str | None:
    """The word of an attached unit; "" without one, None for what is no unit."""
    if unit is None:
        return ""
    if unit in wording.units:
        return None if unit in wording.units_apart else wording.unit(unit, number)
    if unit.startswith("/") and unit[1:] in wording.per:
        return wording.phrase("per", unit=wording.per[unit[1:]])
    return None


def _both(core: str, before: Before, wording: Wording) -> tuple[str, None] | None:
    """`20°C/68°F`."""
    one, slash, other = core.partition("/")
    if not slash or not other[:1].isdigit() or other.isdigit():
        return None
    first, second = spoken_amount(one, before, wording), spoken_amount(other, before, wording)
    if first is None or second is None or first[1] or second[1]:
        return None
    return f"{first[0]}, {second[0]}", None


def _is_range(a: str, b: str, dash: str, before: Before, wording: Wording) -> bool:
    padded = any(len(n) > 1 and n[0] == "0" and n[1] != "." for n in (a, b))
    if padded or float(a.replace(",", "")) >= float(b.replace(",", "")):
        return False
    if dash != "-":
        return True
    if len(a) == 3 and len(b) == 4:
        return False  # as 555-1234: most likely somebody's number
    return before.word not in wording.range_not_after


def spoken_money(core: str, wording: Wording) -> Owed | str | None:
    """What is said for an amount of money. Owed: a magnitude may follow, as in "$5 million"."""
    money = _MONEY.fullmatch(core)
    if money is None or (money["coin2"] or money["coin"]) != money["coin"]:
        return None
    a, b, short, per = money["a"], money["b"], money["short"], money["per"]
    if (short and short not in wording.shorthand) or (per and per not in wording.per):
        return None
    if b and float(b.replace(",", "")) <= float(a.replace(",", "")):
        return None
    coins = wording.currencies[money["coin"]]
    sign = f"{wording.phrases[_SIGNS[money['sign']]]} " if money["sign"] else ""
    amount = sign + (wording.phrase("range", low=a, high=b) if b else a)
    tail = " " + wording.phrase("per", unit=wording.per[per]) if per else ""
    if short:
        return f"{amount} {wording.shorthand[short]} {coins.many}{tail}"
    plain = f"{amount} {coins.many}" if b else sign + _coins(a, coins, wording)
    return plain + tail if per else Owed(plain, amount, coins.many)


def _coins(amount: str, coins: Currency, wording: Wording) -> str:
    whole, _, part = amount.partition(".")
    if len(part) != 2 or not coins.cents:
        return f"{amount} {coins.one if amount == '1' else coins.many}"
    notes = f"{whole} {coins.one if whole == '1' else coins.many}"
    if part == "00":
        return notes
    cents = f"{int(part)} {coins.cent if part == '01' else coins.cents}"
    return cents if whole == "0" else wording.phrase("cents", whole=notes, cents=cents)
