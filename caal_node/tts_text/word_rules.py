"""One written word: how it is said."""

from __future__ import annotations

import html
import re
from typing import Final

from caal_node.tts_text.dates import spoken_date
from caal_node.tts_text.formulas import spoken_formula
from caal_node.tts_text.identifiers import LINK, host, spoken_name
from caal_node.tts_text.numbers import spoken_amount, spoken_money
from caal_node.tts_text.output_buffer import Before, Owed
from caal_node.tts_text.pictures import STARS, without_pictures
from caal_node.tts_text.spoken_forms import Wording

PLAIN: Final = re.compile(r"[^\W\d_]+(?:['’\-][^\W\d_]+)*[.,;:!?…]*")
"""A word that is said as it is written, unless it is a unit."""
_ENTITY: Final = re.compile(r"&(?:#\d{1,7}|#[xX][0-9a-fA-F]{1,6}|[A-Za-z]\w{1,30});")
_SHELL: Final = re.compile(r"([\"'“‘(\[{«„¿¡*_`]*)(.*?)([\"'”’)\]}»*_`.,;:!?…]*)", re.DOTALL)
_MARKS: Final = str.maketrans("", "", "*`")
_INNER_STARS: Final = re.compile(r"(?<!\d)\*{2,}|\*{2,}(?!\d)|(?<=\w)\*(?=[^\w\s*])")
_JOINED: Final = re.compile(r"(?<=\w)(?:->|=>|→|⇒|×|↔|←)(?=\w)")
_NAME_LIKE: Final = re.compile(r"[\w.,:;/'\"(){}\[\]<>-]+")
"""Names with punctuation. What has other signs in it may be a password, whose underscores count."""
_UNDERSCORES: Final = re.compile(r"(?<=[^\W_])_+(?=[^\W_])")
_LATEX: Final = re.compile(r"(\\[A-Za-z]+[\\{}^_\w()+=-]*)([.,;:!?]*)")
_BLANK: Final = re.compile(r"_{2,}[.,;:!?]*")


def spoken_word(word: str, before: Before, wording: Wording) -> tuple[str, Owed | None]:
    """What is said for `word`, which holds no white space; "" for nothing.

    Leaves in `before` what the next word's rules may ask for.
    """
    number, before.number = before.number, None
    if PLAIN.fullmatch(word):
        core = word.rstrip(".,;:!?…")
        said = word
        if number is not None and core in wording.units:
            said = wording.unit(core, number) + word[len(core) :]
        before.words.append(core.lower())
        return said, None
    if "&" in word and _ENTITY.search(word):
        word = _ENTITY.sub(lambda m: html.unescape(m[0]), word)
    if STARS.search(word):
        word = STARS.sub(lambda m: _stars(m[0], wording), word)
    before.number = number
    if word.isascii() or word not in wording.symbols:
        word = without_pictures(word)
    if not word:
        return "", None
    said, owed = _spoken(word, before, wording)
    before.words.append(said.strip(".,;:!?…\"'()").lower())
    return said, owed


def _stars(run: str, wording: Wording) -> str:
    return wording.phrase("stars", count=str(len(run.replace("️", ""))))


def _spoken(word: str, before: Before, wording: Wording) -> tuple[str, Owed | None]:
    number, before.number = before.number, None
    if link := LINK.search(word):
        return _link(word, link, before, wording), None
    if word == "*" and number is not None:
        return wording.phrases["times"], None
    if word in wording.symbols and not (number is not None and word in wording.units):
        return wording.symbols[word], None
    if _BLANK.fullmatch(word):
        return wording.phrases["blank"] + word.strip("_"), None
    if latex := _LATEX.fullmatch(word):
        return spoken_formula(latex[1], wording) + latex[2], None
    shell = _SHELL.fullmatch(word)
    assert shell is not None  # any text has a shell, if an empty one
    lead, core, tail = shell.groups()
    if not core:
        return _bare(word), None
    if tail.startswith(")") and core.endswith("(") and core[:-1].isidentifier():
        core, tail = core[:-1], tail[1:]
    lead, tail = _marks(lead), _marks(tail)
    if number is not None and core in wording.units:
        return lead + wording.unit(core, number) + tail, None
    if (money := spoken_money(core, wording)) is not None:
        if isinstance(money, str):
            return lead + money + tail, None
        if tail:
            return lead + money.plain + tail, None
        return "", Owed(lead + money.plain, lead + money.amount, money.noun)
    if (date := spoken_date(core, before, wording)) is not None:
        return lead + date + tail, None
    if (amount := spoken_amount(core, before, wording)) is not None:
        before.number = None if tail else amount[1]
        return lead + amount[0] + tail, None
    if (name := spoken_name(core, before.word, wording)) is not None:
        return lead + name + tail, None
    return lead + _tidy(core, wording) + tail, None


def _link(word: str, link: re.Match[str], before: Before, wording: Wording) -> str:
    url = link[0].rstrip("\"'”’)]}>*_`.,;:!?…")
    ahead = _marks(word[: link.start()]).replace("<", "")
    behind = _marks(word[link.start() + len(url) :]).replace(">", "")
    return ahead + host(url, wording) + behind


def _marks(shell: str) -> str:
    """Punctuation around a word without Markdown's."""
    return shell.translate(_MARKS).strip("_")


def _bare(word: str) -> str:
    """Punctuation alone: said if it is more than Markdown's marks."""
    return "" if not word.strip("*_`") and word != "*" else word.replace("`", "")


def _tidy(core: str, wording: Wording) -> str:
    """A word of no known form, without the marks inside it."""
    core = _INNER_STARS.sub("", core.replace("`", ""))
    core = _JOINED.sub(lambda m: f" {wording.symbols[m[0]]} ", core)
    if _NAME_LIKE.fullmatch(core):
        core = _UNDERSCORES.sub(" ", core)
    return core.replace("²", f" {wording.math['squared']}").replace(
        "³", f" {wording.math['cubed']}"
    )
