"""Texts that people wrote, made fit for a prompt, a log or a voice."""

from __future__ import annotations

import re
from html.parser import HTMLParser
from typing import Final

# Control characters, and those that turn the direction of text around: nothing an author needs
# here, and a way to hide words from the person who reads the notes.
_HIDDEN: Final = re.compile(
    "[\x00-\x08\x0b-\x1f\x7f-\x9f\u200b-\u200f\u2028-\u202e\u2060-\u2064\u2066-\u2069\ufeff]"
)
_SILENT_TAGS: Final = frozenset(("script", "style", "head", "template", "noscript"))
_BREAKING_TAGS: Final = frozenset(
    (
        *("br", "p", "div", "li", "tr", "h1", "h2", "h3", "h4", "h5", "h6"),
        *("section", "article", "table", "ul", "ol"),
    )
)


def visible(text: str) -> str:
    """Make all line ends one kind and take out the characters that do not show."""
    text = text.encode("utf-8", errors="replace").decode()
    return _HIDDEN.sub("", text.replace("\r\n", "\n").replace("\r", "\n"))


def one_line(text: str, limit: int) -> str:
    """Put a text on one line of at most `limit` characters."""
    return " ".join(text.split())[:limit]


def clip(text: str, limit: int) -> str:
    """Cut a text to at most `limit` characters; an ellipsis shows where it was cut."""
    return text if len(text) <= limit else text[: limit - 1] + "…"


def text_of_html(html: str) -> str:
    """Return the words of an HTML page, as a person would read them in a browser.

    Plain text stays as it is: n8n sends it as text/html.
    """
    if "<" not in html and "&" not in html:
        return html
    words = _HtmlWords()
    words.feed(html)
    words.close()
    lines = (" ".join(line.split()) for line in "".join(words.parts).split("\n"))
    return "\n".join(line for line in lines if line)


class _HtmlWords(HTMLParser):
    def __init__(self) -> None:
        super().__init__(convert_charrefs=True)
        self.parts: list[str] = []
        self._silent = 0

    def handle_starttag(self, tag: str, attrs: object) -> None:
        self._silent += tag in _SILENT_TAGS
        if tag in _BREAKING_TAGS:
            self.parts.append("\n")

    def handle_endtag(self, tag: str) -> None:
        self._silent = max(0, self._silent - (tag in _SILENT_TAGS))
        if tag in _BREAKING_TAGS:
            self.parts.append("\n")

    def handle_data(self, data: str) -> None:
        if not self._silent:
            self.parts.append(data)
