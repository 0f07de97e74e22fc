"""The words of an HTML page, for replies that a person would read in a browser."""

from __future__ import annotations

from html.parser import HTMLParser

_SILENT = frozenset(("script", "style", "head", "template", "noscript"))
_BREAKS = frozenset(
    (
        *("br", "p", "div", "li", "tr", "h1", "h2", "h3", "h4", "h5", "h6"),
        *("section", "article", "table", "ul", "ol"),
    )
)


def text_of_html(html: str) -> str:
    """Plain text stays as it is: n8n sends it as text/html."""
    if "<" not in html and "&" not in html:
        return html
    words = _Words()
    words.feed(html)
    words.close()
    lines = (" ".join(line.split()) for line in "".join(words.parts).split("\n"))
    return "\n".join(line for line in lines if line)


class _Words(HTMLParser):
    def __init__(self) -> None:
        super().__init__(convert_charrefs=True)
        self.parts: list[str] = []
        self._silent = 0

    def handle_starttag(self, tag: str, attrs: object) -> None:
        self._silent += tag in _SILENT
        if tag in _BREAKS:
            self.parts.append("\n")

    def handle_endtag(self, tag: str) -> None:
        self._silent = max(0, self._silent - (tag in _SILENT))
        if tag in _BREAKS:
            self.parts.append("\n")

    def handle_data(self, data: str) -> None:
        if not self._silent:
            self.parts.append(data)
