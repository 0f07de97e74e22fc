"""Draws what a soak measured: one SVG, a panel for each figure, over the hours."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Final

WIDTH: Final = 900
PANEL: Final = 130
"""Points of one panel's height, its title included."""
LEFT: Final = 70
TOP: Final = 26


def draw(
    path: Path, title: str, hours: Sequence[float], panels: Mapping[str, Sequence[float]]
) -> None:
    """Write the plot of `panels` (name to its values, one for each of `hours`) to `path`."""
    height = TOP + 14 + PANEL * len(panels)
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" width="{WIDTH}" height="{height}"'
        ' font-family="sans-serif" font-size="12">',
        f'<rect width="{WIDTH}" height="{height}" fill="white"/>',
        f'<text x="{LEFT}" y="18" font-size="14">{title}</text>',
    ]
    for number, (name, values) in enumerate(panels.items()):
        parts += _panel(TOP + PANEL * number, name, hours, values)
    parts.append(f'<text x="{LEFT}" y="{height - 4}">0 h</text>')
    parts.append(
        f'<text x="{WIDTH - 10}" y="{height - 4}" text-anchor="end">{hours[-1]:.1f} h</text>'
    )
    path.write_text("\n".join([*parts, "</svg>", ""]), encoding="utf-8")


def _panel(top: float, name: str, hours: Sequence[float], values: Sequence[float]) -> list[str]:
    highest = max(*values, 1.0)
    floor, roof = top + PANEL - 14, top + 24
    across, up = (WIDTH - LEFT - 10) / (hours[-1] or 1.0), (floor - roof) / highest
    line = " ".join(
        f"{LEFT + hour * across:.1f},{floor - value * up:.1f}"
        for hour, value in zip(hours, values, strict=True)
    )
    return [
        f'<text x="{LEFT}" y="{top + 16}">{name}</text>',
        f'<path d="M{LEFT},{roof}V{floor}H{WIDTH - 10}" fill="none" stroke="#999"/>',
        f'<text x="{LEFT - 6}" y="{roof + 4}" text-anchor="end">{highest:,.0f}</text>',
        f'<text x="{LEFT - 6}" y="{floor}" text-anchor="end">0</text>',
        f'<polyline points="{line}" fill="none" stroke="#0b6" stroke-width="1.5"/>',
    ]
