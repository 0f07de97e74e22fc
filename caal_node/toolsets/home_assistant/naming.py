"""Which devices a person means: by name or alias, by room or floor, by kind, or by several."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from difflib import SequenceMatcher
from typing import Final

from caal_node.toolsets.home_assistant.devices import (
    EVERYTHING,
    Area,
    Device,
    Home,
    Stems,
    kinds_in,
    stems_of,
)

TEXT_CHARS: Final = 200
PARTS_MAX: Final = 12
"""Devices that one request may list: "the hall light, the kitchen light and the fan"."""
_SPLIT: Final = re.compile(
    r"(?:(?<!\s)\s++)?,\s*+(?:and\s+)?|(?<!\s)\s++(?:and|plus|as well as)\s+"
)
_EXCEPT: Final = re.compile(
    r"(?<!\s)\s++(?:except(?: for)?|but not|apart from|without)\s+", re.IGNORECASE
)
_FILLERS: Final = frozenset(
    stems_of(
        "the a an my our your all any every both each of in on at to is are for please there whole "
        "state status"
    )
)
_ALL: Final = frozenset(("all", "every", "any", "both", "each", *EVERYTHING))
_HOUSE: Final = frozenset(stems_of("house home apartment flat"))
_STATED: Final = frozenset(
    stems_of(
        "open opened closed close shut locked unlocked off running playing heating still now "
        "currently right how what which much many i we did leave do does be status turned"
    )
)
"""Words of a question, which a model may hand on with the device: "is any window open"."""
NEAR: Final = 0.8
"""How alike a misheard name must be, from 0 to 1: "kitchin light" is 0.92 of "kitchen light"."""
_CLEAR: Final = 0.05
"""How much better it has to be than the next one."""
NEAREST_MAX: Final = 5


class NotFound(Exception):
    """Nothing of the home is meant. The text is written for the model."""


class Ambiguous(Exception):
    """Several devices have the name that was said; `devices` are they."""

    def __init__(self, said: str, devices: Sequence[Device]) -> None:
        super().__init__(said)
        self.said = said
        self.devices = tuple(devices)


@dataclass(frozen=True, slots=True)
class Meant:
    """What a person means: the devices, and whether they named one or several as a group."""

    devices: tuple[Device, ...]
    is_group: bool = False


def find(
    home: Home,
    said: str,
    *,
    usable: Callable[[Device], bool],
    whole: Callable[[Device], bool] | None = None,
    room: str = "",
    one: bool = False,
) -> Meant:
    """Return what is meant of the devices that are `usable`.

    Args:
        whole: What is meant of a room or of the home where nothing else is said; everything, where
            this is not given.
        room: The room that the person is in; "" where it is not known. "The lights" are those of
            this room, and "all lights" those of the home.
        one: Whether a name that fits several devices is to be asked about.

    Raises:
        NotFound: nothing fits.
        Ambiguous: with `one`, several fit as well as each other.
    """
    wanted, _, spared = _EXCEPT.sub("\n", said[:TEXT_CHARS], count=1).partition("\n")
    devices = [each for each in home.devices if usable(each)]
    search = _Search(home, devices, whole or usable, room, one)
    found = search.listed(wanted)
    if not spared:
        return found
    left = {each.id for each in search.listed(spared).devices}
    rest = tuple(each for each in found.devices if each.id not in left)
    if not rest:
        raise NotFound(f"nothing is left of {wanted!r} without {spared!r}")
    return Meant(rest, is_group=True)


class _Search:
    """A search among the usable devices of one home."""

    def __init__(
        self,
        home: Home,
        devices: list[Device],
        whole: Callable[[Device], bool],
        room: str,
        one: bool,
    ) -> None:
        self._home = home
        self._devices = devices
        self._whole = whole
        self._room = stems_of(room)
        self._one = one

    def listed(self, said: str) -> Meant:
        """Search for the whole text, and where that is nothing, for each part of a list."""
        try:
            return self._single(said, stems_of(said))
        except NotFound:
            if (left := tuple(each for each in stems_of(said) if each not in _STATED)) and (
                len(left) < len(stems_of(said))
            ):
                with suppress(NotFound):
                    return self._single(said, left)
            parts = [each for each in _SPLIT.split(said) if each.strip()]
            if not 1 < len(parts) <= PARTS_MAX:
                raise
        # "The kitchen and hall lights": what stands last is meant of the parts before it.
        kinds = kinds_in(_bare(stems_of(parts[-1])))
        tail = parts[-1].split()[-1] if kinds else ""
        found = dict[str, Device]()
        for part in parts:
            try:
                whole = part if kinds_in(stems_of(part)) else f"{part} {tail}"
                meant = self._single(part, stems_of(whole))
            except NotFound:
                meant = self._single(part, stems_of(part))
            found.update((each.id, each) for each in meant.devices)
        return Meant(tuple(found.values()), is_group=True)

    def _single(self, said: str, words: Stems) -> Meant:
        bare = _bare(words)
        areas, rest = self._place(bare)
        everywhere = not _ALL.isdisjoint(words)
        rest = tuple(each for each in rest if each not in EVERYTHING and each not in _HOUSE)
        if not rest and (areas is not None or bare):
            here = [each for each in self._within(areas) if self._whole(each)]
            if here and (areas is not None or everywhere or not _HOUSE.isdisjoint(bare)):
                return Meant(tuple(here), is_group=True)
        if named := self._named(self._devices, bare):
            return self._chosen(said, named)
        here = self._within(areas)
        if areas is not None and rest and (named := self._named(here, rest)):
            return self._chosen(said, named)
        if rest and (kind := self._of_kind(here, rest, everywhere, areas is not None)):
            # "The fan" is one, "the fans" and "all lights" are several, as is "the hall light".
            several = (
                everywhere or areas is not None or said.casefold().rstrip(" .?!").endswith("s")
            )
            return self._chosen(said, kind, is_group=several or self._are_here(kind))
        if rest and (part := self._part_of_name(here, rest)):
            return self._chosen(said, part)
        if bare and (alike := self._alike(bare)):
            return self._chosen(said, alike)
        raise NotFound(self._nothing(said))

    def _place(self, said: Stems) -> tuple[list[Area] | None, Stems]:
        """Take the rooms and floors out of stems; None for the rooms where none is named."""
        found: list[Area] | None = None
        while (place := self._longest_place(said)) is not None:
            at, length, areas = place
            found = [*(found or []), *areas]
            said = said[:at] + said[at + length :]
        return found, said

    def _longest_place(self, said: Stems) -> tuple[int, int, list[Area]] | None:
        best: tuple[int, int, list[Area]] | None = None
        for area in self._home.areas:
            for name, is_floor in (
                *((name, False) for name in area.names),
                *((name, True) for name in area.floor),
            ):
                stems = stems_of(name)
                at = _position(said, stems)
                if at is None or (best is not None and best[1] > len(stems)):
                    continue
                if best is not None and best[:2] == (at, len(stems)) and is_floor:
                    best[2].append(area)
                elif best is None or best[1] < len(stems):
                    best = (at, len(stems), [area])
        return best

    def _within(self, areas: list[Area] | None) -> list[Device]:
        if areas is None:
            return self._devices
        inside = {area.id for area in areas}
        return [each for each in self._devices if each.area and each.area.id in inside]

    def _named(self, devices: list[Device], said: Stems) -> list[Device]:
        """Return those with exactly this name, which comes first of their names."""
        found = list[Device]()
        for each in devices:
            for name in each.names:
                if _bare(stems_of(name)) == said:
                    names = (name, *(other for other in each.names if other != name))
                    found.append(replace(each, names=names))
                    break
        return found

    def _of_kind(
        self, devices: list[Device], said: Stems, everywhere: bool, placed: bool
    ) -> list[Device]:
        for kind, rest in kinds_in(said):
            found = [each for each in devices if kind.has(each)]
            if rest:
                # "The ceiling lamp": a kind, and a part of the name.
                found = self._part_of_name(found, rest)
            elif self._room and not (everywhere or placed):
                found = [each for each in found if self._is_here(each)] or found
            if found:
                return found
        return []

    def _is_here(self, device: Device) -> bool:
        area = device.area
        return area is not None and any(stems_of(name) == self._room for name in area.names)

    def _are_here(self, devices: list[Device]) -> bool:
        return bool(self._room) and all(map(self._is_here, devices))

    def _part_of_name(self, devices: list[Device], said: Stems) -> list[Device]:
        """Return those whose names have all the stems, and the fewest others."""
        wanted, best, least = set(said), list[Device](), 0
        for each in devices:
            names = each.area.names if each.area else ()
            rooms = {word for name in names for word in stems_of(name)}
            sizes = [
                len(own)
                for name in each.names
                if wanted <= (own := set(stems_of(name))) | rooms and wanted & own
            ]
            if not sizes:
                continue
            if not best or min(sizes) < least:
                best, least = [], min(sizes)
            if min(sizes) == least:
                best.append(each)
        return best

    def _alike(self, said: Stems) -> list[Device]:
        """Return the one device whose name sounds clearly the most like what was said."""
        wanted, scores = " ".join(said), list[tuple[float, Device]]()
        for each in self._devices:
            ratios = (
                SequenceMatcher(None, wanted, " ".join(_bare(stems_of(name)))).ratio()
                for name in each.names
            )
            scores.append((max(ratios), each))
        scores.sort(key=lambda score: -score[0])
        if not scores or scores[0][0] < NEAR:
            return []
        if len(scores) > 1 and scores[0][0] - scores[1][0] < _CLEAR:
            return []
        return [scores[0][1]]

    def _chosen(self, said: str, found: list[Device], *, is_group: bool = False) -> Meant:
        if len(found) > 1 and self._one and not is_group:
            if len(here := [each for each in found if self._is_here(each)]) == 1:
                return Meant(tuple(here))
            raise Ambiguous(said, found)
        return Meant(tuple(found), is_group=is_group and len(found) > 1)

    def _nothing(self, said: str) -> str:
        wanted = " ".join(_bare(stems_of(said)))

        def likeness(name: str) -> float:
            return SequenceMatcher(None, wanted, " ".join(stems_of(name))).ratio()

        names = sorted((each.name for each in self._devices), key=likeness, reverse=True)
        near = ", ".join(dict.fromkeys(names[:NEAREST_MAX]))
        return f"There is no {said!r} in this home." + (
            f" The nearest are: {near}." if near else ""
        )


def _bare(said: Iterable[str]) -> Stems:
    kept = tuple(each for each in said if each not in _FILLERS)
    return kept or tuple(said)


def _position(said: Stems, wanted: Stems) -> int | None:
    if not wanted:
        return None
    for at in range(len(said) - len(wanted) + 1):
        if said[at : at + len(wanted)] == wanted:
            return at
    return None
