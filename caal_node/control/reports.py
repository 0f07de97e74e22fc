"""What an agent is asked to do and what that changed, and how it is written for the way back."""

from __future__ import annotations

import dataclasses
import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any, Final, TypeAlias, cast

MAX_REPORT_BYTES: Final = 12 * 1024
"""LiveKit refuses an RPC answer above 15 KiB; the rest is room for the envelope."""
_LISTS: Final = ("failed", "added", "changed", "removed")
"""In the order in which they are kept when not everything fits."""


@dataclass(frozen=True, slots=True)
class ReloadRequest:
    """Look for tools anew. Sent again under the same `id`, it asks how that reload is doing."""

    id: str
    tool_name: str | None = None
    """The tool that is new, when the caller says so."""
    message: str | None = None
    """A sentence to say when it is done."""


@dataclass(frozen=True, slots=True)
class ModelRequest:
    """Ask another model from now on. Nothing secret travels: its server must need no key."""

    id: str
    model: str
    api: str | None = None
    """None: the wire format in use."""
    base_url: str | None = None
    """None: the usual address of that wire format."""


@dataclass(frozen=True, slots=True)
class ModelReport:
    """The model that is asked now, and the wire format."""

    model: str
    api: str


@dataclass(frozen=True, slots=True)
class ReloadReport:
    """Tools by their exposed names, in order; `failed` holds the sources that did not answer."""

    tool_count: int
    added: tuple[str, ...] = ()
    removed: tuple[str, ...] = ()
    changed: tuple[str, ...] = ()
    failed: tuple[str, ...] = ()
    omitted: int = 0
    """Names left out because the report would not have fitted."""


ControlRequest: TypeAlias = ReloadRequest | ModelRequest
Report: TypeAlias = ReloadReport | ModelReport


def report(
    old: Mapping[str, str], new: Mapping[str, str], failed: Iterable[str] = ()
) -> ReloadReport:
    """Compare two tables, each a map from exposed name to a fingerprint of what the model reads.

    `failed`: the names of the sources that could not be listed.
    """
    return ReloadReport(
        tool_count=len(new),
        added=tuple(sorted(new.keys() - old.keys())),
        removed=tuple(sorted(old.keys() - new.keys())),
        changed=tuple(sorted(name for name in new.keys() & old.keys() if new[name] != old[name])),
        failed=tuple(sorted(set(failed))),
    )


def bounded(whole: ReloadReport, max_bytes: int = MAX_REPORT_BYTES) -> ReloadReport:
    """The report with as many names as fit; `omitted` counts the others."""
    left = max_bytes - len(json.dumps(dataclasses.asdict(ReloadReport(whole.tool_count)))) - 20
    kept: dict[str, tuple[str, ...]] = {}
    omitted = whole.omitted
    for field in _LISTS:
        names = cast("tuple[str, ...]", getattr(whole, field))
        fitting: list[str] = []
        for name in names:
            left -= len(json.dumps(name)) + 2
            if left < 0:
                break
            fitting.append(name)
        omitted += len(names) - len(fitting)
        kept[field] = tuple(fitting)
    return dataclasses.replace(whole, **kept, omitted=omitted)


def to_dict(whole: ReloadReport) -> dict[str, Any]:
    """As a JSON object; `omitted` only where something was."""
    fields = dataclasses.asdict(whole)
    if not whole.omitted:
        del fields["omitted"]
    return fields


def from_dict(fields: Mapping[str, Any]) -> ReloadReport:
    """The inverse of `to_dict`.

    Raises:
        ValueError: this is no report.
    """
    lists = {name: fields.get(name) for name in _LISTS}
    counts = (fields.get("tool_count"), fields.get("omitted", 0))
    if not all(isinstance(count, int) for count in counts):
        raise ValueError("a report needs whole numbers")
    if not all(
        isinstance(names, list | tuple)
        and all(isinstance(name, str) for name in cast("list[object]", names))
        for names in lists.values()
    ):
        raise ValueError("a report needs lists of names")
    named = {name: tuple(cast("list[str]", names)) for name, names in lists.items()}
    tool_count, omitted = cast("tuple[int, int]", counts)
    return ReloadReport(tool_count=tool_count, omitted=omitted, **named)
