"""Functionary 3.2: `>>>set_timer` and its arguments on the next line; `>>>all` is speech.

Its template ends the prompt with the first `>>>`, and no line ends in front of the others.
"""

from __future__ import annotations

from caal_node.reply_parser.cursor import Steps
from caal_node.reply_parser.format import Format, ParseContext
from caal_node.reply_parser.syntax.json_arguments import read_arguments

_MAX_NAME_CHARS = 128
_SPEECH = "all"
"""The recipient that is everybody."""


def _read(reading: ParseContext, dialect: Format, opener: str) -> Steps[bool]:
    # Dialects use this, and the scanner knows all dialects.
    from caal_node.reply_parser.markers import without_markers

    source = reading.source
    name, stop = yield from source.until(("\n",), _MAX_NAME_CHARS)
    if not stop:
        return False
    name = without_markers(name).partition("<")[0].strip()  # Without what leaked around it.
    if name == _SPEECH:
        yield from source.take(stop)
        return True
    if reading.desk.box.named(name) is None or (yield from source.skip_space()) != "{":
        return False
    yield from read_arguments(source, reading.desk.open(name))
    return True


def _read_in_line(reading: ParseContext, dialect: Format, opener: str) -> Steps[bool]:
    """The same behind speech, where nothing but a whole header is one."""
    source, box = reading.source, reading.desk.box
    name = yield from source.look((_SPEECH, *box.by_name))
    if name is None:
        return False
    source.advance(source.at + len(name))
    char = yield from source.skip_space()
    if not source.skipped.startswith(("\n", "\r\n")):
        return False
    if name == _SPEECH:
        return True
    if char != "{":
        return False
    yield from read_arguments(source, reading.desk.open(name))
    return True


FORMATS = (
    Format(name="functionary", openers=(">>>",), read=_read, at_line=True),
    Format(name="functionary", openers=(">>>",), read=_read_in_line, tentative=True),
)
