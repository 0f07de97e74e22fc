"""Where commands print: nothing that has to be typed is lost on a narrow terminal."""

from __future__ import annotations

import io

import pytest
from rich.console import Console, Group
from rich.table import Table

from caal_node.cli.output import print_table

COMMAND = "caal-node"


@pytest.mark.parametrize("width", [20, 30, 60])
def test_no_cell_of_a_table_is_cut_on_a_narrow_terminal(width: int) -> None:
    table = Table("toolset", "what to type", "found")
    table.add_row("home_assistant", f"{COMMAND} tools add home_assistant", "nothing yet")
    written = io.StringIO()
    out = Console(file=written, width=width, force_terminal=True, color_system=None)
    print_table(out, Group("Toolsets:", table))
    text = written.getvalue()
    assert "…" not in text
    letters = [char for char in text if char.isalpha()]
    assert sorted(letters) == sorted(
        char
        for char in "Toolsets toolset what to type found home_assistant caal-node tools add"
        " home_assistant nothing yet"
        if char.isalpha()
    )
