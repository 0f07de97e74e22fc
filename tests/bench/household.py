"""Spoken requests over the toolsets that come along, every set turned on at once.

Run: `python -m tests.bench.household --ollama URL MODEL [--limit 60] [--ways node livekit ...]`.
The requests are those of tests/data/household, three of each file needing no tool. Temperature 0.
`tool` is the right tool and no other, `args` with the right arguments, `none` the requests that
need no tool and in which none was called. `--alone` asks each set's requests with its own tools
only, as in a home that has turned on one. `--record FOLDER` keeps each reply by its request, and
answers from there what was asked before.
"""

from __future__ import annotations

import argparse
import asyncio
import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from statistics import fmean
from tempfile import TemporaryDirectory
from typing import Any, Final, cast

from caal_node.config.setting_tables import ToolsetTable
from caal_node.context.token_estimate import PromptTools
from caal_node.core.errors import CaalError
from caal_node.models.backends.base import Backend
from caal_node.models.backends.ollama import OllamaBackend
from caal_node.tools.sources.methods import spec_of
from caal_node.tools.table import ToolTable
from caal_node.toolsets.base import ConfiguredToolset, ToolsetServices
from caal_node.toolsets.registry import load, made_of
from tests.bench.asked_ways import WAYS, Setting, wall
from tests.bench.recorded_replies import RecordedBackend
from tests.bench.small_models import SLOW
from tests.bench.spoken_requests import Heard, Requests, Spoken
from tests.bench.table import print_table

DATA: Final = Path(__file__).parents[1] / "data" / "household"
OPTIONS: Final[Mapping[str, Mapping[str, Any]]] = {
    "home_assistant": {"url": "http://127.0.0.1:8123", "token": "x" * 16},
    "web_search": {"engine": "searxng", "searxng_url": "http://127.0.0.1:8888"},
    "calendar": {"files": ["calendar.ics"]},
    "weather": {"home": "Oslo"},
}
"""Options that a set cannot be made without; nothing is connected to."""
COLUMNS: Final = ("set", "way", "requests", "tool", "args", "none", "right", "s")


@dataclass(frozen=True, slots=True)
class Asked:
    """One request and its set. `tool` is None where no tool is needed."""

    toolset: str
    say: str
    tool: str | None
    arguments: Mapping[str, Any]


def requests() -> Iterator[Asked]:
    for path in sorted(DATA.glob("*.json")):
        for row in json.loads(path.read_text("utf-8")):
            yield Asked(path.stem, row["say"], row["tool"], row.get("arguments", {}))


def spread(every: Sequence[Asked], limit: int) -> list[Asked]:
    """Return every so many of them, so that each set and each kind keeps its share."""
    limit = min(limit, len(every))
    return [every[int(n * len(every) / limit)] for n in range(limit)]


def tools_of(names: Sequence[str]) -> PromptTools:
    """Return the sets' tools as a prompt has them."""
    with TemporaryDirectory() as folder:
        services = ToolsetServices(state=Path(folder))
        tables = [ToolsetTable(name, _options(name, folder), base=Path(folder)) for name in names]
        made = [made_of(table, services) for table in tables]
        specs = [spec_of(tool, each.NAME) for each in made for tool in _tools(each)]
    return ToolTable(specs).prompt_tools


def _options(name: str, folder: str) -> Mapping[str, Any]:
    fields = load(name).Options.model_fields
    given: dict[str, Any] = dict(OPTIONS.get(name, {}))
    return given | {each: [folder] for each in ("folders",) if each in fields}


def _tools(toolset: ConfiguredToolset) -> list[Any]:
    return [each for each in toolset.tools if hasattr(each, "info")]


def is_right(asked: Asked, heard: Heard) -> tuple[bool, bool]:
    """Return whether the right tool was called, and whether its arguments are right too."""
    if asked.tool is None or [name for name, _ in heard.calls] != [asked.tool]:
        return False, False
    given = heard.calls[0][1]
    return True, all(_will_do(value, given.get(key)) for key, value in asked.arguments.items())


def _will_do(wanted: Any, given: Any) -> bool:
    choices = cast("list[Any]", wanted) if isinstance(wanted, list) else [wanted]
    return any(_plain(one) == _plain(given) for one in choices)


def _plain(value: Any) -> str:
    if isinstance(value, list):
        return "|".join(sorted(map(_plain, cast("list[Any]", value))))
    return " ".join(str(value).casefold().strip(" .!?\"'").split())


def options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--ollama", nargs=2, metavar=("URL", "MODEL"), required=True)
    parser.add_argument("--limit", type=int, default=60)
    parser.add_argument("--ways", nargs="+", choices=list(WAYS), default=["node"])
    parser.add_argument("--alone", action="store_true", help="each set with its own tools only")
    parser.add_argument("--record", type=Path, metavar="FOLDER")
    parser.add_argument("--misses", action="store_true", help="print what was not right")
    return parser.parse_args()


async def run(given: argparse.Namespace) -> None:
    chosen = spread(list(requests()), given.limit)
    names = sorted({asked.toolset for asked in chosen})
    groups = [[name] for name in names] if given.alone else [names]
    url, model = given.ollama
    rows: list[tuple[object, ...]] = []
    for way in given.ways:
        results: list[tuple[Asked, Heard]] = []
        for group in groups:
            ollama = OllamaBackend(model, host=url, temperature=0.0, deadlines=SLOW)
            backend: Backend = RecordedBackend(ollama, given.record) if given.record else ollama
            try:
                results += await _asked(way, group, chosen, backend, url, model, given.misses)
            finally:
                await ollama.aclose()
        by_set = [(name, [each for each in results if each[0].toolset == name]) for name in names]
        rows += [(name, way, *_counts(part)) for name, part in [*by_set, ("all", results)]]
    print_table(f"{len(chosen)} requests over {len(names)} toolsets, {model}", COLUMNS, rows)


async def _asked(
    way: str,
    group: Sequence[str],
    chosen: Sequence[Asked],
    backend: Backend,
    url: str,
    model: str,
    misses: bool,
) -> list[tuple[Asked, Heard]]:
    tools = tools_of(group)
    asked = [each for each in chosen if each.toolset in group]
    spoken = tuple(Spoken(each.say, ()) for each in asked)
    setting = Setting(
        backend,
        f"{url.rstrip('/')}/v1",
        model,
        Requests(tuple(tools.schemas), tools.examples, spoken),
        wall,
    )
    results: list[tuple[Asked, Heard]] = []
    async with WAYS[way](setting) as ask:
        for each in asked:
            try:
                results.append((each, await ask(each.say)))
            except CaalError as error:
                results.append((each, Heard((), "", 0.0, 0)))
                print(f"  {way}: {error}")
            if misses and not _all_right(*results[-1]):
                heard = results[-1][1]
                print(f"  {way}: {each.say!r}: {heard.calls} {heard.spoken[:90]!r}", flush=True)
    return results


def _all_right(asked: Asked, heard: Heard) -> bool:
    if asked.tool is None:
        return not heard.calls and bool(heard.spoken.strip())
    return is_right(asked, heard)[1]


def _counts(part: Sequence[tuple[Asked, Heard]]) -> tuple[object, ...]:
    needs = [pair for pair in part if pair[0].tool is not None]
    others = [pair for pair in part if pair[0].tool is None]
    named = sum(is_right(*pair)[0] for pair in needs)
    args = sum(is_right(*pair)[1] for pair in needs)
    none = sum(_all_right(*pair) for pair in others)
    seconds = fmean(heard.seconds for _, heard in part)
    return (
        len(part),
        f"{named}/{len(needs)}",
        f"{args}/{len(needs)}",
        f"{none}/{len(others)}",
        args + none,
        seconds,
    )


if __name__ == "__main__":
    asyncio.run(run(options()))
