"""LaTeX and plain formulas, as words."""

from __future__ import annotations

import re
from typing import Final

from caal_node.tts_text.spoken_forms import Wording

FORMULA_CHARS: Final = 300
"""A formula longer than this cannot be followed by ear, and is not waited for."""
_DEPTH: Final = 12
"""Nesting that is read; deeper braces are only left out."""
_TOKEN: Final = re.compile(
    r"\\(?P<command>[A-Za-z]+)\*?|\\(?P<escaped>.)|(?P<number>\d+(?:[.,]\d+)*)|(?P<word>[^\W\d_]+)"
    r"|(?P<sign>\S)|\s+",
    re.DOTALL,
)
_SILENT_NAMES: Final = (
    "left right big Big bigg Bigg quad qquad displaystyle textstyle limits begin end mathrm "
    "mathbf mathit mathbb mathcal text textbf operatorname boxed hat bar vec overline underline"
)
_SILENT: Final = frozenset(_SILENT_NAMES.split())
"""Commands of which only what they hold is said."""


def spoken_formula(formula: str, wording: Wording) -> str:
    """`E = mc^2` as "E equals mc squared". Never raises: what is unknown is said by its name."""
    return _Reader(formula, wording).words()


class _Reader:
    def __init__(self, formula: str, wording: Wording) -> None:
        found = _TOKEN.finditer(formula[: 2 * FORMULA_CHARS])
        self._tokens = [m for m in found if not m[0].isspace()]
        self._at = 0
        self._wording = wording

    def words(self) -> str:
        return " ".join(filter(None, self._until(None, 0)))

    def _until(self, closer: str | None, depth: int) -> list[str]:
        said: list[str] = []
        while self._at < len(self._tokens):
            if self._tokens[self._at][0] == closer:
                self._at += 1
                break
            said.append(self._next(depth))
        return said

    def _next(self, depth: int) -> str:
        token = self._tokens[self._at]
        self._at += 1
        math = self._wording.math
        if command := token["command"]:
            return self._command(command, depth)
        if token["escaped"]:
            return self._wording.math_signs.get(token["escaped"], "")
        match token[0]:
            case "{":
                return self._group(depth)
            case "}" | "&" | "$":
                return ""
            case "^":
                return self._power(self._one(depth))
            case "_":
                return math["below"].replace("{inner}", self._one(depth))
            case "²":
                return math["squared"]
            case "³":
                return math["cubed"]
            case "!":
                return math["factorial"]
            case sign:
                return self._wording.math_signs.get(sign, "" if sign in "()[]|" else sign)

    def _command(self, command: str, depth: int) -> str:
        math = self._wording.math
        if command in ("frac", "dfrac", "tfrac"):
            top, bottom = self._one(depth), self._one(depth)
            return math["fraction"].replace("{top}", top).replace("{bottom}", bottom)
        if command == "sqrt":
            return math["root"].replace("{inner}", self._one(depth))
        if command in _SILENT:
            return ""
        return self._wording.math_commands.get(command, command)

    def _group(self, depth: int) -> str:
        if depth >= _DEPTH:
            return ""
        return " ".join(filter(None, self._until("}", depth + 1)))

    def _one(self, depth: int) -> str:
        """The next token, or the next group: what a power or a root stands for."""
        if self._at >= len(self._tokens) or depth >= _DEPTH:
            return ""
        return self._next(depth + 1)

    def _power(self, inner: str) -> str:
        math = self._wording.math
        if inner in ("2", "3"):
            return math["squared" if inner == "2" else "cubed"]
        if inner == self._wording.math_commands.get("circ"):
            return inner
        return math["power"].replace("{inner}", inner)
