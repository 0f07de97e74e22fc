"""The labelled requests of `tests/data/references`: conversations as items, and what is meant.

In a file, a scene is a conversation, and its `asks` are requests that could come next. `means` has
a text for each thing that is meant, or a list of texts where some words mean several things; `or`
has other readings that are as right. A text is one value of the thing's record.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from caal_node.core.items import AssistantItem, CallItem, Item, ResultItem, UserItem
from caal_node.grounding.earlier_results import Thing, earlier_results
from caal_node.grounding.references import Reference, resolve

FOLDER: Final = Path(__file__).parents[1] / "data" / "references"


@dataclass(frozen=True, slots=True)
class LabelledRequest:
    scene: str
    kind: str
    earlier: tuple[Item, ...]
    say: str
    readings: tuple[Sequence[Any], ...]
    """Each is a whole reading of the request: what each reference means. The first is the best."""
    expect: Mapping[str, Any]
    """What a model should do: `tool` and `arguments`, or `says` with words of the answer."""
    part: str = ""
    """Of the requests that models are asked: "tuning" or "held_out"."""

    def found(self) -> tuple[Reference, ...]:
        items = (*self.earlier, UserItem(self.say))
        return resolve(self.say, earlier_results(items))

    def is_right(self, found: Sequence[Reference]) -> bool:
        return any(_is_reading(reading, found) for reading in self.readings)


def labelled(name: str) -> Iterator[LabelledRequest]:
    """Yield the requests of one file, such as "held_out"."""
    for scene in json.loads((FOLDER / f"{name}.json").read_text("utf-8"))["scenes"]:
        earlier = tuple(scene_items(scene["turns"]))
        for ask in scene["asks"]:
            readings = (ask["means"], *ask.get("or", ()))
            expect = ask.get("expect", {})
            yield LabelledRequest(
                scene["name"],
                ask["kind"],
                earlier,
                ask["say"],
                readings,
                expect,
                scene.get("part", ""),
            )


def scene_items(turns: Sequence[Mapping[str, Any]]) -> Iterator[Item]:
    for number, turn in enumerate(turns, 1):
        yield UserItem(turn["say"], f"user_{number}")
        if tool := turn.get("tool"):
            call_id = f"call_{number}"
            yield CallItem(call_id, tool, _line(turn["arguments"]))
            yield ResultItem(call_id, tool, _line(turn["result"]), turn.get("is_error", False))
        yield AssistantItem(turn["answer"])


@dataclass(slots=True)
class Score:
    """Counts over labelled requests."""

    right: Counter[str]
    of: Counter[str]
    wrong: int = 0
    """Requests with a hint that means something else, or one that should have none."""

    @property
    def share_right(self) -> float:
        return self.right.total() / max(1, self.of.total())

    @property
    def share_wrong(self) -> float:
        return self.wrong / max(1, self.of.total())


def scored(requests: Sequence[LabelledRequest], *, told: bool = False) -> Score:
    """Count what the resolver makes of `requests`; `told` prints what it does not get right."""
    score = Score(Counter(), Counter())
    for request in requests:
        found = request.found()
        right = request.is_right(found)
        score.of[request.kind] += 1
        score.right[request.kind] += right
        score.wrong += bool(found) and not right
        if told and not right:
            meant = [(one.words, *map(str, one.things)) for one in found]
            print(f"  {request.scene}: {request.say!r} is {request.readings[0]}, not {meant}")
    return score


def _is_reading(reading: Sequence[Any], found: Sequence[Reference]) -> bool:
    if len(reading) != len(found):
        return False
    return all(_is_meant(each, one.things) for each, one in zip(reading, found, strict=True))


def _is_meant(meant: Any, things: Sequence[Thing]) -> bool:
    texts: list[str] = [meant] if isinstance(meant, str) else meant
    if len(texts) != len(things):
        return False
    pairs = zip(sorted(texts), sorted(things, key=lambda thing: _named(thing, texts)), strict=True)
    return all(_named(thing, [text]) == text for text, thing in pairs)


def _named(thing: Thing, texts: Sequence[str]) -> str:
    values = [thing] if isinstance(thing, str) else [str(value) for value in thing.values()]
    return next((text for text in texts if text in values), "")


def _line(value: Any) -> str:
    return json.dumps(value, ensure_ascii=False, separators=(",", ":"))
