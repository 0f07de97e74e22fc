"""Writes the picture of turns as an SVG, as a terminal shows it."""

from __future__ import annotations

import io
from collections.abc import Sequence
from pathlib import Path
from typing import Final

from rich.console import Console
from rich.terminal_theme import TerminalTheme

from caal_node.cli.trace.picture import LEGEND, Picture
from caal_node.cli.trace.terminal import print_pictures
from caal_node.core.errors import ConfigError

COLUMNS: Final = 120
_FORMAT: Final = """\
<svg viewBox="0 0 {width} {height}" xmlns="http://www.w3.org/2000/svg">
<style>
.{unique_id}-matrix {{ font-family: monospace; font-size: {char_height}px; }}
{styles}
</style>
<defs>
<clipPath id="{unique_id}-clip-terminal">
<rect x="0" y="0" width="{terminal_width}" height="{terminal_height}" />
</clipPath>
{lines}
</defs>
<rect width="100%" height="100%" fill="white" />
<g transform="translate({terminal_x}, {terminal_y})" clip-path="url(#{unique_id}-clip-terminal)">
{backgrounds}
<g class="{unique_id}-matrix">
{matrix}
</g>
</g>
</svg>
"""
"""Rich's own form without its frame, and without the fonts that it loads from the network."""
_COLOURS: Final = TerminalTheme(
    (255, 255, 255),
    (36, 41, 47),
    [
        *((36, 41, 47), (207, 34, 46), (17, 99, 41), (154, 103, 0)),
        *((9, 105, 218), (130, 80, 223), (27, 124, 131), (110, 119, 129)),
    ],
)


def write_svg(path: Path, pictures: Sequence[Picture]) -> None:
    """Write the pictures one below the other.

    Raises:
        ConfigError: the file cannot be written.
    """
    out = Console(
        record=True, width=COLUMNS, file=io.StringIO(), force_terminal=True, color_system="standard"
    )
    print_pictures(out, pictures)
    out.print(LEGEND, style="dim")
    drawn = out.export_svg(theme=_COLOURS, code_format=_FORMAT, unique_id="turns")
    try:
        path.write_text(drawn, encoding="utf-8")
    except OSError as error:
        raise ConfigError(
            f"{path}: {error.strerror or error}. Name a file in a folder that can be written"
        ) from None
