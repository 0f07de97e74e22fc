"""A fenced block: code is told in a sentence, words in a fence are said."""

from __future__ import annotations

import re
from typing import Final

from caal_node.tts_text.spoken_forms import Wording

BODY_CHARS: Final = 1500
"""What is kept of a block until it is known whether it holds code: a page's third."""
OPENING_CHARS: Final = 80
SHORT_CHARS: Final = 80
"""One line of code no longer than this is said: a command that a person asked for."""
OPENING: Final = re.compile(r"(`{3,}|~{3,})[ \t]*([\w+#.-]*)[^`\n]*\n")
OPENING_SO_FAR: Final = re.compile(r"(?:`{1,2}|~{1,2}|(?:`{3,}|~{3,})[^`\n]*)")
_CODE_LINE: Final = re.compile(
    r"[;{}]\s*$|^\s*(?:def|class|import|from|return|if|for|while|const|let|var|function|public|#include"
    r"|@\w+|</?\w+)\b|\w\(.*\)|^\s*[\"'\w.-]+\s*[=:]\s*\S|^\s*[$#>]\s|^\s{4,}\S|[=<>!]=|=>|->"
)
_NAMES: Final = {
    "py": "Python", "python": "Python", "js": "JavaScript", "javascript": "JavaScript",
    "ts": "TypeScript", "typescript": "TypeScript", "sh": "shell", "bash": "shell", "zsh": "shell",
    "shell": "shell", "console": "shell", "cpp": "C++", "c++": "C++", "cs": "C#", "csharp": "C#",
    "rb": "Ruby", "rs": "Rust", "golang": "Go", "yml": "YAML", "objc": "Objective-C",
}  # fmt: skip
_INITIALS_NAMES: Final = "json yaml toml xml html css sql php csv ini c r"
_INITIALS: Final = frozenset(_INITIALS_NAMES.split())


class Fence:
    """A block from its opening line on; `line` takes what follows, `end` says what it was."""

    def __init__(self, opening: re.Match[str], wording: Wording) -> None:
        self._run = opening[1]
        self._language = opening[2].lower()
        self._wording = wording
        self._lines = 0
        self._body: list[str] | None = []
        self._chars = 0

    def closes(self, line: str) -> bool:
        mark = line.strip()
        return len(self._run) <= len(mark) <= OPENING_CHARS and set(mark) == {self._run[0]}

    def line(self, text: str) -> None:
        """A line, or a piece of one that is very long; its newline is in it."""
        self._lines += "\n" in text
        self._chars += len(text)
        if self._body is not None:
            self._body.append(text)

    @property
    def holds(self) -> int:
        return self._chars if self._body is not None else 0

    @property
    def words(self) -> str | None:
        """The block's text once so much has come that it must be decided, if it holds words."""
        if self._body is None or self._chars <= BODY_CHARS:
            return None
        body = "".join(self._body)
        if self._holds_words(body):
            return body
        self._body = None  # code: only its lines are counted from here on
        return None

    def end(self) -> tuple[str, str]:
        """The sentence that is said, or else the words that are to be read on."""
        if self._body is not None:
            body = "".join(self._body)
            if not body.strip() or self._holds_words(body):
                return "", body
            if self._lines <= 1 and len(body) <= SHORT_CHARS:
                return "", body
        return self._told(), ""

    def _holds_words(self, body: str) -> bool:
        if self._language:
            return self._language in self._wording.text_fences
        lines = [line for line in body.splitlines() if line.strip()]
        return sum(bool(_CODE_LINE.search(line)) for line in lines) * 3 <= len(lines)

    def _told(self) -> str:
        name = self._language
        name = _NAMES.get(name) or (name.upper() if name in _INITIALS else name.capitalize())
        key = ("code_in" if name else "code") + ("_one" if self._lines <= 1 else "")
        return self._wording.phrase(key, language=name, lines=str(self._lines))
