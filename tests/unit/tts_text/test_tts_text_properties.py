"""Any chunking of a text gives the same speech, prose stays prose, nothing is held for long."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from caal_node.tts_text import TextNormalizer
from tests.stand_ins.tts_text_driver import FORMS, chunked, normalized

PIECES = (
    " ", " ", "\n", "  ", "\t", "\r\n", "- ", "* ", "# ", "1. ", "> ", "---\n", "- [x] ", "|",
    "| a | b |\n", "|---|---|\n", "```", "```py\n", "~~", "**", "*", "_", "`", "[", "](", "]", "(",
    "](http://x.org/a)", ")", "<b>", "</b>", "<br>", "<", ">", "<!--", "-->", "$", "$5", "$x$",
    r"\(", r"\)", r"\[", r"\frac{a}{b}", "million", "5", "3-5", "km", "km/h", "°C", "%", "call",
    "555-1234", "+1 555", "(555) ", "http://a.org/b", "a@b.org", "foo_bar", "light.kitchen",
    "/etc/a/b", "2026-11-22", "T08:00", "1,234", "~5", "€", "&amp;", "&", "->", "==", "[1]",
    "【1†a】", "😀", "⭐⭐", ":)", "word", "The", "end.", "!", "![", ",", "，", "中文", "ツ",
    "x" * 30, "-" * 40, "y" * 390,
)  # fmt: skip
WRITTEN = st.lists(st.sampled_from(PIECES) | st.text(max_size=4), max_size=30).map("".join)
SIZES = st.lists(st.integers(1, 300), min_size=1, max_size=4)

_UNITS = {unit.lower() for unit in FORMS.units} | FORMS.magnitudes
_LETTERS = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZäöüéñßøćАбвΩ"
WORDS = (
    st.text(_LETTERS, min_size=1, max_size=9).filter(lambda w: w.lower() not in _UNITS)
    | st.sampled_from(
        ["it's", "don't", "well-known", "“Yes”", "(really)", "Dr.", "e.g.", "i.e.", "U.S.", "a.m.",
         "NASA", "O’Neil", "'twas", "no,", "end.", "what?!", "wait…", "one;", "so:", "—", "AT&T"]
    )
)  # fmt: skip
NUMBERS = st.sampled_from(
    ["5", "3.5", "1,234,567", "8:00", "14:30", "2026", "1.2.3", "3/4", "24/7"]
)
SPACES = st.sampled_from([" ", " ", " ", "  ", "   ", "\n", "\n\n", " \n", "\t"])
PLAIN_LINES = st.lists(st.tuples(WORDS, SPACES), max_size=30).map(
    lambda pairs: "".join(word + space for word, space in pairs)
)


@settings(max_examples=400, deadline=None)
@given(WRITTEN, SIZES)
def test_any_chunking_says_the_same_as_the_whole(text: str, sizes: list[int]) -> None:
    assert chunked(text, sizes) == normalized(text)


@settings(max_examples=300, deadline=None)
@given(st.lists(st.tuples(WORDS, st.sampled_from([" ", "  "]), WORDS | NUMBERS, SPACES)), SIZES)
def test_prose_is_unchanged_to_the_character(
    words: list[tuple[str, str, str, str]], sizes: list[int]
) -> None:
    text = "".join(map("".join, words))
    assert chunked(text, sizes) == text


@given(PLAIN_LINES)
def test_prose_waits_for_no_more_than_a_word(text: str) -> None:
    normalizer = TextNormalizer(FORMS)
    out = 0
    for n, char in enumerate(text, 1):
        out += len(normalizer.feed(char))
        word = text[:n].split()[-1:] or [""]
        white = len(text[:n]) - len(text[:n].rstrip())
        before = text[: n - white - len(word[0])]
        gap = len(before) - len(before.rstrip())
        assert n - out <= white + len(word[0]) + gap
        if char.isspace():
            assert out >= n - white


@settings(max_examples=200, deadline=None)
@given(WRITTEN, st.integers(1, 400))
def test_no_more_is_held_than_the_longest_construct(text: str, size: int) -> None:
    normalizer = TextNormalizer(FORMS)
    long = text * (1 + 4000 // max(len(text), 1)) if text else ""
    for at in range(0, len(long), size):
        normalizer.feed(long[at : at + size])
        assert normalizer.held_chars <= 1500 + 256 + 256


@pytest.mark.parametrize(
    "piece",
    ["[", "![a", "[a](", "<a", "<a ", "<", "$", "$a ", "$5 ", "$$a", "\\(a", "\\[ ", "~~a", "|",
     "| a", "`", "```", "```\n", "```\na(b);\n", "**", "* ", "- ", "-", "_", "(5", "5 ", "+1 ",
     "555-", "(", "1.", "#", "> ", "x", "http://a", "a@", "&amp;", "&", "【", "😀", "中", "\n", " ",
     "{", "a_", "1,", "1-", "/a", ":)", "[1]", "| a |\n", "|-|\n", "\\a", "."],
)  # fmt: skip
def test_the_worst_texts_take_linear_work(piece: str) -> None:
    """Work is counted in characters that are held while something is read or tried."""

    def work(size: int) -> int:
        examined = 0

        class CountingNormalizer(TextNormalizer):
            def _read_next(self, *, final: bool) -> bool:
                nonlocal examined
                examined += len(self._held)
                return super()._read_next(final=final)

        normalizer = CountingNormalizer(FORMS)
        for char in (piece * size)[:size]:
            normalizer.feed(char)
        normalizer.finish()
        return examined

    small, large = work(4000), work(8000)
    assert large <= 2.4 * small + 2000
    assert large <= 1300 * 8000


@pytest.mark.parametrize(
    "text",
    [
        "[" + "word " * 70 + "](http://x.org/a) end",
        "[a](http://x.org/" + "b" * 1100 + ") end",
        "<b " + "c" * 400 + "> end",
        "$x$y and $z$ end",
        "$" + "a+" * 200 + "b$ end",
        "$5" + "1" * 100 + " = 3$ end",
        "~~" + "old " * 60 + "~~ end",
        "| " + "cell " * 250 + "|\n|---|\nend",
        "http://x.org/" + "a" * 500 + " end",
        "x" * 399 + "_a end",
        "-" * 100 + "end",
        "```" + " " * 100 + "\ncode\n```\nend",
        "```\n" + "plain words here\n" * 120 + "```\nend",
        "```\n" + "call(x); " * 250 + "\n```\nend",
        " " * 200 + "end",
        "2026-11-22 and \\(x\\)y (555) 123-4567x",
    ],
)  # fmt: skip
def test_at_its_cap_a_construct_is_cut_alike_in_any_chunks(text: str) -> None:
    whole = normalized(text)
    for sizes in ([1], [7], [255], [300, 1]):
        assert chunked(text, sizes) == whole
    assert "end" in whole or "123-4567x" in whole
