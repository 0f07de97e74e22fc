"""Texts that people wrote, made fit for a prompt, a log or a voice."""

# pyright: reportMissingTypeStubs=false, reportAttributeAccessIssue=false
# pyright: reportUnknownVariableType=false, reportUnknownMemberType=false
# pyright: reportUnknownArgumentType=false
# lxml has no types.

from __future__ import annotations

import re
from typing import Any, Final

from lxml import etree

# Control characters, and those that turn the direction of text around: nothing an author needs
# here, and a way to hide words from the person who reads the notes.
_HIDDEN: Final = re.compile(
    "[\x00-\x08\x0b-\x1f\x7f-\x9f\u200b-\u200f\u2028-\u202e\u2060-\u2064\u2066-\u2069\ufeff]"
)
PAGE_CHARS: Final = 131_072
"""How much of a page is read. The parser's work grows with the page, but for the attributes of one
element, each of which is compared with all others: these take 0.3 s at most."""
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

    Plain text stays as it is: n8n sends it as text/html. Of a page no more than PAGE_CHARS are
    read, and no elements that lie deeper than libxml2's own limit of 256.
    """
    if "<" not in html and "&" not in html:
        return html
    page = html[:PAGE_CHARS].replace("\0", "").encode("utf-8", errors="replace")
    # It lets go of the interpreter, and refers to no file and no address.
    parser: Any = etree.HTMLParser(encoding="utf-8", no_network=True, remove_comments=True)
    root = etree.fromstring(page, parser) if page.strip() else None
    if root is None:
        return ""
    parts: list[str] = []
    walk: Any = etree.iterwalk(root, events=("start", "end"))
    for event, element in walk:
        if element.tag in _BREAKING_TAGS:
            parts.append("\n")
        if event == "end":
            parts.append(element.tail or "")
        elif element.tag in _SILENT_TAGS:
            walk.skip_subtree()
        elif isinstance(element.tag, str):  # else it is a processing instruction
            parts.append(element.text or "")
    lines = (" ".join(line.split()) for line in "".join(parts).split("\n"))
    return "\n".join(line for line in lines if line)
