"""Fills in `${NAME}` in the texts of the file of servers.

    ${NAME}, ${env:NAME}     the variable of the environment; the second is Cursor's and VS Code's
    ${NAME:-text}            with a fallback, where it is not set or empty
    $${                      the two characters `${` themselves

Any other `${...}` is an error (`${input:token}` and `${workspaceFolder}` mean something in other
programs): sent as it stands, it would be a wrong password, and nobody would know why. A `$` without
a brace behind it is a `$`.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Final

from mcp_bridge.config.json_file import FileValue
from mcp_bridge.core.sanitize import looks_secret

_ESCAPE: Final = "$${"
_FORM: Final = re.compile(
    r"\$\$\{"
    r"|\$\{(?P<written>(?:env:)?(?P<name>[A-Za-z_][A-Za-z0-9_]*))"
    r"(?::-(?P<fallback>(?:[^}$]|\$(?!\{))*))?\}"
    r"|\$\{(?P<kind>[A-Za-z]{1,20}:)?(?P<closed>[^}]*\})?"
)
"""This matches the escape, a variable, or anything else that begins like one. A fallback holds no
variable."""


@dataclass(slots=True)
class VariableExpander:
    """Fills in one server's variables, and remembers what it filled in."""

    environ: Mapping[str, str]
    secrets: list[str] = field(default_factory=list[str])
    """Every value that was filled in: messages can do without them."""
    sealed: list[str] = field(default_factory=list[str])
    """Those of them that look like keys."""

    def expand(self, text: FileValue) -> str:
        """Gives a text of the file with its variables filled in.

        Raises: ConfigError, where a variable is not set, or a `${` means nothing here.
        """
        return _FORM.sub(lambda form: self._value(form, text), text.value)

    def _value(self, form: re.Match[str], text: FileValue) -> str:
        if form[0] == _ESCAPE:
            return "${"
        name = form["name"]
        if name is None:
            # What stands in the braces may be half of a password: it is not repeated.
            shown = f"${{{form['kind'] or ''}...{'}' if form['closed'] else ''}"
            text.refuse(
                f'"{shown}" means nothing here; write ${{NAME}} for a variable of the '
                'environment, or $${ for the two characters "${"'
            )
        found = self.environ.get(name) or form["fallback"]
        if found is None:
            written = form["written"]
            text.refuse(f"${{{written}}} is not set; set it, or write ${{{written}:-fallback}}")
        self.secrets.append(found)
        if looks_secret(name, found):
            self.sealed.append(found)
        return found
