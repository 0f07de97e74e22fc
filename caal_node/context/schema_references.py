"""Local references (`$ref`) of a JSON schema: what they point at, and whether they lead back."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final, TypeAlias, cast
from urllib.parse import unquote

Schema: TypeAlias = Mapping[str, Any]


class SchemaReferences:
    """The local references of one schema: JSON pointers (RFC 6901) as URI fragments."""

    def __init__(self, root: Schema) -> None:
        self._root: Final = root
        self._loops: dict[str, bool] = {}

    def target(self, ref: str) -> Any:
        """What a reference points at; None where there is nothing, or it is not a local one."""
        if ref != "#" and not ref.startswith("#/"):
            return None
        value: Any = self._root
        for name in map(_unescape, ref.split("/")[1:]):
            if isinstance(value, Mapping):
                value = cast(Schema, value).get(name)
            elif isinstance(value, list) and name.isdecimal():
                values = cast(list[Any], value)
                value = values[int(name)] if int(name) < len(values) else None
            else:
                return None
        return value

    def definition(self, ref: str) -> tuple[str, str, Any] | None:
        """Where the definition lives that a reference leads into: `$defs`, its name, itself."""
        match ref.split("/"):
            case ["#", ("$defs" | "definitions") as home, name, *_]:
                return home, _unescape(name), self.target(f"#/{home}/{name}")
            case _:
                return None

    def leads_back(self, ref: str) -> bool:
        """Whether following `ref`, and what it points at, comes to `ref` again."""
        if ref not in self._loops:
            seen: set[str] = set()
            ahead = _refs(self.target(ref))
            while ahead:
                if (following := ahead.pop()) not in seen:
                    seen.add(following)
                    ahead.extend(_refs(self.target(following)))
            self._loops[ref] = ref in seen
        return self._loops[ref]


def _refs(value: Any) -> list[str]:
    found: list[str] = []
    ahead: list[Any] = [value]
    while ahead:
        each = ahead.pop()
        if isinstance(each, Mapping):
            for key, member in cast(Schema, each).items():
                if key == "$ref" and isinstance(member, str):
                    found.append(member)
                else:
                    ahead.append(member)
        elif isinstance(each, list):
            ahead.extend(cast(list[Any], each))
    return found


def _unescape(part: str) -> str:
    return unquote(part).replace("~1", "/").replace("~0", "~")
