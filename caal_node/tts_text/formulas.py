"""Spoken forms of formulas, in LaTeX or plain."""

from __future__ import annotations

import re
from typing import Final

from caal_node.tts_text.spoken_forms import SpokenForms

FORMULA_CHARS: Final = 300
"""A formula longer than this cannot be followed by ear, and is not waited for."""
_DEPTH: Final = 12
"""Braces that are nested deeper than this are left out."""
_TOKEN: Final = re.compile(
    r"\\(?P<command>[A-Za-z]+)\*?|\\(?P<escaped>.)|(?P<number>\d+(?:[.,]\d+)*)|(?P<word>[^\W\d_]+)"
    r"|(?P<sign>\S)|\s+",
    re.DOTALL,
)
_SILENT_COMMANDS: Final = re.compile(
    "left|right|big|Big|bigg|Bigg|quad|qquad|displaystyle|textstyle|limits|begin|end|mathrm|"
    "mathbf|mathit|mathbb|mathcal|text|textbf|operatorname|boxed|hat|bar|vec|overline|underline"
)
"""Commands of which only the content is said."""


def spoken_formula(formula: str, forms: SpokenForms) -> str:
    """Return what is said for a formula: "E equals mc squared" for `E = mc^2`.

    It never raises: an unknown command is said by its name.
    """
    return _FormulaParser(formula, forms).parse()


class _FormulaParser:
    def __init__(self, formula: str, forms: SpokenForms) -> None:
        found = _TOKEN.finditer(formula[: 2 * FORMULA_CHARS])
        self._tokens = [m for m in found if not m[0].isspace()]
        self._at = 0
        self._forms = forms

    def parse(self) -> str:
        return self._words_until(None, 0)

    def _words_until(self, closer: str | None, depth: int) -> str:
        words: list[str] = []
        while self._at < len(self._tokens):
            if self._tokens[self._at][0] == closer:
                self._at += 1
                break
            words.append(self._next(depth))
        return " ".join(filter(None, words))

    def _next(self, depth: int) -> str:
        token = self._tokens[self._at]
        self._at += 1
        math = self._forms.math
        if command := token["command"]:
            return self._command(command, depth)
        if token["escaped"]:
            return math.signs.get(token["escaped"], "")
        match token[0]:
            case "{":
                return self._words_until("}", depth + 1) if depth < _DEPTH else ""
            case "}" | "&" | "$":
                return ""
            case "^":
                return self._power(self._argument(depth))
            case "_":
                return math.below.replace("{inner}", self._argument(depth))
            case "²":
                return math.squared
            case "³":
                return math.cubed
            case "!":
                return math.factorial
            case sign:
                return math.signs.get(sign, "" if sign in "()[]|" else sign)

    def _command(self, command: str, depth: int) -> str:
        math = self._forms.math
        if command in ("frac", "dfrac", "tfrac"):
            top, bottom = self._argument(depth), self._argument(depth)
            return math.fraction.replace("{top}", top).replace("{bottom}", bottom)
        if command == "sqrt":
            return math.root.replace("{inner}", self._argument(depth))
        if _SILENT_COMMANDS.fullmatch(command):
            return ""
        return math.commands.get(command, command)

    def _argument(self, depth: int) -> str:
        """Return the words of the next token or group, which a power or a root applies to."""
        if self._at >= len(self._tokens) or depth >= _DEPTH:
            return ""
        return self._next(depth + 1)

    def _power(self, inner: str) -> str:
        math = self._forms.math
        if inner in ("2", "3"):
            return math.squared if inner == "2" else math.cubed
        if inner == math.commands.get("circ"):
            return inner
        return math.power.replace("{inner}", inner)
