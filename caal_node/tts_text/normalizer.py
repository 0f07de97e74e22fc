"""`TextNormalizer` turns a model's written answer into spoken text while the answer streams in."""

from __future__ import annotations

import html
import re
import unicodedata
from typing import Final

from caal_node.tts_text.markdown_blocks import (
    FENCE_LINE_CHARS,
    FENCE_OPENING,
    FENCE_OPENING_SO_FAR,
    ROW_CHARS,
    SPAN_OPENING,
    CodeFence,
    MarkdownTable,
    inline_span,
    line_marker,
)
from caal_node.tts_text.output_buffer import OutputBuffer, PendingAmount, PrecedingText
from caal_node.tts_text.spoken_forms import (
    SpokenForms,
    spoken_amount,
    spoken_date,
    spoken_formula,
    spoken_money,
)

# Spoken forms of addresses and of names made for machines: links, e-mail, paths, identifiers.

LINK: Final = re.compile(r"(?:https?|ftp|wss?|rtsp|file)://\S+|\bwww\.[\w-]+\.\S+", re.IGNORECASE)
_HOST: Final = re.compile(
    r"(?:\w+://)?(?:[^@/?#\s]*@)?(?:www\.)?(\[[^\]]*\]|[^/?#:\\\s]*)(?::\d+)?(.*)"
)
_BARE_LINK: Final = re.compile(
    r"(?:[a-z0-9-]+\.)+(?:com|org|net|io|dev|gov|edu|co|uk|de|eu|info|app|ai|us|ca|fr|nl|ch)/\S+",
    re.IGNORECASE,
)
_EMAIL: Final = re.compile(r"(?:mailto:)?([\w.+-]+)@([\w-]+(?:\.[\w-]+)+)")
_UUID: Final = re.compile(r"[0-9a-f]{8}-(?:[0-9a-f]{4}-){3}[0-9a-f]{12}", re.IGNORECASE)
_HASH: Final = re.compile(r"(?:sha\d+:)?(?=[0-9a-f]*\d)(?=[0-9a-f]*[a-f])[0-9a-f]{16,128}", re.I)
_EXTENSIONS: Final = (
    "txt|md|py|js|ts|json|ya?ml|toml|ini|cfg|conf|log|csv|tsv|pdf|docx?|xlsx?|pptx?|png|jpe?g|gif|"
    "svg|mp3|mp4|wav|ogg|flac|zip|gz|tar|sh|html?|css|xml|sql|db|rs|go|java|c|h|cpp|env|lock|service"
)
_PATH: Final = re.compile(
    rf"(?:~|\.{{1,2}})?(?:/[\w.@%+-]+){{2,}}/?|(?:~|\.{{1,2}})/[\w.@%+-]+/?"
    rf"|[\w.-]+(?:/[\w.-]+)+\.(?:{_EXTENSIONS})|[A-Za-z]:(?:\\[\w.@%+-]+)+\\?"
)
_FILE: Final = re.compile(rf"[\w-]+\.(?:{_EXTENSIONS})")
_PATH_PARTS: Final = 3
"""Of a longer path only the last name and its folder are said, as nobody keeps more in mind."""
_ENTITY_ID: Final = re.compile(r"([a-z][a-z0-9_]*)((?:\.[a-z0-9_]+)+)")
_ENTITY_DOMAINS: Final = re.compile(
    "light|switch|sensor|binary_sensor|climate|media_player|cover|lock|fan|scene|script|"
    "automation|input_boolean|input_number|input_select|camera|vacuum|person|device_tracker|"
    "group|weather|alarm_control_panel|button|number|select|humidifier|water_heater|zone|timer|"
    "siren"
)
"""Home Assistant's domains: `sensor.temperature` has no underscore to be known by."""
_CALL: Final = re.compile(r"([A-Za-z_][\w.]*)\(\)?")
_NAME: Final = re.compile(r"[\w.:-]+")
UNDERSCORES: Final = re.compile(r"(?<=[^\W_])_+(?=[^\W_])")


def spoken_link(url: str, forms: SpokenForms) -> str:
    """Return what is said for an address: its host, told to be a link where it has a path."""
    match = _HOST.match(url)
    name, rest = (match[1], match[2]) if match else (url, "")
    return name if rest in ("", "/") else forms.phrase("link", host=name or "localhost")


def spoken_identifier(word: str, word_before: str, forms: SpokenForms) -> str | None:
    """Return what is said for `word`, given without punctuation, or None if it is no identifier."""
    if "@" in word and (email := _EMAIL.fullmatch(word)):
        name = email[1].replace("_", " ").replace("+", " " + forms.phrases["plus"] + " ")
        return forms.phrase("email", name=name, host=email[2])
    if len(word) >= 16:
        if _UUID.fullmatch(word):
            named = word_before in ("id", "uuid")
            return forms.phrase("uuid_named" if named else "uuid", end=" ".join(word[-4:]))
        if _HASH.fullmatch(word):
            return forms.phrase("hash", end=" ".join(word[-4:]))
    if "/" in word or "\\" in word:
        if _BARE_LINK.fullmatch(word):
            return spoken_link(word, forms)
        return _spoken_path(word, forms) if _PATH.fullmatch(word) else None
    return _spoken_name(word)


def _spoken_path(path: str, forms: SpokenForms) -> str:
    slash = forms.phrases["slash"]
    names = (name for name in re.split(r"[/\\]", path) if name not in ("", ".", ".."))
    parts = [_without_underscores(name) for name in names]
    if parts[:1] == ["~"]:
        parts[0] = forms.phrases["home"]
    if not parts:
        return path
    if len(parts) > _PATH_PARTS:
        return forms.phrase("path", name=parts[-1], folder=parts[-2])
    said = f" {slash} ".join(parts)
    return f"{slash} {said}" if path.startswith("/") else said


def _spoken_name(word: str) -> str | None:
    if call := _CALL.fullmatch(word):
        word = call[1]
    if _FILE.fullmatch(word):
        return _without_underscores(word)
    if entity := _ENTITY_ID.fullmatch(word):
        if "_" in word or _ENTITY_DOMAINS.fullmatch(entity[1]):
            return _without_underscores(word.replace(".", " "))
    elif "_" in word and _NAME.fullmatch(word):
        return _without_underscores(word)
    return word if call else None


def _without_underscores(name: str) -> str:
    return UNDERSCORES.sub(" ", name).strip("_") or name


# The rules for one written word. Emoji, faces and drawings, which have no sound, are left out.

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


WORD_CHARS: Final = 400
"""A longer run without white space is no word. It is spoken as it is, or left out if it is an
address."""
PIECE_CHARS: Final = 256
"""Chunks are read in pieces of this size, so that the held text, which is cut at its front, stays
short."""

_WHITE_SPACE: Final = re.compile(r"\s+")
_NOT_WHITE_SPACE: Final = re.compile(r"\S+")
_UNSPACED: Final = "฀-໿⺀-ッヅ-鿿豈-﫿＀-￯"
"""Thai, Lao, Chinese and Japanese have no white space between words, so each character is read as a
word. ツ is no part of it, as it stands in faces."""
_UNSPACED_CHAR: Final = re.compile(rf"[{_UNSPACED}]")
_WORD: Final = re.compile(rf"[^\s{_UNSPACED}]+|[{_UNSPACED}]")
_ADDRESS: Final = re.compile(r"\w://|\bwww\.|@\w")


class TextNormalizer:
    """Makes a written answer fit to be spoken.

    The answer is fed in pieces, and the sum of what comes out is the same for every way of cutting
    it. Plain words come out once the word is over. What may be a construct (a link, a row of a
    table, a formula) is held until it is decided, each up to its own cap; the longest are a link's
    address (1,000 characters), a table's row (1,000), and a fence without a language (1,500).
    """

    def __init__(self, forms: SpokenForms) -> None:
        self._forms = forms
        self._buffer = OutputBuffer()
        self._held = ""
        self._in_long_word = False
        """Whether the rest of a word past its cap is being read."""
        self._long_word_is_address = False
        """Whether that rest is left out, because the word is an address."""
        self._fence: CodeFence | None = None
        self._table: MarkdownTable | None = None

    def feed(self, chunk: str) -> str:
        """Return what can be spoken now that `chunk` has come; often that is nothing yet."""
        for start in range(0, len(chunk), PIECE_CHARS):
            self._held += chunk[start : start + PIECE_CHARS]
            self._read_held(final=False)
        return self._buffer.take()

    def finish(self) -> str:
        """Return the rest of what is spoken, now that no more text comes."""
        self._read_held(final=True)
        while self._fence is not None:
            fence, self._fence = self._fence, None
            self._held = self._finish_fence(fence)
            self._read_held(final=True)
        self._end_table()
        self._buffer.finish()
        return self._buffer.take()

    @property
    def held_chars(self) -> int:
        """The number of characters that have come and are not decided yet."""
        return len(self._held) + (self._fence.held_chars if self._fence else 0)

    def _spoken_cell(self, text: str) -> str:
        """Return what is said for the text of a table's cell, which has no lines of its own."""
        inner = TextNormalizer(self._forms)
        inner._buffer.at_line_start = False
        return inner.feed(text) + inner.finish()

    def _read_held(self, *, final: bool) -> None:
        while self._held and self._read_next(final=final):
            pass

    def _read_next(self, *, final: bool) -> bool:
        """Read one thing from the held text; return False where more text has to come first."""
        if self._fence is not None:
            return self._read_fence(self._fence, final=final)
        if self._in_long_word:
            return self._read_long_word()
        if white := _WHITE_SPACE.match(self._held):
            self._buffer.add_space(white[0])
            return self._consume(white.end())
        if self._held[0].isalpha() and self._table is None:
            return self._read_word(final=final)  # A letter begins a word, and no construct.
        if self._buffer.at_line_start:
            if self._held[0] == "|":
                return self._read_row(final=final)
            if self._table is not None:
                self._end_table()
            if (read := self._read_marker(final=final)) is not None:
                return read
        if self._held[0] in "`~" and (read := self._open_fence(final=final)) is not None:
            return read
        span = inline_span(self._held, self._buffer, self._forms, final=final)
        if span == "wait":
            return False
        if span is None:
            return self._read_word(final=final)
        if span.breaks_line:
            self._buffer.add_space("\n")
        elif span.spoken:
            self._speak(span.spoken)
        elif not span.read_again:
            self._buffer.omit()
        return self._consume(span.length, span.read_again)

    def _consume(self, length: int, read_again: str = "") -> bool:
        """Take `length` characters off the held text, and put `read_again` in their place."""
        self._buffer.preceding.last_read = self._held[length - 1]
        self._held = read_again + self._held[length:]
        return True

    def _read_marker(self, *, final: bool) -> bool | None:
        marker = line_marker(self._held, final=final)
        if marker is None:
            return None
        if marker == "wait":
            return False
        self._buffer.skip_marker(item=marker.item)
        if marker.spoken:
            self._buffer.add(marker.spoken)
        return self._consume(
            marker.length, self._forms.phrases["task_done"] if marker.task_done else ""
        )

    def _read_word(self, *, final: bool) -> bool:
        match = _WORD.match(self._held, 0, WORD_CHARS)
        assert match is not None
        end = match.end()
        opening = SPAN_OPENING.search(self._held, 1, end)
        if opening and not _ADDRESS.search(self._held, 0, opening.start()):
            end = opening.start()
        elif end == WORD_CHARS:
            self._in_long_word = True
            self._long_word_is_address = bool(_ADDRESS.search(match[0]))
            if not self._long_word_is_address:
                self._buffer.add(match[0])
                return self._consume(end)
        elif end == len(self._held) and not final and not _UNSPACED_CHAR.match(match[0]):
            return False
        self._speak_word(self._held[:end])
        return self._consume(end)

    def _read_long_word(self) -> bool:
        rest = _NOT_WHITE_SPACE.match(self._held)
        if rest is None:
            self._in_long_word = False
            return True
        if not self._long_word_is_address:
            self._buffer.add(rest[0])
        return self._consume(rest.end())

    def _speak_word(self, word: str) -> None:
        buffer = self._buffer
        spoken, amount = spoken_word(word, buffer.preceding, self._forms)
        if buffer.pending_amount and buffer.preceding.word in self._forms.magnitudes:
            buffer.complete_amount(spoken)
        elif amount is not None:
            buffer.add_amount(amount)
        elif spoken == "," and word in ("|", "•", "·"):
            buffer.add_attached(spoken)
        elif spoken != word and word[-1] == "." and word[:-1] in self._forms.units:
            buffer.add(spoken[:-1])
            buffer.pending_period = True
        else:
            if spoken[:1] in ".,;:!?" and spoken[:1] != word[:1]:
                buffer.omit()  # what the punctuation followed, such as an emoji
            buffer.add(spoken)

    def _speak(self, text: str) -> None:
        self._buffer.add(text)
        self._buffer.preceding.number = None
        self._buffer.preceding.words.append(text.lower())

    def _read_row(self, *, final: bool) -> bool:
        end = self._held.find("\n", 0, ROW_CHARS)
        if end < 0 and len(self._held) >= ROW_CHARS:
            self._end_table()
            self._buffer.at_line_start = False
            return self._consume(1)
        if end < 0 and not final:
            return False
        row, newline, _ = self._held.partition("\n")
        if self._table is None:
            self._table = MarkdownTable(self._spoken_cell, self._forms)
        self._speak_lines(self._table.add_row(row))
        return self._consume(len(row) + len(newline))

    def _end_table(self) -> None:
        table, self._table = self._table, None
        if table is not None:
            self._speak_lines(table.finish())

    def _speak_lines(self, sentences: list[str]) -> None:
        for sentence in sentences:
            self._speak(sentence)
            self._buffer.add_space("\n")

    def _open_fence(self, *, final: bool) -> bool | None:
        if opening := FENCE_OPENING.match(self._held, 0, FENCE_LINE_CHARS):
            self._fence = CodeFence(opening, self._forms)
            return self._consume(opening.end())
        too_long = len(self._held) >= FENCE_LINE_CHARS
        if final or too_long or not FENCE_OPENING_SO_FAR.fullmatch(self._held):
            return None
        return False

    def _read_fence(self, fence: CodeFence, *, final: bool) -> bool:
        end = self._held.find("\n", 0, PIECE_CHARS) + 1
        if not end and len(self._held) < PIECE_CHARS and not final:
            return False
        end = end or min(len(self._held), PIECE_CHARS)
        line = self._held[:end]
        if fence.is_closed_by(line):
            self._fence = None
            newline = "\n" if line.endswith("\n") else ""
            return self._consume(end, self._finish_fence(fence) + newline)
        fence.add_line(line)
        if words := fence.take_words():
            self._fence = None
            self._buffer.at_line_start = True
            return self._consume(end, words)
        return self._consume(end)

    def _finish_fence(self, fence: CodeFence) -> str:
        """Speak of a block of code, or return the block's words, which are read on."""
        sentence, words = fence.finish()
        if sentence:
            self._speak(sentence)
        elif words:
            self._buffer.at_line_start = True
        return words.removesuffix("\n")
