"""The rules for one written word. Emoji, faces and drawings, which have no sound, are left out."""

from __future__ import annotations

import html
import re
import unicodedata
from typing import Final

from caal_node.tts_text.formulas import spoken_formula
from caal_node.tts_text.identifiers import LINK, UNDERSCORES, spoken_identifier, spoken_link
from caal_node.tts_text.numbers_and_dates import spoken_amount, spoken_date, spoken_money
from caal_node.tts_text.output_buffer import PendingAmount, PrecedingText
from caal_node.tts_text.spoken_forms import SpokenForms

_PLAIN: Final = re.compile(r"[^\W\d_]+(?:['’\-][^\W\d_]+)*[.,;:!?…]*")
"""A word that is spoken as it is written, unless it is a unit."""
_ENTITY: Final = re.compile(r"&(?:#\d{1,7}|#[xX][0-9a-fA-F]{1,6}|[A-Za-z]\w{1,30});")
_PUNCTUATED: Final = re.compile(
    r"([\"'“‘(\[{«„¿¡*_`]*+)((?:.*[^\"'”’)\]}»*_`.,;:!?…])?)(.*)", re.DOTALL
)
_MARKDOWN_MARKS: Final = str.maketrans("", "", "*`")
_EMPHASIS_INSIDE: Final = re.compile(r"(?<!\d)\*{2,}|\*{2,}(?!\d)|(?<=\w)\*(?=[^\w\s*])")
_JOINING_SIGN: Final = re.compile(r"(?<=\w)(?:->|=>|→|⇒|×|↔|←)(?=\w)")
_NAME_LIKE: Final = re.compile(r"[\w.,:;/'\"(){}\[\]<>-]+")
"""A name with punctuation. A word with other signs may be a password, whose underscores count."""
_LATEX: Final = re.compile(r"(\\[A-Za-z]++[\\{}^_\w()+=-]*+)([.,;:!?]*+)")
_BLANK: Final = re.compile(r"_{2,}[.,;:!?]*")
_EMOJI: Final = re.compile(
    "[\U0001f000-\U0001fbff☀-➿⬀-⯿⌀-⏿■-◿"
    "️︎⃣\U000e0020-\U000e007f\ufffc\u200b\ufeff\u00ad™®]"
    "|(?<=[\U0001f000-\U0001fbff☀-➿️])\u200d"
)
"""Unicode's blocks of emoji and pictures, and invisible characters."""
_STARS: Final = re.compile("[★⭐]️?(?:[★⭐]️?)+")
_FACE: Final = re.compile(
    r"(?:[:;=][-'o^]?(?:\)+|\(+|D+|[PpOo3*|\\/\]\[])|[xX]D+|</?3+|\([:;]|\^_*\^|-_+-|T_T|>_+<|[oO]_[oO]"
    r"|\\o/|¯\\_\(ツ\)_/¯|ʕ\S+ʔ)(?P<end>[.,!?]*)"
)
_TEXT_SIGNS: Final = frozenset("©°№√∞∑∏∫∂∆±×÷−≤≥≠≈")
"""Signs that belong to text: a word of these alone is no drawing."""
_DRAWING_CATEGORIES: Final = ("So", "Sk", "Sm", "Cn", "Co")
"""Unicode's categories that drawings are made of; letters and punctuation have others."""


def spoken_word(
    word: str, preceding: PrecedingText, forms: SpokenForms
) -> tuple[str, PendingAmount | None]:
    """Return what is said for `word`, which holds no white space, and an amount that may go on.

    It leaves in `preceding` what the rules for the next word need.
    """
    number, preceding.number = preceding.number, None
    if _PLAIN.fullmatch(word):
        core = word.rstrip(".,;:!?…")
        said = word
        if number is not None and core in forms.units:
            said = forms.unit(core, number) + word[len(core) :]
        preceding.words.append(core.lower())
        return said, None
    if "&" in word and _ENTITY.search(word):
        word = _ENTITY.sub(lambda m: html.unescape(m[0]), word)
    if _STARS.search(word):
        word = _STARS.sub(
            lambda m: forms.phrase("stars", count=str(len(m[0].replace("️", "")))), word
        )
    preceding.number = number
    if word.isascii() or word not in forms.symbols:
        word = _without_pictures(word)
    if not word:
        return "", None
    said, pending = _apply_rules(word, preceding, forms)
    preceding.words.append(said.strip(".,;:!?…\"'()").lower())
    return said, pending


def _apply_rules(
    word: str, preceding: PrecedingText, forms: SpokenForms
) -> tuple[str, PendingAmount | None]:
    number, preceding.number = preceding.number, None
    if link := LINK.search(word):
        return _with_spoken_link(word, link, forms), None
    if word == "*" and number is not None:
        return forms.phrases["times"], None
    if word in forms.symbols and not (number is not None and word in forms.units):
        return forms.symbols[word], None
    if _BLANK.fullmatch(word):
        return forms.phrases["blank"] + word.strip("_"), None
    if latex := _LATEX.fullmatch(word):
        return spoken_formula(latex[1], forms) + latex[2], None
    parts = _PUNCTUATED.fullmatch(word)
    assert parts is not None  # The punctuation on both sides may be empty, so any word matches.
    lead, core, tail = parts.groups()
    if not core:
        return _spoken_punctuation(word), None
    if tail.startswith(")") and core.endswith("(") and core[:-1].isidentifier():
        core, tail = core[:-1], tail[1:]
    lead, tail = _without_markdown(lead), _without_markdown(tail)
    if number is not None and core in forms.units:
        return lead + forms.unit(core, number) + tail, None
    if (money := spoken_money(core, forms)) is not None:
        if isinstance(money, str):
            return lead + money + tail, None
        if tail:
            return lead + money.complete + tail, None
        return "", PendingAmount(lead + money.complete, lead + money.amount, money.currency)
    if (date := spoken_date(core, preceding, forms)) is not None:
        return lead + date + tail, None
    if (amount := spoken_amount(core, preceding, forms)) is not None:
        preceding.number = None if tail else amount[1]
        return lead + amount[0] + tail, None
    if (name := spoken_identifier(core, preceding.word, forms)) is not None:
        return lead + name + tail, None
    return lead + _without_inner_marks(core, forms) + tail, None


def _with_spoken_link(word: str, link: re.Match[str], forms: SpokenForms) -> str:
    url = link[0].rstrip("\"'”’)]}>*_`.,;:!?…")
    ahead = _without_markdown(word[: link.start()]).replace("<", "")
    behind = _without_markdown(word[link.start() + len(url) :]).replace(">", "")
    return ahead + spoken_link(url, forms) + behind


def _without_markdown(punctuation: str) -> str:
    return punctuation.translate(_MARKDOWN_MARKS).strip("_")


def _spoken_punctuation(word: str) -> str:
    """Return punctuation without a word, or "" where it is Markdown's marks alone."""
    return "" if not word.strip("*_`") and word != "*" else word.replace("`", "")


def _without_inner_marks(core: str, forms: SpokenForms) -> str:
    """Return a word of no known form without the marks inside it."""
    core = _EMPHASIS_INSIDE.sub("", core.replace("`", ""))
    core = _JOINING_SIGN.sub(lambda m: f" {forms.symbols[m[0]]} ", core)
    if _NAME_LIKE.fullmatch(core):
        core = UNDERSCORES.sub(" ", core)
    return core.replace("²", f" {forms.math.squared}").replace("³", f" {forms.math.cubed}")


def _without_pictures(word: str) -> str:
    """Return `word` without emoji, faces and drawings, which have no sound."""
    if (face := _FACE.fullmatch(word)) is not None:
        return face["end"]
    if word.isascii():
        return word
    word = _EMOJI.sub("", word)
    return "" if _is_drawing(word) else word


def _is_drawing(word: str) -> bool:
    """Tell whether `word` has signs that no text has, and no letter: `(╯°□°)╯︵`, `┻━┻`, `───`."""
    if any(c.isalnum() for c in word):
        return False
    odd = (c for c in word if not c.isascii() and c not in _TEXT_SIGNS)
    return any(unicodedata.category(c) in _DRAWING_CATEGORIES for c in odd)
